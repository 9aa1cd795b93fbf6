#!/usr/bin/env python3
"""Compares random regular expressions, as Split or as Replace, with the reference library's (pip install tokenizers==0.23.3).

    parity_expressions.py PRINT_IDS [COUNT [SEED]]     exits 1 at a difference; 500 expressions, a random seed that is printed

Left out and counted: what we refuse by name, and what the reference refuses or gives up on. An expression that backtracks
without end for us is counted as given up, too: the reference has no limit for a whole text.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import parity
from random_strings import RandomStrings
from tokenizers import Tokenizer

CLASSES = (r"\p{L} \p{N} \s \S \w \W \d \D \p{Lu} \p{Ll} \p{M} \P{M} \p{P} \p{S} \p{Z} \p{Han} \p{^L} \p{Cc} \p{Hiragana} "
           r"\p{Lo} \p{Latin} \p{Cyrillic} \p{Sc} \p{Cn}").split()
LITERALS = ["a", "b", "\u00e9", "'s", "\u4e2d", r"\.", " ", r"\r", r"\n", r"\t", r"\x{4e00}", r"\u00e9", "\u017f", "\u00df", r"\/",
            "_", "'"]
GROUPS = ["(?:%s)", "(%s)", "(?i:%s)", "(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)", "(?>%s)"]
PLACES = ["^", "$", ".", r"\A", r"\z", r"\h"]
REPEATS = ["", "", "", "+", "*", "?", "{1,3}", "+?", "*?", "++", "?+"]
BEHAVIORS = ["Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
SHOWN = 5


def atom(rng, depth):
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(CLASSES)
    if kind < 0.5:
        return rng.choice(LITERALS)
    if kind < 0.7:
        parts = CLASSES + LITERALS + ["a-z", "0-9", "[x-z]"]
        return "[" + rng.choice(["", "^"]) + "".join(rng.choice(parts) for _ in range(rng.randint(1, 4))) + "]"
    return rng.choice(GROUPS) % expression(rng, depth - 1) if depth > 0 else rng.choice(PLACES)


def expression(rng, depth):
    def sequence():
        return "".join(atom(rng, depth) + rng.choice(REPEATS) for _ in range(rng.randint(1, 4)))
    return "|".join(sequence() for _ in range(rng.randint(1, 3)))


def description(rng):
    """A tokenizer.json of one random expression: each piece is one id, so that spans tell the pieces."""
    pattern = {"Regex": expression(rng, 2)}
    split = {"type": "Split", "pattern": pattern, "behavior": rng.choice(BEHAVIORS), "invert": rng.random() < 0.4}
    replaces = rng.random() < 0.3
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None, "decoder": None,
            "normalizer": {"type": "Replace", "pattern": pattern, "content": "xy"} if replaces else None,
            "pre_tokenizer": {"type": "Whitespace"} if replaces else split,
            "model": {"type": "WordLevel", "vocab": {"u": 0, "a": 1, " ": 2}, "unk_token": "u"}}


def reference_answers(described, texts):
    try:
        encodings = Tokenizer.from_str(json.dumps(described)).encode_batch(texts, add_special_tokens=False)
    except BaseException:  # refuses it, or gives up in a panic, which is no Exception
        return None
    return [[e.ids, parity.flat(e.offsets)] for e in encodings]


def our_answers(print_ids, path, described, texts):
    path.write_text(json.dumps(described), encoding="utf-8")
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([print_ids, str(path), "--spans"], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, done.stderr
    return [[[int(n) for n in part.split()] for part in line.split("|")] for line in done.stdout.split("\n")[:-1]], ""


def same(described, own, expected):
    """What a Replace puts in before everything stands for the first character here, in the reference for none."""
    return own == expected or (described["normalizer"] and own[0] == expected[0] and expected[1][:2] == [0, 0])


def main(print_ids, count=500, seed=None):
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else int(seed)
    print("seed", seed)
    rng = random.Random(seed)
    texts = list(RandomStrings(["a", "the", "\u2581x"], ["<s>"]).texts(seed, 150))
    counts = dict.fromkeys(("compared", "refused by name", "given up", "refused or given up by the reference", "different"), 0)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(int(count)):
            described = description(rng)
            own, error = our_answers(print_ids, pathlib.Path(folder) / "tokenizer.json", described, texts)
            expected = None if "not served" in error else reference_answers(described, texts)
            if "not served" in error:
                counts["refused by name"] += 1
            elif expected is None:
                counts["refused or given up by the reference"] += 1
            elif "takes too long" in error:
                counts["given up"] += 1
            else:
                counts["compared"] += 1
                wrong = [triple for triple in zip(texts, own or [None] * len(texts), expected)
                         if triple[1] is None or not same(described, *triple[1:])]
                if wrong:
                    counts["different"] += 1
                    if counts["different"] <= SHOWN:
                        print(ascii(json.dumps(described))[:400], error[:200])
                        print("   ", ascii(wrong[0][0])[:200], "\n     ours    ", wrong[0][1], "\n     expected", wrong[0][2])
    print(", ".join(f"{name}: {number}" for name, number in counts.items()))
    return counts["different"] != 0


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        print(__doc__)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
