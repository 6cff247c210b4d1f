"""Commits that are kept: each under a ref of its own, told about in its message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agl.adapters.git.runner import GitAt
from agl.ports.errors import InputError, UpstreamError
from agl.ports.ids import Label
from agl.ports.workspace import Keeping, KeptItem

PREFIX = "refs/agl/kept/"
_SUBJECT = "agl kept: "
_ATTEMPTS = 20
# By a ref, or by the lock of a git that was killed in this second.
_TAKEN = ("already exists", ".lock': File exists")
_FORMAT = "%00".join(
    ("%(refname)", "%(objectname)", "%(tree)", "%(parent)", "%(contents)", "")
)  # each field ends with a NUL


@dataclass(frozen=True, slots=True)
class KeptRef:
    """A ref below PREFIX. `commit` is what it is at; the item may name that commit's parent."""

    ref: str
    commit: str
    tree: str
    parents: tuple[str, ...]
    item: KeptItem


async def kept_refs(git: GitAt, label: Label | None = None) -> tuple[KeptRef, ...]:
    """What is kept, oldest first."""
    answer = await git.run(
        "for-each-ref", f"--format={_FORMAT}", PREFIX + (f"{label}/" if label else "")
    )
    fields = answer.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    rows = zip(*(iter(fields),) * 5, strict=True)
    found = [
        KeptRef(ref.strip(), commit, tree, tuple(parents.split()), item)
        for ref, commit, tree, parents, message in rows
        if (item := _item(ref.strip(), commit, message)) is not None
    ]
    return tuple(sorted(found, key=lambda kept: (kept.item.when, kept.ref)))


async def keep_commit(
    git: GitAt, tree: str, parents: Sequence[str], keeping: Keeping, when: datetime
) -> KeptItem:
    """Keeps a tree with its parents under a new ref; what was kept before is found again."""
    before = await kept_refs(git, keeping.scope.label)
    for one in before:
        if (one.tree, one.parents) == (tree, tuple(parents)):
            return one.item
    return await _keep(git, tree, parents, keeping, when, before)


async def keep_tip(git: GitAt, tip: str, keeping: Keeping, when: datetime) -> KeptItem:
    """Keeps a commit as it is: the item names it, and the ref is at a child of it that says why."""
    before = await kept_refs(git, keeping.scope.label)
    for one in before:
        if one.item.commit == tip:
            return one.item
    return await _keep(git, f"{tip}^{{tree}}", [tip], keeping, when, before, tip)


async def drop_refs(git: GitAt, refs: Iterable[KeptRef]) -> None:
    """Deletes refs that are still where they were seen."""
    lines = b"".join(b"delete %s\0%s\0" % (one.ref.encode(), one.commit.encode()) for one in refs)
    if lines:
        await git.run("update-ref", "-z", "--stdin", stdin=lines)


async def _keep(
    git: GitAt,
    tree: str,
    parents: Sequence[str],
    keeping: Keeping,
    when: datetime,
    before: Sequence[KeptRef],
    tip: str | None = None,
) -> KeptItem:
    message = _message(keeping, when, tip)
    flags = [part for parent in parents for part in ("-p", parent)]
    made = await git.run("commit-tree", tree, *flags, "-F", "-", stdin=message.encode())
    commit = made.text
    stamp = f"{when.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    start = f"{PREFIX}{keeping.scope.label}/{stamp}-{keeping.scope.tree}-"
    number = 1 + sum(one.ref.startswith(start) for one in before)
    for attempt in range(number, number + _ATTEMPTS):
        ref = f"{start}{attempt}"
        answer = await git.run("update-ref", ref, commit, "0" * len(commit), check=False)
        if answer.status == 0:
            item = _item(ref, commit, message)
            assert item is not None
            keeping.tell(item)
            return item
        if not any(why in answer.stderr for why in _TAKEN):
            break
    raise UpstreamError(f"could not keep {commit} under {ref!r}: {answer.stderr.strip()}")


def _message(keeping: Keeping, when: datetime, tip: str | None) -> str:
    lines = [
        _SUBJECT + " ".join(keeping.why.split()),
        "",
        f"label: {keeping.scope.label}",
        f"namespace: {keeping.scope.tree}",
        f"when: {when.astimezone(UTC).isoformat(timespec='microseconds')}",
        *([f"commit: {tip}"] if tip else []),
    ]
    return "\n".join(lines) + "\n"


def _item(ref: str, commit: str, message: str) -> KeptItem | None:
    subject, _, rest = message.partition("\n")
    told = dict(line.split(": ", 1) for line in rest.splitlines() if ": " in line)
    if not subject.startswith(_SUBJECT) or not {"label", "namespace", "when"} <= told.keys():
        return None
    try:
        label = Label(told["label"])
    except InputError:
        return None
    return KeptItem(
        name=ref.removeprefix(PREFIX),
        label=label,
        namespace=told["namespace"],
        when=told["when"],
        why=subject.removeprefix(_SUBJECT),
        commit=told.get("commit", commit),
    )
