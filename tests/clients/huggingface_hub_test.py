"""huggingface_hub's InferenceClient.feature_extraction against the running server (it posts to the bare URL)."""
import os
import unittest

import numpy as np
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from server_process import ServerProcess

DIMENSIONS = 384


def setUpModule():
    global server, client
    server = ServerProcess.serving(os.environ["BOUQUET_BINARY"], os.environ["BOUQUET_DEMO_MODEL"])
    client = InferenceClient(model=server.url, timeout=30)


def tearDownModule():
    if server.stop() != 0:
        raise AssertionError("the server did not end with exit code 0 after SIGTERM")


class FeatureExtractionTest(unittest.TestCase):
    def test_one_text_gives_one_unit_row(self):
        rows = np.asarray(client.feature_extraction("hello world"))
        self.assertEqual(rows.shape, (1, DIMENSIONS))
        self.assertAlmostEqual(float(np.linalg.norm(rows[0])), 1.0, places=5)

    def test_several_texts_keep_their_order(self):
        texts = ["a cat sat on the mat", "stock prices fell sharply"]
        rows = np.asarray(client.feature_extraction(texts))
        self.assertEqual(rows.shape, (2, DIMENSIONS))
        for text, row in zip(texts, rows):
            alone = np.asarray(client.feature_extraction(text))[0]
            self.assertGreater(float(row @ alone), 0.99999)

    def test_normalize_false_gives_what_the_model_makes_without_it(self):
        unit = np.asarray(client.feature_extraction("hello world", normalize=True))[0]
        raw = np.asarray(client.feature_extraction("hello world", normalize=False))[0]
        self.assertGreater(float(unit @ raw / np.linalg.norm(raw)), 0.99999)

    def test_truncate_cuts_a_long_text(self):
        rows = np.asarray(client.feature_extraction("word " * 5000, truncate=True))
        self.assertEqual(rows.shape, (1, DIMENSIONS))

    def test_a_bad_request_is_its_exception(self):
        with self.assertRaises(HfHubHTTPError) as caught:
            client.feature_extraction("")
        self.assertEqual(caught.exception.response.status_code, 400)
        self.assertEqual(np.asarray(client.feature_extraction("hello")).shape, (1, DIMENSIONS))


if __name__ == "__main__":
    unittest.main()
