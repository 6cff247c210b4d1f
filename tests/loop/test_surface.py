import ast
from pathlib import Path

import agl.loop


def test_the_front_door_names_what_it_shows() -> None:
    shown = {
        alias.asname or alias.name
        for node in ast.parse(Path(agl.loop.__file__).read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(agl.loop.__all__) == shown
    assert list(agl.loop.__all__) == sorted(agl.loop.__all__, key=_order)
    assert all(hasattr(agl.loop, name) for name in agl.loop.__all__)


def test_what_an_agent_takes_and_tells_is_there() -> None:
    taken = {"Agent", "Checkpoint", "Limits", "tool", "Approved", "Refused", "Outcome"}
    events = {kind.__name__ for kind in agl.loop.Event.__args__}
    assert taken | events <= set(agl.loop.__all__)


def test_the_loop_fits_one_screen() -> None:
    source = Path(agl.loop.agent.__file__).read_text()
    tree = ast.parse(source)
    [agent] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    loop = [
        node for node in agent.body if isinstance(node, ast.AsyncFunctionDef) and node.name != "run"
    ]
    assert sum((node.end_lineno or 0) - node.lineno + 1 for node in loop) <= 120


def _order(name: str) -> tuple[bool, str]:
    return name.islower(), name
