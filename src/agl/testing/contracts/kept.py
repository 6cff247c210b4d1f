"""What every `Kept` promises."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agl.ports.errors import InputError, StateError
from agl.ports.ids import Label, Scope
from agl.ports.workspace import Keeping, KeptItem
from agl.testing.contracts.trees import CHILD, KEEPING, SCOPE, TreesUnderTest

OTHER = Scope(SCOPE.project, Label("other"))


async def _keep(repo: TreesUnderTest, scope: Scope = SCOPE, content: str = "left") -> KeptItem:
    """One leftover of the scope's tree, `left.txt` with a content that names the scope."""
    tree = await repo.provider.open(scope, repo.base)
    (tree.path / "left.txt").write_text(f"{content} in {scope.branch}")
    (item,) = await tree.restore(repo.base, Keeping(scope, KEEPING.why))
    return item


async def _clear(repo: TreesUnderTest) -> KeptItem:
    """The kept folder of a cleared tree."""
    await repo.provider.open(SCOPE, repo.base)
    await repo.provider.clear((SCOPE,))
    (item,) = (item for item in await repo.kept.items() if item.folder is not None)
    return item


class KeptContract:
    """Subclass it and give the fixture `repo`."""

    @pytest.fixture
    def repo(self, tmp_path: Path) -> TreesUnderTest:
        raise NotImplementedError

    async def test_at_first_nothing_is_kept(self, repo: TreesUnderTest) -> None:
        assert await repo.kept.items() == ()

    async def test_what_is_kept_is_listed_oldest_first(self, repo: TreesUnderTest) -> None:
        items = [await _keep(repo, content=str(n)) for n in range(3)]
        assert list(await repo.kept.items()) == items

    async def test_each_has_a_name_of_its_own_and_an_iso_time(self, repo: TreesUnderTest) -> None:
        items = [await _keep(repo), await _keep(repo, content="more"), await _keep(repo, CHILD)]
        assert len({item.name for item in items}) == 3
        for item in items:
            assert datetime.fromisoformat(item.when).utcoffset() == timedelta(0)

    async def test_a_label_lists_its_own_and_its_childrens(self, repo: TreesUnderTest) -> None:
        base, child, other = await _keep(repo), await _keep(repo, CHILD), await _keep(repo, OTHER)
        assert set(await repo.kept.items(SCOPE.label)) == {base, child}
        assert await repo.kept.items(OTHER.label) == (other,)
        assert (base.namespace, child.namespace) == (SCOPE.tree, CHILD.tree)

    async def test_a_commit_comes_back_as_a_branch(self, repo: TreesUnderTest) -> None:
        item = await _keep(repo)
        await repo.kept.bring_back(item, "rescue/left")
        tip = await repo.history.tip("rescue/left")
        assert tip == item.commit
        assert tip is not None
        assert (await repo.history.files(tip))["left.txt"] == b"left in agl/fix"
        assert await repo.kept.items() == (item,)

    async def test_a_branch_that_is_there_is_not_moved(self, repo: TreesUnderTest) -> None:
        item = await _keep(repo)
        with pytest.raises(StateError, match="main"):
            await repo.kept.bring_back(item, "main")
        assert await repo.history.tip("main") == repo.base

    async def test_a_folder_is_no_branch(self, repo: TreesUnderTest) -> None:
        item = await _clear(repo)
        with pytest.raises(StateError, match=re.escape(str(item.folder))):
            await repo.kept.bring_back(item, "rescue")
        assert await repo.history.tip("rescue") is None

    @pytest.mark.parametrize(
        "branch", ["", "-x", "a b", "a..b", "a/", "/a", "a//b", ".a", "a.lock", "a^", "a~1", "a:b"]
    )
    async def test_a_name_that_git_does_not_take_is_refused(
        self, repo: TreesUnderTest, branch: str
    ) -> None:
        item = await _keep(repo)
        with pytest.raises(InputError):
            await repo.kept.bring_back(item, branch)

    async def test_purge_leaves_what_is_younger(self, repo: TreesUnderTest) -> None:
        item = await _keep(repo)
        assert await repo.kept.purge(SCOPE.label, datetime(2000, 1, 1, tzinfo=UTC)) == ()
        assert await repo.kept.items() == (item,)

    async def test_purge_takes_what_is_older(self, repo: TreesUnderTest) -> None:
        item = await _keep(repo)
        assert await repo.kept.purge(SCOPE.label, datetime(2999, 1, 1, tzinfo=UTC)) == (item,)
        assert await repo.kept.items() == ()

    async def test_purge_without_a_time_takes_all_of_the_label(self, repo: TreesUnderTest) -> None:
        other = await _keep(repo, OTHER)
        folder = (await _clear(repo)).folder
        items = await repo.kept.items(SCOPE.label)
        assert set(await repo.kept.purge(SCOPE.label, None)) == set(items)
        assert await repo.kept.items() == (other,)
        assert folder is not None
        assert not folder.exists()
