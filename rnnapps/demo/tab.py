"""What all tabs of the page share."""

import base64
import html
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import gradio as gr
from matplotlib.figure import Figure

from rnnapps.demo.found import Found
from rnnapps.errors import UserError
from rnnapps.figures.png import png
from rnnapps.serving import ServedModel

log = logging.getLogger("rnnapps")


class Tab:
    """One model's tab: what it is asked, and how its answer looks.

    A subclass lays out its components, the answer to the first example already in them, and calls
    `connect`.

    Args:
        model: the model's files.
        served: the model.
    """

    title: ClassVar[str]
    """What the task is called on the page."""
    headline: ClassVar[tuple[str, ...]]
    """The test metrics that stand above the answers."""

    def __init__(self, model: Found, served: ServedModel):
        self.model = model
        self.served = served

    @property
    def label(self) -> str:
        """What the tab is called."""
        variant = self.model.variant
        return f"{self.title}: {variant}" if variant else self.title

    def lay_out(self) -> None:
        """Makes the components of the tab, within Gradio's current block."""
        raise NotImplementedError

    def id_of(self, part: str) -> str:
        """Returns the id on the page of a part of this tab."""
        return f"{self.model.name}-{part}"

    def introduce(self, text: str) -> None:
        """Says what there is to see, and what the model is."""
        model, measured = self.model, self.model.metrics["test"]
        facts = [
            f"Trained on {_data_name(model.config['data'])}",
            f"{model.metrics['parameters']:,} parameters",
            *(
                f"{name.replace('_', ' ')} {_rounded(measured[name])}"
                for name in self.headline
                if name in measured
            ),
            f"version {model.version.name}",
        ]
        gr.HTML(f"<p>{html.escape(text)}</p>{facts_line(' · '.join(facts))}", elem_classes="plain")

    def tell_limits(self) -> None:
        """Shows what the model card says that the model cannot do, and the card itself."""
        gr.HTML(facts_line(self.model.limits), elem_classes="plain")
        with gr.Accordion("Model card", open=False):
            gr.Markdown(self.model.card)

    def mistakes(self) -> gr.HTML:
        """Makes the place where a mistake is told in words."""
        return gr.HTML(elem_id=self.id_of("mistake"), elem_classes=["mistake", "plain"])

    def examples(self, first: gr.components.Component, values: Sequence[Any]) -> gr.Examples:
        """Makes a list of values for the first input, each of which can be clicked."""
        return gr.Examples(
            [[value] for value in values],
            first,
            elem_id=self.id_of("examples"),
            api_visibility="private",
        )

    def connect(
        self,
        answer: Callable[..., Sequence[Any]],
        inputs: Sequence[gr.components.Component],
        outputs: Sequence[gr.components.Component],
        mistake: gr.HTML,
        triggers: Sequence[Callable[..., Any]],
    ) -> None:
        """Lets what a visitor does bring an answer, or say in words why there is none.

        Args:
            answer: takes the values of the inputs, and returns those of the outputs.
            inputs: what is asked.
            outputs: what shows the answer.
            mistake: the place for a mistake.
            triggers: methods that Gradio calls an event's, such as `button.click`.
        """

        cleared = [
            gr.update(choices=[], value=None) if isinstance(one, gr.Radio) else None
            for one in outputs
        ]

        def told(*values):
            try:
                return [*answer(*values), ""]
            except UserError as error:
                reason = f"{error}"
            except Exception:
                log.exception("%s could not answer", self.model.version)
                reason = "the program failed; what happened stands where it was started"
            reason = html.escape(reason[:1].upper() + reason[1:])
            return [*cleared, f'<p role="alert">{reason}.</p>']

        for trigger in triggers:
            trigger(told, inputs, [*outputs, mistake], api_visibility="private")


def require_text(text: str | None, most: int) -> str:
    """Returns a text that can be answered, or raises UserError."""
    if not text or not text.strip():
        raise UserError("there is nothing to answer: write a text")
    return require_short(text, most)


def require_short(text: str, most: int) -> str:
    """Returns a text of at most so many characters, or raises UserError."""
    if len(text) > most:
        raise UserError(
            f"the text is too long: at most {most:,} characters are taken. Received: {len(text):,}"
        )
    return text


def panel(title: str, *parts: str) -> str:
    """Returns pieces of HTML in a frame, below a title."""
    return f"<section class='panel'><h4>{html.escape(title)}</h4>{''.join(parts)}</section>"


def facts_line(text: str) -> str:
    """Returns a text as a line of HTML that holds back."""
    return f"<p class='facts'>{html.escape(text)}</p>"


def picture(figure: Figure, meaning: str) -> str:
    """Returns a figure as HTML, with what it shows in words."""
    content = base64.b64encode(png(figure)).decode()
    return (
        f'<img src="data:image/png;base64,{content}" alt="{html.escape(meaning)}">'
        f"{facts_line(meaning)}"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table as HTML."""

    def row(cells, kind):
        return "".join(
            ["<tr>", *(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in cells), "</tr>"]
        )

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _rounded(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _data_name(spec: str) -> str:
    """Names data without the folders that it was read from."""
    if spec == "sample":
        return "the bundled sample"
    if spec.startswith("tfds:"):
        return spec.removeprefix("tfds:")
    return ", ".join(part.rstrip("/").rpartition("/")[2] for part in spec.split(","))
