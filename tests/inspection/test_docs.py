"""What the docstrings show."""

import doctest
import importlib

import numpy as np
import pytest

from rnnapps import layers

MODULES = (
    "rnnapps.inspection.gates",
    "rnnapps.inspection.occlusion",
    "rnnapps.inspection.step_gradients",
    "rnnapps.inspection.tracking",
    "rnnapps.experiments.learning_to_execute",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    names = {"np": np, "LSTM": layers.LSTM, **vars(module)}
    result = doctest.testmod(module, globs=names)
    assert result.attempted > 0
    assert result.failed == 0
