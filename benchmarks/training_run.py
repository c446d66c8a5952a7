"""A training of a pipeline's script, from its start to its export, as every benchmark times it."""

import csv
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class TrainingRun(NamedTuple):
    """What a training came to.

    Attributes:
        metrics: What its run folder's `metrics.json` holds.
        epochs: The rows of its `history.csv`.
        version: The export.
        seconds: From the start of the process to its end.
    """

    metrics: dict[str, Any]
    epochs: list[dict[str, str]]
    version: Path
    seconds: float

    def __str__(self) -> str:
        """Tells what it took."""
        return (
            f"{self.metrics['parameters']:,} parameters, {self.seconds:.0f} s from start to export,"
            f" {self.metrics['seconds']:.0f} s of training in all"
        )


def train(
    script: Path, data: Sequence[str], settings: Mapping[str, Any], out: Path, export: Path
) -> TrainingRun:
    """Trains with the command line; a run that was stopped is taken up.

    Args:
        script: The pipeline's script.
        data: Flags of the data.
        settings: All other settings by name.
        out: The run folder.
        export: The folder of exported versions.

    Returns:
        What it came to.

    Raises:
        subprocess.CalledProcessError: The training failed, and has told why.
    """
    command = [sys.executable, script, "train", *data]
    command += [f"--{name}={value}" for name, value in settings.items()]
    command += [f"--out={out}", f"--export={export}"]
    started = time.monotonic()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - started
    with (out / "history.csv").open() as file:
        epochs = list(csv.DictReader(file))
    return TrainingRun(
        metrics=json.loads((out / "metrics.json").read_text()),
        epochs=epochs,
        # "export: DIR", or of a run that was finished "…; its export is DIR".
        version=Path(re.split("export(?: is|:) ", done.stdout.strip().splitlines()[-1])[-1]),
        seconds=seconds,
    )
