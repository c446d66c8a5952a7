"""Sentence pairs: TSV files, aligned files, what is wrong with them, and what they repeat."""

import functools
import gzip
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnapps.data import sources
from rnnapps.data.duplicates import overlaps
from rnnapps.data.formats.parallel import read_parallel
from rnnapps.data.formats.rows import BadRow
from rnnapps.errors import UserError


def write(path, content):
    content = content.encode("utf-8") if isinstance(content, str) else content
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def pairs(*texts):
    return [{"source": source, "target": target} for source, target in texts]


sentence = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r\ufeff"), min_size=1
).filter(str.strip)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", ".gz"]),
)
def test_round_trip(tmp_path, corpus, end, ends, suffix):
    def lines(texts):
        text = end.join(texts) + end * ends
        return b"\xef\xbb\xbf" + text.encode()

    table = write(tmp_path / f"x.tsv{suffix}", lines(f"{a}\t{b}\tmore" for a, b in corpus))
    assert list(read_parallel(table)) == pairs(*corpus)
    named = write(tmp_path / "y", lines(["x\tit \t en", *(f"1\t{b}\t{a}" for a, b in corpus)]))
    assert list(read_parallel(named, "en", "it")) == pairs(*corpus)
    assert list(read_parallel(named, "en", "2")) == pairs(*corpus)
    files = [
        write(tmp_path / f"x.{name}{suffix}", lines(side))
        for name, side in zip(("en", "it"), zip(*corpus, strict=True), strict=True)
    ]
    assert list(read_parallel(",".join(files))) == pairs(*corpus)
    assert list(read_parallel(", ".join(files[::-1]), "en", "it")) == pairs(*corpus)
    assert list(read_parallel(",".join(files), "2", "1")) == pairs(*((b, a) for a, b in corpus))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"one", "1 column where 2 columns are needed"),
        (b"", "a blank line where 2 columns are needed"),
        (b"one\t", "an empty target"),
        (b" \teins", "an empty source"),
        (b"\xe9\teins", "not UTF-8 text (byte 0xe9)"),
        (b"o\0ne\teins", "a NUL byte in the text"),
    ],
)
def test_bad_rows_of_a_table(tmp_path, line, reason):
    path = write(tmp_path / "x.tsv", b"a\tb\n" + line + b'\n"c\td"\n\n\n')
    assert list(read_parallel(path)) == [
        *pairs(("a", "b")),
        BadRow(path, 2, reason),
        *pairs(('"c', 'd"')),
    ]


def test_bad_rows_of_aligned_files(tmp_path):
    en = write(tmp_path / "x.en", b"a\n\n \nb\n\xff\nf\n\n\n")
    de = write(tmp_path / "x.de", b"A\n\n\nB\nE\n\nG\n")
    assert list(read_parallel(f"{en},{de}")) == [
        *pairs(("a", "A"), ("b", "B")),
        BadRow(en, 5, "not UTF-8 text (byte 0xff)"),
        BadRow(de, 6, "an empty target"),
        BadRow(en, 7, "an empty source"),
    ]


@pytest.mark.parametrize(("num_en", "num_de"), [(3, 5), (5, 3), (0, 2), (3, 4_000)])
def test_files_of_different_lengths(tmp_path, num_en, num_de):
    en, de = write(tmp_path / "x.en", "a\n" * num_en), write(tmp_path / "x.de", "b\n" * num_de)
    rows = read_parallel(f"{en},{de}")
    with pytest.raises(UserError) as raised:
        for _ in range(min(num_en, num_de) + 1):
            assert next(rows) == {"source": "a", "target": "b"}
    assert str(raised.value) == (
        f"aligned files must have as many lines. Received: {en} with {num_en:,}, "
        f"{de} with {num_de:,}"
    )


def test_blank_lines_behind_the_end_of_the_other_file_are_counted_once(tmp_path):
    en, de = write(tmp_path / "x.en", "a\nb\n"), write(tmp_path / "x.de", "A\nB\n\nC\n")
    with pytest.raises(UserError, match=r"x\.en with 2, .*x\.de with 4$"):
        list(read_parallel(f"{en},{de}"))


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("", ("1", "2"), "{path} is empty"),
        ("\n\n", ("1", "2"), "{path} is empty"),
        ("", ("en", "de"), "{path} is empty"),
        ("en\tde\n", ("en", "de"), "{path} holds no pairs"),
        (b"\xff\tde\n", ("en", "de"), "{path}:1: not UTF-8 text (byte 0xff)"),
        (
            "en\tde\na\tb\n",
            ("en", "it"),
            "no column 'it' in {path}; its columns are: en, de\n"
            "If its first line is no header, give the columns' numbers",
        ),
        (
            "a\tb\n",
            ("1", "1"),
            "sentences and translations are in two different columns, which are counted from 1. "
            "Received: source_column=1, target_column=1",
        ),
        (
            "a\tb\n",
            ("0", "1"),
            "sentences and translations are in two different columns, which are counted from 1. "
            "Received: source_column=0, target_column=1",
        ),
    ],
)
def test_what_is_no_table(tmp_path, content, columns, message):
    path = write(tmp_path / "x.tsv", content)
    with pytest.raises(UserError) as raised:
        list(read_parallel(path, *columns))
    assert str(raised.value) == message.format(path=path)


def test_what_are_no_two_files(tmp_path):
    en, de = write(tmp_path / "x.en", "a\n"), write(tmp_path / "x.de", "b\n")
    empty = write(tmp_path / "x.it", "\n")
    with pytest.raises(UserError, match="one TSV file or a pair .* Received: 3 files, .*x.it"):
        read_parallel(f"{en},{de},{empty}")
    with pytest.raises(UserError, match="no such file or folder: nowhere.de"):
        read_parallel(f"{en},nowhere.de")
    with pytest.raises(UserError, match="is a folder without train and one of dev and test"):
        read_parallel(tmp_path)
    with pytest.raises(UserError, match="is a folder without train and one of dev and test"):
        read_parallel(f"{en},{tmp_path}")
    with pytest.raises(UserError, match="x.it and .*x.it hold no pairs"):
        list(read_parallel(f"{empty},{empty}"))
    with pytest.raises(UserError, match="no column 'fr' in .*; its columns are: en, de"):
        list(read_parallel(f"{en},{de}", "en", "fr"))
    with pytest.raises(UserError, match="are two columns. Received: columns 1 and 3"):
        list(read_parallel(f"{en},{de}", "1", "3"))
    broken = tmp_path / "y.de.gz"
    broken.write_bytes(gzip.compress(b"b\n" * 1_000)[:-9])
    with pytest.raises(UserError, match="is not a whole gzip file"):
        list(read_parallel(f"{en},{broken}"))


def test_files_are_not_held_in_memory(tmp_path):
    en, de = write(tmp_path / "x.en", "a\n" * 50_000), write(tmp_path / "x.de", "b\n" * 60_000)
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="with 50,000, .* with 60,000"):
            for _ in read_parallel(f"{en},{de}"):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000
    long = "word " * 1_000_000
    path = write(tmp_path / "long.tsv", f"{long}\tlang\n")
    assert list(read_parallel(path)) == pairs((long, "lang"))


load_splits = functools.partial(
    sources.load_splits,
    sample="sample_translation",
    fields={"source": None, "target": None},
    key="source",
)


def test_each_part_may_be_a_pair_of_files_and_a_folder_may_hold_such_parts(tmp_path):
    for part, texts in (("train", "abc"), ("dev", "d"), ("test", "e")):
        write(tmp_path / f"{part}.en", "\n".join(texts))
        write(tmp_path / f"{part}.de", "\n".join(texts.upper()))
    specs = {part: f"{tmp_path}/{part}.en,{tmp_path}/{part}.de" for part in sources.PARTS}
    given = load_splits(
        specs["train"], read=read_parallel, dev_data=specs["dev"], test_data=specs["test"]
    )
    read = functools.partial(read_parallel, source_column="en", target_column="de")
    for splits in (given, load_splits(str(tmp_path), read=read)):
        found = {
            part: b" ".join(b"".join(example.values()) for example in rows.as_numpy_iterator())
            for part, rows in splits.items()
        }
        assert found == {"train": b"aA bB cC", "dev": b"dD", "test": b"eE"}


def test_overlaps_count_pairs_and_sources(tmp_path):
    train = [("a", "A"), ("A ", "a"), ("a", "B"), ("b", "C"), ("b", "C"), ("b", "c"), ("a b", "D")]
    parts = {"train": train, "dev": [("B", "x"), ("b", "y"), ("c", "z")], "test": [("a  b", "D")]}
    specs = [
        write(tmp_path / f"{part}.tsv", "".join(f"{a}\t{b}\n" for a, b in rows))
        for part, rows in parts.items()
    ]
    splits = load_splits(specs[0], read=read_parallel, dev_data=specs[1], test_data=specs[2])
    found = overlaps(splits)
    assert (found.repeated, found.known, found.totals) == (
        2,
        {"dev": 2, "test": 1},
        {"dev": 3, "test": 1},
    )
    assert str(found) == (
        "2 pairs of train occur more than once; 2 of 3 dev sources stand in train too; "
        "1 of 1 test sources stands in train too"
    )
    alone = overlaps({"train": splits["dev"], "dev": splits["test"]})
    assert str(alone) == (
        "0 pairs of train occur more than once; 0 of 1 dev sources stand in train too"
    )
