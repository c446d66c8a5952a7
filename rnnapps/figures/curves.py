"""The course of a training run."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator


def curves(
    history: Mapping[str, Sequence[float]], monitor: str, mode: str, dev_loss: str
) -> Figure:
    """Draws the losses and the dev metric over epochs, and marks the epoch that was kept.

    Args:
        history: values by name, one an epoch: `loss`, and `val_<name>` for the two dev metrics.
        monitor: the name of the dev metric that chooses the epoch.
        mode: whether the larger (`max`) or the smaller (`min`) value of it is better.
        dev_loss: the name of the dev metric to draw beside the training loss.
    """
    chosen = history[f"val_{monitor}"]
    best = chosen.index((max if mode == "max" else min)(chosen)) + 1
    epochs = range(1, len(chosen) + 1)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(epochs, history["loss"], "o-", markersize=3, label="train loss")
    left.plot(epochs, history[f"val_{dev_loss}"], "o-", markersize=3, label=f"dev {dev_loss}")
    left.set(xlabel="epoch", ylabel="loss", ylim=(0, None))
    if monitor in history:
        right.plot(epochs, history[monitor], "o-", markersize=3, label="train")
    right.plot(epochs, chosen, "o-", markersize=3, color="C1", label="dev")
    right.set(xlabel="epoch", ylabel=monitor)
    for axes in (left, right):
        axes.axvline(best, color="0.6", linestyle=":", label="kept")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()
    return figure
