#!/usr/bin/env python3
"""`./dev bench tokenizers`: our tokenizers beside the reference library's (tokenizers), one thread each, on the same texts.

Each tokenizer of the test data on English abstracts (SciFact) and on 388 languages (UDHR): both sides take turns, a ratio is
the median over the turns, and ids must agree in number (text/parity.py compares them one by one). Loading from the folder's
files, warm. Then ours alone on hostile texts of 1.25 to 10 MB, each twice as long as the one before: a growth of 1.0 is twice
the time for twice the text. Writes bench/results/DATE-tokenizers.json; 77, saying so, without the data that BOUQUET_DATA
names.

  ./dev bench tokenizers
  ./dev bench tokenizers --tokenizers qwen3 xlm-roberta --quick
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the library is loaded: one thread
os.environ["RAYON_NUM_THREADS"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "text"))
try:
    import tokenizers

    import machine
    import result_file
    import sentencepiece_json
    from quality_sets import MissingData, data_folder
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# Folder of the test data, and what kind it is of. The reference reads tokenizer.json only, or vocab.json and merges.txt; what
# stands for a SentencePiece model is converted before the clock starts.
KINDS = {"bert-uncased": "WordPiece", "mbert-uncased": "WordPiece", "qwen3": "byte-level BPE",
         "olmo-modernbert-vocab": "byte-level BPE", "roberta-base": "byte-level BPE", "xlm-roberta": "Unigram",
         "t5-small": "Unigram", "mistral-spm": "SentencePiece BPE"}
TEXTS = {"English abstracts": "scifact/corpus.jsonl", "388 languages": "udhr/udhr.jsonl"}
BATCH = 256
MB = 1_000_000
GROWING = {"one letter": "a", "one word and a space": "tokenizer ", "spaces": " ", "combining marks": "\u0301",
           "a letter with marks": "e\u0301\u0323", "Chinese": "\u4e00\u4e8c", "digits": "7", "line ends": "\r\n",
           "emoji with joiners": "\U0001f469\u200d\U0001f4bb"}
SIZES = [MB * 5 // 4 << step for step in range(4)]


class Ours:
    """bench/tokenizer_timing.cc on one tokenizer and some texts."""

    def __init__(self, binary, folder, texts, loads=1):
        self._file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
        self._file.write("".join(json.dumps(text) + "\n" for text in texts))
        self._file.flush()
        self._process = subprocess.Popen([str(binary), str(folder), self._file.name, str(loads)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self.load_ms = self._answer()["load_ms"]

    def encode(self, which="all"):
        """(seconds, number of ids)."""
        self._process.stdin.write(f"{which}\n")
        self._process.stdin.flush()
        found = self._answer()
        return found["seconds"], found["ids"]

    def peak_mb(self):
        with open(f"/proc/{self._process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 / MB for line in file if line.startswith("VmHWM:"))

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"tokenizer_timing ended with exit code {self._process.wait()}")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._file.close()


def reference_of(folder):
    """Returns (the reference, milliseconds of loading)."""
    model = folder / "tokenizer.model"
    converted = json.dumps(sentencepiece_json.tokenizer_json(model.read_bytes())) if model.exists() else None
    start = time.perf_counter()
    if converted or (folder / "tokenizer.json").exists():
        tokenizer = (tokenizers.Tokenizer.from_str(converted) if converted
                     else tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")))
        tokenizer.no_truncation()
        tokenizer.no_padding()
    else:
        tokenizer = tokenizers.ByteLevelBPETokenizer.from_file(str(folder / "vocab.json"), str(folder / "merges.txt"))
    return tokenizer, 1e3 * (time.perf_counter() - start)


def encode_reference(tokenizer, texts):
    """(seconds, number of ids), without what only Python costs: in batches, and no offsets."""
    start, count = time.perf_counter(), 0
    for begin in range(0, len(texts), BATCH):
        encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
        count += sum(map(len, encode(texts[begin:begin + BATCH], add_special_tokens=False)))
    return time.perf_counter() - start, count


def texts_of(path):
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.append(f"{row['title']} {row['text']}" if "title" in row else row["text"])
    return found


def compare(binary, name, folder, texts, plan):
    """{"loading": …, "texts": [a row for each set of texts]}."""
    loads = [reference_of(folder)[1] for _ in range(plan.loads)]
    reference = reference_of(folder)[0]
    rows, ours_ms = [], []
    for title, lines in texts.items():
        size = sum(len(line.encode()) for line in lines)
        with Ours(binary, folder, lines, plan.loads) as ours:
            ours_ms += ours.load_ms
            (_, count), (_, expected) = ours.encode(), encode_reference(reference, lines)  # warms up
            turns = [(ours.encode()[0], encode_reference(reference, lines)[0]) for _ in range(plan.rounds)]
        rows.append({"texts": title, "mb": size / MB, "ids": count, "ids_of_reference": expected,
                     "ours_mb_per_s": size / MB / statistics.median(turn[0] for turn in turns),
                     "reference_mb_per_s": size / MB / statistics.median(turn[1] for turn in turns),
                     "ratio": statistics.median(turn[1] / turn[0] for turn in turns)})
        row = rows[-1]
        print(f"  {name:22} {title:18} {row['ours_mb_per_s']:7.1f} MB/s, reference {row['reference_mb_per_s']:6.2f} MB/s, "
              f"{row['ratio']:5.1f} x" + ("" if count == expected else f"   OTHER IDS: {count}, not {expected}"), flush=True)
    found = {"ours_ms": statistics.median(ours_ms), "reference_ms": statistics.median(loads)}
    print(f"  {name:22} loaded in {found['ours_ms']:.0f} ms, reference {found['reference_ms']:.0f} ms", flush=True)
    return {"loading": found, "texts": rows}


def grow(binary, folder, plan):
    """[{"text", "seconds": of each size, "growth": the largest, "peak_mb"}]."""
    rows = []
    for title, unit in GROWING.items():
        texts = [unit * (size // len(unit.encode())) for size in plan.sizes]
        with Ours(binary, folder, texts) as ours:
            # The sizes take turns, so that a neighbour's burst of work is not taken for growth.
            turns = [[ours.encode(index)[0] for index in range(len(texts))] for _ in range(plan.grow_rounds)]
            seconds = [min(of_size) for of_size in zip(*turns)]
            peak = ours.peak_mb()
        growth = max(b / a / 2 for a, b in zip(seconds, seconds[1:]))
        rows.append({"text": title, "seconds": seconds, "growth": growth, "peak_mb": peak})
        print(f"    {title:22} {plan.sizes[-1] / MB:.0f} MB in {seconds[-1] * 1e3:8.1f} ms, growth at most {growth:.2f}, "
              f"{peak:.0f} MB at most", flush=True)
    return rows


class Plan:
    def __init__(self, quick):
        self.loads, self.rounds, self.grow_rounds = (1, 1, 1) if quick else (5, 5, 9)
        self.sizes = SIZES[:2] if quick else SIZES


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench tokenizers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizers", nargs="+", choices=list(KINDS), default=list(KINDS), metavar="NAME",
                        help=", ".join(KINDS))
    parser.add_argument("--quick", action="store_true", help="one turn, and shorter texts, to try the script")
    parser.add_argument("--binaries", type=Path, default=ROOT / "build/bench", help="folder of what is measured")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    return parser.parse_args()


def main():
    arguments = parse()
    try:
        data = data_folder()
        texts = {title: texts_of(data / "texts" / name) for title, name in TEXTS.items()}
    except (MissingData, FileNotFoundError) as missing:
        print(f"skipped: {missing}")
        return 77
    plan = Plan(arguments.quick)
    now, commit = datetime.datetime.now(datetime.timezone.utc), machine.commit(arguments.binaries)
    binary = arguments.binaries / "tokenizer_timing"
    rows = []
    for name in arguments.tokenizers:
        folder = data / "tokenizers" / name
        row = {"tokenizer": name, "kind": KINDS[name], **compare(binary, name, folder, texts, plan)}
        rows.append({**row, "growth": grow(binary, folder, plan)})
    result = {"date": now.strftime("%Y-%m-%d %H:%M UTC"), "commit": commit,
              "command": result_file.command_line("./dev bench tokenizers", sys.argv[1:]), "machine": machine.describe(),
              "reference": f"tokenizers {tokenizers.__version__}", "sizes_mb": [size / MB for size in plan.sizes],
              "tokenizers": rows}
    result_file.say_written(result_file.write(result, arguments.out, now.strftime("%Y-%m-%d-%H%M-tokenizers")))
    agree = all(part["ids"] == part["ids_of_reference"] for row in rows for part in row["texts"])
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
