"""What each unit's gates and states did while a sentence was read."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

_MOST_NAMED = 80
# What lies between 0 and 1; other letters have both signs.
_GATES = ("i", "f", "o", "u", "r")
_NAMES = {
    "i": "input gate i",
    "f": "forget gate f",
    "o": "output gate o",
    "g": "candidate g",
    "c": "cell c",
    "h": "state h",
    "u": "update gate u",
    "r": "reset gate r",
    "h̃": "candidate h̃",
    "y": "output y",
}


def gates(values: Mapping[str, np.ndarray], tokens: Sequence[str]) -> Figure:
    """Draws gates and states over a sentence: a column for each token, a row for each unit.

    Gates go from white, closed, to blue, open. What has a sign is blue below 0, white at 0 and red
    above, to the same size both ways; the few values beyond that of 98% of them have its colour.

    Args:
        values: float arrays `[time, units]` by their letters, as `rnnapps.inspection.gates` gives
            them for one row of a batch.
        tokens: the tokens, one a step.
    """
    tokens = list(tokens)
    units = next(iter(values.values())).shape[1]
    width = 1.8 + 0.3 * min(len(tokens), _MOST_NAMED)
    height = np.clip(0.06 * units, 0.7, 2.5)
    figure = Figure(figsize=(width, 0.9 + (height + 0.15) * len(values)), layout="constrained")
    subplots = figure.subplots(len(values), 1, sharex=True, squeeze=False).flat
    for axes, (letter, drawn) in zip(subplots, values.items(), strict=True):
        if letter in _GATES:
            scale = {"vmin": 0, "vmax": 1, "cmap": "Blues"}
        else:
            most = float(np.quantile(np.abs(drawn), 0.98)) or 1.0
            scale = {"vmin": -most, "vmax": most, "cmap": "RdBu_r"}
        image = axes.imshow(drawn.T, aspect="auto", interpolation="nearest", **scale)
        axes.set(ylabel=_NAMES.get(letter, letter), yticks=[])
        figure.colorbar(image, ax=axes, pad=0.01, aspect=8)
    step = -(-len(tokens) // _MOST_NAMED)
    # A token may be "$", which begins no formula.
    axes.set_xticks(range(0, len(tokens), step), tokens[::step], parse_math=False, rotation=90)
    axes.set_xlabel("tokens; each row is a unit")
    return figure
