"""What is read of a word: exact values, and plain Python's Unicode as the oracle."""

import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from rnnapps.data.words import Casing, casing_ids, fold, spellings

FLAT = tf.TensorSpec([None], tf.string)
fold_graph = tf.function(fold, input_signature=[FLAT], autograph=False)
casing_graph = tf.function(casing_ids, input_signature=[FLAT], autograph=False)
spellings_graph = tf.function(
    lambda tokens: spellings(tokens, 5), input_signature=[FLAT], autograph=False
)

# Python and TensorFlow follow different versions of Unicode; both know what was in an old one.
known = st.characters(exclude_categories=["Cs", "Cn"]).filter(
    lambda character: unicodedata.ucd_3_2_0.category(character) != "Cn"
)
likely = st.sampled_from(
    "\0aZ\u00e9\u01c50\u0663\u00bd\u4e1c\u02bc\u2019\u201d'.-\u0301\u0130\u03a3"
)
token_lists = st.lists(
    st.text(likely | known, max_size=8).map(str.encode)
    | st.lists(st.sampled_from([b"a", b"\xc3", b"\xff", b"Z", b"\xe2\x82"])).map(b"".join),
    max_size=8,
)


def flat(tokens):
    return tf.constant(tokens, tf.string, [len(tokens)])


def folded(token: bytes) -> bytes:
    def plain(character):
        if character in "\u2018\u2019\u201b\u02bc\uff07":
            return "'"
        if character in "\u201c\u201d\u201e\u201f\u00ab\u00bb":
            return '"'
        if character == "\0":
            return "\ufffd"
        return "0" if character.isdecimal() else character

    return "".join(map(plain, token.decode(errors="replace"))).lower().encode()


def casing(token: bytes) -> Casing:
    kinds = [unicodedata.category(character) for character in token.decode(errors="replace")]
    essence = [kind for kind in kinds if kind[0] in "LN"]
    letters = [kind for kind in essence if kind[0] == "L"]
    capitals = [kind in ("Lu", "Lt") for kind in letters]
    if not token:
        return Casing.PADDING
    if not essence:
        return Casing.SYMBOL
    if not letters:
        return Casing.NUMBER
    if len(letters) < len(essence):
        return Casing.WITH_DIGITS
    if not any(capitals):
        return Casing.LOWER if "Ll" in letters else Casing.CASELESS
    if all(capitals):
        return Casing.SINGLE_CAPITAL if len(capitals) == 1 else Casing.CAPITALS
    alone = capitals[0] and sum(capitals) == 1
    return Casing.INITIAL_CAPITAL if alone else Casing.MIXED_CAPITALS


def spelling(token: bytes, length: int) -> list[bytes]:
    characters = list(token.decode(errors="replace"))
    if len(characters) > length:
        last = length // 2
        characters = characters[: length - last] + characters[len(characters) - last :]
    return [character.encode() for character in characters + [""] * (length - len(characters))]


@hypothesis.given(token_lists)
@hypothesis.settings(deadline=None, max_examples=100)
def test_as_plain_python_has_it(tokens):
    assert fold_graph(flat(tokens)).numpy().tolist() == [folded(token) for token in tokens]
    assert casing_graph(flat(tokens)).numpy().tolist() == [casing(token) for token in tokens]
    spelt = spellings_graph(flat(tokens))
    assert spelt.shape == (len(tokens), 5)
    assert spelt.numpy().tolist() == [spelling(token, 5) for token in tokens]


@pytest.mark.parametrize(
    ("casing", "tokens"),
    [
        (Casing.PADDING, [""]),
        (Casing.LOWER, ["house", "n't", "e.g.", "\u00fcber", "ma\u00f1ana", "\u0142"]),
        (Casing.INITIAL_CAPITAL, ["London", "X-ray", "Ph.", "\u00c9t\u00e9", "'Tis", "\u01c5emal"]),
        (Casing.CAPITALS, ["EU", "U.N.", "AT&T", "N'T", "\u0410\u0411"]),
        (Casing.SINGLE_CAPITAL, ["I", "J.", "$A", "\u00c9"]),
        (Casing.MIXED_CAPITALS, ["McDonald", "iPhone", "Anglo-Irish", "O'Brien", "U.S.-based"]),
        (Casing.NUMBER, ["12", "1,234.5", "1996-08-22", "-3", "\u0663", "\u00bd"]),
        (Casing.WITH_DIGITS, ["F-16", "1990s", "B2B", "\u6771\u0031"]),
        (Casing.SYMBOL, ["...", "(", "$", "\U0001f44d", "\ufffd", " ", "\0"]),
        (Casing.CASELESS, ["\u6771\u4eac", "\u0645\u0631\u062d\u0628\u0627", "\u05e9"]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_casing(casing, tokens):
    assert casing_ids(flat(tokens)).numpy().tolist() == [casing] * len(tokens)


def test_folding_is_optional_in_parts():
    tokens = flat(["N\u2019T\u0663B", b"\xff\0A1"])
    for options, expected in [
        ({}, ["n't0b", "\ufffd\ufffda0"]),
        ({"lowercase": False}, ["N'T0B", "\ufffd\ufffdA0"]),
        ({"digits": False}, ["n't\u0663b", "\ufffd\ufffda1"]),
    ]:
        assert [key.decode() for key in fold(tokens, **options).numpy()] == expected


def test_shapes_stay():
    ragged = tf.ragged.constant([["A", "b1"], [], ["C."]])
    assert fold(ragged).to_list() == [[b"a", b"b0"], [], [b"c."]]
    assert casing_ids(ragged).to_list() == [[4, 7], [], [4]]
    padded = ragged.to_tensor()
    assert fold(padded).numpy().tolist() == [[b"a", b"b0"], [b"", b""], [b"c.", b""]]
    assert casing_ids(padded).numpy().tolist() == [[4, 7], [0, 0], [4, 0]]
    assert casing_ids(padded).dtype == tf.int32
    assert fold(tf.constant("A")).numpy() == b"a"


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, ["a"]),
        (2, ["a", "f"]),
        (3, ["a", "b", "f"]),
        (4, ["a", "b", "e", "f"]),
        (6, ["a", "b", "c", "d", "e", "f"]),
        (7, ["a", "b", "c", "d", "e", "f", ""]),
    ],
)
def test_spelling_of_a_long_word_has_its_two_ends(length, expected):
    assert spellings(flat(["abcdef"]), length).numpy().astype(str).tolist() == [expected]
    assert spellings(flat([]), length).shape == (0, length)
