"""Gateway and inference servers as separate processes: one Ivy, two Tulips, and what can happen to them.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library. What each
request must give is asked of the one-process form first.
"""
import base64
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess, free_port  # noqa: E402

BINARY = os.environ["BOUQUET_BINARY"]
MODEL = os.environ.get("BOUQUET_DEMO_MODEL") or os.environ["BOUQUET_DEFAULT_MODEL"]
WORDS = "rose tulip ivy violet daisy lily orchid poppy aster iris fern moss clover sage mint thyme".split()
SECONDS_OF_LOAD = 4
MANY_INPUTS = 10_000


def texts(count, seed=0):
    """Texts of 1 to 24 words, all different."""
    return [" ".join(WORDS[(i * 7 + j * j + seed) % len(WORDS)] for j in range(1 + (i * 5 + seed) % 24)) + f" {i}"
            for i in range(count)]


def embed(port, inputs):
    """Status, and rows of floats or the error's message."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/v1/embeddings", json.dumps({"input": inputs, "encoding_format": "base64"}),
                           {"content-type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    if response.status != 200:
        return response.status, answer["error"]["message"]
    rows = [base64.b64decode(entry["embedding"]) for entry in answer["data"]]
    return 200, [struct.unpack(f"<{len(row) // 4}f", row) for row in rows]


def embed_tei(port, inputs):
    """By the dialect that knows no limit of its own on the number of inputs."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("POST", "/embed", json.dumps({"inputs": inputs}),
                           {"content-type": "application/json", "x-request-timeout-ms": "290000"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    finally:
        connection.close()
    if response.status != 200:
        raise AssertionError(answer)
    return answer


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def metric(port, name):
    """The sum over the series of that name."""
    lines = get(port, "/metrics")[1].splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name + "{") or line.startswith(name + " "))


def distance(a, b):
    """1 - cosine."""
    return 1 - math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Tulip:
    """An inference server that can be stopped, killed and started again at the same address."""

    def __init__(self):
        self.port = free_port()
        self.metrics_port = free_port()
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BINARY, "tulip", MODEL, "--listen", f"127.0.0.1:{self.port}", "--metrics-listen",
             f"127.0.0.1:{self.metrics_port}", "--threads", "1", "--max-queue-ms", "60000", "--log-level", "error"])

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def setUpModule():
    if not pathlib.Path(MODEL, "model.safetensors").exists():
        if os.environ.get("BOUQUET_DATA_REQUIRED") == "1":
            raise AssertionError(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")
        raise unittest.SkipTest(f"BOUQUET_DEMO_MODEL not found: tried {MODEL}")
    global expected
    with ServerProcess([BINARY, "serve", MODEL, "--port", "{port}", "--threads", "1", "--log-level", "error"]) as server:
        expected = {text: embed(server.port, text)[1][0] for text in texts(120)}


class SplitTest(unittest.TestCase):
    def setUp(self):
        self.tulips = [Tulip(), Tulip()]
        self.addCleanup(lambda: [tulip.kill() for tulip in self.tulips])
        flags = [flag for tulip in self.tulips for flag in ("--replica", f"127.0.0.1:{tulip.port}")]
        self.ivy = ServerProcess([BINARY, "ivy", MODEL, *flags, "--port", "{port}", "--log-level", "error",
                                  "--max-inputs-per-request", "20000", "--max-tokens-per-request", "1000000",
                                  "--request-timeout-ms", "300000"])
        self.addCleanup(self.stop_ivy)
        self.assertTrue(self.wait_for_replicas(2))

    def stop_ivy(self):
        if self.ivy is not None:
            ivy, self.ivy = self.ivy, None
            self.assertEqual(ivy.stop(), 0)

    def wait_for_replicas(self, count):
        return wait_for(lambda: json.loads(get(self.ivy.port, "/health/ready")[1]).get("replicas_ready", 0) == count)

    def assert_rows(self, inputs, answer, within=1e-6):
        status, rows = answer
        self.assertEqual(status, 200, rows)
        self.assertEqual(len(rows), len(inputs))
        for text, row in zip(inputs, rows):
            self.assertLessEqual(distance(row, expected[text]), within, text)

    def test_gives_the_same_bits_as_one_process(self):
        for text, row in list(expected.items())[:40]:
            self.assertEqual(embed(self.ivy.port, text), (200, [row]))

    def test_loses_nothing_when_a_replica_is_killed_and_comes_back(self):
        end = time.monotonic() + SECONDS_OF_LOAD
        all_texts = list(expected)

        def client(number):
            answers = 0
            while time.monotonic() < end:
                inputs = [all_texts[(answers * 11 + number * 17 + i) % len(all_texts)]
                          for i in range(1 + (answers * 7 + number) % 40)]
                self.assert_rows(inputs, embed(self.ivy.port, inputs))
                answers += 1
            return answers

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            clients = [pool.submit(client, number) for number in range(4)]
            time.sleep(SECONDS_OF_LOAD / 4)
            self.tulips[0].kill()
            time.sleep(SECONDS_OF_LOAD / 4)
            self.tulips[0].start()
            answers = sum(client.result() for client in clients)
        self.assertGreater(answers, 4)
        self.assertTrue(self.wait_for_replicas(2))

    def test_finishes_elsewhere_what_a_stopped_replica_had(self):
        self.tulips[0].signal(signal.SIGSTOP)
        inputs = list(expected)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for answer in pool.map(lambda _: embed(self.ivy.port, inputs), range(4)):
                self.assert_rows(inputs, answer)
        self.assertTrue(self.wait_for_replicas(1))
        self.assertGreater(metric(self.ivy.port, "bouquet_chunks_sent_again_total"), 0)
        self.tulips[0].signal(signal.SIGCONT)
        self.assertTrue(self.wait_for_replicas(2))

    def test_says_503_at_once_when_no_replica_is_left(self):
        for tulip in self.tulips:
            tulip.kill()
        self.assertTrue(wait_for(lambda: get(self.ivy.port, "/health/ready")[0] == 503))
        self.assertEqual(embed(self.ivy.port, "rose")[0], 503)
        self.tulips[1].start()
        self.assertTrue(self.wait_for_replicas(1))
        self.assert_rows(list(expected)[:1], embed(self.ivy.port, list(expected)[:1]))

    def test_answers_ten_thousand_inputs_in_order(self):
        inputs = [list(expected)[i % 120] for i in range(MANY_INPUTS)]
        rows = embed_tei(self.ivy.port, inputs)
        self.assertEqual(len(rows), MANY_INPUTS)
        for i in range(0, MANY_INPUTS, 97):
            self.assertLessEqual(distance(rows[i], expected[inputs[i]]), 1e-6, i)

    def test_serves_beside_a_thousand_idle_connections(self):
        idle = [socket.create_connection(("127.0.0.1", self.ivy.port)) for _ in range(1000)]
        try:
            self.assert_rows(list(expected)[:8], embed(self.ivy.port, list(expected)[:8]))
        finally:
            for connection in idle:
                connection.close()

    def test_frees_the_queue_when_a_client_hangs_up(self):
        def total(name):
            return sum(metric(tulip.metrics_port, name) for tulip in self.tulips)

        body = json.dumps({"input": [list(expected)[i % 120] for i in range(2000)]}).encode()
        request = (b"POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                   b"content-length: %d\r\n\r\n" % len(body) + body)
        gone = 0
        for _ in range(10):  # now and then everything that waited has just been put into a step
            clients = [socket.create_connection(("127.0.0.1", self.ivy.port)) for _ in range(4)]
            for client in clients:
                client.sendall(request)
            self.assertTrue(wait_for(lambda: total("bouquet_queue_tokens") > 0))
            for client in clients:
                client.close()
            gone += len(clients)
            self.assertTrue(wait_for(lambda: metric(self.ivy.port, "bouquet_http_cancelled_total") == gone))
            self.assertTrue(wait_for(lambda: total("bouquet_queue_tokens") == 0))
            if total("bouquet_spared_tokens_total") > 0:
                break
        self.assertGreater(total("bouquet_spared_tokens_total"), 0)
        self.assert_rows(list(expected)[:1], embed(self.ivy.port, list(expected)[:1]))

    def test_gives_no_work_to_a_replica_of_another_model(self):
        self.stop_ivy()
        with ServerProcess([BINARY, "ivy", MODEL, "--replica", f"127.0.0.1:{self.tulips[0].port}", "--replica",
                            "127.0.0.1:1", "--port", "{port}", "--log-level", "error"]) as ivy:
            self.assertEqual(json.loads(get(ivy.port, "/health/ready")[1])["replicas_ready"], 1)

    def test_drains_a_replica_without_losing_a_request(self):
        inputs = list(expected) * 4
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(embed, self.ivy.port, inputs) for _ in range(4)]
            time.sleep(0.2)
            self.assertEqual(self.tulips[0].terminate(), 0)
            for answer in answers:
                self.assert_rows(inputs, answer.result())


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
