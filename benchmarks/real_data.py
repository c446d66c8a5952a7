"""Where the benchmarks' real data is, of which nothing is part of this repository."""

import os
import sys
from pathlib import Path


def folder(name: str = "") -> Path:
    """Returns a folder in that which `RNNAPPS_DATA` names; ends the script if that is none.

    Args:
        name: The folder in it. Default: that which is named itself.
    """
    root = os.environ.get("RNNAPPS_DATA", "")
    if not root or not Path(root).is_dir():
        sys.exit(
            "error: RNNAPPS_DATA is to name the folder of the data; the docstring of the script "
            f"tells what is in it. Received: {root or 'nothing'}"
        )
    return Path(root, name)
