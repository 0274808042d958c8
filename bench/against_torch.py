#!/usr/bin/env python3
"""Snug and PyTorch on the same training step, one after the other, several times; prints the ratio of medians.

Usage: bench/against_torch.py [--device cpu|cuda] [--rounds 3] [--batch 100] [--precision fp32] [--build build/release] [--python /usr/bin/python3]
Needs step_bench (cmake --preset release -DSNUG_BUILD_BENCH=ON, then build the target step_bench) and a python with PyTorch. Compare only within one run: machines differ, and from hour to hour.
"""
import argparse, json, os, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))


def json_lines(command):
    environment = dict(os.environ, OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "2"))
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--microbatch", type=int, default=0)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "fp16"))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default="/usr/bin/python3")
    options = parser.parse_args()

    common = ["--device", options.device, "--batch", str(options.batch), "--steps", str(options.steps), "--precision", options.precision]
    snug = [os.path.join(options.build, "bench", "step_bench"), "wrn-28-2", *common, "--json"]
    torch = [options.python, os.path.join(HERE, "torch_step.py"), *common] + (["--graph"] if options.device == "cuda" else [])
    ours, small, theirs = [], [], {}
    for _ in range(options.rounds):
        for row in json_lines(torch):
            theirs.setdefault((row["memory_format"], row["graph"]), []).append(row["images_per_second"])
        ours += json_lines(snug)
        if options.microbatch:
            small += json_lines(snug + ["--microbatch", str(options.microbatch)])

    def median(rows):
        return statistics.median(row["images_per_second"] for row in rows)

    snug_speed = median(ours)
    print(f"Snug     {snug_speed:9.1f} images/s  (planned {ours[0]['planned_peak_bytes']:,} bytes, measured {ours[0]['measured_peak_bytes']:,})")
    for (layout, graph), speeds in theirs.items():
        name = f"PyTorch {layout}" + (", CUDA graph" if graph else "")
        print(f"{name:34s} {statistics.median(speeds):9.1f} images/s   Snug is {snug_speed / statistics.median(speeds):.2f}x")
    best = max(statistics.median(speeds) for speeds in theirs.values())
    print(f"against PyTorch's best: {snug_speed / best:.3f}x")
    if small:
        print(f"microbatch {options.microbatch}: {median(small):9.1f} images/s, {median(small) / snug_speed:.3f}x of the whole batch")


if __name__ == "__main__":
    sys.exit(main())
