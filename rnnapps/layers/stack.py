"""Deep and bidirectional stacks of recurrent layers."""

from typing import Any

import keras

from rnnapps.layers.bidirectional import Bidirectional
from rnnapps.layers.recurrent import GRU, LSTM, Elman, Jordan

CELLS: dict[str, Any] = {"elman": Elman, "jordan": Jordan, "lstm": LSTM, "gru": GRU}


def recurrent_stack(
    cell: str, units: int, num_layers: int = 1, bidirectional: bool = False, **options
) -> list[keras.Layer]:
    """Builds the layers of a deep recurrent network (Graves 2012), the lowest first.

    Layer i reads the outputs of layer i-1. A bidirectional layer runs once in time order and once
    in reverse (Schuster & Paliwal 1997) and puts both outputs side by side at every step.

    Args:
        cell: `"elman"`, `"jordan"` (which wants `output_units` too), `"lstm"` or `"gru"`.
        units: Size of each direction of each layer.
        num_layers: Number of layers. Default: 1.
        bidirectional: Whether each layer runs both ways. Default: `False`.
        **options: Further arguments of the recurrent layer, but for those that the stack sets
            itself: `name`, `return_sequences`, `return_state` and `go_backwards`. A `seed` stands
            for a different one in each layer and direction, so that no two drop the same units.

    Returns:
        `num_layers` Keras layers. Called on a sequence, each returns its outputs, `[batch, time,
        units]` (twice the units if bidirectional), and then its final states, those of the forward
        direction first.

    Raises:
        ValueError: If `cell` is unknown, `num_layers` is not positive or an option is the stack's.

    Example:

    >>> lower, upper = recurrent_stack("gru", 4, num_layers=2, bidirectional=True)
    >>> outputs, forward, backward = upper(lower(keras.ops.ones((2, 5, 3)))[0])
    >>> tuple(outputs.shape), tuple(backward.shape)
    ((2, 5, 8), (2, 4))
    """
    if cell not in CELLS:
        raise ValueError(f"`cell` must be one of {', '.join(CELLS)}. Received: cell={cell!r}")
    if num_layers < 1:
        raise ValueError(f"`num_layers` must be positive. Received: num_layers={num_layers}")
    for name in ("name", "return_sequences", "return_state", "go_backwards"):
        if name in options:
            raise ValueError(
                f"`{name}` is not an option of a stack. Received: {name}={options[name]!r}"
            )
    layer_class = CELLS[cell]
    model = layer_class(units, return_sequences=True, return_state=True, **options).get_config()
    del model["name"]
    directions = 2 if bidirectional else 1
    stack = []
    for depth in range(num_layers):
        # From the config, not from the options: an initialiser object passed once must not give
        # the same draw to every layer.
        runs = [
            layer_class.from_config(
                {**model, "go_backwards": direction == 1, "seed": _nth_seed(model["seed"], n)}
            )
            for direction, n in enumerate(range(directions * depth, directions * (depth + 1)))
        ]
        if bidirectional:
            forward, backward = runs
            stack.append(
                Bidirectional(forward, backward_layer=backward, dtype=forward.dtype_policy)
            )
        else:
            stack.extend(runs)
    return stack


def _nth_seed(seed: int | None, n: int) -> int | None:
    return None if seed is None else seed + n
