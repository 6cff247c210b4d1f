"""A reference for replay in any order: what was run, where, and what may be served again.

A tree is the list of the results that it contains, and a result is a number that no other has. The
engine is driven through `api.runs` over light fakes; programs stand for workflows and their edits.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from types import ModuleType, NoneType
from typing import Any, TypeVar

from agl.adapters.memory.locks import MemoryLocks
from agl.adapters.memory.processes import MemoryProcesses
from agl.adapters.memory.store import MemoryStore
from agl.api import runs
from agl.api.endings import Report
from agl.ports.agents import AgentTask
from agl.ports.errors import InputError, NotFoundError, Overloaded, StateError
from agl.ports.ids import Label, Namespace, ProjectName, Scope
from agl.ports.models import ModelId
from agl.ports.store import Address, Document
from agl.ports.terminal import Screen, TextInput
from agl.sdk._engine.asking import prompt_of
from agl.sdk._engine.services import Services
from agl.sdk.landing import Landing
from agl.sdk.roles import Role
from agl.sdk.run import Child, Run
from agl.sdk.tools import reporting_tool
from agl.sdk.workflows import Workflow
from engine.light import (
    BUILD,
    JumpingLoop,
    Killed,
    LightAgent,
    LightGuards,
    LightHistory,
    LightIntegrator,
    LightRepository,
    LightTerminal,
    LightVerifier,
    LightWorkspaces,
    MortalStore,
    NoLog,
    NothingListed,
    TickingClock,
    Tree,
)

T = TypeVar("T")

Key = tuple[str, str, str]
"""What is asked: its kind, its own words, and its inputs."""

PROJECT, LABEL = ProjectName("light"), Label("run")
ROOT = Scope(PROJECT, LABEL)
MODULE = "any_order_flow"
MODEL = ModelId("light", "model")
ON_CHAIN = ("step", "verify", "child", "landing")
SETTLED = ("landed", "nothing", "aborted", "released")


# Programs: what stands for a workflow.


@dataclass(frozen=True, slots=True)
class Leaf:
    """One call. Kinds of step: `write` commits, `tell` commits and reports, `look` throws away and
    reports, `idle` may commit, changes nothing and reports, `repair` merges the parent in and
    commits. `takes`: the last value is an input. `touch`: the file that the result changes, "red"
    to break the build, or nothing."""

    kind: str
    name: str = "s"
    text: int = 0
    takes: bool = False
    touch: str = ""


@dataclass(frozen=True, slots=True)
class Nest:
    """A child and what it does. `end`: it is never landed (`leave`), or landed, and where that
    meets a conflict or a red build, a `person` or a `repair` settles it, or it is given up
    (`abort`), or nobody settles it (`forget`)."""

    name: str
    body: Program
    end: str = "abort"
    based: bool = False


Item = Leaf | Nest | tuple[tuple[Leaf | Nest, ...], ...]
Program = tuple[Item, ...]
STEPS = ("write", "tell", "look", "idle", "repair")


def leaves(program: Program) -> Iterator[Leaf]:
    for item in program:
        if isinstance(item, Leaf):
            yield item
        elif isinstance(item, Nest):
            yield from leaves(item.body)
        else:
            for branch in item:
                yield from leaves(branch)


def has_children(program: Program) -> bool:
    return any(
        isinstance(item, Nest) or (isinstance(item, tuple) and any(map(has_children, item)))
        for item in program
    )


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
    """A call as its task makes it. `given`: for a verdict, the head that the task was last handed,
    None before any. Repeats of equal ones are counted."""

    key: Key
    given: str | None
    scope: Scope = ROOT


@dataclass(slots=True, eq=False)
class Note:
    """An entry as it was written; a later epoch may adopt it and write it once more."""

    scope: Scope
    kind: str
    name: str
    epoch: int
    number: int
    ordinal: int
    given: str | None
    merged: str | None
    before: str
    after: str
    start: str | None = None
    ran: Ran | None = None
    stages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def called(self) -> str:
        return f"{self.name}/" if self.kind == "landing" else self.name

    @property
    def is_open(self) -> bool:
        return bool(self.stages) and not self.is_settled

    @property
    def is_settled(self) -> bool:
        return bool(self.stages) and self.stages[-1]["state"] in SETTLED


@dataclass(slots=True, eq=False)
class Ran:
    """Something that was run: its result, what was asked, and the tree it began on."""

    result: int
    scope: Scope
    key: Key
    name: str
    ordinal: int
    start: Tree
    writes: bool
    end: Tree = ()
    places: list[Note] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cut:
    """What `--again` wrote: all of the scope that is numbered from `first` on is out of use, and
    from the nth of that name on nothing older is adopted."""

    scope: Scope
    number: int
    first: int
    name: str
    nth: int


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call that returned to the workflow, and the calls that came before it in its program. `ran`
    None: a landing that landed."""

    scope: Scope
    ran: Ran | None
    start: Tree
    end: Tree
    before: tuple[Call, ...]

    @property
    def is_on_tree(self) -> bool:
        return self.ran is None or self.ran.key[0] not in ("ask", "record")


@dataclass(slots=True)
class At:
    """Where a task of the workflow stands."""

    before: tuple[Call, ...] = ()
    last: int = 0


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
        self.green: set[str] = set()
        self.ran: dict[tuple[Scope, Key], list[Ran]] = defaultdict(list)
        self.by_result: dict[int, Ran] = {}
        self.by_attempt: dict[str, Ran] = {}
        self.notes: dict[Scope, dict[int, Note]] = defaultdict(dict)
        self.cuts: list[Cut] = []
        self.half_cut = False
        self.last: Process | None = None
        self.seen: Counter[str] = Counter()

    def must(self, holds: bool, claim: str) -> None:
        if not holds:
            self.wrong.append(claim)

    @property
    def every(self) -> Iterator[Ran]:
        return iter(self.by_result.values())

    # What counts.

    def is_cut(self, note: Note) -> bool:
        return any(
            cut.scope == note.scope and cut.first <= note.number < cut.number for cut in self.cuts
        )

    def counts(self, note: Note) -> bool:
        """Whether what is recorded is neither cut away nor lost."""
        lost = note.ran is not None and note.ran.result in self.lost
        return not lost and not self.is_cut(note)

    def live(self, scope: Scope) -> list[Note]:
        """What this epoch holds of the scope, along its one line of commits."""
        base = self.base(scope)
        heads, found = {base}, []
        for number in sorted(self.notes[scope]):
            note = self.notes[scope][number]
            if (
                note.kind in ON_CHAIN
                and note.epoch == self.epoch
                and note.before in heads
                and self.counts(note)
                and (note.merged is None or note.merged in self.heads(scope.parent))
            ):
                found.append(note)
                heads.add(note.after)
        return found

    def base(self, scope: Scope) -> str | None:
        """Where the scope starts; None for a child that this epoch has not begun."""
        if not scope.path:
            return self.repo.base
        begun = [
            note
            for note in self.live(scope.parent)
            if note.kind == "child" and note.name == scope.path[-1]
        ]
        return begun[-1].start if begun else None

    def tip(self, scope: Scope) -> str | None:
        tip = self.base(scope)
        for note in self.live(scope):
            tip = note.after if note.after != note.before else tip
        return tip

    def heads(self, scope: Scope) -> set[str | None]:
        return {self.base(scope), *(note.after for note in self.live(scope))}

    def may_adopt(self, note: Note, last: int = sys.maxsize) -> bool:
        """Whether this epoch may go on with what an older one recorded, `last` being the number of
        the last entry of the chain that it would go on from."""
        named = [
            one.called
            for one in self.notes[note.scope].values()
            if one.kind in ("step", "verify", "landing")
            and one.epoch == self.epoch
            and one.number <= last
            and self.counts(one)
        ]
        named += [note.called] if note.kind != "child" else []
        after = max(
            (
                cut.number
                for cut in self.cuts
                if cut.scope == note.scope and named.count(cut.name) >= cut.nth
            ),
            default=0,
        )
        return note.epoch < self.epoch and note.number > after and self.counts(note)

    def _is_served(self, ran: Ran, given: str | None) -> bool:
        live = self.live(ran.scope)
        return any(note in live and note.given == given for note in ran.places)

    def _is_adoptable(self, ran: Ran) -> bool:
        return any(
            note.before == self.tip(ran.scope)
            and (note.merged is None or note.merged == self.tip(ran.scope.parent))
            and self.may_adopt(note)
            for note in ran.places
        )

    def resolved(self, asked: Asked) -> Asked:
        if asked.key[0] == "verify" and asked.given is None:
            return replace(asked, given=self.base(asked.scope))
        return asked

    # What is run and served.

    def begin(self, process: Process, name: str, tree: Tree, *, writes: bool = False) -> Ran:
        """Something is run in earnest: nothing recorded may have answered it."""
        asked = self.resolved(calling.get())
        key, ordinal, scope = asked.key, process.returned[asked], asked.scope
        for one in self.ran[scope, key]:
            if one.ordinal != ordinal or one.result in self.lost:
                continue
            if key[0] in ("ask", "record"):
                self.must(not one.places, f"{key} was asked again")
            elif key[0] == "verify" and self._is_outdated(process, one):
                continue
            elif self._is_served(one, asked.given):
                self.must(False, f"{key} #{ordinal} is recorded in this epoch and ran again")
            elif self._is_adoptable(one):
                self.must(False, f"{key} #{ordinal} is recorded on this very tree and ran again")
        ran = Ran(len(self.by_result) + 1, scope, key, name, ordinal, tree, writes, tree)
        self.ran[scope, key].append(ran)
        self.by_result[ran.result] = ran
        return ran

    def served(self, process: Process, asked: Asked) -> Ran | None:
        """What the engine can only have meant by what it just returned."""
        key, ordinal = asked.key, process.returned[asked]
        anywhere = key[0] in ("ask", "record")
        fits = [
            one
            for one in self.ran[asked.scope, key]
            if one.ordinal == ordinal
            and (one.places if anywhere else self._is_served(one, asked.given))
        ]
        if key[0] == "verify" and fits:
            fits = [max(fits, key=lambda one: max(place.number for place in one.places))]
        self.must(len(fits) == 1, f"{key} #{ordinal} returned, recorded {len(fits)} times")
        return fits[0] if fits else None

    def _is_outdated(self, process: Process, verdict: Ran) -> bool:
        """Whether this process moved the tree after the verdict was recorded; it may then be asked
        for anew."""
        last = max((place.number for place in verdict.places), default=0)
        return any(number > last for number in process.moves[verdict.scope])

    def is_landing(self, tree: str) -> bool:
        """Whether a landing of this epoch in that tree is not settled."""
        return any(
            note.kind == "landing" and note.epoch == self.epoch and not note.is_settled
            for scope, notes in self.notes.items()
            if scope.tree == tree
            for note in notes.values()
        )

    # What is written.

    def note(self, process: Process, address: Address, document: Document) -> None:
        """A document was written."""
        if address[-2] == "epochs":
            number, source = document["number"], str(document["source"])
            assert isinstance(number, int)
            if number != self.epoch:
                self.must(number == self.epoch + 1, f"epoch {number} follows {self.epoch}")
                self.must(source != self.source, f"epoch {number} has the source of the last one")
            self.epoch, self.source = number, source
        elif "fingerprint" in document:
            scope, parts = ROOT, address[4:]
            while parts[0] == "worktrees":
                scope, parts = scope.child(Namespace(parts[1])), parts[2:]
            self._note_entry(process, scope, document)

    def _note_entry(self, process: Process, scope: Scope, document: Any) -> None:
        kind, value, number = document["kind"], document["value"], document["number"]
        if kind == "cut":
            name, nth = value["step"], value["nth"]
            first = document["cut_from"]
            if not scope.path:
                expected = self.nth_of(scope, name, nth).get(self.epoch, number)
                self.must(first == expected, f"--again cuts from {first}, not {expected}")
            self.cuts.append(Cut(scope, number, first, name, nth))
            return
        note = Note(
            scope,
            kind,
            document["name"],
            document["epoch"],
            number,
            document["ordinal"],
            document["given"] if kind == "landing" else None,
            document["merged"],
            document["head_before"],
            document["head_after"],
        )
        self.seen[kind] += 1
        old = self.notes[scope].get(number)
        if kind in ON_CHAIN and old is None:
            here = self.tip(scope)
            begins: set[str | None] = {here}
            if kind == "child" and document["copy_of"] is not None:
                begins |= self.heads(scope)
            self.must(note.before in begins, f"{kind} {note.name!r} began off the tip {here}")
            if kind != "child" and not process.stage.faults and not process.stage.failing:
                held = [one.name for one in self.live(scope) if one.before == here and one.is_open]
                self.must(not held, f"{kind} {note.name!r} ran while {held} waited in the tree")
        if kind == "landing":
            note.stages = [
                {name: one[name] for name in one if name != "at"} for one in value["stages"]
            ]
            self._note_landing(process, note, old, document["copy_of"])
        elif kind == "child":
            note.start = value["start"]
        else:
            self._note_ran(note, document)
        self.notes[scope][number] = note
        if note.after != note.before:
            process.moves[scope].append(number)

    def _note_ran(self, note: Note, document: Any) -> None:
        kind, value = note.kind, document["value"]
        if kind == "step":
            ran = self.by_attempt[document["attempts"][0]]
        elif kind == "verify":
            ran = self.by_result[int(value["tail"])]
        elif kind == "ask":
            ran = self.by_result[int(value["typed"])]
        else:
            ran = self.by_result[value]
        given = self.resolved(calling.get()).given
        for one in ran.places:
            same = (one.epoch, one.given) == (note.epoch, given)
            twice = same and one in self.live(note.scope)
            self.must(not twice, f"{ran.key} was recorded twice in one epoch")
        if ran.places:
            self.seen["adopted"] += 1
            adopted = any(self.may_adopt(one, note.number) for one in ran.places)
            self.must(adopted, f"{ran.key} was adopted in spite of a cut")
        if kind == "step":
            before, after = self.repo.tokens(note.before), self.repo.tokens(note.after)
            more = set(after) - set(before)
            if note.merged is not None:
                more -= set(self.repo.tokens(note.merged))
            fits = more == ({ran.result} if ran.writes else set())
            self.must(fits and after[: len(before)] == before, f"{ran.key} committed {more}")
            ran.end = after
        note.given, note.ran = given, ran
        ran.places.append(note)

    def _note_landing(
        self, process: Process, note: Note, old: Note | None, copy_of: int | None
    ) -> None:
        """The laws of one landing: it goes on from what it was, nothing follows once it is settled,
        and what is said to have landed has, on the tip, and passed the gate."""
        what = f"landing of {note.name!r}"
        child = note.scope.child(Namespace(note.name))
        states = [stage["state"] for stage in note.stages]
        if states:
            self.seen[states[-1]] += 1
        if old is not None:
            self.must(note.stages[: len(old.stages)] == old.stages, f"the {what} lost a stage")
            follows = not old.is_settled or (old.stages[-1]["state"], states[-1]) == (
                "released",
                "aborted",
            )
            self.must(follows, f"{states[-1]} came after the {what} was settled")
        else:
            for other in self.live(note.scope):
                if (
                    other.kind == "landing"
                    and (other.name, other.given, other.ordinal)
                    == (note.name, note.given, note.ordinal)
                    and other.stages
                ):
                    moved = other.stages[-1]["child"] != self.tip(child) and process.moves[child]
                    self.must(bool(moved), f"the {what} is recorded in this epoch and begun again")
        if copy_of is not None and old is None:
            older = self.notes[note.scope][copy_of]
            self.seen["adopted landing"] += 1
            self.must(self.may_adopt(older), f"the {what} was adopted in spite of a cut")
            fits = note.stages[0]["child"] == self.tip(child)
            self.must(fits, f"the {what} was adopted, and the child is elsewhere")
        if old is not None and copy_of is not None:
            self._note_taken_over(note, self.notes[note.scope][copy_of])
        if not note.stages:
            return
        last = note.stages[-1]
        head, came = last["head"], last["child"]
        if last["state"] == "landed":
            parents = self.repo.commits[head].parents
            self.must(parents == (note.before, came), f"the {what} is a merge of {parents}")
            self.must(head in self.green, f"the {what} passed no gate")
            self.must(note.after == head, f"the {what} did not move its parent")
            if old is not None:
                self.must(self.tip(note.scope) == note.before, f"the {what} is beside the tip")
        elif last["state"] == "nothing":
            self.must(self.repo.contains(note.before, came), f"the {what} had something to land")

    def _note_taken_over(self, note: Note, older: Note) -> None:
        """What an older epoch landed of the same, on the same tree, is taken as it is."""
        nth = len(note.stages) - 1
        if older.stages[:nth] == note.stages[:nth] and len(older.stages) > nth:
            then, now = older.stages[nth], note.stages[nth]
            if then["state"] == "landed" and then["child"] == now["child"]:
                self.must(then == now, f"the landing of {note.name!r} was made again: {now}")

    def nth_of(self, scope: Scope, name: str, nth: int) -> dict[int, int]:
        """For each epoch, the number of its nth step, verdict or landing of that name."""
        numbers: dict[int, list[int]] = defaultdict(list)
        live = self.live(scope)
        for number, note in sorted(self.notes[scope].items()):
            if (
                note.kind in ("step", "verify", "landing")
                and note.called == name
                and (note in live or (note.epoch != self.epoch and self.counts(note)))
            ):
                numbers[note.epoch].append(number)
        return {epoch: found[nth - 1] for epoch, found in numbers.items() if len(found) >= nth}

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
            in_child = again is not None and "/" in again.rstrip("/#0123456789")
            there = bool(stage.again and self.nth_of(ROOT, *stage.again))
            try:
                if begun:
                    work = runs.resume(services, lambda _: loaded, LABEL, again=again)
                else:
                    work = runs.run(services, loaded, LABEL, None)
                with asyncio.Runner(loop_factory=JumpingLoop) as runner:
                    report = runner.run(asyncio.wait_for(work, 600))
            except NotFoundError:
                self.must(not there, f"--again {again} was refused")
                return None
            except TimeoutError:
                self.must(False, "the run hangs")
                return None
            except BaseException as error:
                if not process.dead:
                    raise
                self.must(_is_death(error), f"dead, and then {error!r}")
                self.half_cut = self.half_cut or (again is not None and not process.has_begun)
                return None
        self.must(there or again is None or in_child, f"--again {again} was taken")
        self.must(all(ran.places for ran in process.endings), "an ending was left half done")
        if report.outcome == "finished":
            if not report.message.startswith("finished already"):
                self.last = process
                self._check_children(process, report)
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
        self.must(self.repo.trees["_base"].is_clean, "the tree is not clean at the end")
        if not has_children(process.program):
            asked = sum(1 for _ in leaves(process.program))
            self.must(asked == len(process.calls), "the program was not walked")
        written = process.contents[ROOT]
        landed = set(tree) - self.repo.typed
        fits = written <= landed if self.may_hold_more else written == landed
        self.must(fits, f"{tree} is in the tree, and not {sorted(written)}")
        self.must(len(set(tree)) == len(tree), f"{tree} has a result twice")
        for call in process.calls:
            self._check_call(process, call)
        lost = self.repo.written - self.repo.reachable()
        self.must(not lost, f"{lost} cannot be found again")

    @property
    def may_hold_more(self) -> bool:
        """Whether trees may hold more than the program asks for: `--again` of a step in a child
        leaves what others made of its values, and one that is killed before all is cut off does, in
        part."""
        return self.half_cut or any(cut.scope.path for cut in self.cuts)

    def _check_call(self, process: Process, call: Call) -> None:
        if not call.is_on_tree:
            return
        what = call.ran.key if call.ran else "a landing"
        tip = self.tip(call.scope)
        final = self.repo.tokens(tip) if tip is not None else ()
        self.must(final[: len(call.end)] == call.end, f"{what} ended on {call.end}, not {final}")
        if self.may_hold_more:
            return
        earlier = [one for one in call.before if one.is_on_tree]
        entered = process.entered.get(call.scope, ())
        for one in earlier:
            served = call.ran not in process.executed
            if served and one.ran is not None and self._is_anew(one.ran):
                continue
            if one.scope == call.scope or (
                call.scope.path and one.scope == call.scope.parent and one in entered
            ):
                behind = call.start[: len(one.end)] == one.end
                before = one.ran.key if one.ran else "a landing"
                self.must(behind, f"{what} ran before {before}")

    def _is_anew(self, ran: Ran) -> bool:
        """Whether a build that this epoch had recorded ran again, because a task that has ended
        moved the tree meanwhile."""
        return any(
            one is not ran and one.ordinal == ran.ordinal and self._is_served(one, place.given)
            for one in self.ran[ran.scope, ran.key]
            for place in ran.places
        )

    def _check_children(self, process: Process, report: Report) -> None:
        """Each child has landed, once, or is said not to have."""
        open_ones = []
        for scope in process.walked:
            contents, tip = process.contents[scope], self.tip(scope)
            assert tip is not None
            above = self.tip(scope.parent)
            assert above is not None
            mine = set(self.repo.tokens(tip)) - self.repo.typed
            rest = mine - contents - set(self.repo.tokens(above))
            name = "/".join(scope.path)
            self.must(contents <= mine, f"{name!r} lost {contents - mine}")
            self.must(
                self.may_hold_more or not rest,
                f"{name!r} holds {rest}, which this program did not make there",
            )
            if not contents <= process.contents[scope.parent]:
                open_ones.append(name)
            landed = Counter(
                note.stages[-1]["child"]
                for note in self.live(scope.parent)
                if note.kind == "landing" and note.name == scope.path[-1] and note.stages
                if note.stages[-1]["state"] == "landed"
            )
            self.must(max(landed.values(), default=1) == 1, f"{name!r} landed twice")
        if self.may_hold_more:
            return
        self.must(
            report.unlanded == tuple(sorted(open_ones)),
            f"{report.unlanded} are said not to have landed, and {open_ones} have not",
        )
        if open_ones:
            self.must(report.result == "not_landed", f"the run is said to be {report.result}")
        elif process.contents[ROOT]:
            self.must(report.result == "landed", f"the run is said to be {report.result}")

    @contextmanager
    def _loaded(self, program: Program, process: Process) -> Iterator[runs.Loaded]:
        async def flow(run: Run[None]) -> None:
            process.has_begun = True
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
        self.has_begun = False
        self.calls: list[Call] = []
        self.returned: Counter[Asked] = Counter()
        self.executed: list[Ran] = []
        self.endings: list[Ran] = []
        self.gates: list[str] = []
        self.nths: list[int] = []
        self.moves: dict[Scope, list[int]] = defaultdict(list)
        self.contents: dict[Scope, set[int]] = defaultdict(set)
        self.walked: set[Scope] = set()
        self.entered: dict[Scope, tuple[Call, ...]] = {}
        self.forgotten: dict[Scope, list[Landing]] = defaultdict(list)
        self._parents: dict[Run[None], Run[None]] = {}
        self._random = Random(stage.seed)
        self._left = stage.kill
        self._faults_left = 3 if stage.faults else 0

    def services(self) -> Services:
        repo = self.world.repo
        return Services(
            project=PROJECT,
            build=BUILD,
            build_timeout_s=1.0,
            marker_root="light",
            checkout=None,
            store=MortalStore(self),
            log=NoLog(),
            locks=MemoryLocks(),
            workspaces=LightWorkspaces(self),
            integrator=LightIntegrator(self),
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
        repo = self.world.repo
        here = repo.trees.get(calling.get().scope.tree)
        tree = repo.tokens(repo.head(here)) if here else ()
        ran = self.world.begin(self, name, tree, writes=writes)
        self.executed.append(ran)
        return ran

    def begin_step(self, task: AgentTask, *, writes: bool) -> Ran:
        asked, key = calling.get(), ("step", task.instructions, task.prompt)
        fits = (key, task.scope) == (asked.key, asked.scope)
        self.world.must(fits, f"{key} was run for {asked}")
        ran = self.begin(task.step, writes=writes)
        self.nths.append(task.nth)
        assert task.marker.attempt is not None
        self.world.by_attempt[task.marker.attempt] = ran
        return ran

    def touch(self, result: int, words: str) -> None:
        """What the result of a step with these words does to other results."""
        repo = self.world.repo
        _, _, touched = words.partition("!")
        if "/repair/" in words:
            repo.mending.add(result)
        elif touched.startswith("red"):
            repo.red.add(result)
        elif touched:
            repo.files[result] = touched[0]

    def ends(self, scope: Scope) -> None:
        """A step of that scope has come to its ending."""
        steps = [ran for ran in self.executed if (ran.key[0], ran.scope) == ("step", scope)]
        self.endings.append(steps[-1])

    async def call(
        self,
        run: Run[None],
        leaf: Leaf,
        where: str,
        at: At,
        scope: Scope = ROOT,
        *,
        onto: Run[None] | None = None,
    ) -> None:
        """One call of the workflow, as the task at `at` makes it in branch `where`."""
        await self.pause()
        touch = f"!{leaf.touch}" if leaf.touch else ""
        words = f"{leaf.name}/{leaf.kind}/{leaf.text}{touch}{where}"
        inputs = {"prior": at.last} if leaf.takes and leaf.kind not in ("verify", "ask") else {}
        kind = "step" if leaf.kind in STEPS else leaf.kind
        key = (kind, words, prompt_of(inputs))
        asked = Asked(key, seen(run) if kind == "verify" else None, scope)
        while True:
            calling.set(asked)
            try:
                value = await self.patient(scope, lambda: self._ask(run, leaf, words, inputs, onto))
                break
            except Overloaded:
                if self.stage.faults != "caught":
                    raise
        asked = self.world.resolved(asked)
        ran = self.world.served(self, asked)
        self.returned[asked] += 1
        if ran is None:
            return
        self.world.must(value in (None, ran.result), f"{key} returned {value}, not {ran.result}")
        if kind == "verify":
            unseen = {
                call.ran.result
                for call in at.before
                if call.ran is not None
                and call.scope == scope
                and call.ran in self.executed
                and call.ran.writes
            } - set(ran.start)
            self.world.must(not unseen, f"{key} was answered without {unseen}, just done before")
        if ran.writes:
            self.contents[scope].add(ran.result)
        if kind == "step":
            head = self.world.repo.tokens(run.head)
            self.world.must(head == ran.end, f"{key} ended at {ran.end}, and head is {head}")
        self._returns(at, scope, ran, ran.start, ran.end)
        at.last = at.last if value is None else value

    def _returns(self, at: At, scope: Scope, ran: Ran | None, start: Tree, end: Tree) -> None:
        self.calls.append(Call(scope, ran, start, end, at.before))
        at.before = (*at.before, self.calls[-1])

    async def _ask(
        self,
        run: Run[None],
        leaf: Leaf,
        words: str,
        inputs: dict[str, Any],
        onto: Run[None] | None,
    ) -> int | None:
        match leaf.kind:
            case "write":
                await run.step(silent(leaf.name, words), commit="write", **inputs)
                return None
            case "repair":
                role = silent(leaf.name, words)
                await run.step(role, commit="repair", merging=onto, **inputs)
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

    # Children.

    async def patient(self, scope: Scope, work: Callable[[], Awaitable[T]]) -> T:
        """Waits while a landing is held in the scope, and gives up those that were forgotten."""
        for _ in range(500):
            try:
                return await work()
            except StateError as error:
                said = str(error)
                if "waits in the tree" not in said and "cannot land while" not in said:
                    raise
                asked = calling.get()
                if self.forgotten[scope]:
                    landing = self.forgotten[scope].pop()
                    if landing.conflicted:
                        # In a task of its own: a replay asks for it nowhere, or elsewhere.
                        await asyncio.create_task(landing.abort())
                else:
                    await asyncio.sleep(0.01)
                calling.set(asked)
        raise AssertionError(f"{scope.tree} is held for ever")

    async def nest(self, run: Run[None], nest: Nest, where: str, at: At, scope: Scope) -> None:
        """A child of the workflow, and its landing."""
        name = nest.name + where.replace("@", "-")
        child = run.worktree(name, "c0" if nest.based else None)
        self._parents[child] = run
        inner = scope.child(child.namespace)
        if not nest.based:
            self.entered.setdefault(inner, at.before)
        await along(self, child, nest.body, where, at, inner)
        if nest.end != "leave" or any(True for _ in leaves(nest.body)):
            self.walked.add(inner)
        if nest.end == "leave":
            return
        while True:
            try:
                await self._land(child, nest, where, at, scope)
                return
            except Overloaded:
                if self.stage.faults != "caught":
                    raise

    async def _land(self, child: Child[None], nest: Nest, where: str, at: At, scope: Scope) -> None:
        await self.pause()
        inner = scope.child(child.namespace)
        asked = Asked(("landing", child.namespace, ""), None, scope)
        came = frozenset(self.contents[inner])
        calling.set(asked)
        landing = await self.patient(scope, child.integrate)
        tries = 0
        while landing.conflicted:
            tries += 1
            await self.pause()
            if nest.end == "forget":
                self.forgotten[scope].append(landing)
                return
            if nest.end == "abort" or tries > 8:
                calling.set(asked)
                await landing.abort()
                self.world.must(not landing.landed, f"{asked} was given up and landed")
                return
            if nest.end == "person":
                question = Leaf("ask", "resolve")
                parent = self._parents[child]
                await self.call(parent, question, f"{where}~{child.namespace}", at, scope)
            else:
                repair, parent = Leaf("repair", "r"), self._parents[child]
                await self.call(child, repair, where, at, inner, onto=parent)
            came = frozenset(self.contents[inner])
            calling.set(asked)
            await landing.retry()
        tree = self.world.repo.tokens(landing.head)
        missing = came - set(tree)
        if landing.landed or landing.nothing:
            self.world.must(not missing, f"{child.namespace} landed without {missing}")
        if landing.landed:
            self.contents[scope] |= came
            self._returns(at, scope, None, tree, tree)


def seen(run: Run[None]) -> str | None:
    """The head that the calling task was last handed, None in a child that has not begun."""
    try:
        return run.head
    except InputError:
        return None


Walk = Callable[[Process, Run[None]], Awaitable[None]]


async def in_order(process: Process, run: Run[None]) -> None:
    """Item after item, the branches of one item side by side."""
    await along(process, run, process.program, "", At(), ROOT)


async def along(
    process: Process,
    run: Run[None],
    program: Program | tuple[Leaf | Nest, ...],
    where: str,
    at: At,
    scope: Scope,
) -> None:
    for item in program:
        if isinstance(item, Leaf):
            await process.call(run, item, where, at, scope)
        elif isinstance(item, Nest):
            await process.nest(run, item, where, at, scope)
        else:
            parts = [At(at.before, at.last) for _ in item]
            async with asyncio.TaskGroup() as group:
                for index, branch in enumerate(item):
                    here = f"{where}@{index}"
                    group.create_task(along(process, run, branch, here, parts[index], scope))
            at.before = tuple(dict.fromkeys(call for part in parts for call in part.before))
            at.last = parts[0].last


async def gathered(process: Process, run: Run[None]) -> None:
    """All branches of the one item to their ends; then the first failure is raised."""
    (item,) = process.program
    assert isinstance(item, tuple)
    calls = [
        along(process, run, branch, f"@{index}", At(), ROOT) for index, branch in enumerate(item)
    ]
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


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
