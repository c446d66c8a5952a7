"""The recurrent layers on a GPU: where their work is done, whether it is right, how long it takes.

    python benchmarks/gpu.py [placement agreement speed] [--device gpu:0] [--rounds 9]
    KERAS_BACKEND=jax python benchmarks/gpu.py [agreement speed]

- `placement`: a training step of three tasks on their bundled samples; names every operation of
  it that TensorFlow has put on the CPU.
- `agreement`: the outputs of every layer and the gradients of its inputs and weights, on the GPU
  and on the CPU, without a mask, with padding, and with empty rows, in float32 and in mixed
  precision.
- `speed`: one training step of every layer, the forward pass and all gradients, against stock Keras
  and, where it is installed, PyTorch; minimum / median in milliseconds of steps taken in turn.

Ends with status 1 where an operation is on the CPU or a result differs. Works without a GPU too,
with `--device cpu:0` in its place, which shows nothing but that the script works.
"""

import argparse
import collections
import functools
import os
import platform
import sys

# Before Keras is imported: the CPU must be there for JAX too.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from clock import clock

from rnnapps import layers

try:
    import torch
except ImportError:
    torch = None

BATCH, TIME, FEATURES, UNITS = 64, 128, 128, 256
SMALL = (5, 12, 6, 8)
LAYERS = {
    # name: ours, stock, options, torch
    "Elman": (layers.Elman, keras.layers.SimpleRNN, {}, "RNN"),
    "LSTM": (layers.LSTM, keras.layers.LSTM, {}, "LSTM"),
    "LSTM, peepholes": (layers.LSTM, None, {"peephole": True}, None),
    "LSTM, normalised": (layers.LSTM, None, {"layer_norm": True}, None),
    "GRU before": (layers.GRU, keras.layers.GRU, {"reset_after": False}, None),
    "GRU after": (layers.GRU, keras.layers.GRU, {"reset_after": True}, "GRU"),
    "Jordan": (functools.partial(layers.Jordan, output_units=UNITS), None, {}, None),
}
# Of the largest entry, or of 1: sums of many products in another order, and with TensorFloat.
TOLERANCES = {"float32": 2e-3, "mixed_bfloat16": 5e-2, "mixed_float16": 1e-2}
# What only hands tensors over, or holds the numbers that say how large they are.
CARRIERS = {"NoOp", "Const", "_EagerConst", "_Send", "_Recv", "_HostSend", "_HostRecv"}
CARRIERS |= {"_Arg", "_DeviceArg", "_Retval", "_DeviceRetval"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", help="placement, agreement, speed")
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--rounds", type=int, default=9)
    flags = parser.parse_args()
    backend = keras.backend.backend()
    possible = {"placement": placement, "agreement": agreement, "speed": speed}
    if backend != "tensorflow":
        del possible["placement"]
    print(
        f"{backend}, {device_name(flags.device)}, {platform.machine()}, Keras {keras.__version__}"
    )
    return max(possible[name](flags) for name in flags.sections or possible)


def device_name(device: str) -> str:
    """The name that the device's maker has given it."""
    if keras.backend.backend() == "jax":
        import jax

        kind, _, number = device.partition(":")
        return jax.devices(kind)[int(number)].device_kind
    import tensorflow as tf

    kind, _, number = device.upper().partition(":")
    found = tf.config.list_physical_devices(kind)
    if not found:
        sys.exit(f"there is no {device} here")
    details = tf.config.experimental.get_device_details(found[0])
    return details.get("device_name", device)


def placement(flags: argparse.Namespace) -> int:
    """Prints, for each task, the operations of its training step that are on the CPU."""
    import tensorflow as tf

    from rnnapps.learner import Learner
    from rnnapps.tasks.ner import Ner, NerConfig
    from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
    from rnnapps.tasks.translation import Translation, TranslationConfig

    total = 0
    tasks = (Sentiment(SentimentConfig()), Ner(NerConfig()), Translation(TranslationConfig()))
    for task in tasks:
        train = task.load()["train"]
        task.adapt(train)
        strategy = tf.distribute.OneDeviceStrategy(f"/{flags.device}")
        learner = Learner(task, strategy)
        steps = learner.steps(task.batches(task.encoded(train.take(200), training=True), epoch=0))
        found = on_other_devices(lambda steps=steps: next(steps), flags.device)
        total += found.total()
        named = ", ".join(f"{op} {count}" for op, count in found.most_common()) or "none"
        print(f"{task.name}: {found.total()} operations elsewhere ({named})", flush=True)
    return int(total > 0)


def on_other_devices(call, device: str) -> collections.Counter:
    """Counts the operations that the first call of a graph runs anywhere but on a device."""
    # How a graph was run has no public name.
    from tensorflow.python.eager import context

    context.context().enable_run_metadata()
    call()
    graphs = context.context().export_run_metadata().partition_graphs
    context.context().disable_run_metadata()
    wanted = f"device:{device}".upper()
    return collections.Counter(
        node.op
        for graph in graphs
        for node in graph.node
        if node.op not in CARRIERS and wanted not in node.device.upper()
    )


def agreement(flags: argparse.Namespace) -> int:
    """Prints the largest difference between the device and the CPU, of every layer."""
    print("\n| layer | precision | no mask | padding | empty rows |\n|---|---|---|---|---|")
    wrong = 0
    for name in LAYERS:
        for policy, tolerance in TOLERANCES.items():
            errors = [difference(name, policy, mask, flags.device) for mask in masks()]
            wrong += sum(not error <= tolerance for error in errors)
            told = " | ".join(f"{error:.1e}" for error in errors)
            print(f"| {name} | {policy} | {told} |", flush=True)
    print(f"\n{wrong} of them too large")
    return int(wrong > 0)


def masks() -> list:
    """No mask; padding at the end; padding, and rows that are nothing else."""
    batch, time, *_ = SMALL
    lengths = np.array([time, 1, time // 2, 3, time - 1])
    steps = np.arange(time)
    padded = steps < lengths[:, None]  # [batch, time]
    with_empty = steps < (lengths * (np.arange(batch) % 2 == 0))[:, None]
    return [None, padded, with_empty]


def difference(name: str, policy: str, mask, device: str) -> float:
    """The largest difference of outputs and gradients, by the size of the values."""
    batch, time, features, units = SMALL
    make, _, options, _ = LAYERS[name]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, time, features)).astype("float32")
    results = []
    for place in ("cpu:0", device):
        with keras.device(place):
            keras.utils.set_random_seed(0)
            layer = make(units, return_sequences=True, dtype=policy, **options)
            layer.build(x.shape)
            results.append(training_step(layer, mask)(x))
    errors = [0.0]
    for one, other in zip(*results, strict=True):
        one, other = (np.array(keras.ops.cast(v, "float32")) for v in (one, other))
        errors.append(np.max(np.abs(one - other)) / max(1.0, np.max(np.abs(other))))
    return float(np.max(errors))  # NaN where one is


def training_step(layer, mask=None):
    """Returns a compiled function of inputs: outputs, and gradients of inputs and weights."""
    options = {} if mask is None else {"mask": keras.ops.convert_to_tensor(mask)}
    if keras.backend.backend() == "jax":
        import jax

        others = [variable.value for variable in layer.non_trainable_variables]

        def loss(x, weights):
            outputs, _ = layer.stateless_call(weights, others, x, training=True, **options)
            return keras.ops.sum(keras.ops.sin(keras.ops.cast(outputs, "float32"))), outputs

        step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1), has_aux=True))

        def run(x):
            (_, outputs), gradients = step(x, [v.value for v in layer.trainable_variables])
            return jax.block_until_ready([outputs, *jax.tree_util.tree_leaves(gradients)])

        return run
    import tensorflow as tf

    @tf.function(autograph=False, reduce_retracing=True)
    def graph(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, training=True, **options)
            loss = tf.reduce_sum(tf.sin(tf.cast(outputs, tf.float32)))
        variables = [variable.value for variable in layer.trainable_variables]
        return [outputs, *tape.gradient(loss, [x, *variables])]

    return lambda x: [v.numpy() for v in graph(tf.convert_to_tensor(x))]


def speed(flags: argparse.Namespace) -> int:
    """Prints milliseconds of a training step."""
    print(
        f"\nB={BATCH}, T={TIME}, D={FEATURES}, H={UNITS}; minimum / median of {flags.rounds}, ms\n"
    )
    print(
        "| layer | ours | Keras | torch | Keras / ours | torch / ours |\n|---|---|---|---|---|---|"
    )
    x = np.random.default_rng(0).normal(size=(BATCH, TIME, FEATURES)).astype("float32")
    with keras.device(flags.device):
        x = keras.ops.convert_to_tensor(x)
        for name, (make, stock, options, torch_name) in LAYERS.items():
            calls = {"ours": step_of(make(UNITS, return_sequences=True, **options), x)}
            if stock is not None:
                calls["Keras"] = step_of(stock(UNITS, return_sequences=True, **options), x)
            if torch is not None and torch_name is not None:
                calls["torch"] = torch_step(torch_name, flags.device)
            times = clock(calls, flags.rounds)
            cells = [
                "{:.2f} / {:.2f}".format(*times[side]) if side in times else "-"
                for side in ("ours", "Keras", "torch")
            ]
            cells += [
                f"{times[side][1] / times['ours'][1]:.2f}" if side in times else "-"
                for side in ("Keras", "torch")
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


def step_of(layer, x):
    """Returns the call of a training step of a layer."""
    layer.build(x.shape)
    step = training_step(layer)
    return lambda: step(x)


def torch_step(name: str, device: str):
    """Returns the call of a training step of a PyTorch module."""
    place = device.replace("gpu", "cuda")
    module = getattr(torch.nn, name)(FEATURES, UNITS, batch_first=True).to(place)
    x = torch.randn(BATCH, TIME, FEATURES, device=place, requires_grad=True)

    def step():
        for parameter in (x, *module.parameters()):
            parameter.grad = None
        module(x)[0].sin().sum().backward()
        return [parameter.grad.cpu() for parameter in (x, *module.parameters())]

    return step


if __name__ == "__main__":
    sys.exit(main())
