"""What an encoder of texts can start from: a language model that was trained before."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from etils import epy

from rnnapps.errors import UserError
from rnnapps.folders import reading
from rnnapps.tasks.config import read_config
from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig

with epy.lazy_imports():
    import numpy as np

    from rnnapps import models
    from rnnapps.data import text

# What is a token here, and there.
_LEVELS = {"words": "word", "characters": "char"}


@dataclasses.dataclass(frozen=True)
class EncoderStart:
    """The vectors and the recurrent weights of a language model (Dai & Le 2015).

    Args:
        vocabulary: the tokens it knows.
        vectors: their vectors, float array `[vocabulary_size, embedding_size]`.
        layers: the weights of each of its recurrent layers.
    """

    vocabulary: "text.Vocabulary"
    vectors: "np.ndarray"
    layers: "Sequence[Sequence[np.ndarray]]"

    def give(self, encoder: "models.TextEncoder") -> None:
        """Lets an encoder of the same sizes start here; what reads backwards stays as it is."""
        encoder.embedding.embeddings.assign(self.vectors)
        for layer, values in zip(encoder.encoder.recurrent_layers, self.layers, strict=True):
            forward = layer.forward_layer if encoder.encoder.bidirectional else layer
            for weight, value in zip(forward.trainable_weights, values, strict=True):
                weight.assign(value)


def read_start(run: str, tokens: str, sizes: dict[str, object]) -> EncoderStart:
    """Reads what an encoder starts from.

    Args:
        run: the folder of a language model's finished run.
        tokens: what a token of the encoder is, `words` or `characters`.
        sizes: the encoder's `cell`, `units`, `num_layers` and `embedding_size`.

    Returns:
        The language model's tokens and weights.

    Raises:
        UserError: There is no such run, it is damaged, or its model is of another kind or size.
    """
    folder = Path(run)
    config, weights = folder / "config.yaml", folder / "checkpoints" / "best.weights.h5"
    if not (config.exists() and weights.exists() and (folder / "metrics.json").exists()):
        raise UserError(f"{run} is not the folder of a trained language model's run")
    task = LanguageModel(read_config(LanguageModelConfig, config))
    there = {"level": task.config.level} | {name: getattr(task.config, name) for name in sizes}
    wanted = {"level": _LEVELS[tokens]} | sizes
    if there != wanted:
        told = ", ".join(
            f"{name} {there[name]} there and {wanted[name]} here"
            for name in wanted
            if there[name] != wanted[name]
        )
        raise UserError(f"the encoder is to be as that of the language model in {run}: {told}")
    with reading(folder):
        task.restore(folder / "state")
        model = task.build()
        model.load_weights(weights)
    encoder = model.decoder.encoder
    return EncoderStart(
        task.vocabulary,
        encoder.embedding.embeddings.numpy(),
        [
            [weight.numpy() for weight in layer.trainable_weights]
            for layer in encoder.encoder.recurrent_layers
        ],
    )
