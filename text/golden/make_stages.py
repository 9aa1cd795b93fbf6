#!/usr/bin/env python3
"""Writes stages.json: every stage of a tokenizer.json on texts and a vocabulary of our own, with the
reference library's ids (pip install tokenizers==0.23.3).

    make_stages.py OUT
"""

import json
import sys

from tokenizers import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ("the quick brown fox jump over lazy dog un aff able run walk new york caf cafe na ive nai naive uber strasse "
         "istanbul angstrom fi office hello world foo bar foobar 12 123 2024 ab abc").split()
CHARACTERS = ("abcdefghijklmnopqrstuvwxyzABCDEFXYZ0123456789.,!?-'\"()[]<>#@$%^_~|/\\+=*&:; "
              "éÉüÜßçñåÅİıſΑαΣςσжЖ中国日本語한국어가각ㄱ\u1100\u1161\u11a8\u0301\u0308\u0327\u302e\U0001d165\u00a0½²①ﬁ™ⅷ٣—…€😀\u200d\u2581")


def vocabulary():
    tokens = list(SPECIALS)
    for token in WORDS + ["##" + w for w in ("s", "ing", "able", "aff", "bar", "foo", "ve", "23", "c", "ed")]:
        if token not in tokens:
            tokens.append(token)
    for c in CHARACTERS:
        for token in (c, "##" + c):
            if token not in tokens:
                tokens.append(token)
    tokens += ["a b", "FOO"]
    return {token: i for i, token in enumerate(tokens)}


VOCABULARY = vocabulary()


def bert(clean=True, chinese=True, accents=None, lowercase=True):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "strip_accents": accents,
            "lowercase": lowercase}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def added(content, special=False, normalized=False, single_word=False, lstrip=False, rstrip=False):
    return {"id": VOCABULARY.get(content, 0), "content": content, "special": special, "normalized": normalized,
            "single_word": single_word, "lstrip": lstrip, "rstrip": rstrip}


def special_added():
    return [added(s, special=True) for s in SPECIALS]


def template(single, pair, **tokens):
    def parts(text):
        for item in text.split():
            name, kind = item.split(":")
            if name in "AB":
                yield {"Sequence": {"id": name, "type_id": int(kind)}}
            else:
                yield {"SpecialToken": {"id": name, "type_id": int(kind)}}
    return {"type": "TemplateProcessing", "single": list(parts(single)), "pair": list(parts(pair)),
            "special_tokens": {k: {"id": k, "ids": v, "tokens": ["x"] * len(v)} for k, v in tokens.items()}}


BERT_PRE = {"type": "BertPreTokenizer"}
WHITESPACE = {"type": "Whitespace"}
BERT_TEMPLATE = template("C:0 A:0 S:0", "C:0 A:0 S:0 B:1 S:1", C=[2], S=[3])


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": {"String": pattern}, "behavior": behavior, "invert": invert}


def split_regex(expression, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior, "invert": invert}


def replace_regex(expression, content):
    return {"type": "Replace", "pattern": {"Regex": expression}, "content": content}


def nf(name):
    return {"type": name}


def tokenizer(normalizer, pre_tokenizer, post_processor=None, tokens=None, prefix="##", longest=100):
    # In the order of ids, as a written tokenizer.json has them: new tokens get theirs in this order.
    tokens = special_added() if tokens is None else tokens
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": None,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
                      "max_input_chars_per_word": longest, "vocab": VOCABULARY}}


def word_level(normalizer, pre_tokenizer, tokens=None):
    description = tokenizer(normalizer, pre_tokenizer, BERT_TEMPLATE, tokens)
    return {**description, "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": VOCABULARY}}


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

FLAGGED = special_added() + [
    added("<left>", lstrip=True), added("<right>", rstrip=True), added("<both>", lstrip=True, rstrip=True),
    added("<word>", single_word=True), added("foo", single_word=True), added("foobar"), added("ab", special=True),
    added("bcd"), added("  "), added("ΣΟΦΟΣ", normalized=True), added("New York", normalized=True, single_word=True),
    added("École", normalized=True, lstrip=True, rstrip=True), added("<N>", special=True, normalized=True),
    added("x y", normalized=True, rstrip=True), added("[SEPARATE]", special=True)]


def configurations():
    behaviors = ["Removed", "Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
    yield "bert", tokenizer(bert(), BERT_PRE, BERT_TEMPLATE)
    yield "bert cased", tokenizer(bert(lowercase=False), BERT_PRE, BERT_TEMPLATE)
    yield "bert lowercase with accents", tokenizer(bert(accents=False), BERT_PRE)
    yield "bert cased without accents", tokenizer(bert(accents=True, lowercase=False), BERT_PRE)
    yield "bert uncleaned", tokenizer(bert(clean=False), BERT_PRE)
    yield "bert without chinese", tokenizer(bert(chinese=False), BERT_PRE)
    yield "bert only clean", tokenizer(bert(chinese=False, accents=False, lowercase=False), WHITESPACE)
    yield "no stages", tokenizer(None, None, tokens=[])
    yield "lowercase, whitespace", tokenizer(nf("Lowercase"), WHITESPACE)
    yield "decompose and strip", tokenizer(
        sequence("normalizers", nf("NFD"), nf("Lowercase"), nf("StripAccents")), WHITESPACE)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, tokenizer(nf(form), {"type": "WhitespaceSplit"})
    yield "strip accents only", tokenizer(nf("StripAccents"), BERT_PRE)
    yield "nmt", tokenizer(nf("Nmt"), {"type": "WhitespaceSplit"})
    yield "nested sequences", tokenizer(
        sequence("normalizers", sequence("normalizers", nf("NFKC")), bert(), sequence("normalizers")),
        sequence("pretokenizers", {"type": "WhitespaceSplit"}, sequence("pretokenizers", {"type": "Punctuation"})))
    for left, right in ((True, True), (True, False), (False, True)):
        yield f"strip {left} {right}", tokenizer({"type": "Strip", "strip_left": left, "strip_right": right}, None)
    yield "replace", tokenizer(
        sequence("normalizers", {"type": "Replace", "pattern": {"String": "oo"}, "content": "u."},
                 {"type": "Replace", "pattern": {"String": "."}, "content": ""}), WHITESPACE)
    yield "replace dots literally", tokenizer(
        {"type": "Replace", "pattern": {"String": "a.(b)*"}, "content": " "}, WHITESPACE)
    yield "prepend", tokenizer({"type": "Prepend", "prepend": "foo é"}, BERT_PRE)
    for behavior in behaviors:
        yield f"punctuation {behavior}", tokenizer(None, {"type": "Punctuation", "behavior": behavior})
        for invert in (False, True):
            yield f"split {behavior} {invert}", tokenizer(None, split("ab", behavior, invert))
            yield f"expression {behavior} {invert}", tokenizer(None, split_regex(r"[\p{L}\p{M}]+b|\s*", behavior, invert))
            yield f"known expression {behavior} {invert}", tokenizer(None, split_regex(GPT2, behavior, invert))
    yield "expression with every class", tokenizer(None, sequence("pretokenizers", split_regex(
        r"(?i:foo|é)|\p{Lu}[\p{Ll}\p{Han}]*|\p{P}\P{Z}?|[^\S\r\n]+|\d{1,2}|(?<=a)\W|[\w.-]+(?!\w)", "Isolated"), WHITESPACE))
    yield "fixed length", tokenizer(nf("Lowercase"), {"type": "FixedLength", "length": 3})
    yield "fixed length in words", tokenizer(nf("NFC"), sequence("pretokenizers", WHITESPACE, {"type": "FixedLength"}))
    yield "replace expressions", tokenizer(sequence("normalizers", replace_regex(r"\p{M}+|o(?=o)", ""), replace_regex(
        r"(?i)[x-z]|\s+$", "é b")), WHITESPACE)
    yield "replace between", tokenizer(sequence("normalizers", {"type": "Prepend", "prepend": "a"}, replace_regex(
        r"(?<=[a-y])(?=\p{L})", "12")), WHITESPACE)
    yield "byte level normalizer", tokenizer(
        sequence("normalizers", nf("NFD"), nf("ByteLevel")), {"type": "FixedLength", "length": 1})
    yield "words", word_level(bert(), BERT_PRE)
    yield "words cased", word_level(None, WHITESPACE, tokens=FLAGGED)
    yield "punctuation by default", tokenizer(nf("Lowercase"), {"type": "Punctuation"})
    yield "digits alone", tokenizer(None, sequence("pretokenizers", WHITESPACE, {"type": "Digits", "individual_digits": True}))
    yield "digits in runs", tokenizer(None, sequence("pretokenizers", WHITESPACE, {"type": "Digits", "individual_digits": False}))
    yield "delimiter", tokenizer(None, {"type": "CharDelimiterSplit", "delimiter": "é"})
    yield "added tokens, bert", tokenizer(bert(), BERT_PRE, tokens=FLAGGED)
    yield "added tokens, lowercase", tokenizer(nf("Lowercase"), WHITESPACE, tokens=FLAGGED)
    yield "added tokens, no stages", tokenizer(None, None, tokens=FLAGGED)
    yield "added tokens, prepend", tokenizer({"type": "Prepend", "prepend": " "}, WHITESPACE, tokens=FLAGGED)
    yield "prefix empty", tokenizer(bert(), BERT_PRE, prefix="")
    yield "prefix of another kind", tokenizer(bert(), BERT_PRE, prefix="é")
    yield "short words", tokenizer(bert(), BERT_PRE, longest=4)
    yield "no word at all", tokenizer(bert(), BERT_PRE, longest=0)
    yield "bert processing", tokenizer(bert(), BERT_PRE, {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})
    yield "roberta processing", tokenizer(bert(), BERT_PRE, {
        "type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True, "add_prefix_space": False})
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    yield "byte level processing", tokenizer(bert(), BERT_PRE, byte_level)
    yield "processing in sequence", tokenizer(bert(), BERT_PRE, sequence("processors", byte_level, BERT_TEMPLATE))
    yield "odd template", tokenizer(bert(), BERT_PRE, template(
        "S:4 A:2 C:0 C:3", "B:3 S:0 C:7 A:1", C=[2, 4], S=[3]))


TEXTS = [
    "", " ", "\t\n\r", "\x00", "hello world", "Hello, World!", "The quick brown fox jumps over the lazy dog.",
    "unaffable unaffables UNAFFABLE", "café CAFÉ cafe\u0301 naïve", "Über Straße STRASSE ẞ", "İstanbul ISTANBUL ıI",
    "ΣΟΦΟΣ σοφος Ὀδυσσεύς", "Ångström \u212b \u2126", "中国 hello中国world", "日本語abc한국어", "각 \u1100\u1161\u11a8 가\u11a8",
    "a\u0301\u0327\u0308b e\u0327\u0301 q\u0307\u0323", "\u302e\u0301x \U0001d157\U0001d165 \U0001d15e", "ﬁ ofﬁce ½ ² ① ™ ⅷ",
    "a\u200db a\ufeffb a\u00adb", "a\u00a0b\u3000c\u2028d\u0085e", "\ufffd\ue000\U000f0000a", "12 123 2024 ٣ 1a2b3",
    "a.(b)* aa.b food foo. .oo", "xabab abxab ab", "--a--b--", "!?x?!y", "(a)[b]{c}", "don't e-mail@x.com $5 a_b ~|^`",
    "foobar foo barfoo foo_ foo.", "[CLS] hello [SEP] world [MASK] [sep] [UNK]", "[SEPARATE] [SEP [SEP]] ab abcd",
    "x  <left>  y <left><left> a", "x <right>  y<right> ", "  <both>  <both>  a", "a<word>b <word> <word>c d<word>é",
    "new york New York newyork renew yorks NEW YORK", "une école l'École  ECOLE x", "x y  z X Y", "a <N> b <n>",
    "word" * 26 + " " + "ab" * 50 + " " + "ab" * 50 + "a", "é" * 100 + " " + "é" * 101, "😀 a😀 👩\u200d👩\u200d👧 \U0001f1e9\U0001f1ea",
    "\U0002b820\U0002b920\U0002f800\uf900\u3007\u3400\u9fff", "สวัสดี ลาก่อน", "हिन्दी নমস্কার", "שָׁלוֹם مَرْحَبًا",
    "\u1e9b\u0323 \u1d2c\u0344 \u0f73\u0f75", "a\x01b\x7fc\x9fd\x0be\x0cf", "  leading and trailing  ", "\u2581a \u200ba\u200e",
    "é-é é", "#hash ##s a##b", "a b", "\u1100\u1161 \uac00\u0301\u11a8",
]
PAIRS = [("hello", "world"), ("The quick fox", "jumps."), ("", "a"), ("a", ""), ("é 中", "[SEP] b")]


def hash_of_spans(encodings):
    """FNV-1a over 32-bit words: begins and ends in characters, then a mark for the end of the text."""
    hashed = 0xCBF29CE484222325
    for encoding in encodings:
        for word in [n for span in encoding.offsets for n in span] + [0xFFFFFFFF]:
            hashed = ((hashed ^ word) * 0x100000001B3) & ((1 << 64) - 1)
    return hashed


def build(description):
    return Tokenizer.from_str(json.dumps(description))


def write(out, vocabulary, texts, pairs_of_texts, described):
    """Configurations whose vocabulary is the common one are written without it."""
    result = {"vocabulary": vocabulary, "texts": texts, "pairs": pairs_of_texts, "configurations": []}
    for name, description in described:
        model = dict(description["model"])
        if model["vocab"] is vocabulary:
            model["vocab"] = {}
        reference = build(description)
        framed = [reference.encode(t) for t in texts]
        pairs = [reference.encode(a, b) for a, b in pairs_of_texts]
        bare_pairs = [reference.encode(a, b, add_special_tokens=False) for a, b in pairs_of_texts]
        entry = {
            "name": name, "tokenizer": {**description, "model": model},
            "ids": [reference.encode(t, add_special_tokens=False).ids for t in texts],
            "spans_hash": f"{hash_of_spans(framed):016x}", "framed_ids": [e.ids for e in framed[:12]],
            "framed_types": [e.type_ids for e in framed[:12]],
            "pair_ids": [e.ids for e in pairs], "pair_types": [e.type_ids for e in pairs],
            "bare_pair_ids": [e.ids for e in bare_pairs], "bare_pair_types": [e.type_ids for e in bare_pairs]}
        reference.encode_special_tokens = True
        literal = [reference.encode(t, add_special_tokens=False).ids for t in texts]
        entry["literal_ids"] = {str(i): l for i, (l, o) in enumerate(zip(literal, entry["ids"])) if l != o}
        result["configurations"].append(entry)
    with open(out, "w") as file:
        head = {k: v for k, v in result.items() if k != "configurations"}
        file.write(json.dumps(head, separators=(",", ":"))[:-1] + ',"configurations":[\n')
        file.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in result["configurations"]) + "\n]}\n")


if __name__ == "__main__":
    write(sys.argv[1], VOCABULARY, TEXTS, PAIRS, configurations())
