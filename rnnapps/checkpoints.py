"""Files that are whole or not there at all, and the checkpoint of a training run among them."""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Gives a path beside a file to write to; what was written there then takes the file's place.

    Until it is whole and on disk the old file stays, whatever happens to the process.

    Args:
        file: the file to write; its folder exists.

    Example:
        with replacing(Path("metrics.json")) as beside:
            beside.write_text("{}")
    """
    beside = file.with_name(f"writing-{file.name}")
    try:
        yield beside
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)


def write_text(file: Path, text: str) -> None:
    """Writes a whole text file in the place of the old one."""
    with replacing(file) as beside:
        beside.write_text(text, encoding="utf-8")


def write(file: Path, progress: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Writes a checkpoint: plain values by name, and arrays in order, in one `.npz` file."""
    with replacing(file) as beside:
        np.savez(beside, *arrays, progress=json.dumps(progress))


def read(file: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Reads what `write` wrote."""
    with np.load(file) as kept:
        arrays = [kept[f"arr_{i}"] for i in range(len(kept.files) - 1)]
        return json.loads(str(kept["progress"])), arrays
