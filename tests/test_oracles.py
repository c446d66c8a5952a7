"""Searches of several processes: what the chief's oracle gives to whom."""

import socket
import threading
import time

import keras_tuner
import pytest
from keras_tuner.src.distribute import oracle_chief

from rnnapps import oracles
from rnnapps.errors import UserError


@pytest.fixture
def chief(monkeypatch):
    """An oracle of four trials, of which the first has ended and the second was put off."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
    sleep = time.sleep
    monkeypatch.setattr(oracle_chief.time, "sleep", lambda seconds: sleep(min(seconds, 0.1)))
    return new_oracle()


def new_oracle():
    space = keras_tuner.HyperParameters()
    space.Choice("units", list(range(20)), default=7)
    return oracles.choose("random", 4, space, keras_tuner.Objective("f1", "max"), 0, epochs=2)


def test_workers_share_the_chiefs_trials(chief, monkeypatch):
    first = oracles.ask(chief)
    oracles.tell(chief, first, 0.5, None)
    begun = [oracles.put_off(chief, oracles.ask(chief))]
    server = threading.Thread(target=oracles.serve, args=(chief, begun))
    server.start()
    workers = []
    for name in ("one", "two"):
        monkeypatch.setenv("KERASTUNER_TUNER_ID", name)
        assert oracles.place() == "worker"
        workers.append(oracles.of_chief(new_oracle()))
    asked = [oracles.ask(worker) for worker in workers]
    assert [oracles.number(one) for one in asked] == [2, 3]
    assert oracles.number(oracles.ask(workers[0])) == 2  # a worker that was started again
    oracles.tell(workers[1], asked[1], 0.7, None)
    asked[1] = oracles.ask(workers[1])
    assert oracles.number(asked[1]) == 4
    oracles.tell(workers[0], asked[0], None, "it failed")
    oracles.tell(workers[1], asked[1], 0.1, None)
    assert [oracles.ask(worker) for worker in workers] == [None, None]
    server.join(timeout=10)
    assert not server.is_alive()
    statuses = [trial.status for trial in chief.trials.values()]
    assert statuses == ["COMPLETED", "FAILED", "COMPLETED", "COMPLETED"]
    assert [trial.score for trial in chief.get_best_trials(2)] == [0.7, 0.5]
    chosen = {trial.hyperparameters.get("units") for trial in chief.trials.values()}
    assert len(chosen) == 4 and first.hyperparameters.get("units") == 7


def test_what_the_environment_says(monkeypatch, chief):
    with pytest.raises(UserError, match="needs KERASTUNER_TUNER_ID, .* Received: KERASTUNER_OR"):
        oracles.place()
    monkeypatch.setenv("KERASTUNER_TUNER_ID", "chief")
    assert oracles.place() == "chief"
    for name in ("TUNER_ID", "ORACLE_IP", "ORACLE_PORT"):
        monkeypatch.delenv(f"KERASTUNER_{name}")
    assert oracles.place() == "alone"
