"""Real failures of tools that do this job, against the real command. The letters are the list's."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.conftest import Play, prepared
from e2e.world import World, script, shell, takes_it_now, wait_for, write


def sentence(text: str) -> str:
    """The one line of an error, with no traceback around it."""
    lines = [line for line in text.splitlines() if line.strip()]
    assert "Traceback" not in text
    assert len(lines) == 1, text
    return lines[0]


def test_a1_a_repository_without_a_commit_is_told_to_make_one(bare_world: World) -> None:
    bare_world.repo.mkdir()
    bare_world.git("init", "-q")
    done = bare_world.agl("init", "--no-build")
    assert done.status == 2
    assert "commit" in sentence(done.err)
    assert not list(bare_world.home.rglob("*.toml"))


def test_a2_a_tree_that_was_removed_is_made_again(world: World, play: Play) -> None:
    done = play(more=("--ask",))
    assert done.status == 6
    trees = world.folder / ".agl-trees"
    subprocess.run(["rm", "-rf", str(trees)], check=True)
    (world.folder / "answers.json").write_text('{"Go on?": "yes"}')
    done = world.agl("resume", "x", "--answers", str(world.folder / "answers.json"))
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"


def test_a3_a_tree_without_its_git_file_is_not_acted_in(world: World, play: Play) -> None:
    done = play(shell("rm -f .git; echo lost > a.txt"))
    assert done.status != 0
    assert world.git("status", "--porcelain") == ""
    assert world.git("log", "--format=%s", "agl/x") == "first"
    assert "Traceback" not in done.err


def test_a5_a_branch_that_is_checked_out_elsewhere_is_named(world: World, play: Play) -> None:
    assert play(more=("--ask",)).status == 6
    tree = next((world.folder / ".agl-trees").rglob("_base"))
    world.git("checkout", "-q", "--detach", cwd=tree)
    world.git("switch", "-q", "agl/x")
    done = world.agl("resume", "x")
    assert done.status == 4
    assert str(world.repo) in sentence(done.err)


def test_a6_a_trees_root_that_cannot_be_written_leaves_the_checkout_alone(
    bare_world: World,
) -> None:
    """A file stands where the folder should be: also root cannot write there."""
    bare_world.make_repository({"calc.py": "1\n"})
    (bare_world.folder / ".agl-trees").write_text("in the way")
    assert bare_world.agl("init", "--no-build").status in (0, 6)
    done = bare_world.agl(*prepared(bare_world))
    assert done.status == 6, done.err
    assert sorted(path.name for path in bare_world.repo.iterdir()) == [".git", "calc.py"]
    assert bare_world.git("status", "--porcelain") == ""
    assert bare_world.git("branch", "--format=%(refname:short)") == "main"


def test_a13_a_bare_clone_with_linked_trees_is_one_project(bare_world: World) -> None:
    bare_world.make_repository({"calc.py": "1\n"})
    hub = bare_world.folder / "hub.git"
    bare_world.git("clone", "-q", "--bare", str(bare_world.repo), str(hub))
    for name in ("one", "two"):
        place = str(bare_world.folder / name)
        bare_world.git("worktree", "add", "-q", "-b", name, place, "main", cwd=hub)
    done = bare_world.agl("init", "--no-build", cwd=bare_world.folder / "one")
    assert done.status == 0, done.err
    done = bare_world.agl(*prepared(bare_world), cwd=bare_world.folder / "two")
    assert done.status == 0, done.err
    listed = bare_world.agl("list", "--json", cwd=hub)
    assert '"x"' in listed.out
    assert len(list(bare_world.home.glob("projects/*.toml"))) == 1


def test_a15_a_symbolic_link_leads_to_the_same_project(world: World, play: Play) -> None:
    link = world.folder / "link"
    link.symlink_to(world.repo)
    assert play(cwd=link).status == 0
    assert '"x"' in world.agl("list", "--json").out
    assert world.agl("init", "--no-build", cwd=link).status == 0
    assert len(list(world.home.glob("projects/*.toml"))) == 1


def test_a17_the_users_checkout_is_as_it_was(world: World, play: Play) -> None:
    (world.repo / "calc.py").write_text("2\n")
    (world.repo / "new.txt").write_text("new\n")
    world.git("add", "new.txt")
    before = world.git("status", "--porcelain=v2", "--branch"), world.git("stash", "list")
    done = play()
    assert done.status == 0
    assert "calc.py" in done.err, "uncommitted changes are named as not included"
    after = world.git("status", "--porcelain=v2", "--branch"), world.git("stash", "list")
    assert after == before
    assert world.git("show", "agl/x:calc.py") == "1"


def test_a21_an_old_git_is_refused_before_anything_is_made(world: World, play: Play) -> None:
    bin_ = world.folder / "old"
    bin_.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout
    (bin_ / "git").write_text(
        f'#!/bin/sh\nfor one in "$@"; do [ "$one" = version ] && '
        f'echo "git version 2.20.1" && exit\ndone\nexec {real.strip()} "$@"\n'
    )
    (bin_ / "git").chmod(0o755)
    done = play(more=(), label="x", cwd=world.repo, timeout_s=60)
    assert done.status == 0
    done = world.agl(*prepared(world, label="y"), more={"PATH": f"{bin_}:{world.env['PATH']}"})
    assert done.status == 6
    assert "2.34" in sentence(done.err)
    assert not list(world.home.glob("projects/*/runs/y/run.json"))


@pytest.mark.parametrize("label", ["X", "x"])
def test_a22_a_label_is_one_name_on_every_system(world: World, play: Play, label: str) -> None:
    assert play().status == 0
    assert play(label=label).status == 4


def test_a22_a_branch_called_agl_is_said_before_any_work(world: World, play: Play) -> None:
    world.git("branch", "agl")
    done = play()
    assert done.status == 4
    assert "git branch -m agl" in done.err
    assert not list(world.home.glob("projects/*/runs/x/run.json"))


def test_a23_odd_file_names_survive(world: World, play: Play) -> None:
    names = ["a b.txt", "quo'te\".txt", "ünïcode-漢字.txt", "new\nline.txt", "-dash", "tab\t.txt"]
    done = play(*(write(name, f"{name}\n") for name in names))
    assert done.status == 0, done.err
    listed = world.git("ls-tree", "-z", "--name-only", "agl/x").split("\0")
    assert set(names) <= set(listed)


def test_c1_hooks_of_the_user_do_not_run_in_agls_commits(world: World, play: Play) -> None:
    hooks = world.repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "post-checkout", "post-commit", "pre-receive"):
        (hooks / name).write_text("#!/bin/sh\necho ruined > a.txt\nexit 1\n")
        (hooks / name).chmod(0o755)
    done = play()
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"


def test_c4_signing_that_hangs_hangs_nothing(world: World, play: Play) -> None:
    world.git("config", "commit.gpgsign", "true")
    (world.folder / "gpg").write_text("#!/bin/sh\nsleep 600\n")
    (world.folder / "gpg").chmod(0o755)
    world.git("config", "gpg.program", str(world.folder / "gpg"))
    assert play().status == 0


def test_c6_without_an_identity_the_setting_is_named(world: World, play: Play) -> None:
    for name in [name for name in world.env if name.startswith("GIT_A") or "COMMITTER" in name]:
        del world.env[name]
    done = play()
    assert done.status == 6
    assert "user.email" in done.err or "user.name" in done.err
    assert not list(world.home.glob("projects/*/runs/x/run.json"))


def test_c7_inherited_locations_of_another_repository_lead_nowhere(
    world: World, play: Play
) -> None:
    other = world.folder / "other"
    other.mkdir()
    world.git("init", "-q", cwd=other)
    world.env |= {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "index")}
    done = play(write("a.txt", "a\n"), shell('echo "dir:$GIT_DIR index:$GIT_INDEX_FILE" > env'))
    assert done.status == 0, done.err
    del world.env["GIT_DIR"], world.env["GIT_INDEX_FILE"]
    assert world.git("show", "agl/x:env") == "dir: index:"
    assert not list((other / ".git" / "refs").rglob("x"))


def test_c8_a_step_that_breaks_the_shared_configuration_is_named(world: World, play: Play) -> None:
    done = play(
        write("a.txt", "a\n"),
        shell('GIT_DIR="$(git rev-parse --git-dir)" git config core.bare true'),
    )
    assert done.status == 4
    assert "'work'" in done.err
    assert "core.bare" in done.err
    assert len(world.entries("x")) == 1, "the step itself is recorded"
    done = world.agl("resume", "x")
    assert done.status == 4
    assert "core.bare" in sentence(done.err)
    world.git("config", "core.bare", "false")
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"


def test_c11_an_executable_bit_lands(world: World, play: Play) -> None:
    assert play(write("run.sh", "#!/bin/sh\n"), shell("chmod +x run.sh")).status == 0
    assert world.git("ls-tree", "agl/x", "run.sh").startswith("100755")


def test_d1_what_a_detached_agent_committed_is_in_the_steps_commit(
    world: World, play: Play
) -> None:
    done = play(
        shell("git checkout -q --detach && echo a > a.txt && git add -A && git commit -qm own")
    )
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:a.txt") == "a"


def test_d4_an_agent_that_commits_by_itself_has_changed_something(world: World, play: Play) -> None:
    done = play(shell("echo a > a.txt && git add -A && git commit -qm own"), more=("--json",))
    assert done.json["result"] == "landed"
    assert world.git("log", "--format=%s", "agl/x").splitlines() == ["own", "first"]


def test_d7_work_outside_of_the_tree_is_no_result(world: World, play: Play) -> None:
    done = play(shell("echo a > ../../../../outside.txt"), more=("--json",))
    assert done.json["result"] == "produced_nothing"
    assert "changed no file" in done.err


def test_d7_work_in_the_users_checkout_is_told(world: World, play: Play) -> None:
    (world.repo / "calc.py").write_text("mine\n")
    done = play(write("a.txt", "a\n"), shell(f"echo evil >> {world.repo}/calc.py"))
    assert "files of your checkout changed meanwhile: 'calc.py'" in done.err


def test_an_answer_that_no_question_took_is_told(world: World, play: Play) -> None:
    (world.folder / "answers.json").write_text('{"Go on?": "yes", "Go no?": "yes"}')
    done = play(more=("--ask", "--answers", str(world.folder / "answers.json")))
    assert done.status == 0
    assert "no question took the answer to 'Go no?'" in done.err


def test_d8_a_stash_is_told(world: World, play: Play) -> None:
    done = play(shell("echo a > calc.py && git stash -q"), write("a.txt", "a\n"))
    assert done.status == 0
    assert "stash" in done.err


def test_d12_a_process_that_an_agent_leaves_is_ended_with_its_step(
    world: World, play: Play
) -> None:
    assert play(shell("setsid sleep 600 >/dev/null 2>&1 & echo left > a.txt")).status == 0
    assert world.survivors() == []


def test_d16_a_step_whose_tree_vanished_is_not_believed(world: World, play: Play) -> None:
    done = play(write("a.txt", "a\n"), shell('rm -rf "$PWD"'))
    assert done.status == 4
    assert "gone" in done.err
    assert world.entries("x") == []
    done = world.agl("resume", "x")
    assert world.entries("x") != [] or done.status == 4


def test_f1_an_ignored_file_is_still_there_after_clear(world: World, play: Play) -> None:
    (world.repo / ".git" / "info").mkdir(exist_ok=True)
    (world.repo / ".git" / "info" / "exclude").write_text(".env\n")
    assert play(write("a.txt", "a\n"), write(".env", "secret\n")).status == 0
    assert world.agl("clear", "x").status == 0
    kept = list((world.folder / ".agl-trees").rglob("_kept/**/.env"))
    assert [file.read_text() for file in kept] == ["secret\n"]


def test_f4_a_cleared_branch_comes_back_with_what_clear_printed(world: World, play: Play) -> None:
    assert play().status == 0
    head = world.git("rev-parse", "agl/x")
    done = world.agl("clear", "x", "--json")
    assert done.status == 0, done.err
    assert world.git("branch", "--list", "agl/*") == ""
    names = [
        item["name"]
        for tree in done.json["cleared"][0]["trees"]  # type: ignore[index]
        for item in tree["kept"]
        if item["commit"] == head
    ]
    assert len(names) == 1
    back = world.agl("recover", "--item", names[0], "--branch", "back")
    assert back.status == 0, back.err
    assert world.git("rev-parse", "back") == head
    assert play().status == 0, "the label is free again"


def test_a_changed_setting_does_not_lose_a_tree(world: World) -> None:
    """The trees root is another one now; the run's tree is still found, kept and moved."""
    begun = shell("echo precious > precious.txt; echo > ../../../../begun; sleep 30")
    elsewhere = {"AGL_TREES_ROOT": str(world.folder / "elsewhere" / "trees")}
    world.env |= elsewhere
    process = world.start(*prepared(world, begun))
    wait_for((world.folder / "elsewhere" / "begun").exists)
    process.kill()
    process.wait()
    del world.env["AGL_TREES_ROOT"]
    prepared(world)
    done = world.agl("resume", "x", "--json")
    assert done.status == 0, done.err
    kept = done.json["kept"]
    assert isinstance(kept, list)
    assert world.git("show", f"refs/agl/kept/{kept[0]}:precious.txt") == "precious"
    assert world.agl("clear", "x").status == 0
    assert not (world.folder / "elsewhere" / "trees" / "shop" / "x").exists()
    assert len(world.git("worktree", "list").splitlines()) == 1


def test_what_was_cleared_is_said_also_when_a_later_label_fails(world: World, play: Play) -> None:
    assert play().status == 0
    done = world.agl("clear", "x", "nowhere", "--json")
    assert done.status == 3
    cleared, error = done.json["cleared"], done.json["error"]
    assert isinstance(cleared, list)
    assert cleared[0]["label"] == "x"
    assert isinstance(error, dict)
    assert "nowhere" in str(error["message"])


def test_f9_a_live_run_is_not_cleared(world: World) -> None:
    process = world.start(*prepared(world, shell("echo > ../../../../begun; sleep 30")))
    try:
        wait_for((world.folder / "begun").exists)
        done = world.agl("clear", "x")
        assert done.status == 4
        assert str(process.pid) in sentence(done.err)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_g12_two_resumes_at_once_are_one(world: World) -> None:
    file = world.folder / "script.json"
    arguments = prepared(world, shell("sleep 0.5; echo a > a.txt"))
    process = world.start(*arguments)
    wait_for(lambda: list(world.home.rglob("spending/*.json")))
    process.kill()
    process.wait()
    assert file.exists()
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "agl", "resume", "x"],
            cwd=world.repo,
            env=world.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ended = [(one.communicate(timeout=60), one.returncode) for one in both]
    # The other one waits a second for the lock: it may then find the run finished.
    codes = sorted(code for _, code in ended)
    assert codes in ([0, 4], [0, 0])
    assert len([entry for entry in world.entries("x") if entry["name"] == "work"]) == 1


def test_g19_a_survivor_of_a_killed_agl_writes_nothing_into_the_next_step(
    world: World,
) -> None:
    late = "(sleep 1.5; echo late > late.txt) & echo > ../../../../begun; sleep 30"
    process = world.start(*prepared(world, shell(late)))
    wait_for((world.folder / "begun").exists)
    process.kill()
    process.wait()
    (world.folder / "script.json").write_text(
        script({"work": [{"calls": [write("a.txt", "a\n"), shell("sleep 2")]}]})
    )
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
    assert world.git("ls-tree", "--name-only", "agl/x").splitlines() == ["a.txt", "calc.py"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_h4_h12_a_signal_stops_the_agents_and_says_how_to_go_on(
    world: World, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "agl",
            *prepared(world, shell("echo > ../../../../begun; sleep 300")),
        ],
        cwd=world.repo,
        env=world.env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((world.folder / "begun").exists)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert "agl resume x" in err
    assert "Traceback" not in err
    assert world.survivors() == []
    assert not list(world.home.rglob("outcome.json"))


def test_h4_a_second_signal_is_immediate(world: World) -> None:
    stubborn = "trap '' TERM INT HUP; echo > ../../../../begun; while :; do sleep 0.1; done"
    process = world.start(*prepared(world, shell(stubborn)))
    wait_for((world.folder / "begun").exists)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: takes_it_now(process.pid, signal.SIGINT))
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == -signal.SIGINT
    assert world.survivors(), "it waited for what was told to end"


def test_j1_a_question_and_nobody_there_ends_resumable(world: World, play: Play) -> None:
    """J8 too: standard input is closed, and it fails fast."""
    done = play(more=("--ask", "--json"), timeout_s=30)
    assert done.status == 6
    assert done.json["questions"] == ["Go on?"]
    assert "Traceback" not in done.err
    (world.folder / "answers.json").write_text('{"Go on?": "yes"}')
    done = world.agl("resume", "x", "--answers", str(world.folder / "answers.json"))
    assert done.status == 0, done.err


def test_j2_no_escape_byte_and_one_document(world: World, play: Play) -> None:
    done = play(more=("--json",))
    json.loads(done.out)
    assert "\x1b" not in done.out + done.err
    failed = world.agl("resume", "nowhere", "--json")
    assert failed.status == 3
    assert json.loads(failed.out)["error"]["exit_code"] == 3
    assert "\x1b" not in failed.out + failed.err


def test_a_person_at_a_terminal_is_asked(world: World) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agl", *prepared(world), "--ask"],
        cwd=world.repo,
        env=world.env,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    seen = b""
    while b"Go on?" not in seen:
        seen += os.read(controller, 4096)
    os.write(controller, b"1\n")
    process.stdout.read()  # type: ignore[union-attr]
    process.stdout.close()  # type: ignore[union-attr]
    assert process.wait(30) == 0
    os.close(controller)


def test_a_run_on_a_path_with_spaces_works(tmp_path: Path) -> None:
    world = World(tmp_path / "a folder with spaces")
    world.make_repository({"calc.py": "1\n"})
    assert world.agl("init", "--no-build").status == 0
    assert world.agl(*prepared(world)).status == 0


def test_i3_reports_that_never_fit_have_an_end(world: World) -> None:
    """The script hands in nonsense without end; the step fails after a few of them."""
    nonsense = {"calls": [{"tool": "hand_in", "arguments": {"wrong": 1}}]}
    (world.folder / "script.json").write_text(script({"report": [nonsense] * 50}))
    flow = Path(__file__).parent / "flow_of_twenty.py"
    source = flow.read_text().replace("range(10)", "(7,)")
    (world.folder / "flow.py").write_text(source)
    model = f"scripted:{world.folder}/script.json"
    done = world.agl("run", str(world.folder / "flow.py"), "-n", "x", "--script", model)
    assert done.status in (6, 9), done.err
    assert done.err.count("hand_in failed") <= 10
    assert [entry["name"] for entry in world.entries("x")] == ["write7"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [("overloaded", 6), ("rate_limited", 6), ("dropped", 6), ("too_long", 6), ("auth", 5)],
)
def test_i1_i8_a_model_that_fails_runs_no_tool_and_keeps_the_work(
    world: World, kind: str, code: int
) -> None:
    """What the agent wrote before is kept; the calls of the broken answer are not made; a resume
    begins the step again."""
    arguments = prepared(world)
    turns = [
        {"calls": [write("half.txt", "half\n")]},
        {"error": {"kind": kind}, "calls": [write("whole.txt", "whole\n")]},
        {"text": "done"},
    ]
    (world.folder / "script.json").write_text(script({"work": turns}))
    done = world.agl(*arguments, "--max-wait", "0")
    assert done.status == code
    assert kind in sentence("\n".join(done.err.splitlines()[-1:]))
    assert "'work'" in done.err
    assert world.entries("x") == []
    tree = next((world.folder / ".agl-trees").rglob("_base"))
    assert sorted(path.name for path in tree.iterdir()) == [".git", "calc.py", "half.txt"]
    done = world.agl("resume", "x", "--json")
    assert done.status == 0, done.err
    kept = done.json["kept"]
    assert isinstance(kept, list)
    assert world.git("show", f"refs/agl/kept/{kept[0]}:half.txt") == "half"
    assert world.git("show", "agl/x:whole.txt") == "whole"


@pytest.mark.parametrize("kind", ["overloaded", "rate_limited", "dropped"])
def test_i4_a_provider_that_cannot_answer_now_is_waited_for(world: World, kind: str) -> None:
    """The conversation goes on where it was: nothing is begun again, and nothing is done twice."""
    arguments = prepared(world)
    turns = [
        {"calls": [write("half.txt", "half\n"), shell("echo half >> $COUNTER")]},
        {"error": {"kind": kind, "retry_after_s": 1}},
        {"calls": [write("whole.txt", "whole\n")]},
        {"text": "done"},
    ]
    (world.folder / "script.json").write_text(script({"work": turns}))
    done = world.agl(*arguments)
    assert done.status == 0, done.err
    assert "waiting until" in done.err
    assert world.counted() == ["half"]
    assert world.git("show", "agl/x:half.txt") == "half"
    assert world.git("show", "agl/x:whole.txt") == "whole"
    assert world.git("for-each-ref", "refs/agl/kept") == ""


def test_a_wrong_wait_is_refused(world: World) -> None:
    for wrong in ("soon", "-1", "1w", ""):
        done = world.agl(*prepared(world), "--max-wait", wrong)
        assert done.status == 2
        assert "--max-wait" in sentence(done.err)
    assert world.agl("list").out == ""
