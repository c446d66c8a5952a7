"""Trains the rows of the results table, and writes the page of results from their logs.

    RNNAPPS_DATA=DIR python benchmarks/run_all.py all             # all that is not done
    RNNAPPS_DATA=DIR python benchmarks/run_all.py sst2 conll2003/1  # a row; one seed of a row
    python benchmarks/run_all.py --list
    python benchmarks/run_all.py --write                          # docs/results.md, .json, figures

The rows are in `results_table.py`. A seed of a row is done when its log is there, a JSON file in
`docs/results/ROW/SEED.json`: what was run, on what, what came out, what it took, and the course of
the training. What is done is not done again. A training that was stopped, or killed, is taken up at
its last checkpoint by the same command, and what it took before counts. Rows that fail, or whose
data is not there, are named, and the others go on.

Several of these commands can run at a time: each takes what no other is at.
"""

import argparse
import contextlib
import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import real_data
import results_page
import results_table
import training_run
import yaml
from results_table import Benchmark, Row

from rnnapps import folders

ROOT = Path(__file__).parents[1]
PACKAGES = ("rnnapps", "tensorflow", "keras", "numpy")
# A logged value has so many digits, which is more than seeds agree on.
_DIGITS = 6


class Seed(NamedTuple):
    """One training of a row."""

    row: Row | Benchmark
    seed: int

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return f"{self.row.name}/{self.seed}"


@dataclasses.dataclass(frozen=True)
class Places:
    """Where everything is kept.

    Attributes:
        runs: Run folders, exports, and data that is made from other data.
        logs: The logs.
    """

    runs: Path
    logs: Path

    def run(self, one: Seed) -> Path:
        """The run folder of a training."""
        return self.runs / one.name

    def log(self, one: Seed) -> Path:
        """The log of a training."""
        return self.logs / f"{one.name}.json"


class Absent(Exception):
    """What a row needs is not there."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 where something that was asked for is not done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", nargs="*", metavar="ROW[/SEED]", help="or `all`")
    parser.add_argument("--list", action="store_true", help="tell what is done, and what is not")
    parser.add_argument("--write", action="store_true", help="write the page, after any runs")
    parser.add_argument("--runs", type=Path, default=Path("runs/results"), help="run folders")
    parser.add_argument(
        "--logs", type=Path, default=ROOT / "docs" / "results", help="the logs, below the page"
    )
    flags = parser.parse_args(argv)
    places = Places(flags.runs.resolve(), flags.logs.resolve())
    seeds = chosen(flags.rows or (["all"] if flags.list else []), parser)
    if flags.list:
        print_states(seeds, places)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the training stops with it
    left = [one.name for one in seeds if not done(one, places)]
    if flags.write:
        results_page.write(results_table.SETS, read_logs(places), places.logs.parent)
    if left:
        print(f"not done: {', '.join(left)}", file=sys.stderr)
    return 1 if left else 0


def chosen(names: Sequence[str], parser: argparse.ArgumentParser) -> list[Seed]:
    """Finds what was named, with what has to be before.

    First come the headlines of sets in which something must be reached, then the other headlines;
    first seeds before others, and what takes little before what takes long.
    """
    ranked = [
        ((not row.headline, one.must is None, seed, row.cpu_minutes), Seed(row, seed))
        for one in results_table.SETS
        for row in one.rows
        for seed in row.seeds
    ]
    every = [one for _, one in sorted(ranked, key=lambda pair: pair[0])]
    known = {one.name: one for one in every}
    for name in names:
        if name != "all" and not any(name in (one.row.name, one.name) for one in every):
            parser.error(f"no such row: {name}; --list tells all")
    wanted = [one for one in every if {"all", one.row.name, one.name} & set(names)]
    with_needs: dict[str, Seed] = {}
    for one in wanted:
        for needed in one.row.needs:
            with_needs.setdefault(f"{needed}/0", known[f"{needed}/0"])
        with_needs.setdefault(one.name, one)
    return list(with_needs.values())


def done(one: Seed, places: Places) -> bool:
    """Sees to it that a training is done, if it can be; returns whether it is."""
    told = state(one, places)
    if told != "to do":
        print(f"{one.name}: {told}", flush=True)
        return told == "done"
    print(f"{one.name}: about {one.row.cpu_minutes:g} CPU minutes", flush=True)
    try:
        log = (run if isinstance(one.row, Row) else benchmark)(one, places)
    except BlockingIOError:
        print(f"{one.name}: another process is at it", flush=True)
        return False
    except (subprocess.CalledProcessError, Absent) as error:
        print(f"{one.name}: failed: {error}", file=sys.stderr, flush=True)
        return False
    places.log(one).parent.mkdir(parents=True, exist_ok=True)
    folders.write_text(places.log(one), in_lines(log))
    print(f"{one.name}: done, {sum(log['cpu_seconds']):.0f} CPU seconds", flush=True)
    return True


def state(one: Seed, places: Places) -> str:
    """Tells whether a training is `done`, is `to do`, or why it is neither."""
    file = places.log(one)
    if file.exists():
        if json.loads(file.read_text(encoding="utf-8"))["asked"] == asked(one.row):
            return "done"
        return f"the row has changed since: remove {file} and {places.run(one)} to run it again"
    if "RNNAPPS_DATA" not in os.environ:
        return "no data: RNNAPPS_DATA is to name its folder"
    absent = [name for name in one.row.data.files if not (real_data.folder() / name).is_file()]
    return f"no data: {', '.join(absent)}" if absent else "to do"


def read_logs(places: Places) -> dict[str, list[dict[str, Any]]]:
    """Reads the logs of all rows, but for those of rows that have changed since."""
    logs: dict[str, list[dict[str, Any]]] = {}
    for row in results_table.rows():
        for one in (Seed(row, seed) for seed in row.seeds):
            if places.log(one).exists():
                if (told := state(one, places)) == "done":
                    logs.setdefault(row.name, []).append(json.loads(places.log(one).read_text()))
                else:
                    print(f"{one.name}: left out: {told}", file=sys.stderr)
    return logs


def run(one: Seed, places: Places) -> dict[str, Any]:
    """Trains, measures, and returns the log."""
    row, out = one.row, places.run(one)
    settings = {**row.settings, "seed": one.seed}
    if row.own_splits:
        settings["split_seed"] = one.seed
    if row.starts_from:
        name, setting = row.starts_from
        settings[setting] = before(name, places)
    commit = current_commit()
    given = (row.script, row.data.flags(places.runs), settings, out, Path(f"{out}-export"))
    trained = training_run.train(*given)
    metrics = trained.metrics
    measured = {
        name: {split: evaluate(row, trained.version, decoding, split) for split in decoding.splits}
        for name, decoding in row.decodings.items()
    }
    found = {
        "config": yaml.safe_load((out / "config.yaml").read_text(encoding="utf-8")),
        "metrics": {split: metrics[split] for split in ("train", "dev", "test")},
        "decodings": measured,
        "examples": metrics["examples"],
        "parameters": metrics["parameters"],
        "seconds": trained.took.seconds,
        "cpu_seconds": trained.took.cpu_seconds,
        "curve": curve(trained),
    }
    return logged(one, places, found, commit, training_run.command_of(*given))


def benchmark(one: Seed, places: Places) -> dict[str, Any]:
    """Runs a benchmark that measures by itself, and returns the log."""
    row = one.row
    command = [sys.executable, str(row.script), *row.arguments, f"--seed={one.seed}"]
    for needed in row.needs:
        export = (before(needed, places) / "exported").read_text(encoding="utf-8").strip()
        command.append(f"{needed}={export}")
    commit, started, waited_for = (
        current_commit(),
        time.monotonic(),
        training_run.children_seconds(),
    )
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(told.strip().splitlines()[-1])
    found |= {
        "seconds": [round(time.monotonic() - started, 2)],
        "cpu_seconds": [round(training_run.children_seconds() - waited_for, 2)],
    }
    return logged(one, places, found, commit, command)


def before(name: str, places: Places) -> Path:
    """Returns the run folder of a row that another needs.

    Raises:
        Absent: It has been removed, or is elsewhere.
    """
    folder = places.runs / name / "0"
    if not (folder / "exported").exists():
        raise Absent(f"{folder} is not there: remove the log of {name}/0 to train it again")
    return folder


def logged(
    one: Seed, places: Places, found: dict[str, Any], commit: str, command: Sequence[str]
) -> dict[str, Any]:
    """Puts what was found beside what it was found with."""
    log = {
        "row": one.row.name,
        "seed": one.seed,
        "asked": asked(one.row),
        **rounded(found),
        "data": {name: sha256(real_data.folder() / name) for name in one.row.data.files},
        "commit": commit,
        "command": f"python benchmarks/run_all.py {one.name}",
        "runs": shlex.join(["python", *command[1:]]),
        "machine": machine(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "date": datetime.date.today().isoformat(),
    }
    hidden = {
        f"{real_data.folder()}": "$RNNAPPS_DATA",
        f"{places.runs}": "runs/results",
        f"{ROOT}/": "",
    }
    # One folder may stand in another.
    return without_paths(log, dict(sorted(hidden.items(), key=lambda pair: -len(pair[0]))))


def evaluate(
    row: Row, version: Path, decoding: results_table.Decoding, split: str
) -> dict[str, float]:
    """Measures an export in another way; returns the metrics."""
    command = [sys.executable, str(row.script), "evaluate", f"--model={version}"]
    command += [os.path.expandvars(flag) for flag in decoding.flags]
    told = subprocess.run(
        [*command, f"--split={split}"], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(told.stdout.strip().splitlines()[-1])


def asked(row: Row | Benchmark) -> dict[str, Any]:
    """Returns what a log must be of: the settings and measurements that a row asks for."""
    if isinstance(row, Benchmark):
        return {
            "script": row.script.name,
            "arguments": list(row.arguments),
            "decodings": list(row.decodings),
            "needs": list(row.needs),
        }
    decodings = {
        name: [*decoding.flags, *decoding.splits] for name, decoding in row.decodings.items()
    }
    start = list(row.starts_from) if row.starts_from else None
    return {
        "script": row.script.name,
        "settings": dict(row.settings),
        "own_splits": row.own_splits,
        "decodings": decodings,
        "starts_from": start,
    }


def curve(trained: training_run.TrainingRun) -> dict[str, list[float]]:
    """Returns the course of a training by epoch: its seconds, what had been used up, metrics."""
    columns = {name: [float(epoch[name]) for epoch in trained.epochs] for name in trained.epochs[0]}
    return {
        "epoch": [int(epoch) + 1 for epoch in columns.pop("epoch")],
        "cpu_seconds": trained.took.epochs,
        **columns,
    }


def sha256(file: Path) -> str:
    """Hashes a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def rounded(value: Any) -> Any:
    """Rounds numbers, however deep they are."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def current_commit() -> str:
    """Tells which commit the code is of, and whether it was changed since."""
    git = ["git", "-C", str(ROOT)]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
        code = ["rnnapps", "pipelines", "benchmarks"]
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *code]).returncode
        return f"{commit} and changes" if changed else commit
    return "unknown"


def machine() -> str:
    """Tells what the processor is, and how many cores there are."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return f"{platform.machine()}, {model}, {os.cpu_count()} cores"


def without_paths(value: Any, hidden: dict[str, str]) -> Any:
    """Puts names in the place of the folders of one machine, however deep they are."""
    if isinstance(value, dict):
        return {key: without_paths(part, hidden) for key, part in value.items()}
    if isinstance(value, list):
        return [without_paths(part, hidden) for part in value]
    if isinstance(value, str):
        for path, name in hidden.items():
            value = value.replace(path, name)
    return value


def in_lines(log: dict[str, Any]) -> str:
    """Writes a log as JSON, a line for each key, and for each of a curve."""
    parts = []
    for key, value in log.items():
        text = json.dumps(value)
        if isinstance(value, dict) and value:
            inner = (f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            text = "{\n" + ",\n".join(inner) + "\n }"
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def print_states(seeds: Sequence[Seed], places: Places) -> None:
    """Prints each training in the order in which `all` takes them, with its state."""
    minutes = 0.0
    for one in seeds:
        told = state(one, places)
        minutes += one.row.cpu_minutes if told == "to do" else 0
        print(f"{one.name:36} {one.row.cpu_minutes:6g} CPU minutes  {told}")
    print(f"to do: about {minutes / 60:.1f} CPU hours")


if __name__ == "__main__":
    sys.exit(main())
