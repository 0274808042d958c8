#!/usr/bin/env python3
"""Packs the handwritten digits into src/data/embedded/digits.inc: a list of C++ strings, one of 65 characters an image.

The label as a digit, then 64 pixels row by row, 'a' for 0 up to 'q' for 16. The source is the file optdigits.tes of the UCI
repository, or scikit-learn's copy of it (digits.csv.gz): 64 numbers and the label a line, separated by commas.

usage: scripts/pack_digits.py <optdigits.tes | digits.csv.gz>
"""

import gzip
import pathlib
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "data" / "embedded" / "digits.inc"
IMAGES = 1797


def packed(line):
    *pixels, label = (int(float(field)) for field in line.split(","))
    if len(pixels) != 64 or not all(0 <= pixel <= 16 for pixel in pixels) or not 0 <= label <= 9:
        sys.exit(f"pack_digits: not 64 pixels of 0..16 and a digit: {line.strip()}")
    return f'"{label}{"".join(chr(ord("a") + pixel) for pixel in pixels)}",\n'


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    data = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    lines = [packed(line) for line in data.decode("ascii").splitlines() if line.strip()]
    if len(lines) != IMAGES:
        sys.exit(f"pack_digits: {len(lines)} images instead of {IMAGES}")
    TARGET.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
