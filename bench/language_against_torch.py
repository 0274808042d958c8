#!/usr/bin/env python3
"""Snug and PyTorch on the same training step of a language model, one after the other, several times; prints medians and their ratios.

Usage: bench/language_against_torch.py MODEL [--device cpu|cuda] [--batch 16] [--length 0] [--vocabulary 0] [--precision bf16] [--budgets 4.3GB,2GB]
       [--torch eager,compiled,checkpoint,microbatch] [--rounds 3] [--json FILE]
Snug runs plainly and within each budget; PyTorch as --torch says (microbatch: one example at a time). The ratios are to PyTorch's first row. Needs a
python with PyTorch and step_bench, as against_torch.py does. Compare only within one run: machines differ, and shared ones from hour to hour.
--processor-time, for a machine that others use too: all on one thread, in seconds of the processor per step, from runs with more and with fewer steps.
"""
import argparse, json, os, resource, statistics, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from against_torch import BUNDLE, default_python, json_lines

TORCH = {"eager": [], "compiled": ["--compile"], "checkpoint": ["--checkpoint"], "microbatch": ["--microbatch", "1"],
         "microbatch, checkpoint": ["--microbatch", "1", "--checkpoint"]}


def processor_seconds(command, steps):
    at = command.index("--steps") + 1

    def used(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command[:at], str(count), *command[at + 1:]], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (used(1 + steps) - used(1)) / steps


def print_processor_time(options, commands):
    rows = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            rows[name].append(processor_seconds(command, options.steps or 3))
    first = statistics.median(next(iter(rows.values())))
    print(f"{options.model}, {options.precision}, batch {options.batch}, one thread: medians of {options.rounds} alternating rounds")
    print("| | processor seconds per step | ratio | rounds |\n|---|---|---|---|")
    for name, seconds in rows.items():
        median = statistics.median(seconds)
        print(f"| {name} | {median:.3f} | {first / median:.2f}x | {', '.join(f'{each:.3f}' for each in seconds)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=0)
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--budgets", default="", help="with commas")
    parser.add_argument("--torch", default="eager", help=f"of {', '.join(TORCH)}; with semicolons")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=0, help="0: 3 on the CPU, 20 on a GPU")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--python", default=default_python())
    parser.add_argument("--json", default="", help="a file for the figures")
    options = parser.parse_args()
    steps = str(options.steps or (20 if options.device == "cuda" else 3))
    common = [options.model, "--device", options.device, "--batch", str(options.batch), "--length", str(options.length), "--vocabulary",
              str(options.vocabulary), "--steps", steps, "--precision", options.precision]
    bench = [BUNDLE, "bench"] if os.path.exists(BUNDLE) else [os.path.join(options.build, "bench", "step_bench")]
    torch = [options.python, os.path.join(HERE, "torch_language_step.py"), *common] + ([] if options.tf32 else ["--no-tf32"])
    commands = {f"PyTorch, {name}": torch + TORCH[name] for name in options.torch.split(";")}
    commands["Snug"] = [*bench, *common, "--json"] + (["--tf32"] if options.tf32 else [])
    for budget in filter(None, options.budgets.split(",")):
        commands[f"Snug in {budget}"] = commands["Snug"] + ["--budget", budget]
    if options.processor_time:
        return print_processor_time(options, {name: command + (["--threads", "1"] if name.startswith("Snug") else []) for name, command in commands.items()})
    rows = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            rows[name] += json_lines(command)
    speed = {name: statistics.median(row["tokens_per_second"] for row in of_name) for name, of_name in rows.items()}
    first = next(iter(speed.values()))
    print(f"{options.model}, {options.device}, {options.precision}, batch {options.batch}: medians of {options.rounds} alternating rounds")
    print("| | tokens/s | ratio | bytes | how |\n|---|---|---|---|---|")
    for name, of_name in rows.items():
        row = of_name[0]
        if name.startswith("Snug"):
            how = f"microbatch {row['microbatch']}, checkpoint {row['checkpoint']}; measured {row['measured_peak_bytes']:,}"
            taken = row["planned_peak_bytes"]
        else:
            how, taken = row["peer"], row["peak_bytes"]
        print(f"| {name} | {speed[name]:,.0f} | {speed[name] / first:.2f}x | {taken:,} | {how} |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
