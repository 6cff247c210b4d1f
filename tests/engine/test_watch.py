"""What a step changed that was not its own to change."""

from __future__ import annotations

import dataclasses

from agl.ports.guards import Reading
from agl.sdk._engine.watch import compare

QUIET = Reading({"agl/x": "1"}, None, "config", "shallow", "stash", "checkout")


def test_nothing_changed_is_nothing_to_say() -> None:
    found = compare(QUIET, QUIET, {"agl/x": "1"}, ("a",))
    assert (found.breach, found.remarks) == (None, ())


def test_a_branch_that_moved_stops_the_run_with_the_repair() -> None:
    """D3: the steps at work meanwhile are named as possible causes."""
    after = dataclasses.replace(QUIET, branches={"agl/x": "2"})
    breach = compare(QUIET, after, {"agl/x": "1"}, ("b", "a")).breach
    assert breach is not None
    assert "'a' or 'b'" in str(breach)
    assert "git update-ref refs/heads/agl/x 1" in str(breach)
    assert breach.exit_code == 4


def test_a_branch_that_is_gone_stops_the_run() -> None:
    after = dataclasses.replace(QUIET, branches={"agl/x": None})
    breach = compare(QUIET, after, {"agl/x": "1"}, ("a",)).breach
    assert breach is not None
    assert "is gone" in str(breach)


def test_a_configuration_that_broke_stops_the_run_naming_the_step() -> None:
    """C8."""
    after = dataclasses.replace(QUIET, broken_config="core.bare is true; `git config …`")
    breach = compare(QUIET, after, {}, ("a",)).breach
    assert breach is not None
    assert "'a'" in str(breach)
    assert "core.bare" in str(breach)


def test_a_configuration_that_was_broken_before_is_not_the_steps() -> None:
    broken = dataclasses.replace(QUIET, broken_config="core.bare is true")
    assert compare(broken, broken, {}, ("a",)).breach is None


def test_what_may_be_the_persons_own_is_told() -> None:
    """D8 and its siblings."""
    after = Reading({}, None, "c", "s", "t", "o")
    found = compare(QUIET, after, {}, ("a",))
    assert found.breach is None
    assert len(found.remarks) == 4
