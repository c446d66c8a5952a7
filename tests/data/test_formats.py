"""The readers of labelled text: what a row is, and what becomes of a bad one."""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnapps.data.formats import rows
from rnnapps.data.formats.classes import class_of
from rnnapps.data.formats.labelled import read_labelled
from rnnapps.data.formats.official import official_splits
from rnnapps.data.formats.rows import BadRow
from rnnapps.data.formats.tabular import read_csv, read_jsonl, read_tsv
from rnnapps.errors import UserError

FIELDS = {"text": "text", "label": "label"}
# Everything that Python's str.splitlines takes for a line end and that is none in a file.
ODD = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj"

any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def write(path: Path, content: str | bytes) -> str:
    content = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return str(path)


def row(text: str, label: str) -> dict[str, str]:
    return {"text": text, "label": label}


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tsv_rows_end_at_newlines_only(tmp_path, name, mark, end):
    lines = ["label\ttext", f"pos\t{ODD}", 'neg\t"half a quote', "pos\t"]
    path = write(tmp_path / name, mark + end.join(lines) + end)
    expected = [row(ODD, "pos"), row('"half a quote', "neg"), row("", "pos")]
    assert list(read_labelled(path)) == expected


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_quoted_newlines_belong_to_the_field(tmp_path, name, mark, end):
    content = f'label,text{end}pos,"two\nlines, ""quoted"""{end}neg,{ODD}{end}"pos","{ODD}"{end}'
    path = write(tmp_path / name, mark + content)
    expected = [row('two\nlines, "quoted"', "pos"), row(ODD, "neg"), row(ODD, "pos")]
    assert list(read_labelled(path)) == expected


@quick
@given(st.lists(st.tuples(any_text, any_text), min_size=1, max_size=6), st.booleans())
def test_csv_round_trip(tmp_path, pairs, windows):
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n" if windows else "\n", strict=True
    )
    writer.writerows([("text", "label"), *pairs])
    path = write(tmp_path / "x.csv", buffer.getvalue())
    assert list(read_csv(path, FIELDS)) == [row(*pair) for pair in pairs]


@quick
@given(st.lists(st.tuples(any_text, any_text), min_size=1, max_size=6))
def test_tsv_round_trip(tmp_path, pairs):
    # What TSV cannot hold: its own separators, and a "\r" that would join the line end.
    pairs = [tuple(cell.translate({9: 32, 10: 32}) for cell in pair) for pair in pairs]
    pairs = [(text, label.rstrip("\r")) for text, label in pairs]
    content = "".join(f"{text}\t{label}\n" for text, label in [("text", "label"), *pairs])
    path = write(tmp_path / "x.tsv", content)
    assert list(read_tsv(path, FIELDS)) == [row(*pair) for pair in pairs]


@quick
@given(st.lists(st.tuples(any_text, any_text), min_size=1, max_size=6), st.booleans())
def test_jsonl_round_trip(tmp_path, pairs, ascii_only):
    lines = [json.dumps(row(*pair), ensure_ascii=ascii_only) for pair in pairs]
    path = write(tmp_path / "x.jsonl", "\n".join(lines))
    assert list(read_jsonl(path, FIELDS)) == [row(*pair) for pair in pairs]


def test_jsonl_numbers_and_truth_values_give_their_json_text(tmp_path):
    values = ["1", "-0.50", "1e3", "true", "false", "12345678901234567890123"]
    path = write(
        tmp_path / "x.json", "\n".join(f'{{"text": "a", "label": {value}}}' for value in values)
    )
    assert [r["label"] for r in read_labelled(path)] == values


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "a"}', "no 'label'"),
        ('{"text": "a", "label": null}', "no 'label'"),
        ('{"text": "a", "label": " "}', "no 'label'"),
        ('{"text": ["a"], "label": "pos"}', "'text' is not a text or a number"),
        ('{"text": NaN, "label": "pos"}', "'text' is not a text or a number"),
        ('["a", "pos"]', "not a JSON object: one object a line is needed"),
        ("[" * 100_000, "not a JSON object: one object a line is needed"),
        ('{"text": "a"', "not a JSON object: one object a line is needed"),
        ("", "not a JSON object: one object a line is needed"),
        ('{"text": "\\u0000", "label": "pos"}', "a NUL byte in the text"),
        ('{"text": "\\ud800", "label": "pos"}', "half of a surrogate pair in the text"),
    ],
)
def test_jsonl_bad_rows(tmp_path, line, reason):
    good = '{"text": "a", "label": "pos"}'
    path = write(tmp_path / "x.jsonl", f"{good}\n{line}\n{good}\n")
    rows = list(read_labelled(path))
    assert rows == [row("a", "pos"), BadRow(path, 2, reason), row("a", "pos")]


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"pos\n", "1 column where 2 columns are needed"),
        (b"pos\tb\tc\n", "3 columns where 2 columns are needed"),
        (b"\n", "a blank line where 2 columns are needed"),
        (b"\r\n", "a blank line where 2 columns are needed"),
        (b"\ttext\n", "no 'label'"),
        (b"  \ttext\n", "no 'label'"),
        (b"pos\tcaf\xe9\n", "not UTF-8 text (byte 0xe9)"),
        (b"pos\ta\0b\n", "a NUL byte in the text"),
    ],
)
def test_bad_rows_name_their_line(tmp_path, suffix, line, reason):
    content = b"label\ttext\npos\ta\n" + line + b"neg\tb\n"
    content = content.replace(b"\t", b",") if suffix == "csv" else content
    path = write(tmp_path / f"x.{suffix}", content)
    assert list(read_labelled(path)) == [row("a", "pos"), BadRow(path, 3, reason), row("b", "neg")]


def test_bad_row_reads_as_file_line_reason():
    assert str(BadRow("x.tsv", 3, "no 'label'")) == "x.tsv:3: no 'label'"


def test_csv_names_the_line_where_a_row_starts(tmp_path):
    path = write(tmp_path / "x.csv", 'label,text\npos,"a\nb\nc"\n"neg\n",x,y\npos,d\n')
    assert list(read_labelled(path)) == [
        row("a\nb\nc", "pos"),
        BadRow(path, 5, "3 columns where 2 columns are needed"),
        row("d", "pos"),
    ]


def test_csv_names_the_line_of_the_byte_inside_a_quoted_field(tmp_path):
    path = write(tmp_path / "x.csv", b'label,text\npos,"a\nb\xff"\npos,d\n')
    bad = BadRow(path, 3, "not UTF-8 text (byte 0xff)")
    assert list(read_labelled(path)) == [bad, row("d", "pos")]


def test_csv_quote_that_is_never_closed_is_told(tmp_path):
    path = write(tmp_path / "x.csv", 'label,text\npos,a\nneg,"b\npos,c\npos,d\n')
    reason = "a quote that opens in this row is never closed (read to line 5)"
    assert list(read_labelled(path)) == [row("a", "pos"), BadRow(path, 3, reason)]


def test_csv_quote_that_is_never_closed_swallows_a_bounded_text(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnapps.data.formats.tabular.LARGEST_ROW", 1000)
    before = csv.field_size_limit(1000)
    try:
        path = write(tmp_path / "x.csv", 'label,text\nneg,"b\n' + "pos,c\n" * 10_000)
        first, *others = read_labelled(path)
        assert first.line == 2
        assert first.reason.startswith("a row is too long, its quote is perhaps never closed")
        assert len(others) > 9_000 and set(map(str, others)) == {str(row("c", "pos"))}
    finally:
        csv.field_size_limit(before)


def test_csv_quote_inside_a_quoted_field_must_be_doubled(tmp_path):
    path = write(tmp_path / "x.csv", 'label,text\npos,"he said "hi" to me"\nneg,b\n')
    bad = BadRow(path, 2, "a quote inside a quoted field must be doubled")
    assert list(read_labelled(path)) == [bad, row("b", "neg")]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.pos"])
def test_a_text_of_a_million_words_is_read(tmp_path, name):
    text = "word " * 1_000_000
    content = {
        "x.csv": f"text,label\n{text},pos\n",
        "x.tsv": f"text\tlabel\n{text}\tpos\n",
        "x.jsonl": json.dumps(row(text, "pos")),
        "x.pos": text,
    }[name]
    path = write(tmp_path / name, content)
    (only,) = read_labelled(path + "," if name == "x.pos" else path)
    assert only == row(text, "pos")


@pytest.mark.parametrize("end", ["\n", "\n\n\n", "\r\n\r\n", ""])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.pos"])
def test_blank_lines_at_the_end_do_not_count(tmp_path, name, end):
    content = {
        "x.csv": "text,label\na,pos",
        "x.tsv": "text\tlabel\na\tpos",
        "x.jsonl": '{"text": "a", "label": "pos"}',
        "x.pos": "a",
    }[name]
    path = write(tmp_path / name, content + end)
    assert list(read_labelled(path + "," if name == "x.pos" else path)) == [row("a", "pos")]


def test_columns_name_those_of_a_file_without_header(tmp_path):
    path = write(tmp_path / "x.tsv", "1\tpos\ta\n2\tneg\n")
    rows = list(read_labelled(path, "words", "class", ["id", "class", "words"]))
    assert rows == [row("a", "pos"), BadRow(path, 2, "2 columns where 3 columns are needed")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "label,text\npos,a\n"),
        ("x.tsv", "label\t text \npos\ta\n"),
        ("x.jsonl", '{"label": "pos", "text": "a"}'),
    ],
)
def test_a_missing_column_lists_those_there(tmp_path, name, content):
    path = write(tmp_path / name, content)
    expected = f"no column 'sentence' in {path}; its columns are: label, text"
    with pytest.raises(UserError) as raised:
        list(read_labelled(path, "sentence"))
    assert str(raised.value).splitlines()[0] == expected
    assert list(read_labelled(path)) == [row("a", "pos")]


def test_a_first_row_taken_for_a_header_is_cut_short(tmp_path):
    path = write(tmp_path / "x.tsv", "pos\t" + "a long review " * 1000 + "\n")
    with pytest.raises(UserError) as raised:
        list(read_labelled(path))
    assert len(str(raised.value)) < 400 and "name the columns" in str(raised.value)


def test_a_column_that_is_there_twice(tmp_path):
    path = write(tmp_path / "x.csv", "text,label,text\na,pos,b\n")
    with pytest.raises(UserError, match="column 'text' is there 2 times"):
        list(read_labelled(path))


def test_columns_are_not_for_json_lines(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"label": "pos", "text": "a"}')
    with pytest.raises(UserError, match="names its own columns"):
        list(read_labelled(path, columns=["text", "label"]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "", "is empty"),
        ("x.csv", "\n\n", "is empty"),
        ("x.csv", "text,label\n\n", "holds no rows"),
        ("x.tsv", "", "is empty"),
        ("x.tsv", "text\tlabel\n", "holds no rows"),
        ("x.jsonl", "\n", "is empty"),
        ("x.tsv.gz", "", "is empty"),
        ("x.tsv", b"\xff\xfet\0", ":1: "),
        ("x.txt", "a", "'?.txt'? is not a known format; known are .csv, .tsv, .jsonl, .json"),
        ("x", "a", "a file without suffix is not a known format"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    with pytest.raises(UserError, match=message) as raised:
        list(read_labelled(path))
    assert str(raised.value).startswith(path)


def test_missing_file(tmp_path):
    path = str(tmp_path / "reviews.csv")
    with pytest.raises(UserError) as raised:
        read_labelled(path)
    assert str(raised.value) == f"no such file or folder: {path}"


@pytest.mark.parametrize("damage", ["cut", "flipped", "plain"])
def test_damaged_gzip(tmp_path, damage):
    whole = gzip.compress(b"label\ttext\n" + os.urandom(5000).hex().encode() + b"\n")
    content = {
        "cut": whole[:2000],
        "flipped": whole[:100] + bytes(byte ^ 255 for byte in whole[100:200]) + whole[200:],
        "plain": b"label\ttext\npos\ta\n",
    }[damage]
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="x.tsv.gz is not a whole gzip file"):
        list(read_labelled(path))


def test_class_folders(tmp_path):
    write(tmp_path / "pos" / "2.txt", "second\n\n")
    write(tmp_path / "pos" / "10.txt.gz", f"\ufeff{ODD}\nmore\r\n")
    write(tmp_path / "neg" / "1.txt", b"caf\n\xe9")
    write(tmp_path / "neg" / "notes.md", "not an example")
    write(tmp_path / "README.txt", "not an example")
    (tmp_path / "empty").mkdir()
    assert list(read_labelled(tmp_path)) == [
        BadRow(str(tmp_path / "neg" / "1.txt"), 2, "not UTF-8 text (byte 0xe9)"),
        row(f"{ODD}\nmore", "pos"),
        row("second", "pos"),
    ]


def test_class_files_in_a_folder_or_a_list(tmp_path):
    negative = write(tmp_path / "reviews.neg.gz", f"{ODD}\n\nthird\n\n")
    positive = write(tmp_path / "reviews.pos", b"one\r\ntw\xff\n")
    write(tmp_path / "README.md", "not an example")
    of_negative = [row(ODD, "neg"), row("", "neg"), row("third", "neg")]
    of_positive = [row("one", "pos"), BadRow(positive, 2, "not UTF-8 text (byte 0xff)")]
    assert list(read_labelled(tmp_path)) == of_negative + of_positive
    assert list(read_labelled(f"{positive}, {negative}")) == of_positive + of_negative


def test_class_is_the_last_suffix():
    assert class_of("a.b/reviews.1.pos.gz") == "pos"
    assert class_of("a.b/reviews.tsv.gz") is None
    assert class_of("a.b/reviews") is None


def test_class_lists_must_name_classes(tmp_path):
    table, missing = write(tmp_path / "x.tsv", "a"), str(tmp_path / "x.neg")
    positive, empty = write(tmp_path / "x.pos", "a"), write(tmp_path / "e.neg", "")
    with pytest.raises(UserError, match="x.tsv is not named by its class"):
        list(read_labelled(f"{positive},{table}"))
    with pytest.raises(UserError, match="no such file or folder: .*x.neg"):
        list(read_labelled(f"{positive},{missing}"))
    with pytest.raises(UserError, match="e.neg is empty"):
        list(read_labelled(f"{positive},{empty}"))


def test_folder_of_neither(tmp_path):
    write(tmp_path / "notes.md", "a")
    with pytest.raises(UserError, match="holds neither class folders"):
        read_labelled(tmp_path)


def test_official_splits(tmp_path):
    assert official_splits(tmp_path) is None
    train = write(tmp_path / "train.tsv", "a")
    assert official_splits(train) is None and official_splits(tmp_path) is None
    dev = write(tmp_path / "validation.tsv.gz", "a")
    write(tmp_path / "trainer.tsv", "a")
    assert official_splits(tmp_path) == {"train": train, "dev": dev}
    (tmp_path / "test").mkdir()
    assert official_splits(tmp_path)["test"] == str(tmp_path / "test")


def test_official_splits_of_which_all_begin_alike(tmp_path):
    names = ("eng.train", "eng.testa.gz", "eng.testb")
    train, dev, test = (write(tmp_path / name, "a") for name in names)
    write(tmp_path / ".eng.train.swp", "a")
    write(tmp_path / "deu.train", "a")
    assert official_splits(tmp_path) == {"dev": dev, "test": test, "train": train}
    write(tmp_path / "deu.testa", "a")
    assert official_splits(tmp_path) is None  # of two corpora
    plain = [write(tmp_path / name, "a") for name in ("train.txt", "test.txt")]
    assert official_splits(tmp_path) == dict(zip(("train", "test"), plain, strict=True))


def test_official_splits_of_class_files_are_lists(tmp_path):
    negative, positive = write(tmp_path / "train.neg", "a"), write(tmp_path / "train.pos", "b")
    test = write(tmp_path / "test.neg", "c")
    splits = official_splits(tmp_path)
    assert splits == {"train": f"{negative},{positive}", "test": test}
    assert list(read_labelled(splits["train"])) == [row("a", "neg"), row("b", "pos")]


@pytest.mark.skipif("RNNAPPS_DATA" not in os.environ, reason="RNNAPPS_DATA names no real data")
def test_imdb_rows_hold_every_kind_of_line_end_but_one():
    path = Path(os.environ["RNNAPPS_DATA"]) / "sentiment" / "imdb_train.tsv.gz"
    num_rows, odd = 0, 0
    for example in read_labelled(path, columns=["id", "stars", "label", "text"]):
        assert isinstance(example, dict) and example["label"] in ("0", "1")
        num_rows += 1
        odd += len(example["text"].splitlines()) > 1
    assert num_rows == 25_000 and odd > 0


def test_a_bad_row_is_told_on_one_short_line_that_does_no_harm():
    told = str(BadRow("a\nb.csv", 3, "\x1b[31m" + "x" * 9_999))
    assert told.startswith("a b.csv:3: \ufffd[31mxxx") and told.endswith("x…") and len(told) < 320


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.tsv.gz"])
def test_a_line_that_does_not_end_is_refused_before_it_fills_the_memory(
    tmp_path, name, monkeypatch
):
    monkeypatch.setattr(rows, "LARGEST_ROW", 1_000)
    path = write(tmp_path / name, "text\tlabel\n" + "x" * 1_001)
    with pytest.raises(UserError, match=r":2: a line of more than 1,000 bytes"):
        list(read_labelled(path, columns=None if "json" in name else ["text", "label"]))


def test_a_text_of_its_own_that_does_not_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LARGEST_ROW", 1_000)
    write(tmp_path / "pos" / "1.txt", "x" * 1_001)
    write(tmp_path / "pos" / "2.txt", "x" * 1_000)
    bad, good = read_labelled(tmp_path)
    assert bad.reason == "a text of more than 1,000 bytes" and good == row("x" * 1_000, "pos")


def test_a_csv_row_of_many_short_lines_ends_too(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnapps.data.formats.tabular.LARGEST_ROW", 1_000)
    path = write(tmp_path / "x.csv", "text,label\n" + '"a\n",' * 400 + "\nb,pos\n")
    first, second, *_ = read_labelled(path)
    assert first.line == 2 and first.reason.startswith("a row is too long")
    assert second.line == 2 + 1_000 // len('"a\n",') + 1


@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "nothing"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "pos" / "x.txt"
    path.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(path)  # which would wait for a writer
    else:
        path.symlink_to({"device": "/dev/zero", "loop": "x.txt", "nothing": "y"}[kind])
    told = "is a pipe or a device" if kind in ("pipe", "device") else "no such file or folder"
    for data in (tmp_path, f"{path},{path}"):
        with pytest.raises(UserError, match=told):
            list(read_labelled(data))


def test_a_class_has_a_name_that_is_text(tmp_path):
    (tmp_path / "\udcff").mkdir()
    write(tmp_path / "\udcff" / "x.txt", "a")
    with pytest.raises(UserError, match=r"a class cannot have the name .* '\\udcff': rename it"):
        list(read_labelled(tmp_path))
    assert class_of("reviews. ") is None


def test_a_label_is_one_line(tmp_path):
    path = write(tmp_path / "x.csv", 'text,label\na," very\ngood"\n')
    assert list(read_labelled(path)) == [row("a", "very good")]


def test_a_header_does_no_harm_when_it_is_told(tmp_path):
    path = write(tmp_path / "x.csv", '"a\n\x1b[31m",b\nc,d\n')
    with pytest.raises(UserError, match="its columns are: a \ufffd\\[31m, b\n"):
        list(read_labelled(path))
