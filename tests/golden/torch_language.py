#!/usr/bin/env python3
"""Golden figures: a GPT and a Llama trained for 20 steps by PyTorch's AdamW, in fp64 and fp32.

Usage: /usr/bin/python3 torch_language.py [--out language_adamw.json]
Weights and tokens come from the generator of README.md. Weights are drawn large, so that a missing mask or scale shows, and a tenth of the labels is
ignored.
"""
import argparse, json, math, os

import numpy
import torch
import torch.nn.functional as F

STEPS, LR, BETAS, EPSILON, WEIGHT_DECAY = 20, 1e-3, (0.9, 0.95), 1e-8, 0.1
VOCABULARY, CONTEXT = 256, 256
STD = 0.2
MODELS = {"gpt-small": {"layers": 6, "width": 128, "heads": 4, "batch": 4, "length": 40},
          "llama-2-128": {"layers": 2, "width": 128, "heads": 4, "kv_heads": 2, "hidden": 352, "batch": 3, "length": 50}}


def uniform(stream, count):
    """The generator of README.md: splitmix64, in [0, 1)."""
    with numpy.errstate(over="ignore"):
        z = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64((stream << 32) + 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z ^= z >> numpy.uint64(31)
    return torch.from_numpy((z >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-53)


def parameter_list(name, m):
    width = m["width"]
    if name.startswith("gpt"):
        out = [("wte.weight", (VOCABULARY, width)), ("wpe.weight", (CONTEXT, width))]
        for i in range(m["layers"]):
            for layer, shape in (("ln_1", (width,)), ("attn.c_attn", (3 * width, width)), ("attn.c_proj", (width, width)), ("ln_2", (width,)),
                                 ("mlp.c_fc", (4 * width, width)), ("mlp.c_proj", (width, 4 * width))):
                out += [(f"h.{i}.{layer}.weight", shape), (f"h.{i}.{layer}.bias", shape[:1])]
        return out + [("ln_f.weight", (width,)), ("ln_f.bias", (width,))]
    size = width // m["heads"]
    out = [("model.embed_tokens.weight", (VOCABULARY, width))]
    for i in range(m["layers"]):
        for layer, shape in (("input_layernorm", (width,)), ("self_attn.qkv_proj", ((m["heads"] + 2 * m["kv_heads"]) * size, width)),
                             ("self_attn.o_proj", (width, width)), ("post_attention_layernorm", (width,)),
                             ("mlp.gate_up_proj", (2 * m["hidden"], width)), ("mlp.down_proj", (width, m["hidden"]))):
            out.append((f"model.layers.{i}.{layer}.weight", shape))
    return out + [("model.norm.weight", (width,))]


def initial(stream, name, shape):
    values = (2 * uniform(stream, math.prod(shape)) - 1) * (STD * math.sqrt(3.0))
    if len(shape) == 1 and name.endswith(".weight"):
        values += 1
    return values.reshape(shape)


def attend(q, k, v):
    length = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -math.inf).softmax(-1) @ v


def gpt(p, tokens, m):
    n, t = tokens.shape
    norm = lambda x, name: F.layer_norm(x, (m["width"],), p[name + ".weight"], p[name + ".bias"])
    linear = lambda x, name: F.linear(x, p[name + ".weight"], p[name + ".bias"])
    x = p["wte.weight"][tokens] + p["wpe.weight"][:t]
    for i in range(m["layers"]):
        b = f"h.{i}."
        q, k, v = linear(norm(x, b + "ln_1"), b + "attn.c_attn").view(n, t, 3, m["heads"], -1).permute(2, 0, 3, 1, 4)
        x = x + linear(attend(q, k, v).transpose(1, 2).reshape(n, t, -1), b + "attn.c_proj")
        h = linear(norm(x, b + "ln_2"), b + "mlp.c_fc")
        h = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
        x = x + linear(h, b + "mlp.c_proj")
    return norm(x, "ln_f") @ p["wte.weight"].T


def llama(p, tokens, m):
    n, t = tokens.shape
    heads, kv_heads, size = m["heads"], m["kv_heads"], m["width"] // m["heads"]
    norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * p[name + ".weight"]
    # In fp32 whatever the model is in, as transformers makes them; their cosines in fp64.
    frequencies = 1.0 / (10000.0 ** (torch.arange(0, size, 2, dtype=torch.float32) / size))
    angle = (torch.arange(t, dtype=torch.float32)[:, None] * frequencies).double()

    def rotate(x):
        a, b = x[..., :size // 2], x[..., size // 2:]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    x = p["model.embed_tokens.weight"][tokens]
    for i in range(m["layers"]):
        b = f"model.layers.{i}."
        qkv = F.linear(norm(x, b + "input_layernorm"), p[b + "self_attn.qkv_proj.weight"]).view(n, t, -1, size).transpose(1, 2)
        q, k, v = qkv.split((heads, kv_heads, kv_heads), 1)
        k, v = rotate(k).repeat_interleave(heads // kv_heads, 1), v.repeat_interleave(heads // kv_heads, 1)
        x = x + F.linear(attend(rotate(q), k, v).transpose(1, 2).reshape(n, t, -1), p[b + "self_attn.o_proj.weight"])
        gate, up = F.linear(norm(x, b + "post_attention_layernorm"), p[b + "mlp.gate_up_proj.weight"]).chunk(2, -1)
        x = x + F.linear(F.silu(gate) * up, p[b + "mlp.down_proj.weight"])
    return norm(x, "model.norm") @ p["model.embed_tokens.weight"].T


def batch(step, m):
    count = m["batch"] * m["length"]
    tokens, labels = ((uniform(stream + step, count) * VOCABULARY).long() for stream in (1000, 2000))
    labels[uniform(3000 + step, count) < 0.1] = -100
    return tokens.view(m["batch"], -1), labels


def train(name, m, dtype):
    p = {n: initial(i, n, s).to(dtype).requires_grad_() for i, (n, s) in enumerate(parameter_list(name, m))}
    optimizer = torch.optim.AdamW(p.values(), LR, betas=BETAS, eps=EPSILON, weight_decay=WEIGHT_DECAY)
    out = {"losses": [], "gradients": {}}
    for step in range(STEPS):
        tokens, labels = batch(step, m)
        loss = F.cross_entropy((gpt if name.startswith("gpt") else llama)(p, tokens, m).view(-1, VOCABULARY), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if step == 0:
            for i, (n, tensor) in enumerate(p.items()):
                g = tensor.grad.double().flatten()
                out["gradients"][n] = {"l2": g.norm().item(), "along": (g @ (2 * uniform(4000 + i, g.numel()) - 1)).item()}
        optimizer.step()
        out["losses"].append(loss.item())
    out["final_l2"] = {n: without_key_biases(n, t.detach().double()).norm().item() for n, t in p.items()}
    return out


def without_key_biases(name, tensor):
    """A bias of all keys changes no probability: its gradient is rounding alone, which AdamW makes steps of full size."""
    if not name.endswith("attn.c_attn.bias"):
        return tensor
    queries, _, values = tensor.chunk(3)
    return torch.cat((queries, values))


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--out", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "language_adamw.json"))
    args = ap.parse_args()
    torch.set_num_threads(1)
    figures = {"what": "language models, 20 AdamW steps in PyTorch; made by torch_language.py", "torch": torch.__version__,
               "setting": {"steps": STEPS, "lr": LR, "beta1": BETAS[0], "beta2": BETAS[1], "epsilon": EPSILON, "weight_decay": WEIGHT_DECAY,
                           "std": STD, "vocabulary": VOCABULARY},
               "models": {}}
    for name, m in MODELS.items():
        runs = {"fp64": train(name, m, torch.float64), "fp32": train(name, m, torch.float32)}
        figures["models"][name] = {"batch": m["batch"], "length": m["length"], "parameters": [[n, list(s)] for n, s in parameter_list(name, m)], **runs}
        print(name, "losses", " ".join(f"{loss:.4f}" for loss in runs["fp64"]["losses"]), "fp32 off by",
              max(abs(a - b) / a for a, b in zip(runs["fp64"]["losses"], runs["fp32"]["losses"])))
    with open(args.out, "w") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
