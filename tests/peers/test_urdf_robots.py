"""Every robot of example-robot-data, against Pinocchio."""

from __future__ import annotations

import importlib.metadata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.urdf import FORMAT
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose

pytestmark = pytest.mark.peers

# Files that are broken, and why.
REFUSED = {
    # Its fingers follow joints without the prefix of the hand that they have.
    "alex_psyonic_hands.urdf": {"unknown-joint"},
    # What xacro writes for a file that only defines macros.
    "ur3.urdf": {"no-links"},
}


def robot_files() -> list[Path]:
    try:
        files = importlib.metadata.files("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return []
    found = {
        Path(str(f.locate())).resolve() for f in files or () if f.suffix == ".urdf"
    }
    return sorted(found)


FILES = robot_files()


@cache
def read(path: Path) -> Workcell:
    return FORMAT.read(path.read_bytes(), str(path), ReadOptions(), Report())


def coordinates(manipulator: Manipulator, q: np.ndarray) -> dict[str, float]:
    """The coordinate of every moving joint, followers included, by its name."""
    return {
        link.coordinate: drive.multiplier * q[drive.of] + drive.offset
        for link, drives in zip(manipulator.links, manipulator.drives, strict=True)
        for drive in drives
    }


def poses(manipulator: Manipulator, at: dict[str, float]) -> dict[str, Pose]:
    found: dict[str, Pose] = {}
    for k in manipulator.order:
        link = manipulator.links[k]
        before = IDENTITY if link.parent is None else found[link.parent]
        found[link.name] = before @ link.joint.transform(at.get(link.coordinate, 0.0))
    return found


def assert_same(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    size = np.maximum(1.0, np.abs(expected[:, :3, 3]).max(axis=1))
    errors = np.abs(found - expected).max(axis=(1, 2)) / size
    assert errors.max() < tolerance


def test_all_69_robots_are_here():
    if not FILES:
        pytest.skip("example-robot-data is not installed")
    assert len(FILES) == 69
    assert {path.name for path in FILES} >= REFUSED.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_links_are_where_pinocchio_puts_them(path: Path):
    pin = pytest.importorskip("pinocchio")
    if path.name in REFUSED:
        with pytest.raises(FormatError) as caught:
            read(path)
        found = caught.value.diagnostics
        codes = {d.code for d in found if d.severity is Severity.ERROR}
        assert codes == REFUSED[path.name]
        return
    (manipulator,) = read(path).manipulators
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    names = [link.name for link in manipulator.links]
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in names]
    assert max(frames) < model.nframes
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = rng.uniform(-3.0, 3.0, len(manipulator.joint_names))
        at = coordinates(manipulator, q)
        assert set(at) == set(model.names) - {"universe"}
        pin.framesForwardKinematics(model, data, positions(model, at))
        expected = np.stack([data.oMf[frame].homogeneous for frame in frames])
        found = poses(manipulator, at)
        assert_same(np.stack([found[n].matrix() for n in names]), expected, 1e-9)


def positions(model: Any, at: dict[str, float]) -> np.ndarray:
    """Pinocchio's q: an angle without limits is a cosine and a sine there."""
    result = np.empty(model.nq)
    # The first joint is the universe.
    for name, joint in list(zip(model.names, model.joints, strict=True))[1:]:
        angle = at[name]
        values = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        result[joint.idx_q : joint.idx_q + joint.nq] = values
    return result


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name not in REFUSED], ids=lambda path: path.stem
)
def test_robots_come_back_from_a_file_of_ours(path: Path):
    cell = read(path)
    data = FORMAT.write(cell, Report())
    again = FORMAT.read(data, "again.urdf", ReadOptions(), Report())
    assert again.joint_names == cell.joint_names
    np.testing.assert_array_equal(again.limits, cell.limits)
    (before,), (after,) = cell.manipulators, again.manipulators
    q = np.random.default_rng(1).uniform(-3.0, 3.0, len(cell.joint_names))
    names = [link.name for link in before.links]
    expected, found = (poses(m, coordinates(m, q)) for m in (before, after))
    assert_same(
        np.stack([found[name].matrix() for name in names]),
        np.stack([expected[name].matrix() for name in names]),
        1e-12,
    )
    for link in before.links:
        same = after.link(link.name)
        assert (link.inertia is None) == (same.inertia is None)
        assert len(link.visuals) == len(same.visuals)
        if link.inertia is not None and same.inertia is not None:
            matrix = link.inertia.matrix()
            error = np.abs(same.inertia.matrix() - matrix).max()
            assert error < 1e-12 * max(1.0, np.abs(matrix).max())
