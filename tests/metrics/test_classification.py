"""Metrics against numbers worked out by hand."""

import numpy as np
import pytest

from rnnapps.metrics import classification

LABELS = np.array([0, 0, 1, 1])
PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]])


def test_classification():
    measured = classification.scores(LABELS, PROBABILITIES)
    assert measured["accuracy"] == 0.75
    # Class 0: precision 1, recall 1/2; class 1: precision 2/3, recall 1.
    assert measured["macro_f1"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert measured["log_loss"] == pytest.approx(-np.log([0.9, 0.4, 0.8, 0.7]).mean())
    # Each example has a bin of its own.
    assert measured["calibration_error"] == pytest.approx((0.1 + 0.6 + 0.2 + 0.3) / 4)


def test_calibration_error_compares_accuracy_with_confidence_in_each_bin():
    probabilities = np.array([[0.75, 0.25]] * 4 + [[0.0, 1.0]])
    labels = np.array([0, 0, 0, 1, 1])
    assert classification.calibration_error(labels, probabilities) == pytest.approx(0)
    assert classification.calibration_error(1 - labels, probabilities) == pytest.approx(
        (4 * 0.5 + 1) / 5
    )


def test_a_class_that_never_occurs_is_counted():
    probabilities = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    measured = classification.scores(np.array([0, 1]), probabilities)
    assert measured["accuracy"] == 1 and measured["macro_f1"] == pytest.approx(2 / 3)


def test_report_of_nothing_right():
    lines = classification.report([0, 1], [1, 0], ["bad", "good"]).splitlines()
    assert lines[1].split() == ["bad", "0.0000", "0.0000", "0.0000", "1", "1", "0"]


def test_report_shows_the_counts():
    predicted = PROBABILITIES.argmax(-1)
    assert classification.confusion(LABELS, predicted, 2).tolist() == [[1, 1], [0, 2]]
    lines = classification.report(LABELS, predicted, ["bad", "good"]).splitlines()
    assert lines[1].split() == ["bad", "1.0000", "0.5000", "0.6667", "2", "1", "1"]
    assert lines[2].split() == ["good", "0.6667", "1.0000", "0.8000", "2", "3", "2"]
