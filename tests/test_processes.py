"""What runs in a process of its own: its answers, its ends, and that it outlives nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rnnapps import processes
from rnnapps.errors import UserError
from rnnapps.tasks.config import DataConfig
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from rnnapps.tasks.task import Task


class Ends(Task):
    """A task whose process ends, while it loads its data, in the way that `data` names."""

    name = "ends"
    Config = Data = DataConfig

    def load(self):
        match self.config.data:
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "crashed":
                os.kill(os.getpid(), signal.SIGABRT)
            case "exited":
                os._exit(3)
            case "memory":
                raise MemoryError
            case "mistake":
                raise UserError("bad.csv:3: no label")
            case "sleeping":
                Path("sleeping").touch()
                time.sleep(60)


def ask(data: str, messages, question: str = "learn", **arguments):
    task_class = processes.name_of(Ends)
    arguments |= {"run": "none"} if question == "learn" else {}
    return processes.ask(
        question, messages, task_class=task_class, config={"data": data}, **arguments
    )


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("killed", "killed, as the system does when memory runs out"),
        ("crashed", "SIGABRT"),
        ("exited", "status 3"),
        ("memory", "MemoryError"),
        ("mistake", "bad.csv:3: no label"),
    ],
)
def test_every_end_has_a_reason(end, told, tmp_path):
    with open(tmp_path / "messages", "wb") as messages:
        found = ask(end, messages)
    assert told in found["error"]
    assert found.get("mistake", False) is (end == "mistake")
    printed = (tmp_path / "messages").read_text()
    assert ("Traceback" in printed) is (end in ("memory", "mistake"))
    if end in ("memory", "mistake"):
        assert 2**20 < found["memory"] < 2**40


def test_a_process_ends_with_the_one_that_asked(tmp_path):
    code = (
        "import sys\nfrom tests import test_processes\ntest_processes.ask('sleeping', sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment) as parent:
        wait_for((tmp_path / "sleeping").exists)
        (child,) = children(parent.pid)
        parent.kill()
    wait_for(lambda: not running(child))


def test_a_task_must_be_importable():
    class Local(Task):
        pass

    assert processes.name_of(Sentiment) == "rnnapps.tasks.sentiment:Sentiment"
    with pytest.raises(UserError, match="must be able to import"):
        processes.name_of(Local)


def test_a_trial_never_reads_the_test_split(reviews, tmp_path, monkeypatch):
    load = Sentiment.load

    def without_test(self):
        return load(self) | {"test": None}

    monkeypatch.setattr(Sentiment, "load", without_test)
    config = SentimentConfig(data=str(reviews), units=4, embedding_size=4, epochs=1)
    found = processes.learn(Sentiment(config), str(tmp_path / "run"))
    assert found["epochs"] == 1 and 0 < found["score"] < 1


def test_a_dev_metric_that_is_no_number_is_an_error(reviews, tmp_path, monkeypatch):
    from rnnapps import training  # not above: the processes that import this module are to be quick

    def learn(task, run, splits):
        return training.Learnt(None, splits, {"val_log_loss": [float("nan")]}, seconds=1.0)

    monkeypatch.setattr(training, "learn", learn)
    with pytest.raises(UserError, match="log_loss=nan"):
        processes.learn(Sentiment(SentimentConfig(data=str(reviews))), str(tmp_path / "run"))


def children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_sandbox_may_not_tell_its_peak_memory(monkeypatch):
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: "VmSize:\t  5276 kB\nVmRSS:\t  956 kB\n"
    )
    assert 2**20 < processes._peak_memory() < 2**40
