"""Subwords: against the sentencepiece library, and against every way to write a short word."""

import itertools
import math
import random
import sys

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2 as proto

from rnnapps.data.segmentation import normalise
from rnnapps.data.subwords import Subwords

TEXTS = [
    "the cat sat on the mat", "a cat and a hat", "that was the cat's hat: the hat that was flat",
    "il gatto era sul tappeto", "un gatto e un cappello", "l'amico è nell'orto, com'è bello",
    "日本語の文字", "東京は日本です", "المدينة القديمة", "e\u0301te\u0301 café",
    "👍🏽 ok 👩\u200d🚀",
]  # fmt: skip
# Characters that the texts hold, and some that they do not.
likely = st.sampled_from("thecatgo '  :,éè日本語京ال\u0301\u200d👍🏽xyzQ߷€🦄▁<0x41>\u0085\u2585\0")
any_character = likely | st.characters(exclude_categories=["Cs"])
contents = st.text(any_character, max_size=30).map(str.encode) | (
    st.lists(st.sampled_from([b"the", b"\xff", b" ", b"\xe2\x96", b"\x81"])).map(b"".join)
)


@pytest.fixture(scope="module")
def learnt():
    return Subwords.learn([TEXTS * 3], size=400)


def library(segmentation: Subwords) -> sentencepiece.SentencePieceProcessor:
    """The library with the same pieces and scores."""
    model = proto.ModelProto()
    kind = proto.ModelProto.SentencePiece
    for number, line in enumerate(segmentation.content().decode().split("\n")[:-1]):
        piece, score = line.split("\t")
        special = {0: kind.CONTROL, 1: kind.UNKNOWN, 2: kind.CONTROL}
        of_rest = kind.BYTE if number < 259 else kind.NORMAL
        model.pieces.add(piece=piece, score=float(score), type=special.get(number, of_rest))
    model.trainer_spec.model_type = proto.TrainerSpec.UNIGRAM
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id, model.trainer_spec.bos_id = 1, -1
    model.trainer_spec.pad_id, model.trainer_spec.eos_id = 0, 2
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.remove_extra_whitespaces = False
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def score_of(ids: list[int], segmentation: Subwords) -> float:
    """The score of a way to write a text; the bytes of a character count once."""
    lines = segmentation.content().decode().split("\n")[:-1]
    scores = [float(line.split("\t")[1]) for line in lines]
    unknown = min(scores[259:], default=0.0) - 10
    bytes_of = [number - 3 for number in ids if number < 259]
    characters = sum(byte & 0xC0 != 0x80 for byte in bytes_of)
    return sum(scores[number] for number in ids if number >= 259) + characters * unknown


def check_against_library(contents, segmentation):
    texts = normalise(tf.constant(contents, tf.string, [len(contents)]))
    found = segmentation.ids(texts).to_list()
    expected = library(segmentation).encode([text.decode() for text in texts.numpy()])
    for ids, ids_of_library in zip(found, expected, strict=True):
        if ids != ids_of_library:  # two ways that are equally good but for rounding
            scores = score_of(ids, segmentation), score_of(ids_of_library, segmentation)
            assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    return sum(ids == other for ids, other in zip(found, expected, strict=True))


@hypothesis.given(st.lists(contents, max_size=8))
@hypothesis.settings(deadline=None, max_examples=150)
def test_pieces_are_those_of_the_library(learnt, batch):
    check_against_library(batch, learnt)


def test_pieces_of_known_texts_are_exactly_those_of_the_library(learnt):
    assert len(learnt) > 300
    assert check_against_library([text.encode() for text in TEXTS], learnt) == len(TEXTS)


def best_by_brute_force(word: str, scores: dict[str, float], unknown: float) -> float:
    best = -math.inf
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        edges = [0, *(i for i, cut in enumerate(cuts, 1) if cut), len(word)]
        parts = [word[a:b] for a, b in itertools.pairwise(edges)]
        of_parts = (scores.get(p, unknown if len(p) == 1 else -math.inf) for p in parts)
        best = max(best, sum(of_parts))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_any_vocabulary_writes_as_the_library_does_and_no_way_is_better(seed):
    """Scores that are whole numbers add up without rounding, so that ties are the same, too."""
    draw = random.Random(seed)

    def word(characters, most):
        return "".join(draw.choices(characters, k=draw.randint(1, most)))

    pieces = {draw.choice(["", "▁"]) + word("ab日", 3) for _ in range(5 * seed)} | {"▁"}
    vocabulary = {piece: draw.randint(-9, -1) for piece in sorted(pieces)}
    segmentation = Subwords([*vocabulary], [*vocabulary.values()])
    words = [word("abab日é", 7) for _ in range(100)]
    texts = [" ".join(draw.choices(words, k=3)).encode() for _ in range(100)]
    assert check_against_library(texts, segmentation) == len(texts)
    unknown = min(vocabulary.values()) - 10
    for written, ids in zip(words, segmentation.ids(words).to_list(), strict=True):
        best = best_by_brute_force("▁" + written, vocabulary, unknown)
        assert score_of(ids, segmentation) == best


@hypothesis.given(st.lists(contents, max_size=8))
@hypothesis.settings(deadline=None, max_examples=150)
def test_every_text_is_read_back(learnt, batch):
    texts = tf.constant(batch, tf.string, [len(batch)])
    ids = learnt.ids(texts)
    assert learnt.texts(ids).numpy().tolist() == normalise(texts).numpy().tolist()
    assert not np.isin(ids.flat_values, [learnt.PADDING, learnt.UNKNOWN, learnt.END]).any()


def test_exact_pieces():
    vocabulary = {"▁": -2, "▁un": -3, "▁u": -3, "n": -2, "able": -5, "a": -4, "b": -4, "le": -4}
    segmentation = Subwords([*vocabulary], [*vocabulary.values()])
    pieces = segmentation.pieces(["unable un", "é", "<0x41>b", ""]).to_list()
    assert [[piece.decode() for piece in row] for row in pieces] == [
        ["▁un", "able", "▁un"],
        ["▁", "<0xC3>", "<0xA9>"],
        ["▁", *(f"<0x{byte:02X}>" for byte in b"<0x41>"), "b"],
        [],
    ]


def test_padding_and_ends_vanish_and_anything_can_be_written(learnt):
    ids = learnt.ids("the café").numpy().tolist()
    padded = [[2, *ids, 2, 0, 0], [0] * (len(ids) + 4), [1, *ids, 1, 2, 2]]
    assert [text.decode() for text in learnt.texts(padded).numpy()] == [
        "the café",
        "",
        "\ufffd the café\ufffd",
    ]
    half, end_of_line = 3 + 0xC3, 3 + 0x0A
    assert learnt.texts([[half, end_of_line, *ids, half]]).numpy()[0].decode() == (
        "\ufffd the café\ufffd"
    )


def test_shapes(learnt):
    ids = learnt.ids(tf.constant("the cat"))
    assert ids.dtype == tf.int32 and ids.shape.rank == 1
    expected = [ids.numpy().tolist(), []]
    assert learnt.ids(tf.constant(["the cat", " \n"])).to_list() == expected
    assert learnt.ids(tf.constant([["the cat"], [""]])).to_list() == [expected[:1], expected[1:]]
    ragged = tf.ragged.constant([["the cat", ""], []], dtype=tf.string)
    assert learnt.ids(ragged).to_list() == [expected, []]
    assert learnt.texts(learnt.ids(ragged)).numpy().tolist() == [[b"the cat", b""], [b"", b""]]
    none = learnt.ids(tf.constant([], tf.string))
    assert none.to_list() == [] and none.flat_values.dtype == tf.int32
    assert learnt.texts(none).shape == (0,)
    assert learnt.ids("").shape == (0,) and learnt.texts(learnt.ids("")).numpy() == b""


@pytest.mark.parametrize("texts", [["a"], ["a b"], ["日本語"], [""], [], ["\u2585"], ["x" * 99]])
def test_tiny_texts_are_learnt_and_read_back(texts):
    segmentation = Subwords.learn([texts] if texts else [], size=8000)
    assert 259 <= len(segmentation) < 300
    for text in (*texts, "b é"):
        assert segmentation.texts(segmentation.ids(text)).numpy().decode() == text


def test_learning_gives_the_same_twice_and_a_size_is_kept():
    texts = [TEXTS * 12]
    first, again = (Subwords.learn(texts, size=320, most_texts=101).content() for _ in range(2))
    assert first == again and first.count(b"\n") == 320
    batches = [[text] for text in TEXTS * 12]
    assert Subwords.learn(batches, size=320, most_texts=101).content() == first


def test_rare_characters_are_left_to_bytes():
    segmentation = Subwords.learn([["ab ab", "ab q"]], size=300, min_count=2)
    assert "q" not in segmentation.content().decode() and "a" in segmentation.content().decode()
    lower = Subwords.learn([["AB ab", "Ab"]], size=300, lowercase=True)
    assert lower.texts(lower.ids("AB Ba")).numpy() == b"ab ba"


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="Received: size=262"):
        Subwords.learn([["abcd"]], size=262)
    for piece in ("", "a b", "a▁", "a\tb"):
        with pytest.raises(ValueError, match="Received"):
            Subwords([piece], [0.0])

    def broken():
        yield ["a b"]
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        Subwords.learn(broken(), size=300)


def test_file_gives_the_same_ids_without_the_library(learnt, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    file = tmp_path / "subwords.txt"
    file.write_bytes(learnt.content())
    loaded = Subwords.load(file)
    assert loaded.content() == learnt.content() and len(loaded) == len(learnt)
    texts = [*TEXTS, "unknown: \u20ac", ""]
    assert loaded.ids(texts).to_list() == learnt.ids(texts).to_list()
    assert loaded.texts(loaded.ids(texts)).numpy().tolist() == [text.encode() for text in texts]
    bare = tmp_path / "bare.txt"
    bare.write_bytes(Subwords([], []).content())
    assert Subwords.load(bare).texts(Subwords.load(bare).ids("é")).numpy().decode() == "é"


def test_long_words_and_long_texts(learnt):
    for text in ("x" * 10_000, "thecat" * 2000, "the cat " * 10_000):
        assert learnt.texts(learnt.ids(text)).numpy().decode() == text.strip()


def test_pipeline_and_export(learnt, tmp_path):
    file = tmp_path / "subwords.txt"
    file.write_bytes(learnt.content())
    module = tf.Module()
    module.segmentation = Subwords.load(file)
    texts = tf.TensorSpec([None], tf.string)
    module.ids = tf.function(
        lambda text: {"ids": module.segmentation.ids(text).to_tensor()}, input_signature=[texts]
    )
    module.texts = tf.function(
        module.segmentation.texts, input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    tf.saved_model.save(module, tmp_path / "here")
    file.unlink()
    (tmp_path / "here").rename(tmp_path / "there")
    loaded = tf.saved_model.load(tmp_path / "there")
    ids = loaded.ids([*TEXTS, ""])["ids"]
    assert ids.numpy().tolist() == learnt.ids([*TEXTS, ""]).to_tensor().numpy().tolist()
    assert [text.decode() for text in loaded.texts(ids).numpy()] == [*TEXTS, ""]

    one_by_one = tf.data.Dataset.from_tensor_slices([*TEXTS, ""]).map(learnt.ids)
    assert [ids.tolist() for ids in one_by_one.as_numpy_iterator()] == (
        learnt.ids([*TEXTS, ""]).to_list()
    )
