"""The results table: its rows can be run, and are run once, whatever happens in between."""

import dataclasses
import fcntl
import functools
import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import real_data  # noqa: E402
import results_table  # noqa: E402
import run_all  # noqa: E402
import sentiment  # noqa: E402
from results_table import Benchmark, Data, Decoding, Published, ResultSet, Row  # noqa: E402

from rnnapps import cli  # noqa: E402
from rnnapps.tasks.captioning import Captioning  # noqa: E402
from rnnapps.tasks.language_model import LanguageModel  # noqa: E402
from rnnapps.tasks.ner import Ner  # noqa: E402
from rnnapps.tasks.sentiment import Sentiment  # noqa: E402
from rnnapps.tasks.translation import Translation  # noqa: E402

TASKS = {task.name: task for task in (Sentiment, Ner, LanguageModel, Translation, Captioning)}

# Trains as a pipeline does: an epoch more at each start, dying before the last.
SCRIPT = """
import json, pathlib, sys
command, flags = sys.argv[1], dict(flag[2:].split("=", 1) for flag in sys.argv[2:])
if command == "evaluate":
    sys.exit(print("a report\\n" + json.dumps({"accuracy": 0.25, "told": flags["beam"]})))
out = pathlib.Path(flags["out"])
out.mkdir(exist_ok=True)
history = out / "history.csv"
if not history.exists():
    history.write_text("epoch,seconds,loss,gradient_norm,val_accuracy\\n")
epochs = history.read_text().count("\\n") - 1
history.write_text(history.read_text() + f"{epochs},1.5,2,3,0.{epochs}\\n")
if epochs < int(flags["deaths"]):
    sys.exit(1)
(out / "config.yaml").write_text(json.dumps(flags))
(out / "exported").write_text(flags["export"] + "/1")
found = {"accuracy": (8 + int(flags["seed"])) / 10}
metrics = {split: found for split in ("train", "dev", "test")}
metrics |= {"parameters": 7, "seconds": 3.0, "examples": {"train": 5}}
(out / "metrics.json").write_text(json.dumps(metrics))
print(f"run: {out}\\nexport: {flags['export']}/1")
"""

# Measures something of the models of other rows, and tells which.
SEVERAL = """
import json, sys
half = {"test": {"accuracy": 0.5}, "weights": [0.5, 0.5]}
print(json.dumps({"metrics": {"test": {"accuracy": 0.75}}, "decodings": {"half": half}}))
assert sys.argv[1] == "--seed=0" and sys.argv[2].startswith("small=/")
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A set of rows, of which the second has no data; and how it is run."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "there.txt").write_text("text\n")
    monkeypatch.setenv("RNNAPPS_DATA", str(tmp_path))
    data = Data(("there.txt",), lambda runs: [f"--data={tmp_path / 'there.txt'}"])
    row = Row(
        "small",
        "default",
        tmp_path / "script.py",
        data,
        {"deaths": 0},
        seeds=(0, 1),
        own_splits=True,
        decodings={"greedy": Decoding(("--beam=$RNNAPPS_DATA",))},
        headline=True,
    )
    other = dataclasses.replace(
        row, name="other", variant="another", data=Data(("gone.txt",), data.flags)
    )
    several = Benchmark(
        "several",
        "of several",
        tmp_path / "several.py",
        (),
        data,
        decodings=("half",),
        needs=("small",),
    )
    (tmp_path / "several.py").write_text(SEVERAL)

    def run(*rows, deaths=0):
        there = dataclasses.replace(row, settings={"deaths": deaths})
        one = ResultSet(
            "A set",
            "accuracy",
            "accuracy",
            (there, other, several),
            "Chosen on dev.",
            scale=100,
            published=(Published(70.5, "theirs", "a paper", from_memory=True),),
            must=86,
            aim=85,
        )
        monkeypatch.setattr(results_table, "SETS", (one,))
        places = [f"--runs={tmp_path / 'runs'}", f"--logs={tmp_path / 'logs'}"]
        return run_all.main([*rows, *places])

    return run


def log(tmp_path, seed):
    return json.loads((tmp_path / "logs" / "small" / f"{seed}.json").read_text())


def test_what_is_done_is_logged_and_not_done_again(table, tmp_path, capsys):
    assert table("small") == 0
    written = log(tmp_path, 1)
    assert written["metrics"]["test"] == {"accuracy": 0.9} and written["seed"] == 1
    assert written["decodings"]["greedy"]["test"]["accuracy"] == 0.25
    assert written["curve"]["val_accuracy"] == [0.0] and written["curve"]["epoch"] == [1]
    assert len(written["cpu_seconds"]) == len(written["seconds"]) == 1
    assert written["cpu_seconds"][0] > 0
    assert written["config"]["data"] == "$RNNAPPS_DATA/there.txt"
    assert written["config"]["out"] == "runs/results/small/1"
    assert written["config"]["seed"] == written["config"]["split_seed"] == "1"
    assert str(tmp_path) not in json.dumps(written)
    assert list(written["data"].values()) == [run_all.sha256(tmp_path / "there.txt")]
    before = (tmp_path / "runs" / "small" / "1" / "history.csv").read_text()
    assert table("small") == 0
    assert (tmp_path / "runs" / "small" / "1" / "history.csv").read_text() == before
    assert "small/1: done" in capsys.readouterr().out
    assert table("small/0", deaths=1) == 1  # no longer the row that was logged
    assert "has changed" in capsys.readouterr().out


def test_what_a_training_took_before_it_died_counts(table, tmp_path, capfd):
    for attempt in range(2):
        assert table("small/1", deaths=2) == 1
        assert not (tmp_path / "logs" / "small").exists()
        assert "small/1: failed" in capfd.readouterr().err
        took = json.loads((tmp_path / "runs" / "small" / "1-took.json").read_text())
        assert len(took["seconds"]) == len(took["epochs"]) == attempt + 1
    assert table("small/1", deaths=2) == 0
    written = log(tmp_path, 1)
    assert len(written["cpu_seconds"]) == 3 and min(written["cpu_seconds"]) > 0
    curve = written["curve"]["cpu_seconds"]
    assert curve == sorted(curve) and len(set(curve)) == 3
    assert curve[-1] == pytest.approx(sum(written["cpu_seconds"]), abs=0.2)


def test_absent_data_and_other_processes_stop_nothing_else(table, tmp_path, capfd, monkeypatch):
    (tmp_path / "runs" / "small").mkdir(parents=True)
    with (tmp_path / "runs" / "small" / "0.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert table("all") == 1
    told = capfd.readouterr()
    assert "small/0: another process is at it" in told.out
    assert "other/0: no data: gone.txt" in told.out
    assert "small/1: done" in told.out
    assert "several/0: failed" in told.err
    assert told.err.splitlines()[-1] == "not done: small/0, other/0, other/1, several/0"
    assert [file.name for file in (tmp_path / "logs").rglob("*.json")] == ["1.json"]
    assert table("--list") == 0
    lines = capfd.readouterr().out.splitlines()
    named = [line.split()[0] for line in lines[:4]]
    assert named == ["small/0", "other/0", "small/1", "other/1"]
    assert lines[0].endswith("to do") and lines[2].endswith("done")
    monkeypatch.delenv("RNNAPPS_DATA")
    assert table("small") == 1
    assert "RNNAPPS_DATA" in capfd.readouterr().out


def test_a_benchmark_says_that_its_data_is_not_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RNNAPPS_DATA", str(tmp_path))
    assert real_data.folder("ner") == tmp_path / "ner"
    monkeypatch.setenv("RNNAPPS_DATA", "gone")
    with pytest.raises(SystemExit, match="name the folder of the data.* Received: gone$"):
        real_data.folder("ner")
    monkeypatch.delenv("RNNAPPS_DATA")
    with pytest.raises(SystemExit, match="Received: nothing$"):
        real_data.folder()


parser_of = functools.cache(cli._parser)


def test_the_page_says_what_the_logs_say(table, tmp_path, capfd):
    assert table("small/0", "--write") == 0
    text = (tmp_path / "results.md").read_text()
    missed = "80.0, 1 of 2 seeds | 70.5* | 85: **missed**; at least 86: **missed** |"
    assert f"| A set | accuracy | {missed}" in text
    assert table("small", "several", "--write") == 0
    text = (tmp_path / "results.md").read_text()
    # Of 80 and 90 the mean is at the aim, but not at the bound.
    reached = "| 85.0 (80.0–90.0) | 70.5* | 85: reached; at least 86: **missed** |"
    assert f"| A set | accuracy {reached}" in text
    assert "| default | 85.0 (80.0–90.0) | 85.0 (80.0–90.0) | 2 of 2 | 7 |" in text
    assert "| default, greedy |  | 25.0 (25.0–25.0) | 2 of 2 |" in text
    assert "Not run: `other` (another)." in text and "Rows: `small`, `several`." in text
    assert "| another |" not in text
    assert "| of several |  | 75.0 | 1 of 1 |" in text
    assert "| of several, half |  | 50.0 | 1 of 1 |" in text
    assert "| theirs | 70.5 | a paper (from memory) |" in text
    assert run_all.sha256(tmp_path / "there.txt")[:12] in text
    for name in re.findall(r"\]\((.*?)\)", text):
        assert (tmp_path / name).stat().st_size > 1000
    (found,) = json.loads((tmp_path / "results.json").read_text())
    assert found["lines"][0]["test"] == [80.0, 90.0] and found["lines"][2]["seeds"] == []
    # Of rows that have changed since, nothing is told.
    assert table("--write", deaths=1) == 0
    assert "small/1: left out" in capfd.readouterr().err
    assert "| A set | accuracy | *not run* |" in (tmp_path / "results.md").read_text()


def test_what_comes_of_several_models_trains_them_before(table, tmp_path, capfd):
    assert table("several") == 0
    assert log(tmp_path, 0)["row"] == "small"
    written = json.loads((tmp_path / "logs" / "several" / "0.json").read_text())
    assert written["metrics"]["test"] == {"accuracy": 0.75} and written["cpu_seconds"][0] > 0
    assert written["runs"].endswith("small=runs/results/small/0-export/1")
    (tmp_path / "logs" / "several" / "0.json").unlink()
    (tmp_path / "runs" / "small" / "0" / "exported").unlink()
    assert table("several") == 1
    assert "remove the log of small/0" in capfd.readouterr().err


@pytest.mark.parametrize(
    "row",
    [row for row in results_table.rows() if isinstance(row, Row)],
    ids=lambda row: row.name,
)
def test_the_command_line_takes_what_a_row_asks_for(row, tmp_path, monkeypatch):
    monkeypatch.setenv("RNNAPPS_DATA", str(tmp_path))
    monkeypatch.setattr(sentiment, "kept_slice", lambda folder: (folder, folder))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "imdb_words.txt").touch()
    task = TASKS["sentiment" if row.script == sentiment.WITHOUT_MASKS else row.script.stem]
    assert row.script.exists() and row.data.files
    settings = [f"--{name}={value}" for name, value in row.settings.items()]
    if row.starts_from:
        name, setting = row.starts_from
        settings.append(f"--{setting}={name}")
    parser = parser_of(task)
    parser.parse_args(["train", *row.data.flags(tmp_path), *settings, "--out=run"])
    for decoding in row.decodings.values():
        for split in decoding.splits:
            parser.parse_args(["evaluate", "--model=m", f"--split={split}", *decoding.flags])


def test_names_are_used_once():
    names = [row.name for row in results_table.rows()]
    assert len(set(names)) == len(names)
    assert {name for row in results_table.rows() for name in row.needs} <= set(names)
    assert all(one.rows[0].headline for one in results_table.SETS)


def test_the_pictures_mark_the_epochs_that_were_kept():
    seen = 0
    for one in results_table.SETS:
        monitor, better = one.monitor or (one.metric, one.better)
        for row in one.rows:
            for file in (run_all.ROOT / "docs" / "results" / row.name).glob("*.json"):
                log = json.loads(file.read_text(encoding="utf-8"))
                chosen = log.get("curve", {}).get(f"val_{monitor}")
                if isinstance(row, Benchmark) or not chosen:
                    continue
                kept = chosen.index((max if better == "max" else min)(chosen))
                for name, value in log["metrics"]["dev"].items():
                    assert log["curve"][f"val_{name}"][kept] == pytest.approx(value, rel=1e-4), file
                seen += 1
    assert seen > 20
