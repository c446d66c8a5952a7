"""A recurrent layer run both ways."""

import keras


@keras.saving.register_keras_serializable(package="rnnapps")
class Bidirectional(keras.layers.Bidirectional):
    """A recurrent layer and its mirror image (Schuster & Paliwal 1997).

    One run goes in time order, one in reverse; neither sees the other, and their outputs are put
    side by side at every step. It is the layer of stock Keras, its arguments included, but it can
    also be stateful and return its states at the same time.

    Example:

    >>> layer = Bidirectional(LSTM(4, return_sequences=True, return_state=True))
    >>> outputs, *states = layer(keras.ops.ones((2, 5, 3)))
    >>> outputs.shape, len(states)
    (TensorShape([2, 5, 8]), 4)
    """

    def compute_mask(self, sequences, mask=None):
        """Returns the mask of the outputs; the states have none."""
        mask = mask if self.return_sequences else None
        return [mask] * (2 if self.merge_mode is None else 1)
