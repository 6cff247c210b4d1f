"""What holds for every test."""

from __future__ import annotations

from collections.abc import Generator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nothing-left-out",
        action="store_true",
        help="a test that is skipped, because something is not on this machine, has failed",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("nothing_left_out"):
        report.outcome = "failed"
        report.longrepr = f"left out: {report.longrepr}"
    return report
