"""Git is run so that nothing of a person's own settings gets in the way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.git.hands import GitTrees
from agl.adapters.git.runner import Git
from agl.adapters.system import SystemProcesses
from agl.ports.errors import ProgramTimedOut, UpstreamError
from agl.testing.contracts.trees import BASE_FILES, KEEPING, SCOPE

HOOKS = (
    "commit-msg",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "prepare-commit-msg",
    "reference-transaction",
)


async def test_hooks_have_no_effect(repo: GitTrees) -> None:
    """Scenario C1."""
    hooks = repo.place / "hooks"
    hooks.mkdir()
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >> {repo.place}/ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    repo.git("config", "core.hooksPath", str(hooks))
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "calc.py").write_bytes(b"fixed")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert (await repo.history.files(head))["calc.py"] == b"fixed"
    (tree.path / "calc.py").write_bytes(b"half")
    await tree.restore(repo.base, KEEPING)
    await tree.detach()
    await repo.provider.clear((SCOPE,))
    assert not (repo.place / "ran").exists()


async def test_settings_of_a_person_change_no_commit(repo: GitTrees) -> None:
    """Scenario C4, and its siblings."""
    (repo.place / "template").write_text("template\n")
    hang = repo.place / "hang"
    hang.write_text("#!/bin/sh\nsleep 600\n")
    hang.chmod(0o755)
    for key, value in {
        "commit.gpgsign": "true",
        "tag.gpgsign": "true",
        "gpg.program": str(hang),
        "core.editor": str(hang),
        "core.fsmonitor": str(hang),
        "core.pager": str(hang),
        "commit.template": str(repo.place / "template"),
        "commit.cleanup": "strip",
        "commit.verbose": "true",
        "core.safecrlf": "true",
        "core.autocrlf": "input",
        "status.showUntrackedFiles": "no",
        "status.renames": "copies",
        "status.branch": "false",
        "status.showStash": "true",
        "status.relativePaths": "true",
        "diff.ignoreSubmodules": "all",
        "diff.noprefix": "true",
        "log.showSignature": "true",
        "core.quotePath": "true",
        "color.ui": "always",
        "merge.ff": "only",
        "core.ignoreStat": "true",
        "core.untrackedCache": "true",
        "add.ignoreErrors": "true",
        "i18n.commitEncoding": "ISO-8859-1",
        "i18n.logOutputEncoding": "ISO-8859-1",
    }.items():
        repo.git("config", key, value)
    tree = await repo.provider.open(SCOPE, repo.base)
    assert (await tree.state()).clean
    (tree.path / "dos.txt").write_bytes(b"one\r\n")
    (tree.path / "ü.txt").write_bytes(b"new")
    message = "Füge hinzu\n\n# not a comment\n\n\ntwo empty lines above\n"
    head = await tree.commit_all(repo.base, message, KEEPING)
    assert await repo.history.message(head) == message.rstrip()
    assert await repo.history.between(repo.base, head) == (f"{head} Füge hinzu",)
    assert b"gpgsig" not in repo.git("cat-file", "commit", head).encode()
    assert set(await repo.history.files(head)) == {*BASE_FILES, "dos.txt", "ü.txt"}
    (repo.checkout / "new.txt").write_bytes(b"new")
    assert await repo.history.uncommitted(repo.checkout) == ("new.txt",)


async def test_the_environment_of_a_hook_reaches_no_git(repo: GitTrees, tmp_path: Path) -> None:
    """Scenario C7."""
    other = tmp_path / "other"
    repo.git("init", "--quiet", str(other))
    repo.environ |= {
        "GIT_DIR": str(other / ".git"),
        "GIT_INDEX_FILE": str(other / "index"),
        "GIT_WORK_TREE": str(other),
        "GIT_REFLOG_ACTION": "rebase",
        "GIT_EDITOR": "false",
    }
    repo.connect()
    tree = await repo.provider.open(SCOPE, repo.base)
    (tree.path / "new.txt").write_bytes(b"new")
    head = await tree.commit_all(repo.base, "step", KEEPING)
    assert await repo.history.tip(SCOPE.branch) == head
    assert sorted(one.name for one in other.iterdir()) == [".git"]


async def test_a_refusal_is_one_sentence_with_gits_words(repo: GitTrees) -> None:
    with pytest.raises(UpstreamError, match=r"^git cat-file failed in .*: .*nothing"):
        await repo.runner.run("cat-file", "-p", "nothing", cwd=repo.checkout)


async def test_a_refusal_can_be_an_answer(repo: GitTrees) -> None:
    answer = await repo.runner.run("cat-file", "-e", "nothing", cwd=repo.checkout, check=False)
    assert (answer.status, answer.stdout) == (128, b"")


async def test_no_git_is_said(repo: GitTrees) -> None:
    git = Git(SystemProcesses(), {"PATH": str(repo.place / "nothing")})
    with pytest.raises(UpstreamError, match="git is not installed"):
        await git.run("version", cwd=repo.checkout)


async def test_a_git_that_hangs_is_ended(repo: GitTrees) -> None:
    with pytest.raises(ProgramTimedOut, match="hang"):
        await repo.runner.run("-c", "alias.hang=!sleep 60", "hang", cwd=repo.place, timeout_s=0.2)


async def test_output_is_whole(repo: GitTrees) -> None:
    data = bytes(range(256)) * 20_000
    (repo.checkout / "big").write_bytes(data)
    commit = repo.commit_in(repo.checkout, "big")
    assert (await repo.history.files(commit))["big"] == data


async def test_parallel_calls_do_not_meet(repo: GitTrees) -> None:
    answers = await asyncio.gather(
        *(repo.runner.run("rev-parse", "HEAD", cwd=repo.checkout) for _ in range(8))
    )
    assert {answer.text for answer in answers} == {repo.base}
