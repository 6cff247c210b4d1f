"""Children's trees through the real `agl` on real git: where they start, what is in them, and how
they go."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from e2e.world import Ended, World, script, shell, write

FLOW = Path(__file__).parent / "flow_of_trees.py"
LOOKS = shell('echo "$(git rev-parse HEAD) $(ls | tr "\\n" ,)" >> $COUNTER')


def begin(world: World, steps: dict[str, list[object]], *more: str) -> tuple[str, ...]:
    """The command line of a run whose children make these calls; `later` begins last."""
    file = world.folder / "script.json"
    plays = {
        name: [{"calls": [one]} for one in calls] + [{"text": "done"}]
        for name, calls in steps.items()
    }
    file.write_text(script(plays))
    names = [part for name in steps if name != "later" for part in ("--name", name)]
    later = ["--later", "later"] if "later" in steps else []
    return ("run", str(FLOW), "-n", "x", "--script", f"scripted:{file}", *names, *later, *more)


def tree_of(world: World, name: str) -> Path:
    return world.folder / ".agl-trees" / "shop" / "x" / name


def told(world: World, kind: str) -> list[dict[str, object]]:
    log = next(world.home.glob("projects/*/runs/x/events.jsonl"))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [one for one in events if one["kind"] == kind]


def test_a7_children_start_at_the_pinned_commit_of_a_branch_that_is_ahead(world: World) -> None:
    world.git("clone", "-q", "--bare", ".", str(world.folder / "hub.git"))
    world.git("remote", "add", "origin", str(world.folder / "hub.git"))
    world.git("fetch", "-q")
    world.git("remote", "set-head", "origin", "main")
    world.git("switch", "-q", "-c", "feature", "--track", "origin/main")
    (world.repo / "ahead.txt").write_text("ahead\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "ahead")
    base = world.git("rev-parse", "HEAD")
    moves = shell(f"git -C {world.repo} commit -q --allow-empty -m meanwhile")
    done = world.agl(*begin(world, {"a": [moves, LOOKS], "b": [LOOKS], "c": [LOOKS]}))
    assert done.status == 0, done.err
    assert world.counted() == [base, "ahead.txt,calc.py,"] * 3


def test_a8_a_later_child_starts_from_what_has_landed_and_it_is_shown(world: World) -> None:
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")], "later": [LOOKS]}))
    assert done.status == 0, done.err
    head, files = world.counted()
    assert files == "a.txt,calc.py,"
    assert head == world.git("rev-parse", "agl/x"), "nothing landed after"
    starts = {one["about"]: one["details"]["start"] for one in told(world, "child_started")}  # type: ignore[index]
    assert starts == {"a": world.git("rev-parse", "main"), "later": head}
    assert head[:7] in done.err + world.agl("show", "x").out


@pytest.fixture
def with_library(world: World) -> World:
    library = world.folder / "library"
    library.mkdir()
    world.git("init", "-q", "-b", "main", cwd=library)
    (library / "lib.txt").write_text("library\n")
    world.git("add", "-A", cwd=library)
    world.git("commit", "-q", "-m", "library", cwd=library)
    allowed = ("-c", "protocol.file.allow=always")
    world.git(*allowed, "submodule", "--quiet", "add", str(library), "lib")
    world.git("commit", "-q", "-m", "with a library")
    return world


READS = shell("cat lib/lib.txt >> $COUNTER")
INNER = shell("cd lib && echo new > lib.txt && git commit -qam inner")


def test_a10_a_local_submodule_is_there_in_a_childs_tree(with_library: World) -> None:
    world = with_library
    done = world.agl(*begin(world, {"a": [READS], "b": [READS]}))
    assert done.status == 0, done.err
    assert world.counted() == ["library", "library"]
    warned = sorted(one["details"]["text"] for one in told(world, "warned"))  # type: ignore[index]
    assert warned == [
        f"step {one!r} changed no file, so there was nothing to commit" for one in ("a", "b")
    ]


def test_d14_a_later_child_has_the_submodules_commit_that_an_earlier_one_made(
    with_library: World,
) -> None:
    world = with_library
    done = world.agl(*begin(world, {"a": [INNER], "later": [READS]}))
    assert done.status == 0, done.err
    assert "submodule 'lib'" in done.err, "that only its tree holds the commit is told"
    assert world.counted() == ["new"]


def cleared(world: World) -> Ended:
    """Clears what a killed `clear` left, until nothing is left to clear."""
    done = world.agl("clear", "x")
    assert done.status in (0, 3), done.err
    assert world.git("for-each-ref", "refs/heads/agl") == ""
    assert len(world.git("worktree", "list", "--porcelain").split("worktree ")) == 2
    assert not list((world.repo / ".git" / "worktrees").glob("*"))
    assert not (world.folder / ".agl-trees" / "shop" / "x").exists()
    assert world.git("status", "--porcelain") == ""
    own = world.repo / ".git" / "agl"
    assert not [lock for lock in world.repo.rglob("*.lock") if own not in lock.parents]
    return done


def kept_bytes(world: World) -> set[str]:
    """The first lines of all files that can be found in what is kept."""
    found = set()
    for commit in world.git("for-each-ref", "--format=%(objectname)", "refs/agl/kept").split():
        for path in world.git("ls-tree", "-r", "--name-only", commit).splitlines():
            if path.endswith(".txt"):
                found.add(world.git("show", f"{commit}:{path}"))
    kept = world.folder / ".agl-trees" / "shop" / "_kept"
    return found | {file.read_text().strip() for file in kept.rglob("*.txt")}


def with_things_to_lose(world: World) -> None:
    """A run of three children: what they committed, what a person typed in their trees since, and
    a commit of a submodule that only one tree holds."""
    steps: dict[str, list[object]] = {
        name: [write(f"{name}.txt", f"{name}\n")] for name in ("a", "b", "c")
    }
    if (world.repo / "lib").exists():
        steps["a"].append(INNER)
    done = world.agl(*begin(world, steps))
    assert done.status == 0, done.err
    for name in ("a", "b", "c"):
        (tree_of(world, name) / "typed.txt").write_text(f"typed in {name}\n")
    (tree_of(world, "b") / "own.txt").write_text("own\n")
    world.git("add", "own.txt", cwd=tree_of(world, "b"))
    world.git("commit", "-q", "-m", "a person's own", cwd=tree_of(world, "b"))


def nothing_is_lost(world: World) -> None:
    assert kept_bytes(world) >= {"a", "b", "c", "own", *(f"typed in {one}" for one in "abc")}


def test_f6_a_run_whose_children_have_submodules_is_cleared(with_library: World) -> None:
    world = with_library
    with_things_to_lose(world)
    inner = world.git("rev-parse", "HEAD", cwd=tree_of(world, "a") / "lib")
    assert cleared(world).status == 0
    nothing_is_lost(world)
    kept = world.folder / ".agl-trees" / "shop" / "_kept"
    (modules,) = (one for one in kept.rglob("modules/lib") if one.parent.parent.name == "a@git")
    shown = ("--git-dir", str(modules), "--work-tree", str(world.folder), "cat-file", "-t", inner)
    assert world.git(*shown) == "commit"
    assert world.agl("clear", "x").status == 0, "it says again what is kept"
    assert world.agl(*begin(world, {"a": [READS]})).status == 0


CLEAR_CALLS = 48


@pytest.mark.slow
@pytest.mark.parametrize(
    "n",
    [
        pytest.param(n, marks=() if n % 11 == 1 or n == CLEAR_CALLS else pytest.mark.long)
        for n in range(1, CLEAR_CALLS + 1)
    ],
)
def test_f6_f7_a_clear_killed_at_a_git_process_is_finished_by_the_next(
    with_library: World, n: int
) -> None:
    world = with_library
    with_things_to_lose(world)
    killed = world.agl("clear", "x", more=world.arm(git=n))
    assert killed.status == 0 if n == CLEAR_CALLS else killed.status in (-9, 0), killed.err
    cleared(world)
    cleared(world)
    nothing_is_lost(world)


def put_back(world: World, err: str) -> None:
    """Types the repair that an error names."""
    (command,) = re.findall(r"`(git update-ref [^`]+)`", err)
    world.git(*shlex.split(command)[1:])


FOREIGN = "echo foreign > foreign.txt; git add -A; git commit -qm foreign"
ONTO_B = "git update-ref refs/heads/agl/_work/x/b HEAD"


def brought_by(world: World, name: str) -> list[str]:
    """The files that the landing of a child brought."""
    merge = world.git("log", "--merges", "--format=%H", f"--grep=Land {name} ", "agl/x")
    return world.git("diff", "--name-only", f"{merge}^1", merge).splitlines()


def test_d3_a_commit_on_an_idle_childs_branch_stops_the_run_and_does_not_land(
    world: World,
) -> None:
    steps: dict[str, list[object]] = {
        "b": [write("b.txt", "b\n")],
        "a": [shell(f"{FOREIGN}; [ -e $COUNTER ] || {ONTO_B}; echo a >> $COUNTER")],
    }
    done = world.agl(*begin(world, steps, "--apart"))
    assert done.status == 4
    assert "'a/a'" in done.err
    assert "'b/b'" not in done.err
    assert world.git("rev-parse", "agl/x") == world.git("rev-parse", "main")
    put_back(world, done.err)
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
    assert brought_by(world, "b") == ["b.txt"]
    assert brought_by(world, "a") == ["foreign.txt"]
    assert world.counted() == ["a"], "what was recorded did not run again"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_d3_a_commit_on_the_branch_of_a_child_at_work_stops_the_run_and_does_not_land(
    world: World, order: str
) -> None:
    def wait(what: str) -> str:
        return f"while ! [ -e $COUNTER.{what} ]; do sleep 0.02; done"

    steps: dict[str, list[object]] = {
        "a": [
            shell(f"{wait('b')}; {FOREIGN}; [ -e $COUNTER.a ] || {ONTO_B}; touch $COUNTER.a"),
        ],
        "b": [
            shell(f"touch $COUNTER.b; {wait('a')}; sleep 0.3; echo b >> $COUNTER"),
            write("b.txt", "b\n"),
        ],
    }
    done = world.agl(*begin(world, {name: steps[name] for name in order}))
    assert done.status == 4, done.err
    assert "'a/a' or 'b/b'" in done.err
    assert "agl/_work/x/b" in done.err
    assert world.git("rev-parse", "agl/x") == world.git("rev-parse", "main")
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
    assert brought_by(world, "b") == ["b.txt"]
    assert brought_by(world, "a") == ["foreign.txt"]
    assert world.counted() == ["b", "b"], "only the step whose branch was moved ran again"


# what a project gives its trees


def test_each_new_tree_is_set_up_and_gets_what_is_copied(world: World) -> None:
    (world.repo / ".gitignore").write_text(".env\n*.made\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "ignore")
    (world.repo / ".env").write_text("SECRET=1\n")
    setup = "cat .env > env.made; basename $PWD >> $COUNTER"
    done = world.agl("init", "--setup", setup, "--copy", ".env")
    assert done.status == 0, done.err
    assert setup in done.out
    assert setup in world.agl("doctor").out
    done = world.agl(*begin(world, {"a": [shell("cat env.made > seen.txt")]}))
    assert done.status == 0, done.err
    assert world.git("show", "agl/x:seen.txt") == "SECRET=1"
    assert world.git("ls-tree", "--name-only", "agl/x").split() == [
        ".gitignore",
        "calc.py",
        "seen.txt",
    ]
    assert sorted(world.counted()) == ["_base", "a"]
    assert told(world, "warned") == []
    assert world.agl("init", "--setup", "", "--copy", "").status == 0
    assert "setup" not in world.agl("init").out


def test_what_a_setup_leaves_is_told_with_the_line_that_ignores_it(world: World) -> None:
    assert world.agl("init", "--setup", "mkdir lib; touch lib/x").status == 0
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")]}))
    assert done.status == 0, done.err
    assert "put '/lib/' into .gitignore" in done.err
    assert [one["namespace"] for one in told(world, "warned")] == ["", "a"]
    assert world.git("ls-tree", "--name-only", "agl/x").split() == ["a.txt", "calc.py"]


def test_a_setup_that_fails_makes_nothing_and_resume_goes_on(world: World) -> None:
    assert world.agl("init", "--setup", "echo 'no network'; exit 1").status == 0
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")]}))
    assert done.status == 6
    assert "no network" in done.err
    assert world.git("for-each-ref", "refs/heads/agl") == ""
    assert not (world.folder / ".agl-trees").exists()
    assert world.agl("init", "--setup", "true").status == 0
    done = world.agl("resume", "x")
    assert done.status == 0, done.err


def test_a_tree_whose_maker_was_killed_in_its_setup_is_made_again(world: World) -> None:
    (world.repo / ".git" / "info" / "exclude").write_text("*.made\n")
    setup = (
        "[ $(basename $PWD) = a ] || exit 0; echo a >> $COUNTER;"
        " [ -e $COUNTER.killed ] && exit; touch half.made $COUNTER.killed; kill -KILL $PPID"
    )
    assert world.agl("init", "--setup", setup).status == 0
    done = world.agl(*begin(world, {"a": [write("a.txt", "a\n")]}))
    assert done.status == -9
    assert (tree_of(world, "a") / "half.made").exists()
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
    assert not (tree_of(world, "a") / "half.made").exists()
    assert world.counted() == ["a", "a"]
    assert world.git("show", "agl/x:a.txt") == "a"


def test_a_childs_tree_is_as_sparse_as_the_checkout(world: World) -> None:
    for name in ("in", "out"):
        (world.repo / name).mkdir()
        (world.repo / name / "file.txt").write_text(f"{name}\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "folders")
    world.git("sparse-checkout", "set", "--cone", "in")
    done = world.agl(*begin(world, {"a": [LOOKS, write("in/a.txt", "a\n")]}))
    assert done.status == 0, done.err
    assert world.counted()[1] == "calc.py,in,"
    files = world.git("ls-tree", "-r", "--name-only", "agl/x").split()
    assert files == ["calc.py", "in/a.txt", "in/file.txt", "out/file.txt"]


@pytest.mark.parametrize(
    "branch", ["agl", "agl/_work", "agl/x", "agl/x/deep", "agl/_work/x", "agl/_work/x/a"]
)
def test_a_branch_that_leaves_no_room_is_said_before_any_work(world: World, branch: str) -> None:
    world.git("branch", branch)
    line = begin(world, {"a": [write("a.txt", "a\n")]})
    done = world.agl(*line)
    assert (done.status, done.err.count("\n")) == (4, 1), done.err
    assert not list(world.home.glob("projects/*/runs/x/run.json"))
    (frees,) = re.findall("`(.*)`", done.err)
    world.git(*shlex.split(frees)[1:])
    done = world.agl(*line)
    assert done.status == 0, done.err


@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_that_leaves_no_room_for_a_child_of_a_run_at_work(
    world: World, packed: bool
) -> None:
    pack = f"; git -C {world.repo} pack-refs --all" if packed else ""
    takes = shell(f"git -C {world.repo} branch agl/_work{pack}")
    line = begin(world, {"a": [write("a.txt", "a\n")]})
    line = (*line, "--first", "first")
    file = world.folder / "script.json"
    plays = json.loads(file.read_text())
    plays["steps"]["first"] = [{"calls": [takes]}, {"text": "done"}]
    file.write_text(json.dumps(plays))
    done = world.agl(*line)
    assert done.status == 4, done.err
    assert "Traceback" not in done.err
    (frees,) = re.findall("`(git branch .*?)`", done.err)
    world.git(*shlex.split(frees)[1:])
    done = world.agl("resume", "x")
    assert done.status == 0, done.err
