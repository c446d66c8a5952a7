"""Entities as tags of single tokens: IOB1, IOB2 and IOBES, between each other and to spans.

- IOB1 (Ramshaw & Marcus 1995): `I-X` in an entity; `B-X` begins one right behind another.
- IOB2 (Tjong Kim Sang & Veenstra 1999): `B-X` begins every entity, `I-X` goes on with it.
- IOBES: as IOB2, but `E-X` ends an entity, and `S-X` is one of a single token.
- none: tags without a scheme, such as parts of speech.

`O` is outside in all of them. A type may hold anything, hyphens too.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from rnnapps.errors import UserError

SCHEMES = ("iob1", "iob2", "iobes", "none")
_PREFIXES = {"iob1": "IB", "iob2": "IB", "iobes": "IBES"}


class Span(NamedTuple):
    """An entity: the tokens from `start` on, up to but without `end`."""

    start: int
    end: int
    type: str


class Allowed(NamedTuple):
    """What may follow what, as Boolean arrays."""

    transitions: np.ndarray  # [tags, tags], from a tag (row) to the next (column)
    start: np.ndarray  # [tags]
    end: np.ndarray  # [tags]


class Evidence(NamedTuple):
    """A tag that only one scheme has at its place; sentences and positions count from 0."""

    sentence: int
    position: int
    tag: str


class MisplacedTag(UserError):
    """A tag that a scheme does not have at its place.

    Attributes:
        tag: the tag.
        position: its position in the sentence, counted from 0.
        fault: what is wrong, without the position.
    """

    def __init__(self, tag: str, position: int, scheme: str, reason: str):
        self.tag, self.position = tag, position
        self.fault = f"not {scheme}: {tag!r}, {reason}"
        super().__init__(
            f"the tags are not {scheme}. Received: {tag!r} at position {position}, {reason}"
        )


class MixedSchemes(UserError):
    """A corpus of which one part is IOB1 and no IOB2, and another the other way round.

    Attributes:
        iob1: the first tag that only IOB1 has at its place.
        iob2: the first tag that only IOB2 has at its place.
    """

    def __init__(self, iob1: Evidence, iob2: Evidence):
        self.iob1, self.iob2 = iob1, iob2
        places = [f"sentence {at.sentence}, position {at.position}" for at in (iob1, iob2)]
        super().__init__(self.told(*places))

    def told(self, iob1_place: str, iob2_place: str) -> str:
        """Words the message with the two tags' places, such as a file and a line."""
        expected = f"I-{self.iob2.tag[2:]}"
        return (
            f"the tags mix iob1 and iob2. Received: {iob1_place}: {self.iob1.tag!r} begins an "
            f"entity, as in iob1 only; {iob2_place}: {self.iob2.tag!r}, which iob1 writes "
            f"{expected!r}.\nscheme=iob1 reads both, scheme=iob2 names each tag that is not iob2"
        )


def spans(tags: Sequence[str], scheme: str) -> list[Span]:
    """Reads the entities of a sentence.

    Args:
        tags: one tag a token.
        scheme: `"iob1"`, `"iob2"` or `"iobes"`.

    Returns:
        The entities, in the order of the tokens.

    Raises:
        MisplacedTag: a tag that the scheme does not have there; it names the tag and its position,
            counted from 0.

    Example:
    >>> spans(["B-PER", "I-PER", "O", "B-LOC"], "iob2")
    [Span(start=0, end=2, type='PER'), Span(start=3, end=4, type='LOC')]
    """
    _check_scheme(scheme, _PREFIXES)
    found, start, before = [], None, "O"
    for position, tag in enumerate([*tags, "O"]):
        if tag == before == "O":
            continue
        at_end = position == len(tags)
        if not at_end and not _is_tag(tag, scheme):
            raise MisplacedTag(tag, position, scheme, "which is not a tag of the scheme")
        if not _may_follow(before, tag, scheme):
            if at_end:
                reason = "which the sentence cannot end with"
                raise MisplacedTag(before, position - 1, scheme, reason)
            reason = "with which a sentence cannot begin"
            if position > 0:
                reason = f"which cannot follow {before!r}"
            raise MisplacedTag(tag, position, scheme, reason)
        if start is not None and not _goes_on(before, tag, scheme):
            found.append(Span(start, position, before[2:]))
            start = None
        if tag != "O" and start is None:
            start = position
        before = tag
    return found


def tags_of(entities: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Writes entities as tags, which undoes `spans`.

    Args:
        entities: entities that do not overlap, in any order.
        length: the number of tokens.
        scheme: `"iob1"`, `"iob2"` or `"iobes"`.

    Returns:
        One tag a token.

    Raises:
        UserError: an entity that is empty, is not within the tokens, or overlaps another.

    Example:
    >>> tags_of([Span(0, 2, "PER"), Span(3, 4, "LOC")], 4, "iobes")
    ['B-PER', 'E-PER', 'O', 'S-LOC']
    """
    _check_scheme(scheme, _PREFIXES)
    tags = ["O"] * length
    for start, end, kind in sorted(entities):
        if not 0 <= start < end <= length or any(tag != "O" for tag in tags[start:end]):
            raise UserError(
                f"an entity must be within the {length} tokens and overlap no other. "
                f"Received: {Span(start, end, kind)}"
            )
        inside = [f"I-{kind}"] * (end - start)
        if scheme != "iob1" or (start > 0 and tags[start - 1][2:] == kind):
            inside[0] = f"B-{kind}"
        if scheme == "iobes":
            inside[-1] = f"{'E' if len(inside) > 1 else 'S'}-{kind}"
        tags[start:end] = inside
    return tags


def convert(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Writes the tags of a sentence in another scheme.

    Args:
        tags: one tag a token.
        source: the scheme of the tags.
        target: the scheme wanted. `"none"` goes with `"none"` only.

    Returns:
        One tag a token.

    Raises:
        MisplacedTag: as for `spans`.
        UserError: one of the two schemes is `"none"`.

    Example:
    >>> convert(["I-PER", "I-PER", "B-PER", "O"], "iob1", "iobes")
    ['B-PER', 'E-PER', 'S-PER', 'O']
    """
    _check_scheme(source, SCHEMES)
    _check_scheme(target, SCHEMES)
    if "none" in (source, target):
        if source != target:
            raise UserError(
                "tags without a scheme have no entities. "
                f"Received: source={source!r}, target={target!r}"
            )
        return list(tags)
    return tags_of(spans(tags, source), len(tags), target)


def detect(sentences: Iterable[Sequence[str]]) -> str:
    """Finds out which scheme the tags of a corpus follow.

    The tags of entities are `B-`, `I-`, `E-` or `S-` and a type. Where fewer than half of the tags
    other than `O` look like that, the corpus has no scheme; otherwise what does not is taken for a
    mistake and decides nothing. `E-` and `S-` are of IOBES only. Of `B-` and `I-` alone, an entity
    that begins with `I-` is IOB1's, and a `B-` that no entity of its type stands before is IOB2's;
    fewer than one in a hundred of the other kind are mistakes too (CoNLL-2002's Spanish has one).

    Args:
        sentences: the tags of each sentence.

    Returns:
        `"none"`, `"iobes"`, `"iob1"` or `"iob2"`, which is also what a corpus of `O` alone has. The
        sentences need not all follow it: `spans` tells.

    Raises:
        MixedSchemes: some entities begin as in IOB1 only, and others as in IOB2 only.

    Example:
    >>> detect([["I-PER", "O"], ["O", "I-LOC", "B-LOC"]])
    'iob1'
    """
    num_tags = num_of_entities = 0
    is_iobes = False
    first: dict[str, Evidence] = {}
    counts: Counter[str] = Counter()
    for number, tags in enumerate(sentences):
        inside = [tag for tag in tags if tag != "O"]
        of_entities = [tag for tag in inside if _is_tag(tag, "iobes")]
        num_tags += len(inside)
        num_of_entities += len(of_entities)
        is_iobes = is_iobes or any(tag[0] in "ES" for tag in of_entities)
        if not inside or len(of_entities) < len(inside):
            continue
        for position, (before, tag) in enumerate(itertools.pairwise(["O", *tags])):
            if tag != "O" and before[2:] != tag[2:]:
                scheme = "iob1" if tag[0] == "I" else "iob2"
                first.setdefault(scheme, Evidence(number, position, tag))
                counts[scheme] += 1
    if 2 * num_of_entities < num_tags:
        return "none"
    if is_iobes:
        return "iobes"
    if len(counts) == 2 and 100 * min(counts.values()) >= counts.total():
        raise MixedSchemes(first["iob1"], first["iob2"])
    return "iob1" if counts["iob1"] > counts["iob2"] else "iob2"


def allowed_transitions(tags: Sequence[str], scheme: str) -> Allowed:
    """Says which tags of a tag set may follow each other, begin a sentence and end it.

    Args:
        tags: the tag set, in the order of the ids.
        scheme: `"iob2"`, `"iobes"`, or `"none"`, in which everything is allowed.

    Returns:
        What `rnnapps.layers.CRF` takes as `allowed`.

    Raises:
        UserError: a tag that the scheme does not have; it names the tag and its position.

    Example:
    >>> allowed = allowed_transitions(["O", "B-PER", "I-PER"], "iob2")
    >>> allowed.transitions.astype(int).tolist(), allowed.start.astype(int).tolist()
    ([[1, 1, 0], [1, 1, 1], [1, 1, 1]], [1, 1, 0])
    """
    _check_scheme(scheme, ("iob2", "iobes", "none"))
    if scheme == "none":
        everything = np.ones(len(tags), bool)
        return Allowed(np.ones((len(tags), len(tags)), bool), everything, everything)
    for position, tag in enumerate(tags):
        if not _is_tag(tag, scheme):
            raise MisplacedTag(tag, position, scheme, "which is not a tag of the scheme")
    # Outside a sentence is as outside an entity.
    return Allowed(
        np.array([[_may_follow(before, tag, scheme) for tag in tags] for before in tags], bool),
        np.array([_may_follow("O", tag, scheme) for tag in tags], bool),
        np.array([_may_follow(tag, "O", scheme) for tag in tags], bool),
    )


def _check_scheme(scheme, schemes):
    if scheme not in schemes:
        raise UserError(
            f"the scheme must be one of {', '.join(schemes)}. Received: scheme={scheme!r}"
        )


def _is_tag(tag, scheme):
    prefix, hyphen, kind = tag.partition("-")
    return tag == "O" or bool(prefix and prefix in _PREFIXES[scheme] and hyphen and kind)


def _may_follow(before, tag, scheme):
    """Whether a tag may stand behind another; the other of the first tag is `O`."""
    if scheme == "iob1":
        return True
    same = before[2:] == tag[2:]
    if scheme == "iob2":
        return tag[0] != "I" or (before[0] in "BI" and same)
    is_open, goes_on = before[0] in "BI", tag[0] in "IE"
    return is_open == goes_on and (same or not is_open)


def _goes_on(before, tag, scheme):
    """Whether a tag, where it is allowed, belongs to the entity of the one before it."""
    return before[2:] == tag[2:] and tag[0] in ("IE" if scheme == "iobes" else "I")
