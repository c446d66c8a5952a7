"""Pictures of scenes, drawn in whole numbers only: the same pixels on every machine.

What a scene leaves open is drawn by chance: where things are and how they are shaded, which way
animals look and the colour of their coats, blades, waves, clouds, trees and houses.
"""

import functools
import itertools

import numpy as np

from rnnapps.data.datasets.sample_scenes.animals import animal_layers
from rnnapps.data.datasets.sample_scenes.backgrounds import (
    GROUNDS,
    at_night,
    background,
    landscape,
)
from rnnapps.data.datasets.sample_scenes.canvas import BLACK, RGB, SIZE, WHITE, Canvas
from rnnapps.data.datasets.sample_scenes.masks import UNIT, disc, grid, mask, polygon
from rnnapps.data.datasets.sample_scenes.scene import Animals, Group, Pair, Scene

PAINTS: dict[str, RGB] = {
    "red": (214, 36, 40),
    "orange": (248, 138, 20),
    "green": (24, 148, 66),
    "blue": (40, 84, 214),
    "purple": (124, 50, 168),
}
# One is seen only where it differs so much from the ground, all three colors taken together.
COATS: dict[str, tuple[RGB, ...]] = {
    "dog": ((196, 150, 98), (240, 236, 228)),
    "cat": ((138, 134, 134), (228, 140, 60), (44, 38, 38)),
    "horse": ((122, 76, 42), (240, 236, 228), (44, 38, 38)),
}
CONTRAST = 140
COLLAR = (216, 40, 40)
FOAM = np.array((226, 242, 250))

# Half of the height and width of shapes, their black outline and its white rim, in pixels.
RADII = {"small": 8, "large": 13}
RADIUS_OF_PAIR = 11
BALL_RADIUS = 5
OUTLINE = 2
RIM = 1

# Corners of the shapes in hundredths of that half, y down.
CORNERS = {
    "square": ((-84, -84), (84, -84), (84, 84), (-84, 84)),
    "triangle": ((0, -98), (100, 84), (-100, 84)),
    "star": (
        *((0, -105), (27, -36), (100, -32), (43, 14), (62, 85)),
        *((0, 46), (-62, 85), (-43, 14), (-100, -32), (-27, -36)),
    ),
}

# How many pixels 100 units of an animal take, by how many there are.
SCALES = {
    1: {"dog": 46, "cat": 46, "horse": 37},
    2: {"dog": 31, "cat": 31, "horse": 25},
}


def render(scene: Scene, seed: int) -> np.ndarray:
    """Draws a picture of a scene.

    Args:
        scene: What it shows.
        seed: Draws what the scene leaves open.

    Returns:
        uint8 `[64, 64, 3]`: red, green and blue.

    Raises:
        ValueError: It is no scene.

    Example:

    >>> image = render(Animals(1, "dog", "run", "water", "day", "none"), seed=7)
    >>> image.shape, image.dtype
    ((64, 64, 3), dtype('uint8'))
    """
    canvas = Canvas(seed)
    match scene:
        case Group():
            _draw_group(canvas, scene)
        case Pair():
            _draw_pair(canvas, scene)
        case Animals():
            _draw_animals(canvas, scene)
        case _:
            raise ValueError(f"scene is a Group, a Pair or Animals. Received: scene={scene!r}")
    return canvas.image()


def _draw_group(canvas: Canvas, scene: Group):
    background(canvas, scene.background)
    radius = RADII[scene.size]
    color = canvas.shade(PAINTS[scene.color])
    for x, y in _places_apart(canvas, scene.count, radius):
        _draw_shape(canvas, scene.shape, color, x, y, radius)


def _places_apart(canvas: Canvas, count: int, radius: int) -> list[tuple[int, int]]:
    """Draws places where things of such a radius do not touch."""
    margin = radius + RIM
    while True:
        axes = [[canvas.between(margin, SIZE - 1 - margin) for _ in range(count)] for _ in "xy"]
        places = list(zip(*axes, strict=True))
        pairs = itertools.combinations(places, 2)
        if all((x - u) ** 2 + (y - v) ** 2 >= (2 * radius + 3) ** 2 for (x, y), (u, v) in pairs):
            return places


def _draw_pair(canvas: Canvas, scene: Pair):
    background(canvas, scene.background)
    # Each has a half of the picture.
    margin = RADIUS_OF_PAIR + RIM
    middle = canvas.between(SIZE // 3, SIZE * 2 // 3)
    places = [
        (canvas.between(start + margin, start + SIZE // 2 - 1 - margin), middle + off)
        for start, off in ((0, canvas.between(-5, 5)), (SIZE // 2, canvas.between(-5, 5)))
    ]
    if scene.relation == "above":
        places = [(x, y) for y, x in places]
    shapes = (scene.first_shape, scene.second_shape)
    colors = (scene.first_color, scene.second_color)
    for (x, y), shape, color in zip(places, shapes, colors, strict=True):
        _draw_shape(canvas, shape, canvas.shade(PAINTS[color]), x, y, RADIUS_OF_PAIR)


def _draw_shape(canvas: Canvas, shape: str, color: np.ndarray, x: int, y: int, radius: int):
    # The same edge around every color, before every background.
    reach = radius + 2
    for paint, size in ((WHITE, radius + RIM), (BLACK, radius), (color, radius - OUTLINE)):
        canvas.blend(_shape_mask(shape, size, reach), x - reach, y - reach, paint)


@functools.cache
def _shape_mask(shape: str, radius: int, reach: int) -> np.ndarray:
    """A shape in the middle of a square of `2 · reach + 1` pixels."""
    x, y = (axis - (reach * UNIT + UNIT // 2) for axis in grid(2 * reach + 1, 2 * reach + 1))
    if shape == "circle":
        return mask(disc(x, y, (0, 0), radius * UNIT))
    corners = [(u * radius * UNIT // 100, v * radius * UNIT // 100) for u, v in CORNERS[shape]]
    return mask(polygon(x, y, corners))


def _draw_animals(canvas: Canvas, scene: Animals):
    count, animal, action, place, time, ball = scene
    is_night = time == "night"
    landscape(canvas, place, is_night)
    layers, foot = animal_layers(animal, action, SCALES[count][animal])
    layers = canvas.choose((layers, layers[:, :, ::-1]))
    _, height, width = layers.shape
    ground = np.array(GROUNDS[place])
    ground = at_night(ground) if is_night else ground
    fitting = [c for c in COATS[animal] if np.abs(ground - c).sum() > CONTRAST]
    coat = canvas.shade(canvas.choose(fitting))
    lift = height // 6 if action == "jump" else 0
    # Two of them have a half of the picture each, the second nearer.
    room = SIZE // count
    line = canvas.between(50, 57) if count == 1 else canvas.between(42, 47)
    for number in range(count):
        left = number * room + (room - width) // 2
        left += canvas.between(-1, 1) * max(room - width, 0) // 3
        left = min(max(left, 0), SIZE - width)
        top = max(line - foot - lift, 0)
        if place != "water":
            _draw_shadow(canvas, left + width // 6, left + width - width // 6, line)
        _draw_animal(canvas, layers, left, top, coat)
        if place == "water":
            _draw_splash(canvas, action, left, left + width, line, is_night)
        line += canvas.between(6, 11)
    if ball != "none":
        x, y = canvas.between(BALL_RADIUS + 2, SIZE - 3 - BALL_RADIUS), canvas.between(54, 58)
        _draw_shape(canvas, "circle", canvas.shade(PAINTS[ball]), x, y, BALL_RADIUS)


def _draw_animal(canvas: Canvas, layers: np.ndarray, left: int, top: int, coat: np.ndarray):
    # What is dark is still to be seen on a dark coat.
    is_dark = coat.sum() < 200
    dark = coat + 50 if is_dark else coat // 2
    far = coat + 24 if is_dark else coat * 7 // 10
    eye = WHITE if coat.sum() < 330 else BLACK
    for layer, color in zip(layers, (far, coat, dark, COLLAR, eye), strict=True):
        canvas.blend(layer, left, top, color)


def _draw_shadow(canvas: Canvas, left: int, right: int, line: int):
    for row, inset in ((line - 1, 2), (line, 0), (line + 1, 2)):
        covered = canvas.pixels[row, left + inset : right - inset]
        covered[:] = covered * 7 // 10


def _draw_splash(canvas: Canvas, action: str, left: int, right: int, line: int, is_night: bool):
    """The water about the feet, and the drops where an animal moves."""
    foam, surface = FOAM, np.array(GROUNDS["water"])
    if is_night:
        foam, surface = at_night(foam), at_night(surface)
    if action != "jump":
        under = canvas.pixels[line - 3 : line + 2, left:right]
        under[:] = (under + 5 * surface) // 6
        for _ in range(5):
            x, y = canvas.between(left, right - 1), line - canvas.between(3, 4)
            canvas.pixels[y, x : x + 4] = foam
    if action in ("run", "jump"):
        for _ in range(18):
            x, y = canvas.between(left, right - 1), line - canvas.between(-1, 7)
            canvas.pixels[y, x] = foam
