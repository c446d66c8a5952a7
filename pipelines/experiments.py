"""What recurrent networks do, shown: the documented claims, each with a number and a picture.

    python pipelines/experiments.py all                             # minutes for each of them
    python pipelines/experiments.py memory-gap --out runs/gap
    python pipelines/experiments.py all --reduced                   # seconds for each, rougher

Each writes NAME.json and its pictures, and says whether its claims hold. What each of them shows,
and what would have refuted it, is told in docs/experiments.md.
"""

import argparse
import json
import sys
import time

from rnnapps.experiments import NAMES


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("name", choices=("all", *NAMES), help="the experiment, or all of them")
    parser.add_argument(
        "--out", default="runs/experiments", help="where the files go (default: runs/experiments)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed (default: 0)")
    parser.add_argument("--reduced", action="store_true", help="small and rough, in seconds")
    flags = parser.parse_args(argv)

    from rnnapps.experiments.experiment import run  # here, because it loads TensorFlow

    held = True
    for name in NAMES if flags.name == "all" else (flags.name,):
        started = time.perf_counter()
        result = run(name, flags.reduced, flags.seed)
        files = result.write(name, flags.out)
        print(f"\n{name}  ({time.perf_counter() - started:.0f} s)")
        print(json.dumps(result.numbers, indent=1))
        for claim, holds in result.claims.items():
            print(f"{'holds' if holds else 'DOES NOT HOLD'}: {claim}")
        print("written:", *files, flush=True)
        held = held and all(result.claims.values())
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
