"""The command line of the experiments."""

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence

from rnnapps import greetings
from rnnapps.experiments import NAMES


def main(argv: Sequence[str] | None = None) -> int:
    """Runs experiments, writes their numbers and pictures, and says whether their claims hold.

    Args:
        argv: the arguments. Defaults to those of the process.

    Returns:
        The exit status: 0, or 1 where a claim does not hold.
    """
    parser = argparse.ArgumentParser(
        description="Show what recurrent networks do: a documented claim, a number, a picture.",
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=("all", *NAMES), help="the experiment, or all of them")
    parser.add_argument(
        "--out", default="runs/experiments", help="where the files go (default: runs/experiments)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed (default: 0)")
    parser.add_argument("--reduced", action="store_true", help="small and rough, in seconds")
    flags = parser.parse_args(argv)

    greetings.import_tensorflow()
    # It gives advice where one model after another predicts.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    from rnnapps.experiments.experiment import run  # here, because it loads TensorFlow

    held = True
    for name in NAMES if flags.name == "all" else (flags.name,):
        if sys.stderr.isatty():
            print(f"{name}: running", file=sys.stderr)
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
