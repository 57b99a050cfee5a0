"""Cells to RobWork's files, and what those cannot hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from armillary import (
    Cell,
    Coupling,
    Frame,
    Limits,
    Link,
    Manipulator,
    Mount,
    Pose,
    Rules,
)
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.robwork import FORMAT
from armillary.model.group import Group
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import (
    CraigPrismatic,
    CraigRevolute,
    Fixed,
    OvalTrack,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.shapes import Box, Capsule, Cone, Cylinder, HalfSpace, Mesh, Sphere
from armillary.model.wheels import Wheels
from armillary.spatial.inertia import SpatialInertia

CUBE = Box(size=(0.1, 0.1, 0.1), name="cube")
TILTED = Pose.from_rpy(0.3, -0.5, 1.1, (0.1, 0.2, 0.3))


def write(cell: Cell) -> tuple[str, Report]:
    data, report = registry.write(cell.workcell, format="robwork")
    return data.decode(), report


def read(text: str) -> Cell:
    return Cell.of(FORMAT.read(text.encode(), "x.wc.xml", ReadOptions(), Report()))


def losses(report: Report) -> list[str]:
    return [d.message for d in report.diagnostics if d.severity is Severity.WARNING]


def same(name: str) -> str:
    return name


def check_poses(
    a: Cell, b: Cell, *, named: Callable[[str], str] = same, joints: bool = True
) -> None:
    """Every frame of `a` is where that of `b` is, at random joint positions."""
    if joints:
        assert sorted(a.joint_names) == sorted(b.joint_names)
    lower, upper = a.limits
    q = np.random.default_rng(7).uniform(np.clip(lower, -2, 2), np.clip(upper, -2, 2))
    values = dict(zip(a.joint_names, q.tolist(), strict=True))
    here = a.home.joints(values)
    there = b.home.joints({n: v for n, v in values.items() if n in b.joint_names})
    for name in a.frame_names:
        X, Y = a.pose(name, here), b.pose(named(name), there)
        np.testing.assert_allclose(X, Y, atol=1e-12, err_msg=name)


def arm(*links: Link, name: str = "arm", **more: object) -> Manipulator:
    return Manipulator(name=name, links=(Link(name="base"), *links), **more)  # type: ignore[arg-type]


def link(name: str, parent: str, joint: Joint, **more: object) -> Link:
    return Link(name=name, parent=parent, joint=joint, **more)  # type: ignore[arg-type]


# Real files


@pytest.fixture(scope="module")
def robwork(shared: Path) -> Path:
    folder = shared / "data" / "robwork"
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} is absent")
    return folder


@pytest.mark.thorough
def test_every_file_comes_back(robwork: Path, tmp_path: Path):
    count = with_setup = 0
    path_again, setup = tmp_path / "again.wc.xml", tmp_path / "again.prox.xml"
    for path in sorted(robwork.rglob("*.xml")):
        try:
            first, _ = registry.read(path, folders=[robwork])
        except FormatError:
            continue
        report = registry.save(first, path_again)
        assert losses(report) == [], path
        files = sorted(each.read_bytes() for each in tmp_path.iterdir())
        again = Cell.of(registry.read(path_again, folders=[robwork])[0])
        check_poses(Cell.of(first), again)
        assert set(again.frame_names) == set(first.frame_names), path
        assert np.array_equal(again.home.q, Cell.of(first).home.q)
        assert {m.name: m.postures for m in again.manipulators} == {
            m.name: m.postures for m in first.manipulators
        }
        assert again.rules == first.rules, path
        registry.save(again.workcell, path_again)
        assert sorted(each.read_bytes() for each in tmp_path.iterdir()) == files, path
        with_setup += setup.exists()
        setup.unlink(missing_ok=True)
        count += 1
    assert count > 30
    assert with_setup > 20


def test_isaac_and_robwork_hold_the_same_arm(shared: Path):
    path = shared / "data" / "isaac" / "ur5e.kinematic.json"
    if not path.is_file():
        pytest.skip(f"no reference data: {path} is absent")
    cell = Cell.of(registry.read(path)[0])
    check_poses(cell, read(write(cell)[0]))


# Joints


@pytest.mark.parametrize(
    "joint",
    [
        Revolute(precursor=TILTED),
        Prismatic(precursor=TILTED),
        *(
            kind(axis=axis, precursor=TILTED)
            for kind in (Revolute, Prismatic)
            for axis in ((1, 0, 0), (0, -1, 0), (0, 0, -1), (1, -2, 3))
        ),
        CraigRevolute(alpha=0.4, a=0.5, theta=0.6, d=0.7, precursor=TILTED),
        CraigPrismatic(alpha=0.4, a=0.5, theta=0.6, d=0.7),
        PaulRevolute(alpha=0.4, a=0.5, theta=0.6, d=0.7, precursor=TILTED),
        PaulPrismatic(alpha=0.4, a=0.5, theta=0.6, d=0.7),
    ],
    ids=lambda joint: f"{type(joint).__name__}{getattr(joint, 'axis', '')}",
)
@pytest.mark.parametrize("own_name", [False, True])
def test_joints_come_back(joint: Joint, own_name: bool):
    cell = Cell(
        manipulators=(
            arm(
                link("L", "base", joint, joint_name="J" if own_name else ""),
                link("tip", "L", Fixed(precursor=TILTED)),
            ),
        )
    )
    text, report = write(cell)
    again = read(text)
    assert losses(report) == []
    assert again.joint_names == cell.joint_names
    a, b = (c.home.replace(q=[0.7]) for c in (cell, again))
    for frame in ("L", "tip"):
        np.testing.assert_allclose(
            cell.pose(frame, a), again.pose(frame, b), atol=1e-13
        )


@pytest.mark.parametrize("own_name", ["", "J"])
def test_joint_about_another_axis_comes_back_as_one_link(own_name: str):
    """RobWork's joints are about z: it gets a joint and a frame behind it."""
    joint = Revolute(axis=(0, 1, 0), precursor=Pose.translation(1, 2, 3))
    body = link("L", "base", joint, joint_name=own_name)
    text, report = write(Cell(manipulators=(arm(body),)))
    inner = own_name or "L_joint"
    assert f'<Joint name="{inner}"' in text
    assert '<Frame name="L">' in text
    assert read(text).manipulators[0].link("L") == body
    told = [d.code for d in report.diagnostics]
    assert told == ([] if own_name else ["renamed"])
    assert all(d.severity is Severity.NOTE for d in report.diagnostics)


def test_pair_that_something_else_hangs_on_stays_two_links():
    """What is fixed to the joint's own frame would have no place."""
    text, _ = write(
        Cell(manipulators=(arm(link("L", "base", Revolute(axis=(1, 0, 0)))),))
    )
    more = '<Frame name="x"/><Frame name="camera" refframe="arm.L_joint"/>'
    again = read(text.replace("</WorkCell>", f"{more}</WorkCell>"))
    assert again.joint_names == ("arm/L",)
    assert {"L_joint", "L"} <= set(again.manipulators[1].frame_refs)


def test_joint_with_a_name_of_its_own_keeps_it():
    body = link("L", "base", Revolute(), joint_name="J")
    text, report = write(Cell(manipulators=(arm(body),)))
    assert '<Joint name="L"' in text
    assert read(text).manipulators[0].link("L") == body
    assert [d.code for d in report.diagnostics] == ["renamed"]


def test_joint_that_robwork_cannot_hold_stays_at_home():
    track = OvalTrack(straight=2.0, radius=0.5)
    manipulator = arm(
        link("cart", "base", track),
        link("wheel", "cart", Revolute(), coupling=Coupling(of="cart", multiplier=2)),
        link("J", "cart", Revolute()),
        postures=(Posture(name="Home", joints=("cart", "J"), q=(3.0, 0.5)),),
        home="Home",
    )
    cell = Cell(manipulators=(manipulator,))
    text, report = write(cell)
    codes = [(d.code, d.severity) for d in report.diagnostics]
    assert ("joint-type", Severity.WARNING) in codes
    (message,) = [d.message for d in report.diagnostics if d.code == "joint-type"]
    assert "'cart' of 'arm' is a OvalTrack" in message
    assert "it stays at 3" in message
    again = read(text)
    assert again.joint_names == ("wheel", "J")
    assert again.home.q[1] == 0.5
    for frame in ("cart", "J"):
        np.testing.assert_allclose(
            cell.pose(frame, cell.home), again.pose(frame, again.home), atol=1e-12
        )
    with pytest.raises(FormatError, match="cannot hold all of cell"):
        registry.write(cell.workcell, format="robwork", lossless=True)


def test_limits_come_back_to_the_bit():
    limits = Limits(lower=-1.234567, upper=2.1, velocity=3.3, acceleration=0.7)
    open_below = Limits(upper=math.pi)
    cell = Cell(
        manipulators=(
            arm(
                link("a", "base", Revolute(), limits=limits),
                link("b", "a", Prismatic(), limits=limits),
                link("c", "b", Revolute(), limits=open_below),
                link("d", "c", Revolute(), limits=Limits(velocity=1.0)),
            ),
        )
    )
    text, report = write(cell)
    found = [link.limits for link in read(text).manipulators[0].links[1:]]
    assert found == [limits, limits, open_below, Limits(velocity=1.0)]

    assert losses(report) == []
    assert '"-180"' not in text


def test_a_joint_of_an_unknown_type_is_refused():
    cell = Cell(manipulators=(arm(link("a", "base", OpaqueJoint(kind="Spring"))),))
    with pytest.raises(FormatError, match=r"error\[unknown-joint-type\]: joint 'a'"):
        write(cell)


# Laws of cells that are written and read again


def one(*links: Link, **more: Any) -> Cell:
    return Cell(manipulators=(arm(*links, **more),))


A = link("a", "base", Revolute())
TIP = Frame(name="tip", pose=TILTED, end_effector=True)
PART = Manipulator(name="part", links=(Link(name="part"),))
CAN = Manipulator(
    name="can", links=(Link(name="body"), Link(name="lid", parent="body"))
)
TABLE = Manipulator(
    name="table",
    links=(Link(name="legs"), link("top", "legs", Fixed(precursor=TILTED))),
)

COME_BACK: dict[str, tuple[Cell, list[str]]] = {
    "a follower of a follower": (
        one(
            A,
            link("b", "a", Revolute(), coupling=Coupling(of="a", multiplier=2)),
            link("c", "b", Prismatic(), coupling=Coupling(of="b", offset=0.25)),
        ),
        [],
    ),
    "a follower before its owner": (
        one(link("f", "base", Revolute(), coupling=Coupling(of="a")), A),
        ["end-effectors"],
    ),
    "an owner farther out": (
        one(
            link("f", "base", Revolute(), coupling=Coupling(of="o")),
            link("o", "f", Revolute()),
        ),
        ["late-owner"],
    ),
    "a passive joint": (one(link("a", "base", Revolute(), passive=True)), []),
    "a tree": (one(A, link("b", "base", Revolute())), ["end-effectors"]),
    "a primary frame": (one(link("a", "base", Revolute(), primary=TILTED)), []),
    "a frame behind a primary frame": (
        one(link("a", "base", Revolute(), primary=TILTED, frames=(TIP,))),
        [],
    ),
    "devices on the world, on a link, on each other": (
        Cell(
            manipulators=(
                arm(A, name="one"),
                arm(A, name="two"),
                arm(link("a", "base", Prismatic()), name="three"),
                arm(link("a", "base", Prismatic()), name="four"),
            ),
            mounts=(
                Mount(manipulator="two", on="one/a", pose=TILTED),
                Mount(manipulator="three", on="two/base", pose=TILTED, bolted=False),
                Mount(manipulator="four", pose=TILTED),
            ),
        ),
        ["mount-frame"] * 3,
    ),
    "parts that may be attached": (
        Cell(
            manipulators=(arm(A), PART, CAN),
            mounts=(
                Mount(manipulator="part", on="arm/a", pose=TILTED, bolted=False),
                Mount(manipulator="can", pose=TILTED, bolted=False),
            ),
        ),
        ["renamed"],
    ),
    # RobWork hangs the first frame on the world, whatever it says.
    "a first frame that is not on the world": (
        Cell(
            manipulators=(arm(A), PART),
            mounts=(Mount(manipulator="part", on="arm/a", pose=TILTED, bolted=False),),
        ),
        [],
    ),
    # It is a device without joints.
    "a fixture": (
        Cell(manipulators=(TABLE,), mounts=(Mount(manipulator="table", pose=TILTED),)),
        [],
    ),
}
RENAMED = {"can/body": "can/can", "can/lid": "can/can.lid"}


@pytest.mark.parametrize("what", COME_BACK)
def test_cells_come_back(what: str):
    cell, codes = COME_BACK[what]
    text, report = write(cell)
    assert [d.code for d in report.diagnostics] == codes
    assert "late-owner" in codes or losses(report) == []
    again = read(text)
    check_poses(cell, again, named=lambda name: RENAMED.get(name, name))
    for mount in cell.mounts:
        (other,) = (m for m in again.mounts if m.manipulator == mount.manipulator)
        assert other.bolted == mount.bolted
    for manipulator in cell.manipulators:
        passive = {each.coordinate for each in manipulator.links if each.passive}
        back = next(m for m in again.manipulators if m.name == manipulator.name)
        assert {each.coordinate for each in back.links if each.passive} == passive
    text, _ = write(again)
    assert write(read(text))[0] == text


def test_elements_of_cells_that_come_back():
    texts = {what: write(cell)[0] for what, (cell, _) in COME_BACK.items()}
    assert "<SerialDevice" in texts["a passive joint"]
    assert "<TreeDevice" in texts["a tree"]
    parts = texts["parts that may be attached"]
    assert parts.count('type="Movable" daf="true"') == 2
    early = texts["a follower before its owner"]
    assert early.index('name="a"') < early.index('name="f"')
    # In RobWork a joint never depends on a dependent one.
    coupling = (
        read(texts["a follower of a follower"]).manipulators[0].link("c").coupling
    )
    assert coupling == Coupling(of="a", multiplier=2.0, offset=0.25)


# What is lost, said once for each kind

COLOURED = Sphere(radius=1, colour=(1, 1, 1, 1))
SHAPES = (
    Capsule(radius=1, length=2),
    Capsule(radius=2, length=2),
    Cone(bottom=1, top=0.5, length=1),
    Mesh(file="m.stl", scale=(2, 2, 2)),
)
BODY = SpatialInertia.from_centre(1.0, (0.0, 0.0, 0.0), np.eye(3))

LOST: dict[str, tuple[Cell, list[str]]] = {
    "a screw": (
        one(link("s", "base", Screw(pitch=0.1))),
        [
            "joint 's' of 'arm' is a Screw, which RobWork cannot hold: it only has "
            "joints that turn or slide by q about a line; it stays at 0"
        ],
    ),
    "a limit": (
        one(link("a", "base", Revolute(), limits=Limits(lower=-1e307, upper=1.0))),
        ["a limit that is too large in degrees is not kept"],
    ),
    "effort": (
        one(link("a", "base", Revolute(), limits=Limits(effort=5.0))),
        ["a limit of force or torque is not kept"],
    ),
    "dynamics and masses": (
        one(
            link(
                "a",
                "base",
                Revolute(),
                dynamics=JointDynamics(damping=0.5),
                inertia=BODY,
            )
        ),
        [
            "the damping of a joint is not kept",
            "the mass and inertia of a link is not kept",
        ],
    ),
    "shapes": (
        one(link("a", "base", Revolute(), visuals=SHAPES, collisions=(COLOURED,))),
        [
            "a shape of type Capsule is not kept (2 times)",
            "a cone without a tip is not kept",
            "the scale of a mesh is not kept",
            "the colour of a shape that is not drawn is not kept",
        ],
    ),
    "groups and numbers": (
        Cell(
            manipulators=(
                arm(A, groups=(Group(name="one", links=("a",)), Group(name="two"))),
            ),
            properties=(Property(name="p", text="t", numbers=(1.0,)),),
        ),
        [
            "a group of joints is not kept (2 times)",
            "the numbers of a property that has a text too is not kept",
        ],
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_losses_are_reported(what: str):
    cell, lost = LOST[what]
    text, report = write(cell)
    assert losses(report) == lost
    read(text)
    with pytest.raises(FormatError, match="cannot hold all of cell"):
        registry.write(cell.workcell, format="robwork", lossless=True)


def test_an_end_of_a_range_may_be_lost():
    (robot,) = read(write(LOST["a limit"][0])[0]).manipulators
    assert robot.link("a").limits == Limits(upper=1.0)


# What cells hold


def test_every_driven_joint_is_on_the_way_to_an_end():
    """So that it is in RobWork's q, with its postures."""
    cell = Cell(
        manipulators=(
            arm(
                link("a", "base", Revolute()),
                link("b", "base", Revolute(), frames=(Frame(name="tip"),)),
                link("c", "base", Revolute(), passive=True),
                postures=(Posture(name="p", joints=("a", "b"), q=(0.25, 0.5)),),
            ),
        )
    )
    text, report = write(cell)
    assert losses(report) == []
    again = read(text).manipulators[0]
    posture = again.posture("p")
    assert dict(zip(posture.joints, posture.q, strict=True)) == {"a": 0.25, "b": 0.5}
    ends = {f.name for body in again.links for f in body.frames if f.end_effector}
    assert ends == {"a_end", "tip"}
    assert write(read(text))[0] == text


def test_shapes_come_back():
    looks = {"name": "x", "pose": TILTED, "colour": (0.25, 0.5, 0.75, 1.0)}
    drawn = (
        Box(size=(1, 2, 3), **looks),
        Sphere(radius=0.1, **{**looks, "colour": (0, 0, 0, 0.5)}),
        Cylinder(radius=0.1, length=0.2),
        Cone(bottom=0.1, length=0.2),
        HalfSpace(),
        Mesh(file="a/b.stl"),
    )
    touching = (drawn[0], drawn[3], Sphere(radius=9.0))
    cell = Cell(
        manipulators=(
            arm(link("a", "base", Revolute(), visuals=drawn, collisions=touching)),
        )
    )
    text, report = write(cell)
    again = read(text).manipulators[0].link("a")
    assert len(again.visuals) == len(drawn)
    for ours, given in zip(again.visuals, drawn, strict=True):
        assert ours.pose.approx_equal(given.pose, 1e-14)
        assert type(ours) is type(given)
        assert ours.colour == given.colour
    assert [type(shape) for shape in again.collisions] == [Box, Cone, Sphere]
    assert losses(report) == []


def test_properties_come_back():
    notes = (
        Property(name="maker", text="We & Co", description="who"),
        Property(name="mass", of="a", numbers=(2.5,)),
        Property(name="gains", of="tip", numbers=(1, 2, 3)),
    )
    body = link("a", "base", Revolute(), frames=(Frame(name="tip"),))
    cell = Cell(
        manipulators=(arm(body, properties=notes),),
        properties=(Property(name="site", text="here"),),
    )
    text, report = write(cell)
    again = read(text)
    found = [n for n in again.manipulators[0].properties if "robwork" not in n.name]
    assert sorted(found, key=repr) == sorted(notes, key=repr)
    assert again.properties == cell.properties
    assert [d.code for d in report.diagnostics] == ["escaped"]


def test_postures_come_back():
    manipulator = arm(
        A,
        link("b", "a", Revolute(), passive=True),
        link("c", "b", Revolute()),
        postures=(
            Posture(name="ready", joints=("c", "a"), q=(0.5, 0.25)),
            Posture(name="half", joints=("a", "b"), q=(0.125, 1.0)),
        ),
        home="ready",
    )
    text, report = write(Cell(manipulators=(manipulator,)))
    again = read(text).manipulators[0]
    assert again.home == "Home"
    assert again.posture("Home").q == again.posture("ready").q == (0.25, 0.5)
    assert again.posture("half").joints == ("a", "c")
    assert sorted(losses(report)) == [
        "that a posture leaves a joint where it is (0 is written) is not kept",
        "the position of a joint that RobWork's q does not hold is not kept",
    ]


def test_posture_called_home_that_is_not_home():
    posture = Posture(name="Home", joints=("a",), q=(0.5,))
    text, report = write(one(A, postures=(posture,)))
    assert read(text).home.q.tolist() == [0.0]
    assert [d.code for d in report.diagnostics] == ["renamed"]


def test_empty_cell():
    text, report = write(Cell(name="void"))
    assert read(text) == Cell(name="void", rules=Rules.robwork())
    assert report.diagnostics == ()


def test_shapes_move_with_the_primary_frame():
    body = link(
        "a",
        "base",
        Revolute(),
        primary=TILTED,
        visuals=(Box(size=(1, 2, 3), pose=TILTED),),
    )
    (box,) = read(write(one(body))[0]).manipulators[0].link("a").visuals
    assert box.pose.approx_equal(TILTED @ TILTED, 1e-14)


DEVICES = {
    "parallel": (
        '<ParallelDevice name="x"><Frame name="B"/><SerialChain name="l"><Joint '
        'name="a" type="Revolute"/><Joint name="p" type="Revolute" state="Passive"/>'
        '</SerialChain><Frame name="e"/><Frame name="r0" refframe="B"/>'
        '<SerialChain name="r"><Joint name="b" type="Revolute"/></SerialChain>'
        "<Junction><Chains>l</Chains><Chains>r</Chains></Junction>"
        '<Q name="Home">1 2</Q></ParallelDevice>'
    ),
    "mobile": (
        '<WorkCell name="w"><MobileDevice name="m" basename="Base"><AxelWidth>0.4'
        '</AxelWidth><LeftWheel name="L"/><RightWheel name="R"/><Drawable name="d" '
        'refframe="L"><Sphere radius="1"/></Drawable><VelLimit refjoint="R" max="9"/>'
        '<Frame name="laser"><RPY/><Pos>0 0 1</Pos></Frame></MobileDevice></WorkCell>'
    ),
    "setups": (
        '<WorkCell name="w"><SerialDevice name="x"><Frame name="B"/><SerialChain '
        'name="c"><Joint name="a" type="Revolute"/><CollisionSetup file="c.xml"/>'
        '</SerialChain><ProximitySetup file="p.xml"/></SerialDevice>'
        '<CollisionSetup file="w.xml"/></WorkCell>'
    ),
    "loose": (
        '<WorkCell name="w"><Frame name="x"/><Frame name="door" refframe="x" '
        'type="Revolute"/><Frame name="free" type="Movable"/><Frame name="fixed" '
        'daf="true"/><Property name="p" refframe="x">1</Property><Drawable name="d" '
        'refframe="WORLD"><Plane/></Drawable><Property name="q" refframe="WORLD">1'
        "</Property></WorkCell>"
    ),
    "first": (
        '<WorkCell name="w"><SerialDevice name="d"><Frame name="B"/><Joint name="J" '
        'type="Revolute"/></SerialDevice><Frame name="x"/><Frame name="y" '
        'refframe="d.J"/><SerialDevice name="e"><Frame name="B"/></SerialDevice>'
        "</WorkCell>"
    ),
}


@pytest.mark.parametrize("name", DEVICES)
def test_what_only_robwork_has_comes_back(name: str):
    cell = read(DEVICES[name])
    text, report = write(cell)
    assert losses(report) == []
    again = read(text)
    assert set(again.manipulators) == set(cell.manipulators)
    assert set(again.mounts) == set(cell.mounts)
    assert again.properties == cell.properties
    for element in ("ParallelDevice", "MobileDevice", "SerialDevice", "SerialChain"):
        assert (f"<{element}" in text) == (f"<{element}" in DEVICES[name])


def test_wheels_that_robwork_has_not_are_reported():
    (cart,) = (m for m in read(DEVICES["mobile"]).manipulators if m.wheels)
    loose = Mount(manipulator="m", bolted=False)
    lost = {
        "in radians": Wheels(left="L", right="R", radius=0.1),
        "by another width": Wheels(left="L", right="R", travel=1.0, track_width=0.5),
        "the wrong way round": Wheels(left="R", right="L", travel=1.0),
    }
    for what, wheels in lost.items():
        changed = msgspec.structs.replace(cart, wheels=wheels)
        text, report = write(Cell(manipulators=(changed,), mounts=(loose,)))
        assert "<MobileDevice" not in text, what
        assert "that a base drives on two wheels is not kept" in losses(report), what
    for mount in (Mount(manipulator="m"), msgspec.structs.replace(loose, pose=TILTED)):
        text, report = write(Cell(manipulators=(cart,), mounts=(mount,)))
        assert "<MobileDevice" not in text
        assert "that a base drives on two wheels is not kept" in losses(report)


def test_text_of_a_file(golden: Callable[[str, str], None]):
    hand = arm(
        link("f", "base", Prismatic(), limits=Limits(lower=0, upper=0.05)),
        link("g", "base", Prismatic(axis=(0, 0, -1)), coupling=Coupling(of="f")),
        name="hand",
    )
    body = link(
        "J1",
        "base",
        Revolute(precursor=Pose.translation(0, 0, 0.5)),
        limits=Limits(lower=-math.pi, upper=math.pi, velocity=2.0),
        frames=(Frame(name="tool", pose=Pose.rotation_y(math.pi / 2)),),
        visuals=(Cylinder(radius=0.1, length=0.5, name="column"),),
    )
    cell = Cell(
        name="lab",
        manipulators=(
            arm(
                body,
                postures=(Posture(name="Home", joints=("J1",), q=(0.5,)),),
                home="Home",
            ),
            hand,
            Manipulator(name="box", links=(Link(name="box", collisions=(CUBE,)),)),
        ),
        mounts=(
            Mount(manipulator="hand", on="arm/tool"),
            Mount(manipulator="box", pose=Pose.translation(1, 0, 0), bolted=False),
        ),
    )
    text, report = write(cell)
    golden("robwork.wc.xml", text)
    assert losses(report) == []


def test_poses_that_overflow_are_refused():
    far = Pose.translation(1e308, 1e308, 0.0) @ Pose.rotation_z(0.7)
    turn = Revolute(axis=(1.0, 1.0, 0.0), precursor=far)
    links = link("a", "base", turn, primary=far), link("b", "a", Fixed(precursor=far))
    frame = Frame(name="hook", pose=far)
    hooked = msgspec.structs.replace(links[0], frames=(frame,))
    with pytest.raises(FormatError, match=r"error\[bad-number\].*cannot be written"):
        write(Cell(manipulators=(arm(hooked, links[1]),)))
