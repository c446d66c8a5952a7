"""The splits that a folder comes with: its files or folders named train, dev and test."""

import os

PART_NAMES = {
    "train": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
}


def official_splits(path: str) -> dict[str, str] | None:
    """Finds a folder's own splits: `train.tsv`, `dev.tsv`, `test.tsv`, or folders of those names.

    A folder has splits when it has train and at least one of dev (also called val, valid or
    validation) and test. A part in several files (`train.pos`, `train.neg`) is their list.

    Args:
        path: A file or a folder.

    Returns:
        Part to path (a comma-separated list where there are several files), or None.
    """
    if not os.path.isdir(path):
        return None
    found: dict[str, list[str]] = {}
    for name in sorted(os.listdir(path)):
        part = PART_NAMES.get(name.partition(".")[0].lower())
        if part:
            found.setdefault(part, []).append(os.path.join(path, name))
    if "train" not in found or len(found) == 1:
        return None
    return {part: ",".join(paths) for part, paths in found.items()}
