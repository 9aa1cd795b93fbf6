"""A SentencePiece model file of BPE with byte fallback as the tokenizer.json that the reference library reads.

The form is that of the files which models of the Llama family publish: U+2581 before a text and for each space, merges
found again from the pieces, unknown characters as bytes. Read without SentencePiece's own module, so that a defect of its
reader or of ours is not on both sides.
"""

import struct

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
BPE = 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message: an int, or bytes as they stand."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"field {key >> 3}: wire type must be 0, 1, 2 or 5: {kind}")
        yield key >> 3, value


def read_pieces(message):
    """[(piece, score, type)]"""
    pieces = []
    for number, value in message:
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0], piece.get(3, NORMAL)))
    return pieces


def merges_of(pieces):
    """Every pair of pieces that make a piece: the best-scored first, of equals those with the longer left, then right part."""
    scores = {piece: score for piece, score, kind in pieces if kind == NORMAL}
    merges = [(piece[:cut], piece[cut:], score) for piece, score in scores.items() for cut in range(1, len(piece))
              if piece[:cut] in scores and piece[cut:] in scores]
    merges.sort(key=lambda merge: (-merge[2], -len(merge[0]), -len(merge[1])))
    return [[left, right] for left, right, _ in merges]


def template(bos, bos_id, second_type):
    """<s> before each text."""
    def parts(name, type_id):
        return [{"SpecialToken": {"id": bos, "type_id": type_id}}, {"Sequence": {"id": name, "type_id": type_id}}]
    return {"type": "TemplateProcessing", "single": parts("A", 0), "pair": parts("A", 0) + parts("B", second_type),
            "special_tokens": {bos: {"id": bos, "ids": [bos_id], "tokens": [bos]}}}


def tokenizer_json(model_bytes, second_type=1):
    """A dict. `second_type`: of a pair's second text. ValueError for a model that this form cannot stand for."""
    message = list(fields(model_bytes))
    training, rules = (dict(fields(b"".join(v for n, v in message if n == part))) for part in (2, 3))
    if training.get(3) != BPE or not training.get(35):
        raise ValueError(f"must be BPE (model_type 2) with byte_fallback: {training.get(3)}, {training.get(35)}")
    if rules.get(2) or rules.get(4, 1) or not rules.get(3, 1):
        raise ValueError("must have no charsmap, keep extra whitespace and add a dummy prefix")
    pieces = read_pieces(message)
    unknown = pieces[training.get(40, 0)][0]
    bos_id = training.get(41, 1)
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": piece, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": kind != USER_DEFINED}
                         for i, (piece, _, kind) in enumerate(pieces) if kind in (UNKNOWN, CONTROL, USER_DEFINED)],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": SPACE}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]},
        "pre_tokenizer": None,
        "post_processor": template(pieces[bos_id][0], bos_id, second_type),
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": {piece: i for i, (piece, _, _) in enumerate(pieces)}, "merges": merges_of(pieces)}}
