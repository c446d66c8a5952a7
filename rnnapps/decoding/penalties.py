"""By what hypotheses of different lengths are compared: Wu et al. 2016, section 7."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

LENGTH_PENALTIES = ("none", "average", "gnmt")

_SMALLEST = float(np.finfo("float32").tiny)


class Penalties(NamedTuple):
    """The score of a hypothesis, `log_probability / penalty(length) + coverage * Σ log(min(c, 1))`.

    Attributes:
        length: `"none"`, `penalty(length) = 1`; `"average"`, the length itself; or `"gnmt"`,
            `((5 + length) / 6) ** alpha`.
        alpha: The exponent, 0 or more.
        coverage: The weight of the sum, 0 or more, in which `c` is what attention a position got.
    """

    length: str
    alpha: float
    coverage: float

    def score(self, log_probabilities, lengths, covered):
        """Returns the scores, float64. `lengths` and `covered`, the sums above, are broadcast."""
        scores = log_probabilities / self.of_length(lengths)
        return scores + self.coverage * tf.cast(covered, tf.float64) if self.coverage else scores

    def bound(self, log_probabilities, longest):
        """Returns what no continuation of these beams can score above.

        Args:
            log_probabilities: Of the beams.
            longest: What `of_length` gives for the most tokens that they can have.

        Returns:
            The bounds, float64.

        A log-probability is never positive and only falls, the divisors only grow with the length,
        and the coverage's sum is never positive. This holds of the rounded numbers, too, as
        rounded sums and quotients are in the order of the exact ones.
        """
        return log_probabilities / longest

    def of_length(self, lengths):
        """Returns what divides the log-probability of so many tokens, float64."""
        lengths = tf.cast(tf.maximum(lengths, 1), tf.float64)
        if self.length == "gnmt":
            return ((5 + lengths) / 6) ** self.alpha
        return lengths if self.length == "average" else tf.ones_like(lengths)


def covered(attention, source_mask):
    """Returns `Σ log(min(attention, 1))` over the last axis, where the mask is set.

    A position that got nothing counts as one that got the smallest normal number of float32, so
    that no score is infinite.
    """
    logs = tf.math.log(tf.clip_by_value(attention, _SMALLEST, 1.0))
    return tf.reduce_sum(tf.where(source_mask, logs, 0.0), axis=-1)
