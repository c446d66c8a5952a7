"""Words and characters with their spacing: exact examples, and what must hold for any text."""

import unicodedata

import hypothesis
import hypothesis.strategies as st
import pytest
import tensorflow as tf

from rnnapps.data.levels import LEVELS
from rnnapps.data.segmentation import Characters, Words, characters, normalise, words

FLAT = tf.TensorSpec([None], tf.string)
normalise_graph = tf.function(normalise, input_signature=[FLAT], autograph=False)
words_graph = tf.function(words, input_signature=[FLAT], autograph=False)
characters_graph = tf.function(characters, input_signature=[FLAT], autograph=False)

likely = st.sampled_from(
    "ant'sIX \u2019\u2019.-  \t\0\x85\u2028\u3000▁_é\u0301"
    "日本カなไทย\u05e9ال\u200d👩👍🏽\ufe0f\ufffd"
)
any_texts = st.text(likely | st.characters(exclude_categories=["Cs"])).map(str.encode)
broken = st.sampled_from([b"a", b"\xff", b" ", b"\xe2\x96", b"\x81", b"\xed\xa0\x80"])
contents = any_texts | st.lists(broken).map(b"".join)


def flat(batch: list[bytes]) -> tf.Tensor:
    return tf.constant(batch, tf.string, [len(batch)])


def joined(tokens) -> list[str]:
    rows = (b"".join(row).decode() for row in tokens.to_list())
    return [row.replace("▁", " ").removeprefix(" ") for row in rows]


def split(text: str) -> str:
    (tokens,) = words(normalise(tf.constant([text]))).to_list()
    return " ".join(token.decode() for token in tokens)


@hypothesis.given(st.lists(contents, max_size=8))
@hypothesis.settings(deadline=None, max_examples=150)
def test_tokens_joined_are_the_text(batch):
    texts = normalise_graph(flat(batch))
    expected = [text.decode() for text in texts.numpy()]
    for function in (words_graph, characters_graph):
        tokens = function(texts)
        assert joined(tokens) == expected
        for token in map(bytes.decode, tokens.flat_values.numpy()):
            assert token and not set(" \n") & set(token) and "▁" not in token[1:]
    assert [len(row) for row in characters_graph(texts).to_list()] == [len(t) for t in expected]


@hypothesis.given(st.lists(contents, max_size=8))
@hypothesis.settings(deadline=None, max_examples=150)
def test_normalising_twice_changes_nothing(batch):
    texts = normalise_graph(flat(batch))
    assert normalise_graph(texts).numpy().tolist() == texts.numpy().tolist()


@hypothesis.given(st.lists(any_texts, max_size=8))
@hypothesis.settings(deadline=None, max_examples=150)
def test_normalising_changes_blanks_alone(batch):
    def plain(text: str) -> str:
        kinds = map(unicodedata.category, text)
        is_blank = (kind[0] == "Z" or kind == "Cc" for kind in kinds)
        text = "".join(" " if blank else c for c, blank in zip(text, is_blank, strict=True))
        return " ".join(part for part in text.split(" ") if part).replace("▁", "_")

    expected = [plain(content.decode()) for content in batch]
    assert [text.decode() for text in normalise_graph(flat(batch)).numpy()] == expected


def test_normalising_keeps_quotes_and_lower_cases_if_asked():
    text = tf.constant("\u201cL\u2019\u00c9t\u00e9\u201d  ▁\r\n\u0130")
    assert normalise(text).numpy().decode() == "\u201cL\u2019\u00c9t\u00e9\u201d _ \u0130"
    assert normalise(text, lowercase=True).numpy().decode() == (
        "\u201cl\u2019\u00e9t\u00e9\u201d _ i\u0307"
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat, (sat).", "▁The ▁cat , ▁( sat ) ."),
        ("Don't! It's what I'd've said", "▁Do n't ! ▁It 's ▁what ▁I 'd 've ▁said"),
        ("isn\u2019t WON'T can't", "▁is n\u2019t ▁WO N'T ▁ca n't"),
        ("L'amico all'estero, un po' d'acqua", "▁L' amico ▁all' estero , ▁un ▁po ' ▁d' acqua"),
        ("aujourd\u2019hui s'il", "▁aujourd\u2019 hui ▁s' il"),
        ("rock'n'roll the dogs' 'quoted'", "▁rock' n' roll ▁the ▁dogs ' ▁' quoted '"),
        ("a'b'c'd' n't 's l'sole", "▁a' b' c 'd ' ▁n' t ▁' s ▁l' sole"),
        ("3.5 x-ray 10%", "▁3 . 5 ▁x - ray ▁10 %"),
        ("e\u0301te\u0301 \u05e9\u05b8", "▁e\u0301te\u0301 ▁\u05e9\u05b8"),
        ("東京 abc語x ไทย", "▁東 京 ▁abc 語 x ▁ไ ท ย"),
        ("か\u3099な❤\ufe0f👍🏽", "▁か\u3099 な ❤\ufe0f 👍 🏽"),
        ("a▁b", "▁a _ b"),
        ("", ""),
        (" \n\t", ""),
    ],
)
def test_exact_words(text, tokens):
    assert split(text) == tokens


@pytest.mark.parametrize("name", LEVELS)
def test_levels_are_used_alike(name, tmp_path):
    texts = ["the cat sat", "the hat", "", "that's the cat's hat"]
    learnt = LEVELS[name].learn([texts[:2], texts[2:]], size=300)
    file = tmp_path / "vocabulary.txt"
    file.write_bytes(learnt.content())
    loaded = LEVELS[name].load(file)
    assert len(loaded) == len(learnt) == learnt.content().count(b"\n")
    for level in (learnt, loaded):
        ids, pieces = level.ids(texts), level.pieces(texts)
        assert ids.dtype == tf.int32 and ids.row_lengths().numpy().tolist() == (
            pieces.row_lengths().numpy().tolist()
        )
        assert tf.reduce_min(ids.flat_values) > level.END
        assert tf.reduce_max(ids.flat_values) < len(level)
        assert joined(pieces) == texts
        assert level.texts(ids).numpy().tolist() == [text.encode() for text in texts]
        assert level.ids("the cat sat").numpy().tolist() == ids[0].numpy().tolist()
        padded = tf.pad(ids.to_tensor(), [[0, 0], [1, 1]], constant_values=level.END)
        assert level.texts(padded).numpy().tolist() == [text.encode() for text in texts]
        nested = level.ids(tf.reshape(texts, [2, 2]))
        assert nested.to_list() == [ids[:2].to_list(), ids[2:].to_list()]
        assert level.texts(nested).shape == (2, 2)
        assert level.ids(tf.constant([], tf.string)).to_list() == []
    lower = LEVELS[name].learn([["THE Cat", "the cat"]], size=300, lowercase=True)
    assert lower.texts(lower.ids("The cat")).numpy() == b"the cat"
    assert LEVELS[name].learn([], size=300).ids("").shape == (0,)


def test_frequent_tokens_are_known_and_the_others_lose_their_form():
    texts = [["b a b c", "a, b"]]
    assert (
        Words.learn(texts, size=5).content()
        == b"<pad>\n<unk>\n<end>\n\xe2\x96\x81b\n\xe2\x96\x81a\n"
    )
    known = Words.learn(texts, size=99, min_count=2)
    assert known.ids("a b c b").numpy().tolist() == [4, 3, 1, 3]
    assert known.texts([4, 3, 1, 3]).numpy().decode() == "a b \ufffd b"
    known = Characters.learn(texts, size=99, min_count=2)
    assert known.pieces("a c").numpy().tolist() == [b"a", "▁".encode(), b"c"]
    assert known.texts(known.ids("a cb")).numpy().decode() == "a \ufffdb"
    assert Words.learn(texts, size=3).ids("a <end> <pad>").numpy().tolist() == [1] * 7


def test_exported(tmp_path):
    module = tf.Module()
    module.levels = []
    for level in (Words, Characters):
        (tmp_path / level.__name__).write_bytes(level.learn([["a cat"]], size=99).content())
        module.levels.append(level.load(tmp_path / level.__name__))
    module.texts = tf.function(
        lambda text: {
            str(i): level.texts(level.ids(text)) for i, level in enumerate(module.levels)
        },
        input_signature=[FLAT],
        autograph=False,
    )
    tf.saved_model.save(module, tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    for level in (Words, Characters):
        (tmp_path / level.__name__).unlink()
    loaded = tf.saved_model.load(tmp_path / "there")
    found = [texts.numpy().tolist() for texts in loaded.texts(["cat b", ""]).values()]
    assert [text.decode() for text in found[0]] == ["cat \ufffd", ""]
    assert [text.decode() for text in found[1]] == ["cat \ufffd", ""]


@pytest.mark.parametrize("piece", ["a", "a'", "n't", "東", ". ", "a b", "\u0301"])
def test_long_texts_take_no_more_than_their_length(piece):
    text = (piece * 20_000).strip()
    assert joined(words(tf.constant([text]))) == [text]
