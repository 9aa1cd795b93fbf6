#!/usr/bin/env python3
"""Writes properties_tables.inc, normalization_tables.inc, grapheme_tables.inc and regex_tables.inc.

    python3 -m venv v && v/bin/pip install tokenizers==0.23.3 unicodedata2==17.0.1
    v/bin/python text/unicode/make_tables.py text/unicode

The reference library mixes four versions of Unicode, and equal ids need all of them:
  * whitespace, lowercase and numbers follow 17.0 (Rust's standard library), words the `regex` crate;
  * control, punctuation and nonspacing-mark categories follow 8.0 (the crate unicode_categories);
  * classes in regular expressions follow the reference's engine, Oniguruma 6.9.10 (Unicode 16.0);
  * decomposition, composition and combining classes follow 9.0 (unicode-normalization-alignments);
  * grapheme clusters follow 17.0 (the crate unicode-segmentation 1.13.3).
So each property of each code point is asked of the pinned library itself. Combining classes, which
it does not show, and the candidates for compositions come from unicodedata 17.0 (both are stable:
Unicode never changes them for an assigned character) and are kept only where the library agrees.
"""

import struct
import sys

import unicodedata2 as ucd
from tokenizers import Regex, normalizers, pre_tokenizers
import tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xAC00 + 11172)

# The order of unicode::Property.
(WHITESPACE, CONTROL, PUNCTUATION, NONSPACING_MARK, MARK, WORD, NUMERIC, LOWERS, DECOMPOSES,
 DECOMPOSES_COMPATIBLY, REORDERS, REGEX_LETTER, REGEX_NUMBER, REGEX_SPACE) = (1 << i for i in range(14))


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(off | on)).normalize_str


def is_isolated(pre_tokenizer, text):
    """The character between "a" and "b" is a piece of its own."""
    return len(pre_tokenizer.pre_tokenize_str(text)) == 3


def combining_class(c, nfd):
    """The class if the library knows c as a combining character, else 0."""
    x = chr(c)
    if nfd(x) != x:
        return 0  # never asked: its parts are
    # A class of 1..229 moves before U+0301 (230), one from 230 behind U+0316 (220).
    moves = nfd("\u0301" + x) != "\u0301" + x or nfd(x + "\u0316") != x + "\u0316"
    assert ucd.combining(x) or not moves, hex(c)
    return ucd.combining(x) if moves else 0


def collect():
    clean = bert(clean_text=True)
    strip = bert(strip_accents=True)
    lower = normalizers.Lowercase().normalize_str
    strip_marks = normalizers.StripAccents().normalize_str
    nfd, nfkd = normalizers.NFD().normalize_str, normalizers.NFKD().normalize_str
    space, punctuation = pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()
    word, digits = pre_tokenizers.Whitespace(), pre_tokenizers.Digits()
    classes_of_regex = [(flag, pre_tokenizers.Split(Regex(name), "removed")) for flag, name in (
        (REGEX_LETTER, r"\p{L}"), (REGEX_NUMBER, r"\p{N}"), (REGEX_SPACE, r"\s"))]
    flags, classes, lowered, canonical, compatible = {}, {}, {}, {}, {}
    for c in CODE_POINTS:
        x = chr(c)
        between = "a" + x + "b"
        f = 0
        if len(space.pre_tokenize_str(between)) == 2:
            f |= WHITESPACE
        if clean(x) == "" and c not in (0, 0xFFFD):
            f |= CONTROL
        if is_isolated(punctuation, between):
            f |= PUNCTUATION
        if strip(x) == "":
            f |= NONSPACING_MARK
        if strip_marks(x) == "":
            f |= MARK
        if len(word.pre_tokenize_str(between)) == 1:
            f |= WORD
        if is_isolated(digits, between):
            f |= NUMERIC
        for flag, split in classes_of_regex:
            if not split.pre_tokenize_str(x):
                f |= flag
        if lower(x) != x:
            f |= LOWERS
            lowered[c] = lower(x)
        if nfd(x) != x and c not in HANGUL:
            f |= DECOMPOSES
            canonical[c] = nfd(x)
        if nfkd(x) != x and c not in HANGUL:
            f |= DECOMPOSES_COMPATIBLY
            if nfkd(x) != nfd(x):
                compatible[c] = nfkd(x)
        classes[c] = combining_class(c, nfd)
        if classes[c]:
            f |= REORDERS
        flags[c] = f
    flags[0] |= CONTROL  # removed like a control character, by a rule of its own
    flags[0xFFFD] |= CONTROL
    return flags, classes, lowered, canonical, compatible


def compositions():
    nfc = normalizers.NFC().normalize_str
    pairs = []
    for c in CODE_POINTS:
        parts = ucd.decomposition(chr(c)).split()
        if c not in HANGUL and len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(p, 16) for p in parts)
            if nfc(chr(first) + chr(second)) == chr(c):
                pairs.append((first, second, c))
    return sorted(pairs)


def cluster_counter():
    """Counts what the library's charsmap normalizer sees, with rules under which every string begins
    with a match: a grapheme cluster of fewer than 6 bytes is one X, a longer one an X a character."""
    units = [0] * 1024
    units[0] = 256 << 10
    for byte in range(1, 256):
        units[256 ^ byte] = (512 << 10) | (1 << 8) | byte
        units[768 ^ byte] = 1 << 31  # the value: the replacement at byte 0
    blob = struct.pack("<I1024I", 4 * len(units), *units) + b"X\0"
    normalize = normalizers.Precompiled(blob).normalize_str
    return lambda text: len(normalize(text))


def grapheme_classes():
    """The class of each code point, as numbered in grapheme.h, told from how clusters with it end.
    U+0301 behind a character makes a cluster of it that is one X where it begins one."""
    (other, carriage_return, line_feed, control, extend, in_cb_extend, in_cb_linker, joiner, spacing, prepend,
     regional, hangul_l, hangul_v, hangul_t, hangul_lv, hangul_lvt, pictographic, consonant) = range(18)
    count = cluster_counter()
    accent, zwj, arabic, copyright, ka, virama = "\u0301", "\u200d", "\u0600", "\u00a9", "\u0915", "\u094d"
    fixed = {0: control, 0xA: line_feed, 0xD: carriage_return, 0x200D: joiner}
    fixed.update({c: regional for c in range(0x1F1E6, 0x1F200)})  # pairs of them never show
    classes = {}
    for c in CODE_POINTS:
        x = chr(c)
        if c in fixed:
            classes[c] = fixed[c]
        elif count("a" + x) == 1:  # goes on with any cluster
            if count(ka + x + ka + accent) == 4:
                classes[c] = in_cb_linker
            elif count(ka + x + virama + ka + accent) == 5:
                classes[c] = in_cb_extend
            else:
                classes[c] = extend if count(copyright + x + zwj + copyright + accent) == 5 else spacing
        elif count(x + "a") == 1:
            classes[c] = prepend
        elif count(copyright + zwj + x) == 3:
            classes[c] = pictographic
        elif count(x + virama + ka + accent) == 4:
            classes[c] = consonant
        elif c < 0x10000 and count(arabic + x) == 2:
            classes[c] = control
        elif c >= 0x10000 and ucd.category(x) == "Cf" or 0xE0000 <= c < 0xE1000:
            classes[c] = control  # it never shows
        else:
            before = tuple(count(x + y + accent) == 3 for y in "\u1100\u1161\u11a8")
            classes[c] = {(True, True, False): hangul_l, (False, True, True): hangul_lv if c in HANGUL else hangul_v,
                          (False, False, True): hangul_lvt if c in HANGUL else hangul_t}.get(before, other)
    return classes


CATEGORIES = ("Cc Cf Cn Co Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs").split()
SCRIPTS = ("Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana "
           "Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu Thai Tibetan").split()


def regex_members(expression):
    """The code points that the expression for one character matches."""
    kept = pre_tokenizers.Split(Regex(expression), "removed", invert=True).pre_tokenize_str("".join(map(chr, CODE_POINTS)))
    return sorted(ord(c) for piece, _ in kept for c in piece)


def regex_ranges(expression):
    """[first, last, first, last, …]; nobody asks for the surrogates, which may lie in a range."""
    ranges = []
    for c in regex_members(expression):
        if ranges and (ranges[-1] == c - 1 or (ranges[-1] == 0xD7FF and c == 0xE000)):
            ranges[-1] = c
        else:
            ranges += [c, c]
    return ranges


def regex_tables():
    starts = {}  # where a run of one category starts
    for number, category in enumerate(CATEGORIES):
        ranges = regex_ranges(f"\\p{{{category}}}")
        starts.update({first: number for first in ranges[::2]})
    assert min(starts) == 0
    runs = [first << 8 | number for first, number in sorted(starts.items())]
    scripts = {name: regex_ranges(f"\\p{{{name}}}") for name in SCRIPTS}
    names = "constexpr std::string_view kCategoryNames[] = {%s};\n" % ", ".join(f'"{c}"' for c in CATEGORIES)
    table = "constexpr Script kScripts[] = {\n%s};\n" % "".join(f'    {{"{n}", k{n}}},\n' for n in SCRIPTS)
    return ([names, array("uint32_t", "kCategoryRuns", runs), array("char32_t", "kWordRanges", regex_ranges(r"\w"))]
            + [array("char32_t", f"k{name}", ranges) for name, ranges in scripts.items()] + [table])


def two_stage(values, block):
    """(stage 1: block numbers, stage 2: distinct blocks); trailing equal blocks are kept."""
    blocks, numbers, stage1 = [], {}, []
    for start in range(0, 0x110000, block):
        key = tuple(values.get(c, 0) for c in range(start, start + block))
        if key not in numbers:
            numbers[key] = len(blocks)
            blocks.append(key)
        stage1.append(numbers[key])
    return stage1, [v for b in blocks for v in b]


def array(kind, name, values):
    lines, line = [], "   "
    for v in values:
        item = f" {v},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    lines.append(line)
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def lowercase_ranges(lowered):
    """Runs of code points at one distance from their lower case, every one or every second."""
    runs = []
    for c, text in sorted(lowered.items()):
        if len(text) != 1:
            assert c == 0x130 and text == "i\u0307", hex(c)  # the only one; code, not data
            continue
        delta = ord(text) - c
        if runs and runs[-1][3] == delta and c - runs[-1][1] in (1, 2):
            first, last, step, _ = runs[-1]
            if first == last or step == c - last:
                runs[-1] = (first, c, c - last, delta)
                continue
        runs.append((c, c, 1, delta))
    return [v for run in runs for v in run], len(runs)


def pool(mapping, start):
    """(offset of each code point's sequence, the sequences: length, then code points)."""
    offsets, seen, data = {}, {}, list(start)
    for c, text in sorted(mapping.items()):
        if text not in seen:
            seen[text] = len(data)
            data += [len(text)] + [ord(x) for x in text]
        offsets[c] = seen[text]
    return offsets, data


def write(path, parts):
    with open(path, "w") as out:
        out.write("// Made by make_tables.py from tokenizers %s and Unicode %s; do not edit.\n"
                  "// clang-format off\n" % (tokenizers.__version__, ucd.unidata_version))
        out.write("\n".join(parts))


def main(folder):
    assert tokenizers.__version__ == "0.23.3" and ucd.unidata_version == "17.0.0"
    flags, classes, lowered, canonical, compatible = collect()
    pairs = compositions()

    kinds = sorted({(flags[c], classes[c]) for c in CODE_POINTS})
    number = {k: i for i, k in enumerate(kinds)}
    assert len(kinds) < 256
    plain = number[(0, 0)]
    stage1, stage2 = two_stage({c: number[(flags[c], classes[c])] if c in flags else plain
                                for c in range(0x110000)}, 128)
    assert max(stage1) < 65536
    lower_values, _ = lowercase_ranges(lowered)
    write(folder + "/properties_tables.inc", [
        array("uint16_t", "kFlags", [k[0] for k in kinds]),
        array("uint8_t", "kCombiningClasses", [k[1] for k in kinds]),
        array("uint8_t" if max(stage1) < 256 else "uint16_t", "kPropertyBlocks", stage1),
        array("uint8_t", "kPropertyKinds", stage2),
        "// first, last, step, distance\n" + array("int32_t", "kLowercaseRanges", lower_values)])

    stage1, stage2 = two_stage(grapheme_classes(), 128)
    assert max(stage1) < 256
    write(folder + "/grapheme_tables.inc", [
        array("uint8_t", "kGraphemeBlocks", stage1), array("uint8_t", "kGraphemeClasses", stage2)])

    offsets, data = pool(canonical, [0])
    compatible_offsets, data = pool(compatible, data)
    used = {c: o for c, o in offsets.items()}
    stage1, stage2 = two_stage(used, 64)
    assert max(stage1) < 256 and max(data) < 0x110000 and len(data) < 65536
    while stage1[-1] == stage1[-2]:
        stage1.pop()
    assert all(v == 0 for v in stage2[stage1[-1] * 64:stage1[-1] * 64 + 64])
    write(folder + "/normalization_tables.inc", [
        "// every block after the last is like it\n" + array("uint8_t", "kCanonicalBlocks", stage1),
        array("uint16_t", "kCanonicalOffsets", stage2),
        "// code point, offset\n" + array("uint32_t", "kCompatibleOffsets",
                                           [v for kv in sorted(compatible_offsets.items()) for v in kv]),
        "// length, code points\n" + array("char32_t", "kDecompositions", data),
        "// first, second, composed\n" + array("uint32_t", "kCompositions", [v for p in pairs for v in p])])

    write(folder + "/regex_tables.inc", regex_tables())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
