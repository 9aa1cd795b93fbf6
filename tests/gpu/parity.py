#!/usr/bin/env python3
"""Vectors of the CUDA engine against the reference library in float32, on the same weights and token ids.

  parity.py [--binary engine_timing] [--device cuda:0] [--attention auto] [--quick] [--large]

For each model: sequences of many lengths alone and in mixed batches of up to 256, with steps launched one
by one and captured; 1 - cosine of every row is at most 1e-3. A replay must give the bits of the eager run.
--quick leaves out lengths over 1000; --large adds the true-size shapes. Needs torch, sentence-transformers,
numpy and safetensors. Ends with a summary line, and with 1 if anything failed.
"""

import argparse
import pathlib
import random
import sys
import tempfile
import time

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import make_random_model  # noqa: E402
from engine_process import EngineProcess, default_binary  # noqa: E402

GATE = 1e-3
LENGTHS = [1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 4096, 8192]
TINY = {
    "tiny bert": [],
    "tiny bert, every pooling": ["--pooling", "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken",
                                 "--no-normalize"],
    "tiny bert, dense": ["--pooling", "max", "mean", "--dense", "16", "--dense-residual"],
    "tiny xlm-roberta": ["--family", "xlm-roberta"],
    "tiny distilbert": ["--family", "distilbert"],
    "tiny mpnet": ["--family", "mpnet"],
    "tiny mpnet": ["--family", "mpnet"],
    "small mpnet": ["--shape", "small-mpnet"],
    "tiny distilbert": ["--family", "distilbert"],
    "tiny qwen3 causal": ["--family", "qwen3-causal"],
    "tiny qwen3 bidirectional": ["--family", "qwen3-bidirectional"],
}
TRUE_SIZE = {
    "minilm-l6 shape": ["--shape", "minilm-l6"],
    "bge-base shape": ["--shape", "bge-base"],
    "mpnet-base shape": ["--shape", "mpnet-base"],
    "mpnet-base shape": ["--shape", "mpnet-base"],
    "qwen3-0.6b shape, causal": ["--shape", "qwen3-0.6b", "--family", "qwen3-causal", "--dtype", "BF16"],
    "qwen3-0.6b shape, bidirectional": ["--shape", "qwen3-0.6b", "--family", "qwen3-bidirectional"],
    "xlm-roberta-large shape": ["--shape", "xlm-roberta-large"],
}
# Head sizes that every attention kernel serves: 64, and 128 with and without a causal mask.
EVERY_KERNEL = ("bge-base shape", "qwen3-0.6b shape, causal", "qwen3-0.6b shape, bidirectional")


class Reference:
    def __init__(self, folder):
        self._model = SentenceTransformer(str(folder), device="cuda", model_kwargs={"torch_dtype": torch.float32}).eval()
        self._vocabulary = self._model[0].auto_model.config.vocab_size
        self.longest = self._longest()

    def _longest(self):
        config = self._model[0].auto_model.config
        starts_behind_padding = config.model_type in make_random_model.STARTS_BEHIND_PADDING
        return config.max_position_embeddings - (2 if starts_behind_padding else 0)

    def ids(self, draw, length):
        return [draw.randrange(5, self._vocabulary) for _ in range(length)]

    def row(self, ids):
        features = {"input_ids": torch.tensor([ids], device="cuda"),
                    "attention_mask": torch.ones(1, len(ids), dtype=torch.long, device="cuda")}
        with torch.no_grad():
            return self._model(features)["sentence_embedding"][0].double().cpu().numpy()


def distance(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return 1 - (a * b).sum(-1) / np.maximum(np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1), 1e-300)


def batches_of(sequences, draw, max_tokens):
    """Each alone, then mixed: all in random order, and 256 short ones."""
    alone = [[i] for i in range(len(sequences))]
    order = list(range(len(sequences)))
    draw.shuffle(order)
    mixed, tokens = [[]], 0
    for index in order:
        if mixed[-1] and tokens + len(sequences[index]) > max_tokens:
            mixed.append([])
            tokens = 0
        mixed[-1].append(index)
        tokens += len(sequences[index])
    short = [i for i, ids in enumerate(sequences) if len(ids) <= 17]
    many = [[draw.choice(short) for _ in range(256)]]
    return alone + mixed + many


def check(name, folder, options):
    started = time.time()
    draw = random.Random(name)
    reference = Reference(folder)
    longest = min(reference.longest, 1000 if options.quick else 8192)
    lengths = [n for n in LENGTHS if n <= longest]
    sequences = [reference.ids(draw, n) for n in lengths]
    sequences += [reference.ids(draw, draw.randrange(1, min(longest, 700))) for _ in range(20)]
    expected = np.array([reference.row(ids) for ids in sequences])
    del reference
    torch.cuda.empty_cache()

    indices = batches_of(sequences, draw, max(longest, 2048))
    batches = [[sequences[i] for i in batch] for batch in indices]
    wanted = expected[[i for batch in indices for i in batch]]
    kernels = [options.attention]
    if name in EVERY_KERNEL and options.attention == "auto":
        kernels += ["own", "fa2", "fa3"]
    print(f"{name}: {len(wanted)} rows, {time.time() - started:.1f} s for the reference", flush=True)
    return all([compare(name, folder, attention, batches, wanted, options) for attention in kernels])


def compare(name, folder, attention, batches, wanted, options):
    """Rows with one attention kernel (or the chooser's), launched one by one and as graphs, beside `wanted`."""
    started = time.time()
    results = {}
    for graphs in ("off", "lazy"):
        with EngineProcess(options.binary, folder, device=options.device, attention=attention, graphs=graphs,
                           max_step_tokens=8192) as engine:
            # The third run of a size is a replay.
            results[graphs] = engine.rows(batches, repeat=3 if graphs == "lazy" else 1)
            load = engine.facts["load_seconds"]
    found = distance(results["off"], wanted)
    is_close = bool(np.all(found <= GATE))  # a NaN is not
    is_same = np.array_equal(results["off"].view(np.uint32), results["lazy"].view(np.uint32))
    worst = int(np.nanargmax(found))
    in_batch = next(len(batch) for i, batch in enumerate(batches) if worst < sum(map(len, batches[:i + 1])))
    print(f"  attention {attention}: 1 - cosine at most {found.max():.2e} (mean {found.mean():.2e}; in a batch of "
          f"{in_batch} sequences), replay {'equal' if is_same else 'DIFFERS'}, load {load:.2f} s, "
          f"{time.time() - started:.1f} s {'ok' if is_close and is_same else 'FAILED'}", flush=True)
    return is_close and is_same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--attention", default="auto")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true", help="models of true size too, some with every attention kernel")
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--model", type=pathlib.Path, help="a real folder to check too")
    options = parser.parse_args()
    options.binary = options.binary or default_binary(ROOT)
    results = []
    with tempfile.TemporaryDirectory() as root:
        for name, arguments in {**TINY, **(TRUE_SIZE if options.large else {})}.items():
            if options.only not in name:
                continue
            folder = pathlib.Path(root) / name.replace(" ", "-")
            make_random_model.write_model(folder, make_random_model.parse([str(folder), *arguments]))
            results.append(check(name, folder, options))
    if options.model:
        results.append(check(options.model.name, options.model, options))
    print(f"parity: {sum(results)} of {len(results)} models ok")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
