"""The smallest text near a given one on which two programs still differ."""

SIMPLE = "a b0.A"


def minimise(text, differs, max_checks=20_000):
    """`differs(text)` holds of the text given and of the one returned, which no single deletion and no single
    replacement by a simpler character makes smaller; unless `max_checks` end the search before."""
    left = [max_checks]

    def still(shorter):
        left[0] -= 1
        return left[0] >= 0 and differs(shorter)

    before = None
    while before != text and left[0] > 0:
        before = text
        text = with_simpler_characters(without_chunks(text, still), still)
    return text


def without_chunks(text, differs):
    """Halves first, characters last."""
    size = max(1, len(text) // 2)
    while True:
        at, found = 0, False
        while at < len(text):
            shorter = text[:at] + text[at + size:]
            if differs(shorter):
                text, found = shorter, True
            else:
                at += size
        if size == 1 and not found:
            return text
        size = max(1, size // 2)


def with_simpler_characters(text, differs):
    """Everywhere at once, for what needs equal characters; then place by place."""
    for character in dict.fromkeys(text):
        changes = (text.replace(character, simpler) for simpler in simpler_than(character))
        text = next(filter(differs, changes), text)
    for at, character in enumerate(text):
        changes = (text[:at] + simpler + text[at + 1:] for simpler in simpler_than(character))
        text = next(filter(differs, changes), text)
    return text


def simpler_than(character):
    return SIMPLE[:SIMPLE.find(character)] if character in SIMPLE else SIMPLE


def minimise_input(given, differs):
    """Of a text, or of a pair of texts, of which one alone may do."""
    if isinstance(given, str):
        return minimise(given, differs)
    for alone in given:
        if differs(alone):
            return minimise(alone, differs)
    first, second = given
    first = minimise(first, lambda text: differs((text, second)))
    return first, minimise(second, lambda text: differs((first, text)))
