"""Any lengths, any masks, any order of the rows: a row's result is its own."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from rnnapps.layers import GRU, LSTM, Bidirectional, Elman, Jordan

FEATURES, UNITS = 2, 3


def layers():
    options = {"return_sequences": True, "return_state": True}
    yield "elman", Elman(UNITS, **options)
    yield "jordan", Jordan(UNITS, 2, **options)
    yield "lstm_backwards", LSTM(UNITS, go_backwards=True, **options)
    yield "lstm_peephole", LSTM(UNITS, peephole=True, layer_norm=True, **options)
    yield "gru_both_ways", Bidirectional(GRU(UNITS, **options))
    yield "gru_after", GRU(UNITS, reset_after=True, **options)


@pytest.fixture(scope="module", params=layers(), ids=lambda pair: pair[0])
def run(request):
    """A layer with its gradient on the input, traced once for all shapes."""
    _, layer = request.param
    rng = np.random.default_rng(0)
    layer.build((None, None, FEATURES))
    layer.set_weights([rng.normal(scale=0.7, size=w.shape) for w in layer.weights])

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, FEATURES]),
            tf.TensorSpec([None, None], tf.bool),
        ]
    )
    def run(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs, *states = layer(x, mask=mask)
            loss = tf.reduce_sum(outputs) + tf.add_n([tf.reduce_sum(state) for state in states])
        return outputs, states, tape.gradient(loss, x)

    run.backwards = getattr(layer, "go_backwards", False)
    return run


def order_of(run, steps):
    return steps[:, ::-1] if run.backwards else steps


masks = st.one_of(
    st_numpy.arrays(bool, st_numpy.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)),
    st.tuples(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 2)).map(
        lambda pair: np.arange(max(pair[0]) + pair[1]) < np.array(pair[0])[:, None]
    ),
)


@settings(max_examples=25, deadline=None)
@given(masks, st.data())
def test_a_row_is_its_own(run, mask, data):
    batch, timesteps = mask.shape
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, timesteps, FEATURES)).astype("float32")
    outputs, states, gradient = run(x, mask)
    np.testing.assert_array_equal(order_of(run, outputs)[~mask], 0)
    np.testing.assert_array_equal(gradient[~mask], 0)

    # Another order of the rows.
    order = data.draw(st.permutations(range(batch)))
    moved, moved_states, _ = run(x[order], mask[order])
    np.testing.assert_allclose(moved, outputs.numpy()[order], atol=1e-6)
    for one, other in zip(moved_states, states, strict=True):
        np.testing.assert_allclose(one, other.numpy()[order], atol=1e-6)

    # One row alone, its masked steps left out, and other values in the masked steps of the batch.
    row = data.draw(st.integers(0, batch - 1))
    seen = mask[row]
    short, full = x[row : row + 1, seen], np.where(mask[..., None], x, 1e4).astype("float32")
    alone, alone_states, alone_gradient = run(short, np.ones(short.shape[:2], bool))
    noisy, noisy_states, _ = run(full, mask)
    for values, finals in ((outputs, states), (noisy, noisy_states)):
        values = order_of(run, values)[row][seen]
        np.testing.assert_allclose(values, order_of(run, alone)[0], atol=1e-6)
        for final, expected in zip(finals, alone_states, strict=True):
            np.testing.assert_allclose(final[row], expected[0], atol=1e-6)
    np.testing.assert_allclose(gradient[row][seen], alone_gradient[0], atol=1e-5)
