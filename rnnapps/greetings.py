"""Importing TensorFlow quietly."""

import os
import sys
import tempfile


def import_tensorflow() -> None:
    """Imports TensorFlow without its greetings on standard error, which no log level silences."""
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ or "tensorflow" in sys.modules:
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as greetings:
        os.dup2(greetings.fileno(), 2)
        try:
            import tensorflow

            tensorflow.config.list_physical_devices("GPU")  # has greetings of its own
        except BaseException:
            greetings.seek(0)
            os.write(kept, greetings.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
