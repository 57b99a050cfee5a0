"""URDF out: what is written moves as what was given, and what is lost is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.joint_axis import joint_axis_of
from armillary.formats.urdf import FORMAT
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import JOINT_TYPES
from armillary.model.joints.circle_track import CircleTrack
from armillary.model.joints.craig import CraigPrismatic, CraigRevolute
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.oval_track import OvalTrack
from armillary.model.joints.paul import PaulPrismatic, PaulRevolute
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.joints.screw import Screw
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

TOLERANCE = 1e-12


def read(text: str) -> tuple[Workcell, Report]:
    report = Report()
    return FORMAT.read(text.encode(), "arm.urdf", ReadOptions(), report), report


def write(cell: Workcell) -> tuple[str, Report]:
    report = Report()
    return FORMAT.write(cell, report).decode(), report


def again(cell: Workcell) -> Workcell:
    return read(write(cell)[0])[0]


def lines(report: Report) -> list[str]:
    return [str(diagnostic) for diagnostic in report.diagnostics]


def cell_of(*links: Link, name: str = "arm", mounts: Any = ()) -> Workcell:
    manipulator = Manipulator(name=name, links=links)
    return Workcell(name=name, manipulators=(manipulator,), mounts=mounts)


def poses(cell: Workcell, q: Mapping[str, float]) -> dict[str, Pose]:
    """The pose of every frame in the world; `q` by the names of `cell.joint_names`."""
    positions = [q[name] for name in cell.joint_names]
    links: dict[int, Pose] = {-1: IDENTITY}
    found: dict[str, Pose] = {}
    waiting = list(range(len(cell.manipulators)))
    while waiting:
        number = waiting.pop(0)
        manipulator, at = cell.manipulators[number], cell.base_frames[number]
        if at.link not in links:
            waiting.append(number)
            continue
        for k in manipulator.order:
            link, parent = manipulator.links[k], manipulator.parents[k]
            before = (
                links[at.link] @ at.pose
                if parent < 0
                else links[cell.starts[number] + parent]
            )
            value = 0.0
            for drive in manipulator.drives[k]:
                own = [
                    i
                    for i, k in enumerate(cell.joints.links)
                    if cell.owners[k] == number
                ]
                value = drive.at([positions[i] for i in own])
            links[cell.starts[number] + k] = before @ link.joint.transform(value)
        prefix = f"{manipulator.name}/" if len(cell.manipulators) > 1 else ""
        for name, place in manipulator.frame_refs.items():
            found[prefix + name] = links[cell.starts[number] + place.link] @ place.pose
    return found


def assert_moves_alike(cell: Workcell, other: Workcell) -> None:
    """Every frame of `cell` is in `other`, and always at the same place."""
    rng = np.random.default_rng(7)
    for scale in (1.0, 3.0, 1e-7):
        values = scale * rng.standard_normal(len(cell.joint_names))
        q = dict(zip(cell.joint_names, values, strict=True))
        expected, found = poses(cell, q), poses(other, q)
        for name, pose in expected.items():
            size = 1.0 + max(abs(p) for p in pose.position)
            assert found[name].approx_equal(pose, TOLERANCE * size), name


# Models at random.

RIGHT = math.pi / 2
angles = st.one_of(
    st.sampled_from([0.0, RIGHT, -RIGHT, math.pi, RIGHT - 1e-9, 1e-7 - RIGHT, 1e-15]),
    st.floats(-math.pi, math.pi),
)
lengths = st.one_of(st.just(0.0), st.floats(-2.0, 2.0))
places = st.builds(
    Pose.from_rpy,
    angles,
    angles,
    angles,
    st.tuples(lengths, lengths, lengths),
)
directions = st.one_of(
    st.sampled_from([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)]),
    st.tuples(*3 * [st.floats(-1.0, 1.0)]).filter(lambda a: math.hypot(*a) > 0.1),
)
PAUL_OR_CRAIG = (PaulRevolute, PaulPrismatic, CraigRevolute, CraigPrismatic)


class Crank(Joint, frozen=True):
    """A joint of a user's own: turns, with the outer frame at the end of an arm."""

    arm: float

    def pose(self, q: Any) -> Any:
        return Pose.rotation_y(0.5 + q) @ Pose.translation(self.arm, 0.0, 1.0)


class Slope(Joint, frozen=True):
    """Another one: slides up an incline."""

    unit = arm.METRE

    def pose(self, q: Any) -> Any:
        return Pose.translation(0.6 * q, 0.0, 1.0 + 0.8 * q) @ Pose.rotation_x(0.3)


moving_joints = st.one_of(
    st.builds(Revolute, axis=directions, precursor=places),
    st.builds(Prismatic, axis=directions, precursor=places),
    *(
        st.builds(
            kind, precursor=places, theta=angles, d=lengths, a=lengths, alpha=angles
        )
        for kind in PAUL_OR_CRAIG
    ),
    st.builds(Crank, precursor=places, arm=lengths),
    st.builds(Slope, precursor=places),
)
joints = st.one_of(st.builds(Fixed, precursor=places), moving_joints)
ranges = st.one_of(
    st.just(Limits(velocity=2.0, effort=3.0)),
    st.builds(
        Limits,
        lower=st.floats(-4.0, 0.0),
        upper=st.floats(0.0, 4.0),
        velocity=st.just(1.0),
        effort=st.floats(0.0, 9.0),
        acceleration=st.sampled_from([math.inf, 5.0]),
    ),
)
drags = st.builds(
    JointDynamics,
    damping=st.floats(0.0, 9.0),
    friction=st.sampled_from([0.0, 2.0]),
    motor_inertia=st.sampled_from([0.0, 1.0 / 3000.0]),
    gear_ratio=st.sampled_from([1.0, -100.0, 1.0 / 3.0]),
)
inertias = st.builds(
    lambda mass, centre, moment: SpatialInertia.from_centre(
        mass, centre, np.diag([moment, 1.5 * moment, 2.0 * moment])
    ),
    st.floats(0.1, 10.0),
    st.tuples(lengths, lengths, lengths),
    st.floats(0.01, 2.0),
)
colours = st.sampled_from([None, (1.0, 0.0, 0.0, 1.0), (0.1, 0.2, 0.3, 0.4)])
shapes = st.one_of(
    st.builds(Box, pose=places, colour=colours, size=st.just((1.0, 0.5, 2.0))),
    st.builds(
        Sphere, pose=places, name=st.sampled_from(["", "ball"]), radius=lengths.map(abs)
    ),
    st.builds(
        Cylinder, pose=places, colour=colours, radius=st.just(0.1), length=st.just(3.0)
    ),
    st.builds(Mesh, pose=places, file=st.just("package://p/m.stl"), scale=directions),
)


@st.composite
def robots(draw: st.DrawFn) -> Workcell:
    """A tree of up to seven links with all that URDF can hold."""
    found = [Link(name="l0", inertia=draw(st.none() | inertias))]
    leaders: list[str] = []
    for k in range(1, draw(st.integers(1, 7))):
        joint = draw(joints)
        is_moving = not isinstance(joint, Fixed)
        coupling = None
        if is_moving and leaders and draw(st.booleans()):
            coupling = Coupling(
                of=draw(st.sampled_from(leaders)),
                multiplier=draw(st.sampled_from([1.0, -0.5, 2.0])),
                offset=draw(lengths),
            )
        if is_moving:
            leaders.append(f"j{k}")
        found.append(
            Link(
                name=f"l{k}",
                parent=f"l{draw(st.integers(0, k - 1))}",
                joint=joint,
                joint_name=f"j{k}",
                coupling=coupling,
                limits=draw(ranges) if is_moving and not coupling else Limits(),
                dynamics=draw(drags) if is_moving else JointDynamics(),
                primary=draw(st.just(IDENTITY) | places),
                inertia=draw(st.none() | inertias),
                visuals=tuple(draw(st.lists(shapes, max_size=2))),
                collisions=tuple(draw(st.lists(shapes, max_size=1))),
                frames=tuple(
                    Frame(name=f"f{k}{n}", pose=draw(places))
                    for n in range(draw(st.integers(0, 2)))
                ),
            )
        )
    return cell_of(*found)


@settings(max_examples=40)
@given(robots())
def test_what_is_read_back_moves_as_before(cell: Workcell):
    assert_moves_alike(cell, again(cell))


@settings(max_examples=20)
@given(robots())
def test_what_is_read_back_has_the_same_joints_and_bodies(cell: Workcell):
    other = again(cell)
    assert other.joint_names == cell.joint_names
    # An unlimited prismatic joint has a large number in its place.
    for found, expected in zip(other.limits, cell.limits, strict=True):
        assert np.all((found == expected) | (np.abs(found) >= 1e8))
    dynamics = {x.coordinate: x.dynamics for x in other.links if x.has_coordinate}
    for link in cell.manipulators[0].links:
        same = other.manipulators[0].link(link.name)
        check_body(link, same)
        assert dynamics.get(link.coordinate, JointDynamics()) == link.dynamics


def check_body(link: Link, same: Link) -> None:
    """The link that was read back weighs, looks and touches as before."""
    if link.inertia is None:
        assert same.inertia is None
    else:
        assert same.inertia is not None
        expected = link.inertia.transformed(link.primary).matrix()
        size = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(
            same.inertia.matrix(), expected, rtol=0, atol=1e-12 * size
        )
    pairs = ((link.visuals, same.visuals), (link.collisions, same.collisions))
    for before, after in pairs:
        for shape, other in zip(before, after, strict=True):
            X_LS = link.primary @ shape.pose
            assert other.pose.approx_equal(X_LS, 1e-14)
            assert msgspec.structs.replace(other, pose=shape.pose) == shape


@settings(max_examples=10)
@given(robots())
def test_the_text_is_the_same_every_time(cell: Workcell):
    assert write(cell)[0] == write(msgspec.structs.replace(cell))[0]


@settings(max_examples=20)
@given(robots())
def test_only_what_is_lost_is_a_warning(cell: Workcell):
    _, report = write(cell)
    warnings = {d.code for d in report.diagnostics if d.severity is Severity.WARNING}
    assert warnings <= {"unbounded"}


# Rotations at their worst.


@pytest.mark.parametrize("pitch", [RIGHT, -RIGHT])
@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-12, 1e-8, 3e-8, 1e-4])
def test_rotations_near_gimbal_lock_come_back(pitch: float, off: float):
    rng = np.random.default_rng(3)
    for roll, yaw in rng.uniform(-3.0, 3.0, (20, 2)):
        X = Pose.from_rpy(roll, pitch - math.copysign(off, pitch), yaw)
        cell = cell_of(
            Link(name="base"),
            Link(name="tip", parent="base", joint=Fixed(precursor=X)),
        )
        back = again(cell).manipulators[0].link("tip").joint.precursor
        assert back.approx_equal(X, 1e-15)


def test_rotations_that_are_sheared_are_reported():
    sheared = Pose(
        ((1.0, 1e-7, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0)
    )
    tip = Link(name="tip", parent="base", joint=Fixed(precursor=sheared))
    _, report = write(cell_of(Link(name="base"), tip))
    assert lines(report) == [
        "warning[rounded]: the rotation of joint 'tip' is sheared; the nearest true "
        "one is written"
    ]


# Joints.

LIMITED = Limits(lower=-1.0, upper=1.0, velocity=1.0, effort=1.0)
WITH_LIMITS: dict[str, Any] = {"limits": LIMITED}


def chain(*moving: Joint, **fields: Any) -> Workcell:
    links = [Link(name="l0")]
    links += [
        Link(name=f"l{k}", parent=f"l{k - 1}", joint=joint, **WITH_LIMITS | fields)
        for k, joint in enumerate(moving, 1)
    ]
    return cell_of(*links)


def test_the_whole_file(golden: Any):
    cell = cell_of(
        Link(name="base", visuals=(Box(size=(1.0, 1.0, 0.1), colour=(1, 0, 0, 1)),)),
        Link(
            name="arm",
            parent="base",
            joint=PaulRevolute(d=0.4, a=0.3, alpha=RIGHT),
            joint_name="swing",
            limits=LIMITED,
            primary=Pose.translation(0.0, 0.0, 0.1),
            inertia=SpatialInertia.from_centre(2.0, (0.1, 0, 0), np.diag([1, 2, 2.5])),
            collisions=(Cylinder(radius=0.1, length=0.3, colour=(1, 0, 0, 1)),),
            frames=(
                Frame(name="tool", pose=Pose.rotation_y(RIGHT), end_effector=True),
            ),
        ),
        Link(
            name="finger",
            parent="arm",
            joint=Prismatic(axis=(0.0, 1.0, 0.0)),
            limits=Limits(lower=0.0),
            coupling=Coupling(of="swing", multiplier=0.1, offset=0.2),
        ),
        Link(
            name="wheel", parent="base", joint=Revolute(precursor=Pose.rotation_x(1.0))
        ),
    )
    text, report = write(cell)
    golden("urdf_written.txt", text + "".join(f"\n{line}" for line in lines(report)))


def test_what_turns_without_limits_is_continuous():
    text, report = write(chain(Revolute(), limits=Limits()))
    assert '<joint name="l1" type="continuous">' in text
    assert "<limit" not in text
    assert lines(report) == []
    assert again(chain(Revolute(), limits=Limits())).limits[1].tolist() == [math.inf]


def test_limits_that_are_missing_are_reported():
    _, report = write(chain(Prismatic(), Prismatic(), limits=Limits(effort=1.0)))
    assert lines(report) == [
        "warning[unbounded]: 2 joints have no limit 'lower', but URDF needs one: "
        "-1e+09 is written",
        "warning[unbounded]: 2 joints have no limit 'upper', but URDF needs one: 1e+09 "
        "is written",
        "warning[unbounded]: 2 joints have no limit 'velocity', but URDF needs one: "
        "1e+09 is written",
    ]


@pytest.mark.parametrize(
    "joint",
    [
        PaulRevolute(theta=0.3, d=1.0, a=2.0, alpha=0.4),
        CraigRevolute(theta=0.3, d=1.0, a=2.0, alpha=0.4),
        PaulPrismatic(theta=0.3, d=1.0, a=2.0, alpha=0.4),
        CraigPrismatic(theta=0.3, d=1.0, a=2.0, alpha=0.4),
        Crank(arm=0.5),
        Slope(),
        Screw(pitch=0.0),
    ],
)
def test_joints_with_a_line_are_written(joint: Joint):
    cell = chain(joint, joint)
    assert_moves_alike(cell, again(cell))


class Geared(Joint, frozen=True):
    def pose(self, q: Any) -> Any:
        return Pose.rotation_z(2.0 * q)


class Bent(Joint, frozen=True):
    """Turns, but slides once q is beyond 100."""

    def pose(self, q: Any) -> Any:
        return Pose.rotation_z(q) if q < 100.0 else Pose.translation(q, 0.0, 0.0)


class Twice(Joint, frozen=True):
    def pose(self, q: Any) -> Any:
        return Pose.rotation_z(q) @ Pose.rotation_x(q)


class Wave(Joint, frozen=True):
    def pose(self, q: Any) -> Any:
        return Pose.translation(np.sin(q), 0.0, 0.0)


OTHERS: list[Joint] = [
    Screw(pitch=0.1),
    CircleTrack(radius=2.0),
    OvalTrack(straight=1.0, radius=0.5),
    Geared(),
    Bent(),
    Twice(),
    Wave(),
]


@pytest.mark.parametrize("joint", OTHERS, ids=lambda joint: type(joint).__name__)
def test_joints_without_a_line_have_no_pivot(joint: Joint):
    assert joint_axis_of(joint) is None


def test_all_joints_that_urdf_cannot_hold_are_listed():
    with pytest.raises(FormatError) as caught:
        write(chain(*OTHERS[:3], Revolute()))
    found = [str(d).split(", which")[0] for d in caught.value.diagnostics]
    assert found == [
        "error[joint-type]: joint 'l1' is a Screw",
        "error[joint-type]: joint 'l2' is a CircleTrack",
        "error[joint-type]: joint 'l3' is a OvalTrack",
    ]


def test_every_joint_type_is_written_or_refused():
    for kind in JOINT_TYPES.values():
        fields = {
            field.name for field in msgspec.structs.fields(kind) if field.required
        }
        known = {"straight": 1.0, "radius": 1.0, "pitch": 0.1}
        if not fields <= known.keys():
            continue
        cell = chain(kind(**{name: known[name] for name in fields}))
        try:
            other = again(cell)
        except FormatError as error:
            assert "error[joint-type]" in str(error)
        else:
            assert_moves_alike(cell, other)


# What is lost.


def test_a_cell_without_manipulators_is_refused():
    with pytest.raises(FormatError, match=r"error\[no-links\]"):
        write(Workcell())


def test_losses_are_reported():
    class Cone(Shape, frozen=True, kw_only=True, tag="test_cone"):
        height: float = 1.0

    base = Link(
        name="base",
        visuals=(Cone(), Cone()),
        frames=(Frame(name="tool", end_effector=True),),
        inertia=SpatialInertia.from_centre(1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0])),
    )
    tip = Link(name="tip", parent="base", limits=LIMITED)
    wheels = (
        Link(name=name, parent="tip", joint=Revolute(), passive=True)
        for name in ("left", "right")
    )
    manipulator = Manipulator(
        name="arm",
        links=(base, tip, *wheels),
        postures=(Posture(name="rest", joints=("left",), q=(1.0,)),),
        home="rest",
        properties=(Property(name="colour"),),
    )
    lab = Workcell(
        name="lab", manipulators=(manipulator,), properties=(Property(name="room"),)
    )
    _, report = write(lab)
    found = [line for line in lines(report) if line.startswith("warning")]
    assert found == [
        "warning[bad-inertia]: the inertia of 'base' is impossible: the largest "
        "principal moment exceeds the sum of the others: 1, 1, 3 kg m^2",
        "warning[not-kept]: that a joint is passive is not kept (2 times)",
        "warning[not-kept]: that a frame is an end effector is not kept",
        "warning[not-kept]: a shape of type Cone is not kept (2 times)",
        "warning[not-kept]: a posture is not kept",
        "warning[not-kept]: in which posture a manipulator starts is not kept",
        "warning[not-kept]: a property is not kept (2 times)",
        "warning[not-kept]: a limit of a fixed joint is not kept",
        "warning[not-kept]: the cell's name 'lab' is not kept",
    ]


def test_names_that_xml_cannot_hold_are_refused():
    with pytest.raises(FormatError, match="cannot hold the character"):
        write(cell_of(Link(name="a\0b")))


def test_names_with_markup_come_back():
    cell = cell_of(Link(name="<\"&'>\n\t ü"), name="a b")
    other = again(cell)
    assert other.manipulators[0].links[0].name == "<\"&'>\n\t ü"
    assert other.name == "a b"


def test_massless_links_come_back():
    cell = cell_of(Link(name="base", inertia=SpatialInertia.zero()))
    assert again(cell).manipulators[0].links[0].inertia == SpatialInertia.zero()


# Where the robot stands, and others beside it.

AWAY = Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 2.0, 3.0))


def test_a_mounted_robot_gets_a_link_for_the_world():
    links = chain(Revolute()).manipulators[0].links
    cell = cell_of(*links, mounts=(Mount(manipulator="arm", pose=AWAY),))
    other = again(cell)
    assert [link.name for link in other.manipulators[0].links][:2] == ["world", "l0"]
    assert_moves_alike(cell, other)


def test_a_base_may_be_called_world():
    base = Link(name="world", joint=Fixed(precursor=AWAY))
    other = again(cell_of(base))
    assert [link.name for link in other.manipulators[0].links] == ["world_2", "world"]
    assert_moves_alike(cell_of(base), other)


def several() -> Workcell:
    """A rail, an arm on its end with a tool on a named frame, and a table."""
    rail = Manipulator(
        name="rail",
        links=(
            Link(name="base"),
            Link(name="slider", parent="base", joint=Prismatic(), limits=LIMITED),
            Link(name="cover", parent="base", joint=Revolute(), limits=LIMITED),
        ),
    )
    links = list(chain(Revolute(), PaulRevolute(a=1.0)).manipulators[0].links)
    links[2] = msgspec.structs.replace(
        links[2], frames=(Frame(name="flange", pose=Pose.rotation_x(0.3)),)
    )
    robot = Manipulator(name="arm", links=tuple(links))
    tool = Manipulator(name="tool", links=(Link(name="base"),))
    table = Manipulator(
        name="table", links=(Link(name="base", joint=Fixed(precursor=AWAY)),)
    )
    return Workcell(
        name="lab",
        manipulators=(table, robot, rail, tool),
        mounts=(
            Mount(manipulator="arm", on="rail/slider", pose=AWAY),
            Mount(manipulator="tool", on="arm/flange", pose=Pose.rotation_z(1.0)),
        ),
    )


def test_several_manipulators_become_one_tree_with_the_same_names():
    cell = several()
    text, report = write(cell)
    other, _ = read(text)
    assert other.name == "lab"
    assert sorted(other.joint_names) == sorted(cell.joint_names)
    assert_moves_alike(cell, other)
    found = [line for line in lines(report) if line.startswith("warning")]
    assert found == [
        "warning[one-robot]: 4 manipulators become one robot; their frames and joints "
        "are called 'manipulator/name' in it",
        "warning[joint-order]: the order of the joints changes, since one manipulator "
        "is mounted on another; it becomes rail/slider, arm/l1, arm/l2, rail/cover",
    ]
    assert other.joint_names == ("rail/slider", "arm/l1", "arm/l2", "rail/cover")


def test_the_order_of_joints_is_kept_where_manipulators_stand_side_by_side():
    parts = several().manipulators
    cell = Workcell(name="lab", manipulators=parts)
    _, report = write(cell)
    assert "joint-order" not in {d.code for d in report.diagnostics}
    assert again(cell).joint_names == cell.joint_names


def test_damping_and_friction_come_back():
    damped = JointDynamics(damping=0.5, friction=2.0)
    cell = chain(Revolute(), dynamics=damped)
    text, report = write(cell)
    assert '<dynamics damping="0.5" friction="2.0"/>' in text
    assert not report.count(Severity.WARNING)
    assert again(cell).links[-1].dynamics == damped


@pytest.mark.peers
def test_pinocchio_finds_damping_and_friction(tmp_path):
    pin: Any = pytest.importorskip("pinocchio")
    path = tmp_path / "arm.urdf"
    damped = JointDynamics(damping=0.5, friction=2.0)
    path.write_text(write(chain(Revolute(), Prismatic(), dynamics=damped))[0])
    model = pin.buildModelFromUrdf(str(path))
    assert model.damping.tolist() == [0.5, 0.5]
    assert model.upperDryFrictionLimit.tolist() == [2.0, 2.0]


def test_motors_are_written_for_ros_and_drake():
    motor = JointDynamics(motor_inertia=2e-4, gear_ratio=-50.0)
    text, report = write(chain(Revolute(), dynamics=motor))
    assert text.endswith(
        """\
  <transmission name="l1_transmission">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="l1"/>
    <actuator name="l1_motor">
      <mechanicalReduction>-50.0</mechanicalReduction>
      <drake:rotor_inertia value="0.0002"/>
      <drake:gear_ratio value="-50.0"/>
    </actuator>
  </transmission>
</robot>
"""
    )
    assert '<robot name="arm" xmlns:drake="http://drake.mit.edu">' in text
    assert not report.count(Severity.WARNING)
    cell = again(chain(Revolute(), dynamics=motor))
    assert cell.links[-1].dynamics == motor


@pytest.mark.peers
def test_others_read_files_with_motors(tmp_path):
    pin: Any = pytest.importorskip("pinocchio")
    mujoco: Any = pytest.importorskip("mujoco")
    path = tmp_path / "arm.urdf"
    motor = JointDynamics(motor_inertia=2e-4, gear_ratio=-50.0, damping=0.5)
    body = SpatialInertia.from_centre(1.0, (0.0, 0.0, 0.0), np.eye(3))
    links = (
        Link(name="base"),
        Link(
            name="tip",
            parent="base",
            joint=Revolute(),
            limits=LIMITED,
            dynamics=motor,
            inertia=body,
        ),
    )
    path.write_text(write(cell_of(*links))[0])
    assert pin.buildModelFromUrdf(str(path)).damping.tolist() == [0.5]
    assert mujoco.MjModel.from_xml_path(str(path)).dof_damping.tolist() == [0.5]


def test_what_urdf_does_not_have_of_dynamics_is_reported():
    spring = JointDynamics(stiffness=2.0, rest=0.5, friction=3.0)
    text, report = write(chain(Revolute(), dynamics=spring))
    assert '<dynamics damping="0.0" friction="3.0"/>' in text
    assert [line.partition(": ")[2] for line in lines(report)] == [
        "the spring of a joint is not kept",
    ]


def test_properties_are_reported():
    noted = Property(name="robwork.joint", of="turned")
    links = Link(name="base"), Link(name="turned", parent="base", joint=Revolute())
    arm_of = Manipulator(name="arm", links=links, properties=(noted,))
    _, report = write(Workcell(name="arm", manipulators=(arm_of,)))
    assert any("a property is not kept" in line for line in lines(report))


def capsules() -> Workcell:
    shapes = (Capsule(radius=0.1, length=1.0), Sphere(radius=0.2))
    return cell_of(Link(name="base", visuals=shapes, collisions=shapes))


def test_capsules_need_a_newer_urdf():
    text, report = write(capsules())
    assert '<robot name="arm" version="1.1">' in text
    (line,) = lines(report)
    assert line.startswith("note[newer-urdf]: capsules need URDF 1.1")
    assert again(capsules()).manipulators[0].links == capsules().manipulators[0].links
    plain, _ = write(cell_of(Link(name="base")))
    assert "version" not in plain.splitlines()[1]


def test_limits_of_acceleration_are_reported_to_be_new():
    limits = Limits(lower=0.0, upper=1.0, velocity=1.0, effort=1.0, acceleration=3.0)
    _, report = write(chain(Revolute(), limits=limits))
    assert [x.split("]")[0] for x in lines(report)] == ["note[newer-urdf"]


@pytest.mark.peers
def test_pinocchio_finds_the_capsules(tmp_path):
    pin: Any = pytest.importorskip("pinocchio")
    path = tmp_path / "arm.urdf"
    path.write_text(write(capsules())[0])
    model = pin.buildModelFromUrdf(str(path))
    for kind in (pin.GeometryType.VISUAL, pin.GeometryType.COLLISION):
        assert len(pin.buildGeomFromUrdf(model, str(path), kind).geometryObjects) == 2


def test_names_that_xacro_would_expand_are_renamed():
    tip = Link(name="${side}_tip", parent="$(id)", joint=Revolute(), joint_name="$(q)")
    hook = Link(name="_(id)", parent="${side}_tip", joint=Fixed())
    links = (Link(name="$(id)"), tip, hook)
    cell = Workcell(
        name="$(cell)", manipulators=(Manipulator(name="$(cell)", links=links),)
    )
    data, report = registry.write(cell, format="urdf")
    assert [d.code for d in report.diagnostics] == ["renamed"]
    again = FORMAT.read(data, "x.urdf", ReadOptions(), Report())
    (arm,) = again.manipulators
    assert arm.name == "_(cell)"
    assert arm.joint_names == ("_(q)",)
    assert [link.name for link in arm.links] == ["_(id)_", "_{side}_tip", "_(id)"]
