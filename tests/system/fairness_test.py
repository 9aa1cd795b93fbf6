"""Short queries beside bulk work, with a real engine: who waits for how many steps.

Run by ctest with BOUQUET_BINARY and BOUQUET_DEFAULT_MODEL set; needs nothing but Python's standard library. Counted in
steps, never in time: a machine may be as slow as it likes. A step that begins between reading the counters and the
query's arrival is counted too, so single queries on a busy machine may see more of them; half of the queries must not.
"""
import json
import pathlib
import socket
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from gateway_client import BINARY, MODEL, metric, post, require_model, wait_for  # noqa: E402

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from server_process import ServerProcess  # noqa: E402

WORDS = "river stone light water house green small garden north paper music winter summer silver table horse".split()
ABSTRACTS, PER_REQUEST, WORDS_OF_ABSTRACT = 1000, 100, 245
STEP_TOKENS = 1024  # 4 abstracts
# Of each request two chunks, each as large as a step, are in the queue at a time.
QUEUED = 2 * 4 * ABSTRACTS // PER_REQUEST
QUERIES = 11


def setUpModule():
    require_model()


def abstract(number):
    return " ".join(WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(WORDS_OF_ABSTRACT))


def request_of(inputs, traffic_class):
    body = json.dumps({"input": inputs, "encoding_format": "base64"}).encode()
    return (b"POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nx-bouquet-class: %s\r\n"
            b"content-length: %d\r\n\r\n" % (traffic_class.encode(), len(body)) + body)


class FairnessTest(unittest.TestCase):
    def setUp(self):
        self.server = ServerProcess([BINARY, "serve", MODEL, "--port", "{port}", "--device", "cpu", "--step-tokens",
                                     str(STEP_TOKENS), "--max-queue-ms", "600000", "--request-timeout-ms", "600000",
                                     "--over-length", "truncate", "--log-level", "error"])
        self.addCleanup(self.server.stop)
        self.port = self.server.port

    def steps(self):
        return metric(self.port, "bouquet_steps_total")

    def waiting(self):
        return metric(self.port, "bouquet_queue_sequences")

    def embed_one(self, text, traffic_class="interactive"):
        status, answer = post(self.port, "/v1/embeddings", {"input": text}, 300, {"x-bouquet-class": traffic_class})
        self.assertEqual(status, 200, answer)

    def queue_abstracts(self, traffic_class):
        """Sends all of them, and waits until the queue holds of them what it ever does. The end takes out what is left."""
        for first in range(0, ABSTRACTS, PER_REQUEST):
            client = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(client.close)
            client.sendall(request_of([abstract(first + i) for i in range(PER_REQUEST)], traffic_class))
        self.assertTrue(wait_for(lambda: self.waiting() > QUEUED / 2))

    def steps_of_each_query(self, count):
        """How many steps began between sending each query and its answer, while other work waited all the time."""
        begun = []
        for number in range(count):
            waiting, before = self.waiting(), self.steps()
            self.embed_one(f"which {WORDS[number % len(WORDS)]} is blue?")
            begun.append(self.steps() - before)
            self.assertGreater(waiting, QUEUED / 2)
            self.assertGreater(self.waiting(), 0)  # answered before what had been queued earlier
        return sorted(begun)

    def test_a_short_query_passes_a_thousand_abstracts(self):
        self.queue_abstracts("bulk")
        begun = self.steps_of_each_query(QUERIES)
        # First come first served it would be some twenty.
        # Its own, the one that follows while the answer travels, and now and then one that aged bulk work has a right to.
        self.assertLessEqual(begun[len(begun) // 2], 3, begun)
        self.assertGreaterEqual(begun[0], 1, begun)

    def test_bulk_work_is_not_starved_by_interactive_work(self):
        self.queue_abstracts("interactive")
        self.embed_one("a rose in no hurry", "bulk")
        self.assertGreater(self.waiting(), 0)  # answered before interactive work that had been queued earlier


if __name__ == "__main__":
    unittest.main(verbosity=2)
