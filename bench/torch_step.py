#!/usr/bin/env python3
"""One training step of WRN-28-2 in PyTorch, timed: the peer of bench/step_bench.cpp.

Usage: python3 torch_step.py [--device cpu|cuda] [--batch 100] [--steps 7] [--precision fp32|fp16|bf16] [--graph] [--no-tf32] [--peer SCRIPT]
fp16: stored so, but for batch norm; bf16: autocast. Prints one JSON line a memory format (and, on a GPU with --graph, one for the step replayed as a CUDA graph).
--peer: the network, step and timing of another script, through its function bench(device, batch, dtype, channels_last, checkpoint, mode, steps=...),
which prints a JSON line with `img_s` and `ms`.
"""
import argparse, contextlib, importlib.util, io, json, resource, statistics, time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(outputs), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.stride, self.new_channels = stride, outputs - inputs

    def forward(self, x):
        y = self.conv1(F.relu(self.norm1(x)))
        y = self.conv2(F.relu(self.norm2(y)))
        x = x[:, :, ::self.stride, ::self.stride]
        return y + (F.pad(x, (0, 0, 0, 0, 0, self.new_channels)) if self.new_channels else x)


class WideResNet(nn.Module):
    def __init__(self, blocks=4, width=2, classes=10):
        super().__init__()
        layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
        for group, outputs in enumerate((16 * width, 32 * width, 64 * width)):
            for i in range(blocks):
                layers.append(Block(channels, outputs, 2 if group and i == 0 else 1))
                channels = outputs
        self.features = nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU())
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


def measure(options, memory_format, graph=False):
    dtype = torch.float16 if options.precision == "fp16" else torch.float32
    model = WideResNet().to(options.device).to(dtype)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.float()
    model = model.to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True)
    x = torch.randn(options.batch, 3, 32, 32, device=options.device, dtype=dtype).to(memory_format=memory_format)
    y = torch.randint(0, 10, (options.batch,), device=options.device)
    finish = torch.cuda.synchronize if options.device == "cuda" else (lambda: None)

    def step():
        optimizer.zero_grad(set_to_none=not graph)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()

    run = step
    if graph:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            step()
        run = captured.replay
    for _ in range(5 if options.device == "cuda" else 1):
        run()
    finish()
    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        run()
        finish()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def measure_peer(options, memory_format, graph=False):
    spec = importlib.util.spec_from_file_location("peer", options.peer)
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        peer.bench(options.device, options.batch, options.precision, memory_format == torch.channels_last, 0, "graph" if graph else "eager", steps=options.steps)
    return json.loads(printed.getvalue().splitlines()[-1])["ms"] / 1e3


def report(options, memory_format, graph=False):
    seconds = (measure_peer if options.peer else measure)(options, memory_format, graph)
    print(json.dumps({"peer": f"torch {torch.__version__}", "script": options.peer or "torch_step.py", "device": options.device,
                      "precision": options.precision, "batch": options.batch, "memory_format": str(memory_format).split(".")[-1], "graph": graph,
                      "tf32": torch.backends.cudnn.allow_tf32, "step_seconds": round(seconds, 6),
                      "images_per_second": round(options.batch / seconds, 1),
                      "resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16", "bf16"))
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--no-tf32", action="store_true", help="full fp32 products on a GPU; PyTorch's convolutions use TF32 otherwise")
    parser.add_argument("--peer", default="", help="a script whose bench() is timed instead of this one's step")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not options.no_tf32
    for memory_format in (torch.contiguous_format, torch.channels_last):
        report(options, memory_format)
    if options.graph:
        report(options, torch.channels_last, graph=True)


if __name__ == "__main__":
    main()
