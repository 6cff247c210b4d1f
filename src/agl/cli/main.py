"""`agl`: finds the command, writes what it answers, returns the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from agl.cli.context import Command, Context
from agl.cli.failures import page_of
from agl.cli.page import HelpWanted, Page, say, write
from agl.config.entry_points import entry_points
from agl.config.spelling import perhaps
from agl.ports.errors import InputError, UpstreamError

COMMANDS = {
    "init": "register this repository",
    "run": "run a workflow on a branch of its own",
    "resume": "go on with a run; nothing recorded is paid for twice",
    "clear": "take runs away; what only they held is kept",
    "workflows": "list the workflows, or show one with its flags",
    "list": "list the runs of this repository",
    "show": "show a run: its steps, what they cost, what to type next",
    "diff": "print what a run, or a child of it, changed",
    "recover": "list what was set aside, or bring it back as a branch",
    "doctor": "say what is missing on this machine, and what to type for it",
    "completion": "print what makes a shell complete commands, labels and workflows",
    "demo": "see it work: a failing test repaired offline, with a kill in the middle",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
    try:
        page = _answer(words, as_json)
    except HelpWanted as help_wanted:
        page = Page({"help": str(help_wanted)}, str(help_wanted))
    except KeyboardInterrupt:
        import signal

        from agl.cli.signals import die_of

        die_of(signal.SIGINT)
    except Exception as error:  # noqa: BLE001 - the last one who can tell a person
        page = page_of(error)
    try:
        return write(page, as_json=as_json)
    except UpstreamError as error:
        say(f"agl: {error}")
        return error.exit_code


def _answer(words: list[str], as_json: bool) -> Page:
    for word in words:
        if not _is_utf8(word):
            raise InputError(f"the argument {os.fsencode(word)!r} is not UTF-8")
    home = None
    while words and words[0].startswith("-"):
        flag = words.pop(0)
        if flag in ("-h", "--help"):
            raise HelpWanted(_help())
        if flag == "--version":
            return _version()
        if flag == "--home":
            home = words.pop(0) if words else ""
        elif flag.startswith("--home="):
            home = flag.removeprefix("--home=")
        elif flag != "--json":
            raise InputError(f"no flag {flag!r} before the command; `agl --help` lists both")
    if not words:
        raise InputError("name a command; `agl --help` lists them")
    return _command(words[0])(words[1:], Context(os.environ, _here(), home, as_json))


def _is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:  # Python reads such bytes as half characters
        return False
    return True


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise InputError("the current folder is gone; go to another one") from error


def _command(name: str) -> Command:
    if name in COMMANDS:
        place = f"agl.cli.{name}:answer"
    else:
        others = entry_points("agl.commands")
        if name not in others:
            meant = perhaps(name, (*COMMANDS, *others))
            raise InputError(f"no command {name!r}{meant}; `agl --help` lists them")
        place = others[name]
    module, _, attribute = place.partition(":")
    command: Command = getattr(import_module(module), attribute)
    return command


def _version() -> Page:
    from importlib.metadata import version

    number = version("agl")
    return Page({"version": number}, f"agl {number}")


def _help() -> str:
    lines = [f"  {name:10} {text}" for name, text in COMMANDS.items()]
    lines += [f"  {name}" for name in entry_points("agl.commands") if name not in COMMANDS]
    return "\n".join(
        [
            "usage: agl [--home DIR] [--json] COMMAND …",
            "",
            "Runs AI coding agents on a git repository as workflows.",
            "",
            *lines,
            "",
            "  --home DIR  where runs are recorded (default: AGL_HOME, else ~/.agl)",
            "  --version   show the version",
            "  --json      with any command: print one JSON document, also for a failure",
            "",
            "`agl COMMAND --help` says more of one command; `agl demo` shows it all, offline.",
        ]
    )
