"""What a tree's HEAD was at since AGL moved it last."""

from __future__ import annotations

from pathlib import Path

OURS = b"agl"


def moved_through(git_dir: Path, dealt: int = 0) -> tuple[tuple[str, ...], int]:
    """Where AGL's own last move left HEAD and where it was moved since, oldest first, and how many
    lines the log has. Of the first `dealt` lines only the last still counts."""
    entries = _entries(git_dir / "logs" / "HEAD")
    found: list[str] = []
    for number in range(len(entries), 0, -1):
        _, new, action = entries[number - 1]
        found.append(new)
        if action.startswith(OURS) or number == dealt:
            break
    return tuple(reversed(found)), len(entries)


def _entries(log: Path) -> list[tuple[str, str, bytes]]:
    """Old and new commit and action of each line, which reads `old new who <mail> time
    zone<TAB>action`; the action of AGL's own moves is its GIT_REFLOG_ACTION."""
    try:
        lines = log.read_bytes().splitlines()
    except OSError:
        return []
    found: list[tuple[str, str, bytes]] = []
    for line in lines:
        ids, _, action = line.partition(b"\t")
        old, _, rest = ids.decode("ascii", "replace").partition(" ")
        found.append((old, rest.partition(" ")[0], action))
    return found


def strangers(git_dir: Path, branch_log: Path, start: str) -> tuple[str, ...]:
    """The commits that a branch was moved to since it was at `start` without this tree's HEAD ever
    coming there: git writes a move into the log of a HEAD only in the tree in which it is made."""
    arrived = {new for old, new, _ in _entries(git_dir / "logs" / "HEAD") if old != new}
    since: list[str] = []
    for old, new, _ in reversed(_entries(branch_log) if arrived else []):
        if new == start:
            break
        since.append(new)
        if old == start:
            break
    else:
        return ()
    return tuple(one for one in reversed(since) if one not in arrived)


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
