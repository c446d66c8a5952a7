"""Images in folders and zips, found by name, read one at a time, and looked at once."""

import functools
import lzma
import os
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rnnapps.data import images
from rnnapps.data.formats.rows import BadRow, listed, require_file
from rnnapps.errors import UserError

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif")

MAX_BYTES = 500_000_000
"""Larger files are refused unread; none of so many bytes is within the limit of pixels."""

# What zipfile, which has no one error of its own, raises at zips that are damaged or made to harm.
_DAMAGED = (
    EOFError, IndexError, OverflowError, RuntimeError, ValueError,
    lzma.LZMAError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class _TooLarge(Exception):
    """More than `MAX_BYTES`."""


@dataclass(frozen=True)
class Entry:
    """A file in a folder or zip.

    Attributes:
        place: The folder or zip.
        path: The file's path in it, with slashes.
    """

    place: str
    path: str

    def __str__(self) -> str:
        return os.path.join(self.place, self.path)


class ImageFiles:
    """The images of folders and zips; nothing is unpacked.

    An object belongs to one load of data: it remembers which images it has looked at, and what was
    asked for.

    Args:
        spec: A folder or a zip, or a comma-separated list of them. Their folders are searched too.

    Example:
        files = ImageFiles("train2017.zip,val2017.zip")
        read = files.find("000000391895.jpg")
        encoded = read()
    """

    def __init__(self, spec: str | os.PathLike):
        self.spec = os.fspath(spec)
        self._zips: dict[str, zipfile.ZipFile] = {}
        self._looked_at: dict[Entry, BadRow | None] = {}
        self._found: set[Entry] = set()
        self._missing: dict[str, int] = {}

    def find(self, name: str, num_captions: int = 1) -> Callable[[], bytes | BadRow] | None:
        """Finds the image that a row names.

        Args:
            name: The end of its path: `"dog.jpg"` is found in any folder, `"val/dog.jpg"` only in
                one named `val`. What is exactly the path goes first.
            num_captions: How many captions it has, for the report.

        Returns:
            A function that reads it: the encoded image; or a `BadRow`, where the file cannot be
            read or is not an image that `images.decode` decodes, for which it is decoded the first
            time. None where there is no such file.

        Raises:
            LookupError: The name leads out of the folder or zip, or there are several such files.
            UserError: A folder or zip is missing, damaged or without images.
        """
        path = posixpath.normpath(name)
        if _leaves(path):
            raise LookupError(f"the image {name!r} is no path within {self.spec}")
        ends = [
            entry
            for entry in self._entries.get(posixpath.basename(path), ())
            if f"/{entry.path}".endswith(f"/{path}")
        ]
        exact = [entry for entry in ends if entry.path == path]
        safe = exact or [entry for entry in ends if not _leaves(entry.path)]
        if len(safe) > 1:
            raise LookupError(f"the image {name!r} is both {safe[0]} and {safe[1]}")
        if safe:
            self._found.add(safe[0])
            return functools.partial(self._read, safe[0])
        if ends:
            raise LookupError(f"the image {name!r} has a path that leaves its zip: {ends[0]}")
        self._missing[name] = num_captions
        return None

    def report(self) -> str:
        """Says in a line how many images there are, and what had no counterpart."""
        there = [
            entry
            for entries in self._entries.values()
            for entry in entries
            if entry.path.lower().endswith(SUFFIXES)
        ]
        unused = sum(1 for entry in there if entry not in self._found)
        return (
            f"{len(there):,} images, {unused:,} of them without captions; "
            f"{sum(self._missing.values()):,} captions of {len(self._missing):,} images that are "
            "not there"
        )

    @functools.cached_property
    def _entries(self) -> dict[str, list[Entry]]:
        """All files by the last part of their path."""
        entries: dict[str, list[Entry]] = {}
        for place in listed(self.spec):
            require_file(place)
            paths = [path for path in dict.fromkeys(self._paths(place)) if not _is_hidden(path)]
            if not any(path.lower().endswith(SUFFIXES) for path in paths):
                raise UserError(f"{place} holds no images (known are {', '.join(SUFFIXES)})")
            for path in paths:
                entries.setdefault(posixpath.basename(path), []).append(Entry(place, path))
        return entries

    def _paths(self, place: str) -> Iterator[str]:
        if os.path.isdir(place):
            for folder, folders, names in os.walk(place):
                folders.sort()
                inner = os.path.relpath(folder, place).replace(os.sep, "/")
                yield from (posixpath.normpath(f"{inner}/{name}") for name in sorted(names))
            return
        try:
            self._zips[place] = zipfile.ZipFile(place)
        except OSError as error:
            raise UserError(f"{place} cannot be read: {error.strerror or error}") from None
        except _DAMAGED as error:
            raise UserError(f"{place} is neither a folder nor a whole zip file: {error}") from None
        yield from (info.filename for info in self._zips[place].infolist() if not info.is_dir())

    def _read(self, entry: Entry) -> bytes | BadRow:
        bad = self._looked_at.get(entry)
        if bad is None:
            try:
                content = self._content(entry)
                reason = None if entry in self._looked_at else images.fault(content)
            except _TooLarge as error:
                reason = str(error)
            except (OSError, *_DAMAGED) as error:
                reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
            bad = BadRow(str(entry), None, reason) if reason else None
            self._looked_at[entry] = bad
        return bad or content

    def _content(self, entry: Entry) -> bytes:
        if entry.place in self._zips:
            archive = self._zips[entry.place]
            size = archive.getinfo(entry.path).file_size
        elif os.path.isfile(str(entry)):
            size = os.path.getsize(str(entry))
        else:
            raise OSError("a pipe, a device or a link to nothing")
        if size > MAX_BYTES:
            raise _TooLarge(f"more than {MAX_BYTES:,} bytes")
        if entry.place in self._zips:
            return archive.read(entry.path)
        with open(str(entry), "rb") as handle:
            return handle.read()


def _leaves(path: str) -> bool:
    """Whether a path leads out of where it stands, on any system."""
    return (
        path.startswith(("/", "\\"))
        or ":" in path[:2]
        or ".." in path.replace("\\", "/").split("/")
    )


def _is_hidden(path: str) -> bool:
    return posixpath.basename(path).startswith(".") or path.startswith("__MACOSX/")
