"""Robots by name: found without importing what clones, fetched only on request."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import descriptions

URDF = (
    "<robot name='r'><link name='a'><visual><geometry>"
    "<mesh filename='package://models/m.stl'/></geometry></visual></link></robot>"
)
REPOSITORIES = """
REPOSITORIES: Dict[str, Repository] = {
    "models": Repository(url="https://x.org/m.git", commit="1", cache_path="models"),
    "other": Repository(url="https://x.org/o.git", commit="1", cache_path="other"),
}
"""
HEAD = """
from os import getenv as _getenv
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache

raise SystemExit("modules are not imported")
REPOSITORY_PATH: str = _clone_to_cache("models", commit=_getenv("X", None))
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "robots")
"""
MODULES = {
    "ball_description": 'URDF_PATH: str = _path.join(PACKAGE_PATH, "ball.urdf")',
    "lift_description": """
XACRO_PATH: str = _path.join(PACKAGE_PATH, "lift.urdf.xacro")
XACRO_ARGS = {"height": "0.5"}
SRDF_XACRO_ARGS = XACRO_ARGS.copy()
""",
    "two_description": """
OTHER: str = _clone_to_cache("other")
XACRO_PATH: str = _path.join(PACKAGE_PATH, "lift.urdf.xacro")
XACRO_PACKAGE_PATHS: dict[str, str] = {"other": OTHER}
""",
    "odd++_mj_description": "MJCF_PATH: str = made(PACKAGE_PATH)",
}
LIFT = """<robot name="lift" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="height" default="1"/><link name="base"/><link name="table"/>
<joint name="up" type="prismatic"><parent link="base"/><child link="table"/>
<axis xyz="0 0 1"/>
<limit lower="0" upper="$(arg height)" effort="1" velocity="1"/></joint></robot>"""


def forget() -> None:
    for cached in (descriptions._names, descriptions._repositories):
        cached.cache_clear()


@pytest.fixture
def robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package like robot_descriptions, and an empty cache of repositories."""
    package, cache = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    (package / "_repositories.py").write_text(REPOSITORIES)
    for name, text in MODULES.items():
        (package / f"{name}.py").write_text(HEAD + text)
    monkeypatch.setattr(descriptions, "_folder", lambda: package)
    monkeypatch.setenv(descriptions.CACHE, str(cache))
    monkeypatch.chdir(tmp_path)
    forget()
    yield cache
    monkeypatch.undo()
    forget()


def fill(cache: Path) -> None:
    robots = cache / "models" / "robots"
    robots.mkdir(parents=True)
    (robots / "ball.urdf").write_text(URDF)
    (robots / "lift.urdf.xacro").write_text(LIFT)
    (cache / "models" / "m.stl").write_text(
        "solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n"
        "vertex 0 1 0\nendloop\nendfacet\nendsolid s\n"
    )


def refusal(name: str, **options) -> str:
    with pytest.raises(FormatError) as caught:
        arm.load(name, **options)
    return str(caught.value)


def test_a_robot_that_is_here_is_loaded_with_its_meshes(robots: Path):
    fill(robots)
    cell = arm.load("ball_description")
    (mesh,) = cell.manipulators[0].links[0].visuals
    assert len(cell.meshes.triangles(mesh).faces) == 1


def test_arguments_of_xacro_come_from_the_package_and_the_caller(robots: Path):
    pytest.importorskip("xacro")
    fill(robots)
    assert arm.load("lift_description").limits[1].tolist() == [0.5]
    taller = arm.load("lift_description", arguments={"height": 2.0})
    assert taller.limits[1].tolist() == [2.0]


def test_nothing_is_fetched_unless_asked(robots: Path):
    found = refusal("ball_description")
    assert "error[not-fetched]" in found
    assert f"{robots}/models/robots/ball.urdf is missing" in found
    assert "load('ball_description', fetch=True)" in found
    fill(robots)
    assert f"{robots}/other is missing" in refusal("two_description")
    assert "does not say where the robot is" in refusal("odd++_mj_description")


def test_a_robot_is_fetched_on_request(robots: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def imported(name: str):
        asked.append(name)
        fill(robots)
        return SimpleNamespace(URDF_PATH=str(robots / "models/robots/ball.urdf"))

    monkeypatch.setattr(descriptions, "import_module", imported)
    assert arm.load("ball_description", fetch=True).manipulators[0].name == "r"
    assert asked == ["robot_descriptions.ball_description"]

    def failing(name: str):
        raise OSError("no network")

    monkeypatch.setattr(descriptions, "import_module", failing)
    assert "cannot be fetched: no network" in refusal("ball_description", fetch=True)


def test_a_file_of_the_name_comes_first(robots: Path):
    fill(robots)
    Path("ball_description").write_text(URDF.replace("'r'", "'mine'"))
    assert arm.load("ball_description").manipulators[0].name == "mine"


def test_unknown_names_are_not_files(robots: Path, monkeypatch):
    assert "Did you mean 'ball_description'?" in refusal("bal_description")
    assert "error[no-such-file]" in refusal("ball")
    assert "error[no-such-file]" in refusal("robots/ball_description")
    monkeypatch.setattr(descriptions, "_folder", lambda: None)
    forget()
    assert "pip install 'armillary[descriptions]'" in refusal("ball_description")


def test_the_command_line_takes_names(robots: Path, tmp_path: Path):
    """With the package that is installed, whose cache is empty."""
    pytest.importorskip("robot_descriptions")
    command = [sys.executable, "-m", "armillary", "info", "panda_description"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.returncode != 0
    assert "panda_description --fetch" in done.stderr


def test_every_robot_of_the_package_has_a_file():
    pytest.importorskip("robot_descriptions")
    names = descriptions._names()
    assert len(names) > 150
    without = [
        name
        for name in names
        if not any(descriptions._values(name).get(key) for key in descriptions.FILES)
    ]
    assert without == []
