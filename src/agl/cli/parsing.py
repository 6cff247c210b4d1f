"""The command line's parser: one sentence when it is wrong, and help as a value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from agl.cli.page import HelpWanted
from agl.config.spelling import perhaps
from agl.ports.errors import InputError


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> NoReturn:
        raise HelpWanted(parser.format_help().rstrip())


class Parser(argparse.ArgumentParser):
    """A parser of one command; every command has `--json` and `--help`."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(
            prog=f"agl {command}",
            description=description,
            epilog="`agl --help` tells of the flags that stand before the command, as --home DIR.",
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.help_command = f"agl {command} --help"
        self.add_argument("-h", "--help", action=_Help, nargs=0, help="show this and stop")
        self.add_argument(
            "--json", action="store_true", help="print one JSON document, also for a failure"
        )

    def parse(self, argv: Sequence[str]) -> Any:
        """The arguments, each an attribute.

        Raises:
            InputError: they are wrong.
            HelpWanted: `--help` is among them.
        """
        self._refuse_unknown(argv)
        return self.parse_args(argv)

    def _refuse_unknown(self, argv: Sequence[str]) -> None:
        """What is not known is named before what is missing."""
        needed = [action for action in self._actions if action.required]
        for action in needed:
            action.required = False
        try:
            _, unknown = self.parse_known_args(argv)
        except HelpWanted:
            unknown = []
        finally:
            for action in needed:
                action.required = True
        if unknown:
            flag = next((word for word in unknown if word.startswith("-")), "")
            meant = perhaps(flag.partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; `{self.help_command}` shows how it is used")
