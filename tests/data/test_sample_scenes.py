import hashlib
import itertools
import os
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from scipy import ndimage

from rnnapps.data.datasets.sample_scenes import animals, masks, scene, wording
from rnnapps.data.datasets.sample_scenes.drawing import PAINTS, render
from rnnapps.data.datasets.sample_scenes.scene import HELD_OUT, Animals, Group, Pair, all_scenes
from rnnapps.data.datasets.sample_scenes.wording import attributes_right, captions, parse

KINDS = (Group, Pair, Animals)
DIGEST = "8e419f5baacbd948b07b595bda2229a7ca206be5ad44f28665d7185326f60ac5"


@pytest.fixture(scope="module")
def splits():
    return scene.splits()


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (
            HELD_OUT,
            "a dog is running through the water; a dog runs through the water; there is a dog "
            "running through the water; we see a dog running through the water; a picture of a dog "
            "that runs through the water",
        ),
        (
            Animals(2, "cat", "sit", "beach", "night", "orange"),
            "two cats are sitting on the beach at night with an orange ball; two cats sit on the "
            "beach at night with an orange ball; there are two cats sitting on the beach at night "
            "with an orange ball; we see two cats sitting on the beach at night with an orange "
            "ball; a picture of two cats that sit on the beach at night with an orange ball",
        ),
        (
            Group(1, "large", "orange", "star", "plain"),
            "a large orange star on a white background; there is a large orange star on a white "
            "background; on a white background there is a large orange star; a large star on a "
            "white background is orange; an orange star on a white background is large",
        ),
        (
            Group(3, "small", "purple", "square", "night sky"),
            "three small purple squares in the night sky; there are three small purple squares in "
            "the night sky; in the night sky there are three small purple squares; three small "
            "squares in the night sky are purple; three purple squares in the night sky are small",
        ),
        (
            Pair("red", "square", "above", "orange", "circle", "water"),
            "a red square is above an orange circle on the water; an orange circle is below a red "
            "square on the water; on the water there is a red square above an orange circle; there "
            "is a red square on the water with an orange circle below it; there is an orange "
            "circle on the water with a red square above it",
        ),
        (
            Pair("blue", "square", "left of", "blue", "star", "grass"),
            "a blue square is to the left of a blue star on the grass; a blue star is to the right "
            "of a blue square on the grass; on the grass there is a blue square to the left of a "
            "blue star; there is a blue square on the grass with a blue star to its right; there "
            "is a blue star on the grass with a blue square to its left",
        ),
    ],
    ids=str,
)
def test_captions_are_as_one_says_them(shown, told):
    assert captions(shown) == tuple(told.split("; "))


def test_every_caption_tells_its_scene_and_no_other():
    scenes = [shown for kind in KINDS for shown in all_scenes(kind)]
    assert len(set(scenes)) == len(scenes) == 480 + 3_040 + 1_728
    told = Counter(caption for shown in scenes for caption in captions(shown))
    assert len(told) == 5 * len(scenes) and max(told.values()) == 1
    assert all(parse(caption) == shown for shown in scenes for caption in captions(shown))
    for row in re.split("=+ =+\n", wording.__doc__)[2].splitlines():
        assert parse(row[:63]), row


def test_what_is_no_caption_has_no_scene():
    assert parse(" A dog is  running through the water .") == HELD_OUT
    for text in ("", "a dog", "a dogs is running through the water", "a orange star on the grass"):
        assert parse(text) is None
    same = "a red star is to the left of a red star on the grass"
    assert parse(same) is None and parse(same.replace("red", "blue", 1))


def test_attributes_are_counted():
    assert attributes_right("a dog runs through the water", HELD_OUT) == (6, 6)
    assert attributes_right("two cats run through the water", HELD_OUT) == (4, 6)
    assert attributes_right("a dog sits on the street at night", HELD_OUT) == (3, 6)
    told = "a dog runs through the water with a red ball"
    assert attributes_right(told, HELD_OUT) == (5, 6)
    assert attributes_right("a red star on the water is large", HELD_OUT) == (0, 6)
    assert attributes_right("a dog a dog", HELD_OUT) == (0, 6)
    pair = Pair("red", "star", "left of", "blue", "circle", "plain")
    turned = "a blue circle is to the right of a red star on a white background"
    assert attributes_right(turned, pair) == (6, 6)
    assert attributes_right(turned.replace("right", "left"), pair) == (2, 6)


def test_dev_and_test_are_new_combinations(splits):
    assert {split: len(shown) for split, shown in splits.items()} == scene.SPLIT_SIZES
    train, dev, test = (set(splits[split]) for split in ("train", "dev", "test"))
    assert not train & dev and not train & test and not dev & test
    assert HELD_OUT in test
    for kind in KINDS:
        assert min(sum(isinstance(s, kind) for s in part) for part in (dev, test)) > 30


def test_any_two_attributes_are_together_in_train(splits):
    def pairs(scenes):
        for shown in scenes:
            for pair in itertools.combinations(zip(shown._fields, shown, strict=True), 2):
                yield type(shown), pair

    known = Counter(pairs(splits["train"]))
    used = set(pairs(splits["dev"] + splits["test"]))
    assert min(known[pair] for pair in used) >= 8
    words = {split: _words(scenes) for split, scenes in splits.items()}
    assert set(words["dev"]) | set(words["test"]) <= set(words["train"])
    assert min(words["train"].values()) >= 100 and len(words["train"]) < 100


def test_pictures_are_the_same_whatever_the_hash_seed(splits):
    assert _digest(splits) == DIGEST
    script = (
        "import hashlib\n"
        "from rnnapps.data.datasets.sample_scenes.drawing import render\n"
        "from rnnapps.data.datasets.sample_scenes.scene import splits\n"
        "scenes = splits()\n"
        "digest = hashlib.sha256(repr(scenes).encode())\n"
        "for seed, shown in enumerate(scenes['test'][:150]):\n"
        "    digest.update(render(shown, seed).tobytes())\n"
        "print(digest.hexdigest())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == DIGEST


@pytest.mark.parametrize("kind", KINDS)
def test_each_attribute_shows(kind):
    values = [sorted(set(column)) for column in zip(*all_scenes(kind), strict=True)]
    shown = all_scenes(kind)[100]
    for field, options in zip(kind._fields, values, strict=True):
        pictures = [render(shown._replace(**{field: value}), seed=3) for value in options]
        for one, other in itertools.combinations(pictures, 2):
            assert (np.abs(one.astype(int) - other).max(axis=-1) > 40).sum() > 25, field
    assert (render(shown, seed=3) != render(shown, seed=4)).any()
    picture = render(shown, seed=3)
    assert picture.shape == (64, 64, 3) and picture.dtype == np.uint8


def test_shapes_are_as_many_and_as_large_as_said(splits):
    areas = {"small": [], "large": []}
    for seed, shown in enumerate(s for s in splits["test"] if isinstance(s, Group)):
        found = _paint(render(shown, seed), shown.color)
        labels, count = ndimage.label(found)
        sizes = ndimage.sum_labels(found, labels, range(1, count + 1))
        sizes = sizes[sizes > 4]
        assert len(sizes) == shown.count, shown
        areas[shown.size] += sizes.tolist()
    assert max(areas["small"]) < 0.8 * min(areas["large"])


def test_pairs_are_placed_as_said(splits):
    for seed, shown in enumerate(s for s in splits["test"] if isinstance(s, Pair)):
        if shown.first_color == shown.second_color:
            continue
        picture = render(shown, seed)
        (y0, x0), (y1, x1) = (
            ndimage.center_of_mass(_paint(picture, color))
            for color in (shown.first_color, shown.second_color)
        )
        along, across = (x1 - x0, y1 - y0) if shown.relation == "left of" else (y1 - y0, x1 - x0)
        assert along > 12 and abs(across) < along, shown


def test_days_are_lighter_than_nights_in_every_scene_of_animals():
    for shown in all_scenes(Animals):
        day, night = (render(shown._replace(time=time), seed=0) for time in scene.TIMES)
        assert np.median(day) > np.median(night) + 10, shown


def test_masks_have_the_areas_of_geometry():
    x, y = masks.grid(40, 40)
    area = masks.UNIT**2 * masks.FULL

    def covered(figure):
        return masks.mask(figure).sum() / area * masks.UNIT**2

    rectangle = [(16, 8), (96, 8), (96, 72), (16, 72)]
    assert covered(masks.polygon(x, y, rectangle)) == covered(masks.polygon(x, y, rectangle[::-1]))
    assert covered(masks.polygon(x, y, rectangle)) == 10 * 8
    arrow = [(160, 20), (300, 300), (160, 160), (20, 300)]  # not convex
    assert covered(masks.polygon(x, y, arrow)) == pytest.approx(140 * 140 / 64, rel=0.01)
    assert covered(masks.disc(x, y, (160, 160), 120)) == pytest.approx(np.pi * 15**2, rel=0.01)
    stroke = masks.stroke(x, y, [(60, 60), (180, 220)], 24)
    assert covered(stroke) == pytest.approx(2 * 3 * 25 + np.pi * 3**2, rel=0.01)


def test_what_animals_do_shows_in_their_outlines():
    for animal in scene.ANIMALS:
        sizes = {}
        for action in scene.ACTIONS:
            layers, ground = animals.animal_layers(animal, action, 40)
            assert layers.min() == 0 and layers.max() == 16
            shown = [layer.any() for layer in layers]
            assert shown == [True, True, True, animal == "dog", True]
            _, height, width = sizes[action] = layers.shape
            assert abs(ground - height) <= 3
        assert sizes["sit"][2] < sizes["stand"][2] < sizes["run"][2]
        assert sizes["run"][1] <= sizes["stand"][1] < sizes["jump"][1]


def test_builder_offers_the_same_pictures(tmp_path, monkeypatch):
    from rnnapps.data.datasets.sample_scenes import sample_scenes_dataset_builder as module

    monkeypatch.setattr(scene, "SPLIT_SIZES", {"train": 30, "dev": 10, "test": 10})
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "sample_scenes"
    assert str(builder.version) in builder.RELEASE_NOTES
    number = 0
    for split, scenes in scene.splits().items():
        examples = builder.as_dataset(split=split).as_numpy_iterator()
        read = {example["name"].decode(): example for example in examples}
        assert len(read) == len(scenes)
        for shown in scenes:
            example = read[f"scene-{number:06d}.png"]
            assert tuple(text.decode() for text in example["captions"]) == captions(shown)
            assert (example["image"] == render(shown, number)).all()
            number += 1


def _digest(splits):
    digest = hashlib.sha256(repr(splits).encode())
    for seed, shown in enumerate(splits["test"][:150]):
        digest.update(render(shown, seed).tobytes())
    return digest.hexdigest()


def _words(scenes):
    return Counter(w for shown in scenes for told in captions(shown) for w in told.split())


def _paint(picture, color):
    return np.abs(picture.astype(int) - PAINTS[color]).max(axis=-1) <= 16
