"""Public sets that say how good vectors are: SciFact, Cranfield and STS-B, read from where BOUQUET_DATA is unpacked.

A set has `name`, `metric`, `texts` (all that must be embedded, in order) and `score(rows)` of their vectors. None of the
data is part of the project.
"""
import csv
import json
import os
import re
import subprocess
from pathlib import Path

import numpy as np

from retrieval_metrics import ndcg, spearman

ROOT = Path(__file__).resolve().parents[1]
DEPTH = 10


class MissingData(Exception):
    """Which file was looked for, and where."""


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


class Retrieval:
    """Mean nDCG@10 over the queries that have judgements. `judged` is [{document's index: gain}, ...], one a query."""
    metric = f"nDCG@{DEPTH}"

    def __init__(self, name, documents, queries, judged):
        self.name = name
        self._count, self._judged = len(documents), judged
        self.texts = [*documents, *queries]

    def score(self, rows):
        rows = unit(np.asarray(rows, np.float64))
        scores = rows[self._count:] @ rows[:self._count].T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        values = [ndcg(ranked.tolist(), gains, DEPTH) for ranked, gains in zip(order, self._judged) if gains]
        return sum(values) / len(values)


class Similarity:
    """Spearman's correlation of cosines with what people said. Texts alternate: first and second of each pair."""
    metric = "Spearman"

    def __init__(self, name, pairs, said):
        self.name = name
        self._said = said
        self.texts = [text for pair in pairs for text in pair]

    def score(self, rows):
        rows = unit(np.asarray(rows, np.float64))
        return spearman((rows[::2] * rows[1::2]).sum(1).tolist(), self._said)


def read_scifact(folder):
    documents, index = [], {}
    for line in (folder / "corpus.jsonl").read_text().splitlines():
        entry = json.loads(line)
        index[str(entry["_id"])] = len(documents)
        documents.append(f"{entry['title']} {entry['text']}".strip())
    judgements = {}
    for line in (folder / "qrels.test.tsv").read_text().splitlines()[1:]:
        query, document, gain = line.split("\t")
        judgements.setdefault(query, {})[index[document]] = int(gain)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    queries = [query for query in queries if str(query["_id"]) in judgements]
    return Retrieval("SciFact", documents, [query["text"] for query in queries],
                     [judgements[str(query["_id"])] for query in queries])


def smart_fields(text):
    """Of a file in SMART's format, one dict a record: {"T": title, "W": words, ...}, each on one line."""
    records = []
    for record in re.split(r"^\.I .*$", text, flags=re.MULTILINE)[1:]:
        parts = re.split(r"^\.([A-Z])\s*$", record, flags=re.MULTILINE)[1:]
        records.append({name: " ".join(body.split()) for name, body in zip(parts[::2], parts[1::2])})
    return records


def read_cranfield(folder):
    """Title and words. Judgements name a query by its place, and grade from 1, the best, to 4; -1 is of no interest."""
    documents = [f"{record['T']} {record['W']}".strip() for record in smart_fields((folder / "cran.all.1400").read_text())]
    queries = [record["W"] for record in smart_fields((folder / "cran.qry").read_text())]
    judged = [{} for _ in queries]
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, grade = map(int, line.split())
        if grade > 0:
            judged[query - 1][document - 1] = 5 - grade
    return Retrieval("Cranfield", documents, queries, judged)


def read_stsb(folder):
    with (folder / "stsb-en-test.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    return Similarity("STS-B", [line[:2] for line in lines], [float(line[2]) for line in lines])


READERS = {"scifact": read_scifact, "cranfield": read_cranfield, "stsb": read_stsb}


def data_folder():
    """Unpacked below build/ where it is packed."""
    given = Path(os.environ.get("BOUQUET_DATA") or ROOT.parent / "shared/data")
    if not (given / "unpack").exists():
        return given
    target = ROOT / "build/test_data"
    target.parent.mkdir(exist_ok=True)
    subprocess.run(["sh", str(given / "unpack"), str(target)], check=True, stdout=subprocess.DEVNULL)
    return target


def read_sets(names, folder):
    sets = []
    for name in names:
        try:
            sets.append(READERS[name](folder / "texts" / name))
        except FileNotFoundError as error:
            raise MissingData(f"BOUQUET_DATA not found: tried {error.filename}") from error
    return sets
