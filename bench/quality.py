#!/usr/bin/env python3
"""`./dev bench quality`: how good are our vectors on public sets, beside the reference library's on the same texts?

SciFact and Cranfield (nDCG@10, Cranfield with its grades) and STS-B in English (Spearman). Texts go through `bouquet
embed`: our tokenizer, our engine, the model folder's own length limit and pooling; the reference run is
sentence-transformers on torch in float32. Writes bench/results/DATE-quality.json. Exit code 1 when a figure is further
from the reference's than 0.0005 (bfloat16: 0.002); 77, saying so, without the data that BOUQUET_DATA names.
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
try:
    import numpy as np

    import machine
    import result_file
    from cosine import largest_distance
    from quality_sets import READERS, MissingData, data_folder, read_sets
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = {"float32": 0.0005, "bfloat16": 0.002}


def our_rows(bouquet, model, texts, dtype, folder):
    output = folder / f"ours-{dtype}.npy"
    subprocess.run([str(bouquet), "embed", str(model), str(texts), "--format", "jsonl", "--field", "text",
                    "--output", str(output), "--dtype", dtype, "--device", "cpu"], check=True)
    return np.load(output)


def reference_rows(python, model, texts, count, folder):
    """By as many processes as there are cores, each with every so many-th text. None where the library is missing."""
    imports = [str(python), "-c", "import torch, sentence_transformers"]
    if subprocess.run(imports, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    parts = len(os.sched_getaffinity(0))
    outputs = [folder / f"reference-{part}.npy" for part in range(parts)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1",
                   "CUDA_VISIBLE_DEVICES": "", "TQDM_MININTERVAL": "10"}
    running = [subprocess.Popen([str(python), str(ROOT / "bench/quality_reference.py"), str(model), str(texts), str(output),
                                 str(part), str(parts)], env=environment) for part, output in enumerate(outputs)]
    if any([process.wait() for process in running]):
        raise SystemExit("quality: the reference library failed")
    shares = [np.load(output) for output in outputs]
    rows = np.empty((count, shares[0].shape[1]), np.float32)
    for part, share in enumerate(shares):
        rows[part::parts] = share
    return rows


def write_texts(path, texts):
    """For both sides. Bouquet refuses a text that is empty, as two of Cranfield's are; a space has the same tokens."""
    path.write_text("".join(json.dumps({"text": text or " "}) + "\n" for text in texts))


def timed(what, work):
    print(f"{what} …", flush=True)
    start = time.monotonic()
    result = work()
    seconds = time.monotonic() - start
    print(f"{what}: {seconds:.0f} s", flush=True)
    return result, seconds


def slices(sets):
    """Which rows belong to which set."""
    begin, found = 0, {}
    for one in sets:
        found[one.name] = slice(begin, begin + len(one.texts))
        begin += len(one.texts)
    return found


def compare(sets, ours, reference):
    """A row for each set: the figure of the reference, of each dtype, and whether all are within tolerance."""
    rows, where = [], slices(sets)
    for one in sets:
        part = where[one.name]
        row = {"set": one.name, "metric": one.metric, "texts": len(one.texts),
               "reference": one.score(reference[part]) if reference is not None else None,
               "ours": {dtype: one.score(vectors[part]) for dtype, vectors in ours.items()}}
        if reference is not None:
            row["largest_one_minus_cosine"] = {dtype: largest_distance(vectors[part], reference[part])
                                               for dtype, vectors in ours.items()}
            row["is_within"] = all(abs(figure - row["reference"]) <= TOLERANCE[dtype] for dtype, figure in row["ours"].items())
        rows.append(row)
    return rows


def show(rows):
    for row in rows:
        reference = "-" if row["reference"] is None else f"{row['reference']:.4f}"
        ours = ", ".join(f"{dtype} {figure:.4f}" for dtype, figure in row["ours"].items())
        print(f"{row['set']:>10} {row['metric']:<9} reference {reference}; {ours}"
              + ("" if row.get("is_within", True) else "   OUT OF TOLERANCE"), flush=True)


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench quality", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "build/models/all-MiniLM-L6-v2")
    parser.add_argument("--sets", nargs="+", choices=list(READERS), default=list(READERS))
    parser.add_argument("--dtypes", nargs="+", choices=list(TOLERANCE), default=list(TOLERANCE))
    parser.add_argument("--bouquet", type=Path, default=ROOT / "build/bench/bouquet")
    parser.add_argument("--python", type=Path, default=sys.executable, help="which runs the reference library")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    if not (options.model / "config.json").exists():
        parser.error(f"no model folder: {options.model}")
    return options


def main():
    arguments = parse()
    try:
        sets = read_sets(arguments.sets, data_folder())
    except MissingData as missing:
        print(f"skipped: {missing}")
        return 77
    now, commit = datetime.datetime.now(datetime.timezone.utc), machine.commit(arguments.bouquet.parent)
    model = arguments.model.resolve()
    texts = [text for one in sets for text in one.texts]
    print(f"{model.name}: {len(texts)} texts of {', '.join(one.name for one in sets)}", flush=True)
    ours, seconds = {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = folder / "texts.jsonl"
        write_texts(source, texts)
        for dtype in arguments.dtypes:
            ours[dtype], seconds[f"Bouquet {dtype}"] = timed(
                f"bouquet embed --dtype {dtype}", lambda dtype=dtype: our_rows(arguments.bouquet, model, source, dtype, folder))
        reference, seconds["reference"] = timed(
            "sentence-transformers in float32", lambda: reference_rows(arguments.python, model, source, len(texts), folder))
    rows = compare(sets, ours, reference)
    show(rows)
    if reference is None:
        print("skipped: the reference library is not there, so nothing was compared and no file is written")
        return 77
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": commit,
              "command": result_file.command_line("./dev bench quality", sys.argv[1:]), "machine": machine.describe(),
              "model": model.name, "dtype": " and ".join(arguments.dtypes), "tolerance": TOLERANCE, "seconds": seconds,
              "quality": rows}
    result_file.say_written(result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M-quality")))
    return 0 if all(row["is_within"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
