"""The configuration fields that all tasks share.

A task's configuration is one frozen dataclass made of two of these and its own fields. It is the
single source of command-line flags, YAML keys, defaults and their documentation.
"""

import dataclasses
import itertools
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import docstring_parser
import yaml
from jsonargparse.typing import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    restricted_number_type,
)

from rnnapps.errors import UserError

_LARGEST_CONFIG = 2**16  # bytes

if TYPE_CHECKING:
    Share: TypeAlias = float
    Factor: TypeAlias = float
    # What is `auto` gets its value from `adapt`; everything after it sees the value alone.
    Auto: TypeAlias = Any
else:
    Share = restricted_number_type(
        "Share", float, [(">=", 0), ("<", 1)], docstring="a number from 0 to below 1"
    )
    Factor = restricted_number_type(
        "Factor", float, [(">", 0), ("<=", 1)], docstring="a number above 0, at most 1"
    )
    Auto = Literal["auto"]


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Where examples come from."""

    data: str = "sample"
    """The data: `sample` (bundled), `tfds:NAME[/CONFIG]`, or the path of a file or folder."""
    dev_data: str | None = None
    """The development split, as such a spec; by default a part of `data`."""
    test_data: str | None = None
    """The test split, as such a spec; by default a part of `data`."""
    splits: str = "80/10/10"
    """Percentages of train, dev and test where the data has no official splits."""
    split_seed: int = 0
    """Draws another division into splits."""
    on_bad_row: Literal["stop", "skip"] = "stop"
    """At a row that cannot be read: `stop` and name it, or `skip` it and count."""


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the model is trained."""

    seed: NonNegativeInt = 0
    """Seeds the initial weights, dropout and the order of the examples."""
    batch_size: PositiveInt | Auto = "auto"
    """Examples in a training step; `auto`: 64, or 128 from 38,400 training examples on."""
    buckets: PositiveInt | Auto = "auto"
    """The largest number of padded lengths; a batch holds examples of similar length. Each costs a
    compilation, so `auto` gives each at least 1,000 training examples, up to 8 lengths."""
    epochs: PositiveInt = 20
    """The largest number of passes over the training examples."""
    patience: NonNegativeInt = 3
    """Stop after so many epochs without a better dev metric; the best weights are kept."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """How steps are taken: Adam, or plain gradient descent, for which learning rates are larger."""
    learning_rate: PositiveFloat = 3e-3
    """The step size at the start."""
    learning_rate_decay: Factor = 0.5
    """The factor on the learning rate where the dev metric stops getting better; 1 for none."""
    decay_patience: NonNegativeInt = 1
    """Epochs without a better dev metric before the learning rate decays."""
    weight_average: Share = 0.998
    """The momentum of the running mean of the weights, which is what is evaluated, kept and
    exported; 0 for the weights themselves."""
    average_checkpoints: PositiveInt = 1
    """In the end try the mean of the weights of so many epochs, and keep it where it is better on
    dev than the best epoch alone; 1 for none."""
    averaged: Literal["best", "last"] = "best"
    """Which epochs' weights that mean is of: those best on dev, or the last."""
    clip_norm: NonNegativeFloat = 1.0
    """Rescale the gradient to this global norm where it is longer; 0 turns it off."""
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """What the layers compute in while training; weights, softmax and loss stay float32, and so
    does what is evaluated and exported. The half precisions are for GPUs that are fast in them."""
    devices: str = "auto"
    """Where to train: `cpu`, GPUs such as `gpu:0` or `gpu:0,1`, or `auto`: all GPUs if there are
    several, otherwise TensorFlow's choice. Several GPUs share each batch."""
    checkpoint_steps: NonNegativeInt = 0
    """Write a checkpoint after every so many steps of an epoch, besides the one after each epoch; 0
    for none."""
    checkpoint_minutes: NonNegativeFloat = 0.0
    """Write a checkpoint where the last is so many minutes old; 0 for none."""
    data_notice: str | None = None
    """What the model card says of the data: where it is from, its authors and its licence."""


def settled(config: Any, num_examples: int) -> Any:
    """Gives `batch_size` and `buckets` their values for so many training examples.

    Args:
        config: a `TrainingConfig`.
        num_examples: the number of training examples.

    Example:
    >>> config = settled(TrainingConfig(batch_size=16), 2_500)
    >>> config.batch_size, config.buckets
    (16, 2)
    """
    batch_size, buckets = config.batch_size, config.buckets
    if batch_size == "auto":
        batch_size = 128 if num_examples >= 300 * 128 else 64
    if buckets == "auto":
        buckets = min(max(num_examples // 1000, 1), 8)
    return dataclasses.replace(config, batch_size=batch_size, buckets=buckets)


def with_defaults_of(config: Any, defaults: Mapping[str, tuple[Any, Any]]) -> Any:
    """Gives fields that are `auto` their values, which may be others for the bundled sample.

    Args:
        config: a `DataConfig`.
        defaults: each field's value for the sample, and for other data.

    Example:
    >>> config = with_defaults_of(DataConfig(splits="auto"), {"splits": ("80/10/10", "90/5/5")})
    >>> config.splits
    '80/10/10'
    """
    which = 0 if config.data == "sample" else 1
    chosen = {n: values[which] for n, values in defaults.items() if getattr(config, n) == "auto"}
    return dataclasses.replace(config, **chosen)


def from_mapping(config_class: type, values: Mapping[str, Any]) -> Any:
    """Makes a configuration from values by name.

    Raises:
        UserError: a name is none of the fields.
    """
    known = {field.name for field in dataclasses.fields(config_class)}
    if unknown := sorted(map(str, set(values) - known)):
        raise UserError(f"unknown settings: {', '.join(unknown)}")
    return config_class(**{name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    """Turns a number of jsonargparse's own types, which YAML cannot write, into a plain one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return int(value) if isinstance(value, int) else float(value)


def write_config(config: Any, file: Path) -> None:
    """Writes a configuration as the YAML that `--config` accepts."""
    text = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False, allow_unicode=True)
    file.write_text(text, encoding="utf-8")


def read_config(config_class: type, file: Path) -> Any:
    """Reads what `write_config` wrote.

    Raises:
        UserError: the file does not hold settings of this class.
    """
    text = settings_text(file)
    try:
        return from_mapping(config_class, yaml.safe_load(text))
    except ValueError as error:  # unknown settings, or what only looks like a number or a date
        raise UserError(f"{file}: {error}") from error


def settings_text(file: Path) -> str:
    """Reads a YAML file of settings: names, each with one plain value.

    Nothing is made of the values yet, so that no file takes more time or memory than its size.

    Args:
        file: the file, of at most 64 KiB.

    Raises:
        UserError: the file cannot be read, or holds anything else: lists, objects of Python.
    """
    try:
        with file.open("rb") as handle:
            content = handle.read(_LARGEST_CONFIG + 1)
        if len(content) > _LARGEST_CONFIG:
            raise UserError(f"{file}: settings of more than {_LARGEST_CONFIG:,} bytes")
        text = content.decode("utf-8")
        settings = yaml.compose(text, yaml.SafeLoader)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}:{line}: not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UserError(f"{file}{place}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{file}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise UserError(f"{file}: values within values, where settings are plain") from None
    if not isinstance(settings, yaml.MappingNode):
        raise UserError(f"{file} holds no settings: each is a name, a colon and a value")
    for node in itertools.chain.from_iterable(settings.value):
        place = f"{file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            raise UserError(f"{place}: settings are plain values. Received: {node.tag}")
        if not isinstance(node, yaml.ScalarNode):
            raise UserError(f"{place}: a setting has one plain value. Received: a {node.id}")
    return text


def commented_yaml(config_class: type) -> str:
    """Writes every key of a configuration with its default and its meaning."""
    lines, told = [], {}
    parts = [part for part in reversed(config_class.__mro__) if vars(part).get("__annotations__")]
    for part in parts:
        told |= meanings(part)
    for part in parts:
        lines += ["", f"# {docstring_parser.parse(part.__doc__ or '').short_description}"]
        for name in meanings(part):
            if name not in told:
                continue  # a part before has it, with another default
            meaning = told.pop(name)
            default = yaml.safe_dump({name: getattr(config_class, name)}).strip()
            lines += ["", *textwrap.wrap(meaning, 96, initial_indent="# ", subsequent_indent="# ")]
            lines.append(default)
    return "\n".join(lines).lstrip() + "\n"


def meanings(config_class: type) -> dict[str, str]:
    """Returns what the docstrings of a dataclass say of its own fields, by name."""
    if not vars(config_class).get("__annotations__"):
        return {}
    params = docstring_parser.parse_from_object(config_class).params
    return {param.arg_name: " ".join((param.description or "").split()) for param in params}
