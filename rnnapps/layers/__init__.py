"""The recurrent mathematics as Keras layers: cells, sequence layers, stacks, attention, a CRF."""

from rnnapps.layers.attention import AdditiveAttention, MultiplicativeAttention
from rnnapps.layers.bidirectional import Bidirectional
from rnnapps.layers.cells import ElmanCell, GRUCell, JordanCell, LSTMCell
from rnnapps.layers.crf_layer import CRF, CRFAccuracy, CRFLoss
from rnnapps.layers.pooling import SequencePooling
from rnnapps.layers.recurrent import GRU, LSTM, RNN, Elman, Jordan
from rnnapps.layers.softmax_nats import softmax_nats
from rnnapps.layers.stack import recurrent_stack

__all__ = [
    "CRF",
    "GRU",
    "LSTM",
    "RNN",
    "AdditiveAttention",
    "Bidirectional",
    "CRFAccuracy",
    "CRFLoss",
    "Elman",
    "ElmanCell",
    "GRUCell",
    "Jordan",
    "JordanCell",
    "LSTMCell",
    "MultiplicativeAttention",
    "SequencePooling",
    "recurrent_stack",
    "softmax_nats",
]
