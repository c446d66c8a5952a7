"""What a search found: the dev metric over each hyperparameter."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure

_COLUMNS = 4
# More values than this are a range, and take an axis of numbers.
_MOST_NAMED = 8


def search(
    values: Mapping[str, Sequence[Any]],
    scores: Sequence[float | None],
    metric: str,
    best: int,
) -> Figure:
    """Draws the trials of a search, once for each hyperparameter.

    A bar is the median over a value's trials, a star the best trial, and a cross at the lower edge
    a trial that failed.

    Args:
        values: for each hyperparameter its values, one a trial.
        scores: the dev metric of each trial, or None where it failed.
        metric: its name.
        best: the index of the best trial.
    """
    columns = min(_COLUMNS, len(values))
    rows = -(-len(values) // columns)
    figure = Figure(figsize=(2.8 * columns, 2.5 * rows), layout="constrained")
    subplots = figure.subplots(rows, columns, sharey=True, squeeze=False).flatten()
    for axes, (name, drawn) in zip(subplots, values.items(), strict=False):
        places = _places(axes, drawn)
        finished = [i for i, score in enumerate(scores) if score is not None]
        axes.plot([places[i] for i in finished], [scores[i] for i in finished], "o", alpha=0.5)
        axes.plot(places[best], scores[best], "*", color="C1", markersize=13)
        for place in {places[i] for i in finished} if len(set(drawn)) <= _MOST_NAMED else ():
            of_place = (scores[i] for i in finished if places[i] == place)
            middle = median(score for score in of_place if score is not None)
            axes.hlines(middle, place - 0.3, place + 0.3, color="C0", linewidth=1)
        for i in set(range(len(scores))) - set(finished):
            axes.plot(
                places[i],
                0.03,
                "x",
                color="C3",
                transform=axes.get_xaxis_transform(),
                clip_on=False,
            )
        axes.set_xlabel(name, parse_math=False)
    for axes in subplots[len(values) :]:
        axes.set_visible(False)
    for row in range(rows):
        figure.axes[row * columns].set_ylabel(metric)
    return figure


def _places(axes, drawn: Sequence[Any]) -> list[float]:
    """Sets up a horizontal axis; returns where on it each value stands."""
    named = sorted(set(drawn), key=lambda value: (isinstance(value, str), value))
    if len(named) > _MOST_NAMED and not isinstance(named[-1], str):
        if named[0] > 0 and named[-1] >= 20 * named[0]:
            axes.set_xscale("log")
        return list(drawn)
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in named]
    axes.set_xticks(range(len(named)), texts, parse_math=False)
    axes.set_xlim(-0.6, len(named) - 0.4)
    return [named.index(value) for value in drawn]
