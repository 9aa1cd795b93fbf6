"""Gateway and inference servers as separate processes: one Ivy, two Tulips, and what can happen to them.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library. What each
request must give is asked of the one-process form first.
"""
import concurrent.futures
import json
import pathlib
import signal
import socket
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from gateway_client import (BINARY, MODEL, Tulip, distance, embed, embed_tei, get, link_model_folder,  # noqa: E402
                            metric, require_model, rows_of, wait_for)

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess  # noqa: E402

WORDS = "rose tulip ivy violet daisy lily orchid poppy aster iris fern moss clover sage mint thyme".split()
SECONDS_OF_LOAD = 4
MANY_INPUTS = 10_000


def texts(count, seed=0):
    """Texts of 1 to 24 words, all different."""
    return [" ".join(WORDS[(i * 7 + j * j + seed) % len(WORDS)] for j in range(1 + (i * 5 + seed) % 24)) + f" {i}"
            for i in range(count)]


def setUpModule():
    require_model()
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

        request = self.request_of([list(expected)[i % 120] for i in range(2000)])
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

    def request_of(self, inputs):
        body = json.dumps({"input": inputs, "encoding_format": "base64"}).encode()
        return (b"POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n" % len(body) + body)

    def test_answers_a_client_that_has_closed_its_side(self):
        inputs = list(expected)[:40]
        with socket.create_connection(("127.0.0.1", self.ivy.port), timeout=60) as client:
            client.sendall(self.request_of(inputs))
            client.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        # Whether the client is still there is found out by an interim answer.
        head, body = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").split(b"\r\n\r\n", 1)
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        self.assert_rows(inputs, (200, rows_of(json.loads(body))))

    def test_serves_beside_slow_headers_and_slow_readers(self):
        inputs = [list(expected)[i % 120] for i in range(2000)]
        readers = []
        for _ in range(3):
            reader = socket.socket()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.settimeout(120)
            reader.connect(("127.0.0.1", self.ivy.port))
            reader.sendall(self.request_of(inputs))
            readers.append(reader)
        writers = [socket.create_connection(("127.0.0.1", self.ivy.port)) for _ in range(50)]
        request = self.request_of(list(expected)[:1])
        try:
            for i in range(20):  # a byte of each header at a time, and a request of somebody else in between
                for writer in writers:
                    writer.sendall(request[i:i + 1])
                self.assert_rows(list(expected)[i:i + 1], embed(self.ivy.port, list(expected)[i:i + 1]))
            for writer in writers[:3]:  # slow is not wrong
                writer.sendall(request[20:])
                self.assertTrue(writer.recv(1 << 16).startswith(b"HTTP/1.1 200 "))
            for reader in readers:  # their answers have waited, whole
                answer = b""
                while b"\r\n\r\n" not in answer:
                    answer += reader.recv(1 << 16)
                head, body = answer.split(b"\r\n\r\n", 1)
                length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))[15:])
                while len(body) < length:
                    body += reader.recv(1 << 16)
                self.assertEqual(len(rows_of(json.loads(body))), len(inputs))
        finally:
            for connection in readers + writers:
                connection.close()

    def test_gives_no_work_to_a_replica_of_another_model(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = link_model_folder(temporary, without=("config.json",))
            config = pathlib.Path(MODEL, "config.json").read_text()
            (folder / "config.json").write_text(config + "\n")  # other bytes: another model
            other = Tulip(folder)
            self.addCleanup(other.kill)
            replicas = [flag for tulip in (other, self.tulips[0]) for flag in ("--replica", f"127.0.0.1:{tulip.port}")]
            with ServerProcess([BINARY, "ivy", MODEL, *replicas, "--port", "{port}", "--log-level", "off"]) as ivy:
                self.assertTrue(wait_for(lambda: get(other.metrics_port, "/health/ready")[0] == 200))
                inputs = list(expected)[:60]
                for _ in range(5):
                    self.assert_rows(inputs, embed(ivy.port, inputs))
                self.assertEqual(json.loads(get(ivy.port, "/health/ready")[1])["replicas_ready"], 1)
                self.assertEqual(metric(other.metrics_port, "bouquet_answered_sequences_total"), 0)

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
