"""Sentiment: is a text for or against its subject? (many-to-one)

    python pipelines/sentiment.py                                   # bundled sample, offline
    python pipelines/sentiment.py train --data reviews.csv
    python pipelines/sentiment.py evaluate --model saved_models/sentiment/1
    python pipelines/sentiment.py predict --model saved_models/sentiment/1 "A film to love."
    python pipelines/sentiment.py tune --data reviews.csv --trials 10
    python pipelines/sentiment.py export --run runs/sentiment/1

Text → tokens → embedding → dropout → bidirectional recurrent layers → pooling over time → softmax.
`sentiment.yaml` beside this file lists every setting; `train --config FILE` reads such a file.
"""

import sys

from rnnapps.cli import main
from rnnapps.tasks.sentiment import Sentiment

if __name__ == "__main__":
    sys.exit(main(Sentiment))
