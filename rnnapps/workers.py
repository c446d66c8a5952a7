"""The processes, on one machine or on several, that train one model together.

Each is started with the same command, and with a `TF_CONFIG` in its environment that names them all
and says which of them it is. They take every step together, each with its part of the batch. The
first, the chief, is the one that measures, decides and writes; the others only lend their hands.
"""

import contextlib
import functools
import json
import math
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rnnapps.errors import UserError


class Place(NamedTuple):
    """Which of how many workers this process is; the chief is number 0."""

    index: int  # type: ignore[assignment]  # in the place of a tuple's method
    number: int

    @property
    def is_chief(self) -> bool:
        """Whether this process measures, decides and writes."""
        return self.index == 0


def place() -> Place:
    """Reads from `TF_CONFIG` which worker this process is; without one it is the only one.

    Raises:
        UserError: `TF_CONFIG` is none of workers, or does not name this process.

    Example:
    >>> os.environ.pop("TF_CONFIG", None)
    >>> place()
    Place(index=0, number=1)
    """
    given = os.environ.get("TF_CONFIG", "").strip()
    if not given:
        return Place(0, 1)
    try:
        config = json.loads(given)
        cluster, kind, index = config["cluster"], config["task"]["type"], config["task"]["index"]
        named = [(kind, number) for kind in cluster for number in range(len(cluster[kind]))]
        named.sort()  # "chief" before "worker"
        found = Place(named.index((kind, int(index))), len(named))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            'TF_CONFIG must be as {"cluster": {"worker": ["host:port", …]}, "task": {"type": '
            f'"worker", "index": 0}}}}, and name this process. Received: {given}'
        ) from error
    if not set(cluster) <= {"chief", "worker"}:
        raise UserError(f"TF_CONFIG: only chief and worker take part. Received: {given}")
    return found


@functools.cache
def strategy() -> tf.distribute.Strategy:
    """Joins the workers, waiting until all have come; before TensorFlow has done anything else."""
    return tf.distribute.MultiWorkerMirroredStrategy()


def from_chief(content: bytes) -> bytes:
    """Gives every worker what the chief has; all must call it together.

    Args:
        content: what the chief gives; of the others it does not matter.
    """
    if place().number == 1:
        return content
    if not place().is_chief:
        content = b""
    (size,) = _sum(np.array([len(content)], np.int32))
    # Of few lengths, because each is traced.
    words = np.zeros(max(2 ** math.ceil(math.log2(size / 4 + 1)), 1024), np.int32)
    words.view(np.uint8)[: len(content)] = np.frombuffer(content, np.uint8)
    return _sum(words).tobytes()[:size]


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Turns TensorFlow's many ways to say that another worker is gone into one line.

    Raises:
        UserError: a step that is taken in this context by several workers failed.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if place().number == 1:
            raise
        told = re.search(r"aborted by: *([^\n]*?)(?: Additional|\n|$)", str(error.message))
        raise UserError(
            "a step that all workers take together failed, as it does when one of them is gone: "
            "start all of them again, and they go on from the chief's last checkpoint. Received: "
            f"{told[1] if told else type(error).__name__}"
        ) from error


def _sum(values: np.ndarray) -> np.ndarray:
    """Adds up what the workers give."""
    return strategy().experimental_local_results(_summed(tf.constant(values)))[0].numpy()


@functools.partial(tf.function, autograph=False)
def _summed(values):
    replicas = strategy().num_replicas_in_sync // place().number

    def of_replica():
        context = tf.distribute.get_replica_context()
        is_first = context.replica_id_in_sync_group % replicas == 0  # of its worker
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.where(is_first, values, 0))

    return strategy().run(of_replica)
