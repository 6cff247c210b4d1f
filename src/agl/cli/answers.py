"""`--answers FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agl.ports.errors import InputError
from agl.ports.reasons import reason

if TYPE_CHECKING:
    import argparse


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--answers",
        metavar="FILE",
        help="answers given beforehand, a JSON object: a question's key or title → its answer",
    )


def read_answers(file: str | None) -> dict[str, str]:
    """The answers given beforehand: a JSON object of a question's key or title → answer.

    Raises:
        InputError: the file cannot be read or is something else.
    """
    if file is None:
        return {}
    import json

    try:
        answers = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"--answers {file!r} cannot be read: {reason(error)}") from error
    if not isinstance(answers, dict) or not all(isinstance(text, str) for text in answers.values()):
        raise InputError(
            f'--answers {file!r} is not an object of texts, as in {{"Which branch?": "main"}}'
        )
    return answers
