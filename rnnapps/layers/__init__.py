"""The recurrent mathematics as Keras layers: cells, sequence layers, stacks and pooling."""

from rnnapps.layers.cells import ElmanCell, GRUCell, LSTMCell
from rnnapps.layers.pooling import SequencePooling
from rnnapps.layers.recurrent import GRU, LSTM, Elman
from rnnapps.layers.stack import recurrent_stack

__all__ = [
    "GRU",
    "LSTM",
    "Elman",
    "ElmanCell",
    "GRUCell",
    "LSTMCell",
    "SequencePooling",
    "recurrent_stack",
]
