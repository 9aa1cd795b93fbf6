"""Asks `bouquet serve` for vectors, with nothing but Python's own library and numpy."""
import base64
import concurrent.futures
import http.client
import json
import queue
import time

import numpy as np

MAX_ATTEMPTS = 20


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
