"""What recurrent networks do, shown: one documented claim a file, with a number and a picture.

Each experiment is a module with a dataclass `Size` of how large it is, two of them, `FULL` and
`REDUCED`, which takes seconds, and

    run(size: Size = FULL, seed: int = 0) -> Result

Its name on the command line is that of its file, with hyphens.
"""

NAMES = (
    "gradient-flow",
    "memory-gap",
    "both-sides",
    "word-classes",
    "ngrams",
    "learning-to-execute",
    "forget-bias",
    "sentence-vectors",
    "tracking-units",
)
