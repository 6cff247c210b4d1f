import asyncio
import os
import stat
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agl.adapters.system import SystemProcesses
from agl.adapters.worktools import WorkTools
from agl.ports.agents import AgentTask, AgentTool, ToolAnswer
from agl.ports.models import ModelId, Restriction
from agl.testing.contracts.agent_runner import Desk

Tools = Mapping[str, AgentTool]
TOOLBOX = WorkTools(SystemProcesses(grace_s=0.2), os.environ)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """With a sibling that is not to be reached."""
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / ".git").write_text("gitdir: elsewhere\n")
    (tree / "sub/a.txt").write_text("alpha\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    (tree / "out").symlink_to("../outside")
    (tree / "out.txt").symlink_to(outside / "secret.txt")
    (tree / "dangling").symlink_to(outside / "new.txt")
    (tree / "in").symlink_to("sub")
    (tree / "loop").symlink_to("loop")
    return tree


def task_in(tree: Path, *restrictions: Restriction) -> AgentTask:
    return Desk().task(tree, ModelId("scripted", "/x"), *restrictions)


@pytest.fixture
async def tools(tree: Path) -> AsyncIterator[Tools]:
    async with TOOLBOX.opened(task_in(tree)) as kit:
        yield {tool.name: tool for tool in kit.tools}


async def use(tools: Tools, name: str, **arguments: object) -> str:
    answer = await tools[name].handler(arguments)
    assert not answer.is_error, answer.text
    return answer.text


async def refusal(tools: Tools, name: str, **arguments: object) -> str:
    answer = await tools[name].handler(arguments)
    assert answer.is_error, answer.text
    return answer.text


async def test_a_restriction_takes_tools_away(tree: Path) -> None:
    async def names(*restrictions: Restriction) -> list[str]:
        async with TOOLBOX.opened(task_in(tree, *restrictions)) as kit:
            return [tool.name for tool in kit.tools]

    assert await names() == ["read", "list", "search", "write", "edit", "shell"]
    assert await names(Restriction.NO_FILE_WRITES) == ["read", "list", "search", "shell"]
    assert await names(Restriction.NO_SHELL) == ["read", "list", "search", "write", "edit"]


class TestArguments:
    async def test_every_problem_is_named_at_once(self, tools: Tools) -> None:
        assert await refusal(tools, "edit", path=1, old="a", all="yes", extra=None) == (
            "edit: 'new' is missing; 'path' is integer, not string; 'all' is string, not boolean;"
            " 'extra' is unknown, there are path, old, new, all"
        )
        assert await refusal(tools, "shell", command="true", timeout_s=float("nan")) == (
            "shell: 'timeout_s' is nan, not from 0.1 to 3600"
        )

    @pytest.mark.parametrize("junk", [None, [1], "x" * 1_000_000, 1, True, {}, {"\ud800": "\0"}])
    async def test_junk_is_answered(self, tools: Tools, junk: object) -> None:
        for tool in tools.values():
            answer = await tool.handler(junk)
            assert answer.is_error or tool.name == "list"
            answer.text.encode()
            assert len(answer.text) < 500

    async def test_half_a_character_is_no_text(self, tools: Tools) -> None:
        for name, more in (("write", {"content": "\ud800"}), ("shell", {"command": "\ud800"})):
            assert "lone surrogate" in await refusal(tools, name, **{"path": "x"} | more)

    def test_a_schema_says_what_is_checked(self, tools: Tools) -> None:
        assert tools["edit"].schema["required"] == ["path", "old", "new"]
        assert tools["edit"].schema["additionalProperties"] is False


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.sampled_from(
    [
        *("", ".", "..", "/", "~", "\\", "*", "-rf", "a\0b", "ü", "\ud800", "x" * 300),
        *("sub", "a.txt", "new", "in", "loop", "out", "out.txt", "dangling", "secret.txt"),
        *(".git", ".GIT", "config"),
    ]
)
PATHS = st.lists(PARTS, max_size=5).map("/".join) | st.text(max_size=8)
FILE_ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "path": PATHS | JSON,
        "content": st.text(max_size=5) | JSON,
        "old": st.sampled_from(["a", "alpha", "secret", "\n"]) | JSON,
        "new": st.text(max_size=5) | JSON,
        "all": st.booleans() | JSON,
        "start": st.integers(-1, 3) | JSON,
    },
)


def contents(folder: Path) -> dict[str, bytes | str]:
    """All that lies in the folder, links as what they say."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
async def test_no_argument_raises_or_changes_anything_outside(
    tools: Tools, tree: Path, data: st.DataObject
) -> None:
    before = contents(tree.parent / "outside")
    name = data.draw(st.sampled_from(["read", "list", "write", "edit"]))
    arguments = data.draw(FILE_ARGUMENTS | JSON)
    answer = await tools[name].handler(arguments)
    assert isinstance(answer, ToolAnswer)
    answer.text.encode()
    assert contents(tree.parent / "outside") == before
    assert "secret\n" not in answer.text
    assert (tree / ".git").read_text() == "gitdir: elsewhere\n"
    assert sorted(path.name for path in tree.parent.iterdir()) == ["outside", "tree"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pattern=st.text(max_size=6), path=PATHS, arguments=JSON)
async def test_no_search_raises_or_shows_anything_outside(
    tools: Tools, tree: Path, pattern: str, path: str, arguments: object
) -> None:
    (tree / ".git").unlink(missing_ok=True)
    for given_to_it in ({"pattern": pattern, "path": path}, arguments):
        answer = await tools["search"].handler(given_to_it)
        answer.text.encode()
        assert "secret.txt:" not in answer.text


@given(arguments=JSON.filter(lambda value: not (isinstance(value, dict) and "command" in value)))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_shell_answers_junk(tools: Tools, arguments: object) -> None:
    assert (await tools["shell"].handler(arguments)).is_error


@pytest.mark.parametrize(("theirs", "said"), [({}, "1"), ({"PYTHONDONTWRITEBYTECODE": ""}, "")])
async def test_python_leaves_no_caches_unless_a_person_wants_them(
    tree: Path, theirs: dict[str, str], said: str
) -> None:
    environ = {"PATH": os.environ["PATH"], **theirs}
    toolbox = WorkTools(SystemProcesses(grace_s=0.2), environ)
    async with toolbox.opened(task_in(tree)) as kit:
        shell = next(tool for tool in kit.tools if tool.name == "shell")
        answer = await shell.handler({"command": 'echo "[$PYTHONDONTWRITEBYTECODE]"'})
    assert answer.text == f"[{said}]"


async def test_the_shell_has_no_key_and_nothing_of_agl(tree: Path) -> None:
    keys = {"OPENAI_API_KEY": "no", "OPENROUTER_API_KEY": "no", "AGL_HOME": "no"}
    toolbox = WorkTools(
        SystemProcesses(grace_s=0.2), {**os.environ, **keys, "PROJECT_TOKEN": "yes"}
    )
    async with toolbox.opened(task_in(tree)) as kit:
        shell = next(tool for tool in kit.tools if tool.name == "shell")
        seen = (await shell.handler({"command": "env"})).text.splitlines()
    assert not [line for line in seen if line.endswith("=no")]
    assert "PROJECT_TOKEN=yes" in seen
    assert {line.partition("=")[0] for line in seen if line.startswith("AGL_")} == {
        "AGL_RUN",
        "AGL_ATTEMPT",
    }


class TestConfinement:
    @pytest.mark.parametrize(
        ("path", "why"),
        [
            ("", "not a path relative"),
            ("/etc/passwd", "not a path relative"),
            ("a\0b", "not a path relative"),
            ("../outside/secret.txt", "leads upward"),
            ("sub/../sub/a.txt", "leads upward"),
            ("out/secret.txt", "a link that leads out"),
            ("out.txt", "a link that leads out"),
            ("dangling", "a link that leads out"),
            (".git", "git's own"),
            (".GIT/config", "git's own"),
            ("sub/.git/config", "git's own"),
        ],
    )
    async def test_no_tool_leaves_the_tree(
        self, tools: Tools, tree: Path, path: str, why: str
    ) -> None:
        assert why in await refusal(tools, "read", path=path)
        assert why in await refusal(tools, "list", path=path)
        assert why in await refusal(tools, "search", path=path, pattern="s")
        assert why in await refusal(tools, "write", path=path, content="x")
        assert why in await refusal(tools, "edit", path=path, old="secret", new="x")
        assert (tree / "../outside/secret.txt").read_text() == "secret\n"
        assert not (tree / "../outside/new.txt").exists()

    async def test_links_into_and_out_of_git_are_gits_own(self, tools: Tools, tree: Path) -> None:
        (tree / "g").symlink_to(".git")
        (tree / "sub/.git").symlink_to("../sub")
        for path in ("g", "sub/.git/a.txt"):
            assert "git's own" in await refusal(tools, "write", path=path, content="x")

    async def test_a_link_inside_the_tree_is_followed(self, tools: Tools, tree: Path) -> None:
        await use(tools, "edit", path="in/a.txt", old="alpha", new="beta")
        assert (tree / "sub/a.txt").read_text() == "beta\n"
        assert (tree / "in").is_symlink()

    async def test_a_tree_reached_through_a_link_works(self, tree: Path, tmp_path: Path) -> None:
        (tmp_path / "alias").symlink_to(tree)
        async with TOOLBOX.opened(task_in(tmp_path / "alias")) as kit:
            tools = {tool.name: tool for tool in kit.tools}
            assert await use(tools, "read", path="sub/a.txt") == "alpha\n"
            (tree / ".git").unlink()
            assert await use(tools, "search", pattern="alph", path="sub") == "sub/a.txt:1:alpha"

    async def test_a_pipe_is_not_waited_for(self, tools: Tools, tree: Path) -> None:
        os.mkfifo(tree / "pipe")
        for name, more in (("read", {}), ("write", {"content": "x"}), ("edit", EDIT)):
            assert "no regular file" in await refusal(tools, name, path="pipe", **more)


EDIT = {"old": "a", "new": "b"}


class TestReading:
    async def test_what_is_there_is_shown(self, tools: Tools, tree: Path) -> None:
        (tree / "b").write_bytes(b"a\r\n\xff\n")
        assert await use(tools, "read", path="b") == "a\r\n\ufffd\n"
        assert await use(tools, "read", path="b", start=2) == "\ufffd\n"
        assert "has 3 lines" in await refusal(tools, "read", path="b", start=4)
        assert "there is no file 'c'" in await refusal(tools, "read", path="c")
        assert "is a folder" in await refusal(tools, "read", path="sub")

    async def test_a_long_file_says_where_to_go_on(self, tools: Tools, tree: Path) -> None:
        lines = [f"line {number}" for number in range(1, 20_001)]
        (tree / "long").write_text("\n".join(lines))
        seen: list[str] = []
        start = 1
        while True:
            text = await use(tools, "read", path="long", start=start)
            assert len(text) < 61_000
            if "[cut in line " not in text:
                break
            start = int(text.rpartition("start=")[2].rstrip("]"))
            seen += text.split("\n")[:-2]
            assert len(seen) == start - 1
        assert seen + text.split("\n") == lines

    async def test_a_huge_file_is_not_read(self, tools: Tools, tree: Path) -> None:
        with (tree / "huge").open("wb") as file:
            file.truncate(2**31)
        assert "too large to read" in await refusal(tools, "read", path="huge")

    async def test_a_folder_is_listed_without_gits_own(self, tools: Tools, tree: Path) -> None:
        assert (await use(tools, "list")).split("\n") == sorted(
            ["dangling@", "in@", "loop@", "out.txt@", "out@", "sub/"]
        )
        (tree / "empty").mkdir()
        assert await use(tools, "list", path="empty") == "[empty]"
        assert "no folder 'sub/a.txt'" in await refusal(tools, "list", path="sub/a.txt")

    async def test_a_full_folder_is_cut(self, tools: Tools, tree: Path) -> None:
        for number in range(503):
            (tree / "sub" / str(number)).touch()
        assert (await use(tools, "list", path="sub")).endswith("\n[and 4 more]")


class TestSearching:
    @pytest.fixture
    def tree(self, tree: Path) -> Path:
        (tree / ".git").unlink()
        (tree / ".git").mkdir()
        (tree / ".git/config").write_text("alpha\n")
        return tree

    async def test_lines_are_found(self, tools: Tools, tree: Path) -> None:
        (tree / "ü x.txt").write_text("one\nalphabet\r\n")
        (tree / "binary").write_bytes(b"alpha\n\0")
        (tree / ".gitignore").write_text("ignored\n")
        (tree / "ignored").write_text("alpha")
        os.mkfifo(tree / "pipe")
        found = await use(tools, "search", pattern="^alph(a|b)")
        assert sorted(found.split("\n")) == ["sub/a.txt:1:alpha", "ü x.txt:2:alphabet"]
        assert await use(tools, "search", pattern="secret") == "[nothing found]"
        assert await use(tools, "search", pattern="-v") == "[nothing found]"

    async def test_a_path_is_taken_as_it_is(self, tools: Tools, tree: Path) -> None:
        (tree / ":(top)*").write_text("alpha")
        assert await use(tools, "search", pattern="a", path=":(top)*") == ":(top)*:1:alpha"
        assert "no file or folder '*'" in await refusal(tools, "search", pattern="a", path="*")

    async def test_a_wrong_pattern_is_explained(self, tools: Tools) -> None:
        assert "Unmatched (" in await refusal(tools, "search", pattern="a(")
        assert "not one line" in await refusal(tools, "search", pattern="")

    async def test_much_is_cut(self, tools: Tools, tree: Path) -> None:
        (tree / "many").write_text("alpha\n" * 300 + "beta" * 1_000)
        found = await use(tools, "search", pattern="alpha", path="many")
        assert found.endswith("many:200:alpha\n[and 100 more lines]")
        assert len(await use(tools, "search", pattern="beta")) < 400


class TestWriting:
    async def test_a_file_is_made_with_its_folders(self, tools: Tools, tree: Path) -> None:
        assert await use(tools, "write", path="x/y/z", content="ü\r\n") == "wrote x/y/z (4 bytes)"
        assert (tree / "x/y/z").read_bytes() == b"\xc3\xbc\r\n"
        (tree / "plain").touch()
        assert (tree / "x/y/z").stat().st_mode == (tree / "plain").stat().st_mode

    async def test_what_is_replaced_keeps_its_mode(self, tools: Tools, tree: Path) -> None:
        (tree / "run").write_text("old")
        (tree / "run").chmod(0o755)
        await use(tools, "write", path="run", content="new")
        await use(tools, "edit", path="run", old="new", new="newer")
        assert (tree / "run").read_text() == "newer"
        assert stat.S_IMODE((tree / "run").stat().st_mode) == 0o755
        assert sorted(p.name for p in tree.iterdir() if p.name.startswith(".")) == [".git"]

    async def test_a_file_shared_with_the_outside_is_not_changed_there(
        self, tools: Tools, tree: Path
    ) -> None:
        (tree / "shared").hardlink_to(tree / "../outside/secret.txt")
        await use(tools, "write", path="shared", content="mine")
        assert (tree / "../outside/secret.txt").read_text() == "secret\n"

    async def test_what_the_system_refuses_is_answered(self, tools: Tools) -> None:
        for path in ("sub/a.txt/b", "sub/a.txt/b/c"):
            assert await refusal(tools, "write", path=path, content="x") == (
                f"a folder on the way to {path!r} is a file"
            )
        assert "is a folder" in await refusal(tools, "write", path="sub", content="x")
        assert "too long" in await refusal(tools, "write", path="x" * 300, content="x")
        assert "symbolic links" in await refusal(tools, "read", path="loop")


class TestEditing:
    async def test_one_line_of_a_crlf_file_leaves_every_other_byte(
        self, tools: Tools, tree: Path
    ) -> None:
        before = b"\xef\xbb\xbfone = 1\r\ntwo = 2\r\n\xff\x00\r\nthree"
        (tree / "dos.ini").write_bytes(before)
        await use(tools, "edit", path="dos.ini", old="two = 2", new="two = 22")
        assert (tree / "dos.ini").read_bytes() == before.replace(b"two = 2", b"two = 22")

    async def test_line_breaks_follow_a_crlf_file(self, tools: Tools, tree: Path) -> None:
        (tree / "dos.txt").write_bytes(b"a\r\nb\r\nc")
        await use(tools, "edit", path="dos.txt", old="a\nb\r\n", new="x\ny\r\nz\n")
        assert (tree / "dos.txt").read_bytes() == b"x\r\ny\r\nz\r\nc"

    async def test_a_mixed_file_is_taken_byte_for_byte(self, tools: Tools, tree: Path) -> None:
        (tree / "mixed").write_bytes(b"a\r\nb\nc\r\n")
        await use(tools, "edit", path="mixed", old="b\n", new="x\ny\n")
        assert (tree / "mixed").read_bytes() == b"a\r\nx\ny\nc\r\n"

    async def test_what_is_replaced_must_be_there_once(self, tools: Tools, tree: Path) -> None:
        (tree / "f").write_text("aaa b b")
        assert "does not occur" in await refusal(tools, "edit", path="f", old="x", new="y")
        assert "more than once" in await refusal(tools, "edit", path="f", old="b", new="y")
        assert "more than once" in await refusal(tools, "edit", path="f", old="aa", new="y")
        assert "is empty" in await refusal(tools, "edit", path="f", old="", new="y")
        assert "are the same" in await refusal(tools, "edit", path="f", old="aaa", new="aaa")
        assert (tree / "f").read_text() == "aaa b b"
        assert (
            await use(tools, "edit", path="f", old="b", new="", all=True) == "edited f in 2 places"
        )
        assert (tree / "f").read_text() == "aaa  "

    @settings(
        max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        before=st.binary(max_size=30), after=st.binary(max_size=30), new=st.text("ab\r", max_size=5)
    )
    async def test_every_other_byte_stays(
        self, tools: Tools, tree: Path, before: bytes, after: bytes, new: str
    ) -> None:
        (tree / "any").write_bytes(before + b"<<here>>" + after)
        await use(tools, "edit", path="any", old="<<here>>", new=new)
        assert (tree / "any").read_bytes() == before + new.encode() + after


class TestShell:
    async def test_it_runs_in_the_tree_and_shows_what_came(self, tools: Tools, tree: Path) -> None:
        assert await use(tools, "shell", command="pwd; cat sub/a.txt") == f"{tree}\nalpha"
        assert await use(tools, "shell", command="true") == "[no output]"
        assert await use(tools, "shell", command="cat") == "[no output]"

    async def test_a_command_that_fails_shows_why(self, tools: Tools) -> None:
        assert await refusal(tools, "shell", command="echo out; echo err >&2; exit 3") in (
            "exit status 3\nout\nerr",
            "exit status 3\nerr\nout",
        )
        assert "not a command line" in await refusal(tools, "shell", command=" \n")
        assert "not a command line" in await refusal(tools, "shell", command="a\0b")
        assert "cannot start" in await refusal(tools, "shell", command="x" * 1_000_000)

    @pytest.mark.parametrize(
        "command",
        ["seq 1 20000", "seq 1 20000; head -c 40000 /dev/zero | tr '\\0' x", "seq 1 9000; echo é"],
    )
    async def test_the_end_of_much_output_is_shown_and_the_rest_is_in_a_file(
        self, tools: Tools, command: str
    ) -> None:
        printed = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout
        note, _, end = (await use(tools, "shell", command=command)).partition("\n")
        left_out = int(note.split(" ", 1)[0].removeprefix("["))
        rest = Path(note.partition(" are in ")[2].removesuffix("]"))
        try:
            assert rest.stat().st_size == left_out
            assert rest.read_bytes() + end.encode() == printed.removesuffix(b"\n")
        finally:
            rest.unlink()
        assert 29_000 < len(end.encode()) <= 30_000

    async def test_a_command_that_hangs_is_ended(self, tools: Tools) -> None:
        command = "echo here; sleep 60 & wait"
        async with asyncio.timeout(30):
            text = await refusal(tools, "shell", command=command, timeout_s=0.5)
        assert text == "ended after 0.5 s\nhere"

    async def test_a_tree_that_vanished_is_answered(
        self, tools: Tools, tree: Path, tmp_path: Path
    ) -> None:
        tree.rename(tmp_path / "moved")
        assert "there is no folder" in await refusal(tools, "shell", command="true")
        assert "no file or folder" in await refusal(tools, "search", pattern="a")
        assert "no folder" in await refusal(tools, "list")
        assert "no file" in await refusal(tools, "read", path="sub/a.txt")
