"""bench/quality.py on a tiny model and own small sets, with a stand-in for the reference. Run by ctest with BOUQUET_BUILD."""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest

if importlib.util.find_spec("numpy") is None:
    print("skipped: numpy is missing")
    sys.exit(77)

import numpy as np

from tiny_model import BUILD, ROOT, make_stand_in, make_tiny_model, run_script

sys.path.insert(0, str(ROOT / "bench"))
from quality_sets import Retrieval, Similarity, read_cranfield, read_scifact, read_stsb  # noqa: E402

CRANFIELD = (".I 1\n.T\nw10 w11\n.A\nsomebody\n.B\n1958\n.W\nw10 w11\n  w12 w13 .\n"
             ".I 2\n.T\n\n.A\n.B\n.W\n"
             ".I 3\n.T\nw20\n.A\n.B\n.W\nw21 w22 w23\n")
CRANFIELD_QUERIES = ".I 001\r\n.W\r\nw10 w12\r\n.I 004\r\n.W\r\nw22\r\n"


def write_sets(folder):
    """In the formats of the public sets, with words of the tiny model's tokenizer."""
    texts = folder / "texts"
    for name in ("scifact", "cranfield", "stsb"):
        (texts / name).mkdir(parents=True)
    documents = [{"_id": i, "title": f"w{i}", "text": f"w{i + 1} w{i + 2} w{i + 3}"} for i in range(10, 60)]
    queries = [{"_id": i, "text": f"w{i + 1} w{i + 3}"} for i in range(10, 40)]
    (texts / "scifact/corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    (texts / "scifact/queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    judgements = "".join(f"{i}\t{i}\t1\r\n" for i in range(10, 35))
    (texts / "scifact/qrels.test.tsv").write_text("query-id\tcorpus-id\tscore\r\n" + judgements)
    (texts / "cranfield/cran.all.1400").write_text(CRANFIELD)
    (texts / "cranfield/cran.qry").write_text(CRANFIELD_QUERIES)
    (texts / "cranfield/cranqrel").write_text("1 1 1 \n1 2 -1\n1 3 4\n2 3 2")
    pairs = "".join(f"w{i} w{i + 1},w{i + 1} w{i + k},{k}.0\r\n" for i in range(10, 40) for k in range(5))
    (texts / "stsb/stsb-en-test.csv").write_text(pairs)
    return folder


class SetsTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.texts = write_sets(pathlib.Path(self.temporary.name)) / "texts"

    def test_scifact_takes_title_and_text_and_only_queries_with_judgements(self):
        found = read_scifact(self.texts / "scifact")
        self.assertEqual(found.texts[0], "w10 w11 w12 w13")
        self.assertEqual(len(found.texts), 50 + 25)

    def test_cranfield_takes_queries_by_place_and_turns_grades_round(self):
        found = read_cranfield(self.texts / "cranfield")
        self.assertEqual(found.texts, ["w10 w11 w10 w11 w12 w13 .", "", "w20 w21 w22 w23", "w10 w12", "w22"])
        # The first query likes document 3 better than 1: gains 1, 4 for 4, 1. The second is right.
        rows = np.array([[0.6, 0.8], [0, 0], [1, 0], [1, 0], [1, 0]])
        self.assertAlmostEqual(found.score(rows), ((1 + 4 * 0.6309297535714575) / (4 + 0.6309297535714575) + 1) / 2)

    def test_stsb_compares_the_two_of_a_pair(self):
        found = read_stsb(self.texts / "stsb")
        self.assertEqual(found.texts[:2], ["w10 w11", "w11 w10"])
        self.assertEqual(len(found.texts), 300)

    def test_length_of_vectors_does_not_count(self):
        rows = np.array([[1.0, 0], [0, 1], [5, 1]])
        scaled = rows * np.array([[100.0], [0.01], [3]])
        one = Retrieval("one", ["a", "b"], ["q"], [{0: 1}])
        self.assertEqual(one.score(rows), one.score(scaled))
        self.assertEqual(one.score(rows), 1.0)

    def test_similarity_is_one_where_cosines_follow_what_was_said(self):
        rows = np.array([[1, 0], [1, 0], [1, 0], [1, 1], [1, 0], [0, 1]])
        self.assertAlmostEqual(Similarity("s", [("a", "b")] * 3, [5.0, 3.0, 0.0]).score(rows), 1.0)


class QualityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.model = make_tiny_model(cls.folder / "tiny")
        cls.stand_in = make_stand_in(cls.folder / "python")
        cls.data = write_sets(cls.folder / "data")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def quality(self, *arguments, out, **environment):
        return run_script("quality.py", "--model", self.model, "--bouquet", BUILD / "bouquet", "--python", self.stand_in,
                          "--out", self.folder / out, *arguments, **({"BOUQUET_DATA": str(self.data)} | environment))

    def test_same_vectors_have_the_same_figures(self):
        code, output, result = self.quality("--dtypes", "float32", out="same")
        self.assertEqual(code, 0, output)
        self.assertEqual([row["set"] for row in result["quality"]], ["SciFact", "Cranfield", "STS-B"])
        for row in result["quality"]:
            self.assertEqual(row["ours"]["float32"], row["reference"])
            self.assertLess(row["largest_one_minus_cosine"]["float32"], 1e-6)

    def test_other_vectors_are_out_of_tolerance(self):
        code, output, result = self.quality("--dtypes", "float32", "--sets", "scifact", out="other", STAND_IN_NOISE="0.2")
        self.assertEqual(code, 1, output)
        self.assertIn("OUT OF TOLERANCE", output)
        self.assertFalse(result["quality"][0]["is_within"])

    def test_without_the_data_it_skips_and_says_so(self):
        code, output, result = self.quality(out="none", BOUQUET_DATA=str(self.folder / "nowhere"))
        self.assertEqual(code, 77)
        self.assertIn("BOUQUET_DATA not found", output)
        self.assertIsNone(result)


if __name__ == "__main__":
    unittest.main()
