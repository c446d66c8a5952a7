"""The one exception that stands for a user's mistake, and other errors told in a line."""

import re


class UserError(ValueError):
    """A mistake in what the user gave, told in one or two plain lines.

    The command line prints the message and ends with status 2; in Python it is an ordinary
    `ValueError`. The message says what is wrong, where (file and line), and what to do.
    """


def reason(error: Exception) -> str:
    """Says in one line what went wrong.

    Example:
    >>> reason(ValueError("A heading:\nno digits"))
    'ValueError: no digits'
    """
    if isinstance(error, UserError):
        return " ".join(str(error).split())
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # TensorFlow and Keras put headings before what they tell.
    telling = [line for line in lines if not line.endswith((":", ">"))] or lines
    told = next((line for line in lines if "OOM" in line), telling[0] if telling else "")
    told = re.sub(r"^\{\{.*?\}\} ", "", told)  # TensorFlow puts its own node's name first
    return f"{type(error).__name__}: {told[:200]}" if told else type(error).__name__
