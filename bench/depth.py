#!/usr/bin/env python3
"""How planned bytes and planning time grow with depth: pre-activation ResNets under several checkpointing strategies.

Usage: bench/depth.py [--depths 110,218,434,866,1730] [--strategies none,sqrt,log] [--batch 16] [--snug build/release/snug] [--json FILE]
Prints, for every strategy, the planned bytes above the persistent ones (which grow with the parameters whatever is kept), their growth from one
depth to the next, the FLOPs against plain training, and the seconds that planning took; last, the seconds for the 1,001-layer network, and the processor's.
A strategy with a limit in percent, such as greedy:5%, may take that much of what plain training takes.
"""
import argparse, json, resource, subprocess, sys


def plan(options, model, strategy):
    command = [options.snug, "plan", model, "--batch", str(options.batch), "--microbatch", str(options.batch), "--checkpoint", strategy, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"depth: '{' '.join(command)}' ended with {done.returncode}: {done.stderr.strip()}")
    row = json.loads(done.stdout)
    # On a busy machine planning waits; what the whole command computed, its start and its end included, is the firmer figure.
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"model": model, "cpu_seconds": cpu_seconds, "strategy": strategy, "transient_bytes": row["planned_peak_bytes"] - row["persistent_bytes"],
            **{name: row[name] for name in ("planned_peak_bytes", "persistent_bytes", "flops_ratio", "plan_seconds")}}


class Plans:
    """Plans that were made, so that plain training, to which others are held, is planned once."""

    def __init__(self, options):
        self.options, self.made = options, {}

    def get(self, model, strategy):
        if (model, strategy) not in self.made:
            asked = strategy
            if strategy.endswith("%"):
                name, percent = strategy[:-1].split(":")
                asked = f"{name}:{round(self.get(model, 'none')['transient_bytes'] * float(percent) / 100)}"
            self.made[model, strategy] = plan(self.options, model, asked) | {"strategy": strategy}
        return self.made[model, strategy]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--depths", default="110,218,434,866,1730")
    parser.add_argument("--strategies", default="none,sqrt,log,optimal:1,greedy:5%")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--snug", default="build/release/snug")
    parser.add_argument("--json", default="", help="a file for the figures")
    options = parser.parse_args()
    depths, strategies = options.depths.split(","), options.strategies.split(",")
    plans = Plans(options)

    print(f"preresnet-D, batch {options.batch}: planned bytes above the persistent ones (growth from the depth before; FLOPs; seconds of planning)")
    print("| D | " + " | ".join(strategies) + " |\n|" + "---|" * (len(strategies) + 1))
    before = {}
    for depth in depths:
        cells = [depth]
        for strategy in strategies:
            row = plans.get(f"preresnet-{depth}", strategy)
            now, then = row["transient_bytes"], before.get(strategy)
            cells.append(f"{now:,} (" + (f"x{now / then:.2f}, +{now - then:,}; " if then else "") + f"{row['flops_ratio']:.2f}; {row['plan_seconds']:.2f} s)")
            before[strategy] = now
        print("| " + " | ".join(cells) + " |", flush=True)
    rows = [plans.get("preresnet-1001", strategy) for strategy in strategies]
    print("preresnet-1001: planned in " + ", ".join(f"{r['plan_seconds']:.2f} s ({r['strategy']}, {r['cpu_seconds']:.2f} s of one core)" for r in rows))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(list(plans.made.values()), file, indent=1)


if __name__ == "__main__":
    main()
