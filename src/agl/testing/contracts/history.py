"""What every `History` promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agl.ports.errors import InputError
from agl.testing.contracts.trees import BASE_FILES, SCOPE, TreesUnderTest

NO_COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _commit(repo: TreesUnderTest, name: str) -> str:
    """One more commit in the checkout."""
    (repo.checkout / name).write_bytes(name.encode())
    return repo.commit_in(repo.checkout, f"add {name}")


class HistoryContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    async def test_a_repository_with_a_commit_is_ready(self, repo: TreesUnderTest) -> None:
        assert await repo.history.problems() == ()
        await repo.history.check_ready()

    @pytest.mark.parametrize("ref", ["HEAD", "main", "refs/heads/main"])
    async def test_a_ref_resolves_to_its_commit(self, repo: TreesUnderTest, ref: str) -> None:
        assert await repo.history.resolve(ref) == repo.base

    async def test_an_id_and_its_beginning_resolve(self, repo: TreesUnderTest) -> None:
        assert await repo.history.resolve(repo.base) == repo.base
        assert await repo.history.resolve(repo.base[:12]) == repo.base

    @pytest.mark.parametrize("ref", ["nothing", NO_COMMIT, "", "--all", "two words"])
    async def test_a_ref_to_no_commit_is_refused(self, repo: TreesUnderTest, ref: str) -> None:
        with pytest.raises(InputError, match=re.escape(repr(ref))):
            await repo.history.resolve(ref)

    async def test_head_is_the_checkouts_also_when_detached(self, repo: TreesUnderTest) -> None:
        repo.detach_in(repo.checkout)
        tip = _commit(repo, "one")
        assert await repo.history.resolve("HEAD") == tip
        assert await repo.history.tip("main") == repo.base

    async def test_a_branch_has_a_tip_once_it_is_there(self, repo: TreesUnderTest) -> None:
        assert await repo.history.tip("feature") is None
        repo.branch_in(repo.checkout, "feature")
        tip = _commit(repo, "one")
        assert await repo.history.tip("feature") == tip
        assert await repo.history.tip("main") == repo.base

    async def test_a_branch_is_found_where_it_is_checked_out(self, repo: TreesUnderTest) -> None:
        tree = await repo.provider.open(SCOPE, repo.base)
        assert await repo.history.checked_out_at(SCOPE.branch) == tree.path
        assert await repo.history.checked_out_at("main") == repo.checkout
        assert await repo.history.checked_out_at("nothing") is None
        repo.detach_in(repo.checkout)
        assert await repo.history.checked_out_at("main") is None

    async def test_missing_names_what_is_not_there(self, repo: TreesUnderTest) -> None:
        tip = _commit(repo, "one")
        assert await repo.history.missing([repo.base, NO_COMMIT, tip]) == {NO_COMMIT}
        assert await repo.history.missing([repo.base]) == frozenset()
        assert await repo.history.missing([]) == frozenset()

    async def test_a_commit_contains_itself_and_what_came_before(
        self, repo: TreesUnderTest
    ) -> None:
        tip = _commit(repo, "one")
        assert await repo.history.is_ancestor(repo.base, tip)
        assert await repo.history.is_ancestor(tip, tip)
        assert not await repo.history.is_ancestor(tip, repo.base)

    async def test_sides_of_a_fork_contain_only_their_own(self, repo: TreesUnderTest) -> None:
        left = _commit(repo, "left")
        repo.reset_in(repo.checkout, repo.base)
        right = _commit(repo, "right")
        assert not await repo.history.is_ancestor(left, right)
        assert await repo.history.between(left, right) == (f"{right} add right",)

    async def test_between_lists_what_is_new_newest_first(self, repo: TreesUnderTest) -> None:
        one, two = _commit(repo, "one"), _commit(repo, "two")
        assert await repo.history.between(repo.base, two) == (f"{two} add two", f"{one} add one")
        assert await repo.history.between(two, repo.base) == ()

    async def test_a_message_comes_without_trailing_white_space(self, repo: TreesUnderTest) -> None:
        (repo.checkout / "new.txt").write_bytes(b"new")
        commit = repo.commit_in(repo.checkout, "Füge 漢字 hinzu\n\nbody  text\n\n")
        assert await repo.history.message(commit) == "Füge 漢字 hinzu\n\nbody  text"

    async def test_files_are_those_of_the_commit(self, repo: TreesUnderTest) -> None:
        (repo.checkout / "link").symlink_to("docs/notes.txt")
        (repo.checkout / "docs" / "bin").write_bytes(b"\0\r\n\xff")
        (repo.checkout / "calc.py").unlink()
        commit = repo.commit_in(repo.checkout, "kinds")
        assert await repo.history.files(repo.base) == BASE_FILES
        assert await repo.history.files(commit) == {
            "docs/notes.txt": b"notes\n",
            "docs/bin": b"\0\r\n\xff",
            "link": b"docs/notes.txt",
        }

    async def test_uncommitted_changes_are_named(self, repo: TreesUnderTest) -> None:
        assert await repo.history.uncommitted(repo.checkout) == ()
        (repo.checkout / "calc.py").write_bytes(b"typing")
        (repo.checkout / "docs" / "notes.txt").unlink()
        (repo.checkout / "new 漢字.txt").write_bytes(b"new")
        (repo.checkout / "env.ignored").write_bytes(b"secret")
        named = await repo.history.uncommitted(repo.checkout)
        assert sorted(named) == ["calc.py", "docs/notes.txt", "new 漢字.txt"]
        assert await repo.history.uncommitted(repo.checkout / "docs") == named

    async def test_a_folder_may_be_reached_through_a_link(
        self, repo: TreesUnderTest, tmp_path: Path
    ) -> None:
        (tmp_path / "link").symlink_to(repo.checkout)
        (repo.checkout / "new.txt").write_bytes(b"new")
        assert await repo.history.uncommitted(tmp_path / "link") == ("new.txt",)
