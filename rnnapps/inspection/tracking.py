"""What a unit keeps track of: the depth of brackets, whether a quotation is open, anything else."""

import numpy as np

_OPENING, _CLOSING = "([{", ")]}"


def bracket_depth(text: str) -> np.ndarray:
    """Counts the brackets that are open after each character.

    Args:
        text: Any text; a bracket that closes nothing is not counted.

    Returns:
        An int array `[characters]`.

    Example:

    >>> bracket_depth("f(a[1])").tolist()
    [0, 1, 1, 2, 2, 1, 0]
    """
    depths, depth = [], 0
    for character in text:
        depth += character in _OPENING
        depth -= character in _CLOSING and depth > 0
        depths.append(depth)
    return np.array(depths, int)


def in_quotes(text: str, mark: str = '"') -> np.ndarray:
    """Tells after which characters a quotation is open.

    Args:
        text: Any text.
        mark: The character that opens and closes. Default: `"`.

    Returns:
        An int array `[characters]` of zeros and ones.

    Example:

    >>> in_quotes('a "b" c').tolist()
    [0, 0, 1, 1, 0, 0, 0]
    """
    return np.cumsum([character == mark for character in text], dtype=int) % 2


def most_correlated(values: np.ndarray, target: np.ndarray) -> tuple[int, float]:
    """Finds the unit that goes with a quantity the most.

    Args:
        values: Float array, `[time, units]`: states, gates or outputs.
        target: Array, `[time]`: what they are compared with.

    Returns:
        The unit, and Pearson's correlation of its values with the target: of all units that of the
        largest size, with its sign. A unit that never changes has none.

    Raises:
        ValueError: If the target never changes.

    Example:

    >>> most_correlated(np.array([[0.1, 3.0], [0.9, 1.0], [0.2, 3.0]]), np.array([1, 2, 1]))
    (1, -1.0)
    """
    if np.unique(target).size < 2:
        raise ValueError("`target` must change. Received: the same value at every step")
    target = np.asarray(target, float) - np.mean(target)  # [time]
    values = values - values.mean(axis=0)  # [time, units]
    lengths = np.linalg.norm(values, axis=0) * np.linalg.norm(target)  # [units]
    correlations = np.divide(
        values.T @ target, lengths, out=np.zeros(len(lengths)), where=lengths > 0
    )
    unit = int(np.abs(correlations).argmax())
    return unit, float(correlations[unit].round(12))


def read_out(values: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Finds the weighted sum of all units that is nearest to a quantity, by least squares.

    Args:
        values: Float array, `[time, units]`.
        target: Array, `[time]`.

    Returns:
        The weights `[units]` and what is added, so that `values @ weights + bias` is near the
        target; of several such weights the shortest.

    Example:

    >>> values = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> weights, bias = read_out(values, np.array([3, 4, 5]))
    >>> weights.round(3).tolist(), round(bias, 3)
    ([2.0, 1.0], 2.0)
    """
    mean = values.mean(axis=0)  # [units]
    weights = np.linalg.lstsq(values - mean, target - np.mean(target), rcond=None)[0]
    return weights, float(np.mean(target) - mean @ weights)
