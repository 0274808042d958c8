#!/usr/bin/env python3
"""Memory against throughput over the range of budgets, checked: WRN-28-2 at batch 100 and ResNet-50 (224x224) at batch 16, 20 budgets each, or other models.

Usage: bench/budget_sweep.py [--points 20] [--steps 5] [--models wrn-28-2:100,resnet-50:16] [--device cpu|cuda] [--precision fp32] [--costs FILE] [--markdown FILE] [--json FILE]
Runs `snug sweep`, which measures this machine's node times first where they are missing, and holds every point to what a sweep promises: measured
bytes equal planned ones and never exceed the budget; less budget means neither more memory nor a faster prediction; the smallest budget is
used to the last byte. Prints a table for docs/results.md and the median error of predicted step times; fails when a promise is broken, or the
error is above --most-error. Nothing else should run on the machine meanwhile.
"""
import argparse, json, os, subprocess, sys


def run_sweep(options, model, batch):
    command = [os.path.join(options.build, "snug"), "sweep", model, "--batch", batch, "--points", str(options.points), "--steps", str(options.steps),
               "--device", options.device, "--precision", options.precision, "--json"] + (["--costs", options.costs] if options.costs else [])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)  # its progress goes to the terminal
    if done.returncode != 0:
        sys.exit(f"budget_sweep: '{' '.join(command)}' ended with {done.returncode}")
    return json.loads(done.stdout)


def broken_promises(sweep):
    broken, points = [], sweep["points"]
    for i, point in enumerate(points):
        name = f"{sweep['model']} in {point['budget_bytes']:,} bytes"
        if point["measured_peak_bytes"] != point["planned_peak_bytes"]:
            broken.append(f"{name}: planned {point['planned_peak_bytes']:,}, measured {point['measured_peak_bytes']:,}")
        if point["measured_peak_bytes"] > point["budget_bytes"]:
            broken.append(f"{name}: {point['measured_peak_bytes']:,} bytes are more than the budget")
        if i > 0 and point["planned_peak_bytes"] > points[i - 1]["planned_peak_bytes"]:
            broken.append(f"{name}: more memory than with a larger budget")
        if i > 0 and (point["predicted_step_seconds"] or 0) < (points[i - 1]["predicted_step_seconds"] or 0):
            broken.append(f"{name}: predicted faster than with a larger budget")
    if points[-1]["planned_peak_bytes"] != points[-1]["budget_bytes"]:
        broken.append(f"{sweep['model']}: the smallest budget is not used to the last byte")
    return broken


def percent(share):
    return "" if share is None else f"{100 * share:+.1f}%"


def speed_of(plan):
    """Examples in units of the model's own: images or tokens per second."""
    return next((key, value) for key, value in plan.items() if key.endswith("_per_second"))


def row(name, plan):
    predicted, (_, speed) = plan["predicted_step_seconds"], speed_of(plan)
    return [name, f"{plan['planned_peak_bytes']:,}", f"{plan['peak_resident_bytes']:,}", str(plan["microbatch"]), plan["checkpoint"],
            f"{speed:.1f}", percent(plan["overhead"]), f"{speed * plan['step_seconds'] / predicted:.1f}" if predicted else "", percent(plan["prediction_error"])]


def table(sweep):
    unit = speed_of(sweep["points"][0])[0].removesuffix("_per_second") + "/s"
    rows = [["budget", "planned = measured bytes", "resident bytes", "microbatch", "checkpointing", unit, "slower than plain", "predicted " + unit, "error"]]
    if sweep["plain"]:
        rows.append(row("plain", sweep["plain"]))
    for point in sweep["points"]:
        if point["same_plan_as"] is None:
            rows.append(row(f"{point['budget_bytes']:,}", point))
        else:
            same = sweep["points"][point["same_plan_as"]]["budget_bytes"]
            rows.append([f"{point['budget_bytes']:,}", f"as in {same:,}"] + [""] * 7)
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    error = sweep["median_prediction_error"]
    title = f"### {sweep['model']}, batch {sweep['batch']}, {sweep['precision']}, {sweep['device']}, {sweep['threads']} threads"
    return "\n".join([title, "", *lines, "", f"Median error of the predicted step time: {100 * error:.1f}% (costs: {sweep['costs']})." if error is not None else ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--steps", type=int, default=5, help="timed at each budget")
    parser.add_argument("--models", default="wrn-28-2:100,resnet-50:16", help="MODEL:BATCH, with commas")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "fp16"))
    parser.add_argument("--costs", default="", help="as in snug sweep")
    parser.add_argument("--markdown", default="", help="a file for the tables")
    parser.add_argument("--json", default="", help="a file for all figures")
    parser.add_argument("--most-error", type=float, default=0.15, help="that the median prediction error may have")
    options = parser.parse_args()
    sweeps = [run_sweep(options, *pair.split(":")) for pair in options.models.split(",")]
    text = "\n\n".join(table(sweep) for sweep in sweeps) + "\n"
    print(text)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(text)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(sweeps, file, indent=1)
    broken = [promise for sweep in sweeps for promise in broken_promises(sweep)]
    for sweep in sweeps:
        error = sweep["median_prediction_error"]
        if error is not None and error > options.most_error:
            broken.append(f"{sweep['model']}: the median prediction error is {100 * error:.1f}%")
    for promise in broken:
        print(f"budget_sweep: {promise}", file=sys.stderr)
    print("budget_sweep: " + ("broken promises: " + str(len(broken)) if broken else "every point keeps its promises"))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
