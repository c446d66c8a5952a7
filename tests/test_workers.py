"""Several processes train like one, and stop and go on together."""

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from rnnapps import devices, workers
from rnnapps.data.batching import full_batches
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.tasks.sentiment import Sentiment
from tests.conftest import SMALL
from tests.test_training import CONFIG, small_splits

ROOT = Path(__file__).parents[1]
NAMED = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
MEASURE = "import sys; from tests import test_workers as here; here.measure(sys.argv[1])"


@contextlib.contextmanager
def two_workers(command, folder):
    """Starts the chief and another worker, which write what they say to two files."""
    with contextlib.ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        addresses = ["{}:{}".format(*one.getsockname()) for one in free]
        for one in free:
            one.close()
        started = []
        for index in range(2):
            task = {"type": "worker", "index": index}
            config = json.dumps({"cluster": {"worker": addresses}, "task": task})
            environment = {
                "PYTHONPATH": str(ROOT),
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TF_CONFIG": config,
            }
            said = stack.enter_context((folder / f"{index}.log").open("w"))
            process = subprocess.Popen(
                [sys.executable, *command],
                env=os.environ | environment,
                stdout=said,
                stderr=said,
            )
            stack.callback(process.kill)
            started.append(process)
        yield started


def said(folder, index):
    return (folder / f"{index}.log").read_text()


def measure(folder):
    """Takes twenty steps, and writes what they gave and whose rows they were."""
    dropout = {"dropout": 0.0, "embedding_dropout": 0.0, "recurrent_dropout": 0.0}
    task = Sentiment(dataclasses.replace(CONFIG, batch_size=7, **dropout))
    strategy = devices.strategy_for("auto")
    splits = small_splits()
    task.adapt(splits["train"])
    learner = Learner(task, strategy)
    encoded = task.encoded(splits["train"], training=True)
    values = list(learner.steps(task.batches(encoded, epoch=0).take(20)))
    numbered = encoded.enumerate().map(lambda n, example: (example[0], n))
    rows = devices.shared_out(full_batches(task.batches(numbered, epoch=0), 8), strategy)
    local = strategy.experimental_local_results
    parts = [[part.numpy() for batch in rows for part in local(batch[i])] for i in (1, 2)]
    own = np.concatenate(parts[0])[np.concatenate(parts[1]) > 0]
    found = {f"state {i}": value for i, value in enumerate(learner.state())}
    found |= {"values": np.array(values), "rows": own}
    np.savez(Path(folder) / f"{workers.place().index}.npz", **found)


def test_two_workers_train_like_one_and_each_row_is_read_once(tmp_path):
    with two_workers(["-c", MEASURE, tmp_path], tmp_path) as started:
        single = tmp_path / "single"
        single.mkdir()
        measure(single)
        assert [process.wait() for process in started] == [0, 0], said(tmp_path, 0)
    alone = np.load(single / "0.npz")
    both = [np.load(tmp_path / f"{index}.npz") for index in range(2)]
    rows = np.concatenate([each["rows"] for each in both])
    assert sorted(rows) == sorted(alone["rows"]) == list(range(len(rows)))
    assert abs(len(both[0]["rows"]) - len(both[1]["rows"])) <= 30
    for each in both:
        assert each["values"].shape == (20, 2)
        np.testing.assert_allclose(each["values"], alone["values"], atol=1e-5)
        for name in set(alone.files) - {"rows"}:
            if alone[name].dtype == np.float32:  # not what dropout is drawn from
                np.testing.assert_allclose(each[name], alone[name], rtol=1e-5, atol=1e-5)


def test_where_a_worker_dies_the_others_stop_and_all_go_on(tmp_path, reviews):
    def command(epochs):
        script = ROOT / "pipelines" / "sentiment.py"
        data = ["train", f"--data={reviews}", *SMALL, f"--epochs={epochs}", "--checkpoint_steps=2"]
        return [script, *data, f"--out={tmp_path / 'run'}", f"--export={tmp_path / 'export'}"]

    checkpoint = tmp_path / "run" / "checkpoints" / "last.npz"
    with two_workers(command(40), tmp_path) as (chief, other):
        while not checkpoint.exists() and chief.poll() is None:
            time.sleep(0.1)
        other.send_signal(signal.SIGKILL)
        assert chief.wait() == 2, said(tmp_path, 0)
    *_, last = said(tmp_path, 0).strip().splitlines()
    assert re.match(r"error: .* one of them is gone: start all of them again, .* Received: ", last)
    assert checkpoint.exists() and not (tmp_path / "run" / "metrics.json").exists()

    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("epochs: 40", "epochs: 2"))
    with two_workers(command(2), tmp_path) as started:
        assert [process.wait() for process in started] == [0, 0], said(tmp_path, 0)
    for index in range(2):
        assert "going on from the checkpoint after" in said(tmp_path, index)
    assert "export: " in said(tmp_path, 0) and "export: " not in said(tmp_path, 1)
    assert len((tmp_path / "run" / "history.csv").read_text().splitlines()) == 3


def test_what_tf_config_says(monkeypatch):
    assert workers.place() == (0, 1) and workers.place().is_chief
    monkeypatch.setenv("TF_CONFIG", NAMED)
    assert workers.place() == (1, 2) and not workers.place().is_chief
    named = json.loads(NAMED)
    for chief, kind, index, expected in (
        (["c:1"], "worker", 1, 2),
        (["c:1"], "chief", 0, 0),
        ([], "worker", 0, 0),
    ):
        named["cluster"]["chief"], named["task"] = chief, {"type": kind, "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps(named))
        assert workers.place() == (expected, 2 + len(chief))
    for wrong, reason in (
        ("{", "must be as"),
        ("[]", "must be as"),
        ('{"cluster": {}}', "must be as"),
        (NAMED.replace('"index": 1', '"index": 2'), "name this process"),
        (NAMED.replace("worker", "ps"), "only chief and worker"),
    ):
        monkeypatch.setenv("TF_CONFIG", wrong)
        with pytest.raises(UserError, match=f"{reason}.*Received: {re.escape(wrong)}"):
            workers.place()


def test_what_workers_cannot_do_is_said_before_they_join(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_CONFIG", NAMED)
    with pytest.raises(UserError, match="CUDA_VISIBLE_DEVICES. Received: devices=gpu:0"):
        devices.strategy_for("gpu:0")
    with pytest.raises(UserError, match="a stream is read by one worker"):
        devices.strategy_for("auto", shares_batches=False)


def test_alone_nothing_is_asked_of_others():
    assert workers.from_chief(b"\x00content\xff") == b"\x00content\xff"
    with pytest.raises(tf.errors.InvalidArgumentError), workers.together():
        raise tf.errors.InvalidArgumentError(None, None, "one's own")
