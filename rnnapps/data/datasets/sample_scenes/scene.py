"""What the pictures of the captioning sample show.

A scene is one of three kinds: shapes of one sort (`Group`), two shapes of which one is beside or
above the other (`Pair`), and animals that do something somewhere (`Animals`). A scene is nothing
but its attributes; where exactly its things are drawn, in what shade and before which clouds, is
left to `drawing`, and how it is put into words to `wording`.

The splits share no scene: those of dev and test combine attributes in ways that train does not
hold, though train holds any two of them together. The module needs only the standard library.
"""

import functools
import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

SPLIT_SIZES = {"train": 12_000, "dev": 300, "test": 500}

COLORS = ("red", "orange", "green", "blue", "purple")
SHAPES = ("circle", "square", "triangle", "star")
SIZES = ("small", "large")
RELATIONS = ("left of", "above")
BACKGROUNDS = ("plain", "grass", "water", "night sky")

ANIMALS = ("dog", "cat", "horse")
ACTIONS = ("run", "sit", "stand", "jump")
PLACES = ("grass", "water", "beach", "snow", "forest", "street")
TIMES = ("day", "night")
BALLS = ("none", *COLORS)


class Group(NamedTuple):
    """One to three equal shapes: "three small red stars on the grass"."""

    count: int
    size: str
    color: str
    shape: str
    background: str


class Pair(NamedTuple):
    """Two shapes: "a red circle is to the left of a blue star".

    The second is to the right of the first, or below it: whatever the words say, a scene has only
    one such form.
    """

    first_color: str
    first_shape: str
    relation: str
    second_color: str
    second_shape: str
    background: str


class Animals(NamedTuple):
    """One animal or two: "a dog is running through the water".

    "At night" is said, "by day" not; "with a red ball" is said, that there is none is not.
    """

    count: int
    animal: str
    action: str
    place: str
    time: str
    ball: str


Scene = Group | Pair | Animals

# Kept for showing a trained model something it has never seen: a scene of the test split.
HELD_OUT = Animals(1, "dog", "run", "water", "day", "none")

# Of ten pictures, so many are of the kind; of its scenes, dev and test may each take such a share.
KINDS = {Group: (3, 0.1), Pair: (3, 0.1), Animals: (4, 0.1)}


@functools.cache
def all_scenes(kind: type[Scene]) -> tuple[Scene, ...]:
    """Lists every scene of a kind.

    Args:
        kind: `Group`, `Pair` or `Animals`.

    Returns:
        The scenes, each once.
    """
    things = (COLORS, SHAPES)
    values = {
        Group: ((1, 2, 3), SIZES, *things, BACKGROUNDS),
        Pair: (*things, RELATIONS, *things, BACKGROUNDS),
        Animals: ((1, 2), ANIMALS, ACTIONS, PLACES, TIMES, BALLS),
    }
    scenes = (kind(*attributes) for attributes in itertools.product(*values[kind]))
    return tuple(s for s in scenes if not isinstance(s, Pair) or s[:2] != s[3:5])


def splits() -> dict[str, list[Scene]]:
    """Draws the scenes of every split, the same on every machine.

    Returns:
        `{"train": …, "dev": …, "test": …}`: a scene for each picture. The splits share none; within
        a split, scenes come again where there are fewer than pictures.
    """
    rng = random.Random(0)
    drawn: dict[str, list[Scene]] = {split: [] for split in SPLIT_SIZES}
    for kind, (of_ten, share) in KINDS.items():
        scenes = [scene for scene in _shuffled(all_scenes(kind), rng) if scene != HELD_OUT]
        first = round(len(scenes) * share)
        parts = {"test": scenes[:first], "dev": scenes[first : 2 * first]}
        parts["train"] = scenes[2 * first :]
        if kind is Animals:
            parts["test"].insert(0, HELD_OUT)
        for split, size in SPLIT_SIZES.items():
            drawn[split] += itertools.islice(itertools.cycle(parts[split]), size * of_ten // 10)
    return {split: _shuffled(scenes, rng) for split, scenes in drawn.items()}


def _shuffled(scenes: Sequence[Scene], rng: random.Random) -> list[Scene]:
    # Only `random()` is promised to give the same numbers in every version of Python.
    return sorted(scenes, key=lambda _: rng.random())
