"""The sentiment pipeline without its masks: padding is read, pooled and trained as if it were text.

    python benchmarks/without_masks.py train --data=FILE …

It takes what `pipelines/sentiment.py` takes. What is usual where nobody asks for a mask; here it is
a mistake on purpose, to measure what masks are worth.
"""

import sys

from keras import ops

from rnnapps.cli import main
from rnnapps.models import TextEncoder
from rnnapps.tasks.sentiment import Sentiment


def every_step(encoder: TextEncoder, ids, mask=None):
    """Calls every step valid, `[batch, time]`."""
    return ops.ones(ops.shape(ids)[:2], bool)


if __name__ == "__main__":
    TextEncoder.compute_mask = every_step
    sys.exit(main(Sentiment))
