"""Images with their captions: a Flickr token file, COCO's JSON, or a table with a caption a row."""

import json
import os
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from rnnapps.data import images
from rnnapps.data.formats.image_files import ImageFiles
from rnnapps.data.formats.rows import (
    BadRow,
    Row,
    join_items,
    open_bytes,
    read_text_lines,
    require_file,
    shortened,
)
from rnnapps.data.formats.tabular import read_csv, read_tsv
from rnnapps.data.printable import printable
from rnnapps.errors import UserError

TABLES = {".csv": read_csv, ".tsv": read_tsv}

LARGEST_CORPUS = 2**29
"""The bytes of JSON that are taken into memory; the captions of COCO's 118,287 training images are
92 MB."""

# Flickr's own files have two spaces for the tab of a line.
_TOKEN_LINE = re.compile(r"(.+?)#\d+(?:\s+(.*))?", re.DOTALL)

Captions: TypeAlias = Iterator[tuple[str, str] | BadRow]


def read_captions(
    path: str | os.PathLike,
    files: ImageFiles,
    image_column: str = "image",
    caption_column: str = "caption",
) -> Iterator[Row]:
    r"""Streams images with all their captions, in the order in which the file first names them.

    The captions of a file are held in memory while it is read, for an image's may stand anywhere;
    images never are. White space in a caption becomes single spaces.

    Args:
        path: A `.json` file of COCO's form (`images`, `annotations`); a `.csv` or `.tsv` file with
            named columns; or, with any other suffix, a Flickr token file, whose lines are
            `image.jpg#0`, a tab and a caption. Each also `.gz`.
        files: Where the images are.
        image_column: The column of a table that holds an image's path, or the end of it.
        caption_column: The column that holds a caption.

    Yields:
        `{"image": …, "name": "dog.jpg", "captions": "A dog runs.\nA brown dog."}`, in which `image`
        is a function that reads it (see `ImageFiles.find`); or a `BadRow` for a row that cannot be
        read, has no caption, or names a path that leads out of `files`. What is not in `files` is
        left out, and `files.report()` counts it.

    Raises:
        UserError: A file is missing, damaged or without captions, or none of its images is there.
    """
    path = os.fspath(path)
    require_file(path)
    if os.path.isdir(path):
        raise UserError(f"{path} is a folder without train and one of dev and test: name a file")
    captions: dict[str, list[str]] = {}
    num_rows = 0
    for caption in _captions(path, image_column, caption_column):
        num_rows += 1
        if isinstance(caption, BadRow):
            yield caption
        else:
            name, text = caption
            captions.setdefault(name, []).append(text)
    if num_rows == 0:
        raise UserError(f"{path} holds no captions")
    is_any_there = not captions
    for name, texts in captions.items():
        try:
            image = files.find(name, len(texts))
        except LookupError as error:
            yield BadRow(path, None, str(error))
            continue
        if image is not None:
            is_any_there = True
            yield {"image": image, "name": name, "captions": join_items(texts)}
    if not is_any_there:
        first = printable(shortened(next(iter(captions)), 100))
        raise UserError(
            f"none of the {len(captions):,} images that {path} names is in {files.spec}. "
            f"Received: {first}, …"
        )


def from_rows(
    rows: Callable[[], Iterator[Row]], place: str, faults: dict[str, str | None]
) -> Iterator[Row]:
    """Streams the images of a TFDS data set as `read_captions` does those of files.

    Args:
        rows: Starts reading images with their captions.
        place: What they are, for the errors: `"tfds:NAME SPLIT"`. The bundled sample's images, at
            another place, are not looked at.
        faults: What is wrong with an image, by its name, or None: kept here from pass to pass, so
            that each is looked at once.

    Yields:
        Such rows; an image is named by its number.
    """
    for number, row in enumerate(rows(), 1):
        if isinstance(row, BadRow):
            yield row
            continue
        name = f"{place}:{number}"
        if name not in faults and place.startswith("tfds:"):
            faults[name] = images.fault(row["image"])
        if fault := faults.get(name):
            yield BadRow(place, number, fault)
            continue
        texts = (" ".join(text.split()) for text in row["captions"].split("\n"))
        yield {**row, "name": name, "captions": join_items(texts)}


def _captions(path: str, image_column: str, caption_column: str) -> Captions:
    suffix = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if suffix == ".json":
        return _coco_captions(path)
    if suffix in TABLES:
        return _table_captions(path, TABLES[suffix], image_column, caption_column)
    return _flickr_captions(path)


def _flickr_captions(path: str) -> Captions:
    for line, text, reason in read_text_lines(path):
        match = _TOKEN_LINE.fullmatch(text.lstrip())
        if reason is not None or match is None:
            form = "not an image, #, a number, a tab and a caption (a table is named .csv)"
            yield BadRow(path, line, reason or form)
        else:
            yield _caption(path, line, *match.groups())


def _table_captions(path: str, read, image_column: str, caption_column: str) -> Captions:
    fields = {"image": image_column, "caption": caption_column}
    for row in read(path, fields, required=fields):
        if isinstance(row, BadRow):
            yield row
        else:
            yield row["image"].strip(), " ".join(row["caption"].split())


def _coco_captions(path: str) -> Captions:
    with open_bytes(path) as handle:
        content = handle.read(LARGEST_CORPUS + 1)
    if len(content) > LARGEST_CORPUS:
        raise UserError(f"{path} holds more than {LARGEST_CORPUS:,} bytes of JSON")
    try:
        corpus = json.loads(content)
        names = {image["id"]: image["file_name"] for image in corpus["images"]}
        annotations = list(corpus["annotations"])
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text") from None
    except (KeyError, TypeError, ValueError, RecursionError):  # ValueError: of endless numbers
        raise UserError(
            f"{path} is not of COCO's form: an object with images (each with id and "
            "file_name) and annotations (each with image_id and caption)"
        ) from None
    for number, annotation in enumerate(annotations, 1):
        try:
            number = annotation.get("id", number)
            image, text = annotation["image_id"], annotation["caption"]
            name = names.get(image, f"image {image}")
            (name + text).encode()
        except KeyError as error:
            yield BadRow(path, None, f"annotation {number} has no {error}")
        except (AttributeError, TypeError, UnicodeEncodeError):
            yield BadRow(path, None, f"annotation {number} is no text of an image")
        else:
            yield _caption(path, None, name, text)


def _caption(path: str, line: int | None, name: str, text: str | None) -> tuple[str, str] | BadRow:
    words = (text or "").split()
    if not words:
        return BadRow(path, line, f"an empty caption of {name}")
    if "\0" in (text or ""):
        return BadRow(path, line, "a NUL byte in the text")
    return name, " ".join(words)
