"""Type checkers of users see what the package accepts and returns."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

USER = """
import numpy as np
import numpy.typing as npt
import armillary as arm


class Circle(arm.Joint):
    radius: float
    unit = arm.METRE

    def pose(self, q):
        X = arm.Pose.rotation_z(q / self.radius)
        return X @ arm.Pose.translation(self.radius, 0, 0)


tip = arm.Link(
    name="tip",
    parent="base",
    joint=Circle(radius=1.0),
    frames=[arm.Frame(name="tcp")],
)
body = arm.Manipulator(name="m", links=[arm.Link(name="base"), tip])
mount = arm.Mount(manipulator="m", pose=arm.Pose.translation(0, 0, 1))
cell = arm.Cell(manipulators=[body], mounts=[mount])
links: tuple[arm.Link, ...] = body.links
X: npt.NDArray[np.float64] = cell.fk("tcp")(np.zeros(1))
height: float = X[..., 2, 3].max()
found = cell.ik("tcp")(X, search_options=arm.SearchOptions(starts=3))
solved = found.reason == arm.Reason.SOLVED
again: arm.Cell = cell.replace(rules=arm.Rules(touches=[]))
version: str = arm.__version__
joint = arm.joints.Revolute(axis=[0, 0, 1])
axis: tuple[float, float, float] = joint.axis
track = arm.joints.Curve(points=[[0, 0, 0], [1, 0, 0]], up=np.array([0.0, 0.0, 1.0]))
hull = arm.shapes.ConvexPolyhedron(
    vertices=np.vstack([np.zeros(3), np.eye(3)]), colour=[1, 0, 0, 1]
)
state = arm.State(q=[0.5])
"""
WRONG = """
import armillary as arm

body = arm.Manipulator(name="m", links=["base"])
body.links = ()
arm.joints.Revolute(axis=3)
shape = arm.Cell().fk("world")("text").sape
"""
FILES = {"user.py": USER, "wrong.py": WRONG}


@pytest.fixture(name="errors", scope="module")
def errors_fixture(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines in which pyright finds an error, by the name of the file."""
    folder = tmp_path_factory.mktemp("typing")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if pyright is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run(
        [pyright, "--outputjson", "--pythonpath", sys.executable, *FILES],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not run here: {done.stderr}")
    errors: dict[str, list[int]] = {name: [] for name in FILES}
    for each in json.loads(done.stdout)["generalDiagnostics"]:
        errors[Path(each["file"]).name].append(each["range"]["start"]["line"])
    return errors


def test_the_package_is_marked_as_typed():
    assert (files("armillary") / "py.typed").is_file()


def test_a_users_file_passes(errors: dict[str, list[int]]):
    assert errors["user.py"] == []
    exec(compile(USER, "user.py", "exec", dont_inherit=True), {})


def test_mistakes_are_found(errors: dict[str, list[int]]):
    assert errors["wrong.py"] == [3, 4, 5, 6]
