"""The command line as a user meets it: output, exit codes and error texts of the built binary.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BINARY = os.environ["BOUQUET_BINARY"]
MODEL = os.environ.get("BOUQUET_DEMO_MODEL") or os.environ["BOUQUET_DEFAULT_MODEL"]


def require_model(test):
    if not pathlib.Path(MODEL, "model.safetensors").exists():
        if os.environ.get("BOUQUET_DATA_REQUIRED") == "1":
            test.fail(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")
        test.skipTest(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")


def run(*args, stdin=b"", env=None):
    return subprocess.run([BINARY, *args], input=stdin, capture_output=True, timeout=120,
                          env={**os.environ, **(env or {})}, check=False)


def read_npy(path):
    content = pathlib.Path(path).read_bytes()
    shape = eval(content[10:128])["shape"]  # our own file
    values = struct.unpack(f"<{shape[0] * shape[1]}f", content[128:])
    return [values[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    return dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


class Usage(unittest.TestCase):
    def test_version_and_help_exit_with_0(self):
        self.assertRegex(run("--version").stdout.decode(), r"^bouquet \d+\.\d+\.\d+\n$")
        for command in ((), ("serve",), ("embed",), ("tokenize",), ("info",)):
            shown = run(*command, "--help")
            self.assertEqual(shown.returncode, 0)
            self.assertIn("bouquet", shown.stdout.decode())
            self.assertIn("Example", shown.stdout.decode())

    def test_wrong_usage_exits_with_2(self):
        for args in ((), ("nonsense",), ("embed",), ("serve", MODEL, "--no-such-flag"),
                     ("serve", MODEL, "--port", "high"), ("embed", MODEL, "--format", "xml"),
                     ("--log-level", "loud", "info", MODEL)):
            failed = run(*args)
            self.assertEqual(failed.returncode, 2, args)
            self.assertTrue(failed.stderr or failed.stdout, args)

    def test_a_model_that_cannot_be_used_exits_with_3(self):
        with tempfile.TemporaryDirectory() as folder:
            for command in (("info", folder), ("tokenize", folder), ("embed", folder),
                            ("serve", folder, "--port", "0")):
                failed = run(*command)
                self.assertEqual(failed.returncode, 3, command)
                self.assertIn(folder, failed.stderr.decode())


class Device(unittest.TestCase):
    # A device that no machine has, so that each build and machine has something to say.
    NONE = "cuda:999"

    def test_a_device_that_is_not_there_exits_with_2_and_says_what_would_work(self):
        require_model(self)
        for command in (("embed", MODEL), ("serve", MODEL, "--port", "0"), ("tulip", MODEL, "--listen", "127.0.0.1:0")):
            failed = run(*command, "--device", self.NONE, "--log-level", "off", stdin=b"text\n")
            self.assertEqual(failed.returncode, 2, (command, failed.stderr))
            lines = failed.stderr.decode().splitlines()
            self.assertEqual(len(lines), 1, lines)
            self.assertRegex(lines[0], "^bouquet: error: .*(--device cpu|from cuda:0)")
            if "built without CUDA" in lines[0]:
                self.assertIn("./dev build cuda", lines[0])

    def test_auto_uses_the_cpu_where_there_is_no_device(self):
        require_model(self)
        done = run("embed", MODEL, "--device", "auto", stdin=b"text\n", env={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_values_exit_with_2_and_say_what_is_right(self):
        for flag, values, right in (("--device", ("gpu", "cuda:", "cuda:-1", "cuda:1x", "CUDA", "0"), "cuda:N"),
                                    ("--graphs", ("eager", "LAZY"), "lazy,startup,off"),
                                    ("--attention", ("fa4", "flash"), "auto,own,fa2,fa3"),
                                    ("--memory-fraction", ("0", "-0.5", "1.01", "90%", "nan"), "over 0 and at most 1")):
            for value in values:
                failed = run("embed", MODEL, f"{flag}={value}")
                self.assertEqual(failed.returncode, 2, (flag, value, failed.stderr))
                self.assertIn(flag, failed.stderr.decode())
                self.assertIn(right, failed.stderr.decode())

    def test_pins_threads_when_asked_and_says_what_cannot_be_pinned(self):
        require_model(self)
        done = run("embed", MODEL, "--device", "cpu", "--pin-threads", "true", stdin=b"text\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        for flags, words in ((("--device", "cpu", "--threads", "1024"), "processors that this process may use"),
                             (("--device", "cuda:0"), "--device cuda:0")):
            failed = run("embed", MODEL, "--pin-threads", "true", *flags, stdin=b"text\n")
            self.assertEqual(failed.returncode, 2, (flags, failed.stderr))
            self.assertIn(words, failed.stderr.decode())


class Info(unittest.TestCase):
    def test_tells_what_a_folder_is(self):
        require_model(self)
        shown = run("info", MODEL)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        text = shown.stdout.decode()
        for part in ("6 layers, hidden size 384, 12 heads", "256 tokens", "pooling mean -> normalize", "30522"):
            self.assertIn(part, text)


class Tokenize(unittest.TestCase):
    def test_gives_one_object_with_ids_a_line(self):
        require_model(self)
        done = run("tokenize", MODEL, stdin="Hello world!\n\nnaïve café\n".encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(lines, [{"ids": [101, 7592, 2088, 999, 102]}, {"ids": [101, 102]},
                                 {"ids": [101, 15743, 7668, 102]}])

    def test_needs_only_the_tokenizer_files(self):
        require_model(self)
        for name in ("tokenizer.json", "vocab.txt"):
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, name).write_bytes(pathlib.Path(MODEL, name).read_bytes())
                if name == "vocab.txt":
                    config = pathlib.Path(MODEL, "tokenizer_config.json").read_bytes()
                    pathlib.Path(folder, "tokenizer_config.json").write_bytes(config)
                done = run("tokenize", folder, stdin=b"Hello world!")
                self.assertEqual(json.loads(done.stdout)["ids"], [101, 7592, 2088, 999, 102], done.stderr)

    def test_answers_a_program_that_waits_for_each_line(self):
        require_model(self)
        with subprocess.Popen([BINARY, "tokenize", MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(3):
                process.stdin.write(b"hello\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline()), {"ids": [101, 7592, 102]})
            process.stdin.close()
            self.assertEqual(process.wait(timeout=60), 0)

    def test_names_the_line_of_a_bad_text_and_exits_with_4(self):
        require_model(self)
        failed = run("tokenize", MODEL, stdin=b"fine\nbad \xff\n")
        self.assertEqual(failed.returncode, 4)
        self.assertEqual(json.loads(failed.stdout), {"ids": [101, 2986, 102]})
        self.assertIn("standard input:2: ", failed.stderr.decode())


class Embed(unittest.TestCase):
    def test_writes_the_same_vectors_in_every_form(self):
        require_model(self)
        with tempfile.TemporaryDirectory() as folder:
            texts = pathlib.Path(folder, "texts")
            texts.write_text("a cat sat on the mat\nstock markets fell\n a dog lay on the rug\n" + "long " * 400 + "\n")
            npy = run("embed", MODEL, str(texts), "--output", f"{folder}/rows.npy")
            self.assertEqual(npy.returncode, 0, npy.stderr)
            rows = read_npy(f"{folder}/rows.npy")
            self.assertEqual([len(row) for row in rows], [384] * 4)
            self.assertGreater(cosine(rows[0], rows[2]), cosine(rows[0], rows[1]))
            lines = run("embed", MODEL, "-", "--output", "-", stdin=texts.read_bytes())
            objects = [json.loads(line) for line in lines.stdout.splitlines()]
            self.assertEqual([item["index"] for item in objects], [0, 1, 2, 3])
            self.assertEqual([item.get("truncated", False) for item in objects], [False, False, False, True])
            for row, item in zip(rows, objects):
                self.assertGreater(cosine(row, item["embedding"]), 0.999999)
            self.assertEqual(sorted(os.listdir(folder)), ["rows.npy", "texts"])

    def test_reads_a_field_of_json_lines_and_cuts_dimensions(self):
        require_model(self)
        done = run("embed", MODEL, "--format", "jsonl", "--field", "body", "--dimensions", "64", "--output", "-",
                   stdin=b'{"body": "one"}\n{"body": "two", "id": 7}\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line)["embedding"] for line in done.stdout.splitlines()]
        self.assertEqual([len(row) for row in rows], [64, 64])
        self.assertAlmostEqual(sum(x * x for x in rows[0]), 1, places=5)

    def test_names_the_line_of_a_bad_text_exits_with_4_and_leaves_no_file(self):
        require_model(self)
        for content, part in ((b"fine\n\nfine\n", ":2: "), (b"fine\nfine\nbad \xff\n", ":3: "),
                              (b"word " * 400, "256")):
            with tempfile.TemporaryDirectory() as folder:
                failed = run("embed", MODEL, "-", "--output", f"{folder}/rows.npy", "--over-length", "error",
                             stdin=content)
                self.assertEqual(failed.returncode, 4, failed.stderr)
                self.assertIn(part, failed.stderr.decode())
                self.assertEqual(os.listdir(folder), [])

    def test_says_why_the_output_cannot_be_written_and_exits_with_5(self):
        require_model(self)
        failed = run("embed", MODEL, "-", "--output", "/no/such/folder/rows.npy", stdin=b"text\n")
        self.assertEqual(failed.returncode, 5)
        self.assertIn("/no/such/folder/rows.npy", failed.stderr.decode())


class Serve(unittest.TestCase):
    def start(self, *args, env=None):
        process = subprocess.Popen([BINARY, "serve", MODEL, *args], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(env or {})})
        self.addCleanup(process.wait, 60)
        self.addCleanup(process.kill)
        self.addCleanup(process.stderr.close)
        return process

    def url_of(self, process):
        for line in process.stderr:
            if "http://" in line:
                return "http://" + line.split("http://")[1].split()[0].rstrip("/,")
        self.fail("the server ended before it told its address")

    def wait_until_ready(self, url):
        for _ in range(600):
            try:
                with urllib.request.urlopen(url + "/health/ready", timeout=10) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.05)
        self.fail("the server did not become ready")

    def embed(self, url):
        body = json.dumps({"model": "all-MiniLM-L6-v2", "input": "hello"}).encode()
        request = urllib.request.Request(url + "/v1/embeddings", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"][0]["embedding"]

    def test_answers_then_ends_with_0_on_sigterm(self):
        require_model(self)
        process = self.start("--port", "0")
        url = self.url_of(process)
        self.wait_until_ready(url)
        self.assertEqual(len(self.embed(url)), 384)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 0)

    def test_takes_each_flag_from_the_environment_too(self):
        require_model(self)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = self.start(env={"BOUQUET_PORT": str(port)})
        self.assertTrue(self.url_of(process).endswith(f":{port}"))

    def test_says_when_the_port_is_in_use_and_exits_with_5(self):
        require_model(self)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            failed = run("serve", MODEL, "--port", str(taken.getsockname()[1]))
        self.assertEqual(failed.returncode, 5)
        self.assertIn("in use", failed.stderr.decode())

    def test_refuses_impossible_settings_with_2(self):
        require_model(self)
        for flags in (("--max-body-bytes", "0"), ("--port", "70000"), ("--device", "tpu"), ("--dtype", "float16"),
                      ("--max-input-tokens", "100000")):
            failed = run("serve", MODEL, *flags)
            self.assertEqual(failed.returncode, 2, (flags, failed.stderr))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv[:1])
