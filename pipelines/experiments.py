"""What recurrent networks do, shown: the documented claims, each with a number and a picture.

    python pipelines/experiments.py all                             # minutes for each of them
    python pipelines/experiments.py memory-gap --out runs/gap
    python pipelines/experiments.py all --reduced                   # seconds for each, rougher

Each writes NAME.json and its pictures, and says whether its claims hold. What each of them shows,
and what would have refuted it, is told in docs/experiments.md.
"""

import sys

from rnnapps.experiments.command import main

if __name__ == "__main__":
    sys.exit(main())
