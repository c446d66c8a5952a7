"""Files that are replaced whole."""

import pytest

from rnnapps import folders


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    file = tmp_path / "notes.txt"
    folders.write_text(file, "old")
    with pytest.raises(OSError, match="full"), folders.replacing(file) as beside:
        beside.write_text("ne")
        raise OSError("full")
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
