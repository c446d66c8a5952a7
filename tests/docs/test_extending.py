"""A reader who follows docs/extending.md to the letter ends with a task that works."""

import json
import re
import runpy
import shlex
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT, blocks

PAGE = ROOT / "docs" / "extending.md"
FILES = {
    "The data": "make_surnames.py",
    "The task": "surnames.py",
    "The script": "languages.py",
    "Its test": "test_surnames.py",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files of the page in an empty folder, where scripts find each other."""
    for heading, name in FILES.items():
        parts = [b.text for b in blocks(PAGE) if b.heading == heading and b.language == "python"]
        (tmp_path / name).write_text("\n".join(parts), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("surnames", None)


def test_every_python_block_is_part_of_a_file_that_the_page_names():
    page = PAGE.read_text(encoding="utf-8")
    assert {b.heading for b in blocks(PAGE) if b.language == "python"} == set(FILES)
    for name in FILES.values():
        assert f"`{name}`" in page
    (shell,) = [block.text for block in blocks(PAGE) if block.language == "sh"]
    assert {shlex.split(line)[1] for line in shell.splitlines()} <= set(FILES.values())


def test_the_page_to_the_letter(folder, monkeypatch, capsys, checked_here):
    (shell,) = [block.text for block in blocks(PAGE) if block.language == "sh"]
    told = {}
    for line in shell.splitlines():
        _, script, *arguments = shlex.split(line)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        if arguments:
            with pytest.raises(SystemExit) as end:
                runpy.run_path(script, run_name="__main__")
            assert end.value.code == 0, line
        else:
            subprocess.run([sys.executable, script], check=True)
        told[line] = capsys.readouterr().out
    train, evaluate, predict, as_json, again = list(told.values())[1:]
    assert "export: models/1" in train and "export: models/2" in again
    assert json.loads(evaluate.splitlines()[-1])["accuracy"] > 0.9
    assert re.fullmatch(r"Italian  [01]\.\d{3}\nDanish  [01]\.\d{3}\n", predict)
    assert json.loads(as_json).keys() == {"language", "probabilities"}

    import tensorflow as tf

    served = tf.saved_model.load("models/1").signatures["serving_default"]
    answer = served(surname=tf.constant(["Moretti", "Lindholm", ""]))
    assert answer["language"].numpy().tolist()[:2] == [b"Italian", b"Danish"]
    assert answer["probabilities"].shape == (3, 3)


def test_its_test_passes(folder, tmp_path_factory):
    tests = runpy.run_path("test_surnames.py")
    tests["test_what_adapt_learnt_comes_back"](tmp_path_factory.mktemp("state"))
