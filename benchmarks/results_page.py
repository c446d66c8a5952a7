"""The page of results, its data and its pictures, made of the logs of runs and of nothing else."""

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from etils import epy
from results_table import ResultSet, Row

with epy.lazy_imports():
    from matplotlib import figure

    from rnnapps.figures import curves, styles

Logs = Mapping[str, Sequence[Mapping[str, Any]]]

INTRODUCTION = """# Results

What the pipelines reach on public data, beside what others have published: small models, trained
from scratch without a GPU. Nothing is pretrained unless it is said, and nothing was chosen on what
is reported. Of several seeds the mean stands first, and in brackets the smallest and the largest.
The aim is ours; *at least* says what has to be reached. *Not run*: there is no log yet.

{summary}

\\* from memory, not seen in its source. Published figures differ in splits, tokens and letter case:
each section below tells how, and how our settings were chosen.

`python benchmarks/run_all.py ROW` trains a row again, where `RNNAPPS_DATA` names the folder of the
data, which is not part of this repository. `python benchmarks/run_all.py --write` writes this page
and `results.json` from the logs in `results/`, one for each row and seed: settings, metrics,
seconds, hashes of the data, commit, command, versions, and every epoch. In the tables below *dev*
is the split that chose the epoch. CPU minutes are those of all cores together, from the start of
the process to the export; minutes are longer where the machine had other work. Trained on
{machines}.
"""


class Line(NamedTuple):
    """A line of a set's table: a row, measured in one way.

    Attributes:
        row: The row.
        name: What it is called.
        logs: The logs of its seeds, as far as they were run.
        measured: For each log the metrics by split.
    """

    row: Row
    name: str
    logs: Sequence[Mapping[str, Any]]
    measured: Sequence[Mapping[str, Mapping[str, float]]]

    def values(self, metric: str, scale: float, split: str) -> list[float]:
        """The values of a metric on a split, of those seeds that have it."""
        found = (measured.get(split, {}).get(metric) for measured in self.measured)
        return [scale * value for value in found if value is not None]


def write(sets: Sequence[ResultSet], logs: Logs, docs: Path) -> None:
    """Writes `results.md`, `results.json` and the pictures.

    Args:
        sets: The results table.
        logs: The logs of each row by its name, a log for each seed that was run.
        docs: The folder of the page; pictures go to `results` in it.
    """
    pictures = docs / "results"
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = draw(sets, logs, pictures)
    (docs / "results.md").write_text(page(sets, logs, drawn), encoding="utf-8")
    content = json.dumps([as_data(one, logs) for one in sets], indent=1, ensure_ascii=False)
    (docs / "results.json").write_text(f"{content}\n", encoding="utf-8")


def page(sets: Sequence[ResultSet], logs: Logs, drawn: Mapping[str, str]) -> str:
    """Writes the page.

    Args:
        sets: The results table.
        logs: The logs by row.
        drawn: The pictures that there are, by what they show.
    """
    summary = table(
        ("data", "figure", "ours", "published", "aim"), (summary_of(one, logs) for one in sets)
    )
    machines = " and ".join(sorted({log["machine"] for all_of in logs.values() for log in all_of}))
    parts = [INTRODUCTION.format(machines=machines or "no machine yet", summary=summary)]
    if "quality" in drawn:
        parts.append(
            "## Quality against seconds\n\nThe dev split after each epoch, against the CPU seconds "
            "since the\nstart; beside ours a stock Keras model, where one was run.\n\n"
            f"![Dev metrics against CPU seconds](results/{drawn['quality']})\n"
        )
    parts += [section(one, logs, drawn) for one in sets]
    return "\n".join(parts)


def summary_of(one: ResultSet, logs: Logs) -> list[str]:
    """Writes a set's line of the table at the top."""
    line = next(lines(one, logs))
    found = line.values(one.metric, one.scale, "test")
    published = ", ".join(
        f"{published.value:g}{'*' if published.from_memory else ''}" for published in one.published
    )
    ours = reported(found, one.digits)
    if 0 < len(found) < len(line.row.seeds):
        ours += f", {len(found)} of {len(line.row.seeds)} seeds"
    return [one.title, one.label, ours, published or "–", verdict(one, found)]


def verdict(one: ResultSet, found: Sequence[float]) -> str:
    """Tells whether a set's aim, and its bound, were reached."""
    told = []
    for name, bound in (
        ("", one.aim),
        ("at least " if one.better == "max" else "at most ", one.must),
    ):
        if bound is None:
            continue
        said = f"{name}{bound:g}"
        if found:
            mean = statistics.fmean(found)
            reached = mean >= bound if one.better == "max" else mean <= bound
            said += ": reached" if reached else ": **missed**"
        told.append(said)
    return "; ".join(told) or "none"


def section(one: ResultSet, logs: Logs, drawn: Mapping[str, str]) -> str:
    """Writes a set's section."""
    also = [label for label, _ in one.also.values()]
    head = ("", f"{one.label}, dev", one.label, *also, "seeds", "parameters", "CPU min", "minutes")
    parts = [f"## {one.title}", one.chosen]
    if found := [row_of(one, line) for line in lines(one, logs) if line.logs]:
        parts.append(table(head, found))
    if left := [f"`{row.name}` ({row.variant})" for row in one.rows if not logs.get(row.name)]:
        parts.append(f"Not run: {', '.join(left)}.")
    if one.published:
        head = ("published", one.label, "source", "what differs")
        rows = (
            (
                published.of,
                f"{published.value:g}",
                f"{published.source}{' (from memory)' if published.from_memory else ''}",
                published.differs,
            )
            for published in one.published
        )
        parts.append(table(head, rows))
    if names := [f"`{row.name}`" for row in one.rows if logs.get(row.name)]:
        parts.append(f"Rows: {', '.join(names)}. {origin(one, logs)}")
    for row in one.rows:
        if row.name in drawn:
            parts.append(f"![The course of {row.name}, seed 0](results/{drawn[row.name]})")
    return "\n\n".join(parts) + "\n"


def origin(one: ResultSet, logs: Logs) -> str:
    """Tells of what data and which commits a set's logs are."""
    of_set = [log for row in one.rows for log in logs.get(row.name, ())]
    data = {name: digest for log in of_set for name, digest in log["data"].items()}
    hashes = ", ".join(f"{Path(name).name} {digest[:12]}" for name, digest in data.items())
    commits = ", ".join(sorted({log["commit"][:12] for log in of_set}))
    return f"SHA-256: {hashes}. Commit: {commits}."


def row_of(one: ResultSet, line: Line) -> list[str]:
    """Writes a line of a set's table, of a row that was run."""
    logs = line.logs
    test = "all" if "all" in line.measured[0] else "test"

    def mean(key: str) -> str:
        return f"{statistics.fmean(sum(log[key]) for log in logs) / 60:.1f}"

    return [
        line.name,
        reported(line.values(one.metric, one.scale, "dev"), one.digits, ""),
        reported(line.values(one.metric, one.scale, test), one.digits),
        *(
            reported(line.values(name, 1.0, test), digits, "")
            for name, (_, digits) in one.also.items()
        ),
        f"{len(logs)} of {len(line.row.seeds)}",
        f"{logs[0]['parameters']:,}" if logs[0].get("parameters") else "",
        mean("cpu_seconds"),
        mean("seconds"),
    ]


def lines(one: ResultSet, logs: Logs) -> Iterator[Line]:
    """Gives the lines of a set's table."""
    for row in one.rows:
        of_row = logs.get(row.name, ())
        name = f"{row.variant}, {row.measured}" if row.measured else row.variant
        yield Line(row, name, of_row, [log["metrics"] for log in of_row])
        for decoding in row.decodings:
            measured = [log["decodings"][decoding] for log in of_row]
            yield Line(row, f"{row.variant}, {decoding}", of_row, measured)


def reported(values: Sequence[float], digits: int, absent: str = "*not run*") -> str:
    """Writes a mean, and from which to which value it goes."""
    if not values:
        return absent
    mean = f"{statistics.fmean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Writes a table in Markdown."""
    written = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*written, *(f"| {' | '.join(row)} |" for row in rows)])


def as_data(one: ResultSet, logs: Logs) -> dict[str, Any]:
    """Returns a set and what was found, for `results.json`."""
    found = []
    for line in lines(one, logs):
        values = {
            split: line.values(one.metric, one.scale, split) for split in ("dev", "test", "all")
        }
        found.append(
            {
                "row": line.row.name,
                "name": line.name,
                "seeds": [log["seed"] for log in line.logs],
                **{split: of_split for split, of_split in values.items() if of_split},
            }
        )
    published = [
        {"value": p.value, "of": p.of, "source": p.source, "from_memory": p.from_memory}
        for p in one.published
    ]
    return {
        "data": one.title,
        "metric": one.metric,
        "scale": one.scale,
        "better": one.better,
        "must": one.must,
        "aim": one.aim,
        "published": published,
        "lines": found,
    }


def draw(sets: Sequence[ResultSet], logs: Logs, folder: Path) -> dict[str, str]:
    """Draws the course of each headline run, and quality against seconds.

    Args:
        sets: The results table.
        logs: The logs by row.
        folder: Where the pictures go.

    Returns:
        The names of the files by row, and of the last as `quality`.
    """
    drawn, compared = {}, []
    for one in sets:
        with_curves = {}
        for row in one.rows:
            first = next((log for log in logs.get(row.name, ()) if log.get("curve")), None)
            if first is None or not (row.headline or is_peer(row)):
                continue
            with_curves[row.variant] = first["curve"]
            if not is_peer(row):
                drawn[row.name] = f"{row.name}.png"
                picture = course(one, first["curve"])
                picture.savefig(folder / drawn[row.name], dpi=80)
        if with_curves:
            compared.append((one, with_curves))
    if compared:
        drawn["quality"] = "quality.png"
        against_seconds(compared).savefig(folder / drawn["quality"], dpi=80)
    return drawn


def is_peer(row: Row) -> bool:
    """Whether a row is of another package, run beside ours."""
    return row.name.endswith("-peer")


def course(one: ResultSet, curve: Mapping[str, Sequence[float]]) -> "figure.Figure":
    """Draws the course of one run by epoch."""
    monitor, mode = one.monitor or (one.metric, one.better)
    panels = [["loss"], *([f"val_{name}"] for name in dict.fromkeys((monitor, one.metric)))]
    return curves.curves(curve, panels, monitor, mode)


def against_seconds(
    compared: Sequence[tuple[ResultSet, Mapping[str, Mapping[str, Sequence[float]]]]],
) -> "figure.Figure":
    """Draws dev metrics against CPU seconds, a panel for each set and a line for each row."""
    columns = min(len(compared), 3)
    rows = -(-len(compared) // columns)
    picture = figure.Figure(figsize=(4.5 * columns, 3.4 * rows), layout="constrained")
    panels = picture.subplots(rows, columns, squeeze=False).flatten()
    for axes in panels[len(compared) :]:
        axes.set_visible(False)
    for axes, (one, lines_of) in zip(panels, compared, strict=False):
        for (name, curve), style in zip(lines_of.items(), styles.STYLES, strict=False):
            values = [one.scale * value for value in curve[f"val_{one.metric}"]]
            axes.plot(curve["cpu_seconds"], values, label=name, markersize=3.5, **style)
        axes.set(title=one.title, xlabel="CPU seconds", ylabel=f"{one.label} on dev")
        axes.title.set_fontsize(9)
        axes.legend(fontsize=8)
    return picture
