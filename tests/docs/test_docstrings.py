"""The examples in docstrings run, and give what they say.

They may use, besides the names of their own module, what every reader is taken to have imported:
`np`, `tf`, `keras`, and the public names of `rnnapps.layers` and `rnnapps.models`.
"""

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest

import rnnapps

PACKAGE = Path(rnnapps.__file__).parent


def docstrings(file: Path) -> list[str]:
    """All docstrings of a module."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in nodes if isinstance(node, documented)]


def has_example(text: str) -> bool:
    return bool(re.search("^(Example:|>>> )|```", text, re.MULTILINE))


WITH_EXAMPLES = sorted(
    file for file in PACKAGE.rglob("*.py") if any(map(has_example, docstrings(file)))
)


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_examples_run(file, workplace, little_work, request):
    import keras
    import numpy as np
    import tensorflow as tf

    from rnnapps import layers, models

    for text in filter(has_example, docstrings(file)):
        if "saved_models/" in text:
            request.getfixturevalue("exported")
        assert ">>> " in text and "```" not in text, f"an example that is not run:\n{text}"
    name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    public = {name: getattr(room, name) for room in (layers, models) for name in room.__all__}
    names = {"np": np, "tf": tf, "keras": keras, **public, **vars(module)}
    result = doctest.testmod(module, globs=names)
    assert result.attempted > 0
    assert result.failed == 0
