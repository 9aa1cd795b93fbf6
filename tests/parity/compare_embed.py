#!/usr/bin/env python3
"""Compares `bouquet embed` with sentence-transformers on the same folder, text to vector.

  compare_embed.py BOUQUET MODEL [--dtype float32] [--flag=--threads=1]

Every text of a varied set alone, then files of 2, 16, 17 and 256 of them, which the server batches as
it likes. Prints the worst cosine of each and exits 1 when one is below the gate: 0.99999 in float32,
0.999 in bfloat16; and, in float32, when a row moves by more than 1e-6 between compositions.
Needs sentence-transformers and numpy.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
from sentence_transformers import SentenceTransformer

from make_goldens import TEXTS

WORDS = "river stone light paper winter market engine garden signal copper".split()


def texts_of_every_length():
    """1 to about 600 tokens."""
    draw = random.Random(20261129)
    return [" ".join(draw.choices(WORDS, k=length)) for length in (1, 2, 7, 15, 16, 31, 63, 127, 254, 300, 600)]


def embed(bouquet, model, texts, flags):
    with tempfile.TemporaryDirectory() as folder:
        source, output = pathlib.Path(folder) / "texts.jsonl", pathlib.Path(folder) / "rows.npy"
        source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        subprocess.run([bouquet, "embed", model, source, "--format", "jsonl", "--field", "text",
                        "--output", output, *flags], check=True, stderr=subprocess.PIPE)
        rows = np.load(output)
    assert rows.shape[0] == len(texts), (rows.shape, len(texts))
    return rows.astype(np.float64)


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bouquet")
    parser.add_argument("model")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--flag", action="append", default=[], help="one more argument of `bouquet embed`")
    arguments = parser.parse_args()
    flags = ["--dtype", arguments.dtype, *arguments.flag]
    gate = {"float32": 0.99999, "bfloat16": 0.999}[arguments.dtype]

    texts = TEXTS + texts_of_every_length()
    reference = SentenceTransformer(arguments.model, device="cpu").float().encode(texts, batch_size=1).astype(np.float64)
    alone = np.concatenate([embed(arguments.bouquet, arguments.model, [text], flags) for text in texts])
    worst = {"alone": cosines(alone, reference)}
    drift = 0.0
    draw = random.Random(1)
    for count in (2, 16, 17, 256):
        chosen = [draw.randrange(len(texts)) for _ in range(count)]
        rows = embed(arguments.bouquet, arguments.model, [texts[i] for i in chosen], flags)
        worst[f"{count} together"] = cosines(rows, reference[chosen])
        drift = max(drift, float(1 - cosines(rows, alone[chosen]).min()))

    failed = arguments.dtype == "float32" and drift > 1e-6
    for name, values in worst.items():
        failed = failed or values.min() < gate
        print(f"{name:>14}: worst cosine {values.min():.9f}, text {int(values.argmin())}")
    print(f"largest 1 - cosine between compositions: {drift:.2e}")
    print("FAILED" if failed else f"all at least {gate}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
