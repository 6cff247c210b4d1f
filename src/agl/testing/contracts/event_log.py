"""What every `EventLog` promises."""

from __future__ import annotations

import pytest

from agl.ports.event_log import EventLog

RUN = ("projects", "p", "runs", "r")


class EventLogContract:
    """Subclass it and give the fixture `log`, empty."""

    @pytest.fixture
    def log(self) -> EventLog:
        raise NotImplementedError

    def test_a_run_without_a_log_has_no_events(self, log: EventLog) -> None:
        assert list(log.read(RUN)) == []

    def test_events_come_in_the_order_in_which_they_were_appended(self, log: EventLog) -> None:
        events = [{"kind": "warned", "n": n, "text": "é\n\udce9"} for n in range(20)]
        for event in events:
            log.append(RUN, event)
        assert list(log.read(RUN)) == events

    def test_each_run_has_its_own_log(self, log: EventLog) -> None:
        log.append(RUN, {"n": 1})
        log.append((*RUN, "worktrees", "w"), {"n": 2})
        assert list(log.read(RUN)) == [{"n": 1}]
        assert list(log.read((*RUN, "worktrees", "w"))) == [{"n": 2}]

    @pytest.mark.parametrize("value", [object(), float("nan"), {1: {2, 3}}])
    def test_an_event_that_is_not_json_is_left_out(self, log: EventLog, value: object) -> None:
        log.append(RUN, {"n": 1})
        log.append(RUN, {"n": value})
        log.append(RUN, {"n": 2})
        assert list(log.read(RUN)) == [{"n": 1}, {"n": 2}]

    def test_an_event_is_what_it_was_when_it_was_appended(self, log: EventLog) -> None:
        event: dict[str, object] = {"n": 1}
        log.append(RUN, event)
        event["n"] = 2
        assert list(log.read(RUN)) == [{"n": 1}]
