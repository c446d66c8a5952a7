"""The engine of the recurrent layers on TensorFlow, with backpropagation through time written out.

`run` carries a cell of `rnnapps.layers.equations` along a batch of sequences. How the work is laid
out:

- Time is cut into blocks of about 16 steps. A block's `W x_t` is one matrix product beside a loop
  that has only the recurrent product and the gates in it; going back, `dx`, `dW` and `dU` are three
  products a block.
- The batch is cut into groups of rows, one launch each. The launches do not depend on each other,
  and TensorFlow runs as many at a time as there are cores. With a mask, the rows are sorted by
  length, and each group's loop stops where its longest sequence does.
- A launch is compiled by XLA, the graph around it is not: inside one compiled program the groups
  would run one after the other. The number of steps is an argument of the compiled program, and
  sequences are padded to whole blocks, so that lengths near each other share a compilation.
- What is served is not compiled, and small: the one loop of `rnnapps.layers.serving_loop`.
"""

import functools
import os
from typing import NamedTuple

import tensorflow as tf

# Whether a graph is to be compiled as a whole has no public name.
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

from rnnapps.layers import axes, serving_loop
from rnnapps.layers.equations import Weights, outer_product

# The replica context of a graph that no strategy runs.
with tf.Graph().as_default():
    _OUTSIDE = tf.distribute.get_replica_context()

MAX_GROUPS = 8
MIN_ROWS = 8


class Rows(NamedTuple):
    """The rows of one launch. Time is in blocks, so that a shape tells the length of a block."""

    x: tf.Tensor  # [rows, blocks, steps, features]
    states: tuple[tf.Tensor, ...]  # [rows, units] each
    mask: tf.Tensor | None  # bool [rows, blocks, steps]
    reset: tf.Tensor | None  # bool [rows, blocks, steps]
    dropout: tf.Tensor | None  # [rows, units]


def run(
    cell,
    inputs,
    kernel,
    recurrent_kernel,
    bias,
    peephole=None,
    *,
    states,
    mask=None,
    reset=None,
    input_dropout=None,
    recurrent_dropout=None,
    training=False,
    compiled=True,
):
    """Carries a cell along a batch of sequences.

    Args:
        cell: The `Equations` of a cell.
        inputs: Float tensor, `[batch, time, features]`.
        kernel: `W` as the Keras layer has it, `[features, gates·units]`.
        recurrent_kernel: `U` as the Keras layer has it, `[units, gates·units]`.
        bias: `b` as the Keras layer has it, or `None`.
        peephole: `p` for the gates i, f, o, `[3·units]`. Default: `None`.
        states: Sequence of the states before the first step, `[batch, units]` each.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all.
        reset: Boolean tensor, `[batch, time]`. Where it is true at a valid step, the row's states
            are zero before that step. Default: `None`, nowhere.
        input_dropout: Factors of the input's features, `[batch, features]`. Default: `None`.
        recurrent_dropout: Factors of the previous output's features where it meets `U`,
            `[batch, units]`. Default: `None`.
        training: Whether to save on the way what the gradient will need. Without, the gradient
            runs the sequences once more. Default: `False`.
        compiled: Whether the launches are compiled, once for each new shape. Default: `True`.

    Returns:
        The outputs, `[batch, time, units]`, zero at padded steps; the last output, `[batch,
        units]`, zero in a row without valid steps; and the final states, `[batch, units]` each.
    """
    outer_type = inputs.dtype
    # Half precision is a way to store: sums over steps and long chains need more.
    inner_type = tf.float32 if outer_type.size < 4 else outer_type
    if bias is None:
        bias = tf.zeros((*cell.bias_rows, kernel.shape[1]), inner_type)
    weights = (kernel, recurrent_kernel, bias, peephole)
    inputs, states, weights, input_dropout, recurrent_dropout = tf.nest.map_structure(
        lambda v: None if v is None else tf.cast(v, inner_type),
        (inputs, tuple(states), weights, input_dropout, recurrent_dropout),
    )
    drops = recurrent_dropout is not None
    serves = not (compiled or training or drops or in_compiled_graph() or tf.executing_eagerly())
    if serves:
        cell = cell.unpacked()  # to sort the weights at every request would take longer
    weights = cell.arrange(*weights)
    if input_dropout is not None:
        inputs = inputs * input_dropout[:, tf.newaxis]  # [batch, time, features]
    if reset is not None and mask is not None:
        reset = reset & mask

    if serves:
        # Plain operations, of which a file can hold the gradients too.
        outputs, *states = serving_loop.run(cell, inputs, states, weights, mask, reset)
    else:
        outputs, *states = _differentiable(
            cell, inputs, states, weights, mask, reset, recurrent_dropout, training, compiled
        )
    if mask is not None:
        last = tf.where(tf.reduce_any(mask, axis=1, keepdims=True), states[0], 0)
    else:
        last = tf.where(tf.shape(inputs)[1] > 0, states[0], 0)
    return tf.nest.map_structure(lambda v: tf.cast(v, outer_type), (outputs, last, tuple(states)))


def run_by_strategy() -> bool:
    """Returns whether this is in a `tf.distribute` strategy's `run`.

    Keras' `fit`, `evaluate` and `predict` run their steps so, on one device too, but an export
    never does.
    """
    context = tf.distribute.get_replica_context()
    return context is not None and context is not _OUTSIDE


def _differentiable(cell, inputs, states, weights, mask, reset, dropout, training, compiled):
    """Returns the outputs and the final states, with the gradient that is written out here."""
    arguments = (inputs, states, weights)

    def forward(tensors, keep):
        return _program(_forward, weights.W.shape, cell, compiled, keep)(
            *tensors, mask, reset, dropout
        )

    @tf.autograph.experimental.do_not_convert
    @tf.custom_gradient
    def outputs_and_states(*tensors):
        # Stopped, so that no tape looks inside.
        tensors = tf.nest.pack_sequence_as(arguments, [tf.stop_gradient(v) for v in tensors])
        outputs, states, kept = forward(tensors, keep=training)

        @tf.custom_gradient
        def gradient(doutputs, *dstates):
            traces = kept if training else forward(tensors, keep=True)[-1]
            errors = tf.nest.map_structure(tf.stop_gradient, (doutputs, dstates))
            program = _program(_backward, weights.W.shape, cell, compiled)
            return tuple(tf.nest.flatten(program(tensors[-1], *traces, *errors))), _refuse

        return (outputs, *states), gradient

    return outputs_and_states(*tf.nest.flatten(arguments))


def _refuse(*_):
    raise NotImplementedError(
        "The fused recurrent layers have no second-order gradients. Give the layer "
        'implementation="reference" to differentiate a gradient.'
    )


@functools.cache
def _program(function, sizes, *options, jit_compile=None):
    """Returns a function of this module as a graph of its own, some of its arguments fixed.

    The sizes of the layer are there to part the programs: where one meets several shapes, it gives
    up what it knows of all axes in which they differ, and only batch and time may be unknown.
    """
    return tf.function(
        functools.partial(function, *options),
        autograph=False,
        reduce_retracing=True,
        jit_compile=jit_compile,
    )


def _launcher(function, sizes, compiled, *options):
    """Returns the function that runs one group."""
    if compiled:
        return _program(function, sizes, *options, jit_compile=True)
    return functools.partial(function, *options)


class Trace(NamedTuple):
    """What the way back needs of one launch."""

    rows: Rows
    first: tf.Tensor  # int32 scalar, the first block with a step that is valid in some row
    last: tf.Tensor  # int32 scalar, the step behind the last that is valid in some row
    hs: tf.Tensor  # h after each step, [rows, blocks, steps, units]
    histories: tuple  # of the states but h, [time, rows, units]: the values after each step
    saved: tuple  # what the cell saved, [time, rows, ·] each


def _forward(cell, compiled, keep, inputs, states, weights, mask, reset, dropout):
    """Returns the outputs, the final states, and what `_backward` takes if that is to be kept."""
    # A loop needs to know of all tensors what it knows of the states that it carries.
    for tensor in (inputs, mask, reset, dropout):
        if tensor is not None:
            tensor.set_shape([states[0].shape[0], *[None] * (tensor.shape.rank - 1)])
    batch, time = axes.size(inputs, 0), axes.size(inputs, 1)
    num_groups = _num_groups(batch, mask is not None, compiled)
    blocks = axes.num_blocks(time)
    whole = Rows(
        axes.in_blocks(inputs, *blocks),
        states,
        axes.in_blocks(mask, *blocks),
        axes.in_blocks(reset, *blocks),
        dropout,
    )
    order, bounds = None, [(tf.constant(0), tf.convert_to_tensor(time))] * num_groups
    if mask is not None:
        order, bounds = axes.by_length(whole.mask, num_groups)
        if num_groups == 1:
            order = None
    groups = axes.split(whole, order, num_groups)
    launch = _launcher(_forward_rows, weights.W.shape, compiled, cell, keep)
    results = [launch(rows, weights, *bound) for rows, bound in zip(groups, bounds, strict=True)]
    hs, states = axes.merge([result[:2] for result in results], order, batch)
    outputs = hs[:, :time]  # [batch, time, units]
    if mask is not None:
        outputs = tf.where(mask[..., tf.newaxis], outputs, tf.zeros_like(outputs))
    if not keep:
        return outputs, states, ()
    if mask is None:
        # The outputs themselves, so that the groups' parts need not stay.
        parts = axes.split(axes.in_blocks(hs, *blocks), order, num_groups)
    else:
        parts = [axes.in_blocks(hs, *blocks) for hs, *_ in results]
    traces = [
        Trace(rows, *bound, part, *kept)
        for rows, bound, part, (_, _, *kept) in zip(groups, bounds, parts, results, strict=True)
    ]
    return outputs, states, (traces, order)


def _backward(cell, compiled, weights, traces, order, doutputs, dstates):
    """Returns the errors of the inputs, of the initial states and of the weights."""
    batch, time = axes.size(doutputs, 0), axes.size(doutputs, 1)
    blocks = (axes.size(traces[0].rows.x, axis) for axis in (1, 2))
    errors = axes.split((axes.in_blocks(doutputs, *blocks), dstates), order, len(traces))
    launch = _launcher(_backward_rows, weights.W.shape, compiled, cell)
    results = [launch(trace, weights, *error) for trace, error in zip(traces, errors, strict=True)]
    dinputs, dstates = axes.merge([result[:2] for result in results], order, batch)
    dweights = tf.nest.map_structure(lambda *dw: tf.add_n(dw), *(dw for _, _, dw in results))
    return dinputs[:, :time], dstates, dweights


def _forward_rows(cell, keep, rows, weights, first, last):
    """Runs one group; returns h at each step, the final states, and more as in `Trace`."""
    num_rows, num_blocks, steps = tf.unstack(tf.shape(rows.x)[:3])
    units, kind, time = rows.states[0].shape[1], rows.x.dtype, num_blocks * steps
    # As if the blocks before the first had been run, and held the state.
    histories = tuple(
        _zeros([time, num_rows, units], kind).write(tf.maximum(first * steps - 1, 0), state)
        for state in (rows.states if keep else rows.states[:1])
    )
    # What the cell saves leaves the loop in any case, in one slot if it is not kept: otherwise XLA
    # may make one kernel of a whole step, which runs on one thread.
    slots = time if keep else 1
    saved = tuple(_zeros([slots, num_rows, size * units], kind) for size in cell.saved)
    drop = _dropper(rows)

    def block(k, states, histories, saved):
        x = tf.tensordot(rows.x[:, k], weights.W, 1)  # [rows, steps, gates·units]

        def step(t, states, histories, saved):
            s = t - k * steps
            mask, reset = (_flags(v, k, s) for v in (rows.mask, rows.reset))
            before = states if reset is None else _choose(reset, _zeros_like(states), states)
            after, values = cell.step(x[:, s], before, weights, drop)
            if mask is not None:
                after = _choose(mask, after, states)
            # Not kept, the states other than h have no history.
            histories = tuple(a.write(t, v) for a, v in zip(histories, after, strict=False))
            at = t if keep else 0
            saved = tuple(a.write(at, v) for a, v in zip(saved, values, strict=True))
            return t + 1, after, histories, saved

        stop = tf.minimum(last, (k + 1) * steps)
        carried = tf.while_loop(lambda t, *_: t < stop, step, (k * steps, states, histories, saved))
        return k + 1, *carried[1:]

    _, states, histories, saved = tf.while_loop(
        lambda k, *_: k * steps < last, block, (first, rows.states, histories, saved)
    )
    (hs, *histories), saved = tf.nest.map_structure(lambda a: a.stack(), (histories, saved))
    return axes.swap(hs), states, tuple(histories), saved  # hs: [rows, time, units]


def _backward_rows(cell, trace, weights, doutputs, dstates):
    """Runs one group back; returns the errors of its inputs and initial states, and of weights."""
    rows, first, last, hs, histories, saved = trace
    num_rows, num_blocks, steps = tf.unstack(tf.shape(rows.x)[:3])
    features, units = rows.x.shape[3], hs.shape[3]
    drop = _dropper(rows)
    W_T = tf.transpose(weights.W)
    transposed = weights._replace(Us=tuple(tf.transpose(U) for U in weights.Us))

    def states_of(k):
        """The states before and after each step of a block, `[steps, rows, units]` each."""
        start = k * steps
        after = axes.swap(hs[:, k]), *(_steps(history, start, steps) for history in histories)
        ahead = tf.maximum(start - 1, 0)
        firsts = hs[:, ahead // steps, ahead % steps], *(history[ahead] for history in histories)
        before = tuple(
            tf.concat([tf.where(k > 0, one, state)[tf.newaxis], others[:-1]], axis=0)
            for one, state, others in zip(firsts, rows.states, after, strict=True)
        )
        if rows.reset is not None:
            before = _choose(_block_flags(rows.reset, k), _zeros_like(before), before)
        return before, after

    def block(k, dstates, errors, dx, dweights):
        start = k * steps
        before, after = states_of(k)
        values = [_steps(v, start, steps) for v in saved]
        factors = cell.factors(before, after, values, drop)
        if rows.mask is not None:
            # A padded step has no errors of its own.
            factors = _choose(_block_flags(rows.mask, k), factors, _zeros_like(factors))

        def step(t, dstates, errors):
            s = t - start
            mask, reset = (_flags(v, k, s) for v in (rows.mask, rows.reset))
            dafter = (dstates[0] + doutputs[:, k, s], *dstates[1:])
            new, dbefore = cell.step_back(dafter, [v[s] for v in factors], transposed, drop)
            if reset is not None:
                dbefore = _choose(reset, _zeros_like(dbefore), dbefore)
            if mask is not None:
                dbefore = _choose(mask, dbefore, dstates)
            return t - 1, dbefore, tuple(a.write(s, v) for a, v in zip(errors, new, strict=True))

        _, dstates, errors = tf.while_loop(
            lambda t, *_: t >= start,
            step,
            (tf.minimum(last, start + steps) - 1, dstates, errors),
        )
        stacked = [a.stack() for a in errors]  # [steps, rows, ·] each
        x, da = axes.swap(rows.x[:, k]), stacked[0]
        dx = dx.write(k, tf.tensordot(da, W_T, 1))
        more = Weights(outer_product(x, da), *cell.collect(stacked, before, after, values, drop))
        return k - 1, dstates, errors, dx, tf.nest.map_structure(tf.add, dweights, more)

    # Of the blocks only the last may be cut short, and it is the first to be run.
    errors = tuple(_zeros([steps, num_rows, size * units], W_T.dtype) for size in cell.errors)
    dx = _zeros([num_blocks, steps, num_rows, features], W_T.dtype)
    dweights = tf.nest.map_structure(tf.zeros_like, weights)
    _, dstates, _, dx, dweights = tf.while_loop(
        lambda k, *_: k >= first,
        block,
        ((last - 1) // steps, dstates, errors, dx, dweights),
    )
    dx = tf.transpose(dx.stack(), [2, 0, 1, 3])  # [rows, blocks, steps, features]
    dx = tf.reshape(dx, [num_rows, num_blocks * steps, features])
    return dx, dstates, dweights


def _flags(flags, k, s):
    """Returns a mask at one step of a block, `[rows, 1]`."""
    return None if flags is None else flags[:, k, s, tf.newaxis]


def _block_flags(flags, k):
    """Returns a mask at the steps of a block, `[steps, rows, 1]`."""
    return axes.swap(flags[:, k])[..., tf.newaxis]


def _choose(flags, yes, no):
    return tuple(tf.where(flags, a, b) for a, b in zip(yes, no, strict=True))


def _zeros_like(tensors):
    return [tf.zeros_like(v) for v in tensors]


def _dropper(rows):
    """Returns the function that drops features of the previous output where it meets `U`."""
    if rows.dropout is None:
        return lambda h: h
    return lambda h: h * rows.dropout


def _zeros(shape, dtype):
    """Returns an array over the first axis that is zero where nothing is written."""
    return tf.TensorArray(dtype, shape[0]).unstack(tf.zeros(shape, dtype))


def _steps(v, start, size):
    """Returns `v[start : start + size]`, of which XLA has to know the size."""
    begin = [start, *[0] * (v.shape.rank - 1)]
    steps = tf.slice(v, begin, tf.concat([[size], tf.shape(v)[1:]], axis=0))
    return tf.ensure_shape(steps, [None, *v.shape[1:]])


def in_compiled_graph() -> bool:
    """Returns whether this is in a graph that is compiled as a whole."""
    return GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def _num_groups(batch, masked, compiled):
    """Returns how many launches the batch is cut into; its size may be unknown."""
    # A GPU takes one launch after the other.
    if not compiled or in_compiled_graph() or tf.config.list_logical_devices("GPU"):
        return 1
    most = MAX_GROUPS if masked else min(os.cpu_count(), MAX_GROUPS)
    return max(1, min(most, batch // MIN_ROWS)) if isinstance(batch, int) else most
