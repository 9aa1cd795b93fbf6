"""The reference library as the other side of a comparison (our_side.py), and which files both sides read."""

import json
import os
import pathlib

import parity
import sentencepiece_json
from our_side import OurSide

ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


class ReferenceSide:
    def __init__(self, path):
        self._framed = parity.reference(path)
        self._bare = parity.without_framing(path)

    def answers(self, mode, inputs):
        if mode == "framed":
            return [[e.ids, e.type_ids, e.special_tokens_mask, parity.flat(e.offsets)] for e in self._framed.encode_batch(inputs)]
        self._bare.encode_special_tokens = mode == "literal"
        return [[e.ids, parity.flat(e.offsets)] for e in self._bare.encode_batch(inputs, add_special_tokens=False)]

    @property
    def tokenizer(self):
        return self._framed


def equal(own, expected):
    return own is not None and (own == expected or len(expected) == 4 and parity.agree_in_one_text(own, expected))


def roberta_json(folder):
    """The tokenizer.json that stands for RoBERTa's vocab.json and merges.txt where it is published."""
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    merges = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]
    added = [{"id": vocabulary[token], "content": token, "single_word": False, "lstrip": token == "<mask>", "rstrip": False,
              "normalized": False, "special": True} for token in ROBERTA_SPECIALS]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", vocabulary["</s>"]], "cls": ["<s>", vocabulary["<s>"]],
                           "trim_offsets": True, "add_prefix_space": False},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary,
                  "merges": [line for line in merges if line]}}


def write_json(folder, description):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    return path


def open_sides(name, print_ids, data, scratch):
    """(ours, the reference). `scratch`: a folder for what is converted."""
    folder = pathlib.Path(data) / "tokenizers" / name.removesuffix("-json")
    if (folder / "tokenizer.json").exists():
        path = folder / "tokenizer.json"
        return OurSide(print_ids, path), ReferenceSide(path)
    if (folder / "vocab.json").exists():
        return OurSide(print_ids, folder), ReferenceSide(write_json(scratch / name, roberta_json(folder)))
    model = folder / "tokenizer.model"
    if name.endswith("-json"):
        path = write_json(scratch / name, sentencepiece_json.tokenizer_json(model.read_bytes()))
        return OurSide(print_ids, path), ReferenceSide(path)
    # A model file states no types, so ours are 0.
    converted = write_json(scratch / name, sentencepiece_json.tokenizer_json(model.read_bytes(), second_type=0))
    beside = scratch / "model"
    beside.mkdir(exist_ok=True)
    os.symlink(model.resolve(), beside / model.name)
    # With the class of the family, so that ours adds <s> as the converted file does.
    (beside / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}\n', encoding="utf-8")
    return OurSide(print_ids, beside), ReferenceSide(converted)
