#!/usr/bin/env python3
"""Part of the ctest fixture `test_data`: puts the Unicode Consortium's files that tests read into TARGET, unpacked.

    unpack_unicode_data.py TARGET

They are the distribution's package unicode-data. Without it this does nothing, and the tests skip.
"""

import bz2
import pathlib
import sys

PACKAGE = pathlib.Path("/usr/share/unicode")
NAMES = ("NormalizationTest.txt", "DerivedAge.txt")


def unpack(name, target):
    """The package compresses large files; which ones depends on its version."""
    plain, packed = PACKAGE / name, PACKAGE / (name + ".bz2")
    if packed.exists():
        content = bz2.decompress(packed.read_bytes())
    elif plain.exists():
        content = plain.read_bytes()
    else:
        return f"none ({plain} does not exist); tests that need it skip"
    target.mkdir(parents=True, exist_ok=True)
    (target / name).write_bytes(content)
    return f"unpacked in {target}"


if __name__ == "__main__":
    for file_name in NAMES:
        print(f"{file_name}: {unpack(file_name, pathlib.Path(sys.argv[1]))}")
