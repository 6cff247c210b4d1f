"""What a tree's HEAD was at since AGL moved it last."""

from __future__ import annotations

from pathlib import Path

OURS = b"agl"


def moved_through(git_dir: Path, dealt: int = 0) -> tuple[tuple[str, ...], int]:
    """Where AGL's own last move left HEAD and where it was moved since, oldest first, and how many
    lines the log has. Of the first `dealt` lines only the last still counts.

    A line is `old new who <mail> time zone<TAB>action`; that of AGL's moves is GIT_REFLOG_ACTION.
    """
    try:
        lines = (git_dir / "logs" / "HEAD").read_bytes().splitlines()
    except OSError:
        return (), 0
    found: list[str] = []
    for number in range(len(lines), 0, -1):
        ids, _, action = lines[number - 1].partition(b"\t")
        _, _, rest = ids.partition(b" ")
        found.append(rest.split(b" ", 1)[0].decode("ascii", "replace"))
        if action.startswith(OURS) or number == dealt:
            break
    return tuple(reversed(found)), len(lines)


def operation_commits(git_dir: Path) -> tuple[str, ...]:
    """The commits that a merge, pick or rebase in the middle of its work would take up again."""
    return tuple(commit for name in _COMMITS for commit in _commits_in(git_dir / name))


def merge_heads(git_dir: Path) -> tuple[str, ...]:
    """The commits that a merge in the middle of its work brings in."""
    return _commits_in(git_dir / "MERGE_HEAD")


def _commits_in(file: Path) -> tuple[str, ...]:
    try:
        words = file.read_text("ascii", "replace").split()
    except OSError:
        return ()
    return tuple(word for word in words if len(word) in (40, 64))


def in_operation(git_dir: Path) -> bool:
    """Whether a merge, pick, revert, rebase or bisection is in the middle of its work."""
    return any((git_dir / name).exists() for name in _MARKS)


_MARKS = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)
_COMMITS = (
    "MERGE_HEAD",
    "MERGE_AUTOSTASH",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge/orig-head",
    "rebase-merge/autostash",
    "rebase-apply/orig-head",
    "rebase-apply/autostash",
)
OPERATION_FILES = (
    *_MARKS,
    "MERGE_AUTOSTASH",
    "MERGE_MODE",
    "MERGE_MSG",
    "SQUASH_MSG",
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_START",
    "BISECT_TERMS",
)
