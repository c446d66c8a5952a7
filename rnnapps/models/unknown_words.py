"""Training for the words that nobody has seen."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rnnapps")
class UnknownWords(keras.layers.Layer):
    """Reads rare words as the unknown one now and then, so that its vector is trained.

    Otherwise a word that was not in the training texts would meet a vector that is as random as on
    the first day (Lample et al. 2016).

    Args:
        first_rare: The id from which on words are rare, as they are in a vocabulary by frequency.
        share: How often, from 0 to 1, a rare word is read as unknown in training. Default: 0.5.
        unknown: The id of the unknown word. Default: 1.
        seed: Seeds the draws. Default: `None`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        ids: Integer tensor of any shape.
        training: Whether to replace. Default: `None`, as the surrounding call says.

    Returns:
        The ids, of the same shape.

    Example:

    >>> UnknownWords(first_rare=3, share=1.0)(ops.array([2, 3, 4, 0]), training=True).numpy()
    array([2, 1, 1, 0], dtype=int32)
    """

    def __init__(
        self,
        first_rare: int,
        share: float = 0.5,
        unknown: int = 1,
        seed: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.first_rare = first_rare
        self.share = share
        self.unknown = unknown
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, ids, training=None):
        """Replaces."""
        if not training or not self.share:
            return ids
        draws = keras.random.uniform(ops.shape(ids), seed=self.seed_generator)
        replaced = ops.logical_and(ids >= self.first_rare, draws < self.share)
        return ops.where(replaced, ops.full_like(ids, self.unknown), ids)

    def compute_output_shape(self, ids_shape):
        """Returns the shape of the ids."""
        return ids_shape

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "first_rare": self.first_rare,
            "share": self.share,
            "unknown": self.unknown,
            "seed": self.seed,
        }
