"""The JSON forms of the ledger's documents."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from sys import intern
from typing import TypeVar

from agl.ports.errors import CorruptDocument, NewerFormat
from agl.ports.ledger import Entry, Epoch, Kind, Outcome, OutcomeKind, RunRecord, Spending
from agl.ports.models import Usage
from agl.ports.store import Document

FORMAT = 1
"""The number in each document. A newer one is refused; an older one will be migrated on reading."""

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Enum)


def text_of(moment: datetime) -> str:
    """A time as ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat()


def run_to_json(run: RunRecord) -> Document:
    return {
        "format": FORMAT,
        "workflow": run.workflow,
        "version": run.version,
        "source": run.source,
        "label": run.label,
        "base_ref": run.base_ref,
        "base": run.base,
        "branch": run.branch,
        "tree": run.tree,
        "params": dict(run.params),
        "created": text_of(run.created),
    }


def run_from_json(document: Document, where: str) -> RunRecord:
    read = _Reader(document, where)
    return RunRecord(
        workflow=read.text("workflow"),
        version=read.text("version"),
        source=read.text("source"),
        label=read.text("label"),
        base_ref=read.text("base_ref"),
        base=read.text("base"),
        branch=read.text("branch"),
        tree=read.text("tree"),
        params=read.mapping("params"),
        created=read.moment("created"),
    )


def epoch_to_json(epoch: Epoch) -> Document:
    return {
        "format": FORMAT,
        "number": epoch.number,
        "source": epoch.source,
        "files": dict(epoch.files),
        "started": text_of(epoch.started),
    }


def epoch_from_json(document: Document, where: str) -> Epoch:
    read = _Reader(document, where)
    return Epoch(
        number=read.whole("number"),
        source=read.text("source"),
        files=read.texts("files"),
        started=read.moment("started"),
    )


def entry_to_json(entry: Entry) -> Document:
    return {
        "format": FORMAT,
        "kind": entry.kind.value,
        "name": entry.name,
        "epoch": entry.epoch,
        "number": entry.number,
        "fingerprint": entry.fingerprint,
        "ordinal": entry.ordinal,
        "value": entry.value,
        "head_before": entry.head_before,
        "head_after": entry.head_after,
        "started": text_of(entry.started),
        "finished": text_of(entry.finished),
        "attempts": list(entry.attempts),
        "model": entry.model,
        "usage": usage_to_json(entry.usage),
        "terms": dict(entry.terms),
        "given": entry.given,
        "copy_of": entry.copy_of,
        "cut_from": entry.cut_from,
        "merged": entry.merged,
    }


def entry_from_json(document: Document, where: str) -> Entry:
    read = _Reader(document, where)
    return Entry(
        kind=read.member("kind", Kind),
        name=read.text("name"),
        epoch=read.whole("epoch"),
        number=read.whole("number"),
        fingerprint=read.text("fingerprint"),
        ordinal=read.whole("ordinal"),
        value=read.anything("value"),
        head_before=read.text("head_before"),
        head_after=read.text("head_after"),
        started=read.moment("started"),
        finished=read.moment("finished"),
        attempts=read.list_of_texts("attempts"),
        model=read.text_or_none("model"),
        usage=read.usage("usage"),
        terms=read.texts("terms"),
        given=read.text_or_none("given"),
        copy_of=read.whole_or_none("copy_of"),
        cut_from=read.whole_or_none("cut_from"),
        merged=read.text_or_none("merged"),
    )


def outcome_to_json(outcome: Outcome) -> Document:
    return {
        "format": FORMAT,
        "kind": outcome.kind.value,
        "exit_code": outcome.exit_code,
        "message": outcome.message,
        "head": outcome.head,
        "ended": text_of(outcome.ended),
        "result": outcome.result,
        "questions": list(outcome.questions),
        "failure": outcome.failure,
        "unlanded": list(outcome.unlanded),
    }


def outcome_from_json(document: Document, where: str) -> Outcome:
    read = _Reader(document, where)
    return Outcome(
        kind=read.member("kind", OutcomeKind),
        exit_code=read.whole("exit_code"),
        message=read.text("message"),
        head=read.text("head"),
        ended=read.moment("ended"),
        result=read.text("result"),
        questions=read.list_of_texts("questions"),
        failure=read.text_or_none("failure"),
        unlanded=read.list_of_texts("unlanded") if "unlanded" in document else (),
    )


def spending_to_json(spending: Spending) -> Document:
    return {
        "format": FORMAT,
        "attempt": spending.attempt,
        "namespace": spending.namespace,
        "step": spending.step,
        "nth": spending.nth,
        "begun": spending.begun,
        "model": spending.model,
        "usage": usage_to_json(spending.usage),
        "started": text_of(spending.started),
        "updated": text_of(spending.updated),
        "program": spending.program,
        "sandbox": spending.sandbox,
    }


def spending_from_json(document: Document, where: str) -> Spending:
    read = _Reader(document, where)
    return Spending(
        attempt=read.text("attempt"),
        namespace=read.text("namespace"),
        step=read.text("step"),
        nth=read.whole("nth"),
        begun=read.whole("begun"),
        model=read.text("model"),
        usage=read.usage("usage"),
        started=read.moment("started"),
        updated=read.moment("updated"),
        program=read.text("program") if "program" in document else "",
        sandbox=read.text("sandbox") if "sandbox" in document else "",
    )


def usage_to_json(usage: Usage) -> Document:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    }


class _Reader:
    """Takes a document apart and names the file and the field when one does not fit."""

    def __init__(self, document: Document, where: str) -> None:
        self._document = document
        self._where = where
        written = document.get("format")
        if type(written) is not int:
            raise CorruptDocument(f"{where}: no format number")
        if written > FORMAT:
            raise NewerFormat(
                f"{where} was written by a newer AGL (format {written}, this one reads {FORMAT});"
                " upgrade AGL"
            )

    def anything(self, name: str) -> object:
        if name not in self._document:
            raise CorruptDocument(f"{self._where}: {name!r} is missing")
        return self._document[name]

    def _typed(self, name: str, kind: type[_T]) -> _T:
        value = self.anything(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CorruptDocument(f"{self._where}: {name!r} is not a {kind.__name__}")
        return value

    def text(self, name: str) -> str:
        return self._typed(name, str)

    def text_or_none(self, name: str) -> str | None:
        return None if self.anything(name) is None else self.text(name)

    def whole(self, name: str) -> int:
        return self._typed(name, int)

    def whole_or_none(self, name: str) -> int | None:
        return None if self.anything(name) is None else self.whole(name)

    def mapping(self, name: str) -> dict[str, object]:
        return {str(key): value for key, value in self._typed(name, dict).items()}

    def texts(self, name: str) -> dict[str, str]:
        mapping = self.mapping(name)
        if not all(isinstance(value, str) for value in mapping.values()):
            raise CorruptDocument(f"{self._where}: {name!r} holds something else than text")
        # The entries of a run share most terms; interned, an entry takes 1.9 kB instead of 2.9.
        return {intern(key): intern(str(value)) for key, value in mapping.items()}

    def list_of_texts(self, name: str) -> tuple[str, ...]:
        values = self._typed(name, list)
        if not all(isinstance(value, str) for value in values):
            raise CorruptDocument(f"{self._where}: {name!r} holds something else than text")
        return tuple(values)

    def moment(self, name: str) -> datetime:
        try:
            moment = datetime.fromisoformat(self.text(name))
        except ValueError as error:
            raise CorruptDocument(f"{self._where}: {name!r} is not a time") from error
        if moment.tzinfo is None:
            raise CorruptDocument(f"{self._where}: {name!r} has no time zone")
        return moment

    def member(self, name: str, kind: type[_E]) -> _E:
        text = self.text(name)
        try:
            return kind(text)
        except ValueError as error:
            raise CorruptDocument(f"{self._where}: {name!r} is {text!r}") from error

    def usage(self, name: str) -> Usage:
        inner = self.mapping(name)
        cost = inner.get("cost_usd")
        counts = [inner.get(key) for key in ("input_tokens", "output_tokens", "cached_tokens")]
        numbers = [count for count in counts if type(count) is int]
        if len(numbers) != 3 or not (cost is None or isinstance(cost, int | float)):
            raise CorruptDocument(f"{self._where}: {name!r} is not a usage")
        return Usage(numbers[0], numbers[1], numbers[2], None if cost is None else float(cost))
