"""Entities from a tagger's answer, and how they are shown."""

import re
import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest

from rnnapps.data.entities import Entity, entities, highlight
from rnnapps.data.tagging_schemes import Span, tags_of
from rnnapps.errors import UserError

CORPORA = [
    ("PER", "LOC", "ORG", "MISC"),
    ("person", "location", "group", "corporation", "creative-work", "product"),
]
ESCAPES = re.compile("\x1b\\[[0-9;]*m")
pieces = st.text(
    st.sampled_from("aZ \u00e9\u4e1c\U0001f44d\u0301\u05e9") | st.characters(),
    min_size=1,
    max_size=4,
)


def answer_of(tokens, tags, confidences=None, padding=0):
    """What a tagger answers for tokens with one byte between them."""
    starts, ends, position = [], [], 0
    for token in tokens:
        starts.append(position)
        ends.append(position + len(token.encode(errors="surrogatepass")))
        position = ends[-1] + 1
    return {
        "tokens": [*tokens, *[""] * padding],
        "tags": [*tags, *["O"] * padding],
        "starts": starts + [0] * padding,
        "ends": ends + [0] * padding,
        "confidences": [*(confidences or [1.0] * len(tokens)), *[0.0] * padding],
    }


def test_offsets_are_characters_and_the_least_sure_token_counts():
    tokens = ["Zo\u00eb", "\U0001f44d", "Nu\u00f1ez", "in", "S\u00e3o", "Paulo"]
    tags = ["B-PER", "O", "B-PER", "O", "B-LOC", "I-LOC"]
    answer = answer_of(tokens, tags, [0.9, 0.1, 0.8, 0.2, 0.7, 0.6], padding=2)
    assert entities(" ".join(tokens), answer, "iob2") == [
        Entity("PER", "Zo\u00eb", 0, 3, 0.9),
        Entity("PER", "Nu\u00f1ez", 6, 11, 0.8),
        Entity("LOC", "S\u00e3o Paulo", 15, 24, 0.6),
    ]


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes"])
@hypothesis.given(st.lists(pieces, max_size=8), st.data())
@hypothesis.settings(deadline=None, max_examples=60)
def test_entities_of_any_text(scheme, tokens, data):
    cuts = sorted(data.draw(st.sets(st.integers(0, len(tokens)))))
    found = [Span(start, end, "X") for start, end in zip(cuts[:-1], cuts[1:], strict=True)]
    confidences = [1 / (1 + position) for position in range(len(tokens))]
    answer = answer_of(tokens, tags_of(found, len(tokens), scheme), confidences, padding=1)
    text = "\n".join(tokens)
    read = entities(text, answer, scheme)
    assert [entity.text for entity in read] == ["\n".join(tokens[s:e]) for s, e, _ in found]
    assert [entity.confidence for entity in read] == [1 / end for _, end, _ in found]
    assert all(text[entity.start : entity.end] == entity.text for entity in read)


def test_no_entities():
    assert entities("", answer_of([], []), "iob2") == []
    assert entities("", answer_of([], [], padding=3), "iobes") == []
    assert entities("a b", answer_of(["a", "b"], ["O", "O"]), "iob1") == []
    assert highlight("a b", [], colour=True) == highlight("a b", [], colour=False) == "a b"


def test_tags_of_another_scheme():
    with pytest.raises(UserError, match="not iobes"):
        entities("a b", answer_of(["a", "b"], ["B-X", "I-X"]), "iobes")


def test_brackets():
    found = [Entity("LOC", "Rome", 9, 13, 1.0), Entity("PER", "Luke", 0, 4, 1.0)]
    assert highlight("Luke, in\nRome.", found, colour=False) == "[Luke PER], in [Rome LOC]."
    found = [Entity("X", "a", 0, 1, 1.0), Entity("Y", "b", 1, 2, 1.0)]
    assert highlight("ab", found, colour=False) == "[a X][b Y]"


@pytest.mark.parametrize("types", CORPORA, ids=str)
def test_each_type_has_its_colour(types):
    shown = {kind: highlight("Luke", [Entity(kind, "Luke", 0, 4, 1.0)], True) for kind in types}
    for kind, line in shown.items():
        assert ESCAPES.sub("", line) == f"Luke {kind}"
        assert line.endswith("\x1b[0m")
        again = highlight("He: Luke", [Entity(kind, "Luke", 4, 8, 1.0)], colour=True)
        assert again == f"He: {line}"
    assert len({ESCAPES.match(line)[0] for line in shown.values()}) == len(types)


@hypothesis.given(st.text(st.sampled_from("a\x1b[31m\x9b\r\n\x07\u202e\ud800") | st.characters()))
@hypothesis.settings(deadline=None)
def test_nothing_in_a_text_controls_the_terminal(text):
    middle = len(text) // 2
    found = [Entity(text[middle:] or "X", text[:middle], 0, middle, 1.0)]
    for colour in (False, True):
        line = highlight(text, found, colour)
        line.encode()
        plain = re.sub("\x1b\\[(1;[39][1-6]|22|2|0)m", "", line)
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in plain)
        assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLI", "PDF") for c in plain)
        assert line.count("\x1b") == 4 * colour


def test_harmful_characters_are_shown_as_others():
    assert highlight("a\tb\r\nc\x1b[2Jd\0\u2028e\u202ef\ud800", [], False) == (
        "a b  c\ufffd[2Jd\ufffd e\ufffdf\ufffd"
    )
    family = "\U0001f469\u200d\U0001f680 e\u0301 \u05e9\u200f"
    assert highlight(family, [], colour=False) == family
