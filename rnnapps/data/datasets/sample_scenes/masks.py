"""Masks of simple figures, in whole numbers only: the same pixels on every machine.

A mask says of each pixel how many of its 16 parts the figure covers. Coordinates are eighths of a
pixel, so that the centres of a pixel's 4 by 4 parts are whole.
"""

from collections.abc import Sequence

import numpy as np

UNIT = 8  # units in a pixel
FULL = 16  # parts of a pixel

Point = tuple[int, int]


def grid(width: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists the centres of the parts of pixels.

    Args:
        width: Pixels from left to right.
        height: Pixels from top to bottom.

    Returns:
        x int64 `[1, 4 · width]` and y int64 `[4 · height, 1]`.
    """
    x, y = (np.arange(1, UNIT * pixels, UNIT // 4) for pixels in (width, height))
    return x[None, :], y[:, None]


def disc(x: np.ndarray, y: np.ndarray, center: Point, radius: int) -> np.ndarray:
    """Tells the points of a disc.

    Args:
        x: Points, with `y` of shapes that broadcast to `[rows, columns]`.
        y: The same for the other axis.
        center: Its middle.
        radius: How far it reaches.

    Returns:
        bool `[rows, columns]`.
    """
    return (x - center[0]) ** 2 + (y - center[1]) ** 2 <= radius**2


def stroke(x: np.ndarray, y: np.ndarray, points: Sequence[Point], radius: int) -> np.ndarray:
    """Tells the points of a line with round ends and corners.

    Args:
        x: Points, with `y` of shapes that broadcast to `[rows, columns]`.
        y: The same for the other axis.
        points: Where it begins, turns and ends; of one point, it is a disc.
        radius: Half of its width.

    Returns:
        bool `[rows, columns]`.
    """
    covered = disc(x, y, points[0], radius)
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        dx, dy = x1 - x0, y1 - y0
        squared = dx**2 + dy**2
        along = (x - x0) * dx + (y - y0) * dy
        across = (x - x0) * dy - (y - y0) * dx
        covered |= (along >= 0) & (along <= squared) & (across**2 <= radius**2 * squared)
        covered |= disc(x, y, (x1, y1), radius)
    return covered


def polygon(x: np.ndarray, y: np.ndarray, points: Sequence[Point]) -> np.ndarray:
    """Tells the points inside a polygon.

    Args:
        x: Points, with `y` of shapes that broadcast to `[rows, columns]`.
        y: The same for the other axis.
        points: Its corners, in either direction.

    Returns:
        bool `[rows, columns]`.
    """
    inside = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    for (x0, y0), (x1, y1) in zip(points, [*points[1:], points[0]], strict=True):
        # A ray to the left crosses the edge where the point is on its right.
        spans = (y0 > y) != (y1 > y)
        right = (x - x0) * abs(y1 - y0) > (y - y0) * (x1 - x0) * (1 if y1 > y0 else -1)
        inside ^= spans & right
    return inside


def mask(covered: np.ndarray) -> np.ndarray:
    """Counts the covered parts of each pixel.

    Args:
        covered: bool `[4 · height, 4 · width]`.

    Returns:
        int64 `[height, width]`, from 0 to 16.
    """
    rows, columns = covered.shape
    return covered.reshape(rows // 4, 4, columns // 4, 4).sum(axis=(1, 3))
