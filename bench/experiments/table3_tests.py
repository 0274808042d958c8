"""bench/table3.py --self-test: a stand-in for snug that stops and resumes as snug does, and what the runner makes of it."""
import dataclasses, json, os, signal, stat, subprocess, sys, tempfile, time, tomllib, unittest

from . import rows, runs
from .runs import Run

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE3 = os.path.join(BENCH, "table3.py")
RECIPES = os.path.join(os.path.dirname(BENCH), "recipes")

# Trains by counting. A step's accuracy depends on nothing but the step, so that a run in parts must end as one in one part does.
STAND_IN = f"""#!{sys.executable}
import json, os, re, signal, sys, time
arguments, stop = sys.argv[1:], []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
out = arguments[arguments.index("--out") + 1]
snapshots = os.path.join(out, "snapshots")
if "--resume" not in arguments:
    os.makedirs(snapshots)
    recipe = open(arguments[1]).read()
    open(os.path.join(out, "recipe.toml"), "w").write(recipe)
    open(os.path.join(out, "plan.txt"), "w").write("plan")
recipe = open(os.path.join(out, "recipe.toml")).read()
if "seed = 3" in recipe:
    sys.exit("snug: the loss became nan")
open(os.path.join(os.path.dirname(out), "began.txt"), "a").write(os.path.basename(out) + "\\n")
total = 10 * int(re.search("epochs = (.*)", recipe)[1])
step = max([int(name[5:14]) for name in os.listdir(snapshots)], default=0)
accuracy = lambda step: (step * 7 % 100) / 100
with open(os.path.join(out, "metrics.jsonl"), "a") as metrics:
    while step < total and not stop:
        time.sleep(0.002)
        step += 1
        metrics.write(json.dumps({{"step": step, "loss": 1.0}}) + "\\n")
        if step % 10 == 0:
            metrics.write(json.dumps({{"step": step, "test_accuracy": accuracy(step), "measured_peak_bytes": 77}}) + "\\n")
for name in os.listdir(snapshots):
    os.remove(os.path.join(snapshots, name))
open(os.path.join(snapshots, f"step_{{step:09}}.safetensors"), "wb").write(os.urandom(1000))
print(json.dumps({{"precision": "fp16", "batch": 100, "checkpoint": "none", "planned_peak_bytes": 77, "measured_peak_bytes": 77, "flops_ratio": 1,
    "steps": step, "interrupted": step < total, "images_per_second": 1000.0, "test_accuracy": accuracy(total),
    "best_test_accuracy": max(accuracy(s) for s in range(10, total + 1, 10))}}))
sys.exit(128 + signal.SIGTERM if stop and step < total else 0)
"""


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.at = lambda *names: os.path.join(holder.name, *names)
        with open(self.at("snug"), "w") as file:
            file.write(STAND_IN)
        os.chmod(self.at("snug"), stat.S_IRWXU)

    def command(self, arguments, state, results):
        return [sys.executable, TABLE3, "--device", "cpu", "--snug", self.at("snug"), "--state", self.at(state), "--results", self.at(results), "--commit", "c", *arguments]

    def table3(self, *arguments, state="state", results="results"):
        return subprocess.run(self.command(arguments, state, results), capture_output=True, text=True)

    def interrupted(self, number, *arguments, state="state"):
        """What the runner says when it gets SIGTERM as soon as so many runs have begun."""
        process = subprocess.Popen(self.command(arguments, state, "results"), stdout=subprocess.PIPE, text=True)
        began = self.at(state, "began.txt")
        while not os.path.exists(began) or len(runs.read_bytes(began).splitlines()) < number:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        return said

    def results(self, folder="results"):
        names = os.listdir(self.at(folder)) if os.path.isdir(self.at(folder)) else []
        return {name: json.loads(runs.read_bytes(self.at(folder, name))) for name in names}


class Runner(Folder):
    def test_FinishedRunLeavesItsResult(self):
        done = self.table3("--rows", "fp16-30-10", "--seeds", "0,1", "--epochs", "3", "--jobs", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.results()["fp16-30-10-e3-seed1.json"]
        self.assertEqual((result["row"], result["seed"], result["epochs"], result["steps"]), ("fp16-30-10-e3", 1, 3, 30))
        self.assertEqual((result["best_test_accuracy"], result["last_test_accuracy"]), (0.7, 0.1))
        self.assertEqual((result["true_microbatch"], result["statistics_group"], result["microbatch"]), (False, 10, 10))
        self.assertEqual(result["test_accuracies"], [0.7, 0.4, 0.1])
        self.assertEqual((result["measured_peak_bytes"], result["jobs_at_once"], result["commit"], result["images_per_second"]), (77, 2, "c", 1000.0))
        first = self.results()["fp16-30-10-e3-seed0.json"]
        self.assertEqual((first["true_microbatch"], first["statistics_group"], first["budget"]), (True, None, "6.7MB"))

    def test_RunInPartsOnThreeMachinesEndsAsInOnePart(self):
        work = ("--rows", "fp16-20-4", "--seeds", "0,1", "--epochs", "150", "--jobs", "2")
        carry = ("--pack", self.at("carry"), "--unpack", self.at("carry"))
        self.assertEqual(self.table3(*work, state="whole_state", results="whole").returncode, 0)
        for machine in ("first", "second"):
            self.assertEqual(self.interrupted(2, *work, *carry, state=machine).count("stopped after step"), 2)
        self.assertEqual(self.results(), {})
        self.assertIn("resumed at step", self.table3(*work, *carry, state="third").stdout)
        strip = lambda results: {name: {key: value for key, value in result.items() if key != "seconds"} for name, result in results.items()}
        self.assertEqual(len(self.results()), 2)
        self.assertEqual(strip(self.results()), strip(self.results("whole")))

    def test_RunsThatWereNotAskedForStayInThePack(self):
        carry = ("--pack", self.at("carry"), "--unpack", self.at("carry"), "--seeds", "0", "--epochs", "5000")
        self.interrupted(1, "--rows", "fp16-20-4", *carry, state="one")
        said = self.interrupted(1, "--experiments", "table2", "--rows", "fp16-100-4-e30", *carry, state="two")
        self.assertIn("packed 2 runs", said)
        self.assertEqual(sorted(name for path in runs.carried(self.at("carry")) for name in runs.files_of(runs.read_bytes(path))),
                         ["fp16-100-4-e5000-seed0.tar.xz", "fp16-20-4-e5000-seed0.tar.xz"])

    def test_ResultsOfAnEarlierCallStayInThePack(self):
        for seed in ("0", "1"):
            self.table3("--rows", "fp16-20-4", "--seeds", seed, "--epochs", "2", "--pack", self.at("carry"))
        self.assertEqual(sorted(runs.results_in(self.at("carry"))), ["fp16-20-4-e2-seed0.json", "fp16-20-4-e2-seed1.json"])

    def test_RunnerStopsWhenItsMinutesAreOver(self):
        done = self.table3("--rows", "fp16-20-4", "--epochs", "50000", "--minutes", "0.03", "--reserve", "0", "--jobs", "3")  # 1,000 seconds of work
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.results(), {})
        self.assertIn("0 finished, 0 failed, 5 left", done.stdout)

    def test_FailedRunIsToldAndOthersGoOn(self):
        done = self.table3("--rows", "fp16-20-4", "--seeds", "3,4", "--epochs", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("fp16-20-4-e2-seed3: snug ended with 1: snug: the loss became nan", done.stderr)
        self.assertEqual(list(self.results()), ["fp16-20-4-e2-seed4.json"])

    def test_BegunRunsComeFirstAndDoneOnesNotAgain(self):
        work = ("--rows", "fp16-20-10,fp16-20-4,fp16-10-4", "--seeds", "0", "--epochs", "2")
        self.table3("--rows", "fp16-20-10", "--seeds", "0", "--epochs", "2")
        last = self.at("state", "fp16-10-4-e2-seed0")
        os.makedirs(os.path.join(last, "snapshots"))
        with open(os.path.join(last, "recipe.toml"), "w") as file:
            file.write("epochs = 2\n")
        os.remove(self.at("state", "began.txt"))
        self.table3(*work)
        self.assertEqual(runs.read_bytes(self.at("state", "began.txt")).decode().split(), ["fp16-10-4-e2-seed0", "fp16-20-4-e2-seed0"])

    def test_MistakesEndWithTwoAndOneSentence(self):
        for arguments in (["--rows", "fp16-31-10"], ["--experiments", "figure9"], ["--seeds", "a"], ["--set", "color=red"], ["--set", "nonzero=much"]):
            done = self.table3(*arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        done = subprocess.run([sys.executable, TABLE3, "--epochs", "3"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--results", done.stderr)

    def test_GridsBestRateIsUsedWhenAskedFor(self):
        os.makedirs(self.at("results"))
        for number, row in enumerate(row for row in rows.EXPERIMENTS["grid"] if row.nonzero == 0.3):
            with open(self.at("results", f"{row.name}-seed0.json"), "w") as file:
                json.dump({"best_test_accuracy": [0.1, 0.4, 0.3, 0.2][number], "learning_rate": row.rate}, file)
        self.table3("--rows", "fp16-30-10", "--seeds", "1", "--epochs", "1", "--rates", "grid")
        self.assertEqual(self.results()["fp16-30-10-e1-seed1.json"]["learning_rate"], 0.05)

    def test_ValidationSplitHoldsEveryTrainingImageOnce(self):
        source = self.at("data", "cifar10")
        os.makedirs(source)
        images = [bytes([number]) + bytes(3072) for number in range(250)]
        for batch in range(5):
            with open(os.path.join(source, f"data_batch_{batch + 1}.bin"), "wb") as file:
                file.write(b"".join(images[50 * batch : 50 * batch + 50]))
        done = self.table3("--grid", "--rows", "grid-fp16-30-100-lr0.1-e30", "--data", self.at("data"))
        self.assertEqual(done.returncode, 0, done.stderr)
        split = [runs.read_bytes(self.at("state", "validation", "cifar10", name))[::3073] for name in ("data_batch_1.bin", "test_batch.bin")]
        self.assertEqual([len(part) for part in split], [225, 25])
        self.assertEqual(sorted(split[0] + split[1]), list(range(250)))


class Packing(Folder):
    def run_with_snapshot(self, content, steps=(100,)):
        run = Run(rows.rows_by_name()["fp16-30-10"], 0, self.at("state"), self.at("results"))
        for step in steps:
            runs.write_whole(os.path.join(run.folder, "snapshots", f"step_{step:09}.safetensors"), content)
        runs.write_whole(os.path.join(run.folder, "recipe.toml"), b"recipe")
        lines = [{"step": step, "loss": 0.5} for step in range(1, 1001)] + [{"step": 500, "test_accuracy": 0.5}]
        runs.write_whole(os.path.join(run.folder, "metrics.jsonl"), "".join(json.dumps(line) + "\n" for line in lines).encode() + b'{"step": 10')
        return run

    def test_PackHoldsTheNewestSnapshotAndThinnedMetrics(self):
        run = self.run_with_snapshot(b"weights", steps=(100, 200))
        other = Run(run.row, 0, self.at("other"), self.at("results"))
        self.assertTrue(other.unpack(run.pack()))
        self.assertEqual(other.snapshots(), [(200, "step_000000200.safetensors")])
        self.assertEqual(len(other.metrics()), 11)
        self.assertFalse(other.unpack(run.pack()), "it was as far")

    def test_OlderPackDoesNotReplaceANewerRun(self):
        old = self.run_with_snapshot(b"old").pack()
        run = self.run_with_snapshot(b"new", steps=(100, 300))
        self.assertFalse(run.unpack(old))
        self.assertEqual(run.steps_done(), 300)

    def test_ArchivesStayBelowTheirLimitAndLoseNothing(self):
        files = {f"run{number}.tar.xz": os.urandom(size) for number, size in enumerate((6_000_000, 7_000_000, 9_000_000, 3_000_000, 12_000_000, 500))}
        runs.carry_away(files, self.at("carry"))
        found = {}
        for path in runs.carried(self.at("carry")):
            self.assertLessEqual(os.path.getsize(path), runs.MOST_CARRIED_BYTES)
            found |= runs.files_of(runs.read_bytes(path))
        self.assertEqual(found, files)
        self.assertEqual(runs.carry_away({}, self.at("carry")), 0)
        self.assertEqual(runs.carried(self.at("carry")), [], "those of the last call are gone")


class Rows(unittest.TestCase):
    def test_RowsOfTable3AreTheRecipesOnes(self):
        by_budget = {row.budget: row for row in rows.EXPERIMENTS["bytes"] if row.budget}
        self.assertEqual(len(by_budget), 6)
        for budget, row in by_budget.items():
            with open(os.path.join(RECIPES, f"wrn-28-2-{budget}.toml"), "rb") as file:
                expected = tomllib.load(file)
            full = dataclasses.replace(row, steps=0)
            made = tomllib.loads(rows.recipe_of(full, 0, "cuda"))
            for table in ("optimizer", "schedule", "sparse"):
                self.assertEqual(made.get(table), expected.get(table), f"{budget}: {table}")
            for key in ("model", "data", "batch", "microbatch", "budget", "epochs"):
                self.assertEqual(made[key], expected[key], f"{budget}: {key}")

    def test_ShorterRunsShrinkTheirSchedules(self):
        made = tomllib.loads(rows.recipe_of(rows.rows_by_name()["fp16-30-10-e30"], 0, "cuda"))
        self.assertEqual((made["schedule"]["milestones"], made["sparse"]["rewire_milestones"]), ([9, 18, 24], [3.75, 12, 21, 28.5]))
        self.assertEqual(made["sparse"]["rewire_every"], [200, 400, 800, 1600, 0])

    def test_NameStandsForOneRow(self):
        for experiment in rows.EXPERIMENTS.values():
            for row in experiment:
                self.assertEqual(dataclasses.replace(rows.rows_by_name()[row.name], seeds=row.seeds), row)

    def test_EveryExperimentHasAPlaceInTheOrder(self):
        self.assertEqual(sorted(rows.ORDER), sorted(rows.EXPERIMENTS))
        work = rows.order_of_work(list(rows.EXPERIMENTS))
        self.assertEqual((work[0][0].name, work[0][1]), ("fp16-30-10", 0))
        self.assertTrue(work[0][0].is_true(0))
        self.assertEqual(len(work), len({(row.name, seed) for row, seed in work}))
        seeds = [seed for row, seed in rows.order_of_work(["table3"])]
        self.assertEqual(seeds, sorted(seeds), "every row's first seed comes before any second one")
