"""Workflows by name: installed ones through the entry points `agl.workflows`, and plain files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agl.config.entry_points import entry_points
from agl.config.spelling import perhaps
from agl.ports.errors import AglError, InputError, NotFoundError, WorkflowFailed

if TYPE_CHECKING:
    from agl.sdk.workflows import Workflow


def names() -> Mapping[str, str]:
    """The installed workflows, each with the `module:attribute` that holds it. Imports none."""
    return entry_points("agl.workflows")


def load(name: str) -> tuple[str, Workflow[Any]]:
    """The workflow of that name, or of a file: `flow.py`, or `flow.py:name` if it holds several.
    Comes with the name that finds it again: an entry point's, or `/absolute/flow.py:name`.

    Raises:
        NotFoundError: there is none; the message lists those there are.
        InputError: what the name points at is no workflow.
        WorkflowFailed: its module raised while it was imported.
    """
    file, colon, attribute = name.partition(".py:")
    if colon:
        return _from_file(Path(f"{file}.py"), attribute)
    if name.endswith(".py"):
        return _from_file(Path(name), "")
    return _installed(name)


def _installed(name: str) -> tuple[str, Workflow[Any]]:
    known = names()
    if name not in known:
        raise NotFoundError(
            f"no workflow {name!r}{perhaps(name, known)}; known are"
            f" {', '.join(known) or 'none'}, and files, as in ./flow.py"
        )
    module_name, _, attribute = known[name].partition(":")
    what = f"workflow {name!r}"
    if not _is_there(module_name):
        raise NotFoundError(
            f"{what} is in the module {module_name!r}, which is not there; reinstall its package"
        )
    with _importing(what):
        module = importlib.import_module(module_name)
    return name, _attribute(module, attribute, what)


def _is_there(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _from_file(file: Path, attribute: str) -> tuple[str, Workflow[Any]]:
    path = file.expanduser().resolve()
    if not path.is_file():
        raise NotFoundError(f"no workflow file {str(path)!r}; was it moved or removed?")
    module = _module_of(path)
    found = _workflows_in(module)
    if not attribute:
        if len(found) != 1:
            listed = ", ".join(f"{file}:{name}" for name in found)
            raise InputError(
                f"{str(path)!r} holds several workflows; say which: {listed}"
                if found
                else f"{str(path)!r} holds no @workflow"
            )
        (attribute,) = found
    if attribute not in found:
        raise NotFoundError(
            f"{str(path)!r} holds no workflow {attribute!r}; it holds {', '.join(found) or 'none'}"
        )
    return f"{path}:{attribute}", found[attribute]


def _module_of(path: Path) -> ModuleType:
    """The file as a module of its own name, so that its siblings import it as it imports them."""
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    if known is not None or name in sys.stdlib_module_names:
        raise InputError(f"{str(path)!r} has the name of the module {name!r}; rename the file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _importing(f"workflow file {str(path)!r}"), _no_bytecode():
            # Not through the loader: a cached `.pyc` counts as fresh when the file's size and its
            # time in whole seconds are the same.
            exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Leaves no `__pycache__` beside a person's files."""
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


@contextmanager
def _importing(what: str) -> Iterator[None]:
    """Tells what an author's module did wrong as theirs."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from error
    except AglError:
        raise
    except (Exception, SystemExit) as error:
        import traceback

        tail = "".join(traceback.format_exception(error)[-4:]).rstrip()
        raise WorkflowFailed(f"{what} cannot be imported:\n{tail}") from error


def _attribute(module: ModuleType, attribute: str, what: str) -> Workflow[Any]:
    from agl.sdk.workflows import Workflow

    value = getattr(module, attribute, None)
    if not isinstance(value, Workflow):
        raise InputError(
            f"{what}: {attribute!r} in {module.__name__!r} is not a @workflow; correct its entry"
            " point"
        )
    return value


def _workflows_in(module: ModuleType) -> dict[str, Workflow[Any]]:
    from agl.sdk.workflows import Workflow

    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Workflow) and value.module == module.__name__
    }
