#!/usr/bin/env python3
"""Writes a BERT sentence-transformers folder (safetensors, WordPiece) as one GGUF file in float32 for llama.cpp.

  make_gguf.py MODEL_FOLDER OUT.gguf

GGUF, version 3: "GGUF", the version, how many tensors and fields there are; the fields (name, type, value); the tensors
(name, sizes from the innermost on, type, offset); then their values, each from a multiple of 32 bytes on. Names of
fields and tensors are those that llama.cpp reads for the architecture "bert". Matrices keep their [out, in] order.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

from peer_process import pooling_mode
from safetensors_file import read_safetensors

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # types of fields
F32_TENSOR = 0
POOLING_TYPES = {"mean": 1, "cls": 2, "lasttoken": 3}
NORMAL_TOKEN, CONTROL_TOKEN = 1, 3
EMBEDDINGS = {"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
              "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm"}
LAYER = {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
         "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
         "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}


def packed_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def packed_value(kind, value):
    if kind == STRING:
        return packed_string(value)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], value)


def packed_field(name, kind, value):
    head = packed_string(name)
    if isinstance(value, list):
        return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(packed_value(kind, v) for v in value)
    return head + struct.pack("<I", kind) + packed_value(kind, value)


def tensor_name(name):
    """llama.cpp's name of one of BERT's tensors; None for what it does not read."""
    name = name.removeprefix("bert.")
    part, _, kind = name.rpartition(".")
    if part in EMBEDDINGS:
        return f"{EMBEDDINGS[part]}.{kind}"
    fields = part.split(".", 3)
    if fields[:2] == ["encoder", "layer"] and fields[3] in LAYER:
        return f"blk.{fields[2]}.{LAYER[fields[3]]}.{kind}"
    return None


def vocabulary_piece(piece, special):
    """As llama.cpp keeps WordPiece: the start of a word is marked, its continuation is not."""
    if special:
        return piece
    return piece[2:] if piece.startswith("##") else "\u2581" + piece


def vocabulary_fields(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    if tokenizer["model"]["type"] != "WordPiece":
        raise ValueError(f"only WordPiece is written here, not {tokenizer['model']['type']}")
    ids = tokenizer["model"]["vocab"]
    specials = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    pieces = sorted(ids, key=ids.get)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError("ids of the vocabulary have gaps")
    kinds = [CONTROL_TOKEN if piece in specials else NORMAL_TOKEN for piece in pieces]
    return [("tokenizer.ggml.model", STRING, "bert"),
            ("tokenizer.ggml.tokens", STRING, [vocabulary_piece(piece, piece in specials) for piece in pieces]),
            ("tokenizer.ggml.token_type", INT32, kinds)] + [
            (f"tokenizer.ggml.{name}_token_id", UINT32, ids[piece])
            for name, piece in (("bos", "[CLS]"), ("eos", "[SEP]"), ("unknown", "[UNK]"), ("seperator", "[SEP]"),  # so spelled
                                ("padding", "[PAD]"), ("cls", "[CLS]"), ("mask", "[MASK]")) if piece in ids]


def model_fields(folder):
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] != "bert" or config["hidden_act"] != "gelu":
        raise ValueError(f"only BERT with exact GELU is written here, not {config['model_type']}")
    modules = json.loads((folder / "modules.json").read_text())
    pooling = pooling_mode(folder / modules[1]["path"] / "config.json")
    if pooling not in POOLING_TYPES:
        raise ValueError(f"pooling {pooling} is not written here")
    return [("general.architecture", STRING, "bert"), ("general.name", STRING, folder.resolve().name),
            ("general.file_type", UINT32, 0), ("bert.block_count", UINT32, config["num_hidden_layers"]),
            ("bert.context_length", UINT32, config["max_position_embeddings"]),
            ("bert.embedding_length", UINT32, config["hidden_size"]),
            ("bert.feed_forward_length", UINT32, config["intermediate_size"]),
            ("bert.attention.head_count", UINT32, config["num_attention_heads"]),
            ("bert.attention.layer_norm_epsilon", FLOAT32, config["layer_norm_eps"]),
            ("bert.attention.causal", BOOL, False), ("bert.pooling_type", UINT32, POOLING_TYPES[pooling]),
            ("tokenizer.ggml.token_type_count", UINT32, config["type_vocab_size"])]


def write_gguf(folder, path):
    """Error: ValueError for a model that is not written here."""
    folder = Path(folder)
    fields = model_fields(folder) + vocabulary_fields(folder)
    read = {name: array for file in sorted(folder.glob("*.safetensors")) for name, array in read_safetensors(file).items()}
    tensors = {tensor_name(name): array.astype(np.float32) for name, array in sorted(read.items()) if tensor_name(name)}
    heads, offset = [], 0
    for name, array in tensors.items():
        sizes = array.shape[::-1]
        heads.append(packed_string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, F32_TENSOR, offset))
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)))
        file.write(b"".join(packed_field(*field) for field in fields) + b"".join(heads))
        for array in tensors.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(array.tobytes())
        file.write(bytes(-file.tell() % ALIGNMENT))


def main(arguments):
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    write_gguf(arguments[0], arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
