"""How well classes were told apart, and how honest the probabilities are."""

from collections.abc import Sequence

import numpy as np
from sklearn import metrics as sklearn_metrics


def scores(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Measures a classifier's probabilities against the true classes.

    Args:
        labels: int array of shape `[examples]`, the true class ids.
        probabilities: float array of shape `[examples, classes]`.

    Returns:
        `accuracy` and `macro_f1` (0 to 1; a class that does not occur counts as 0 in its mean),
        `log_loss` (nats an example) and `calibration_error`.
    """
    classes = range(probabilities.shape[-1])
    predicted = probabilities.argmax(-1)  # [examples]
    return {
        "accuracy": float(sklearn_metrics.accuracy_score(labels, predicted)),
        "macro_f1": float(
            sklearn_metrics.f1_score(
                labels, predicted, labels=classes, average="macro", zero_division=0
            )
        ),
        "log_loss": float(sklearn_metrics.log_loss(labels, probabilities, labels=classes)),
        "calibration_error": calibration_error(labels, probabilities),
    }


def calibration_error(labels: np.ndarray, probabilities: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error (Naeini et al., 2015; Guo et al., 2017).

    Predictions are put into bins of equal width by their confidence, the largest probability; the
    error is the mean over examples of a bin's |accuracy − mean confidence|.

    Args:
        labels: int array of shape `[examples]`.
        probabilities: float array of shape `[examples, classes]`.
        bins: the number of bins between 0 and 1. Defaults to 15.

    Returns:
        The error, between 0 and 1.
    """
    confidence = probabilities.max(-1)  # [examples]
    correct = probabilities.argmax(-1) == labels  # [examples]
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)  # [examples]
    gaps = np.bincount(bin_of, weights=correct - confidence, minlength=bins)  # [bins]
    return float(np.abs(gaps).sum() / len(labels))


def confusion(labels: np.ndarray, predicted: np.ndarray, num_classes: int) -> np.ndarray:
    """Counts examples by true class (rows) and predicted class (columns)."""
    return sklearn_metrics.confusion_matrix(labels, predicted, labels=range(num_classes))


def report(labels: np.ndarray, predicted: np.ndarray, names: Sequence[str]) -> str:
    """Writes precision, recall and F1 by class with the counts behind them, as a table."""
    counts = confusion(labels, predicted, len(names))  # [classes, classes]
    precision, recall, f1, _ = sklearn_metrics.precision_recall_fscore_support(
        labels, predicted, labels=range(len(names)), zero_division=0
    )
    width = max(len("class"), *map(len, names))
    rows = [f"{'class':{width}}  precision  recall      f1  examples  predicted  right"]
    for i, name in enumerate(names):
        rows.append(
            f"{name:{width}}  {precision[i]:9.4f}  {recall[i]:6.4f}  {f1[i]:6.4f}"
            f"  {counts[i].sum():8d}  {counts[:, i].sum():9d}  {counts[i, i]:5d}"
        )
    return "\n".join(rows)
