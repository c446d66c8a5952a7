"""Entities in a text: from a tagger's answer to what a person or a program reads.

Example:
>>> answer = {"tokens": ["Zoë", "left", "Rome"], "tags": ["B-PER", "O", "B-LOC"],
...           "starts": [0, 5, 10], "ends": [4, 9, 14], "confidences": [0.9, 1.0, 0.8]}
>>> found = entities("Zoë left Rome.", answer, "iob2")
>>> found[1]
Entity(type='LOC', text='Rome', start=9, end=13, confidence=0.8)
>>> print(highlight("Zoë left Rome.", found, colour=False))
[Zoë PER] left [Rome LOC].
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rnnapps.data.printable import printable
from rnnapps.data.tagging_schemes import spans

_COLOURS = (*range(31, 37), *range(91, 97))  # of ANSI: all but black, white and greys
_COLOUR_SEED = 2  # gives each type of CoNLL-2003 a colour of its own, and each of WNUT17


class Entity(NamedTuple):
    """An entity: `text[start:end]` of the text that it is in, in characters."""

    type: str
    text: str
    start: int
    end: int
    confidence: float


def entities(text: str, answer: Mapping[str, Sequence[Any]], scheme: str) -> list[Entity]:
    """Reads the entities of a tagged text.

    Args:
        text: the text as it was tagged.
        answer: a tagger's answer for it, one value a token: `tokens`, of which the empty ones are
            padding, `tags`, the byte offsets `starts` and `ends`, and `confidences`.
        scheme: the scheme of the tags: `"iob1"`, `"iob2"` or `"iobes"`.

    Returns:
        The entities in the order of the text. An entity is as sure as its least sure token.

    Raises:
        UserError: the tags are not of the scheme.
    """
    length = sum(token != "" for token in answer["tokens"])
    found = spans(answer["tags"][:length], scheme)
    first = [answer["starts"][span.start] for span in found]
    last = [answer["ends"][span.end - 1] for span in found]
    character = _character_offsets(text, {*first, *last})
    return [
        Entity(
            span.type,
            text[character[start] : character[end]],
            character[start],
            character[end],
            min(answer["confidences"][span.start : span.end]),
        )
        for span, start, end in zip(found, first, last, strict=True)
    ]


def highlight(text: str, entities: Iterable[Entity], colour: bool) -> str:
    """Shows the entities of a text on one line of a terminal.

    Args:
        text: the text. Control characters in it do no harm: line ends and tabs become blanks,
            others U+FFFD.
        entities: its entities, which must not overlap.
        colour: whether an entity is coloured by its type, which follows it dimly; otherwise it
            stands in brackets, as in `[Luke PER]`.

    Returns:
        The text with its entities marked.
    """
    parts, position = [], 0
    for entity in sorted(entities, key=lambda entity: entity.start):
        inside, kind = printable(text[entity.start : entity.end]), printable(entity.type)
        parts.append(printable(text[position : entity.start]))
        if colour:
            code = _COLOURS[zlib.crc32(kind.encode(), _COLOUR_SEED) % len(_COLOURS)]
            parts.append(f"\x1b[1;{code}m{inside}\x1b[22m \x1b[2m{kind}\x1b[0m")
        else:
            parts.append(f"[{inside} {kind}]")
        position = entity.end
    return "".join([*parts, printable(text[position:])])


def _character_offsets(text: str, offsets: set[int]) -> dict[int, int]:
    """How many characters of a text are before each byte of its UTF-8."""
    content = text.encode(errors="surrogatepass")
    characters, before, position = {}, 0, 0
    for offset in sorted(offsets):
        # A byte that goes on with a character is 10xxxxxx.
        before += sum(byte & 0xC0 != 0x80 for byte in content[position:offset])
        characters[offset], position = before, offset
    return characters
