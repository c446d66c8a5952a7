"""Plain text: the rows are the file, whatever its lines."""

import gzip

import hypothesis
import pytest
from hypothesis import strategies as st

from rnnapps.data.formats import plain_text
from rnnapps.data.formats.plain_text import read_plain_text
from rnnapps.data.formats.rows import BadRow
from rnnapps.errors import UserError


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    st.text(st.sampled_from("a\u00e9\u65e5\U0001f600 \n"), min_size=1, max_size=60),
    st.integers(4, 9),
    st.booleans(),
)
def test_rows_in_order_are_the_file(tmp_path_factory, text, longest, windows):
    file = tmp_path_factory.mktemp("text") / "text.txt"
    content = text.replace("\n", "\r\n") if windows else text
    file.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text, "LONGEST_ROW", longest)
        rows = [row["text"] for row in read_plain_text(file)]
    assert "".join(rows) == text
    assert all("\n" not in row[:-1] for row in rows)


def test_lists_compression_and_a_byte_order_mark(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt.gz"
    one.write_bytes(b"\xef\xbb\xbffirst\n")
    two.write_bytes(gzip.compress(b"second"))
    rows = list(read_plain_text(f"{one},{two}"))
    assert rows == [{"text": "first\n"}, {"text": "second"}]


def test_what_is_no_text_is_named(tmp_path):
    file = tmp_path / "text.txt"
    file.write_bytes(b"good\n\xff\xfe bad\ngood\0\n")
    good, bad, nul = read_plain_text(file)
    assert good == {"text": "good\n"}
    assert isinstance(bad, BadRow) and (bad.line, bad.reason) == (2, "not UTF-8 text (byte 0xff)")
    assert nul.line == 3
    file.write_bytes(b"")
    with pytest.raises(UserError, match="is empty"):
        list(read_plain_text(file))
    with pytest.raises(UserError, match="is a folder"):
        list(read_plain_text(tmp_path))
    with pytest.raises(UserError, match="no such file"):
        list(read_plain_text(tmp_path / "none.txt"))
