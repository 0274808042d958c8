#!/usr/bin/env python3
"""Counts what the sources are to lose, and fails when there is more of it than written down in LIMITS, or less: a number only falls.

usage: scripts/check_counts.py [--self-test]
"""
import pathlib, re, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A sentence in a text: four plain words in a row.
SENTENCE = r"""(?:[^"\\\n]|\\.)*?(?<![\w./%-])(?:[A-Za-z']+[,;:]? ){3}[A-Za-z']"""
# What is compared with a sentence: an expectation, up to what it says when it fails (<<), or the last column of a table.
PINNED = (
    r"""\b(?:EXPECT|ASSERT)_\w+\((?:[^"<;]|<(?!<)|;(?!\n)|"(?:[^"\\\n]|\\.)*")*?\"""" + SENTENCE
    + r"""|",\s*(?:"(?:[^"\\\n]|\\.)*"\s*)*?\"""" + SENTENCE + r"""(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*\s*\}"""
)

# What is counted: how, in which files of src/ it is allowed without being counted, and how many there are.
#   lines     lines with a match
#   files     files with a match
#   in tests  matches in tests/ instead of src/
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
    # Tests ask for the kind of error and the facts it names (support/messages.h); sentences are asserted in cli/messages.txt alone.
    "sentences pinned in tests": ("in tests", PINNED, (), 94),
}


def count(how, pattern, allowed, sources):
    """sources: (path below src/ or tests/, text) each."""
    expression = re.compile(pattern)
    found = 0
    for path, text in sources:
        if path.startswith(allowed):
            continue
        if how == "in tests":
            found += len(expression.findall(text))
            continue
        matches = sum(1 for line in text.splitlines() if expression.search(line))
        found += matches if how == "lines" else min(matches, 1)
    return found


def complaints(sources, tests, limits):
    for name, (how, pattern, allowed, limit) in limits.items():
        found = count(how, pattern, allowed, tests if how == "in tests" else sources)
        if found > limit:
            page = "CONTRIBUTING.md" if how == "in tests" else "docs/programs.md"
            yield f"{name}: {found}, where {limit} were left; do it without, see {page}"
        elif found < limit:
            yield f"{name}: {found}, fewer than the {limit} written down; lower the number in scripts/check_counts.py"


def self_test():
    limits = {"a": ("lines", r"&ops::", ("ops/",), 2), "b": ("files", r"\bknob\b", (), 1)}
    right = [("ops/x.cpp", "&ops::relu"), ("passes/y.cpp", "&ops::relu\n&ops::add"), ("cli/z.cpp", "knob knob\nknob")]
    assert not list(complaints(right, [], limits))
    more = right + [("plan/w.cpp", "a == &ops::relu; // knob")]
    assert [text.split(",")[0] for text in complaints(more, [], limits)] == ["a: 3", "b: 2"]
    fewer = [("cli/z.cpp", "knobs")]
    assert [text.split(",")[0] for text in complaints(fewer, [], limits)] == ["a: 0", "b: 0"]
    pinned = {"c": ("in tests", PINNED, (), 1)}
    for one in (
        'EXPECT_EQ(refusal(0), "a batch of none is not possible");',
        'EXPECT_EQ(refusal("two words", 0),\n          "flag: " + name + ": the batch of none does not fit");',
        'EXPECT_NE(error.find("there is no folder here"), npos) << error;',
        'EXPECT_TRUE(mentions(error, {"this is a whole sentence"}));',
        'Bad{"train x",\n    "it says that "\n    "there is no folder"},',
    ):
        assert not list(complaints([], [("x.cpp", one)], pinned)), one
    for none in (
        'EXPECT_TRUE(mentions(refusal(0), {"--batch", "no folder"}));',
        'EXPECT_EQ(bytes, 3) << "what is said when it fails";',
        '// EXPECT says how it is\nstd::ofstream(file) << "some text that is read";',
        'EXPECT_EQ(text, "%b = relu(%a) : f32[2x4] activation ; forward b");',
    ):
        assert [text.split(",")[0] for text in complaints([], [("x.cpp", none)], pinned)] == ["c: 0"], none


def read(folder):
    files = sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cpp", ".cu"))
    return [(str(p.relative_to(ROOT / folder)), p.read_text()) for p in files]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(complaints(read("src"), read("tests"), LIMITS))
    for text in found:
        print(f"check_counts: {text}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
