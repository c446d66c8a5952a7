"""What the letters of a cell's equations are, at every step of a sequence."""

import numpy as np
import tensorflow as tf

from rnnapps.layers.recurrent import RecurrentLayer


def gate_values(
    layer: RecurrentLayer, sequences, initial_state: list | None = None
) -> dict[str, np.ndarray]:
    """Runs a layer's cell over sequences and keeps every value of its equations.

    Of a bidirectional layer give the `forward_layer`, or the `backward_layer` and the sequences
    in reverse.

    Args:
        layer: An `Elman`, `Jordan`, `LSTM` or `GRU` layer of this package.
        sequences: Float array, `[batch, time, features]`, without padding.
        initial_state: List of arrays, `[batch, units]` each. Default: `None`, the cell's own.

    Returns:
        A float array `[batch, time, units]` for each letter, in the precision of the weights: of an
        LSTM `i`, `f`, `g`, `o`, `c` and `h`; of a GRU `u`, `r`, `h̃` and `h`; of an Elman layer `h`;
        of a Jordan layer `h` and `y`.

    Raises:
        ValueError: If the sequences have no step.

    Example:

    >>> values = gate_values(LSTM(4), np.ones((2, 5, 3), "float32"))
    >>> list(values), values["f"].shape
    (['i', 'f', 'g', 'o', 'c', 'h'], (2, 5, 4))
    """
    cell = layer.cell
    # Under mixed precision, too, as the weights are not cast outside of a layer's call.
    sequences = tf.cast(sequences, cell.variable_dtype)
    batch, timesteps, _ = sequences.shape
    if not timesteps:
        raise ValueError(f"`sequences` must have a step. Received: shape {tuple(sequences.shape)}")
    if not layer.built:
        layer.build(sequences.shape)
    states = layer.get_initial_state(batch) if initial_state is None else initial_state
    states = [tf.cast(state, cell.variable_dtype) for state in states]
    states = dict(zip(cell.state_letters, states, strict=True))

    def step(before, x):
        return cell.values(x, [before[letter] for letter in cell.state_letters])

    @tf.function(autograph=False)
    def run(steps, states):
        like = tf.nest.map_structure(tf.zeros_like, step(states, steps[0]))
        return tf.scan(step, steps, {**like, **states})

    values = run(tf.transpose(sequences, [1, 0, 2]), states)  # [time, batch, units] each
    # In the order in which the equations have them, where TensorFlow's is that of the alphabet.
    letters = step(states, sequences[:, 0])
    return {letter: values[letter].numpy().swapaxes(0, 1) for letter in letters}
