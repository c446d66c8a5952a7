"""The checkpoint of a training run: one file, whole or not there at all."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnapps.folders import reading, replacing


def write(file: Path, progress: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Writes a checkpoint: plain values by name, and arrays in order, in one `.npz` file."""
    with replacing(file) as beside:
        np.savez(beside, *arrays, progress=json.dumps(progress))


def read(file: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Reads what `write` wrote.

    Raises:
        UserError: the file is damaged.
    """
    with reading(file), np.load(file) as kept:
        arrays = [kept[f"arr_{i}"] for i in range(len(kept.files) - 1)]
        return json.loads(str(kept["progress"])), arrays
