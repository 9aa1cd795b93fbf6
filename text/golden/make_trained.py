#!/usr/bin/env python3
"""Writes trained.json: vocabularies as the reference library's own trainers make them (pip install tokenizers==0.23.3),
trained on this project's texts, with its ids for texts in many scripts, in the form of stages.json (make_stages.py).

    make_trained.py [--retrain] OUT

Trainers do not promise the same vocabulary from version to version, so those in OUT are kept and only the ids are made
anew, unless --retrain.
"""

import json
import pathlib
import re
import sys

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import make_sentencepiece_stages
import make_stages
from make_stages import bert, nf, sequence, template
from make_sentencepiece_stages import metaspace, replace

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = "\u2581"
QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SENTENCEPIECE_SPECIALS = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]

# What pages hardly say, so that expressions that cut otherwise show in the ids.
SPOKEN = ["I'm sure it's what they've said, we're late, he'd go, she'll stay and you don't.",
          "I'M, IT'S, THEY'VE, WE'RE, HE'D, DON'T",
          "wait ...  what?!\n\nyes:\n    if (x) {\n        return (y);\n    }\n\n",
          "Größe naïve café привет мир και 你好世界"]


def corpus():
    """The project's pages, what its headers here say, and the texts of the other goldens, often enough to count.
    Without the special tokens, which the Unigram trainer would learn a second time."""
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [line for page in pages for line in page.read_text().splitlines() if not line.startswith("|")]
    for header in sorted((ROOT / "text").glob("*.h")):
        lines += re.findall(r"^\s*///? (.*)$", header.read_text(), re.MULTILINE)
    lines += 100 * SPOKEN + 12 * (make_stages.TEXTS + make_sentencepiece_stages.TEXTS)
    return [re.sub("|".join(SENTENCEPIECE_SPECIALS), "", line) for line in lines]


def train(description, model, trainer):
    """The part "model" that `trainer` makes behind the stages of `description`."""
    empty = {**description, "added_tokens": [], "post_processor": None,
             "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}}
    stages = make_stages.build(empty)
    reference = Tokenizer(model)
    if stages.normalizer is not None:
        reference.normalizer = stages.normalizer
    if stages.pre_tokenizer is not None:
        reference.pre_tokenizer = stages.pre_tokenizer
    reference.train_from_iterator(corpus(), trainer)
    return json.loads(reference.to_str())["model"]


def with_bytes(model):
    """The tokens of bytes put in behind the special tokens, as SentencePiece has them. Trainers do not make them."""
    special, at = len(SENTENCEPIECE_SPECIALS), len(SENTENCEPIECE_SPECIALS) + len(BYTES)
    if model["type"] == "Unigram":
        worst = min(score for _, score in model["vocab"])
        vocabulary = model["vocab"][:special] + [[b, worst - 1] for b in BYTES] + model["vocab"][special:]
    else:
        vocabulary = {token: i if i < special else i - special + at for token, i in model["vocab"].items()}
        vocabulary.update({b: special + i for i, b in enumerate(BYTES)})
        vocabulary = dict(sorted(vocabulary.items(), key=lambda item: item[1]))
    return {**model, "byte_fallback": True, "vocab": vocabulary}


def added(tokens, **flags):
    """In the order of ids. `flags`: name of a flag → the tokens that have it; tokens of "plain" are not special."""
    return [{"id": i, "content": token, "special": token not in flags.get("plain", ()), "single_word": False,
             **{flag: token in flags.get(flag, ()) for flag in ("lstrip", "rstrip", "normalized")}}
            for i, token in enumerate(tokens)]


def described(tokens, normalizer, pre_tokenizer, post_processor):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": None}


def byte_level(prefix=False, regex=True, trim=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex}


def word_piece(size, normalizer):
    framed = template("C:0 A:0 S:0", "C:0 A:0 S:0 B:1 S:1", C=[2], S=[3])
    description = described(added(BERT_SPECIALS), normalizer, {"type": "BertPreTokenizer"}, framed)
    return description, lambda: train(description, models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(
        vocab_size=size, limit_alphabet=size // 3, special_tokens=BERT_SPECIALS, show_progress=False))


def byte_level_bpe(size, specials, description):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=specials, show_progress=False)
    return description, lambda: train(description, models.BPE(), trainer)


def llama(size):
    normalizer = sequence("normalizers", {"type": "Prepend", "prepend": MARK}, replace(" ", MARK))
    framed = template("S:0 A:0", "S:0 A:0 S:0 B:0", S=[1])
    description = described(added(SENTENCEPIECE_SPECIALS), normalizer, None, framed)
    # Learns within words, where nothing before the model splits.
    words = {**description, "pre_tokenizer": make_stages.split(MARK, "MergedWithNext")}
    trainer = trainers.BpeTrainer(vocab_size=size, limit_alphabet=120, special_tokens=SENTENCEPIECE_SPECIALS,
                                  show_progress=False)
    return description, lambda: with_bytes(train(words, models.BPE(unk_token="<unk>", fuse_unk=True), trainer))


def unigram(size, normalizer, pre_tokenizer, framed, finish=lambda model: model):
    trainer = trainers.UnigramTrainer(vocab_size=size, special_tokens=SENTENCEPIECE_SPECIALS, unk_token="<unk>",
                                      show_progress=False)
    description = described(added(SENTENCEPIECE_SPECIALS), normalizer, pre_tokenizer, framed)
    return description, lambda: finish(train(description, models.Unigram(), trainer))


def configurations():
    """Name, description without a model, and what trains the model."""
    yield "word piece", *word_piece(700, bert())
    yield "word piece, cased", *word_piece(400, bert(lowercase=False))
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
               "add_prefix_space": False}
    yield "byte-level bpe, gpt-2's expression", *byte_level_bpe(700, ROBERTA_SPECIALS, described(
        added(ROBERTA_SPECIALS, lstrip=["<mask>"]), None, byte_level(), roberta))
    qwen = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"]
    split = {"type": "Split", "pattern": {"Regex": QWEN}, "behavior": "Isolated", "invert": False}
    yield "byte-level bpe, qwen's expression", *byte_level_bpe(600, qwen, described(
        added(qwen, plain=["<think>"]), nf("NFC"), sequence("pretokenizers", split, byte_level(regex=False)),
        sequence("processors", byte_level(), template("A:0 E:0", "A:0 B:0 E:0", E=[0]))))
    yield "bpe, byte fallback", *llama(500)
    framed = template("X:0 A:0 Y:0", "X:0 A:0 Y:0 Y:0 B:0 Y:0", X=[1], Y=[2])
    collapsed = sequence("normalizers", nf("NFKC"), replace(" {2,}", MARK, "Regex"))
    yield "unigram, metaspace", *unigram(700, collapsed, metaspace("always", True), framed)
    yield "unigram, byte fallback", *unigram(400, nf("NFC"), metaspace("first", False), template("A:0 Y:0", "A:0 B:0 Y:0", Y=[2]),
                                             with_bytes)


TEXTS = [
    # English, and what the vocabularies were trained for
    "An embedding server reads a folder and gives the same vectors.",
    "Batches are measured in tokens, not in requests.",
    "The scheduler holds back a sequence that would exceed the token budget.",
    "It's what they've said: we'll see, don't we?", "HTTP/1.1 200 OK", "bouquet serve --port 8080 --device cpu",
    "https://example.org/a_b?c=d&e=%20f#g", "user.name+tag@mail.example",
    "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }",
    "def f(x: list[int]) -> None:\n\treturn x[::-1]  # reversed\n", "SELECT * FROM t WHERE a <> 'b' -- c",
    "{\"key\": [1, 2.5e-3, null, true]}", "<p class=\"x\">a &amp; b</p>", "C:\\temp\\new\\x.txt",
    "snake_case camelCase PascalCase kebab-case SCREAMING_CASE", "1234567890 3.14159 1,000,000 0x7FFF 1e-9 007",
    "v1.2.3-rc.4+build5", "2026-11-30T12:34:56.789Z", "$5.00 €7,50 £3 ¥100 ₹1 ₿0.1", "THE QUICK BROWN FOX",
    "tHe QuIcK bRoWn FoX", "a", "I", "ab", " a", "a ", "  a  b  ", "\na\n\nb\n\n\n", "a\r\nb\rc\n", "\ta\t\tb",
    "Mr. O'Neill's e-mail; (re: \"it\") ...", "they'RE I'M we'D SHE'LL it'S can'T 'sup 'tis rock'n'roll",
    "‘quoted’ “quoted” «quoted» ‹q›", "I'm you're he's don't he'd we'll I've", "I'mad HE'SX we'rest 'lly x'VEx 'tt 'dd '\u017fa",
    # Latin with marks
    "Größere Änderungen würden Übung brauchen.", "Le cœur déçu mais l'âme plutôt naïve",
    "El pingüino ¿qué hacía? ¡Nada!", "Ações e coração, vovô e avó", "Příliš žluťoučký kůň", "Zażółć gęślą jaźń",
    "İşte ışık Iğdır'da", "Tôi đang học tiếng Việt ở Huế", "To\u0302i ho\u0323c tie\u0302\u0301ng Vie\u0323\u0302t",
    "Þór ætlaði að fá sér öl", "Őrző tűrő hütő", "Și țara, şi ţara", "Ǆep ǅep ǆep ĳs ĲS", "ẞ ß ss SS ﬀ ﬃ ﬆ",
    "āēīōū ṭḍṇ ǖǘǚǜ", "ɓɗɠ Ɔɔ ŋɲ", "ＡＢＣ ａｂｃ １２３ ！？",
    # Greek, Cyrillic, Armenian, Georgian
    "Ο ΟΔΥΣΣΕΥΣ και η θάλασσας", "Ἀρχῇ ἦν ὁ λόγος", "ΑΣ ΑΣΑ Σ σς", "Ещё раз: съешь же этих мягких булок",
    "Їжак і ґанок", "Љубав ђака џеп", "\u0438\u0306 \u0439 \u0435\u0308 \u0451 \u0418\u0306",
    "\u0460\u046a\u0464 \u0483\u0430\u0488", "Բարև Եւրոպա", "გამარჯობა ᲒᲐ ႠႡ",
    # Hebrew, Arabic and their kin
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u05e2\u05d5\u05dc\u05dd", "\ufb2a \ufb2c \u05e9\u05bc\u05c1",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645",
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f\u064c \u0623\u0625\u0622\u0624\u0626 \u0622",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u06f1\u06f2\u06f3 \u0661\u0662\u0663",
    "\ufefb \ufdf2 \ufe8d\ufe8e", "\u0640\u0640\u0640\u0640\u0640 \u0645\u0640\u062d\u0640\u0645\u0640\u062f",
    "\u0700\u0710\u0712\u0713 \u0780\u07a6\u0781\u07aa \u07ca\u07d0", "\u200fabc\u200e \u202ba\u202c \u2067b\u2069",
    # South and South-East Asia, Tibet
    "नमस्ते दुनिया क्षत्रिय", "\u0915\u093c \u0958 \u0929 \u0928\u093c \u0967\u0968\u0969", "আমার সোনার বাংলা ো ো",
    "ਪੰਜਾਬੀ ગુજરાતી", "தமிழ் ொ ொ ௌ", "తెలుగు ಕನ್ನಡ ೋ", "മലയാളം ൻർ", "සිංහල ේොෝ", "บริการที่ดี น้ำ นํา ๑๒",
    "ພາສາລາວ ໜໝ", "ချစ်သည် ဦ ဦ", "ភាសាខ្មែរ", "\u0f56\u0f7c\u0f51\u0f0b\u0f66\u0f90\u0f51\u0f0b \u0f43 \u0f42\u0fb7",
    "\u1b05\u1b35 \u1b06 \ua984\ua98f", "\U00011013\U00011014 \U0001109a \U00011099\U000110ba",
    # Chinese, Japanese, Korean
    "你好，世界！今天天气很好。", "漢字與繁體字：「引言」、『書』", "中国China中国123中", "ひらがなとカタカナ、漢字まじり。",
    "\u304b\u3099 \u304c \u30cf\u309a \u30d1 \uff8a\uff9f \uff76\uff9e \u309d\u309e\u30fc\u30fd", "㌀ ㍱ ㊤ ㍻ ㎡ ㋿",
    "한국어 텍스트를 나눈다.", "한국 하 ᆫᅡ", "뷁슡 ㄱㅏㄴ ﾡￂ ꥠᅡퟋ", "ㄅㄆㄇ ㆠ 々〆〇", "\uf900\uf9ff\ufa0e \U0002f800\U0002fa1d",
    "龥龦鿯鿼 㐀䶿䷀", "\U00020000\U0002a6d6\U0002a700\U0002b73f\U0002b820 \U00030000\U000323af",
    # Africa, the Americas, scripts of the past
    "አማርኛ ፡፩፱", "ⴰⵣⵓⵍ", "ᏣᎳᎩ ꭻᏸ", "ᐃᓄᒃᑎᑐᑦ", "\u1820\u1828\u180b \u1811\u180e", "ꀀꀕ ꓐꓸ", "ᚠᚢᚦ ᚁᚂ", "𐌰𐌱𐌲 𐐀𐐨", "𒀀𒂠 𓂀𓀀",
    "\U0001e900\U0001e922 \U0001e94b", "\U00010780 \U0001df00 \ua7f2 \U00010ec5",
    # Symbols, emoji
    "😀😁😂",
    "\U0001f44d\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f3f3\ufe0f\u200d\U0001f308",
    "🇩🇪🇫🇷🇪", "1\ufe0f\u20e3 #\ufe0f\u20e3 \u2764\ufe0f \u2764\ufe0e \u2764",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "∀x∈ℝ: ∃y ≠ x ∧ ¬P ∨ ∑ᵢₙ",
    "\u2260 =\u0338 \u226e <\u0338 \u2adc \u2add\u0338",
    "\U0001d400\U0001d41a\U0001d7ce \u210c\u2102 \U0001d15e\U0001d165", "①⑴⒜Ⓐ Ⅰⅲⅿ ¹²³⁰₀", "½⅓⅞ ↉ ⁄ 1⁄2",
    "←⇒⟶ █▒ ─┼╬ ■●★☆", "\u2122\u00ae\u00a9\u2117 \u2116 \u2126 \u212a \u212b", "… ‥ ․ ‼ ⁇ ″ ⁗", "–—―‐‑−﹣－-",
    "♪♭♯ ♩ ☠☯☃", "⣿⠁⠃ ䷀䷿ 🂡🀀",
    # Repeated
    "!!!!!!!!!!!!!!!! ???? ?!?!?!", "----------------------------------------", "=" * 33 + "\n" + "#" * 7 + " a",
    "." * 50 + "," * 21, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ab" * 24, "hahahahahaha lololol zzzZZZ",
    "the" * 11 + "token" * 7, " " * 17 + "a" + " " * 16 + "b", "\n" * 9 + "a" + " \n" * 5, "\t \t \t a",
    "\u3000\u3000\u00a0\u2003a\u2009b\u202f", "0" * 31 + "1", "中" * 19 + "国" * 3, "😀" * 9,
    "\u00e9" * 17 + "e\u0301" * 9, "((((((((((a))))))))))", "\\\\\\\\n\\\\t", "_" * 12 + "a_b__c___d",
    "/*" * 8 + "*/" * 8,
    # Long words
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "sentencetransformersembeddingserverschedulertokenizer" * 2, "x" + "tokens" * 17, "достопримечательности" * 3,
    "กรุงเทพมหานคร" * 4, "b" * 99 + " " + "b" * 100 + " " + "b" * 101,
    # Marks
    "a\u0300\u0301\u0302\u0303\u0304\u0308\u0327\u0328", "a\u0327\u0301 a\u0301\u0327 a\u0328\u0301\u0327",
    "Z\u0351\u036b\u0343a\u0335\u0322l\u0338\u0321g\u0337\u0334o\u0336\u0323", "\u0301a \u0301 \u0308\u0301",
    "a\u034fb\u035cc\u0361d", "\u1dc4\u1ab0 \u20d0x\u20dd \ufe20a\ufe21", "e\ufe0e e\U000e0100 \u8fba\U000e0101",
    "\u0344 \u0340\u0341 \u0374 \u037e \u0387 \u1fef", "\u0958\u0301 \u0f77\u0f80 \u0dd9\u0dcf\u0dca",
    "o\u031b\u0323 \u01a1\u0323 \u1ee3 \u1ecd\u031b",
    # Special tokens, alone and inside words; what looks like tokens of vocabularies
    "[CLS]", "a[MASK]b un[SEP]able [MASK][MASK] [mask] [ MASK ]", "the [UNK] and[PAD]the",
    "<s>the</s> a<pad>b<unk> <s> </s>", "token  <mask>  token<mask>izer <mask> <mask>",
    "<|endoftext|>the<|endoftext|><|im_start|>user\nhi<|im_end|>\n", "<think>\n\nwhy\n</think> a<think>b <Think>",
    "<|im_start <|im_start|> im_end|>", "<unk>é<unk> 中<unk>中", "##ing a##b # #a ##", "▁the▁ ▁▁a ▁", "Ġthe Ċ Ã© ĠĠ",
    "<0x41><0xC3><0xA9> <0x0a> 0x41", "e\u0301<mask>\u0301 a[SEP]\u0301 <s>\u0301",
    # Not shown
    "a\x00b\x01c\x1fd\x7fe\x80f\x9fg", "\ufeffa\ufeff \u2060b\u00adc\u200bd", "\u2028a\u2029b\u0085c\x0bd\x0ce\x1cf",
    "\ufffd \uffff \ufdd0 \U0010ffff", "\ue000\uf8ff \U000f0000", "\u0378\u0530 \U0001fbff \U000e0080",
    "\u034f \u115f \u1160 \u3164 \uffa0 \u17b4", "\u2066a\u2069\u061c\u206a", "a\u200c\u200db \u200d \u200c\u200c",
]
PAIRS = [("the tokens", "of a sequence"), ("Größe", "世界 \U0001f600"), ("", "a"), ("a", ""),
         ("<s>a [MASK]", "<mask> b<|im_end|>")]


def trained_configurations(retrain=False, kept=ROOT / "text/golden/trained.json"):
    """Name and description, with the model that `kept` has or, where it has none, a newly trained one."""
    known = {}
    if not retrain and kept.exists():
        known = {c["name"]: c["tokenizer"]["model"] for c in json.loads(kept.read_text())["configurations"]}
    for name, description, make_model in configurations():
        yield name, {**description, "model": known.get(name) or make_model()}


def main(arguments):
    out = pathlib.Path(arguments[-1])
    described_models = list(trained_configurations(arguments[0] == "--retrain", out))
    make_stages.write(out, {}, TEXTS, PAIRS, described_models)
    for name, description in described_models:
        print(f"{name}: {len(description['model']['vocab'])} tokens")


if __name__ == "__main__":
    main(sys.argv[1:])
