"""The rows and the steps of a batch: swapped, cut into groups and blocks, and joined again."""

import tensorflow as tf

BLOCK_STEPS = 16
WHOLE_BLOCKS = (16, 20, 18, 14, 12, 10)


def size(v, axis):
    """Returns the size of an axis, an integer where it is known."""
    return tf.shape(v)[axis] if v.shape[axis] is None else v.shape[axis]


def swap(v):
    """Puts the steps before the rows, or the rows before the steps."""
    return tf.transpose(v, [1, 0, *range(2, v.shape.rank)])


def num_blocks(time):
    """Returns how many blocks time is cut into, and the steps of each."""
    if isinstance(time, int) and time:
        for steps in WHOLE_BLOCKS:
            if time % steps == 0:  # nothing to pad, which would copy
                return time // steps, steps
    blocks = _at_least_one(-(-time // BLOCK_STEPS))
    # Even, so that fewer lengths differ.
    return blocks, 2 * _at_least_one(-(-time // (2 * blocks)))


def in_blocks(v, num_blocks, steps):
    """Cuts time, the second axis, into blocks: `[batch, blocks, steps, ...]`."""
    if v is None:
        return None
    v = _pad(v, 1, num_blocks * steps - size(v, 1))
    return tf.reshape(v, [size(v, 0), num_blocks, steps, *v.shape[2:]])


def by_length(mask, num_groups):
    """Returns an order of the rows, longest first, and the bounds of the groups in that order.

    Args:
        mask: Boolean tensor, `[rows, blocks, steps]`, true at the valid steps.
        num_groups: The number of groups.

    Returns:
        The numbers of the rows, int32 `[rows]`, of which there are as many in each group; and for
        each group its first block with a step that is valid in some row, and the step behind the
        last such step, int32 scalars.
    """
    mask = _pad_rows(mask, num_groups)
    num_rows, num_blocks, steps = tf.unstack(tf.shape(mask))
    time = num_blocks * steps
    mask = tf.reshape(mask, [num_rows, time])
    first = tf.reduce_min(tf.where(mask, tf.range(time), time), axis=1) // steps  # [rows]
    last = tf.reduce_max(tf.where(mask, tf.range(time) + 1, 0), axis=1)  # [rows]
    order = tf.argsort(first * steps - last, stable=True)
    first, last = (tf.reshape(tf.gather(v, order), [num_groups, -1]) for v in (first, last))
    first, last = tf.reduce_min(first, axis=1), tf.reduce_max(last, axis=1)  # [groups]
    return order, list(
        zip(tf.unstack(first, num_groups), tf.unstack(last, num_groups), strict=True)
    )


def split(tensors, order, num_groups):
    """Cuts each of some tensors, `[batch, ...]`, into groups of as many rows.

    Args:
        tensors: A nest of tensors, of which some may be `None`.
        order: The order of the rows, as `by_length` gives it; `None` to leave them where they are.
        num_groups: The number of groups.

    Returns:
        A list of such nests, one a group.
    """

    def cut(v):
        if v is None:
            return [None] * num_groups
        v = _pad_rows(v, num_groups)
        return tf.split(v if order is None else tf.gather(v, order), num_groups)

    cuts = [cut(v) for v in tf.nest.flatten(tensors)]
    return [tf.nest.pack_sequence_as(tensors, group) for group in zip(*cuts, strict=True)]


def merge(groups, order, batch):
    """Undoes `split`."""
    indices = None if order is None else tf.split(order, len(groups))

    def join(*parts):
        whole = tf.concat(parts, axis=0) if order is None else tf.dynamic_stitch(indices, parts)
        return whole[:batch]

    return tf.nest.map_structure(join, *groups)


def _pad_rows(v, num_groups):
    batch = size(v, 0)
    return _pad(v, 0, num_groups * _at_least_one(-(-batch // num_groups)) - batch)


def _pad(v, axis, missing):
    """Puts zeros behind the end of an axis, as many as are missing."""
    if isinstance(missing, int) and missing == 0:
        return v
    return tf.pad(v, [(0, missing if i == axis else 0) for i in range(v.shape.rank)])


def _at_least_one(n):
    return max(n, 1) if isinstance(n, int) else tf.maximum(n, 1)
