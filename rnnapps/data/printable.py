"""Text that may be shown on a terminal, whoever wrote it."""

import unicodedata

# White space and what moves the cursor to another line shows as a blank.
_BLANKS = "\t\n\v\f\r\x85\u2028\u2029"
# Formatting that reverses the text around it.
_BIDIRECTIONAL = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: str, keep: str = "") -> str:
    r"""Replaces what could do harm on a terminal, such as escape sequences.

    Args:
        text: the text.
        keep: characters that stay as they are. Defaults to none.

    Returns:
        The text with line ends and tabs as blanks and other control characters, halves of surrogate
        pairs and marks that reverse the text's direction as U+FFFD: as many characters as before.

    Example:
    >>> printable("a\tb\x1b[31m")
    'a b\ufffd[31m'
    """

    def character(c):
        if c in keep:
            return c
        if c in _BLANKS:
            return " "
        is_harmful = c in _BIDIRECTIONAL or unicodedata.category(c) in ("Cc", "Cs")
        return "\ufffd" if is_harmful else c

    return "".join(map(character, text))
