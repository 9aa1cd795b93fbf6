#!/usr/bin/env python3
"""Writes decoders.json: every decoder of a tokenizer.json on tokens of our own, with the reference
library's texts (pip install tokenizers==0.23.3).

    make_decoders.py OUT
"""

import json
import sys

from tokenizers import Tokenizer

TOKENS = [
    [], [""], ["hello", "world"], ["the", "##re", "'", "s", ",", "no", "##t", ".", "!"], ["do", " do not", " n't", "a 's"],
    ["Hello", "\u0120world", "\u00c3", "\u00a9", "\u0120\u00e4\u00b8"],
    ["\u00f0\u0141\u013a", "\u0122"], ["\u00ed", "\u0142\u0122a"],
    ["<|x y|>", "\u00c3\u00a9"], ["\u00c3\u00a9\u00e6", "\u00e4", "z", "\u00f0\u0141\u0132a\u00f4\u0131"],
    ["\u2581Hello", "\u2581\u2581wor", "ld\u2581"], ["\u2581", "\u2581a"], ["<0xE4>", "<0xB8>", "<0xAD>", "x", "<0xE4>", "<0xB8>"],
    ["<0x41>", "<0xgg>", "<0x4>", "<0x+A>", "<0x0a>"], ["low</w>", "er", "</w>", "new</w>"], [" a", "  b", "c  ", "   "],
    ["<pad>", "<pad>", "h", "h", "<pad>", "h", "|", "|", "<pad>", "e", "<pad>"], ["x x", "xx", "abxab"], ["##"], ["##", "##", "a"],
    ["I", "'m", " ' ", "don", "n't", "do", "not"],
]


def decoders():
    yield None
    for cleanup in (True, False):
        yield {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}
        yield {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": cleanup}
    yield {"type": "WordPiece", "prefix": "", "cleanup": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    yield byte_level
    for scheme in ("always", "first", "never"):
        yield {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": True}
    yield {"type": "BPEDecoder", "suffix": "</w>"}
    yield {"type": "ByteFallback"}
    yield {"type": "Fuse"}
    yield {"type": "Replace", "pattern": {"String": "x"}, "content": "yy"}
    yield {"type": "Replace", "pattern": {"Regex": r"[\p{L}h]+|(?= )"}, "content": "<>"}
    yield {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    yield {"type": "Sequence", "decoders": [{"type": "Strip", "content": " ", "start": 2, "stop": 1},
                                            {"type": "Sequence", "decoders": []}]}
    yield {"type": "Sequence", "decoders": [byte_level, {"type": "WordPiece", "prefix": "##", "cleanup": True}]}


def text_of(decoder, tokens):
    try:
        return decoder.decode(tokens) if decoder else " ".join(tokens)
    except BaseException:  # the reference panics where it strips more than there is
        return None


def main(out):
    entries = []
    for description in decoders():
        tokenizer = Tokenizer.from_str(json.dumps({
            "version": "1.0", "added_tokens": [], "decoder": description,
            "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}))
        entries.append({"decoder": description, "texts": [text_of(tokenizer.decoder, t) for t in TOKENS]})
    with open(out, "w") as file:
        file.write('{"tokens":' + json.dumps(TOKENS) + ',"decoders":[\n')
        file.write(",\n".join(json.dumps(e) for e in entries) + "\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
