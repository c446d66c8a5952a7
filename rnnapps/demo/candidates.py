"""The candidates of a beam search, of which a visitor looks at one more closely."""

import math
from typing import Any

import gradio as gr

from rnnapps.data.printable import printable
from rnnapps.demo.tab import Tab
from rnnapps.errors import UserError

_WIDEST, _SHOWN = 12, 3


class Candidates:
    """The settings of a tab's search, and the list of what it found.

    Args:
        tab: the tab of a model with the signature `decode`.
        output: the output of `decode` that holds the candidates, such as `translation`.
    """

    def __init__(self, tab: Tab, output: str):
        self._tab, self._output = tab, output
        self.beam_width = tab.model.config["beam_width"]
        self.shown = min(_SHOWN, self.beam_width)

    def settings(self) -> list[gr.Slider]:
        """Makes the sliders: the beam width, and how many candidates are shown."""
        widest = max(_WIDEST, self.beam_width)
        beam = gr.Slider(
            *(1, widest, self.beam_width),
            step=1,
            label="Beam width",
            info="How many candidates the search keeps",
            elem_id=self._tab.id_of("beam"),
        )
        shown = gr.Slider(
            *(1, widest, self.shown),
            step=1,
            label="Candidates",
            info="How many are shown: at most the beam width",
            elem_id=self._tab.id_of("nbest"),
        )
        return [beam, shown]

    def choice(self, label: str, found: dict[str, float]) -> gr.Radio:
        """Makes the list of candidates, of which the first is chosen."""
        return gr.Radio(
            **self.chosen(found),
            label=label,
            elem_id=self._tab.id_of("candidates"),
            elem_classes="listed",
        )

    def chosen(self, found: dict[str, float]) -> dict[str, Any]:
        """Returns what the list shows of candidates: each with its probability."""
        choices = [
            (f"{_percent(score)} · {printable(text)}", text) for text, score in found.items()
        ]
        return {"choices": choices, "value": next(iter(found), None)}

    def find(self, beam: int, nbest: int, **given: Any) -> dict[str, float]:
        """Searches for what to say of one input.

        Args:
            beam: how many candidates are kept.
            nbest: how many are asked for.
            **given: the input by its name in the signature.

        Returns:
            The candidates, best first, each with its log-probability.

        Raises:
            UserError: more are asked for than kept.
        """
        if nbest > beam:
            raise UserError(
                "there are at most as many candidates as the beam is wide. "
                f"Received: {nbest} candidates, beam width {beam}"
            )
        inputs = {name: [value] for name, value in given.items()}
        found = self._tab.served.call("decode", beam=beam, nbest=nbest, **inputs)
        candidates: dict[str, float] = {}
        for text, score in zip(found[self._output][0], found["score"][0], strict=True):
            if score > -math.inf:  # there is one in this place
                candidates.setdefault(text, score)
        return candidates


def _percent(log_probability: float) -> str:
    probability = math.exp(log_probability)
    return f"{probability:.1%}" if probability >= 0.001 else "< 0.1%"
