"""The comparison on generated strings finds a defect, shows it small, and can be run again. Without the reference library."""
import contextlib
import io
import os
import pathlib
import re
import struct
import sys
import tempfile
import textwrap
import unicodedata
import unittest

import generated_strings
import minimise
import our_side
import random_strings
import sentencepiece_json

TOKENS = ["un", "der", " the", "ing", "\u00e9", "\u4e2d\u56fd", "\U0001f600"]


def numbers(text):
    return [[*map(ord, text)], [n for i in range(len(text)) for n in (i, i + 1)]]


class Reference:
    def answers(self, mode, inputs):
        """Of a pair both texts, one behind the other."""
        return [numbers(i if isinstance(i, str) else "".join(i)) for i in inputs]


class Defective(Reference):
    """Loses the second of two equal letters behind a combining mark."""

    def start(self, mode, inputs):
        spoilt = [re.sub("([\u0300-\u036f])([^\\W\\d_])\\2", "\\1\\2", i if isinstance(i, str) else "".join(i)) for i in inputs]
        return lambda: self.answers(mode, spoilt)


class Right(Reference):
    def start(self, mode, inputs):
        return lambda: self.answers(mode, inputs)


def compare(ours, seed, count):
    """(comparison, what it printed)"""
    strings = random_strings.RandomStrings(TOKENS, ["<s>", "[MASK]"])
    comparison = generated_strings.Comparison("fake", ours, Reference(), strings, lambda own, expected: own == expected)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        generated_strings.run_comparison(comparison, seed, None, count)
    return comparison, printed.getvalue()


class Comparing(unittest.TestCase):
    def test_a_defect_is_found_and_shown_small_with_the_command_that_finds_it_again(self):
        comparison, printed = compare(Defective(), 7, 5000)
        self.assertGreater(comparison.num_differences, 0)
        self.assertIn("differences", comparison.row())
        shown = re.search(r"^fake: \w+: '(\\u03..aa)'\n", printed, re.MULTILINE)
        self.assertTrue(shown, printed)
        again = re.search(r"--kinds fake --seed (\d+) --count (\d+)", printed)
        _, printed_again = compare(Defective(), int(again[1]), int(again[2]))
        self.assertIn(shown[0], printed_again)

    def test_equal_sides_do_not_differ(self):
        comparison, printed = compare(Right(), 7, 3000)
        self.assertEqual((comparison.num_differences, printed), (0, ""))
        self.assertEqual(comparison.num_strings, 3000)
        self.assertGreater(comparison.num_characters, 3000 * 10)

    def test_a_share_of_the_strings_is_framed_and_of_those_half_is_paired(self):
        strings = random_strings.RandomStrings(TOKENS)
        comparison = generated_strings.Comparison("fake", Right(), Reference(), strings, None)
        batches = [comparison.inputs(seed, 100) for seed in range(60)]
        self.assertEqual({mode for mode, _ in batches}, set(our_side.MODES))
        for mode, inputs in batches:
            pairs = [i for i in inputs if isinstance(i, tuple)]
            self.assertEqual((len(pairs), len(inputs)), (25, 75) if mode == "framed" else (0, 100))

    def test_unknown_kinds_are_refused_by_name(self):
        self.assertEqual(generated_strings.chosen_kinds(["t5-small", "wordpiece"]),
                         [["t5-small"], ["bert-uncased", "mbert-uncased"]])
        with self.assertRaisesRegex(SystemExit, "word-piece"):
            generated_strings.chosen_kinds(["word-piece"])


class Minimising(unittest.TestCase):
    def test_only_what_matters_is_left_in_its_simplest_form(self):
        self.assertEqual(minimise.minimise("some x\u00e9 text with X, \u4e2d x\u00e8 y" * 50, lambda t: t.count("x") > 2), "xxx")
        self.assertEqual(minimise.minimise("\u4e2d\u56fd\u4e2d", lambda t: len(t) > 1), "aa")

    def test_the_search_ends_after_so_many_checks(self):
        checks = []
        text = minimise.minimise("b" * 1000, lambda t: checks.append(t) or len(t) > 900, max_checks=50)
        self.assertEqual(len(checks), 50)
        self.assertGreater(len(text), 900)

    def test_of_a_pair_one_text_is_left_where_it_does(self):
        self.assertEqual(minimise.minimise_input(("good", "a bad one"), lambda i: "bad" in i or "bad" in i[-1]), "bad")
        both = lambda i: not isinstance(i, str) and "x" in i[0] and "y" in i[1]
        self.assertEqual(minimise.minimise_input(("axb", "ayb"), both), ("x", "y"))


class Strings(unittest.TestCase):
    def test_the_same_seed_makes_the_same_strings(self):
        first, second = (list(random_strings.RandomStrings(TOKENS).texts(3, 200)) for _ in range(2))
        self.assertEqual(first, second)
        self.assertNotEqual(first, list(random_strings.RandomStrings(TOKENS).texts(4, 200)))

    def test_they_hold_what_tokenizers_go_wrong_on(self):
        texts = list(random_strings.RandomStrings(TOKENS, ["[MASK]"]).texts(1, 5000))
        joined = "".join(texts)
        joined.encode()  # no lone surrogates
        self.assertTrue(any(len(t) >= 1000 for t in texts))
        self.assertIn("", texts)
        for wanted in ("x[MASK]", " [MASK] ", "under", "ing the", "\0", "\u200d", "\u3000", "e\u0323\u0301"):
            self.assertIn(wanted, joined, ascii(wanted))
        self.assertEqual(set(random_strings.by_category()) - {unicodedata.category(c) for c in joined}, set())

    def test_tokens_are_spelled_as_the_text_that_they_stand_for(self):
        self.assertEqual(random_strings.spelled({"\u2581a": 1, "b": 0, "\u2581": 2}), ["b", " a", " "])
        self.assertEqual(random_strings.spelled({"##ing": 0, "a": 1}), ["ing", "a"])
        byte_level = {"\u0120": 0, "\u0120a": 1, "\u00c3\u00a9": 2, "\u00c3": 3}
        self.assertEqual(random_strings.spelled(byte_level), [" ", " a", "\u00e9", ""])


# Answers a text with its length; ends at "end", and says "error" at "error".
PROGRAM = textwrap.dedent("""\
    #!{}
    import json, os, sys
    for line in sys.stdin:
        text = json.loads(line)
        if text == "end":
            os.abort()
        print("error" if text == "error" else f"{{len(text)}} | 0 1 ", flush=True)
    """).format(sys.executable)


class Ours(unittest.TestCase):
    def test_an_input_that_ends_the_program_has_no_answer_and_the_next_ones_do(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text(PROGRAM)
            os.chmod(program, 0o755)
            ours = our_side.OurSide(str(program), "unused")
            found = ours.answers("plain", ["abc", "end", "a", "error", "end", "ab\u00e9" * 50_000])
            ours.close()
        self.assertEqual(found, [[[3], [0, 1]], None, [[1], [0, 1]], None, None, [[150_000], [0, 1]]])


def varint(value):
    return bytes([value]) if value < 0x80 else bytes([value & 0x7f | 0x80]) + varint(value >> 7)


def message(*parts):
    """A protobuf message of (number, value): an int, a float or bytes."""
    out = b""
    for number, value in parts:
        if isinstance(value, bytes):
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            out += varint(number << 3) + varint(value)
    return out


class SentencePiece(unittest.TestCase):
    PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("<0x41>", 0.0, 6), ("a", -9.0, 1), ("aa", -1.0, 1), ("aaa", -1.0, 1),
              ("b", -8.0, 1), ("ab", -0.5, 1)]

    def model(self, byte_fallback=1):
        pieces = [(1, message((1, piece.encode()), (2, score), (3, kind))) for piece, score, kind in self.PIECES]
        return message(*pieces, (2, message((3, 2), (35, byte_fallback))), (3, message((3, 1), (4, 0))))

    def test_merges_come_from_the_scores_and_of_equals_the_longer_left_part_first(self):
        found = sentencepiece_json.tokenizer_json(self.model())
        self.assertEqual(found["model"]["merges"], [["a", "b"], ["aa", "a"], ["a", "aa"], ["a", "a"]])
        self.assertEqual(found["model"]["vocab"], {piece: i for i, (piece, _, _) in enumerate(self.PIECES)})
        self.assertEqual([token["content"] for token in found["added_tokens"]], ["<unk>", "<s>"])

    def test_a_model_that_the_form_cannot_stand_for_is_refused(self):
        with self.assertRaisesRegex(ValueError, "byte_fallback: 2, 0"):
            sentencepiece_json.tokenizer_json(self.model(byte_fallback=0))


if __name__ == "__main__":
    unittest.main()
