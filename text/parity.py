#!/usr/bin/env python3
"""Compares our token ids with the reference library's (pip install tokenizers==0.23.3).

    parity.py compare PRINT_IDS DATA MODEL [TOKENIZER...]
                                               every text, code point and random string; exits 1 at a difference
    parity.py compare-stages PRINT_IDS         the same with every configuration of golden/make_*.py that has some
    parity.py compare-spans PRINT_IDS DATA MODEL [TOKENIZER...]
                                               what each id stands for, and sequences with special tokens, types,
                                               special mask, cut in every way; compare-stages does so as well
    parity.py compare-decoded PRINT_IDS DATA MODEL [TOKENIZER...]
                                               texts of encoded texts and of random lists of ids
    parity.py compare-folders PRINT_IDS DATA   ids and what they stand for, of every text, for roberta-base and mistral-spm, which
                                               have no tokenizer.json: beside what stands for them in the reference
    parity.py golden DATA MODEL OUT            writes the hashes that reference_ids_test.cc checks without Python

DATA is the unpacked test data, MODEL the demo model's folder, PRINT_IDS the built tool. The texts of
a file, in order: all string values of a .json or .jsonl file, depth first; of another file every
line, then the file as a whole. reference_ids_test.cc reads them in the same way.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

from random_strings import RandomStrings
from tokenizers import Tokenizer

FILES = (
    ["tatoeba/tatoeba.jsonl", "udhr/udhr.jsonl", "naughty/blns.json", "scifact/corpus.jsonl", "scifact/queries.jsonl",
     "cranfield/cran.all.1400", "cranfield/cran.qry", "vaswani/doc-text.trec", "vaswani/query-text.trec",
     "msmarco/docs.jsonl", "msmarco/long-docs.jsonl"]
    + [f"stsb/stsb-{lang}-test.csv" for lang in "de en es fr it ja nl pl pt ru zh".split()]
    + [f"xquad/xquad.{lang}.json" for lang in "ar de el en es hi ro ru th tr vi zh".split()])

# {} is each code point in turn. The marks sort around it, the letters compose with it.
CONTEXTS = ["{}", "a{}b", "e\u0301{}\u0327z", "A {} \u1100{}\u11a8"]

MASK = (1 << 64) - 1


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)


def texts_of(path):
    raw = path.read_bytes().decode("utf-8")
    if path.suffix == ".jsonl":
        return [s for line in raw.split("\n") if line for s in strings(json.loads(line))]
    if path.suffix == ".json":
        return list(strings(json.loads(raw)))
    return raw.split("\n") + [raw]


def code_point_texts(context):
    return (context.replace("{}", chr(c)) for c in range(0x110000) if not 0xD800 <= c < 0xE000)


def reference(path):
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def reference_ids(tokenizer, texts):
    batch = []
    for text in texts:
        batch.append(text)
        if len(batch) == 4096:
            yield from (e.ids for e in tokenizer.encode_batch_fast(batch, add_special_tokens=False))
            batch = []
    yield from (e.ids for e in tokenizer.encode_batch_fast(batch, add_special_tokens=False))


def our_ids(print_ids, path, texts, *flags):
    lines = "".join(json.dumps(t) + "\n" for t in texts)
    done = subprocess.run([print_ids, path, *flags], input=lines, capture_output=True, text=True, check=True)
    return [[int(i) for i in line.split()] for line in done.stdout.split("\n")[:-1]]


def compare_texts(name, print_ids, path, tokenizer, texts, *flags):
    texts = list(texts)
    ours = our_ids(print_ids, path, texts, *flags)
    assert len(ours) == len(texts)
    differing = num_ids = 0
    for text, own, expected in zip(texts, ours, reference_ids(tokenizer, texts)):
        num_ids += len(expected)
        if own != expected:
            differing += 1
            if differing <= 3:
                print("   ", ascii(text[:200]), own[:20], expected[:20])
    print(f"{name}: {len(texts)} texts, {num_ids} ids, {differing} differ", flush=True)
    return differing


def without_framing(path):
    """Its post-processor moves offsets even where no special tokens are wanted."""
    description = json.loads(pathlib.Path(path).read_text())
    tokenizer = Tokenizer.from_str(json.dumps({**description, "post_processor": None}))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def flat(pairs):
    return [number for pair in pairs for number in pair]


def compare_lines(name, print_ids, path, inputs, expected, agree, *flags):
    """`expected`: by input the lists of numbers that our tool prints with a | between them, or None for an error."""
    lines = "".join(json.dumps(i) + "\n" for i in inputs)
    done = subprocess.run([print_ids, path, *flags], input=lines, capture_output=True, text=True, check=True)
    ours = done.stdout.split("\n")[:-1]
    assert len(ours) == len(inputs) == len(expected)
    differing = 0
    for given, own, numbers in zip(inputs, ours, expected):
        own = None if own == "error" else [[int(i) for i in part.split()] for part in own.split("|")]
        if not (own == numbers or (own and numbers and agree(own, numbers))):
            differing += 1
            if differing <= 3:
                print("   ", ascii(given)[:300], "\n     ours    ", str(own)[:300], "\n     expected", str(numbers)[:300])
    print(f"{name}: {len(inputs)} inputs, {differing} differ", flush=True)
    return differing


def compare_spans(name, print_ids, path, tokenizer, texts, *flags):
    """`tokenizer` is without_framing."""
    differing = 0
    texts = list(texts)
    for begin in range(0, len(texts), 100_000):
        part = texts[begin:begin + 100_000]
        expected = [[e.ids, flat(e.offsets)] for e in tokenizer.encode_batch(part, add_special_tokens=False)]
        differing += compare_lines(f"{name} spans", print_ids, path, part, expected, lambda a, b: False, "--spans", *flags)
    return differing


def framed(encode):
    try:
        e = encode()
    except BaseException:  # what cannot be cut; a panic of the reference's is no Exception
        return None
    return [e.ids, e.type_ids, e.special_tokens_mask, flat(e.offsets)]


def agree_in_one_text(own, numbers):
    """Ours prints the spans twice: counted in the first text, and in the second."""
    return own[:3] == numbers[:3] and len(own[3]) == len(numbers[3]) and all(
        s in counted for s, *counted in zip(numbers[3], own[3], own[4]))


def compare_framed(name, print_ids, path, tokenizer, texts):
    """Texts and pairs of them with special tokens, whole and cut."""
    differing = 0
    inputs = list(texts) + list(zip(texts, texts[1:]))
    for cut in [None] + [(n, how, side) for n in (5, 8, 13) for how in ("longest_first", "only_first", "only_second")
                         for side in ("left", "right")]:
        tokenizer.no_truncation()
        if cut:
            tokenizer.enable_truncation(cut[0], strategy=cut[1], direction=cut[2])
        expected = [framed(lambda i=i: tokenizer.encode(i) if isinstance(i, str) else tokenizer.encode(*i)) for i in inputs]
        differing += compare_lines(f"{name} framed {cut}", print_ids, path, inputs, expected, agree_in_one_text,
                                   "--framed", *(str(c) for c in cut or ()))
    tokenizer.no_truncation()
    return differing


def compare_decoded(name, print_ids, path, tokenizer, lists, skip_special):
    lines = "".join(json.dumps(ids) + "\n" for ids in lists)
    flags = ["--decode"] + ["--skip-special"] * skip_special
    done = subprocess.run([print_ids, path, *flags], input=lines, capture_output=True, text=True, check=True)
    ours = [bytes.fromhex(line).decode() for line in done.stdout.split("\n")[:-1]]
    assert len(ours) == len(lists)
    differing = 0
    for ids, own, expected in zip(lists, ours, tokenizer.decode_batch(lists, skip_special_tokens=skip_special)):
        if own != expected:
            differing += 1
            if differing <= 3:
                print("   ", ids[:30], "\n     ours    ", ascii(own)[:300], "\n     expected", ascii(expected)[:300])
    print(f"{name} decoded, skip_special {skip_special}: {len(lists)} lists, {differing} differ", flush=True)
    return differing


def random_lists(seed, size, count):
    rng = random.Random(seed)
    for _ in range(count):
        yield [rng.randrange(rng.choice((300, size, size + 1000))) for _ in range(rng.randint(0, 30))]


def compare_all_decoded(print_ids, data, model, *chosen):
    differing = 0
    for name, path in chosen_files(data, model, chosen):
        tokenizer = reference(path)
        lists = list(random_lists(9, tokenizer.get_vocab_size(), 50_000))
        for file in FILES:
            lists += [e.ids for e in tokenizer.encode_batch(texts_of(data / "texts" / file)[::7])]
        for skip_special in (True, False):
            differing += compare_decoded(name, print_ids, path, tokenizer, lists, skip_special)
    print(differing, "lists differ")
    return differing


def compare_all_spans(print_ids, data, model, *chosen):
    differing = 0
    for name, path in chosen_files(data, model, chosen):
        tokenizer = without_framing(path)
        random_strings = RandomStrings.of(tokenizer)
        for source, texts in sources(data):
            differing += compare_spans(f"{name} {source}", print_ids, path, tokenizer, texts)
        differing += compare_spans(f"{name} random", print_ids, path, tokenizer, random_strings.texts(5, 100_000))
        tokenizer.encode_special_tokens = True
        differing += compare_spans(f"{name} random, literal", print_ids, path, tokenizer, random_strings.texts(6, 20_000),
                                   "--literal")
        differing += compare_framed(name, print_ids, path, reference(path), list(random_strings.texts(7, 5_000)))
    print(differing, "texts differ")
    return differing


def tokenizer_files(data, model):
    return {"bert-uncased": data / "tokenizers/bert-uncased/tokenizer.json",
            "mbert-uncased": data / "tokenizers/mbert-uncased/tokenizer.json",
            "qwen3": data / "tokenizers/qwen3/tokenizer.json",
            "olmo": data / "tokenizers/olmo-modernbert-vocab/tokenizer.json",
            "xlm-roberta": data / "tokenizers/xlm-roberta/tokenizer.json",
            "t5-small": data / "tokenizers/t5-small/tokenizer.json",
            "demo": model / "tokenizer.json"}


def chosen_files(data, model, chosen):
    """(name, path) of the tokenizers that were named, or of all."""
    return [(name, path) for name, path in tokenizer_files(data, model).items() if not chosen or name in chosen]


def sources(data):
    """(name, texts): of each file, then every code point in each context."""
    for file in FILES:
        yield file, texts_of(data / "texts" / file)
    for context in CONTEXTS:
        yield ascii(context), code_point_texts(context)


def compare(print_ids, data, model, *chosen):
    differing = 0
    for name, path in chosen_files(data, model, chosen):
        tokenizer = reference(path)
        random_strings = RandomStrings.of(tokenizer)
        for source, texts in sources(data):
            differing += compare_texts(f"{name} {source}", print_ids, path, tokenizer, texts)
        differing += compare_texts(f"{name} random", print_ids, path, tokenizer, random_strings.texts(1, 200_000))
        tokenizer.encode_special_tokens = True
        differing += compare_texts(f"{name} random, literal", print_ids, path, tokenizer, random_strings.texts(2, 50_000),
                                   "--literal")
    print(differing, "texts differ")
    return differing


def compare_stages(print_ids):
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "golden"))
    import make_sentencepiece_stages
    import make_stages
    import make_trained
    differing = 0
    sources = [(make_stages, make_stages.configurations), (make_sentencepiece_stages, make_sentencepiece_stages.configurations),
               (make_trained, make_trained.trained_configurations)]
    for module, name, description in ((m, *c) for m, configurations in sources for c in configurations()):
        tokenizer = make_stages.build(description)
        random_strings = RandomStrings.of(tokenizer)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            path.write_text(json.dumps(description))
            own = list(module.TEXTS) + [a + b for a in module.TEXTS for b in module.TEXTS]
            texts = own + list(random_strings.texts(3, 10_000)) + list(mixed_texts(4, own, 10_000))
            differing += compare_texts(name, print_ids, path, tokenizer, texts)
            tokenizer.encode_special_tokens = True
            differing += compare_texts(name + ", literal", print_ids, path, tokenizer, texts, "--literal")
            tokenizer.encode_special_tokens = False
            bare = without_framing(path)
            differing += compare_spans(name, print_ids, path, bare, texts)
            if description["normalizer"]:
                differing += compare_spans(name + ", code points", print_ids, path, bare, code_point_texts(CONTEXTS[2]))
            differing += compare_framed(name, print_ids, path, tokenizer, own[:50] + list(random_strings.texts(8, 50)))
            differing += compare_texts(name + ", code points", print_ids, path, tokenizer, code_point_texts(CONTEXTS[2]))
    print(differing, "texts differ")
    return differing


def compare_folders(print_ids, data):
    import reference_side  # which needs what is above
    differing = 0
    for name in ("roberta-base", "mistral-spm"):
        with tempfile.TemporaryDirectory() as scratch:
            ours, expected = reference_side.open_sides(name, print_ids, data, pathlib.Path(scratch))
            for file in FILES:
                texts = texts_of(data / "texts" / file)
                own = ours.answers("plain", texts)
                wrong = [t for t, a, b in zip(texts, own, expected.answers("plain", texts), strict=True) if a != b]
                differing += len(wrong)
                print(f"{name} {file}: {len(texts)} texts, {len(wrong)} differ", *map(ascii, wrong[:3]), flush=True)
            ours.close()
    print(differing, "texts differ")
    return differing


def mixed_texts(seed, texts, count):
    """Pieces of our own texts, which hold what the configurations look for."""
    rng = random.Random(seed)
    long_enough = [t for t in texts if len(t) > 2]
    for _ in range(count):
        pieces = []
        for _ in range(rng.randint(1, 6)):
            text = rng.choice(long_enough)
            begin = rng.randrange(len(text))
            pieces.append(text[begin:begin + rng.randint(1, 12)])
        yield "".join(pieces)


def fold(hashed, ids):
    """FNV-1a over 32-bit words: each id, then a mark for the end of the text."""
    for i in ids:
        hashed = ((hashed ^ i) * 0x100000001B3) & MASK
    return ((hashed ^ 0xFFFFFFFF) * 0x100000001B3) & MASK


def golden(data, model, out):
    lines = ["# parity.py golden, tokenizers 0.23.3: tokenizer, file or code-point context, texts, ids, hash"]
    for name, path in tokenizer_files(data, model).items():
        tokenizer = reference(path)
        sources = [(file, lambda file=file: texts_of(data / "texts" / file)) for file in FILES]
        sources += [(f"context{i}", lambda c=c: code_point_texts(c)) for i, c in enumerate(CONTEXTS)]
        for source, texts in sources:
            hashed, num_texts, num_ids = 0xCBF29CE484222325, 0, 0
            for ids in reference_ids(tokenizer, texts()):
                hashed = fold(hashed, ids)
                num_texts += 1
                num_ids += len(ids)
            lines.append(f"{name} {source} {num_texts} {num_ids} {hashed:016x}")
            print(lines[-1], flush=True)
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


def main(arguments):
    if len(arguments) >= 4 and arguments[0] == "compare":
        return compare(arguments[1], pathlib.Path(arguments[2]), pathlib.Path(arguments[3]), *arguments[4:]) != 0
    if len(arguments) >= 4 and arguments[0] == "compare-spans":
        return compare_all_spans(arguments[1], pathlib.Path(arguments[2]), pathlib.Path(arguments[3]), *arguments[4:]) != 0
    if len(arguments) >= 4 and arguments[0] == "compare-decoded":
        return compare_all_decoded(arguments[1], pathlib.Path(arguments[2]), pathlib.Path(arguments[3]), *arguments[4:]) != 0
    if len(arguments) == 2 and arguments[0] == "compare-stages":
        return compare_stages(arguments[1]) != 0
    if len(arguments) == 3 and arguments[0] == "compare-folders":
        return compare_folders(arguments[1], pathlib.Path(arguments[2])) != 0
    if len(arguments) == 4 and arguments[0] == "golden":
        golden(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]), arguments[3])
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
