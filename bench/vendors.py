"""What AGL adds to a vendor's program: the whole run beside the bare program on the same script,
and the memory of many at once. A vendor whose package is not installed is left out."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.figures import Figure
from bench.world import World
from servers.model_server import ModelServer, Session

FLOW = Path(__file__).with_name("flow_of_agents.py")
_LOOK_S = 0.05


@dataclass(frozen=True)
class Vendor:
    """`bare`: the command line of the program alone, on a prompt."""

    name: str
    model: str
    bare: tuple[str, ...]
    env: Mapping[str, str]
    turns: Sequence[Mapping[str, object]]


def measure(folder: Path, agl: str, *, rounds: int, agents: int) -> Iterator[Figure]:
    with ModelServer() as server:
        session = server.session(strict=False)
        for vendor in _vendors(folder, session):
            world = World.make(folder / vendor.name, files=50)
            yield from _overhead(world, agl, vendor, session, rounds)
            yield from _memory(world, agl, vendor, session, agents)


def _overhead(
    world: World, agl: str, vendor: Vendor, session: Session, rounds: int
) -> list[Figure]:
    """Paired, one after the other, in one run."""
    bare_s, whole_s = [], []
    for number in range(rounds):
        session.add(vendor.turns)
        bare_s.append(_took_s(world, vendor.bare, vendor.env))
        session.add(vendor.turns)
        command = (agl, "run", str(FLOW), "--model", vendor.model, "-n", f"timed{number}")
        whole_s.append(_took_s(world, command, vendor.env))
    ratio = median(whole / bare for whole, bare in zip(whole_s, bare_s, strict=True))
    added_s = median(whole - bare for whole, bare in zip(whole_s, bare_s, strict=True))
    return [
        Figure(f"`agl run` of one {vendor.name} step, beside the bare program", ratio, "x"),
        Figure(f"what AGL adds to one {vendor.name} step and run", added_s, "s"),
    ]


def _took_s(world: World, argv: tuple[str, ...], env: Mapping[str, str]) -> float:
    began = time.perf_counter()
    world.run(argv, env)
    return time.perf_counter() - began


def _memory(world: World, agl: str, vendor: Vendor, session: Session, agents: int) -> list[Figure]:
    """The most that was seen at once, looked at every 50 ms."""
    for number in range(agents):
        session.add(({"delay_s": 5.0, "text": "wait"}, *vendor.turns), where=f"agent {number}")
    argv = (agl, "run", str(FLOW), "--model", vendor.model, "--agents", str(agents), "-n", "many")
    env = {**os.environ, "AGL_HOME": str(world.home), **vendor.env}
    null = subprocess.DEVNULL
    own = total = 0.0
    with subprocess.Popen(
        argv, cwd=world.repo, env=env, stdin=null, stdout=null, stderr=null
    ) as run:
        while run.poll() is None:
            table = _processes()
            own = max(own, table.get(run.pid, (0, 0.0))[1])
            total = max(total, sum(_below(table, run.pid)))
            time.sleep(_LOOK_S)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} exited with {run.returncode}")
    what = f"memory at {agents} {vendor.name} agents at once"
    return [
        Figure(f"{what}, AGL itself", own, "MB"),
        Figure(f"{what}, with their programs", total, "MB"),
    ]


def _processes() -> dict[int, tuple[int, float]]:
    """Each process with its parent, and the memory in MB that is its alone or its share of it."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            rollup = (folder / "smaps_rollup").read_text()
        except (OSError, IndexError):
            continue
        pss = next((line for line in rollup.splitlines() if line.startswith("Pss:")), "Pss: 0 kB")
        found[int(folder.name)] = (parent, int(pss.split()[1]) / 1000)
    return found


def _below(table: Mapping[int, tuple[int, float]], top: int) -> Iterator[float]:
    if top in table:
        yield table[top][1]
    for pid, (parent, _) in table.items():
        if parent == top:
            yield from _below(table, pid)


def _vendors(folder: Path, session: Session) -> Iterator[Vendor]:
    if find_spec("claude_agent_sdk") is not None:
        yield _claude_code(folder, session)
    if find_spec("codex_cli_bin") is not None:
        yield _codex(folder, session)


def _claude_code(folder: Path, session: Session) -> Vendor:
    from agl.adapters.claude_code.program import bundled

    call = {"tool": "Write", "arguments": {"file_path": "new.txt", "content": "new\n"}}
    return Vendor(
        "Claude Code",
        "claude_code:claude-sonnet-5",
        (
            *(str(bundled()), "-p", "task: agent 0", "--model", "claude-sonnet-5"),
            *("--permission-mode", "acceptEdits", "--tools", "Write", "--setting-sources", ""),
            *("--output-format", "stream-json", "--verbose", "--strict-mcp-config"),
        ),
        {
            "ANTHROPIC_BASE_URL": session.url,
            "ANTHROPIC_API_KEY": "sk-scripted",
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        ({"calls": [call]}, {"text": "Done."}),
    )


def _codex(folder: Path, session: Session) -> Vendor:
    from agl.adapters.codex.program import bundled

    home = folder / "codex"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        f"""model_provider = "mine"
analytics.enabled = false
features.plugins = false
[model_providers.mine]
name = "mine"
base_url = "{session.v1}"
env_key = "MINE_API_KEY"
wire_api = "responses"
"""
    )
    patch = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"
    return Vendor(
        "Codex",
        "codex:gpt-5.5",
        (
            *(str(bundled()), "exec", "--json", "--model", "gpt-5.5"),
            *("--sandbox", "workspace-write", "task: agent 0"),
        ),
        {"CODEX_HOME": str(home), "MINE_API_KEY": "sk-scripted"},
        ({"calls": [{"tool": "apply_patch", "input": patch}]}, {"text": "Done."}),
    )
