"""Text to token ids: exact examples, and what must hold for any text."""

import collections

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from rnnapps.data.text import (
    Vocabulary,
    add_affixes,
    characters,
    count_tokens,
    normalise,
    with_affixes,
    words,
)


def split(text: str | bytes) -> list[str]:
    return [token.decode() for token in words(normalise(tf.constant(text))).numpy()]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("This café is great!", ["this", "café", "is", "great", "!"]),
        ("It isn't bad, can't you see?", "it is n't bad , ca n't you see ?".split()),
        ("it is n't bad", "it is n't bad".split()),
        ("DON'T. It's what they'd say", "do n't . it 's what they 'd say".split()),
        ("isn\u2019t \u201cgood\u201d", ["is", "n't", '"', "good", '"']),
        ("o'neill's 'quoted' word", "o'neill 's ' quoted ' word".split()),
        ("wait... what\u2026 -- no\u2014yes", "wait ... what ... -- no -- yes".split()),
        ("over-the-top 3.5", "over - the - top 3 . 5".split()),
        (
            "one<br /><br/>two\u0085three\u2028four\tfive\u00a0six",
            "one two three four five six".split(),
        ),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("日本語 😀👍", ["日本語", "😀", "👍"]),
        (b"\xff\xfe ok", ["\ufffd\ufffd", "ok"]),
        ("", []),
        ("  \n ", []),
    ],
)
def test_words(text, tokens):
    expected = [t for t in tokens if t != "\ufffd\ufffd"]
    assert [t for t in split(text) if t != "\ufffd"] == expected


@hypothesis.given(st.text())
@hypothesis.settings(deadline=None, max_examples=200)
def test_words_lose_nothing_but_white_space(text):
    """All marks of the normalised text come out, in order; tokens are never empty or blank."""
    normal = normalise(tf.constant(text)).numpy().decode()
    tokens = split(text)
    assert all(token and not token.isspace() for token in tokens)
    if not any(mark in normal for mark in ("..", "--", "\u2026", "\u2013", "\u2014")):
        assert "".join(tokens) == "".join(normal.split())


@hypothesis.given(st.text())
@hypothesis.settings(deadline=None, max_examples=100)
def test_normalising_twice_changes_nothing(text):
    once = normalise(tf.constant(text))
    assert normalise(once).numpy() == once.numpy()


def test_batches_split_as_single_texts_do():
    texts = ["It isn't so.", "", "Yes!"]
    batch = words(normalise(tf.constant(texts)))
    assert [row.numpy().tolist() for row in batch] == [
        [token.encode() for token in split(text)] for text in texts
    ]


def test_characters():
    assert characters(normalise(tf.constant("Né o"))).numpy().tolist() == [
        character.encode() for character in "né o"
    ]
    texts = [["aa\n", "", "日本 👍🏽"], ["é", "\0\ufffd", "a"]]
    expected = [[[c.encode() for c in text] for text in row] for row in texts]
    assert characters(tf.constant(texts)).to_list() == expected
    assert characters(tf.constant([], tf.string)).to_list() == []


def test_affixes_of_exact_words():
    assert with_affixes(tf.constant(["boring", "été", "a"])).numpy().tolist() == [
        [text.encode() for text in row]
        for row in (
            ("boring", "^bor", "^borin", "ng$", "ing$"),
            ("été", "^été", "^été", "té$", "été$"),
            ("a", "^a", "^a", "a$", "a$"),
        )
    ]
    assert with_affixes(tf.constant([], tf.string)).shape == (0, 5)


@hypothesis.given(st.text())
@hypothesis.settings(deadline=None, max_examples=100)
def test_affixes_are_counted_as_the_graph_makes_them(text):
    tokens = words(normalise(tf.constant(text)))
    made = collections.Counter(
        feature.decode() for row in with_affixes(tokens).numpy() for feature in row
    )
    assert add_affixes(collections.Counter(split(text))) == made


def test_count_tokens():
    tokens, lengths = collections.Counter(), collections.Counter()
    for texts in (["a b a", ""], ["b"]):
        count_tokens(words(tf.constant(texts)), tokens, lengths)
    assert tokens == {"a": 2, "b": 2} and lengths == {3: 1, 0: 1, 1: 1}


def test_vocabulary_is_by_frequency_then_alphabet():
    counts = {"b": 2, "a": 2, "rare": 1, "the": 9}
    assert Vocabulary.learn(counts, size=10).tokens[2:] == ("the", "a", "b", "rare")
    assert Vocabulary.learn(counts, size=10, min_count=2).tokens[2:] == ("the", "a", "b")
    assert Vocabulary.learn(counts, size=3).tokens[2:] == ("the",)
    assert Vocabulary.learn(counts, size=1).tokens[2:] == ()


def test_vocabulary_file_gives_the_same_ids(tmp_path):
    learnt = Vocabulary(["the", "café", "\u0085", " ", "n't"])
    file = tmp_path / "vocabulary.txt"
    file.write_bytes(learnt.content())
    loaded = Vocabulary.load(file)
    assert loaded.tokens == learnt.tokens and len(loaded) == 7
    tokens = tf.ragged.constant([["café", "n't", "new"], [], ["\u0085", " "]])
    for vocabulary in (learnt, loaded):
        assert vocabulary.ids(tokens).to_list() == [[3, 6, 1], [], [4, 5]]
