"""Where an agent may write."""

from __future__ import annotations

import os
from pathlib import Path


def is_writable(path: object, tree: Path) -> bool:
    """Whether it lies below the tree, links resolved as the write itself would, and not in git's
    own files. What is no path lies nowhere."""
    if not isinstance(path, str) or "\0" in path:
        return False
    root = Path(os.path.realpath(tree))
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(root) or real == root:
        return False
    return not any(is_git(part) for part in real.relative_to(root).parts)


def is_git(part: str) -> bool:
    """Whether a part of a path is git's own folder, on a file system that folds case too."""
    return part.casefold() == ".git"
