"""The tab of a sentiment model: the label, and the words that moved it."""

import gradio as gr
import numpy as np

from rnnapps.data.printable import printable
from rnnapps.demo.tab import Tab, facts_line, panel, require_text, table
from rnnapps.figures.coloured_text import coloured_html
from rnnapps.inspection.occlusion import Occlusion, occlusion

_MOST_CHARACTERS = 1_000
_LISTED = 6
# In bits: where no word moves the answer more than this, all colours are pale.
_FULL_COLOUR = 2.0


class SentimentTab(Tab):
    """Labels a text, and leaves out each of its words in turn."""

    title = "Sentiment"
    headline = ("accuracy",)

    _examples = (
        "The room was small and the bathroom was dirty, but the view was wonderful.",
        "There is nothing to like in this movie.",
        "This café is great, the staff is really friendly and the coffee is delicious.",
        "I would not recommend this hotel to anyone.",
    )

    def lay_out(self) -> None:
        label, moved = self._answer(self._examples[0])
        self.introduce(
            "Is a text for or against its subject? Each word is left out in turn: what then "
            "becomes of the answer tells how much the word moved it."
        )
        with gr.Row():
            with gr.Column(scale=5):
                text = gr.Textbox(
                    self._examples[0], label="Text", lines=4, elem_id=self.id_of("text")
                )
                button = gr.Button("Answer", variant="primary", elem_id=self.id_of("answer"))
                mistake = self.mistakes()
                examples = self.examples(text, self._examples)
            with gr.Column(scale=6):
                outputs = [
                    gr.Label(label, label="Probabilities", elem_id=self.id_of("label")),
                    gr.HTML(moved, elem_id=self.id_of("words"), elem_classes="plain"),
                ]
        triggers = [button.click, text.submit, examples.load_input_event.then]
        self.connect(self._answer, [text], outputs, mistake, triggers)
        self.tell_limits()

    def _answer(self, text: str) -> tuple[dict[str, float], str]:
        found = occlusion(self._probabilities, require_text(text, _MOST_CHARACTERS))
        names = self.model.asset_lines("labels.txt")
        chosen = int(found.whole.argmax())
        return dict(zip(names, found.whole.tolist(), strict=True)), _moved(found, chosen, names)

    def _probabilities(self, texts: list[str]) -> list[list[float]]:
        return self.served.call("serving_default", text=texts)["probabilities"]


def _moved(found: Occlusion, chosen: int, names: list[str]) -> str:
    """Shows the text in the colours of its words, and lists those that moved the answer most."""
    evidence = found.evidence(chosen)
    values = found.by_character(evidence)
    shown = printable(found.text, keep="\n")
    order = np.argsort(-np.abs(evidence), kind="stable")[:_LISTED]
    rows = [
        (
            shown[slice(*found.spans[place])],
            f"{found.without[place, chosen]:.1%}",
            f"{evidence[place]:+.1f} bits".replace("-", "−"),
        )
        for place in order
    ]
    return panel(
        "The words that moved it",
        coloured_html(shown, values, _FULL_COLOUR, "RdBu"),
        facts_line(
            f"Blue words speak for “{names[chosen]}”, red words against it; the stronger the "
            "colour, the more."
        ),
        table(("Left out", f"“{names[chosen]}” then has", "Evidence"), rows),
    )
