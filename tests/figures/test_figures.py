"""The pictures show the numbers that they are given."""

import io

import numpy as np
import pytest
from scipy.cluster import hierarchy

from rnnapps.figures.alignment import alignment
from rnnapps.figures.bleu_by_length import bleu_by_length
from rnnapps.figures.coloured_text import coloured_html, coloured_text
from rnnapps.figures.confusion import confusion
from rnnapps.figures.contact_sheet import contact_sheet
from rnnapps.figures.curves import curves
from rnnapps.figures.gates import gates
from rnnapps.figures.image_attention import image_attention
from rnnapps.figures.lines import Panel, lines
from rnnapps.figures.plane import plane
from rnnapps.figures.search import search
from rnnapps.figures.tree import tree


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
    panels = (("loss", "val_log_loss"), ("accuracy", "val_accuracy"))
    left, right = curves(history, panels, "accuracy", "max").axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in (*left.lines, *right.lines)}
    assert drawn["train loss"] == history["loss"]
    assert drawn["dev accuracy"] == history["val_accuracy"]
    assert all(axes.lines[-1].get_xdata()[0] == 2 for axes in (left, right))
    assert len(curves(history, panels[:1], "accuracy", "max").axes) == 1
    left, _ = curves(history, panels, "log_loss", "min").axes
    assert left.lines[-1].get_xdata()[0] == 2


def test_search_shows_every_trial_over_every_hyperparameter():
    values = {
        "units": [128, 64, 256, 64],
        "batch_size": ["auto", 32, "auto", 32],
        "bidirectional": [True, False, True, True],
        "$cell$": ["lstm", "gru", "gru", "lstm"],
        "clip_norm": [1.0, 5.0, 0.5, 1.0],
    }
    figure = search(values, [0.5, 0.4, None, 0.6], "log_loss", best=1)
    figure.savefig(io.BytesIO(), format="png")
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_xlabel() for axes in shown] == list(values)
    ticks = [[label.get_text() for label in axes.get_xticklabels()] for axes in shown]
    assert ticks[0] == ["64", "128", "256"] and ticks[1] == ["32", "auto"]
    finished, best, failed = shown[0].lines
    assert list(finished.get_xdata()) == [1, 0, 0] and list(finished.get_ydata()) == [0.5, 0.4, 0.6]
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (0, 0.4)
    assert failed.get_xdata()[0] == 2 and failed.get_marker() == "x"
    medians = sorted(c.get_segments()[0][0][1] for c in shown[0].collections)
    assert medians == [0.5, 0.5]


def test_search_over_a_range():
    rates = [10.0**-i for i in range(1, 11)]
    axes = search({"rate": rates}, rates, "loss", best=0).axes[0]
    assert axes.get_xscale() == "log" and list(axes.lines[0].get_xdata()) == rates


def test_alignment_shows_the_weights_and_the_tokens():
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.3, 0.7]])
    axes = alignment(weights, ["▁the", "▁dog", "$"], ["▁il", "▁cane"]).axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["▁the", "▁dog", "$"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["▁il", "▁cane"]
    long = alignment(np.ones((300, 1)), ["a"], ["b"] * 300)
    long.savefig(io.BytesIO(), format="png")
    assert len(long.axes[0].get_yticklabels()) <= 80


def test_bleu_by_length_has_a_line_for_each_model():
    groups = {"attention": {"2-5": 90.0, "6-9": 88.0}, "fixed vector": {"2-5": 80.0, "6-9": 20.0}}
    axes = bleu_by_length(groups).axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn == {name: list(of_model.values()) for name, of_model in groups.items()}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2-5", "6-9"]


def test_contact_sheet_shows_images_with_what_was_written():
    images = [np.full((20 + n, 30, 3), 40 * n, "uint8") for n in range(5)]
    written = ["a dog runs through the water and a man looks on", "", "c", "$d$", "e"]
    references = [["one dog", "a dog of many words that do not stand in one line"], *[["r"]] * 4]
    figure = contact_sheet(images, written, references)
    figure.savefig(io.BytesIO(), format="png")
    drawn = [axes for axes in figure.axes if axes.images]
    for axes, image in zip(drawn, images, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), image)
    told = [[(text.get_text(), text.get_fontweight()) for text in axes.texts] for axes in drawn]
    bold = [" ".join(text.strip() for text, weight in of if weight == "bold") for of in told]
    plain = [" ".join(text.strip() for text, weight in of if weight == "normal") for of in told]
    assert bold == [caption or "(nothing)" for caption in written]
    assert plain == [" ".join(captions) for captions in references]
    assert all(len(text) <= 44 for of in told for text, _ in of)


def test_image_attention_lays_the_weights_over_the_image():
    image = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype("uint8")
    weights = np.random.default_rng(1).dirichlet(np.ones(6), size=7).reshape(7, 2, 3)
    words = ["a", "$dog", "runs", "in", "the", "wet", "grass"]
    figure = image_attention(image, words, weights)
    figure.savefig(io.BytesIO(), format="png")
    first, *others = [axes for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(first.images[0].get_array(), image)
    assert [axes.get_title() for axes in others] == words
    for axes, looked in zip(others, weights, strict=True):
        below, above = axes.images
        np.testing.assert_array_equal(above.get_array(), looked)
        assert above.get_extent() == list(below.get_extent())  # neither shifted nor cut
        assert above.get_clim() == (0, weights.max())
    image_attention(image, [], np.zeros((0, 2, 3))).savefig(io.BytesIO(), format="png")


def test_lines_show_means_with_bars_and_levels():
    repeats = np.array([[1.0, 3.0], [2.0, 7.0]])
    left = Panel([5, 50], {"a": repeats, "b": [1.0, 2.0]}, "gap", "accuracy", levels={"chance": 1})
    right = Panel([5, 50], {"b": [4.0, 5.0]}, "gap", "loss", xscale="log", yscale="log")
    figure = lines([left, right])
    figure.savefig(io.BytesIO(), format="png")
    first, second = figure.axes
    drawn = {c.get_label(): c for c in (*first.containers, *second.containers)}
    line, _, (bars,) = drawn["a"].lines
    assert list(line.get_ydata()) == [1.5, 5.0]
    assert [sorted(bar[:, 1]) for bar in bars.get_segments()] == [[1, 2], [3, 7]]
    ours = [c.lines[0] for axes in (first, second) for c in axes.containers if c.get_label() == "b"]
    assert len({(one.get_color(), one.get_marker()) for one in ours}) == 1
    assert line.get_color() != ours[0].get_color()
    (level,) = [line for line in first.lines if line.get_label() == "chance"]
    assert list(level.get_ydata()) == [1, 1]
    assert (second.get_xscale(), second.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in second.get_xticklabels()] == ["5", "50"]
    (third,) = lines([Panel(["1/1", "2/1"], {"a": [0.5, 0.25]}, "size", "share")]).axes
    assert [label.get_text() for label in third.get_xticklabels()] == ["1/1", "2/1"]


def test_gates_have_a_row_for_each_unit_and_the_tokens_below():
    rng = np.random.default_rng(0)
    values = {"f": rng.random((3, 7)), "c": rng.normal(size=(3, 7))}
    figure = gates(values, ["the", "$dog", "sat"])
    figure.savefig(io.BytesIO(), format="png")
    forget, cell = [axes for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(forget.images[0].get_array(), values["f"].T)
    assert forget.images[0].get_clim() == (0, 1)
    low, high = cell.images[0].get_clim()
    assert high == -low and 20 <= (np.abs(values["c"]) <= high).sum() < 21
    assert [label.get_text() for label in cell.get_xticklabels()] == ["the", "$dog", "sat"]
    gates({"h": np.zeros((300, 2))}, ["a"] * 300).savefig(io.BytesIO(), format="png")


def test_coloured_text_has_a_colour_for_each_character():
    text = "f($x, <y>)\n" + "z" * 100
    values = np.linspace(-1, 1, len(text))
    figure = coloured_text(text, values)
    figure.savefig(io.BytesIO(), format="png")
    axes = figure.axes[0]
    assert "".join(shown.get_text() for shown in axes.texts) == text.replace("\n", "")
    assert len({shown.get_position()[1] for shown in axes.texts}) == 3
    first, last = axes.patches[0].get_facecolor(), axes.patches[-1].get_facecolor()
    assert first[2] > first[0] and last[0] > last[2]  # blue below 0, red above
    page = coloured_html(text, values)
    assert page.count("<span") == len(text) - 1 and "&lt;" in page and 'title="-1.00"' in page
    with pytest.raises(ValueError, match="Received"):
        coloured_text(text, values[1:])
    coloured_text("", np.zeros(0)).savefig(io.BytesIO(), format="png")


def test_tree_names_its_leaves():
    linkage = hierarchy.linkage(np.array([[0.0], [0.1], [5.0]]))
    axes = tree(linkage, ["cat", "dog", "see"], ["noun", "noun", "verb"]).axes[0]
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(shown) == ["cat  noun", "dog  noun", "see  verb"]


def test_plane_shows_each_point_in_its_group():
    points = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    figure = plane(points, ["a", "b", "a"], [(2, "$here")])
    figure.savefig(io.BytesIO(), format="png")
    axes = figure.axes[0]
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {"a": [[0, 1], [4, 5]], "b": [[2, 3]]}
    assert [text.get_text() for text in axes.texts] == ["$here"]
