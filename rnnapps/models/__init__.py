"""The blocks that tasks are built from."""

from rnnapps.models.acceptor import Acceptor
from rnnapps.models.before_softmax import BeforeSoftmax
from rnnapps.models.bridge import Bridge
from rnnapps.models.carried_state import CarriedState
from rnnapps.models.character_encoder import CharacterEncoder
from rnnapps.models.decoder import Decoder
from rnnapps.models.encoder_decoder import EncoderDecoder
from rnnapps.models.image_encoder import ImageEncoder
from rnnapps.models.interpolation import mixture_log_probabilities, mixture_weights
from rnnapps.models.kneser_ney import KneserNey
from rnnapps.models.language_model import LanguageModel
from rnnapps.models.majority_tagger import MajorityTagger
from rnnapps.models.sequence_encoder import SequenceEncoder
from rnnapps.models.tagger import Tagger
from rnnapps.models.text_encoder import TextEncoder
from rnnapps.models.unknown_words import UnknownWords

__all__ = [
    "Acceptor",
    "BeforeSoftmax",
    "Bridge",
    "CarriedState",
    "CharacterEncoder",
    "Decoder",
    "EncoderDecoder",
    "ImageEncoder",
    "KneserNey",
    "LanguageModel",
    "MajorityTagger",
    "SequenceEncoder",
    "Tagger",
    "TextEncoder",
    "UnknownWords",
    "mixture_log_probabilities",
    "mixture_weights",
]
