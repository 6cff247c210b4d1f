from pathlib import Path

import pytest

from agl.config.settings import Settings, resolve
from agl.ports.errors import InputError

FILE = """
trees_root = "/file"
keep_days = 3
build_timeout_s = 5
sandbox = "require"
idle_s = 60
wall_s = 90
"""


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert resolve({"AGL_HOME": str(tmp_path)}) == Settings(
        tmp_path, None, 14, 1800.0, "auto", 300.0, 6 * 3600.0
    )


def test_resolving_makes_nothing(tmp_path: Path) -> None:
    resolve({"AGL_HOME": str(tmp_path / "home")})
    assert list(tmp_path.iterdir()) == []


def test_the_home_is_below_the_users_own_by_default() -> None:
    assert resolve({}).home == Path("~/.agl").expanduser()


def test_a_flag_wins_over_the_environment(tmp_path: Path) -> None:
    assert resolve({"AGL_HOME": str(tmp_path)}, home=str(tmp_path / "x")).home == tmp_path / "x"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(FILE)
    environ = {
        "AGL_HOME": str(tmp_path),
        "AGL_TREES_ROOT": "/env",
        "AGL_KEEP_DAYS": "7",
        "AGL_BUILD_TIMEOUT_S": "2.5",
        "AGL_SANDBOX": "off",
        "AGL_IDLE_S": "0.5",
        "AGL_WALL_S": "1e3",
    }
    assert resolve(environ) == Settings(tmp_path, Path("/env"), 7, 2.5, "off", 0.5, 1000.0)


def test_the_file_wins_over_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(FILE)
    assert resolve({"AGL_HOME": str(tmp_path)}) == Settings(
        tmp_path, Path("/file"), 3, 5.0, "require", 60.0, 90.0
    )


def test_a_relative_home_is_made_absolute() -> None:
    assert resolve({"AGL_HOME": "some/home"}).home == Path.cwd() / "some/home"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("keep_dais = 3", "'keep_dais'"),
        ("keep_days = -1", "'keep_days' is -1"),
        ("keep_days = true", "'keep_days' is True"),
        ("keep_days = 1.5", "'keep_days' is 1.5"),
        ('keep_days = "3"', "'keep_days' is '3'"),
        ("build_timeout_s = 0", "'build_timeout_s' is 0"),
        ("build_timeout_s = nan", "'build_timeout_s' is nan"),
        ("build_timeout_s = inf", "'build_timeout_s' is inf"),
        ("build_timeout_s = []", "'build_timeout_s' is []"),
        ("sandbox = true", "'sandbox' is True, not 'auto', 'require' or 'off'"),
        ('sandbox = "on"', "'sandbox' is 'on'"),
        ("idle_s = 0", "'idle_s' is 0"),
        ('idle_s = "5"', "'idle_s' is '5'"),
        ("wall_s = -1", "'wall_s' is -1"),
        ("trees_root = 3", "'trees_root' is 3"),
        ('trees_root = "here"', "'trees_root' is 'here'"),
        ("keep_days = ", "not valid TOML"),
        ("[trees_root]\nx = 1", "'trees_root' is {'x': 1}"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(content)
    with pytest.raises(InputError) as raised:
        resolve({"AGL_HOME": str(tmp_path)})
    assert repr(str(file)) in str(raised.value)
    assert said in str(raised.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not valid TOML"):
        resolve({"AGL_HOME": str(tmp_path)})


def test_a_file_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        resolve({"AGL_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("AGL_KEEP_DAYS", "soon"),
        ("AGL_KEEP_DAYS", "-1"),
        ("AGL_KEEP_DAYS", "²"),
        ("AGL_BUILD_TIMEOUT_S", "soon"),
        ("AGL_BUILD_TIMEOUT_S", "-3"),
        ("AGL_BUILD_TIMEOUT_S", "inf"),
        ("AGL_TREES_ROOT", "here"),
        ("AGL_SANDBOX", "yes"),
        ("AGL_IDLE_S", "soon"),
        ("AGL_WALL_S", "0"),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, variable: str, text: str) -> None:
    with pytest.raises(InputError, match=f"^{variable} is "):
        resolve({"AGL_HOME": str(tmp_path), variable: text})


@pytest.mark.parametrize("home", ["", "~nobody-of-that-name/x", "a\0b"])
def test_a_home_that_cannot_be_is_refused(home: str) -> None:
    with pytest.raises(InputError):
        resolve({}, home=home)


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(InputError, match="is not a folder; set AGL_HOME"):
        resolve({"AGL_HOME": str(tmp_path / "home")})
