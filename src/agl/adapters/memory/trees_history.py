"""Questions to a repository in memory."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

from agl.adapters.memory.repository import MemoryRepository
from agl.ports.errors import AglError, InputError
from agl.ports.history import History


class MemoryHistory(History):
    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    async def problems(self) -> tuple[AglError, ...]:
        try:
            self._repository.head(self._repository.checkout)
        except InputError as error:
            return (error,)
        return ()

    async def resolve(self, ref: str) -> str:
        repository = self._repository
        if ref == "HEAD":
            return repository.head(repository.checkout)
        found = repository.branches.get(ref.removeprefix("refs/heads/"))
        if found is None and len(ref) >= 4:
            found = next((one for one in repository.commits if one.startswith(ref)), None)
        if found is None:
            raise InputError(f"no commit is called {ref!r}; `git log --all` shows what there is")
        return found

    async def tip(self, branch: str) -> str | None:
        return self._repository.branches.get(branch)

    async def checked_out_at(self, branch: str) -> Path | None:
        return self._repository.checked_out_at(branch)

    async def missing(self, commits: Iterable[str]) -> frozenset[str]:
        return frozenset(commit for commit in commits if commit not in self._repository.commits)

    async def is_ancestor(self, older: str, newer: str) -> bool:
        return self._repository.contains(newer, older)

    async def between(self, older: str, newer: str) -> tuple[str, ...]:
        repository = self._repository
        new = set(repository.reachable(newer)) - set(repository.reachable(older))
        return tuple(
            f"{commit} {repository.commits[commit].message.partition(chr(10))[0]}"
            for commit in reversed(repository.commits)
            if commit in new
        )

    async def patch(self, older: str, newer: str) -> str:
        before, after = await self.files(older), await self.files(newer)
        parts: list[str] = []
        for path in sorted(before.keys() | after.keys()):
            then, now = before.get(path), after.get(path)
            if then != now:
                parts += unified_diff(
                    (then or b"").decode(errors="replace").splitlines(keepends=True),
                    (now or b"").decode(errors="replace").splitlines(keepends=True),
                    "/dev/null" if then is None else f"a/{path}",
                    "/dev/null" if now is None else f"b/{path}",
                )
        return "".join(parts)

    async def message(self, commit: str) -> str:
        return self._repository.commits[commit].message.rstrip()

    async def files(self, commit: str) -> dict[str, bytes]:
        files = self._repository.files(commit)
        return {path: file.content for path, file in files.items()}

    async def uncommitted(self, folder: Path) -> tuple[str, ...]:
        repository = self._repository
        tree = repository.tree_around(folder)
        if tree is None:
            return ()
        found, head = repository.scan(tree), repository.files(repository.born(tree))
        changed = [
            path
            for path in found.files.keys() | head.keys()
            if found.files.get(path) != head.get(path)
        ]
        return tuple(sorted((*changed, *found.nested)))
