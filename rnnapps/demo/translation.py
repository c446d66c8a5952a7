"""The tab of a translation model: translations, and where it looked for each token."""

from typing import Any

import gradio as gr
import numpy as np

from rnnapps.data.printable import printable
from rnnapps.data.segmentation import labels
from rnnapps.demo.candidates import Candidates
from rnnapps.demo.tab import Tab, facts_line, panel, picture, require_text
from rnnapps.figures.alignment import alignment

_MOST_CHARACTERS = 500


class TranslationTab(Tab):
    """Translates a sentence, and draws the attention of the translation that is chosen."""

    title = "Translation"
    headline = ("bleu", "chrf")

    _examples = (
        "Do you want to dance with me?",
        "The old woman is reading a letter in the garden.",
        "I have never seen such a beautiful house.",
        "We are going to the sea tomorrow.",
    )

    def lay_out(self) -> None:
        self._candidates = Candidates(self, "translation")
        first = self._examples[0]
        found = self._candidates.find(
            self._candidates.beam_width, self._candidates.shown, text=first
        )
        best = next(iter(found), "")
        self.introduce(
            "How do others say it? A beam search writes several translations; of the one that is "
            "chosen the picture shows which tokens were looked at when each was written."
        )
        answered = gr.State(first)
        with gr.Row():
            with gr.Column(scale=5):
                text = gr.Textbox(first, label="Sentence", lines=2, elem_id=self.id_of("text"))
                button = gr.Button("Translate", variant="primary", elem_id=self.id_of("answer"))
                mistake = self.mistakes()
                examples = self.examples(text, self._examples)
                with gr.Accordion("Settings of the search", open=False):
                    settings = self._candidates.settings()
            with gr.Column(scale=6):
                translation = gr.Textbox(
                    best,
                    label="Translation",
                    lines=1,
                    interactive=False,
                    buttons=["copy"],
                    elem_id=self.id_of("translation"),
                )
                chosen = self._candidates.choice("Candidates, best first", found)
                seen = gr.HTML(
                    self._look(first, best), elem_id=self.id_of("attention"), elem_classes="plain"
                )
        self.connect(
            self._answer,
            [text, *settings],
            [translation, chosen, answered, seen],
            mistake,
            [button.click, text.submit, examples.load_input_event.then],
        )
        self.connect(self._look_again, [answered, chosen], [seen], mistake, [chosen.input])
        self.tell_limits()

    def _answer(self, text: str, beam: int, nbest: int) -> tuple[str, Any, str, str]:
        require_text(text, _MOST_CHARACTERS)
        found = self._candidates.find(beam, nbest, text=text)
        best = next(iter(found), "")
        chosen = gr.Radio(**self._candidates.chosen(found))
        return printable(best), chosen, text, self._look(text, best)

    def _look_again(self, text: str, translation: str) -> tuple[str]:
        return (self._look(text, translation),)

    def _look(self, text: str, translation: str) -> str:
        if "attention" not in self.served.signatures:
            return panel("Attention", facts_line("This model has no attention to draw."))
        seen = self.served.call("attention", text=[text], translation=[translation])
        source, target = (labels(seen[side][0]) for side in ("source", "target"))
        drawn = alignment(np.array(seen["weights"][0]), source, target)
        meaning = (
            "A row for each token that was written, a column for each that was read; the darker, "
            "the more it was looked at."
        )
        return panel("Attention", picture(drawn, meaning))
