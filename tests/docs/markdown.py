"""The code blocks of a page of documentation."""

import dataclasses
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the heading above it, and the line it begins on."""

    language: str
    text: str
    heading: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Returns the fenced blocks of a page, in order."""
    found, heading, lines = [], "", page.read_text(encoding="utf-8").splitlines()
    numbers = iter(range(len(lines)))
    for number in numbers:
        if match := re.match(r"#+ (.*)", lines[number]):
            heading = match[1]
        elif lines[number].startswith("```"):
            inside = []
            for last in numbers:
                if lines[last] == "```":
                    break
                inside.append(lines[last] + "\n")
            found.append(Block(lines[number][3:], "".join(inside), heading, number + 2))
    return found
