"""Scores of translations: sacreBLEU's own examples of extremes, groups by length."""

import pytest

from rnnapps.metrics import translation

REFERENCES = ["The dog runs through the deep water.", "A cat sleeps on the warm red sofa."]


def test_extremes():
    perfect = translation.scores(REFERENCES, REFERENCES)
    assert perfect["length_ratio"] == 1
    assert [perfect[name] for name in ("bleu", "bleu_lc", "chrf", "chrf_lc")] == pytest.approx(
        [100] * 4
    )
    nothing = translation.scores(["", ""], REFERENCES)
    assert nothing == dict.fromkeys(nothing, 0.0)


def test_small_letters_count_for_one_of_two():
    lowered = [sentence.lower() for sentence in REFERENCES]
    found = translation.scores(lowered, REFERENCES)
    assert found["bleu"] < 99 < found["bleu_lc"] and found["chrf"] < 99 < found["chrf_lc"]


def test_bleu_by_hand():
    """Of 7 words 6 are right, of 6 pairs 4, of 5 triples 2, of 4 quadruples 1; as long."""
    written = ["The dog runs into the water."]
    found = translation.scores(written, ["The dog runs through the water."])
    expected = 100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 8) ** 0.25  # a count of 0 is smoothed to 1/2
    assert found["bleu"] == pytest.approx(expected, abs=0.01)
    assert found["length_ratio"] == 1


def test_signatures_say_what_was_computed():
    found = translation.signatures()
    assert "case:mixed" in found["bleu"] and "tok:13a" in found["bleu"]
    assert "case:lc" in found["bleu_lc"] and "tok:13a" in found["bleu_lc"]
    assert "case:mixed" in found["chrf"] and "case:lc" in found["chrf_lc"]
    assert all("nrefs:1" in signature for signature in found.values())


def test_groups_hold_each_length_once():
    lengths = [3, 3, 3, 3, 4, 9, 20, 21]
    written = [*["w x y z"] * 5, *["a b c d e"] * 3]
    references = [*["w x y z"] * 5, *["a b c d f"] * 3]
    found = translation.bleu_by_length(written, references, lengths, num_groups=4)
    assert list(found) == ["3", "4-9", "20-21"]
    assert found["3"] == pytest.approx(100) and found["4-9"] > found["20-21"]
    assert translation.bleu_by_length([], [], []) == {}
    assert list(translation.bleu_by_length(["a"], ["a"], [0])) == ["0"]
