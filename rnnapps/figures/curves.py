"""The course of a training run."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator


def curves(
    history: Mapping[str, Sequence[float]],
    panels: Sequence[Sequence[str]],
    monitor: str,
    mode: str,
) -> Figure:
    """Draws metrics of train and dev over epochs, and marks the epoch that was kept.

    Args:
        history: values by name, one an epoch; those of the dev split under `val_<name>`.
        panels: for each panel the names of what it shows.
        monitor: the name of the dev metric that chooses the epoch.
        mode: whether the larger (`max`) or the smaller (`min`) value of it is better.
    """
    chosen = history[f"val_{monitor}"]
    kept = chosen.index((max if mode == "max" else min)(chosen)) + 1
    epochs = range(1, len(chosen) + 1)
    figure = Figure(figsize=(4.5 * len(panels), 3.6), layout="constrained")
    subplots = figure.subplots(1, len(panels), squeeze=False).flat
    for axes, names in zip(subplots, panels, strict=True):
        for name in names:
            label = f"dev {name[4:]}" if name.startswith("val_") else f"train {name}"
            axes.plot(epochs, history[name], "o-", markersize=3, label=label)
        axes.axvline(kept, color="0.6", linestyle=":", label="kept")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.legend()
    return figure
