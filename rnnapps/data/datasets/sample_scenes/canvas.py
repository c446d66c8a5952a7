"""Paper, paint and chance: what pictures are drawn with."""

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from rnnapps.data.datasets.sample_scenes.masks import FULL, UNIT, disc, grid, mask

SIZE = 64

RGB = tuple[int, int, int]
Option = TypeVar("Option")

WHITE = (250, 250, 250)
BLACK = (30, 28, 30)


class Canvas:
    """A square picture, and the chance with which it is painted.

    Args:
        seed: Draws what is left to chance.
    """

    def __init__(self, seed: int):
        self._rng = random.Random(seed)
        self.pixels = np.zeros((SIZE, SIZE, 3), np.int64)  # [rows, columns, colors]

    def image(self) -> np.ndarray:
        """Returns the picture, uint8 `[64, 64, 3]`."""
        return self.pixels.clip(0, 255).astype(np.uint8)

    def blend(self, covered: np.ndarray, left: int, top: int, color: Sequence[int]):
        """Paints what a mask covers, as far as it is within the picture.

        Args:
            covered: int64 `[height, width]`, how many of the 16 parts of each pixel.
            left: Where the mask begins.
            top: The same, downwards.
            color: Red, green and blue.
        """
        height, width = covered.shape
        rows = slice(max(top, 0), max(top + height, 0))
        columns = slice(max(left, 0), max(left + width, 0))
        under = self.pixels[rows, columns]
        part = covered[rows.start - top :, columns.start - left :]
        part = part[: under.shape[0], : under.shape[1], None]  # [rows, columns, 1]
        under += (np.asarray(color) - under) * part // FULL

    def disc(self, x: int, y: int, radius: int, color: Sequence[int]):
        """Paints a disc about the middle of a pixel."""
        axes = grid(2 * radius + 3, 2 * radius + 3)
        middle = (radius + 1) * UNIT + UNIT // 2
        covered = mask(disc(*axes, (middle, middle), radius * UNIT))
        self.blend(covered, x - radius - 1, y - radius - 1, color)

    def specks(self, top: int, bottom: int, count: int, color: Sequence[int]):
        """Paints single pixels anywhere between two heights."""
        for _ in range(count):
            self.pixels[self.between(top, bottom - 1), self.between(0, SIZE - 1)] = color

    def shade(self, color: RGB) -> np.ndarray:
        """Makes a color a little lighter or darker, and a little off."""
        light = self.between(-10, 10)
        return np.array([value + light + self.between(-5, 5) for value in color])

    # Only `random()` is promised to give the same numbers in every version of Python.

    def between(self, first: int, last: int) -> int:
        """Draws a whole number, from the first to the last."""
        return first + int(self._rng.random() * (last - first + 1))

    def choose(self, options: Sequence[Option]) -> Option:
        """Draws one of several."""
        return options[self.between(0, len(options) - 1)]
