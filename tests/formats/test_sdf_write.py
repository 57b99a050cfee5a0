"""SDF out: what is written reads back as an equal cell, and what is lost is told."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.sdf import FORMAT
from armillary.formats.sdf.elements import ELEMENTS
from armillary.formats.xml import parse
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import CircleTrack, PaulRevolute, Screw
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.shapes import Capsule, Cone, Ellipsoid, HalfSpace, Sphere
from armillary.model.workcell import DEFAULT_RULES, Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from four_bar import linked_arms

TOLERANCE = 1e-12


def write(cell: Workcell) -> tuple[str, Report]:
    report = Report()
    return FORMAT.write(cell, report).decode(), report


def again(cell: Workcell) -> Workcell:
    text, _ = write(cell)
    return FORMAT.read(text.encode(), "x.sdf", ReadOptions(), Report(strict=True))


def warnings(cell: Workcell) -> list[str]:
    _, report = write(cell)
    found = [d for d in report.diagnostics if d.severity is Severity.WARNING]
    return [d.message for d in found]


def pose(seed: int) -> Pose:
    numbers = np.random.default_rng(seed).normal(size=7)
    return Pose.from_quaternion(numbers[:4], numbers[4:])


def tree(*links: Link, **fields: Any) -> Manipulator:
    return Manipulator(name="m", links=links, **fields)


def cell_of(*manipulators: Manipulator, **fields: Any) -> Workcell:
    return Workcell(name="lab", manipulators=manipulators, **fields)


BASE = Link(name="base")


def carried(name: str, joint: Any, parent: str = "base", **fields: Any) -> Link:
    return Link(name=name, parent=parent, joint=joint, joint_name=f"{name}_j", **fields)


ARM = tree(
    Link(
        name="base",
        frames=[Frame(name="eye", pose=pose(1))],
        visuals=[Sphere(radius=0.1, colour=(1, 0.5, 0, 1)), Sphere(radius=0.2)],
        collisions=[HalfSpace(pose=pose(2)), Ellipsoid(radii=(1, 2, 3), name="e")],
    ),
    carried(
        "upper",
        Revolute(axis=(0.6, 0, 0.8), precursor=pose(3)),
        limits=Limits(lower=-1, upper=2, velocity=3, effort=40),
        dynamics=JointDynamics(damping=1, friction=2, stiffness=3, rest=0.5),
        inertia=SpatialInertia.from_centre(2.0, (0.1, 0, 0), np.eye(3)),
        collisions=[Capsule(radius=0.1, length=1), Cone(bottom=0.1, length=0.3)],
    ),
    carried(
        "slide",
        Prismatic(axis=(0, 1, 0), precursor=pose(4)),
        "upper",
        dynamics=JointDynamics(motor_inertia=1e-4, gear_ratio=30),
    ),
    carried("screw", Screw(pitch=0.01, axis=(0, 0, 1), precursor=pose(5)), "slide"),
    carried(
        "finger",
        Prismatic(axis=(1, 0, 0)),
        "screw",
        coupling=Coupling(of="slide_j", multiplier=-2, offset=0.25),
    ),
    Link(name="tip", parent="finger", joint=Fixed(precursor=pose(6))),
)


def test_a_robot_is_read_again():
    robot = cell_of(ARM).replace(name="m")
    assert again(robot).approx_equal(robot, TOLERANCE)
    assert write(robot)[0].count("<world") == 0
    assert warnings(robot) == []


def test_a_cell_is_read_again():
    table = Manipulator(
        name="table",
        links=(Link(name="top", frames=[Frame(name="corner", pose=pose(7))]),),
    )
    part = Manipulator(name="part", links=(Link(name="top"),))
    lone = Manipulator(name="lone", links=(Link(name="top"),))
    held = Manipulator(name="held", links=(BASE, carried("a", Revolute())))
    cell = cell_of(
        table,
        ARM,
        part,
        lone,
        held,
        mounts=[
            Mount(manipulator="table", pose=pose(8)),
            Mount(manipulator="m", on="table/corner", pose=pose(9)),
            Mount(manipulator="part", on="table/corner", pose=pose(10), bolted=False),
            Mount(manipulator="held", pose=pose(11)),
        ],
        rules=DEFAULT_RULES.include_self("m"),
    )
    assert again(cell).approx_equal(cell, TOLERANCE)
    assert warnings(cell) == []


def test_names_that_sdf_cannot_have_are_kept():
    links = (
        Link(name="__model__"),
        Link(name="a::b", parent="__model__", joint=Revolute()),
        Link(name="a__b", parent="a::b", joint=Revolute(), joint_name="world"),
        BASE.replace(parent="a__b", joint=Fixed()),
    )
    cell = cell_of(Manipulator(name="x::y", links=links))
    assert again(cell) == cell
    names = [
        element.attributes["name"]
        for element in parse(write(cell)[0].encode(), "x").walk()
        if element.name in {"model", "link", "joint", "frame"}
    ]
    assert not any("::" in name or name in {"__model__", "world"} for name in names)
    assert len(set(names)) == len(names)


def split(joint: str, axes: str = "") -> str:
    return f"""<sdf version="1.11"><model name="m"><link name="a"/>
    <link name="b"><pose>0 1 0 0.3 0.2 0.1</pose></link>
    <self_collide>false</self_collide>
    <joint name="j" type="{joint}"><parent>a</parent><child>b</child>{axes}</joint>
    </model></sdf>"""


AXES = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>{} 0 1</xyz></axis2>"


@pytest.mark.parametrize(
    ("kind", "axes"),
    [
        ("ball", ""),
        ("universal", AXES.format(0)),
        ("revolute2", AXES.format(1)),
        ("revolute", "<pose>0 0 1 0 0 0</pose><axis><xyz>1 0 0</xyz></axis>"),
    ],
)
def test_what_reading_splits_is_one_joint_again(kind: str, axes: str):
    def read(text: str) -> Workcell:
        return FORMAT.read(text.encode(), "x.sdf", ReadOptions(), Report())

    cell = read(split(kind, axes))
    text, _ = write(cell)
    joints = parse(text.encode(), "x").children[0].children_named("joint")
    written = {"revolute": "continuous"}.get(kind, kind)
    assert [each.attributes["type"] for each in joints] == [written]
    assert read(text).approx_equal(cell, TOLERANCE)


def four_bar(at: float) -> Manipulator:
    """A parallelogram; where `at` is not 0 it closes elsewhere than at zero."""
    turn = Revolute(axis=(0, 1, 0))
    up = Pose.translation(0, 0, 1)
    return Manipulator(
        name="bars",
        links=(
            BASE,
            carried("crank", turn),
            carried(
                "bar",
                turn.replace(precursor=up),
                "crank",
                frames=[Frame(name="end", pose=Pose.translation(2, 0, 0))],
            ),
            carried(
                "rocker",
                turn.replace(precursor=Pose.translation(2, 0, at)),
                frames=[Frame(name="top", pose=up)],
            ),
        ),
        loops=[Closure("end", "top", rotation="xz", name="pin")],
    )


def test_loops_are_joints():
    closed = cell_of(four_bar(0.0))
    assert again(closed).approx_equal(closed, TOLERANCE)
    assert warnings(closed) == []


def rod_between() -> Workcell:
    """Return two manipulators that a rod connects."""
    ends = (carried("a", Revolute(), frames=[Frame(name="end", pose=pose(1))]), BASE)
    other = Manipulator(
        name="n", links=[BASE, carried("b", Revolute(precursor=pose(2)))]
    )
    rod = Rod("m/end", "n/b", length=2.0, name="rod")
    return cell_of(tree(*ends), other, loops=[rod])


# Cells whose loops are open where all joints are at zero, and with rods.
EXAMPLES = "stewart", "delta", "palletiser", "five_bar", "two_finger_gripper"
CLOSED: dict[str, Callable[[], Workcell]] = {
    **{name: (lambda name=name: arm.example(name).workcell) for name in EXAMPLES},
    "between": lambda: linked_arms().workcell,
    "rod between": rod_between,
}
MARKS = re.compile(r' (xmlns:)?armillary(:\w+)?="[^"]*"')


def plain(cell: Workcell) -> arm.Cell:
    """Return what moves of a cell: links, mounts and loops."""
    held = {"manipulators": cell.manipulators, "mounts": cell.mounts}
    return arm.Cell(**held, loops=cell.loops)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_loops_are_read_again(name: str):
    cell = CLOSED[name]()
    assert not any("loop" in each for each in warnings(cell))
    old, new = plain(cell), plain(again(cell))
    assert new.joint_names == old.joint_names
    assert new.passive_names == old.passive_names
    assert new.workcell.loops == old.workcell.loops
    pairs = zip(new.workcell.manipulators, old.workcell.manipulators, strict=True)
    assert all(a.loops == b.loops for a, b in pairs)
    assert np.allclose(new.limits, old.limits, rtol=0.0, atol=TOLERANCE)
    assert np.allclose(new.home.positions, old.home.positions, rtol=0, atol=TOLERANCE)
    last = f"{cell.manipulators[-1].name}/{cell.manipulators[-1].links[-1].name}"
    at = old.home.q + np.linspace(-0.01, 0.01, 3)[:, None]
    moved = (each.fk(last, state=each.home)(at) for each in (old, new))
    assert np.allclose(*moved, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", CLOSED)
def test_other_programs_find_loops_closed_in_the_file(name: str):
    """Without what only armillary reads, joints of SDF close them, all at zero."""
    text, _ = write(CLOSED[name]())
    report = Report(strict=True)
    read = FORMAT.read(MARKS.sub("", text).encode(), "x.sdf", ReadOptions(), report)
    cell = plain(read)
    assert np.allclose(cell.home.positions, 0.0, rtol=0.0, atol=1e-9)
    # A rod has two balls, each of which turns about three axes, of which three close;
    # the leg of a hexapod slides, too.
    counts = {"stewart": (12, 18), "delta": (6, 9), "five_bar": (2, 2)}
    found = len(cell.joint_names), len(cell.passive_names)
    assert found == counts.get(name, found)
    assert len(cell.joint_names) < sum(
        len(m.joint_links) for m in read.manipulators
    ) or name.endswith("between")


def test_a_rod_without_balls_is_read_as_a_link():
    text, _ = write(CLOSED["delta"]())
    broken = text.replace('type="ball"', 'type="fixed"', 1)
    report = Report()
    cell = FORMAT.read(broken.encode(), "x.sdf", ReadOptions(), report)
    (said,) = (d for d in report.diagnostics if d.severity is Severity.WARNING)
    assert "is a rod, but not between two balls" in said.message
    assert len(cell.manipulators[0].loops) == 3


def test_joints_of_other_kinds():
    dh = cell_of(tree(BASE, carried("a", PaulRevolute(a=0.3, alpha=0.4, d=0.1))))
    read = again(dh)
    q = [0.7]
    assert np.allclose(
        arm.Cell(manipulators=read.manipulators).fk("a")(q),
        arm.Cell(manipulators=dh.manipulators).fk("a")(q),
        atol=1e-14,
    )


def test_joints_that_sdf_does_not_have_are_fixed():
    """With what follows them; the rest of the cell is written."""
    track = CircleTrack(radius=2.0, precursor=pose(1))
    follows = Coupling(of="a_j", multiplier=3.0, offset=0.5)
    cell = cell_of(
        tree(
            BASE,
            carried("a", track),
            carried("b", Revolute(), "a", coupling=follows),
            carried("c", Prismatic(), "b"),
        )
    )
    fixed = [each for each in warnings(cell) if "written as fixed" in each]
    assert [each.partition(" is ")[0] for each in fixed] == [
        "joint 'a_j'",
        "joint 'b_j'",
    ]
    left = arm.Cell(manipulators=again(cell).manipulators)
    assert left.joint_names == ("c_j",)
    expected = arm.Cell(manipulators=cell.manipulators).fk("c")([0.0, 0.2])
    assert np.allclose(left.fk("c")([0.2]), expected, atol=1e-14)


def test_what_is_lost_is_reported():
    link = carried("a", Revolute(), limits=Limits(acceleration=2.0))
    lost = " ".join(
        warnings(
            cell_of(
                tree(
                    Link(
                        name="base",
                        collisions=[Cone(bottom=1, top=0.5, length=1)],
                        frames=[Frame(name="f", end_effector=True)],
                    ),
                    link,
                ),
                rules=DEFAULT_RULES.exclude("m/base", "m/a"),
            )
        )
    )
    rest = "end effector", "which pairs"
    for what in ("acceleration", "type Cone", *rest):
        assert what in lost


def test_an_empty_cell_is_an_empty_world():
    cell = Workcell(name="lab")
    assert again(cell) == cell


def test_it_is_chosen_by_its_ending(tmp_path: Any):
    cell = cell_of(ARM)
    registry.save(cell, tmp_path / "lab.sdf")
    assert registry.read(tmp_path / "lab.sdf")[0].approx_equal(cell, TOLERANCE)


def test_limits_of_all_kinds_are_written():
    limits = ELEMENTS.write("limit", Limits(lower=-math.inf, upper=1e15))
    assert [(k.name, k.text) for k in limits.children] == [
        ("upper", "1000000000000000.0")
    ]
