"""Arithmetic of a forward pass, from config.json, against sums by hand."""
import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from model_cost import ModelCost  # noqa: E402

BERT = {"model_type": "bert", "vocab_size": 30522, "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 32,
        "num_attention_heads": 2}
DISTILBERT = {"model_type": "distilbert", "vocab_size": 30522, "n_layers": 2, "dim": 8, "hidden_dim": 32, "n_heads": 2}
QWEN3 = {"model_type": "qwen3", "vocab_size": 1000, "num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4}


def cost_of(config):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "config.json").write_text(json.dumps(config))
        return ModelCost(folder)


class ModelCostTest(unittest.TestCase):
    def test_counts_matrices_of_bert_and_distilbert(self):
        # A layer: four of 8 x 8, and 8 x 32 up and down.
        for config in (BERT, DISTILBERT):
            self.assertEqual(cost_of(config).matrix_values, 2 * (4 * 64 + 2 * 256))
        self.assertEqual(cost_of(BERT).matrix_bytes("bfloat16"), 2 * 1536)

    def test_counts_matrices_of_grouped_heads_and_a_gate(self):
        # Queries 8 x 16, keys and values 8 x 8 each, output 16 x 8, three of 8 x 16.
        self.assertEqual(cost_of(QWEN3).matrix_values, 128 + 2 * 64 + 128 + 3 * 128)

    def test_attention_grows_with_the_square_of_the_length(self):
        cost = cost_of(BERT)
        self.assertEqual(cost.flop([5, 3]), 2 * 1536 * 8 + 2 * 4 * 8 * (25 + 9))

    def test_causal_attention_is_half(self):
        whole = cost_of(QWEN3 | {"is_causal": False}).flop([10])
        self.assertEqual(whole - cost_of(QWEN3).flop([10]), 4 * 16 * 100 / 2)

    def test_random_ids_are_inside_the_vocabulary_and_never_padding(self):
        for config in (BERT, QWEN3, BERT | {"model_type": "xlm-roberta", "vocab_size": 300}):
            ids = cost_of(config).random_ids(500, random.Random(1))
            self.assertEqual(len(ids), 500)
            self.assertLess(max(ids), config["vocab_size"])
            self.assertNotIn(1, ids)


if __name__ == "__main__":
    unittest.main()
