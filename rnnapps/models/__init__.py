"""The blocks that tasks are built from."""

from rnnapps.models.acceptor import Acceptor
from rnnapps.models.sequence_encoder import SequenceEncoder
from rnnapps.models.text_encoder import TextEncoder

__all__ = ["Acceptor", "SequenceEncoder", "TextEncoder"]
