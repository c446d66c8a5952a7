"""What the docstrings show, and what the page of equations points to."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import keras
import pytest

from rnnapps import layers

PAGE = Path(__file__).parents[2] / "docs" / "equations.md"
CELLS = (layers.LSTMCell(1), layers.GRUCell(1))
MODULES = (
    "attention",
    "bidirectional",
    "cells",
    "crf",
    "pooling",
    "recurrent",
    "softmax_nats",
    "stack",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(f"rnnapps.layers.{name}")
    public = {name: getattr(layers, name) for name in layers.__all__}
    names = {"keras": keras, **vars(module), **public}
    examples = doctest.DocTestFinder().find(module, globs=names)
    if keras.backend.backend() == "jax":
        examples = [e for e in examples if not e.name.endswith("CRFAccuracy")]  # not for JAX
    runner = doctest.DocTestRunner()
    for example in examples:
        runner.run(example)
    assert runner.tries > 0
    assert runner.failures == 0


def test_every_public_name_has_an_example():
    for name in layers.__all__:
        assert ">>> " in inspect.getdoc(getattr(layers, name)), name


def test_the_page_of_equations_points_to_what_exists():
    page = PAGE.read_text(encoding="utf-8")
    defined = {
        f"{file.name}::{test}"
        for file in Path(__file__).parent.glob("*.py")
        for test in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = set(re.findall(r"`(test_[^`]*)`", page))
    assert named and named <= defined

    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    classes = {name for row in rows if len(row) == 6 for name in re.findall(r"`(\w+)`", row[2])}
    options = {option for cell in CELLS for option in cell.get_config()}
    assert classes - options == set(layers.__all__)
