"""Keras Tuner's oracles, which choose the trials of a search, as a search asks them.

An oracle keeps nothing on disk: it chooses the same again when it is told the same. Where Keras
Tuner's environment variables name a chief, the chief's oracle answers the other processes.
"""

import contextlib
import os
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Literal

import grpc
import keras_tuner
import numpy as np
from keras_tuner import oracles as stock
from keras_tuner.engine import trial

# What Keras Tuner's own loop calls; it has no public name.
from keras_tuner.src.distribute import oracle_chief, oracle_client

from rnnapps.errors import UserError

# Trials that are drawn before a Gaussian process is fitted to them.
DRAWN_FIRST = 5
# Points among which it then chooses.
CANDIDATES = 300

# The name under which a process asks its own oracle.
_SEARCH = "search"
_SECONDS_IDLE = 1


def choose(
    tuner: Literal["hyperband", "bayesian", "random"],
    trials: int,
    space: keras_tuner.HyperParameters,
    objective: keras_tuner.Objective,
    seed: int,
    epochs: int,
) -> keras_tuner.Oracle:
    """Makes an oracle whose first trial is the defaults.

    Args:
        tuner: what kind it is.
        trials: the number of trials.
        space: the hyperparameters, with their defaults as values.
        objective: the name of the metric, and whether more or less of it is better.
        seed: 0 or more.
        epochs: the epochs of a whole training.
    """
    common = {
        "hyperparameters": space,
        "objective": objective,
        "seed": seed + 1,  # to Keras Tuner 0 is no seed
        "max_consecutive_failed_trials": None,
    }
    if tuner == "hyperband":
        oracle = _Hyperband(trials, max_epochs=epochs, **common)
    elif tuner == "bayesian":
        oracle = _Bayesian(max_trials=trials, num_initial_points=DRAWN_FIRST, **common)
    else:
        oracle = _Random(max_trials=trials, **common)
    oracle.verbose = 0
    return oracle


def place() -> Literal["alone", "chief", "worker"]:
    """Tells from Keras Tuner's environment variables what this process is in a search.

    Raises:
        UserError: some of the variables are missing.
    """
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    given = [name for name in names if os.environ.get(name)]
    if not given:
        return "alone"
    if len(given) < len(names):
        raise UserError(
            f"a search of several processes needs {', '.join(names)}. Received: {', '.join(given)}"
        )
    return "chief" if "chief" in os.environ["KERASTUNER_TUNER_ID"] else "worker"


def of_chief(oracle: keras_tuner.Oracle) -> oracle_client.OracleClient:
    """Returns what asks and tells, in the place of this process's oracle, that of the chief."""
    return oracle_client.OracleClient(oracle)


def serve(oracle: keras_tuner.Oracle, begun: Sequence[str] = ()) -> None:
    """Answers the other processes until no trial is left.

    Args:
        oracle: the chief's.
        begun: the trials that were `put_off`, which are the first to be given away.
    """
    oracle._retry_queue += begun
    oracle.tuner_ids.discard(_SEARCH)  # which asks no more
    oracle_chief.start_server(oracle)


def number(asked: trial.Trial) -> int:
    """Returns a trial's place in the order of the search, from 1."""
    return int(asked.trial_id) + 1


def put_off(oracle: keras_tuner.Oracle, asked: trial.Trial) -> str:
    """Lets go of a trial that was asked for; returns what `serve` knows it by."""
    del oracle.ongoing_trials[_SEARCH]
    return asked.trial_id


def ask(oracle: keras_tuner.Oracle | oracle_client.OracleClient) -> trial.Trial | None:
    """Asks for the next trial; None where there is none any more."""
    while True:
        with warnings.catch_warnings(), _chief_needed():
            # A Gaussian process over a handful of points has much to warn of.
            warnings.simplefilter("ignore")
            asked = oracle.create_trial(getattr(oracle, "tuner_id", _SEARCH))
        if asked.status != "IDLE":
            return None if asked.status == "STOPPED" else asked
        time.sleep(_SECONDS_IDLE)  # until others have ended theirs


def tell(
    oracle: keras_tuner.Oracle | oracle_client.OracleClient,
    asked: trial.Trial,
    score: float | None,
    error: str | None,
) -> None:
    """Tells what a trial came to: its score, or the error that ended it."""
    with warnings.catch_warnings(), _chief_needed():
        warnings.simplefilter("ignore", DeprecationWarning)
        if error is None:
            oracle.update_trial(asked.trial_id, {oracle.objective.name: score})
        asked.status = "COMPLETED" if error is None else "FAILED"
        oracle.end_trial(asked)


@contextlib.contextmanager
def _chief_needed() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise UserError(f"the chief of the search does not answer. Received: {error}") from error


class _Asked:
    """What every oracle is to do: begin with the defaults, and keep no files of its own."""

    def populate_space(self, trial_id):
        if not self.trials:
            return {"status": "RUNNING", "values": dict(self.hyperparameters.values)}
        return super().populate_space(trial_id)

    def save(self):
        pass

    def _save_trial(self, trial):
        pass


class _Random(_Asked, stock.RandomSearchOracle):
    pass


class _Bayesian(_Asked, stock.BayesianOptimizationOracle):
    """Chooses, by Keras Tuner's own model and bound, the best of many points not tried yet.

    Keras Tuner itself climbs the bound from 50 starts and rounds what it reaches to the nearest
    choices: that takes seconds a trial, and often gives a point that has been tried.
    """

    def populate_space(self, trial_id):
        points, scores = self._vectorize_trials()  # [finished, dimensions], [finished]
        if len(scores) < self.num_initial_points:
            return super().populate_space(trial_id)
        drawn = [self._random_values() for _ in range(CANDIDATES)]
        drawn = [values for values in drawn if values is not None]
        if not drawn:
            return {"status": "STOPPED"}
        self.gpr.fit(points, scores)
        dimensions = self._nonfixed_space()
        points = [
            [hp.value_to_prob(values.get(hp.name, hp.default)) for hp in dimensions]
            for values in drawn
        ]  # [candidates, dimensions]
        mean, deviation = self.gpr.predict(np.array(points), return_std=True)  # [candidates]
        best = np.argmin(mean - self.beta * deviation)
        return {"status": "RUNNING", "values": drawn[best]}


class _Hyperband(_Asked, stock.HyperbandOracle):
    def __init__(self, trials, **kwargs):
        self._trials_in_brackets = trials - 1  # the first is the defaults', with every epoch
        super().__init__(hyperband_iterations=None, **kwargs)  # again and again
        self.max_trials = trials

    def _get_num_brackets(self):
        """Leaves out the brackets that the number of trials could not complete."""
        brackets = super()._get_num_brackets()
        while brackets > 1 and self._trials_in_brackets < sum(
            self._get_size(brackets - 1, round_num) for round_num in range(brackets)
        ):
            brackets -= 1
        return brackets
