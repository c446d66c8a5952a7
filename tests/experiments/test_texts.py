"""What the experiments draw is what they say."""

import dataclasses
import random

import numpy as np

from rnnapps.experiments import both_sides, learning_to_execute, memory_gap, memory_texts
from rnnapps.experiments.learning_to_execute import output, program
from rnnapps.experiments.word_classes import purity


def test_memory_texts_have_their_gap_and_their_answer():
    gaps = np.array([4, 9, 30])
    ids, answers = memory_texts.draw(np.random.default_rng(0), gaps)
    for row, gap, answer in zip(ids, gaps, answers, strict=True):
        words = memory_texts.written(row)
        country, language = list(memory_texts.LANGUAGES.items())[answer]
        assert words[:5] == ["I", "grew", "up", "in", country]
        assert words[-4:] == [".", "I", "speak", "fluent"]
        assert len(words) == memory_texts.length(gap) and len(words) - 5 == gap
        assert language not in words
    assert ids.shape[1] == memory_texts.length(30)


def test_blanks_are_told_about_on_one_side_and_as_often_on_each():
    texts = both_sides.texts()
    beginnings, ends, counts = {}, {}, {}
    for sentence, answer, side, pair in texts:
        assert sentence.count("___") == 1
        blank = sentence.index("___")
        known = beginnings if side == 1 else ends
        rest = sentence[: blank + 2] if side == 1 else sentence[blank:]
        known.setdefault((pair, " ".join(rest)), set()).add(answer)
        counts.setdefault((pair, side), []).append(answer)
    # The side on which nothing is told is the same whatever belongs into the blank.
    assert all(len(of) == len(both_sides.FILLINGS) for of in (beginnings | ends).values())
    assert len(counts) == 36 and all(
        sorted(of) == [0] * 3 + [1] * 3 + [2] * 3 for of in counts.values()
    )


def test_programs_run_and_print_one_number():
    rng = random.Random(0)
    for _ in range(200):
        text = program(rng, length=2, nesting=3)
        assert int(output(text)) == float(output(text))
        assert text.count("print(") == 1
    assert output("b=3\nfor x in range(4):\n  b=b+10\nprint((b-1))") == "42"


def test_purity_by_hand():
    clusters = np.array([1, 1, 1, 2, 2, 3])
    assert purity(clusters, ["a", "a", "b", "b", "b", "a"]) == 5 / 6


def test_programs_are_learnt_by_a_curriculum():
    """The full size takes minutes; this sees that each kind is drawn, learnt from and measured."""
    size = dataclasses.replace(
        learning_to_execute.REDUCED, steps=12, batch_size=8, units=8, tests=8, nestings=(1, 2)
    )
    kinds = [(1, 1), (2, 1)]
    right = learning_to_execute._learn_programs("combined", kinds, size, seed=0)
    assert right.shape == (2, 2) and (right >= 0).all() and (right <= 1).all()
    assert (right[:, 1] <= right[:, 0] + 1e-9).all()


def test_rows_to_add_have_a_mark_in_each_half():
    rows, sums = memory_gap.rows_to_add(np.random.default_rng(0), 20, 9)
    values, marks = rows[..., 0], rows[..., 1]
    assert set(marks.ravel().tolist()) == {0, 1}
    assert (marks[:, :4].sum(axis=1) == 1).all() and (marks[:, 4:].sum(axis=1) == 1).all()
    np.testing.assert_allclose((values * marks).sum(axis=1, keepdims=True), sums, rtol=1e-6)
