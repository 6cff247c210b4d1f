"""A home, a repository of so many files, and AGL's real services on both."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from agl.adapters.plain_terminal import PlainTerminal
from agl.api import projects
from agl.config import container
from agl.config.settings import Settings
from agl.ports.agents import AgentRunner
from agl.ports.ids import Label
from agl.sdk._engine.services import Services

IN_A_FOLDER = 100


@dataclass(frozen=True, slots=True)
class World:
    """One registered project below `folder`."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, files: int) -> World:
        """A repository with one commit of `files` files, registered with no build."""
        world = cls(folder)
        world.home.mkdir(parents=True)
        world.repo.mkdir()
        world.git("init", "-q", "-b", "main")
        world.git("config", "user.name", "A Person")
        world.git("config", "user.email", "person@example.org")
        for number in range(files):
            file = world.repo / f"part{number // IN_A_FOLDER}" / f"file{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{number}\n" * 20)
        world.git("add", "-A")
        world.git("commit", "-q", "-m", "first")
        asyncio.run(projects.init(Settings(world.home), world.repo, no_build=True))
        return world

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    def services(self, label: Label, agents: AgentRunner, out: TextIO) -> Services:
        """The services that `agl run` has, with another agent; progress goes to `out`."""
        settings = Settings(self.home)
        project, repository = projects.find(settings, self.repo)
        terminal = PlainTerminal(None, out)
        real = container.real(settings, project, repository, terminal, label)
        return dataclasses.replace(real, agents=agents)

    def git(self, *args: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.repo, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def run(self, argv: tuple[str, ...], more: Mapping[str, str] | None = None) -> None:
        """A command in the repository, to its end."""
        environ = {**os.environ, "AGL_HOME": str(self.home), **(more or {})}
        subprocess.run(
            argv,
            cwd=self.repo,
            env=environ,
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
