#!/usr/bin/env python3
"""Writes tests/parity/goldens/*.json: token ids and the reference library's vectors for them.

  make_goldens.py [--minilm FOLDER]

The references are sentence-transformers and transformers in float32, one sequence at a time, so that
no padding is involved. The tiny networks are those of tools/make_random_model.py, which the C++ tests
make themselves from the same options; the sets are listed here and in rose/golden_test.cc under the
same names. Needs torch, transformers, sentence-transformers, safetensors, numpy.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tools"))
import make_random_model  # noqa: E402

ALL_MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
LENGTHS = [1, 2, 3, 15, 16, 17, 33, 64, 130, 600]
SHORT = [1, 2, 17, 40]

# name: (options of make_random_model, lengths)
TINY_SETS = {
    "tiny_bert": ([], LENGTHS),
    "tiny_bert_every_pooling": (["--pooling", *ALL_MODES, "--no-normalize"], SHORT),
    "tiny_bert_dense": (["--pooling", "max", "mean", "--dense", "16", "--dense-residual",
                         "--dense-activation", "torch.nn.modules.activation.GELU"], SHORT),
    "tiny_bert_dense_default_activation": (["--dense", "72", "--no-dense-bias", "--dense-residual",
                                            "--dense-activation", "", "--no-normalize"], SHORT),
    # 638 is the longest input: 640 rows of positions, of which the first two stand for none.
    "tiny_xlm_roberta": (["--family", "xlm-roberta"], [*LENGTHS, 638]),
    "tiny_xlm_roberta_mean": (["--family", "xlm-roberta", "--pooling", "mean", "--no-normalize"], [*SHORT, 638]),
    "tiny_roberta": (["--family", "roberta", "--seed", "3"], [*SHORT, 638]),
    # Lengths around 91 and 128 tokens, where MPNet stops to tell distances apart.
    "tiny_mpnet": (["--family", "mpnet"], [*LENGTHS, 8, 91, 92, 127, 128, 129, 200, 638]),
    "tiny_distilbert": (["--family", "distilbert"], [*LENGTHS, 640]),
    "tiny_qwen3_causal": (["--family", "qwen3-causal"], LENGTHS),
    "tiny_qwen3_bidirectional": (["--family", "qwen3-bidirectional"], LENGTHS),
    "tiny_qwen3_attention_bias": (["--family", "qwen3-causal", "--attention-bias", "--seed", "7"], SHORT),
}

# Our own texts: whitespace only, emoji, CJK, Thai, combining marks, literal special tokens, and
# lengths from one word to more than the model takes.
TEXTS = [
    "a",
    " ",
    "\n\t  \u00a0 ",
    "[SEP]",
    "before [SEP] after [MASK] and [CLS] too",
    "The quick brown fox jumps over the lazy dog.",
    "What is the boiling point of water at high altitude?",
    "👩‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb, 🧑🏾‍🚀 flies",
    "東京は日本の首都です。人口が多い。",
    "我们今天去公园散步，天气很好。",
    "한국어 문장을 하나 적어 봅니다.",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ",
    "e\u0301 a\u0308 o\u0302 n\u0303 z\u030c\u0323 \u0915\u093f \u0e01\u0e33",
    "ﬁne ﬂow ① Ⅷ ½ ㌔ ａｂｃ",
    "Привет, мир! Γειά σου Κόσμε. שלום עולם مرحبا بالعالم",
    "x" * 120,
    "12345678901234567890 3.14159 -1e-10 0xdeadbeef",
    "int main() { return a->b[c] != d ? e : f; } // comment",
    "http://example.org/path?query=1&other=two#part",
    "one two three four five six seven eight nine ten " * 3,
    "rivers carry sand and silt towards the sea, " * 12,
    "a library lends books, maps and music to those who live near it. " * 45,
]


def encode(model, ids, type_ids=None, prompt_length=None):
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    if type_ids is not None:
        features["token_type_ids"] = torch.tensor([type_ids])
    if prompt_length is not None:
        features["prompt_length"] = prompt_length
    with torch.no_grad():
        return model(features)["sentence_embedding"][0].float().numpy()


def case_text(ids, vector, **extra):
    fields = [f'"ids": [{",".join(map(str, ids))}]']
    fields += [f'"{k}": {v}' for k, v in extra.items()]
    numbers = ",".join(np.format_float_positional(v, unique=True, trim="-") for v in vector.astype(np.float32))
    return "  {" + ", ".join(fields) + f',\n   "vector": [{numbers}]}}'


def write(name, cases):
    folder = HERE / "goldens"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text('{"cases": [\n' + ",\n".join(cases) + "\n]}\n")
    print(f"{name}: {len(cases)} cases, {(folder / f'{name}.json').stat().st_size} bytes")


def tiny_cases(name, folder, lengths):
    model = SentenceTransformer(str(folder), device="cpu").eval()
    random = np.random.default_rng(20261129)
    cases = []
    for length in lengths:
        ids = random.integers(5, 300, length).tolist()
        cases.append(case_text(ids, encode(model, ids)))
    ids = random.integers(5, 300, 21).tolist()
    if name == "tiny_bert":
        types = [0] * 9 + [1] * 12
        cases.append(case_text(ids, encode(model, ids, type_ids=types), type_ids=types))
    if name in ("tiny_bert", "tiny_bert_dense"):
        model[1].include_prompt = False
        cases.append(case_text(ids, encode(model, ids, prompt_length=4), pooling_start=4))
    return cases


def write_tiny():
    with tempfile.TemporaryDirectory() as root:
        for name, (arguments, lengths) in TINY_SETS.items():
            folder = pathlib.Path(root) / name
            make_random_model.write_model(folder, make_random_model.parse([str(folder), *arguments]))
            write(name, tiny_cases(name, folder, lengths))


def write_minilm(folder):
    model = SentenceTransformer(str(folder), device="cpu").eval()
    cases = []
    for text in TEXTS:
        ids = model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"]
        vector = encode(model, ids)
        reference = model.encode(text)
        assert np.dot(vector, reference) > 0.999999, text
        cases.append(case_text(ids, vector))
    ids = model.tokenizer(TEXTS[-1], truncation=True, max_length=512)["input_ids"]
    cases.append(case_text(ids, encode(model, ids)))  # as long as the positions allow
    write("minilm", cases)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minilm", type=pathlib.Path,
                        default=HERE.parent.parent / "build/models/all-MiniLM-L6-v2")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    write_tiny()
    write_minilm(arguments.minilm)
