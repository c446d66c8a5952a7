"""What a search has done in processes of their own: a look at the data, and its trials.

A process that ends gives back all its memory, and one that is killed takes nothing down with it.
It ends, in turn, as soon as the search that started it does, however that ended.
"""

import contextlib
import hashlib
import importlib
import json
import logging
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from etils import epy

from rnnapps.errors import UserError, reason
from rnnapps.tasks.config import from_mapping
from rnnapps.tasks.task import Splits, Task

with epy.lazy_imports():
    import tensorflow as tf

    from rnnapps import training

log = logging.getLogger("rnnapps")

_CHILD = """
import json, sys
job = json.loads(sys.stdin.readline())
sys.path[:] = job.pop("path")
from rnnapps import processes
processes.answer(**job)
"""


def ask(question: str, messages: IO, hold: tuple[int, ...] = (), **arguments: Any) -> dict:
    """Has a question answered in a new process.

    Args:
        question: `survey` or `learn`, the name of the function that answers.
        messages: the file that takes whatever the process prints.
        hold: file descriptors that the process keeps open for as long as it lives.
        **arguments: the function's, as JSON can carry them; its task under `task_class`, as
            `name_of` tells it, and `config`, the configuration's values by name.

    Returns:
        What the function returned, or `error` with a reason; `mistake`, whether the error is a
        user's; `warnings` that the package gave; and the process's largest `memory` in bytes.
        A process that was killed leaves an `error` alone.
    """
    job = {"path": sys.path, "question": question, **arguments}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _CHILD],
        stdin=subprocess.PIPE,  # stays open: its end tells the process that the search is gone
        stdout=subprocess.PIPE,
        stderr=messages,
        start_new_session=True,  # a Ctrl-C is for the search, which closes the pipe
        pass_fds=hold,
    ) as child:
        assert child.stdin is not None and child.stdout is not None  # they are pipes
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(job).encode() + b"\n")
            child.stdin.flush()
        reply = child.stdout.read()
        status = child.wait()
    if reply:
        return json.loads(reply)
    if status == -signal.SIGKILL:
        return {"error": "the process was killed, as the system does when memory runs out"}
    if status < 0:
        return {"error": f"the process was ended by {signal.Signals(-status).name}"}
    return {"error": f"the process ended with status {status}"}


def name_of(task_class: type[Task]) -> str:
    """Names a task's class so that another process finds it.

    Raises:
        UserError: it is not defined at the top of a module that can be imported.
    """
    module, name = task_class.__module__, task_class.__qualname__
    if module == "__main__" or "." in name:
        raise UserError(
            "the trials of a search run in processes of their own, which must be able to import "
            f"the task: define it in a module. Received: {module}.{name}"
        )
    return f"{module}:{name}"


def answer(question: str, task_class: str, config: dict[str, Any], **arguments: Any) -> None:
    """Answers, in the new process, what `ask` asked."""
    threading.Thread(target=_end_with_the_search, daemon=True).start()
    reply = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    logging.basicConfig(format="%(message)s")
    warnings = _Warnings()
    log.addHandler(warnings)
    log.setLevel(logging.INFO)
    try:
        module, _, name = task_class.partition(":")
        named: type[Task] = getattr(importlib.import_module(module), name)
        task = named(from_mapping(named.Config, config))
        answers: dict[str, Callable[..., dict[str, Any]]] = {"survey": survey, "learn": learn}
        found = answers[question](task, **arguments)
    except Exception as error:
        traceback.print_exc()
        found = {"error": reason(error), "mistake": isinstance(error, UserError)}
    found["memory"] = _peak_memory()
    found["warnings"] = warnings.messages
    reply.write(json.dumps(found))
    reply.close()


def _peak_memory() -> int:
    """The largest resident memory of this process, in bytes."""
    with contextlib.suppress(OSError):
        # Its own: on Linux, `getrusage` begins with that of the process that started it.
        status = Path("/proc/self/status").read_text()
        if told := re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE):  # not in every sandbox
            return int(told[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def survey(task: Task, splits: str | None = None) -> dict[str, Any]:
    """Checks the data of a search, and finds what its trials are compared by.

    Args:
        task: the task of the search.
        splits: a folder that holds the splits; by default they are the configured ones.

    Returns:
        The name of the dev metric, its `mode`, and a fingerprint of the train and dev `data`.
    """
    parts = _splits(task, splits)
    task.check(parts)
    task.adapt(parts["train"])
    objective = task.objective()
    data = "-".join(_fingerprint(parts[name]) for name in ("train", "dev"))
    return {"metric": objective.monitor, "mode": objective.mode, "data": data}


def learn(task: Task, run: str, splits: str | None = None) -> dict[str, Any]:
    """Runs a trial: trains on train, measures dev, and never holds the test split.

    Args:
        task: a task with the trial's configuration.
        run: the trial's run folder.
        splits: a folder that holds the splits; by default they are the configured ones.

    Returns:
        The best `score` on dev and the number of `epochs` that were trained.
    """
    parts = {name: part for name, part in _splits(task, splits).items() if name != "test"}
    learnt = training.learn(task, run, parts)
    objective = task.objective()
    scores = learnt.history[f"val_{objective.monitor}"]
    score = float((max if objective.mode == "max" else min)(scores))
    if not math.isfinite(score):
        raise UserError(f"the dev metric is no number. Received: {objective.monitor}={score}")
    return {"score": score, "epochs": len(scores)}


class _Warnings(logging.Handler):
    """Collects the package's warnings."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def _end_with_the_search() -> None:
    os.read(0, 1)  # returns when the other end of the pipe is closed
    os._exit(1)


def _splits(task: Task, folder: str | None) -> Splits:
    if folder is None:
        return task.load()
    return {part.name: tf.data.Dataset.load(str(part)) for part in Path(folder).iterdir()}


def _fingerprint(examples: "tf.data.Dataset") -> str:
    digest = hashlib.blake2b(digest_size=8)
    for batch in examples.batch(1024).as_numpy_iterator():
        for name in sorted(batch):
            digest.update(repr(batch[name].tolist()).encode())
    return digest.hexdigest()
