#!/usr/bin/env python3
"""A training run that the operating system holds to its bytes: the address space (RLIMIT_AS) is limited to the arena and the measured overhead.

Usage: bench/held_by_system.py [--model wrn-28-2] [--batch 100] [--budget 64MB] [--steps 3] [--threads 1] [--build build/release]
First a free run says what the process maps at its fullest: the arena and the overhead beside it. Then: a run limited to exactly that much trains
to the same loss; a run limited to little more than what is mapped before the arena is refused it and says what it needs; with one page
less than that the arena is refused, with that page it is not (what then fails is a library that gets no room for its code).
"""
import argparse, json, os, re, resource, shutil, subprocess, sys, tempfile

PAGE = resource.getpagesize()
# For the order in which two threads grow the one heap: a few pages.
SLACK = 256 << 10


def train(options, folder, limit=None):
    out = os.path.join(folder, "run")  # always the same: a longer name would shift the heap, and with it a page or two
    shutil.rmtree(out, ignore_errors=True)
    command = [os.path.join(options.build, "snug"), "train", options.model, "--batch", str(options.batch), "--budget", options.budget, "--steps",
               str(options.steps), "--threads", str(options.threads), "--out", out, "--json"]

    def hold():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=hold, env={**os.environ, "MALLOC_ARENA_MAX": "1"})
    return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None, done.stderr.strip().splitlines()[-1:]


def expect(true, what, seen):
    print(("ok    " if true else "WRONG ") + what)
    if not true:
        sys.exit(f"held_by_system: {seen}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="wrn-28-2")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--budget", default="64MB")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        code, free, said = train(options, folder)
        expect(code == 0, "a run without a limit", said)
        mapping = -(-free["planned_peak_bytes"] // PAGE) * PAGE + 2 * PAGE  # whole pages between two guard pages
        overhead = free["peak_mapped_bytes"] - mapping
        print(f"      arena {free['planned_peak_bytes']:,} bytes, mapped beside it at the fullest {overhead:,}")
        code, held, said = train(options, folder, mapping + overhead + SLACK)
        expect(code == 0 and held["train_loss"] == free["train_loss"], f"held to {mapping + overhead + SLACK:,} bytes: the same loss", said)
        # Part of the overhead is mapped before the arena, part behind it: less and less, until it is the arena that is refused.
        limit, needed = overhead, None
        while limit > 0 and needed is None:
            code, _, said = train(options, folder, limit)
            needed = re.search(r"or allow (\d+)$", said[0]) if code == 3 and said else None
            limit -= mapping // 2
        expect(needed is not None, "held to less than arena and overhead: the arena is refused", said)
        print("      " + said[0])
        needed = int(needed.group(1))
        code, _, said = train(options, folder, needed - PAGE)
        expect(code == 3 and "refuses an arena" in said[0], f"held to {needed - PAGE:,} bytes, a page less than the arena needs: refused", said)
        _, _, said = train(options, folder, needed)
        expect("refuses an arena" not in " ".join(said), f"held to {needed:,} bytes: the arena is there", said)


if __name__ == "__main__":
    main()
