"""Where scenes take place: flat backgrounds of shapes, and landscapes with a sky for animals."""

from collections.abc import Callable

import numpy as np

from rnnapps.data.datasets.sample_scenes.canvas import RGB, SIZE, WHITE, Canvas

GROUNDS: dict[str, RGB] = {
    "plain": (244, 243, 238),
    "grass": (128, 172, 76),
    "water": (70, 158, 190),
    "night sky": (22, 24, 56),
    "beach": (232, 208, 150),
    "snow": (240, 244, 250),
    "forest": (112, 100, 62),
    "street": (104, 104, 110),
}
SKY = (172, 212, 244)
NIGHT = np.array((26, 30, 74))
CLOUD = (238, 244, 250)
MOON = (240, 236, 208)
STARS = (236, 232, 200)


def background(canvas: Canvas, name: str):
    """Fills a canvas with what is behind shapes.

    Args:
        canvas: What to paint on.
        name: `"plain"`, `"grass"`, `"water"` or `"night sky"`.
    """
    ground = canvas.shade(GROUNDS[name])
    canvas.pixels[:] = ground
    if name == "grass":
        _blades(canvas, 0, ground)
    elif name == "water":
        _waves(canvas, 0, ground)
    elif name == "night sky":
        canvas.specks(0, SIZE, 34, STARS)


def landscape(canvas: Canvas, place: str, is_night: bool):
    """Fills a canvas with what is around animals.

    Args:
        canvas: What to paint on.
        place: `"grass"`, `"water"`, `"beach"`, `"snow"`, `"forest"` or `"street"`.
        is_night: Whether it is dark, with stars above.
    """
    horizon = canvas.between(20, 25)
    ground = canvas.shade(GROUNDS[place])
    canvas.pixels[:horizon] = canvas.shade(SKY)
    canvas.pixels[horizon:] = ground
    _LANDSCAPES[place](canvas, horizon, ground)
    has_sky = place not in ("forest", "street")
    if has_sky and not is_night:
        _clouds(canvas, horizon)
    if is_night:
        canvas.pixels[:] = at_night(canvas.pixels)
        canvas.specks(0, 8, 9, STARS)
        if has_sky:
            canvas.disc(canvas.between(6, SIZE - 6), canvas.between(5, 9), 3, MOON)


def at_night(color: np.ndarray) -> np.ndarray:
    """Tells what colors look like in the dark.

    Args:
        color: int64 `[…, 3]`.

    Returns:
        The same shape.
    """
    return (color * 5 + NIGHT * 8) // 16


def _blades(canvas: Canvas, top: int, ground: np.ndarray):
    for _ in range(70):
        x, y = canvas.between(0, SIZE - 1), canvas.between(top, SIZE - 3)
        canvas.pixels[y : y + 3, x] = ground + canvas.choose((-24, 18))


def _waves(canvas: Canvas, top: int, water: np.ndarray):
    for _ in range(25):
        x, y = canvas.between(0, SIZE - 1), canvas.between(top, SIZE - 1)
        canvas.pixels[y, x : x + canvas.between(4, 9)] = water + canvas.choose((-26, 34))


def _beach(canvas: Canvas, horizon: int, sand: np.ndarray):
    canvas.pixels[horizon - 8 : horizon - 1] = canvas.shade((52, 134, 186))
    canvas.pixels[horizon - 1 : horizon + 1] = WHITE
    canvas.specks(horizon + 1, SIZE, 60, sand - 26)


def _snow(canvas: Canvas, horizon: int, snow: np.ndarray):
    for _ in range(3):
        x, radius = canvas.between(0, SIZE), canvas.between(8, 14)
        canvas.disc(x, horizon + radius // 2, radius, (222, 230, 244))
    canvas.pixels[horizon + 6 :] = snow
    canvas.specks(0, SIZE, 70, WHITE)


def _forest(canvas: Canvas, horizon: int, _: np.ndarray):
    canvas.pixels[:horizon] = canvas.shade((34, 84, 48))
    canvas.specks(0, horizon, 110, (62, 122, 62))
    x = canvas.between(0, 6)
    while x < SIZE:
        width = canvas.between(2, 4)
        canvas.pixels[: horizon + canvas.between(0, 4), x : x + width] = (84, 56, 36)
        x += width + canvas.between(4, 9)
    canvas.specks(horizon, SIZE, 70, (84, 112, 50))


def _street(canvas: Canvas, horizon: int, _: np.ndarray):
    x = 0
    while x < SIZE:
        width, top = canvas.between(12, 20), canvas.between(1, 8)
        wall = canvas.shade(canvas.choose(((198, 122, 92), (214, 190, 148), (150, 158, 176))))
        canvas.pixels[top:horizon, x : x + width - 1] = wall
        for row in range(top + 3, horizon - 4, 6):
            for column in range(x + 3, x + width - 4, 5):
                canvas.pixels[row : row + 3, column : column + 2] = (60, 70, 92)
        x += width
    canvas.pixels[horizon : horizon + 4] = (176, 172, 168)
    for x in range(canvas.between(0, 8), SIZE, 14):
        canvas.pixels[horizon + 14 : horizon + 16, x : x + 8] = (236, 232, 214)


def _clouds(canvas: Canvas, horizon: int):
    for _ in range(2):
        x, y = canvas.between(-4, SIZE - 10), canvas.between(2, horizon - 8)
        canvas.pixels[y : y + 3, max(x, 0) : x + 14] = CLOUD
        canvas.pixels[y - 2 : y, max(x + 3, 0) : x + 10] = CLOUD


_LANDSCAPES: dict[str, Callable[[Canvas, int, np.ndarray], None]] = {
    "grass": _blades,
    "water": _waves,
    "beach": _beach,
    "snow": _snow,
    "forest": _forest,
    "street": _street,
}
