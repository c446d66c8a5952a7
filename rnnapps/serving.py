"""Loading an exported model back into Python: plain lists in, plain objects out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from rnnapps.errors import UserError
from rnnapps.folders import reading


def load(directory: str | Path) -> "ServedModel":
    """Loads one version of an exported model.

    Args:
        directory: the version's folder, such as `saved_models/sentiment/1`.

    Raises:
        UserError: the folder is not an exported model, or is damaged.

    Example:
    >>> model = load("saved_models/sentiment/1")
    >>> answers = model.predict(["A film to love.", "There is nothing to like in it."])
    >>> [sorted(answer) for answer in answers]
    [['label', 'probabilities'], ['label', 'probabilities']]
    """
    directory = Path(directory)
    if not (directory / "saved_model.pb").exists():
        around = directory if directory.exists() else directory.parent
        versions = [child.parent for child in around.glob("[0-9]*/saved_model.pb")]
        latest = max(versions, key=lambda version: int(version.name), default=None)
        hint = f"; did you mean {latest}?" if latest else ""
        reason = "it has no saved_model.pb" if directory.exists() else "there is no such folder"
        raise UserError(f"{directory} is not an exported model: {reason}{hint}")
    return ServedModel(directory)


class ServedModel:
    """An exported model, which knows nothing but its signatures.

    Args:
        directory: the version's folder.
    """

    def __init__(self, directory: Path):
        self.directory = directory
        # Kept for as long as the signatures: TensorFlow frees the variables with it.
        with reading(directory):
            self._loaded = tf.saved_model.load(directory)
        self.signatures = self._loaded.signatures

    @property
    def weights(self) -> list[np.ndarray]:
        """The model's weights, in the order of the Keras model that was exported."""
        return [weight.numpy() for weight in self._loaded.weights]

    def call(self, signature: str, **inputs: Any) -> dict[str, Any]:
        """Calls a signature with Python values and returns its outputs as Python values.

        Args:
            signature: the signature's name.
            **inputs: a value or a (nested) list for each of its inputs.
        """
        function = self.signatures[signature]
        specs = function.structured_input_signature[1]
        tensors = {name: _tensor(value, specs[name]) for name, value in inputs.items()}
        return {name: _plain(value) for name, value in sorted(function(**tensors).items())}

    def predict(self, inputs: Sequence[Any], batch_size: int = 64) -> list[dict[str, Any]]:
        """Answers a list of inputs with `serving_default`.

        Args:
            inputs: one value for each example, such as a text.
            batch_size: how many are answered at once. Defaults to 64.

        Returns:
            One dict for each input, in order: the signature's outputs by name.

        Raises:
            TypeError: `inputs` is a single text.
        """
        if isinstance(inputs, str | bytes):
            raise TypeError(f"predict takes a list of inputs. Received: {inputs!r}")
        (name,) = self.signatures["serving_default"].structured_input_signature[1]
        answers = []
        for start in range(0, len(inputs), batch_size):
            outputs = self.call("serving_default", **{name: inputs[start : start + batch_size]})
            rows = zip(*outputs.values(), strict=True)
            answers += [dict(zip(outputs, row, strict=True)) for row in rows]
        return answers


def _tensor(value: Any, spec: tf.TensorSpec) -> tf.Tensor:
    # An empty list does not tell its own shape.
    shape = [size or 0 for size in spec.shape] if _is_empty(value) else None
    return tf.constant(value, spec.dtype, shape)


def _is_empty(value: Any) -> bool:
    # An array of texts, whose size numpy would tell, gives each the room of the longest.
    if isinstance(value, np.ndarray):
        return value.size == 0
    return isinstance(value, list | tuple) and all(map(_is_empty, value))


def _plain(value: tf.Tensor) -> Any:
    def decode(item):
        if isinstance(item, list):
            return [decode(child) for child in item]
        return item.decode("utf-8", "replace") if isinstance(item, bytes) else item

    return decode(value.numpy().tolist())
