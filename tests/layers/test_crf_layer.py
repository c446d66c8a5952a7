"""The CRF as a layer: its constraints, its training in plain `fit`, its files and exports."""

import itertools
import json
import subprocess
import sys

import keras
import numpy as np
import pytest

from rnnapps.layers import CRF, CRFAccuracy, CRFLoss, crf
from tests.layers.backends import BACKEND, some_of, with_gradients

RNG = np.random.default_rng(0)
TAGS = 3
WORDS = RNG.integers(1, 7, size=(96, 7))
LENGTHS = RNG.integers(0, 8, size=96)
WORDS[np.arange(7) >= LENGTHS[:, None]] = 0
# A tag is 2 behind tag 1, whatever its word, and 1 in front of words above 3.
TRUTH = np.where(WORDS > 3, 1, 0)
for step in range(1, 7):
    TRUTH[TRUTH[:, step - 1] == 1, step] = 2
# 0 may not follow 1, nothing starts with 2, nothing ends with 1.
HAS_METRIC = BACKEND != "jax"
with_metric = pytest.mark.skipif(not HAS_METRIC, reason="a metric reads no weights on JAX")
ALLOWED = [[[1, 1, 1], [0, 1, 1], [1, 1, 1]], [1, 1, 0], [1, 0, 1]]


def built(**options):
    """A layer with random weights."""
    layer = CRF(TAGS, initializer=keras.initializers.RandomNormal(stddev=1.0, seed=1), **options)
    layer.build((None, None, TAGS))
    return layer


def tagger(**options):
    """A model from words to emissions, its CRF, and the model that decodes."""
    layer = CRF(TAGS, **options)
    inputs = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(7, 8, mask_zero=True)(inputs)
    emissions = keras.layers.Dense(TAGS)(states)
    model = keras.Model(inputs, layer(emissions))
    return model, layer, keras.Model(inputs, layer(emissions, decode=True))


def is_allowed(tags, allowed=ALLOWED):
    transitions, start, end = allowed
    pairs = all(transitions[a][b] for a, b in itertools.pairwise(tags))
    return not len(tags) or bool(pairs and start[tags[0]] and end[tags[-1]])


def test_the_layer_is_the_functions():
    layer = built()
    emissions = RNG.normal(size=(2, 4, TAGS)).astype("float32")
    tags, mask = RNG.integers(0, TAGS, size=(2, 4)), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool)
    weights = layer.get_weights()
    assert [w.name for w in layer.weights] == ["transitions", "start_scores", "end_scores"]
    pairs = [
        (layer.decode(emissions, mask), crf.viterbi(emissions, *weights, mask)),
        (layer(emissions, mask=mask, decode=True), crf.viterbi(emissions, *weights, mask)[0]),
        (layer.n_best(emissions, 3, mask), crf.n_best(emissions, 3, *weights, mask)),
        (layer.marginals(emissions, mask), crf.marginals(emissions, *weights, mask)),
        (
            layer.log_likelihood(emissions, tags, mask),
            crf.log_likelihood(emissions, tags, *weights, mask),
        ),
        (layer(emissions), emissions),
    ]
    for ours, theirs in pairs:
        keras.tree.map_structure(np.testing.assert_array_equal, ours, theirs)


def test_an_attached_mask_is_seen():
    layer = built()
    emissions = RNG.normal(size=(2, 4, TAGS)).astype("float32")
    emissions[0, 2:] = 0
    masked = keras.layers.Masking()(emissions)
    mask = np.any(emissions, axis=-1)
    expected = layer.decode(emissions, mask)
    for given in (masked, layer(masked)):
        keras.tree.map_structure(np.testing.assert_array_equal, layer.decode(given), expected)
        np.testing.assert_array_equal(layer.marginals(given), layer.marginals(emissions, mask))
    tags = layer(masked, decode=True)
    np.testing.assert_array_equal(tags._keras_mask, mask)


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_what_is_not_allowed_never_comes_out(scale):
    layer = built(allowed=ALLOWED)
    emissions = (RNG.normal(size=(60, 6, TAGS)) * scale).astype("float32")
    lengths = np.arange(60) % 7
    mask = np.arange(6) < lengths[:, None]
    tags, scores = map(np.array, layer.decode(emissions, mask))
    many, many_scores = map(np.array, layer.n_best(emissions, 8, mask))
    assert np.all(np.isfinite(scores))
    free = np.array(built().decode(emissions, mask)[0])
    unruly = 0
    for i, n in enumerate(lengths):
        assert is_allowed(tags[i, :n])
        ways = {way for way in itertools.product(range(TAGS), repeat=n) if is_allowed(way)}
        found = np.isfinite(many_scores[i])
        assert found.sum() == min(8, len(ways))
        assert {tuple(way) for way in many[i, found, :n].tolist()} <= ways
        unruly += not is_allowed(free[i, :n])
    assert unruly > 5  # without the constraints there would be others
    marginals = np.array(layer.marginals(emissions, mask))
    assert not marginals[:, 0, 2].any()
    assert not marginals[np.arange(60), lengths - 1, 1][lengths > 0].any()
    np.testing.assert_allclose(marginals.sum(axis=-1), mask, atol=1e-5)


def test_training_is_constrained_if_asked():
    emissions = RNG.normal(size=(1, 4, TAGS)).astype("float32")
    free, held = (built(allowed=ALLOWED, constrain_training=on) for on in (False, True))
    ways = np.array(list(itertools.product(range(TAGS), repeat=4)))
    of_all, of_allowed = (
        np.array(layer.log_likelihood(np.repeat(emissions, len(ways), axis=0), ways))
        for layer in (free, held)
    )
    assert np.all(np.isfinite(of_all))
    np.testing.assert_array_equal(np.isfinite(of_allowed), [is_allowed(way) for way in ways])
    for likelihoods in (of_all, of_allowed):
        assert np.exp(likelihoods).sum() == pytest.approx(1, abs=1e-5)

    # A sequence that is not allowed: an infinite loss, but gradients that do no harm.
    def loss():
        return CRFLoss(held)(np.array([[2, 1, 0, 1]]), held(emissions))

    value, gradients = with_gradients(loss, held.trainable_variables, in_one_graph=True)()
    assert float(value) == np.inf
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
    assert float(gradients[0][1][0]) == float(gradients[1][2]) == float(gradients[2][1]) == 0


@pytest.mark.parametrize("allowed", [[[[1]], [1], [1]], [np.ones((3, 3)), [1, 1], [1, 1, 1]]])
def test_constraints_have_the_shapes_of_the_weights(allowed):
    with pytest.raises(ValueError, match="Received: shapes"):
        CRF(TAGS, allowed=allowed)


def test_emissions_have_as_many_tags():
    with pytest.raises(ValueError, match=r"Received: shape \(2, 3, 4\)"):
        CRF(TAGS)(np.zeros((2, 3, 4)))


def test_the_loss_counts_valid_steps_only():
    layer = built()
    emissions = RNG.normal(size=(4, 5, TAGS)).astype("float32")
    tags = RNG.integers(0, TAGS, size=(4, 5))
    mask = np.arange(5) < np.array([[5], [2], [0], [3]])
    nll = -np.array(layer.log_likelihood(emissions, tags, mask))
    mean = nll.sum() / 3  # the empty row is not there
    loss = CRFLoss(layer)
    emissions[~mask] = np.nan

    masked = layer(keras.ops.convert_to_tensor(emissions))
    masked._keras_mask = keras.ops.convert_to_tensor(mask)
    told = {
        "mask": loss(tags, masked),
        "weights": loss(tags, emissions, mask.astype("float32")),
        "tags": loss(np.where(mask, tags, -1), emissions),
    }
    for how, value in told.items():
        assert float(value) == pytest.approx(mean, rel=1e-6), how
    rows = np.array([2.0, 0.5, 1.0, 0.0])
    weighted = (nll * rows).sum() / 2  # nor is the row of weight 0
    assert float(loss(tags, masked, rows)) == pytest.approx(weighted, rel=1e-6)
    assert float(loss(tags, masked, rows[:, None])) == pytest.approx(weighted, rel=1e-6)
    steps = mask * rows[:, None]
    assert float(loss(tags, masked, steps)) == pytest.approx(weighted, rel=1e-6)
    assert float(CRFLoss(layer, "sum")(tags, masked)) == pytest.approx(nll.sum(), rel=1e-6)
    np.testing.assert_allclose(CRFLoss(layer, None)(tags, masked), nll, rtol=1e-6)
    assert float(loss(tags, emissions, np.zeros((4, 5)))) == 0


def test_a_row_of_weight_0_can_be_impossible():
    layer = built(allowed=ALLOWED, constrain_training=True)
    tags, weights = np.array([[2, 0], [0, 0]]), np.array([0.0, 1.0])
    loss = CRFLoss(layer)(tags, layer(np.zeros((2, 2, TAGS), "float32")), weights)
    assert np.isfinite(loss)


@with_metric
def test_accuracy_is_that_of_the_best_sequences():
    layer = built()
    emissions = RNG.normal(size=(4, 5, TAGS)).astype("float32")
    mask = np.arange(5) < np.array([[5], [2], [0], [3]])
    best = np.array(layer.decode(emissions, mask)[0])
    tags = best.copy()
    tags[0, :2], tags[3, 0] = (tags[0, :2] + 1) % TAGS, (tags[3, 0] + 1) % TAGS
    accuracy = CRFAccuracy(layer)
    accuracy.update_state(np.where(mask, tags, -1), emissions)
    assert float(accuracy.result()) == pytest.approx(0.7)
    accuracy.reset_state()
    accuracy.update_state(tags, emissions, mask * np.array([[1.0], [1.0], [1.0], [4.0]]))
    assert float(accuracy.result()) == pytest.approx((3 + 2 + 2 * 4) / (5 + 2 + 3 * 4))


def test_no_metric_on_jax(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(NotImplementedError, match="JAX"):
        CRFAccuracy(CRF(2))


@pytest.mark.parametrize(
    ("policy", "jit_compile"),
    some_of([("float32", False), ("mixed_float16", False), ("mixed_bfloat16", True)], 0, 2),
)
def test_fit_learns(policy, jit_compile):
    """What is compiled of the CRF is float32 under every policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        model, layer, decoder = tagger()
    finally:
        keras.config.set_dtype_policy(before)
    optimizer = keras.optimizers.Adam(0.1)
    metrics = [CRFAccuracy(layer)] if policy == "float32" and HAS_METRIC else None
    jit_compile = jit_compile or BACKEND == "jax"  # where nothing else is fast
    model.compile(optimizer, CRFLoss(layer), jit_compile=jit_compile, metrics=metrics)
    history = model.fit(WORDS, TRUTH, epochs=20, batch_size=32, verbose=0).history
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    outputs = model(WORDS[:2])
    assert outputs.dtype == "float32"
    assert {w.dtype for w in layer.weights} == {"float32"}
    tags = decoder.predict(WORDS, verbose=0)
    valid = WORDS > 0
    right = (tags == TRUTH)[valid].mean()
    assert right > 0.97
    assert not tags[~valid].any()
    if metrics:
        measured = model.evaluate(WORDS, TRUTH, verbose=0, return_dict=True)["accuracy"]
        assert measured == pytest.approx(right, abs=1e-5)
        # The emissions alone cannot tell: what follows 1 is 2, whatever the word.
        alone = np.argmax(outputs, axis=-1)
        assert (alone == TRUTH[:2])[valid[:2]].mean() < 1


def test_half_precision_goes_no_further_than_the_emissions():
    layer, half = (built(dtype=policy) for policy in ("float32", "mixed_float16"))
    emissions = RNG.normal(size=(2, 4, TAGS)).astype("float32") * 3
    np.testing.assert_array_equal(half(emissions), emissions)
    coarse = emissions.astype("float16")
    given = half(coarse)
    assert given.dtype == "float32"
    for name, arguments in (("marginals", ()), ("log_likelihood", (np.zeros((2, 4), int),))):
        np.testing.assert_array_equal(
            getattr(half, name)(coarse, *arguments),
            getattr(layer, name)(coarse.astype("float32"), *arguments),
        )

    class Outer(keras.layers.Layer):
        """A layer under a mixed policy that uses the CRF inside."""

        def call(self, emissions):
            return half.marginals(emissions)

    np.testing.assert_array_equal(
        Outer(dtype="mixed_float16")(coarse), layer.marginals(coarse.astype("float32"))
    )


def test_fit_under_a_strategy_and_with_weights_for_padding(tf):
    plain = tagger()[0].get_weights()
    losses = []
    for strategy in (None, tf.distribute.MirroredStrategy(["/cpu:0"])):
        with strategy.scope() if strategy else tf.device("/cpu:0"):
            layer = CRF(TAGS)
            inputs = keras.Input((None,), dtype="int32")
            states = keras.layers.Embedding(7, 8)(inputs)  # no mask
            model = keras.Model(inputs, layer(keras.layers.Dense(TAGS)(states)))
            model.set_weights(plain)
            model.compile("sgd", CRFLoss(layer), weighted_metrics=[CRFAccuracy(layer)])
        history = model.fit(
            WORDS,
            TRUTH,
            sample_weight=(WORDS > 0).astype("float32"),
            epochs=2,
            shuffle=False,
            verbose=0,
        )
        losses.append(history.history["loss"])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    masked, layer, _ = tagger()
    masked.set_weights(plain)
    masked.compile("sgd", CRFLoss(layer))
    history = masked.fit(WORDS, TRUTH, epochs=2, shuffle=False, verbose=0).history
    np.testing.assert_allclose(history["loss"], losses[0], rtol=1e-5)


@pytest.mark.usefixtures("float64")
def test_configurations():
    options = {
        "num_tags": TAGS,
        "allowed": [np.array(part, bool).tolist() for part in ALLOWED],
        "constrain_training": True,
        "initializer": "ones",
        "regularizer": keras.regularizers.L2(0.5),
        "name": "tags",
        "dtype": "float64",
        "trainable": False,
    }
    layer = CRF(**options)
    config = json.loads(json.dumps(layer.get_config()))
    again = CRF.from_config(config)
    assert again.get_config() == layer.get_config()
    assert again.dtype == "float64" and not again.trainable and again.name == "tags"
    assert again.constrain_training and again.num_tags == TAGS
    again.trainable = True
    again.build((None, None, TAGS))
    np.testing.assert_array_equal(again.transitions, np.ones((TAGS, TAGS)))
    assert float(sum(again.losses)) == 0.5 * TAGS * (TAGS + 2)
    for one, other in zip(again.scores(), ALLOWED, strict=True):
        np.testing.assert_array_equal(np.isfinite(one), other)

    loss = CRFLoss(layer, reduction="sum", name="nll")
    again = CRFLoss.from_config(loss.get_config())
    assert (again.reduction, again.name, again.dtype) == ("sum", "nll", "float64")
    assert again.crf.get_config() == layer.get_config()


@with_metric
def test_configuration_of_the_metric():
    layer = CRF(TAGS)
    metric = CRFAccuracy.from_config(CRFAccuracy(layer, name="right").get_config())
    assert metric.name == "right" and metric.crf.get_config() == layer.get_config()


@pytest.mark.parametrize("kind", some_of(["functional", "sequential"], 0))
def test_a_keras_file_goes_on_training(kind, tmp_path):
    layer = CRF(TAGS, allowed=ALLOWED)
    if kind == "functional":
        inputs = keras.Input((None,), dtype="int32")
        states = keras.layers.Embedding(7, 8, mask_zero=True)(inputs)
        model = keras.Model(inputs, layer(keras.layers.Dense(TAGS)(states)))
    else:
        layers = [keras.layers.Embedding(7, 8, mask_zero=True), keras.layers.Dense(TAGS), layer]
        model = keras.Sequential(layers)
    metrics = [CRFAccuracy(layer)] if HAS_METRIC else None
    model.compile(keras.optimizers.Adam(0.1), CRFLoss(layer), metrics=metrics)
    model.fit(WORDS, TRUTH, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.loss.crf is loaded.layers[-1]
    assert loaded.layers[-1].get_config() == layer.get_config()
    histories = [
        one.fit(WORDS, TRUTH, epochs=2, verbose=0, shuffle=False).history for one in (model, loaded)
    ]
    for name in ("loss", "accuracy") if HAS_METRIC else ("loss",):
        np.testing.assert_allclose(histories[0][name], histories[1][name], rtol=1e-6)
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_a_decoder_in_a_keras_file(tmp_path):
    model, layer, decoder = tagger(allowed=ALLOWED)
    decoder.save(tmp_path / "decoder.keras")
    loaded = keras.saving.load_model(tmp_path / "decoder.keras")
    np.testing.assert_array_equal(loaded(WORDS), decoder(WORDS))
    assert decoder.output_shape == (None, None)


@keras.saving.register_keras_serializable(package="test")
class Subclassed(keras.Model):
    """A model that keeps its layers to itself."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.crf = CRF(TAGS)

    def call(self, emissions):
        return self.crf(emissions)


def test_a_loss_without_its_layer_says_so(tmp_path):
    emissions, tags = np.zeros((4, 2, TAGS), "float32"), np.zeros((4, 2), int)
    with pytest.raises(ValueError, match="must be part of the model"):
        CRFLoss(CRF(TAGS))(tags, emissions)
    model = Subclassed()
    model.compile("sgd", CRFLoss(model.crf))
    model.fit(emissions, tags, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="compile it again"):
        loaded.fit(emissions, tags, verbose=0)
    loaded.compile("sgd", CRFLoss(loaded.crf))
    loaded.fit(emissions, tags, verbose=0)


CLEAN = """
import sys
sys.modules["keras"] = sys.modules["rnnapps"] = None
import numpy as np
import tensorflow as tf
folder = sys.argv[1]
model = tf.saved_model.load(folder + "/served")
answers = model.answer(np.load(folder + "/words.npy"))
np.savez(folder + "/answers.npz", **{name: value.numpy() for name, value in answers.items()})
"""


def test_a_saved_model_needs_nothing_but_tensorflow(tf, tmp_path):
    model, layer, decoder = tagger(allowed=ALLOWED)
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.weights])
    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)])
    def answer(words):
        emissions = model(words)
        tags, scores = layer.decode(emissions)
        many, many_scores = layer.n_best(emissions, 3)
        answers = {"tags": tags, "scores": scores, "many": many, "many_scores": many_scores}
        return {**answers, "marginals": layer.marginals(emissions)}

    module.answer = answer
    tf.saved_model.save(module, tmp_path / "served")
    np.save(tmp_path / "words.npy", WORDS)
    command = [sys.executable, "-P", "-c", CLEAN, str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    expected = answer(WORDS)
    with np.load(tmp_path / "answers.npz") as found:
        assert set(found) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6, err_msg=name)
    decoder.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    np.testing.assert_array_equal(served.serve(WORDS.astype("int32")), expected["tags"])
    assert served.serve(np.zeros((2, 0), "int32")).shape == (2, 0)
