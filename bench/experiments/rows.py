"""The experiments of Low-Memory Neural Network Training (Sohoni et al.), as data: EXPERIMENTS is the one table, and a new row is one line of it.

A row trains truly, in microbatches inside a budget, or simulates its microbatches as the report does: the whole batch at once, with batch norm's
statistics over groups of the microbatch's size (--statistics-group). That is the same mathematics, and faster on a GPU.
"""
import dataclasses

BATCH = 100
TRAIN_IMAGES, VALIDATION_IMAGES, TEST_IMAGES = 50_000, 5_000, 10_000
FULL_EPOCHS, SHORT_EPOCHS = 200, 30
BYTES_STEPS = 30  # enough to measure the peak: every later step does the same

# Table 6, times 0.1; by the share of nonzero weights, or by the model where it is another one.
BASE_RATE = 0.1
RATE_MULTIPLIER = {1.0: 0.5, 0.5: 0.5, 0.4: 1, 0.3: 1, 0.2: 1, 0.1: 0.5, 0.05: 0.5}
GRID_MULTIPLIERS = (0.25, 0.5, 1, 2)
# Table 8: the fraction and the frequency of rewiring, times those of Table 5.
REWIRING = {0.5: (4, 0.5), 0.4: (1, 2), 0.3: (2, 0.5), 0.2: (2, 1), 0.1: (1, 0.5), 0.05: (1, 0.25)}
REWIRE_FRACTION, REWIRE_EVERY, REWIRE_MILESTONES = 0.01377866, (100, 200, 400, 800), (25, 80, 140, 190)
# Table 5; its 0.040 and 0.008 stand for 0.004 and 0.0008: each step multiplies by 0.2.
MILESTONES, GAMMA = (60, 120, 160), 0.2


@dataclasses.dataclass(frozen=True)
class Row:
    precision: str
    nonzero: float  # share of the convolutions' weights that are stored
    microbatch: int  # whose statistics batch norm takes
    model: str = "wrn-28-2"
    data: str = "cifar10"
    epochs: int = FULL_EPOCHS
    steps: int = 0  # instead of epochs: to measure bytes only
    seeds: int = 5
    true: bool = False  # really in microbatches, for every seed
    true_seeds: tuple = ()  # or for these alone
    budget: str = ""  # of true runs
    checkpoint: str = ""  # of true runs without a budget
    validation: bool = False  # 45,000 images to train on, tested on the other 5,000
    learning_rate: float = 0.0  # 0: by Table 6

    @property
    def name(self):
        parts = ([] if self.model == "wrn-28-2" else [self.model]) + [self.precision, f"{100 * self.nonzero:g}", str(self.microbatch)]
        if self.validation:
            parts = ["grid", *parts, f"lr{self.learning_rate:g}"]
        if self.true:
            parts += ["true"]
        if self.checkpoint:
            parts += [self.checkpoint.replace("*", "star").replace(":", "-")]
        if self.steps:
            parts += ["bytes"]
        elif self.epochs != FULL_EPOCHS:
            parts += [f"e{self.epochs}"]
        return "-".join(parts)

    @property
    def rate(self):
        return self.learning_rate or round(BASE_RATE * RATE_MULTIPLIER.get(self.nonzero, 1), 6)

    @property
    def images(self):
        return TRAIN_IMAGES - (VALIDATION_IMAGES if self.validation else 0)

    @property
    def total_steps(self):
        return self.steps or self.epochs * self.images // BATCH

    def is_true(self, seed):
        return self.true or seed in self.true_seeds or self.microbatch == BATCH


def table3(precision, share, microbatch, **more):
    return Row(precision, share / 100, microbatch, **more)


def short(precision, share, microbatch, seeds=3, **more):
    return Row(precision, share / 100, microbatch, epochs=SHORT_EPOCHS, seeds=seeds, **more)


def in_bytes(precision, share, microbatch, budget="", checkpoint="", **more):
    return Row(precision, share / 100, microbatch, steps=BYTES_STEPS, seeds=1, true=True, budget=budget, checkpoint=checkpoint, **more)


def grid(share):
    return [Row("fp16", share / 100, BATCH, epochs=SHORT_EPOCHS, seeds=1, validation=True, learning_rate=round(BASE_RATE * m, 6)) for m in GRID_MULTIPLIERS]


SHARES, MICROBATCHES = (100, 50, 40, 30, 20, 10), (100, 10, 4, 2)
SMALLER = ("wrn-22-2", "wrn-16-2", "wrn-10-2", "wrn-28-1")  # the report's widths of 1.5, 0.75 and 0.5 are not in the zoo

EXPERIMENTS = {
    # What each row of Table 3 takes inside the report's figure, for a few steps; the accuracies are of the next experiment.
    "bytes": [
        in_bytes("fp32", 100, 100, checkpoint="none"),
        in_bytes("fp16", 100, 100, "42.6MB"),
        in_bytes("fp16", 100, 10, "12.2MB"),
        in_bytes("fp16", 30, 10, "6.7MB"),
        in_bytes("fp16", 20, 10, "5.6MB"),
        in_bytes("fp16", 20, 4, "3.6MB"),
        in_bytes("fp16", 10, 4, "2.5MB"),
    ],
    "table3": [
        table3("fp32", 100, 100),
        table3("fp16", 100, 100),
        table3("fp16", 100, 10),
        table3("fp16", 30, 10, budget="6.7MB", true_seeds=(0,)),
        table3("fp16", 20, 10),
        table3("fp16", 20, 4),
        table3("fp16", 10, 4),
    ],
    "table2": [
        short("fp16", 100, 10),
        short("fp16", 100, 10, true=True),
        short("fp16", 100, 4),
        short("fp16", 100, 4, true=True),
    ],
    "figure3": [short("fp16", share, 100) for share in (*SHARES, 5)],
    "figure4": [short("fp16", 100, microbatch) for microbatch in (100, 50, 20, 10, 4, 2)],
    "figure5": [in_bytes("fp32", 100, 100, checkpoint=name) for name in ("none", "no-bn", "residual-1*", "residual-2*", "optimal:1")],
    "figure6": [short("fp32", share, 100) for share in (*SHARES, 5)],
    "figure7": [row for share in SHARES for microbatch in MICROBATCHES
                for row in (in_bytes("fp16", share, microbatch, checkpoint="residual-2*"), short("fp16", share, microbatch))],
    "figure8": [row for model in SMALLER for microbatch in (10, 4)
                for row in (in_bytes("fp16", 100, microbatch, checkpoint="residual-2*", model=model), short("fp16", 100, microbatch, model=model))],
    "grid": [row for share in (100, 30, 20, 10) for row in grid(share)],
}

# The order of work. These first, whatever else is asked for: the long true run, which takes several machines' lives.
FIRST = [("fp16-30-10", 0)]
ORDER = ("bytes", "table3", "table2", "figure4", "figure3", "figure6", "figure7", "figure8", "figure5", "grid")


def rows_by_name():
    return {row.name: row for rows in EXPERIMENTS.values() for row in rows}


def order_of_work(experiments):
    """(row, seed) pairs, each once: by experiment; within one the first seed of every row, then the second: every row has a figure early."""
    pairs = {}
    for row_name, seed in FIRST:
        if any(row.name == row_name for name in experiments for row in EXPERIMENTS[name]):
            pairs[row_name, seed] = (rows_by_name()[row_name], seed)
    for name in ORDER:
        rows = EXPERIMENTS[name] if name in experiments else []
        for seed in range(max((row.seeds for row in rows), default=0)):
            for row in rows:
                if seed < row.seeds:
                    pairs.setdefault((row.name, seed), (row, seed))
    return list(pairs.values())


def settings_of(row, seed):
    """Microbatch, statistics_group (None: the microbatch), checkpoint and budget of one run."""
    if not row.is_true(seed):
        return {"microbatch": BATCH, "statistics_group": row.microbatch, "checkpoint": "none", "budget": ""}
    checkpoint = row.checkpoint or ("" if row.budget else "none")
    return {"microbatch": row.microbatch, "statistics_group": None, "checkpoint": checkpoint, "budget": row.budget}


def numbers(values):
    return "[" + ", ".join(f"{value:g}" for value in values) + "]"


def recipe_of(row, seed, device, threads=0):
    """The run as a recipe for `snug train`. Fewer epochs shrink the schedules; rewiring stays as frequent."""
    settings, scale = settings_of(row, seed), row.epochs / FULL_EPOCHS
    lines = [f'model = "{row.model}"', f'data = "{row.data}"', f"batch = {BATCH}", f'microbatch = {settings["microbatch"]}', f'precision = "{row.precision}"']
    if settings["statistics_group"]:
        lines.append(f'statistics_group = {settings["statistics_group"]}')
    if settings["checkpoint"]:
        lines.append(f'checkpoint = "{settings["checkpoint"]}"')
    if settings["budget"]:
        lines.append(f'budget = "{settings["budget"]}"')
    lines += [f'device = "{device}"', f"seed = {seed}", "keep = 1"] + ([f"threads = {threads}"] if threads else [])
    lines.append(f"steps = {row.steps}" if row.steps else f"epochs = {row.epochs}")
    lines += ["", "[optimizer]", f"learning_rate = {row.rate:g}", "momentum = 0.9", "nesterov = true", "weight_decay = 0.0005"]
    lines += ["", "[schedule]", 'kind = "step"', f"milestones = {numbers(scale * epoch for epoch in MILESTONES)}", f"gamma = {GAMMA}"]
    if row.nonzero < 1:
        fraction, frequency = REWIRING[row.nonzero]
        lines += ["", "[sparse]", f"nonzero = {row.nonzero:g}", 'method = "dsr"',
                  f"rewire_every = {numbers([every / frequency for every in REWIRE_EVERY] + [0])}",
                  f"rewire_milestones = {numbers(scale * epoch for epoch in REWIRE_MILESTONES)}",
                  f"rewire_fraction = {fraction * REWIRE_FRACTION:.8f}", "threshold = 0.001"]
    return "\n".join(lines) + "\n"


# Images a second on an H200 with the device full of runs of the kind: what a run costs is its share of that. Measured for 1 and 8 runs.
def images_per_second(row, seed):
    if row.precision == "fp32":
        return 16_300
    if row.microbatch == BATCH:
        return 33_000
    return 23_200 if row.is_true(seed) else 22_800


def estimated_seconds(row, seed, steps_done=0):
    """Device seconds still to be spent, evaluations after every epoch included (forward alone: a third of the work)."""
    steps = max(0, row.total_steps - steps_done)
    tests = (VALIDATION_IMAGES if row.validation else TEST_IMAGES) / row.images / 3
    return steps * BATCH * (1 + tests) / images_per_second(row, seed) + (5 if row.steps else 0)
