#!/usr/bin/env python3
"""Counts what the sources are to lose, and fails when there is more of it than written down in LIMITS, or less: a number only falls.

usage: scripts/check_counts.py [--self-test]
"""
import pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What is counted: how, in which files of src/ it is allowed without being counted, and how many there are.
#   lines   lines with a match
#   files   files with a match
LIMITS = {
    # An op's facts belong on its OpDef, not into a comparison with its address.
    "ops compared by address": ("lines", r"&ops::", ("ops/", "backends/"), 18),
    # A well-known state is a field of the program; a derived one has an owner and a purpose.
    "states found by name": ("lines", r"find_state\(|required_state\(|state\.name( ==|\.starts_with\(|\.ends_with\()", (), 15),
    # One update rule among others.
    "SgdOptions": ("lines", r"\bSgdOptions\b", (), 0),
    "Narrower": ("lines", r"\bNarrower\b", (), 0),
    # A knob is one row of a table.
    "files that name momentum_bits": ("files", r"\bmomentum_bits\b", (), 11),
    "files that name compress": ("files", r"compress", (), 26),
    "files that name statistics_group": ("files", r"\bstatistics_group\b", (), 21),
}


def count(how, pattern, allowed, sources):
    """sources: (path below src/, text) each."""
    expression = re.compile(pattern)
    found = 0
    for path, text in sources:
        if path.startswith(allowed):
            continue
        matches = sum(1 for line in text.splitlines() if expression.search(line))
        found += matches if how == "lines" else min(matches, 1)
    return found


def complaints(sources, limits):
    for name, (how, pattern, allowed, limit) in limits.items():
        found = count(how, pattern, allowed, sources)
        if found > limit:
            yield f"{name}: {found}, where {limit} were left; do it without, see docs/programs.md"
        elif found < limit:
            yield f"{name}: {found}, fewer than the {limit} written down; lower the number in scripts/check_counts.py"


def self_test():
    limits = {"a": ("lines", r"&ops::", ("ops/",), 2), "b": ("files", r"\bknob\b", (), 1)}
    right = [("ops/x.cpp", "&ops::relu"), ("passes/y.cpp", "&ops::relu\n&ops::add"), ("cli/z.cpp", "knob knob\nknob")]
    assert not list(complaints(right, limits))
    more = right + [("plan/w.cpp", "a == &ops::relu; // knob")]
    assert [text.split(",")[0] for text in complaints(more, limits)] == ["a: 3", "b: 2"]
    fewer = [("cli/z.cpp", "knobs")]
    assert [text.split(",")[0] for text in complaints(fewer, limits)] == ["a: 0", "b: 0"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    files = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in (".h", ".cpp", ".cu"))
    sources = [(str(p.relative_to(ROOT / "src")), p.read_text()) for p in files]
    found = list(complaints(sources, LIMITS))
    for text in found:
        print(f"check_counts: {text}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
