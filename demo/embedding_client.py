"""Starts `bouquet serve` and asks it for vectors, with nothing but Python's own library and numpy."""
import base64
import concurrent.futures
import http.client
import json
import queue
import signal
import socket
import subprocess
import time

import numpy as np

MAX_ATTEMPTS = 20


def free_port(preferred):
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return probe.getsockname()[1]
            except OSError:
                continue
    raise SystemExit("demo: no free port")


class Server:
    """The server as a child process: ready when entered, stopped when left."""

    def __init__(self, bouquet, model, port):
        self._command = [bouquet, "serve", model, "--port", str(port), "--log-level", "warning"]
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.ready_seconds = 0.0

    def __enter__(self):
        started = time.monotonic()
        # A group of its own, so that Ctrl-C reaches the demo, which then stops the server in order.
        self._process = subprocess.Popen(self._command, start_new_session=True)
        while not self._is_ready():
            if self._process.poll() is not None:
                raise SystemExit(f"demo: the server ended with exit code {self._process.returncode}")
            if time.monotonic() - started > 60:
                self._process.kill()
                raise SystemExit("demo: the server was not ready within 60 s")
            time.sleep(0.02)
        self.ready_seconds = time.monotonic() - started
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise SystemExit("demo: the server did not stop within 40 s of SIGTERM")
        if code != 0:
            raise SystemExit(f"demo: the server ended with exit code {code}")

    def _is_ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


class EmbeddingClient:
    """Keeps its connections; one may be used by one thread at a time."""

    def __init__(self, port):
        self._port = port
        self._idle = queue.LifoQueue()

    def model_id(self):
        return json.loads(self._ask("GET", "/v1/models"))["data"][0]["id"]

    def embed(self, texts, bulk=False):
        """Unit vectors [num_texts, dimensions], f32, in the order of the texts."""
        body = json.dumps({"model": "", "input": texts, "encoding_format": "base64"})
        headers = {"Content-Type": "application/json", "x-bouquet-class": "bulk" if bulk else "interactive"}
        answer = json.loads(self._ask("POST", "/v1/embeddings", body, headers))
        rows = [np.frombuffer(base64.b64decode(entry["embedding"]), "<f4") for entry in answer["data"]]
        return np.stack(rows)

    def embed_many(self, batches, concurrent_requests, until):
        """Yields the vectors of each batch in order; sends no further request after `until`."""
        with concurrent.futures.ThreadPoolExecutor(concurrent_requests) as pool:
            under_way = []
            remaining = iter(batches)
            while True:
                while len(under_way) < 2 * concurrent_requests and time.monotonic() < until:
                    batch = next(remaining, None)
                    if batch is None:
                        break
                    under_way.append(pool.submit(self.embed, batch, True))
                if not under_way:
                    return
                yield under_way.pop(0).result()

    def _ask(self, method, path, body=None, headers=None):
        """The body of the answer. A server that is full says when to come back (429, Retry-After): as told, a few times."""
        for _ in range(MAX_ATTEMPTS):
            status, retry_after, content = self._exchange(method, path, body, headers)
            if status == 200:
                return content
            if status != 429:
                break
            time.sleep(retry_after)
        raise SystemExit(f"demo: {method} {path} was answered with {status}: {content.decode()[:500]}")

    def _exchange(self, method, path, body, headers):
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        self._idle.put(connection)
        return response.status, int(response.headers.get("retry-after", "1")), content
