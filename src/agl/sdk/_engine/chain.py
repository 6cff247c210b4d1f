"""Which recorded entries count: epochs, the live chain, its tip, and cuts. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from agl.ports.ledger import Entry, Kind

ON_CHAIN = frozenset({Kind.STEP, Kind.VERIFY, Kind.CHILD, Kind.LANDING})
"""Kinds that start somewhere on the chain; answers and records hold wherever the chain goes."""

NAMED = frozenset({Kind.STEP, Kind.VERIFY, Kind.LANDING})
"""Kinds from which on a cut can put the chain out of use."""

FACTS = frozenset({Kind.ASK, Kind.RECORD})
"""Kinds that a cut by their own name forgets, and no other."""

_Key = tuple[Kind, str, int]

Fits = Callable[[Entry], bool]
"""Whether an entry that was found answers in all that its fingerprint does not hold."""


class Chain:
    """The entries of one scope as this epoch sees them.

    `base` is where the scope started; `gone` are commits that the repository no longer holds: an
    entry that needs one of them counts as not recorded.
    """

    def __init__(
        self,
        base: str,
        epoch: int,
        entries: Iterable[Entry] = (),
        gone: frozenset[str] = frozenset(),
    ) -> None:
        self.base = base
        self._epoch = epoch
        self._gone = gone
        self._entries = {entry.number: entry for entry in entries}
        self._last = max(self._entries, default=0)
        self._order()

    @property
    def tip(self) -> str:
        """The commit where whatever has to run starts, and where the branch stands at the end."""
        return self._tip

    @property
    def next_number(self) -> int:
        return self._last + 1

    def holds(self, head: str) -> bool:
        """Whether the live chain passes through this commit."""
        return head in self._heads

    def position(self, head: str) -> int:
        """How far along the live chain a commit lies; -1 for one beside it."""
        return self._heads.get(head, -1)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries in the order of their numbers, whether they count or not."""
        return tuple(self._entries[number] for number in sorted(self._entries))

    @property
    def live(self) -> tuple[Entry, ...]:
        """The entries of the live chain, in order."""
        return tuple(self._live.values())

    def add(self, entry: Entry) -> None:
        """Takes in an entry that was just written; its number is the next one."""
        self._entries[entry.number] = entry
        self._last = max(self._last, entry.number)
        if entry.kind is Kind.CUT:
            self._order()
        else:
            self._place(entry)

    def replace(self, entry: Entry) -> None:
        """Takes in the next stage of a landing, which has not landed before."""
        self._entries[entry.number] = entry
        if entry.number in self._live:
            self._live[entry.number] = entry
            self._move(entry)

    def skip(self, number: int) -> None:
        """Leaves a number out."""
        self._last = max(self._last, number)

    def drop(self, entry: Entry) -> None:
        """Forgets an entry that cannot be used; what followed on its commit leaves the chain."""
        del self._entries[entry.number]
        self._order()

    def find(
        self, kind: Kind, fingerprint: str, ordinal: int, fits: Fits | None = None
    ) -> Entry | None:
        """The entry that answers this, or None: of what is on the chain one of the live chain, of
        answers and records one of any epoch; the newest first."""
        pool = self._live if kind in ON_CHAIN else self._entries
        for number in reversed(self._index.get((kind, fingerprint, ordinal), [])):
            entry = pool.get(number)
            if entry is not None and (fits is None or fits(entry)):
                if kind not in ON_CHAIN and self._is_forgotten(entry):
                    continue
                return entry
        return None

    def adoptable(
        self, kind: Kind, name: str, fingerprint: str, ordinal: int, fits: Fits | None = None
    ) -> Entry | None:
        """The newest entry of an older epoch that answers this and starts at the tip, or None; a
        child's start may lie anywhere on the live chain. From the step of a cut on, that is one
        that was recorded after the cut."""
        after = self._last_cut_reached(called(kind, name) if kind in NAMED else None)
        for number in reversed(self._index.get((kind, fingerprint, ordinal), [])):
            entry = self._entries.get(number)
            if (
                entry is not None
                and entry.number > after
                and entry.epoch < self._epoch
                and (entry.head_before == self._tip or kind is Kind.CHILD)
                and entry.head_before in self._heads
                and self._counts(entry)
                and (fits is None or fits(entry))
            ):
                return entry
        return None

    def cut_from(self, name: str, nth: int) -> int | None:
        """Where a cut would begin: the number of the live chain's nth step, verdict or landing that
        is called so, or the next number when only an older epoch has one; None when none has."""
        found: dict[int, int] = {}
        counts: Counter[int] = Counter()
        for entry in self.entries:
            if (
                entry.kind not in NAMED
                or called(entry.kind, entry.name) != name
                or not self._counts(entry)
            ):
                continue
            if entry.epoch == self._epoch and entry.number not in self._live:
                continue
            counts[entry.epoch] += 1
            if counts[entry.epoch] == nth:
                found[entry.epoch] = entry.number
        return found.get(self._epoch, self.next_number) if found else None

    def forget_from(self, name: str, nth: int) -> int | None:
        """The number of the nth answer or record of that name, from which on those of the name
        would be forgotten; None when there is none."""
        known = [
            entry.number
            for entry in self.entries
            if entry.kind in FACTS and entry.name == name and not self._is_forgotten(entry)
        ]
        return known[nth - 1] if len(known) >= nth else None

    def _order(self) -> None:
        self._tip = self.base
        self._heads = {self.base: 0}
        self._live: dict[int, Entry] = {}
        self._index: dict[_Key, list[int]] = defaultdict(list)
        self._steps: Counter[str] = Counter()
        cuts = [entry for entry in self._entries.values() if entry.kind is Kind.CUT]
        self._cuts = [cut for cut in cuts if not _forgets(cut)]
        self._forgetting = [cut for cut in cuts if _forgets(cut)]
        for entry in self.entries:
            self._place(entry)

    def _place(self, entry: Entry) -> None:
        self._index[entry.kind, entry.fingerprint, entry.ordinal].append(entry.number)
        if (
            entry.kind in ON_CHAIN
            and entry.epoch == self._epoch
            and entry.head_before in self._heads
            and self._counts(entry)
        ):
            self._live[entry.number] = entry
            if entry.kind in NAMED:
                self._steps[called(entry.kind, entry.name)] += 1
            self._move(entry)

    def _move(self, entry: Entry) -> None:
        if entry.head_after != entry.head_before:
            self._heads.setdefault(entry.head_after, len(self._heads))
            self._tip = entry.head_after

    def _last_cut_reached(self, next_step: str | None) -> int:
        """The number of the last cut whose step is on the live chain or would come on it next."""
        return max(
            (
                cut.number
                for cut in self._cuts
                if self._steps[cut.name] + (cut.name == next_step) > cut.ordinal
            ),
            default=0,
        )

    def _is_forgotten(self, entry: Entry) -> bool:
        return any(
            cut.name == entry.name
            and cut.cut_from is not None
            and cut.cut_from <= entry.number < cut.number
            for cut in self._forgetting
        )

    def _counts(self, entry: Entry) -> bool:
        """Whether no cut put the entry out of use and its commits are there."""
        if entry.head_after in self._gone or entry.head_before in self._gone:
            return False
        return not any(
            cut.cut_from is not None and cut.cut_from <= entry.number < cut.number
            for cut in self._cuts
        )


def heads_of(entry: Entry) -> tuple[str, ...]:
    """The commits without which an entry cannot be used."""
    start = entry.value.get("start") if isinstance(entry.value, Mapping) else None
    more = (start,) if entry.kind is Kind.CHILD and isinstance(start, str) else ()
    return (entry.head_before, entry.head_after, *more)


def called(kind: Kind, name: str) -> str:
    """By what a cut knows an entry: a landing by its child's namespace and a slash."""
    return f"{name}/" if kind is Kind.LANDING else name


def _forgets(cut: Entry) -> bool:
    """Whether a cut is of answers and records alone."""
    return isinstance(cut.value, Mapping) and cut.value.get("forgets") is True
