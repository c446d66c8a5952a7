"""On which devices a model is trained, and how they share its batches."""

import contextlib
import math
import re
from collections.abc import Sequence

import tensorflow as tf

from rnnapps import workers
from rnnapps.errors import UserError


def strategy_for(devices: str, shares_batches: bool = True) -> tf.distribute.Strategy:
    """Makes the strategy that trains on the devices named.

    Args:
        devices: `auto` (all GPUs if there are several, otherwise TensorFlow's own choice), `cpu`,
            or a list such as `gpu:0` or `gpu:0,1`.
        shares_batches: whether several devices can share a batch; if not, `auto` takes the first
            GPU. Defaults to True.

    Returns:
        A `MultiWorkerMirroredStrategy` where `TF_CONFIG` names several workers, a
        `MirroredStrategy` for several GPUs, otherwise a strategy for one device.

    Raises:
        UserError: the list cannot be read, names a GPU that is not there, or several where batches
            cannot be shared.

    Example:
    >>> strategy_for("cpu").num_replicas_in_sync
    1
    """
    if workers.place().number > 1:
        return _of_workers(devices, shares_batches)
    names = _named(devices)
    if not shares_batches and len(names) > 1:
        if devices != "auto":
            raise UserError(
                "a stream is read on one device, since its rows go on from batch to batch: give "
                f"one, such as gpu:0. Received: devices={devices}"
            )
        names = names[:1]
    if len(names) > 1:
        return tf.distribute.MirroredStrategy(names)
    return tf.distribute.OneDeviceStrategy(names[0]) if names else tf.distribute.get_strategy()


def on_first(devices: str) -> contextlib.AbstractContextManager:
    """Puts what is made and run in this context on the first of the devices named."""
    return tf.device(next(iter(_named(devices)), None))


def shared_out(batches: tf.data.Dataset, strategy: tf.distribute.Strategy) -> tf.data.Dataset:
    """Gives each of a strategy's replicas an equal part of every batch.

    Every worker reads all batches, and takes its own rows of each: so no row is read twice or left
    out, and the rows of a step are those that one device would take.

    Args:
        batches: batches of a known number of rows that the replicas divide.
        strategy: the strategy.

    Returns:
        The batches for `strategy.run`.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return batches

    def own_parts(context: tf.distribute.InputContext) -> tf.data.Dataset:
        own = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * own

        def parts(*batch):
            # [rows, …] to [replicas, rows / replicas, …]
            batch = tf.nest.map_structure(lambda v: tf.stack(tf.split(v, replicas)), batch)
            own_part = tf.nest.map_structure(lambda v: v[first : first + own], batch)
            return tf.data.Dataset.from_tensor_slices(own_part)

        return batches.flat_map(parts)

    if replicas == workers.place().number:
        # Without asking the others at every step whether there is one.
        place = workers.place()
        return own_parts(tf.distribute.InputContext(place.number, place.index, replicas))
    return strategy.distribute_datasets_from_function(own_parts)


def mean_over_replicas(
    values: Sequence[tf.Tensor | tf.IndexedSlices | None],
    shapes: Sequence[tuple[int, ...]],
    weight: tf.Tensor,
) -> list[tf.Tensor | tf.IndexedSlices | None]:
    """Averages what the replicas found, each in its part of a batch, by what their parts weigh.

    All of them call it together, within `strategy.run`. It is one message, because each waits for
    the network.

    Args:
        values: float32 tensors of this replica, such as gradients; None for what nobody has.
        shapes: their shapes, which the gradient of an embedding does not tell.
        weight: float32 scalar, what this replica's part of the batch weighs; not 0 for all of them.

    Returns:
        The means, the same on every replica. A single one gets back what it gave.
    """
    context = tf.distribute.get_replica_context()
    if context.num_replicas_in_sync == 1:
        return list(values)
    known = [i for i, value in enumerate(values) if value is not None]
    message = [tf.reshape(values[i], [-1]) for i in known]
    message = tf.concat([*message, tf.ones([1])], axis=0) * weight
    message = context.all_reduce(tf.distribute.ReduceOp.SUM, message)
    *sums, total = tf.split(message, [*(math.prod(shapes[i]) for i in known), 1])
    means = list(values)
    for i, of_all in zip(known, sums, strict=True):
        means[i] = tf.reshape(of_all / total, shapes[i])
    return means


def _of_workers(devices: str, shares_batches: bool) -> tf.distribute.Strategy:
    """Joins the workers, each with all GPUs that it sees, or with its CPU."""
    if not shares_batches:
        raise UserError("a stream is read by one worker, since its rows go on from batch to batch")
    if devices == "cpu":
        tf.config.set_visible_devices([], "GPU")
    elif devices != "auto":
        raise UserError(
            "a worker takes all GPUs that it sees: name them in CUDA_VISIBLE_DEVICES. Received: "
            f"devices={devices}"
        )
    return workers.strategy()


def _named(devices: str) -> list[str]:
    """The names of devices in TensorFlow; none where it is to choose."""
    gpus = [gpu.name for gpu in tf.config.list_logical_devices("GPU")]
    if devices == "auto":
        return gpus if len(gpus) > 1 else []
    if devices == "cpu":
        return ["/cpu:0"] if gpus else []
    if not re.fullmatch(r"gpu:\d+(,\d+)*", devices):
        raise UserError(f"devices takes auto, cpu or gpu:0,1. Received: {devices}")
    numbers = sorted({int(number) for number in devices.removeprefix("gpu:").split(",")})
    if missing := [f"gpu:{number}" for number in numbers if number >= len(gpus)]:
        there = ", ".join(f"gpu:{number}" for number in range(len(gpus))) or "none"
        raise UserError(f"devices: there is no {', '.join(missing)} here. GPUs: {there}")
    return [gpus[number] for number in numbers]
