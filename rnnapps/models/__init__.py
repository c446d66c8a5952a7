"""The blocks that tasks are built from."""

from rnnapps.models.acceptor import Acceptor
from rnnapps.models.character_encoder import CharacterEncoder
from rnnapps.models.sequence_encoder import SequenceEncoder
from rnnapps.models.tagger import Tagger
from rnnapps.models.text_encoder import TextEncoder
from rnnapps.models.unknown_words import UnknownWords

__all__ = [
    "Acceptor",
    "CharacterEncoder",
    "SequenceEncoder",
    "Tagger",
    "TextEncoder",
    "UnknownWords",
]
