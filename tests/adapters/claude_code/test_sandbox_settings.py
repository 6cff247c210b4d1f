"""The sandbox in the terms of Claude Code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agl.ports.agents import AgentTask
from agl.ports.models import ModelId, Restriction
from agl.testing.contracts.agent_runner import Desk

MODEL = ModelId("claude_code", "opus")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A linked worktree, reached by a link."""
    git = tmp_path / "repo" / ".git"
    (git / "worktrees" / "x").mkdir(parents=True)
    (git / "worktrees" / "x" / "commondir").write_text("../..\n")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / ".git").write_text(f"gitdir: {git}/worktrees/x\n")
    (tmp_path / "tree").symlink_to(tmp_path / "real")
    return tmp_path / "tree"


def settings(task: AgentTask, *, confined: bool = True) -> Any:
    pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk of agl[claude-code]")
    from agl.adapters.claude_code.sandbox import settings_of

    return settings_of(task, confined=confined)


def test_what_is_not_confined_says_so(tree: Path) -> None:
    assert settings(Desk().task(tree, MODEL), confined=False) == {"enabled": False}


def test_nothing_leads_out_of_it(tree: Path) -> None:
    """It does not go on without, takes nothing out, and what AGL judges is asked all the same."""
    made = settings(Desk().task(tree, MODEL))
    assert made["enabled"] is True
    assert made["failIfUnavailable"] is True
    assert made["allowUnsandboxedCommands"] is False
    assert made["autoAllowBashIfSandboxed"] is False


def test_the_repository_is_closed_and_the_tree_when_nothing_is_to_be_written(
    tree: Path, tmp_path: Path
) -> None:
    repository = [str(tmp_path / "real" / ".git"), str(tmp_path / "repo" / ".git")]
    closed = settings(Desk().task(tree, MODEL))["filesystem"]["denyWrite"]
    assert closed == repository
    task = Desk().task(tree, MODEL, Restriction.NO_FILE_WRITES)
    closed = settings(task)["filesystem"]["denyWrite"]
    assert closed == [*repository, str(tmp_path / "real")]


@pytest.mark.parametrize(
    ("git", "closed"),
    [("", []), ("folder", [".git"]), ("gitdir: /no/such", [".git"])],
    ids=["none", "a checkout", "a worktree whose repository is gone"],
)
def test_a_tree_of_another_kind(tmp_path: Path, git: str, closed: list[str]) -> None:
    if git == "folder":
        (tmp_path / ".git").mkdir()
    elif git:
        (tmp_path / ".git").write_text(git)
    made = settings(Desk().task(tmp_path, MODEL))
    assert made["filesystem"]["denyWrite"] == [str(tmp_path / name) for name in closed]


def test_without_the_network_nobody_is_reachable(tree: Path) -> None:
    assert settings(Desk().task(tree, MODEL))["network"]["allowedDomains"] == ["*"]
    task = Desk().task(tree, MODEL, Restriction.NO_NETWORK)
    assert settings(task)["network"]["allowedDomains"] == []
