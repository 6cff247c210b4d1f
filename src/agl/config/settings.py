"""Settings of a person on a machine: flags > environment > `config.toml` in the home > defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agl.ports.errors import InputError

if TYPE_CHECKING:
    from agl.config.endpoints import Endpoint
    from agl.ports.models import SandboxMode


@dataclass(frozen=True, slots=True)
class Settings:
    """`home` holds the ledger. `trees_root` None: beside each project. Kept things may be purged
    after `keep_days`; a build that takes longer than `build_timeout_s` has failed. A vendor's
    program that is silent for `idle_s` while its model is asked, or is at work for longer than
    `wall_s`, is ended. `models` says of providers how their servers are reached."""

    home: Path
    trees_root: Path | None = None
    keep_days: int = 14
    build_timeout_s: float = 1800.0
    sandbox: SandboxMode = "auto"
    idle_s: float = 300.0
    wall_s: float = 6 * 3600.0
    models: Mapping[str, Endpoint] = field(default_factory=dict)


def resolve(environ: Mapping[str, str], home: str | None = None) -> Settings:
    """Reads the settings; `home` is what `--home` said. Makes nothing.

    Raises:
        InputError: a value is wrong; the message names the file or variable and the key.
    """
    folder = _home(environ, home)
    given: dict[str, object] = {}
    file = folder / "config.toml"
    for key, value in read_toml(file).items():
        if key not in _FROM_FILE:
            raise InputError(
                f"{str(file)!r}: unknown setting {key!r}; known are {', '.join(sorted(_FROM_FILE))}"
            )
        given[key] = _FROM_FILE[key](value, f"{str(file)!r}: {key!r}")
    for key, from_text in _FROM_TEXT.items():
        variable = f"AGL_{key.upper()}"
        if text := environ.get(variable):
            given[key] = _FROM_FILE[key](from_text(text), variable)
    return Settings(folder, **given)  # type: ignore[arg-type]


def read_toml(file: Path) -> dict[str, object]:
    """The tables of a TOML file, empty when there is none.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{str(file)!r} is not valid TOML: {error}") from error


def absolute_path(value: object, where: str) -> Path:
    """A folder as it is written in a settings file, `~` allowed.

    Raises:
        InputError: it is no text, or no absolute path.
    """
    if not isinstance(value, str):
        raise InputError(f"{where} is {value!r}, not a path in quotes")
    expanded = _expanded(value)
    if not expanded.is_absolute():
        raise InputError(f"{where} is {value!r}, not an absolute path")
    return expanded


def _home(environ: Mapping[str, str], flag: str | None) -> Path:
    if flag == "":
        raise InputError("--home is empty; name a folder")
    folder = Path.cwd() / _expanded(flag or environ.get("AGL_HOME") or "~/.agl")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the home {str(folder)!r} is not a folder; set AGL_HOME to one")
    return folder


def _expanded(text: str) -> Path:
    try:
        expanded = Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(f"the folder {text!r} names no known user's home") from error
    if "\0" in text:
        raise InputError(f"the folder {text!r} holds a zero byte")
    return expanded


def _days(value: object, where: str) -> int:
    if type(value) is not int or value < 0:
        raise InputError(f"{where} is {value!r}, not a whole number of days")
    return value


def _seconds(value: object, where: str) -> float:
    if type(value) not in (int, float) or not 0 < float(str(value)) < float("inf"):
        raise InputError(f"{where} is {value!r}, not a number of seconds above 0")
    return float(str(value))


def _whole(text: str) -> object:
    return int(text) if text.isascii() and text.isdecimal() else text


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _sandbox(value: object, where: str) -> str:
    if value not in ("auto", "require", "off"):
        raise InputError(f"{where} is {value!r}, not 'auto', 'require' or 'off'")
    return str(value)


def _models(value: object, where: str) -> object:
    from agl.config.endpoints import read_endpoints

    return read_endpoints(value, where)


_FROM_FILE: dict[str, Callable[[object, str], object]] = {
    "trees_root": absolute_path,
    "keep_days": _days,
    "build_timeout_s": _seconds,
    "sandbox": _sandbox,
    "idle_s": _seconds,
    "wall_s": _seconds,
    "models": _models,
}
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "trees_root": str,
    "keep_days": _whole,
    "build_timeout_s": _number,
    "sandbox": str,
    "idle_s": _number,
    "wall_s": _number,
}
