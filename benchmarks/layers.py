"""The recurrent layers against stock Keras, PyTorch and the matrix products alone, in one run.

    python benchmarks/layers.py [SECTION ...] [--rounds 9] [--figure FILE]

Without a section, all of them: `grid ragged bidirectional dropout fit memory scaling compilation
serving`. What stands in one row is timed in turn, round by round, so that a busy moment of the
machine meets all of them; times are minimum / median in milliseconds. PyTorch takes part where it
is installed. A training step is the forward pass, and the gradients of the inputs and all weights
against a given gradient of the outputs. Inference runs as Keras' `predict` runs it. Every result
is compared with that of stock Keras, to 1e-5 of its largest entry (or of 1); the script ends with
status 1 if one differs.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from clock import clock

from rnnapps import layers

try:
    import torch
except ImportError:
    torch = None

SHAPES = [
    (64, 128, 128, 256),
    (32, 200, 64, 128),
    (64, 40, 128, 256),
    (256, 20, 256, 512),
    (16, 400, 128, 128),
    (1, 30, 64, 128),
]
LONG = SHAPES[0]
TOLERANCE = 1e-5
KINDS = {
    # name: ours, stock, torch, options of both, columns of U in units
    "Elman": (layers.Elman, keras.layers.SimpleRNN, "RNN", {}, 1),
    "LSTM": (layers.LSTM, keras.layers.LSTM, "LSTM", {}, 4),
    "GRU before": (layers.GRU, keras.layers.GRU, None, {"reset_after": False}, 3),
    "GRU after": (layers.GRU, keras.layers.GRU, "GRU", {"reset_after": True}, 3),
}
worst_error = 0.0


def draw(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def wait(results):
    return tf.nest.map_structure(lambda v: v.numpy(), results)


def inference(layer, jit_compile=False, **arguments):
    """Returns a graph of the layer's outputs, run as Keras' `predict` runs a model."""
    strategy = tf.distribute.get_strategy()
    return tf.function(
        lambda x: strategy.run(lambda x: layer(x, **arguments), (x,)),
        jit_compile=jit_compile,
        autograph=False,
    )


def training(layer, jit_compile=False, **arguments):
    """Returns a graph of a training step: the outputs and all gradients."""

    def step(x, dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True, **arguments)
        variables = [v.value for v in layer.trainable_variables]
        return y, tape.gradient(y, [x, *variables], output_gradients=dy)

    return tf.function(step, jit_compile=jit_compile, autograph=False)


def torch_calls(module, x, dy, lengths=None):
    """Returns the calls of inference and of a training step of a PyTorch module."""
    x, dy = torch.from_numpy(x).requires_grad_(), torch.from_numpy(dy)

    def run(x):
        if lengths is None:
            return module(x)[0]
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        return torch.nn.utils.rnn.pad_packed_sequence(
            module(packed)[0], batch_first=True, total_length=x.shape[1]
        )[0]

    def infer():
        with torch.no_grad():
            return run(x)

    def train():
        for parameter in (x, *module.parameters()):
            parameter.grad = None
        run(x).backward(dy)

    return infer, train


def products(B, T, D, H, columns, is_training):
    """Returns calls of the matrix products that no implementation can do without."""
    a, w, d = draw(B * T, D + H), draw(D + H, columns * H), draw(B * T, columns * H)
    a, w, d = (tf.constant(v) for v in (a, w, d))

    def limit(a, w, d):
        forward = a @ w
        if not is_training:
            return forward
        return forward, tf.matmul(d, w, transpose_b=True), tf.matmul(a, d, transpose_a=True)

    plain = tf.function(limit, autograph=False)
    compiled = tf.function(limit, jit_compile=True, autograph=False)
    return {"products": lambda: wait(plain(a, w, d)), "compiled": lambda: wait(compiled(a, w, d))}


def compare(results, expected, mask=None):
    """Notes the largest error of the results of a training step or of inference."""
    global worst_error
    for one, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        one, other = np.array(one), np.array(other)
        if mask is not None and one.shape[:2] == mask.shape:
            one, other = one[mask], other[mask]
        error = np.max(np.abs(one - other)) / max(1.0, np.max(np.abs(other)))
        worst_error = max(worst_error, float(error))


def measure(ours, stock, x, dy, rounds, is_training, others=None, mask=None):
    """Returns the times of our layer, of both modes of stock Keras, and of the others."""
    ours.build(x.shape)
    stock.build(x.shape)
    ours.set_weights(stock.get_weights())
    x, dy = tf.constant(x), tf.constant(dy)
    arguments = {} if mask is None else {"mask": tf.constant(mask)}
    make, inputs = (training, (x, dy)) if is_training else (inference, (x,))
    graphs = {
        "ours": make(ours, **arguments),
        "default": make(stock, **arguments),
        "jit": make(stock, jit_compile=True, **arguments),
    }
    compare(graphs["ours"](*inputs), graphs["default"](*inputs), mask)
    calls = {name: (lambda g=graph: wait(g(*inputs))) for name, graph in graphs.items()}
    return clock({**calls, **(others or {})}, rounds)


def cell(pair):
    return "-" if pair is None else f"{pair[0]:.3g} / {pair[1]:.3g}"


def quotient(one, other):
    return "-" if one is None else f"{one[0] / other[0]:.2f} / {one[1] / other[1]:.2f}"


def best(times, *names):
    """The minimum and the median of the better one."""
    return tuple(min(times[name][i] for name in names) for i in (0, 1))


def print_head(*columns):
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def grid(rounds):
    """Every layer, inference and training, over the shapes."""
    for B, T, D, H in SHAPES:
        print(f"\n### B={B}, T={T}, D={D}, H={H}\n")
        print_head(
            *("layer", "pass", "ours", "Keras", "Keras jit", "torch", "products"),
            *("best Keras / ours", "torch / ours", "ours / products"),
        )
        for is_training in (False, True):
            for name, (ours, stock, peer, options, columns) in KINDS.items():
                x, dy = draw(B, T, D), draw(B, T, H)
                others = products(B, T, D, H, columns, is_training)
                if torch and peer:
                    module = getattr(torch.nn, peer)(D, H, batch_first=True)
                    others["torch"] = torch_calls(module, x, dy)[is_training]
                times = measure(
                    ours(H, return_sequences=True, **options),
                    stock(H, return_sequences=True, **options),
                    *(x, dy, rounds, is_training, others),
                )
                limit = best(times, "products", "compiled")
                print_row(
                    *(name, "train" if is_training else "infer"),
                    *(cell(times.get(n)) for n in ("ours", "default", "jit", "torch")),
                    cell(limit),
                    quotient(best(times, "default", "jit"), times["ours"]),
                    quotient(times.get("torch"), times["ours"]),
                    quotient(times["ours"], limit),
                )
                keras.backend.clear_session()


def ragged(rounds):
    """An LSTM over sequences of 20 to 128 steps."""
    B, T, D, H = LONG
    print("\n### Ragged: LSTM, B=64, lengths 20 to 128, D=128, H=256\n")
    print_head("pass", "ours", "Keras", "Keras jit", "torch packed", "jit / ours", "torch / ours")
    lengths = np.random.default_rng(0).integers(20, T + 1, B)
    lengths[0] = T
    mask = np.arange(T) < lengths[:, None]
    x, dy = draw(B, T, D), draw(B, T, H) * mask[..., None]
    for is_training in (False, True):
        others = {}
        if torch:
            module = torch.nn.LSTM(D, H, batch_first=True)
            others["torch"] = torch_calls(module, x, dy, torch.from_numpy(lengths))[is_training]
        times = measure(
            layers.LSTM(H, return_sequences=True),
            keras.layers.LSTM(H, return_sequences=True),
            *(x, dy, rounds, is_training, others, mask),
        )
        print_row(
            "train" if is_training else "infer",
            *(cell(times.get(name)) for name in ("ours", "default", "jit", "torch")),
            *(quotient(times.get(name), times["ours"]) for name in ("jit", "torch")),
        )


def bidirectional(rounds):
    """A bidirectional LSTM."""
    print("\n### Bidirectional LSTM\n")
    print_head("shape", "pass", "ours", "Keras", "Keras jit", "best Keras / ours")
    for B, T, D, H in SHAPES[:2]:
        for is_training in (False, True):
            times = measure(
                layers.Bidirectional(layers.LSTM(H, return_sequences=True)),
                keras.layers.Bidirectional(keras.layers.LSTM(H, return_sequences=True)),
                *(draw(B, T, D), draw(B, T, 2 * H), rounds, is_training),
            )
            print_row(
                f"{B}, {T}, {D}, {H}",
                "train" if is_training else "infer",
                *(cell(times[name]) for name in ("ours", "default", "jit")),
                quotient(best(times, "default", "jit"), times["ours"]),
            )


def dropout(rounds):
    """What the regularisers and resets cost in training."""
    B, T, D, H = LONG
    print("\n### Options in training: LSTM, B=64, T=128, D=128, H=256\n")
    print_head("option", "time", "/ without")
    x, dy = tf.constant(draw(B, T, D)), tf.constant(draw(B, T, H))
    options = {
        "none": {},
        "dropout 0.2": {"dropout": 0.2},
        "recurrent dropout 0.2": {"recurrent_dropout": 0.2},
        "recurrent weight dropout 0.2": {"recurrent_weight_dropout": 0.2},
        "peepholes": {"peephole": True},
        "reset": {},
        "mixed bfloat16": {"dtype": "mixed_bfloat16"},
    }
    calls = {}
    for name, chosen in options.items():
        layer = layers.LSTM(H, return_sequences=True, **chosen)
        reset = {"reset": tf.random.uniform((B, T)) < 0.05} if name == "reset" else {}
        step = training(layer, **reset)
        gradient = tf.cast(dy, layer.compute_dtype)
        calls[name] = lambda step=step, gradient=gradient: wait(step(x, gradient))
    times = clock(calls, rounds)
    for name, pair in times.items():
        print_row(name, cell(pair), quotient(pair, times["none"]))


def classifier(layer_class, **compilation):
    model = keras.Sequential(
        [
            keras.layers.Embedding(1000, 128),
            layer_class(256, return_sequences=True),
            keras.layers.GlobalMaxPooling1D(),
            keras.layers.Dense(2),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, **compilation)
    return model


def fit(rounds):
    """Epochs and predictions of a small classifier."""
    print("\n### `fit` and `predict` of a classifier: 528 rows, B=64, T=128, D=128, H=256\n")
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 1000, (528, 128)), rng.integers(0, 2, 528)
    models = {
        "ours": classifier(layers.LSTM),
        "Keras": classifier(keras.layers.LSTM),
        "Keras jit": classifier(keras.layers.LSTM, jit_compile=True),
    }
    print_head("", "fit: s an epoch", "/ ours", "predict: s", "/ ours")
    calls = {"fit": {}, "predict": {}}
    for name, model in models.items():
        calls["fit"][name] = lambda m=model: m.fit(x, y, batch_size=64, verbose=0)
        calls["predict"][name] = lambda m=model: m.predict(x, batch_size=64, verbose=0)
    seconds = {
        what: {name: (t / 1000, m / 1000) for name, (t, m) in clock(named, rounds).items()}
        for what, named in calls.items()
    }
    for name in models:
        pairs = [(seconds[what][name], seconds[what]["ours"]) for what in ("fit", "predict")]
        print_row(name, *(part for one, ours in pairs for part in (cell(one), quotient(one, ours))))


def memory(rounds):
    """Peak resident memory of processes that train, one for each length and side."""
    print("\n### Peak resident memory of training: LSTM, B=64, D=128, H=256, in MiB\n")
    lengths, sides = (128, 512, 1024), ("ours", "default", "jit")
    print_head("", *(f"T={T}" for T in lengths), "a further time step", "ours / it at each T")
    peaks = {}
    for side in sides:
        for T in lengths:
            command = [sys.executable, __file__, "peak", "--side", side, "--timesteps", str(T)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            peaks[side, T] = float(answer)
    for side in sides:
        slope = (peaks[side, lengths[-1]] - peaks[side, lengths[0]]) / (lengths[-1] - lengths[0])
        ratios = (f"{peaks['ours', T] / peaks[side, T]:.2f}" for T in lengths)
        print_row(
            side, *(f"{peaks[side, T]:.0f}" for T in lengths), f"{slope:.2f}", " ".join(ratios)
        )


def peak(side, T):
    """Prints the peak resident memory of this process after training steps, in MiB."""
    B, _, D, H = LONG
    layer = (layers.LSTM if side == "ours" else keras.layers.LSTM)(H, return_sequences=True)
    x, dy = tf.constant(draw(B, T, D)), tf.constant(draw(B, T, H))
    layer.build(x.shape)
    step = training(layer, jit_compile=side == "jit")
    for _ in range(5):
        wait(step(x, dy))
    # The process's own: `getrusage` would begin with its parent's.
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = [x for x in status if "VmHWM" in x]
    print(int(line.split()[1]) / 1024)


def scaling(rounds, figure):
    """Time of a training step against the number of steps and of rows."""
    print("\n### Time against length and batch: LSTM training, D=64, H=128\n")
    print_head("T (B=32)", "ms", "µs a step", "B (T=50)", "ms", "µs a row")
    layer = layers.LSTM(128, return_sequences=True)
    lengths, batches = (50, 100, 200, 400, 800, 1600), (1, 8, 32, 128, 256, 512)
    times = {}
    for B, T in [(32, T) for T in lengths] + [(B, 50) for B in batches]:
        x, dy = tf.constant(draw(B, T, 64)), tf.constant(draw(B, T, 128))
        step = training(layer)
        (times[B, T],) = clock({"ours": lambda s=step, i=(x, dy): wait(s(*i))}, rounds).values()
    for T, B in zip(lengths, batches, strict=True):
        long, wide = times[32, T], times[B, 50]
        print_row(
            *(str(T), cell(long), f"{1000 * long[1] / T:.1f}"),
            *(str(B), cell(wide), f"{1000 * wide[1] / B:.1f}"),
        )
    if figure:
        draw_figure(figure, lengths, batches, times)


def draw_figure(file, lengths, batches, times):
    from matplotlib.figure import Figure

    picture = Figure((9, 4), layout="constrained")
    left, right = picture.subplots(1, 2)
    left.plot(lengths, [times[32, T][1] for T in lengths], "o-")
    left.set(xlabel="time steps (32 rows)", ylabel="ms a training step", ylim=(0, None))
    right.plot(batches, [times[B, 50][1] for B in batches], "o-")
    right.set(xlabel="rows (50 time steps)", ylim=(0, None))
    picture.savefig(file)
    print(f"\n{file}")


def compilation(rounds):
    """Seconds until the first answer for a new shape, and compilations of bucketed data."""
    print("\n### Compilation: LSTM, H=256\n")
    print_head("", "trace and first call of a shape, s", "a further shape, s")
    layer = layers.LSTM(256, return_sequences=True)
    for name, make in (("infer", inference), ("train", training)):
        seconds = []
        graph = make(layer)
        for T in (64, 128):
            inputs = [tf.constant(draw(64, T, n)) for n in (128, 256)][: 1 + (name == "train")]
            start = time.perf_counter()
            wait(graph(*inputs))
            seconds.append(time.perf_counter() - start)
        print_row(name, *(f"{s:.2f}" for s in seconds))
    with tempfile.TemporaryDirectory() as folder:
        flags = os.environ.get("XLA_FLAGS", "") + f" --xla_dump_to={folder}"
        command = [sys.executable, __file__, "epoch"]
        environment = {**os.environ, "XLA_FLAGS": flags}
        answer = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment
        ).stdout
        programs = len(list(Path(folder).glob("*before_optimizations.txt")))
    print(f"\nAn epoch of bucketed data, {answer.strip()}: {programs} programs compiled")


def epoch():
    """Trains an epoch on rows of 1 to 200 tokens in 6 buckets."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(200, 1 + rng.geometric(0.03, 2000))
    data = tf.data.Dataset.from_tensor_slices(lengths).map(
        lambda n: (tf.ones([n], tf.int32), n % 2)
    )
    data = data.bucket_by_sequence_length(
        lambda x, y: tf.size(x), [10, 20, 40, 80, 140], [64] * 6, padded_shapes=([None], [])
    )
    model = keras.Sequential(
        [keras.layers.Embedding(2, 32, mask_zero=True), layers.LSTM(32), keras.layers.Dense(2)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(data, verbose=0)
    shapes = {tuple(x.shape) for x, _ in data}
    print(f"{len(list(data))} batches of {len(shapes)} shapes")


def serving(rounds):
    """Single requests to an exported model."""
    print("\n### Serving: 1,000 requests of one row, 1 to 200 steps, after 20 to warm up\n")
    print_head("exported", "median ms", "slowest ms", "slowest / median")
    for name, layer_class in (("ours", layers.LSTM), ("Keras", keras.layers.LSTM)):
        model = keras.Sequential([keras.Input((None, 64)), layer_class(128)])
        with tempfile.TemporaryDirectory() as folder:
            model.export(folder, verbose=False)
            served = tf.saved_model.load(folder)
            times, rng = [], np.random.default_rng(0)
            for _ in range(1020):
                x = tf.constant(draw(1, int(rng.integers(1, 201)), 64))
                start = time.perf_counter()
                wait(served.serve(x))
                times.append(1000 * (time.perf_counter() - start))
        times = times[20:]
        median, slowest = np.median(times), max(times)
        print_row(name, f"{median:.2f}", f"{slowest:.2f}", f"{slowest / median:.1f}")


SECTIONS = [grid, ragged, bidirectional, dropout, fit, memory, scaling, compilation, serving]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(names))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--figure", type=Path, help="where `scaling` draws its figure")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--timesteps", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.sections == ["peak"]:
        return peak(flags.side, flags.timesteps)
    if flags.sections == ["epoch"]:
        return epoch()
    versions = f"TensorFlow {tf.__version__}, Keras {keras.__version__}"
    if torch:
        torch.set_num_threads(os.cpu_count())
        versions += f", torch {torch.__version__}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {versions}; {flags.rounds} rounds")
    for section in SECTIONS:
        if not flags.sections or section.__name__ in flags.sections:
            section(flags.rounds, *([flags.figure] if section is scaling else []))
    print(f"\nlargest difference from stock Keras: {worst_error:.1e} (limit {TOLERANCE:.0e})")
    sys.exit(worst_error > TOLERANCE)


if __name__ == "__main__":
    main()
