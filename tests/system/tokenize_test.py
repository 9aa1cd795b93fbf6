"""The routes that tokenize and decode, and `bouquet tokenize`, on the demo's model.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from gateway_client import BINARY, MODEL, post, require_model  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess  # noqa: E402

TEXT = "Na\u00efve caf\u00e9s, \u6771\u4eac!"
IDS = [101, 15743, 23812, 1010, 1879, 1755, 999, 102]


def setUpModule():
    require_model()


class Routes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess([BINARY, "serve", MODEL, "--port", "{port}", "--log-level", "error",
                                    "--max-tokens-per-request", "2000"])

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def answer(self, path, body):
        status, answer = post(self.server.port, path, body)
        self.assertEqual(status, 200, answer)
        return answer

    def test_tokens_as_tei_gives_them_slice_the_text_in_bytes(self):
        (tokens,) = self.answer("/tokenize", {"inputs": TEXT})
        self.assertEqual([token["id"] for token in tokens], IDS)
        self.assertEqual(tokens[0], {"id": 101, "text": "[CLS]", "special": True, "start": None, "stop": None})
        for token in tokens[1:-1]:
            self.assertFalse(token["special"])
            self.assertEqual(TEXT.encode()[token["start"]:token["stop"]].decode(), token["text"])
        self.assertEqual([token["text"] for token in tokens[1:-1]], ["Na\u00efve", "caf\u00e9s", ",", "\u6771", "\u4eac", "!"])
        bare = self.answer("/tokenize", {"inputs": ["", "a"], "add_special_tokens": False})
        self.assertEqual([[token["id"] for token in tokens] for tokens in bare], [[], [1037]])

    def test_tokens_as_vllm_gives_them(self):
        answer = self.answer("/tokenize", {"model": pathlib.Path(MODEL).name, "prompt": TEXT, "return_token_strs": True})
        self.assertEqual((answer["count"], answer["tokens"]), (len(IDS), IDS))
        self.assertEqual(answer["max_model_len"], 256)
        self.assertEqual(answer["token_strs"][:4], ["[CLS]", "naive", "cafes", ","])

    def test_decoding_gives_text_back(self):
        self.assertEqual(self.answer("/decode", {"ids": IDS}), ["naive cafes, \u6771 \u4eac!"])
        self.assertEqual(self.answer("/decode", {"ids": [IDS, [7592]], "skip_special_tokens": False}),
                         ["[CLS] naive cafes, \u6771 \u4eac! [SEP]", "hello"])
        self.assertEqual(self.answer("/detokenize", {"tokens": [7592, 2088]}), {"prompt": "hello world"})

    def test_counts_texts_that_are_too_long_to_be_listed(self):
        long = "word " * 3000
        status, refused = post(self.server.port, "/tokenize", {"inputs": ["a", long]})
        self.assertEqual(status, 413)
        self.assertIn("limit 2000", refused["error"])
        self.assertEqual(self.answer("/tokenize", {"inputs": ["a", long], "count_only": True}), [3, 3002])
        self.assertEqual(self.answer("/tokenize", {"prompt": long, "count_only": True})["count"], 3002)

    def test_an_id_that_does_not_exist_is_named(self):
        status, refused = post(self.server.port, "/tei/decode", {"ids": [[1], [2, 30522]]})
        self.assertEqual(status, 422)
        self.assertIn("ids[1][1]", refused["error"])
        self.assertIn("0..30521", refused["error"])
        status, refused = post(self.server.port, "/detokenize", {"tokens": [-1]})
        self.assertEqual((status, refused["error"]["param"]), (400, "tokens[0]"))


class CommandLine(unittest.TestCase):
    def lines(self, *flags, text=TEXT):
        done = subprocess.run([BINARY, "tokenize", MODEL, *flags], input=text.encode(), capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_offsets_slice_back_in_bytes_and_in_characters(self):
        (in_bytes,) = self.lines("--offsets", "bytes", "--special")
        (in_characters,) = self.lines("--offsets", "characters")
        self.assertEqual(in_bytes["special"], [1] + [0] * 6 + [1])
        words = ["", "Na\u00efve", "caf\u00e9s", ",", "\u6771", "\u4eac", "!", ""]
        self.assertEqual([TEXT.encode()[begin:end].decode() for begin, end in in_bytes["offsets"]], words)
        self.assertEqual([TEXT[begin:end] for begin, end in in_characters["offsets"]], words)

    def test_pairs_have_types_and_offsets_in_their_own_text(self):
        first, second = "caf\u00e9 a", "\u00e9 b"
        flags = ("--pairs", "--offsets", "characters")
        (pair,) = self.lines(*flags, text=f"{first}\t{second}\n")
        self.assertEqual(pair["ids"], [101, 7668, 1037, 102, 1041, 1038, 102])
        self.assertEqual(pair["type_ids"], [0, 0, 0, 0, 1, 1, 1])
        self.assertEqual(pair["offsets"], [[0, 0], [0, 4], [5, 6], [0, 0], [0, 1], [2, 3], [0, 0]])
        member = json.dumps({"q": first, "d": second})
        self.assertEqual(self.lines(*flags, "--format", "jsonl", "--field", "q", "--pair-field", "d", text=member), [pair])
        refused = subprocess.run([BINARY, "tokenize", MODEL, "--pairs"], input=b"no tab", capture_output=True, check=False)
        self.assertEqual(refused.returncode, 4)
        self.assertIn(b"standard input:1", refused.stderr)

    def test_counts(self):
        self.assertEqual(self.lines("--count", text=f"{TEXT}\n\n"), [{"count": 8}, {"count": 2}])
        self.assertEqual(self.lines("--count", "--max-tokens", "4"), [{"count": 4, "truncated": True}])


if __name__ == "__main__":
    unittest.main()
