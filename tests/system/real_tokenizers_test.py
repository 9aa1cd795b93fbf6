"""Text through models with the tokenizers of the large families: a network of random weights, small but for its table of
embeddings, with the published tokenizer files of BOUQUET_DATA beside it.

Run by ctest with BOUQUET_BINARY, BOUQUET_TEST_DATA (where the fixture unpacks the data) set; needs numpy.
"""
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from gateway_client import BINARY, embed, post  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import make_random_model  # noqa: E402
from server_process import ServerProcess  # noqa: E402

DATA = pathlib.Path(os.environ["BOUQUET_TEST_DATA"])
TEXT = "Na\u00efve caf\u00e9s, \u6771\u4eac! \U0001f642"
SMALL = dict(layers=1, hidden=32, heads=2, intermediate=64, positions=640)
FAMILIES = {  # the shape, and the ids of TEXT by the tokenizers library
    "xlm-roberta": (("xlm-roberta", dict(vocabulary=250002, **SMALL)),
                    [0, 353, 9392, 272, 26216, 7, 4, 6, 22888, 38, 3143, 2]),
    "qwen3": (("qwen3", dict(vocabulary=151669, kv_heads=1, head_dim=16, **SMALL)),
              [16193, 37572, 586, 29103, 5397, 11, 60596, 109, 46553, 0, 27484]),
}


class RealTokenizers(unittest.TestCase):
    def check(self, name):
        files = DATA / "tokenizers" / name
        if not (files / "tokenizer.json").exists():
            if os.environ.get("BOUQUET_DATA_REQUIRED") == "1":
                self.fail(f"BOUQUET_DATA not found: tried {files}")
            self.skipTest(f"BOUQUET_DATA not found: tried {files}")
        shape, expected = FAMILIES[name]
        with tempfile.TemporaryDirectory() as temporary:
            model = pathlib.Path(temporary) / name
            make_random_model.SHAPES["wide"] = shape
            make_random_model.write_model(model, make_random_model.parse([str(model), "--shape", "wide"]))
            for file in files.glob("tokenizer*.json"):
                shutil.copy(file, model)
            server = ServerProcess([BINARY, "serve", str(model), "--port", "{port}", "--log-level", "error"])
            try:
                status, answer = post(server.port, "/tokenize", {"prompt": TEXT})
                self.assertEqual((status, answer.get("tokens")), (200, expected), answer)
                status, of_text = embed(server.port, TEXT)
                self.assertEqual(status, 200, of_text)
                status, of_ids = embed(server.port, expected)
                self.assertEqual(status, 200, of_ids)
                self.assertEqual(of_text, of_ids)
                self.assertAlmostEqual(sum(x * x for x in of_text[0]), 1, places=4)
            finally:
                server.stop()

    def test_xlm_roberta_takes_text(self):
        self.check("xlm-roberta")

    def test_qwen3_takes_text(self):
        self.check("qwen3")


if __name__ == "__main__":
    unittest.main()
