"""Entities counted by hand, as conlleval counts them."""

import pytest

from rnnapps.metrics.entities import (
    Found,
    Pair,
    accuracy,
    confusion,
    frequent_errors,
    pairs_of,
    report,
    scores,
)


@pytest.mark.parametrize(
    ("true", "predicted", "right", "entities", "found", "strict"),
    [
        # An I- behind O begins an entity, but strictly it is none.
        ("O B-X I-X", "O I-X I-X", 1, 1, 1, 0),
        # The type changes inside: two entities, none of them right.
        ("B-X I-X I-X", "B-X I-Y I-X", 0, 1, 3, 0),
        # Two that touch against one, and the other way round.
        ("B-X B-X", "B-X I-X", 0, 2, 1, 0),
        ("B-X I-X", "B-X B-X", 0, 1, 2, 0),
        # Right tokens, wrong type.
        ("B-X I-X O", "B-Y I-Y O", 0, 1, 1, 0),
        # One right of three and four.
        ("B-X O B-Y B-X", "B-X B-X B-X O", 1, 3, 3, 1),
        ("O O", "O O", 0, 0, 0, 0),
    ],
)
def test_hand_made_cases(true, predicted, right, entities, found, strict):
    measured = scores([true.split()], [predicted.split()])
    precision, recall = right / found if found else 0, right / entities if entities else 0
    assert measured["precision"] == pytest.approx(precision)
    assert measured["recall"] == pytest.approx(recall)
    total = entities + found
    assert measured["f1"] == pytest.approx(2 * right / total if total else 0)
    if not strict:
        assert measured["strict_f1"] == 0


def test_counts_are_over_all_sentences():
    true = [["B-X", "O"], ["B-X"], ["B-Y"]]
    predicted = [["B-X", "B-Y"], ["B-X"], ["O"]]
    measured = scores(true, predicted)
    assert measured["precision"] == measured["recall"] == pytest.approx(2 / 3)
    assert accuracy(true, predicted) == measured["accuracy"] == 0.5
    assert accuracy([], []) == 0
    lines = report(true, predicted).splitlines()
    assert lines[1].split() == ["X", "1.0000", "1.0000", "1.0000", "2", "2", "2"]
    assert lines[2].split() == ["Y", "0.0000", "0.0000", "0.0000", "1", "1", "0"]
    assert len(report([["O"]], [["O"]]).splitlines()) == 1


def test_pairs_confusion_and_errors():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"], ["B-LOC", "O"]]
    predicted = [["O", "B-PER", "O", "B-ORG"], ["O", "B-PER"], ["O", "O"]]
    pairs = pairs_of(true, predicted)
    assert pairs[0] == [
        Pair(Found(3, 4, "LOC"), Found(3, 4, "ORG")),
        Pair(Found(0, 2, "PER"), Found(1, 2, "PER")),
    ]
    assert pairs[1] == [Pair(Found(0, 1, "LOC"), None), Pair(None, Found(1, 2, "PER"))]
    assert confusion(pairs, ["LOC", "ORG", "PER"]).tolist() == [
        [0, 1, 0, 2],
        [0, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 2, 0],
    ]
    tokens = [["Ann", "Lee", "in", "Rome"], ["Rome", "won"], ["Rome", "fell"]]
    lines = frequent_errors(tokens, pairs).splitlines()
    assert lines[1].split(maxsplit=1) == ["2", "LOC 'Rome' -> none"]
    assert sorted(line.split(maxsplit=1)[1] for line in lines[2:]) == [
        "LOC 'Rome' -> ORG 'Rome'",
        "PER 'Ann Lee' -> PER 'Lee'",
        "none -> PER 'won'",
    ]
    many = [[f"w{i}"] for i in range(150)]
    told = frequent_errors(many, pairs_of([["B-X"]] * 150, [["O"]] * 150)).splitlines()
    assert len(told) == 102 and told[-1] == "and 50 more"
