"""One chunk at work, from its begin in a child of the run until it has landed or was given up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from agl.sdk import Choice, Landing, RoleIncomplete, Run, Screen, Text, TextInput
from agl.workflows.split.ends import End, State
from agl.workflows.split.params import Params
from agl.workflows.split.plan import Chunk
from agl.workflows.split.roles import Question, implementer, repairer
from agl.workflows.split.trouble import Trouble, red_build, trouble_with

Answer = Literal["retry", "repair", "give up"]


class ChunkAtWork:
    """Implements one chunk in a child of the run and lands it."""

    def __init__(
        self,
        run: Run[Params],
        chunk: Chunk,
        others: Sequence[str],
        moves: Callable[[State], None],
    ) -> None:
        self._run = run
        self._params = run.params
        self._chunk = chunk
        self._child = run.worktree(chunk.id)
        self._others = others
        self._moves = moves
        self._repairs = 0
        self._looks = 0
        self._retried = False

    async def end(self, build: str | None) -> End:
        """Works on it to its end. `build`: the command that is run on it before it lands."""
        self._moves(State.AT_WORK)
        done = await self._child.step(
            implementer(self._ask_person, model=self._params.implementer),
            commit=self._chunk.title,
            request=self._params.request,
            chunk=self._chunk.task,
            others=self._others,
        )
        if build is not None:
            await self._build(build)
        self._moves(State.LANDING)
        landing = await self._child.integrate()
        while landing.conflicted:
            given_up = await self._settle(landing)
            if given_up is not None:
                return given_up
        if landing.landed:
            return End(State.LANDED, done.summary)
        return End(State.NOTHING, done.summary, done.nothing_needed)

    async def _build(self, build: str) -> None:
        """Repairs a red build while rounds are left; what is red then, the landing's build says."""
        while not (verdict := await self._child.verify(build)).passed:
            trouble = red_build(verdict)
            if not self._may_repair(trouble):
                return
            await self._repair(trouble, merging=None)

    async def _settle(self, landing: Landing) -> End | None:
        """One thing done about a landing that waits; how the chunk ended, if it was given up."""
        trouble = trouble_with(landing)
        answer, again = await self._answer(trouble)
        if answer == "give up":
            await landing.abort()
            why = f"{trouble.name}{self._after}: {trouble.brief}"
            return End(State.GIVEN_UP, why, by_itself=True, again=again)
        self._retried = answer == "retry"
        if self._retried or await self._repair(trouble, merging=self._run):
            await landing.retry()
        return None

    async def _answer(self, trouble: Trouble) -> tuple[Answer, str]:
        """What is to be done, and what `--again` takes to have it decided anew. A conflict that no
        agent worked on comes out the same each time."""
        match self._params.on_conflict:
            case "ask":
                return await self._ask(trouble)
            case "repair" if self._may_repair(trouble):
                return "repair", ""
            case _:
                is_final = trouble.is_conflict and not self._repairs
                return "give up", "" if is_final else f"{self._chunk.id}/"

    async def _ask(self, trouble: Trouble) -> tuple[Answer, str]:
        self._looks += 1
        title = f"{self._chunk.id}: {trouble.name} ({self._looks})"
        choices: list[Choice[Answer]] = [Choice("retry", "retry")]
        if self._may_repair(trouble):
            choices.append(Choice("let the agent repair it", "repair"))
        choices.append(Choice("give up this chunk", "give up"))
        screen = Screen[Answer](
            title,
            *(Text(line) for line in (*trouble.lines, *self._hints(trouble))),
            f"It waits, merged as far as it goes, in {str(self._run.folder)!r}. Put it right there,"
            " then retry.",
            responses=choices,
        )
        return await self._run.ask(screen, key=title), title

    def _hints(self, trouble: Trouble) -> list[str]:
        if trouble.is_conflict and self._retried:
            return [
                "It was retried, and there still are conflict markers in the file, or it is as the"
                " merge left it."
            ]
        if not trouble.is_repairable:
            return [
                "The build cannot be run: `agl init --build CMD` changes it, from the next `agl"
                f" resume {self._run.label}` on; retry then."
            ]
        return []

    def _may_repair(self, trouble: Trouble) -> bool:
        return trouble.is_repairable and self._repairs < self._params.rounds

    @property
    def _after(self) -> str:
        rounds = f"{self._repairs} round{'' if self._repairs == 1 else 's'}"
        return f" after {rounds} of repair" if self._repairs else ""

    async def _repair(self, trouble: Trouble, *, merging: Run[Params] | None) -> bool:
        """Whether an agent did it. One that leaves a conflict in the files has had its round;
        nothing of it is recorded, so that a resume lets it try again."""
        self._repairs += 1
        try:
            await self._child.step(
                repairer(self._ask_person, model=self._params.implementer),
                commit=f"{self._chunk.title} (repair {self._repairs})",
                merging=merging,
                request=self._params.request,
                chunk=self._chunk.task,
                problems=trouble.problems,
            )
        except RoleIncomplete:
            return False
        return True

    async def _ask_person(self, question: Question) -> str:
        answer = TextInput("answer", maps=str)
        return await self._child.ask(Screen(question.question, responses=[answer]))
