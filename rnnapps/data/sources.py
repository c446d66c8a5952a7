"""Resolves a data spec into named splits of raw examples.

A spec is `sample` (bundled), `tfds:NAME[/CONFIG]`, or a path that a format's reader understands.
Whatever it is, a source is a function that starts a fresh stream of rows; it is read once in plain
Python, to find bad rows and to count, and again each time a dataset is iterated. No corpus is ever
held in memory. A field is always one string: what is a sequence in TFDS is joined by line feeds,
and an image is its encoded bytes.

Parts that the data brings along (official splits, `dev_data` and `test_data`, or lists of keys) are
kept. Each of the others is carved out of train by a seeded hash of the example's key.
"""

import contextlib
import functools
import hashlib
import importlib
import io
import itertools
import logging
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import getitem
from urllib.error import URLError
from urllib.parse import urlsplit

import numpy as np
import requests  # which TFDS downloads with
import tensorflow as tf

from rnnapps.data.formats.official import PART_NAMES, official_splits
from rnnapps.data.formats.rows import (
    BadRow,
    Row,
    join_items,
    read_text_lines,
    require_file,
    shortened,
    whole,
)
from rnnapps.data.printable import printable
from rnnapps.errors import UserError

log = logging.getLogger("rnnapps")

PARTS = ("train", "dev", "test")
CHUNK_ROWS = 1_000
CHUNK_CHARACTERS = 4_000_000
CHUNK_IMAGES = 32
NAMED_BAD_ROWS = 5
DOWNLOAD_RETRIES = 3

Rows = Callable[[], Iterator[Row]]
Reader = Callable[[str], Iterator[Row]]
Converter = Callable[[Rows, str], Iterator[Row]]
Placed = Callable[[], Iterator[tuple[str | None, Row]]]


def load_splits(
    data: str,
    *,
    read: Reader,
    fields: Mapping[str, str | None],
    key: str,
    sample: str | None = None,
    sequences: Collection[str] = (),
    convert: Converter | None = None,
    dev_data: str | None = None,
    test_data: str | None = None,
    lists: Mapping[str, str | None] | None = None,
    splits: str = "80/10/10",
    seed: int = 0,
    contiguous: bool = False,
    on_bad_row: str = "stop",
) -> dict[str, tf.data.Dataset]:
    """Loads train, dev and test.

    A part with no source of its own is carved out of train: the hash of a key falls in one of three
    intervals in proportion to `splits`, and rows of an interval whose part has its own source stay
    in train. Examples with equal keys (but for case, width and white space) fall together, and
    where an example falls depends on nothing but its key, `splits` and `seed`. An official split
    that `dev_data` or `test_data` replaces is left out, with a warning.

    Args:
        data: A data spec.
        read: Starts reading a path: yields a row of all `fields`, or a `BadRow`.
        fields: The examples' fields, each with the TFDS feature that it is read from; None for
            what `read` and `convert` find out themselves.
        key: The field that decides the split.
        sample: The bundled TFDS builder that `sample` stands for, if there is one; its features
            are the fields.
        sequences: The fields whose TFDS features are sequences, to be joined by line feeds.
        convert: Makes of the rows of TFDS data, given how to start reading them and what they are
            (`"tfds:NAME SPLIT"`), rows such as `read` gives; where None, they are such rows.
        dev_data: A data spec whose dev split, or all of it where it has no splits, becomes dev.
        test_data: The same for test.
        lists: By part, a file of keys, one a line: the rows of `data` that have them are that part.
            Where train has a list, rows that are in none are left out; otherwise train is the rest.
            A part with neither list nor source is carved out of train here too.
        splits: Shares of train, dev and test.
        seed: Draws another division.
        contiguous: Whether the rows are a text that goes on from one to the next, of which train is
            the beginning, dev what follows and test the end, by the length of `key`; then no hash
            decides, and `seed` is not used.
        on_bad_row: `"stop"` raises at bad rows, naming the first; `"skip"` warns and goes on.

    Returns:
        `{"train": …, "dev": …, "test": …}`: datasets of known cardinality whose elements are dicts
        of scalar strings by field.

    Raises:
        UserError: A spec cannot be read, holds bad rows, or leaves a split without examples.
    """
    shares = parse_shares(splits)
    resolve = functools.partial(
        _resolve, read=read, sample=sample, fields=fields, sequences=sequences, convert=convert
    )
    sources = resolve(data)
    lists = {part: path for part, path in (lists or {}).items() if path is not None}
    if lists and len(sources) > 1:
        raise UserError(
            f"{data} has its own splits: {', '.join(sources)}. Received: lists of the keys of "
            f"{', '.join(lists)}"
        )
    for part, spec in (("dev", dev_data), ("test", test_data)):
        if spec is None:
            continue
        if part in sources:
            log.warning("The %s split of %s is not used: %s replaces it.", part, data, spec)
        if part in lists:
            raise UserError(
                f"{part} is given twice. Received: {part}_data={spec}, and the list {lists[part]}"
            )
        given = resolve(spec)
        if part not in given and len(given) > 1:
            raise UserError(f"{spec} has no {part} split; it has: {', '.join(given)}")
        sources[part] = given.get(part) or given["train"]
    return _split(data, sources, tuple(fields), key, shares, seed, contiguous, on_bad_row, lists)


def load_all(
    data: str,
    *,
    read: Reader,
    fields: Mapping[str, str | None],
    sample: str | None = None,
    sequences: Collection[str] = (),
    convert: Converter | None = None,
    on_bad_row: str = "stop",
) -> tf.data.Dataset:
    """Loads every example of a spec, in the order of its splits and rows.

    Args:
        data: A data spec.
        read: Starts reading a path: yields a row of all `fields`, or a `BadRow`.
        fields: The examples' fields, each with the TFDS feature that it is read from, or None.
        sample: The bundled TFDS builder that `sample` stands for, if there is one.
        sequences: The fields whose TFDS features are sequences, to be joined by line feeds.
        convert: As for `load_splits`.
        on_bad_row: `"stop"` raises at bad rows, naming the first; `"skip"` warns and goes on.

    Returns:
        A dataset of known cardinality whose elements are dicts of scalar strings by field.

    Raises:
        UserError: The spec cannot be read, or holds bad rows or no examples.
    """
    sources = _resolve(
        data, read=read, sample=sample, fields=fields, sequences=sequences, convert=convert
    )

    def rows() -> Iterator[Row]:
        return itertools.chain.from_iterable(sources[part]() for part in PARTS if part in sources)

    counts = _count([_all_of(rows, "train")], on_bad_row)
    if not counts["train"]:
        raise UserError(f"{data} holds no examples")
    return _dataset(rows, tuple(fields), counts["train"])


def from_lists(
    fields: Mapping[str, Sequence[object]],
    *,
    key: str,
    splits: str = "80/10/10",
    seed: int = 0,
    contiguous: bool = False,
) -> dict[str, tf.data.Dataset]:
    """Splits examples that are in memory, by the same hash as `load_splits`.

    Args:
        fields: The fields' values, all as many; what is neither a string nor bytes is turned into a
            string. Of tagged sentences, `rnnapps.data.tagged.as_fields` makes them.
        key: The field that decides the split.
        splits: Shares of train, dev and test.
        seed: Draws another division.
        contiguous: As for `load_splits`.

    Returns:
        `{"train": …, "dev": …, "test": …}`, as `load_splits`.

    Raises:
        UserError: The lists differ in length, or a split is left without examples.

    Example:
    >>> texts = [f"film {number}" for number in range(100)]
    >>> splits = from_lists({"text": texts, "label": ["good"] * 100}, key="text")
    >>> sorted(splits)
    ['dev', 'test', 'train']
    """
    lengths = {name: len(values) for name, values in fields.items()}
    if len(set(lengths.values())) != 1:
        raise UserError(f"the lists must be equally long. Received: {lengths}")

    def rows() -> Iterator[Row]:
        for number, values in enumerate(zip(*fields.values(), strict=True), 1):
            row = {
                name: value if isinstance(value, bytes) else str(value)
                for name, value in zip(fields, values, strict=True)
            }
            try:
                "".join(value for value in row.values() if isinstance(value, str)).encode("utf-8")
            except UnicodeEncodeError:
                yield BadRow("the given lists", number, "half of a surrogate pair in the text")
            else:
                yield row

    shares = parse_shares(splits)
    sources = {"train": rows}
    return _split("the given lists", sources, tuple(fields), key, shares, seed, contiguous, "stop")


def parse_shares(splits: str) -> tuple[float, float, float]:
    """Reads the shares of train, dev and test.

    Args:
        splits: Three numbers such as `"80/10/10"`; only their proportion counts.

    Returns:
        Three shares that sum to one.

    Raises:
        UserError: It is not of that form.
    """
    try:
        train, dev, test = (float(share) for share in splits.split("/"))
    except ValueError:
        train = dev = test = -1.0
    total = train + dev + test
    if not (train > 0 and dev >= 0 and test >= 0 and total < float("inf")):
        raise UserError(f"splits are three shares such as 80/10/10. Received: splits={splits!r}")
    return train / total, dev / total, test / total


def hashed_part(key: str, shares: Sequence[float], seed: int) -> str:
    """Decides by a hash of the normalised key which part an example belongs to.

    Args:
        key: The text that decides; case, compatibility forms and white space do not count.
        shares: The shares of train, dev and test, which sum to one.
        seed: Draws another division.

    Returns:
        `"train"`, `"dev"` or `"test"`.
    """
    point = digest(str(seed), key) / 2**64
    if point < shares[0]:
        return "train"
    return "dev" if point < shares[0] + shares[1] else "test"


def digest(*texts: str) -> int:
    """Makes one 64-bit number of texts; those of texts that differ are almost surely not equal.

    Args:
        *texts: The texts; case, compatibility forms and white space do not count.

    Returns:
        The number, the same on every machine.
    """
    normalised = (
        " ".join((text if text.isascii() else unicodedata.normalize("NFKC", text)).lower().split())
        for text in texts
    )
    hashed = hashlib.blake2b("\n".join(normalised).encode(), digest_size=8)
    return int.from_bytes(hashed.digest(), "big")


def _split(
    name, sources, fields, key, shares, seed, contiguous, on_bad_row, lists=None
) -> dict[str, tf.data.Dataset]:
    """Turns the parts' sources into three datasets, carving what has no source out of train."""
    lists = lists or {}
    listed = _read_lists(lists)
    own = {*sources, *lists}
    if contiguous:
        placed = _by_place(sources["train"], key, shares)
    else:
        placed = _by_hash(sources["train"], key, shares, seed)
    if own.issuperset(PARTS):
        placed = _all_of(sources["train"], "train")

    def parts_of_train() -> Iterator[tuple[str | None, Row]]:
        for part, row in placed():
            part = "train" if part in own else part
            if lists and isinstance(row, dict):
                rest = None if "train" in lists else "train"
                home = listed.get(row[key], rest)
                part = part if home == "train" else home
            yield part, row

    def carve(part: str) -> Rows:
        return lambda: (row for own_part, row in parts_of_train() if own_part == part)

    others = {part: _all_of(rows, part) for part, rows in sources.items() if part != "train"}
    counts = _count([parts_of_train, *others.values()], on_bad_row)
    unlisted = counts.pop(None, 0)
    if unlisted:
        log.info("%s examples of %s are in none of the lists", f"{unlisted:,}", name)
    for part in PARTS:
        if not counts[part] and part in lists:
            raise UserError(f"none of the names in {lists[part]} is an example of {name}")
        if not counts[part]:
            raise UserError(
                f"no example of {name} falls into {part} ({counts.total():,} good rows): "
                + ("give more rows" if part == "train" else f"give {part}_data, or more rows")
            )
    return {
        part: _dataset(
            sources[part] if part in others else carve(part),
            fields,
            counts[part],
        )
        for part in PARTS
    }


def _read_lists(lists: Mapping[str, str]) -> dict[str, str]:
    """Reads which part each key belongs to."""
    parts: dict[str, str] = {}
    for part, path in lists.items():
        require_file(path)
        for line, text, reason in read_text_lines(path):
            if reason:
                raise UserError(str(BadRow(path, line, reason)))
            text = text.strip()
            other = parts.setdefault(text, part)
            if text and other != part:
                raise UserError(f"{path}:{line}: {text} is in {lists[other]} too")
    return parts


def _all_of(rows: Rows, part: str) -> Placed:
    return lambda: ((part, row) for row in rows())


def _by_hash(rows: Rows, key: str, shares: Sequence[float], seed: int) -> Placed:
    def placed() -> Iterator[tuple[str | None, Row]]:
        for row in rows():
            part = hashed_part(row[key], shares, seed) if isinstance(row, dict) else "train"
            yield part, row

    return placed


def _by_place(rows: Rows, key: str, shares: Sequence[float]) -> Placed:
    """Puts the first rows into train, those behind them into dev and the last into test."""

    def sizes() -> Iterator[tuple[Row, int]]:
        return ((row, len(row[key]) if isinstance(row, dict) else 0) for row in rows())

    total = functools.cache(lambda: sum(size for _, size in sizes()))

    def placed() -> Iterator[tuple[str | None, Row]]:
        read = 0
        for row, size in sizes():
            middle = (read + size / 2) / max(total(), 1)
            read += size
            if middle < shares[0]:
                yield "train", row
            else:
                yield "dev" if middle < shares[0] + shares[1] else "test", row

    return placed


def _count(parts: Sequence[Placed], on_bad_row: str) -> Counter[str | None]:
    """Reads everything once: how many examples each part gets, and what is wrong."""
    if on_bad_row not in ("stop", "skip"):
        raise UserError(f"on_bad_row is stop or skip. Received: on_bad_row={on_bad_row!r}")
    counts: Counter[str | None] = Counter()
    first_bad, num_bad = [], 0
    for part, row in itertools.chain.from_iterable(placed() for placed in parts):
        row = row if part is None else whole(row)
        if isinstance(row, dict):
            counts[part] += 1
            continue
        num_bad += 1
        if num_bad <= NAMED_BAD_ROWS:
            first_bad.append(row)
    if num_bad:
        named = "; ".join(map(str, first_bad)) + ("; …" if num_bad > NAMED_BAD_ROWS else "")
        told = "1 bad row" if num_bad == 1 else f"{num_bad:,} bad rows"
        if on_bad_row == "stop":
            raise UserError(f"{told} (on_bad_row=skip goes on without):\n{named}")
        log.warning("Skipped %s: %s", told, named)
    return counts


def _dataset(rows: Rows, fields: Sequence[str], count: int) -> tf.data.Dataset:
    """A dataset that reads the rows anew in each iteration."""

    def chunks() -> Iterator[dict[str, np.ndarray]]:
        chunk: dict[str, list[bytes]] = {field: [] for field in fields}
        num_rows = num_characters = 0
        for row in map(whole, rows()):
            if isinstance(row, BadRow):
                continue
            for field, values in chunk.items():
                value = row[field]
                values.append(value if isinstance(value, bytes) else value.encode("utf-8"))
                num_characters += len(value)
            num_rows += 1
            if num_rows == CHUNK_ROWS or num_characters > CHUNK_CHARACTERS:
                yield _as_arrays(chunk)
                chunk = {field: [] for field in fields}
                num_rows = num_characters = 0
        if num_rows:
            yield _as_arrays(chunk)

    signature = {field: tf.TensorSpec([None], tf.string) for field in fields}
    dataset = tf.data.Dataset.from_generator(chunks, output_signature=signature).unbatch()
    return dataset.apply(tf.data.experimental.assert_cardinality(count))


def _as_arrays(chunk: Mapping[str, list[bytes]]) -> dict[str, np.ndarray]:
    # Objects, since numpy's own strings lose their trailing NULs and all take the longest's room.
    return {field: np.array(values, dtype=object) for field, values in chunk.items()}


def _resolve(
    spec: str,
    *,
    read: Reader,
    sample: str | None,
    fields: Mapping[str, str | None],
    sequences: Collection[str],
    convert: Converter | None,
) -> dict[str, Rows]:
    """Finds a spec's official parts; `{"train": rows}` where it has none."""
    features = {field: feature for field, feature in fields.items() if feature is not None}
    if spec == "sample":
        if sample is None:
            raise UserError("this task has no bundled sample: name your own data with --data")
        module = f"rnnapps.data.datasets.{sample}.{sample}_dataset_builder"
        return _tfds_sources(
            spec,
            lambda: importlib.import_module(module).Builder(),
            {field: field for field in features},
            sequences,
            convert,
        )
    if spec.startswith("tfds:"):
        name = spec.removeprefix("tfds:")
        return _tfds_sources(spec, lambda: _tfds().builder(name), features, sequences, convert)
    official = official_splits(spec) or {"train": spec}
    return {part: functools.partial(read, path) for part, path in official.items()}


def _tfds():
    import tensorflow_datasets as tfds

    if not sys.stderr.isatty():
        tfds.disable_progress_bar()
    return tfds


def _tfds_sources(
    spec: str,
    make: Callable,
    fields: Mapping[str, str],
    sequences: Collection[str],
    convert: Converter | None,
) -> dict[str, Rows]:
    """Prepares a TFDS builder and finds its parts."""
    tfds, builder = _tfds(), None
    try:
        # It announces its downloads on standard output, which is kept for answers.
        quiet = sys.stderr if sys.stderr.isatty() else io.StringIO()
        with contextlib.redirect_stdout(quiet), _impatient():
            builder = make()
            builder.download_and_prepare()
    except tfds.core.DatasetNotFoundError:
        raise UserError(f"TensorFlow Datasets knows no {spec.removeprefix('tfds:')!r}") from None
    except Exception as error:  # Builders download and parse: anything may be raised.
        raise UserError(_told(spec, builder, error)) from error
    features = _leaves(builder.info.features)
    for field, name in fields.items():
        if name not in features:
            inside = [other for other in features if other.startswith(f"{name}/")]
            there = printable(", ".join(inside or features))
            raise UserError(
                f"no feature {name!r} in {spec}; its features are: {shortened(there, 300)}"
            )
        _, feature, shape = features[name]
        if isinstance(feature, tfds.features.Image):
            continue
        if shape != ((None,) if field in sequences else ()):
            wanted = "a sequence of texts or labels" if field in sequences else "a text or a label"
            raise UserError(f"feature {name!r} of {spec} is not {wanted}")
    parts = {PART_NAMES[split]: split for split in builder.info.splits if split in PART_NAMES}
    if "train" not in parts:
        raise UserError(f"{spec} has no train split; it has: {', '.join(builder.info.splits)}")
    sources: dict[str, Rows] = {}
    for part, split in parts.items():
        place = f"{spec} {split}"
        rows = functools.partial(_tfds_rows, place, builder, split, fields)
        sources[part] = functools.partial(convert, rows, place) if convert else rows
    return sources


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """Lets TFDS give up a download after seconds, not minutes, and tell it once."""
    from tensorflow_datasets.core.download import downloader

    retries, tries = downloader.MAX_RETRIES, logging.getLogger("urllib3.connectionpool")
    level = tries.level
    downloader.MAX_RETRIES = DOWNLOAD_RETRIES
    tries.setLevel(logging.ERROR)
    try:
        yield
    finally:
        downloader.MAX_RETRIES = retries
        tries.setLevel(level)


def _told(spec: str, builder, error: Exception) -> str:
    """Says why a data set could not be prepared, and what to do where it is the network."""
    reason = (str(error).strip() or type(error).__name__).partition("\n")[0]
    if not isinstance(error, requests.RequestException | ConnectionError | URLError):
        return f"{spec} could not be prepared: {shortened(printable(reason), 200)}"
    asked = getattr(getattr(error, "request", None), "url", None)
    if isinstance(error, requests.ConnectionError) and asked:
        reason = f"no connection to {urlsplit(asked).netloc}"
    place = f"copy it to {builder.data_dir}" if builder else "prepare it with TFDS"
    return (
        f"{spec} could not be downloaded: {shortened(printable(reason), 200)}\n"
        f"Without a network, {place} from where there is one, or give the data as files."
    )


def _leaves(features) -> dict[str, tuple]:
    """The features by name, those inside others by a path such as `captions/text`.

    Each has the keys that lead to it in an example, and its shape there.
    """
    found = {}

    def add(keys: tuple[str, ...], feature, shape) -> None:
        if isinstance(shape, dict):
            inner = getattr(feature, "feature", feature)  # of what a sequence has many
            for key in shape:
                add((*keys, key), inner[key], shape[key])
        else:
            found["/".join(keys)] = keys, feature, shape

    for key, feature in features.items():
        add((key,), feature, feature.shape)
    return found


def _tfds_rows(place: str, builder, split: str, fields: Mapping[str, str]) -> Iterator[Row]:
    tfds, leaves = _tfds(), _leaves(builder.info.features)
    keys, features = {}, {}
    for field, name in fields.items():
        keys[field], features[field], _ = leaves[name]
    names = {field: getattr(feature, "names", None) for field, feature in features.items()}
    images = [field for field in fields if isinstance(features[field], tfds.features.Image)]
    encoded = {}
    for field in images:
        *outer, last = keys[field]
        functools.reduce(lambda tree, key: tree.setdefault(key, {}), outer, encoded)[last] = (
            tfds.decode.SkipDecoding()
        )
    examples = builder.as_dataset(split=split, decoders=encoded or None).map(
        lambda example: {field: functools.reduce(getitem, keys[field], example) for field in keys}
    )
    at_once = CHUNK_IMAGES if images else CHUNK_ROWS
    number = 0
    for batch in examples.ragged_batch(at_once).as_numpy_iterator():
        for values in zip(*(batch[field].tolist() for field in fields), strict=True):
            number += 1
            try:
                yield {
                    field: value if field in images else _tfds_field(value, names[field])
                    for field, value in zip(fields, values, strict=True)
                }
            except ValueError as error:
                reason = "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
                yield BadRow(place, number, reason)


def _tfds_field(value, names: list[str] | None) -> str:
    if isinstance(value, list | np.ndarray):  # A list where the batch's are equally long.
        return join_items(_tfds_field(item, names) for item in value)
    if names is not None:
        if value < 0:
            raise ValueError("no label")
        return names[value]
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
