"""Refs, read from files; with the reftable format git is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agl.adapters.git.runner import Git

HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True)
class Head:
    """What a HEAD names: a branch (without `refs/heads/`) or None, and the commit or None."""

    branch: str | None
    commit: str | None


class Refs:
    """The refs of one repository."""

    def __init__(self, git: Git, common_dir: Path) -> None:
        self._common = common_dir
        self._git = git

    @property
    def in_files(self) -> bool:
        return not (self._common / "reftable").exists()

    async def commit(self, ref: str) -> str | None:
        """The id that a full ref name is at, or None."""
        if self.in_files:
            return self._resolve(self._common, ref)
        found = await self._git.at(self._common).run(
            "rev-parse", "-q", "--verify", ref, check=False
        )
        return found.text if found.status == 0 else None

    async def symbolic(self, ref: str) -> str | None:
        """The ref that this one is only another name of, or None."""
        if self.in_files:
            file = self._common / ref
            if file.is_symlink():
                return str(file.readlink())
            text = _text(file) or ""
            return text.removeprefix("ref:").strip() if text.startswith("ref:") else None
        found = await self._git.at(self._common).run("symbolic-ref", "-q", ref, check=False)
        return found.text if found.status == 0 else None

    async def head(self, git_dir: Path) -> Head:
        """The HEAD of one tree."""
        if self.in_files:
            text = _text(git_dir / "HEAD") or ""
            if not text.startswith("ref:"):
                return Head(None, text or None)
            ref = text.removeprefix("ref:").strip()
            return Head(_branch(ref), self._resolve(self._common, ref))
        git = self._git.at(git_dir)
        name = await git.run("symbolic-ref", "-q", "HEAD", check=False)
        at = await git.run("rev-parse", "-q", "--verify", "HEAD", check=False)
        return Head(
            _branch(name.text) if name.status == 0 else None, at.text if at.status == 0 else None
        )

    async def below(self, prefix: str) -> dict[str, str]:
        """The refs whose names begin with `prefix`, which ends in a slash."""
        if self.in_files:
            packed = {
                ref: commit for ref, commit in self._packed().items() if ref.startswith(prefix)
            }
            folder = self._common / prefix
            loose = {
                str(file.relative_to(self._common)): text
                for file in folder.rglob("*")
                if not file.name.endswith(".lock") and (text := _text(file))
            }
            return packed | loose
        listed = await self._git.at(self._common).run(
            "for-each-ref", "--format=%(refname) %(objectname)", prefix
        )
        rows = (line.rpartition(" ") for line in listed.text.splitlines())
        return {ref: commit for ref, _, commit in rows}

    def _resolve(self, folder: Path, ref: str, depth: int = 5) -> str | None:
        text = _text(folder / ref)
        if not text:
            return self._packed().get(ref)
        if text.startswith("ref:"):
            return self._resolve(folder, text[4:].strip(), depth - 1) if depth else None
        return text

    def _packed(self) -> dict[str, str]:
        try:
            lines = (self._common / "packed-refs").read_bytes().splitlines()
        except OSError:
            return {}
        rows = (
            line.decode("utf-8", "surrogateescape").split(" ", 1)
            for line in lines
            if line[:1] not in (b"#", b"^")
        )
        return {row[1]: row[0] for row in rows if len(row) == 2}


def _branch(ref: str) -> str | None:
    return ref.removeprefix(HEADS) if ref.startswith(HEADS) else None


def _text(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None
