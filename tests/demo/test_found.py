"""Which models of a folder the demo shows, and what its command says where there is none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rnnapps.demo import command
from rnnapps.demo.found import find
from rnnapps.errors import UserError

PIPELINES = Path(__file__).parents[2] / "pipelines"


def export(folder: Path, task: str, **files: str) -> Path:
    """Writes what of an export is read before it is loaded."""
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").touch()
    card = f"# {task}\n\nA model.\n\n## Limits\n\nIt knows nothing.\n"
    (folder / "MODEL_CARD.md").write_text(card, encoding="utf-8")
    (folder / "config.yaml").write_text(files.get("config", "data: sample\n"))
    (folder / "metrics.json").write_text(json.dumps({"test": {"accuracy": 0.5}}))
    return folder


def test_the_newest_version_of_each_folder_whatever_it_is_called(tmp_path):
    export(tmp_path / "sentiment" / "9", "sentiment")
    newest = export(tmp_path / "sentiment" / "10", "sentiment")
    pair = export(tmp_path / "translation-eng-fra" / "1", "translation", config="data: a.en,a.fr\n")
    plays = export(tmp_path / "shakespeare" / "2", "language_model")
    # What is no model, not whole, or still being written.
    (tmp_path / "README.md").write_text("models")
    (tmp_path / "sentiment" / "11").mkdir()
    (tmp_path / "empty").mkdir()
    export(tmp_path / "sentiment" / ".writing-x" / "version", "sentiment")
    export(tmp_path / "sentiment" / "old", "sentiment")
    found = {model.name: model for model in find(tmp_path)}
    assert {name: (model.task, model.version) for name, model in found.items()} == {
        "sentiment": ("sentiment", newest),
        "shakespeare": ("language_model", plays),
        "translation-eng-fra": ("translation", pair),
    }
    assert [found[name].variant for name in sorted(found)] == ["", "shakespeare", "eng-fra"]
    assert found["sentiment"].limits == "It knows nothing."
    assert found["sentiment"].is_of_sample and not found["translation-eng-fra"].is_of_sample
    assert found["shakespeare"].metrics["test"] == {"accuracy": 0.5}
    with pytest.raises(UserError, match="labels.txt"):
        found["sentiment"].asset_lines("labels.txt")


def test_an_export_that_is_damaged_is_named(tmp_path):
    version = export(tmp_path / "sentiment" / "1", "sentiment", config="data: [")
    (version / "metrics.json").write_text("{")
    (found,) = find(tmp_path)
    for read, name in ((lambda: found.config, "config.yaml"), (lambda: found.metrics, "metrics")):
        with pytest.raises(UserError, match=f"{name}.* is damaged: "):
            read()
    (version / "MODEL_CARD.md").write_bytes(b"# sent\xff")
    with pytest.raises(UserError, match=r"MODEL_CARD.md is damaged: UnicodeDecodeError: "):
        find(tmp_path)


def test_a_folder_without_models_is_one_line_and_status_2(tmp_path):
    done = subprocess.run(
        [sys.executable, PIPELINES / "demo.py", "--models", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"error: {tmp_path} has no exported model")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_there_is_not(tmp_path, capsys, port):
    export(tmp_path / "sentiment" / "1", "sentiment")
    assert command.main(["--models", str(tmp_path), f"--port={port}"]) == 2
    told = f"error: --port takes a number from 0 to 65,535. Received: {port}\n"
    assert capsys.readouterr().err == told


def test_without_gradio_it_is_told_how_to_install_it(tmp_path, monkeypatch, capsys):
    export(tmp_path / "sentiment" / "1", "sentiment")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command.main(["--models", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: the page needs Gradio: python -m pip install '.[demo]'\n"
    )
