"""What every experiment is called by and gives back."""

import dataclasses
import importlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from matplotlib.figure import Figure
from PIL import Image


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out of an experiment.

    Args:
        claims: the claims, in words, and whether the numbers bear each of them out.
        numbers: the numbers, as JSON has them: by name, in lists, or one by one.
        figures: the pictures, by the names of their files.
        texts: other files that were written, such as HTML, by their names.
    """

    claims: Mapping[str, bool]
    numbers: Mapping[str, Any]
    figures: Mapping[str, Figure]
    texts: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def write(self, name: str, folder: str | Path) -> list[Path]:
        """Writes `NAME.json`, a PNG for each figure, and the texts.

        Args:
            name: the name of the experiment.
            folder: where the files go; it is made if there is none.

        Returns:
            The files.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        told = {"claims": dict(self.claims), "numbers": self.numbers}
        contents = {f"{name}.json": json.dumps(told, indent=1) + "\n", **self.texts}
        for file, content in contents.items():
            (folder / file).write_text(content, encoding="utf-8")
        pictures = [f"{figure}.png" for figure in self.figures]
        for file, figure in zip(pictures, self.figures.values(), strict=True):
            (folder / file).write_bytes(_png(figure))
        return [folder / file for file in (*contents, *pictures)]


def _png(figure: Figure) -> bytes:
    """Returns a picture of few colours, which is half as large."""
    drawn, written = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
        written, "png", optimize=True
    )
    return written.getvalue()


def run(name: str, reduced: bool = False, seed: int = 0) -> Result:
    """Runs an experiment.

    Args:
        name: one of `rnnapps.experiments.NAMES`.
        reduced: whether it is to be small, of seconds. Default: `False`.
        seed: what the weights and the data are drawn from. Default: 0.

    Returns:
        What came out.

    Example:
    >>> result = run("word-classes", reduced=True)
    >>> result.figures["word-classes"].savefig("tree.png")
    >>> result.numbers["window of 1"]["perplexity"] > 1
    True
    """
    module = importlib.import_module(f"rnnapps.experiments.{name.replace('-', '_')}")
    keras.utils.set_random_seed(seed)
    return module.run(module.REDUCED if reduced else module.FULL, seed)


def rounded(values, digits: int = 4):
    """Returns numbers as JSON has them, to so many significant digits."""
    if isinstance(values, Mapping):
        return {str(name): rounded(value, digits) for name, value in values.items()}
    if isinstance(values, str | bool | np.bool_):
        return str(values) if isinstance(values, str) else bool(values)
    if isinstance(values, list | tuple) or np.ndim(values):
        return [rounded(value, digits) for value in values]
    number = np.asarray(values).item()
    return float(f"{number:.{digits}g}") if isinstance(number, float) else number
