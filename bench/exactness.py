#!/usr/bin/env python3
"""Is training bit-identical under every checkpointing strategy? Runs step_bench under each and compares the bits of losses and weights.

Usage: bench/exactness.py [--device cpu|cuda] [--models wrn-28-2,resnet-50,...] [--precision fp32] [--steps 10] [--json FILE]
A model may carry its batch, microbatch and image size (language models: length): wrn-28-2:20:10:32; 0 or nothing: the default. Besides the strategies: plain training
without accumulate_in_place and share_bytes. Needs step_bench: from a build (cmake --preset release -DSNUG_BUILD_BENCH=ON, target step_bench), or
from what scripts/bundle.sh packed, where this script lies beside it. Ends with 1 when anything differs.
"""
import argparse, json, os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(os.path.dirname(HERE), "run.sh")
STRATEGIES = ["no-bn", "every-3", "residual-1", "residual-2", "residual-2*", "sqrt", "log", "chen", "greedy:60%", "greedy:30%", "optimal:60%", "optimal:30%"]
# The real depth of each; a network with dropout; a batch of several microbatches, the last of them short.
MODELS = {"cpu": "wrn-28-2:4::16,wrn-28-2:10:4:16,resnet-50:2::32,vgg-16:4::32,small-cnn:8",
          "cuda": "wrn-28-2:100,wrn-28-2:100:30,resnet-50:16,vgg-16:8,small-cnn:100"}


class Model:
    def __init__(self, text):
        name, batch, microbatch, image_size = (text.split(":") + ["", "", ""])[:4]
        self.name, self.batch = name, batch or "8"
        reads_text = name.startswith(("gpt", "llama"))
        self.flags = [name, "--batch", self.batch, "--microbatch", microbatch or "0", "--length" if reads_text else "--image-size", image_size or "0"]
        self.title = f"{name}, batch {self.batch}" + (f" in microbatches of {microbatch}" if microbatch else "") + (f", {image_size} {'tokens' if reads_text else 'pixels'}" if image_size else "")
        self.has_residual_blocks = reads_text or name.startswith(("wrn", "preresnet", "resnet"))


def run(options, model, flags):
    command = [*options.step_bench, *model.flags, "--device", options.device, "--precision", options.precision, "--steps", str(options.steps), "--lr", str(options.lr), *flags, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exactness: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def transient_bytes(row):
    return row["planned_peak_bytes"] - row["persistent_bytes"]


def variants(model, plain):
    """What to call it, and step_bench's flags; a limit in percent is of plain training's transient bytes."""
    for strategy in STRATEGIES:
        if strategy.startswith("residual") and not model.has_residual_blocks:
            continue
        name, _, percent = strategy.partition(":")
        limit = f":{transient_bytes(plain) * int(percent[:-1]) // 100}" if percent else ""
        yield strategy, ["--checkpoint", name + limit]
    yield "none, without accumulate_in_place", ["--disable-pass", "accumulate_in_place"]
    yield "none, without share_bytes", ["--disable-pass", "share_bytes"]


def check(options, model):
    plain = run(options, model, ["--checkpoint", "none"])
    if None in plain["losses"]:
        sys.exit(f"exactness: {model.title} diverges within {options.steps} steps; give a smaller --lr")
    print(f"{model.title}, {options.device} {options.precision}: {options.steps} steps, weights {plain['weights_checksum']}, last loss {plain['losses'][-1]:.6f}")
    rows = [plain | {"variant": "none", "identical": True}]
    for name, flags in variants(model, plain):
        row = run(options, model, flags)
        same_losses, same_weights = row["loss_bits"] == plain["loss_bits"], row["weights_checksum"] == plain["weights_checksum"]
        rows.append(row | {"variant": name, "identical": same_losses and same_weights})
        verdict = "identical" if same_losses and same_weights else f"DIFFERENT (losses {'same' if same_losses else 'differ'}, weights {'same' if same_weights else 'differ'})"
        print(f"  {name:36} {verdict:12} {row['planned_peak_bytes']:>14,} bytes planned, {row['measured_peak_bytes']:>14,} measured, "
              f"{row['step_seconds'] / plain['step_seconds']:.2f}x the time", flush=True)
    return [row | {"case": model.title} for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--models", default="", help="with commas, each NAME[:BATCH[:MICROBATCH[:IMAGE_SIZE]]]")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "fp16"))
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--lr", type=float, default=0.001, help="low enough for every network here to learn: bits that are not numbers compare badly")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--step-bench", default="", help="instead of the build's, or the bundle's")
    parser.add_argument("--json", default="", help="a file for everything that step_bench said")
    options = parser.parse_args()
    # A bundle's run.sh finds NVIDIA's libraries first.
    bundled = [BUNDLE, "bench"] if os.path.exists(BUNDLE) else [os.path.join(options.build, "bench", "step_bench")]
    options.step_bench = [options.step_bench] if options.step_bench else bundled

    rows = [row for text in (options.models or MODELS[options.device]).split(",") for row in check(options, Model(text))]
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    different = [f"{row['case']}: {row['variant']}" for row in rows if not row["identical"]]
    print(f"{len(rows)} runs: " + ("all identical" if not different else f"{len(different)} DIFFERENT: " + "; ".join(different)))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
