"""`Run`: what a workflow is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar, cast

from agl.ports.errors import InputError
from agl.ports.ids import Label
from agl.ports.models import Usage
from agl.ports.terminal import Screen, Terminal
from agl.ports.verifier import Verdict
from agl.sdk._engine import asking, questions, steps, verdicts
from agl.sdk._engine.scope import ScopeState
from agl.sdk.roles import Role

P_co = TypeVar("P_co", covariant=True)
R = TypeVar("R")
T = TypeVar("T")


class Shown:
    """The passive part of the terminal: one slot, no answers."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def show(self, view: Callable[[], Screen[Any]] | Screen[Any]) -> None:
        """Shows a screen in place of the last one. A view is a pure function that makes the screen;
        it is called again whenever the display is drawn.

        Raises:
            InputError: the screen has responses; use `run.ask`.
        """
        if not callable(view) and not isinstance(view, Screen):
            raise InputError(f"run.terminal.show takes a Screen or a function of one, not {view!r}")
        made = partial(_same, view) if isinstance(view, Screen) else view
        first = made()
        if first.responses:
            raise InputError(f"screen {first.title!r} is a question; use run.ask")
        self._terminal.show(made)


def _same(screen: Screen[Any]) -> Screen[Any]:
    return screen


class Run(Generic[P_co]):
    """One execution of a workflow. All that it returns is recorded, so that a resume, which calls
    the workflow's function again from its first line, gets the same again. A workflow branches on
    nothing else: no clock, no environment, no randomness but through `record`."""

    def __init__(self, state: ScopeState, params: P_co) -> None:
        self._state = state
        self._params = params
        self._shown = Shown(state.run.services.terminal)

    @property
    def params(self) -> P_co:
        """The parameters, as the run was begun with."""
        return self._params

    @property
    def label(self) -> Label:
        return self._state.scope.label

    @property
    def base(self) -> str:
        """The commit that the run began at; it does not move."""
        return self._state.base

    @property
    def head(self) -> str:
        """The commit that the last step of the calling task ended at; the base before any."""
        return self._state.given

    @property
    def build(self) -> str | None:
        """The project's build command as it is set now. A setting is no part of the run: take it in
        with `record` before branching on it."""
        return self._state.run.services.build

    def nothing_needed(self, reason: str) -> None:
        """Says that the repository already was as requested, so that a run which changed nothing is
        told from one that achieved nothing."""
        self._state.run.nothing_needed = reason

    @property
    def terminal(self) -> Shown:
        return self._shown

    @property
    def activity(self) -> str | None:
        """One line on what this run's agent is doing now; None when none is at work."""
        return self._state.run.activity

    @property
    def usage(self) -> Usage:
        """What the run used so far, in all its processes."""
        return self._state.run.usage

    async def step(
        self,
        role: Role[R],
        *,
        commit: str | None = None,
        discard: bool = False,
        timeout_s: float | None = None,
        **inputs: object,
    ) -> R:
        """One agent call on a role. Returns what the role reports, or None.

        `commit`: the message under which all that the agent changed is committed; nothing changed,
        no commit. `discard=True`: what it changed is set aside. A role that may write files needs
        one of the two. `inputs` are told to the agent and are part of the fingerprint.

        Raises:
            InputError: the call is wrong, or the role's model lacks something.
            RoleIncomplete: the agent ended without its report.
            StepTimedOut: it was still at work after `timeout_s` seconds.
            UpstreamError, DeniedError: the vendor, git or the disk failed.
            StateError: something changed behind the run's back; the step itself is recorded.
        """
        call = asking.call_of(role, commit, discard, timeout_s, inputs)
        with self._state.run.call():
            return cast(R, await steps.step(self._state, call))

    async def verify(self, command: str | None = None) -> Verdict:
        """Runs the project's build (or `command`) on what the steps committed so far. A failing
        build is a verdict, not an error.

        Raises:
            InputError: the project has no build command and none is given.
        """
        with self._state.run.call():
            return await verdicts.verify(self._state, command)

    async def ask(self, screen: Screen[T], *, priority: int = 0, key: str | None = None) -> T:
        """A question to the person, asked once. `key` names it for `--answers` and keeps its answer
        when its wording changes.

        Raises:
            NeedsAnswer: nobody is there to answer.
        """
        with self._state.run.call():
            return await questions.ask(self._state, screen, priority, key)

    async def record(self, name: str, fn: Callable[..., R | Awaitable[R]], **inputs: object) -> R:
        """What `fn(**inputs)` returned when it was first called: a fact from outside, such as the
        time, an issue's text or a random choice. The value is JSON.

        Raises:
            InputError: the value has no place in JSON.
        """
        with self._state.run.call():
            return await questions.record(self._state, name, fn, inputs)
