"""`Run`: what a workflow is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from agl.ports.errors import InputError
from agl.ports.ids import Label, Namespace
from agl.ports.models import Usage
from agl.ports.terminal import Screen, Terminal
from agl.ports.verifier import Verdict
from agl.sdk._engine import asking, questions, steps, verdicts
from agl.sdk._engine.landing import LandingAtWork
from agl.sdk._engine.places import Place
from agl.sdk.landing import Landing
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

    def __init__(self, place: Place, params: P_co) -> None:
        self._place = place
        self._params = params
        self._shown = Shown(place.run.services.terminal)

    @property
    def params(self) -> P_co:
        """The parameters, as the run was begun with."""
        return self._params

    @property
    def label(self) -> Label:
        return self._place.scope.label

    @property
    def base(self) -> str:
        """The commit that the run, or this child of it, began at; it does not move.

        Raises:
            InputError: the child has not begun.
        """
        return self._place.begun.base

    @property
    def head(self) -> str:
        """The commit that the calling task's last step or landing ended at; the base before any.

        Raises:
            InputError: the child has not begun.
        """
        return self._place.begun.given

    @property
    def folder(self) -> Path:
        """Where the worktree of this run, or of this child, is or will be. It is for a person to
        look into; a resume on another machine has another one."""
        return self._place.run.services.workspaces.folder(self._place.scope)

    @property
    def build(self) -> str | None:
        """The project's build command as it is set now. A setting is no part of the run: take it in
        with `record` before branching on it."""
        return self._place.run.services.build

    def nothing_needed(self, reason: str) -> None:
        """Says that the repository already was as requested, so that a run which changed nothing is
        told from one that achieved nothing."""
        self._place.run.nothing_needed = reason

    @property
    def terminal(self) -> Shown:
        return self._shown

    @property
    def activity(self) -> str | None:
        """One line on what the agent in this tree is doing now; None when none is at work."""
        state = self._place.run.scopes.get(self._place.scope)
        return state.activity if state is not None else None

    @property
    def usage(self) -> Usage:
        """What the run used so far, in all its processes."""
        return self._place.run.usage

    def worktree(self, namespace: str, base: str | None = None) -> Child[P_co]:
        """A child of this run: a worktree of its own, whose steps run beside those of others. It
        begins with its first awaited call, at this run's head then, or at the commit `base` names.
        The same namespace is the same child.

        Raises:
            InputError: the name cannot be a folder and a branch, or another child has it.
        """
        return Child(self._place.child(namespace, base), self._params)

    async def step(
        self,
        role: Role[R],
        *,
        commit: str | None = None,
        discard: bool = False,
        merging: Run[Any] | None = None,
        timeout_s: float | None = None,
        **inputs: object,
    ) -> R:
        """One agent call on a role. Returns what the role reports, or None.

        `commit`: the message under which all that the agent changed is committed; nothing changed,
        no commit. `discard=True`: what it changed is set aside. A role that may write files needs
        one of the two. `merging`: the run that this one is a child of; its head is merged into the
        tree first, conflicts between markers in the files, and the commit concludes the merge.
        `inputs` are told to the agent and are part of the fingerprint.

        Raises:
            InputError: the call is wrong, or the role's model lacks something.
            RoleIncomplete: the agent ended without its report, or with a conflict unresolved.
            StepTimedOut: it was still at work after `timeout_s` seconds.
            UpstreamError, DeniedError: the vendor, git or the disk failed.
            StateError: something changed behind the run's back, the step itself is recorded; or a
                landing waits in this tree.
        """
        onto = None if merging is None else self._parent_of(merging)
        call = asking.call_of(role, commit, discard, timeout_s, inputs, onto is not None)
        with self._place.run.call():
            head = None if onto is None else await onto.state()
            return cast(R, await steps.step(await self._place.state(), call, head))

    async def verify(self, command: str | None = None) -> Verdict:
        """Runs the project's build (or `command`) on what the steps committed so far. A failing
        build is a verdict, not an error.

        Raises:
            InputError: the project has no build command and none is given.
        """
        with self._place.run.call():
            return await verdicts.verify(await self._place.state(), command)

    async def ask(self, screen: Screen[T], *, priority: int = 0, key: str | None = None) -> T:
        """A question to the person, asked once. `key` names it for `--answers` and keeps its answer
        when its wording changes.

        Raises:
            NeedsAnswer: nobody is there to answer.
        """
        with self._place.run.call():
            return await questions.ask(await self._place.state(), screen, priority, key)

    async def record(self, name: str, fn: Callable[..., R | Awaitable[R]], **inputs: object) -> R:
        """What `fn(**inputs)` returned when it was first called: a fact from outside, such as the
        time, an issue's text or a random choice. The value is JSON.

        Raises:
            InputError: the value has no place in JSON.
        """
        with self._place.run.call():
            return await questions.record(await self._place.state(), name, fn, inputs)

    def _parent_of(self, merging: Run[Any]) -> Place:
        parent = self._place.parent
        if not isinstance(merging, Run) or parent is None or merging._place is not parent:
            raise InputError(
                f"merging= takes the run that the step's own is a child of, and"
                f" {self._place.scope.tree!r} is none of the one given"
            )
        return parent


class Child(Run[P_co]):
    """A part of a run in a worktree of its own, until it lands."""

    @property
    def namespace(self) -> Namespace:
        return self._place.scope.path[-1]

    async def integrate(self) -> Landing:
        """Lands what this child committed in its parent's tree: a merge, then the project's build
        on it. One child lands at a time. Asked again, it lands what came since.

        Raises:
            StateError: the calling task holds a landing that is conflicted.
            UpstreamError: git or the disk failed; nothing has landed.
        """
        parent = self._place.parent
        assert parent is not None
        with self._place.run.call():
            landing = LandingAtWork(await parent.state(), await self._place.state())
            await landing.begin()
            return Landing(landing, self._place.run)
