#!/usr/bin/env python3
"""Makes the tables and figures of docs/results.md from docs/results/*.json alone, which bench/table3.py writes.

Usage: bench/results.py [--check] [--results FOLDER] [--page FILE] [--images FOLDER]
       bench/results.py --self-test
What stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->` is replaced; the prose around it stays. --check writes nothing and fails when the page
or a figure is not what the files give, or when a file is not what its row in bench/experiments/rows.py says.
"""
import argparse, json, math, os, sys

from experiments import rows
from experiments.svg import chart

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PREFIX = "results_"  # of our figures' names among docs/images
# Student's t, 97.5%, by degrees of freedom from 1.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
# Of the report: bytes, accuracy and half of its 95% interval (1.96 standard errors of five seeds).
REPORT_TABLE3 = {"fp32-100-100": (404.8e6, 94.37, 0.07), "fp16-100-100": (42.6e6, 94.43, 0.17), "fp16-100-10": (12.2e6, 94.28, 0.17),
                 "fp16-30-10": (6.7e6, 93.95, 0.18), "fp16-20-10": (5.6e6, 93.64, 0.09), "fp16-20-4": (3.6e6, 93.08, 0.15), "fp16-10-4": (2.5e6, 91.75, 0.29)}
REPORT_TABLE2 = {4: ("93.62 ± 0.19", "93.56 ± 0.09"), 10: ("94.21 ± 0.12", "94.28 ± 0.17")}
NEEDED = ("row", "seed", "precision", "nonzero", "microbatch", "statistics_group", "true_microbatch", "checkpoint", "budget", "batch", "learning_rate", "planned_peak_bytes",
          "measured_peak_bytes", "epochs", "best_test_accuracy", "last_test_accuracy", "images_per_second", "device", "commit", "seconds", "jobs_at_once")


class Wrong(Exception):
    """A sentence about a file that cannot be used."""


def read_results(folder):
    """{row: its results by seed}; Wrong when a file does not hold what its name and its row say."""
    known, found = rows.rows_by_name(), {}
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not name.endswith(".json"):
            continue
        path = os.path.join(folder, name)
        try:
            with open(path) as file:
                result = json.load(file)
        except ValueError as error:
            raise Wrong(f"{path} is not JSON: {error}")
        if missing := [key for key in NEEDED if key not in result]:
            raise Wrong(f"{path} has no {', '.join(missing)}")
        row = known.get(result["row"])
        if row is None:
            raise Wrong(f"{path}: there is no row '{result['row']}' in bench/experiments/rows.py")
        if name != f"{row.name}-seed{result['seed']}.json":
            raise Wrong(f"{path} is of {row.name}, seed {result['seed']}; its name should say so")
        expected = {"precision": row.precision, "nonzero": row.nonzero, "microbatch": row.microbatch, "epochs": 0 if row.steps else row.epochs}
        for key, value in expected.items():
            if result[key] != value:
                raise Wrong(f"{path}: {key} is {result[key]}, but the row's is {value}")
        others = found.setdefault(row.name, [])
        if others and others[0]["learning_rate"] != result["learning_rate"]:
            raise Wrong(f"{path}: its learning rate is {result['learning_rate']}, another seed's {others[0]['learning_rate']}; one row has one rate")
        others.append(result)
    return found


def mean_and_half(values):
    """The mean and half of its 95% interval; no interval for a single value."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, None
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, STUDENT[len(values) - 2] * deviation / math.sqrt(len(values))


def accuracy(results, key="best_test_accuracy"):
    return mean_and_half([100 * result[key] for result in results])


def written(mean, half):
    return f"{mean:.2f}" if half is None else f"{mean:.2f} ± {half:.2f}"


def accuracy_text(results, key="best_test_accuracy"):
    return written(*accuracy(results, key)) if results else ""


def table(head, body):
    return "\n".join("| " + " | ".join(cells) + " |" if cells else "|" + "---|" * len(head) for cells in [head, None, *body])


def percent(share):
    return f"{100 * share:g}%"


def label(row):
    return f"{percent(row.nonzero)}, {row.microbatch}" + (", fp32" if row.precision == "fp32" else "")


def seeds_text(results):
    simulated = sum(not result["true_microbatch"] for result in results)
    return f"{len(results)}" + (f", {simulated} simulated" if simulated else "") if results else ""


def nothing_yet(experiment):
    return f"*No results yet:* `bench/table3.py --experiments {experiment}`."


def true_bytes_of(found, row):
    """What training in such microbatches measured: of a run inside the report's budget where there is one, else of the row's own true runs."""
    for other in rows.EXPERIMENTS["bytes"]:
        if (other.precision, other.nonzero, other.microbatch) == (row.precision, row.nonzero, row.microbatch) and other.name in found:
            return found[other.name]
    return [result for result in found.get(row.name, []) if result["true_microbatch"]]


def table3(found):
    body = []
    for row in rows.EXPERIMENTS["table3"]:
        results, small = found.get(row.name, []), true_bytes_of(found, row)
        report_bytes, report_mean, report_half = REPORT_TABLE3[row.name]
        peaks, long_run = [result["measured_peak_bytes"] for result in small], [result for result in results if result["budget"]]
        body.append([label(row), f"{report_bytes / 1e6:g} MB", f"{max(peaks):,}" if peaks else "", written(report_mean, report_half),
                     accuracy_text(results), accuracy_text(results, "last_test_accuracy"), seeds_text(results),
                     ", ".join(f"{100 * result['best_test_accuracy']:.2f} in {result['measured_peak_bytes']:,}" for result in long_run)])
    head = ["nonzero, microbatch", "report: memory", "measured bytes, all included", "report: accuracy", "accuracy, best epoch", "last epoch", "seeds", "trained in these bytes to the end"]
    return table(head, body), {}


def table2(found):
    pairs = {}
    for row in rows.EXPERIMENTS["table2"]:
        pairs.setdefault(row.microbatch, {})[row.true] = found.get(row.name, [])
    if not any(results for pair in pairs.values() for results in pair.values()):
        return nothing_yet("table2"), {}
    body = [[str(microbatch), accuracy_text(pair[True]), accuracy_text(pair[False]), f"{len(pair[True])} and {len(pair[False])}", *REPORT_TABLE2[microbatch]]
            for microbatch, pair in sorted(pairs.items())]
    head = ["microbatch", f"true, {rows.SHORT_EPOCHS} epochs", "simulated", "seeds", f"report: true, {rows.FULL_EPOCHS} epochs", "report: simulated"]
    return table(head, body), {}


def curve(found, experiment, x_of, name):
    points = [(x_of(row), *accuracy(found[row.name])) for row in rows.EXPERIMENTS[experiment] if row.name in found]
    return {"name": name, "points": points}


def figure(name, alt):
    return f"![{alt}](images/{PREFIX}{name}.svg)"


def accuracy_figure(found, experiments, name, title, x_label, x_of, log_x=False):
    """A chart and its table: accuracy against one setting, a curve for each experiment."""
    series = [one for one in (curve(found, experiment, x_of, text) for experiment, text in experiments.items()) if one["points"]]
    if not series:
        return nothing_yet(",".join(experiments)), {}
    body = [[f"{x_of(row):g}", text, accuracy_text(found[row.name]), accuracy_text(found[row.name], "last_test_accuracy"), seeds_text(found[row.name])]
            for experiment, text in experiments.items() for row in rows.EXPERIMENTS[experiment] if row.name in found]
    text = figure(name, title) + "\n\n" + table([x_label, "", "best epoch", "last epoch", "seeds"], body)
    return text, {name: chart(title, x_label, "test accuracy (%), best epoch", series, log_x)}


def sparsity(found):
    return accuracy_figure(found, {"figure3": "fp16", "figure6": "fp32"}, "sparsity", f"Nonzero weights, microbatches of 100, {rows.SHORT_EPOCHS} epochs",
                           "nonzero weights of convolutions (%)", lambda row: 100 * row.nonzero)


def microbatch(found):
    return accuracy_figure(found, {"figure4": "fp16, dense"}, "microbatch", f"Microbatch size, {rows.SHORT_EPOCHS} epochs", "microbatch (images)", lambda row: row.microbatch, log_x=True)


def checkpointing(found):
    have = [(row, found[row.name][0]) for row in rows.EXPERIMENTS["figure5"] if row.name in found]
    if not have:
        return nothing_yet("figure5"), {}
    title = "Checkpointing: WRN-28-2, fp32, batch 100 at once"
    series = [{"name": row.checkpoint, "points": [(result["measured_peak_bytes"] / 1e6, result["flops_ratio"], None)]} for row, result in have]
    body = [[f"`{row.checkpoint}`", f"{result['measured_peak_bytes']:,}", f"{result['flops_ratio']:.3f}x"] for row, result in have]
    return (figure("checkpointing", title) + "\n\n" + table(["strategy", "measured bytes", "FLOPs"], body),
            {"checkpointing": chart(title, "measured peak (MB)", "FLOPs, times those of none", series, log_x=True)})


def against_bytes(found, experiment, group_of):
    """[(group's name, row, bytes result, accuracy results)] of an experiment whose rows come in pairs: true for a few steps, and trained."""
    listed = rows.EXPERIMENTS[experiment]
    key = lambda row: (row.model, row.precision, row.nonzero, row.microbatch)
    measured = {key(row): found[row.name][0] for row in listed if row.steps and row.name in found}
    return [(group_of(row), row, measured[key(row)], found[row.name]) for row in listed if not row.steps and row.name in found and key(row) in measured]


def bytes_figure(name, title, have, more=()):
    """Of what against_bytes gives: a chart and its table, a curve for each group."""
    groups = {}
    for group, row, small, results in have:
        groups.setdefault(group, []).append((small["measured_peak_bytes"] / 1e6, *accuracy(results)))
    body = [[group, row.model, percent(row.nonzero), str(row.microbatch), f"{small['measured_peak_bytes']:,}", accuracy_text(results), seeds_text(results)] for group, row, small, results in have]
    series = [{"name": group, "points": points} for group, points in groups.items()] + list(more)
    return (figure(name, title) + "\n\n" + table(["", "model", "nonzero", "microbatch", "measured bytes", "best epoch", "seeds"], body),
            {name: chart(title, "measured peak (MB)", "test accuracy (%), best epoch", series, log_x=True)})


def combined(found):
    ours = [(max(result["measured_peak_bytes"] for result in small) / 1e6, *accuracy(found[row.name])) for row in rows.EXPERIMENTS["table3"]
            if row.name in found and (small := true_bytes_of(found, row))]
    report = {"name": "the report's Table 3", "points": [(size / 1e6, mean, half) for size, mean, half in REPORT_TABLE3.values()], "line": False, "marker": "diamond"}
    full = [{"name": f"Table 3, {rows.FULL_EPOCHS} epochs", "points": ours, "marker": "diamond"}] if ours else []
    have = against_bytes(found, "figure7", lambda row: percent(row.nonzero) + " nonzero")
    if have:
        return bytes_figure("combined", f"Accuracy against bytes, {rows.SHORT_EPOCHS} epochs unless said", have, [*full, report])
    if not full:
        return nothing_yet("figure7"), {}
    title = f"Accuracy against bytes: Table 3, {rows.FULL_EPOCHS} epochs"
    return figure("combined", title), {"combined": chart(title, "measured peak (MB)", "test accuracy (%), best epoch", [*full, report], log_x=True)}


def smaller(found):
    have = against_bytes(found, "figure8", lambda row: f"{'narrow' if row.model.startswith('wrn-28-') else 'shallow'}, {row.microbatch}")
    if not have:
        return nothing_yet("figure8"), {}
    sparse = [one for one in against_bytes(found, "figure7", lambda row: f"sparse, {row.microbatch}") if one[1].microbatch in (4, 10)]
    return bytes_figure("smaller", f"Smaller networks beside sparse ones, microbatches of 10 and 4, {rows.SHORT_EPOCHS} epochs", have + sparse)


def grid(found):
    have = [(row, found[row.name]) for row in rows.EXPERIMENTS["grid"] if row.name in found]
    if not have:
        return nothing_yet("grid"), {}
    body = [[percent(row.nonzero), f"{row.rate:g}", accuracy_text(results), accuracy_text(results, "last_test_accuracy")] for row, results in have]
    return table(["nonzero", "learning rate", "validation accuracy, best epoch", "last epoch"], body), {}


def machines(found):
    """Where the files come from: runs that trained, by device and program."""
    totals = {}
    for result in (result for results in found.values() for result in results):
        runs, seconds = totals.get((result["device"], result["commit"]), (0, 0))
        totals[result["device"], result["commit"]] = (runs + 1, seconds + result["seconds"])
    if not totals:
        return "*No results yet.*", {}
    return table(["device", "commit", "runs", "hours of all runs"], [[device, f"`{commit}`", str(runs), f"{seconds / 3600:.2f}"] for (device, commit), (runs, seconds) in sorted(totals.items())]), {}


SECTIONS = {"table3": table3, "table2": table2, "sparsity": sparsity, "microbatch": microbatch, "checkpointing": checkpointing, "combined": combined,
            "smaller": smaller, "grid": grid, "machines": machines}


def fill(page, name, text):
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise Wrong(f"the page must have '{begin}' and then '{end}', each once")
    return page[: page.index(begin)] + begin + "\n" + text + "\n" + page[page.index(end) :]


def make(options):
    """{path: content} of the page and every figure."""
    found = read_results(options.results)
    with open(options.page) as file:
        page = file.read()
    made = {}
    for name, section in SECTIONS.items():
        text, figures = section(found)
        page = fill(page, name, text)
        made |= {os.path.join(options.images, f"{PREFIX}{key}.svg"): content for key, content in figures.items()}
    return made | {options.page: page}


def figures_there(options):
    names = os.listdir(options.images) if os.path.isdir(options.images) else []
    return [os.path.join(options.images, name) for name in names if name.startswith(PREFIX) and name.endswith(".svg")]


def differences(options, made):
    old = {}
    for path in {*made, *figures_there(options)}:
        if os.path.exists(path):
            with open(path) as file:
                old[path] = file.read()
    return sorted(path for path in {*made, *old} if made.get(path) != old.get(path))


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", default=os.path.join(ROOT, "docs", "results"))
    parser.add_argument("--page", default=os.path.join(ROOT, "docs", "results.md"))
    parser.add_argument("--images", default=os.path.join(ROOT, "docs", "images"))
    parser.add_argument("--check", action="store_true", help="write nothing; fail when something would change")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(arguments)
    if options.self_test:
        from experiments import results_tests, testing
        return testing.run_tests("results", results_tests)
    try:
        made = make(options)
    except Wrong as wrong:
        print(f"results: {wrong}", file=sys.stderr)
        return 2
    changed = differences(options, made)
    if options.check:
        for path in changed:
            print(f"results: {os.path.relpath(path)} is not what docs/results gives; run bench/results.py", file=sys.stderr)
        return 1 if changed else 0
    for path in changed:
        if path in made:
            with open(path, "w") as file:
                file.write(made[path])
        else:
            os.remove(path)
    print(f"results: {len(changed)} files changed" + "".join(f"\n  {os.path.relpath(path)}" for path in changed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
