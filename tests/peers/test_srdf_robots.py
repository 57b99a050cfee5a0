"""Every SRDF of example-robot-data, on its robot, against Pinocchio."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.cell.cell import Cell
from armillary.collision.pairs import applied_rules
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.model.workcell import Workcell

pytestmark = pytest.mark.peers

# The URDF of an SRDF has its name, but for these.
URDFS = {
    "alexander.srdf": "alexander_v1.lowerBodyOnly.urdf",
    "baxter_manipulation.srdf": "baxter.urdf",
    "hyq.srdf": "hyq_no_sensors.urdf",
    "pr2_manipulation.srdf": "pr2.urdf",
    "romeo_moveit.srdf": "romeo.urdf",
    "solo.srdf": "solo12.urdf",
    "talos.srdf": "talos_full_v2.urdf",
    "ur5.srdf": "ur5_robot.urdf",
}
# Robots that come as an SDF alone, or whose URDF is broken.
WITHOUT_URDF = {"cassie_v2.srdf"}
BROKEN_URDF = {"alex_psyonic_hands.srdf": {"unknown-joint"}}


@cache
def files(suffix: str) -> list[Path]:
    try:
        found = importlib.metadata.files("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(
        Path(str(f.locate())).resolve() for f in found or () if f.suffix == suffix
    )


FILES = files(".srdf")
WITH_URDF = [path for path in FILES if path.name not in WITHOUT_URDF]
LOADED = [path for path in WITH_URDF if path.name not in BROKEN_URDF]


def urdf_of(path: Path) -> Path:
    package = path.parents[1]
    name = URDFS.get(path.name, f"{path.stem}.urdf")
    (found,) = [
        each for each in files(".urdf") if each.name == name and package in each.parents
    ]
    return found


@cache
def loaded(path: Path) -> tuple[Workcell, Report]:
    """A robot with its SRDF, read once for all tests."""
    return registry.read(urdf_of(path), srdf=path)


def name_of(path: Path) -> str:
    return f"{path.parents[1].name}-{path.stem}"


def test_all_38_files_are_here():
    if not FILES:
        pytest.skip("example-robot-data is not installed")
    assert len(FILES) == 38
    assert {path.name for path in FILES} >= {*WITHOUT_URDF, *BROKEN_URDF}


def test_what_is_found_in_them_is_written_down(golden: Callable[[str, str], None]):
    if not FILES:
        pytest.skip("example-robot-data is not installed")
    lines: list[str] = []
    for path in FILES:
        if path.name in WITHOUT_URDF:
            lines.append(f"{name_of(path)}: no URDF")
            continue
        try:
            cell, report = loaded(path)
        except FormatError as error:
            found = error.diagnostics
            codes = {d.code for d in found if d.severity is Severity.ERROR}
            assert codes == BROKEN_URDF[path.name]
            lines.append(f"{name_of(path)}: its URDF is refused: {', '.join(codes)}")
            continue
        (robot,) = cell.manipulators
        lines.append(
            f"{name_of(path)}: {len(robot.groups)} groups, {len(robot.postures)} "
            f"postures, {len(Cell.of(cell).pairs(Cell.of(cell).home))} pairs"
        )
        counts = Counter(
            f"{d.severity.value}[{d.code}]"
            for d in report.diagnostics
            if d.place.path == str(path)
        )
        lines += [f"    {count} {kind}" for kind, count in counts.items()]
    golden("srdf_robots.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("path", LOADED, ids=name_of)
def test_they_come_back_from_a_file_of_ours(path: Path, tmp_path: Path):
    urdf = urdf_of(path)
    cell, _ = loaded(path)
    saved = registry.save(cell, tmp_path / "again.srdf")
    again, _ = registry.read(urdf, srdf=tmp_path / "again.srdf")
    (before,), (after,) = cell.manipulators, again.manipulators
    assert again.mounts == cell.mounts
    assert after.postures == before.postures
    assert after.links == before.links
    assert after.properties == before.properties
    added = sum(d.code == "group-added" for d in saved.diagnostics)
    kept = {group.name for group in before.groups}
    assert tuple(g for g in after.groups if g.name in kept) == before.groups
    assert len(after.groups) == len(before.groups) + added
    cells = [Cell.of(each) for each in (cell, again)]
    assert cells[0].pairs(cells[0].home) == cells[1].pairs(cells[1].home)
    data, _ = registry.write(again, format="srdf")
    assert data == (tmp_path / "again.srdf").read_bytes()


@pytest.mark.parametrize("path", LOADED, ids=name_of)
def test_pairs_are_those_of_pinocchio(path: Path):
    pin = pytest.importorskip("pinocchio")
    urdf = urdf_of(path)
    cell, _ = loaded(path)
    model = pin.buildModelFromUrdf(str(urdf))
    geometry = pin.buildGeomFromUrdf(
        model,
        str(urdf),
        pin.GeometryType.COLLISION,
        package_dirs=[str(urdf.parents[4])],
    )
    geometry.addAllCollisionPairs()
    pin.removeCollisionPairs(model, geometry, str(path))
    expected = {pair for pair in _linked(model, geometry) if pair[0] != pair[1]}
    found = Cell.of(cell)
    pairs = {
        (a.split("/", 1)[1], b.split("/", 1)[1]) for a, b in found.pairs(found.home)
    }
    (robot,) = cell.manipulators
    drawn = {link.name for link in robot.links if not link.collisions}
    pairs = {pair for pair in pairs if not drawn.intersection(pair)}
    if any(rule.reason == "srdf" for rule in cell.rules.rules):
        assert pairs == expected
        assert pairs
        return
    # Nothing is said: all pairs but those that share a joint or touch at home.
    assert pairs <= expected
    home = applied_rules(cell, None, None).home_pairs
    at_home = {(a.split("/", 1)[1], b.split("/", 1)[1]) for a, b in home}
    joined = _joined(model, geometry)
    assert {pair for pair in expected - pairs if pair not in joined} <= at_home
    assert not at_home & pairs


def _joined(model: Any, geometry: Any) -> set[tuple[str, str]]:
    """The pairs of links on both sides of a joint, over bodies without shapes."""
    frames = [model.frames[each.parentFrame] for each in geometry.geometryObjects]
    shaped = {each.parentJoint for each in frames}

    def below(joint: int) -> int:
        joint = model.parents[joint]
        while joint and joint not in shaped:
            joint = model.parents[joint]
        return joint

    return {
        tuple(sorted((a.name, b.name)))  # type: ignore[misc]
        for a in frames
        for b in frames
        if a.parentJoint and below(a.parentJoint) == b.parentJoint
    }


def _linked(model: Any, geometry: Any) -> set[tuple[str, str]]:
    """The pairs of links that Pinocchio's pairs of shapes are on."""
    names = [model.frames[each.parentFrame].name for each in geometry.geometryObjects]
    return {
        tuple(sorted((names[pair.first], names[pair.second])))  # type: ignore[misc]
        for pair in geometry.collisionPairs
    }


@pytest.mark.parametrize("path", LOADED, ids=name_of)
def test_postures_are_those_of_pinocchio(path: Path):
    pin = pytest.importorskip("pinocchio")
    urdf = urdf_of(path)
    (robot,) = loaded(path)[0].manipulators
    model = pin.buildModelFromUrdf(str(urdf))
    pin.loadReferenceConfigurations(model, str(path), False)
    theirs = {each.key(): each.data() for each in model.referenceConfigurations}
    ours = {posture.name: posture for posture in robot.postures}
    assert set(ours) == set(theirs)
    for name, q in theirs.items():
        for joint, position in zip(ours[name].joints, ours[name].q, strict=True):
            each = model.joints[model.getJointId(joint)]
            values = q[each.idx_q : each.idx_q + each.nq]
            wanted = (
                [position] if each.nq == 1 else [np.cos(position), np.sin(position)]
            )
            np.testing.assert_allclose(values, wanted, atol=1e-12)
