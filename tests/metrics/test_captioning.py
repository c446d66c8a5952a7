"""Scores of captions: by hand, and the figures of the COCO tools for the same words."""

import math

import pytest

from rnnapps.metrics import captioning

WRITTEN = [
    "a brown dog runs through the shallow water",
    "two children play",
    "a man a man a man rides a red bike",
    "",
    "dog",
]
REFERENCES = [
    [
        "A brown dog is running through the water .",
        "A dog runs through water .",
        "The dog splashes in the river .",
    ],
    ["Two children are playing in the park .", "Two kids play with a ball ."],
    [
        "A man rides a bike down a hill .",
        "A man on a red bike .",
        "The cyclist races .",
        "A man rides his bike .",
    ],
    ["A woman reads a book .", "A woman sits on a bench ."],
    ["A dog sleeps ."],
]


def test_words():
    text = 'A dog\'s T-shirt -- it doesn’t fit : 1,000.5 "inches" ( big_small ) été 犬 !'
    assert captioning.words(text) == (
        "a dog 's t-shirt it doesn 't fit 1,000.5 inches big small été 犬".split()
    )
    assert captioning.words(" ... ") == []


def test_figures_of_the_coco_tools():
    """What pycocoevalcap 1.2 computes of these words, CIDEr-D and BLEU."""
    found = captioning.scores(WRITTEN, REFERENCES)
    assert found["cider"] == pytest.approx(1.2393312127141776, rel=1e-9)
    coco = [0.5687541231837413, 0.49154098562433496, 0.3825524464752151, 0.2386391039745997]
    assert [found[f"bleu{n}"] for n in range(1, 5)] == pytest.approx(
        [100 * score for score in coco], rel=1e-5
    )


def test_cider_by_hand():
    """Of three images two have "a" and "dog", one "red"."""
    references = [[["a", "red", "dog"], ["dog"]], [["a", "dog"]], [["sky"]]]
    written = [["red", "dog"], ["dog", "dog"], ["sky"]]
    dog, red = math.log(3 / 2), math.log(3)
    near = math.exp(-1 / 72)  # lengths that differ by one
    with_red = near * (
        (red**2 + dog**2) / (math.hypot(red, dog) * math.hypot(dog, red, dog))  # one word
        + red**2 / (red * math.hypot(red, red))  # "red dog" of "a red" and "red dog"
    )
    without = near * dog**2 / (math.hypot(red, dog) * dog)
    first = (with_red + without) / 2
    # "dog" twice counts once, and "a" is missing; "dog dog" is in no reference.
    second = dog * dog / (2 * dog * math.hypot(dog, dog))
    third = 1.0
    expected = 10 * (first + second + third) / 4 / 3
    assert captioning.cider(written, references) == pytest.approx(expected, rel=1e-12)
    assert captioning.cider([], []) == 0


def test_extremes():
    perfect = captioning.scores([some[-1].upper() for some in REFERENCES], REFERENCES)
    for name in ("bleu1", "bleu2", "bleu3", "chrf"):
        assert perfect[name] == pytest.approx(100), name
    nothing = captioning.scores(["", " ."], REFERENCES[:2], captioning.fingerprints(["a dog"]))
    assert nothing.pop("novel") == 1 and nothing.pop("distinct") == 0.5
    assert nothing == dict.fromkeys(nothing, 0.0)
    assert set(captioning.scores([], [], captioning.fingerprints([])).values()) == {0.0}
    with pytest.raises(ValueError, match="Received: 1 captions and 1 lists, 1 of them empty"):
        captioning.scores(["a"], [[]])


def test_what_is_written():
    written = ["A dog runs.", "a dog runs", "a cat sits here", "a dog runs"]
    learnt = captioning.fingerprints(["A dog runs !", "a cat", "a dog RUNS"])
    assert learnt.shape == (2,) and learnt.dtype == "uint64"
    found = captioning.scores(written, [["a dog"]] * 4, learnt)
    assert found["caption_length"] == 13 / 4 and found["vocabulary"] == 6
    assert found["distinct"] == 2 / 4 and found["novel"] == 1 / 4
    assert "novel" not in captioning.scores(written, [["a dog"]] * 4)


def test_signatures_say_what_was_computed():
    found = captioning.signatures()
    assert list(found) == ["bleu1", "bleu2", "bleu3", "bleu4", "chrf", "cider"]
    assert all("nrefs:5" in told and "no-punctuation" in told for told in found.values())
