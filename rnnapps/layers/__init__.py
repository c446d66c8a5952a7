"""The recurrent mathematics as Keras layers: cells, sequence layers, stacks and pooling."""

from rnnapps.layers.bidirectional import Bidirectional
from rnnapps.layers.cells import ElmanCell, GRUCell, JordanCell, LSTMCell
from rnnapps.layers.pooling import SequencePooling
from rnnapps.layers.recurrent import GRU, LSTM, RNN, Elman, Jordan
from rnnapps.layers.stack import recurrent_stack

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Bidirectional",
    "Elman",
    "ElmanCell",
    "GRUCell",
    "Jordan",
    "JordanCell",
    "LSTMCell",
    "SequencePooling",
    "recurrent_stack",
]
