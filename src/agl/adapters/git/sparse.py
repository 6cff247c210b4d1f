"""Trees that hold only a part of the files, as a person's checkout does."""

from __future__ import annotations

import shutil
from pathlib import Path

from agl.adapters.git.runner import Git

_PATTERNS = Path("info", "sparse-checkout")
_SETTINGS = ("core.sparseCheckout", "core.sparseCheckoutCone")


async def follow(git: Git, checkout: Path, git_dir: Path) -> None:
    """Makes a new tree, before it is filled, as sparse as the checkout; both by their git
    directories. Git itself gives it what the main tree has, and only from 2.36 on."""
    theirs, own = checkout / _PATTERNS, git_dir / _PATTERNS
    if not (theirs.is_file() or own.is_file()):
        return
    asked = await git.at(checkout).run(
        "config", "--type=bool", "--get-regexp", r"^core\.sparsecheckout(cone)?$", check=False
    )
    values = dict(line.split(" ", 1) for line in asked.text.splitlines())
    is_sparse = theirs.is_file() and values.get("core.sparsecheckout") == "true"
    if is_sparse:
        own.parent.mkdir(exist_ok=True)
        shutil.copyfile(theirs, own)
    else:
        own.unlink(missing_ok=True)
    # Where no tree has settings of its own, those of the repository count, and this file does not.
    settings = str(git_dir / "config.worktree")
    for key in _SETTINGS:
        value = values.get(key.lower(), "false") if is_sparse else "false"
        await git.at(git_dir).run("config", "--file", settings, key, value)
