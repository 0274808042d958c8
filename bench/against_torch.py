#!/usr/bin/env python3
"""Snug and PyTorch on the same training step of WRN-28-2, one after the other, several times; prints medians and their ratios.

Usage: bench/against_torch.py [--device cpu|cuda] [--rounds 3] [--batch 100] [--precision fp32,tf32,fp16] [--peer SCRIPT] [--json FILE]
On a GPU: full fp32, TF32 products and fp16 storage, each kernel by kernel and as a CUDA graph. Needs a python with PyTorch, and step_bench: from a
build (cmake --preset release -DSNUG_BUILD_BENCH=ON, target step_bench) or from what scripts/bundle.sh packed, where this script lies beside it.
--peer takes PyTorch's network and timing from another script (see torch_step.py). Compare only within one run: machines differ, and shared ones from hour to hour.
"""
import argparse, importlib.util, json, os, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(os.path.dirname(HERE), "run.sh")
PRECISIONS = {"fp32": "fp32, full", "tf32": "fp32, TF32 products", "fp16": "fp16 storage"}


def default_python():
    return sys.executable if importlib.util.find_spec("torch") else "/usr/bin/python3"


def default_steps(device):
    return 50 if device == "cuda" else 7  # a GPU's steps take milliseconds


def json_lines(command):
    environment = dict(os.environ)
    environment.setdefault("OMP_NUM_THREADS", "2")
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"against_torch: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Pair:
    """The two programs at one precision, and every speed they gave."""

    def __init__(self, options, precision):
        common = ["--device", options.device, "--batch", str(options.batch), "--steps", str(options.steps)]
        storage = ["--precision", "fp16" if precision == "fp16" else "fp32"]
        gpu = options.device == "cuda"
        self.torch = [options.python, os.path.join(HERE, "torch_step.py"), *common, *storage]
        self.torch += (["--graph"] if gpu else []) + ([] if precision == "tf32" else ["--no-tf32"]) + (["--peer", options.peer] if options.peer else [])
        self.snug = [*options.step_bench, "wrn-28-2", *common, *storage, "--json"] + (["--tf32"] if precision == "tf32" else [])
        # By how it runs: PyTorch's by (memory format, graph?), Snug's by what was asked for.
        self.theirs, self.ours = {}, {}
        self.variants = {"": []}
        if gpu:
            self.variants["kernel by kernel"] = ["--no-graphs"]
        if options.microbatch:
            self.variants[f"microbatches of {options.microbatch}"] = ["--microbatch", str(options.microbatch)]

    def measure(self):
        for row in json_lines(self.torch):
            self.theirs.setdefault((row["memory_format"], row["graph"]), []).append(row)
        for name, flags in self.variants.items():
            self.ours.setdefault(name, []).extend(json_lines(self.snug + flags))


def speed(rows):
    return statistics.median(row["images_per_second"] for row in rows)


def summary(precision, pair):
    result = {"precision": precision, "snug": speed(pair.ours[""]), "planned_peak_bytes": pair.ours[""][0]["planned_peak_bytes"],
              "measured_peak_bytes": pair.ours[""][0]["measured_peak_bytes"], "snug_rounds": [row["images_per_second"] for row in pair.ours[""]]}
    for name, rows in pair.ours.items():
        if name:
            result[f"snug, {name}"] = speed(rows)
    for (layout, graph), rows in pair.theirs.items():
        result[f"torch {layout}" + (", graph" if graph else "")] = speed(rows)
    result["torch eager"] = max(speed(rows) for (_, graph), rows in pair.theirs.items() if not graph)
    graphs = [speed(rows) for (_, graph), rows in pair.theirs.items() if graph]
    if graphs:
        result["torch graph"] = max(graphs)
    return result


def print_table(results, options):
    print(f"WRN-28-2, batch {options.batch}, {options.device}: images/s, medians of {options.rounds} alternating rounds")
    columns = ["", "Snug"] + [name for name in results[0] if name.startswith("snug, ")] + ["PyTorch eager, best layout"]
    if "torch graph" in results[0]:
        columns.append("PyTorch CUDA graph")
    columns += ["against eager"] + (["against graph"] if "torch graph" in results[0] else [])
    lines = [columns]
    for r in results:
        line = [PRECISIONS[r["precision"]], f"{r['snug']:,.0f}"] + [f"{r[name]:,.0f}" for name in columns if name.startswith("snug, ")]
        line.append(f"{r['torch eager']:,.0f}")
        if "torch graph" in r:
            line.append(f"{r['torch graph']:,.0f}")
        line.append(f"{r['snug'] / r['torch eager']:.2f}x")
        if "torch graph" in r:
            line.append(f"{r['snug'] / r['torch graph']:.2f}x")
        lines.append(line)
    for i, line in enumerate(lines):
        print("| " + " | ".join(cell.replace("snug,", "Snug,") for cell in line) + " |")
        if i == 0:
            print("|" + "---|" * len(line))
    for r in results:
        print(f"{PRECISIONS[r['precision']]}: Snug's arena {r['planned_peak_bytes']:,} bytes planned, {r['measured_peak_bytes']:,} measured; rounds "
              + ", ".join(f"{images:,.0f}" for images in r["snug_rounds"]) + "; "
              + ", ".join(f"{name} {images:,.0f}" for name, images in r.items() if name.startswith("torch ") and name not in ("torch eager", "torch graph")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--microbatch", type=int, default=0, help="also in microbatches of this size")
    parser.add_argument("--steps", type=int, default=0, help="timed by PyTorch and run by Snug; 0: 7 on the CPU, 50 on a GPU")
    parser.add_argument("--precision", default="", help="of fp32, tf32, fp16, with commas; all on a GPU, fp32 on the CPU unless given")
    parser.add_argument("--peer", default="", help="a script with PyTorch's half of the work")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--step-bench", default="", help="instead of the build's, or the bundle's")
    parser.add_argument("--python", default=default_python())
    parser.add_argument("--json", default="", help="a file for the figures")
    options = parser.parse_args()
    precisions = (options.precision or ("fp32,tf32,fp16" if options.device == "cuda" else "fp32")).split(",")
    for precision in precisions:
        if precision not in PRECISIONS:
            parser.error(f"precision '{precision}' is none of {', '.join(PRECISIONS)}")
        if precision != "fp32" and options.device == "cpu":
            parser.error(f"precision '{precision}' is for a GPU")
    options.steps = options.steps or default_steps(options.device)
    # A bundle's run.sh finds NVIDIA's libraries first.
    bundled = [BUNDLE, "bench"] if os.path.exists(BUNDLE) else [os.path.join(options.build, "bench", "step_bench")]
    options.step_bench = [options.step_bench] if options.step_bench else bundled

    pairs = {precision: Pair(options, precision) for precision in precisions}
    for _ in range(options.rounds):
        for pair in pairs.values():
            pair.measure()
    results = [summary(precision, pair) for precision, pair in pairs.items()]
    print_table(results, options)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
