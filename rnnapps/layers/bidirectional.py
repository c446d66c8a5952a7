"""A recurrent layer run both ways."""

import keras
from keras import ops

MERGES = {
    "concat": lambda forward, backward: ops.concatenate([forward, backward], axis=-1),
    "sum": ops.add,
    "ave": lambda forward, backward: (forward + backward) / 2,
    "mul": ops.multiply,
}


@keras.saving.register_keras_serializable(package="rnnapps")
class Bidirectional(keras.layers.Bidirectional):
    """A recurrent layer and its mirror image (Schuster & Paliwal 1997).

    One run goes in time order, one in reverse; neither sees the other, and their outputs are put
    side by side at every step. It is the layer of stock Keras, its arguments included, but it can
    also be stateful and return its states at the same time, and takes resets and constants.

    A `seed` of the layer goes to both directions, which then drop the same units unless
    `backward_layer` has another seed; `recurrent_stack` gives each direction its own.

    Call arguments:
        sequences: Float tensor, `[batch, time, features]`.
        initial_state: List of tensors, `[batch, units]` each, those of the forward run first.
            Default: `None`, the cells' own, or what stateful layers remember.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, the mask
            attached to `sequences` if there is one.
        reset: Boolean tensor, `[batch, time]`, true where a new sequence starts in the row. The
            forward run goes back to its initial state before that step, and the backward run
            before the valid step ahead of it, so that neither sees another sequence. At a masked
            step it does nothing. Default: `None`.
        constants: List of tensors, `[batch, n]` each, which both runs see beside every input.
            Default: `None`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        The merged output, `[batch, time, 2·units]` or `[batch, 2·units]` if they stand side by
        side, or both with `merge_mode=None`; with `return_state` a tuple of it and the final
        states, `[batch, units]` each, those of the forward run first.

    Example:

    >>> layer = Bidirectional(LSTM(4, return_sequences=True, return_state=True))
    >>> outputs, *states = layer(keras.ops.ones((2, 5, 3)))
    >>> tuple(outputs.shape), len(states)
    ((2, 5, 8), 4)
    """

    def build(self, sequences_shape, initial_state_shape=None, constants_shape=None):
        """Builds both directions for inputs of shape `[batch, time, features]`."""
        constants = {} if constants_shape is None else {"constants_shape": constants_shape}
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(sequences_shape, **constants)

    def call(
        self, sequences, initial_state=None, mask=None, reset=None, constants=None, training=None
    ):
        """Runs both directions and merges their outputs."""
        if mask is None:
            mask = getattr(sequences, "_keras_mask", None)
        starts = (None, None)
        if initial_state is not None:
            half = len(initial_state) // 2
            starts = (initial_state[:half], initial_state[half:])
        outputs, states = [], []
        for layer, start in zip((self.forward_layer, self.backward_layer), starts, strict=True):
            options = {} if constants is None else {"constants": constants}
            if reset is not None:
                options["reset"] = _seen_backwards(reset, mask) if layer.go_backwards else reset
            result = layer(sequences, initial_state=start, mask=mask, training=training, **options)
            output, *final = result if self.return_state else (result,)
            if self.return_sequences and layer.go_backwards:
                output = ops.flip(output, axis=1)
            outputs.append(ops.cast(output, self.compute_dtype))
            states.extend(final)
        if self.merge_mode is not None:
            outputs = [MERGES[self.merge_mode](*outputs)]
        results = (*outputs, *states)
        return results if len(results) > 1 else results[0]

    def compute_mask(self, sequences, mask=None):
        """Returns the mask of the outputs; the states have none."""
        mask = mask if self.return_sequences else None
        return [mask] * (2 if self.merge_mode is None else 1)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        penalty = keras.regularizers.serialize(self.activity_regularizer)
        return {**super().get_config(), "activity_regularizer": penalty}


def _seen_backwards(reset, mask):
    """Returns where the backward run starts afresh: at the valid step ahead of each reset."""
    reset = ops.cast(reset, "bool")
    if mask is None:
        return _one_step_earlier(reset)
    mask = ops.cast(mask, "bool")
    timesteps = ops.shape(mask)[1]
    steps = ops.arange(timesteps)
    valid_first = ops.argsort(ops.where(mask, steps, steps + timesteps), axis=1)  # [batch, time]
    packed = ops.take_along_axis(ops.logical_and(reset, mask), valid_first, axis=1)
    rank = ops.cumsum(ops.cast(mask, "int32"), axis=1) - 1  # of a valid step among the valid ones
    return ops.take_along_axis(_one_step_earlier(packed), ops.maximum(rank, 0), axis=1)


def _one_step_earlier(flags):
    return ops.concatenate([flags[:, 1:], ops.zeros_like(flags[:, :1])], axis=1)  # [batch, time]
