"""Strings on which tokenizers go wrong, the same ones for the same seed and vocabulary.

    for text in RandomStrings(tokens, added).texts(seed, count): ...

No lone surrogates: no UTF-8 has them.
"""

import functools
import random
import unicodedata

SPACE_MARK = "\u2581"


def characters(*ranges):
    return [chr(c) for first, last in ranges for c in range(first, last + 1)]


WHITESPACE = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\n\n", "\n \n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f", "\x85",
              "\u00a0", "\u1680", *characters((0x2000, 0x200a)), "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
              # which look like it, and are none
              "\u180e", "\u200b", "\u2060", "\ufeff", SPACE_MARK, SPACE_MARK * 2]
CONTROLS = characters((0, 0x1f), (0x7f, 0x9f), (0x200b, 0x200f), (0x202a, 0x202e), (0x2060, 0x206f), (0xfe00, 0xfe0f),
                      (0xfff9, 0xfffd), (0xe0001, 0xe0001), (0xe0020, 0xe007f)) + ["\u00ad", "\u061c", "\ufffe", "\U0010ffff"]
MARKS = characters((0x300, 0x36f), (0x483, 0x489), (0x591, 0x5bd), (0x64b, 0x655), (0x1dc0, 0x1dff), (0x20d0, 0x20f0),
                   (0x302a, 0x302f), (0x3099, 0x309a), (0xfe20, 0xfe2f), (0x1d165, 0x1d169))
# What a normalization form, a case or a charsmap changes, joins, splits, moves or drops.
TRAPS = (characters((0x1100, 0x1112), (0x1161, 0x1175), (0x11a7, 0x11c2), (0xac00, 0xac1d), (0xf900, 0xfa20), (0xfb00, 0xfb4f),
                    (0x1d15e, 0x1d164), (0x2126, 0x212b), (0x2460, 0x2473), (0xff01, 0xff5e), (0xff65, 0xff9f), (0x3300, 0x3357),
                    (0x1f80, 0x1faf), (0x958, 0x95f), (0x2f800, 0x2f810), (0x1d400, 0x1d430), (0xfdf0, 0xfdfc))
         + list("\u0130\u0131\u0149\u017f\u01c4\u01c5\u01f0\u03a3\u03c2\u00df\u1e9e\u1e9b\u0344\u0340\u0341\u0374\u037e\u0387"
                "\u00aa\u00ba\u00bd\u00c5\u00e9\u00e7\u1ec7\u0f73\u0f75\u0f81\u0958\u09cb\u0cca\u0d4a\u2adc\u302e\u302f\ufdfa"))
CLUSTERS = ["\U0001f469\u200d\U0001f4bb", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2122\ufe0f", "\u00a9",
            "1\ufe0f\u20e3", "\u00ae\u200d\u00a9", "\u0915\u094d\u0937", "\u0e01\u0e33", "\u0600", "\r", "\ufb01", "\uff76\uff9e",
            "\u1100\u1161\u11a8", "e\u0323\u0301", "q\u0307\u0323", "\u0627\u0644\u0644\u0647", "\U000e0067"]
SCRIPTS = [characters((0x41, 0x5a)), characters((0x61, 0x7a)), characters((0xc0, 0x17f)), characters((0x370, 0x3ff)),
           characters((0x400, 0x45f)), characters((0x531, 0x587)), characters((0x5d0, 0x5ea)), characters((0x620, 0x64a)),
           characters((0x905, 0x94d)), characters((0xe01, 0xe3a)), characters((0x10a0, 0x10ff)), characters((0x13a0, 0x13f4)),
           characters((0x1780, 0x17d3)), characters((0x3041, 0x30fe)), characters((0x4e00, 0x4fff)), characters((0xac00, 0xad00)),
           characters((0x1e00, 0x1fff)), characters((0x1f300, 0x1f64f)), characters((0x20000, 0x20100)),
           characters((0x10400, 0x1044f)),
           characters((0x30, 0x39)) + ["\u0663", "\u00bd", "\u2167", "\u0e51"]]
ASCII = characters((0x20, 0x7e))
SPELLINGS = ["'s", "'S", "'t", "'RE", "'ve", "'m", "'lL", "'d", "'\u017f", "'", "don't", "I'm", "the", "The", " the", "ing", "##",
             "##s", "[", "]", "[MASK", "[mask]", "<", ">", "<|", "|>", "<0x41>", "<0xE4>", "http://", "...", "--", "==", "a.b",
             "1,000.5", "_x_", "U.S.", "a" * 99, "b" * 100, "c" * 101, "\u00e9" * 101, "\u4e00\u0301"]


@functools.lru_cache
def by_category():
    """{general category: its characters}"""
    found = {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            found.setdefault(unicodedata.category(chr(code)), []).append(chr(code))
    return found


def byte_of_symbol():
    """Byte-level vocabularies spell each byte as one visible character."""
    visible = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    hidden = [b for b in range(0x100) if b not in visible]
    return {chr(b): b for b in visible} | {chr(0x100 + i): b for i, b in enumerate(hidden)}


def spelled(vocabulary):
    """The texts that the tokens stand for, by id. `vocabulary`: {token: id}."""
    tokens = sorted(vocabulary, key=vocabulary.get)
    if SPACE_MARK in vocabulary:
        return [token.replace(SPACE_MARK, " ") for token in tokens]
    if "\u0120" not in vocabulary:
        return [token.removeprefix("##") for token in tokens]
    symbols = byte_of_symbol()
    return [bytes(symbols[c] for c in token).decode(errors="ignore") if all(c in symbols for c in token) else token
            for token in tokens]


class RandomStrings:
    """`tokens` and `added`: texts of the vocabulary's tokens and of the added ones."""

    def __init__(self, tokens=(), added=()):
        self._tokens = [t for t in tokens if t] or list(ASCII)
        self._added = [a for a in added if a] or ["<s>", "[MASK]"]
        self._rng = random.Random()
        self._recipes = [self._categories, self._scripts, self._repeated, self._around_added, self._whitespace, self._marks,
                         self._glued, self._glued, self._neighbours, self._mixture]
        self._pools = [*SCRIPTS, WHITESPACE, CONTROLS, MARKS, TRAPS, CLUSTERS, ASCII, SPELLINGS, self._added]

    @classmethod
    def of(cls, tokenizer):
        """Of a tokenizer of the reference library."""
        added = [token.content for _, token in sorted(tokenizer.get_added_tokens_decoder().items())]
        return cls(spelled(tokenizer.get_vocab(with_added_tokens=False)), added)

    def texts(self, seed, count):
        self._rng = rng = random.Random(seed)
        for _ in range(count):
            text = rng.choice(self._recipes)()
            while rng.random() < 0.25:
                text += rng.choice(("", "", " ", "\n")) + rng.choice(self._recipes)()
            if rng.random() < 0.2:
                text = self._damaged(text)
            if rng.random() < 0.002:
                text = self._long_run(text)
            yield text

    def _some(self, pick, most):
        return [pick() for _ in range(self._rng.randint(0, most))]

    def _piece(self):
        """A character, a token or a spelling: whatever strings are made of."""
        return self._rng.choice(self._rng.choice((self._tokens, *self._rng.sample(self._pools, 3))))

    def _categories(self):
        rng, categories = self._rng, by_category()
        chosen = rng.sample(sorted(categories), rng.randint(1, 3))
        return "".join(self._some(lambda: rng.choice(categories[rng.choice(chosen)]), 20))

    def _scripts(self):
        """Words, each of one script."""
        rng = self._rng
        between = rng.choice((" ", "", rng.choice(WHITESPACE)))
        return between.join("".join(rng.choices(rng.choice(SCRIPTS), k=rng.randint(1, 8))) for _ in range(rng.randint(1, 6)))

    def _repeated(self):
        """A character or some pieces over and over: ties between many ways to cut."""
        rng = self._rng
        if rng.random() < 0.5:
            run = (self._piece()[:1] or " ") * rng.randint(2, 60)
        else:
            run = "".join(self._piece() for _ in range(rng.randint(1, 3))) * rng.randint(2, 20)
        return rng.choice(("", self._piece())) + run + rng.choice(("", self._piece()))

    def _around_added(self):
        """Added tokens inside words, with spaces around, cut, in another case."""
        rng, out = self._rng, []
        for _ in range(rng.randint(1, 4)):
            added = rng.choice(self._added)
            change = rng.random()
            if change < 0.1:
                added = rng.choice((added.upper(), added.lower(), added[1:], added[:-1]))
            before, behind = (rng.choice(("", " ", "  ", "\n", "\t", "x", self._piece())) for _ in range(2))
            out += [before, added, behind]
        return "".join(out)

    def _whitespace(self):
        rng = self._rng
        pools = rng.choice(((WHITESPACE,), (WHITESPACE, ASCII), (WHITESPACE, CONTROLS), (WHITESPACE, self._tokens),
                            (CONTROLS, ASCII)))
        return "".join(self._some(lambda: rng.choice(rng.choice(pools)), 16))

    def _marks(self):
        """Letters with marks in any order, and what normalization changes."""
        rng = self._rng
        pools = (MARKS, TRAPS, rng.choice(SCRIPTS), CLUSTERS)
        return "".join(self._some(lambda: rng.choice(rng.choices(pools, (4, 3, 2, 1))[0]), 20))

    def _glued(self):
        """Tokens one behind the other: what reaches merges and ties."""
        rng = self._rng
        between = rng.choice(("", "", "", " ", self._piece()))
        return between.join(rng.choices(self._tokens, k=rng.randint(1, 8)))

    def _neighbours(self):
        """Tokens near each other in the vocabulary, where the alike are, cut and doubled."""
        rng = self._rng
        at = rng.randrange(len(self._tokens))
        near = self._tokens[max(0, at - 4):at + 5]
        return "".join(self._some(lambda: rng.choice(near)[rng.choice((0, 0, 0, 1)):] * rng.choice((1, 1, 1, 2)), 10))

    def _mixture(self):
        rng = self._rng
        chosen = rng.sample([*self._pools, self._tokens], rng.randint(1, 4))
        return "".join(self._some(lambda: rng.choice(rng.choice(chosen)), 30))

    def _damaged(self, text):
        rng = self._rng
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(text))
            to = min(len(text), at + rng.randint(0, 3))
            text = text[:at] + rng.choice(("", self._piece(), text[at:to].swapcase(), text[at:to] * 2)) + text[to:]
        return text

    def _long_run(self, text):
        """Thousands of characters."""
        rng = self._rng
        unit = rng.choice((self._piece(), self._piece() + self._piece(), text[:50])) or "a"
        return text[:100] + unit * (rng.randint(1000, 4000) // len(unit)) + text[:100]
