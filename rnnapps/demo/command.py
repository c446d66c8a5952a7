"""The command that serves the page."""

import argparse
import importlib.util
import logging
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from rnnapps import greetings
from rnnapps.demo.found import find
from rnnapps.errors import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Serves the page until it is stopped.

    Args:
        argv: the arguments. Defaults to those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake of the user's.
    """
    parser = argparse.ArgumentParser(
        description="Serve a page on 127.0.0.1 with a tab for each exported model.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--models", default="saved_models", help="the folder of models (default: saved_models)"
    )
    parser.add_argument("--port", type=int, default=7860, help="the port (default: 7860)")
    flags = parser.parse_args(argv)
    log = logging.getLogger("rnnapps")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # absl, which TensorFlow brings, would print each message again
    try:
        if not 0 <= flags.port < 2**16:
            raise UserError(f"--port takes a number from 0 to 65,535. Received: {flags.port}")
        models = find(Path(flags.models))
        if importlib.util.find_spec("gradio") is None:
            raise UserError("the page needs Gradio: python -m pip install '.[demo]'")
        greetings.import_tensorflow()
        from rnnapps.demo import page  # here, because it loads TensorFlow and Gradio

        with page.opened(models, flags.port) as address:
            print(f"{address} (Ctrl+C ends it)", flush=True)
            threading.Event().wait()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    finally:
        log.removeHandler(handler)
    return 0
