"""What a running program knows by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agl.adapters.codex.conversation import Conversation
from agl.adapters.codex.reading import part, parts, word


@dataclass(frozen=True, slots=True)
class Known:
    """`config` is the person's own configuration. `needs_login`: the provider in use wants one."""

    config: Mapping[str, Any] = field(default_factory=dict)
    is_logged_in: bool = False
    needs_login: bool = True

    @property
    def key_name(self) -> str | None:
        """The variable in which the configured provider wants its key."""
        providers = part(self.config, "model_providers")
        provider = part(providers, word(self.config, "model_provider"))
        return word(provider, "env_key") or None


async def learn(conversation: Conversation) -> Known:
    """Asks the program; nothing of it costs a turn.

    Raises:
        Refused, Ended: it does not say.
    """
    read = await conversation.ask("config/read", {})
    account = await conversation.ask("account/read", {"refreshToken": False})
    return Known(
        part(read, "config"),
        account.get("account") is not None,
        bool(account.get("requiresOpenaiAuth", True)),
    )


async def skills_for(conversation: Conversation, tree: Path) -> tuple[str, ...]:
    """The files of all skills that a prompt in the tree could call by a word like `$name`."""
    listed = await conversation.ask("skills/list", {"cwds": [str(tree)]})
    found = [skill for folder in parts(listed, "data") for skill in parts(folder, "skills")]
    return tuple(str(skill.get("path")) for skill in found)


async def model_of(conversation: Conversation, name: str) -> str:
    """The model of that name. One without a dash is a family's, and means its newest: the first in
    the program's list."""
    if "-" in name:
        return name
    listed = await conversation.ask("model/list", {})
    models = [str(one.get("model")) for one in parts(listed, "data")]
    return next((one for one in models if one.endswith(f"-{name}")), name)
