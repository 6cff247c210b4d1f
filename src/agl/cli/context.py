"""What a command is called with, besides its arguments."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agl.cli.failures import stopped_page
from agl.cli.page import Page, say, write

if TYPE_CHECKING:
    from agl.api.projects import Initialised
    from agl.config.projects import Project
    from agl.config.settings import Settings
    from agl.ports.history import Repository
    from agl.ports.ids import Label
    from agl.sdk._engine.services import Services

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """`here` is the current folder, `home` what `--home` said; `as_json`: standard output is one
    JSON document."""

    environ: Mapping[str, str]
    here: Path
    home: str | None
    as_json: bool

    def settings(self) -> Settings:
        from agl.config.settings import resolve

        return resolve(self.environ, self.home)

    def project(self) -> tuple[Project, Repository]:
        from agl.api import projects

        return projects.find(self.settings(), self.here)

    def init(
        self,
        build: str | None = None,
        *,
        no_build: bool = False,
        setup: str | None = None,
        copy: tuple[str, ...] | None = None,
    ) -> Initialised:
        """Registers the repository. Where nobody said how it is checked, a person at a terminal is
        asked, while no event loop runs: Ctrl-C ends the question at once."""
        from agl.api import projects
        from agl.cli import asking

        def work(build: str | None, *, no_build: bool) -> Initialised:
            made = projects.init(
                self.settings(), self.here, build, no_build=no_build, setup=setup, copy=copy
            )
            return self.finish(made)

        try:
            return work(build, no_build=no_build)
        except projects.BuildNotSaid as question:
            if not asking.is_possible():
                raise
            said = asking.build_command(question.detected)
        return work(said, no_build=said is None)

    def register(self) -> None:
        """Does what `agl init` does, if the repository is new and somebody can be asked.

        Raises:
            NotFoundError: it is new, and nobody is there.
        """
        from agl.cli import asking
        from agl.ports.errors import NotFoundError

        try:
            self.project()
        except NotFoundError:
            if not asking.is_possible():
                raise
            project = self.init().project
            say(f"{project.name}: registered, build {project.build or 'none'}")

    def services(self, label: Label | None = None, *, watched: bool = False) -> Services:
        """The ports of the project around the current folder. `watched`: a person who is there sees
        the work drawn, unless standard output is for a machine."""
        from agl.config import container

        project, repository = self.project()
        drawn = watched and not self.as_json
        terminal = container.drawn_terminal() if drawn else container.plain_terminal()
        return container.real(self.settings(), project, repository, terminal, label)

    def finish(self, work: Coroutine[Any, Any, T], resumes: str | None = None) -> T:
        """Runs api work to its end, what it prints going to standard error. A signal stops it, says
        what resumes it, and ends AGL."""
        from agl.cli import signals
        from agl.cli.apart import prints_apart

        with prints_apart() as put_back:

            def stopped(number: int, error: Exception | None) -> None:
                put_back()
                write(stopped_page(number, resumes, error), as_json=self.as_json)

            return signals.finish(work, stopped)


Command = Callable[[list[str], Context], Page]
"""A command: its arguments without its name, and the page it answers with. Other packages add
commands of this form through the entry points `agl.commands`."""
