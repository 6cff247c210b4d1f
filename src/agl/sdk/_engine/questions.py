"""`run.ask` and `run.record`: facts from outside, each asked once and replayed after."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from agl.ports.errors import InputError, NeedsAnswer
from agl.ports.ledger import Kind
from agl.ports.terminal import (
    Answer,
    Choice,
    Picked,
    Screen,
    TextInput,
    Typed,
    answer_meant,
)
from agl.schema import Invalid
from agl.sdk._engine import fingerprints
from agl.sdk._engine.reports import attempt_at_work
from agl.sdk._engine.scope import Asked, ScopeState

T = TypeVar("T")


async def ask(scope: ScopeState, screen: Screen[T], priority: int, key: str | None) -> T:
    """The person's answer: recorded, given beforehand, or asked for now.

    Raises:
        InputError: the screen has no responses, or a given answer is none of them.
        NeedsAnswer: nobody is there.
    """
    if not screen.responses:
        raise InputError(f"screen {screen.title!r} has no responses; use run.terminal.show")
    run = scope.run
    asked = _asked_question(screen, key)
    title = key or screen.title
    run.answers_taken |= {title, screen.title}
    served = scope.recorded(asked, lambda value: _value_of(screen, _answer_of(value)))
    if served is not None:
        return served.value
    started = run.services.clock.now()
    given = run.answers.get(title, run.answers.get(screen.title))
    once = (scope.scope, asked.fingerprint)
    if given is not None and once not in run.answers_used:
        run.answers_used.add(once)
        answer, value = _given_answer(screen, title, given)
    else:
        run.emit("asked", scope.scope, title)
        open_questions = run.open_questions if attempt_at_work.get() is None else []
        open_questions.append(title)
        try:
            answer = await run.services.terminal.ask(lambda: screen, priority=priority)
        except NeedsAnswer as error:
            raise _unanswered(scope, screen, title) from error
        open_questions.remove(title)
        value = _value_of(screen, answer)
    tip = scope.chain.tip
    scope.write(asked, _answer_json(answer), started=started, head_before=tip, head_after=tip)
    run.emit("answered", scope.scope, title, answer=_answer_json(answer))
    return value


def _unanswered(scope: ScopeState, screen: Screen[T], title: str) -> NeedsAnswer:
    labels = [one.label for one in screen.responses if isinstance(one, Choice)]
    choices = f" ({', '.join(labels)})" if labels else ""
    example = json.dumps({title: labels[0] if labels else "…"}, ensure_ascii=False)
    return NeedsAnswer(
        f"{title!r} needs an answer{choices} and nobody is at the terminal; resume where somebody"
        f" can type, or with --answers FILE that holds {example}",
        questions=(title,),
    )


async def record(
    scope: ScopeState,
    name: str,
    fn: Callable[..., T | Awaitable[T]],
    inputs: Mapping[str, object],
) -> T:
    """What `fn(**inputs)` said when it was first asked, as JSON.

    Raises:
        InputError: it returned something that has no place in JSON.
    """
    terms = {
        "name": fingerprints.digest(name),
        **{f"input.{key}": fingerprints.digest(value) for key, value in inputs.items()},
    }
    asked = _within_step(Kind.RECORD, name, terms)
    served = scope.recorded(asked, _as_it_is)
    if served is not None:
        return served.value  # type: ignore[return-value]
    started = scope.run.services.clock.now()
    result = fn(**inputs)
    if inspect.isawaitable(result):
        result = await result
    try:
        value = json.loads(json.dumps(result, allow_nan=False))
        fingerprints.canonical(value)
    except (TypeError, ValueError, InputError) as error:
        raise InputError(f"record {name!r} returned what has no place in JSON: {error}") from error
    tip = scope.chain.tip
    scope.write(asked, value, started=started, head_before=tip, head_after=tip)
    scope.run.emit("recorded", scope.scope, name)
    return value  # type: ignore[no-any-return]


def _asked_question(screen: Screen[T], key: str | None) -> Asked:
    if key is not None:
        terms = {"key": fingerprints.digest(key)}
    else:
        terms = {
            "title": fingerprints.digest(screen.title),
            "body": fingerprints.digest(screen.body),
            "responses": fingerprints.digest(
                [[type(one).__name__, one.label] for one in screen.responses]
            ),
        }
    return _within_step(Kind.ASK, key or screen.title, terms)


def _within_step(kind: Kind, name: str, terms: dict[str, str]) -> Asked:
    at_work = attempt_at_work.get()
    if at_work is not None:
        terms = {**terms, "step": fingerprints.digest(at_work.step)}
    within = None if at_work is None else at_work.attempt
    return Asked(kind, name, fingerprints.fingerprint(kind.value, terms), terms, within=within)


def _given_answer(screen: Screen[T], title: str, text: str) -> tuple[Answer, T]:
    answer = answer_meant(screen, text)
    if answer is None:
        labels = ", ".join(repr(one.label) for one in screen.responses)
        raise InputError(
            f"the answer {text!r} to {title!r} is none of {labels}; change the answers file"
        )
    try:
        return answer, _value_of(screen, answer)
    except Invalid as error:
        raise InputError(f"the answer to {title!r}: {error}; change the answers file") from error


def _answer_json(answer: Answer) -> Mapping[str, str]:
    if isinstance(answer, Picked):
        return {"picked": answer.label}
    return {"input": answer.label, "typed": answer.text}


def _answer_of(value: object) -> Answer:
    match value:
        case {"picked": str(label)}:
            return Picked(label)
        case {"input": str(label), "typed": str(text)}:
            return Typed(label, text)
    raise Invalid((f"{value!r} is not an answer",))


def _value_of(screen: Screen[T], answer: Answer) -> T:
    for response in screen.responses:
        if response.label != answer.label:
            continue
        if isinstance(response, Choice) and isinstance(answer, Picked):
            return response.value
        if isinstance(response, TextInput) and isinstance(answer, Typed):
            try:
                return response.maps(answer.text)
            except (ValueError, InputError) as error:
                raise Invalid((f"{answer.text!r} does not fit: {error}",)) from error
    raise Invalid((f"{answer.label!r} is no longer a response of {screen.title!r}",))


def _as_it_is(value: object) -> object:
    return value
