"""How an error finds its way back: vanishing, exploding, and what clipping does.

An error at the last of 128 steps only is sent back through real layers, and what each step adds to
the gradient of the input matrix W is measured (Pascanu, Mikolov & Bengio 2013): first where the
weights are set so that each step's Jacobian is known, then in networks at their initialisation and
after they were trained to remember a word from one end of the text to the other.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rnnapps.experiments import memory_models, memory_texts
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.lines import Panel, lines
from rnnapps.inspection.step_gradients import StepGradients, step_gradients
from rnnapps.layers import LSTM, Elman

DISTANCES = (5, 10, 20, 40)


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        steps: time steps of a sequence.
        units: units of a layer.
        training_steps: training steps of 32 texts for each network.
        cells: which networks take part.
        radii: spectral radii of U.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    steps: int = 128
    units: int = 32
    training_steps: int = 300
    cells: tuple[str, ...] = ("Elman", "LSTM", "GRU")
    radii: tuple[float, ...] = (0.9, 1.0, 1.1)
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(
    steps=60, units=24, training_steps=150, cells=("Elman", "LSTM"), implementation="reference"
)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Measures the shares of the steps."""
    exact = {
        "Elman, φ' = 0.5, U = 0.9": (_resting_elman(), 0.45),
        "LSTM, f = 0.9": (_held_lstm(np.log(9.0)), 0.9),
        "LSTM, f = 1": (_held_lstm(1e3), 1.0),
    }
    decays = {name: _decay(layer) for name, (layer, _) in exact.items()}
    by_radius = {f"radius {r:g}": _of_radius(r, size, seed) for r in size.radii}
    clipping = {name: _clipped(shares) for name, shares in by_radius.items()}
    fresh, trained, accuracy = {}, {}, {}
    for name in size.cells:
        fresh[name], trained[name], accuracy[name] = _before_and_after(name, size, seed)

    away = np.arange(size.steps)[::-1]
    country = memory_texts.length(0) - 1
    reach = {
        name: [_relative(of[name].kernel_norms)[country] for of in (fresh, trained)]
        for name in size.cells
    }
    claims = {
        "real layers decay as (0.5 · 0.9)^t, 0.9^t and 1^t": all(
            np.allclose(decays[name], factor ** np.arange(41), rtol=1e-6)
            for name, (_, factor) in exact.items()
        ),
        "the shares go as radius^distance": all(
            np.allclose(shares.kernel_norms / shares.kernel_norms[-1], radius**away, rtol=1e-6)
            for radius, shares in zip(size.radii, by_radius.values(), strict=True)
        ),
        "clipping bounds the step but not its direction, so that nothing comes back": all(
            told["length_after"] <= 1 + 1e-6 and np.isclose(told["cosine"], 1)
            for told in clipping.values()
        ),
        "training lengthens the LSTM's reach, and shortens the Elman network's": (
            reach["LSTM"][1] > reach["LSTM"][0] and reach["Elman"][1] < reach["Elman"][0]
        ),
        "then a million times more of the error reaches the word to remember in the LSTM": (
            reach["LSTM"][1] > 1e6 * reach["Elman"][1]
        ),
    }
    shown = [step for step in (1, country + 1, 32, 64, 96, 128) if step <= size.steps]

    def told(of: Mapping[str, StepGradients]) -> dict:
        return {
            name: {
                "W": _relative(shares.kernel_norms)[np.array(shown) - 1],
                "input": _relative(shares.input_norms)[np.array(shown) - 1],
            }
            for name, shares in of.items()
        }

    numbers = {
        "distances": DISTANCES,
        "decay": {name: decay[list(DISTANCES)] for name, decay in decays.items()},
        "spectral_radius": {
            name: _relative(shares.kernel_norms)[0] for name, shares in by_radius.items()
        },
        "clipping": clipping,
        "steps": shown,
        "step_of_the_country": country + 1,
        "at_initialisation": told(fresh),
        "after_training": told(trained),
        "accuracy_after_training": accuracy,
    }
    return Result(
        rounded(claims),
        rounded(numbers),
        {"gradient-flow": _figure(decays, by_radius, clipping, fresh, trained, size)},
    )


def _relative(norms: np.ndarray) -> np.ndarray:
    """Returns lengths as parts of the last step's."""
    return norms / norms[-1]


def _resting_elman() -> Elman:
    """One unit that comes to rest where tanh' = 0.5, and U = 0.9."""
    h, U = np.sqrt(0.5), 0.9
    layer = Elman(1, dtype="float64")
    layer.build((None, None, 1))
    layer.set_weights([np.zeros((1, 1)), np.array([[U]]), np.array([np.arctanh(h) - U * h])])
    return layer


def _held_lstm(forget_bias: float) -> LSTM:
    """One unit whose gates are held by their biases, with U = 0."""
    layer = LSTM(1, dtype="float64")
    layer.build((None, None, 1))
    layer.set_weights([np.zeros((1, 4)), np.zeros((1, 4)), np.array([0, forget_bias, 0, 0])])
    return layer


def _decay(layer) -> np.ndarray:
    """Returns the shares of the last step and of the 40 before it, as parts of the last."""
    # The Elman unit, which starts from 0, has come to rest well before.
    shares = step_gradients(layer, np.ones((1, 128, 1)), _at_the_end(np.ones((1, 1)), 128))
    return _relative(shares.kernel_norms)[: -DISTANCES[-1] - 2 : -1]


def _at_the_end(errors: np.ndarray, steps: int) -> np.ndarray:
    """Returns errors `[batch, units]` as those of the last of so many steps."""
    placed = np.zeros((len(errors), steps, errors.shape[1]))
    placed[:, -1] = errors
    return placed


def _of_radius(radius: float, size: Size, seed: int) -> StepGradients:
    """The shares in a tanh layer at rest whose U is a rotation times the radius."""
    layer = Elman(
        size.units,
        kernel_initializer="zeros",
        recurrent_initializer=keras.initializers.Orthogonal(gain=radius, seed=seed),
        dtype="float64",
    )
    layer.build((None, None, 1))
    error = np.random.default_rng(seed).normal(size=(1, size.units))
    return step_gradients(layer, np.ones((1, size.steps, 1)), _at_the_end(error, size.steps))


def _clipped(shares: StepGradients) -> dict[str, float]:
    """What Keras' clipping to length 1 does to the step that is taken at a learning rate of 1."""
    gradient = shares.kernel.sum(axis=0)  # [features, gates·units]
    weight = keras.Variable(np.zeros_like(gradient), dtype="float64")
    optimizer = keras.optimizers.SGD(1.0, global_clipnorm=1.0)
    optimizer.apply([tf.constant(gradient)], [weight])
    step = -weight.numpy()
    lengths = np.linalg.norm(gradient), np.linalg.norm(step)
    return {
        "length_before": lengths[0],
        "length_after": lengths[1],
        "cosine": (gradient * step).sum() / np.prod(lengths),
        "first_step_of_last": _relative(shares.kernel_norms)[0],
    }


def _before_and_after(
    name: str, size: Size, seed: int
) -> tuple[StepGradients, StepGradients, float]:
    """The shares in a network that reads memory texts, at initialisation and after training.

    The last number is what share of texts of the longest gap it then answers rightly.
    """
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    gap = size.steps - memory_texts.length(0)
    ids, answers = memory_texts.draw(rng, np.full(32, gap))
    model = memory_models.acceptor(name, size.units, implementation=size.implementation)
    fresh = _shares(model, ids, answers)
    # Texts of all gaps, so that each network learns something.
    memory_models.fit(model, rng, gap, size.training_steps, memory_texts.SHORTEST_GAP)
    return fresh, _shares(model, ids, answers), memory_models.accuracy(model, rng, gap)


def _shares(model, ids: np.ndarray, answers: np.ndarray) -> StepGradients:
    """The shares of the steps of a batch in the gradient of its loss."""
    layer = model.encoder.encoder.recurrent_layers[0]
    embedded = model.encoder.embed(ids)  # [batch, time, embedding_size]
    last = layer(embedded)[1]  # [batch, units]
    with tf.GradientTape() as tape:
        tape.watch(last)
        loss = keras.losses.sparse_categorical_crossentropy(
            answers, model.output_layer(last), from_logits=True
        )
    errors = tape.gradient(loss, last)
    return step_gradients(layer, embedded, _at_the_end(errors.numpy(), ids.shape[1]))


def _figure(decays, by_radius, clipping, fresh, trained, size: Size):
    steps = np.arange(1, size.steps + 1)
    part = "share in ∂E/∂W\n(step 128 = 1)".replace("128", str(size.steps))
    over_steps: dict[str, Any] = {"xlabel": "time step", "yscale": "log"}

    def relative(of: Mapping[str, StepGradients]) -> dict:
        return {name: _relative(shares.kernel_norms) for name, shares in of.items()}

    before = {name: shares.kernel_norms for name, shares in by_radius.items()}
    after = {
        name: before[name] * told["length_after"] / told["length_before"]
        for name, told in clipping.items()
    }
    return lines(
        [
            Panel(
                np.arange(41),
                decays,
                "steps before the error",
                "share in ∂E/∂W\n(that of the error's step = 1)",
                "weights set by hand",
                yscale="log",
            ),
            Panel(
                steps,
                before,
                ylabel="share in ∂E/∂W (length)",
                title="U a rotation times a radius",
                **over_steps,
            ),
            Panel(
                steps,
                after,
                ylabel="share in the step taken (length)",
                title="the same, clipped to length 1",
                **over_steps,
            ),
            Panel(steps, relative(fresh), ylabel=part, title="at initialisation", **over_steps),
            Panel(steps, relative(trained), ylabel=part, title="after training", **over_steps),
            Panel(
                steps,
                {name: _relative(shares.input_norms) for name, shares in trained.items()},
                ylabel=part.replace("share in ∂E/∂W", "∂E/∂(input of the step)"),
                title="after training, the inputs",
                **over_steps,
            ),
        ]
    )
