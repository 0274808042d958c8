#!/usr/bin/env python3
"""Speed of a run that was begun with all of the processor's instructions and is resumed with fewer, beside one that was begun with
fewer: oneDNN's own limit stands for another processor. Alternating rounds, medians.

usage: bench/moved_run.py [--model wrn-28-2] [--limit AVX2] [--rounds 3] [--steps 6] [--snug build/release/snug] [-- flags of snug train]
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile


def train(snug, limit, arguments):
    environment = dict(os.environ)
    environment.pop("DNNL_MAX_CPU_ISA", None)
    environment.pop("ONEDNN_MAX_CPU_ISA", None)
    if limit:
        environment["ONEDNN_MAX_CPU_ISA"] = limit
    done = subprocess.run([snug, "train", *arguments, "--json"], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout), done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--limit", default="AVX2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="of each measured run; the first two measure memory and are not timed")
    parser.add_argument("--snug", default="build/release/snug")
    parser.add_argument("flags", nargs="*", help="more flags of snug train")
    options = parser.parse_args()
    begun_steps = 2
    speeds = {"moved": [], "begun there": []}
    with tempfile.TemporaryDirectory() as folder:
        origin = pathlib.Path(folder, "origin")
        train(options.snug, None, [options.model, "--steps", str(begun_steps), "--out", str(origin), *options.flags])
        recipe = origin / "recipe.toml"
        recipe.write_text(re.sub(r"(?m)^steps = \d+$", f"steps = {begun_steps + options.steps}", recipe.read_text()))
        for number in range(options.rounds):
            moved = pathlib.Path(folder, f"moved{number}")
            shutil.copytree(origin, moved)
            result, notes = train(options.snug, options.limit, ["--out", str(moved), "--resume"])
            if "made again" not in notes:
                sys.exit(f"the plan was not made again; this processor may have no more than {options.limit}")
            speeds["moved"].append(result["images_per_second"])
            begun = pathlib.Path(folder, f"begun{number}")
            result, _ = train(options.snug, options.limit,
                              [options.model, "--steps", str(options.steps), "--out", str(begun), *options.flags])
            speeds["begun there"].append(result["images_per_second"])
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    for name, values in speeds.items():
        print(f"{name:12} {medians[name]:8.1f} images/s ({', '.join(f'{value:.1f}' for value in values)})")
    print(f"moved beside begun there: {medians['moved'] / medians['begun there']:.3f}")


if __name__ == "__main__":
    main()
