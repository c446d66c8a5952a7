"""What examples find where they run: a folder of their own, and little work to do."""

import dataclasses
import functools
from pathlib import Path

import pytest


@pytest.fixture
def workplace(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def exported(workplace, trained):
    """Puts an exported sentiment model where the command line puts the first one."""
    folder = workplace / "saved_models" / "sentiment"
    folder.mkdir(parents=True)
    (folder / "1").symlink_to(trained[1])


@pytest.fixture
def little_work(monkeypatch):
    """Makes data sets and experiments small, and lets a search's trials end at once."""
    import tensorflow_datasets as tfds

    from rnnapps import processes
    from rnnapps.experiments import word_classes

    short = functools.partial(tfds.download.DownloadConfig, max_examples_per_split=3)
    monkeypatch.setattr("tensorflow_datasets.core.download.DownloadConfig", short)
    # What it announces on standard output is no part of an example.
    for name in ("_log_download_bytes", "_log_download_done"):
        monkeypatch.setattr(tfds.core.DatasetBuilder, name, lambda self: None)
    small = dataclasses.replace(word_classes.REDUCED, sentences=200, epochs=1)
    for size in ("REDUCED", "FULL"):
        monkeypatch.setattr(word_classes, size, small)

    def ask(question, messages, task_class, config, hold=(), run=None, splits=None):
        if question == "survey":
            return {"metric": "log_loss", "mode": "min", "data": config["data"]}
        (Path(run) / "checkpoints").mkdir(parents=True, exist_ok=True)
        score = 1 / config["units"]
        return {"score": score, "epochs": 2, "error": None, "memory": 2**30}

    monkeypatch.setattr(processes, "ask", ask)
