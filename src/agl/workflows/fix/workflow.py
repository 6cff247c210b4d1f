"""The workflow: at most so many rounds of repair, then it stops with the work on the branch."""

from __future__ import annotations

from dataclasses import dataclass

from agl.sdk import InputError, ModelId, Run, Screen, Stop, TextInput, arg, workflow
from agl.workflows.fix.roles import Finding, Question, implementer, reviewer


@dataclass(frozen=True)
class Params:
    """What is asked, of whom, and how often it may be repaired."""

    request: str = arg(
        "-r", "--request", from_file=True, help="what to do; @FILE reads a file, - standard input"
    )
    rounds: int = arg("--rounds", default=3, help="how many rounds of repair at most")
    implementer: ModelId = arg(
        "--implementer", default=ModelId("claude_code", "opus"), help="who writes"
    )
    reviewer: ModelId = arg("--reviewer", default=ModelId("codex", "sol"), help="who reviews")


@workflow(version="1")
async def fix(run: Run[Params]) -> None:
    """Implements a request, runs the project's build on it, and has it reviewed by another model. A
    red build and findings of high severity are repaired, in at most --rounds rounds; then it stops,
    with the work on the branch."""
    if not run.params.request.strip():
        raise InputError("the request is empty; say with --request what to do")
    if run.params.rounds < 0:
        raise InputError(f"--rounds {run.params.rounds} is less than 0; give 0 or more")
    title = _title(run.params.request)

    async def ask(question: Question) -> str:
        answer = TextInput("answer", maps=str)
        return await run.ask(Screen(question.question, responses=[answer]))

    writer = implementer(ask, model=run.params.implementer)
    done = await run.step(writer, commit=title, request=run.params.request)
    if run.head == run.base:
        if done.nothing_needed:
            run.nothing_needed(done.summary)
            return
        raise Stop(f"the implementer changed nothing; it says: {done.summary}")
    for turn in range(run.params.rounds + 1):
        problems = await _problems(run)
        if not problems:
            return
        if turn == run.params.rounds:
            raise Stop(
                f"not right after {turn} rounds of repair, the work is on the branch:"
                f" {problems[0].splitlines()[0]}"
            )
        await run.step(
            writer,
            commit=f"{title} (repair {turn + 1})",
            request=run.params.request,
            problems=problems,
        )


async def _problems(run: Run[Params]) -> list[str]:
    """What must be repaired: a red build alone, or else the high findings of a review."""
    build = await run.record("build", lambda: run.build)
    if build is not None:
        verdict = await run.verify(build)
        if not verdict.passed:
            note = f" ({verdict.note})" if verdict.note else ""
            return [f"the build failed with status {verdict.status}{note}:\n{verdict.tail}"]
    review = await run.step(
        reviewer(model=run.params.reviewer), request=run.params.request, base=run.base
    )
    return [_said(finding) for finding in review.findings if finding.severity == "high"]


def _said(finding: Finding) -> str:
    return f"{finding.file}: {finding.problem}"


def _title(request: str) -> str:
    """The request's first line, as a commit's subject."""
    line = next(line.strip() for line in request.splitlines() if line.strip())
    return line if len(line) <= 72 else line[:71].rstrip() + "…"
