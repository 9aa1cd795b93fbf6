"""bench/http_peers.py on a tiny model, with stand-ins for the other servers. Run by ctest with BOUQUET_BUILD set."""
import importlib.util
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

if importlib.util.find_spec("numpy") is None:
    print("skipped: numpy is missing")
    sys.exit(77)

import numpy as np

from tiny_model import BUILD, ROOT, make_stand_in, make_tiny_model, run_script

sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import docs  # noqa: E402
from cosine import largest_distance  # noqa: E402
from http_loads import NothingAnswered, row  # noqa: E402
from http_peers import cell, take_turns  # noqa: E402
from http_servers import reason  # noqa: E402
from http_texts import passages  # noqa: E402
from wrk import LoadFailed  # noqa: E402

PLACE = "<!-- measured: http_peers -->\n<!-- end -->"
ONNX, TORCH = "Infinity (ONNX Runtime)", "Infinity (torch)"


def with_first_token(model, folder):
    """The same model with other vectors: pooled by the first token."""
    shutil.copytree(model, folder)
    path = folder / "1_Pooling/config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pooling_mode": "cls"}))
    return folder


def make_llama_server(path):
    """Tells its version, and cannot read the file."""
    path.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "version: 7 (abc)" && exit\necho "bad magic" >&2\nexit 3\n')
    path.chmod(0o755)
    return path


class HttpPeersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            model = make_tiny_model(folder / "tiny")
            cls.code, cls.output, cls.result = run_script(
                "http_peers.py", "--quick", "--model", model, "--binaries", BUILD, "--python", make_stand_in(folder / "python"),
                "--llama-server", make_llama_server(folder / "llama-server"), "--out", folder / "out",
                STAND_IN_ONNX=str(model), STAND_IN_TORCH=str(with_first_token(model, folder / "cls" / "tiny")))
        cls.facts = cls.result["http_peers"] if cls.result else None

    def test_server_that_agrees_is_compared_under_every_load(self):
        self.assertEqual(self.code, 0, self.output)
        self.assertEqual([(found["load"], found["connections"], found["texts"]) for found in self.facts["rows"]],
                         [("wrk", 1, 1), ("bouquet bench", 1, 1), ("wrk", 16, 1), ("bouquet bench", 16, 1),
                          ("bouquet bench", 2, 32)])
        for found in self.facts["rows"]:
            self.assertEqual(found["failed"], {})
            self.assertEqual(found["best_peer"], ONNX)
            self.assertGreater(found["ratios"][ONNX]["ratio"], 0)
            for server in found["servers"].values():
                self.assertGreater(server["per_s"], 0)
                self.assertGreaterEqual(server["p99_of_p50"], 1)
        self.assertLess(self.facts["servers"][ONNX]["one_minus_cosine"], 1e-5)
        self.assertEqual(self.facts["reference"], "sentence-transformers float32")

    def test_wrk_has_the_share_of_the_engines_own_rate(self):
        for found in self.facts["rows"]:
            self.assertEqual("of_engine_rate" in found, found["load"] == "wrk")

    def test_one_text_is_timed_by_the_engine_over_http_and_behind_a_bare_socket(self):
        # Which of them is fastest is what the benchmark finds out: on a busy machine, any.
        for name in ("engine_p50_ms", "http_p50_ms", "socket_p50_ms", "engine_p99_of_p50"):
            self.assertGreater(self.facts["one"][name], 0, name)

    def test_server_whose_vectors_differ_gets_no_time(self):
        self.assertIn("vectors differ", self.facts["left_out"][TORCH])
        self.assertTrue(all(TORCH not in found["servers"] for found in self.facts["rows"]))

    def test_server_that_does_not_start_is_left_out_with_its_own_words(self):
        self.assertEqual(self.facts["left_out"]["llama-server"], "llama-server ended with exit code 3: bad magic")
        self.assertIn("left out: llama-server: llama-server ended", self.output)

    def test_the_command_leaves_out_where_things_are(self):
        self.assertNotIn("llama-server", self.result["command"])
        self.assertNotIn(str(BUILD), json.dumps(self.result))

    def test_documents_can_show_it(self):
        text = docs.render(PLACE, [self.result])
        self.assertIn("| connections | server |", text)
        self.assertIn("Left out: Infinity (torch): vectors differ", text)


class FakeServer:
    """Gets `per_s` through, or fails in its turn number `fails_in`; notes who ran."""

    def __init__(self, name, per_s, log, fails_in=None):
        self.name, self.port, self._log, self._fails_in, self.turns, self.spent = name, self, log, fails_in, 0, 0.0
        self.per_s = per_s

    def resume(self):
        self.turns += 1
        self._log.append(f"+{self.name}")

    def pause(self):
        self._log.append(f"-{self.name}")

    def cpu_seconds(self):
        self.spent += 2.0
        return self.spent

    def answer(self):
        if self.turns == self._fails_in:
            raise LoadFailed("3 requests failed")
        return {"requests": 1000, "per_s": self.per_s, "p50_ms": 2.0, "p99_ms": 5.0}


class FakeLoad:
    name, connections = "wrk", 4

    def __call__(self, server, _):
        return server.answer()


class TurnsTest(unittest.TestCase):
    def setUp(self):
        self.log = []
        self.ours, self.peer = FakeServer("Bouquet", 300.0, self.log), FakeServer("other", 100.0, self.log)

    def test_one_server_runs_at_a_time_and_each_begins_in_turn(self):
        take_turns([self.ours, self.peer], FakeLoad(), 2)
        self.assertEqual(self.log, ["+Bouquet", "-Bouquet", "+other", "-other", "+other", "-other", "+Bouquet", "-Bouquet"])

    def test_figures_are_compared_within_a_turn(self):
        taken, failed, rates = take_turns([self.ours, self.peer], FakeLoad(), 3, 1, lambda: 400.0)
        found = cell(FakeLoad(), 1, taken, failed, rates)
        self.assertEqual(found["ratios"], {"other": {"ratio": 3.0, "cpu_ratio": 1.0}})
        self.assertEqual(found["of_engine_rate"], 0.75)
        self.assertEqual(found["servers"]["Bouquet"]["p99_of_p50"], 2.5)
        self.assertEqual(found["servers"]["Bouquet"]["cpu_ms"], 2.0)

    def test_server_that_fails_is_stopped_and_has_no_figures(self):
        failing = FakeServer("other", 100.0, self.log, fails_in=2)
        taken, failed, _ = take_turns([self.ours, failing], FakeLoad(), 4)
        found = cell(FakeLoad(), 1, taken, failed, [])
        self.assertEqual(found["failed"], {"other": "3 requests failed"})
        self.assertEqual(list(found["servers"]), ["Bouquet"])
        self.assertIsNone(found["best_peer"])
        self.assertEqual(self.log.count("+other"), self.log.count("-other"))
        self.assertEqual(failing.turns, 2)

    def test_warm_up_may_pass_without_an_answer(self):
        class SlowLoad(FakeLoad):
            calls = 0

            def __call__(self, server, seconds):
                self.calls += 1
                if self.calls == 1:
                    raise NothingAnswered("no request was answered within 1 s")
                return super().__call__(server, seconds)

        taken, failed, _ = take_turns([self.ours], SlowLoad(), 1)
        self.assertEqual((len(taken["Bouquet"]), failed), (1, {}))

    def test_peers_alone_are_not_compared(self):
        taken, failed, _ = take_turns([self.peer], FakeLoad(), 1)
        self.assertEqual(cell(FakeLoad(), 1, taken, failed, [])["ratios"], {})


class ReasonTest(unittest.TestCase):
    def test_is_the_last_exception(self):
        printed = "ValueError: first\nTraceback:\n  File\nonnx.state.LoadError: no such file\n\nERROR: startup failed. Exiting.\n"
        self.assertEqual(reason(printed), "onnx.state.LoadError: no such file")

    def test_without_one_is_the_last_line(self):
        self.assertEqual(reason("loading\nerror: bad magic\n"), "error: bad magic")
        self.assertEqual(reason(""), "")


class TextsTest(unittest.TestCase):
    def test_passages_are_whole_texts_that_fit(self):
        # Special tokens count once for a passage: 2 + 8 + 8 = 18, and another 8 would not fit in 20.
        self.assertEqual(passages(["a", "b", "c", "d"], [10] * 4, 5, 20), ["a b", "c d"])
        self.assertEqual(passages(["a", "b", "c", "d"], [10] * 4, 1, 20), ["a b"])

    def test_text_longer_than_a_passage_is_one(self):
        self.assertEqual(passages(["a", "b", "c"], [5, 50, 5], 5, 20), ["a", "b", "c"])


class VectorsTest(unittest.TestCase):
    def test_base64_and_numbers_are_the_same_row(self):
        np.testing.assert_array_equal(row("AACAPwAAAMA="), row([1.0, -2.0]))

    def test_distance_is_of_the_row_that_is_furthest_off(self):
        wanted = np.array([[1.0, 0.0], [0.0, 1.0]])
        self.assertAlmostEqual(largest_distance(3 * wanted, wanted), 0.0)
        self.assertAlmostEqual(largest_distance(np.array([[1.0, 0.0], [1.0, 1.0]]), wanted), 1 - 2 ** -0.5)

    def test_other_shapes_and_values_that_are_no_numbers_are_far_off(self):
        wanted = np.array([[1.0, 0.0]])
        self.assertEqual(largest_distance(np.array([[1.0]]), wanted), float("inf"))
        self.assertEqual(largest_distance(np.array([[np.nan, 1.0]]), wanted), float("inf"))

    def test_an_empty_row_is_near_another_only(self):
        zeros, ones = np.zeros((1, 2)), np.ones((1, 2))
        self.assertEqual(largest_distance(zeros, zeros), 0.0)
        self.assertEqual(largest_distance(zeros, ones), 1.0)


if __name__ == "__main__":
    unittest.main()
