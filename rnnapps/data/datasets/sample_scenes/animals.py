"""Dogs, cats and horses that run, sit, stand and jump, drawn from a few strokes.

An animal is its proportions and the shape of its head and tail; an action is where the feet are and
how far the trunk is raised. What is drawn looks to the right. Lengths are hundredths of what a dog
takes up from nose to tail, x to the right and y up.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rnnapps.data.datasets.sample_scenes.masks import UNIT, Point, grid, mask, stroke

# The layers of a drawing, from the back.
LAYERS = FAR, COAT, DARK, COLLAR, EYE = tuple(range(5))


class Stroke(NamedTuple):
    """A line with round ends in one of the layers."""

    layer: int
    points: tuple[Point, ...]
    radius: int


class Build(NamedTuple):
    """What an animal looks like; the head is seen from the shoulder, the tail from the hip."""

    trunk: int
    girth: int
    leg: int
    thigh: int
    shin: int
    head: tuple[Stroke, ...]
    tail: Stroke
    streaming_tail: Stroke
    stripes: tuple[int, ...] = ()  # in hundredths of the trunk, from the hip


class Pose(NamedTuple):
    """What it does; knees and feet in hundredths of a leg, seen from the shoulder or hip."""

    rise: tuple[int, int, int]  # to the shoulder: so much to the right, so much up, of so much
    height: int  # of the hip
    front: tuple[tuple[Point, Point], ...]
    rear: tuple[tuple[Point, Point], ...]
    streams: bool = False


BUILDS = {
    "dog": Build(
        trunk=42,
        girth=11,
        leg=33,
        thigh=6,
        shin=4,
        head=(
            Stroke(COAT, ((2, 4), (16, 22)), 8),
            Stroke(COAT, ((18, 26),), 11),
            Stroke(COAT, ((22, 24), (37, 21)), 5),
            Stroke(DARK, ((13, 31), (7, 16)), 5),
            Stroke(DARK, ((39, 23),), 3),
            Stroke(COLLAR, ((2, 18), (17, 9)), 3),
            Stroke(EYE, ((23, 29),), 2),
        ),
        tail=Stroke(COAT, ((-8, 4), (-20, 14), (-23, 28)), 3),
        streaming_tail=Stroke(COAT, ((-8, 4), (-22, 12), (-32, 22)), 3),
    ),
    "cat": Build(
        trunk=40,
        girth=9,
        leg=22,
        thigh=5,
        shin=4,
        head=(
            Stroke(COAT, ((0, 2), (10, 12)), 8),
            Stroke(COAT, ((13, 18),), 13),
            Stroke(COAT, ((4, 24), (3, 36)), 3),
            Stroke(COAT, ((9, 26), (4, 34)), 3),
            Stroke(COAT, ((22, 24), (24, 36)), 3),
            Stroke(COAT, ((17, 26), (23, 34)), 3),
            Stroke(DARK, ((20, 12), (24, 12)), 2),
            Stroke(EYE, ((10, 20),), 2),
            Stroke(EYE, ((20, 20),), 2),
        ),
        tail=Stroke(COAT, ((-6, 2), (-20, 8), (-25, 24), (-22, 40), (-14, 46)), 3),
        streaming_tail=Stroke(COAT, ((-6, 2), (-24, 6), (-36, 18), (-48, 22)), 3),
        stripes=(15, 40, 65),
    ),
    "horse": Build(
        trunk=46,
        girth=14,
        leg=50,
        thigh=6,
        shin=4,
        head=(
            Stroke(COAT, ((2, 4), (14, 22), (20, 38)), 9),
            Stroke(COAT, ((20, 40), (40, 24)), 7),
            Stroke(COAT, ((17, 44), (17, 54)), 3),
            Stroke(DARK, ((-4, 12), (6, 28), (12, 46)), 5),
            Stroke(EYE, ((25, 40),), 2),
        ),
        tail=Stroke(DARK, ((-10, 8), (-20, 0), (-22, -30)), 5),
        streaming_tail=Stroke(DARK, ((-10, 8), (-26, 12), (-46, 4)), 5),
    ),
}

POSES = {
    "stand": Pose(
        rise=(1, 0, 1),
        height=100,
        front=(((4, -50), (2, -94)), ((-14, -50), (-16, -94))),
        rear=(((-12, -50), (-2, -94)), ((10, -50), (16, -94))),
    ),
    "run": Pose(
        rise=(1, 0, 1),
        height=88,
        front=(((48, -22), (104, -52)), ((36, -40), (72, -80))),
        rear=(((-40, -36), (-100, -58)), ((-26, -44), (-62, -82))),
        streams=True,
    ),
    "jump": Pose(
        rise=(4, 3, 5),
        height=120,
        front=(((58, 6), (76, -40)), ((44, -10), (50, -56))),
        rear=(((-40, -48), (-78, -92)), ((-22, -56), (-50, -104))),
        streams=True,
    ),
}


@functools.cache
def animal_layers(animal: str, action: str, scale: int) -> tuple[np.ndarray, int]:
    """Draws an animal that looks to the right.

    Args:
        animal: `"dog"`, `"cat"` or `"horse"`.
        action: `"run"`, `"sit"`, `"stand"` or `"jump"`.
        scale: Pixels that 100 units take.

    Returns:
        The masks of its five layers, from the back: the far legs, the coat, what is dark, the
        collar (of dogs), the eyes, int64 `[5, height, width]` from 0 to 16; and the row on which
        it stands.
    """
    strokes = list(_strokes(animal, action))
    left = min(x - s.radius for s in strokes for x, _ in s.points)
    right = max(x + s.radius for s in strokes for x, _ in s.points)
    bottom = min(y - s.radius for s in strokes for _, y in s.points)
    top = max(y + s.radius for s in strokes for _, y in s.points)
    width = (right - left) * scale // 100 + 2
    height = (top - bottom) * scale // 100 + 2
    x, y = grid(width, height)
    covered = np.zeros((len(LAYERS), y.size, x.size), bool)  # [layers, rows, columns]
    for layer, points, radius in strokes:
        placed = [_scaled(x - left, top - y, scale) for x, y in points]
        covered[layer] |= stroke(x, y, placed, radius * scale * UNIT // 100)
    return np.stack([mask(layer) for layer in covered]), top * scale // 100


def _scaled(x: int, y: int, scale: int) -> Point:
    return x * scale * UNIT // 100 + UNIT, y * scale * UNIT // 100 + UNIT


def _strokes(animal: str, action: str) -> Iterator[Stroke]:
    build = BUILDS[animal]
    if action == "sit":
        hip = (0, build.girth + 1)
        shoulder = (build.trunk * 3 // 5, hip[1] + build.trunk * 4 // 5)
        yield from _sitting_legs(build, hip, shoulder)
        yield Stroke(COAT, (hip, (-build.girth - 4, 4), (-build.girth - 20, 5)), 4)
    else:
        pose = POSES[action]
        right, up, of = pose.rise
        hip = (0, build.leg * pose.height // 100)
        shoulder = (build.trunk * right // of, hip[1] + build.trunk * up // of)
        for joint, legs in ((shoulder, pose.front), (hip, pose.rear)):
            for layer, (knee, foot) in zip((COAT, FAR), legs, strict=True):
                knee, foot = (_moved(joint, x * build.leg, y * build.leg) for x, y in (knee, foot))
                yield Stroke(layer, (joint, knee), build.thigh)
                yield Stroke(layer, (knee, foot), build.shin)
        yield _from(hip, build.streaming_tail if pose.streams else build.tail)
    yield Stroke(COAT, (hip, shoulder), build.girth)
    yield Stroke(COAT, (shoulder,), build.girth + 2)
    yield from _stripes(build, hip, shoulder)
    for part in build.head:
        yield _from(shoulder, part)


def _sitting_legs(build: Build, hip: Point, shoulder: Point) -> Iterator[Stroke]:
    for layer, ahead in ((FAR, 9), (COAT, 2)):
        foot = (shoulder[0] + ahead, build.shin)
        yield Stroke(layer, (shoulder, foot), build.shin + 1)
        yield Stroke(layer, (foot, (foot[0] + 5, foot[1])), build.shin)
    yield Stroke(COAT, ((hip[0] + 2, hip[1] + 2),), build.girth + 3)
    yield Stroke(COAT, ((hip[0], build.shin), (hip[0] + build.girth + 9, build.shin)), build.shin)


def _stripes(build: Build, hip: Point, shoulder: Point) -> Iterator[Stroke]:
    right, up = shoulder[0] - hip[0], shoulder[1] - hip[1]
    for part in build.stripes:
        inner = _moved(hip, part * right, part * up)
        outer = (
            inner[0] - up * build.girth // build.trunk,
            inner[1] + right * build.girth // build.trunk,
        )
        yield Stroke(DARK, (inner, outer), 2)


def _moved(point: Point, right: int, up: int) -> Point:
    """A point moved by hundredths."""
    return point[0] + right // 100, point[1] + up // 100


def _from(joint: Point, part: Stroke) -> Stroke:
    points = tuple((joint[0] + x, joint[1] + y) for x, y in part.points)
    return part._replace(points=points)
