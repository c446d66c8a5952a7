"""The models that a folder of exports holds."""

import dataclasses
import functools
import json
from pathlib import Path
from typing import Any

import yaml

from rnnapps.errors import UserError
from rnnapps.folders import reading, task_of


@dataclasses.dataclass(frozen=True)
class Found:
    """The newest version of an exported model.

    Args:
        task: the task that its card names.
        version: the version's folder, such as `saved_models/sentiment/1`.
    """

    task: str
    version: Path

    @property
    def name(self) -> str:
        """The name of the folder of versions."""
        return self.version.parent.name

    @property
    def variant(self) -> str:
        """What its name says besides its task; nothing for a folder named as the task."""
        return self.name.removeprefix(self.task).strip("-_. ")

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The settings that it was trained with."""
        with reading(self.version / "config.yaml"):
            return yaml.safe_load(self._read("config.yaml"))

    @functools.cached_property
    def metrics(self) -> dict[str, Any]:
        """What it was measured to do."""
        with reading(self.version / "metrics.json"):
            return json.loads(self._read("metrics.json"))

    @property
    def card(self) -> str:
        """The model card, in Markdown."""
        return self._read("MODEL_CARD.md")

    @property
    def limits(self) -> str:
        """What the model card says that the model cannot do."""
        return self.card.rpartition("\n## Limits\n")[2].strip()

    @property
    def is_of_sample(self) -> bool:
        """Whether it was trained on the bundled sample of its task."""
        return self.config["data"] == "sample"

    def asset_lines(self, name: str) -> list[str]:
        """Reads a file of one entry a line, such as the labels, from the model's assets."""
        return self._read(f"assets/{name}").split("\n")[:-1]

    def _read(self, name: str) -> str:
        file = self.version / name
        with reading(file):
            return file.read_text(encoding="utf-8")


def find(directory: Path) -> list[Found]:
    """Finds the newest version of each model in a folder of exports.

    Args:
        directory: the folder of folders of versions, such as `saved_models`. What else is in it is
            passed over.

    Returns:
        The models, by the names of their folders.

    Raises:
        UserError: there is none.
    """
    versions = filter(None, map(_newest, sorted(directory.glob("*/"))))
    found = [Found(task_of(version), version) for version in versions]
    if not found:
        raise UserError(
            f"{directory} has no exported model: `python pipelines/sentiment.py` trains one, and "
            "--models names another folder"
        )
    return found


def _newest(folder: Path) -> Path | None:
    versions = [
        file.parent
        for file in folder.glob("*/MODEL_CARD.md")
        if file.parent.name.isdecimal() and (file.parent / "saved_model.pb").exists()
    ]
    return max(versions, key=lambda version: int(version.name), default=None)
