"""The benchmark's development slice: no phrase on one side stands inside one on the other."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from sst2_slice import write_slice  # noqa: E402

SENTENCES = [f"the film number {i} is a very {w} one" for i, w in enumerate(["good", "bad"] * 20)]
PHRASES = [" ".join(s.split()[a:b]) for s in SENTENCES for a, b in ((0, 3), (4, 8), (2, 5), (6, 8))]


def contains(outer: str, inner: str) -> bool:
    return f" {inner} " in f" {outer} "


def rows(file: Path) -> list[str]:
    header, *lines = file.read_text(encoding="utf-8").splitlines()
    assert header == "label\tsentence"
    return [line.split("\t")[1] for line in lines]


def test_no_phrase_stands_on_both_sides(tmp_path):
    source = tmp_path / "source.tsv"
    lines = [f"{i % 2}\t{sentence}" for i, sentence in enumerate(SENTENCES + PHRASES)]
    source.write_text("\n".join(["label\tsentence", *lines]) + "\n", encoding="utf-8")
    for seed in (0, 1):
        train, dev = (rows(file) for file in write_slice(source, tmp_path / "out", 0.3, seed))
        assert dev and set(dev) < set(SENTENCES) and set(train) < set(SENTENCES + PHRASES)
        assert not any(contains(a, b) or contains(b, a) for a in dev for b in train)
        assert set(SENTENCES) - set(dev) <= set(train)
