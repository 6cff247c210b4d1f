"""What would fail later, refused before anything is made."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from agl.adapters.git.discovery import main_tree
from agl.adapters.git.refs import HEADS, Refs
from agl.adapters.git.runner import Git
from agl.ports.errors import StateError, UpstreamError
from agl.ports.history import Repository
from agl.ports.ids import Label, collision_key


async def check_label(git: Git, repository: Repository, trees_root: Path, label: Label) -> None:
    check_trees_root(repository, trees_root)
    await _check_branches(git, repository, label)
    await _check_fetch(git, repository)


def check_trees_root(repository: Repository, trees_root: Path) -> None:
    """Refuses a root that cannot be written or lies in the repository; makes nothing."""
    for inside in (repository.common_dir, repository.top, main_tree(repository.common_dir)):
        if inside is not None and trees_root.is_relative_to(inside):
            raise StateError(
                f"the trees root {str(trees_root)!r} lies inside the repository {str(inside)!r}; "
                "set `trees_root` to a folder outside of it"
            )
    there = next(folder for folder in (trees_root, *trees_root.parents) if os.path.lexists(folder))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UpstreamError(
            f"no trees can be made in {str(trees_root)!r}: {str(there)!r} cannot be written; "
            "set `trees_root` to a folder that can"
        )


async def _check_branches(git: Git, repository: Repository, label: Label) -> None:
    refs = Refs(git, repository.common_dir)
    await refuse_no_room(refs, f"agl/_work/{label}")
    for ref in await refs.below(f"{HEADS}agl/"):
        branch = ref.removeprefix(HEADS)
        parts = branch.removeprefix("agl/").removeprefix("_work/").split("/")
        if collision_key(parts[0]) == collision_key(label):
            names = shlex.join([branch, f"old/{branch}"])
            raise StateError(
                f"branch {branch!r} is in the way of a new run {str(label)!r}; "
                f"`git branch -m {names}` keeps it under another name"
            )


async def refuse_no_room(refs: Refs, branch: str) -> None:
    """Refuses a branch where a part of its name is a branch: git keeps refs as files in folders."""
    parts = branch.split("/")
    for count in range(1, len(parts)):
        above = "/".join(parts[:count])
        if await refs.commit(HEADS + above) is not None:
            names = shlex.join([above, f"old/{above}"])
            raise StateError(
                f"branch {above!r} leaves no room for '{above}/…'; `git branch -m {names}` frees"
                " the name"
            )


async def _check_fetch(git: Git, repository: Repository) -> None:
    answer = await git.at(repository.common_dir).run(
        "config", "-z", "--get-regexp", r"^remote\..*\.fetch$", check=False
    )
    for entry in answer.stdout.decode("utf-8", "surrogateescape").split("\0"):
        key, _, refspec = entry.partition("\n")
        if refspec.rpartition(":")[2] == "refs/*":
            remote = key.removeprefix("remote.").removesuffix(".fetch")
            only = f"+refs/heads/*:refs/remotes/{remote}/*"
            raise StateError(
                f"a fetch from {remote!r} mirrors every ref ({refspec!r}) and would delete AGL's; "
                f"`git config {shlex.join([key, only])}` ends that"
            )
