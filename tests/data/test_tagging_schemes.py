"""Tagging schemes against their definitions, by enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnapps.data.tagging_schemes import (
    MixedSchemes,
    Span,
    allowed_transitions,
    convert,
    detect,
    spans,
    tags_of,
)
from rnnapps.errors import UserError

WRITTEN = [
    # spans, IOB1, IOB2, IOBES
    ([], "O O", "O O", "O O"),
    ([Span(0, 1, "PER")], "I-PER O", "B-PER O", "S-PER O"),
    ([Span(0, 2, "PER"), Span(2, 3, "LOC")], "I-PER I-PER I-LOC", "B-PER I-PER B-LOC",
     "B-PER E-PER S-LOC"),
    ([Span(0, 2, "PER"), Span(2, 5, "PER")], "I-PER I-PER B-PER I-PER I-PER",
     "B-PER I-PER B-PER I-PER I-PER", "B-PER E-PER B-PER I-PER E-PER"),
    ([Span(1, 2, "A-B"), Span(2, 3, "A-B")], "O I-A-B B-A-B", "O B-A-B B-A-B", "O S-A-B S-A-B"),
]  # fmt: skip
SCHEMES = ("iob1", "iob2", "iobes")


def tag_set(scheme):
    prefixes = {"iob1": "BI", "iob2": "BI", "iobes": "BIES"}[scheme]
    return ["O", *(f"{prefix}-{kind}" for kind in "XY" for prefix in prefixes)]


@st.composite
def sentences(draw):
    """Entities that do not overlap, in a sentence of up to eight tokens."""
    length = draw(st.integers(0, 8))
    cuts = sorted(draw(st.sets(st.integers(0, length))))
    parts = [draw(st.sampled_from(["X", "Y", None])) for _ in cuts]
    pieces = zip(cuts[:-1], cuts[1:], parts, strict=False)
    return length, [Span(start, end, kind) for start, end, kind in pieces if kind]


@pytest.mark.parametrize("line", WRITTEN, ids=lambda line: line[1])
def test_each_scheme_is_written_as_defined(line):
    entities, *written = line
    for scheme, text in zip(SCHEMES, written, strict=True):
        tags = text.split()
        assert spans(tags, scheme) == entities
        assert tags_of(reversed(entities), len(tags), scheme) == tags
        for other, expected in zip(SCHEMES, written, strict=True):
            assert convert(tags, scheme, other) == expected.split()


@given(sentences())
def test_there_and_back(sentence):
    length, entities = sentence
    for scheme in SCHEMES:
        tags = tags_of(entities, length, scheme)
        assert spans(tags, scheme) == entities
        for other in SCHEMES:
            assert convert(convert(tags, scheme, other), other, scheme) == tags


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_what_is_allowed_is_what_is_written(scheme):
    """All tags that some entities are written as are allowed, and no others."""
    names = tag_set(scheme)
    allowed = allowed_transitions(names, scheme)
    for length in range(1, 5 if scheme == "iob2" else 4):
        for ids in itertools.product(range(len(names)), repeat=length):
            tags = [names[i] for i in ids]
            possible = all(allowed.transitions[a, b] for a, b in itertools.pairwise(ids))
            possible = possible and allowed.start[ids[0]] and allowed.end[ids[-1]]
            try:
                assert tags_of(spans(tags, scheme), length, scheme) == tags
                valid = True
            except UserError:
                valid = False
            assert possible == valid, tags


def test_iob1_has_a_reading_for_everything():
    for tags in itertools.product(tag_set("iob1"), repeat=4):
        entities = spans(tags, "iob1")
        assert sum(span.end - span.start for span in entities) == 4 - tags.count("O")
        assert spans(tags_of(entities, 4, "iob1"), "iob1") == entities


def test_without_a_scheme_everything_is_allowed():
    allowed = allowed_transitions(["DET", "NOUN"], "none")
    assert [part.shape for part in allowed] == [(2, 2), (2,), (2,)]
    assert all(np.all(part) for part in allowed)
    assert convert(["DET"], "none", "none") == ["DET"]


@pytest.mark.parametrize(
    ("corpus", "scheme"),
    [
        (["B-X I-X O", "O"], "iob2"),
        (["I-X I-X O", "I-X B-X"], "iob1"),
        (["B-X E-X O", "S-X"], "iobes"),
        (["O O", ""], "iob2"),
        ([], "iob2"),
        (["O B-X I-X B-X B-Y I-Y"], "iob2"),
        (["DET NOUN"], "none"),
        (["B- O"], "none"),
        (["B-X X-X X"], "none"),
        (["B-X I-X X-X X"], "iob2"),
        # What is not a tag of entities decides nothing, nor do its neighbours.
        (["B-X", "O X I-X I-X"], "iob2"),
        (["I-X", "B-X I-X x"], "iob1"),
        # One prefix of IOBES makes it IOBES, whatever else is wrong.
        (["I-X", "B-X I-X", "S-X"], "iobes"),
        # IOB1 has a B- only behind an entity of its type.
        (["I-X B-X", "I-Y I-X B-X"], "iob1"),
        # Fewer than one in a hundred are mistakes.
        (["B-X O B-Y"] * 50 + ["I-X"], "iob2"),
        (["I-X O I-Y"] * 50 + ["B-X"], "iob1"),
    ],
)
def test_detection(corpus, scheme):
    assert detect(line.split() for line in corpus) == scheme


@given(st.lists(sentences(), max_size=4))
def test_what_is_written_in_a_scheme_is_read_back_by_the_scheme_detected(corpus):
    for scheme in SCHEMES:
        written = [tags_of(entities, length, scheme) for length, entities in corpus]
        found = detect(written)
        assert [spans(tags, found) for tags in written] == [entities for _, entities in corpus]
        if any(entities for _, entities in corpus) and scheme != "iobes":
            assert found == scheme


@pytest.mark.parametrize(
    ("corpus", "iob1", "iob2"),
    [
        (["O", "O I-X", "B-X I-X"], (1, 1, "I-X"), (2, 0, "B-X")),
        (["B-Y I-X"], (0, 1, "I-X"), (0, 0, "B-Y")),
        (["I-X B-Y"], (0, 0, "I-X"), (0, 1, "B-Y")),
        (["B-X O"] * 99 + ["O I-X"], (99, 1, "I-X"), (0, 0, "B-X")),
    ],
)
def test_mixed_schemes_name_the_first_tag_of_each(corpus, iob1, iob2):
    with pytest.raises(MixedSchemes) as raised:
        detect(line.split() for line in corpus)
    assert (raised.value.iob1, raised.value.iob2) == (iob1, iob2)
    message = str(raised.value)
    for number, position, tag in (iob1, iob2):
        assert f"sentence {number}, position {position}: '{tag}'" in message
    assert "scheme=iob1 reads both" in message


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ("O I-X", "iob2", "'I-X' at position 1, which cannot follow 'O'"),
        ("B-X I-Y", "iob2", "'I-Y' at position 1, which cannot follow 'B-X'"),
        ("I-X", "iobes", "'I-X' at position 0, with which a sentence cannot begin"),
        ("O B-X", "iobes", "'B-X' at position 1, which the sentence cannot end with"),
        ("B-X O", "iobes", "'O' at position 1, which cannot follow 'B-X'"),
        ("B-X S-X", "iob2", "'S-X' at position 1, which is not a tag of the scheme"),
        ("O X", "iob1", "'X' at position 1, which is not a tag of the scheme"),
    ],
)
def test_a_fault_is_named_with_its_position(tags, scheme, message):
    with pytest.raises(UserError) as error:
        spans(tags.split(), scheme)
    assert str(error.value) == f"the tags are not {scheme}. Received: {message}"


def test_other_faults():
    with pytest.raises(UserError, match=r"'X' at position 1"):
        allowed_transitions(["O", "X"], "iobes")
    for scheme in ("bilou", "none"):
        with pytest.raises(UserError, match=f"Received: scheme='{scheme}'"):
            spans([], scheme)
    with pytest.raises(UserError, match="Received: scheme='iob1'"):
        allowed_transitions(["O"], "iob1")
    with pytest.raises(UserError, match="no entities"):
        convert(["O"], "none", "iob2")
    for entities in ([Span(0, 3, "X")], [Span(1, 1, "X")], [Span(0, 2, "X"), Span(1, 2, "Y")]):
        with pytest.raises(UserError, match="Received: Span"):
            tags_of(entities, 2, "iob2")
