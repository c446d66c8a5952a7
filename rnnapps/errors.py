"""The one exception that stands for a user's mistake."""


class UserError(ValueError):
    """A mistake in what the user gave, told in one or two plain lines.

    The command line prints the message and ends with status 2; in Python it is an ordinary
    `ValueError`. The message says what is wrong, where (file and line), and what to do.
    """
