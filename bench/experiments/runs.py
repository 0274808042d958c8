"""One run of `snug train` as a folder: how far it is, its result, and the little that another machine needs to resume it."""
import io, json, lzma, os, re, shutil, tarfile

from . import rows

PARTS = "parts.json"  # ours, beside what snug keeps: one entry for each process that worked on the run
MOST_PACKED_BYTES = 12_000_000  # of one run; more is told, not lost
MOST_CARRIED_BYTES = 15_000_000  # of one archive that travels
STEPS_BETWEEN_LINES = 100  # of metrics that are packed: a line for every step would weigh more than the weights


class Run:
    def __init__(self, row, seed, state, results):
        self.row, self.seed = row, seed
        self.name = f"{row.name}-seed{seed}"
        self.folder = os.path.join(state, self.name)
        self.result_path = os.path.join(results, self.name + ".json")

    def is_done(self):
        return os.path.exists(self.result_path)

    def has_begun(self):
        return os.path.exists(os.path.join(self.folder, "recipe.toml"))

    def snapshots(self):
        """(step, file name), the newest last."""
        folder = os.path.join(self.folder, "snapshots")
        found = [(int(match[1]), match[0]) for name in (os.listdir(folder) if os.path.isdir(folder) else [])
                 if (match := re.fullmatch(r"step_(\d+)\.safetensors", name))]
        return sorted(found)

    def steps_done(self):
        return self.row.total_steps if self.is_done() else max((step for step, _ in self.snapshots()), default=0)

    def seconds_left(self):
        return 0 if self.is_done() else rows.estimated_seconds(self.row, self.seed, self.steps_done())

    def metrics(self):
        path = os.path.join(self.folder, "metrics.jsonl")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [line for line in file if line.endswith("}\n")]  # a process that was killed may leave half a line

    def parts(self):
        path = os.path.join(self.folder, PARTS)
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return json.load(file)

    def add_part(self, part):
        write_whole(os.path.join(self.folder, PARTS), json.dumps(self.parts() + [part], indent=1).encode())

    def write_result(self, said):
        """From what snug said at the end of the run's last process."""
        parts, settings = self.parts(), rows.settings_of(self.row, self.seed)
        tests = [line for line in map(json.loads, self.metrics()) if "test_accuracy" in line]
        peaks = [line["measured_peak_bytes"] for line in tests + parts if "measured_peak_bytes" in line] + [said["measured_peak_bytes"]]
        timed = [part for part in parts if part["images_per_second"] > 0 and part["last_step"] > part["first_step"]]
        images = sum(part["last_step"] - part["first_step"] for part in timed) * rows.BATCH
        seconds_in_steps = sum((part["last_step"] - part["first_step"]) * rows.BATCH / part["images_per_second"] for part in timed)
        result = {
            "row": self.row.name, "seed": self.seed, "model": self.row.model, "precision": said["precision"], "nonzero": self.row.nonzero,
            "batch": said["batch"], "microbatch": self.row.microbatch, "statistics_group": settings["statistics_group"],
            "true_microbatch": self.row.is_true(self.seed), "checkpoint": said["checkpoint"], "budget": settings["budget"] or None,
            "learning_rate": self.row.rate, "validation": self.row.validation,
            "planned_peak_bytes": said["planned_peak_bytes"], "measured_peak_bytes": max(peaks), "flops_ratio": said["flops_ratio"],
            "epochs": 0 if self.row.steps else self.row.epochs, "steps": said["steps"],
            "best_test_accuracy": said["best_test_accuracy"], "last_test_accuracy": said["test_accuracy"],
            "images_per_second": round(images / seconds_in_steps, 1) if seconds_in_steps else None,
            "seconds": round(sum(part["seconds"] for part in parts), 1), "jobs_at_once": max(part["jobs_at_once"] for part in parts),
            "device": parts[-1]["device"], "commit": parts[-1]["commit"],
            "commits": list(dict.fromkeys(part["commit"] for part in parts)),
            "test_accuracies": [line["test_accuracy"] for line in tests],
        }
        write_whole(self.result_path, (json_lines(result) + "\n").encode())

    def pack(self):
        """What resumes the run elsewhere, as the bytes of a .tar.xz: recipe, plan, thinned metrics, the newest snapshot. A snapshot's metadata
        knows the best accuracy so far, so the best weights stay behind."""
        files = {name: read_bytes(os.path.join(self.folder, name)) for name in ("recipe.toml", "plan.txt", PARTS) if os.path.exists(os.path.join(self.folder, name))}
        files["metrics.jsonl"] = "".join(filter(is_kept, self.metrics())).encode()
        if newest := self.snapshots()[-1:]:
            files["snapshots/" + newest[0][1]] = read_bytes(os.path.join(self.folder, "snapshots", newest[0][1]))
        return lzma.compress(tar_of(files), preset=2)

    def unpack(self, packed):
        """Replaces the run in the folder, unless that is as far."""
        files = files_of(lzma.decompress(packed))
        steps = [int(match[1]) for name in files if (match := re.fullmatch(r"snapshots/step_(\d+)\.safetensors", name))]
        if self.has_begun() and max(steps, default=0) <= self.steps_done():
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        for name, content in files.items():
            write_whole(os.path.join(self.folder, name), content)
        return True


def is_kept(line):
    values = json.loads(line)
    return "loss" not in values or values["step"] % STEPS_BETWEEN_LINES == 0


def json_lines(values):
    """One key a line, lists on theirs."""
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in values.items()) + "\n}"


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write_whole(path, content):
    """Under another name first: a file is whole or not there."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "wb") as file:
        file.write(content)
    os.replace(path + ".new", path)


def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def files_of(tar_bytes):
    with tarfile.open(fileobj=io.BytesIO(tar_bytes)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar.getmembers() if member.isfile()}


def carry_away(files, folder):
    """Files into archives carry_1.tar, ... of at most MOST_CARRIED_BYTES: few files travel more easily than many. Those of an earlier call go."""
    for name in carried(folder):
        os.remove(name)
    archives = []
    for name, content in sorted(files.items(), key=lambda item: -len(item[1])):
        room = lambda archive: sum(len(other) + 2048 for other in archive.values()) + len(content) + 12_288 <= MOST_CARRIED_BYTES
        archive = next(filter(room, archives), None)
        if archive is None:
            archives.append(archive := {})
        archive[name] = content
    for number, archive in enumerate(archives, 1):
        write_whole(os.path.join(folder, f"carry_{number}.tar"), tar_of(archive))
    return len(archives)


def carried(folder):
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if re.fullmatch(r"carry_\d+\.tar", name)]


def results_in(folder):
    """Of finished runs, in archives that carry_away made."""
    return {name: content for path in carried(folder) for name, content in files_of(read_bytes(path)).items() if name.endswith(".json")}


def bring_back(folder, runs_by_name, results):
    """What carry_away made: results into `results`, runs into their folders. Names of the runs that it moved forward."""
    brought = []
    for path in carried(folder):
        for name, content in files_of(read_bytes(path)).items():
            base = os.path.basename(name)
            run = runs_by_name.get(base.removesuffix(".tar.xz"))
            if base.endswith(".json"):
                write_whole(os.path.join(results, base), content)
            elif run is not None and run.unpack(content):
                brought.append(run.name)
    return brought
