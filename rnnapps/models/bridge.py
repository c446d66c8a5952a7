"""From what an encoder has read to where a decoder begins."""

import itertools
from collections.abc import Sequence

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rnnapps")
class Bridge(keras.layers.Layer):
    """Makes a decoder's initial states of an encoder's final ones (Bahdanau et al. 2015).

        s = tanh(W [h_1; h_2; …] + b)

    All states together decide each, so that neither the numbers of layers and directions nor the
    cells need be the same on both sides.

    Args:
        sizes: Number of features of each of the decoder's states.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        states: List of float tensors, `[batch, units]` each.

    Returns:
        List of float tensors, `[batch, size]` each.

    Example:

    >>> first, second = Bridge([4, 2])([keras.ops.ones((3, 5))])
    >>> first.shape, second.shape
    (TensorShape([3, 4]), TensorShape([3, 2]))
    """

    def __init__(self, sizes: Sequence[int], **kwargs):
        super().__init__(**kwargs)
        self.sizes = list(sizes)
        self.dense = keras.layers.Dense(sum(self.sizes), "tanh", dtype=self.dtype_policy)

    def build(self, states_shape):
        """Builds the dense layer for states of the shapes `[batch, units]` each."""
        self.dense.build((states_shape[0][0], sum(size for _, size in states_shape)))

    def call(self, states):
        """Computes the states that a decoder begins with."""
        started = self.dense(ops.concatenate(states, axis=-1))  # [batch, Σ sizes]
        ends = itertools.accumulate(self.sizes)
        return [
            started[:, end - size : end] for size, end in zip(self.sizes, ends, strict=True)
        ]  # [batch, size]

    def compute_output_shape(self, states_shape):
        """Returns the shapes of the states."""
        return [(states_shape[0][0], size) for size in self.sizes]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "sizes": self.sizes}
