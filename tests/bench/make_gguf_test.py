"""bench/make_gguf.py on a tiny model, read back by the format's own rules."""
import importlib.util
import json
import pathlib
import struct
import sys
import tempfile
import unittest

if importlib.util.find_spec("numpy") is None:
    print("skipped: numpy is missing")
    sys.exit(77)

import numpy as np

from tiny_model import ROOT, make_tiny_model

sys.path.insert(0, str(ROOT / "bench"))
from make_gguf import tensor_name, write_gguf  # noqa: E402
from safetensors_file import read_safetensors  # noqa: E402

FORMATS = {4: "<I", 5: "<i", 6: "<f", 7: "<?"}


class Reader:
    """Of a whole file in memory: `fields` and `tensors`."""

    def __init__(self, data):
        self._data, self._at = data, 4
        assert data[:4] == b"GGUF"
        version, num_tensors, num_fields = self._take("<IQQ")
        assert version == 3
        self.fields = {self._string(): self._value(*self._take("<I")) for _ in range(num_fields)}
        heads = [(self._string(), self._sizes(), self._take("<IQ")) for _ in range(num_tensors)]
        self.start = -(-self._at // 32) * 32
        self.offsets = [offset for _, _, (_, offset) in heads]
        self.tensors = {name: np.frombuffer(data, "<f4", int(np.prod(sizes)), self.start + offset).reshape(sizes[::-1])
                        for name, sizes, (kind, offset) in heads if kind == 0}

    def _take(self, form):
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def _string(self):
        (length,) = self._take("<Q")
        self._at += length
        return self._data[self._at - length:self._at].decode()

    def _sizes(self):
        (count,) = self._take("<I")
        return self._take(f"<{count}Q")

    def _value(self, kind):
        if kind == 8:
            return self._string()
        if kind == 9:
            inner, count = self._take("<IQ")
            return [self._value(inner) for _ in range(count)]
        return self._take(FORMATS[kind])[0]


class MakeGgufTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = make_tiny_model(pathlib.Path(temporary.name) / "tiny")
        self.path = pathlib.Path(temporary.name) / "tiny.gguf"

    def written(self):
        write_gguf(self.folder, self.path)
        return Reader(self.path.read_bytes())

    def test_fields_say_what_the_configuration_says(self):
        config, fields = json.loads((self.folder / "config.json").read_text()), self.written().fields
        self.assertEqual(fields["general.architecture"], "bert")
        self.assertEqual(fields["bert.block_count"], config["num_hidden_layers"])
        self.assertEqual(fields["bert.embedding_length"], config["hidden_size"])
        self.assertAlmostEqual(fields["bert.attention.layer_norm_epsilon"], config["layer_norm_eps"])
        self.assertIs(fields["bert.attention.causal"], False)
        self.assertEqual(fields["bert.pooling_type"], 1)

    def test_starts_of_words_are_marked_and_special_tokens_are_not(self):
        fields, ids = self.written().fields, json.loads((self.folder / "tokenizer.json").read_text())["model"]["vocab"]
        tokens = fields["tokenizer.ggml.tokens"]
        self.assertEqual(len(tokens), len(ids))
        self.assertEqual(tokens[ids["w10"]], "\u2581w10")
        self.assertEqual(fields["tokenizer.ggml.token_type"][ids["w10"]], 1)
        self.assertEqual(fields["tokenizer.ggml.bos_token_id"], ids["[CLS]"])
        self.assertEqual(fields["tokenizer.ggml.seperator_token_id"], ids["[SEP]"])

    def test_continuations_lose_their_sign(self):
        path = self.folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        ids = tokenizer["model"]["vocab"]
        ids["##ing"] = ids.pop("w20")
        path.write_text(json.dumps(tokenizer))
        self.assertEqual(self.written().fields["tokenizer.ggml.tokens"][ids["##ing"]], "ing")

    def test_tensors_keep_their_values_and_begin_at_multiples_of_32_bytes(self):
        found = self.written()
        weights = read_safetensors(self.folder / "model.safetensors")
        wanted = {tensor_name(name): array for name, array in weights.items() if tensor_name(name)}
        layers = json.loads((self.folder / "config.json").read_text())["num_hidden_layers"]
        self.assertEqual(len(wanted), 5 + 16 * layers)
        self.assertEqual(found.tensors.keys(), wanted.keys())
        for name, array in wanted.items():
            np.testing.assert_array_equal(found.tensors[name], array)
        self.assertTrue(all(offset % 32 == 0 for offset in found.offsets))
        self.assertEqual(self.path.stat().st_size % 32, 0)

    def test_another_family_is_refused(self):
        path = self.folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "mpnet"}))
        with self.assertRaisesRegex(ValueError, "only BERT.*mpnet"):
            write_gguf(self.folder, self.path)


if __name__ == "__main__":
    unittest.main()
