"""The conditional random field as a Keras layer, with its loss and its metric.

The mathematics is that of `rnnapps.layers.crf`.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

# Masks on tensors and objects shared in a file have no public names.
from keras.src import backend
from keras.src.saving import serialization_lib

from rnnapps.layers.crf import log_likelihood, marginals, n_best, viterbi


@keras.saving.register_keras_serializable(package="rnnapps")
class CRF(keras.layers.Layer):
    """A linear-chain conditional random field (Lafferty, McCallum & Pereira 2001) over emissions.

    `p(y) ∝ exp(start[y_1] + Σ_t emissions_t[y_t] + Σ_{t>1} transitions[y_{t-1}, y_t] + end[y_n])`

    The layer holds the scores of transitions, starts and ends. It hands the emissions on as they
    are (in float32, also under mixed precision), so that a model that ends with it is trained with
    `CRFLoss(crf)` in plain `compile` and `fit`. The tags are *not* the argmax of that output: with
    `decode=True` the layer gives the best sequence, and `decode`, `n_best`, `marginals` and
    `log_likelihood` answer for tensors.

    Padding never counts. Which steps are valid is told by the mask that `Embedding(mask_zero=True)`
    or `Masking` sends along; or in `fit` by `sample_weight`, `[batch, time]`, 0 at padding; or by
    negative tags. Invalid steps are skipped, wherever they are.

    Args:
        num_tags: The number of tags, which the emissions have as their last axis.
        allowed: What may follow what: three Boolean arrays for the transitions, `[tags, tags]`
            (from, to), the first tag, `[tags]`, and the last, `[tags]`, as
            `rnnapps.data.tagging_schemes.allowed_transitions` gives them. What is not allowed never
            comes out of `decode`, `n_best` and `marginals`. Default: `None`, everything.
        constrain_training: Whether the likelihood, too, is among allowed sequences only. Then
            the likelihood of tags that are not allowed is 0 and their loss infinite (their gradient
            is finite). Default: `False`.
        initializer: Initializer of the three weights. Default: `"zeros"`, no preference.
        regularizer: Regularizer of the three weights. Default: `None`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Attributes:
        transitions: The weights `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: The weights `[tags]` for the first tag.
        end_scores: The weights `[tags]` for the last tag.

    Call arguments:
        emissions: Float tensor, `[batch, time, tags]`: logits, as from `Dense(num_tags)`.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps, in any pattern. Default:
            `None`, the mask attached to `emissions`, or all steps.
        decode: Whether to return the best sequences. Default: `False`.

    Returns:
        The emissions, `[batch, time, tags]`; with `decode` the tags, int32 tensor, `[batch, time]`,
        0 at invalid steps.

    Raises:
        ValueError: If `allowed` has not those shapes, or the emissions have not `num_tags` tags.

    Example: tags that alternate, whatever the words, and padding.

    >>> words = np.random.default_rng(0).integers(1, 9, size=(64, 6))
    >>> words[::2, 3:] = 0
    >>> tags = np.tile([0, 1, 0, 1, 0, 1], (64, 1))
    >>> inputs = keras.Input((None,), dtype="int32")
    >>> states = keras.layers.Embedding(9, 8, mask_zero=True)(inputs)
    >>> emissions = keras.layers.Dense(2)(states)
    >>> crf = CRF(2)
    >>> model = keras.Model(inputs, crf(emissions))
    >>> model.compile(keras.optimizers.Adam(0.1), loss=CRFLoss(crf))
    >>> history = model.fit(words, tags, epochs=30, verbose=0)
    >>> tagger = keras.Model(inputs, crf(emissions, decode=True))
    >>> ops.convert_to_numpy(tagger(np.array([[3, 1, 4, 1, 5], [2, 7, 1, 0, 0]])))
    array([[0, 1, 0, 1, 0],
           [0, 1, 0, 0, 0]], dtype=int32)

    `tagger.export(folder)` writes a SavedModel that answers with tags.
    """

    def __init__(
        self,
        num_tags: int,
        *,
        allowed=None,
        constrain_training: bool = False,
        initializer="zeros",
        regularizer=None,
        **kwargs,
    ):
        # The emissions are taken as they come: whatever the policy, no digit of them is lost here.
        super().__init__(autocast=False, **kwargs)
        self.num_tags = num_tags
        self.constrain_training = constrain_training
        self.initializer = keras.initializers.get(initializer)
        self.regularizer = keras.regularizers.get(regularizer)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)
        self._allowed = None
        if allowed is not None:
            arrays = tuple(np.asarray(part, bool) for part in allowed)
            shapes = [part.shape for part in arrays]
            if shapes != [(num_tags, num_tags), (num_tags,), (num_tags,)]:
                raise ValueError(
                    f"`allowed` must hold arrays of the shapes ({num_tags}, {num_tags}), "
                    f"({num_tags},) and ({num_tags},). Received: shapes {shapes}"
                )
            self._allowed = arrays

    def build(self, emissions_shape):
        """Makes the weights."""
        if emissions_shape[-1] != self.num_tags:
            raise ValueError(
                f"The emissions must have a last axis of {self.num_tags} tags. "
                f"Received: shape {tuple(emissions_shape)}"
            )

        def weight(name, *shape):
            return self.add_weight(
                shape=shape,
                initializer=self.initializer,
                regularizer=self.regularizer,
                autocast=False,
                name=name,
            )

        self.transitions = weight("transitions", self.num_tags, self.num_tags)
        self.start_scores = weight("start_scores", self.num_tags)
        self.end_scores = weight("end_scores", self.num_tags)

    def call(self, emissions, mask=None, decode=False):
        """Returns the emissions, or the best sequences."""
        if decode:
            return self.decode(emissions, mask)[0]
        return ops.cast(emissions, keras.backend.result_type(emissions.dtype, "float32"))

    def decode(self, emissions, mask=None):
        """Finds the best sequences, as `viterbi`, which says what is returned."""
        return viterbi(emissions, *self.scores(), _mask_of(emissions, mask))

    def n_best(self, emissions, k: int, mask=None):
        """Finds the k best sequences, as the function `n_best`, which says what is returned."""
        return n_best(emissions, k, *self.scores(), _mask_of(emissions, mask))

    def marginals(self, emissions, mask=None):
        """Computes each tag's probability at each step, as the function `marginals`."""
        return marginals(emissions, *self.scores(), _mask_of(emissions, mask))

    def log_likelihood(self, emissions, tags, mask=None):
        """Computes the log-probabilities of tags, as the function `log_likelihood`."""
        scores = self.scores(constrained=self.constrain_training)
        return log_likelihood(emissions, tags, *scores, _mask_of(emissions, mask))

    def scores(self, constrained: bool = True) -> tuple[Any, Any, Any]:
        """Returns the scores of transitions, starts and ends as tensors.

        Args:
            constrained: Whether what is not allowed has the score -inf. Default: `True`.
        """
        if not self.built:
            raise ValueError(
                f"The layer {self.name!r} has no weights yet. It must be part of the model, and "
                "the model be built; after loading a model that is not functional or sequential, "
                "compile it again with the CRF layer that it holds. Received: a layer not built"
            )
        scores = map(ops.convert_to_tensor, (self.transitions, self.start_scores, self.end_scores))
        if self._allowed is None or not constrained:
            return tuple(scores)
        return tuple(
            ops.where(allowed, score, ops.cast(-np.inf, score.dtype))
            for allowed, score in zip(self._allowed, scores, strict=True)
        )

    def compute_mask(self, emissions, mask=None):
        """Returns the mask of the emissions, which is that of the tags."""
        return mask

    def get_build_config(self) -> dict | None:
        """Returns the input's shape, and a number by which the loss finds the layer in a file."""
        config = super().get_build_config()
        return config and {**config, "shared_object_id": id(self)}

    def build_from_config(self, config: dict):
        """Builds the layer, and lets the loss in the same file find it."""
        super().build_from_config(config)
        # Keras would do so itself, if it did not copy the layers' configurations too early.
        serialization_lib.record_object_after_deserialization(self, config["shared_object_id"])

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = super().get_config()
        return {
            **config,
            "num_tags": self.num_tags,
            "allowed": self._allowed and [part.tolist() for part in self._allowed],
            "constrain_training": self.constrain_training,
            "initializer": keras.initializers.serialize(self.initializer),
            "regularizer": keras.regularizers.serialize(self.regularizer),
        }


def _mask_of(emissions, mask):
    return backend.get_keras_mask(emissions) if mask is None else mask


# Its other base is a loss or a metric of Keras.
_OfKeras: Any = object


class _OfCRF(_OfKeras):
    """What the loss and the metric share: the layer, and which steps count."""

    crf: CRF

    def _valid(self, y_true, y_pred, sample_weight):
        """Returns the tags, int32 `[batch, time]`, which of them count, and the weights."""
        tags = ops.cast(y_true, "int32")
        mask = tags >= 0
        attached = backend.get_keras_mask(y_pred)
        if attached is not None:
            mask = mask & ops.cast(attached, "bool")
        weights = sample_weight
        if weights is not None:
            weights = ops.cast(weights, self.dtype)
            if len(weights.shape) == 1:
                weights = weights[:, None]
            weights = ops.broadcast_to(weights, ops.shape(tags))  # [batch, time]
        return tags, mask, weights

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        crf = keras.saving.serialize_keras_object(self.crf)
        # A layer that is not found in the same file must not look as if it had been trained.
        crf.pop("build_config", None)
        return {**super().get_config(), "crf": crf}

    @classmethod
    def from_config(cls, config: dict):
        """Takes the layer of the same file, if there is one."""
        return cls(**{**config, "crf": keras.saving.deserialize_keras_object(config["crf"])})


@keras.saving.register_keras_serializable(package="rnnapps")
class CRFLoss(_OfCRF, keras.losses.Loss):
    """The negative log-likelihood of the tags, for a model whose output is that of a `CRF`.

    A row's loss is `log Z - score(tags)` over its valid steps, in nats for the whole sequence; a
    row without valid steps is not counted in the mean. A step is valid if the mask that came with
    the output, if any, says so, its tag is not negative, and its sample weight is not 0. A tag
    that the layer does not have makes the loss infinite.

    In a loaded `.keras` file the loss finds its layer again, if the model is functional or
    sequential; otherwise it says that the model must be compiled again.

    Args:
        crf: The `CRF` layer, of the model that is trained.
        reduction: As for every Keras loss. Default: `"sum_over_batch_size"`, the mean over rows.
        name: Name of the loss. Default: `"crf_loss"`.
        dtype: Data type. Default: `None`, that of the layer's weights, but at least float32.

    Call arguments:
        y_true: The tags, integer tensor, `[batch, time]`.
        y_pred: The output of the CRF layer, `[batch, time, tags]`.
        sample_weight: Tensor, `[batch]` or `[batch, time]`; a row's weight is the mean over its
            valid steps. Default: `None`, 1.

    Returns:
        A scalar; without reduction `[batch]`.

    Example:

    >>> crf = CRF(2)
    >>> emissions = crf(np.zeros((1, 3, 2)))
    >>> round(float(CRFLoss(crf)(np.array([[0, 1, -1]]), emissions)), 4)  # the log of 2² sequences
    1.3863
    """

    def __init__(
        self,
        crf: CRF,
        reduction: str | None = "sum_over_batch_size",
        name: str = "crf_loss",
        dtype=None,
    ):
        dtype = dtype or keras.backend.result_type(crf.variable_dtype, "float32")
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.crf = crf

    def __call__(self, y_true, y_pred, sample_weight=None):
        """Computes the reduced loss."""
        tags, mask, weights = self._valid(y_true, y_pred, sample_weight)
        if weights is None:
            weights = ops.ones(ops.shape(tags), dtype=self.dtype)
        mask = mask & (weights != 0)
        lengths = ops.sum(ops.cast(mask, self.dtype), axis=1)  # [batch]
        weights = ops.where(mask, weights, ops.zeros_like(weights))
        weights = ops.sum(weights, axis=1) / ops.maximum(lengths, 1)  # [batch]
        if self.reduction in ("sum_over_batch_size", "mean"):
            # Keras divides by all rows.
            rows = ops.cast(ops.shape(tags)[0], self.dtype)
            counted = ops.sum(ops.cast(lengths > 0, self.dtype))
            weights = weights * rows / ops.maximum(counted, 1)
        # From here on padding has the tag -1, and there is no mask that Keras would apply.
        tags = ops.where(mask, tags, -1)
        emissions = ops.where(mask[..., None], y_pred, ops.zeros_like(y_pred))
        return super().__call__(tags, emissions, weights)

    def call(self, y_true, y_pred):
        """Returns the loss of each row, `[batch]`; steps with a negative tag are not valid."""
        return -self.crf.log_likelihood(y_pred, y_true, y_true >= 0)


@keras.saving.register_keras_serializable(package="rnnapps")
class CRFAccuracy(_OfCRF, keras.metrics.Mean):
    """The share of valid steps where the best sequence has the true tag.

    It decodes every batch, which takes time. Which steps are valid is as for `CRFLoss`; Keras hands
    sample weights only to `weighted_metrics`. Not for the JAX backend, where Keras gives metrics no
    access to a layer's weights.

    Args:
        crf: The `CRF` layer, of the model that is measured.
        name: Name of the metric. Default: `"accuracy"`.
        dtype: Data type. Default: `None`, Keras' own.

    Raises:
        NotImplementedError: On the JAX backend.

    Example:

    >>> crf = CRF(2)
    >>> accuracy = CRFAccuracy(crf)
    >>> accuracy.update_state(np.array([[0, 1, -1]]), crf(np.array([[[2.0, 0], [3, 0], [0, 0]]])))
    >>> float(accuracy.result())
    0.5
    """

    def __init__(self, crf: CRF, name: str = "accuracy", dtype=None):
        if keras.backend.backend() == "jax":
            raise NotImplementedError(
                "On JAX a metric cannot read a layer's weights. Decode outside of `fit`."
            )
        super().__init__(name=name, dtype=dtype)
        self.crf = crf

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Counts a batch; the arguments are those of `CRFLoss`."""
        tags, mask, weights = self._valid(y_true, y_pred, sample_weight)
        counted = ops.cast(mask, self.dtype)
        if weights is not None:
            counted = counted * weights
            mask = mask & (weights != 0)
        best, _ = self.crf.decode(y_pred, mask)  # [batch, time]
        right = ops.cast(tags == best, self.dtype)
        return super().update_state(ops.reshape(right, (-1,)), ops.reshape(counted, (-1,)))
