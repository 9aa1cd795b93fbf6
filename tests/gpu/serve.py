#!/usr/bin/env python3
"""The whole product on a GPU: `bouquet serve --device cuda:0` over HTTP, text in, vectors out, and what bad input says.

  serve.py --bouquet PROGRAM MODEL [--device cuda:0]

MODEL is a folder with a tokenizer. Compares with sentence-transformers on the same folder in float32: 1 - cosine at
most 1e-3. Tells how long it takes from the start of the process to the first correct answer.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time
import urllib.request

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from server_process import ServerProcess  # noqa: E402

GATE = 1e-3
SECONDS_TO_ANSWER = 4
TEXTS = ["What is the boiling point of water at high altitude?", "a", "rivers carry sand and silt towards the sea, " * 12,
         "東京は日本の首都です。人口が多い。", "int main() { return a->b[c] != d ? e : f; } // comment",
         "a library lends books, maps and music to those who live near it. " * 45]
# Flags that cannot be served here, and what the one line must say.
REFUSED = [
    (["--device", "cuda:99"], "this CUDA device does not exist: cuda:99"),
    (["--device", "cuda:0", "--dtype", "float32"], "the dtype on a CUDA device must be bfloat16"),
    (["--device", "cuda:0", "--memory-fraction", "0.0002"], "--memory-fraction 0.0002 allows"),
    (["--device", "cuda:0", "--attention", "fa3"], "head"),
    (["--device", "cuda:0", "--attention", "fa9"], "fa9"),
]
# MiB that others leave free (the driver itself needs some 500 for a process), and what the one line must say.
HELD = [(150, "has no memory left for this process"), (900, "memory")]


def embed(url, texts):
    """By TEI's route, which asks for no model's name."""
    body = json.dumps({"inputs": texts}).encode()
    request = urllib.request.Request(url + "/embed", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return np.array(json.load(answer))


def check(what, is_good, details=""):
    print(f"{what}: {details} {'ok' if is_good else 'FAILED'}", flush=True)
    return is_good


def check_refusal(what, flags, part, options):
    """The server ends with the exit code of a refusal, and one line says why."""
    command = [options.bouquet, "serve", options.model, "--port", "0", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in ended.stderr.splitlines() if part in line]
    return check(what, ended.returncode in (2, 3) and len(said) == 1, said[0] if said else ended.stderr.strip() or "nothing said")


def check_held_memory(options):
    """While this process holds the device's memory but for a part."""
    results = []
    for left_mib, part in HELD:
        free, _ = torch.cuda.mem_get_info(options.device)
        held = torch.empty(free - left_mib * 2**20, dtype=torch.uint8, device=options.device)
        flags = ["--device", options.device, "--step-tokens", "65536"]
        results.append(check_refusal(f"{left_mib} MiB left by others", flags, part, options))
        del held
        torch.cuda.empty_cache()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--bouquet", required=True)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()
    # A folder in float16 would be computed as such.
    reference = SentenceTransformer(options.model, device="cpu").float()
    expected = reference.encode(TEXTS, batch_size=1).astype(np.float64)
    results = []
    started = time.monotonic()
    command = [options.bouquet, "serve", options.model, "--port", "{port}", "--device", options.device, "--log-level",
               "warning"]
    with ServerProcess(command) as server:
        first = embed(server.url, TEXTS[:1])
        seconds = time.monotonic() - started
        results.append(check("first answer", seconds <= SECONDS_TO_ANSWER,
                             f"{seconds:.2f} s after the start, ready after {server.ready_seconds:.2f} s;"))
        worst = 0.0
        for rows in [embed(server.url, TEXTS) for _ in range(3)] + [
                np.concatenate([embed(server.url, [text]) for text in TEXTS]) for _ in range(3)]:
            distance = 1 - (rows * expected).sum(-1) / np.linalg.norm(rows, axis=-1) / np.linalg.norm(expected, axis=-1)
            worst = max(worst, float(np.abs(distance).max())) if np.isfinite(distance).all() else np.inf
        results.append(check("text against sentence-transformers", worst <= GATE, f"1 - cosine at most {worst:.2e};"))
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            many = list(pool.map(lambda _: embed(server.url, TEXTS[:1])[0], range(512)))
        spread = float(np.abs(np.array(many) @ first[0] - 1).max())
        results.append(check("512 requests at once", spread <= GATE, f"1 - cosine at most {spread:.2e};"))
        with urllib.request.urlopen(server.url + "/metrics", timeout=10) as answer:
            lines = [line for line in answer.read().decode().splitlines()
                     if line.startswith("bouquet_steps_total") and not line.startswith("#")]
        replays = any("replay" in line and float(line.split()[-1]) > 0 for line in lines)
        results.append(check("metrics", replays, "; ".join(lines)))
    results += [check_refusal(" ".join(flags), flags, part, options) for flags, part in REFUSED]
    results += check_held_memory(options)
    print(f"serve: {sum(results)} of {len(results)} ok")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
