"""What a visitor is told where there is no answer, and what an exported model is called."""

from pathlib import Path

import pytest

from rnnapps.demo.found import Found
from rnnapps.errors import UserError

gr = pytest.importorskip("gradio", reason="Gradio, the extra `demo`, is not installed")

from rnnapps.demo import page, tab  # noqa: E402  (they need Gradio)
from rnnapps.demo.candidates import Candidates  # noqa: E402


class Named(tab.Tab):
    title = "Translation"


def of(folder):
    return Named(Found("translation", Path(folder) / "1"), None)


def test_a_mistake_and_a_failure_are_told_in_words_and_clear_the_answer(caplog):
    connected = []
    with gr.Blocks(analytics_enabled=False):
        outputs = [gr.HTML(), gr.Radio(["old"])]
        of("translation").connect(
            lambda given: given(),
            [],
            outputs,
            gr.HTML(),
            [lambda told, *_, **__: connected.append(told)],
        )
    (told,) = connected

    def raise_(error):
        raise error

    assert told(lambda: ("new", "list")) == ["new", "list", ""]
    html, radio, message = told(lambda: raise_(UserError("no <b>. Received: 3")))
    assert html is None and radio["choices"] == [] and radio["value"] is None
    assert message == '<p role="alert">No &lt;b&gt;. Received: 3.</p>'
    *_, message = told(lambda: raise_(ZeroDivisionError("secret")))
    assert "The program failed" in message and "secret" not in message
    assert "secret" in caplog.text


def test_a_further_model_of_a_task_is_called_by_its_folder():
    names = {name: of(name).label for name in ("translation", "translation-eng-fra", "plays")}
    assert names == {
        "translation": "Translation",
        "translation-eng-fra": "Translation: eng-fra",
        "plays": "Translation: plays",
    }


def test_every_task_has_a_tab():
    import rnnapps.tasks
    from rnnapps.tasks.task import Task

    for file in Path(rnnapps.tasks.__file__).parent.glob("*.py"):
        __import__(f"rnnapps.tasks.{file.stem}")
    ours = [task for task in Task.__subclasses__() if task.__module__.startswith("rnnapps.tasks.")]
    assert {task.name for task in ours} == set(page.TABS)


def test_candidates_are_told_with_their_probability_and_what_is_none_is_left_out():
    class Served:
        def call(self, signature, **given):
            assert signature == "decode" and given == {"text": ["a"], "beam": 4, "nbest": 3}
            return {
                "translation": [["uno", "due", "uno", ""]],
                "score": [[-0.5, -9.0, -0.6, float("-inf")]],
            }

    given = of("translation")
    given.served = Served()
    given.model.__dict__["config"] = {"beam_width": 4}
    candidates = Candidates(given, "translation")
    found = candidates.find(4, 3, text="a")
    assert found == {"uno": -0.5, "due": -9.0}
    assert candidates.chosen(found) == {
        "choices": [("60.7% · uno", "uno"), ("< 0.1% · due", "due")],
        "value": "uno",
    }
    with pytest.raises(UserError, match="Received: 3 candidates, beam width 2"):
        candidates.find(2, 3, text="a")
