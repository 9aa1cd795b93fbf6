"""The official `openai` package against the running server: what it sends and what it makes of the answers."""
import math
import os
import unittest

import openai

from server_process import ServerProcess

MODEL = "all-MiniLM-L6-v2"
DIMENSIONS = 384
# "hello world" with [CLS] and [SEP] in BERT's uncased vocabulary.
HELLO_WORLD_IDS = [101, 7592, 2088, 102]


def setUpModule():
    global server, client
    server = ServerProcess.serving(os.environ["BOUQUET_BINARY"], os.environ["BOUQUET_DEMO_MODEL"])
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="unused", max_retries=0, timeout=30)


def tearDownModule():
    client.close()
    if server.stop() != 0:
        raise AssertionError("the server did not end with exit code 0 after SIGTERM")


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def embed(value, **options):
    return client.embeddings.create(model=MODEL, input=value, **options)


class EmbeddingsTest(unittest.TestCase):
    def assert_same(self, a, b, within=1e-5):
        self.assertEqual(len(a), len(b))
        self.assertLess(1 - cosine(a, b), within)

    def test_default_format_is_base64_and_decodes_to_a_unit_vector(self):
        answer = embed("hello world")
        self.assertEqual(len(answer.data), 1)
        vector = answer.data[0].embedding
        self.assertEqual(len(vector), DIMENSIONS)
        self.assertAlmostEqual(math.sqrt(sum(x * x for x in vector)), 1.0, places=5)
        self.assertEqual(answer.model, MODEL)
        self.assertEqual(answer.object, "list")
        self.assertEqual(answer.usage.prompt_tokens, 4)
        self.assertEqual(answer.usage.total_tokens, 4)

    def test_float_format_gives_the_same_numbers(self):
        default = embed("hello world").data[0].embedding
        floats = embed("hello world", encoding_format="float").data[0].embedding
        self.assertEqual(len(floats), DIMENSIONS)
        self.assertLess(max(abs(a - b) for a, b in zip(default, floats)), 1e-5)

    def test_list_keeps_its_order(self):
        texts = ["a cat sat on the mat", "stock prices fell sharply", "a kitten lay on the rug"]
        answer = embed(texts)
        self.assertEqual([entry.index for entry in answer.data], [0, 1, 2])
        for text, entry in zip(texts, answer.data):
            self.assert_same(entry.embedding, embed(text).data[0].embedding)
        first, second, third = (entry.embedding for entry in answer.data)
        self.assertGreater(cosine(first, third), cosine(first, second) + 0.2)

    def test_token_ids_are_used_as_they_are(self):
        text = embed("hello world").data[0].embedding
        self.assert_same(embed(HELLO_WORLD_IDS).data[0].embedding, text)
        answer = embed([HELLO_WORLD_IDS, [101, 7592, 102]])
        self.assertEqual(len(answer.data), 2)
        self.assert_same(answer.data[0].embedding, text)
        self.assert_same(answer.data[1].embedding, embed("hello").data[0].embedding)
        self.assertEqual(answer.usage.prompt_tokens, 7)

    def test_dimensions_cut_and_normalise_again(self):
        whole = embed("hello world").data[0].embedding
        cut = embed("hello world", dimensions=128).data[0].embedding
        self.assertEqual(len(cut), 128)
        self.assertAlmostEqual(math.sqrt(sum(x * x for x in cut)), 1.0, places=5)
        self.assert_same(cut, whole[:128])

    def test_user_field_is_accepted(self):
        self.assertEqual(len(embed("hello world", user="somebody").data), 1)

    def test_many_requests_over_one_connection_pool(self):
        vectors = [embed(f"sentence number {i}").data[0].embedding for i in range(20)]
        self.assertEqual({len(v) for v in vectors}, {DIMENSIONS})


class ErrorsTest(unittest.TestCase):
    def assert_bad_request(self, value, param, **options):
        with self.assertRaises(openai.BadRequestError) as caught:
            embed(value, **options)
        error = caught.exception
        self.assertEqual(error.status_code, 400)
        self.assertEqual(error.type, "invalid_request_error")
        self.assertEqual(error.param, param)
        self.assertTrue(error.request_id)
        return str(error)

    def test_dimensions_out_of_range(self):
        for dimensions, limit in ((0, "at least 1"), (-1, "at least 1"), (385, "1..384"), (100000, "1..384")):
            message = self.assert_bad_request("hello", "dimensions", dimensions=dimensions)
            self.assertIn(str(dimensions), message)
            self.assertIn(limit, message)

    def test_empty_input_names_its_place(self):
        self.assert_bad_request("", "input")
        self.assert_bad_request([], "input")
        self.assert_bad_request(["good", ""], "input[1]")

    def test_token_id_out_of_range(self):
        message = self.assert_bad_request([[101, 999999, 102]], "input[0][1]")
        self.assertIn("999999", message)
        self.assert_bad_request([[101, -1, 102]], "input[0][1]")

    def test_unknown_encoding_format(self):
        self.assert_bad_request("hello", "encoding_format", encoding_format="float64")

    def test_unknown_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client.embeddings.create(model="no-such-model", input="hello")
        self.assertEqual(caught.exception.status_code, 404)
        self.assertIn("no-such-model", str(caught.exception))

    def test_the_next_request_is_served(self):
        with self.assertRaises(openai.BadRequestError):
            embed("")
        self.assertEqual(len(embed("hello").data[0].embedding), DIMENSIONS)


class ModelsTest(unittest.TestCase):
    def test_the_served_model_is_listed(self):
        self.assertIn(MODEL, [model.id for model in client.models.list()])


if __name__ == "__main__":
    unittest.main()
