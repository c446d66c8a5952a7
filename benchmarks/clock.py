"""How long calls take, each in turn, so that a busy moment of the machine meets all of them."""

import time
from collections.abc import Callable, Mapping

import numpy as np


def clock(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, tuple[float, float]]:
    """Times calls that return when their work is done.

    Args:
        calls: What is called, by name; each twice at first, and once more before each timing.
        rounds: How often each is timed.

    Returns:
        The minimum and the median of each, in milliseconds.
    """
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(0.03)  # OpenMP's threads spin for 20 ms after their work
            call()  # as in a loop: its threads are awake, and its data is in the cache
            start = time.perf_counter()
            call()
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: (min(taken), float(np.median(taken))) for name, taken in times.items()}
