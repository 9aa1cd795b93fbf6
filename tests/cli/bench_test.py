"""`bouquet bench` as a user meets it, against a served model: what is in the results, never how fast it was.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library.
"""
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess, free_port  # noqa: E402

BINARY = os.environ["BOUQUET_BINARY"]
MODEL = os.environ.get("BOUQUET_DEMO_MODEL") or os.environ["BOUQUET_DEFAULT_MODEL"]
SETTINGS = ("--warm-up-seconds", "0.05", "--rounds", "2", "--quiet", "true")
SHORT = ("--seconds", "0.2", *SETTINGS)
TEXTS = ["a cat sat on the mat", "stock markets fell", "a dog lay on the rug", "rain in spring"]


def run(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, timeout=120, check=False, text=True)


def require_model():
    if not pathlib.Path(MODEL, "model.safetensors").exists():
        if os.environ.get("BOUQUET_DATA_REQUIRED") == "1":
            raise AssertionError(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")
        raise unittest.SkipTest(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        require_model()
        cls.server = ServerProcess.serving(BINARY, MODEL)
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.texts = cls.folder / "texts.txt"
        cls.texts.write_text("\n".join(TEXTS) + "\n")
        cls.vectors = cls.folder / "vectors.npy"
        subprocess.run([BINARY, "embed", MODEL, cls.texts, "--output", cls.vectors, "--quiet", "true"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()
        if cls.server.stop() != 0:
            raise AssertionError("the server did not stop in order")

    def result(self, suite, *arguments, seconds="0.2"):
        path = self.folder / "result.json"
        done = run("bench", suite, self.server.url, *SETTINGS, "--seconds", seconds, "--output", path, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(path.read_text())
        self.assertEqual(result["suite"], suite)
        self.assertTrue(result["complete"])
        for row in result["rows"]:
            self.check_row(row)
            self.assertIn(row["name"], done.stdout)
        return result

    def check_row(self, row):
        """Whatever was measured, these hold."""
        self.assertGreater(row["ok"], 0)
        self.assertEqual(sum(count for _, count in row["histogram"]["buckets"]), row["ok"])
        latency = row["latency_ms"]
        order = [latency[name] for name in ("min", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")]
        self.assertEqual(order, sorted(order))
        self.assertGreater(latency["min"], 0)
        for name, metric in row["metrics"].items():
            self.assertLessEqual(metric["min"], metric["median"], name)
            self.assertLessEqual(metric["median"], metric["max"], name)
        self.assertAlmostEqual(row["metrics"]["embeddings_per_s"]["median"],
                               row["batch"] * row["metrics"]["requests_per_s"]["median"], places=3)

    def test_latency_tells_all_about_the_run(self):
        html = self.folder / "report.html"
        result = self.result("latency", "--lengths", "8,16,4096", "--html", html, "--reference", self.vectors,
                             "--texts", self.texts, "--inputs", "ids")
        self.assertEqual([row["tokens"] for row in result["rows"]], [8, 16])  # 4096 is over the model's maximum
        self.assertEqual(result["server"]["info"]["model_id"], result["server"]["model"])
        self.assertRegex(result["commit"], r"^([0-9a-f]{40}(-changed)?|unknown)$")
        self.assertIn("bench latency", result["command"])
        self.assertGreater(result["machine"]["cores"], 0)
        self.assertGreater(result["clock"]["resolution_ns"], 0)
        self.assertTrue(result["check"]["passed"])
        self.assertEqual(result["check"]["inputs"], len(TEXTS))
        self.assertLess(result["check"]["worst"], 1e-5)
        for row in result["rows"]:
            self.assertEqual(row["loop"], "closed")
            self.assertEqual(row["failed"], {})
            self.assertEqual(len(row["metrics"]["p50_ms"]["rounds"]), 2)
        page = html.read_text()
        self.assertIn("<svg", page)
        self.assertIsNone(re.search(r"<script|src=|href=", page))

    def test_every_suite_has_its_rows(self):
        scoring = self.result("scoring", "--batches", "2,3", "--tokens", "8", "--protocol", "tei")
        self.assertEqual([row["batch"] for row in scoring["rows"]], [2, 3])
        throughput = self.result("throughput", "--lengths", "8", "--batch", "4", "--reference-url", self.server.url)
        self.assertEqual(throughput["rows"][0]["processes"], 4)
        self.assertLess(throughput["check"]["worst"], 1e-5)
        concurrency = self.result("concurrency", "--in-flight", "1,4", "--texts", self.texts, "--encoding", "float")
        self.assertEqual([row["in_flight"] for row in concurrency["rows"]], [1, 4])
        self.assertGreater(concurrency["rows"][0]["metrics"]["tokens_per_s"]["median"], 0)  # as the server counted

    def test_texts_need_neither_a_range_of_ids_nor_lengths(self):
        # The default lengths are all above this model's 256 tokens.
        throughput = self.result("throughput", "--texts", self.texts, "--processes", "1", "--batch", "2", "--max-id", "5")
        self.assertEqual(len(throughput["rows"]), 1)

    def test_load_sends_what_is_due_and_judges_a_burst(self):
        result = self.result("load", "--rate", "20", "--arrivals", "even", "--tokens", "8", "--burst", "40",
                             "--burst-seconds", "0.5", seconds="1")
        row = result["rows"][0]
        self.assertEqual(row["loop"], "open")
        failed = sum(outcome["count"] for outcome in row["failed"].values())
        self.assertEqual(row["ok"] + failed, 2 * (20 + 20 + 20))
        due_in_last_round = sum(window["ok"] + window["failed"] for window in row["windows"])
        self.assertEqual(due_in_last_round, 60)
        self.assertIn("burst_goodput_per_s", row["metrics"])
        self.assertEqual(len(row["metrics"].get("recovery_s", {"rounds": []})["rounds"])
                         + row["rounds_not_recovered"], 2)

    def test_reports_no_time_when_vectors_disagree(self):
        content = bytearray(self.vectors.read_bytes())
        content[128 + 384 * 4:128 + 2 * 384 * 4] = content[128:128 + 384 * 4]  # row 2 becomes row 1
        wrong = self.folder / "wrong.npy"
        wrong.write_bytes(content)
        output = self.folder / "none.json"
        failed = run("bench", "latency", self.server.url, *SHORT, "--texts", self.texts, "--reference", wrong,
                     "--output", output)
        self.assertEqual(failed.returncode, 6)
        self.assertIn("text 2", failed.stderr)
        self.assertIn("1 - cosine", failed.stderr)
        self.assertEqual(failed.stdout, "")
        self.assertFalse(output.exists())

    def test_an_interrupted_run_keeps_what_it_has(self):
        output = self.folder / "interrupted.json"
        with subprocess.Popen([BINARY, "bench", "latency", self.server.url, "--lengths", "8,16", "--seconds", "60",
                               "--warm-up-seconds", "0.05", "--output", str(output)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            time.sleep(2)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, errors)
        result = json.loads(output.read_text())
        self.assertFalse(result["complete"])
        self.assertEqual([row["complete"] for row in result["rows"]], [False])
        self.check_row(result["rows"][0])

    def test_compare_names_ratios_and_the_spread(self):
        paths = [self.folder / "before.json", self.folder / "after.json"]
        for path in paths:
            path.write_text(json.dumps(self.result("latency", "--lengths", "8")))
        compared = run("bench", "compare", *paths)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertRegex(compared.stdout, r"p50_ms .* x \d\.\d{3}  (within the spread|BETTER|WORSE)")
        self.assertEqual(run("bench", "compare", paths[0], self.texts).returncode, 4)


class Refuser(http.server.BaseHTTPRequestHandler):
    """A server that is always over capacity."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(404)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(429)

    def answer(self, status):
        body = b'{"error": {"message": "not now"}}'
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Unserved(unittest.TestCase):
    def test_help_has_examples_and_wrong_usage_exits_with_2(self):
        for suite in ("latency", "scoring", "throughput", "concurrency", "load"):
            shown = run("bench", suite, "--help")
            self.assertEqual(shown.returncode, 0)
            self.assertIn("Examples:", shown.stdout)
        for arguments in ((), ("latency",), ("latency", "https://host:1"), ("load", "host:1"),
                          ("latency", "host:1", "--lengths", "0"), ("latency", "host:1", "--rounds", "x")):
            self.assertEqual(run("bench", *arguments).returncode, 2, arguments)

    def test_a_server_that_does_not_answer_exits_with_7(self):
        failed = run("bench", "latency", f"127.0.0.1:{free_port()}", *SHORT)
        self.assertEqual(failed.returncode, 7)
        self.assertIn("cannot connect", failed.stderr)

    def test_a_server_that_refuses_everything_exits_with_7_and_is_quoted(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuser) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                failed = run("bench", "latency", f"127.0.0.1:{server.server_port}", *SHORT, "--lengths", "8")
            finally:
                server.shutdown()
                thread.join()
        self.assertEqual(failed.returncode, 7)
        self.assertIn("429: not now", failed.stderr)
        self.assertEqual(failed.stdout, "")


class Grpc(unittest.TestCase):
    def test_an_inference_server_is_asked_directly(self):
        require_model()
        port = free_port()
        with subprocess.Popen([BINARY, "tulip", MODEL, "--listen", f"127.0.0.1:{port}", "--log-level",
                               "warning"]) as tulip:
            try:
                url = f"grpc://127.0.0.1:{port}"
                deadline = time.monotonic() + 60
                while True:  # exit code 7 until it is there and has loaded
                    done = run("bench", "scoring", url, *SHORT, "--batches", "3", "--tokens", "8",
                               "--reference-url", url)
                    if done.returncode != 7 or time.monotonic() > deadline:
                        break
                    time.sleep(0.1)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("3 x 8 tokens", done.stdout)
                refused = run("bench", "latency", url, "--texts", __file__)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("token ids only", refused.stderr)
            finally:
                tulip.terminate()
                self.assertEqual(tulip.wait(timeout=60), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv[:1])
