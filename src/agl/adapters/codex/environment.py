"""What of this process's environment the program gets, and its shell."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agl.ports import programs
from agl.ports.processes import Marker

OWN_KEYS: Final = ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN")
"""By which the program itself may be logged in; the first two are keys of OpenAI's API."""

# What Codex 0.163.0 tells its own children about itself.
_OUTER_SESSION: Final = re.compile(
    r"CODEX_(SESSION_ID|THREAD_ID|TOOL_CALL_ID|CI|VERSION|PERMISSION_PROFILE|SANDBOX.*|SNAPSHOT_.*"
    r"|INTERNAL_.*|APPLY_PATCH_.*|NETWORK_PROXY_.*)"
)


def environment_for(environ: Mapping[str, str], marker: Marker, scratch: Path) -> dict[str, str]:
    """The whole environment of the program, from that of this process. `scratch` is its folder for
    temporary files."""
    own = "|".join(map(re.escape, {*OWN_KEYS, *_named_keys(environ)}))
    made = programs.environment_for(environ, marker, own)
    kept = {name: value for name, value in made.items() if not _OUTER_SESSION.fullmatch(name)}
    return {**kept, "TMPDIR": str(scratch)}


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Names of variables that the program may have, and its shell may not."""
    return sorted({*OWN_KEYS, *_named_keys(environ)})


def home_of(environ: Mapping[str, str]) -> Path:
    """Where the program keeps its login, its configuration and its threads."""
    return Path(environ.get("CODEX_HOME") or Path(environ.get("HOME", "/"), ".codex"))


def login_of(environ: Mapping[str, str]) -> Path:
    """The file with the program's login, links resolved: the sandbox closes no link (0.163.0)."""
    return Path(os.path.realpath(home_of(environ) / "auth.json"))


def is_literal(path: Path) -> bool:
    """Whether the sandbox takes it for the path that it is, and not for a pattern; it knows no
    escape (0.163.0)."""
    return not set("*?[]") & set(str(path))


@contextmanager
def scratch_folder(environ: Mapping[str, str]) -> Iterator[Path]:
    """For temporary files of the program and of what it runs, in the first place that the sandbox
    can name."""
    places = [environ.get("TMPDIR"), tempfile.gettempdir(), "/tmp", "/var/tmp"]
    real = [Path(place).resolve() for place in places if place]
    place = next((one for one in real if is_literal(one) and os.access(one, os.W_OK)), None)
    with tempfile.TemporaryDirectory(
        prefix="agl-codex-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder).resolve()


def _named_keys(environ: Mapping[str, str]) -> set[str]:
    """Variables that the person's own configuration of Codex names as keys of providers."""
    try:
        config = tomllib.loads((home_of(environ) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    providers = config.get("model_providers")
    found = providers.values() if isinstance(providers, dict) else ()
    keys = [one.get("env_key") for one in found if isinstance(one, dict)]
    return {key for key in keys if isinstance(key, str)}
