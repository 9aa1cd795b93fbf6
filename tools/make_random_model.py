#!/usr/bin/env python3
"""Writes a random model folder, tiny unless a shape is named, in the layout of Hugging Face and sentence-transformers.

The folder loads in `transformers` and `sentence-transformers` as well as in Bouquet. One seed always
gives the same network: every value follows from the seed, the tensor's name and the index, by the rule
that testing/random_model.cc uses too, and is exact in float32, float16 and bfloat16.

  make_random_model.py OUT                                    BERT, mean pooling
  make_random_model.py OUT --family xlm-roberta               XLM-RoBERTa, first token
  make_random_model.py OUT --family mpnet                     MPNet: attention's scores carry a bias by distance
  make_random_model.py OUT --family distilbert
  make_random_model.py OUT --family qwen3-causal              Qwen3, last token
  make_random_model.py OUT --family qwen3-bidirectional       Qwen3, mean pooling
  make_random_model.py OUT --shape bge-base                   110 M parameters, to measure without the real weights
  make_random_model.py OUT --shape mpnet-base                 the shape of all-mpnet-base-v2
  make_random_model.py OUT --shape xlm-roberta-large          the shape of BGE-M3
  make_random_model.py OUT --shape qwen3-0.6b --dtype BF16
  make_random_model.py OUT --pooling cls max --dense 16 --dtype BF16 --shards 3 --prefix bert.

Needs numpy.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
PADDING_ID = ROBERTA_SPECIALS.index("<pad>")  # positions start behind this row
BERT_CLASSES = {"bert": "BertModel", "roberta": "RobertaModel", "xlm-roberta": "XLMRobertaModel",
                "mpnet": "MPNetModel", "distilbert": "DistilBertModel"}
STARTS_BEHIND_PADDING = ("roberta", "xlm-roberta", "mpnet")
DISTANCE_BUCKETS = 32  # of MPNet
MOST_WORDS = 1000  # of the tokenizer: ids above are rows that only ids reach
BYTES = {"F32": 4, "F16": 2, "BF16": 2}
BLOCK = 1 << 18  # values made at once: fits the processor's cache
TINY = dict(vocabulary=300, positions=640)
SHAPES = {  # family, and its sizes; positions: rows of the table, or the longest input
    "tiny-bert": ("bert", dict(layers=2, hidden=72, heads=6, intermediate=150, **TINY)),
    "tiny-xlm-roberta": ("xlm-roberta", dict(layers=2, hidden=72, heads=6, intermediate=150, **TINY)),
    "tiny-mpnet": ("mpnet", dict(layers=2, hidden=72, heads=6, intermediate=150, **TINY)),
    "tiny-distilbert": ("distilbert", dict(layers=2, hidden=72, heads=6, intermediate=150, **TINY)),
    "tiny-qwen3": ("qwen3", dict(layers=3, hidden=40, heads=6, kv_heads=2, head_dim=16, intermediate=100, **TINY)),
    # Tiny ones whose heads are of a size that fast attention kernels serve.
    "small-mpnet": ("mpnet", dict(layers=2, hidden=128, heads=2, intermediate=256, **TINY)),
    "small-qwen3": ("qwen3", dict(layers=2, hidden=128, heads=4, kv_heads=2, head_dim=64, intermediate=256, **TINY)),
    "minilm-l6": ("bert", dict(layers=6, hidden=384, heads=12, intermediate=1536, vocabulary=30522, positions=512)),
    "bge-base": ("bert", dict(layers=12, hidden=768, heads=12, intermediate=3072, vocabulary=30522, positions=512)),
    "bge-large": ("bert", dict(layers=24, hidden=1024, heads=16, intermediate=4096, vocabulary=30522, positions=512)),
    "mpnet-base": ("mpnet", dict(layers=12, hidden=768, heads=12, intermediate=3072, vocabulary=30527, positions=514)),
    "distilbert-base": ("distilbert", dict(layers=6, hidden=768, heads=12, intermediate=3072, vocabulary=30522,
                                           positions=512)),
    "xlm-roberta-large": ("xlm-roberta", dict(layers=24, hidden=1024, heads=16, intermediate=4096,
                                              vocabulary=250002, positions=8194)),
    "qwen3-0.6b": ("qwen3", dict(layers=28, hidden=1024, heads=16, kv_heads=8, head_dim=128, intermediate=3072,
                                 vocabulary=151669, positions=32768)),
    "qwen3-4b": ("qwen3", dict(layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, intermediate=9728,
                               vocabulary=151665, positions=40960)),
}


def fnv1a64(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def random_bits(key, begin, end):
    """The finalizer of splitmix64 over a counter, one value per index."""
    z = np.uint64(key) + np.arange(begin + 1, end + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def make_tensor(seed, name, shape):
    offset, scale = 0.0, 1.0  # embedding tables
    if len(shape) == 1:
        offset, scale = (1.0, 0.5) if name.endswith("weight") else (0.0, 0.25)
    elif "embed" not in name:
        scale = 2.0 / (1 << ((shape[1].bit_length() - 1) // 2))
    key = fnv1a64(f"{seed}:{name}")
    values = np.empty(int(np.prod(shape)), np.float32)
    for begin in range(0, values.size, BLOCK):
        end = min(begin + BLOCK, values.size)
        with np.errstate(over="ignore"):
            bits = random_bits(key, begin, end)
        steps = (bits >> np.uint64(57)).astype(np.int64) - 64
        values[begin:end] = offset + scale * steps / 64
    return values.reshape(shape)


def token_types(family):
    return {"bert": 2, "roberta": 1, "xlm-roberta": 1}.get(family, 0)


def bert_layer_names(family):
    """Prefix of a layer; then the square matrices, the two of the MLP and the norms, as the family names them."""
    if family == "mpnet":
        return ("encoder.layer", [f"attention.attn.{part}" for part in "qkvo"], "intermediate.dense", "output.dense",
                ["attention.LayerNorm", "output.LayerNorm"])
    if family == "distilbert":
        return ("transformer.layer", [f"attention.{part}_lin" for part in ("q", "k", "v", "out")],
                "ffn.lin1", "ffn.lin2", ["sa_layer_norm", "output_layer_norm"])
    return ("encoder.layer", [*(f"attention.self.{part}" for part in ("query", "key", "value")), "attention.output.dense"],
            "intermediate.dense", "output.dense", ["attention.output.LayerNorm", "output.LayerNorm"])


def bert_shapes(s, family):
    h, i = s["hidden"], s["intermediate"]
    shapes = {
        "embeddings.word_embeddings.weight": (s["vocabulary"], h),
        "embeddings.position_embeddings.weight": (s["positions"], h),
        "embeddings.LayerNorm.weight": (h,),
        "embeddings.LayerNorm.bias": (h,),
    }
    if token_types(family):
        shapes["embeddings.token_type_embeddings.weight"] = (token_types(family), h)
    if family == "mpnet":
        shapes["encoder.relative_attention_bias.weight"] = (DISTANCE_BUCKETS, s["heads"])
    prefix, square, up, down, norms = bert_layer_names(family)
    for n in range(s["layers"]):
        layer = f"{prefix}.{n}."
        for name, rows, cols in [*((name, h, h) for name in square), (up, i, h), (down, h, i)]:
            shapes[layer + name + ".weight"] = (rows, cols)
            shapes[layer + name + ".bias"] = (rows,)
        for name in norms:
            shapes[layer + name + ".weight"] = (h,)
            shapes[layer + name + ".bias"] = (h,)
    return shapes


def qwen3_shapes(s, attention_bias):
    h, i, d = s["hidden"], s["intermediate"], s["head_dim"]
    queries, keys = s["heads"] * d, s["kv_heads"] * d
    shapes = {"embed_tokens.weight": (s["vocabulary"], h), "norm.weight": (h,)}
    for n in range(s["layers"]):
        layer = f"layers.{n}."
        shapes[layer + "input_layernorm.weight"] = (h,)
        shapes[layer + "post_attention_layernorm.weight"] = (h,)
        shapes[layer + "self_attn.q_norm.weight"] = (d,)
        shapes[layer + "self_attn.k_norm.weight"] = (d,)
        for part, rows, cols in (("q", queries, h), ("k", keys, h), ("v", keys, h), ("o", h, queries)):
            shapes[f"{layer}self_attn.{part}_proj.weight"] = (rows, cols)
            if attention_bias:
                shapes[f"{layer}self_attn.{part}_proj.bias"] = (rows,)
        for part, rows, cols in (("gate", i, h), ("up", i, h), ("down", h, i)):
            shapes[f"{layer}mlp.{part}_proj.weight"] = (rows, cols)
    return shapes


def config(options, s):
    if options.family == "distilbert":
        return {
            "architectures": ["DistilBertModel"], "model_type": "distilbert", "activation": "gelu",
            "n_layers": s["layers"], "dim": s["hidden"], "n_heads": s["heads"], "hidden_dim": s["intermediate"],
            "vocab_size": s["vocabulary"], "max_position_embeddings": s["positions"],
        }
    if options.family in BERT_CLASSES:
        of_family = {"layer_norm_eps": 1e-12}
        if options.family in STARTS_BEHIND_PADDING:
            of_family = {"layer_norm_eps": 1e-5, "bos_token_id": 0, "pad_token_id": PADDING_ID, "eos_token_id": 2}
        if options.family == "mpnet":
            of_family["relative_attention_num_buckets"] = DISTANCE_BUCKETS
        else:
            of_family["type_vocab_size"] = token_types(options.family)
        return {
            "architectures": [BERT_CLASSES[options.family]], "model_type": options.family, "hidden_act": "gelu",
            "num_hidden_layers": s["layers"], "hidden_size": s["hidden"],
            "num_attention_heads": s["heads"], "intermediate_size": s["intermediate"],
            "vocab_size": s["vocabulary"], "max_position_embeddings": s["positions"], **of_family,
        }
    return {
        "architectures": ["Qwen3Model"], "model_type": "qwen3", "hidden_act": "silu",
        "num_hidden_layers": s["layers"], "hidden_size": s["hidden"],
        "num_attention_heads": s["heads"], "num_key_value_heads": s["kv_heads"],
        "head_dim": s["head_dim"], "intermediate_size": s["intermediate"], "vocab_size": s["vocabulary"],
        "max_position_embeddings": s["positions"], "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "attention_bias": options.attention_bias, "is_causal": options.family == "qwen3-causal",
        "tie_word_embeddings": True,
    }


def bytes_of(tensor, dtype):
    if dtype == "BF16":
        return (tensor.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return tensor.astype({"F32": np.float32, "F16": np.float16}[dtype]).tobytes()


def save(path, tensors, dtype):
    """A safetensors file."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in sorted(tensors.items()):
        begin, end = end, end + BYTES[dtype] * tensor.size
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in sorted(tensors.items()):
            file.write(bytes_of(tensor, dtype))


def write_weights(folder, tensors, options):
    if options.shards == 1:
        save(folder / "model.safetensors", tensors, options.dtype)
        return
    weight_map = {}
    for shard in range(options.shards):
        name = f"model-{shard + 1:05}-of-{options.shards:05}.safetensors"
        part = {k: tensors[k] for k in sorted(tensors)[shard :: options.shards]}
        save(folder / name, part, options.dtype)
        weight_map.update({k: name for k in part})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_modules(folder, options, hidden):
    modes = options.pooling or [{"xlm-roberta": "cls", "qwen3-causal": "lasttoken"}.get(options.family, "mean")]
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling")]
    write_json(folder / "1_Pooling/config.json",
               {"embedding_dimension": hidden, "pooling_mode": modes, "include_prompt": True})
    if options.dense:
        kinds.append(("2_Dense", "Dense"))
        width, out = hidden * len(modes), options.dense
        dense = {"in_features": width, "out_features": out, "bias": not options.no_dense_bias,
                 "use_residual": options.dense_residual}
        if options.dense_activation:
            dense["activation_function"] = options.dense_activation
        write_json(folder / "2_Dense/config.json", dense)
        shapes = {"linear.weight": (out, width)}
        if not options.no_dense_bias:
            shapes["linear.bias"] = (out,)
        if options.dense_residual and width != out:
            shapes["residual.weight"] = (out, width)
        save(folder / "2_Dense/model.safetensors",
             {k: make_tensor(options.seed, "dense." + k, v) for k, v in shapes.items()}, "F32")
    if not options.no_normalize:
        kinds.append((f"{len(kinds)}_Normalize", "Normalize"))
    write_json(folder / "modules.json",
               [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
                for i, (path, kind) in enumerate(kinds)])


def write_tokenizer(folder, options, sizes):
    """Words w5 … w299 (w999); the libraries do not load a folder without a tokenizer."""
    is_behind = options.family in STARTS_BEHIND_PADDING
    specials = ROBERTA_SPECIALS if is_behind else SPECIALS
    padding, unknown = ("<pad>", "<unk>") if is_behind else ("[PAD]", "[UNK]")
    longest = sizes["positions"] - (PADDING_ID + 1 if is_behind else 0)
    vocabulary = {word: i for i, word in enumerate(specials)}
    vocabulary.update({f"w{i}": i for i in range(len(specials), min(sizes["vocabulary"], MOST_WORDS))})
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": i, "content": word, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True}
                         for i, word in enumerate(specials)],
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": unknown}})
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest,
        "pad_token": padding, "unk_token": unknown})


def sizes_of(options):
    """Of the named shape, which has a family too; else the family's tiny one. A shape of another family is refused."""
    family = options.family or (SHAPES[options.shape][0] if options.shape else "bert")
    options.family = "qwen3-causal" if family == "qwen3" else family
    kin = {"roberta": "xlm-roberta", "qwen3-causal": "qwen3", "qwen3-bidirectional": "qwen3"}
    family_of_shape = kin.get(options.family, options.family)
    shape = options.shape or f"tiny-{family_of_shape}"
    if SHAPES[shape][0] != family_of_shape:
        raise SystemExit(f"--shape {shape} is of family {SHAPES[shape][0]}, not {options.family}")
    return SHAPES[shape][1]


def write_model(folder, options):
    folder.mkdir(parents=True, exist_ok=True)
    sizes = sizes_of(options)
    is_bert = options.family in BERT_CLASSES
    shapes = bert_shapes(sizes, options.family) if is_bert else qwen3_shapes(sizes, options.attention_bias)
    tensors = {options.prefix + k: make_tensor(options.seed, k, v) for k, v in shapes.items()}
    write_json(folder / "config.json", config(options, sizes))
    write_modules(folder, options, sizes["hidden"])
    write_weights(folder, tensors, options)
    write_tokenizer(folder, options, sizes)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--family", choices=[*BERT_CLASSES, "qwen3-causal", "qwen3-bidirectional"],
                        help="default: the shape's; bert without a shape")
    parser.add_argument("--shape", choices=SHAPES, help="default: the family's tiny one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prefix", default="", help='in front of every tensor name: "bert.", "roberta.", "model."')
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--dtype", default="F32", choices=["F32", "F16", "BF16"])
    parser.add_argument("--attention-bias", action="store_true", help="Qwen3: biases on q, k, v, o")
    parser.add_argument("--pooling", nargs="+", help="modes, concatenated in this order")
    parser.add_argument("--dense", type=int, default=0, help="adds a Dense module of this width")
    parser.add_argument("--dense-activation", default="torch.nn.modules.activation.Tanh")
    parser.add_argument("--no-dense-bias", action="store_true")
    parser.add_argument("--dense-residual", action="store_true")
    parser.add_argument("--no-normalize", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    arguments = parse()
    write_model(arguments.out, arguments)
