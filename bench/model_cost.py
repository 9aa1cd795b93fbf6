"""What a forward pass of a model folder costs at least: arithmetic, and bytes of matrices to be read."""
import json
from pathlib import Path

BYTES = {"float32": 4, "bfloat16": 2}


class ModelCost:
    """Of the encoder's matrices and attention; tables, norms and pooling are left out, as they are small."""

    def __init__(self, folder):
        config = json.loads((Path(folder) / "config.json").read_text())
        self.model_type = config["model_type"]
        self.vocabulary = config["vocab_size"]
        hidden = config.get("hidden_size") or config["dim"]
        inner = config.get("intermediate_size") or config["hidden_dim"]
        heads = config.get("num_attention_heads") or config["n_heads"]
        self._layers = config.get("num_hidden_layers") or config["n_layers"]
        queries = heads * config.get("head_dim", hidden // heads)
        keys = queries * config.get("num_key_value_heads", heads) // heads
        is_gated = self.model_type == "qwen3"
        self._queries = queries
        self._sees_half = is_gated and config.get("is_causal", True)
        self.matrix_values = self._layers * (hidden * (queries + 2 * keys) + queries * hidden
                                             + (3 if is_gated else 2) * hidden * inner)

    def flop(self, lengths):
        """Of sequences of these lengths: two for a multiply-add; query times key and weight times value of attention."""
        linear = 2 * self.matrix_values * sum(lengths)
        attention = sum(4 * self._layers * self._queries * length * length for length in lengths)
        return linear + attention / (2 if self._sees_half else 1)

    def matrix_bytes(self, dtype):
        return self.matrix_values * BYTES[dtype]

    def random_ids(self, length, generator):
        """A sequence: its family's first and last id, and ordinary ones between. Which they are does not matter for the time."""
        first, last = (0, 2) if self.model_type in ("roberta", "xlm-roberta", "mpnet") else (101, 102)
        low, high = min(1996, self.vocabulary // 2), min(30000, self.vocabulary)
        return [first] + [generator.randrange(low, high) for _ in range(length - 2)] + [last]
