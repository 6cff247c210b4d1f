"""One attempt of a step, from a clean tree to its entry."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace

from agl.ports.agents import (
    Acted,
    AgentEvent,
    AgentOutcome,
    AgentTask,
    Equipped,
    Priced,
    Said,
    Spent,
)
from agl.ports.errors import AglError, BranchMoved, RoleIncomplete, StepTimedOut, Transient
from agl.ports.guards import Reading
from agl.ports.integrator import Conflict
from agl.ports.ledger import Entry, Spending
from agl.ports.ledger_json import usage_to_json
from agl.ports.models import Restriction, Usage
from agl.ports.processes import Marker
from agl.ports.shielding import finally_done, finish
from agl.ports.workspace import Keeping, Workspace
from agl.sdk._engine import watch
from agl.sdk._engine.asking import Call, prompt_of
from agl.sdk._engine.capabilities import require
from agl.sdk._engine.patience import Waits
from agl.sdk._engine.reports import AttemptAtWork, Report, agent_tools
from agl.sdk._engine.scope import Asked, ScopeState


class Attempt:
    """One attempt of a step, from a clean tree to its entry."""

    def __init__(self, scope: ScopeState, call: Call, asked: Asked, waits: Waits) -> None:
        self._scope = scope
        self._run = scope.run
        self._call = call
        self._asked = asked
        self._waits = waits
        self._id = uuid.uuid4().hex
        self._namespace = "/".join(scope.scope.path)
        self._nth = scope.nth(asked.name)
        self._begun = scope.chain.next_number
        self._try = scope.run.next_try(self._namespace, asked.name, self._nth)
        self._report = Report(call.role.reporting)
        self._started = self._run.services.clock.now()
        self._usage = Usage()
        self._equipped = Equipped("")
        self._written: Entry | None = None
        self._merged: str | None = None
        self._conflict = Conflict(())
        self._limit: asyncio.Timeout | None = None
        self._meanwhile: list[str] = []
        self._idle_before: Mapping[str, tuple[str, int]] = {}

    async def run(self) -> object:
        name = "/".join((*self._scope.scope.path, self._asked.name))
        with self._run.working(name) as self._meanwhile:
            return await self._go()

    async def _go(self) -> object:
        scope, services = self._scope, self._run.services
        require(services.agents, self._call.role, self._call.model)
        tree = await scope.bring(f"in the way of step {self._asked.name!r}")
        start = scope.chain.tip
        self._idle_before = self._idle()
        before = await services.guards.read(tuple(self._idle_before))
        await self._merge_in(tree)
        self._write_spending()
        self._emit(
            "step_started",
            model=str(self._call.model),
            nth=self._nth,
            attempt=self._id,
        )
        try:
            outcome = await self._agent(tree)
            entry, findings = await finish(self._ending(tree, start, outcome, before))
            self._act_on(findings)
        except BaseException as error:
            if self._written is None and isinstance(error, Exception):
                self._emit("step_failed", error=_said_of(error))
            elif self._written is None:
                self._emit("step_stopped")
            else:
                scope.give_back(self._asked, self._written)
            raise
        finally:
            self._scope.activity = None
        scope.hand_out(entry.head_after)
        return entry.value

    async def _agent(self, tree: Workspace) -> AgentOutcome:
        services, call = self._run.services, self._call
        at_work = AttemptAtWork(
            self._scope.scope,
            f"{self._asked.fingerprint}#{self._scope.ordinal(self._asked)}",
            self._id,
        )
        task = AgentTask(
            scope=self._scope.scope,
            step=self._asked.name,
            nth=self._nth,
            attempt=self._try,
            model=call.model,
            instructions=call.role.instructions,
            prompt=prompt_of(call.inputs),
            tree=tree.path,
            restrictions=call.role.restrictions,
            tools=agent_tools(call.role.tools, self._report, at_work, self._warn),
            marker=self._marker,
            follow_up=self._report.follow_up,
            wait=self._wait,
        )
        try:
            async with (
                finally_done(self._end_processes),
                asyncio.timeout(call.timeout_s) as limit,
            ):
                self._limit = limit
                outcome = await services.agents.run(task, self._hear)
        except AglError as error:
            self._run.failed_in.append((error, self._asked.name))
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StepTimedOut(
                f"step {self._asked.name!r} was still at work after {call.timeout_s} s;"
                f" `agl resume {self._scope.scope.label}` begins it again"
            ) from error
        if self._report.is_missing:
            assert call.role.reporting is not None
            tool, problems = call.role.reporting.name, "; ".join(self._report.problems)
            how = f"with a report to {tool!r} that does not fit ({problems})" if problems else ""
            raise RoleIncomplete(
                f"step {self._asked.name!r} ended {how or f'without calling {tool!r}'};"
                f" `agl resume {self._scope.scope.label}` asks again"
            )
        return outcome

    async def _merge_in(self, tree: Workspace) -> None:
        """Merges the parent's head into the tree, for the agent to conclude."""
        if self._asked.onto is None:
            return
        self._merged = self._asked.onto.chain.tip
        why = f"in the way of step {self._asked.name!r}"
        keeping = self._run.keeping(self._scope.scope, why)
        self._conflict = await self._run.services.integrator.begin(tree, self._merged, keeping)

    async def _refuse_unresolved(self, tree: Workspace) -> None:
        if not self._conflict.paths:
            return
        left = await self._run.services.integrator.unresolved(tree, self._conflict)
        if left.paths:
            paths = ", ".join(repr(one.path) for one in left.paths)
            raise RoleIncomplete(
                f"step {self._asked.name!r} left conflicts unresolved in {paths};"
                f" `agl resume {self._scope.scope.label}` asks again"
            )

    async def _refuse_dropped(self, head: str) -> None:
        """Refuses a merge that the agent gave up: its commit would not hold what it says."""
        if self._merged is None:
            return
        if not await self._run.services.history.is_ancestor(self._merged, head):
            raise RoleIncomplete(
                f"step {self._asked.name!r} ended the merge that it was to conclude;"
                f" `agl resume {self._scope.scope.label}` asks again"
            )

    async def _wait(self, error: Transient) -> None:
        """Waits for the provider; the step's time limit does not run meanwhile."""
        limit, now = self._limit, asyncio.get_running_loop().time
        ends = limit.when() if limit is not None and not limit.expired() else None
        if limit is None or ends is None:
            await self._waits.wait(error)
            return
        left_s = ends - now()
        limit.reschedule(None)
        try:
            await self._waits.wait(error)
        finally:
            limit.reschedule(now() + left_s)

    async def _end_processes(self) -> None:
        survivors = await self._run.services.processes.end(self._marker)
        if survivors:
            self._emit("survivors_ended", processes=[one.command for one in survivors])

    async def _ending(
        self, tree: Workspace, start: str, outcome: AgentOutcome, before: Reading
    ) -> tuple[Entry, watch.Findings]:
        """From the agent's last word to the entry; no cancellation gets in between."""
        keeping = self._run.keeping(self._scope.scope, f"left by step {self._asked.name!r}")
        for one in self._run.services.processes.standing_in(tree.path):
            self._warn(f"process {one.pid} ({one.command}) stands in the tree and was left alone")
        head = start
        if self._call.message is not None:
            await self._refuse_unresolved(tree)
            head = await self._committed(tree, start, self._call.message, keeping)
            await self._refuse_dropped(head)
        else:
            await tree.restore(start, keeping)
        after = await self._run.services.guards.read(tuple(self._idle_before))
        now = self._idle()
        idle = {
            branch: seen[0] for branch, seen in self._idle_before.items() if now.get(branch) == seen
        }
        findings = watch.compare(before, after, idle, tuple(self._meanwhile))
        entry = self._written = self._scope.write(
            self._asked,
            self._report.value,
            started=self._started,
            head_before=start,
            head_after=head,
            attempts=(self._id,),
            model=outcome.model,
            usage=self._usage,
            merged=self._merged,
        )
        self._run.ran += 1
        self._emit(
            "step_finished",
            head=head,
            changed=head != start,
            duration_s=(entry.finished - entry.started).total_seconds(),
            usage=usage_to_json(self._usage),
        )
        if self._call.message is not None and head == start:
            self._warn(f"step {self._asked.name!r} changed no file, so there was nothing to commit")
        return entry, findings

    async def _committed(self, tree: Workspace, start: str, message: str, keeping: Keeping) -> str:
        try:
            return await tree.commit_all(start, message, keeping)
        except BranchMoved as error:
            raise BranchMoved(
                f"{error} while {watch.named(self._meanwhile)} was at work, so nothing of step"
                f" {self._asked.name!r} was recorded; `agl resume {self._scope.scope.label}` keeps"
                " what is there and begins it again"
            ) from error

    def _act_on(self, findings: watch.Findings) -> None:
        for remark in findings.remarks:
            self._warn(f"during step {self._asked.name!r} {remark}")
        if findings.breach is not None:
            raise findings.breach

    def _idle(self) -> Mapping[str, tuple[str, int]]:
        """The branches of this run's other scopes that nothing works on, with their heads and how
        often their turns were taken."""
        return {
            scope.branch: (state.chain.tip, state.turn.count)
            for scope, state in self._run.scopes.items()
            if state is not self._scope and not state.turn.locked()
        }

    @property
    def _marker(self) -> Marker:
        return Marker(self._run.marker.run, self._id)

    def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, Acted):
            self._waits.progressed()
        match event:
            case Said(text):
                self._emit("agent_said", text=text)
            case Acted(activity):
                self._scope.activity = activity
                self._emit("agent_acted", activity=activity)
            case Equipped(program, sandbox, lack):
                self._equipped = event
                if lack and Restriction.NO_SHELL not in self._call.role.restrictions:
                    self._warn_of_no_sandbox(lack)
                self._scope.activity = program
                self._emit("agent_equipped", program=program, sandbox=sandbox)
                self._write_spending()
            case Spent(usage):
                self._usage += usage
                self._write_spending()
            case Priced(cost_usd):
                self._usage = replace(self._usage, cost_usd=cost_usd)
                self._write_spending()

    def _warn_of_no_sandbox(self, lack: str) -> None:
        """Once for all steps that meet the same."""
        if lack not in self._run.lacks:
            self._run.lacks.add(lack)
            self._warn(
                f"nothing confines the shell of step {self._asked.name!r} to what its role may do:"
                f" {lack}; `agl doctor` says what to install"
            )

    def _write_spending(self) -> None:
        spending = Spending(
            attempt=self._id,
            namespace=self._namespace,
            step=self._asked.name,
            nth=self._nth,
            begun=self._begun,
            model=str(self._call.model),
            usage=self._usage,
            started=self._started,
            updated=self._run.services.clock.now(),
            program=self._equipped.program,
            sandbox=self._equipped.sandbox,
        )
        self._run.spendings[self._id] = spending
        self._run.ledger.write_spending(spending)

    def _emit(self, kind: str, **details: object) -> None:
        self._run.emit(kind, self._scope.scope, self._asked.name, **details)

    def _warn(self, text: str) -> None:
        self._run.emit("warned", self._scope.scope, self._asked.name, text=text)


def _said_of(error: Exception) -> str:
    """AGL's own errors are sentences."""
    return str(error) if isinstance(error, AglError) else f"{type(error).__name__}: {error}"
