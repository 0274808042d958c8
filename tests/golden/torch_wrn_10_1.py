#!/usr/bin/env python3
"""Golden figures: WRN-10-1 trained for 20 steps in fp64 by PyTorch, several ways, against itself.

Usage: /usr/bin/python3 torch_wrn_10_1.py [--out wrn_10_1_fp64.json]
Needs torch and the standard library only. See README.md for the generator of weights and data.
"""
import argparse, json, math, os, platform, subprocess, time
from array import array

import torch
import torch.nn.functional as F

STEPS, BATCH, CLASSES, SIZE = 20, 16, 10, 32
LR, MOMENTUM, WEIGHT_DECAY = 0.1, 0.9, 5e-4
BN_EPS, BN_MOMENTUM = 1e-5, 0.1
WIDTHS = [16, 16, 32, 64]
INPUT_STREAM, LABEL_STREAM = 1000, 2000
M64 = (1 << 64) - 1


# --- generator -----------------------------------------------------------------------------------
def bits(stream, i):
    """First output of splitmix64 seeded with (stream << 32) + i."""
    z = ((stream << 32) + i + 0x9E3779B97F4A7C15) & M64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def u(stream, i):
    """Uniform in [0, 1), a multiple of 2^-53; every operation is exact."""
    return (bits(stream, i) >> 11) * 2.0 ** -53


def fill(stream, shape, a):
    n = math.prod(shape)
    flat = array("d", ((2.0 * u(stream, i) - 1.0) * a for i in range(n)))
    return torch.frombuffer(flat, dtype=torch.float64).clone().reshape(shape)


def batch(step):
    x = fill(INPUT_STREAM + step, (BATCH, 3, SIZE, SIZE), 1.0)
    y = torch.tensor([int(u(LABEL_STREAM + step, i) * CLASSES) for i in range(BATCH)])
    return x, y


def parameter_list():
    """(name, shape) in the order that numbers the parameters' streams."""
    out = [("stem.conv.weight", (WIDTHS[0], 3, 3, 3))]
    cin = WIDTHS[0]
    for g in (1, 2, 3):
        cout, b = WIDTHS[g], f"group{g}.block1."
        out += [(b + "bn1.weight", (cin,)), (b + "bn1.bias", (cin,)), (b + "conv1.weight", (cout, cin, 3, 3)),
                (b + "bn2.weight", (cout,)), (b + "bn2.bias", (cout,)), (b + "conv2.weight", (cout, cout, 3, 3))]
        cin = cout
    return out + [("head.bn.weight", (cin,)), ("head.bn.bias", (cin,)),
                  ("head.fc.weight", (CLASSES, cin)), ("head.fc.bias", (CLASSES,))]


def initial_parameters():
    ps = {}
    for p, (name, shape) in enumerate(parameter_list()):
        if len(shape) > 1:
            ps[name] = fill(p, shape, math.sqrt(6.0 / math.prod(shape[1:])))
        else:
            ps[name] = torch.full(shape, 1.0 if name.endswith("weight") else 0.0, dtype=torch.float64)
    return ps


# --- model ---------------------------------------------------------------------------------------
def conv_unfold(x, w, stride):
    """The same convolution written out by hand (unfold and matrix product): another order of sums."""
    n, _, h, wd = x.shape
    cols = F.unfold(x, 3, padding=1, stride=stride).transpose(1, 2)
    return (cols @ w.reshape(w.shape[0], -1).t()).transpose(1, 2).reshape(n, w.shape[0], h // stride, wd // stride)


def conv_native(x, w, stride):
    return F.conv2d(x, w, None, stride, 1)


def sequential_sum(t):
    """Sum over n, h, w one number after another, as a plain scalar loop does (torch's own sums are cascaded)."""
    return t.transpose(0, 1).reshape(t.shape[1], -1).cumsum(1)[:, -1].view(1, -1, 1, 1)


class SequentialBatchNorm(torch.autograd.Function):
    """Batch norm in training as a textbook writes it, two passes, every sum sequential."""
    @staticmethod
    def forward(ctx, x, running_mean, running_var, gamma, beta):
        n = x.numel() // x.shape[1]
        mean = sequential_sum(x) / n
        var = sequential_sum((x - mean) ** 2) / n
        inv = 1.0 / torch.sqrt(var + BN_EPS)
        xhat = (x - mean) * inv
        running_mean.mul_(1 - BN_MOMENTUM).add_(BN_MOMENTUM * mean.flatten())
        running_var.mul_(1 - BN_MOMENTUM).add_(BN_MOMENTUM * var.flatten() * (n / (n - 1)))
        ctx.save_for_backward(xhat, inv, gamma)
        return xhat * gamma.view(1, -1, 1, 1) + beta.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, dy):
        xhat, inv, gamma = ctx.saved_tensors
        n = dy.numel() // dy.shape[1]
        dbeta, dgamma = sequential_sum(dy), sequential_sum(dy * xhat)
        dx = gamma.view(1, -1, 1, 1) * inv * (dy - dbeta / n - xhat * (dgamma / n))
        return dx, None, None, dgamma.flatten(), dbeta.flatten()


def bn_native(x, mean, var, gamma, beta):
    return F.batch_norm(x, mean, var, gamma, beta, True, BN_MOMENTUM, BN_EPS)


def forward(ps, stats, x, conv=conv_native, bn=bn_native):
    def bn_relu(x, name):
        return F.relu(bn(x, *stats[name], ps[name + ".weight"], ps[name + ".bias"]))
    x, cin = conv(x, ps["stem.conv.weight"], 1), WIDTHS[0]
    for g in (1, 2, 3):
        b, cout, stride = f"group{g}.block1.", WIDTHS[g], 1 if g == 1 else 2
        o = conv(bn_relu(x, b + "bn1"), ps[b + "conv1.weight"], stride)
        o = conv(bn_relu(o, b + "bn2"), ps[b + "conv2.weight"], 1)
        s = x if stride == 1 else F.avg_pool2d(x, 1, stride)             # identity shortcut: pixels (0,0), (0,2), ...
        if cin != cout:
            s = F.pad(s, (0, 0, 0, 0, 0, cout - cin))                    # zero channels after the real ones
        x, cin = o + s, cout
    x = F.adaptive_avg_pool2d(bn_relu(x, "head.bn"), 1).flatten(1)
    return F.linear(x, ps["head.fc.weight"], ps["head.fc.bias"])


def train(init, data, memory_format=torch.contiguous_format, conv=conv_native, bn=bn_native, permutation=None, threads=1,
          mkldnn=True):
    torch.set_num_threads(threads)
    ps = {n: t.clone().contiguous(memory_format=memory_format if t.dim() == 4 else torch.contiguous_format).requires_grad_()
          for n, t in init.items()}
    stats = {n[:-len(".weight")]: (torch.zeros(t.shape[0], dtype=torch.float64), torch.ones(t.shape[0], dtype=torch.float64))
             for n, t in init.items() if ".bn" in n and n.endswith(".weight")}
    opt = torch.optim.SGD(ps.values(), LR, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY, nesterov=True)
    losses, first = [], {}
    with torch.backends.mkldnn.flags(enabled=mkldnn):
        for step, (x, y) in enumerate(data):
            if permutation is not None:
                x, y = x[permutation], y[permutation]
            logits = forward(ps, stats, x.contiguous(memory_format=memory_format), conv, bn)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            if step == 0:
                first = {"loss": loss.item(), "sum_of_logits": logits.sum().item(), "l2_of_logits": norm(logits),
                         "gradient_l2": {n: norm(p.grad) for n, p in ps.items()}}
            opt.step()
            losses.append(loss.item())
    return losses, first, ps, stats


def norm(t):
    """Exactly rounded sum of squares, so that the figure does not depend on torch's own order of summing."""
    return math.sqrt(math.fsum(v * v for v in t.detach().contiguous().flatten().tolist()))


def affine_permutation(k):
    """One of 16*8 permutations of the batch: position j takes image (m*j + c) mod 16, m odd."""
    m, c = 2 * (k % 8) + 1, (k * 5 + 3) % BATCH
    return torch.tensor([(m * j + c) % BATCH for j in range(BATCH)])


# --- main ----------------------------------------------------------------------------------------
def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "wrn_10_1_fp64.json"))
    args = ap.parse_args()
    t0 = time.time()
    assert bits(0, 0) == 0xE220A8397B1DCDAF                              # splitmix64's published first output for seed 0
    torch.set_grad_enabled(True)
    init, data = initial_parameters(), [batch(s) for s in range(STEPS)]
    assert all(float(x.min()) >= -1 and float(x.max()) < 1 and int(y.max()) < CLASSES for x, y in data)
    print(f"torch {torch.__version__}: {len(init)} parameters, {sum(t.numel() for t in init.values())} numbers; "
          f"{STEPS} batches made in {time.time() - t0:.1f} s")

    cl, perm = torch.channels_last, affine_permutation(2)
    runs = {
        "contiguous": {},
        "contiguous_again": {},
        "contiguous_2_threads": dict(threads=2),
        "contiguous_mkldnn_off": dict(mkldnn=False),
        "channels_last": dict(memory_format=cl),
        "channels_last_2_threads": dict(memory_format=cl, threads=2),
        "channels_last_mkldnn_off": dict(memory_format=cl, mkldnn=False),
        "unfold_matmul": dict(conv=conv_unfold),
        "permuted": dict(permutation=perm),
        "permuted_channels_last": dict(permutation=perm, memory_format=cl),
    }
    for k in range(8):
        if k != 2:
            runs[f"permuted_{k}"] = dict(permutation=affine_permutation(k))
    runs["sequential_bn"] = dict(bn=SequentialBatchNorm.apply)           # recorded, but kept out of `spread`
    losses, first, ps, stats = {}, None, None, None
    for name, kw in runs.items():
        t = time.time()
        got, f, p, s = train(init, data, **kw)
        losses[name] = got
        if name == "contiguous":
            first, ps, stats = f, p, s
        d = [abs(a - b) for a, b in zip(got, losses["contiguous"])]
        print(f"{name:26s} {time.time() - t:5.1f} s  last loss {got[-1]:.17g}  "
              + (f"max |difference to contiguous| {max(d):.3g} at step {d.index(max(d)) + 1}" if max(d) else "bit-identical"))

    base = losses["contiguous"]
    own = [v for n, v in losses.items() if n != "sequential_bn"]         # only PyTorch's own batch norm
    spread = [max(v[i] for v in own) - min(v[i] for v in own) for i in range(STEPS)]
    running = [max(spread[:i + 1]) for i in range(STEPS)]
    against = {n: {"max_abs_difference": max(abs(a - b) for a, b in zip(v, base)), "bit_identical": v == base}
               for n, v in losses.items() if n != "contiguous"}
    mean, var = stats["head.bn"]
    x0, y0 = data[0]
    out = {
        "what": "WRN-10-1, fp64, 20 SGD steps in PyTorch, several ways against itself; made by torch_wrn_10_1.py",
        "torch": torch.__version__,
        "torch_package": package(),
        "blas": blas(),
        "cpu_capability": capability(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "setting": {
            "model": "wrn-10-1", "depth": 10, "widen": 1, "widths": WIDTHS, "classes": CLASSES, "input": [3, SIZE, SIZE],
            "batch": BATCH, "steps": STEPS, "dtype": "float64", "loss": "cross-entropy, mean",
            "optimizer": "sgd", "lr": LR, "momentum": MOMENTUM, "nesterov": True, "dampening": 0,
            "weight_decay": WEIGHT_DECAY, "weight_decay_on": "every parameter, batch norm and biases too",
            "bn_eps": BN_EPS, "bn_momentum": BN_MOMENTUM,
            "running_var": "unbiased (n/(n-1)), starts at 1; running_mean starts at 0",
            "shortcut": "subsample by stride, zero channels appended", "contiguous_run": "1 thread, mkldnn enabled",
            "permutation": perm.tolist(),
        },
        "parameters": [[n, list(s)] for n, s in parameter_list()],
        "generator_check": {
            "bits_0_0": f"0x{bits(0, 0):016x}", "bits_1000_1": f"0x{bits(1000, 1):016x}",
            "x_step0": x0.flatten()[:4].tolist(), "x_step19_last": data[-1][0].flatten()[-1].item(),
            "labels_step0": y0.tolist(), "labels_step19": data[-1][1].tolist(),
            "stem.conv.weight": init["stem.conv.weight"].flatten()[:4].tolist(),
            "head.fc.weight": init["head.fc.weight"].flatten()[:4].tolist(),
        },
        "losses": base,
        "losses_channels_last": losses["channels_last"],
        "losses_permuted": losses["permuted"],
        "losses_unfold_matmul": losses["unfold_matmul"],
        "losses_sequential_bn": losses["sequential_bn"],
        "abs_difference_channels_last": [abs(a - b) for a, b in zip(base, losses["channels_last"])],
        "abs_difference_permuted": [abs(a - b) for a, b in zip(base, losses["permuted"])],
        "abs_difference_sequential_bn": [abs(a - b) for a, b in zip(base, losses["sequential_bn"])],
        "spread": spread,
        "spread_running_max": running,
        "spread_note": "max - min of the loss over the contiguous run and all runs of `against_contiguous` but "
                       "sequential_bn (whose batch norm is not PyTorch's own); bit-identical runs add nothing",
        "against_contiguous": against,
        "step1": first,
        "final_l2": {n: norm(p) for n, p in ps.items()},
        "final_head_bn": {"running_mean_sum": math.fsum(mean.tolist()), "running_var_sum": math.fsum(var.tolist())},
    }
    text = dump(out)
    assert json.loads(text) == json.loads(json.dumps(out))
    with open(args.out, "w") as f:
        f.write(text)
    print("step  loss                    |channels_last|  |permuted|  |sequential_bn|  spread")
    for i in range(STEPS):
        print(f"{i + 1:4d}  {base[i]:<22.17g}  {out['abs_difference_channels_last'][i]:<15.3g}  "
              f"{out['abs_difference_permuted'][i]:<10.3g}  {out['abs_difference_sequential_bn'][i]:<15.3g}  {spread[i]:.3g}")
    print(f"wrote {args.out}: {len(text)} bytes, {time.time() - t0:.1f} s")


def package():
    """Debian's package, because its torch calls itself 1.13.0a0."""
    try:
        return subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}", "python3-torch"],
                              capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def blas():
    """The BLAS libraries this process really loaded: they set the order of sums in convolutions."""
    try:
        with open("/proc/self/maps") as f:
            return sorted({line.split()[-1] for line in f if "blas" in line or "mkl_" in line})
    except OSError:
        return []


def capability():
    lines = torch.__config__.show().splitlines()
    return next((line.split(":")[1].strip() for line in lines if "CPU capability" in line), "unknown")


def dump(o, indent=""):
    """JSON with one line for each list; floats as %.17g (short ones as they are written): both read back exactly."""
    if isinstance(o, dict) and 0 < len(o) <= 2:
        return "{" + ", ".join(f"{json.dumps(k)}: {dump(v, indent)}" for k, v in o.items()) + "}"
    if isinstance(o, dict):
        inner = ",\n".join(f'{indent} {json.dumps(k)}: {dump(v, indent + " ")}' for k, v in o.items())
        return "{\n" + inner + f"\n{indent}}}" + ("\n" if not indent else "")
    if isinstance(o, list):
        return "[" + ", ".join(dump(v, indent + " ") for v in o) + "]"
    if isinstance(o, float):
        return repr(o) if len(repr(o)) <= 6 else "%.17g" % o
    return json.dumps(o)


if __name__ == "__main__":
    main()
