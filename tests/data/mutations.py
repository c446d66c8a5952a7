"""Broken files for every reader: valid ones, damaged in ways that a number decides.

A file made from a reader's name and a number is the same every time, so that a failure can be seen
again. A reader either reads it or refuses it with a `UserError` that tells its reason in one or two
printable lines; anything else is a fault. The table of ten thousand files a reader:

    python tests/data/mutations.py --files 10000

and one file again, which is kept in a folder:

    python tests/data/mutations.py --reader csv --first 1234 --files 1 --keep broken
"""

import argparse
import contextlib
import dataclasses
import functools
import gzip
import io
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import unicodedata
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from etils import epy
from PIL import Image

from rnnapps import cli
from rnnapps.data import vectors
from rnnapps.data.formats.conll import read_conll
from rnnapps.data.formats.labelled import read_labelled
from rnnapps.data.formats.parallel import read_parallel
from rnnapps.data.formats.plain_text import read_plain_text
from rnnapps.data.formats.rows import BadRow, Row, whole
from rnnapps.errors import UserError
from rnnapps.tasks.config import read_config, write_config
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig

with epy.lazy_imports():  # which most readers do without
    import tensorflow as tf

    from rnnapps.data import images, sources
    from rnnapps.data.formats import captions, image_files

PROCESSOR_SECONDS, WALL_SECONDS = 10, 120
"""What a file may take; more is a hang."""
MEMORY = 2**30
"""How many bytes the process may grow by; the tables of one load hold far less than that."""
LONGEST_MESSAGE = 3_000

Reading = Callable[[], Any]


class Fault(Exception):
    """What a reader must not do."""


class _Hang(BaseException):
    """Not an `Exception`, so that no reader takes it for a broken file."""


# ---------------------------------------------------------------------------------- damaged bytes

PIECES = (
    b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0", b"\r", b"\r\n", b"\n", b"\n\n",
    b"\t", b" ", b",", b'"', b'""', b"'", b"\\", b"/", b"../", b"#", b"#0", b"%", b"&a ", b"*a",
    b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\xe2\x80\xae", b"\x1b[31m", b"\x1a", b"\x7f",
    b"[", b"]", b"{", b"}", b'{"a":', b"[[", b":", b"- ", b"!!python/object:os.system ", b"null",
    b"true", b"NaN", b"Infinity", b"1e999", b"-1", b"0", b"9999999999", b"9" * 5_000, b"1.5",
    b"\\ud800", b"\\u0000", b"-DOCSTART-", b"B-", b"I-X", b"O", b"PK\3\4", b"\x1f\x8b\x08",
)  # fmt: skip


def flip(content: bytes, rng: random.Random) -> bytes:
    """Flips bits, one to eight."""
    damaged = bytearray(content)
    for _ in range(rng.randint(1, 8) if damaged else 0):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def _cut(content: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    longest = len(content) if rng.random() < 0.2 else 8
    return start, min(start + rng.randint(1, max(longest, 1)), len(content))


def delete(content: bytes, rng: random.Random) -> bytes:
    """Leaves a piece out."""
    start, end = _cut(content, rng)
    return content[:start] + content[end:]


def duplicate(content: bytes, rng: random.Random) -> bytes:
    """Puts a piece in again, elsewhere, up to some thousand times."""
    start, end = _cut(content, rng)
    at = rng.randint(0, len(content))
    times = min(2 ** rng.randint(0, 12), 2**18 // max(end - start, 1)) if rng.random() < 0.1 else 1
    return content[:at] + content[start:end] * times + content[at:]


def splice(content: bytes, rng: random.Random) -> bytes:
    """Lets the file go on as it does somewhere else."""
    return content[: rng.randint(0, len(content))] + content[rng.randint(0, len(content)) :]


def truncate(content: bytes, rng: random.Random) -> bytes:
    """Leaves the end out."""
    return content[: rng.randint(0, len(content))]


def insert(content: bytes, rng: random.Random) -> bytes:
    """Puts something in that means something to some format."""
    at = rng.randint(0, len(content))
    return content[:at] + rng.choice(PIECES) + content[at:]


def overwrite(content: bytes, rng: random.Random) -> bytes:
    """Puts something in the place of as many bytes."""
    at, piece = rng.randint(0, len(content)), rng.choice(PIECES)[:8]
    return content[:at] + piece + content[at + len(piece) :]


def fill(content: bytes, rng: random.Random) -> bytes:
    """Puts in a long run of the same: a huge field, deep nesting, or nothing but blanks."""
    at, piece = rng.randint(0, len(content)), rng.choice(PIECES) or b"x"
    size = 2 ** rng.randint(4, 19 if rng.random() < 0.05 else 14)
    return content[:at] + piece * (size // len(piece) + 1) + content[at:]


OPERATIONS = (flip, delete, duplicate, splice, truncate, insert, insert, overwrite, overwrite, fill)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Damages bytes, in one way or several; a few stay whole."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
        content = rng.choice(OPERATIONS)(content, rng)
    return content


def compressed(content: bytes, rng: random.Random) -> bytes:
    """Makes a gzip file, of one member or two, that is as often damaged as what is in it."""
    if rng.random() < 0.5:
        return gzip.compress(damaged(content, rng), 1, mtime=0)
    at = rng.randint(0, len(content))
    members = [gzip.compress(part, 1, mtime=0) for part in (content[:at], content[at:])]
    return damaged(b"".join(members[rng.randint(0, 1) :]), rng)


def put(file: Path, content: bytes, rng: random.Random) -> Path:
    """Writes a damaged file; seldom something stands in its place that is no file at all."""
    if rng.random() < 0.2:
        file = file.with_name(f"{file.name}.gz")
        content = compressed(content, rng)
    else:
        content = damaged(content, rng)
    if rng.random() < 0.02:
        odd(file, rng)
    else:
        file.write_bytes(content)
    return file


def odd(file: Path, rng: random.Random) -> None:
    """Makes what has a file's name and is none."""
    kind = rng.randrange(7)
    if kind == 0:
        file.mkdir()
    elif kind == 1:
        os.mkfifo(file)
    elif kind < 6:
        file.symlink_to(("nowhere", file.name, "/dev/zero", "..")[kind - 2])


# -------------------------------------------------------------------------------------- the readers

LABELLED = [("A film to love.", "pos"), ('He said "no",\nand left.', "neg"), ("Müde, é.", "neg")]
SENTENCES = [[("EU", "NNP", "I-ORG"), ("sleeps", "VBZ", "O")], [("Rome", "NNP", "I-LOC")]] * 2
PAIRS = [("Good morning.", "Guten Morgen."), ("Two cats.", "Zwei Katzen."), ("#1", "Nr. 1")]
CAPTIONS = {"a.png": ["A dog runs.", "Dog"], "in/b.png": ["Two cats, in the sun."]}
TEXT = "A line.\nAnd another,\r\nof é and 日本.\n\n    end"


def _csv(rng):
    lines = ["text,label", *(f'"{text.replace(chr(34), chr(34) * 2)}",{y}' for text, y in LABELLED)]
    return rng.choice(["\n", "\r\n"]).join([*lines, ""]).encode()


def _labelled(folder: Path, rng: random.Random, name: str, content: bytes) -> Reading:
    path = put(folder / name, content, rng)
    columns = ["text", "label"] if rng.random() < 0.2 and "json" not in name else None
    return lambda: read_labelled(path, columns=columns)


def csv_file(folder: Path, rng: random.Random) -> Reading:
    """Labelled text in CSV."""
    return _labelled(folder, rng, "x.csv", _csv(rng))


def tsv_file(folder: Path, rng: random.Random) -> Reading:
    """Labelled text in TSV."""
    lines = [f"{text.replace(chr(10), ' ')}\t{label}" for text, label in LABELLED]
    return _labelled(folder, rng, "x.tsv", "\n".join(["text\tlabel", *lines]).encode())


def jsonl_file(folder: Path, rng: random.Random) -> Reading:
    """Labelled text in JSON lines."""
    rows = [
        {"text": text, "label": label, "n": 2**70, "x": [[1.5], None]} for text, label in LABELLED
    ]
    lines = [json.dumps(row, ensure_ascii=rng.random() < 0.5) for row in rows]
    return _labelled(folder, rng, "x.jsonl", "\n".join(lines).encode())


def class_folders(folder: Path, rng: random.Random) -> Reading:
    """Folders named by their class, of a text a file."""
    names = [
        "pos",
        "neg",
        rng.choice(["unsup", "pos neg", ".hidden", "train", "a\nb", "\udcff\x1b"]),
    ]
    for name, (number, (text, _)) in itertools.product(names, enumerate(LABELLED[:2])):
        (folder / "x" / name).mkdir(parents=True, exist_ok=True)
        stem = rng.choice(["", "", "\udcff", "a\nb", "."])
        with contextlib.suppress(FileExistsError):
            put(folder / "x" / name / f"{stem}{number}.txt", text.encode(), rng)
    if rng.random() < 0.1:
        odd(folder / "x" / f"{rng.choice(['z', 'z.txt', 'z.pos'])}", rng)
    return lambda: read_labelled(folder / "x")


def class_files(folder: Path, rng: random.Random) -> Reading:
    """Files named by their class, of a text a line."""
    (folder / "x").mkdir()
    names = [
        "r.pos",
        rng.choice(["r.neg", "neg", "r.\udcff", "r. ", "r.neg.gz", "r.txt", "r.a\nb"]),
    ]
    content = "".join(text.replace("\n", " ") + "\n" for text, _ in LABELLED).encode()
    paths = [put(folder / "x" / name, content, rng) for name in names]
    path = folder / "x" if rng.random() < 0.5 else ",".join(map(str, paths))
    return lambda: read_labelled(path)


def conll_file(folder: Path, rng: random.Random) -> Reading:
    """Tagged sentences in columns."""
    gap = rng.choice([" ", "\t"])
    blocks = ["".join(f"{gap.join(token)}\n" for token in sentence) for sentence in SENTENCES]
    content = "\n".join(["-DOCSTART- -X- O\n", "# comment\n", *blocks]).encode()
    path = put(folder / "x.conll", content, rng)
    tag_column, scheme = rng.choice([-1, -1, 2, "O"]), rng.choice(["auto", "auto", "iob1", "none"])
    return lambda: read_conll(path, tag_column=tag_column, scheme=scheme)


def parallel_table(folder: Path, rng: random.Random) -> Reading:
    """Sentences and translations in a TSV file."""
    lines = ["en\tde", *map("\t".join, PAIRS)]
    path = put(folder / "x.tsv", "\n".join([*lines, ""]).encode(), rng)
    columns = rng.choice([("1", "2"), ("en", "de"), ("2", "1")])
    return lambda: read_parallel(path, *columns)


def parallel_files(folder: Path, rng: random.Random) -> Reading:
    """Sentences and translations in two files."""
    contents = [f"{chr(10).join(side)}\n".encode() for side in zip(*PAIRS, strict=True)]
    paths = [
        put(folder / f"x.{n}", content, rng) for n, content in zip("ab", contents, strict=True)
    ]
    return lambda: read_parallel(",".join(map(str, paths)))


def plain_text(folder: Path, rng: random.Random) -> Reading:
    """A text."""
    path = put(folder / "x.txt", TEXT.encode() * rng.choice([1, 1, 400]), rng)
    return lambda: read_plain_text(path)


def _picture(kind: str, mode: str = "RGB", size: tuple[int, int] = (5, 4), **options: Any) -> bytes:
    stream = io.BytesIO()
    image = Image.linear_gradient("L").resize(size).convert(mode)
    image.save(stream, kind, **options)
    return stream.getvalue()


@functools.cache
def pictures() -> list[bytes]:
    """Small images of every kind that is read."""
    turned = Image.Exif()
    turned[0x0112] = 6
    kinds = [("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK"), ("PNG", "RGB"), ("PNG", "P")]
    kinds += [("PNG", "RGBA"), ("PNG", "1"), ("BMP", "RGB"), ("BMP", "P"), ("BMP", "1")]
    kinds += [("GIF", "P"), ("GIF", "L")]
    made = [_picture(*kind) for kind in kinds]
    made.append(_picture("JPEG", exif=turned, progressive=True))
    frames = [Image.new("P", (5, 4), shade) for shade in (1, 2, 3)]
    stream = io.BytesIO()
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    return [*made, stream.getvalue()]


def _image_folder(folder: Path) -> "image_files.ImageFiles":
    for number, name in enumerate(CAPTIONS):
        (folder / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "images" / name).write_bytes(pictures()[3 + number])
    return image_files.ImageFiles(folder / "images")


def _named() -> Iterator[tuple[str, int, str]]:
    for name, texts in CAPTIONS.items():
        for number, text in enumerate(texts):
            yield name, number, text


def flickr_file(folder: Path, rng: random.Random) -> Reading:
    """Captions in a Flickr token file."""
    lines = [f"{name}#{number}\t{text}\n" for name, number, text in _named()]
    path = put(folder / "x.token.txt", "".join(lines).encode(), rng)
    return lambda: captions.read_captions(path, _image_folder(folder))


def coco_file(folder: Path, rng: random.Random) -> Reading:
    """Captions in COCO's JSON."""
    corpus = {
        "images": [{"id": number, "file_name": name} for number, name in enumerate(CAPTIONS)],
        "annotations": [
            {"id": number, "image_id": [*CAPTIONS].index(name), "caption": text}
            for name, number, text in _named()
        ],
    }
    path = put(folder / "x.json", json.dumps(corpus).encode(), rng)
    return lambda: captions.read_captions(path, _image_folder(folder))


def caption_table(folder: Path, rng: random.Random) -> Reading:
    """Captions in a CSV file."""
    lines = ["image,caption", *(f'{name},"{text}"' for name, _, text in _named()), ""]
    path = put(folder / "x.csv", "\n".join(lines).encode(), rng)
    return lambda: captions.read_captions(path, _image_folder(folder))


def image_zip(folder: Path, rng: random.Random) -> Reading:
    """Images in a zip file."""
    lines = [f"{name}#{number}\t{text}\n" for name, number, text in _named()]
    (folder / "x.txt").write_text("".join(lines))
    stream = io.BytesIO()
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    roots = ("", "", "", "sub/", "../", "/", "c:\\", "..\\", "__MACOSX/", "é/", "\\\\host\\")
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in [*CAPTIONS, *CAPTIONS][: rng.randint(1, 4)]:
            info = zipfile.ZipInfo(rng.choice(roots) + name)
            info.compress_type = rng.choice(methods)
            if rng.random() < 0.1:
                info.external_attr = 0o120777 << 16  # a symbolic link
                info.create_system = 3
            archive.writestr(info, rng.choice([rng.choice(pictures()), b"../../etc/passwd"]))
    path = folder / "x.zip"
    if rng.random() < 0.02:
        odd(path, rng)
    else:
        path.write_bytes(damaged(stream.getvalue(), rng))
    return lambda: captions.read_captions(folder / "x.txt", image_files.ImageFiles(path))


@functools.cache
def _decoder():
    return tf.function(
        functools.partial(images.decode, size=4),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )


def image(folder: Path, rng: random.Random) -> Reading:
    """An image; what is wrong with it is what keeps it from being decoded."""
    content = damaged(rng.choice(pictures()), rng)
    (folder / "x").write_bytes(content)

    def read() -> Iterator[Row]:
        fault = images.fault(content)
        pixels, valid = _decoder()([content])
        if bool(valid[0]) != (fault is None):
            raise Fault(f"decoded: {bool(valid[0])}, and its fault is {fault}")
        if not 0 <= float(pixels.numpy().min()) <= float(pixels.numpy().max()) <= 255:
            raise Fault("a value that is none of a pixel")
        if fault is not None:
            raise UserError(fault)
        yield {}

    return read


def word_vectors(folder: Path, rng: random.Random) -> Reading:
    """Word vectors of GloVe's form and of word2vec's."""
    lines = ["the 0.5 -1 2e-3", "New York 1 2 3", "film 0 0 1"]
    header = ["3 3"] if rng.random() < 0.5 else []
    path = put(folder / "x.txt", "\n".join([*header, *lines]).encode(), rng)
    wanted = rng.choice([None, {"the", "film"}])

    def read() -> Iterator[Row]:
        words, values = vectors.read_vectors(path, wanted)
        if values.shape[0] != len(words) or not (abs(values) < float("inf")).all():
            raise Fault("vectors that are no numbers, or not as many as words")
        yield from ({} for _ in words)

    return read


def name_list(folder: Path, rng: random.Random) -> Reading:
    """The names of the images of a split."""
    paths = [put(folder / f"{part}.txt", b"a.jpg\nb.jpg\n", rng) for part in ("dev", "test")]
    lists = dict(zip(("dev", "test"), map(str, paths), strict=True))
    return lambda: ({"name": name} for name in sources._read_lists(lists))


YAMLS = (
    "# a comment\nunits: 64\ncell: gru\ndata: 'a b.csv'\ndropout: 0.25\ndev_data: null\n",
    "base: &a [1, 2]\nb: &b [*a, *a]\nunits: 64\nbidirectional: false\n",
    "{units: 64, label_column: !!str 3, splits: 80/10/10, seed: 0x10, epochs: 1_0}\n",
    "embedding_size: 64\ntext_column: >\n  folded\n  text\nlabel_column: |\n  kept\n",
)


# Made once, for it takes far longer than a file.
_parser = functools.cache(cli._parser)


def config_file(folder: Path, rng: random.Random) -> Reading:
    """Settings that `--config` names."""
    content = yaml_with_aliases() if rng.random() < 0.02 else rng.choice(YAMLS).encode()
    path = folder / "x.yaml"
    path.write_bytes(damaged(content, rng))

    def read() -> Iterator[Row]:
        told = io.StringIO()
        with (
            mock.patch.object(cli, "_parser", _parser),
            contextlib.redirect_stderr(told),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            status = cli.main(Sentiment, argv=["train", f"--config={path}", "--print_config"])
        if status == 2:
            raise UserError(told.getvalue().removesuffix("\n"))
        if status or told.getvalue():
            raise Fault(f"status {status} with {told.getvalue()[:200]!r}")
        yield {}

    return read


def yaml_with_aliases() -> bytes:
    """A few lines that stand for more values than any memory holds."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join([*lines, "units: *a11", ""]).encode()


def kept_config_file(folder: Path, rng: random.Random) -> Reading:
    """The settings that a run keeps."""
    path = folder / "config.yaml"
    write_config(SentimentConfig(units=32), path)
    content = yaml_with_aliases() if rng.random() < 0.02 else path.read_bytes()
    path.write_bytes(damaged(content, rng))

    def read() -> Iterator[Row]:
        read_config(SentimentConfig, path)
        yield {}

    return read


READERS: dict[str, Callable[[Path, random.Random], Reading]] = {
    reader.__name__: reader
    for reader in (
        csv_file, tsv_file, jsonl_file, class_folders, class_files, conll_file, parallel_table,
        parallel_files, plain_text, flickr_file, coco_file, caption_table, image_zip, image,
        word_vectors, name_list, config_file, kept_config_file,
    )
}  # fmt: skip

OF_TENSORFLOW = (
    "flickr_file", "coco_file", "caption_table", "image_zip", "image", "name_list"
)  # fmt: skip


# --------------------------------------------------------------------------------------- the limits


@contextlib.contextmanager
def limits() -> Iterator[None]:
    """Ends what takes too long, and lets what takes too much memory fail."""

    def stop(number, frame):
        _set_timers(0, 0)  # one stop is enough, and the other might strike later
        raise _Hang

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    old = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        room = pages * resource.getpagesize() + 2 * MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (room if hard < 0 else min(room, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, old[0])
        signal.signal(signal.SIGALRM, old[1])


def _set_timers(processor: float, wall: float) -> None:
    """Sets after how many seconds `limits` ends what runs; 0 for never."""
    signal.setitimer(signal.ITIMER_PROF, processor)
    signal.setitimer(signal.ITIMER_REAL, wall)


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def attempt(reader: str, number: int, folder: Path) -> tuple[str, str]:
    """Makes a broken file, in an empty folder, and reads it, within `limits`.

    Returns:
        `"read"`, `"refused"` or `"fault"`, and what was told.
    """
    rng = random.Random(f"{reader} {number}")
    reading = READERS[reader](folder, rng)
    before = peak_memory()
    _set_timers(PROCESSOR_SECONDS, WALL_SECONDS)
    try:
        try:
            outcome = "read", _read(reading)
        except UserError as error:
            outcome = "refused", str(error)
        except Exception as error:
            outcome = "fault", f"{type(error).__name__}: {error}"[:300]
        finally:
            _set_timers(0, 0)
    except _Hang:  # also where the time is up while an outcome is written down
        outcome = "fault", "it takes too long"
    if outcome[0] == "refused" and (wrong := _unlike_a_message(outcome[1])):
        return "fault", f"{wrong}: {outcome[1][:300]!r}"
    if peak_memory() - before > MEMORY:
        return "fault", f"it takes {(peak_memory() - before) // 2**20:,} MiB"
    return outcome


def _read(reading: Reading) -> str:
    count = bad = 0
    for row in map(whole, reading()):
        count += 1
        if isinstance(row, BadRow):
            bad += 1  # of which the first are told
            if bad <= 5 and (wrong := _unlike_a_message(str(row))):
                raise Fault(f"{wrong}: {str(row)[:300]!r}")
            continue
        for name, value in row.items():
            if isinstance(value, str):
                value.encode()
                if "\0" in value:
                    raise Fault(f"a NUL in {name}")
        if "label" in row and not row["label"].strip():
            raise Fault("a blank label")
        if "tokens" in row and len(row["tokens"].split("\n")) != len(row["tags"].split("\n")):
            raise Fault("not as many tags as tokens")
    return f"{count} rows"


def _unlike_a_message(text: str) -> str | None:
    if not text.strip() or len(text) > LONGEST_MESSAGE:
        return f"a message of {len(text):,} characters"
    if len(text.split("\n")) > 2:
        return f"a message of {len(text.splitlines())} lines"
    if any(unicodedata.category(c) == "Cc" and c != "\n" for c in text):
        return "a message that controls a terminal"
    return None


@dataclasses.dataclass
class Tally:
    """What became of the files of one reader."""

    read: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    memory: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)


def run(reader: str, numbers: range, scratch: Path, keep: bool = False) -> Tally:
    """Reads the files of some numbers.

    Args:
        reader: One of `READERS`.
        numbers: The files' numbers.
        scratch: A folder to make them in.
        keep: Whether the last file stays there.
    """
    tally = Tally()
    if reader in OF_TENSORFLOW:
        images.fault(b"")  # whose import is no file's time and memory
    with limits():
        before = peak_memory()
        for number in numbers:
            folder = scratch / "file"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            start = time.process_time()
            kind, told = attempt(reader, number, folder)
            seconds = time.process_time() - start
            tally.seconds += seconds
            tally.slowest = max(tally.slowest, seconds)
            if kind == "fault":
                tally.faults.append(f"{reader} {number}: {told}")
            else:
                setattr(tally, kind, getattr(tally, kind) + 1)
        if not keep:
            shutil.rmtree(folder)
        tally.memory = peak_memory() - before
    return tally


def main() -> int:
    """Prints what became of the files, and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", choices=[*READERS, "all"], default="all")
    parser.add_argument("--first", type=int, default=0, help="the number of the first file")
    parser.add_argument("--files", type=int, default=200, help="how many, of each reader")
    parser.add_argument("--keep", type=Path, help="a folder in which the last file stays")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(
        f"{'reader':17} {'read':>7} {'refused':>7} {'faults':>6} {'s':>6} {'slowest':>7} {'MiB':>5}"
    )
    faults = []
    for reader in READERS if options.reader == "all" else [options.reader]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = options.keep or Path(scratch)
            folder.mkdir(exist_ok=True)
            numbers = range(options.first, options.first + options.files)
            found = run(reader, numbers, folder, options.keep is not None)
        faults += found.faults
        print(
            f"{reader:17} {found.read:7,} {found.refused:7,} {len(found.faults):6} "
            f"{found.seconds:6.1f} {found.slowest:7.2f} {found.memory / 2**20:5.0f}",
            flush=True,
        )
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
