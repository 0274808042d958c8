#!/usr/bin/env python3
"""Runs clang-tidy over the sources of src/, side by side, and skips what it found clean before.

A file is skipped while it, every project header it reaches, its compile command and .clang-tidy are what they were.

usage: scripts/tidy.py <build folder with compile_commands.json> <jobs>
"""

import hashlib
import json
import multiprocessing.pool
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLEAN = ROOT / "build" / "tidy"
INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def reached_files(file, seen):
    """The file and all project files it includes, directly or not."""
    if file in seen:
        return
    seen.add(file)
    for name in INCLUDE.findall(file.read_bytes()):
        for folder in ("src", "include"):
            header = ROOT / folder / name.decode()
            if header.is_file():
                reached_files(header, seen)


def key_of(entry, tool):
    files = set()
    reached_files(pathlib.Path(entry["file"]), files)
    digest = hashlib.sha256(tool + entry["command"].encode())
    for file in sorted(files):
        digest.update(str(file).encode() + file.read_bytes())
    return digest.hexdigest()


def tidy(entry, build, tool):
    """True when the file is clean."""
    stamp = CLEAN / key_of(entry, tool)
    if stamp.exists():
        return True
    # The flags are GCC's: clang need not know every one of its warnings.
    command = ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", entry["file"]]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        stamp.touch()
        return True
    print(result.stdout or result.stderr, flush=True)
    return False


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, jobs = sys.argv[1], int(sys.argv[2])
    CLEAN.mkdir(parents=True, exist_ok=True)
    tool = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    tool += (ROOT / ".clang-tidy").read_bytes()
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text(encoding="utf-8"))
    entries = [entry for entry in commands if entry["file"].startswith(f"{ROOT}/src/") and entry["file"].endswith(".cpp")]
    with multiprocessing.pool.ThreadPool(jobs) as pool:
        clean = pool.map(lambda entry: tidy(entry, build, tool), entries, chunksize=1)
    print(f"clang-tidy: {sum(clean)} of {len(clean)} files clean")
    sys.exit(0 if all(clean) else 1)


if __name__ == "__main__":
    main()
