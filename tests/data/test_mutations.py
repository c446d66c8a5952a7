"""Broken files: every reader reads them or refuses them, and what does neither is found."""

import re
import time
from pathlib import Path

import numpy as np
import pytest

from rnnapps.errors import UserError
from tests.data import mutations


@pytest.mark.parametrize("reader", mutations.READERS)
def test_a_reader_reads_or_refuses_two_hundred_broken_files(reader, tmp_path):
    tally = mutations.run(reader, range(200), tmp_path)
    assert tally.faults == []
    assert tally.read + tally.refused == 200 and min(tally.read, tally.refused) > 10


def contents(folder):
    """What is in the files of a folder, and of what is no file only the name."""
    return {
        str(path.relative_to(folder)): path.is_file() and path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
    }


@pytest.mark.parametrize("reader", mutations.READERS)
def test_a_number_makes_the_same_file_again(reader, tmp_path):
    made = []
    for name, number in (("one", 7), ("same", 7), ("other", 8)):
        mutations.run(reader, range(number, number + 1), tmp_path / name, keep=True)
        made.append(contents(tmp_path / name))
    assert made[0] == made[1] != made[2]


def busy():
    while True:
        pass


def crash():
    raise KeyError("a key that is not there")


def refuse(message):
    raise UserError(message)


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        (busy, "it takes too long"),
        (lambda: time.sleep(9), "it takes too long"),
        (lambda: np.ones(2**29, np.uint8), "MiB|MemoryError"),
        (crash, "KeyError: 'a key that is not there'"),
        (lambda: refuse("one\ntwo\nthree"), "a message of 3 lines"),
        (lambda: refuse("\x1b[31mred"), "a message that controls a terminal"),
        (lambda: refuse("long " * 1_000), "a message of 5,000 characters"),
        (lambda: [{"text": "a\0b"}], "a NUL in text"),
        (lambda: [{"text": "\udcff"}], "UnicodeEncodeError"),
    ],
)
def test_faults_are_found(reading, told, tmp_path, monkeypatch):
    monkeypatch.setitem(mutations.READERS, "wrong", lambda folder, rng: reading)
    monkeypatch.setattr(mutations, "MEMORY", 2**28)
    if told == "it takes too long":
        monkeypatch.setattr(mutations, "PROCESSOR_SECONDS", 0.2)
        monkeypatch.setattr(mutations, "WALL_SECONDS", 1)
    (fault,) = mutations.run("wrong", range(3, 4), tmp_path).faults
    assert fault.startswith("wrong 3: ")
    assert re.search(told, fault)
