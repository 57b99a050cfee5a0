"""Cells as stages of USD, judged by the library's validators and poses."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.errors import FormatError, ModelError
from armillary.formats import registry
from armillary.formats.usd.write_joints import axis_turn
from armillary.model.coupling import Coupling
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.limits import Limits
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from usd_stages import pxr, stage_poses

pytest.importorskip("pxr")

TURNED = arm.Pose.from_rpy(0.3, -0.5, 1.1, (0.1, 0.2, 0.3))


def robot() -> arm.Cell:
    """An arm on a table, with most of what a stage holds."""
    shapes = arm.shapes
    inertia = SpatialInertia.from_centre(
        2.0, (0.1, 0.0, 0.05), np.diag([0.01, 0.02, 0.025])
    ).transformed(TURNED)
    links = [
        arm.Link(
            name="base",
            visuals=[shapes.Cylinder(name="foot", radius=0.1, length=0.2)],
            collisions=[shapes.Box(name="hull", size=(0.2, 0.2, 0.3))],
        ),
        arm.Link(
            name="upper arm",
            parent="base",
            joint=arm.joints.Revolute(axis=(0.6, 0.0, 0.8), precursor=TURNED),
            joint_name="shoulder/1",
            limits=Limits(lower=-1.0, upper=2.0, velocity=1.5, effort=30.0),
            dynamics=JointDynamics(motor_inertia=0.2, damping=0.5, friction=0.1),
            inertia=inertia,
            collisions=[
                shapes.Capsule(
                    name="bone",
                    radius=0.05,
                    length=0.3,
                    pose=TURNED,
                    colour=(0.25, 0.5, 1.0, 0.5),
                ),
                shapes.Cone(name="tip", bottom=0.1, top=0.05, length=0.2),
            ],
            frames=[arm.Frame(name="tool", pose=TURNED, end_effector=True)],
        ),
        arm.Link(
            name="left",
            parent="upper arm",
            joint=arm.joints.Prismatic(axis=(0.0, -1.0, 0.0)),
            limits=Limits(lower=0.0, upper=0.04),
            collisions=[shapes.Sphere(name="ball", radius=0.02)],
        ),
        arm.Link(
            name="right",
            parent="upper arm",
            joint=arm.joints.Prismatic(axis=(0.0, 1.0, 0.0)),
            coupling=Coupling(of="left", multiplier=-0.5, offset=0.25),
            collisions=[shapes.Ellipsoid(name="egg", radii=(0.1, 0.2, 0.3))],
        ),
    ]
    table = arm.Link(
        name="table", collisions=[shapes.Box(name="top", size=(1.0, 2.0, 0.05))]
    )
    cell = arm.Cell(
        name="lab",
        manipulators=[
            arm.Manipulator(name="robot", links=links),
            arm.Manipulator(name="desk", links=[table]),
        ],
    )
    cell = cell.mount("desk", pose=arm.Pose.translation(0.0, 0.0, -0.1))
    return cell.mount("robot", on="desk/table", pose=TURNED)


def saved(cell: Any, folder: Path, name: str = "lab.usda", **options: Any) -> Path:
    path = folder / name
    arm.save(cell, path, **options)
    return path


def complaints(path: Path) -> list[str]:
    """What all validators of the library say."""
    validation = pxr("UsdValidation")
    validators = validation.ValidationRegistry().GetOrLoadAllValidators()
    context = validation.ValidationContext(validators)
    stage = pxr("Usd").Stage.Open(str(path))
    return [each.GetMessage() for each in context.Validate(stage)]


def without_files(cell: Workcell) -> Workcell:
    """A cell whose meshes do not say in which file they are."""

    def plain(shape: Any) -> Any:
        if not hasattr(shape, "file"):
            return shape
        return msgspec.structs.replace(shape, file=shape.file.partition("#")[2])

    def bare(link: arm.Link) -> arm.Link:
        return link.replace(
            visuals=tuple(map(plain, link.visuals)),
            collisions=tuple(map(plain, link.collisions)),
        )

    made = tuple(
        each.replace(links=tuple(map(bare, each.links))) for each in cell.manipulators
    )
    return cell.replace(manipulators=made)


def test_a_cell_comes_back_and_no_validator_complains(tmp_path: Path) -> None:
    cell = robot()
    path = saved(cell, tmp_path)
    assert complaints(path) == []
    back = arm.load(path)
    assert back.joint_names == cell.joint_names
    assert [m.name for m in back.workcell.manipulators] == ["robot", "desk"]
    for q in ([0.0, 0.0], [0.7, 0.03]):
        for frame in ("upper arm", "tool", "left", "right", "table"):
            assert np.allclose(back.fk(frame)(q), cell.fk(frame)(q), atol=3e-7)
    for one, other in zip(
        cell.workcell.manipulators[0].links,
        back.workcell.manipulators[0].links,
        strict=True,
    ):
        assert one.coordinate == other.coordinate
        assert other.dynamics.armature == pytest.approx(one.dynamics.armature)
        for name in ("damping", "friction"):
            known = getattr(one.dynamics, name)
            assert getattr(other.dynamics, name) == pytest.approx(known, rel=1e-6)
        for name in ("lower", "upper", "velocity", "effort"):
            known = getattr(one.limits, name)
            assert getattr(other.limits, name) == pytest.approx(known, rel=1e-6)
        assert len(one.collisions) == len(other.collisions)
    upper = back.workcell.manipulators[0].links[1]
    known = cell.workcell.manipulators[0].links[1]
    assert upper.inertia is not None and known.inertia is not None
    assert np.allclose(upper.inertia.parameters, known.inertia.parameters, atol=1e-6)
    assert upper.collisions[0].colour == pytest.approx((0.25, 0.5, 1.0, 0.5))
    assert upper.frames[0].end_effector
    coupling = back.workcell.manipulators[0].links[3].coupling
    assert coupling is not None
    assert (coupling.of, coupling.multiplier, coupling.offset) == ("left", -0.5, 0.25)
    # The stage is where the cell is.
    places = stage_poses(path)
    X = cell.fk("upper arm")([0.0, 0.0])
    assert np.allclose(places["/lab/robot/upper_arm"], X, atol=1e-12)


@pytest.mark.parametrize("ending", [".usda", ".usdc", ".usdz"])
def test_what_was_read_is_read_again(tmp_path: Path, ending: str) -> None:
    first = arm.load(saved(robot(), tmp_path))
    second = arm.load(saved(first, tmp_path, f"again{ending}"))
    one, other = map(without_files, (first.workcell, second.workcell))
    assert one.approx_equal(other, 1e-6)
    assert one.rules == other.rules and one.mounts[0].on == other.mounts[0].on


def test_joints_named_as_their_links_come_back_where_axes_are_inclined(
    tmp_path: Path,
) -> None:
    cell = arm.example("ur5e_on_oval")
    names = [f"ur5e/wrist_{k}.{field}" for k in (1, 2, 3) for field in ("d", "alpha")]
    value = cell.parameters(names)
    cell = cell.with_parameters({name: value[name] + 1e-3 for name in names})
    path = tmp_path / "calibrated.usda"
    arm.save(cell, path)
    again = arm.load(path)
    q = np.linspace(-1.0, 1.0, 6)
    X = cell.fk("tool0", joints=again.joint_names)(q)
    assert np.allclose(again.fk("tool0")(q), X, atol=1e-6)


def test_loops_stay_closed(tmp_path: Path) -> None:
    cell = arm.example("five_bar")
    path = saved(cell, tmp_path)
    assert complaints(path) == []
    back = arm.load(path)
    assert back.joint_names == cell.joint_names
    assert back.workcell.passive_names == cell.workcell.passive_names
    q = cell.home.q + 0.1
    assert np.allclose(back.fk("tool")(q), cell.fk("tool")(q), atol=1e-7)
    again = arm.load(saved(back, tmp_path, "again.usda"))
    assert again.workcell.approx_equal(back.workcell, 1e-6)


def test_meshes_are_inside_with_their_colours(tmp_path: Path) -> None:
    (tmp_path / "two.mtl").write_text("newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 1\n")
    (tmp_path / "two.obj").write_text(
        "mtllib two.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
        "usemtl red\nf 1 3 2\nf 1 2 4\nusemtl blue\nf 1 4 3\nf 2 3 4\n"
    )
    (tmp_path / "two.urdf").write_text(
        '<robot name="two"><link name="body"><visual><geometry>'
        '<mesh filename="two.obj" scale="1 -2 1"/></geometry></visual>'
        '<collision><geometry><mesh filename="two.obj"/></geometry></collision>'
        "</link></robot>"
    )
    cell = arm.load(tmp_path / "two.urdf")
    away = tmp_path / "away"
    away.mkdir()
    path = saved(cell, away, "two.usdc")
    assert complaints(path) == []
    back = arm.load(path)
    (link,) = back.workcell.manipulators[0].links
    (drawn,), (touching,) = link.visuals, link.collisions
    assert back.meshes is not None
    parts = back.meshes.parts(drawn)
    assert parts is not None
    assert [part.colour for part in parts] == [(1, 0, 0, 1), (0, 0, 1, 1)]
    solid = back.meshes.triangles(drawn)
    assert solid is not None and solid.moments.volume == pytest.approx(1.0 / 3.0)
    hull = back.meshes.hull(touching)
    assert hull is not None and hull.volume == pytest.approx(1.0 / 6.0, rel=0.05)


def test_a_motion_is_an_animation(tmp_path: Path) -> None:
    cell = robot()
    times = np.linspace(0.0, 1.0, 11)
    Q = np.stack([np.sin(3.0 * times), 0.03 * times], axis=1)
    Qd = np.stack([3.0 * np.cos(3.0 * times), np.full(11, 0.03)], axis=1)
    motion = arm.Motion.through(times, Q, Qd, start=cell.home)
    path = saved(cell, tmp_path, motions={"wave": motion}, rate=25.0)
    assert complaints(path) == []
    stage = pxr("Usd").Stage.Open(str(path))
    assert stage.GetTimeCodesPerSecond() == 25.0
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 25.0)
    prim = stage.GetPrimAtPath("/lab/robot/upper_arm")
    for code in (0.0, 10.0, 25.0):
        cache = pxr("UsdGeom").XformCache(code)
        X = np.array(cache.GetLocalToWorldTransform(prim)).T
        q = motion.at(code / 25.0).q
        assert np.allclose(X, cell.fk("upper arm")(q), atol=1e-12)
    # Quaternions are continuous, so that players turn the short way.
    orient = pxr("UsdGeom").Xformable(prim).GetOrderedXformOps()[1]
    samples = [orient.Get(code) for code in orient.GetTimeSamples()]
    rows = np.array([[s.GetReal(), *s.GetImaginary()] for s in samples])
    assert (np.einsum("ij,ij->i", rows[1:], rows[:-1]) > 0.9).all()
    still = pxr("UsdGeom").Xformable(stage.GetPrimAtPath("/lab/desk/table"))
    assert still.GetOrderedXformOps()[0].GetNumTimeSamples() == 0
    with pytest.raises(ModelError, match="A rate is for formats that sample a mot"):
        arm.save(cell, tmp_path / "lab.urdf", motions={"wave": motion}, rate=25.0)
    report = arm.save(cell, tmp_path / "lab.urdf", motions={"wave": motion})
    assert any("a motion" in each.message for each in report.diagnostics)


def test_a_timeline_is_an_animation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts appear on a conveyor, are gripped and leave, as in the run."""
    box = arm.shapes.Box(size=(0.1, 0.1, 0.1))
    slide = arm.joints.Prismatic(axis=(0, 0, 1))
    names = ("crane", "belt", "part", "never")
    cell = arm.Cell(
        name="lab",
        manipulators=[
            arm.Manipulator(
                name="crane",
                links=[
                    arm.Link(name="post"),
                    arm.Link(name="hook", parent="post", joint=slide, visuals=[box]),
                ],
            ),
            arm.Manipulator(
                name="belt",
                links=[
                    arm.Link(name="bed"),
                    arm.Link(
                        name="carrier",
                        parent="bed",
                        joint=arm.joints.Prismatic(axis=(1, 0, 0)),
                    ),
                ],
            ),
            *(
                arm.Manipulator(name=k, links=[arm.Link(name="body", visuals=[box])])
                for k in names[2:]
            ),
        ],
    )
    steps = arm.steps
    program = arm.Program(
        {
            "crane": [
                steps.Drive(joint="belt/carrier", speed=0.5),
                steps.Wait(seconds=0.31),
                steps.Appear(
                    part="part", at=arm.Pose.translation(0, 0, 0), on="belt/carrier"
                ),
                steps.Wait(seconds=0.4),
                steps.Grip(part="part", by="hook", within=1.0),
                steps.PTP(to=(0.5,)),
                steps.Release(part="part", onto="belt/carrier"),
                steps.Wait(seconds=0.23),
                steps.Leave(part="part"),
                steps.Wait(seconds=0.3),
                steps.Appear(part="part", at=TURNED),
            ]
        },
        joints={"crane": ("hook",)},
        absent=("part", "never"),
    )
    timeline = cell.run(program, velocity=1.0, acceleration=5.0)
    assert timeline.success, timeline.failure
    path = tmp_path / "lab.usda"
    with monkeypatch.context() as patch:  # contacts and loads are not asked for
        patch.delattr(type(timeline), "marks")
        arm.save(cell, path, motions={"cycle": timeline}, rate=20.0)
    assert complaints(path) == []
    stage = pxr("Usd").Stage.Open(str(path))
    assert stage.GetTimeCodesPerSecond() == 20.0
    assert stage.GetEndTimeCode() == pytest.approx(20.0 * timeline.duration)
    events = [event.time for event in timeline.events]
    instants = [*np.arange(0.0, timeline.duration, 0.05), *events]
    before = [time - 1e-9 for time in events if time > 0.0]
    for time in sorted(instants + before):
        cache = pxr("UsdGeom").XformCache(20.0 * time)
        state, absent = timeline.state(time), timeline.absent(time)
        for name in names[2:]:
            prim = stage.GetPrimAtPath(f"/lab/{name}/body")
            seen = pxr("UsdGeom").Imageable(prim).ComputeVisibility(20.0 * time)
            assert (seen == "invisible") == (name in absent), (name, time)
            if name not in absent:
                X = np.array(cache.GetLocalToWorldTransform(prim)).T
                assert np.allclose(X, cell.pose(f"{name}/body", state), atol=1e-7)
    # What appears later is part of the cell; what is never there is not.
    back = {each.name: each for each in arm.load(path).manipulators}
    assert back["part"].links[0].visuals
    assert not back["never"].links[0].visuals
    with pytest.raises(ModelError, match=r"is a Timeline; .*timeline\.motion"):
        arm.save(cell, tmp_path / "lab.cell.zip", motions={"cycle": timeline})


def test_a_stage_holds_one_motion(tmp_path: Path) -> None:
    cell = robot()
    motion = arm.Motion.through([0.0, 1.0], np.zeros((2, 2)), np.zeros((2, 2)))
    two = {"there": motion, "back": motion}
    with pytest.raises(ModelError, match="holds one motion, not 2: 'there', 'back'"):
        saved(cell, tmp_path, motions=two)
    with pytest.raises(ModelError, match="a motion for each name"):
        saved(cell, tmp_path, motions=motion)
    with pytest.raises(ModelError, match=r"000000 poses of links.*lower rate="):
        arm.save(cell, tmp_path / "x.usda", motions={"there": motion}, rate=1e12)
    # Those that came with a cell were not asked for: they are lost, with a warning.
    arm.save(cell, tmp_path / "lab.cell.zip", motions=two)
    report = arm.save(arm.load(tmp_path / "lab.cell.zip"), tmp_path / "two.usda")
    assert any(
        "a motion is not kept (2 times)" in each.message for each in report.diagnostics
    )
    assert b"timeSamples" not in (tmp_path / "two.usda").read_bytes()


def test_what_a_stage_cannot_hold_is_listed(tmp_path: Path) -> None:
    cell = arm.example("ur5e_on_oval")
    report = arm.save(cell, tmp_path / "oval.usda")
    found = [each.code for each in report.diagnostics]
    assert "joint-type" in found
    back = arm.load(tmp_path / "oval.usda")
    assert back.joint_names == cell.joint_names[1:]
    with pytest.raises(FormatError, match="cannot hold all"):
        arm.save(cell, tmp_path / "oval.usda", lossless=True)
    assert "OvalTrack" in str(report.diagnostics[found.index("joint-type")])


def test_pairs_that_are_not_tested_are_filtered(tmp_path: Path) -> None:
    cell = robot()
    rules = cell.rules.include_self("robot").exclude("robot/left", "desk/table")
    cell = arm.Cell.of(cell.workcell.replace(rules=rules))
    before = set(cell.pairs(cell.home))
    back = arm.load(saved(cell, tmp_path))
    assert set(back.pairs(back.home)) == before
    # Links next to each other are tested where a rule says so.
    pair = "robot/base", "robot/upper arm"
    assert pair not in before
    tested = arm.Cell.of(cell.workcell.replace(rules=rules.include(*pair)))
    back = arm.load(saved(tested, tmp_path))
    assert set(back.pairs(back.home)) == {pair} | before
    alone = arm.load(saved(robot(), tmp_path))
    assert set(alone.pairs(alone.home)) == set(robot().pairs(robot().home))


@pytest.mark.parametrize("axis", [(0, 0, -1), (-1, 0, 0), (0.36, 0.48, -0.8)])
def test_axes_become_letters_and_turns(axis: tuple[float, float, float]) -> None:
    letter, turn = axis_turn(axis)
    straight = {"X": (1, 0, 0), "Y": (0, 1, 0), "Z": (0, 0, 1)}[letter]
    assert turn.rotate(straight) == pytest.approx(axis, abs=1e-15)
    assert abs(np.linalg.det(np.array(turn.rotation)) - 1.0) < 1e-12


def test_text_is_text_and_binary_is_binary(tmp_path: Path) -> None:
    data, _ = registry.write(robot().workcell, format="usd")
    assert data.startswith(b"#usda 1.0")
    assert saved(robot(), tmp_path, "a.usd").read_bytes().startswith(b"PXR-USDC")
    assert os.path.getsize(tmp_path / "a.usd") < 64_000
    assert math.isclose(1.0, arm.load(tmp_path / "a.usd").home.q.size / 2.0)


def test_joints_whose_limits_exclude_zero_are_placed_within_them(tmp_path: Path):
    """Simulators begin where bodies are, and push joints out of limits back hard."""
    path = tmp_path / "a.usda"
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="tip",
            parent="base",
            joint=arm.joints.Prismatic(axis=(1.0, 0.0, 0.0)),
            limits=Limits(lower=0.25, upper=1.0),
            collisions=[arm.shapes.Box(size=(0.1, 0.1, 0.1))],
        ),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="a", links=links)])
    arm.save(cell, path)
    at = stage_poses(path)["/cell/a/tip"]
    assert at[0, 3] == 0.25
    back, report = registry.read(path)
    assert back.manipulators[0].postures == () and back.home_q == (0.25,)
    assert not [d for d in report.diagnostics if d.code == "home"]
    # Of a stage of others that is at zero it is said.
    text = path.read_text().replace("lowerLimit = 0.25", "lowerLimit = 0.5")
    path.write_text(text.replace("0.25", "0"))
    back, report = registry.read(path)
    (found,) = [d for d in report.diagnostics if d.code == "home"]
    assert "'tip' is placed at 0, outside of its limits from 0.5 to 1" in str(found)
    assert back.home_q == (0.5,)


def test_names_of_links_that_bodies_take_are_said_to_be_lost(tmp_path: Path):
    """Readers of stages know bodies and joints, and no bare links between them."""
    turn = arm.joints.Revolute(axis=(0.0, 0.0, 1.0))
    ahead = arm.joints.Fixed(precursor=arm.Pose.translation(1.0, 0.0, 0.0))
    box = arm.shapes.Box(size=(0.1, 0.1, 0.1))

    def losses(name: str) -> list[str]:
        links = [
            arm.Link(name="base", collisions=[box]),
            arm.Link(name=name, parent="base", joint=turn, joint_name="j"),
            arm.Link(name="tip", parent=name, joint=ahead, collisions=[box]),
        ]
        cell = arm.Cell(manipulators=[arm.Manipulator(name="a", links=links)])
        report = arm.save(cell, tmp_path / "a.usda")
        back = arm.load(tmp_path / "a.usda")
        assert back.joint_names == ("j",)
        assert back.manipulators[0].links[1].name == "tip_pivot"
        return [d.message for d in report.diagnostics]

    assert losses("tip_pivot") == []
    (lost,) = losses("axle")
    assert lost.startswith("the name of a link that is nothing but the end of a joint")
