"""A reference for replay in any order: what was run, where, and what may be served again.

A tree is the list of the results that it contains, and a result is a number that no other has. The
engine is driven through `api.runs` over light fakes; programs stand for workflows and their edits.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from random import Random
from types import ModuleType, NoneType
from typing import Any

from agl.adapters.memory.locks import MemoryLocks
from agl.adapters.memory.processes import MemoryProcesses
from agl.adapters.memory.store import MemoryStore
from agl.api import runs
from agl.api.endings import Report
from agl.ports.agents import AgentEvent, AgentOutcome, AgentRunner, AgentTask
from agl.ports.clock import Clock
from agl.ports.errors import AglError, NeedsAnswer, NotFoundError, Overloaded
from agl.ports.event_log import EventLog
from agl.ports.events import Event
from agl.ports.guards import Guards, Reading
from agl.ports.history import History
from agl.ports.ids import Label, ProjectName, Scope
from agl.ports.integrator import Conflict, Integrator, Merged, NothingToMerge
from agl.ports.kept import Kept
from agl.ports.models import Capability, ModelId
from agl.ports.processes import Marker
from agl.ports.store import Address, Document, Store
from agl.ports.terminal import Answer, Screen, Terminal, TextInput, Typed
from agl.ports.verifier import Verdict, Verifier
from agl.ports.workspace import (
    Cleared,
    Keeping,
    KeptItem,
    TreeState,
    Workspace,
    WorkspaceProvider,
)
from agl.sdk._engine.asking import prompt_of
from agl.sdk._engine.services import Services
from agl.sdk.roles import Role
from agl.sdk.run import Run
from agl.sdk.tools import reporting_tool
from agl.sdk.workflows import Workflow

Tree = tuple[int, ...]
Key = tuple[str, str, str]
"""What is asked: its kind, its own words, and its inputs."""

PROJECT, LABEL = ProjectName("light"), Label("run")
MODULE = "any_order_flow"
MODEL = ModelId("light", "model")


class Killed(BaseException):
    """The death of the process. Once dead, it writes and does nothing more."""


# Programs: what stands for a workflow.


@dataclass(frozen=True, slots=True)
class Leaf:
    """One call. Kinds of step: `write` commits, `tell` commits and reports, `look` throws away and
    reports, `idle` may commit, changes nothing and reports. `takes`: the last value is an input."""

    kind: str
    name: str = "s"
    text: int = 0
    takes: bool = False


Item = Leaf | tuple[tuple[Leaf, ...], ...]
Program = tuple[Item, ...]
STEPS = ("write", "tell", "look", "idle")
WRITES = ("write", "tell")


def leaves(program: Program) -> Iterator[Leaf]:
    for item in program:
        if isinstance(item, Leaf):
            yield item
        else:
            for branch in item:
                yield from branch


@dataclass(frozen=True, slots=True)
class Stage:
    """One process: it dies before the `kill`-th write, if any, and its tasks are delayed by `seed`.
    `faults`: "" for none, "caught" and asked again, or "raised" out of the workflow; `failing` is
    the step that fails whenever it is run."""

    seed: int = 0
    lag: int = 0
    kill: int | None = None
    faults: str = ""
    failing: str = ""
    again: tuple[str, int] | None = None


# What was really done.


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as its task makes it. `given`: for a verdict, the tree that the task was last handed.
    Repeats of equal ones are counted."""

    key: Key
    given: Tree | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result is recorded; a later epoch may adopt it and record it once more."""

    epoch: int
    number: int
    given: Tree | None


@dataclass(slots=True, eq=False)
class Ran:
    """Something that was run: its result, what was asked, and the tree it began on."""

    result: int
    key: Key
    name: str
    ordinal: int
    start: Tree
    writes: bool
    places: list[Place] = field(default_factory=list)

    @property
    def end(self) -> Tree:
        return (*self.start, self.result) if self.writes else self.start


@dataclass(frozen=True, slots=True)
class Cut:
    """What `--again` wrote: all that is numbered from `first` on is out of use, and from the nth
    step of that name on nothing older is adopted."""

    number: int
    first: int
    name: str
    nth: int


@dataclass(frozen=True, slots=True)
class Call:
    """A call that returned to the workflow, and the calls that came before it in its program."""

    ran: Ran
    before: tuple[Call, ...]


@dataclass(slots=True)
class At:
    """Where a task of the workflow stands."""

    before: tuple[Call, ...] = ()
    last: int = 0
    given: Tree = ()


class World:
    """What outlives a process: the repository, the ledger, and the reference's own notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = LightRepository()
        self.store = MemoryStore()
        self.clock = TickingClock()
        self.epoch = 0
        self.source: str | None = None
        self.wrong: list[str] = []
        self.lost: set[int] = set()
        self.ran: dict[Key, list[Ran]] = defaultdict(list)
        self.by_result: dict[int, Ran] = {}
        self.by_attempt: dict[str, Ran] = {}
        self.cuts: list[Cut] = []
        self.last: Process | None = None
        self._modules = 0

    def must(self, holds: bool, claim: str) -> None:
        if not holds:
            self.wrong.append(claim)

    @property
    def every(self) -> Iterator[Ran]:
        return iter(self.by_result.values())

    def in_use(self, ran: Ran) -> list[Place]:
        """Where the result is recorded and neither cut away nor lost."""
        if ran.result in self.lost:
            return []
        if ran.key[0] in ("ask", "record"):
            return ran.places
        return [
            place
            for place in ran.places
            if not any(cut.first <= place.number < cut.number for cut in self.cuts)
        ]

    def may_adopt(self, ran: Ran, last: int) -> bool:
        """Whether this epoch may go on with what an older one recorded, `last` being the number of
        the last entry of the chain that it would go on from."""
        chain = [
            one.name
            for one in self.every
            for place in self.in_use(one)
            if one.key[0] == "step" and place.epoch == self.epoch and place.number <= last
        ]
        next_one = [ran.name] if ran.key[0] == "step" else []
        after = max(
            (cut.number for cut in self.cuts if (chain + next_one).count(cut.name) >= cut.nth),
            default=0,
        )
        return any(place.epoch < self.epoch and place.number > after for place in self.in_use(ran))

    def begin(self, process: Process, name: str, *, writes: bool = False) -> Ran:
        """Something is run in earnest: nothing recorded may have answered it."""
        asked = calling.get()
        key, ordinal = asked.key, process.returned[asked]
        tree = self.repo.tokens(self.repo.head)
        for one in self.ran[key]:
            if one.ordinal != ordinal or not self.in_use(one):
                continue
            if key[0] in ("ask", "record"):
                self.must(False, f"{key} was asked again")
            elif key[0] == "verify" and self._is_outdated(process, one):
                continue
            elif self._is_served(one, asked.given):
                self.must(False, f"{key} #{ordinal} is recorded in this epoch and ran again")
            elif one.start == tree and self.may_adopt(one, sys.maxsize):
                self.must(False, f"{key} #{ordinal} is recorded on this very tree and ran again")
        ran = Ran(len(self.by_result) + 1, key, name, ordinal, tree, writes)
        self.ran[key].append(ran)
        self.by_result[ran.result] = ran
        return ran

    def served(self, process: Process, asked: Asked) -> Ran | None:
        """What the engine can only have meant by what it just returned."""
        key, ordinal = asked.key, process.returned[asked]
        anywhere = key[0] in ("ask", "record")
        fits = [
            one
            for one in self.ran[key]
            if one.ordinal == ordinal
            and (one.places if anywhere else self._is_served(one, asked.given))
        ]
        if key[0] == "verify" and fits:
            fits = [max(fits, key=lambda one: max(place.number for place in one.places))]
        self.must(len(fits) == 1, f"{key} #{ordinal} returned, recorded {len(fits)} times")
        return fits[0] if fits else None

    def _is_outdated(self, process: Process, verdict: Ran) -> bool:
        """Whether a step that this process ran moved the tree after the verdict was recorded; it
        may then be asked for anew."""
        last = max(place.number for place in verdict.places)
        return any(
            one.writes and any(place.number > last for place in one.places)
            for one in process.executed
        )

    def _is_served(self, ran: Ran, given: Tree | None) -> bool:
        here = (self.epoch, given)
        return any((place.epoch, place.given) == here for place in self.in_use(ran))

    def note(self, address: Address, document: Document) -> None:
        """A document was written."""
        if address[-2] == "epochs":
            number, source = document["number"], str(document["source"])
            assert isinstance(number, int)
            if number != self.epoch:
                self.must(number == self.epoch + 1, f"epoch {number} follows {self.epoch}")
                self.must(source != self.source, f"epoch {number} has the source of the last one")
            self.epoch, self.source = number, source
        elif "fingerprint" in document:
            self._note_entry(document)

    def _note_entry(self, document: Document) -> None:
        kind, value, number = document["kind"], document["value"], document["number"]
        assert isinstance(number, int)
        if kind == "cut":
            assert isinstance(value, dict)
            name, nth = value["step"], value["nth"]
            first = self.nth_steps(name, nth).get(self.epoch, number)
            self.cuts.append(Cut(number, first, name, nth))
            return
        if kind == "step":
            assert isinstance(document["attempts"], list)
            ran = self.by_attempt[document["attempts"][0]]
        elif kind == "verify":
            assert isinstance(value, dict)
            ran = self.by_result[int(value["tail"])]
        elif kind == "ask":
            assert isinstance(value, dict)
            ran = self.by_result[int(value["typed"])]
        else:
            assert isinstance(value, int)
            ran = self.by_result[value]
        if ran.places:
            self.must(self.may_adopt(ran, number), f"{ran.key} was adopted in spite of a cut")
        ran.places.append(Place(self.epoch, number, calling.get().given))

    def nth_steps(self, name: str, nth: int) -> dict[int, int]:
        """For each epoch, the number of its nth step of that name that is in use."""
        numbers: dict[int, list[int]] = defaultdict(list)
        for ran in self.every:
            if ran.key[0] == "step" and ran.name == name:
                for place in self.in_use(ran):
                    numbers[place.epoch].append(place.number)
        return {
            epoch: sorted(found)[nth - 1] for epoch, found in numbers.items() if len(found) >= nth
        }

    # Processes.

    def run(
        self, program: Program, stage: Stage = Stage(), walk: Walk | None = None
    ) -> Report | None:
        """Begins or resumes the run in a process of its own; None when it was killed. `walk` goes
        through the program in place of the usual walk."""
        process = Process(self, program, stage, walk or in_order)
        with self._loaded(program, process) as loaded:
            services = process.services()
            begun = self.store.read(("projects", PROJECT, "runs", LABEL, "run")) is not None
            again = f"{stage.again[0]}#{stage.again[1]}" if stage.again and begun else None
            there = bool(stage.again and self.nth_steps(*stage.again))
            try:
                if begun:
                    work = runs.resume(services, lambda _: loaded, LABEL, again=again)
                else:
                    work = runs.run(services, loaded, LABEL, None)
                report = asyncio.run(work)
            except NotFoundError:
                self.must(not there, f"--again {again} was refused")
                return None
            except BaseException as error:
                if not process.dead:
                    raise
                self.must(_is_death(error), f"dead, and then {error!r}")
                return None
        self.must(there or again is None, f"--again {again} was taken")
        self.must(all(ran.places for ran in process.endings), "an ending was left half done")
        if report.outcome == "finished":
            if not report.message.startswith("finished already"):
                self.last = process
            assert self.last is not None
            self._check(self.last, report)
        elif stage.faults != "raised" and not stage.failing:
            self.must(False, f"the run ended as {report.outcome}: {report.message}")
        return report

    def _check(self, process: Process, report: Report) -> None:
        """The end of a run: its tree is what an uninterrupted run of this program gives, and each
        of its results was made where this program would have made it."""
        tip = self.repo.branches[report.branch]
        tree = self.repo.tokens(tip)
        self.must(tip == report.head, "the branch is not where the report says")
        self.must(not self.repo.dirty, "the tree is not clean at the end")
        calls = process.calls
        asked = Counter(leaf.kind in STEPS for leaf in leaves(process.program))
        self.must(sum(asked.values()) == len(calls), "the program was not walked")
        written = [call.ran.result for call in calls if call.ran.writes]
        self.must(sorted(tree) == sorted(written), f"{tree} holds other results than {written}")
        for call in calls:
            ran = call.ran
            if ran.key[0] in ("ask", "record"):
                continue
            self.must(tree[: len(ran.end)] == ran.end, f"{ran.key} ran on {ran.start}, not {tree}")
            for earlier in call.before:
                one = earlier.ran
                if one.key[0] not in ("ask", "record"):
                    self.must(
                        ran.start[: len(one.end)] == one.end, f"{ran.key} ran before {one.key}"
                    )
        lost = self.repo.written - self.repo.reachable()
        self.must(not lost, f"{lost} cannot be found again")

    @contextmanager
    def _loaded(self, program: Program, process: Process) -> Iterator[runs.Loaded]:
        async def flow(run: Run[None]) -> None:
            await process.walk(process, run)

        flow.__module__ = MODULE
        file = self.folder / f"{abs(hash(program))}.py"
        if not file.exists():
            file.write_text(repr(program))
        module = ModuleType(MODULE)
        module.__file__ = str(file)
        sys.modules[MODULE] = module
        try:
            yield runs.Loaded("flow", Workflow(flow, "1", NoneType))
        finally:
            del sys.modules[MODULE]


def _is_death(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_death(one) for one in error.exceptions)
    return isinstance(error, Killed)


calling: ContextVar[Asked] = ContextVar("calling")


class Process:
    """One process: it walks the program as a workflow would, and may die at any write."""

    def __init__(self, world: World, program: Program, stage: Stage, walk: Walk) -> None:
        self.world = world
        self.program = program
        self.stage = stage
        self.walk = walk
        self.dead = False
        self.calls: list[Call] = []
        self.returned: Counter[Asked] = Counter()
        self.executed: list[Ran] = []
        self.endings: list[Ran] = []
        self.nths: list[int] = []
        self._random = Random(stage.seed)
        self._left = stage.kill
        self._faults_left = 3 if stage.faults else 0

    def services(self) -> Services:
        repo = self.world.repo
        return Services(
            project=PROJECT,
            build="build",
            build_timeout_s=1.0,
            marker_root="light",
            checkout=None,
            store=MortalStore(self),
            log=NoLog(),
            locks=MemoryLocks(),
            workspaces=LightWorkspaces(self),
            integrator=NoIntegrator(),
            history=LightHistory(repo),
            kept=NothingListed(),
            guards=LightGuards(self),
            verifier=LightVerifier(self),
            processes=MemoryProcesses({}),
            terminal=LightTerminal(self),
            clock=self.world.clock,
            agents=LightAgent(self),
        )

    def burn(self) -> None:
        """Called before each write, to the ledger or the repository."""
        if self._left is not None:
            self._left -= 1
            self.dead = self.dead or self._left < 0
        if self.dead:
            raise Killed

    async def pause(self) -> None:
        for _ in range(self._random.randint(0, self.stage.lag)):
            await asyncio.sleep(0)
        if self.dead:
            raise Killed

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def fails(self, words: str = "") -> bool:
        if words and words == self.stage.failing:
            return True
        if self._faults_left and self.chance(0.3):
            self._faults_left -= 1
            return True
        return False

    def begin(self, name: str, *, writes: bool = False) -> Ran:
        ran = self.world.begin(self, name, writes=writes)
        self.executed.append(ran)
        return ran

    async def call(self, run: Run[None], leaf: Leaf, where: str, at: At) -> None:
        """One call of the workflow, as the task at `at` makes it in branch `where`."""
        await self.pause()
        words = f"{leaf.name}/{leaf.kind}/{leaf.text}{where}"
        inputs = {"prior": at.last} if leaf.takes and leaf.kind not in ("verify", "ask") else {}
        kind = "step" if leaf.kind in STEPS else leaf.kind
        key = (kind, words, prompt_of(inputs))
        asked = Asked(key, at.given if kind == "verify" else None)
        calling.set(asked)
        while True:
            try:
                value = await self._ask(run, leaf, words, inputs)
                break
            except Overloaded:
                if self.stage.faults != "caught":
                    raise
        ran = self.world.served(self, asked)
        self.returned[asked] += 1
        if ran is None:
            return
        self.world.must(value in (None, ran.result), f"{key} returned {value}, not {ran.result}")
        if kind == "verify":
            unseen = {
                call.ran.result
                for call in at.before
                if call.ran in self.executed and call.ran.writes
            } - set(ran.start)
            self.world.must(not unseen, f"{key} was answered without {unseen}, just done before")
        self.calls.append(Call(ran, at.before))
        at.before = (*at.before, self.calls[-1])
        at.last = at.last if value is None else value
        if kind == "step":
            at.given = ran.end

    async def _ask(
        self, run: Run[None], leaf: Leaf, words: str, inputs: dict[str, Any]
    ) -> int | None:
        match leaf.kind:
            case "write":
                await run.step(silent(leaf.name, words), commit="write", **inputs)
                return None
            case "tell" | "idle":
                told = await run.step(telling(leaf.name, words), commit="tell", **inputs)
                return told.result
            case "look":
                told = await run.step(telling(leaf.name, words), discard=True, **inputs)
                return told.result
            case "verify":
                return int((await run.verify(words)).tail)
            case "ask":
                return await run.ask(Screen(words, responses=[TextInput("say", int)]))
            case _:
                return await run.record(words, self._fact, **inputs)

    async def _fact(self, **inputs: int) -> int:
        ran = self.begin("record")
        await self.pause()
        if self.stage.faults == "raised" and self.fails():
            raise RuntimeError("no fact to be had")
        return ran.result


Walk = Callable[[Process, Run[None]], Awaitable[None]]


async def in_order(process: Process, run: Run[None]) -> None:
    """Item after item, the branches of one item side by side."""

    async def along(branch: tuple[Leaf, ...], where: str, at: At) -> None:
        for leaf in branch:
            await process.call(run, leaf, where, at)

    at = At()
    for item in process.program:
        if isinstance(item, Leaf):
            await process.call(run, item, "", at)
            continue
        parts = [At(at.before, at.last, at.given) for _ in item]
        async with asyncio.TaskGroup() as group:
            for index, branch in enumerate(item):
                group.create_task(along(branch, f"@{index}", parts[index]))
        at.before = tuple(dict.fromkeys(call for part in parts for call in part.before))
        at.last = parts[0].last


@dataclass(frozen=True)
class Told:
    result: int


_tool = reporting_tool("tell", "Hands in the result.", Told, type_name="Told")


@lru_cache(maxsize=4096)
def silent(name: str, words: str) -> Role[None]:
    return Role(name=name, instructions=words).on(MODEL)


@lru_cache(maxsize=4096)
def telling(name: str, words: str) -> Role[Told]:
    return Role(name=name, instructions=words, tools=[_tool]).on(MODEL)


# The outside world, light.


class LightAgent(AgentRunner):
    """Adds its result to the tree, or litter; commits some itself; fails as the stage says."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def capabilities(self, model: ModelId) -> frozenset[Capability]:
        return frozenset(Capability)

    def files(self, model: ModelId) -> tuple[Path, ...]:
        return ()

    async def check_ready(self, model: ModelId) -> None:
        return None

    async def run(self, task: AgentTask, emit: Callable[[AgentEvent], None]) -> AgentOutcome:
        process, world = self._process, self._process.world
        repo = world.repo
        await process.pause()
        asked = ("step", task.instructions, task.prompt)
        world.must(asked == calling.get().key, f"{asked} was run for {calling.get()}")
        world.must(repo.attached and not repo.dirty, f"{asked} began in a tree that is not clean")
        kind = task.instructions.split("/")[1]
        ran = process.begin(task.step, writes=kind in WRITES)
        process.nths.append(task.nth)
        assert task.marker.attempt is not None
        world.by_attempt[task.marker.attempt] = ran
        if ran.writes:
            repo.put(ran.result)
        elif kind == "look" and process.chance(0.5):
            repo.put(-ran.result)
        await process.pause()
        if ran.writes and process.chance(0.3):
            repo.commit_here()
            await process.pause()
        if process.fails(task.instructions):
            raise Overloaded("no capacity")
        for tool in task.tools:
            await tool.handler({"result": ran.result})
        await process.pause()
        return AgentOutcome("", "light")


class LightVerifier(Verifier):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def verify(self, tree: Path, command: str, timeout_s: float, marker: Marker) -> Verdict:
        repo, world = self._process.world.repo, self._process.world
        world.must(repo.attached and not repo.dirty, f"{command} ran in a tree that is not clean")
        ran = self._process.begin("verify")
        await self._process.pause()
        return Verdict(passed=True, status=0, tail=str(ran.result))


class LightTerminal(Terminal):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def __aenter__(self) -> Terminal:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    def tell(self, event: Event) -> None:
        return None

    def show(self, view: Callable[[], Screen[object]]) -> None:
        return None

    async def ask(self, view: Callable[[], Screen[object]], *, priority: int = 0) -> Answer:
        if self._process.stage.faults == "raised" and self._process.fails():
            raise NeedsAnswer("nobody is here", questions=(view().title,))
        ran = self._process.begin("ask")
        await self._process.pause()
        return Typed("say", str(ran.result))


class MortalStore(Store):
    """The ledger of one process, which may die before any write."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._inner = process.world.store

    def read(self, address: Address) -> Document | None:
        return self._inner.read(address)

    def write(self, address: Address, document: Document) -> None:
        self._process.burn()
        self._inner.write(address, document)
        self._process.world.note(address, document)

    def remove(self, address: Address) -> None:
        self._process.burn()
        self._inner.remove(address)

    def names(self, folder: Address) -> tuple[str, ...]:
        return self._inner.names(folder)

    def folders(self, folder: Address) -> tuple[str, ...]:
        return self._inner.folders(folder)

    def set_aside(self, address: Address) -> str:
        return self._inner.set_aside(address)

    def remove_folder(self, folder: Address) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Commit:
    parents: tuple[str, ...]
    tokens: Tree


class LightRepository:
    """Commits, one branch with its one tree, and kept refs."""

    base = "c0"

    def __init__(self) -> None:
        self.commits = {self.base: Commit((), ())}
        self.branches: dict[str, str] = {}
        self.kept: list[str] = []
        self.written: set[int] = set()
        self.dirty: Tree = ()
        self.attached = False
        self.branch: str | None = None
        self._detached_at = self.base

    @property
    def head(self) -> str:
        if self.attached and self.branch is not None:
            return self.branches[self.branch]
        return self._detached_at

    def tokens(self, commit: str) -> Tree:
        return self.commits[commit].tokens

    def commit(self, parent: str, tokens: Tree) -> str:
        name = f"c{len(self.commits)}"
        self.commits[name] = Commit((parent,), tokens)
        return name

    def contains(self, newer: str, older: str) -> bool:
        return older in self._below(newer)

    def _below(self, commit: str) -> Iterator[str]:
        wave = [commit]
        while wave:
            yield from wave
            wave = [parent for one in wave for parent in self.commits[one].parents]

    def reachable(self) -> set[int]:
        tips = {*self.branches.values(), *self.kept}
        found = {one for tip in tips for one in self._below(tip)}
        return {token for one in found for token in self.tokens(one)}

    def put(self, token: int) -> None:
        self.dirty = (*self.dirty, token)
        self.written.add(token)

    def commit_here(self) -> None:
        assert self.branch is not None
        head = self.head
        self.branches[self.branch] = self.commit(head, (*self.tokens(head), *self.dirty))
        self.dirty = ()

    def check_out(self, commit: str) -> None:
        assert self.branch is not None
        self.branches[self.branch] = commit
        self.attached, self.dirty = True, ()

    def detach(self) -> None:
        self._detached_at, self.attached = self.head, False


class LightWorkspace(Workspace):
    def __init__(self, process: Process, scope: Scope, path: Path) -> None:
        self.scope = scope
        self.path = path
        self._process = process
        self._repo = process.world.repo

    async def state(self) -> TreeState:
        await self._process.pause()
        repo = self._repo
        return TreeState(repo.head, repo.attached, not repo.dirty)

    async def commit_all(self, start: str, message: str, keeping: Keeping) -> str:
        await self._process.pause()
        repo = self._repo
        assert repo.contains(repo.head, start)
        steps = [ran for ran in self._process.executed if ran.key[0] == "step"]
        self._process.endings.append(steps[-1])
        if repo.dirty:
            self._process.burn()
            repo.commit_here()
        await self._process.pause()
        return repo.head

    async def restore(self, to: str, keeping: Keeping) -> tuple[KeptItem, ...]:
        await self._process.pause()
        repo, kept = self._repo, list[str]()
        head = repo.head
        if repo.dirty:
            self._process.burn()
            kept.append(repo.commit(head, (*repo.tokens(head), *repo.dirty)))
            repo.kept.append(kept[-1])
        for tip in (head, repo.branches[self.scope.branch]):
            if not any(repo.contains(one, tip) for one in (to, *repo.kept)):
                self._process.burn()
                kept.append(tip)
                repo.kept.append(tip)
        await self._process.pause()
        self._process.burn()
        repo.check_out(to)
        return tuple(
            KeptItem(one, self.scope.label, self.scope.tree, "now", keeping.why, one)
            for one in kept
        )

    async def detach(self) -> None:
        self._process.burn()
        self._repo.detach()


class LightWorkspaces(WorkspaceProvider):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def check(self, label: Label) -> None:
        return None

    async def open(self, scope: Scope, start: str) -> Workspace:
        await self._process.pause()
        repo = self._process.world.repo
        if repo.branch is None:
            self._process.burn()
            repo.branch = scope.branch
            repo.check_out(start)
        return LightWorkspace(self._process, scope, self.folder(scope))

    async def clear(self, scopes: tuple[Scope, ...]) -> tuple[Cleared, ...]:
        raise NotImplementedError

    def folder(self, scope: Scope) -> Path:
        return Path("/light") / scope.tree


class NoIntegrator(Integrator):
    async def merge(
        self, tree: Workspace, start: str, other: str, message: str, keeping: Keeping
    ) -> Merged | Conflict | NothingToMerge:
        raise NotImplementedError

    async def begin(self, tree: Workspace, other: str, keeping: Keeping) -> Conflict:
        raise NotImplementedError

    async def conclude(
        self,
        tree: Workspace,
        start: str,
        other: str,
        message: str,
        conflict: Conflict,
        keeping: Keeping,
    ) -> Merged | Conflict | NothingToMerge:
        raise NotImplementedError

    async def unresolved(self, tree: Workspace, conflict: Conflict) -> Conflict:
        raise NotImplementedError

    async def hold(self, tree: Workspace, start: str, other: str, merged: str) -> None:
        raise NotImplementedError

    async def is_held(self, tree: Workspace, start: str, other: str) -> bool:
        raise NotImplementedError


class LightHistory(History):
    def __init__(self, repo: LightRepository) -> None:
        self._repo = repo

    async def problems(self) -> tuple[AglError, ...]:
        return ()

    async def resolve(self, ref: str) -> str:
        return self._repo.base

    async def tip(self, branch: str) -> str | None:
        return self._repo.branches.get(branch)

    async def checked_out_at(self, branch: str) -> Path | None:
        return Path("/light/_base") if self._repo.attached else None

    async def missing(self, commits: Iterable[str]) -> frozenset[str]:
        return frozenset(commits) - self._repo.commits.keys()

    async def is_ancestor(self, older: str, newer: str) -> bool:
        return self._repo.contains(newer, older)

    async def between(self, older: str, newer: str) -> tuple[str, ...]:
        return (f"{newer} found",)

    async def message(self, commit: str) -> str:
        return ""

    async def files(self, commit: str) -> dict[str, bytes]:
        return {}

    async def uncommitted(self, folder: Path) -> tuple[str, ...]:
        return ()


class LightGuards(Guards):
    def __init__(self, process: Process) -> None:
        self._process = process

    async def read(self, branches: tuple[str, ...]) -> Reading:
        await self._process.pause()
        return Reading({}, None, "", "", "", "")


class NothingListed(Kept):
    async def items(self, label: Label | None = None) -> tuple[KeptItem, ...]:
        return ()

    async def bring_back(self, item: KeptItem, branch: str) -> None:
        raise NotImplementedError

    async def purge(self, label: Label, older_than: datetime | None) -> tuple[KeptItem, ...]:
        raise NotImplementedError


class NoLog(EventLog):
    def append(self, run: Address, event: Document) -> None:
        return None

    def read(self, run: Address) -> Iterator[Document]:
        return iter(())


class TickingClock(Clock):
    """A second later at each look, so that no two documents have one time."""

    def __init__(self) -> None:
        self._seconds = 0

    def now(self) -> datetime:
        self._seconds += 1
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic_s(self) -> float:
        return float(self._seconds)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
