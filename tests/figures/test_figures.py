"""The pictures show the numbers that they are given."""

import io

import numpy as np

from rnnapps.figures.confusion import confusion
from rnnapps.figures.curves import curves


def test_confusion_shows_each_count():
    axes = confusion(np.array([[5, 1], [0, 7]]), ["bad", "good"]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["5", "1", "0", "7"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["bad", "good"]


def test_confusion_of_many_or_odd_classes():
    counts = np.eye(1000, dtype=int) * 3
    counts[7, 9] = counts[999, 0] = 5
    names = [f"$\\bad{i}$" for i in range(1000)]
    figure = confusion(counts, names)
    figure.savefig(io.BytesIO(), format="png")
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(shown) == 25 and {names[i] for i in (0, 7, 9, 999)} <= set(shown)


def test_curves_mark_the_epoch_that_was_kept():
    history = {
        "loss": [0.9, 0.5, 0.3],
        "accuracy": [0.5, 0.8, 0.9],
        "val_accuracy": [0.6, 0.8, 0.7],
        "val_log_loss": [0.8, 0.5, 0.6],
    }
    panels = (("loss", "log_loss"), ("accuracy", "accuracy"))
    left, right = curves(history, panels, "accuracy", "max").axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in (*left.lines, *right.lines)}
    assert drawn["train loss"] == history["loss"]
    assert drawn["dev accuracy"] == history["val_accuracy"]
    assert all(axes.lines[-1].get_xdata()[0] == 2 for axes in (left, right))
    assert len(curves(history, panels[:1], "accuracy", "max").axes) == 1
    left, _ = curves(history, panels, "log_loss", "min").axes
    assert left.lines[-1].get_xdata()[0] == 2
