"""A workflow on fakes alone: no git, no process, no model; real files in a temporary folder."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agl.api import runs
from agl.api.endings import Report
from agl.config import container
from agl.ports.errors import InputError
from agl.ports.ids import Label, Namespace, Scope
from agl.ports.ledger import Entry, Kind
from agl.ports.scripts import Plays
from agl.ports.store import Address, Document, Store
from agl.ports.terminal import Answers
from agl.ports.verifier import Verdicts
from agl.sdk._engine.ledger import Ledger
from agl.sdk.workflows import Workflow


class Interrupted(BaseException):
    """Stands for the death of the process; no workflow catches it."""


class Harness:
    """One project in memory. `run` and `resume` go through the same doors as the commands do, each
    as a process of its own: what one call recorded, the next one finds."""

    def __init__(
        self,
        folder: Path,
        *,
        agent: Plays | None = None,
        answers: Answers = (),
        verdicts: Verdicts = (),
        files: Mapping[str, str | bytes] | None = None,
        build: str | None = "build",
        max_wait_s: float = 0.0,
    ) -> None:
        first = {
            path: content.encode() if isinstance(content, str) else content
            for path, content in (files or {}).items()
        }
        self.agent: Plays | None = agent
        self.answers: Answers = answers
        self.verdicts: Verdicts = verdicts
        self.max_wait_s = max_wait_s
        self._build = build
        self._folder = folder
        self._now = container.in_memory(folder, files=first, build=build)
        self._workflow: Workflow[Any] | None = None
        self.ran: list[str] = []
        self.asked: list[str] = []

    def run(
        self,
        workflow: Workflow[Any],
        params: object = None,
        *,
        label: str = "run",
        interrupt_after: int | None = None,
    ) -> Report:
        """Begins a run. With `interrupt_after`, the process dies after so many entries.

        Raises:
            Interrupted: it died so.
            AglError: the run was refused.
        """
        self._workflow = workflow
        loaded = runs.Loaded(workflow.module, workflow)
        services = self._process(interrupt_after)
        return self._drive(
            runs.run(services, loaded, Label(label), params, max_wait_s=self.max_wait_s)
        )

    def resume(
        self,
        workflow: Workflow[Any] | None = None,
        *,
        label: str = "run",
        again: str | None = None,
        interrupt_after: int | None = None,
    ) -> Report:
        """Resumes a run in a new process; with `workflow`, under an edited one.

        Raises:
            Interrupted, AglError: as `run`.
        """
        chosen = workflow or self._workflow
        if chosen is None:
            raise InputError("nothing was run yet; call run first")
        loaded = runs.Loaded(chosen.module, chosen)
        services = self._process(interrupt_after)
        return self._drive(
            runs.resume(
                services,
                lambda _: loaded,
                Label(label),
                again=again,
                max_wait_s=self.max_wait_s,
            )
        )

    def recorded(self, *path: str, label: str = "run") -> tuple[Entry, ...]:
        """Every entry of the run itself, in order; with a path of namespaces, of that child: one
        by one, or joined as in "cats/kitten"."""
        scope = self._scope(path, label)
        return Ledger(self._now.services.store, scope).entries(scope)

    def files(self, label: str = "run") -> dict[str, str]:
        """The files at the head of the run's branch, as text."""
        branch = Scope(self._now.services.project, Label(label)).branch
        commit = self._now.repository.branches[branch]
        found = asyncio.run(self._now.services.history.files(commit))
        return {path: content.decode(errors="replace") for path, content in found.items()}

    def tree(self, *path: str, label: str = "run") -> Path:
        """The folder of the run's own tree, or of the child's at that path, as `recorded`."""
        return self._now.services.workspaces.folder(self._scope(path, label))

    @property
    def shown(self) -> list[str]:
        """The titles of the passive screens that the last process showed."""
        return [screen.title for screen in self._now.terminal.shown]

    @property
    def events(self) -> list[str]:
        """The kinds of the events that the last process told, in order."""
        return [event.kind for event in self._now.terminal.told]

    def _scope(self, path: tuple[str, ...], label: str) -> Scope:
        names = tuple(Namespace(name) for part in path for name in part.split("/"))
        return Scope(self._now.services.project, Label(label), names)

    def _process(self, interrupt_after: int | None) -> Any:
        self._now = container.in_memory(
            self._folder,
            agent=self.agent,
            answers=self.answers,
            verdicts=self.verdicts,
            build=self._build,
            after=self._now,
        )
        if interrupt_after is None:
            return self._now.services
        store = _Interrupting(self._now.services.store, interrupt_after)
        return dataclasses.replace(self._now.services, store=store)

    def _drive(self, work: Any) -> Report:
        try:
            report: Report = asyncio.run(work)
            return report
        except BaseExceptionGroup as group:
            if group.subgroup(Interrupted) is not None:
                raise Interrupted from group
            raise
        finally:
            self.ran = self._now.agent.ran
            self.asked = self._now.terminal.asked


class _Interrupting(Store):
    """Passes everything on, and dies once it has written so many entries."""

    def __init__(self, inner: Store, entries: int) -> None:
        self._inner = inner
        self._left = entries

    def read(self, address: Address) -> Document | None:
        return self._inner.read(address)

    def write(self, address: Address, document: Document) -> None:
        if self._left <= 0:
            raise Interrupted
        self._inner.write(address, document)
        if document.get("kind") in {kind.value for kind in Kind} and "fingerprint" in document:
            self._left -= 1
            if self._left == 0:
                raise Interrupted

    def remove(self, address: Address) -> None:
        self._inner.remove(address)

    def names(self, folder: Address) -> tuple[str, ...]:
        return self._inner.names(folder)

    def folders(self, folder: Address) -> tuple[str, ...]:
        return self._inner.folders(folder)

    def set_aside(self, address: Address) -> str:
        return self._inner.set_aside(address)

    def remove_folder(self, folder: Address) -> None:
        self._inner.remove_folder(folder)


def harness(
    tmp_path: Path,
    *,
    agent: Plays | None = None,
    answers: Answers = (),
    verdicts: Verdicts = (),
    files: Mapping[str, str | bytes] | None = None,
    build: str | None = "build",
    max_wait_s: float = 0.0,
) -> Harness:
    """A project on fakes. `agent` says what each step does (by name, as in a script's keys),
    `answers` what the person answers, `verdicts` what the build says, `files` what the repository
    holds at first. A provider that cannot answer is waited for, for `max_wait_s` seconds in a row,
    which pass at once."""
    return Harness(
        tmp_path,
        agent=agent,
        answers=answers,
        verdicts=verdicts,
        files=files,
        build=build,
        max_wait_s=max_wait_s,
    )
