"""The workflow: at most so many rounds of repair, then it stops with the work on the branch."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import (
    Claude,
    Codex,
    InputError,
    ModelId,
    Run,
    Screen,
    Stop,
    TextInput,
    arg,
    workflow,
)
from agl.workflows.fix.progress import Progress
from agl.workflows.fix.roles import Finding, Question, implementer, reviewer

_NOT_RUN = (126, 127)  # POSIX sh: the command cannot be executed, or was not found
_LAST_LINES = 5


@dataclass(frozen=True)
class Params:
    """What is asked, of whom, and how often it may be repaired."""

    request: str = arg(
        "-r", "--request", from_file=True, help="what to do; @FILE reads a file, - standard input"
    )
    rounds: int = arg("--rounds", default=3, help="how many rounds of repair at most")
    implementer: ModelId = arg("--implementer", default=Claude.OPUS, help="who writes")
    reviewer: ModelId = arg("--reviewer", default=Codex.SOL, help="who reviews")

    def __post_init__(self) -> None:
        if not self.request.strip():
            raise InputError("the request is empty; say with --request what to do")
        if self.rounds < 0:
            raise InputError(f"--rounds {self.rounds} is less than 0; give 0 or more")


@workflow(version="1")
async def fix(run: Run[Params]) -> None:
    """Implements a request, runs the project's build on it, and has it reviewed by another model. A
    red build and findings of high severity are repaired, in at most --rounds rounds; then it stops,
    with the work on the branch. A build that cannot be run stops it at once."""
    title = _title(run.params.request)

    async def ask(question: Question) -> str:
        answer = TextInput("answer", maps=str)
        return await run.ask(Screen(question.question, responses=[answer]))

    progress = Progress(run.params.rounds)
    run.terminal.show(progress.screen)
    writer = implementer(ask, model=run.params.implementer)
    done = await run.step(writer, commit=title, request=run.params.request)
    if run.head == run.base:
        if done.nothing_needed:
            run.nothing_needed(done.summary)
            return
        raise Stop(f"the implementer changed nothing; it says: {done.summary}")
    build = await run.record("build", lambda: run.build)
    for turn in range(run.params.rounds + 1):
        problems = await _problems(run, build, progress)
        if not problems:
            progress.done()
            run.terminal.show(progress.screen)
            return
        if turn == run.params.rounds:
            rounds = f"{turn} round{'' if turn == 1 else 's'} of repair"
            raise Stop(
                f"not right after {rounds}, the work is on the branch: {_shown(problems[0])}"
                f"{_if_changed(run, build)}"
            )
        progress.repairs()
        run.terminal.show(progress.screen)
        await run.step(
            writer,
            commit=f"{title} (repair {turn + 1})",
            request=run.params.request,
            problems=problems,
        )


async def _problems(run: Run[Params], build: str | None, progress: Progress) -> list[str]:
    """What must be repaired: a red build alone, or else the high findings of a review.

    Raises:
        Stop: the build cannot be run, and no agent repairs that.
    """
    if build is not None:
        verdict = await run.verify(build)
        progress.built(verdict)
        if not verdict.passed:
            note = f" ({verdict.note})" if verdict.note else ""
            tail = f":\n{verdict.tail}" if verdict.tail.strip() else ""
            problem = f"the build failed with status {verdict.status}{note}{tail}"
            if verdict.note or verdict.status in _NOT_RUN:
                raise Stop(
                    f"{_shown(problem)}\nso {build!r} says nothing of the work on the branch;"
                    f" `agl resume {run.label} --again verify` runs it once more"
                    f"{_if_changed(run, build) or _how_to_change(run)}"
                )
            return [problem]
    review = await run.step(
        reviewer(model=run.params.reviewer), request=run.params.request, base=run.base
    )
    progress.reviewed(review.findings)
    return [_said(finding) for finding in review.findings if finding.severity == "high"]


def _shown(problem: str) -> str:
    """The first line of it and the last ones."""
    first, *rest = (line for line in problem.splitlines() if line.strip())
    return "\n  ".join((first, *rest[-_LAST_LINES:]))


def _if_changed(run: Run[Params], build: str | None) -> str:
    """Of a run that recorded another build than the project has now: how it takes that one."""
    if run.build == build:
        return ""
    return f"\nthe build is {run.build!r} now; `agl resume {run.label} --again build` takes it"


def _how_to_change(run: Run[Params]) -> str:
    return f"\n`agl init --build CMD` changes it, then `agl resume {run.label} --again build`"


def _said(finding: Finding) -> str:
    return f"{finding.file}: {finding.problem}"


def _title(request: str) -> str:
    """The request's first line, as a commit's subject."""
    line = next(line.strip() for line in request.splitlines() if line.strip())
    return line if len(line) <= 72 else line[:71].rstrip() + "…"
