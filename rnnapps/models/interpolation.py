"""Linear interpolation of language models (Jelinek & Mercer, 1980).

The models measure the same tokens, each in its own way; the weights are found on the dev split:

    weights = mixture_weights([recurrent_dev, ngrams_dev])
    test = mixture_log_probabilities([recurrent_test, ngrams_test], weights)
    perplexity = np.exp(-test.mean())
"""

from collections.abc import Sequence

import numpy as np


def mixture_log_probabilities(
    log_probabilities: Sequence[np.ndarray], weights: Sequence[float] | np.ndarray
) -> np.ndarray:
    """Returns the log probabilities of a weighted mean of models.

        p(w | h) = Σ_m weights[m] p_m(w | h)

    Args:
        log_probabilities: For each model an array `[...]` of log probabilities in nats, of the same
            tokens in the same order. `-inf` is a probability of 0.
        weights: One for each model; none negative, with a sum of 1.

    Returns:
        A float64 array `[...]`, in nats.

    Raises:
        ValueError: If the models do not have the same shape, or the weights are not as they must.

    Example:

    >>> mixture = mixture_log_probabilities(np.log([[0.5, 0.1], [0.1, 0.5]]), [0.75, 0.25])
    >>> np.exp(mixture).round(6).tolist()
    [0.4, 0.2]
    """
    log_probabilities = np.stack(log_probabilities).astype(np.float64)  # [models, ...]
    weights = np.asarray(weights, np.float64)
    if (
        weights.shape != log_probabilities.shape[:1]
        or not (weights >= 0).all()
        or not np.isclose(weights.sum(), 1)
    ):
        raise ValueError(
            "`weights` must be one number for each model, none negative, with a sum of 1. "
            f"Received: weights={weights.tolist()} for {len(log_probabilities)} models"
        )
    return _mixture(log_probabilities, weights)


def mixture_weights(
    log_probabilities: Sequence[np.ndarray], tolerance: float = 1e-6, max_steps: int = 10_000
) -> np.ndarray:
    """Finds the weights under which a mixture makes a text most probable, by EM.

    From equal weights, each step (Dempster, Laird & Rubin, 1977) multiplies a model's weight by its
    mean ratio to the mixture, which never makes the text less probable:

        weights[m] ← weights[m] · mean_t(p_m(t) / p(t))

    The log of the greatest ratio bounds what the best weights would still gain, in nats a token, as
    the text's log probability is concave in them; it ends when that is no more than `tolerance`.

    Args:
        log_probabilities: For each model an array `[tokens]` of log probabilities in nats, of the
            same tokens in the same order; of a text that no model was trained on.
        tolerance: How many nats a token the text may be less probable than at best. Default: 1e-6.
        max_steps: The steps after which it ends in any case. Default: 10,000.

    Returns:
        A float64 array `[models]`, with a sum of 1.

    Raises:
        ValueError: If the models do not have the same tokens or there is none, or if some token
            has a probability of 0 under all models, or one that is not a number.

    Example:

    >>> mixture_weights(np.log([[0.5, 0.1, 0.5], [0.1, 0.5, 0.1]])).round(3).tolist()
    [0.75, 0.25]
    """
    log_probabilities = np.stack(log_probabilities).astype(np.float64)  # [models, tokens]
    if log_probabilities.ndim != 2 or not log_probabilities.size:
        raise ValueError(
            "`log_probabilities` must hold an array [tokens] for each model, with a token or more. "
            f"Received: shape {log_probabilities.shape}"
        )
    if not np.isfinite(log_probabilities.max(axis=0)).all():
        raise ValueError(
            "Each token must have a positive probability under some model, and a number under all. "
            f"Received: {np.flatnonzero(~np.isfinite(log_probabilities.max(axis=0)))[:5].tolist()} "
            "are the first that do not"
        )
    weights = np.full(len(log_probabilities), 1 / len(log_probabilities))  # [models]
    for _ in range(max_steps):
        mixture = _mixture(log_probabilities, weights)  # [tokens]
        ratios = np.exp(log_probabilities - mixture).mean(axis=1)  # [models]
        if np.log(ratios.max()) <= tolerance:
            break
        weights = weights * ratios
        weights /= weights.sum()
    return weights


def _mixture(log_probabilities, weights):
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights).reshape(-1, *[1] * (log_probabilities.ndim - 1))
    return np.logaddexp.reduce(log_probabilities + log_weights, axis=0)
