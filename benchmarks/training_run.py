"""A training of a pipeline's script, from its start to its export, as every benchmark times it."""

import contextlib
import csv
import dataclasses
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from rnnapps import folders

_POLL_SECONDS = 2.0


@dataclasses.dataclass
class Took:
    """What a training has taken so far, in all attempts, which a file beside its run keeps.

    Other work on the machine lengthens the wall time, but hardly the CPU time.

    Attributes:
        seconds: From the start of each attempt's process to its end.
        cpu_seconds: Of each attempt's process, on all cores together, and of those it started.
        epochs: CPU seconds of all attempts when each epoch was found complete.
    """

    seconds: list[float] = dataclasses.field(default_factory=list)
    cpu_seconds: list[float] = dataclasses.field(default_factory=list)
    epochs: list[float] = dataclasses.field(default_factory=list)


class TrainingRun(NamedTuple):
    """What a training came to.

    Attributes:
        metrics: What its run folder's `metrics.json` holds.
        epochs: The rows of its `history.csv`.
        version: The export.
        seconds: From the start of the process to its end.
        took: What it took, attempts that were stopped among it.
    """

    metrics: dict[str, Any]
    epochs: list[dict[str, str]]
    version: Path
    seconds: float
    took: Took

    def __str__(self) -> str:
        """Tells what it took."""
        return (
            f"{self.metrics['parameters']:,} parameters, {self.seconds:.0f} s from start to export,"
            f" {self.metrics['seconds']:.0f} s of training in all"
        )


def train(
    script: Path, data: Sequence[str], settings: Mapping[str, Any], out: Path, export: Path
) -> TrainingRun:
    """Trains with the command line; a run that was stopped is taken up.

    Args:
        script: The pipeline's script.
        data: Flags of the data.
        settings: All other settings by name.
        out: The run folder.
        export: The folder of exported versions.

    Returns:
        What it came to.

    Raises:
        subprocess.CalledProcessError: The training failed, and has told why.
        BlockingIOError: Another process trains in this run folder.
    """
    command = command_of(script, data, settings, out, export)
    started = time.monotonic()
    took = _took(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_name(f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        printed = _run(command, out, took, lock)
    return TrainingRun(
        metrics=json.loads((out / "metrics.json").read_text()),
        epochs=read_epochs(out),
        # "export: DIR", or of a run that was finished "…; its export is DIR".
        version=Path(re.split("export(?: is|:) ", printed.strip().splitlines()[-1])[-1]),
        seconds=time.monotonic() - started,
        took=took,
    )


def command_of(
    script: Path, data: Sequence[str], settings: Mapping[str, Any], out: Path, export: Path
) -> list[str]:
    """Writes the command that `train` runs, from the same arguments."""
    command = [sys.executable, str(script), "train", *data]
    command += [f"--{name}={value}" for name, value in settings.items()]
    return [*command, f"--out={out}", f"--export={export}"]


def read_epochs(out: Path) -> list[dict[str, str]]:
    """Reads the rows of a run's `history.csv`; none, where it has none yet."""
    with contextlib.suppress(FileNotFoundError), (out / "history.csv").open() as file:
        return list(csv.DictReader(file))
    return []


def _took(out: Path) -> Took:
    with contextlib.suppress(FileNotFoundError):
        return Took(**json.loads(_took_file(out).read_text()))
    return Took()


def _took_file(out: Path) -> Path:
    return out.with_name(f"{out.name}-took.json")


def _run(command: Sequence[str], out: Path, took: Took, lock: IO) -> str:
    """Runs a training, keeping what it takes as it goes; returns what it printed."""
    earlier, started, waited_for = sum(took.cpu_seconds), time.monotonic(), children_seconds()
    took.seconds.append(0.0)
    took.cpu_seconds.append(0.0)

    def note(cpu_seconds: float) -> None:
        took.seconds[-1] = round(time.monotonic() - started, 2)
        took.cpu_seconds[-1] = round(cpu_seconds, 2)
        complete = len(read_epochs(out))
        took.epochs += [round(earlier + cpu_seconds, 2)] * (complete - len(took.epochs))
        folders.write_text(_took_file(out), json.dumps(dataclasses.asdict(took)))

    # The training holds the lock, too, should it outlive this process.
    held = {"pass_fds": [lock.fileno()]}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **held) as process:
        try:
            while True:
                note(_cpu_seconds(process.pid))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    printed, _ = process.communicate(timeout=_POLL_SECONDS)
                    break
        except BaseException:
            process.terminate()
            raise
    note(children_seconds() - waited_for)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return printed


def children_seconds() -> float:
    """Returns the CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_seconds(process: int) -> float:
    """Asks Linux for the CPU seconds of a process and of those it has waited for; 0 elsewhere."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0
