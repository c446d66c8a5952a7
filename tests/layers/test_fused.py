"""The engine against its equations, written once more as a plain loop and differentiated."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import equations, fused

UNITS, FEATURES = 4, 3
CELLS = {
    "elman": equations.Elman(),
    "sigmoid": equations.Elman("sigmoid"),
    "relu": equations.Elman("relu"),
    "linear": equations.Elman("linear"),
    "lstm": equations.LSTM(),
    "peephole": equations.LSTM(peephole=True),
    "gru": equations.GRU(),
    "reset_after": equations.GRUResetAfter(),
}
DIFFERENT = ("elman", "lstm", "peephole", "gru", "reset_after")


def step(name, x, states, W, U, b, p, dropout):
    """One step of the equations in the order of Keras' weights."""
    h = states[0]
    drop = (lambda v: v) if dropout is None else (lambda v: v * dropout)
    a = x @ W
    if name == "reset_after":
        a, s = (a, drop(h) @ U) if b is None else (a + b[0], drop(h) @ U + b[1])
        (a_u, a_r, a_h), (s_u, s_r, s_h) = tf.split(a, 3, 1), tf.split(s, 3, 1)
        u, r = tf.sigmoid(a_u + s_u), tf.sigmoid(a_r + s_r)
        return [u * h + (1 - u) * tf.tanh(a_h + r * s_h)]
    a = a if b is None else a + b
    if name == "gru":
        (a_u, a_r, a_h), (U_u, U_r, U_h) = tf.split(a, 3, 1), tf.split(U, 3, 1)
        u, r = tf.sigmoid(a_u + drop(h) @ U_u), tf.sigmoid(a_r + drop(h) @ U_r)
        return [u * h + (1 - u) * tf.tanh(a_h + (r * drop(h)) @ U_h)]
    a = a + drop(h) @ U
    if name in ("lstm", "peephole"):
        c = states[1]
        a_i, a_f, a_g, a_o = tf.split(a, 4, 1)
        p_i, p_f, p_o = tf.split(p, 3) if name == "peephole" else (0, 0, 0)
        i, f = tf.sigmoid(a_i + p_i * c), tf.sigmoid(a_f + p_f * c)
        c = f * c + i * tf.tanh(a_g)
        return [tf.sigmoid(a_o + p_o * c) * tf.tanh(c), c]
    activation = {
        "elman": tf.tanh,
        "sigmoid": tf.sigmoid,
        "relu": tf.nn.relu,
        "linear": tf.identity,
    }
    return [activation[name](a)]


def plain(name, x, weights, states, mask=None, reset=None, input_dropout=None, dropout=None):
    """The outputs, the last output and the final states, step by step."""
    x = x if input_dropout is None else x * input_dropout[:, tf.newaxis]
    states, outputs = list(states), []
    last = tf.zeros_like(states[0])
    for t in range(x.shape[1]):
        before = states
        if reset is not None:
            before = [tf.where(reset[:, t, tf.newaxis], tf.zeros_like(s), s) for s in states]
        after = step(name, x[:, t], before, *weights, dropout)
        valid = tf.ones([len(x), 1], bool) if mask is None else mask[:, t, tf.newaxis]
        states = [tf.where(valid, new, old) for new, old in zip(after, states, strict=True)]
        last = tf.where(valid, after[0], last)
        outputs.append(tf.where(valid, after[0], tf.zeros_like(after[0])))
    outputs = tf.stack(outputs, 1) if outputs else tf.zeros([len(x), 0, UNITS], x.dtype)
    return outputs, last, states


def problem(name, batch=5, time=17, bias=True, seed=0, dtype=np.float64):
    """Inputs, weights and initial states with nothing special about them."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return tf.constant(rng.normal(size=shape).astype(dtype) * 0.7)

    gates = {"lstm": 4, "peephole": 4, "gru": 3, "reset_after": 3}.get(name, 1)
    x = draw(batch, time, FEATURES)
    weights = [draw(FEATURES, gates * UNITS), draw(UNITS, gates * UNITS) * 0.6, None, None]
    if bias:
        rows = (2,) if name == "reset_after" else ()
        weights[2] = draw(*rows, gates * UNITS)
    if name == "peephole":
        weights[3] = draw(3 * UNITS)
    return x, weights, [draw(batch, UNITS) for _ in range(2 if gates == 4 else 1)]


def options(batch, time, *names, seed=1):
    """Masks and factors by name."""
    rng = np.random.default_rng(seed)
    lengths = np.arange(batch) * 7 % (time + 1)
    made = {
        "prefix": ("mask", np.arange(time) < lengths[:, None]),
        "suffix": ("mask", np.arange(time) >= time - lengths[:, None]),
        "holes": ("mask", (rng.random((batch, time)) < 0.6) & (np.arange(batch) != 1)[:, None]),
        "reset": ("reset", rng.random((batch, time)) < 0.2),
        "input_dropout": ("input_dropout", 2.0 * rng.integers(0, 2, (batch, FEATURES))),
        "recurrent_dropout": ("recurrent_dropout", 2.0 * rng.integers(0, 2, (batch, UNITS))),
    }
    return {made[name][0]: tf.constant(made[name][1]) for name in names}


def with_gradients(function, x, weights, states):
    """The results, and their gradients against fixed errors of every one of them."""
    arguments = [v for v in (x, *weights, *states) if v is not None]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        results = tf.nest.flatten(function())
        rng = np.random.default_rng(2)
        loss = tf.add_n([tf.reduce_sum(r * rng.normal(size=r.shape)) for r in results])
    # Weights that no step has used are unconnected in plain operations.
    return results, tape.gradient(loss, arguments, unconnected_gradients="zero")


def assert_equal(name, problem, options, in_graph=False, **how):
    x, weights, states = problem
    expected, expected_gradients = with_gradients(
        lambda: plain(
            name,
            x,
            weights,
            states,
            options.get("mask"),
            options.get("reset"),
            options.get("input_dropout"),
            options.get("recurrent_dropout"),
        ),
        *problem,
    )

    def run():
        return fused.run(CELLS[name], x, *weights, states=states, **options, **how)

    run = tf.function(run, autograph=False) if in_graph else run
    results, gradients = with_gradients(run, *problem)
    for one, other in zip(results + gradients, expected + expected_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_equations(name, bias):
    assert_equal(name, problem(name, bias=bias), {}, compiled=False, training=True)


ALL = ("reset", "input_dropout", "recurrent_dropout")
EACH = (("prefix",), ("suffix",), ("holes",), ("reset",), ("recurrent_dropout",))


@pytest.mark.parametrize(
    ("name", "used"),
    [(name, ("holes", *ALL)) for name in CELLS] + list(itertools.product(DIFFERENT, EACH)),
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_masks_resets_and_dropout(name, used):
    """All at once for every cell, and each alone for those that differ in more than `φ`."""
    assert_equal(name, problem(name), options(5, 17, *used), compiled=False, training=True)


@pytest.mark.parametrize(
    ("name", "used"),
    [
        *(pytest.param(name, ("holes", *ALL), id=f"{name}-all") for name in DIFFERENT),
        pytest.param("lstm", (), id="lstm-plain"),
        pytest.param("reset_after", (), id="reset_after-plain"),
    ],
)
def test_compiled(name, used):
    """Without a mask the groups are cut otherwise, whatever the cell: two cells try it."""
    assert_equal(name, problem(name, 19, 33), options(19, 33, *used), training=True)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("used", [("holes", "reset", "input_dropout"), ("recurrent_dropout",)])
def test_served(name, used):
    """In a graph that is not compiled, where a loop of its own runs if it has what is asked for."""
    assert_equal(name, problem(name), options(5, 17, *used), compiled=False, in_graph=True)


SIZES = tuple(itertools.product((0, 1, 18), (0, 1, 17, 33)))
COMPILED_SIZES = ((0, 0), (0, 33), (1, 1), (1, 17), (18, 0), (18, 17), (18, 33))


@pytest.mark.parametrize(
    ("batch", "time", "compiled"),
    [(*size, False) for size in SIZES] + [(*size, True) for size in COMPILED_SIZES],
)
def test_sizes(batch, time, compiled):
    """Compiled, which is slow: nothing, one and many of both, and one and two groups of rows."""
    used = options(batch, time, "prefix")
    assert_equal("gru", problem("gru", batch, time), used, compiled=compiled)


@pytest.mark.parametrize("batch", [0, 1, 3])
@pytest.mark.parametrize("time", [0, 1, 5])
@pytest.mark.parametrize("masked", [False, True])
def test_served_sizes(batch, time, masked):
    used = options(batch, time, "prefix") if masked else {}
    assert_equal("lstm", problem("lstm", batch, time), used, compiled=False, in_graph=True)


def test_one_long_row_among_many_short_ones():
    mask = tf.sequence_mask([40] + [1] * 30 + [0], 40)
    assert_equal("lstm", problem("lstm", 32, 40), {"mask": mask}, training=True)


@pytest.mark.parametrize("name", DIFFERENT)
def test_finite_differences(name):
    used = options(5, 17, "holes", *ALL)
    x, weights, states = problem(name)
    arguments = [x, *weights, *states]

    def run(arguments):
        x, *weights, p = arguments[:5]
        return fused.run(
            CELLS[name], x, *weights, p, states=arguments[5:], **used, compiled=False, training=True
        )

    def loss(arguments):
        rng = np.random.default_rng(2)
        results = tf.nest.flatten(run(arguments))
        return tf.add_n([tf.reduce_sum(r * rng.normal(size=r.shape)) for r in results])

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([v for v in arguments if v is not None])
        value = loss(arguments)
    gradients = [None if v is None else tape.gradient(value, v) for v in arguments]
    rng = np.random.default_rng(3)
    for n, gradient in enumerate(gradients):
        if arguments[n] is None:
            continue
        for _ in range(2):
            direction = rng.normal(size=gradient.shape)
            at = [
                loss([*arguments[:n], arguments[n] + s * 1e-6 * direction, *arguments[n + 1 :]])
                for s in (1, -1)
            ]
            slope = (at[0] - at[1]) / 2e-6
            np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("jit_compile", "compiled", "masked"),
    [(True, True, True), (True, False, False), (False, True, True), (False, False, True)],
)
def test_inside_a_graph_of_unknown_shapes(jit_compile, compiled, masked):
    x, weights, states = problem("lstm", 6, 21, dtype=np.float32)
    mask = options(6, 21, "prefix" if masked else "reset").popitem()[1]
    traces = []

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, FEATURES]),
            tf.TensorSpec([None, None], tf.bool),
        ],
        jit_compile=jit_compile,
    )
    def gradient(x, mask):
        traces.append(1)
        states = [tf.zeros([tf.shape(x)[0], UNITS])] * 2
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs, *_ = fused.run(
                CELLS["lstm"],
                x,
                *weights,
                states=states,
                mask=mask if masked else None,
                training=True,
                compiled=compiled,
            )
            loss = tf.reduce_sum(outputs**2)
        return outputs, tape.gradient(loss, x)

    for batch, time in ((6, 21), (6, 20), (2, 20)):
        part, part_mask = x[:batch, :time], mask[:batch, :time]
        with tf.GradientTape() as tape:
            tape.watch(part)
            zeros = [tf.zeros([batch, UNITS])] * 2
            expected, _, _ = plain("lstm", part, weights, zeros, part_mask if masked else None)
            loss = tf.reduce_sum(expected**2)
        outputs, dx = gradient(part, part_mask)
        np.testing.assert_allclose(outputs, expected, atol=1e-6)
        np.testing.assert_allclose(dx, tape.gradient(loss, part), atol=1e-5)
    assert len(traces) == 1


def test_padded_steps_are_not_run():
    x, weights, states = problem("linear", 4, 40)
    mask = tf.sequence_mask([3, 0, 2, 1], 40)
    # Would overflow within the padding, and 0 · ∞ is not a number.
    weights[1] = tf.eye(UNITS, dtype=x.dtype) * 1e60
    outputs, last, _ = fused.run(CELLS["linear"], x, *weights, states=states, mask=mask)
    assert np.isfinite(outputs).all() and np.isfinite(last).all()


@pytest.mark.parametrize("dtype", [np.float16, tf.bfloat16.as_numpy_dtype])
def test_half_precision_is_kept_outside_only(dtype):
    x, weights, states = problem("lstm", dtype=np.float32)
    half = tf.nest.map_structure(
        lambda v: None if v is None else tf.cast(v, dtype), (x, weights, states)
    )
    full = tf.nest.map_structure(lambda v: None if v is None else tf.cast(v, tf.float32), half)
    results, expected = (
        fused.run(CELLS["lstm"], x, *weights, states=states, compiled=False)
        for x, weights, states in (half, full)
    )
    for one, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, tf.cast(other, dtype))


def test_second_order_gradients_are_refused():
    x, weights, states = problem("elman")
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            outputs, *_ = fused.run(
                CELLS["elman"], x, *weights, states=states, compiled=False, training=True
            )
            loss = tf.reduce_sum(outputs**2)
        penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
    with pytest.raises(NotImplementedError, match='implementation="reference"'):
        outer.gradient(penalty, x)


def test_variables_get_their_gradients():
    x, weights, states = problem("elman")
    weights = [None if w is None else tf.Variable(w) for w in weights]
    with tf.GradientTape() as tape:
        outputs, *_ = fused.run(CELLS["elman"], x, *weights, states=states, compiled=False)
    gradients = tape.gradient(outputs, weights[:3])
    assert all(np.abs(gradient).sum() > 0 for gradient in gradients)
