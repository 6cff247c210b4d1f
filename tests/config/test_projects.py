import os
from pathlib import Path

import pytest

from agl.config.projects import find, lookup, main_folder, register, registered
from agl.config.settings import Settings
from agl.ports.errors import InputError, NotFoundError, UpstreamError
from agl.ports.history import Repository


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "home")


def repository(folder: Path) -> Repository:
    (folder / ".git").mkdir(parents=True)
    return Repository(folder / ".git", folder)


def test_a_registered_repository_is_found_with_what_was_said(
    settings: Settings, tmp_path: Path
) -> None:
    calc = repository(tmp_path / "calc")
    made = register(settings, calc, 'make "all" \\ ünïcode')
    assert find(settings, calc) == made
    assert (made.name, made.folder, made.build) == (
        "calc",
        tmp_path / "calc",
        'make "all" \\ ünïcode',
    )


def test_an_unregistered_repository_is_told_how(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="agl init"):
        find(settings, repository(tmp_path / "calc"))


def test_registering_again_changes_the_build_alone(settings: Settings, tmp_path: Path) -> None:
    calc = repository(tmp_path / "calc")
    first = register(settings, calc, "make")
    with (settings.home / "projects" / "calc.toml").open("a") as stream:
        stream.write('trees_root = "/trees"\n')
    second = register(settings, calc, None)
    assert (second.name, second.build, second.trees_root) == (first.name, None, Path("/trees"))
    assert list(registered(settings)) == [second]


def test_what_new_trees_get_stays_until_it_is_said_anew(settings: Settings, tmp_path: Path) -> None:
    calc = repository(tmp_path / "calc")
    register(settings, calc, "make", setup="npm ci && echo 'ü'", copy=(".env", "conf/*.local"))
    kept = register(settings, calc, "make test")
    assert (kept.setup, kept.copy) == ("npm ci && echo 'ü'", (".env", "conf/*.local"))
    assert find(settings, calc) == kept
    gone = register(settings, calc, "make", setup=" ", copy=())
    assert (gone.setup, gone.copy) == (None, ())
    assert find(settings, calc) == gone


def test_the_next_of_one_name_gets_a_number_whatever_its_case(
    settings: Settings, tmp_path: Path
) -> None:
    folders = [tmp_path / place for place in ("a/calc", "b/Calc", "c/CALC")]
    made = [register(settings, repository(folder), None).name for folder in folders]
    assert made == ["calc", "Calc-2", "CALC-3"]


def test_a_link_to_the_repository_is_the_same_project(settings: Settings, tmp_path: Path) -> None:
    made = register(settings, repository(tmp_path / "calc"), None)
    (tmp_path / "link").symlink_to(tmp_path / "calc")
    linked = Repository(tmp_path / "link" / ".git", tmp_path / "link")
    assert lookup(settings, linked) == made


def test_a_linked_tree_belongs_to_its_main_tree(tmp_path: Path) -> None:
    repository(tmp_path / "calc")
    seen = Repository(tmp_path / "calc" / ".git", tmp_path / "elsewhere")
    assert main_folder(seen) == tmp_path / "calc"


def test_a_bare_clone_is_named_without_its_ending(settings: Settings, tmp_path: Path) -> None:
    bare = tmp_path / "calc.git"
    bare.mkdir()
    made = register(settings, Repository(bare, None), None)
    assert (made.name, made.folder) == ("calc", bare)
    assert made.trees(settings) == tmp_path / ".agl-trees"


def test_a_repository_kept_elsewhere_is_named_after_its_tree(tmp_path: Path) -> None:
    tree, git_dir = tmp_path / "calc", tmp_path / "super" / "modules" / "x"
    tree.mkdir()
    git_dir.mkdir(parents=True)
    (tree / ".git").write_text("gitdir: ../super/modules/x\n")
    assert main_folder(Repository(git_dir, tree)) == tree


def test_a_linked_tree_of_a_bare_clone_does_not_name_it(tmp_path: Path) -> None:
    tree, bare = tmp_path / "tree", tmp_path / "calc.git"
    tree.mkdir()
    (bare / "worktrees" / "tree").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {bare}/worktrees/tree\n")
    assert main_folder(Repository(bare, tree)) == bare


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("My Project", "My-Project"),
        ("größe", "groe"),
        ("漢字", "project"),
        ("con", "con-project"),
        ("_base", "_base-project"),
        ("v1.2.lock", "v1-2-lock"),
        ("--x", "x"),
        ("x" * 200, "x" * 80),
    ],
)
def test_any_folder_gives_a_name(
    settings: Settings, tmp_path: Path, folder: str, name: str
) -> None:
    assert register(settings, repository(tmp_path / folder), None).name == name


def test_trees_go_where_the_project_says_then_the_settings_then_beside(
    settings: Settings, tmp_path: Path
) -> None:
    made = register(settings, repository(tmp_path / "calc"), None)
    assert made.trees(settings) == tmp_path / ".agl-trees"
    elsewhere = Settings(settings.home, Path("/elsewhere"))
    assert made.trees(elsewhere) == Path("/elsewhere")
    with (settings.home / "projects" / "calc.toml").open("a") as stream:
        stream.write('trees_root = "/own"\n')
    (again,) = registered(settings)
    assert again.trees(elsewhere) == Path("/own")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('folder = "/x"', "'common_dir' is missing"),
        ('common_dir = "/x/.git"', "'folder' is missing"),
        ('common_dir = "x"\nfolder = "/x"', "'common_dir' is 'x'"),
        ('common_dir = "/x"\nfolder = 3', "'folder' is 3"),
        ('common_dir = "/x"\nfolder = "/x"\nbuild = 3', "'build' is 3"),
        ('common_dir = "/x"\nfolder = "/x"\nbuild = " "', "'build' is ' '"),
        ('common_dir = "/x"\nfolder = "/x"\nsetup = ["x"]', "'setup' is ['x']"),
        ('common_dir = "/x"\nfolder = "/x"\ncopy = ".env"', "'copy' is '.env'"),
        ('common_dir = "/x"\nfolder = "/x"\ncopy = [3]', "'copy' holds 3"),
        ('common_dir = "/x"\nfolder = "/x"\ncopy = [" "]', "'copy' holds ' '"),
        ('common_dir = "/x"\nfolder = "/x"\ncopy = ["/etc"]', "'copy' holds '/etc'"),
        ('common_dir = "/x"\nfolder = "/x"\ncopy = ["a/../.."]', "'copy' holds 'a/../..'"),
        ('common_dir = "/x"\nfolder = "/x"\ntrees_root = "x"', "'trees_root' is 'x'"),
        ('common_dir = "/x"\nfolder = "/x"\nbiuld = "x"', "unknown key 'biuld'"),
        ("common_dir", "not valid TOML"),
    ],
)
def test_a_wrong_project_file_is_named_with_its_key(
    settings: Settings, content: str, said: str
) -> None:
    file = settings.home / "projects" / "calc.toml"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises(InputError) as raised:
        list(registered(settings))
    assert repr(str(file)) in str(raised.value)
    assert said in str(raised.value)


def test_a_home_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UpstreamError):
        register(Settings(tmp_path / "file" / "home"), repository(tmp_path / "calc"), None)


def test_a_path_that_is_no_text_is_refused_whole(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    with pytest.raises(InputError, match="is not UTF-8"):
        register(settings, repository(folder), None)
    assert list((settings.home / "projects").iterdir()) == []
