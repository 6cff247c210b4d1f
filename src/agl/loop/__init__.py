"""AGL's own agent, a library of its own: a glass box over any LLM.

`agent.py` shows what it does, `trajectory.py` what state it holds.
"""

from agl.loop.agent import Agent, Gate
from agl.loop.checkpoint import Checkpoint
from agl.loop.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Approved,
    Emit,
    Event,
    ModelAnswered,
    ModelCalled,
    ModelTold,
    Outcome,
    Refused,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    TextArrived,
    ToolCalled,
    ToolRaised,
    ToolReturned,
)
from agl.loop.limits import Limits
from agl.loop.tools import tool

__all__ = [
    "Agent",
    "ApprovalAnswered",
    "ApprovalAsked",
    "Approved",
    "Checkpoint",
    "Emit",
    "Event",
    "Gate",
    "Limits",
    "ModelAnswered",
    "ModelCalled",
    "ModelTold",
    "Outcome",
    "Refused",
    "RunFailed",
    "RunFinished",
    "RunStarted",
    "RunStopped",
    "TextArrived",
    "ToolCalled",
    "ToolRaised",
    "ToolReturned",
    "tool",
]
