"""What goes wrong with the recurrent layers of stock Keras 3.15 must not go wrong here."""

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, RNN, Bidirectional, Elman, GRUCell, LSTMCell, recurrent_stack
from tests.layers.backends import some_of, with_gradients

FEATURES, UNITS = 3, 4
LAYERS = some_of([Elman, LSTM, GRU], 1)
X = np.random.default_rng(0).normal(size=(3, 5, FEATURES)).astype("float32")
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)


def text_model(layer):
    """Text to one vector: the mask comes from the embedding."""
    inputs = keras.Input((), dtype="string")
    words = keras.layers.TextVectorization(vocabulary=["good", "bad", "film"])
    embedding = keras.layers.Embedding(words.vocabulary_size(), FEATURES, mask_zero=True)
    return keras.Model(inputs, layer(embedding(words(inputs))))


@pytest.mark.parametrize("layer_class", LAYERS)
def test_an_empty_text_alone_is_answered(tf, layer_class, tmp_path):
    """Stock LSTM cannot run zero steps: a batch of one empty string raises."""
    model = text_model(Bidirectional(layer_class(UNITS)))
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    for texts in ([""], ["   "], ["!!!"]):
        texts = tf.constant(texts)
        for answer in (model(texts), model.predict(texts, verbose=0), loaded.serve(texts)):
            np.testing.assert_array_equal(answer, np.zeros((1, 2 * UNITS)))
    assert loaded.serve(tf.constant([], tf.string)).shape == (0, 2 * UNITS)


@pytest.mark.parametrize("layer_class", LAYERS)
def test_a_text_does_not_see_its_neighbours(tf, layer_class):
    """Scores of a text alone and beside a longer one differ where padding is not masked."""
    model = text_model(Bidirectional(layer_class(UNITS)))
    alone = model(tf.constant(["good film"]))
    for others in (["bad"], ["film " * 30, "", "unheard of"]):
        together = model(tf.constant(["good film", *others]))
        np.testing.assert_allclose(together[:1], alone, atol=1e-6)


@pytest.mark.parametrize("layer_class", LAYERS)
@pytest.mark.parametrize("wrapper", [lambda layer: layer, Bidirectional], ids=["one", "both"])
def test_padded_steps_are_zero(layer_class, wrapper):
    """Stock layers repeat the last output on a CPU and give zeros on a GPU."""
    outputs = wrapper(layer_class(UNITS, return_sequences=True))(X, mask=MASK)
    np.testing.assert_array_equal(outputs[~MASK], 0)
    assert np.all(np.any(outputs[MASK] != 0, axis=-1))


@pytest.mark.parametrize("layer_class", LAYERS)
def test_a_row_without_a_valid_step_is_harmless(layer_class):
    """The cuDNN path of stock layers aborts on it."""
    layer = layer_class(UNITS, return_state=True)
    layer.build(X.shape)

    def loss():
        results = layer(X, mask=MASK)
        return keras.ops.sum(results[0]), results

    (_, results), gradients = with_gradients(loss, layer.trainable_weights)()
    for result in results:
        np.testing.assert_array_equal(result[2], 0)
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_masked_losses_are_means_over_valid_steps():
    """Once padding entered the mean."""
    logits = keras.layers.Dense(6)(
        LSTM(UNITS, return_sequences=True)(X, mask=keras.ops.convert_to_tensor(MASK))
    )
    np.testing.assert_array_equal(logits._keras_mask, MASK)
    targets = np.random.default_rng(1).integers(0, 6, MASK.shape)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(targets, logits)
    steps = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    assert float(loss) == pytest.approx(float(np.mean(np.array(steps)[MASK])), rel=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("layer_class", LAYERS)
def test_stateful_layers_run_and_train_in_half_precision(policy, layer_class):
    """Mixed precision with state once met two types in one operation."""
    inputs = keras.Input((None, FEATURES), batch_size=3)
    layer = Bidirectional(layer_class(UNITS, stateful=True, dtype=policy), dtype=policy)
    outputs = keras.layers.Dense(1, dtype="float32")(layer(keras.layers.Masking()(inputs)))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    history = model.fit(X, np.ones((3, 1)), batch_size=3, epochs=2, verbose=0)
    assert np.all(np.isfinite(history.history["loss"]))
    layer.reset_state()
    for states in (layer.forward_layer.states, layer.backward_layer.states):
        for state in states:
            np.testing.assert_array_equal(state, 0)


@pytest.mark.parametrize("layer_class", LAYERS)
def test_predict_traces_twice_at_most_over_ten_lengths(tf, layer_class):
    """A plain function is traced once for each length."""
    traces = []

    class Counting(layer_class):
        def inner_loop(self, sequences, *arguments):
            traces.append(sequences.shape)
            return super().inner_loop(sequences, *arguments)

    model = keras.Sequential([Counting(UNITS)])
    model.build((None, None, FEATURES))
    traces.clear()
    for timesteps in range(1, 11):
        model.predict(np.ones((2, timesteps, FEATURES), "float32"), verbose=0)
    assert len(traces) <= 2


def test_compiled_models_give_the_same_numbers():
    """cuDNN's kernel, which stock layers use on a GPU, cannot be compiled."""
    results = {}
    for jit_compile in (False, True):
        keras.utils.set_random_seed(1)
        backward = GRU(UNITS, return_sequences=True, go_backwards=True)
        layer = Bidirectional(LSTM(UNITS, return_sequences=True), backward_layer=backward)
        model = keras.Sequential([keras.layers.Masking(), layer, keras.layers.Dense(2)])
        model.compile(keras.optimizers.SGD(0.5), "mse", jit_compile=jit_compile)
        x = np.where(MASK[..., None], X, 0)
        loss = model.fit(x, np.ones((3, 5, 2)), epochs=2, verbose=0).history["loss"]
        results[jit_compile] = [loss, model.predict(x, verbose=0), *model.get_weights()]
    for one, other in zip(results[False], results[True], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_cell_that_draws_masks_leaves_no_randomness_in_an_inference_graph(tf):
    """Stock layers draw their dropout masks at inference too, unused."""
    rates = dict.fromkeys(("dropout", "recurrent_dropout", "recurrent_weight_dropout"), 0.5)
    layer = RNN(keras.layers.StackedRNNCells([LSTMCell(UNITS, **rates), GRUCell(UNITS, **rates)]))
    layer.build((None, None, FEATURES))

    def random_operations(training):
        run = tf.function(lambda x: layer(x, training=training)).get_concrete_function(X)
        graph = run.graph.as_graph_def()
        nodes = list(graph.node) + [n for f in graph.library.function for n in f.node_def]
        return [n.op for n in nodes if "Random" in n.op or n.op.startswith("Assign")]

    assert random_operations(training=True)
    assert not random_operations(training=False)


def test_states_are_returned_as_the_documents_say():
    """One tuple of the output and the states, also for a single state and both directions."""
    output, state = GRU(UNITS, return_state=True)(X)
    np.testing.assert_array_equal(output, state)
    (both,) = recurrent_stack("gru", UNITS, bidirectional=True, stateful=True)
    outputs, forward, backward = both(X)  # stock Bidirectional raises for stateful layers here
    np.testing.assert_array_equal(outputs[:, -1, :UNITS], forward)
    np.testing.assert_array_equal(outputs[:, 0, UNITS:], backward)
