"""The loop over the steps that a served layer runs: not compiled, and as few operations as can be.

A SavedModel holds its operations as they are, so that it has their gradients too. Other formats can
follow them as well: the lists of states are written in the loop only, and read only behind it.
"""

import tensorflow as tf

from rnnapps.layers import axes


def run(cell, inputs, states, weights, mask=None, reset=None):
    """Carries a cell along a batch of sequences.

    With a mask the valid steps of each row come first, so that no step has to be skipped.

    Args:
        cell: The `Equations` of a cell.
        inputs: Float tensor, `[batch, time, features]`.
        states: Sequence of the states before the first step, `[batch, units]` each.
        weights: The `Weights` as the cell wants them.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all.
        reset: Boolean tensor, `[batch, time]`. Where it is true at a valid step, the row's states
            are zero before that step. Default: `None`, nowhere.

    Returns:
        The outputs, `[batch, time, units]`, zero at padded steps, and then the final states,
        `[batch, units]` each.
    """
    batch, time = axes.size(inputs, 0), axes.size(inputs, 1)
    rows, steps, order = tf.range(batch), time, tf.range(time)[:, tf.newaxis]  # order: [time, 1]
    if mask is not None:
        valid = tf.cast(mask, tf.int32)
        order = tf.transpose(tf.argsort(1 - valid, axis=1, stable=True))  # [time, batch]
        lengths = tf.reduce_sum(valid, axis=1)  # [batch]
        steps = tf.maximum(tf.reduce_max(lengths), 0)
    # Looked up in one axis, batch and time together: to swap them takes far longer.
    places = order + rows * time  # [time, batch]
    x = tf.gather(tf.reshape(inputs, [-1, inputs.shape[-1]]), places)  # [time, batch, features]
    x = tf.tensordot(x, weights.W, 1)  # [time, batch, gates·units]
    if reset is not None:
        reset = tf.gather(tf.reshape(reset, [-1]), places)  # [time, batch]
    # Rows that end at different steps need all states.
    kept = states[:1] if mask is None else states
    histories = [_history(steps, state) for state in kept]

    def step(t, states, histories):
        if reset is not None:
            begins = reset[t, :, tf.newaxis]  # [batch, 1]
            states = tuple(tf.where(begins, tf.zeros_like(v), v) for v in states)
        states, _ = cell.step(x[t], states, weights, lambda h: h)
        pairs = zip(histories, states, strict=False)
        return t + 1, states, [_write(a, t, state) for a, state in pairs]

    carried = (0, states, histories)
    _, after, histories = tf.while_loop(lambda t, *_: t < steps, step, carried)
    # Behind n valid steps a row's state is the n-th of its states, the initial one the first.
    flat = [
        tf.reshape(tf.concat([state[tf.newaxis], _stacked(a, state)], 0), [-1, state.shape[-1]])
        for a, state in zip(histories, kept, strict=True)
    ]  # [(time + 1) · batch, units]
    if mask is None:
        places = tf.range(1, time + 1) * batch + rows[:, tf.newaxis]  # [batch, time]
        return (tf.gather(flat[0], places), *after)  # [batch, time, units]
    finals = [tf.gather(v, lengths * batch + rows) for v in flat]  # [batch, units]
    places = tf.cumsum(valid, axis=1) * batch + rows[:, tf.newaxis]  # [batch, time]
    outputs = tf.gather(flat[0], places)  # [batch, time, units]
    return (tf.where(mask[..., tf.newaxis], outputs, tf.zeros_like(outputs)), *finals)


def _history(size, state):
    """Returns a list for so many states, which knows their shape where a `TensorArray` does not."""
    return tf.raw_ops.TensorListReserve(
        element_shape=tf.shape(state), num_elements=size, element_dtype=state.dtype
    )


def _write(history, t, state):
    return tf.raw_ops.TensorListSetItem(input_handle=history, index=t, item=state)


def _stacked(history, state):
    stacked = tf.raw_ops.TensorListStack(
        input_handle=history, element_shape=tf.shape(state), element_dtype=state.dtype
    )  # [time, batch, units]
    return tf.ensure_shape(stacked, [None, *state.shape])
