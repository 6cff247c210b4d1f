"""What an agent is closed to: the tree's own settings, the rest of the machine, other keys."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from adapters.codex.bench import MODEL, Bench, call, code, patch
from agl.ports.errors import InputError
from agl.ports.models import ModelId, Restriction
from agl.ports.processes import Marker

pytestmark = pytest.mark.vendor

MARK = "POISONED"
HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
NEWER = ModelId("codex", "gpt-6.1-sol")
GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


def a_repository(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", tree], check=True, env={**os.environ, **GIT})


def a_worktree(bench: Bench) -> Path:
    """The tree as AGL makes one. Returns its repository."""
    repository = bench.home.parent / "repository"
    environ = {**os.environ, **GIT}
    a_repository(repository)
    git = ["git", "-C", str(repository)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True, env=environ)
    bench.tree.rmdir()
    subprocess.run([*git, "worktree", "add", "-q", str(bench.tree)], check=True, env=environ)
    return repository


def hooks(touched: Path) -> str:
    touch = {"type": "command", "command": f"touch {touched}"}
    return json.dumps({"hooks": {name: [{"hooks": [touch]}] for name in HOOKS}})


def poison(folder: Path, bench: Bench, rule: str) -> None:
    """A folder of Codex's, of a tree or of a person."""
    skill = f"---\nname: evil\ndescription: {MARK}\n---\n{MARK}"
    files = {
        "hooks.json": hooks(bench.home.parent / "hooked"),
        "rules/default.rules": f'prefix_rule(pattern=["{rule}"], decision="allow")\n',
        "skills/evil/SKILL.md": skill,
        "prompts/evil.md": MARK,
        "agents/evil.toml": f'name = "evil"\ndescription = "{MARK}"\n',
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def settings(bench: Bench, name: str) -> str:
    touched = bench.home.parent / name
    return f"""
instructions = "{MARK}"
developer_instructions = "{MARK}"
notify = ["touch", "{touched}-notified"]
approval_policy = "on-request"
sandbox_mode = "danger-full-access"
[mcp_servers.evil-one]
command = "touch"
args = ["{touched}-served"]
"""


@pytest.mark.parametrize("sandbox", ["auto", "off"])
@pytest.mark.parametrize("trusted", ["tree", "repository"])
async def test_a_poisoned_tree_has_no_effect(bench: Bench, sandbox: str, trusted: str) -> None:
    """Also one that the person has trusted, or whose repository."""
    a_worktree(bench)
    folder = bench.tree / ".codex"
    poison(folder, bench, "touch")
    (folder / "config.toml").write_text('model = "gpt-evil"\n' + settings(bench, "tree"))
    for name in ("AGENTS.md", "AGENTS.override.md", "sub/AGENTS.md"):
        (bench.tree / name).parent.mkdir(exist_ok=True)
        (bench.tree / name).write_text(MARK)
    poison(bench.tree / ".agents", bench, "touch")
    place = bench.home.parent / trusted
    bench.config = f'[projects."{place}"]\ntrust_level = "trusted"\n'
    outside = bench.home.parent / "outside"
    session = bench.script(call("shell", command=f"touch {outside}"), {"text": "done"})
    runner = bench.runner(session, sandbox=sandbox)
    before = (bench.home / "config.toml").read_text()
    await runner.run(bench.task(), bench.events.append)
    assert not any(MARK in request.text for request in session.asked)
    assert {request.body["model"] for request in session.asked} == {MODEL.name}
    left = {path.name for path in bench.home.parent.iterdir()}
    assert left == {"home", "tree", "repository"} | ({"outside"} if sandbox == "off" else set())
    assert (bench.home / "config.toml").read_text() == before


async def test_a_persons_own_settings_have_no_effect(bench: Bench) -> None:
    a_repository(bench.tree)
    poison(bench.home, bench, "touch")
    outside = bench.home.parent / "outside"
    # Of the tables, the last one would take what comes behind it.
    bench.config = settings(bench, "home")
    session = bench.script(call("shell", command=f"touch {outside}"), {"text": "done"})
    runner = bench.runner(session)
    before = (bench.home / "config.toml").read_text()
    await runner.run(bench.task(), bench.events.append)
    assert not any(MARK in request.text for request in session.asked)
    assert {path.name for path in bench.home.parent.iterdir()} == {"home", "tree"}
    assert (bench.home / "config.toml").read_text() == before


async def test_a_poisoned_tree_behind_a_link_has_no_effect(bench: Bench) -> None:
    a_worktree(bench)
    link = bench.home.parent / "link"
    link.symlink_to(bench.tree)
    (bench.tree / ".codex").mkdir()
    (bench.tree / ".codex" / "config.toml").write_text(settings(bench, "tree"))
    bench.config = "".join(
        f'[projects."{place}"]\ntrust_level = "trusted"\n' for place in (bench.tree, link)
    )
    session = bench.script(call("shell", command="touch a.txt"))
    runner = bench.runner(session)
    before = (bench.home / "config.toml").read_text()
    await runner.run(bench.task(tree=link), bench.events.append)
    assert not any(MARK in request.text for request in session.asked)
    left = {path.name for path in bench.home.parent.iterdir()}
    assert left == {"home", "tree", "repository", "link"}
    assert (bench.home / "config.toml").read_text() == before
    assert (bench.tree / "a.txt").exists()


async def test_hooks_that_a_person_trusts_have_no_effect(bench: Bench) -> None:
    from agl.adapters.codex.conversation import Conversation, Opening
    from agl.adapters.codex.program import bundled

    session = bench.script(call("shell", command="true"))
    environ = bench.environ(session)
    (bench.home / "hooks.json").write_text(hooks(bench.home.parent / "hooked"))
    conversation = Conversation(bench.processes, bench.task().marker, Opening())
    # Else it looks up names of its own.
    off = ("features.plugins", "features.apps", "analytics.enabled")
    argv = (str(bundled()), *(word for name in off for word in ("-c", f"{name}=false")))
    await conversation.open((*argv, "app-server"), bench.tree, environ)
    listed = await conversation.ask("hooks/list", {"cwds": [str(bench.tree)]})
    await conversation.close(kindly=True)
    found = listed["data"][0]["hooks"]
    assert len(found) == len(HOOKS)
    bench.config = "".join(
        f'[hooks.state."{one["key"]}"]\ntrusted_hash = "{one["currentHash"]}"\n' for one in found
    )
    await bench.ran(session)
    assert not (bench.home.parent / "hooked").exists()


async def test_a_prompt_is_no_command_and_no_mention(bench: Bench) -> None:
    (bench.tree / "a.txt").write_text(MARK)
    for folder, name in ((bench.tree / ".agents", "evil"), (bench.home, "worse")):
        (folder / "skills" / name).mkdir(parents=True)
        skill = f"---\nname: {name}\ndescription: {MARK}\n---\n{MARK}"
        (folder / "skills" / name / "SKILL.md").write_text(skill)
    prompt = "/clear $evil $worse $imagegen @a.txt"
    session = bench.script()
    await bench.ran(session, task={"prompt": prompt})
    assert session.asked[0].body["input"][-1]["content"][0]["text"] == prompt
    assert "Generate or edit raster images" not in session.asked[0].text
    assert MARK not in session.asked[0].text


async def test_long_instructions_arrive_whole(bench: Bench) -> None:
    told = "Work well. " * 30_000 + "The end."
    session = bench.script()
    await bench.ran(session, task={"instructions": told, "prompt": "x" * 300_000})
    first = session.asked[0].body["input"][0]
    assert first["content"] == [{"type": "input_text", "text": told}]
    assert "You are Codex" not in session.asked[0].text


async def test_the_tasks_tools_are_named(bench: Bench) -> None:
    session = bench.script()
    await bench.ran(session)
    told = [part["text"] for item in session.asked[0].body["input"] for part in item["content"]]
    assert any("`report_findings`: Hands in." in text for text in told)


async def test_nothing_but_turns_is_asked_of_the_server(bench: Bench) -> None:
    session = bench.script(call("shell", command="true"), {"text": "done"})
    await bench.ran(session, task={"follow_up": lambda: None})
    assert [request.path for request in session.requests] == ["responses", "responses"]


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_it_writes_in_its_tree_alone(bench: Bench, tmp_path: Path, sandbox: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old.txt").write_text("old")
    (bench.tree / "folder").symlink_to(outside)
    (bench.tree / "file").symlink_to(outside / "linked.txt")
    (bench.tree / "moved.txt").write_text("old\n")
    (bench.tree / ".git").mkdir()
    paths = [
        str(outside / "a.txt"),
        "../outside/b.txt",
        "folder/c.txt",
        "file",
        ".git/config",
        f"{bench.tree}-beside/d.txt",
    ]
    calls = [call("write", path=path, content="x")["calls"][0] for path in paths]
    edits = [
        call("edit", path=str(outside / "old.txt"), old="old", new="new")["calls"][0],
        patch("*** Update File: moved.txt", f"*** Move to: {outside}/e.txt", "@@", "-old", "+new"),
        patch(f"*** Delete File: {outside}/old.txt"),
        call("write", path="inside.txt", content="x")["calls"][0],
    ]
    turns = [{"calls": [one]} for one in [*calls, *edits]]
    await bench.ran(bench.script(*turns), sandbox=sandbox)
    assert list(outside.iterdir()) == [outside / "old.txt"]
    assert (outside / "old.txt").read_text() == "old"
    assert list((bench.tree / ".git").iterdir()) == []
    assert not Path(f"{bench.tree}-beside").exists()
    assert (bench.tree / "inside.txt").exists()


@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_who_may_not_write_files_writes_none(bench: Bench, sandbox: str) -> None:
    turns = [call("write", path="a.txt", content="a")]
    await bench.ran(bench.script(*turns), Restriction.NO_FILE_WRITES, sandbox=sandbox)
    assert list(bench.tree.iterdir()) == []


async def test_the_shell_writes_in_the_tree_and_for_a_while(bench: Bench, tmp_path: Path) -> None:
    commands = [
        f"touch {tmp_path}/outside.txt",
        f"touch {bench.home}/outside.txt",
        "touch inside.txt; touch $TMPDIR/a && echo yes > temporary.txt; cat << EOF > here\nx\nEOF",
    ]
    await bench.ran(bench.script(*[call("shell", command=one) for one in commands]))
    assert {path.name for path in tmp_path.iterdir()} == {"home", "tree"}
    assert not (bench.home / "outside.txt").exists()
    names = {path.name for path in bench.tree.iterdir()}
    assert names == {"inside.txt", "temporary.txt", "here"}


async def test_a_shell_that_may_not_write_files_has_a_place_for_temporary_ones(
    bench: Bench,
) -> None:
    command = "touch a.txt; cd $TMPDIR && cat << EOF > a && cat a\nit works\nEOF"
    session = bench.script(call("shell", command=command), {"text": "done"})
    await bench.ran(session, Restriction.NO_FILE_WRITES)
    assert list(bench.tree.iterdir()) == []
    assert "it works" in json.dumps(session.asked[1].body["input"][-1]["output"])


@pytest.mark.parametrize("restricted", [False, True])
async def test_without_the_network_the_shell_reaches_nobody(bench: Bench, restricted: bool) -> None:
    reach = f"echo > /dev/tcp/127.0.0.1/{bench.server.port} && touch reached"
    session = bench.script(call("shell", command=f"bash -c '{reach}'"))
    await bench.ran(session, *([Restriction.NO_NETWORK] if restricted else []))
    assert (bench.tree / "reached").exists() is not restricted


async def test_who_may_not_touch_the_history_does_not(bench: Bench) -> None:
    """Nor does anybody else: AGL commits."""
    repository = a_worktree(bench)
    state = "git for-each-ref; git status --porcelain; cat .git"
    before = subprocess.run(state, shell=True, cwd=bench.tree, check=True, capture_output=True)
    commands = [
        "git commit --allow-empty -m x",
        "git branch other",
        "git tag x",
        "echo x > .git",
        "rm -f .git",
        f"rm -rf {repository}/.git/refs",
    ]
    turns = [call("shell", command=one) for one in commands]
    await bench.ran(bench.script(*turns), Restriction.NO_VCS_WRITES)
    assert "trust" not in (bench.home / "config.toml").read_text()
    after = subprocess.run(state, shell=True, cwd=bench.tree, check=True, capture_output=True)
    assert after.stdout == before.stdout


PLAIN = {"exec_command", "write_stdin", "apply_patch", "view_image", "web_search", "tool_search"}
PLAIN |= {"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
PLAIN |= {"request_user_input"}


@pytest.mark.parametrize(
    ("restriction", "gone"),
    [
        (None, set()),
        (Restriction.NO_SHELL, {"exec_command", "write_stdin"}),
        (Restriction.NO_NETWORK, {"web_search"}),
    ],
)
async def test_what_is_offered(
    bench: Bench, restriction: Restriction | None, gone: set[str]
) -> None:
    session = bench.script()
    await bench.ran(session, *([restriction] if restriction else []))
    offered = {tool.get("name", tool["type"]) for tool in session.asked[0].body["tools"]}
    assert offered == PLAIN - gone


@pytest.mark.parametrize("restricted", [False, True])
async def test_a_newer_model_works_in_code(bench: Bench, restricted: bool) -> None:
    session = bench.script(
        code(
            "text(ALL_TOOLS.map(tool => tool.name).join(' '));"
            "await tools.apply_patch('*** Begin Patch\\n*** Add File: a.txt\\n+a\\n*** End Patch');"
        ),
        code("text(await tools.exec_command({cmd: 'echo b > b.txt'}))"),
        code("text(await tools.mcp__agl__report_findings({}))"),
        code("text(await tools.mcp__agl__report_findings({findings: ['x']}))"),
        {"text": "done"},
    )
    no_shell = [Restriction.NO_SHELL] if restricted else []
    outcome = await bench.ran(session, *no_shell, task={"model": NEWER})
    assert outcome.text == "done"
    assert outcome.model == NEWER.name
    assert [answer.is_error for answer in bench.desk.answers] == [True, False]
    assert bench.desk.report == {"findings": ["x"]}
    assert (bench.tree / "a.txt").read_text() == "a\n"
    assert (bench.tree / "b.txt").exists() is not restricted
    offered = set(session.asked[1].body["input"][-1]["output"][-1]["text"].split())
    assert {"apply_patch", "mcp__agl__report_findings"} <= offered
    assert ("exec_command" in offered) is not restricted
    names = json.dumps(session.asked[0].body)
    assert "spawn_agent" not in names
    assert any(line.startswith("edit ") for line in bench.lines)


async def test_the_environment_is_clean(bench: Bench) -> None:
    given = {
        "OPENAI_API_KEY": "no",
        "CODEX_API_KEY": "no",
        "CODEX_ACCESS_TOKEN": "",
        "MINE_API_KEY": "sk-scripted-no",
        "ANTHROPIC_API_KEY": "no",
        "CLAUDE_CODE_OAUTH_TOKEN": "no",
        "OPENROUTER_API_KEY": "no",
        "GEMINI_API_KEY": "no",
        "AGL_HOME": "/agl",
        "CODEX_THREAD_ID": "outer",
        "CODEX_SANDBOX_NETWORK_DISABLED": "1",
        "PROJECT_TOKEN": "yes",
    }
    seen = "cat /proc/[0-9]*/environ | tr '\\0' '\\n' > seen.txt; env >> seen.txt"
    await bench.ran(bench.script(call("shell", command=seen)), environ=given)
    text = (bench.tree / "seen.txt").read_text()
    pairs = [line.split("=", 1) for line in text.splitlines() if "=" in line]
    assert not [name for name, value in pairs if value in ("no", "sk-scripted-no", "/agl", "outer")]
    names = dict(pairs)
    assert names["PROJECT_TOKEN"] == "yes"
    assert {name for name in names if name.startswith("AGL_")} == {"AGL_RUN", "AGL_ATTEMPT"}


async def test_a_login_is_not_read(bench: Bench) -> None:
    (bench.home / "auth.json").write_text('{"OPENAI_API_KEY": "sk-login"}')
    command = f"cat {bench.home}/auth.json; cp {bench.home}/auth.json . ; true"
    session = bench.script(call("shell", command=command), {"text": "done"})
    await bench.ran(session)
    assert not any("sk-login" in request.text for request in session.asked)
    assert list(bench.tree.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("linked", ["folder", "file"])
async def test_a_login_behind_a_link_is_not_read(bench: Bench, linked: str, there: bool) -> None:
    real = bench.home.parent / "real"
    command = f"cat {bench.home}/auth.json {real}/auth.json; touch a.txt"
    session = bench.script(call("shell", command=command), {"text": "done"})
    runner = bench.runner(session, sandbox="require")
    if linked == "folder":
        bench.home.rename(real)
        bench.home.symlink_to(real)
    else:
        real.mkdir()
        (bench.home / "auth.json").symlink_to(real / "auth.json")
    if there:
        (real / "auth.json").write_text('{"OPENAI_API_KEY": "sk-login"}')
    await runner.check_ready(MODEL)
    await runner.run(bench.task(), bench.events.append)
    assert not any("sk-login" in request.text for request in session.asked)
    assert [path.name for path in bench.tree.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", ["h[x]", "h]", "h*", "h?"])
async def test_a_login_that_the_sandbox_cannot_close_is_refused(bench: Bench, name: str) -> None:
    bench.home = bench.home.rename(bench.home.parent / name)
    with pytest.raises(InputError, match=r"cannot close its login at .*; move it, set CODEX_HOME"):
        await bench.runner(bench.script()).check_ready(MODEL)
    assert "no sandbox" in await bench.runner(bench.script(), sandbox="off").check_ready(MODEL)


@pytest.mark.parametrize("name", ["t[x]", "t*", "t?", "none"])
async def test_the_folder_for_temporary_files_is_one_that_the_sandbox_can_name(
    bench: Bench, name: str
) -> None:
    folder = bench.home.parent / name
    if name != "none":
        folder.mkdir()
    session = bench.script(call("shell", command="echo x > $TMPDIR/a && touch a.txt"))
    await bench.ran(session, environ={"TMPDIR": str(folder)})
    assert [path.name for path in bench.tree.iterdir()] == ["a.txt"]


def test_it_does_not_take_itself_for_a_part_of_an_outer_session(tmp_path: Path) -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.environment import environment_for

    outer = {"CODEX_THREAD_ID": "x", "CODEX_SANDBOX": "seatbelt", "CODEX_CI": "1"}
    kept = {"CODEX_HOME": str(tmp_path), "CODEX_CA_CERTIFICATE": "/x"}
    made = environment_for({**outer, **kept}, Marker("run"), tmp_path)
    assert not outer.keys() & made.keys()
    assert kept.items() <= made.items()


def test_keys_that_are_the_programs_own_stay_with_it(tmp_path: Path) -> None:
    pytest.importorskip("codex_cli_bin", reason="needs openai-codex-cli-bin of agl[codex]")
    from agl.adapters.codex.environment import environment_for

    config = '[model_providers.router]\nenv_key = "OPENROUTER_API_KEY"\n'
    (tmp_path / "config.toml").write_text(config)
    own = {"CODEX_HOME": str(tmp_path), "OPENAI_API_KEY": "x", "OPENROUTER_API_KEY": "x"}
    made = environment_for({**own, "GEMINI_API_KEY": "x"}, Marker("run"), tmp_path)
    assert own.items() <= made.items()
    assert "GEMINI_API_KEY" not in made
    assert made["TMPDIR"] == str(tmp_path)


async def test_what_this_process_has_beside_what_it_was_given_is_not_handed_on(
    bench: Bench,
) -> None:
    name = "PYTEST_CURRENT_TEST"
    assert name in os.environ
    session = bench.script(call("shell", command=f"echo [${name}] > seen.txt"))
    await bench.ran(session)
    assert (bench.tree / "seen.txt").read_text() == "[]\n"


async def test_a_shell_does_not_read_a_persons_profile(bench: Bench) -> None:
    for name in (".profile", ".bash_profile", ".bashrc"):
        (bench.home / name).write_text("export EVIL=yes\n")
    session = bench.script(call("shell", command="echo [$EVIL] > seen.txt"))
    await bench.ran(session)
    assert (bench.tree / "seen.txt").read_text() == "[]\n"
