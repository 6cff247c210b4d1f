"""Stored words as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor, log10
from typing import TYPE_CHECKING

from agl.cli.page import one_line
from agl.ports.models import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agl.api.reading import Line, Summary

STATES = {
    "running": "running",
    "interrupted": "interrupted",
    "finished": "finished",
    "stopped": "stopped on purpose",
    "failed": "failed",
    "limit": "reached a limit",
    "needs_answer": "needs an answer",
    "unreadable": "unreadable",
}

RESULTS = {
    "landed": "landed",
    "not_landed": "not landed",
    "produced_nothing": "produced nothing",
    "needed_nothing": "needed nothing",
}

_LAST_LINES = 20

CHILDREN = {
    "landed": "landed",
    "nothing": "nothing committed",
    "at_work": "at work",
    "held": "its landing waits in the parent's tree",
    "not_landed": "not landed",
}


def state_of(summary: Summary) -> str:
    """The state, with its reason where it needs one."""
    state = STATES[summary.state]
    return state if summary.message in ("", state) else f"{state}: {summary.message}"


def in_a_word(summary: Summary) -> str:
    """State and result in one: of a run that finished what came of it, else how it is."""
    if summary.state == "finished":
        return RESULTS.get(summary.result, "finished")
    word = "stopped" if summary.state == "stopped" else STATES[summary.state]
    return f"{word}, holds {', '.join(summary.held)}" if summary.held else word


def result_of(result: str, branch: str) -> str:
    """What came of a run; landed means on the run's own branch."""
    return f"landed on {branch}" if result == "landed" else RESULTS.get(result, "")


def workflow_of(name: str) -> str:
    """A workflow's name without the folders of its file."""
    return name.rpartition("/")[2]


def model_of(model: str | None) -> str:
    """A model's name; of a script without its folders."""
    provider, colon, name = (model or "").partition(":")
    return (
        f"scripted:{name.rpartition('/')[2]}"
        if provider == "scripted"
        else f"{provider}{colon}{name}"
    )


def given(value: object) -> str:
    """A parameter of a run, on one line; empty where nothing was given."""
    match value:
        case None | False:
            return ""
        case True:
            return "true"
        case list():
            return one_line(", ".join(map(str, value)), 300)
    return one_line(str(value), 300)


def passed(line: Line) -> bool:
    """Whether a verdict was good."""
    return isinstance(line.value, dict) and line.value.get("passed") is True


def is_refused(line: Line) -> bool:
    """Whether it is a landing that waits because the build failed on it."""
    match line.value:
        case {"stages": [*_, {"state": "refused"}]}:
            return line.kind == "landing"
    return False


def end_of_output(line: Line) -> str:
    """The last lines of what a build printed."""
    tail = None
    match line.value:
        case {"tail": tail} | {"stages": [*_, {"verdict": {"tail": tail}}]}:
            pass
    printed = str(tail or "").rstrip().splitlines()[-_LAST_LINES:] or ["it printed nothing"]
    head = f"#{line.number} {line.name} {outcome_of(line)}; the end of its output:"
    return "\n  ".join((head, *printed))


def outcome_of(line: Line) -> str:
    """What an entry holds, in a few words."""
    match line.kind, line.value:
        case "verify", {"passed": True}:
            return "passed"
        case "verify", {"status": status, "note": note}:
            return one_line(f"failed with status {status}{note and f' ({note})'}")
        case "ask", {"typed": answer} | {"picked": answer}:
            return one_line(str(answer))
        case "landing", {"stages": [*_, {"state": str(state)} as last]}:
            return one_line(_landing(state, last))
        case "landing", _:
            return "begun"
        case "child", {"start": str(start)}:
            return f"from {short(start)}"
        case "cut", {"forgets": True}:
            return "asked again"
        case "cut", _:
            return _cut(line.cut_from or line.number, line.number - 1)
        case _, None:
            return ""
        case _, str(text):
            return one_line(text)
    import json

    return one_line(json.dumps(line.value, ensure_ascii=False))


def _cut(first: int, last: int) -> str:
    """What a cut put out of use; nothing of its own epoch where an older one alone has the step."""
    if first > last:
        return "what was recorded earlier is out of use"
    return f"#{first} is out of use" if first == last else f"#{first} to #{last} are out of use"


def _landing(state: str, last: Mapping[str, object]) -> str:
    """How a landing stands, with what it waits for."""
    match state, last:
        case "conflicted", {"conflict": {"paths": [*paths]}}:
            names = (str(one["path"]) for one in paths if isinstance(one, dict))
            return f"conflict in {', '.join(names)}"
        case "refused", {"verdict": {"status": status}}:
            return f"the build failed with status {status}"
    return _STAGES.get(state, state)


_STAGES = {
    "nothing": "nothing to land",
    "aborted": "given up",
    "released": "gave way to another landing",
}


def moment(when: datetime | None) -> str:
    """A time for a person, to the minute."""
    return "" if when is None else f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def seconds(duration_s: float) -> str:
    if duration_s < 60:
        return f"{duration_s:.1f}s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m{rest:02}s"


def spent(usage: Usage) -> str:
    """Tokens and money; a price that is not known is said to be unknown."""
    if usage.is_nothing:
        return ""
    price = "price unknown" if usage.cost_usd is None else _dollars(usage.cost_usd)
    return f"{_tokens(usage)} tokens, {price}"


def spent_in_all(usages: Sequence[Usage]) -> str:
    """The sum, with the money that is known also where some is not."""
    total = sum(usages, Usage())
    known = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
    if total.cost_usd is not None or not known:
        return spent(total)
    unpriced = sum(_tokens(usage) for usage in usages if usage.cost_usd is None)
    money = f"{_dollars(sum(known))} and {unpriced} tokens without a price"
    return f"{_tokens(total)} tokens, {money}"


def spent_in_short(usage: Usage) -> str:
    """As `spent`, in 15 columns or so."""
    if usage.is_nothing:
        return ""
    price = "$ ?" if usage.cost_usd is None else _dollars(usage.cost_usd)
    tokens = _tokens(usage)
    if tokens < 1000:
        return f"{tokens} tok, {price}"
    if tokens < 999_950:
        return f"{tokens / 1000:.1f}k tok, {price}"
    return f"{tokens / 1_000_000:.1f}M tok, {price}"


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _dollars(cost_usd: float) -> str:
    """To the cent; what would read as nothing to two digits that say something."""
    is_small = 0 < cost_usd < 0.005
    return f"${cost_usd:.{1 - floor(log10(cost_usd)) if is_small else 2}f}"


def short(commit: str) -> str:
    return commit[:10]


def metavar(kind: str, choices: tuple[str, ...]) -> str:
    """What stands for the value of a workflow's flag."""
    return "|".join(choices) or _METAVARS[kind]


def needs(default: object, *, required: bool, repeated: bool) -> str:
    """Whether a workflow's flag may be left out or given again, in the words that are typed."""
    said = ["required"] if required else []
    match default:
        case None | False | () | []:
            pass
        case True:
            said.append("default: true")
        case tuple() | list():
            said.append(f"default: {', '.join(map(str, default))}")
        case _:
            said.append(f"default: {default}")
    if repeated:
        said.append("may be repeated")
    return "; ".join(said)


_METAVARS = {
    "str": "TEXT",
    "int": "NUMBER",
    "float": "NUMBER",
    "bool": "true|false",
    "ModelId": "PROVIDER:MODEL",
}
