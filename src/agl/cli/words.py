"""Stored words as a person reads them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from agl.ports.models import Usage

if TYPE_CHECKING:
    from agl.api.reading import Summary

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


def state_of(summary: Summary) -> str:
    """The state, with its reason where it needs one."""
    state = STATES[summary.state]
    return state if summary.message in ("", state) else f"{state}: {summary.message}"


def moment(when: datetime | None) -> str:
    """A time on this machine's clock, to the minute."""
    return "" if when is None else f"{when.astimezone():%Y-%m-%d %H:%M}"


def seconds(duration_s: float) -> str:
    if duration_s < 60:
        return f"{duration_s:.1f}s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m{rest:02}s"


def spent(usage: Usage) -> str:
    """Tokens and money; a price that is not known is said to be unknown."""
    if usage.is_nothing:
        return ""
    price = "price unknown" if usage.cost_usd is None else f"${usage.cost_usd:.2f}"
    return f"{usage.input_tokens + usage.output_tokens} tokens, {price}"


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
