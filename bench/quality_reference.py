#!/usr/bin/env python3
"""Vectors of the reference library (sentence-transformers on torch, float32), for bench/quality.py.

  quality_reference.py MODEL_FOLDER TEXTS.jsonl OUT.npy PART PARTS

Takes every PARTS-th text from PART on, with one thread: processes side by side use more cores than torch's threads do.
Part 0 shows progress. Needs torch and sentence-transformers.
"""
import json
import sys
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer


def main(arguments):
    if len(arguments) != 5:
        raise SystemExit(__doc__)
    model, source, output, part, parts = *arguments[:3], int(arguments[3]), int(arguments[4])
    torch.set_num_threads(1)
    texts = [json.loads(line)["text"] for line in Path(source).read_text().splitlines()][part::parts]
    reference = SentenceTransformer(model, device="cpu", model_kwargs={"dtype": torch.float32}).eval()
    rows = reference.encode(texts, batch_size=16, show_progress_bar=part == 0, normalize_embeddings=False)
    np.save(output, rows.astype(np.float32))


if __name__ == "__main__":
    main(sys.argv[1:])
