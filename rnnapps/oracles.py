"""Keras Tuner's oracles, which choose the trials of a search, as a search asks them.

An oracle keeps nothing on disk: it chooses the same again when it is told the same.
"""

import warnings
from typing import Literal

import keras_tuner
import numpy as np
from keras_tuner import oracles as stock
from keras_tuner.engine import trial

# Trials that are drawn before a Gaussian process is fitted to them.
DRAWN_FIRST = 5
# Points among which it then chooses.
CANDIDATES = 300


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


def ask(oracle: keras_tuner.Oracle) -> trial.Trial | None:
    """Asks for the next trial; None where there is none any more."""
    with warnings.catch_warnings():
        # A Gaussian process over a handful of points has much to warn of.
        warnings.simplefilter("ignore")
        asked = oracle.create_trial("search")
    return None if asked.status == "STOPPED" else asked


def tell(
    oracle: keras_tuner.Oracle, asked: trial.Trial, score: float | None, error: str | None
) -> None:
    """Tells what a trial came to: its score, or the error that ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        if error is None:
            oracle.update_trial(asked.trial_id, {oracle.objective.name: score})
        asked.status = "COMPLETED" if error is None else "FAILED"
        oracle.end_trial(asked)


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
