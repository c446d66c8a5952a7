"""The values told of each step are those that the layers compute."""

import numpy as np
import pytest

from rnnapps.inspection.gates import gate_values
from rnnapps.layers import GRU, LSTM, Elman, Jordan

# Of four units that are nearly alike, layer normalisation makes a rounding error a large one.
OPTIONS = {"return_sequences": True, "return_state": True, "dtype": "float64"}
LAYERS = (
    Elman(4, **OPTIONS),
    Jordan(5, 4, **OPTIONS),
    LSTM(4, peephole=True, layer_norm=True, **OPTIONS),
    LSTM(4, **OPTIONS),
    GRU(4, **OPTIONS),
    GRU(4, reset_after=True, layer_norm=True, **OPTIONS),
)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_they_are_what_the_layer_returns(layer):
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    outputs, *states = layer(x)
    values = gate_values(layer, x)
    output = values["y" if isinstance(layer, Jordan) else "h"]
    np.testing.assert_allclose(output, outputs, atol=1e-9)
    if isinstance(layer, LSTM):
        np.testing.assert_allclose(values["c"][:, -1], states[1], atol=1e-9)
        written = values["i"] * values["g"]
        np.testing.assert_allclose(values["c"][:, 0], written[:, 0], atol=1e-9)
        kept = values["f"][:, 1:] * values["c"][:, :-1]
        np.testing.assert_allclose(values["c"][:, 1:], kept + written[:, 1:], atol=1e-9)
    if isinstance(layer, GRU):
        u = values["u"][:, 1:]
        mixed = u * output[:, :-1] + (1 - u) * values["h̃"][:, 1:]
        np.testing.assert_allclose(output[:, 1:], mixed, atol=1e-9)


def test_a_run_goes_on_from_given_states():
    layer = LSTM(4, return_state=True)
    x = np.random.default_rng(1).normal(size=(2, 6, 3)).astype("float32")
    whole = gate_values(layer, x)
    _, *states = layer(x[:, :4])
    rest = gate_values(layer, x[:, 4:], states)
    np.testing.assert_allclose(rest["f"], whole["f"][:, 4:], atol=1e-6)


def test_half_precision_and_numbers_of_another_one():
    layer = LSTM(4, peephole=True, dtype="mixed_bfloat16", return_sequences=True)
    x, state = np.random.default_rng(2).normal(size=(2, 5, 3)), np.zeros((2, 4))
    values = gate_values(layer, x, [state, state])
    assert values["c"].dtype == "float32"
    np.testing.assert_allclose(values["h"], np.array(layer(x), "float32"), atol=0.02)


def test_no_step_is_refused():
    with pytest.raises(ValueError, match="Received"):
        gate_values(LSTM(4), np.zeros((2, 0, 3), "float32"))
