"""Decoding in the graph against Pillow, and whatever bytes may come."""

import functools
import io
import struct
import zlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from rnnapps.data import images

SIZE = 32


def scene(width=64, height=48):
    """A smooth picture in colours, without symmetry."""
    y, x = np.mgrid[:height, :width] / max(height, width)
    return Image.fromarray(np.uint8(np.stack([255 * x, 200 * y, 255 * x * y], -1)))


def encoded(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


@functools.cache
def decoder(resizing, size=SIZE):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def decoded(batch):
        return images.decode(batch, size, resizing)

    return decoded


def decoded(batch, resizing="pad"):
    pixels, valid = decoder(resizing)(tf.constant(batch, tf.string))
    return pixels.numpy(), valid.numpy()


def on_white(image):
    if image.mode == "I;16":
        image = Image.fromarray(np.uint8(np.asarray(image) >> 8))
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def fitted(image, resizing="pad"):
    """What Pillow makes of an image, where the sizes divide."""
    width, height = image.size
    if resizing == "crop":
        side = min(width, height)
        box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
        return np.float32(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box))
    scale = SIZE / max(width, height)
    inner = round(width * scale), round(height * scale)
    whole = Image.new("RGB", (SIZE, SIZE))
    place = (SIZE - inner[0]) // 2, (SIZE - inner[1]) // 2
    whole.paste(image.resize(inner, Image.Resampling.BILINEAR), place)
    return np.float32(whole)


def with_alpha():
    image = scene().convert("RGBA")
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    return image


def gif_with_hole():
    image = scene().quantize(64)
    return encoded(image, "GIF", transparency=image.getpixel((20, 20)))


def animated():
    return encoded(
        scene(), "GIF", save_all=True, append_images=[scene().rotate(180)], comment=b"c" * 700
    )


def top_down(bmp):
    """Turns a BMP of 24 bits whose rows need no padding over, which shows the same."""
    begin = struct.unpack_from("<I", bmp, 10)[0]
    width, height = struct.unpack_from("<ii", bmp, 18)
    rows = [bmp[at : at + 3 * width] for at in range(begin, len(bmp), 3 * width)]
    return bmp[:22] + struct.pack("<i", -height) + bmp[26:begin] + b"".join(rows[::-1])


CASES = {
    "jpeg": encoded(scene(), "JPEG"),
    "jpeg progressive": encoded(scene(), "JPEG", progressive=True, quality=95),
    "jpeg grey": encoded(scene().convert("L"), "JPEG"),
    "jpeg cmyk": encoded(scene().convert("CMYK"), "JPEG"),
    "png": encoded(scene(), "PNG"),
    "png 1 bit": encoded(scene().convert("1"), "PNG"),
    "png grey": encoded(scene().convert("L"), "PNG"),
    "png grey and alpha": encoded(with_alpha().convert("LA"), "PNG"),
    "png palette": encoded(scene().quantize(16), "PNG"),
    "png palette with alpha": encoded(with_alpha().quantize(16), "PNG"),
    "png rgba": encoded(with_alpha(), "PNG"),
    "bmp": encoded(scene(), "BMP"),
    "bmp odd": encoded(scene(33, 44), "BMP"),
    "bmp top down": top_down(encoded(scene(), "BMP")),
    "bmp 1 bit": encoded(scene(33, 44).convert("1"), "BMP"),
    "bmp grey": encoded(scene().convert("L"), "BMP"),
    "bmp palette": encoded(scene().quantize(16), "BMP"),
    "bmp rgba": encoded(with_alpha(), "BMP"),
    "gif": encoded(scene(), "GIF"),
    "gif grey": encoded(scene().convert("L"), "GIF"),
    "gif with a hole": gif_with_hole(),
    "gif animated": animated(),
    "png 16 bits": encoded(Image.fromarray(np.full([48, 64], 0xB3FF, np.uint16)), "PNG"),
    "1 x 1": encoded(Image.new("RGB", (1, 1), (10, 200, 90)), "PNG"),
}


@pytest.mark.parametrize("resizing", ["pad", "crop"])
def test_formats_of_one_batch_are_what_pillow_decodes(resizing):
    pixels, valid = decoded(list(CASES.values()), resizing)
    assert valid.all()
    assert pixels.shape == (len(CASES), SIZE, SIZE, 3) and pixels.dtype == np.float32
    for name, content, found in zip(CASES, CASES.values(), pixels, strict=True):
        expected = fitted(on_white(Image.open(io.BytesIO(content))), resizing)
        np.testing.assert_allclose(found, expected, atol=2.5, err_msg=name)
        assert images.fault(content) is None, name


@pytest.mark.parametrize("order", ["<", ">"])
def test_orientation(order):
    upright = scene()
    exif = Image.Exif()
    exif.endian = order
    exif[0x010F], exif[0x0112], exif[0x8769] = "a camera", 1, {0x9003: "2024:01:01 00:00:00"}
    contents = [encoded(upright, "JPEG", quality=95)]
    for orientation in range(1, 10):
        exif[0x0112] = orientation
        contents.append(encoded(upright, "JPEG", quality=95, exif=exif))
        assert (b"MM\0*" if order == ">" else b"II*\0") in contents[-1]
    for resizing in ("pad", "crop"):
        pixels, valid = decoded(contents, resizing)
        assert valid.all()
        for content, found in zip(contents, pixels, strict=True):
            turned = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
            np.testing.assert_allclose(found, fitted(turned, resizing), atol=2.5)
        np.testing.assert_array_equal(pixels[[0, 0]], pixels[[1, 9]])


def test_geometry():
    wide, high = Image.new("RGB", (64, 16), "white"), Image.new("RGB", (100, 200), "white")
    left = Image.new("RGB", (64, 16))
    left.paste("white", (0, 0, 22, 16))
    batch = [encoded(image, "PNG") for image in (wide, high, left)]
    pixels, _ = decoded(batch)
    expected = np.zeros([SIZE, SIZE])
    expected[12:20] = 255
    np.testing.assert_allclose(pixels[0, ..., 0], expected, atol=1e-3)
    expected = np.zeros([SIZE, SIZE])
    expected[:, 8:24] = 255
    np.testing.assert_allclose(pixels[1, ..., 0], expected, atol=1e-3)
    # Only the middle 16 columns, all of them black, are left: the white ends before them.
    assert not decoded(batch, "crop")[0][2].any()
    # A line is not lost, however small its image becomes.
    line = encoded(Image.new("RGB", (4_000, 1), "white"), "PNG")
    assert decoded([line])[0][0].sum(axis=(0, 2)).min() >= 255
    np.testing.assert_allclose(decoded([line], "crop")[0], 255, atol=1e-3)
    with pytest.raises(ValueError, match="Received: 'stretch'"):
        images.decode(tf.constant([line]), SIZE, "stretch")


def png_header(width, height):
    def chunk(name, content):
        checksum = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + checksum

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


def changed(content, at, new):
    return content[:at] + new + content[at + len(new) :]


def large():
    jpeg, gif, bmp = CASES["jpeg"], CASES["gif"], CASES["bmp"]
    jpeg_sides = jpeg.index(b"\xff\xc0") + 5
    gif_sides = gif.index(b",\0\0\0\0") + 5
    return {
        "jpeg": changed(jpeg, jpeg_sides, struct.pack(">HH", 12_000, 12_000)),
        "png": png_header(12_000, 12_000),
        "png of 2^63 pixels": png_header(2**32 - 1, 2**31),
        "gif": changed(gif, 6, struct.pack("<HH", 12_000, 12_000)),
        "gif frame": changed(gif, gif_sides, struct.pack("<HH", 12_000, 12_000)),
        "bmp": changed(bmp, 18, struct.pack("<ii", 12_000, -12_000)),
    }


def broken():
    cases = {"nothing": b"", "blank": b" ", "text": b"A dog runs.\n" * 9, "zeros": bytes(99)}
    for name in ("jpeg", "png", "gif", "bmp"):
        content = CASES[name]
        cases |= {f"{name} up to {at}": content[:at] for at in (4, 10, 20, 60, len(content) // 2)}
        cases[f"{name} without its end"] = content[:-2]
    cases["png whose checksum is wrong"] = changed(CASES["png"], 60, b"\0\xff\0\xff")
    cases["no sides"] = changed(CASES["bmp"], 18, bytes(8))
    cases["bmp in 16 bits"] = changed(CASES["bmp"], 28, b"\x10")
    cases["palette beyond its end"] = changed(CASES["bmp palette"], 10, b"\x40\0")
    return cases


def test_bad_rows_are_zeros_and_the_rest_is_answered():
    bad = broken() | large()
    good = decoded([CASES["png"], CASES["gif"]])[0]
    pixels, valid = decoded([CASES["png"], *bad.values(), CASES["gif"]])
    assert valid.tolist() == [True, *[False] * len(bad), True]
    assert not pixels[1:-1].any()
    np.testing.assert_array_equal(pixels[[0, -1]], good)
    pixels, valid = decoded([b"", b"x"])
    assert not valid.any() and not pixels.any()
    pixels, valid = decoded([])
    assert pixels.shape == (0, SIZE, SIZE, 3) and valid.shape == (0,)


def test_reasons():
    found = {name: images.fault(content) for name, content in broken().items()}
    assert {name for name, reason in found.items() if reason == images.NOT_AN_IMAGE} == {
        "nothing", "blank", "text", "zeros", "png up to 4",
    }  # fmt: skip
    assert found["bmp in 16 bits"] == images.UNREAD_BMP
    assert found["jpeg without its end"] == "a corrupt or truncated image"
    assert None not in found.values()
    for name, content in large().items():
        assert images.fault(content) == "more than 50,000,000 pixels", name


def test_a_scalar_is_a_row_without_its_batch():
    pixels, valid = images.decode(tf.constant(CASES["jpeg"]), SIZE)
    np.testing.assert_array_equal(pixels, decoded([CASES["jpeg"]])[0][0])
    assert valid.shape == () and valid


def test_many_frames_cost_no_more_than_one():
    one, two = encoded(scene(), "GIF"), animated()
    trailing = two[:-1] + two[two.index(b",\0\0") : -1] * 2_000 + b"\xff" * 99
    np.testing.assert_allclose(decoded([trailing])[0], decoded([one])[0], atol=2)


def test_saved_model_and_dataset(tmp_path):
    module = tf.Module()
    module.decode = decoder("pad")
    tf.saved_model.save(module, str(tmp_path))
    batch = [CASES["jpeg"], b"no image", CASES["gif animated"], CASES["bmp 1 bit"]]
    pixels, valid = tf.saved_model.load(str(tmp_path)).decode(tf.constant(batch))
    expected = decoded(batch)
    np.testing.assert_array_equal(pixels, expected[0])
    np.testing.assert_array_equal(valid, expected[1])
    rows = tf.data.Dataset.from_tensor_slices(batch).map(lambda row: images.decode(row, SIZE))
    for row, (pixels, valid) in enumerate(rows):
        np.testing.assert_array_equal(pixels, expected[0][row])
        assert valid == expected[1][row]


@st.composite
def damaged(draw):
    """An image with up to four bytes changed, most often in its header, and perhaps cut off."""
    content = bytearray(CASES[draw(st.sampled_from(list(CASES)))])
    places = st.integers(0, 60) | st.integers(0, len(content) - 1)
    changes = draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=4))
    for at, value in changes:
        content[min(at, len(content) - 1)] = value
    return bytes(content[: draw(st.none() | st.integers(0, len(content)))])


@st.composite
def begun(draw):
    """Any bytes behind what shows a format."""
    magics = [b"", b"\xff\xd8\xff", b"\xff\xd8\xff\xe1", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM"]
    return draw(st.sampled_from(magics)) + draw(st.binary(max_size=80))


@settings(max_examples=50, deadline=None)
@given(st.lists(damaged() | begun(), min_size=8, max_size=8))
def test_no_bytes_raise(batch):
    pixels, valid = decoded(batch)
    assert np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 255.01
    assert not pixels[~valid].any()
    # What is said to be wrong is what cannot be decoded.
    assert valid.tolist() == [images.fault(content) is None for content in batch]
