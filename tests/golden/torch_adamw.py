#!/usr/bin/env python3
"""Golden figures: small-cnn trained for 20 steps by PyTorch's AdamW, in fp64 and fp32.

Usage: /usr/bin/python3 torch_adamw.py [--out small_cnn_adamw.json]
Weights and data come from the generator of torch_wrn_10_1.py, rounded to fp32 for the second run.
"""
import argparse, json, math, os

import torch
import torch.nn.functional as F

import torch_wrn_10_1 as small

STEPS, LR, BETAS, EPSILON, WEIGHT_DECAY = 20, 1e-4, (0.9, 0.999), 1e-8, 1e-2
CHANNELS = [3, 16, 32, 64]


def parameter_list():
    """(name, shape) in the order that numbers the parameters' streams."""
    out = []
    for i in (1, 2, 3):
        out += [(f"conv{i}.weight", (CHANNELS[i], CHANNELS[i - 1], 3, 3)), (f"bn{i}.weight", (CHANNELS[i],)), (f"bn{i}.bias", (CHANNELS[i],))]
    return out + [("fc.weight", (small.CLASSES, CHANNELS[3])), ("fc.bias", (small.CLASSES,))]


def initial(stream, name, shape):
    if len(shape) == 1:
        return torch.full(shape, 1.0 if name.endswith(".weight") else 0.0, dtype=torch.float64)
    return small.fill(stream, shape, math.sqrt(6.0 / math.prod(shape[1:])))


def forward(p, x):
    for i in (1, 2, 3):
        x = F.conv2d(x, p[f"conv{i}.weight"], padding=1)
        x = F.relu(F.batch_norm(x, None, None, p[f"bn{i}.weight"], p[f"bn{i}.bias"], training=True, eps=small.BN_EPS))
        if i < 3:
            x = F.max_pool2d(x, 2)
    return F.linear(x.mean((2, 3)), p["fc.weight"], p["fc.bias"])


def train(data, dtype):
    p = {n: initial(i, n, s).to(dtype).requires_grad_() for i, (n, s) in enumerate(parameter_list())}
    optimizer = torch.optim.AdamW(p.values(), LR, betas=BETAS, eps=EPSILON, weight_decay=WEIGHT_DECAY)
    losses = []
    for x, y in data:
        loss = F.cross_entropy(forward(p, x.to(dtype)), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "final_l2": {n: small.norm(t) for n, t in p.items()}}


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "small_cnn_adamw.json"))
    args = ap.parse_args()
    torch.set_num_threads(1)
    data = [small.batch(s) for s in range(STEPS)]
    runs = {"fp64": train(data, torch.float64), "fp32": train(data, torch.float32)}
    with open(args.out, "w") as file:
        json.dump({"what": "small-cnn, 20 AdamW steps in PyTorch; made by torch_adamw.py",
                   "torch": torch.__version__,
                   "setting": {"batch": small.BATCH, "steps": STEPS, "lr": LR, "beta1": BETAS[0], "beta2": BETAS[1],
                               "epsilon": EPSILON, "weight_decay": WEIGHT_DECAY},
                   "parameters": [[n, list(s)] for n, s in parameter_list()], **runs}, file, indent=1)
        file.write("\n")
    print("losses", " ".join(f"{loss:.4f}" for loss in runs["fp64"]["losses"]))
    print("fp32 off by", max(abs(a - b) / a for a, b in zip(runs["fp64"]["losses"], runs["fp32"]["losses"])))


if __name__ == "__main__":
    main()
