#!/usr/bin/env python3
"""Golden figures: WRN-10-1 trained for 8 steps by PyTorch with clip_grad_norm_ before SGD with Nesterov momentum, in fp64 and fp32.

Usage: /usr/bin/python3 torch_clip.py [--out wrn_10_1_clipped.json]
Model, weights and data are those of torch_wrn_10_1.py, rounded to fp32 for the second run; see README.md for the generator.
"""
import argparse, json, os

import torch
import torch.nn.functional as F

import torch_wrn_10_1 as small

STEPS, LR, CLIP_NORM = 8, 0.05, 1.25


def train(init, data, dtype):
    ps = {n: t.to(dtype).clone().requires_grad_() for n, t in init.items()}
    stats = {n[:-len(".weight")]: (torch.zeros(t.shape[0], dtype=dtype), torch.ones(t.shape[0], dtype=dtype))
             for n, t in init.items() if ".bn" in n and n.endswith(".weight")}
    opt = torch.optim.SGD(ps.values(), LR, momentum=small.MOMENTUM, weight_decay=small.WEIGHT_DECAY, nesterov=True)
    losses, norms = [], []
    for x, y in data:
        loss = F.cross_entropy(small.forward(ps, stats, x.to(dtype)), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(ps.values(), CLIP_NORM).item())
        opt.step()
        losses.append(loss.item())
    return {"losses": losses, "norms": norms, "final_l2": {n: small.norm(p) for n, p in ps.items()}}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrn_10_1_clipped.json"))
    args = ap.parse_args()
    torch.set_num_threads(1)
    init, data = small.initial_parameters(), [small.batch(s) for s in range(STEPS)]
    runs = {"fp64": train(init, data, torch.float64), "fp32": train(init, data, torch.float32)}
    clipped = sum(norm > CLIP_NORM for norm in runs["fp64"]["norms"])
    assert 0 < clipped < STEPS, f"{clipped} of {STEPS} steps are clipped: both kinds must occur"
    with open(args.out, "w") as file:
        json.dump({"what": "WRN-10-1, 8 SGD steps behind clip_grad_norm_ in PyTorch; made by torch_clip.py",
                   "torch": torch.__version__,
                   "setting": {"batch": small.BATCH, "steps": STEPS, "lr": LR, "clip_norm": CLIP_NORM, "momentum": small.MOMENTUM,
                               "nesterov": True, "weight_decay": small.WEIGHT_DECAY},
                   "parameters": [[n, list(s)] for n, s in small.parameter_list()], **runs}, file, indent=1)
        file.write("\n")
    print("norms", " ".join(f"{norm:.3f}" for norm in runs["fp64"]["norms"]))
    print("losses", " ".join(f"{loss:.4f}" for loss in runs["fp64"]["losses"]))
    print("fp32 off by", max(abs(a - b) / a for a, b in zip(runs["fp64"]["losses"], runs["fp32"]["losses"])))


if __name__ == "__main__":
    main()
