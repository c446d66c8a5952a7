"""Networks that see: images to features on a grid, small and new or large and pretrained."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import keras

from rnnapps.errors import UserError


def small_cnn(filters: Sequence[int] = (32, 64, 128, 128)) -> keras.Model:
    """Makes a small convolutional network, to be trained from scratch.

    Convolutions with rectifiers, of 5×5 places for the first, which also halves the image's sides,
    and 3×3 for the others; between them the largest of each 2×2 values is kept, so that it counts
    little where exactly something was found. The initial weights keep the variance (He et al.
    2015).

    Args:
        filters: Channels of each convolution's output. Default: four of them, for a grid of a
            sixteenth of the image's rows and columns, whose places see 75 by 75 pixels.

    Returns:
        A model from images, `[batch, height, width, 3]` in 0..255, to features, `[batch, rows,
        columns, channels]`.

    Example:

    >>> small_cnn((16, 32))(keras.ops.zeros((2, 24, 32, 3))).shape
    TensorShape([2, 6, 8, 32])
    """
    images = features = keras.Input((None, None, 3), name="images")
    features = keras.layers.Rescaling(1 / 127.5, offset=-1, name="rescaling")(features)
    for number, channels in enumerate(filters):
        size, strides = (3, 1) if number else (5, 2)
        if number:
            features = keras.layers.MaxPooling2D(2, padding="same", name=f"pooling_{number}")(
                features
            )  # [batch, rows, columns, channels]
        features = keras.layers.Conv2D(
            channels,
            size,
            strides,
            "same",
            activation="relu",
            kernel_initializer="he_normal",
            name=f"convolution_{number + 1}",
        )(features)  # [batch, rows, columns, channels]
    return keras.Model(images, features, name="small_cnn")


def pretrained(name: str, weights: str | None = "imagenet") -> keras.Model:
    """Makes a network of `keras.applications`, with its own preprocessing inside.

    Args:
        name: The name of the class, such as `"MobileNetV3Small"`.
        weights: `"imagenet"`, or `None` for untrained ones. Default: `"imagenet"`, which Keras
            downloads once.

    Returns:
        A model as that of `small_cnn`; of NASNet's, for images of its one size only.

    Raises:
        UserError: If there is no such class, or the weights cannot be downloaded.

    Example:

    >>> pretrained("MobileNetV3Small", weights=None)(keras.ops.zeros((1, 64, 96, 3))).shape
    TensorShape([1, 2, 3, 576])
    """
    make = getattr(keras.applications, name, None) if name[:1].isupper() else None
    if make is None:
        known = ", ".join(known for known in dir(keras.applications) if known[0].isupper())
        raise UserError(f"no network of that name; there are: {known}. Received: name={name!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes that it would rather have
            network = make(include_top=False, weights=weights)
    except Exception as error:  # Keras raises nothing more special where a download fails
        if weights is None:
            raise
        raise UserError(
            f"the ImageNet weights of {name} cannot be had: {' '.join(str(error).split())}. Where "
            "there is no network, put the file into ~/.keras/models, or give a feature extractor "
            "that was saved as a .keras file, or train the small network from scratch"
        ) from error
    images = keras.Input(network.input_shape[1:], name="images")
    preprocessing = ApplicationPreprocessing(make.__module__.split(".")[-1], name="preprocessing")
    return keras.Model(images, network(preprocessing(images)), name=f"pretrained_{name.lower()}")


def from_file(file: str | Path) -> keras.Model:
    """Loads a feature extractor from a `.keras` file, without running code from it.

    Args:
        file: A model from images, `[batch, height, width, 3]` in 0..255, to features, `[batch,
            rows, columns, channels]` or `[batch, channels]`; its own preprocessing is inside. It
            may take images of one size only.

    Returns:
        The model; features of the image as a whole are a grid of one place.

    Raises:
        UserError: If the file cannot be read, or holds another kind of model.

    Example:
    >>> small_cnn((16, 32)).save("backbone.keras")
    >>> from_file("backbone.keras")(keras.ops.zeros((2, 24, 32, 3))).shape
    TensorShape([2, 6, 8, 32])
    """
    if not Path(file).is_file():
        raise UserError(f"{file}: no such file")
    try:
        model = keras.saving.load_model(file, compile=False, safe_mode=True)
    except Exception as error:  # of many kinds: no zip, no configuration, unknown layers, code
        told = " ".join(str(error).split())
        raise UserError(f"{file}: not a model that Keras can load safely: {told}") from error
    size = getattr(model, "output_shape", None)
    if isinstance(size, tuple) and len(size) == 2 and size[-1] is not None:
        images = keras.Input(model.input_shape[1:], name="images")
        place = keras.layers.Reshape((1, 1, size[-1]), name="place")  # [batch, 1, 1, channels]
        model = keras.Model(images, place(model(images)), name="whole")
    require_grid(model, f"{file}: ")
    return model


def require_grid(backbone: keras.Model, told: str = "") -> None:
    """Raises UserError where a model is not one from images to features on a grid.

    Args:
        backbone: The model.
        told: What the message begins with.
    """
    shapes = [getattr(backbone, name, None) for name in ("input_shape", "output_shape")]
    taken, given = (shape if isinstance(shape, tuple) else () for shape in shapes)
    if len(taken) != 4 or len(given) != 4 or taken[-1] != 3 or given[-1] in (None, 3):
        raise UserError(
            f"{told}a feature extractor takes [batch, height, width, 3] and gives [batch, rows, "
            f"columns, channels], not 3 of them. Received: {shapes[0]} and {shapes[1]}"
        )


@keras.saving.register_keras_serializable(package="rnnapps")
class ApplicationPreprocessing(keras.layers.Layer):
    """What a network of `keras.applications` expects to be done to images before.

    Args:
        module: The name of the network's module, such as `"vgg16"`.
        **kwargs: `name` and `dtype`, as for every Keras layer.

    Call arguments:
        images: Float tensor, `[batch, height, width, 3]`, in 0..255.

    Returns:
        The images as the network takes them, of the same shape.

    Example:

    >>> ApplicationPreprocessing("mobilenet_v2")(keras.ops.full((1, 1, 1, 3), 255.0)).numpy()
    array([[[[1., 1., 1.]]]], dtype=float32)
    """

    def __init__(self, module: str, **kwargs):
        super().__init__(**kwargs)
        self.module = module
        self.preprocess = getattr(keras.applications, module).preprocess_input

    def call(self, images):
        """Preprocesses the images."""
        return self.preprocess(images, data_format="channels_last")

    def compute_output_shape(self, images_shape):
        """Returns the same shape."""
        return images_shape

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "module": self.module}
