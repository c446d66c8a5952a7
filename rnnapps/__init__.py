"""Recurrent sequence models for Keras 3, from the documented equations to a served model."""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # TensorFlow takes seconds to import, which `--help` need not pay.
    if name == "load":
        from rnnapps.serving import load

        return load
    raise AttributeError(f"module 'rnnapps' has no attribute {name!r}")
