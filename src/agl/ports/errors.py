"""The one error tree. Each class carries its exit code, and subclasses inherit it.

AglError 70
├── InputError 2                 what was typed or written is wrong
├── NotFoundError 3              the named thing does not exist
├── StateError 4                 it is right, and at odds with the present state
│   ├── RunIsLive                another process holds the run
│   ├── TreeVanished             a worktree is not where it was, or no longer ours
│   ├── BranchMoved              somebody moved a scope's branch from outside of its tree
│   └── NewerFormat              written by a newer AGL
├── DeniedError 5                refused until somebody changes something
│   └── AuthenticationFailed
├── UpstreamError 6              vendor, git, network, disk, or nobody there
│   ├── Transient                the same call may work later
│   │   ├── Overloaded · RateLimited · UsageLimited · StreamDropped
│   ├── ContextTooLong
│   ├── RoleIncomplete           the agent ended without its report
│   ├── NeedsAnswer              a question, and nobody to answer it
│   ├── StepTimedOut
│   ├── ProgramTimedOut          a child process outlived its time limit
│   └── CorruptDocument
├── Stop 7                       a workflow ended on purpose
├── GroupFailed 8                several failures that disagree
├── LimitReached 9
├── WorkflowFailed 1             an exception of the workflow author's own
└── InternalError 70             our bug
"""

from __future__ import annotations

from typing import ClassVar


class AglError(Exception):
    """Base of all that AGL raises on purpose; `str()` is one sentence for a person."""

    exit_code: ClassVar[int] = 70


class InputError(AglError):
    """What was typed or written is wrong; the person who wrote it should change it."""

    exit_code = 2


class NotFoundError(AglError):
    """The named thing does not exist."""

    exit_code = 3


class StateError(AglError):
    """The request is right and at odds with the present state of a run, a tree or a branch."""

    exit_code = 4


class RunIsLive(StateError):
    """Another process holds the run's lock."""


class TreeVanished(StateError):
    """A worktree is not there, or git would act on another repository from inside it."""


class BranchMoved(StateError):
    """A scope's branch was moved from outside of its tree while work was going on in it."""


class NewerFormat(StateError):
    """A stored document was written by a newer AGL."""


class DeniedError(AglError):
    """Refused, and it stays refused until somebody changes something."""

    exit_code = 5


class AuthenticationFailed(DeniedError):
    """A vendor did not accept the credentials."""


class UpstreamError(AglError):
    """Something outside failed: a vendor, git, the network, the disk."""

    exit_code = 6


class Transient(UpstreamError):
    """A failure that the same request may not meet again.

    `retry_after_s` is the time the far side named, in seconds, or None.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Overloaded(Transient):
    """The vendor has no capacity now."""


class RateLimited(Transient):
    """Too many requests for this account now."""


class UsageLimited(Transient):
    """The account's allowance is used up; `retry_after_s` says when there is a new one."""


class StreamDropped(Transient):
    """The connection broke before the answer was whole."""


class ContextTooLong(UpstreamError):
    """The conversation no longer fits the model."""


class RoleIncomplete(UpstreamError):
    """The agent ended its turn without the report its role asks for, also after one nudge."""


class NeedsAnswer(UpstreamError):
    """A question of the workflow, and nobody there to answer it.

    `questions` are the titles of the open ones.
    """

    def __init__(self, message: str, *, questions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.questions = questions


class StepTimedOut(UpstreamError):
    """An agent was still at work when its step's `timeout_s` was over."""


class ProgramTimedOut(UpstreamError):
    """A child process outlived its time limit and was ended."""


class CorruptDocument(UpstreamError):
    """A stored document is there and cannot be read; the message names the file."""


class Stop(AglError):
    """Raised by a workflow that ends on purpose without having done what was asked."""

    exit_code = 7


class GroupFailed(AglError):
    """Several failures at once whose exit codes disagree."""

    exit_code = 8


class LimitReached(AglError):
    """A limit that the person set was reached; the run can go on with a higher one."""

    exit_code = 9


class WorkflowFailed(AglError):
    """An exception of the workflow author's own, shown with its traceback."""

    exit_code = 1


class InternalError(AglError):
    """A bug of AGL's own; please report it with the command and the output."""

    exit_code = 70


def leaves(error: BaseException) -> tuple[BaseException, ...]:
    """The failures inside an exception group, however nested; a plain exception is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        return tuple(leaf for inner in error.exceptions for leaf in leaves(inner))
    return (error,)


def exit_code_of(error: BaseException) -> int:
    """The exit code of a failure: its class's, 8 for a group that disagrees, else 70."""
    codes = {leaf.exit_code if isinstance(leaf, AglError) else 70 for leaf in leaves(error)}
    return codes.pop() if len(codes) == 1 else GroupFailed.exit_code
