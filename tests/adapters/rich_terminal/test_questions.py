from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agl.adapters.rich_terminal.questions import Question, Questions
from agl.ports.terminal import Choice, Picked, Screen, TextInput, Typed

SURE = Screen[object]("Sure?", responses=[Choice("yes", 1), Choice("2", 0), TextInput("why", str)])
AGE = Screen[object]("Age?", responses=[TextInput("years", int)])


def question(screen: Screen[object] = SURE, priority: int = 0) -> Question:
    loop = asyncio.new_event_loop()
    try:
        return Question(lambda: screen, screen, priority, loop.create_future())
    finally:
        loop.close()


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), max_size=30))
def test_up_is_the_first_of_the_highest_priority(moves: list[tuple[int, bool]]) -> None:
    questions, model = Questions(), list[Question]()
    for priority, goes in moves:
        if goes and model:
            gone = model.pop(priority % len(model))
            questions.remove(gone)
            questions.remove(gone)
        else:
            questions.add(one := question(priority=priority))
            model.append(one)
        ordered = sorted(model, key=lambda one: -one.priority)
        assert questions.up is (ordered[0] if ordered else None)
        assert sum(questions.waiting.values()) == max(len(model) - 1, 0)
        assert questions.waiting.get(9, 0) == 0


def test_equal_questions_are_two() -> None:
    questions, first, second = Questions(), question(), question()
    questions.add(first)
    questions.add(second)
    questions.remove(second)
    assert list(questions) == [first]


@pytest.mark.parametrize(
    ("text", "answer"), [("1", Picked("yes")), (" yes ", Picked("yes")), ("2", Picked("2"))]
)
def test_a_choice_is_meant_by_label_or_number(text: str, answer: Picked) -> None:
    assert question().take(text) == answer


def test_a_text_is_chosen_and_then_typed() -> None:
    one = question()
    assert one.prompt == "1 to 3"
    assert one.take("3") is None
    assert (one.prompt, one.problem) == ("why", "")
    assert one.take("1") == Typed("why", "1")


def test_what_fits_nothing_is_said_and_the_question_stays() -> None:
    one = question()
    assert one.take("4") is None
    assert one.problem == "'4' is none of them"
    age = question(AGE)
    assert age.take("old") is None
    assert age.problem == "that does not fit: invalid literal for int() with base 10: 'old'"
    assert (age.draft, age.cursor) == ("old", 3)
    assert age.take("7") == Typed("years", "7")


def test_a_view_that_fails_fails_its_question() -> None:
    one = question()
    one.view = lambda: Screen("Really sure?", responses=SURE.responses)
    one.look()
    assert one.screen.title == "Really sure?"
    one.view = lambda: Screen(str(1 // 0))
    one.look()
    assert isinstance(one.answer.exception(), ZeroDivisionError)
