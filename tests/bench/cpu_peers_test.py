"""bench/cpu_peers.py on a tiny model, with stand-ins for the peers. Run by ctest with BOUQUET_BUILD set."""
import importlib.util
import pathlib
import sys
import tempfile
import unittest

if importlib.util.find_spec("numpy") is None:
    print("skipped: numpy is missing")
    sys.exit(77)

from tiny_model import BUILD, ROOT, make_stand_in, make_tiny_model, run_script

sys.path.insert(0, str(ROOT / "tools"))
import docs  # noqa: E402


class CpuPeersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            model = make_tiny_model(folder / "tiny")
            common = ["--quick", "--model", model, "--binaries", BUILD, "--threads", "1"]
            stand_in = make_stand_in(folder / "python")
            cls.code, cls.output, cls.result = run_script("cpu_peers.py", *common, "--python", stand_in, "--out", folder / "a")
            cls.alone = run_script("cpu_peers.py", *common, "--python", "/bin/false", "--out", folder / "b")
        cls.measured = cls.result["cpu_peers"][0]["runs"][0] if cls.result else None

    def test_peer_that_agrees_is_compared(self):
        self.assertEqual(self.code, 0, self.output)
        for row in self.measured["cells"]:
            self.assertIn("ONNX Runtime float32", row["engines"])
            best = row["ratios"]["float32"]
            self.assertIn(best["peer"], ("ONNX Runtime float32", "sentence-transformers float32"))
            self.assertGreater(best["ratio"], 0)
        self.assertLess(self.measured["engines"]["ONNX Runtime float32"]["one_minus_cosine"], 1e-5)

    def test_peer_whose_vectors_differ_gets_no_time(self):
        self.assertIn("vectors differ", self.measured["left_out"]["OpenVINO float32"])
        for row in self.measured["cells"]:
            self.assertNotIn("OpenVINO float32", row["engines"])

    def test_peer_that_cannot_be_had_is_left_out_with_the_reason(self):
        self.assertEqual(self.measured["left_out"]["CTranslate2 float32"], "ValueError: no such model here")
        self.assertIn("left out: CTranslate2 float32: ValueError", self.output)

    def test_shares_are_of_what_the_machine_gave(self):
        self.assertGreater(self.measured["machine_gave"]["float32"], 1e8)
        for row in self.measured["cells"]:
            ours = row["engines"]["Bouquet float32"]
            self.assertTrue(0 < ours["of_peak"] < 1.2, ours)
            self.assertEqual("of_memory" in ours, row["kind"] == "latency")

    def test_without_any_peer_our_own_times_are_still_measured(self):
        code, output, result = self.alone
        self.assertEqual(code, 0, output)
        run = result["cpu_peers"][0]["runs"][0]
        self.assertEqual(run["reference"], "Bouquet float32")
        self.assertIn("sentence-transformers float32", run["left_out"])
        self.assertTrue(all(not row["ratios"] and "Bouquet float32" in row["engines"] for row in run["cells"]))

    def test_the_command_leaves_out_where_things_are(self):
        self.assertTrue(self.result["command"].startswith("./dev bench cpu-peers --quick --model "), self.result["command"])
        self.assertNotIn(str(BUILD), self.result["command"])

    def test_documents_can_show_it(self):
        text = docs.render("<!-- measured: cpu_peers -->\n<!-- end -->", [self.result, self.alone[2]])
        self.assertIn("Left out: OpenVINO float32", docs.render("<!-- measured: cpu_peers -->\n<!-- end -->", [self.result]))
        self.assertEqual(text.count("tiny:"), 1)


if __name__ == "__main__":
    unittest.main()
