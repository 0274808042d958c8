#!/usr/bin/env python3
"""Snug inside a budget beside PyTorch without one: WRN-28-2 at batch 100 on the CPU, in turn, several times; medians, ratios and bytes.

Usage: bench/budget_against_torch.py [--budget 6.7MB] [--data cifar10] [--rounds 3] [--steps 12] [--peer SCRIPT] [--json FILE] [-- FLAGS of snug train]
Snug trains (data, augmentation and all) with 30% of the weights, bf16 and microbatches of 10, unless other flags are given. PyTorch times its
step on random images, in fp32 and with bf16 autocast, each in the better of two layouts. Needs a build (cmake --preset release) and a python
with PyTorch. Compare only within one run: machines differ, and shared ones from hour to hour.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from against_torch import default_python, json_lines

TINY = ["--nonzero", "0.3", "--precision", "bf16", "--microbatch", "10"]


class Snug:
    def __init__(self, options):
        self.options, self.rows = options, []

    def measure(self, folder):
        out = os.path.join(folder, "run")
        shutil.rmtree(out, ignore_errors=True)
        command = [os.path.join(self.options.build, "snug"), "train", "wrn-28-2", "--data", self.options.data, "--budget", self.options.budget, "--steps",
                   str(self.options.steps), "--out", out, "--json", *self.options.flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"budget_against_torch: '{' '.join(command)}' ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
        self.rows.append(json.loads(done.stdout))


class Torch:
    """One precision; every layout's speeds, and the process's largest resident size."""

    def __init__(self, options, precision):
        self.command = [options.python, os.path.join(HERE, "torch_step.py"), "--device", "cpu", "--batch", "100", "--steps", "5", "--precision", precision]
        self.command += ["--peer", options.peer] if options.peer else []
        self.rows = {}

    def measure(self):
        for row in json_lines(self.command):
            self.rows.setdefault(row["memory_format"], []).append(row)

    def best(self):
        return max(statistics.median(row["images_per_second"] for row in rows) for rows in self.rows.values())

    def resident(self):
        return max(row["resident_bytes"] for rows in self.rows.values() for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", default="6.7MB")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--peer", default="", help="a script with PyTorch's half of the work")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default=default_python())
    parser.add_argument("--json", default="", help="a file for the figures")
    parser.add_argument("flags", nargs="*", default=TINY, help="of snug train, after --")
    options = parser.parse_args()
    snug, peers = Snug(options), {precision: Torch(options, precision) for precision in ("fp32", "bf16")}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            snug.measure(folder)
            for peer in peers.values():
                peer.measure()
    speeds = [row["images_per_second"] for row in snug.rows]
    speed, row = statistics.median(speeds), snug.rows[0]
    overhead = max(r["process_overhead_bytes"] for r in snug.rows)
    print(f"WRN-28-2, batch 100, cpu: medians of {options.rounds} alternating rounds")
    print("| | images/s | against it | bytes of training | whole process |\n|---|---|---|---|---|")
    print(f"| Snug in {options.budget} ({' '.join(options.flags)}) | {speed:.0f} | | {row['measured_peak_bytes']:,} measured, "
          f"{row['planned_peak_bytes']:,} planned | {row['measured_peak_bytes'] + overhead:,} |")
    for precision, peer in peers.items():
        print(f"| PyTorch, {precision}{' autocast' if precision == 'bf16' else ''} | {peer.best():.0f} | {speed / peer.best():.2f}x | | {peer.resident():,} |")
    print(f"Snug's rounds: {', '.join(f'{s:.0f}' for s in speeds)}; beside the arena {overhead:,} bytes resident; recomputation {row['flops_ratio']:.2f}x the FLOPs")
    for precision, peer in peers.items():
        print(f"PyTorch {precision}: " + "; ".join(f"{layout} " + ", ".join(f"{r['images_per_second']:.0f}" for r in rows) for layout, rows in peer.rows.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"snug": snug.rows, "torch": {precision: peer.rows for precision, peer in peers.items()}}, file, indent=1)


if __name__ == "__main__":
    main()
