"""Word vectors as GloVe and word2vec write them."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from rnnapps.data import vectors
from rnnapps.data.vectors import read_vectors
from rnnapps.errors import UserError

GLOVE = "the 0.5 -1 2e-3\n, 1 2 3\nfilm -0.25 0 7.125\n"
WORD2VEC = "3 3\nthe 0.5 -1 2e-3 \n, 1 2 3 \nfilm -0.25 0 7.125 \n"
VALUES = np.array([[0.5, -1, 0.002], [1, 2, 3], [-0.25, 0, 7.125]], np.float32)


def write(path: Path, content: str | bytes) -> str:
    content = content.encode("utf-8") if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


@pytest.mark.parametrize("content", [GLOVE, WORD2VEC, "\ufeff" + GLOVE.replace("\n", "\r\n")])
@pytest.mark.parametrize("name", ["x.txt", "x.vec.gz"])
@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_both_formats(tmp_path, monkeypatch, content, name, chunk):
    monkeypatch.setattr(vectors, "CHUNK_WORDS", chunk)
    path = write(tmp_path / name, content)
    words, values = read_vectors(path, size=3)
    assert words == ["the", ",", "film"]
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, VALUES)
    for wanted in ({"film", "the", "unseen"}, lambda word: word != ","):
        words, values = read_vectors(path, wanted)
        assert words == ["the", "film"]
        np.testing.assert_array_equal(values, VALUES[[0, 2]])


def test_nothing_is_wanted(tmp_path):
    words, values = read_vectors(write(tmp_path / "x", GLOVE), set())
    assert words == [] and values.shape == (0, 3)


def test_words_may_hold_blanks_and_the_first_of_equal_words_counts(tmp_path):
    content = "a\u00a0b 1 2\n. . . 3 4\nto name@domain.com 5 6\na\u00a0b 7 8\n3 9 10\n\x85 11 12\n"
    words, values = read_vectors(write(tmp_path / "x", content))
    assert words == ["a\u00a0b", ". . .", "to name@domain.com", "3", "\x85"]
    assert values.tolist() == [[1, 2], [3, 4], [5, 6], [9, 10], [11, 12]]


def test_numbers_are_written_and_read_back(tmp_path):
    expected = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    lines = [f"w{n} " + " ".join(map(str, row)) for n, row in enumerate(expected.tolist())]
    words, values = read_vectors(write(tmp_path / "x", "\n".join(lines)))
    assert words == [f"w{n}" for n in range(50)]
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{path} is empty"),
        ("\n \n", "{path} is empty"),
        ("the\nfilm\n", "{path}:1: no numbers behind the word"),
        (GLOVE + "\nbad 1 2\n", "{path}:5: 2 numbers where 3 are needed"),
        (GLOVE + "bad\n", "{path}:4: 0 numbers where 3 are needed"),
        (GLOVE + "bad 1 2 3 4\n", "{path}:4: 4 numbers where 3 are needed"),
        (GLOVE + "bad 1 2 x\n", "{path}:4: 'x' is not a finite number"),
        (GLOVE + "bad 1  2\n", "{path}:4: '' is not a finite number"),
        (GLOVE + "bad 1 nan 2\n", "{path}:4: 'nan' is not a finite number"),
        (GLOVE + "bad 1 2 1e50\n", "{path}:4: '1e50' is not a finite number"),
        (GLOVE + "bad 1 2 \u0663\n", "{path}:4: '\u0663' is not a finite number"),
        ("4" + WORD2VEC[1:], "{path} holds 3 vectors where its first line says 4"),
        ("3 2" + WORD2VEC[3:], "{path}:2: 3 numbers where 2 are needed"),
    ],
)
def test_what_cannot_be_read(tmp_path, content, message):
    path = write(tmp_path / "x", content)
    with pytest.raises(UserError) as raised:
        read_vectors(path)
    assert str(raised.value) == message.format(path=path)


def test_vectors_of_another_size_than_is_needed(tmp_path):
    for content in (GLOVE, WORD2VEC):
        path = write(tmp_path / "x", content)
        with pytest.raises(UserError) as raised:
            read_vectors(path, size=4)
        assert str(raised.value) == (
            f"vectors of the wrong width: {path} has 3 numbers a word, 4 are wanted"
        )
    with pytest.raises(UserError, match="no such file or folder: nowhere.txt"):
        read_vectors("nowhere.txt")


@pytest.mark.skipif("RNNAPPS_DATA" not in os.environ, reason="RNNAPPS_DATA names no real data")
def test_glove():
    path = Path(os.environ["RNNAPPS_DATA"]) / "embeddings" / "glove.6B.50d.top5k.txt.gz"
    words, values = read_vectors(path, size=50)
    assert len(words) == len(set(words)) == 5_050
    assert values.shape == (5_050, 50)


@pytest.mark.parametrize("header", ["9" * 5_000 + " 3", "3 " + "9" * 30, "\u00b2 3"])
def test_a_first_line_that_counts_more_than_there_can_be(tmp_path, header):
    with pytest.raises(UserError, match=r"x.txt:\d: .*(numbers where 1 are needed|finite number)"):
        read_vectors(write(tmp_path / "x.txt", f"{header}\nthe 1 2 3\n"))


def test_what_is_no_number_is_told_in_short(tmp_path):
    with pytest.raises(UserError, match="'x{49}…' is not a finite number"):
        read_vectors(write(tmp_path / "x.txt", f"the 1 {'x' * 9_999}\n"))
