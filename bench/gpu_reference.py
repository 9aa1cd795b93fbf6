#!/usr/bin/env python3
"""Rows of the reference library in float32 on a GPU, for bench/gpu.py, in a process that ends before anything is timed.

  gpu_reference.py REQUEST    a JSON file {"models": {NAME: FOLDER}, "ids": {NAME: [[ids], ...]}}; prints {NAME: [rows]}

Exit code 77 without torch, sentence-transformers or a GPU.
"""
import json
import sys
from pathlib import Path

try:
    import torch
    from sentence_transformers import SentenceTransformer
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)
if not torch.cuda.is_available():
    print("torch sees no GPU", file=sys.stderr)
    sys.exit(77)


def rows_of(folder, sequences):
    model = SentenceTransformer(folder, device="cuda", model_kwargs={"torch_dtype": torch.float32}).eval()
    rows = []
    for ids in sequences:
        features = {"input_ids": torch.tensor([ids], device="cuda"),
                    "attention_mask": torch.ones(1, len(ids), dtype=torch.long, device="cuda")}
        with torch.no_grad():
            rows.append(model(features)["sentence_embedding"][0].double().cpu().tolist())
    return rows


request = json.loads(Path(sys.argv[1]).read_text())
print(json.dumps({name: rows_of(folder, request["ids"][name]) for name, folder in request["models"].items()}))
