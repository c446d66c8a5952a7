"""Sentences with a tag at each token: one scheme found, checked, and written as IOB2.

Whatever they are read from, sentences come out as rows of three fields: `tokens` and `tags`, one a
line, and `scheme`, the scheme that the tags had before.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rnnapps.data import tagging_schemes
from rnnapps.data.formats.rows import BadRow, Row, join_items
from rnnapps.errors import UserError

AUTO = "auto"


class Sentence(NamedTuple):
    """A tagged sentence and where it was read; the three sequences are equally long."""

    path: str
    lines: Sequence[int]
    tokens: Sequence[str]
    tags: Sequence[str]


Sentences = Callable[[], Iterator[Sentence | BadRow]]


def tagged_rows(sentences: Sentences, scheme: str = AUTO) -> Iterator[Row]:
    r"""Checks the tags of sentences and writes them as IOB2.

    Args:
        sentences: Starts a fresh stream of sentences, whose tokens are not blank.
        scheme: The scheme of their tags, or `"auto"`: then the sentences are read once before, to
            find out, as `tagging_schemes.detect` does.

    Yields:
        `{"tokens": "EU\nsleeps", "tags": "B-ORG\nO", "scheme": "iob1"}`, or a `BadRow` that names
        the line of the tag that the scheme does not have there. Tags without a scheme (`none`) stay
        as they are.

    Raises:
        UserError: The scheme is not known, or the sentences mix IOB1 and IOB2.
    """
    known = (AUTO, *tagging_schemes.SCHEMES)
    if scheme not in known:
        raise UserError(
            f"the scheme must be one of {', '.join(known)}. Received: scheme={scheme!r}"
        )
    return _rows(sentences, scheme)


def from_rows(rows: Callable[[], Iterator[Row]], place: str, scheme: str = AUTO) -> Iterator[Row]:
    r"""Checks the tags of rows that hold `tokens` and `tags`, as `tagged_rows` does.

    This is what `sources` takes as `convert`. Sentences without tokens are left out.

    Args:
        rows: Starts a fresh stream of rows, whose fields are joined by line feeds.
        place: What the rows are of, for errors; with the row's number, from 1, it is a row's place.
        scheme: As for `tagged_rows`.

    Yields:
        As `tagged_rows`.

    Raises:
        UserError: As `tagged_rows`.

    Example:
    >>> list(from_rows(lambda: iter([{"tokens": "EU\nsleeps", "tags": "I-ORG\nO"}]), "mine"))
    [{'tokens': 'EU\nsleeps', 'tags': 'B-ORG\nO', 'scheme': 'iob1'}]
    """
    return tagged_rows(functools.partial(_sentences, rows, place), scheme)


def as_fields(
    tokens: Sequence[Sequence[str]], tags: Sequence[Sequence[str]], scheme: str = AUTO
) -> dict[str, list[str]]:
    r"""Makes what `sources.from_lists` takes of tagged sentences that are in memory.

    Args:
        tokens: The tokens of each sentence.
        tags: The tags of each sentence, one a token.
        scheme: As for `tagged_rows`.

    Returns:
        The values of the fields `tokens`, `tags` and `scheme`, one a sentence.

    Raises:
        UserError: The lists differ in length, a token or tag is blank or holds a line feed, or as
            `tagged_rows`; a sentence is named by its number, from 1.

    Example:
    >>> as_fields([["EU", "sleeps"]], [["B-ORG", "O"]])
    {'tokens': ['EU\nsleeps'], 'tags': ['B-ORG\nO'], 'scheme': ['iob2']}
    """
    if len(tokens) != len(tags):
        raise UserError(
            "tokens and tags must be of as many sentences. "
            f"Received: {len(tokens)} and {len(tags)} sentences"
        )
    place = "the given lists"

    def rows() -> Iterator[Row]:
        for number, pair in enumerate(zip(tokens, tags, strict=True), 1):
            try:
                yield dict(zip(("tokens", "tags"), map(join_items, pair), strict=True))
            except ValueError as error:
                yield BadRow(place, number, str(error))

    fields: dict[str, list[str]] = {"tokens": [], "tags": [], "scheme": []}
    for row in from_rows(rows, place, scheme):
        if isinstance(row, BadRow):
            raise UserError(str(row))
        for name, values in fields.items():
            values.append(row[name])
    return fields


def _rows(sentences: Sentences, scheme: str) -> Iterator[Row]:
    advice = ""
    if scheme == AUTO:
        scheme = _detected(sentences)
        advice = "; scheme=iob1 takes it for a beginning" if scheme == "iob2" else ""
    target = "none" if scheme == "none" else "iob2"
    for sentence in sentences():
        if isinstance(sentence, BadRow):
            yield sentence
            continue
        try:
            tags = tagging_schemes.convert(sentence.tags, scheme, target)
        except tagging_schemes.MisplacedTag as error:
            reason = error.fault + (advice if error.tag.startswith("I-") else "")
            yield BadRow(sentence.path, sentence.lines[error.position], reason)
            continue
        yield {"tokens": "\n".join(sentence.tokens), "tags": "\n".join(tags), "scheme": scheme}


def _detected(sentences: Sentences) -> str:
    def good() -> Iterator[Sentence]:
        return (sentence for sentence in sentences() if isinstance(sentence, Sentence))

    def place(evidence: tagging_schemes.Evidence) -> str:
        sentence = next(itertools.islice(good(), evidence.sentence, None))
        return f"{sentence.path}:{sentence.lines[evidence.position]}"

    try:
        return tagging_schemes.detect(sentence.tags for sentence in good())
    except tagging_schemes.MixedSchemes as mixed:
        raise UserError(mixed.told(place(mixed.iob1), place(mixed.iob2))) from None


def _sentences(rows: Callable[[], Iterator[Row]], place: str) -> Iterator[Sentence | BadRow]:
    for number, row in enumerate(rows(), 1):
        if isinstance(row, BadRow):
            yield row
            continue
        tokens, tags = (row[name].split("\n") if row[name] else [] for name in ("tokens", "tags"))
        if len(tokens) != len(tags):
            reason = f"{len(tokens):,} tokens with {len(tags):,} tags"
            yield BadRow(place, number, reason)
        elif tokens:
            yield Sentence(place, [number] * len(tokens), tokens, tags)
