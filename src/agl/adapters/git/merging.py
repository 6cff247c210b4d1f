"""How AGL lets git merge."""

from __future__ import annotations

from agl.adapters.git.runner import LONG_S, GitAt
from agl.ports.errors import UpstreamError

# What a person set for their own merges, and must have no effect on AGL's: git's own defaults.
# git 2.46 and newer merge by diff.algorithm.
_SETTINGS = (
    "diff.algorithm=histogram",
    "merge.conflictStyle=merge",
    "merge.default=text",
    "merge.directoryRenames=conflict",
    "merge.renameLimit=7000",
    "merge.renames=true",
    "merge.renormalize=false",
)


def options(*more: str) -> tuple[str, ...]:
    """The settings, and more of them, as git's own options before its command."""
    return tuple(part for setting in (*_SETTINGS, *more) for part in ("-c", setting))


async def merged_tree(git: GitAt, other: str) -> str | None:
    """The tree that a merge of `other` into HEAD leaves on disk, its conflicts between markers;
    None where git does not say, as before 2.38."""
    merge = ("merge-tree", "--write-tree", "--no-messages", "HEAD", other)
    try:
        answer = await git.run(*options(), *merge, check=False, timeout_s=LONG_S)
    except UpstreamError:
        return None
    # git-merge-tree(1): 0 for a clean merge and 1 for one with conflicts, the tree in line 1.
    tree, _, _ = answer.text.partition("\n")
    return tree if answer.status in (0, 1) and len(tree) in (40, 64) else None
