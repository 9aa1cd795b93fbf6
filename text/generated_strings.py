#!/usr/bin/env python3
"""`./dev parity tokenizers`: our ids, spans and special masks on generated strings beside the reference library's.

    generated_strings.py PRINT_IDS DATA [--seconds N | --count N] [--seed N] [--kinds NAME...] [--jobs N]

Kinds: wordpiece, byte-bpe, unigram, sentencepiece-bpe; or name a tokenizer. Of a kind's seconds or strings each of its
tokenizers has the same share. --count 5000000 is the long run. A share of the strings is encoded with special tokens, half of
those as pairs, and a share with special tokens taken literally.

At a difference: prints the smallest text that still differs, both sides, and the command that shows it again; ends with 1.
Every batch has a seed of its own, one more than the last one's, so that command takes no longer than one batch.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import time

import minimise
import random_strings

KINDS = {"wordpiece": ["bert-uncased", "mbert-uncased"],
         "byte-bpe": ["qwen3", "olmo-modernbert-vocab", "roberta-base"],
         "unigram": ["xlm-roberta", "t5-small"],
         "sentencepiece-bpe": ["mistral-spm", "mistral-spm-json"]}
BATCH = 1000
SHOWN = 3  # differences by tokenizer that are minimised
PROGRESS_SECONDS = 10
FRAMED = ("ids", "types", "special mask", "spans", "of second")
NAMES = {2: ("ids", "spans"), 4: FRAMED, 5: FRAMED}


def say(line):
    print(line, flush=True)


class Comparison:
    """Of one tokenizer. `ours.start(mode, inputs)()` and `reference.answers(mode, inputs)` are as in our_side.py and
    reference_side.py; `equal(own, expected)`: of two answers."""

    def __init__(self, name, ours, reference, strings, equal):
        self.name = name
        self._ours, self._reference, self._strings, self._equal = ours, reference, strings, equal
        self.num_strings = self.num_characters = self.num_ids = self.num_differences = 0
        self.seconds = 0.0
        self._shown = set()

    def batch(self, seed, count):
        """Compares `count` strings, which depend on the name, the seed and the count alone."""
        started = time.monotonic()
        mode, inputs = self.inputs(seed, count)
        finish = self._ours.start(mode, inputs)
        expected = self._reference.answers(mode, inputs)
        for given, own, numbers in zip(inputs, finish(), expected, strict=True):
            self.num_strings += 1 if isinstance(given, str) else 2
            self.num_characters += sum(map(len, given))
            self.num_ids += len(numbers[0])
            if not self._equal(own, numbers):
                self.num_differences += 1
                if self.num_differences <= SHOWN:
                    self._show(mode, given, f"--seed {seed} --count {count}")
        self.seconds += time.monotonic() - started

    def inputs(self, seed, count):
        """(mode, inputs of `count` strings)"""
        rng = random.Random(f"{self.name} {seed}")
        mode = rng.choices(("plain", "framed", "literal"), (6, 3, 1))[0]
        texts = list(self._strings.texts(rng.random(), count))
        if mode == "framed":
            half = count // 4 * 2
            return mode, [*zip(texts[:half:2], texts[1:half:2]), *texts[half:]]
        return mode, texts

    def _sides(self, mode, given):
        return self._ours.start(mode, [given])()[0], self._reference.answers(mode, [given])[0]

    def _show(self, mode, given, again):
        smallest = minimise.minimise_input(given, lambda text: not self._equal(*self._sides(mode, text)))
        if smallest in self._shown:
            return
        self._shown.add(smallest)
        own, expected = self._sides(mode, smallest)
        lines = [f"{self.name}: {mode}: {ascii(smallest)}"]
        if self._equal(own, expected):  # differs only in the company of others
            lines = [f"{self.name}: {mode}: not again on its own: {ascii(given)}"]
        for title, numbers in (("ours", own), ("reference", expected)):
            parts = [f"{part} {values}" for part, values in zip(NAMES[len(numbers)], numbers)] if numbers else ["failed"]
            lines.append(f"  {title:<10}" + ("\n" + " " * 12).join(parts))
        lines.append(f"  again: ./dev parity tokenizers --kinds {self.name} {again}")
        say("\n".join(lines))

    def row(self):
        return (f"{self.name}: {self.num_strings} strings, {self.num_characters} characters, {self.num_ids} ids, "
                f"{self.num_differences} differences, {self.seconds:.1f} s")


def run_comparison(comparison, seed, seconds, count):
    """Batches until `seconds` are over; or, where `count` is given, of so many strings."""
    shown = 0.0
    while comparison.num_strings < count if count else comparison.seconds < seconds:
        comparison.batch(seed, min(BATCH, count - comparison.num_strings) if count else BATCH)
        seed += 1
        if comparison.seconds - shown > PROGRESS_SECONDS:
            shown = comparison.seconds
            say("  " + comparison.row())


def run_kind(names, arguments):
    """(the tokenizers' last lines, how many differences)"""
    import reference_side  # here, so that a test can do without the reference library
    rows, differences = [], 0
    share = 1 / len(names)
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            ours, reference = reference_side.open_sides(name, arguments.print_ids, arguments.data, pathlib.Path(scratch))
            comparison = Comparison(name, ours, reference, random_strings.RandomStrings.of(reference.tokenizer),
                                    reference_side.equal)
            count = -(-arguments.count // len(names)) if arguments.count else None
            run_comparison(comparison, arguments.seed, arguments.seconds * share, count)
            ours.close()
        rows.append(comparison.row())
        differences += comparison.num_differences
    return rows, differences


def chosen_kinds(chosen):
    """The lists of tokenizers that `chosen` names; all for none."""
    known = KINDS | {name: [name] for names in KINDS.values() for name in names}
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise SystemExit(f"--kinds: unknown: {', '.join(unknown)} (known: {', '.join(known)})")
    return [known[name] for name in chosen or KINDS]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("print_ids")
    parser.add_argument("data", type=pathlib.Path)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, default=60, help="of a kind (default: 60)")
    length.add_argument("--count", type=int, help="strings of a kind")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="default: a random one")
    parser.add_argument("--kinds", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="kinds at a time (default: the cores)")
    found = parser.parse_args(arguments)
    for name, least in (("seconds", 0.001), ("count", 1), ("jobs", 1)):
        value = getattr(found, name)
        if value is not None and value < least:
            parser.error(f"--{name} must be at least {least}: {value}")
    return found


def main(arguments):
    arguments = parse(arguments)
    kinds = chosen_kinds(arguments.kinds)
    if not (arguments.data / "tokenizers").is_dir():
        raise SystemExit(f"BOUQUET_DATA not found: tried {arguments.data / 'tokenizers'}")
    say(f"generated strings: --seed {arguments.seed}")
    # Processes are side by side already; both sides of a tokenizer run at the same time.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        found = [done.result() for done in [pool.submit(run_kind, names, arguments) for names in kinds]]
    for rows, _ in found:
        for row in rows:
            say(row)
    return 1 if any(differences for _, differences in found) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
