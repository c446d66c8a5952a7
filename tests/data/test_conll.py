"""CoNLL columns: what is a sentence, what its tags are, and what becomes of a bad one."""

import functools
import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnapps.data.formats.conll import read_conll
from rnnapps.data.formats.rows import BadRow
from rnnapps.data.tagging_schemes import Span, tags_of
from rnnapps.errors import UserError


def write(path: Path, content: str | bytes) -> str:
    content = content.encode("utf-8") if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def row(tokens: str, tags: str, scheme: str) -> dict[str, str]:
    """A row of tokens and tags that are given with blanks between."""
    return {
        "tokens": tokens.replace(" ", "\n"),
        "tags": tags.replace(" ", "\n"),
        "scheme": scheme,
    }


@pytest.mark.parametrize("name", ["x.conll", "x.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("between", ["", " \t ", "\n\n\t"])
@pytest.mark.parametrize("separator", ["\t", " ", "   "])
def test_sentences_end_at_blank_lines(tmp_path, name, mark, end, between, separator):
    lines = ["EU NNP I-ORG", "sleeps VBZ O", between, "Rome NNP I-LOC", "Milan NNP B-LOC"]
    path = write(tmp_path / name, mark + end.join(lines).replace(" ", separator) + end)
    assert list(read_conll(path)) == [
        row("EU sleeps", "B-ORG O", "iob1"),
        row("Rome Milan", "B-LOC B-LOC", "iob1"),
    ]


def test_columns_between_tabs_may_hold_blanks_and_no_other_character_cuts(tmp_path):
    odd = "1\u00a0000\x0b\x1c\x85\u2028\u3000m"
    path = write(tmp_path / "x", f"New York \tB-LOC\n{odd}\tO\n{odd} O\n")
    (only,) = read_conll(path)
    assert only["tokens"].split("\n") == ["New York", odd, odd]


@pytest.mark.parametrize("tag_column", [2, -2, "2", "-2", "ner"])
def test_the_columns_are_chosen_by_index_or_by_name(tmp_path, tag_column):
    header = "id\tword\tner\tpos\n" if tag_column == "ner" else ""
    path = write(tmp_path / "x", f"{header}\n1\tRome\tB-LOC\tNNP\n")
    assert list(read_conll(path, 1, tag_column)) == [row("Rome", "B-LOC", "iob2")]
    assert list(read_conll(path, -3, tag_column)) == [row("Rome", "B-LOC", "iob2")]


def test_documents_and_comments_are_left_out(tmp_path):
    path = write(
        tmp_path / "x",
        "-DOCSTART- -X- O\n\n# one\n#global.columns = token pos tag and more\n"
        "EU NNP B-ORG\n# three more words\nsleeps VBZ O\n# three\n"
        "-DOCSTART- -X- O\nRome NNP B-LOC\n-DOCSTART-\n",
    )
    assert list(read_conll(path)) == [
        row("EU sleeps", "B-ORG O", "iob2"),
        row("Rome", "B-LOC", "iob2"),
    ]


@pytest.mark.parametrize("separator", ["\t", " "])
def test_tokens_that_begin_like_a_comment_are_tokens(tmp_path, separator):
    lines = "# a comment of five words\n# O\nEU B-ORG\n# O\n#eu B-ORG\n\n#eu B-ORG\n"
    comment, body = lines.split("\n", 1)
    path = write(tmp_path / "x", comment + "\n" + body.replace(" ", separator))
    assert list(read_conll(path)) == [
        row("# EU # #eu", "O B-ORG O B-ORG", "iob2"),
        row("#eu", "B-ORG", "iob2"),
    ]


def test_a_comment_of_as_many_words_as_a_line_has_columns(tmp_path):
    path = write(tmp_path / "x", "# comment\nEU\tB-ORG\n")
    assert list(read_conll(path)) == [row("EU", "B-ORG", "iob2")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Rome\n", "1 column where 3 are needed"),
        (b"Rome NNP\n", "2 columns where 3 are needed"),
        (b"#rome\n", "1 column where 3 are needed"),
        (b"\tNNP\tO\n", "an empty token"),
        (b" \tNNP\tO\n", "an empty token"),
        (b"\xe2\x80\x83\tNNP\tO\n", "an empty token"),
        (b"Rome\tNNP\t\n", "an empty tag"),
        (b"Rom\xe9 NNP O\n", "not UTF-8 text (byte 0xe9)"),
        (b"Ro\0me NNP O\n", "a NUL byte in the text"),
        (b"Rome NNP I-LOC\n", "not iob2: 'I-LOC', which cannot follow 'B-ORG'"),
        (b"Rome NNP B-\n", "not iob2: 'B-', which is not a tag of the scheme"),
        (b"Rome NNP LOC\n", "not iob2: 'LOC', which is not a tag of the scheme"),
    ],
)
def test_bad_sentences_name_their_first_bad_line(tmp_path, line, reason):
    good = b"EU NNP B-ORG\n"
    path = write(tmp_path / "x", good + b"\n" + good + line + b"\n\n" + good)
    whole = row("EU", "B-ORG", "iob2")
    rows = list(read_conll(path, tag_column=2, scheme="iob2"))
    assert rows == [whole, BadRow(path, 4, reason), whole]


def test_a_bad_sentence_is_one_bad_row(tmp_path):
    path = write(tmp_path / "x", b"EU B-ORG\nRome\n\xff O\nMilan\n\nEU\n")
    reason = "1 column where 2 are needed"
    assert list(read_conll(path)) == [BadRow(path, 2, reason), BadRow(path, 6, reason)]


def test_a_stray_beginning_in_a_corpus_says_how_it_can_be_read(tmp_path):
    path = write(tmp_path / "x", "EU B-ORG\n\n" * 100 + "a O\nEU I-ORG\n")
    *good, bad = read_conll(path)
    assert len(good) == 100
    assert str(bad) == (
        f"{path}:202: not iob2: 'I-ORG', which cannot follow 'O'; "
        "scheme=iob1 takes it for a beginning"
    )
    assert list(read_conll(path, scheme="iob1"))[-1] == row("a EU", "O B-ORG", "iob1")


def test_iobes_with_other_tags_among_them_names_the_line(tmp_path):
    path = write(tmp_path / "x", "EU S-ORG\n\na O\nRome B-LOC\n\nRome B-LOC\nb E-LOC\n")
    assert list(read_conll(path)) == [
        row("EU", "B-ORG", "iobes"),
        BadRow(path, 4, "not iobes: 'B-LOC', which the sentence cannot end with"),
        row("Rome b", "B-LOC I-LOC", "iobes"),
    ]


def test_mixed_schemes_name_the_lines_of_both(tmp_path):
    content = "# x y z\n\nbad\n\nEU B-ORG\n# x y z\na O\nRome B-LOC\nb I-LOC\n\nc O\nd I-PER\n"
    path = write(tmp_path / "x", content)
    with pytest.raises(UserError) as raised:
        list(read_conll(path))
    assert str(raised.value) == (
        f"the tags mix iob1 and iob2. Received: {path}:12: 'I-PER' begins an entity, as in iob1 "
        f"only; {path}:5: 'B-ORG', which iob1 writes 'I-ORG'.\n"
        "scheme=iob1 reads both, scheme=iob2 names each tag that is not iob2"
    )
    bad, *good = read_conll(path, scheme="iob1")
    assert bad == BadRow(path, 3, "1 column where 2 are needed")
    assert good == [
        row("EU a Rome b", "B-ORG O B-LOC I-LOC", "iob1"),
        row("c d", "O B-PER", "iob1"),
    ]


def test_tags_without_a_scheme_stay_as_they_are(tmp_path):
    path = write(tmp_path / "x", "EU NNP\nsleeps VBZ\n")
    assert list(read_conll(path)) == [row("EU sleeps", "NNP VBZ", "none")]
    assert list(read_conll(path, scheme="none")) == [row("EU sleeps", "NNP VBZ", "none")]
    bad = BadRow(path, 1, "not iobes: 'NNP', which is not a tag of the scheme")
    assert list(read_conll(path, scheme="iobes")) == [bad]


def test_a_file_without_blank_lines_is_one_bad_row_in_bounded_memory(tmp_path):
    path = write(tmp_path / "x", "word O\n" * 60_000)
    tracemalloc.start()
    try:
        rows = list(read_conll(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    reason = "more than 10,000 tokens: no blank line between sentences?"
    assert rows == [BadRow(path, 1, reason)]
    assert peak < 4_000_000
    whole = write(tmp_path / "y", "word O\n" * 10_000 + "\nword O\n")
    assert [row["tokens"].count("word") for row in read_conll(whole)] == [10_000, 1]


def test_a_list_of_files_is_read_in_order_each_with_its_scheme(tmp_path):
    first = write(tmp_path / "a", "Rome I-LOC\n")
    second = write(tmp_path / "b.gz", "Rome S-LOC\n\nRome\n")
    assert list(read_conll(f"{first}, {second}")) == [
        row("Rome", "B-LOC", "iob1"),
        row("Rome", "B-LOC", "iobes"),
        BadRow(second, 3, "1 column where 2 are needed"),
    ]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "{path} is empty"),
        ("\n \n", {}, "{path} holds no sentences"),
        ("\n\n", {}, "{path} is empty"),
        ("", {"tag_column": "ner"}, "{path} is empty"),
        ("-DOCSTART- O\n# a comment\n", {}, "{path} holds no sentences"),
        ("a O\n", {"tag_column": "ner"}, "no column 'ner' in {path}; its columns are: a, O"),
        (b"\xff ner\n", {"tag_column": "ner"}, "{path}:1: not UTF-8 text (byte 0xff)"),
        (
            "a O\n",
            {"scheme": "bilou"},
            "the scheme must be one of auto, iob1, iob2, iobes, none. Received: scheme='bilou'",
        ),
        (
            "a O\n",
            {"tag_column": "0"},
            "tokens and tags must be in different columns. Received: token_column=0, tag_column=0",
        ),
    ],
)
def test_what_cannot_be_read(tmp_path, content, options, message):
    path = write(tmp_path / "x", content)
    with pytest.raises(UserError) as raised:
        list(read_conll(path, **options))
    assert str(raised.value) == message.format(path=path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(UserError, match="no such file or folder: nowhere.conll"):
        read_conll("nowhere.conll")
    with pytest.raises(UserError, match="is a folder without train and one of dev and test"):
        read_conll(tmp_path)


# Whatever is no white space and ends no line may be in a token; blanks too, between tabs.
letters = st.characters(exclude_categories=["Cs", "Z"], exclude_characters="\0\t\n\r")
token = st.text(letters, min_size=1, max_size=5).filter(
    lambda text: text.strip() == text and not text.startswith(("-DOCSTART-", "\ufeff"))
)


@st.composite
def sentences(draw):
    """Tokens, and entities that do not overlap."""
    tokens = draw(st.lists(token, min_size=1, max_size=6))
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)))))
    kinds = [draw(st.sampled_from(["X", "Y-Z", None])) for _ in cuts]
    pieces = zip(cuts[:-1], cuts[1:], kinds, strict=False)
    return tokens, [Span(start, end, kind) for start, end, kind in pieces if kind]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(sentences(), min_size=1, max_size=4),
    st.sampled_from(["\t", " ", "  "]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_round_trip_in_each_scheme(tmp_path, corpus, separator, end, with_middle):
    middle = f"{separator}NNP" if with_middle else ""
    for scheme in ("iob1", "iob2", "iobes"):
        blocks = [
            "".join(
                f"{token}{middle}{separator}{tag}{end}"
                for token, tag in zip(tokens, tags_of(entities, len(tokens), scheme), strict=True)
            )
            for tokens, entities in corpus
        ]
        # A first line that is surely a token's tells what a comment is.
        path = write(tmp_path / "x", end.join([f"a{middle}{separator}O{end}", *blocks]))
        read = functools.partial(read_conll, path)
        expected = [
            ("\n".join(tokens), "\n".join(tags_of(entities, len(tokens), "iob2")))
            for tokens, entities in [(["a"], []), *corpus]
        ]
        rows = list(read(scheme=scheme))
        assert [(row["tokens"], row["tags"]) for row in rows] == expected
        assert {row["scheme"] for row in rows} == {scheme}
        found = list(read())
        assert [(row["tokens"], row["tags"]) for row in found] == expected


@pytest.mark.skipif("RNNAPPS_DATA" not in os.environ, reason="RNNAPPS_DATA names no real data")
@pytest.mark.parametrize(
    ("name", "scheme", "sentences", "tokens", "entities", "bad"),
    [
        ("conll2003.eng.train.gz", "iob1", 14_041, 203_621, 23_499, 0),
        ("conll2002.esp.train.gz", "iob2", 8_322, 264_706, 18_796, 1),
        ("wnut17.train.conll.gz", "iob2", 3_394, 62_730, 1_975, 0),
    ],
)
def test_shared_tasks(name, scheme, sentences, tokens, entities, bad):
    rows = list(read_conll(Path(os.environ["RNNAPPS_DATA"]) / "ner" / name))
    good = [row for row in rows if isinstance(row, dict)]
    assert (len(good), len(rows) - len(good)) == (sentences, bad)
    assert {row["scheme"] for row in good} == {scheme}
    assert sum(row["tokens"].count("\n") + 1 for row in good) == tokens
    assert sum(row["tags"].count("B-") for row in good) == entities


def test_both_columns_may_be_named(tmp_path):
    path = write(tmp_path / "x", "id\tword\tner\n1\tRome\tB-LOC\n2\tfell\tO\n")
    (row,) = read_conll(path, token_column="word", tag_column="ner")
    assert (row["tokens"], row["tags"]) == ("Rome\nfell", "B-LOC\nO")
    assert list(read_conll(path, token_column="word", tag_column="2")) == [row]
    with pytest.raises(UserError, match="no column 'token' in .*; its columns are: id, word, ner"):
        list(read_conll(path, token_column="token"))
