"""How surprising each token of a text was."""

import numpy as np
from matplotlib.figure import Figure


def token_losses(nats: np.ndarray) -> Figure:
    """Draws how many tokens cost how much, and what share of the loss they are.

    Args:
        nats: `-log P` of each token, float array `[tokens]`.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.hist(nats, bins=60)
    left.axvline(nats.mean(), color="0.4", linestyle=":", label=f"mean {nats.mean():.2f}")
    left.set(xlabel="nats", ylabel="tokens", yscale="log")
    left.legend()
    rising = np.sort(nats)[::-1]
    tokens = np.arange(1, nats.size + 1) / nats.size
    right.plot(tokens, np.cumsum(rising) / max(rising.sum(), 1e-9))
    right.set(xlabel="share of the tokens, dearest first", ylabel="share of the loss")
    return figure
