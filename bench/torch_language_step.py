#!/usr/bin/env python3
"""One training step of a language model in PyTorch, timed: the peer of bench/step_bench.cpp.

Usage: python3 torch_language_step.py MODEL [--device cpu|cuda] [--batch 16] [--length 0] [--vocabulary 0] [--microbatch 0] [--steps 10]
       [--precision fp32|bf16|amp] [--compile] [--checkpoint] [--no-tf32]
MODEL is gpt2, gpt2-medium, gpt-L-D or llama-small, as Snug builds them. bf16: weights, gradients and moments stored so; amp: autocast. AdamW, random
tokens. --checkpoint recomputes every block in backward. Prints one JSON line.
"""
import argparse, json, resource, statistics, time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

#        layers, width, heads, context, vocabulary
NAMED = {"gpt2": (12, 768, 12, 1024, 50257), "gpt2-medium": (24, 1024, 16, 1024, 50257), "gpt-small": (6, 128, 4, 256, 256)}


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length = q.shape[-2]
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    hidden = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.project(attend(q, k, v).transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.size, bias=False)
        self.project, self.gate_up, self.down = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def rotate(self, x):
        half = self.size // 2
        angle = torch.arange(x.shape[-2], device=x.device)[:, None] * 10000.0 ** (-torch.arange(half, device=x.device) / half)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        n, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, t, -1, self.size).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
        share = self.heads // self.kv_heads
        y = attend(self.rotate(q), self.rotate(k).repeat_interleave(share, 1), v.repeat_interleave(share, 1))
        x = x + self.project(y.transpose(1, 2).reshape(n, t, d))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class LanguageModel(nn.Module):
    def __init__(self, name, vocabulary):
        super().__init__()
        if name == "llama-small":
            width, self.context, own = 576, 2048, 49152
            blocks, self.norm, self.positions = [LlamaBlock(width, 9, 3, 1536) for _ in range(30)], RmsNorm(width), None
        else:
            numbers = [int(part) for part in name.split("-")[1:]] if name not in NAMED else []
            head = 64 if numbers and numbers[1] % 64 == 0 and numbers[1] >= 256 else 32
            layers, width, heads, self.context, own = NAMED.get(name) or (numbers[0], numbers[1], numbers[1] // head, 256, 256)
            blocks, self.norm, self.positions = [GptBlock(width, heads) for _ in range(layers)], nn.LayerNorm(width), nn.Embedding(self.context, width)
        self.vocabulary, self.recomputes = vocabulary or own, False
        self.words, self.blocks = nn.Embedding(self.vocabulary, width), nn.ModuleList(blocks)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        for block in blocks:  # into the residual stream: smaller, so that its variance does not grow with the depth
            for projection in (block.project, block.down):
                nn.init.normal_(projection.weight, std=0.02 / (2 * len(blocks)) ** 0.5)
                if projection.bias is not None:
                    nn.init.zeros_(projection.bias)

    def forward(self, tokens, labels):
        x = self.words(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recomputes else block(x)
        logits = self.norm(x) @ self.words.weight.to(x.dtype).T
        return F.cross_entropy(logits.float().view(-1, self.vocabulary), labels.view(-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=0)
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--microbatch", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "amp"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--no-tf32", action="store_true", help="full fp32 products on a GPU")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    torch.manual_seed(0)
    if on_gpu:
        torch.set_float32_matmul_precision("highest" if options.no_tf32 else "high")
    model = LanguageModel(options.model, options.vocabulary).to(options.device)
    model.recomputes = options.checkpoint
    if options.precision == "bf16":
        model = model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95), weight_decay=0.1, **({"fused": True} if on_gpu else {}))
    run = torch.compile(model) if options.compile else model
    length, microbatch = options.length or model.context, options.microbatch or options.batch
    tokens, labels = (torch.randint(0, model.vocabulary, (microbatch, length), device=options.device) for _ in range(2))
    finish = torch.cuda.synchronize if on_gpu else (lambda: None)

    def step():
        optimizer.zero_grad(set_to_none=True)
        for _ in range(options.batch // microbatch):
            with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "amp"):
                loss = run(tokens, labels) * (microbatch / options.batch)
            loss.backward()
        optimizer.step()

    for _ in range(3 if on_gpu else 1):
        step()
    finish()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        finish()
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    peak = torch.cuda.max_memory_allocated() if on_gpu else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peer": f"torch {torch.__version__}", "model": options.model, "device": options.device, "precision": options.precision,
                      "batch": options.batch, "length": length, "microbatch": microbatch, "compiled": options.compile, "checkpoint": options.checkpoint,
                      "parameters": sum(p.numel() for p in model.parameters()), "step_seconds": round(median, 6),
                      "tokens_per_second": round(options.batch * length / median, 1), "peak_bytes": peak}), flush=True)


if __name__ == "__main__":
    main()
