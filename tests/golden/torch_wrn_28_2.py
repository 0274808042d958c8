#!/usr/bin/env python3
"""Golden figures: WRN-28-2 trained for 20 steps in fp32 by PyTorch at learning rate 0.001, in two layouts.

Usage: /usr/bin/python3 torch_wrn_28_2.py [--out wrn_28_2_fp32.json]
Weights and data come from the generator of README.md, rounded to fp32; see torch_wrn_10_1.py for its definition.
"""
import argparse, json, math, os

import torch
import torch.nn.functional as F

import torch_wrn_10_1 as small

STEPS, BATCH, CLASSES, SIZE = 20, 20, 10, 32
LR, MOMENTUM, WEIGHT_DECAY = 0.001, 0.9, 5e-4
BLOCKS, WIDTHS = 4, [16, 32, 64, 128]


def parameter_list():
    """(name, shape) in the order that numbers the parameters' streams."""
    out, cin = [("stem.conv.weight", (WIDTHS[0], 3, 3, 3))], WIDTHS[0]
    for g in (1, 2, 3):
        for k in range(1, BLOCKS + 1):
            cout, b = WIDTHS[g], f"group{g}.block{k}."
            out += [(b + "bn1.weight", (cin,)), (b + "bn1.bias", (cin,)), (b + "conv1.weight", (cout, cin, 3, 3)),
                    (b + "bn2.weight", (cout,)), (b + "bn2.bias", (cout,)), (b + "conv2.weight", (cout, cout, 3, 3))]
            cin = cout
    return out + [("head.bn.weight", (cin,)), ("head.bn.bias", (cin,)), ("head.fc.weight", (CLASSES, cin)), ("head.fc.bias", (CLASSES,))]


def initial_parameters():
    ps = {}
    for p, (name, shape) in enumerate(parameter_list()):
        if len(shape) > 1:
            ps[name] = small.fill(p, shape, math.sqrt(6.0 / math.prod(shape[1:]))).float()
        else:
            ps[name] = torch.full(shape, 1.0 if name.endswith("weight") else 0.0)
    return ps


def batch(step):
    x = small.fill(small.INPUT_STREAM + step, (BATCH, 3, SIZE, SIZE), 1.0).float()
    return x, torch.tensor([int(small.u(small.LABEL_STREAM + step, i) * CLASSES) for i in range(BATCH)])


def forward(ps, stats, x):
    def norm_relu(x, name):
        return F.relu(F.batch_norm(x, *stats[name], ps[name + ".weight"], ps[name + ".bias"], True, small.BN_MOMENTUM, small.BN_EPS))
    x, cin = F.conv2d(x, ps["stem.conv.weight"], None, 1, 1), WIDTHS[0]
    for g in (1, 2, 3):
        for k in range(1, BLOCKS + 1):
            b, cout, stride = f"group{g}.block{k}.", WIDTHS[g], 2 if g > 1 and k == 1 else 1
            o = F.conv2d(norm_relu(x, b + "bn1"), ps[b + "conv1.weight"], None, stride, 1)
            o = F.conv2d(norm_relu(o, b + "bn2"), ps[b + "conv2.weight"], None, 1, 1)
            s = x if stride == 1 else F.avg_pool2d(x, 1, stride)
            if cin != cout:
                s = F.pad(s, (0, 0, 0, 0, 0, cout - cin))
            x, cin = o + s, cout
    return F.linear(F.adaptive_avg_pool2d(norm_relu(x, "head.bn"), 1).flatten(1), ps["head.fc.weight"], ps["head.fc.bias"])


def train(init, data, memory_format):
    ps = {n: t.clone().contiguous(memory_format=memory_format if t.dim() == 4 else torch.contiguous_format).requires_grad_()
          for n, t in init.items()}
    stats = {n[:-len(".weight")]: (torch.zeros(t.shape[0]), torch.ones(t.shape[0])) for n, t in init.items() if ".bn" in n and n.endswith(".weight")}
    opt = torch.optim.SGD(ps.values(), LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True)
    losses = []
    for x, y in data:
        loss = F.cross_entropy(forward(ps, stats, x.contiguous(memory_format=memory_format)), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrn_28_2_fp32.json"))
    args = ap.parse_args()
    init, data = initial_parameters(), [batch(s) for s in range(STEPS)]
    losses = train(init, data, torch.contiguous_format)
    channels_last = train(init, data, torch.channels_last)
    spread = max(abs(a - b) / a for a, b in zip(losses, channels_last))
    with open(args.out, "w") as file:
        json.dump({"what": "WRN-28-2, fp32, 20 SGD steps in PyTorch; made by torch_wrn_28_2.py", "torch": torch.__version__,
                   "setting": {"batch": BATCH, "steps": STEPS, "lr": LR, "momentum": MOMENTUM, "nesterov": True,
                               "weight_decay": WEIGHT_DECAY},
                   "parameters": [[n, list(s)] for n, s in parameter_list()],
                   "losses": losses, "losses_channels_last": channels_last, "largest_relative_spread": spread}, file, indent=1)
        file.write("\n")
    print(f"torch {torch.__version__}: losses {losses[0]:.6f} ... {losses[-1]:.6f}, largest relative spread {spread:.2e}")


if __name__ == "__main__":
    main()
