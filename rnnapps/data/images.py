"""Encoded images to numbers, in the graph: the same operations in training and in the export.

JPEG, PNG, BMP and the first frame of a GIF, in whatever colours they are kept; the orientation
that a camera wrote into a JPEG (EXIF) is applied. TensorFlow's decoders raise at an image that is
broken, and so does everything here that looks at one image; `decode` runs it where an error only
loses its row.
"""

import functools
import hashlib
import inspect
import sys
from typing import Literal

import tensorflow as tf

MAX_PIXELS = 50_000_000
"""Larger images are refused from their header, before anything of that size is taken."""

NOT_AN_IMAGE = "not a JPEG, PNG, BMP or GIF image"
TOO_LARGE = f"more than {MAX_PIXELS:,} pixels"
UNREAD_BMP = "a kind of BMP that is not read"
CORRUPT = "a corrupt or truncated image"

# They bound the time that a crafted image takes: so many blocks of a GIF hold 15 MB.
_MOST_SEGMENTS, _MOST_BLOCKS = 1_000, 60_000

_EXIF = int.from_bytes(b"Exif\0\0", "big")
# The EXIF orientations whose rows are in reverse, and those whose columns are, after those from 5
# on have had rows and columns exchanged.
_MIRRORED = ((3, 4, 7, 8), (2, 3, 6, 7))


def version() -> str:
    """Tells this module from others that may make something else of an image: by its source."""
    source = inspect.getsource(sys.modules[__name__])
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@tf.autograph.experimental.do_not_convert
def decode(
    encoded: tf.Tensor, size: int, resizing: Literal["pad", "crop"] = "pad"
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes images and fits each into a square.

    What is transparent shows white. An image keeps its proportions (but that no side becomes
    smaller than two pixels), and is scaled up where it is small; its centre is the square's.

    Args:
        encoded: Encoded images of any formats and sizes, strings `[batch]`; or a scalar.
        size: The side of the square in pixels.
        resizing: `"pad"` shows the whole image, with zeros around it; `"crop"` fills the square,
            cutting off what is too long.

    Returns:
        The images' red, green and blue, float32 `[batch, size, size, 3]` from 0 to 255; and which
        of them were decoded, bool `[batch]`. The others are zeros: what is no such image, is
        corrupt or truncated, has more than `MAX_PIXELS` pixels, is a BMP that is compressed or has
        16 bits a pixel, or a GIF whose first frame takes more than 15 MB. No bytes raise an error.
        Of a scalar, the results have no batch dimension.

    Raises:
        ValueError: `resizing` is neither.

    Example:
    >>> images, valid = decode(tf.constant([b"no image"]), size=64)
    >>> images.shape, valid.numpy().tolist()
    (TensorShape([1, 64, 64, 3]), [False])
    """
    if resizing not in ("pad", "crop"):
        raise ValueError(f'resizing is "pad" or "crop". Received: {resizing!r}')
    encoded = tf.convert_to_tensor(encoded)
    if encoded.shape.rank == 0:
        images, valid = decode(encoded[None], size, resizing)
        return images[0], valid[0]
    rows = tf.size(encoded, tf.int64)
    fitter = _fitter(size, resizing)
    good = (
        tf.data.Dataset.from_tensor_slices((tf.range(rows), encoded))
        .map(lambda row, image: (row, fitter(image)), num_parallel_calls=tf.data.AUTOTUNE)
        .ignore_errors()
    )
    # There may be no good row, but there must be an element: one more, which is cut off again.
    last = tf.data.Dataset.from_tensors((rows, tf.zeros([size, size, 3])))
    found, images = good.concatenate(last).batch(rows + 1).get_single_element()
    images = tf.scatter_nd(found[:, None], images, tf.stack([rows + 1, size, size, 3]))
    valid = tf.scatter_nd(found[:, None], tf.ones_like(found), rows[None] + 1)
    shape = encoded.shape.concatenate([size, size, 3])
    return tf.ensure_shape(images[:rows], shape), tf.ensure_shape(valid[:rows] > 0, encoded.shape)


def fault(encoded: bytes) -> str | None:
    """Says what is wrong with an image: for exactly those that `decode` cannot decode.

    Args:
        encoded: The encoded image.

    Returns:
        The reason in a few words, or None.

    Example:
    >>> fault(b"no image")
    'not a JPEG, PNG, BMP or GIF image'
    """
    try:
        _decoder()(tf.constant(encoded))
    except tf.errors.OpError as error:
        told = str(error)
        reasons = (NOT_AN_IMAGE, TOO_LARGE, UNREAD_BMP)
        return next((reason for reason in reasons if reason in told), CORRUPT)
    return None


@functools.cache
def _decoder():
    @tf.function(input_signature=[tf.TensorSpec([], tf.string)], autograph=False)
    def decoded(encoded):
        # An eighth of the size in each direction, where the format allows it: the whole stream is
        # read, but in a fraction of the time.
        pixels, _ = _pixels(encoded, jpeg_ratio=8)
        return tf.size(pixels)

    return decoded


@functools.cache
def _fitter(size: int, resizing: str):
    """Returns what makes a square of one image, a graph of its own: to trace it takes long."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)], autograph=False)
    def fitted(encoded):
        pixels, orientation = _pixels(encoded)
        return _turned(_fitted(pixels, size, resizing), orientation)  # [size, size, 3]

    return fitted


def _pixels(encoded: tf.Tensor, jpeg_ratio: int = 1) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes one image: uint8 `[height, width, 3]`, and its EXIF orientation, 1 to 8."""
    octets = tf.io.decode_raw(encoded, tf.uint8)
    magics = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM")
    is_one = [tf.strings.substr(encoded, 0, len(magic)) == magic for magic in magics]
    kind = tf.argmax(tf.stack([*is_one, True]), output_type=tf.int32)
    upright = tf.constant(1, tf.int64)
    branches = [
        lambda: (_jpeg(encoded, jpeg_ratio), _orientation(octets)),
        lambda: (_png(encoded, octets), upright),
        lambda: (_gif(encoded, octets), upright),
        lambda: (_bmp(octets), upright),
        lambda: (_nothing(), upright),
    ]
    return tf.switch_case(kind, branches)


def _nothing() -> tf.Tensor:
    with tf.control_dependencies([tf.debugging.Assert(False, [NOT_AN_IMAGE])]):
        return tf.zeros([1, 1, 3], tf.uint8)


def _jpeg(encoded: tf.Tensor, ratio: int) -> tf.Tensor:
    shape = tf.cast(tf.io.extract_jpeg_shape(encoded), tf.int64)
    with tf.control_dependencies([_within_limit(shape[0], shape[1])]):
        # The accurate transform is what other decoders do.
        return tf.io.decode_jpeg(
            encoded, channels=3, ratio=ratio, dct_method="INTEGER_ACCURATE"
        )  # [height, width, 3]


def _png(encoded: tf.Tensor, octets: tf.Tensor) -> tf.Tensor:
    width, height = (_number(octets, at, 4, little=False) for at in (16, 20))
    with tf.control_dependencies([_within_limit(height, width)]):
        image = tf.io.decode_png(encoded, channels=4)  # [height, width, 4]
    colours, alpha = image[..., :3], image[..., 3:]

    def on_white():
        opaque = tf.cast(alpha, tf.uint16)
        mixed = tf.cast(colours, tf.uint16) * opaque + 255 * (255 - opaque)
        return tf.cast((mixed + 127) // 255, tf.uint8)

    # Where nothing is transparent, the decoder fills in what is full in the file's own depth.
    full = _power_of_two(tf.minimum(_number(octets, 24, 1), 8)) - 1
    is_opaque = tf.reduce_all(alpha == tf.cast(full, tf.uint8))
    return tf.cond(is_opaque, lambda: colours, on_white)  # [height, width, 3]


def _gif(encoded: tf.Tensor, octets: tf.Tensor) -> tf.Tensor:
    """Decodes the first frame alone: the decoder would take room for every one there is."""

    def palette_size(flags):
        return tf.where(flags >= 128, 3 * _power_of_two(flags % 8 + 1), 0)

    def end_of_blocks(at, blocks):
        """Finds the end of a run of data blocks, each of which begins with its length, but 0."""

        def length_at(place):
            return tf.cast(octets[place], tf.int64)

        at, _, blocks = tf.while_loop(
            lambda _, length, blocks: (length > 0) & (blocks < _MOST_BLOCKS),
            lambda at, length, blocks: (at + 1 + length, length_at(at + 1 + length), blocks + 1),
            (at, length_at(at), blocks),
        )
        return at + 1, blocks

    def skip_extension(at, blocks, control):
        # A graphic control extension tells which colour is not shown, if its last flag is set.
        tells = (_number(octets, at + 1, 1) == 0xF9) & (_number(octets, at + 3, 1) % 2 == 1)
        return *end_of_blocks(at + 2, blocks + 1), tf.where(tells, at, control)

    shared = palette_size(_number(octets, 10, 1))
    frame, blocks, control = tf.while_loop(
        lambda at, blocks, _: (_number(octets, at, 1) == 0x21) & (blocks < _MOST_BLOCKS),
        skip_extension,
        (13 + shared, tf.constant(0), tf.constant(-1, tf.int64)),
    )
    own = palette_size(_number(octets, frame + 9, 1))
    end, blocks = end_of_blocks(frame + 11 + own, blocks)
    height, width, frame_height, frame_width = (
        _number(octets, at, 2) for at in (8, 6, frame + 7, frame + 5)
    )
    is_whole = (_number(octets, frame, 1) == 0x2C) & (end <= tf.size(octets, tf.int64))
    checks = [
        tf.debugging.Assert(is_whole & (blocks < _MOST_BLOCKS), [CORRUPT]),
        _within_limit(height, width),
        _within_limit(frame_height, frame_width),
    ]

    first = tf.zeros_like(end)
    colour = 3 * _number(octets, control + 6, 1)

    def changed(content, at, new):
        before = tf.strings.substr(content, first, at)
        after = tf.strings.substr(content, at + len(new), end - at - len(new))
        return tf.strings.join([before, new, after])

    def with_white(content):
        # The decoder shows nothing, which is black: make the colour white, and show it.
        content = changed(content, tf.where(own > 0, frame + 10, 13) + colour, b"\xff\xff\xff")
        return changed(content, control + 3, b"\0")

    with tf.control_dependencies(checks):
        content = tf.strings.substr(encoded, first, end)
        has_white = (control >= 0) & (colour < tf.where(own > 0, own, shared))
        content = tf.cond(has_white, lambda: with_white(content), lambda: content)
    return tf.io.decode_gif(content + b";")[0]  # [height, width, 3]


def _bmp(octets: tf.Tensor) -> tf.Tensor:
    """Decodes what is not compressed, of 1, 4, 8, 24 or 32 bits a pixel."""
    begin, header, width, height, packing = (_number(octets, at, 4) for at in (10, 14, 18, 22, 30))
    depth = _number(octets, 28, 2)
    upside_down = height < 2**31  # as most are; the others have a negative height
    height = tf.where(upside_down, height, 2**32 - height)
    masks = [_number(octets, at, 4) == 0xFF << bits for at, bits in ((54, 16), (58, 8), (62, 0))]
    usual = (packing == 0) | ((packing == 3) & (depth == 32) & tf.reduce_all(masks))
    known = tf.reduce_any(depth == tf.constant([1, 4, 8, 24, 32], tf.int64))
    checks = [
        tf.debugging.Assert((header >= 40) & usual & known, [UNREAD_BMP]),
        _within_limit(height, width),
    ]
    with tf.control_dependencies(checks):
        row = (width * depth + 31) // 32 * 4
    rows = tf.reshape(tf.slice(octets, [begin], [height * row]), [height, row])

    def from_palette():
        shifts = tf.cast(tf.range(8 - depth, -1, -depth), tf.uint8)
        parts = tf.bitwise.right_shift(rows[..., None], shifts)  # [height, row, parts]
        parts = tf.bitwise.bitwise_and(parts, tf.cast(_power_of_two(depth) - 1, tf.uint8))
        colours = tf.reshape(parts, [height, -1])[:, :width]  # [height, width]
        palette = octets[14 + header : begin]
        palette = tf.reshape(palette[: tf.size(palette) // 4 * 4], [-1, 4])  # [colours, 4]
        return tf.gather(palette, tf.cast(colours, tf.int32))  # [height, width, 4]

    def direct():
        bytes_a_pixel = depth // 8
        pixels = tf.reshape(rows[:, : width * bytes_a_pixel], [height, width, bytes_a_pixel])
        return tf.pad(pixels, [[0, 0], [0, 0], [0, 4 - bytes_a_pixel]])  # [height, width, 4]

    image = tf.cond(depth <= 8, from_palette, direct)[..., 2::-1]  # [height, width, 3]
    return tf.cond(upside_down, lambda: image[::-1], lambda: image)


def _orientation(octets: tf.Tensor) -> tf.Tensor:
    """Reads a JPEG's EXIF orientation: 1 to 8, and 1 where it tells none."""

    def is_segment(at, found, count):
        kind = _number(octets, at + 1, 1)
        before_pixels = (_number(octets, at, 1) == 0xFF) & (kind != 0xDA) & (kind != 0xD9)
        return before_pixels & (found == 0) & (count < _MOST_SEGMENTS)

    def look(at, _, count):
        size = _number(octets, at + 2, 2, little=False)
        name = _number(octets, at + 4, 6, little=False)
        is_exif = (_number(octets, at + 1, 1) == 0xE1) & (name == _EXIF) & (size > 8)
        found = tf.cond(
            is_exif,
            lambda: _exif_orientation(octets[at + 10 : at + 2 + size]),
            lambda: tf.constant(0, tf.int64),
        )
        # A marker may have any number of these bytes before it.
        step = tf.where(_number(octets, at + 1, 1) != 0xFF, 2 + size, 1)
        return at + step, found, count + 1

    start = tf.constant(2, tf.int64), tf.constant(0, tf.int64), tf.constant(0)
    _, found, _ = tf.while_loop(is_segment, look, start)
    return tf.where((found >= 1) & (found <= 8), found, 1)


def _exif_orientation(tiff: tf.Tensor) -> tf.Tensor:
    """Finds the orientation among the fields of a TIFF header: 0 where there is none."""
    little = _number(tiff, 0, 2) == int.from_bytes(b"II", "little")
    directory = _number(tiff, 4, 4, little)
    num_fields = tf.minimum(_number(tiff, directory, 2, little), tf.size(tiff, tf.int64) // 12)
    fields = directory + 2 + 12 * tf.range(num_fields)  # [fields]
    is_it = _number(tiff, fields, 2, little) == 0x0112  # [fields]
    values = _number(tiff, fields + 8, 2, little)  # [fields]
    return tf.maximum(tf.reduce_max(tf.where(is_it, values, 0)), 0)


def _fitted(pixels: tf.Tensor, size: int, resizing: str) -> tf.Tensor:
    """Scales an image of any size around its centre: float32 `[size, size, 3]`."""
    sides = tf.cast(tf.shape(pixels)[:2], tf.float32)  # [2]
    decisive = tf.reduce_max(sides) if resizing == "pad" else tf.reduce_min(sides)
    scale = tf.maximum(size / decisive, 2 / sides)  # [2]
    images = tf.raw_ops.ScaleAndTranslate(
        images=pixels[None],
        size=[size, size],
        scale=scale,
        translation=(size - scale * sides) / 2,
        kernel_type="triangle",
        antialias=True,
    )  # [1, size, size, 3]
    return images[0]


def _turned(image: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Turns and mirrors a square as its EXIF orientation says: `[size, size, 3]`."""
    image = tf.cond(orientation >= 5, lambda: tf.transpose(image, [1, 0, 2]), lambda: image)
    among = [tf.reduce_any(orientation == tf.constant(cases, tf.int64)) for cases in _MIRRORED]
    return tf.reverse(image, tf.boolean_mask([0, 1], tf.stack(among)))


def _within_limit(height: tf.Tensor, width: tf.Tensor) -> tf.Operation:
    # Each alone first, since the product of two such numbers may not be a number of 64 bits.
    small = (height <= MAX_PIXELS) & (width <= MAX_PIXELS) & (height * width <= MAX_PIXELS)
    with tf.control_dependencies([tf.debugging.Assert((height > 0) & (width > 0), [CORRUPT])]):
        return tf.debugging.Assert(small, [TOO_LARGE])


def _number(
    octets: tf.Tensor, at: tf.Tensor | int, size: int, little: tf.Tensor | bool = True
) -> tf.Tensor:
    """Reads unsigned numbers, int64 of the shape of `at`; beyond the end there are zeros."""
    places = tf.cast(at, tf.int64)[..., None] + tf.range(size, dtype=tf.int64)  # [..., size]
    length = tf.size(octets, tf.int64)
    inside = (places >= 0) & (places < length)
    taken = tf.gather(octets, tf.clip_by_value(places, 0, length - 1))  # [..., size]
    taken = tf.where(inside, tf.cast(taken, tf.int64), 0)
    weights = tf.constant([256**power for power in range(size)], tf.int64)
    weights = tf.where(little, weights, weights[::-1])
    return tf.reduce_sum(taken * weights, -1)


def _power_of_two(exponent: tf.Tensor) -> tf.Tensor:
    return tf.bitwise.left_shift(tf.ones_like(exponent), exponent)
