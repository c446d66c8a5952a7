"""What cells keep track of (Karpathy, Johnson & Fei-Fei 2015).

A model of characters learns to write programs. Nobody tells it what brackets are; it must know
all the same how many are open. Of all cells of the LSTM the one that goes with the depth the most
is found on one part of the text, and measured on another; so is the weighted sum of all cells that
comes nearest to it. The same is measured before training, since a network of random weights
remembers what it has just read, too.
"""

import dataclasses
import itertools

import keras
import numpy as np

from rnnapps import models
from rnnapps.data.datasets.sample_programs import grammar
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.coloured_text import coloured_html, coloured_text
from rnnapps.figures.gates import gates
from rnnapps.inspection.gates import gate_values
from rnnapps.inspection.tracking import bracket_depth, in_quotes, most_correlated, read_out

_BATCH, _WINDOW = 16, 64
_SHOWN_UNITS = 16


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        programs: training programs.
        units: units of the LSTM.
        epochs: how often the programs are read.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    programs: int = 4_000
    units: int = 96
    epochs: int = 4
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(programs=700, units=40, epochs=4, implementation="reference")


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the model of characters and looks for the units."""
    programs = list(itertools.islice(grammar.programs(), size.programs + 60))
    text = "\n\n".join(programs[: size.programs])
    searched, measured = ("\n\n".join(programs[a:b]) for a, b in ((-60, -30), (-30, None)))
    characters = {character: i for i, character in enumerate(sorted(set(text)), 1)}
    stream = np.array([characters[character] for character in text])
    windows = (len(stream) - 1) // _WINDOW
    inputs, targets = (
        stream[start : start + windows * _WINDOW].reshape(windows, _WINDOW) for start in (0, 1)
    )
    keras.utils.set_random_seed(seed)
    reader = models.SequenceEncoder(
        "lstm", size.units, bidirectional=False, implementation=size.implementation
    )
    encoder = models.TextEncoder(len(characters) + 1, 24, reader)
    model = models.LanguageModel(models.Decoder(encoder))
    model.build((None, None))
    untrained = [_values(model, characters, part)["c"] for part in (searched, measured)]
    rate = keras.optimizers.schedules.CosineDecay(0.01, size.epochs * windows // _BATCH)
    model.compile(
        keras.optimizers.Adam(rate, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    history = model.fit(inputs, targets, _BATCH, size.epochs, verbose=0)
    trained = [_values(model, characters, part)["c"] for part in (searched, measured)]

    tracked = {"bracket depth": bracket_depth, "inside quotes": in_quotes}
    found = {
        name: {
            when: _found(cells, measure(searched), measure(measured))
            for when, cells in (("untrained", untrained), ("trained", trained))
        }
        for name, measure in tracked.items()
    }
    depth = found["bracket depth"]["trained"]
    claims = {
        "the depth of brackets can be read off all cells on unseen text": depth["weighted_sum"]
        > 0.8,
        "no cell alone keeps it": abs(depth["correlation"]) < 0.7,
    }
    numbers = {
        "characters": len(stream),
        "nats_per_character": history.history["loss"][-1],
        "units": found,
    }
    best = found["bracket depth"]["trained"]
    held_out = sorted(programs[-30:], key=lambda program: -bracket_depth(program).max())
    shown = "\n\n".join(held_out[:3])
    values = _values(model, characters, shown)  # [characters, units] each
    cell = np.sign(best["correlation"]) * values["c"][:, best["unit"]]  # [characters]
    weights, bias = read_out(trained[0], bracket_depth(searched))
    depth_read = values["c"] @ weights + bias  # [characters]
    # The cells that move the sum the most.
    weighty = np.argsort(-np.abs(weights) * trained[0].std(axis=0))[:_SHOWN_UNITS]
    deepest = int(bracket_depth(shown).argmax())
    start = shown.rfind("\n", 0, deepest) + 1
    line = slice(start, (shown + "\n").index("\n", start))
    return Result(
        rounded(claims),
        rounded(numbers),
        {
            "tracking-units": coloured_text(shown, depth_read, "depth, read off all cells"),
            "best-unit": coloured_text(shown, cell, "the cell that goes with it most"),
            "gates": gates(
                {letter: values[letter][line, weighty] for letter in "ifoc"}, shown[line]
            ),
        },
        {"tracking-units.html": coloured_html(shown, depth_read)},
    )


def _found(cells, searched: np.ndarray, measured: np.ndarray) -> dict:
    """Finds a unit, and a weighted sum, on one text; returns their correlations on the other."""
    unit, _ = most_correlated(cells[0], searched)
    weights, bias = read_out(cells[0], searched)
    read = (cells[1] @ weights + bias)[:, None]  # [characters, 1]
    return {
        "unit": unit,
        "correlation": most_correlated(cells[1][:, [unit]], measured)[1],
        "weighted_sum": most_correlated(read, measured)[1],
    }


def _values(model: models.LanguageModel, characters: dict[str, int], text: str) -> dict:
    """Returns what each letter of the LSTM's equations is at each character, `[time, units]`."""
    ids = np.array([[characters[character] for character in text]])
    embedded = model.decoder.encoder.embed(ids)  # [1, time, embedding_size]
    layer = model.decoder.encoder.encoder.recurrent_layers[0]
    return {letter: of[0] for letter, of in gate_values(layer, embedded).items()}
