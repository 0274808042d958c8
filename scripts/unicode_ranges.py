#!/usr/bin/env python3
"""Writes src/data/text/unicode_ranges.inc: what kind of character each is and how it is written small, from Debian's package
unicode-data.

usage: scripts/unicode_ranges.py [FOLDER of its files, default /usr/share/unicode]
"""

import pathlib
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "data" / "text" / "unicode_ranges.inc"
COLUMNS = 130


def categories(folder):
    """(code point, general category) of every assigned one, in order."""
    first = None
    for line in (folder / "UnicodeData.txt").read_text(encoding="utf-8").splitlines():
        code, name, category = line.split(";")[:3]
        code = int(code, 16)
        if name.endswith(", First>"):
            first = code
            continue
        for each in range(first if name.endswith(", Last>") else code, code + 1):
            yield each, category


def lowercase(folder):
    """(code point, its lowercase) of every one that has another, in order."""
    for line in (folder / "UnicodeData.txt").read_text(encoding="utf-8").splitlines():
        fields = line.split(";")
        if fields[13]:
            yield int(fields[0], 16), int(fields[13], 16)


def property_of(folder, file, name):
    """Code points that have the property, in order."""
    for line in (folder / file).read_text(encoding="utf-8").splitlines():
        fields = line.split("#")[0].split(";")
        if len(fields) == 2 and fields[1].strip() == name:
            first, _, last = fields[0].strip().partition("..")
            yield from range(int(first, 16), int(last or first, 16) + 1)


def ranges(codes):
    found = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def steps(pairs):
    """Those with one distance to their lowercase and one step between them, as [first, last, step, distance]."""
    found = []
    for code, lower in pairs:
        last = found[-1] if found else None
        step = code - last[1] if last else 0
        if last and lower - code == last[3] and step in (1, 2) and last[2] in (0, step):
            last[1:3] = code, step
        else:
            found.append([code, code, 0, lower - code])
    return [[first, last, step or 1, distance] for first, last, step, distance in found]


def printed(name, codes):
    return printed_rows("Range", name, (f"0x{first:X}, 0x{last:X}" for first, last in ranges(codes)))


def printed_rows(row_type, name, rows):
    lines = [f"constexpr {row_type} k{name}[] = {{", "   "]
    for row in rows:
        text = f" {{{row}}},"
        if len(lines[-1]) + len(text) > COLUMNS:
            lines.append("   ")
        lines[-1] += text
    return "\n".join(lines + ["};\n"])


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1] if sys.argv[1:] else "/usr/share/unicode")
    assigned = list(categories(folder))
    version = (folder / "PropList.txt").read_text(encoding="utf-8").split("\n", 1)[0].split("-")[1].removesuffix(".txt")
    TARGET.write_text(
        f"// Made by scripts/unicode_ranges.py from Unicode {version}: the first and the last of each range.\n"
        + "".join(
            printed(name, (code for code, category in assigned if category[0] == letter))
            for name, letter in [("Letters", "L"), ("Numbers", "N"), ("Punctuation", "P"), ("Symbols", "S")]
        )
        + printed("Spaces", property_of(folder, "PropList.txt", "White_Space"))
        + printed("Cased", property_of(folder, "DerivedCoreProperties.txt", "Cased"))
        + printed("CaseIgnorable", property_of(folder, "DerivedCoreProperties.txt", "Case_Ignorable"))
        + printed_rows(
            "Lowercase", "Lowercase", (f"0x{first:X}, 0x{last:X}, {step}, {to}" for first, last, step, to in steps(lowercase(folder)))
        ),
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
