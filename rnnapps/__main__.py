"""The `rnnapps` command: every task, and what else there is, under one name.

    rnnapps sentiment train --data reviews.csv
    rnnapps experiments memory-gap
    python -m rnnapps --help

`rnnapps TASK …` is `pipelines/TASK.py …`. What a command needs is imported when it is called.
"""

import importlib
import sys
from collections.abc import Sequence

TASKS = {
    "sentiment": ("Sentiment", "one label for a whole text"),
    "ner": ("Ner", "a tag for each token: named entities, parts of speech"),
    "language_model": ("LanguageModel", "what comes next: scores texts and writes them"),
    "translation": ("Translation", "a sentence in another language"),
    "captioning": ("Captioning", "a sentence about an image"),
}
# A module with `main(argv) -> int`, and what it does.
OTHERS = {
    "experiments": ("rnnapps.experiments.command", "what recurrent networks do, shown"),
    "demo": ("rnnapps.demo.command", "the exported models on a page in the browser"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        argv: its name and its arguments. Defaults to those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake of the user's.
    """
    name, *arguments = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        print(_help())
        return 0
    if name == "--version":
        print(importlib.import_module("rnnapps").__version__)
        return 0
    if name not in TASKS and name not in OTHERS:
        known = ", ".join((*TASKS, *OTHERS))
        print(f"error: no command {name!r}; there are {known}", file=sys.stderr)
        return 2
    sys.argv[0] = f"rnnapps {name}"  # which --help calls the command
    if name in OTHERS:
        return importlib.import_module(OTHERS[name][0]).main(arguments)
    task_class = getattr(importlib.import_module(f"rnnapps.tasks.{name}"), TASKS[name][0])
    return importlib.import_module("rnnapps.cli").main(task_class, arguments)


def _help() -> str:
    lines = ["usage: rnnapps COMMAND …", "", "tasks: train, evaluate, predict, tune and export", ""]
    lines += [f"  {name:<16}{meaning}" for name, (_, meaning) in TASKS.items()]
    lines += ["", "others:", ""]
    lines += [f"  {name:<16}{meaning}" for name, (_, meaning) in OTHERS.items()]
    return "\n".join([*lines, "", "`rnnapps COMMAND --help` tells more."])


if __name__ == "__main__":
    sys.exit(main())
