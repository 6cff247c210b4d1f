"""The loop: call the model, run the tools it asks for, and again, until it asks for none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext

from agl.loop import events
from agl.loop.checkpoint import Checkpoint
from agl.loop.events import Approved, Emit, Event, Outcome, Refused
from agl.loop.limits import Limits
from agl.loop.records import Answered, Begun, Returned, Told
from agl.loop.trajectory import Trajectory, with_own_ids
from agl.ports.agents import AgentTool, ToolAnswer
from agl.ports.errors import InputError, LimitReached, leaves
from agl.ports.llm import (
    LLM,
    Ending,
    InvalidArguments,
    LLMRequest,
    Purpose,
    ToolSpec,
    ToolUse,
    plain,
)
from agl.ports.models import ModelId

Gate = Callable[[ToolUse], Awaitable[Approved | Refused]]

_GO_ON = "Go on."
_MAX_ERROR = 2_000
_INTERRUPTED = ToolAnswer(
    "The program was stopped while this was running: it may or may not have happened, and it was"
    " not repeated. Look what is there before you go on.",
    is_error=True,
)


class Agent:
    """A model with tools. It holds no state of a run: that is all in the run's Trajectory."""

    def __init__(
        self,
        llm: LLM,
        *,
        model: ModelId | str,
        system: str = "",
        tools: Sequence[AgentTool] = (),
        gate: Gate | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        checkpoint: Checkpoint | None = None,
        follow_up: Callable[[], str | None] | None = None,
        max_output_tokens: int | None = None,
        purpose: Purpose = Purpose(),  # noqa: B008 - frozen
    ) -> None:
        self._llm = llm
        self._model = ModelId.parse(model) if isinstance(model, str) else model
        self._system = system
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            names = [tool.name for tool in tools]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"two tools are called {twice!r}; rename one")
        self._specs = tuple(ToolSpec(t.name, t.description, t.schema, t.reports) for t in tools)
        self._gate = gate
        self._limits = limits
        self._checkpoint = checkpoint
        self._follow_up = follow_up
        self._max_output_tokens = max_output_tokens
        self._purpose = purpose

    async def run(self, prompt: str, emit: Emit = lambda event: None) -> Outcome:
        """Works on the prompt until the model asks for nothing more. With a checkpoint that holds
        a run on the same prompt, goes on with that one; a finished one is only told again.

        When this returns or raises, also by cancellation, no tool is at work.

        Raises:
            LimitReached: a limit of this agent.
            InputError: the checkpoint holds a run on another prompt.
            Transient, ContextTooLong, DeniedError, UpstreamError: of the model, or of the disk.
        """
        tell = _guarded(emit)
        try:
            with self._opened(prompt) as state:
                tell(events.RunStarted(prompt, state.turns))
                async with _time_limit(self._limits.time_s):
                    outcome = await self._work(state, tell)
        except asyncio.CancelledError:
            tell(events.RunStopped())
            raise
        except Exception as error:
            tell(events.RunFailed(_said(error)))
            raise
        tell(events.RunFinished(outcome))
        return outcome

    async def _work(self, state: Trajectory, tell: Emit) -> Outcome:
        while True:
            if state.calls:
                await self._run_tools(state, tell)
            elif state.is_models_turn:
                self._limits.check(state)
                await self._ask_model(state, tell)
            elif (more := self._more(state)) is not None:
                state.add(Told(more))
                tell(events.ModelTold(more))
            else:
                return Outcome(
                    *(state.text, state.messages, state.usage),
                    *(state.turns, state.model, state.ending),
                )

    async def _ask_model(self, state: Trajectory, tell: Emit) -> None:
        request = LLMRequest(
            model=self._model,
            system=self._system,
            messages=state.messages,
            tools=self._specs,
            max_output_tokens=self._max_output_tokens,
            purpose=self._purpose,
        )
        tell(events.ModelCalled(state.turns + 1))
        await asyncio.sleep(0)
        response = await self._llm.generate(request, lambda text: tell(events.TextArrived(text)))
        response = with_own_ids(response)
        state.add(Answered(response))
        tell(events.ModelAnswered(response))

    async def _run_tools(self, state: Trajectory, tell: Emit) -> None:
        calls, answers = state.calls, state.answers
        for place in sorted(state.begun - answers.keys()):
            state.add(Returned(place, _INTERRUPTED))
        open_calls = state.open_calls
        for place in open_calls:
            tell(events.ToolCalled(calls[place]))
        approved: list[int] = []
        for place in open_calls:
            refusal = await self._refusal(calls[place], tell)
            if refusal is None:
                approved.append(place)
            else:
                state.add(Returned(place, refusal))
        if approved:
            state.add(Begun(tuple(approved)))
        await _at_once([self._run_tool(place, calls[place], state, tell) for place in approved])
        for place, call in enumerate(calls):
            tell(events.ToolReturned(call, answers[place].answer))

    async def _run_tool(self, place: int, call: ToolUse, state: Trajectory, tell: Emit) -> None:
        try:
            answer = await self._tools[call.name].handler(plain(call.arguments))
            if not isinstance(answer, ToolAnswer):
                raise TypeError(f"the handler returned a {type(answer).__name__}, not a ToolAnswer")
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            tell(events.ToolRaised(call, _said(error)))
            answer = ToolAnswer(f"The tool failed: {_said(error)}", is_error=True)
        state.add(Returned(place, answer))

    async def _refusal(self, call: ToolUse, tell: Emit) -> ToolAnswer | None:
        """Why the call is not run, if it is not."""
        if call.name not in self._tools:
            known = ", ".join(self._tools) or "none"
            return _unfit(f"no tool {call.name[:100]!r}; there are: {known}")
        if isinstance(call.arguments, InvalidArguments):
            return _unfit(f"the arguments are not usable: {call.arguments.problem}")
        if self._gate is None:
            return None
        tell(events.ApprovalAsked(call))
        verdict = await self._gate(call)
        tell(events.ApprovalAnswered(call, verdict))
        match verdict:
            case Approved():
                return None
            case Refused(reason):
                return ToolAnswer(f"Refused: {reason}", is_error=True)

    def _more(self, state: Trajectory) -> str | None:
        """What to tell a model that asks for no tool, if it is to go on."""
        more = self._follow_up() if self._follow_up is not None else None
        return _GO_ON if more is None and state.ending is not Ending.DONE else more

    @contextmanager
    def _opened(self, prompt: str) -> Iterator[Trajectory]:
        kept = self._checkpoint
        with nullcontext(Trajectory()) if kept is None else kept.opened() as state:
            if not state.messages:
                state.add(Told(prompt))
            elif kept is not None and state.messages[0].text != prompt:
                raise InputError(
                    f"checkpoint {str(kept.path)!r} holds a run on another prompt; name another"
                    " file"
                )
            yield state


async def _at_once(works: Sequence[Coroutine[None, None, None]]) -> None:
    """All of them side by side. A single one needs no task, which takes 10 of 50 µs off a turn."""
    if len(works) == 1:
        await works[0]
        return
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise leaves(failed)[0] from None


@asynccontextmanager
async def _time_limit(time_s: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(time_s) as limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise LimitReached(f"the limit of {time_s:g} s is reached; raise `time_s`") from error


def _guarded(emit: Emit) -> Emit:
    """An observer that fails is logged and cannot break the run."""

    def tell(event: Event) -> None:
        try:
            emit(event)
        except Exception:
            logging.getLogger("agl.loop").exception("an observer failed at %s", type(event))

    return tell


def _unfit(problem: str) -> ToolAnswer:
    return ToolAnswer(problem, is_error=True, arguments_fit=False)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _said(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"[:_MAX_ERROR]
    except Exception:  # noqa: BLE001 - __str__ of a tool's exception may raise anything
        return kind
