#!/usr/bin/env python3
"""Writes sentencepiece_stages.json: the models and stages that come from SentencePiece, in the form of stages.json
(make_stages.py).

    make_sentencepiece_stages.py OUT
"""

import base64
import struct
import sys

import make_stages
from make_stages import sequence, nf, template

MARK = "\u2581"
SPECIALS = ["<unk>", "<s>", "</s>", "<pad>", "<mask>"]

# Equal sums, so that the first found decides; a token listed twice; a token that two unknown characters spell.
VOCABULARY = [[s, 0.0] for s in SPECIALS] + [
    [MARK, -2.25], ["a", -3.0], ["b", -3.0], ["c", -3.25], ["ab", -6.0], ["bc", -5.5], ["abc", -9.0], [MARK + "a", -5.25],
    [MARK + "ab", -7.125], ["aa", -6.0], ["aaa", -9.0], [MARK * 2, -4.5], [MARK * 3, -8.75], ["the", -4.0], [MARK + "the", -4.5],
    ["he", -4.25], ["h", -5.0], ["e", -3.5], ["t", -3.75], ["\u00e9", -7.0], ["o", -4.0], ["fo", -6.5], ["foo", -7.0],
    ["r", -4.5],
    ["\u4e2d", -8.0], ["\u56fd", -8.5], ["\u4e2d\u56fd", -9.5], [MARK + "\u4e2d", -10.0], [".", -3.5], [",", -3.625], ["1", -6.0],
    ["12", -7.0], ["2", -6.5], ["\u0e01", -9.0], ["\uac00", -9.0], ["b", -4.0], ["(", -6.0], [")", -6.0], ["d", -4.0],
    ["l", -4.0],
    ["n", -4.1234567890123456], ["u", -4.3], ["w", -4.7], ["i", -3.9], ["in", -5.0000001], ["un", -7.3], ["\u30ac", -9.0],
    ["xyz", -13.0], ["a b", -5.0], [MARK + "b" + MARK + "c", -5.0]]

BYTES = [[f"<0x{b:02X}>", -11.0] for b in range(256)]

RULES = {"A": "a", "B": "b", "\t": " ", "\n": " ", "\r": " ", "\u3000": " ", "\u00a0": " ", "\u200d": "", "\u200b": " ",
    "\u0001": "",
         "\u007f": "", "\ufb01": "fi", "\u00a9": "(c)", "k": "K", "kj": "never", "e\u0301": "\u00e9", "\u0301": "",
         "\u00bd": "1 2",
         "\uff76\uff9e": "\u30ac", "\uff11": "1", "\u2460": "12", "\u212b": "\u00e5", "\u1100": "ga", "\u0915": "c",
         "x\u0327": "ab",
         "\U0001f469": "wo", "\ufdfa": "aaaaaaaaaaaaaaaa", "w": "  w"}


def charsmap(rules):
    """Darts' array, then the replacements: see charsmap.h."""
    keys = {k.encode(): v for k, v in rules.items()}
    starts, replacements = {}, b""
    for key, value in keys.items():
        starts[key] = len(replacements)
        replacements += value.encode() + b"\0"
    units, taken, bases = {0: 0}, {0}, set()

    def place(position, prefix):
        labels = sorted({k[len(prefix)] for k in keys if len(k) > len(prefix) and k.startswith(prefix)})
        all_labels = ([0] if prefix in keys else []) + labels
        base = next(b for b in range(1, 1 << 20) if b not in bases and not any(b ^ x in taken for x in all_labels))
        bases.add(base)
        units[position] |= (position ^ base) << 10
        for label in all_labels:
            taken.add(base ^ label)
            units[base ^ label] = label
        if prefix in keys:
            units[position] |= 1 << 8
            units[base] = 1 << 31 | starts[prefix]
        for label in labels:
            place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    size = ((max(max(taken), max(bases)) >> 8) + 1) << 8
    array = [units.get(i, 0) for i in range(size)]
    return base64.b64encode(struct.pack(f"<I{size}I", 4 * size, *array) + replacements).decode()


CHARSMAP = {"type": "Precompiled", "precompiled_charsmap": charsmap(RULES)}


def added(content, special=True, normalized=False, lstrip=False, rstrip=False):
    ids = {token: i for i, (token, _) in enumerate(VOCABULARY)}
    return {"id": ids.get(content, 0), "content": content, "special": special, "normalized": normalized, "single_word": False,
            "lstrip": lstrip, "rstrip": rstrip}


ADDED = [added(s, lstrip=s == "<mask>") for s in SPECIALS]
FLAGGED = ADDED + [added("foo", special=False, normalized=True), added("AB", special=False, normalized=True),
                   added("<extra_id_0>"), added("<r>", rstrip=True), added("Kj", special=False, normalized=True, lstrip=True)]


def metaspace(scheme=None, split=None, replacement=MARK, **others):
    stage = {"type": "Metaspace", "replacement": replacement, **others}
    if scheme is not None:
        stage["prepend_scheme"] = scheme
    if split is not None:
        stage["split"] = split
    return stage


def replace(pattern, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def strip(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def tokenizer(model, normalizer, pre_tokenizer, tokens=None, post_processor=None):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": ADDED if tokens is None else tokens,
            "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": None,
            "model": model}


def unigram(normalizer, pre_tokenizer, tokens=None, post_processor=None, vocabulary=VOCABULARY, unk_id=0, **others):
    model = {"type": "Unigram", "unk_id": unk_id, "vocab": vocabulary, **others}
    return tokenizer(model, normalizer, pre_tokenizer, tokens, post_processor)


MERGES = [(MARK, "a"), ("a", "b"), (MARK + "a", "b"), ("b", "c"), ("ab", "c"), (MARK, MARK), ("a", "a"), ("aa", "a"), ("a", "aa"),
          ("t", "h"), ("th", "e"), (MARK, "the"), ("\u4e2d", "\u56fd"), ("f", "o"), ("fo", "o"), ("<0xC3>", "<0xA9>")]


def bpe(normalizer, pre_tokenizer, tokens=None, byte_fallback=True, fuse_unk=True, **others):
    pieces = SPECIALS + [t for t, _ in BYTES] + [MARK] + list("abcthefo.,12\u4e2d\u56fd ")
    pieces += [m for m in dict.fromkeys(a + b for a, b in MERGES) if m not in pieces]
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": fuse_unk, "byte_fallback": byte_fallback, "vocab": {p: i for i, p in enumerate(pieces)},
             "merges": [list(m) for m in MERGES], **others}
    return tokenizer(model, normalizer, pre_tokenizer, tokens)


def configurations():
    words = {"type": "WhitespaceSplit"}
    template_xlm = template("B:0 A:0 E:0", "B:0 A:0 E:0 E:0 B:0 E:0", B=[1], E=[2])
    template_xlm["pair"] = template("X:0 A:0 Y:0 Y:0 B:0 Y:0", "A:0 B:0", X=[1], Y=[2])["single"]
    template_xlm["single"] = template("X:0 A:0 Y:0", "A:0 B:0", X=[1], Y=[2])["single"]
    template_xlm["special_tokens"] = template("A:0", "A:0 B:0", X=[1], Y=[2])["special_tokens"]
    yield "xlm-roberta", unigram(CHARSMAP, sequence("pretokenizers", words, metaspace("always", True)), None, template_xlm)
    old = unigram(CHARSMAP, sequence("pretokenizers", words, metaspace(str_rep=MARK, add_prefix_space=True)))
    del old["model"]["type"]
    yield "old t5", old
    spm = sequence("normalizers", CHARSMAP, strip(False, True), replace(" {2,}", MARK, "Regex"))
    yield "converted", unigram(spm, metaspace("always"))
    yield "converted, first", unigram(spm, metaspace("first"), FLAGGED)
    yield "converted, whole", unigram(spm, metaspace("first", False), FLAGGED)
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"metaspace {scheme} {split}", unigram(None, metaspace(scheme, split), FLAGGED)
    yield "metaspace of another kind", unigram(nf("NFKC"), metaspace("always", replacement="e"))
    yield "metaspace of a space", unigram(nf("NFKC"), metaspace("always", replacement=" "))
    yield "two metaspaces", unigram(None, sequence("pretokenizers", metaspace("first"), metaspace("always", replacement="b")))
    yield "three metaspaces", unigram(None, sequence(
        "pretokenizers", words, metaspace("first", replacement=" "), metaspace("never"), metaspace("first",
            replacement="a")), FLAGGED)
    yield "first word of what is stripped", unigram(strip(True, True), sequence("pretokenizers", words, metaspace("first")),
        FLAGGED)
    yield "first behind strip", unigram(strip(True, False), metaspace("first"), FLAGGED)
    yield "first behind accents", unigram(sequence("normalizers", nf("NFD"), nf("StripAccents")), metaspace("first"), FLAGGED)
    yield "first behind nmt", unigram(sequence("normalizers", nf("Nmt"), nf("Lowercase")), metaspace("first"), FLAGGED)
    yield "first behind replacements", unigram(
        sequence("normalizers", replace("th", ""), replace("ab", "foo"), replace("a", "c")), metaspace("first"), FLAGGED)
    yield "first behind prepend", unigram(
        {"type": "Prepend", "prepend": "a "}, sequence("pretokenizers", words, metaspace("first")), FLAGGED)
    yield "spaces removed", unigram(replace(" {2,}", "", "Regex"), metaspace("first"))
    yield "spaces collapsed", unigram(replace(" {2,}", " ", "Regex"), metaspace("first"))
    yield "charsmap alone", unigram(CHARSMAP, None, FLAGGED)
    yield "charsmap twice", unigram(sequence("normalizers", nf("NFD"), CHARSMAP, nf("Lowercase"), CHARSMAP), metaspace("first"),
        FLAGGED)
    yield "no stages", unigram(None, None, [])
    with_bytes = VOCABULARY + BYTES
    yield "byte fallback", unigram(None, metaspace("always"), vocabulary=with_bytes, byte_fallback=True)
    yield "byte fallback with bytes missing", unigram(None, metaspace("always"), vocabulary=VOCABULARY + BYTES[:200],
        byte_fallback=True)
    yield "bytes without fallback", unigram(None, metaspace("always"), vocabulary=with_bytes, byte_fallback=False)
    yield "another unknown token", unigram(None, metaspace("always"), unk_id=8)
    high = [[t, s + 40] for t, s in VOCABULARY]
    yield "scores over zero", unigram(None, metaspace("always"), vocabulary=high)
    yield "llama", bpe(sequence("normalizers", {"type": "Prepend", "prepend": MARK}, replace(" ", MARK)), None, FLAGGED)
    yield "llama, first", bpe(None, metaspace("first", False), FLAGGED)
    yield "gemma", bpe(replace(" ", MARK), make_stages.split(" ", "MergedWithPrevious"), FLAGGED)
    yield "without byte fallback", bpe(None, metaspace("always", False), byte_fallback=False)
    yield "without fused unknown tokens", bpe(None, metaspace("always", False), byte_fallback=False, fuse_unk=False)
    yield "tokens before merges", bpe(None, metaspace("always"), ignore_merges=True)


TEXTS = [
    "", " ", "  ", "the ab abc", "aaaa aaaaa bcbcbc", " the  foo   bar ", "Hello, World!", "ABBA \u00c5ngstr\u00f6m \u212b",
    "\u4e2d\u56fd \u4e2d\u56fd\u4e2dthe\u56fd",
    "\u2581the \u2581\u2581a\u2581 \u2581", "a\tb\nc\r\nd\re", "\u0001a \u0001\u0001b\u007f", "\u200da\u200b\u200db",
    "e\u0301 e\u0301\u0327 e\u0301\u0327\u0300 x\u0327 x\u0327\u0301\u0300 A\u0301",
    "\ufb01 of\ufb01ce \u00bd\u00bd", "\u00a9 \u00a9\u200d \u00a9\u200d\u00a9 \u00ae\u200d\u00ae \u00a9\ufe0f",
    "kj k kjkj Kj  Kj", "\uff76\uff9e \uff76 \uff9e \uff11\u2460", "\u1100\u1161\u11a8 \uac00\u11a8 \uac00\u0301 \u1100",
    "\u0915\u094d\u0937\u0301 \u0915\u0301 \u0e01\u0e33", "\U0001f469\u200d\U0001f4bb \U0001f469 \U0001f1e9\U0001f1ea\U0001f1e9",
    "\ufdfa a\ufdfa\ufdfa", "xyz xy xyzxyz zyx", "w ww  w", "a b a b", "a<mask>b  <mask> c<mask>",
    "<s>the</s> <unk><pad> <s> a</s>b", " <s> a", "<s>", "the <extra_id_0> the<extra_id_0>", "foo Foo FOO foofoo", "AB ab AAB",
    "<r>  a<r> ",
    "\u2603\u2603 a\u2603b \u2603", "1 12 2 122 121", "un in n 0.5", "the" * 40 + " " + "ab" * 50, "\u00e9" * 60,
    "th\u0065 thab abth",
    "\u0600a \u0600\u00e9 \u0600", "\u3000a\u3000 \u00a0b", "b c b  c", "\u2028a\u0085b", "a\u0301\u0301\u0301 \u0301a",
    "\U00020000 \U0001f600a", "\x00a\x00",
]
PAIRS = [("the", "ab"), (" a", "b "), ("", "a"), ("a", ""), ("<s>a", "<mask> b")]

if __name__ == "__main__":
    make_stages.write(sys.argv[1], VOCABULARY, TEXTS, PAIRS, configurations())
