#!/usr/bin/env python3
"""Fails on an #include against the order of the folders, and on files that have grown too long.

usage: scripts/check_includes.py [--self-test]
"""

import pathlib
import re
import sys
import tempfile

MAX_LINES = 600
WARN_LINES = 450

# Folder of src/ -> the folders it stands on. What those stand on is allowed too.
STANDS_ON = {
    "base": [],
    "ir": ["base"],
    "ops": ["ir"],
    "frontend": ["ops"],
    "autodiff": ["ops"],
    "analysis": ["ops"],
    "passes": ["autodiff", "analysis"],
    "placement": ["base"],
    "plan": ["passes", "placement"],
    "backends": ["ir", "ops"],
    "runtime": ["plan", "backends"],
    "data": ["base"],
    "io": ["plan"],
    "settings": ["io", "data"],
    "train": ["runtime", "data", "io", "settings"],
    "report": ["plan"],
    "api": ["frontend", "train", "report"],
    "cli": ["api"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".cpp", ".h", ".cu", ".cuh"}


def allowed_folders(folder):
    allowed = {folder}
    for below in STANDS_ON[folder]:
        allowed |= allowed_folders(below)
    return allowed


def is_standard(bracket, name):
    """<vector>, not <fmt/format.h> or "base/error.h"."""
    return bracket == "<" and re.fullmatch(r"[a-z_0-9]+", name) is not None


def complaint(path, bracket, name):
    """Why the file (a path relative to the repository) must not include the name; None when it may."""
    top, *rest = path.parts
    target = name.split("/")[0]
    if bracket == '"' and "/" not in name:
        return f'write "{name}" with its folder, as in "base/error.h"' if top == "src" else None
    if top in ("include", "examples"):
        if is_standard(bracket, name) or (bracket == "<" and target == "snug"):
            return None
        return f"{top}/ may include only the standard library and <snug/...>, not {name}"
    if top == "src":
        folder = rest[0]
        if folder not in STANDS_ON:
            return f"src/{folder} has no place in the order of folders: add it to scripts/check_includes.py"
        if target in STANDS_ON and target not in allowed_folders(folder):
            return f"{folder} may not include {name}: it stands on {', '.join(sorted(allowed_folders(folder) - {folder})) or 'nothing'}"
        if bracket == '"' and target not in STANDS_ON and target not in ("hwy",):
            return f"{name} is not in a folder of src/; write third-party headers in angle brackets"
    return None


def check(root):
    errors, warnings = [], []
    for top in ("src", "include", "tests", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(root)
            lines = file.read_text(encoding="utf-8").splitlines()
            if top != "examples" and len(lines) > WARN_LINES:
                kind = errors if len(lines) > MAX_LINES else warnings
                kind.append(f"{path}: {len(lines)} lines; split it (at most {MAX_LINES}, better under {WARN_LINES})")
            for number, line in enumerate(lines, 1):
                if match := INCLUDE.match(line):
                    if why := complaint(path, *match.groups()):
                        errors.append(f"{path}:{number}: {why}")
    return errors, warnings


SELF_TEST = [  # file, its text, is it wrong?
    ("src/ops/relu.cpp", '#include "ir/program.h"\n#include "base/error.h"\n#include <fmt/format.h>\n', False),
    ("src/plan/plan.cpp", '#include "passes/pipeline.h"\n#include "ir/type.h"\n#include "placement/problem.h"\n', False),
    ("src/cli/main.cpp", '#include "report/html.h"\n#include "base/bytes.h"\n', False),
    ("tests/base/x_test.cpp", '#include "train/loop.h"\n#include "helper.h"\n', False),
    ("examples/a.cpp", "#include <snug/snug.h>\n#include <vector>\n", False),
    ("src/base/bytes.cpp", '#include "ir/type.h"\n', True),
    ("src/ir/type.cpp", '  #  include "ops/relu.h"\n', True),
    ("src/placement/search.cpp", '#include "ir/program.h"\n', True),
    ("src/runtime/arena.cpp", '#include "train/loop.h"\n', True),
    ("src/backends/table.cpp", '#include "plan/plan.h"\n', True),
    ("src/report/html.cpp", '#include "runtime/arena.h"\n', True),
    ("src/api/model.cpp", '#include "cli/flags.h"\n', True),
    ("src/misc/x.cpp", '#include "base/error.h"\n', True),
    ("src/ir/type2.cpp", '#include "type.h"\n', True),
    ("examples/b.cpp", '#include "base/bytes.h"\n', True),
    ("include/snug/a.h", "#include <fmt/format.h>\n", True),
    ("include/snug/b.h", '#include "base/bytes.h"\n', True),
    ("tests/base/long_test.cpp", "\n" * (MAX_LINES + 1), True),
]


def self_test():
    for name, text, wrong in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, name)
            file.parent.mkdir(parents=True)
            file.write_text(text, encoding="utf-8")
            errors, _ = check(pathlib.Path(folder))
            if bool(errors) != wrong:
                sys.exit(f"check_includes: self-test: {name} gave {errors or 'no complaint'}")
    print(f"check_includes: self-test of {len(SELF_TEST)} cases passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:]:
        sys.exit(__doc__)
    errors, warnings = check(pathlib.Path(__file__).resolve().parent.parent)
    for line in warnings:
        print(f"warning: {line}")
    for line in errors:
        print(f"error: {line}", file=sys.stderr)
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
