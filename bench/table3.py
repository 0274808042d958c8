#!/usr/bin/env python3
"""Trains the report's Table 3 and the experiments around it (Low-Memory Neural Network Training, Sohoni et al.), a few minutes at a time.

Usage: bench/table3.py [--experiments table3,bytes] [--rows NAMES] [--seeds 0,1] [--minutes N] [--jobs N] [--device cuda|cpu] [--data FOLDER]
                       [--state FOLDER] [--results FOLDER] [--unpack FOLDER] [--pack FOLDER] [--list] [--dry-run]
       bench/table3.py --grid          the learning-rate grid, on 45,000 training images and 5,000 for validation
       bench/table3.py --self-test

bench/experiments/rows.py has the rows and the order of work; runs that have begun come first. When the minutes are over every run is told to stop:
it saves a snapshot, and the next call resumes it, on this machine or another one: --pack FOLDER writes archives of at most 15 MB with all that
is needed, --unpack FOLDER reads them. Several runs share a GPU through NVIDIA's multi-process service. Each finished run leaves
docs/results/ROW-seedK.json, of which bench/results.py makes docs/results.md.
"""
import argparse, concurrent.futures, contextlib, dataclasses, json, os, random, shutil, signal, subprocess, sys, tempfile, time

from experiments import rows
from experiments.runs import MOST_PACKED_BYTES, Run, bring_back, carry_away, read_bytes, results_in, write_whole

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LEAST_SECONDS = 20  # left before the stop: a run begins only with more, for it plans and loads first
RECORD_BYTES = 3073  # of an image in CIFAR-10's files


def refuse(sentence):
    print(f"table3: {sentence}", file=sys.stderr)
    sys.exit(2)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", default="bytes,table3", help=f"with commas, of {', '.join(rows.EXPERIMENTS)}; or all")
    parser.add_argument("--grid", action="store_true", help="only the learning-rate grid")
    parser.add_argument("--rows", default="", help="names, with commas: of the experiments' rows only these")
    parser.add_argument("--seeds", default="", help="with commas: only these")
    parser.add_argument("--epochs", type=int, default=0, help="instead of the rows' own; schedules shrink with them")
    parser.add_argument("--rates", choices=("report", "grid"), default="report", help="learning rates: the report's, or those that the grid's results choose")
    parser.add_argument("--minutes", type=float, default=0, help="be done after these, packing included (default: run to the end)")
    parser.add_argument("--reserve", type=float, default=15, help="seconds of the minutes that are kept for snapshots and packing (default: 15)")
    parser.add_argument("--jobs", type=int, default=0, help="runs at once (default: 8 on a GPU, 1 on a CPU)")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--data", default="", help="the folder with cifar10/ in it, as SNUG_DATA_DIR")
    parser.add_argument("--state", default="runs/table3", help="where run folders live")
    parser.add_argument("--results", default="", help="where finished runs' files go (default: docs/results)")
    parser.add_argument("--unpack", default="", metavar="FOLDER", help="first bring in what --pack wrote there")
    parser.add_argument("--pack", default="", metavar="FOLDER", help="at the end write what another machine needs to resume, and new results")
    parser.add_argument("--snug", default="", help="the program (default: the bundle's, or build/release/snug)")
    parser.add_argument("--commit", default="", help="of the program (default: the bundle's, or git's)")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="another value for all rows, to try things out: model=small-cnn")
    parser.add_argument("--list", action="store_true", help="what is done and what is left")
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(arguments)
    if (options.set or options.epochs) and not options.results:
        refuse("--set and --epochs change what a row means; name another folder for the results with --results")
    options.results = options.results or os.path.join(ROOT, "docs", "results")
    options.jobs = options.jobs or (8 if options.device == "cuda" else 1)
    bundled = os.path.join(ROOT, "bin", "snug")  # its run.sh has set the library path
    options.snug = options.snug or (bundled if os.path.exists(bundled) else os.path.join(ROOT, "build", "release", "snug"))
    options.commit = options.commit or commit_here()
    return options


def commit_here():
    noted = os.path.join(ROOT, "commit")
    if os.path.exists(noted):
        return read_bytes(noted).decode().strip()
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True) if shutil.which("git") else None
    return done.stdout.strip() if done and done.returncode == 0 else "unknown"


def numbers_of(text, name):
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        refuse(f"{name} takes whole numbers with commas, not '{text}'")


def changed(row, options):
    """The row with --epochs, --set and the grid's learning rate."""
    fields = {field.name: field.type for field in dataclasses.fields(rows.Row)}
    for assignment in options.set:
        name, _, value = assignment.partition("=")
        if fields.get(name) not in (int, float, str):
            refuse(f"--set {assignment}: there is no such field; it can be {', '.join(key for key, kind in fields.items() if kind in (int, float, str))}")
        try:
            row = dataclasses.replace(row, **{name: fields[name](value)})
        except ValueError:
            refuse(f"--set {assignment}: '{value}' is not a number")
    if options.epochs and not row.steps:
        row = dataclasses.replace(row, epochs=options.epochs)
    if options.rates == "grid" and not row.validation and (rate := rate_of_grid(row, options.results)):
        row = dataclasses.replace(row, learning_rate=rate)
    return row


def rate_of_grid(row, results):
    """The rate with the best validation accuracy, once every rate of the grid has one for such a network."""
    grid = [other for other in rows.EXPERIMENTS["grid"] if (other.nonzero, other.model) == (row.nonzero, row.model)]
    paths = [os.path.join(results, f"{other.name}-seed0.json") for other in grid]
    if not grid or not all(map(os.path.exists, paths)):
        return None
    return max((json.loads(read_bytes(path)) for path in paths), key=lambda result: result["best_test_accuracy"])["learning_rate"]


def selected_runs(options):
    experiments = ["grid"] if options.grid else list(rows.EXPERIMENTS) if options.experiments == "all" else options.experiments.split(",")
    for name in experiments:
        if name not in rows.EXPERIMENTS:
            refuse(f"there is no experiment '{name}'; it can be {', '.join(rows.EXPERIMENTS)} or all")
    work = rows.order_of_work(experiments)
    if options.rows:
        known = {row.name for row, _ in work}
        for name in options.rows.split(","):
            if name not in known:
                refuse(f"there is no row '{name}' in {', '.join(experiments)}; there are {', '.join(sorted(known))}")
        work = [pair for pair in work if pair[0].name in options.rows.split(",")]
    if options.seeds:
        work = [pair for pair in work if pair[1] in numbers_of(options.seeds, "--seeds")]
    return runs_of(work, options)


def runs_of(work, options):
    runs = {}
    for row, seed in work:
        run = Run(changed(row, options), seed, options.state, options.results)
        runs.setdefault(run.name, run)  # --set can make two rows one
    return list(runs.values())


def every_run(options):
    """What travels: also runs that are not asked for now, or they would be lost on the way."""
    return runs_of(rows.order_of_work(list(rows.EXPERIMENTS)), options)


def in_order(runs):
    """What is left to do: runs that have begun before new ones; otherwise as listed."""
    left = [run for run in runs if not run.is_done()]
    return sorted(left, key=lambda run: not run.has_begun())


def show_list(runs):
    for run in runs:
        steps, total = run.steps_done(), run.row.total_steps
        how = "done" if run.is_done() else f"at {100 * steps / total:.0f}%" if run.has_begun() else "to do"
        kind = "true" if run.row.is_true(run.seed) else "simulated"
        print(f"{run.name:44} {kind:10} {how:8} {'' if run.is_done() else f'{run.seconds_left():6.0f} device seconds left'}")
    print(f"{sum(run.is_done() for run in runs)} of {len(runs)} runs are done; about {sum(run.seconds_left() for run in runs):,.0f} device seconds are left")


def device_name(device):
    if device == "cuda" and shutil.which("nvidia-smi"):
        done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.splitlines()[0].strip()
    if device == "cpu":
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else "cpu"
    return device


@contextlib.contextmanager
def multi_process_service(wanted):
    """NVIDIA's, for the processes begun inside; without it they would take turns on the GPU instead of sharing it."""
    if not wanted:
        yield {}
        return
    if not shutil.which("nvidia-cuda-mps-control"):
        print("table3: nvidia-cuda-mps-control was not found; the runs take turns on the GPU", file=sys.stderr)
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="mps-")
    variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    begun = subprocess.run(["nvidia-cuda-mps-control", "-d"], env=os.environ | variables)
    if begun.returncode != 0:
        print(f"table3: nvidia-cuda-mps-control ended with {begun.returncode}; the runs take turns on the GPU", file=sys.stderr)
    try:
        yield variables if begun.returncode == 0 else {}
    finally:
        if begun.returncode == 0:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=os.environ | variables)
        shutil.rmtree(folder, ignore_errors=True)


def make_validation_split(source, target):
    """CIFAR-10 with 5,000 of its training images, chosen once and for all, in the place of its test images."""
    folder = os.path.join(target, "cifar10")
    if os.path.exists(os.path.join(folder, "test_batch.bin")):
        return
    batches = [read_bytes(os.path.join(source, "cifar10", f"data_batch_{number}.bin")) for number in range(1, 6)]
    images = b"".join(batches)
    count = len(images) // RECORD_BYTES
    held_out = set(random.Random(0).sample(range(count), count // 10))
    record = lambda index: images[index * RECORD_BYTES : (index + 1) * RECORD_BYTES]
    write_whole(os.path.join(folder, "data_batch_1.bin"), b"".join(record(i) for i in range(count) if i not in held_out))
    meta = os.path.join(source, "cifar10", "batches.meta.txt")
    if os.path.exists(meta):
        write_whole(os.path.join(folder, "batches.meta.txt"), read_bytes(meta))
    write_whole(os.path.join(folder, "test_batch.bin"), b"".join(record(i) for i in sorted(held_out)))  # last: now it is whole


class Runner:
    def __init__(self, options, runs):
        self.options, self.runs = options, runs
        self.begun_at = time.monotonic()
        self.stop_at = self.begun_at + max(0, 60 * options.minutes - options.reserve) if options.minutes else float("inf")
        self.stopping, self.active, self.failed, self.finished = False, {}, [], []
        self.device = device_name(options.device)
        self.variables = {}

    def command(self, run):
        if run.has_begun():
            return [self.options.snug, "train", "--out", run.folder, "--resume", "--json"]
        return [self.options.snug, "train", run.folder + ".toml", "--out", run.folder, "--json"]

    def environment(self, run):
        data = self.options.data or os.environ.get("SNUG_DATA_DIR", "")
        if run.row.validation:
            if not data:
                refuse("the grid needs --data FOLDER with cifar10/ in it, to split it")
            target = os.path.join(self.options.state, "validation")
            make_validation_split(data, target)
            data = target
        return os.environ | self.variables | ({"SNUG_DATA_DIR": os.path.abspath(data)} if data else {})

    def begin(self, run):
        environment = self.environment(run)
        if not run.has_begun():
            shutil.rmtree(run.folder, ignore_errors=True)
            threads = max(1, (os.cpu_count() or 1) // self.options.jobs)
            write_whole(run.folder + ".toml", rows.recipe_of(run.row, run.seed, self.options.device, threads).encode())
        with open(run.folder + ".log", "ab") as log, open(run.folder + ".out", "wb") as out:
            process = subprocess.Popen(self.command(run), stdout=out, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        self.active[process] = (run, time.monotonic(), run.steps_done())
        print(f"{self.clock()} {run.name}: {'resumed' if run.has_begun() else 'begun'} at step {run.steps_done()} of {run.row.total_steps}", flush=True)

    def end(self, process):
        run, begun_at, first_step = self.active.pop(process)
        said = last_json(run.folder + ".out")
        if self.stopping and process.returncode == -signal.SIGTERM:
            print(f"{self.clock()} {run.name}: stopped before it could begin", flush=True)
            return
        was_stopped = self.stopping and process.returncode == 128 + signal.SIGTERM  # after saving; it says so by its exit code
        if said is None or not (process.returncode == 0 or was_stopped):
            self.failed.append(run)
            tail = read_bytes(run.folder + ".log")[-600:].decode(errors="replace").strip().splitlines()[-3:]
            print(f"{self.clock()} {run.name}: snug ended with {process.returncode}: {' / '.join(tail)}", file=sys.stderr, flush=True)
            return
        run.add_part({"first_step": first_step, "last_step": said["steps"], "seconds": round(time.monotonic() - begun_at, 2),
                      "images_per_second": said["images_per_second"], "measured_peak_bytes": said["measured_peak_bytes"],
                      "jobs_at_once": self.most_at_once, "device": self.device, "commit": self.options.commit})
        rate = f"{said['images_per_second']:,.0f} images/s"
        if said["interrupted"]:
            print(f"{self.clock()} {run.name}: stopped after step {said['steps']} of {run.row.total_steps}, {rate}", flush=True)
        else:
            run.write_result(said)
            self.finished.append(run)
            print(f"{self.clock()} {run.name}: best {100 * said['best_test_accuracy']:.2f}%, last {100 * said['test_accuracy']:.2f}%, "
                  f"{said['measured_peak_bytes']:,} bytes, {rate}", flush=True)

    def clock(self):
        return f"[{time.monotonic() - self.begun_at:6.1f} s]"

    def stop(self, *_):
        """Every run saves and ends; a second signal would kill it, so there is only one."""
        if not self.stopping:
            self.stopping = True
            for process in self.active:
                process.terminate()

    def work(self):
        self.most_at_once = 0
        queue = in_order(self.runs)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)
        with multi_process_service(self.options.device == "cuda" and self.options.jobs > 1) as self.variables:
            while self.active or (queue and not self.stopping):
                while queue and len(self.active) < self.options.jobs and not self.stopping and time.monotonic() + self.least_seconds() < self.stop_at:
                    self.begin(queue.pop(0))
                self.most_at_once = max(self.most_at_once, len(self.active))
                if time.monotonic() >= self.stop_at:
                    self.stop()
                if not self.active:
                    break
                time.sleep(0.05)
                for process in [process for process in self.active if process.poll() is not None]:
                    self.end(process)

    def least_seconds(self):
        return min(LEAST_SECONDS, 60 * self.options.minutes / 4) if self.options.minutes else 0

    def pack(self):
        """Runs that are not done, the results of this call, and those that an earlier one left in the same folder."""
        runs = [run for run in every_run(self.options) if run.has_begun() and not run.is_done()]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            files = dict(zip([run.name + ".tar.xz" for run in runs], pool.map(Run.pack, runs)))
        for name, content in files.items():
            if len(content) > MOST_PACKED_BYTES:
                print(f"table3: {name} has {len(content):,} bytes; {MOST_PACKED_BYTES:,} were to be the most", file=sys.stderr)
        files |= results_in(self.options.pack) | {os.path.basename(run.result_path): read_bytes(run.result_path) for run in self.finished}
        archives = carry_away(files, self.options.pack)
        print(f"{self.clock()} packed {len(runs)} runs and {len(self.finished)} results into {archives} archives in {self.options.pack}", flush=True)


def last_json(path):
    lines = [line for line in read_bytes(path).decode(errors="replace").splitlines() if line.startswith("{")]
    try:
        return json.loads(lines[-1]) if lines else None
    except ValueError:
        return None


def main(arguments):
    options = parse_arguments(arguments)
    if options.self_test:
        from experiments import table3_tests, testing
        return testing.run_tests("table3", table3_tests)
    runs = selected_runs(options)
    if options.unpack:
        brought = bring_back(options.unpack, {run.name: run for run in every_run(options)}, options.results)
        print(f"brought in {len(brought)} runs: {', '.join(brought)}")
    if options.list:
        show_list(runs)
        return 0
    runner = Runner(options, runs)
    if options.dry_run:
        for run in in_order(runs):
            print(" ".join(runner.command(run)))
        return 0
    if not shutil.which(options.snug):
        refuse(f"there is no program '{options.snug}'; build it, or name it with --snug")
    os.makedirs(options.state, exist_ok=True)
    runner.work()
    if options.pack:
        runner.pack()
    print(f"{runner.clock()} {len(runner.finished)} finished, {len(runner.failed)} failed, {len(in_order(runs))} left, "
          f"about {sum(run.seconds_left() for run in runs):,.0f} device seconds")
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
