"""Reads safetensors files without the package of that name."""
import json
import struct
from pathlib import Path

import numpy as np

TYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(path):
    """{name: array} of one file. KeyError for a type other than F32 and I64."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + length + o for o in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
