#!/usr/bin/env python3
"""Writes src/data/text/unicode_ranges.inc: which characters are letters, numbers and spaces, from Debian's package unicode-data.

usage: scripts/unicode_ranges.py [FOLDER of UnicodeData.txt and PropList.txt, default /usr/share/unicode]
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


def property_of(folder, name):
    """Code points that have the property, in order."""
    for line in (folder / "PropList.txt").read_text(encoding="utf-8").splitlines():
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


def printed(name, codes):
    lines = [f"constexpr Range k{name}[] = {{", "   "]
    for first, last in ranges(codes):
        text = f" {{0x{first:X}, 0x{last:X}}},"
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
        + printed("Letters", (code for code, category in assigned if category[0] == "L"))
        + printed("Numbers", (code for code, category in assigned if category[0] == "N"))
        + printed("Spaces", property_of(folder, "White_Space")),
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
