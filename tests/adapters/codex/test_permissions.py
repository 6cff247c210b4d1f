"""What an agent on Codex may change where no sandbox confines it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agl.ports.models import Restriction

if TYPE_CHECKING:
    from agl.adapters.codex.permissions import Permissions

ASKS_TO_CHANGE = "item/fileChange/requestApproval"
ASKS_TO_RUN = "item/commandExecution/requestApproval"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "sub").mkdir(parents=True)
    (made / "out").symlink_to(tmp_path)
    return made


def permissions(tree: Path, *restrictions: Restriction, is_confined: bool = False) -> Permissions:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.permissions import Permissions

    return Permissions(
        frozenset(restrictions),
        tree,
        is_confined=is_confined,
        scratch=tree.parent / "scratch",
        login=tree.parent / "auth.json",
    )


def decision(asked: Permissions, *changes: Any, item: str = "1") -> object:
    asked.note({"type": "fileChange", "id": item, "changes": list(changes)})
    said = asked.answer(ASKS_TO_CHANGE, {"itemId": item})
    assert said is not None
    return said["decision"]


@pytest.mark.parametrize(
    "path", ["a.py", "sub/new/a.py", "{tree}/a.py", "sub/../a.py", ".github/x"]
)
def test_what_is_in_the_tree_may_be_changed(tree: Path, path: str) -> None:
    change = {"path": path.format(tree=tree), "kind": {"type": "update"}}
    assert decision(permissions(tree), change) == "accept"


@pytest.mark.parametrize(
    "path",
    [
        *("../a.py", "/etc/passwd", "{tree}x/a.py", "out/a.py", "out", ".", "", 7, None, "a\0b"),
        *(".git", ".git/config", ".GIT/config", "sub/.Git/hooks/x", "sub/../.git/config"),
    ],
)
def test_what_is_not_in_the_tree_may_not(tree: Path, path: object) -> None:
    there = path.format(tree=tree) if isinstance(path, str) else path
    fine = {"path": "a.py", "kind": {"type": "add"}}
    assert decision(permissions(tree), fine, {"path": there, "kind": {}}) == "decline"


def test_nothing_is_moved_out_of_the_tree(tree: Path) -> None:
    moved = {"path": "a.py", "kind": {"type": "update", "move_path": "../b.py"}}
    assert decision(permissions(tree), moved) == "decline"
    moved = {"path": "a.py", "kind": {"type": "update", "move_path": "b.py"}}
    assert decision(permissions(tree), moved) == "accept"


def test_a_change_of_which_nothing_is_known_is_declined(tree: Path) -> None:
    asked = permissions(tree)
    assert decision(asked) == "decline"
    assert asked.answer(ASKS_TO_CHANGE, {"itemId": "never told"}) == {"decision": "decline"}
    assert asked.answer(ASKS_TO_CHANGE, {}) == {"decision": "decline"}


def test_each_change_is_judged_by_itself(tree: Path) -> None:
    asked = permissions(tree)
    assert decision(asked, {"path": "../a.py"}, item="1") == "decline"
    assert decision(asked, {"path": "a.py"}, item="2") == "accept"
    assert asked.answer(ASKS_TO_CHANGE, {"itemId": "1"}) == {"decision": "decline"}


def test_without_file_writes_nothing_may_be_changed(tree: Path) -> None:
    asked = permissions(tree, Restriction.NO_FILE_WRITES)
    assert decision(asked, {"path": "a.py"}) == "decline"


def test_what_asks_to_leave_the_sandbox_is_declined(tree: Path) -> None:
    said = {
        confined: permissions(tree, is_confined=confined).answer(ASKS_TO_RUN, {})
        for confined in (True, False)
    }
    assert said == {True: {"decision": "decline"}, False: {"decision": "accept"}}


def test_other_questions_are_not_answered(tree: Path) -> None:
    assert permissions(tree).answer("item/tool/requestUserInput", {}) is None
