"""Where on a grid its features stand."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rnnapps")
class Coordinates(keras.layers.Layer):
    """Tells each place of a grid where it stands (CoordConv, Liu et al. 2018).

    Args:
        **kwargs: `name` and `dtype`, as for every Keras layer.

    Call arguments:
        features: Float tensor, `[batch, rows, columns, channels]`.

    Returns:
        The features with two more channels, the row and the column, each from -1 to 1.

    Example:

    >>> Coordinates()(keras.ops.zeros((1, 1, 3, 1)))[0, 0].numpy()
    array([[ 0.,  0., -1.],
           [ 0.,  0.,  0.],
           [ 0.,  0.,  1.]], dtype=float32)
    """

    def call(self, features):
        """Adds the channels."""
        shape = ops.shape(features)
        one = ops.zeros_like(features[..., :1])  # [batch, rows, columns, 1]
        rows = self._places(shape[1])[:, None, None]
        columns = self._places(shape[2])[:, None]
        return ops.concatenate([features, one + rows, one + columns], axis=-1)

    def _places(self, number):
        """Returns numbers from -1 to 1, `[number]`; 0 for one."""
        places = ops.cast(ops.arange(number), "float32")
        last = ops.cast(number - 1, "float32")
        return ops.cast((2 * places - last) / ops.maximum(last, 1), self.compute_dtype)

    def compute_output_shape(self, features_shape):
        """Returns the shape with two more channels."""
        return (*features_shape[:-1], features_shape[-1] + 2)
