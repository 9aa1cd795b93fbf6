#!/usr/bin/env python3
"""Copies a model folder with its float32 weights rounded to float16: half the bytes to carry to another machine.

  make_f16_folder.py MODEL OUT

Needs numpy and safetensors.
"""

import pathlib
import shutil
import sys

import numpy as np
from safetensors.numpy import load_file, save_file


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    if target.exists():
        raise SystemExit(f"make_f16_folder: {target} exists")
    shutil.copytree(source, target)
    for path in target.rglob("*.safetensors"):
        tensors = load_file(path)
        rounded = {name: values.astype(np.float16) if values.dtype == np.float32 else values
                   for name, values in tensors.items()}
        save_file(rounded, path, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
