"""Occlusion against classifiers whose evidence is known."""

import numpy as np
import pytest

from rnnapps.inspection.occlusion import occlusion


def test_the_evidence_of_a_linear_classifier_is_its_weights():
    """Log odds that are a sum over the words: without a word, the sum is less by its weight."""
    weights = {"good": 1.5, "bad": -2.25, "food": 0.125}

    def probabilities(texts):
        bits = [sum(weights.get(word, 0) for word in text.split()) - 0.5 for text in texts]
        positive = 1 / (1 + 2.0 ** -np.array(bits))  # [texts]
        return np.stack([1 - positive, positive], axis=1)

    found = occlusion(probabilities, "good food , bad service")
    words = [found.text[start:end] for start, end in found.spans]
    assert words == ["good", "food", "bad", "service"]
    assert found.evidence(1) == pytest.approx([weights.get(word, 0) for word in words])
    assert found.evidence(0) == pytest.approx(-found.evidence(1))
    assert found.whole[1] == pytest.approx(1 / (1 + 2**1.125))
    spread = found.by_character(found.evidence(1))
    assert spread.shape == (len(found.text),)
    assert spread[:10] == pytest.approx([1.5] * 4 + [0] + [0.125] * 4 + [0])


def test_a_word_is_left_out_whole_and_all_are_asked_in_one_batch():
    asked = []

    def probabilities(texts):
        asked.append(texts)
        return [[0.25, 0.75]] * len(texts)

    found = occlusion(probabilities, "«Don't!» – Zoë's well-known café")
    assert asked == [
        [
            "«Don't!» – Zoë's well-known café",
            "«!» – Zoë's well-known café",
            "«Don't!» –  well-known café",
            "«Don't!» – Zoë's  café",
            "«Don't!» – Zoë's well-known ",
        ]
    ]
    assert found.evidence(1).tolist() == [0] * 4


def test_a_text_without_words_and_a_certain_answer():
    nothing = occlusion(lambda texts: [[0.5, 0.5]] * len(texts), " ?! ")
    assert nothing.spans == [] and nothing.evidence(0).shape == (0,)
    certain = occlusion(lambda texts: [[1.0, 0.0] if "a" in t else [0.0, 1.0] for t in texts], "a")
    assert np.isfinite(certain.evidence(0)).all() and certain.evidence(0)[0] > 40
