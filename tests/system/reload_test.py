"""SIGHUP: a gateway takes over other tokenizer files, prompts and limits, or keeps the old ones.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from gateway_client import (BINARY, MODEL, Tulip, embed, get, link_model_folder, metric, post,  # noqa: E402
                            require_model, wait_for)

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess  # noqa: E402

RELOADS_UNDER_LOAD = 15


def setUpModule():
    require_model()


class Folder:
    """The model folder with a tokenizer and prompts of its own; all else is linked."""

    def __init__(self, parent):
        self.path = link_model_folder(parent, without=("tokenizer.json", "config_sentence_transformers.json"))
        self.write_prompts({})
        self.write_tokenizer(lowercase=True)

    def write_prompts(self, prompts):
        (self.path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))

    def write_tokenizer(self, lowercase):
        tokenizer = json.loads((pathlib.Path(MODEL) / "tokenizer.json").read_text())
        tokenizer["normalizer"]["lowercase"] = lowercase
        (self.path / "tokenizer.json").write_text(json.dumps(tokenizer))

    def break_tokenizer(self):
        (self.path / "tokenizer.json").write_text('{"model": {"type": "WordPiece", "vocab": {')


class ReloadTest(unittest.TestCase):
    """The gateway alone, in front of a replica that serves the untouched folder."""

    @classmethod
    def setUpClass(cls):
        cls.tulip = Tulip()

    @classmethod
    def tearDownClass(cls):
        cls.tulip.terminate()

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Folder(temporary.name)
        self.config = pathlib.Path(temporary.name) / "bouquet.toml"
        self.write_config("")
        self.gateway = ServerProcess(
            [BINARY, "ivy", str(self.folder.path), "--config", str(self.config), "--replica",
             f"127.0.0.1:{self.tulip.port}", "--port", "{port}", "--log-level", "off"])
        self.addCleanup(self.gateway.stop)
        self.port = self.gateway.port

    def write_config(self, lines):
        self.config.write_text(f"[ivy]\n{lines}\n\n[tulip]\nthreads = 1\n")

    def reload(self, outcome):
        series = f'bouquet_reloads_total{{outcome="{outcome}"}}'
        before = metric(self.port, series)
        self.gateway.send_signal(signal.SIGHUP)
        self.assertTrue(wait_for(lambda: metric(self.port, series) == before + 1), f"no reload was counted as {outcome}")

    def test_takes_over_prompts(self):
        body = {"inputs": "a rose", "prompt_name": "query"}
        self.assertEqual(post(self.port, "/embed", body)[0], 422)
        self.folder.write_prompts({"query": "query: "})
        self.reload("ok")
        status, rows = post(self.port, "/embed", body)
        self.assertEqual(status, 200)
        self.assertEqual(rows, post(self.port, "/embed", {"inputs": "query: a rose"})[1])

    def test_takes_over_another_tokenizer_and_comes_back(self):
        lower, upper = embed(self.port, ["a rose", "A ROSE"])[1]
        self.assertEqual(lower, upper)
        self.folder.write_tokenizer(lowercase=False)
        self.reload("ok")
        other_lower, other_upper = embed(self.port, ["a rose", "A ROSE"])[1]
        self.assertEqual(other_lower, lower)
        self.assertNotEqual(other_upper, upper)
        self.folder.write_tokenizer(lowercase=True)
        self.reload("ok")
        self.assertEqual(embed(self.port, ["a rose", "A ROSE"])[1], [lower, upper])

    def test_takes_over_limits(self):
        self.assertEqual(embed(self.port, ["a"] * 3)[0], 200)
        self.write_config("max-inputs-per-request = 2\nmax-tokens-per-request = 600\nmax-input-tokens = 5")
        self.reload("ok")
        self.assertEqual(embed(self.port, ["a"] * 3)[0], 413)
        self.assertEqual(embed(self.port, ["a"] * 2)[0], 200)
        self.assertEqual(embed(self.port, "a b c d e f g h")[0], 413)
        self.assertIn('"max_inputs_per_request":2', get(self.port, "/info")[1])
        self.write_config("")
        self.reload("ok")
        self.assertEqual(embed(self.port, ["a"] * 3)[0], 200)

    def test_keeps_everything_when_any_of_it_is_bad(self):
        row = embed(self.port, "A ROSE")[1]
        good = self.config.read_text()
        for config in ("http-threads = 3", "host = \"0.0.0.0\"", "max-body-bytes = 1", "max-body-bytes = \"many\"",
                       "no-such-flag = 1", "max-input-tokens = 100000", "text-workers = 7", "alias = [\"b\"]",
                       "api-keys = \"k\""):
            self.folder.write_prompts({"query": "query: "})  # good, and not to be taken over alone
            self.write_config("max-inputs-per-request = 1\n" + config)
            self.reload("failed")
        self.config.write_text(good)
        self.folder.break_tokenizer()
        self.reload("failed")
        (self.folder.path / "tokenizer.json").unlink()
        (self.folder.path / "vocab.txt").unlink(missing_ok=True)
        self.reload("failed")
        self.folder.write_tokenizer(lowercase=False)
        (self.folder.path / "config.json").unlink()
        (self.folder.path / "config.json").write_text("{}")
        self.reload("failed")
        self.assertEqual(embed(self.port, "A ROSE")[1], row)
        self.assertEqual(embed(self.port, ["a", "b"])[0], 200)
        self.assertEqual(post(self.port, "/embed", {"inputs": "a", "prompt_name": "query"})[0], 422)

    def test_loses_no_request_while_it_reloads(self):
        stop = threading.Event()
        statuses = []

        def ask():
            while not stop.is_set():
                statuses.append(embed(self.port, ["a rose", "an ivy"])[0])

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(RELOADS_UNDER_LOAD):
            self.folder.write_tokenizer(lowercase=i % 2 == 1)
            self.reload("ok")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertGreater(len(statuses), 0)
        self.assertEqual(set(statuses), {200})

    def test_the_replica_goes_on_untouched(self):
        pid = self.tulip.process.pid
        self.tulip.signal(signal.SIGHUP)  # nothing to read again there
        self.folder.write_prompts({"query": "q "})
        self.reload("ok")
        self.assertEqual(embed(self.port, "a")[0], 200)
        self.assertIsNone(self.tulip.process.poll())
        self.assertEqual(self.tulip.process.pid, pid)


class OneProcessTest(unittest.TestCase):
    def test_serve_reloads_too_and_refuses_what_belongs_to_the_engine(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Folder(temporary)
            config = pathlib.Path(temporary) / "bouquet.toml"
            config.write_text("[serve]\nmax-queue-ms = 5000\n")
            with ServerProcess([BINARY, "serve", str(folder.path), "--config", str(config), "--port", "{port}", "--threads",
                                "1", "--log-level", "off"]) as server:
                failed, done = ('bouquet_reloads_total{outcome="%s"}' % outcome for outcome in ("failed", "ok"))
                engine_flags = ('device = "cpu"', "pin-threads = true", 'graphs = "off"', 'attention = "own"',
                                "memory-fraction = 0.5")
                changes = ["max-queue-ms = 6000", *(f"max-queue-ms = 5000\n{line}" for line in engine_flags)]
                for refusals, lines in enumerate(changes, 1):
                    config.write_text(f"[serve]\n{lines}\n")
                    server.send_signal(signal.SIGHUP)
                    self.assertTrue(wait_for(lambda: metric(server.port, failed) == refusals), lines)
                config.write_text("[serve]\nmax-queue-ms = 5000\nmax-inputs-per-request = 1\n")
                server.send_signal(signal.SIGHUP)
                self.assertTrue(wait_for(lambda: metric(server.port, done) == 1))
                self.assertEqual(embed(server.port, ["a", "b"])[0], 413)
                self.assertEqual(embed(server.port, ["a"])[0], 200)


class ConfigFileTest(unittest.TestCase):
    def run_serve(self, config, *flags):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(config)
            file.flush()
            return subprocess.run([BINARY, "serve", MODEL, "--config", file.name, *flags], capture_output=True, text=True,
                                  timeout=60)

    def test_a_bad_file_is_a_usage_error_that_names_the_flag(self):
        for config, words in (("[serve]\nno-such-flag = 1\n", "no-such-flag"), ("[serve]\nport = \"x\"\n", "port"),
                              ("[serve]\nmax-body-bytes = 1\n", "--max-body-bytes")):
            run = self.run_serve(config)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(words, run.stderr + run.stdout)

    def test_a_flag_outside_its_section_is_an_error_that_shows_how(self):
        for config, name in (("max-body-bytes = 2000000\n", "flag of this name: max-body-bytes"),
                             ("[serve]\nno-such = 1\n", "flag of this name: serve.no-such"),
                             ("[severe]\nport = 1\n", "section of this name: severe")):
            run = self.run_serve(config)
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr, rf"--config /\S+\.toml: no {name};.*\[serve\]")

    def test_a_file_that_is_not_there_is_a_usage_error(self):
        run = subprocess.run([BINARY, "serve", MODEL, "--config", "/no/such/file.toml"], capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn("/no/such/file.toml", run.stderr + run.stdout)

    def test_the_command_line_beats_the_file(self):
        run = self.run_serve("[serve]\nmax-body-bytes = 20000000\n", "--max-body-bytes", "1")
        self.assertEqual(run.returncode, 2)
        self.assertIn("not 1", run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
