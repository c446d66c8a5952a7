"""Five captions of a scene, and the scene of a caption.

Every caption of a scene tells all of its attributes, so that each can be checked:

=============================================================== ==================
Caption                                                         Tells
=============================================================== ==================
two large orange squares on a white background                  what there is
in the night sky there is a small purple star                   the place first
three small circles on the water are blue                       the color last
a red star is to the left of a blue circle on the grass         left before right
there is a blue circle on the grass with a red star to its left right before left
a dog is running through the water                              what is being done
a picture of two cats that sit on the beach at night            what is done
we see a horse standing in the snow with a blue ball            what is there too
=============================================================== ==================

The module needs only the standard library.
"""

import functools

from rnnapps.data.datasets.sample_scenes.scene import (
    KINDS,
    Animals,
    Group,
    Pair,
    Scene,
    all_scenes,
)

NUMBERS = {1: "a", 2: "two", 3: "three"}
PARTICIPLES = {"run": "running", "sit": "sitting", "stand": "standing", "jump": "jumping"}
ON_BACKGROUND = {
    "plain": "on a white background",
    "grass": "on the grass",
    "water": "on the water",
    "night sky": "in the night sky",
}
IN_PLACE = {
    "grass": "on the grass",
    "water": "in the water",
    "beach": "on the beach",
    "snow": "in the snow",
    "forest": "in the forest",
    "street": "on the street",
}
THROUGH_PLACE = {
    "grass": "across the grass",
    "water": "through the water",
    "beach": "along the beach",
    "snow": "through the snow",
    "forest": "through the forest",
    "street": "along the street",
}
# How the first of a pair is seen from the second, and the second from the first; then from "it".
SEEN = {
    "left of": ("to the left of", "to the right of", "to its left", "to its right"),
    "above": ("above", "below", "above it", "below it"),
}


def captions(scene: Scene) -> tuple[str, ...]:
    """Puts a scene into words in five ways.

    Args:
        scene: The scene.

    Returns:
        Five captions that differ and all tell the whole scene, in lower case and without a full
        stop; no other scene has any of them.

    Example:

    >>> captions(Animals(1, "dog", "run", "water", "day", "none"))[0]
    'a dog is running through the water'
    """
    match scene:
        case Group():
            return _of_group(scene)
        case Pair():
            return _of_pair(scene)
        case Animals():
            return _of_animals(scene)
    raise ValueError(f"scene is a Group, a Pair or Animals. Received: scene={scene!r}")


def parse(caption: str) -> Scene | None:
    """Finds the scene that a caption tells: the inverse of `captions`.

    Args:
        caption: A text; case, spaces between words and a full stop do not count.

    Returns:
        The scene; None where the text is no caption of any.
    """
    return _scenes().get(" ".join(caption.lower().rstrip(" .").split()))


def attributes_right(caption: str, scene: Scene) -> tuple[int, int]:
    """Counts the attributes of a scene that a caption tells rightly.

    Args:
        caption: A text, such as a model's.
        scene: The scene of the picture, such as `parse` finds from one of its captions.

    Returns:
        How many attributes are right, and how many there are; a text that is no caption, or one of
        another kind of scene, has none right.
    """
    told = parse(caption)
    if type(told) is not type(scene):
        return 0, len(scene)
    return sum(ours == theirs for ours, theirs in zip(told, scene, strict=True)), len(scene)


@functools.cache
def _scenes() -> dict[str, Scene]:
    """All captions there are; few enough to be listed."""
    return {
        caption: scene
        for kind in KINDS
        for scene in all_scenes(kind)
        for caption in captions(scene)
    }


def _of_group(scene: Group) -> tuple[str, ...]:
    count, size, color, shape, background = scene
    where = ON_BACKGROUND[background]
    are = "is" if count == 1 else "are"
    things = _counted(count, size, color, shape)
    return (
        f"{things} {where}",
        f"there {are} {things} {where}",
        f"{where} there {are} {things}",
        f"{_counted(count, size, shape)} {where} {are} {color}",
        f"{_counted(count, color, shape)} {where} {are} {size}",
    )


def _of_pair(scene: Pair) -> tuple[str, ...]:
    where = ON_BACKGROUND[scene.background]
    first = _counted(1, scene.first_color, scene.first_shape)
    second = _counted(1, scene.second_color, scene.second_shape)
    of_second, of_first, before_it, behind_it = SEEN[scene.relation]
    return (
        f"{first} is {of_second} {second} {where}",
        f"{second} is {of_first} {first} {where}",
        f"{where} there is {first} {of_second} {second}",
        f"there is {first} {where} with {second} {behind_it}",
        f"there is {second} {where} with {first} {before_it}",
    )


def _of_animals(scene: Animals) -> tuple[str, ...]:
    count, animal, action, place, time, ball = scene
    where = (THROUGH_PLACE if action == "run" else IN_PLACE)[place]
    where += " at night" if time == "night" else ""
    where += f" with {_counted(1, ball, 'ball')}" if ball != "none" else ""
    are, do = ("is", action + "s") if count == 1 else ("are", action)
    doing = PARTICIPLES[action]
    animals = _counted(count, animal)
    return (
        f"{animals} {are} {doing} {where}",
        f"{animals} {do} {where}",
        f"there {are} {animals} {doing} {where}",
        f"we see {animals} {doing} {where}",
        f"a picture of {animals} that {do} {where}",
    )


def _counted(count: int, *words: str) -> str:
    """An article or number before adjectives and a noun."""
    *adjectives, noun = words
    if count > 1:
        noun += "s"
    article = "an" if count == 1 and words[0][0] in "aeiou" else NUMBERS[count]
    return " ".join([article, *adjectives, noun])
