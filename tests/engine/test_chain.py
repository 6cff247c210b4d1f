"""Which recorded entries count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from agl.ports.ledger import Entry, Kind
from agl.sdk._engine.chain import Chain
from agl.sdk._engine.ledger import renumbered

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BASE = "base"
QUICK = settings(max_examples=200, deadline=None, derandomize=True, database=None)


def entry(
    number: int,
    print_: str = "f",
    before: str = BASE,
    after: str | None = None,
    *,
    kind: Kind = Kind.STEP,
    epoch: int = 1,
    ordinal: int = 0,
    name: str = "s",
    given: str | None = None,
    cut_from: int | None = None,
) -> Entry:
    return Entry(
        kind=kind,
        name=name,
        epoch=epoch,
        number=number,
        fingerprint=print_,
        ordinal=ordinal,
        value=None,
        head_before=before,
        head_after=before if after is None else after,
        started=NOW,
        finished=NOW,
        given=given,
        cut_from=cut_from,
    )


def cut(number: int, first: int, *, nth: int = 1, epoch: int = 1) -> Entry:
    return entry(number, "cut", kind=Kind.CUT, epoch=epoch, cut_from=first, ordinal=nth - 1)


def numbers(entries: Iterable[Entry]) -> list[int]:
    return [one.number for one in entries]


def test_an_empty_chain_stands_at_its_base() -> None:
    chain = Chain(BASE, 1)
    assert (chain.tip, chain.next_number, chain.live) == (BASE, 1, ())


def test_the_tip_is_the_last_commit_of_the_live_chain() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2"), entry(3, "c", "h2")
    assert Chain(BASE, 1, [c, b, a]).tip == "h2"


def test_a_step_without_a_commit_leaves_the_tip_where_it_is() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1"), entry(3, "c", BASE)
    assert Chain(BASE, 1, [a, b, c]).tip == "h1"


def test_an_entry_that_starts_off_the_chain_does_not_count() -> None:
    a, stray, behind = entry(1, "a", BASE, "h1"), entry(2, "b", "x1", "x2"), entry(3, "c", "x2")
    chain = Chain(BASE, 1, [a, stray, behind])
    assert (numbers(chain.live), chain.tip) == ([1], "h1")
    assert chain.find(Kind.STEP, "b", 0) is None
    assert chain.find(Kind.STEP, "c", 0) is None


def test_the_chain_is_linked_in_the_order_of_numbers() -> None:
    early = entry(1, "b", "h1", "h2")
    assert numbers(Chain(BASE, 1, [early, entry(2, "a", BASE, "h1")]).live) == [2]


def test_a_step_recorded_beside_others_is_found_wherever_the_tip_is() -> None:
    entries = [entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2"), entry(3, "c", "h2", "h3")]
    chain = Chain(BASE, 1, entries)
    for one in entries:
        assert chain.find(Kind.STEP, one.fingerprint, 0) == one


def test_kind_fingerprint_and_ordinal_all_tell_entries_apart() -> None:
    chain = Chain(BASE, 1, [entry(1, "a", ordinal=1)])
    assert chain.find(Kind.STEP, "a", 1) is not None
    assert chain.find(Kind.STEP, "a", 0) is None
    assert chain.find(Kind.STEP, "b", 1) is None
    assert chain.find(Kind.RECORD, "a", 1) is None


def test_a_verdict_is_found_by_the_head_its_task_was_given() -> None:
    first = entry(1, "v", kind=Kind.VERIFY, given=BASE)
    second = entry(2, "v", kind=Kind.VERIFY, given="h1")
    chain = Chain(BASE, 1, [first, second])
    assert chain.find(Kind.VERIFY, "v", 0, lambda one: one.given == BASE) == first
    assert chain.find(Kind.VERIFY, "v", 0, lambda one: one.given == "h1") == second
    assert chain.find(Kind.VERIFY, "v", 0, lambda one: one.given == "h2") is None


def test_an_older_verdict_is_adopted_by_the_tip_alone() -> None:
    older = entry(1, "v", kind=Kind.VERIFY, given="elsewhere")
    assert Chain(BASE, 2, [older]).adoptable(Kind.VERIFY, "s", "v", 0) == older


def test_an_older_step_is_not_served_as_it_is() -> None:
    assert Chain(BASE, 2, [entry(1, "a", BASE, "h1")]).find(Kind.STEP, "a", 0) is None


def test_an_older_step_is_adopted_at_the_tip_and_nowhere_else() -> None:
    a, b = entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2")
    chain = Chain(BASE, 2, [a, b])
    assert chain.tip == BASE
    assert chain.adoptable(Kind.STEP, "s", "a", 0) == a
    assert chain.adoptable(Kind.STEP, "s", "b", 0) is None
    chain.add(renumbered(a, epoch=2, number=3, given=None))
    assert chain.tip == "h1"
    assert chain.adoptable(Kind.STEP, "s", "a", 0) is None
    assert chain.adoptable(Kind.STEP, "s", "b", 0) == b


def test_an_entry_of_this_epoch_is_not_adopted() -> None:
    assert Chain(BASE, 1, [entry(1, "a")]).adoptable(Kind.STEP, "s", "a", 0) is None


def test_the_newest_of_several_is_used() -> None:
    one, two = entry(1, "a", BASE, "h1"), entry(2, "a", BASE, "h2", epoch=2)
    assert Chain(BASE, 3, [one, two]).adoptable(Kind.STEP, "s", "a", 0) == two
    answers = [entry(1, "q", kind=Kind.ASK), entry(2, "q", kind=Kind.ASK)]
    assert Chain(BASE, 1, answers).find(Kind.ASK, "q", 0) == answers[1]


def test_answers_and_records_hold_in_any_epoch_and_on_any_tree() -> None:
    for kind in (Kind.ASK, Kind.RECORD):
        fact = entry(1, "q", "off the chain", kind=kind)
        assert Chain(BASE, 7, [fact, cut(2, 1)]).find(kind, "q", 0) == fact


def test_an_answer_moves_no_tip() -> None:
    assert Chain(BASE, 1, [entry(1, "q", BASE, "h1", kind=Kind.ASK)]).tip == BASE


def test_what_needs_a_commit_that_is_gone_does_not_count() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2"), entry(3, "c", "h1")
    chain = Chain(BASE, 1, [a, b, c], frozenset({"h2"}))
    assert (numbers(chain.live), chain.tip) == ([1, 3], "h1")
    older = Chain(BASE, 2, [a, b, c], frozenset({"h1"}))
    assert older.adoptable(Kind.STEP, "s", "a", 0) is None


def test_a_cut_puts_out_of_use_what_is_numbered_from_there_up_to_itself() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2"), entry(3, "c", "h2", "h3")
    chain = Chain(BASE, 1, [a, b, c])
    chain.add(cut(4, 2))
    assert (numbers(chain.live), chain.tip) == ([1], "h1")
    chain.add(entry(5, "b", "h1", "h4"))
    assert (numbers(chain.live), chain.tip) == ([1, 5], "h4")


def test_a_cut_holds_in_a_later_epoch() -> None:
    a, b = entry(1, "a", name="t"), entry(2, "b")
    chain = Chain(BASE, 2, [a, b, cut(3, 2)])
    assert chain.adoptable(Kind.STEP, "t", "a", 0) == a
    assert chain.adoptable(Kind.STEP, "s", "b", 0) is None


def test_from_the_step_of_a_cut_on_nothing_older_is_adopted() -> None:
    a, b, c = entry(1, "a", name="t"), entry(2, "b"), entry(3, "c", name="t")
    verdict = entry(4, "v", kind=Kind.VERIFY, name="verify")
    chain = Chain(BASE, 2, [a, b, c, verdict, cut(5, 5, epoch=2)])
    assert chain.adoptable(Kind.STEP, "t", "a", 0) == a
    assert chain.adoptable(Kind.VERIFY, "verify", "v", 0) == verdict
    assert chain.adoptable(Kind.STEP, "s", "b", 0) is None
    chain.add(entry(6, "b", epoch=2))
    assert chain.adoptable(Kind.STEP, "t", "c", 0) is None
    assert chain.adoptable(Kind.VERIFY, "verify", "v", 0) is None


def test_the_steps_before_the_nth_of_a_cut_are_adopted() -> None:
    first, second = entry(1, "a"), entry(2, "b")
    chain = Chain(BASE, 2, [first, second, cut(3, 3, nth=2, epoch=2)])
    assert chain.adoptable(Kind.STEP, "s", "a", 0) == first
    chain.add(renumbered(first, epoch=2, number=4, given=None))
    assert chain.adoptable(Kind.STEP, "s", "b", 0) is None


def test_what_was_recorded_behind_a_cut_is_adopted_later() -> None:
    new = entry(3, "b")
    chain = Chain(BASE, 2, [entry(1, "b"), cut(2, 1), new])
    assert chain.adoptable(Kind.STEP, "s", "b", 0) == new


def test_a_copy_names_what_it_repeats() -> None:
    copy = renumbered(entry(1, "b"), epoch=2, number=3, given="h1")
    assert (copy.epoch, copy.number, copy.given, copy.copy_of) == (2, 3, "h1", 1)


def test_where_a_cut_begins_is_counted_by_name_on_the_live_chain() -> None:
    entries = [
        entry(1, "a", BASE, "h1"),
        entry(2, "b", "h1", name="t"),
        entry(3, "c", "h1"),
        entry(4, "d", BASE, epoch=2),
        entry(5, "e", "nowhere", epoch=2),
        entry(6, "f", BASE, epoch=2),
        entry(7, "v", BASE, epoch=2, kind=Kind.VERIFY, name="verify"),
    ]
    chain = Chain(BASE, 2, entries)
    assert chain.cut_from("s", 1) == 4
    assert chain.cut_from("s", 2) == 6
    assert chain.cut_from("s", 3) is None
    assert chain.cut_from("verify", 1) == 7
    assert chain.cut_from("none", 1) is None
    assert chain.cut_from("t", 1) == chain.next_number


def test_what_is_cut_is_not_counted_again() -> None:
    chain = Chain(BASE, 1, [entry(1, "a"), entry(2, "b"), cut(3, 2), entry(4, "c")])
    assert chain.cut_from("s", 2) == 4


def test_what_follows_on_a_dropped_commit_leaves_the_chain() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1", "h2"), entry(3, "c", "h2", "h3")
    chain = Chain(BASE, 1, [a, b, c])
    chain.drop(b)
    assert (numbers(chain.live), chain.tip) == ([1], "h1")
    assert chain.next_number == 4


def test_what_does_not_build_on_a_dropped_entry_stays() -> None:
    a, b, c = entry(1, "a", BASE, "h1"), entry(2, "b", "h1"), entry(3, "c", "h1", "h2")
    chain = Chain(BASE, 1, [a, b, c])
    chain.drop(b)
    assert (numbers(chain.live), chain.tip) == ([1, 3], "h2")


@dataclass(frozen=True)
class Doing:
    """One thing that happens to a chain; numbers pick among what is there."""

    what: str
    print_: str
    commits: bool
    pick: int


doings = st.lists(
    st.builds(
        Doing,
        st.sampled_from(("write", "write", "write", "adopt", "cut", "epoch", "drop", "ask")),
        st.sampled_from("abc"),
        st.booleans(),
        st.integers(0, 9),
    ),
    max_size=25,
)


class Reference:
    """The rules said again, from the whole list and at each question anew."""

    def __init__(self, epoch: int, entries: list[Entry]) -> None:
        self._epoch = epoch
        self._entries = sorted(entries, key=lambda one: one.number)

    def is_out(self, one: Entry) -> bool:
        return any(
            cut.cut_from is not None and cut.number > one.number >= cut.cut_from
            for cut in self._entries
            if cut.kind is Kind.CUT
        )

    @property
    def live(self) -> list[Entry]:
        found: list[Entry] = []
        heads = [BASE]
        for one in self._entries:
            if one.kind is not Kind.STEP or one.epoch != self._epoch or self.is_out(one):
                continue
            if one.head_before in heads:
                found.append(one)
                heads.append(one.head_after)
        return found

    @property
    def tip(self) -> str:
        moved = [one.head_after for one in self.live if one.head_after != one.head_before]
        return moved[-1] if moved else BASE

    def adoptable(self, print_: str) -> list[Entry]:
        steps = len(self.live) + 1
        cuts = [one for one in self._entries if one.kind is Kind.CUT and steps > one.ordinal]
        after = cuts[-1].number if cuts else 0
        return [
            one
            for one in self._entries
            if one.kind is Kind.STEP
            and one.epoch < self._epoch
            and one.number > after
            and one.fingerprint == print_
            and one.head_before == self.tip
            and not self.is_out(one)
        ]


@QUICK
@given(doings)
def test_any_history_reads_as_the_rules_say(history: list[Doing]) -> None:
    epoch, number, entries = 1, 1, list[Entry]()
    chain = Chain(BASE, epoch)
    for doing in history:
        reference = Reference(epoch, entries)
        made: Entry | None = None
        match doing.what:
            case "epoch":
                epoch += 1
                chain = Chain(BASE, epoch, entries)
                number = chain.next_number
            case "adopt":
                older = reference.adoptable(doing.print_)
                assert chain.adoptable(Kind.STEP, "s", doing.print_, 0) == (
                    older[-1] if older else None
                )
                if older:
                    made = renumbered(older[-1], epoch=epoch, number=number, given=None)
            case "cut":
                nth = 1 + doing.pick % 3
                first = chain.cut_from("s", nth)
                if first is not None:
                    made = cut(number, first, nth=nth, epoch=epoch)
            case "drop" if entries:
                gone = entries.pop(doing.pick % len(entries))
                chain.drop(gone)
            case "ask":
                made = entry(number, "q", chain.tip, kind=Kind.ASK, epoch=epoch)
            case _:
                after = f"h{number}" if doing.commits else None
                made = entry(number, doing.print_, chain.tip, after, epoch=epoch)
        if made is not None:
            chain.add(made)
            entries.append(made)
            number += 1
        reference = Reference(epoch, entries)
        assert (chain.tip, list(chain.live)) == (reference.tip, reference.live)
        assert chain.next_number == number
        again = Chain(BASE, epoch, reversed(entries))
        assert (again.tip, again.live) == (chain.tip, chain.live)
        for print_ in "abc":
            fits = [one for one in reference.live if one.fingerprint == print_]
            assert chain.find(Kind.STEP, print_, 0) == (fits[-1] if fits else None)


@QUICK
@given(doings)
def test_a_live_chain_is_one_line_of_commits(history: list[Doing]) -> None:
    chain, number = Chain(BASE, 1), 1
    for doing in history:
        made = entry(number, doing.print_, chain.tip, f"h{number}" if doing.commits else None)
        if doing.what == "cut" and (first := chain.cut_from("s", 1 + doing.pick)):
            made = cut(number, first)
        chain.add(made)
        number += 1
    at = BASE
    for one in chain.live:
        assert one.head_before == at
        at = one.head_after
    assert chain.tip == at


def test_a_number_that_was_left_out_is_not_used_again() -> None:
    chain = Chain(BASE, 1, [entry(1, "a")])
    chain.skip(2)
    assert chain.next_number == 3


def test_a_chain_does_not_change_what_it_is_given() -> None:
    one = entry(1, "a", BASE, "h1")
    chain = Chain(BASE, 1, (one,))
    chain.add(replace(one, number=2, head_before="h1", head_after="h2"))
    assert numbers(chain.entries) == [1, 2]
