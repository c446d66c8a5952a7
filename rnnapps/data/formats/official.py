"""The splits that a folder comes with: its files or folders named train, dev and test."""

import os

PART_NAMES = {
    "train": "train",
    "dev": "dev",
    "val": "dev",
    "valid": "dev",
    "validation": "dev",
    "testa": "dev",
    "test": "test",
    "testb": "test",
}


def official_splits(path: str) -> dict[str, str] | None:
    """Finds a folder's own splits: `train.tsv`, `dev.tsv`, `test.tsv`, or folders of those names.

    A folder has splits when it has train and at least one of dev (also called val, valid,
    validation or testa) and test (or testb). A part in several files (`train.pos`, `train.neg`) is
    their list. Where no name begins with its part, all may begin alike: `eng.train`, `eng.testa`.

    Args:
        path: A file or a folder.

    Returns:
        Part to path (a comma-separated list where there are several files), or None.
    """
    if not os.path.isdir(path):
        return None
    corpora: dict[str, dict[str, list[str]]] = {}
    for name in sorted(os.listdir(path)):
        pieces = name.lower().split(".")
        at = next((at for at, piece in enumerate(pieces) if piece in PART_NAMES), None)
        if at is not None and pieces[0]:
            parts = corpora.setdefault(".".join(pieces[:at]), {})
            parts.setdefault(PART_NAMES[pieces[at]], []).append(os.path.join(path, name))
    whole = {name: parts for name, parts in corpora.items() if "train" in parts and len(parts) > 1}
    found = whole.get("") or (next(iter(whole.values())) if len(whole) == 1 else {})
    return {part: ",".join(paths) for part, paths in found.items()} or None
