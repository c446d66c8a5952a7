"""Images to vectors of their regions."""

import math

import keras
from keras import ops

from rnnapps.errors import UserError
from rnnapps.models.backbones import require_grid
from rnnapps.models.coordinates import Coordinates


@keras.saving.register_keras_serializable(package="rnnapps")
class ImageEncoder(keras.layers.Layer):
    """Sees an image as a list of regions, and as a whole (Vinyals et al. 2015; Xu et al. 2015).

        v_i = relu(W [f_i; p_i] + b),    g = LN(max_i v_i)

    where f_1 … f_L are the features that a convolutional network, the backbone, has found on its
    grid, row by row, and p_i is where on the grid, its row and column from -1 to 1 (Liu et al.
    2018), which tells left from right. An attention looks at the v_i; a decoder begins with g, the
    largest of each of their values, brought to one scale (LN, Ba et al. 2016): those of a large
    backbone would otherwise drive the decoder's first states to the ends of their tanh, where
    nothing is learnt.

    The backbone always runs in inference mode, also where it is trained: batch normalisation keeps
    the statistics that it has learnt, and an image's features do not depend on its batch. Those of
    a backbone that is not trained can be computed once, by `features`, and given in place of the
    images.

    Args:
        backbone: A built model from images, `[batch, height, width, 3]` in 0..255, to features,
            `[batch, rows, columns, channels]`, such as those of `rnnapps.models.backbones`.
        units: Size of a region's vector.
        dropout: Share of the features that is dropped in training. Default: 0.
        train_backbone: Whether the backbone's weights are trained; its `trainable` is set
            accordingly. Default: `True`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        images: Float or integer tensor, `[batch, height, width, 3]`, in 0..255; or what `features`
            gave for them. The number of channels tells which.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        The regions' vectors, `[batch, regions, units]`, all of them valid; and a list of one state,
        the image's vector, `[batch, units]`.

    Raises:
        UserError: If the backbone is not such a model, or the images are too small for it or not of
            the size that it takes.
        ValueError: If the inputs are neither images nor features.

    Example:

    >>> from rnnapps.models.backbones import small_cnn
    >>> encoder = ImageEncoder(small_cnn((16, 32)), units=8)
    >>> images = keras.ops.zeros((2, 24, 32, 3))
    >>> outputs, states = encoder(images)
    >>> outputs.shape, states[0].shape
    (TensorShape([2, 48, 8]), TensorShape([2, 8]))
    >>> bool(keras.ops.all(encoder(encoder.features(images))[0] == outputs))
    True
    """

    def __init__(
        self,
        backbone: keras.Model,
        units: int,
        dropout: float = 0.0,
        train_backbone: bool = True,
        **kwargs,
    ):
        # Pixels would lose their last digits in half precision.
        super().__init__(autocast=False, **kwargs)
        require_grid(backbone)
        backbone.trainable = train_backbone
        self.backbone = backbone
        self.units = units
        self.dropout = dropout
        self.train_backbone = train_backbone
        self.channels = backbone.output_shape[-1]
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.coordinates = Coordinates(dtype=self.dtype_policy)
        self.dense = keras.layers.Dense(units, "relu", dtype=self.dtype_policy)
        self.normalization = keras.layers.LayerNormalization(dtype=self.dtype_policy)

    @property
    def output_size(self) -> int:
        """Number of features of the outputs."""
        return self.units

    def build(self, images_shape):
        """Builds the layers for images or features of the shape given."""
        if self._are_images(images_shape):
            self.grid(*images_shape[1:3])
        self.dense.build((images_shape[0], None, self.channels + 2))
        self.normalization.build((images_shape[0], self.units))

    def call(self, images, training=None):
        """Sees the images, or what is known of them."""
        features = self.features(images) if self._are_images(images.shape) else images
        features = ops.cast(features, self.compute_dtype)
        features = self.dropout_layer(features, training=training)
        features = self.coordinates(features)  # [batch, rows, columns, channels + 2]
        regions = ops.shape(features)[1] * ops.shape(features)[2]
        features = ops.reshape(
            features, (-1, regions, self.channels + 2)
        )  # [batch, regions, channels + 2]
        outputs = self.dense(features)  # [batch, regions, units]
        # No value is below 0, and Keras wants to be told what is the largest of none.
        largest = ops.max(outputs, axis=1, initial=0)  # [batch, units]
        return outputs, [self.normalization(largest)]

    def features(self, images):
        """Returns the backbone's features of images, `[batch, rows, columns, channels]`."""
        rows = ops.shape(images)[0]
        # TensorFlow's convolutions of no images give wrong shapes: there is always one.
        one = ops.zeros((ops.maximum(1 - rows, 0), *ops.shape(images)[1:]), "float32")
        images = ops.concatenate([ops.cast(images, "float32"), one])  # [batch or 1, height, …]
        return self.backbone(images, training=False)[:rows]

    def last_output(self, states: list):
        """Returns the image's vector, `[batch, units]`, of the states that the call returned."""
        return states[0]

    def grid(self, height: int | None, width: int | None) -> tuple[int | None, int | None]:
        """Returns the rows and columns of the features of images of a size.

        Args:
            height: The images' height, `None` where it is not known.
            width: Their width, likewise.

        Raises:
            UserError: If the backbone takes images of another size only, or they are too small
                for it, of which TensorFlow's convolution says nothing, but gives what happens to
                be in memory.
        """
        try:
            return tuple(self.backbone.compute_output_shape((None, height, width, 3))[1:3])
        except ValueError as error:
            size = self.backbone.input_shape[1:3]
            told = "are too small for the feature extractor"
            if None not in size:
                told = "must be {} high and {} wide for the feature extractor".format(*size)
            raise UserError(
                f"the images {told}. Received: height={height}, width={width}"
            ) from error

    def compute_mask(self, images, mask=None):
        """Returns none: all regions are valid, also those of a black image."""
        return None

    def compute_output_shape(self, images_shape):
        """Returns the shapes of the outputs and of the states."""
        batch, *grid = images_shape[:3]
        if self._are_images(images_shape):
            grid = self.grid(*grid)
        regions = None if None in grid else math.prod(grid)
        return (batch, regions, self.units), [(batch, self.units)]

    def _are_images(self, shape) -> bool:
        if len(shape) != 4 or shape[-1] not in (3, self.channels):
            raise ValueError(
                f"The last of four dimensions must be 3, of images, or {self.channels}, of "
                f"features. Received: shape={tuple(shape)}"
            )
        return shape[-1] == 3

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "units": self.units,
            "dropout": self.dropout,
            "train_backbone": self.train_backbone,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        backbone = keras.saving.deserialize_keras_object(config["backbone"])
        return cls(**{**config, "backbone": backbone})
