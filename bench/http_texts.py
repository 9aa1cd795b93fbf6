"""What is sent: short texts and passages that every machine has, made of the descriptions of packages; and their ids."""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "demo"))
from package_index import read_descriptions  # noqa: E402

SPECIAL_TOKENS = 2  # around each text


def short_texts(count):
    """A name and a line about it, each."""
    return [f"{package.name}: {package.text}" for package in read_descriptions()[:count]]


def token_ids(bouquet, model, texts):
    """Of each text, by `bouquet tokenize`."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    done = subprocess.run([str(bouquet), "tokenize", str(model), "-", "--format", "jsonl"], input=lines, capture_output=True,
                          text=True, check=True)
    return [json.loads(line)["ids"] for line in done.stdout.splitlines()]


def passages(texts, lengths, count, most_tokens):
    """At most `count` runs of texts, each of as many whole texts as fit in `most_tokens`. `lengths` are those of the texts
    alone, special tokens included."""
    found, parts, tokens = [], [], SPECIAL_TOKENS
    for text, length in zip(texts, lengths):
        length -= SPECIAL_TOKENS
        if parts and tokens + length > most_tokens:
            found.append(" ".join(parts))
            if len(found) == count:
                return found
            parts, tokens = [], SPECIAL_TOKENS
        parts.append(text)
        tokens += length
    return found + ([" ".join(parts)] if parts else [])
