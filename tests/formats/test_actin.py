from __future__ import annotations

import math
import random
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armillary
from armillary.errors import FormatError, JointError, PluginError
from armillary.formats.actin import FORMAT
from armillary.formats.actin.components import ACTINS, components, row_for
from armillary.formats.diagnostic import Diagnostic, Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.registry import FORMATS
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.group import Group
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import (
    CircleTrack,
    CraigPrismatic,
    CraigRevolute,
    Curve,
    Fixed,
    FourBarSlider,
    OvalTrack,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mechanism import Mechanism
from armillary.model.mount import Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.shape import Shape
from armillary.model.shapes import (
    Box,
    Cone,
    Cylinder,
    HalfSpace,
    Mesh,
    Sphere,
    Tetrahedron,
)
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.shapes import distance
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE
from work import counted, growth

SHARED = Path(__file__).resolve().parents[3] / "shared"
CR = 'xmlns:cr="http://www.energid.com/namespace/cr"'
MN = 'xmlns:mn="http://www.energid.com/namespace/mn"'
SPACES = f"{CR} {MN}"

PRINTED = """\
<mynamespace:circlejoint library="CircleJoint.ecp" xmlns:mynamespace="MyNameSpace">
  <mynamespace:circlejointprecursor>
    <cr:orientation q0=".7071067811865476" q1=".7071067811865475" q2="-0" q3="0" \
xmlns:cr="http://www.energid.com/namespace/cr">
    <translation x="0" y="0" z="0">
  </translation></cr:orientation></mynamespace:circlejointprecursor>
  <mynamespace:circlejointradius>2</mynamespace:circlejointradius>
  <primaryframe>
    <cr:orientation q0="1" q1="0" q2="0" q3="0" \
xmlns:cr="http://www.energid.com/namespace/cr">
    <translation x="0" y="0" z="0">
  </translation></cr:orientation></primaryframe>
</mynamespace:circlejoint>
"""

REPAIRED = f"""\
<?xml version="1.0" encoding="utf-8"?>
<mynamespace:circleJoint library="CircleJoint.ecp" {SPACES} \
xmlns:mynamespace="MyNameSpace">
  <mynamespace:circleJointPrecursor>
    <cr:orientation q0="0.7071067811865475" q1="0.7071067811865475" q2="0.0" q3="0.0"/>
    <cr:translation x="0.0" y="0.0" z="0.0"/>
  </mynamespace:circleJointPrecursor>
  <mynamespace:circleJointRadius>2.0</mynamespace:circleJointRadius>
  <mn:primaryFrame>
    <cr:orientation q0="1.0" q1="0.0" q2="0.0" q3="0.0"/>
    <cr:translation x="0.0" y="0.0" z="0.0"/>
  </mn:primaryFrame>
</mynamespace:circleJoint>
"""


class Crank(Joint, frozen=True):
    arm: float
    offset: tuple[float, float] = (0.0, 0.0)
    is_left: bool = False
    unit = Unit.RADIAN

    def pose(self, q):
        x = -self.arm if self.is_left else self.arm
        return Pose.rotation_z(q) @ Pose.translation(x, *self.offset)


def read(data: bytes | str, *joints: type[Joint]) -> tuple[Workcell, Report]:
    report = Report()
    text = data.encode() if isinstance(data, str) else data
    options = ReadOptions(joints={kind.tag: kind for kind in joints})
    return FORMAT.read(text, "lab/cell.actin.xml", options, report), report


def write(cell: Workcell) -> tuple[bytes, Report]:
    report = Report()
    return FORMAT.write(cell, report), report


def told(report: Report, severity: Severity = Severity.WARNING) -> list[str]:
    return [found.code for found in report.diagnostics if found.severity is severity]


def refusals(data: bytes | str) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(data)
    return [str(found) for found in caught.value.diagnostics]


def only_joint(cell: Workcell) -> Joint:
    (joint,) = (each.joint for each in cell.manipulators[0].links if each.parent)
    return joint


def two_links(joint: Joint, **more: Any) -> Workcell:
    tip = Link(name="tip", parent="base", joint=joint, **more)
    arm = Manipulator(name="arm", links=(Link(name="base"), tip))
    return Workcell(name="lab", manipulators=(arm,))


def check_kept(cell: Workcell, *joints: type[Joint]) -> None:
    """Check that a cell comes back, and the same bytes of it, without a warning."""
    data, report = write(cell)
    assert told(report) == []
    back, report = read(data, *joints)
    assert [str(found) for found in report.diagnostics] == []
    assert back == cell
    assert write(back)[0] == data


def random_pose(rng: random.Random) -> Pose:
    angles = (rng.uniform(-3, 3) for _ in range(3))
    return Pose.from_rpy(*angles, position=[rng.uniform(-2, 2) for _ in range(3)])


# The seed's sample.


@pytest.mark.parametrize("text", [PRINTED, REPAIRED], ids=["printed", "repaired"])
def test_sample_of_the_seed(text: str):
    cell, report = read(text)
    joint = only_joint(cell)
    assert joint == CircleTrack(radius=2.0, precursor=Pose.rotation_x(math.pi / 2))
    # The circle's axis, z of the precursor, is -y of the parent.
    assert joint.precursor.rotate((0, 0, 1)) == (0.0, -1.0, 0.0)
    note = Property(name="actin.library", of="circleJoint", text="CircleJoint.ecp")
    assert cell.manipulators[0].properties == (note,)
    assert write(cell)[0].decode() == REPAIRED
    assert told(report) == (["namespace"] * 2 if text is PRINTED else [])


def test_sample_goes_through_load_and_save(tmp_path: Path):
    path = tmp_path / "circle.actin.xml"
    path.write_text(PRINTED)
    report = armillary.save(armillary.load(path), path)
    assert report.diagnostics == ()
    assert path.read_text() == REPAIRED


def test_sample_in_the_seed_itself():
    folder = SHARED / "seeds"
    if not folder.is_dir():
        pytest.skip("the seeds are not here")
    (path,) = folder.glob("000_*.txt")
    text = path.read_text()
    (found,) = re.findall(
        r"(?s)<mynamespace:circlejoint .*</mynamespace:circlejoint>", text
    )
    cell, report = read(found)
    assert cell == read(PRINTED)[0]
    assert "no-break-space" in told(report, Severity.NOTE)
    assert set(told(report)) == {"namespace"}


def test_namespace_is_reported_but_not_needed():
    text = REPAIRED.replace('="MyNameSpace"', '=" CircleJointNamespace#"')
    cell, report = read(text)
    assert cell == read(REPAIRED)[0]
    assert told(report) == ["namespace"] * 3
    for space in ("CircleJointNamespace", "CircleJointNamespace#", "MyNameSpace#"):
        text = REPAIRED.replace('="MyNameSpace"', f'="{space}"')
        assert told(read(text)[1]) == []


def test_library_is_never_loaded(monkeypatch: pytest.MonkeyPatch):
    import ctypes

    def fail(*_: Any) -> None:
        raise AssertionError("something was loaded")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    monkeypatch.setattr("importlib.import_module", fail)
    text = REPAIRED.replace("CircleJoint.ecp", "../../lib/libc.so.6")
    cell, _ = read(text)
    assert b'library="../../lib/libc.so.6"' in write(cell)[0]


@pytest.mark.parametrize("radius", ["0", "-1", "nan", "1e999", "", "1 2", "two"])
def test_bad_radius(radius: str):
    text = REPAIRED.replace(">2.0<", f">{radius}<")
    assert any("lab/cell.actin.xml:" in line for line in refusals(text))


# Round trips.

TURN = Pose.from_rpy(0.3, -0.4, 0.5, (1.0, 2.0, 3.0))
JOINTS = [
    Fixed(precursor=TURN),
    Revolute(),
    Revolute(precursor=TURN),
    Revolute(axis=(1.0, 2.0, 3.0)),
    Prismatic(),
    Prismatic(axis=(0.0, -1.0, 0.0), precursor=TURN),
    Screw(pitch=0.003),
    Screw(pitch=-0.7, precursor=TURN),
    Screw(pitch=0.0),
    Screw(pitch=0.1, axis=(1.0, 0.0, 0.0)),
    PaulRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4),
    PaulPrismatic(theta=0.1, d=0.2, a=0.3, alpha=0.4, precursor=TURN),
    CraigRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4, precursor=TURN),
    CraigPrismatic(theta=0.1, d=0.2, a=0.3, alpha=0.4),
    CircleTrack(radius=2.0, precursor=TURN),
    CircleTrack(radius=2.0, inward=True),
    OvalTrack(straight=3.0, radius=1.0),
    FourBarSlider(nominal=0.4, lever=0.3, opposite=0.35, offset=0.02),
    FourBarSlider(nominal=0.4, lever=0.3, opposite=0.35, pivoted=False),
    Curve(points=[(0, 0, 0), (1, 0.3, 0), (2, 0, 0.1)], precursor=TURN),
    Curve(points=[(0, 0, 0), (1, 0.3, 0), (0.5, 2, 0)], closed=True, up=None),
    Crank(arm=0.5),
    Crank(arm=0.5, offset=(1.0, 2.0), is_left=True, precursor=TURN),
]


DRIVE = JointDynamics(
    motor_inertia=3e-4,
    gear_ratio=-101.0,
    damping=0.3,
    friction=1.7,
    stiffness=11.1,
    rest=-0.7,
)


@pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: type(joint).__name__)
@pytest.mark.parametrize("primary", [IDENTITY, TURN], ids=["plain", "primary"])
def test_joints_are_kept(joint: Joint, primary: Pose):
    limits = Limits(lower=-0.3, upper=1.7, velocity=0.7, acceleration=3.3, effort=11.1)
    dynamics = DRIVE
    if isinstance(joint, Fixed):
        limits, dynamics = Limits(), JointDynamics()
    fields = {"primary": primary, "limits": limits, "dynamics": dynamics}
    check_kept(two_links(joint, **fields), Crank)


def test_every_class_of_ours_has_a_row():
    kinds = {row.kind for row in components({})}
    assert kinds >= {type(joint) for joint in JOINTS} - {Crank}
    assert len({row.element.lower() for row in ACTINS}) == 4
    for joint in JOINTS:
        row = row_for(joint)
        assert row is not None
        assert row.holds(joint)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(10))
def test_random_cells_are_kept(seed: int):
    rng = random.Random(seed)
    arms: list[Manipulator] = []
    mounts: list[Mount] = []
    for m in range(3):
        links = [Link(name="base", primary=random_pose(rng))]
        for k in range(6):
            joint = rng.choice(JOINTS[1:-2])
            half = rng.uniform(0.01, 2.0)
            body = SpatialInertia.from_centre(
                half,
                [rng.uniform(-1, 1) for _ in range(3)],
                [[2, 0, 0], [0, 2, 0], [0, 0, 3]],
            ).transformed(random_pose(rng))
            links.append(
                Link(
                    name=f"l{k}",
                    parent=links[k if k < 3 else rng.randrange(3, k + 1)].name,
                    joint=joint,
                    joint_name=rng.choice(["", f"j{k}"]),
                    passive=rng.random() < 0.2,
                    primary=random_pose(rng),
                    limits=Limits(lower=-half, upper=math.pi * half),
                    inertia=body,
                    frames=(
                        Frame(name=f"f{k}", pose=random_pose(rng), end_effector=k > 4),
                    ),
                )
            )
        arm = Manipulator(name=f"m{m}", links=tuple(links))
        arm = Manipulator(name=f"m{m}", links=tuple(links[k] for k in arm.order))
        q = tuple(rng.uniform(-1, 1) for _ in arm.joint_names)
        home = Posture(name="rest", joints=arm.joint_names, q=q)
        arms.append(
            Manipulator(name=arm.name, links=arm.links, postures=(home,), home="rest")
        )
        on = ["world", "m0/f2", "m1/l4"][m]
        mounts.append(
            Mount(manipulator=f"m{m}", on=on, pose=random_pose(rng), bolted=m != 1)
        )
    check_kept(Workcell(name="lab", manipulators=tuple(arms), mounts=tuple(mounts)))


def test_examples_are_kept():
    cell = armillary.example("ur5e_on_oval")
    back = read(write(cell.workcell)[0])[0]
    assert (back.name, back.manipulators) == (cell.name, cell.manipulators)
    assert (back.mounts, back.properties) == (cell.mounts, cell.properties)


def test_coupling_is_kept():
    follower = Link(
        name="b",
        parent="base",
        joint=Prismatic(),
        coupling=Coupling(of="a", multiplier=-0.5, offset=0.1),
    )
    links = (
        Link(name="base"),
        Link(name="a", parent="base", joint=Revolute()),
        follower,
    )
    check_kept(Workcell(name="w", manipulators=(Manipulator(name="m", links=links),)))


class Handed(Joint, frozen=True):
    linkID: float
    D: float = 2.0

    def pose(self, q):
        return Pose.rotation_z(q * self.D) @ Pose.translation(self.linkID, 0.0, 0.0)


def test_own_parameters_may_be_spelled_in_another_way_than_actins():
    check_kept(two_links(Handed(linkID=3.0, D=4.0)), Handed)


class Twice(Joint, frozen=True):
    a: float = 1.0
    A: float = 2.0

    def pose(self, q):
        return Pose.rotation_z(q) @ Pose.translation(self.a, self.A, 0.0)


def test_parameters_that_differ_by_case_alone_are_not_written():
    assert row_for(Twice()) is None
    assert told(write(two_links(Twice()))[1]) == ["lost-joint"]


def test_every_field_of_the_model_is_written_or_reported():
    written = {
        Workcell: "name manipulators mounts properties rules loops coupled_limits",
        Manipulator: "name links postures home groups properties wheels loops "
        "coupled_limits",
        Link: "name parent joint joint_name limits dynamics coupling inputs passive "
        "primary inertia frames visuals collisions",
        Frame: "name pose end_effector",
        Mount: "manipulator on pose bolted",
        Limits: "lower upper velocity acceleration effort",
        Coupling: "of multiplier offset",
        SpatialInertia: "mass first_moment rotational",
    }
    for model, fields in written.items():
        assert model.__struct_fields__ == tuple(fields.split()), model


SHAPES = (
    Sphere(radius=1.0, name="ball", colour=(1.0, 0.5, 0.0, 1.0), pose=TURN),
    Box(size=(1.0, 2.0, 3.0)),
    Cylinder(radius=1.0, length=2.0),
    Cone(bottom=1.0, length=2.0),
    HalfSpace(pose=TURN),
    Tetrahedron(corners=((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))),
    Mesh(file="package://a/b.stl", scale=(1.0, 1.0, -2.0)),
)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_shapes_are_kept(shape: Shape):
    check_kept(two_links(Revolute(), visuals=(shape, SHAPES[0]), collisions=(shape,)))


def extents(shape: str, *, volume: str = "") -> str:
    """A file whose second link shows a shape."""
    tested = f"<mn:boundingVolume>{volume}</mn:boundingVolume>" if volume else ""
    return two_link_file(
        GENERAL,
        f"<mn:shapeContainer><mn:physicalExtent>{shape}</mn:physicalExtent>{tested}"
        "</mn:shapeContainer>",
    )


def actins(name: str, **parts: Any) -> str:
    """An element of Actin's: numbers as text, points as x, y and z, others inside."""
    inside = ""
    for part, value in parts.items():
        if isinstance(value, str):
            inside += value
        elif isinstance(value, tuple):
            x, y, z = value
            inside += f'<mn:{part} x="{x}" y="{y}" z="{z}"/>'
        else:
            inside += f"<mn:{part}>{value}</mn:{part}>"
    return f"<mn:{name}>{inside}</mn:{name}>"


SEGMENT = actins("lineSegment", endpoint0=(0, 0, 1), endpoint1=(0, 2, 1))
ACTINS_SHAPES: list[tuple[str, list[tuple[tuple[float, float, float], bool]]]] = [
    (
        actins("sphere", center=(1, 2, 3), radius=0.5),
        [((1, 2, 3.49), True), ((1, 2, 3.51), False)],
    ),
    (
        actins("capsule", s=SEGMENT, radius=0.5),
        [((0, -0.49, 1), True), ((0, 2.49, 1), True), ((0, 1, 1.51), False)],
    ),
    (
        actins("cylinder", s=SEGMENT, radius=0.5),
        [((0, 0.01, 1.49), True), ((0, -0.01, 1), False)],
    ),
    (
        actins("cone", s=SEGMENT, radius0=1, radius1=0),
        [((0, 0.01, 1.98), True), ((0, 1.5, 1.26), False), ((0, 1.5, 1.24), True)],
    ),
    (
        actins("ellipsoid", ellipsoidA=1, ellipsoidB=2, ellipsoidC=3),
        [((0.99, 0, 0), True), ((0, 1.99, 0), True), ((0, 0, 3.01), False)],
    ),
    (
        actins(
            "lozenge",
            rectangle=actins(
                "rectangle",
                rectangleOrigin=(0, 0, 0),
                rectangleEdge0=(0, 2, 0),
                rectangleEdge1=(0, 0, 4),
            ),
            radius=0.1,
        ),
        [((0.09, 2.0, 4.0), True), ((0, -0.09, 0), True), ((0.11, 1, 1), False)],
    ),
    (
        actins(
            "triangularLozenge",
            triangle=actins(
                "triangle",
                triangleOrigin=(0, 0, 0),
                triangleEdge0=(2, 0, 0),
                triangleEdge1=(0, 2, 0),
            ),
            radius=0.1,
        ),
        [((0.9, 0.9, 0.09), True), ((1.2, 1.2, 0), False)],
    ),
    (
        actins(
            "tetrahedron",
            tetrahedronV0=(1, 0, 0),
            tetrahedronEdge1=(1, 0, 0),
            tetrahedronEdge2=(0, 1, 0),
            tetrahedronEdge3=(0, 0, 1),
        ),
        [((1.1, 0.1, 0.1), True), ((0.9, 0.1, 0.1), False)],
    ),
    (
        actins(
            "halfSpace",
            plane=actins(
                "plane", planeBasePoint=(0, 0, 1), planeNormalVector=(0, 0, 2)
            ),
        ),
        [((5, 5, 0.99), True), ((5, 5, 1.01), False)],
    ),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("text", "points"), ACTINS_SHAPES, ids=lambda x: str(x)[4:12])
def test_shapes_of_actin_are_read(text: str, points: Any):
    cell, report = read(extents(text))
    assert told(report) == []
    tip = cell.manipulators[0].link("tip")
    (shape,) = tip.visuals
    assert tip.collisions == tip.visuals  # as in Actin, where nothing else is tested
    for point, is_inside in points:
        ball = Sphere(radius=1e-9, pose=Pose.translation(*point))
        apart = distance(shape, np.eye(4), ball, np.eye(4)).value
        assert (float(apart) <= 0.0) == is_inside
    other = actins("sphere", center=(0, 0, 0), radius=1)
    tip = read(extents(text, volume=other))[0].manipulators[0].link("tip")
    assert tip.collisions == (Sphere(radius=1.0),)


def test_shapes_of_actin_that_are_faulty_or_unknown():
    cell, report = read(extents(actins("box", boxExtents=(1, 1, 1))))
    assert told(report) == ["unkept-shape"]
    assert "<box> is left out" in report.diagnostics[0].message
    assert cell.manipulators[0].link("tip").visuals == ()
    for text in (
        actins("sphere", center=(0, 0, 0)),
        actins("sphere", center=(0, 0, 0), radius=-1),
        actins("capsule", radius=1),
        ACTINS_SHAPES[5][0].replace('y="2" z="0"', 'y="2" z="1"'),
    ):
        with pytest.raises(FormatError, match=r"missing-element|bad-shape"):
            read(extents(text))


STATE = """<mn:state><mn:manipulatorSystemState><mn:positionStates><mn:positionState>
<mn:jointPositions>0.5</mn:jointPositions></mn:positionState></mn:positionStates>
<mn:velocityStates><mn:velocityState><mn:jointVelocities>-0.25</mn:jointVelocities>
</mn:velocityState></mn:velocityStates><mn:time>12.5</mn:time>
</mn:manipulatorSystemState></mn:state>"""


def test_the_time_and_rates_of_a_state_are_kept():
    cell, report = read(two_link_file(GENERAL, state=STATE))
    assert told(report) == []
    assert cell.properties == (Property(name="actin.time", numbers=(12.5,)),)
    (note,) = cell.manipulators[0].properties
    assert note == Property(name="actin.jointVelocities", numbers=(-0.25,))
    data, report = write(cell)
    assert told(report) == []
    assert b"<mn:time>12.5</mn:time>" in data
    assert read(data)[0] == cell
    wrong = STATE.replace("-0.25", "1 2")
    with pytest.raises(FormatError, match="must hold 1 number, not 2"):
        read(two_link_file(GENERAL, state=wrong))


def test_a_state_that_does_not_fit_any_more_is_not_written():
    """Of an edited cell, whose file nobody could read."""
    cell, _ = read(two_link_file(GENERAL, state=STATE))
    arm = cell.manipulators[0]
    more = Link(name="more", parent=arm.links[-1].name)
    longer = cell.exchange(arm.replace(links=(*arm.links, more)))
    twice = Property(name="actin.time", numbers=(1.0, 2.0))
    for edited, lost in (
        (longer, "'actin.jointVelocities'"),
        (cell.replace(properties=[twice]), "a property of the cell"),
        (cell.replace(properties=[*cell.properties, twice]), "a property of the cell"),
    ):
        data, report = write(edited)
        assert told(report) == ["not-kept"]
        assert lost in report.diagnostics[-1].message
        again, _ = read(data)
        assert again.manipulators[0].links == edited.manipulators[0].links


def test_maps_of_collisions_are_reported():
    inner = "<mn:manipulatorExclusionMap/><mn:linkLinkExclusionMap/>"
    name = "systemCollisionExclusionSet"
    system = f"</mn:manipulators><mn:{name}>{inner}</mn:{name}>"
    text = two_link_file(GENERAL).replace("</mn:manipulators>", system)
    assert told(read(text)[1]) == ["not-kept"]


def test_stray_libraries_are_reported():
    links = (Link(name="base"),)
    note = Property(name="actin.library", of="base", text="x.ecp")
    arm = Manipulator(name="arm", links=links, properties=(note,))
    assert told(write(Workcell(manipulators=(arm,)))[1]) == ["not-kept"]


def test_empty_cell_is_kept():
    check_kept(Workcell(name="nothing"))


# What elements mean.


def dh(kind: str, motion: str, more: str = "") -> Joint:
    text = (
        f"<mn:denavitHartenberg {SPACES}><mn:dhType>{kind}</mn:dhType>"
        f"<mn:jointType>{motion}</mn:jointType><mn:precursor>"
        '<cr:rotation q0="0" q1="0" q2="0" q3="2"/>'
        '<cr:translation x="1" y="2" z="3"/></mn:precursor>'
        "<mn:theta>0.1</mn:theta><mn:d>0.2</mn:d><mn:a>0.3</mn:a>"
        f"<mn:alpha>0.4</mn:alpha>{more}</mn:denavitHartenberg>"
    )
    return only_joint(read(text)[0])


@pytest.mark.parametrize("q", [0.0, 0.7])
def test_denavit_hartenberg(q: float):
    P = Pose.translation(1, 2, 3) @ Pose.rotation_z(math.pi)
    Rz, Rx, T = Pose.rotation_z, Pose.rotation_x, Pose.translation
    along, across = T(0, 0, 0.2), T(0.3, 0, 0) @ Rx(0.4)
    slide = T(0, 0, q)
    expected = {
        ("PAUL", "ROTATIONAL"): P @ along @ Rz(0.1 + q) @ across,
        ("PAUL", "PRISMATIC"): P @ slide @ along @ Rz(0.1) @ across,
        ("CRAIG", "ROTATIONAL"): P @ across @ along @ Rz(0.1 + q),
        ("CRAIG", "PRISMATIC"): P @ across @ slide @ along @ Rz(0.1),
        ("GENERAL", "ROTATIONAL"): P @ Rz(q),
        ("GENERAL", "PRISMATIC"): P @ slide,
    }
    for (kind, motion), X in expected.items():
        assert dh(kind, motion).transform(q).approx_equal(X, 1e-15)
        if kind != "GENERAL":
            assert dh(f"gen_{kind.lower()}", motion) == dh(kind, motion)


def quadrilateral(kind: str, more: str = "") -> str:
    lengths = (
        "<mn:nominalSliderLength>0.4</mn:nominalSliderLength>"
        "<mn:d1Length>0.02</mn:d1Length><mn:d2Length>0.3</mn:d2Length>"
        "<mn:oppositeLength>0.35</mn:oppositeLength>"
    )
    return (
        f"<mn:quadrilateralTypeLink><mn:sliderType>{kind}</mn:sliderType>{lengths}"
        f"{more}</mn:quadrilateralTypeLink>"
    )


@pytest.mark.parametrize("kind", ["PIVOTED_SLIDER", "FIXED_SLIDER"])
def test_a_quadrilateral_is_turned_by_its_slider(kind: str):
    """By construction: the lever's tip is as far from the foot or pin as they are."""
    far = "<mn:zDistanceA>0</mn:zDistanceA>"
    cell, report = read(two_link_file(quadrilateral(kind, far)))
    assert told(report) == []
    joint = only_joint(cell)
    for q in (-0.05, 0.0, 0.1):
        x, y, _ = (joint.transform(q) @ Pose.translation(0.3, 0, 0)).position
        if kind == "PIVOTED_SLIDER":
            assert math.isclose(math.hypot(x - 0.35, y - 0.02), 0.4 + q)
        else:
            assert math.isclose(math.hypot(x - 0.4 - q, y - 0.02), 0.35)
    assert b"<mn:quadrilateralTypeLink>" in write(cell)[0]
    beside = "<mn:zDistanceB>0.1</mn:zDistanceB>"
    with pytest.raises(FormatError, match=r"unread-parameter.*<zDistanceB> .* be 0"):
        read(two_link_file(quadrilateral(kind, beside)))


def test_words_that_do_not_exist():
    base = f"<mn:denavitHartenberg {SPACES}><mn:dhType>POUL</mn:dhType>"
    found = refusals(base + "</mn:denavitHartenberg>")
    assert any("no <dhType> is called 'POUL'. Did you mean 'PAUL'?" in f for f in found)


def test_general_type_tells_of_parameters_that_count_for_nothing():
    base = (
        f"<mn:denavitHartenberg {SPACES}><mn:dhType>GENERAL</mn:dhType>"
        "<mn:jointType>PRISMATIC</mn:jointType><mn:a>0</mn:a><mn:d>1</mn:d>"
        "</mn:denavitHartenberg>"
    )
    assert told(read(base)[1]) == ["unused-parameter"]


@pytest.mark.parametrize("per_length", [4.0, -4.0])
def test_screw_goes_by_its_length_in_files(per_length: float):
    text = two_link_file(
        f"<mn:screwTypeLink><mn:pitch>{per_length}</mn:pitch></mn:screwTypeLink>",
        "<mn:jointActuator><mn:lowerLimit>-1</mn:lowerLimit>"
        "<mn:upperLimit>2</mn:upperLimit><mn:maxOutputRate>3</mn:maxOutputRate>"
        "</mn:jointActuator>",
        "<mn:state><mn:positionStates><mn:positionState><mn:jointPositions>0.25"
        "</mn:jointPositions></mn:positionState></mn:positionStates></mn:state>",
    )
    cell, report = read(text)
    assert told(report) == []
    arm = cell.manipulators[0]
    link = arm.link("tip")
    assert link.limits.velocity == 12.0
    expected = sorted((-per_length, 2 * per_length))
    assert [link.limits.lower, link.limits.upper] == expected
    (q,) = arm.posture("state").q
    X = Pose.translation(0, 0, 0.25) @ Pose.rotation_z(per_length * 0.25)
    assert link.joint.transform(q).approx_equal(X, 1e-15)


HOLDER = "<mn:linkKinematicsContainer></mn:linkKinematicsContainer>"
ACTUATOR = (
    '<mn:jointActuator xmlns:am="urn:armillary:actin">'
    "<am:motorInertia>0.5</am:motorInertia>"
    "<am:gearRatio>3</am:gearRatio><am:viscousFriction>5</am:viscousFriction>"
    "<am:coulombFriction>7</am:coulombFriction>"
    "<am:springStiffness>11</am:springStiffness>"
    "<am:springRest>0.25</am:springRest></mn:jointActuator>"
)


@pytest.mark.parametrize("per_length", [4.0, -4.0])
def test_a_screw_has_the_same_power_about_its_length(per_length: float):
    screw = f"<mn:screwTypeLink><mn:pitch>{per_length}</mn:pitch></mn:screwTypeLink>"
    cell, report = read(two_link_file(screw, ACTUATOR))
    assert told(report) == []
    dynamics = cell.manipulators[0].link("tip").dynamics
    x, v, a = 0.7, -0.4, 0.9  # of the length
    force = 0.5 * 3.0**2 * a + 5.0 * v - 7.0 + 11.0 * (x - 0.25)
    torque = dynamics.effort(*(per_length * each for each in (x, v, a)))
    assert torque * per_length * v == pytest.approx(force * v)
    check_kept(cell)


def test_the_drive_of_a_joint_that_does_not_move_is_reported():
    text = two_link_file("", ACTUATOR).replace(HOLDER, "")
    cell, report = read(text)
    assert cell.manipulators[0].link("tip").dynamics == JointDynamics()
    (found,) = report.diagnostics
    assert "the drive of a joint without a coordinate is not kept" in found.message
    wrong = refusals(text.replace(">5<", ">-5<"))
    assert any("'damping' of a joint is -5.0" in found for found in wrong)


def two_link_file(component: str, more: str = "", state: str = "") -> str:
    return f"""<mn:statedSystem {SPACES}><mn:system><mn:manipulators>
<mn:individualManipulator><mn:identifier>arm</mn:identifier>
<mn:manipulatorLink><mn:identifier>base</mn:identifier><mn:childLinks>
<mn:manipulatorLink><mn:identifier>tip</mn:identifier>
<mn:linkKinematicsContainer>{component}</mn:linkKinematicsContainer>{more}
</mn:manipulatorLink></mn:childLinks></mn:manipulatorLink>
</mn:individualManipulator></mn:manipulators></mn:system>{state}</mn:statedSystem>"""


GENERAL = (
    "<mn:denavitHartenberg><mn:dhType>GENERAL</mn:dhType>"
    "<mn:jointType>ROTATIONAL</mn:jointType></mn:denavitHartenberg>"
)


def test_mass_properties_are_second_moments():
    """1.5 kg at x = 1 and at x = 3: j_xx = 15, so I_yy = I_zz = 15 and I_xx = 0."""
    text = two_link_file(
        GENERAL,
        "<mn:massProperties><mn:mass>3</mn:mass><mn:firstMoment><mn:momentX>6"
        "</mn:momentX></mn:firstMoment><mn:secondMoment><mn:jXX>15</mn:jXX>"
        "</mn:secondMoment></mn:massProperties>",
    )
    cell, report = read(text)
    assert told(report) == []
    inertia = cell.manipulators[0].link("tip").inertia
    assert inertia == SpatialInertia(
        3.0, (6.0, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, 15.0, 0.0), (0.0, 0.0, 15.0))
    )


def test_base_pose_is_that_of_the_primary_frame():
    primary = Pose.from_rpy(0.1, 0.2, 0.3, (1, 2, 3))
    base = Link(name="base", primary=primary)
    where = Pose.translation(5.0, 0.0, 0.0)
    cell = Workcell(
        manipulators=(Manipulator(name="m", links=(base,)),),
        mounts=(Mount(manipulator="m", pose=where),),
    )
    text = write(cell)[0].decode()
    (found,) = re.findall(
        r"(?s)<mn:coordinateSystemTransform.*?<cr:translation(.*?)/>", text
    )
    assert found.strip() == 'x="6.0" y="2.0" z="3.0"'


def test_attachment_goes_by_indices():
    text = f"""<mn:statedSystem {SPACES}><mn:system><mn:manipulators>
    <mn:individualManipulator><mn:identifier>a</mn:identifier><mn:manipulatorLink/>
    </mn:individualManipulator>
    <mn:individualManipulator><mn:identifier>b</mn:identifier><mn:manipulatorLink/>
    </mn:individualManipulator></mn:manipulators></mn:system>
    <mn:manipulatorSystemConfiguration><mn:manipulatorAttachmentMap>
    <mn:manipulatorAttachmentNode><mn:manipulatorId>1</mn:manipulatorId>
    <mn:baseManipulatorId>0</mn:baseManipulatorId><mn:linkId>4294967294</mn:linkId>
    <mn:offset><cr:translation x="1"/></mn:offset></mn:manipulatorAttachmentNode>
    </mn:manipulatorAttachmentMap></mn:manipulatorSystemConfiguration>
    </mn:statedSystem>"""
    cell, report = read(text)
    assert told(report) == []
    pose = Pose.translation(1.0, 0.0, 0.0)
    assert cell.mounts == (Mount(manipulator="b", on="a/base", pose=pose),)
    for old, new, why in [
        ("<mn:linkId>4294967294", "<mn:linkId>0", "<linkId> is 0; there are 0"),
        ("Id>1<", "Id>2<", "<manipulatorId> is 2; there are 2"),
        ("Id>0<", "Id>0.5<", "<baseManipulatorId> is 0.5"),
        ("Id>0<", "Id>1<", "cycle"),
    ]:
        assert any(why in line for line in refusals(text.replace(old, new)))


@pytest.mark.parametrize(
    ("pose", "code"),
    [
        ('<cr:orientation q0="1e308" q1="1e308" q2="0" q3="0"/>', "bad-quaternion"),
        ('<cr:translation x="1e308" y="1e308" z="1e308"/>', ""),
    ],
)
def test_numbers_whose_squares_are_too_large_are_refused_with_a_place(
    pose: str, code: str
):
    frame = f"<mn:primaryFrame>{pose}</mn:primaryFrame>"
    text = two_link_file(GENERAL.replace("</mn:denav", f"{frame}</mn:denav"))
    names = ["state", "manipulatorSystemState", "positionStates", "positionState"]
    state = f"<mn:coordinateSystemTransform>{pose}</mn:coordinateSystemTransform>"
    for name in reversed(names):
        state = f"<mn:{name}>{state}</mn:{name}>"
    for each in (text, two_link_file(GENERAL, state=state)):
        if not code:
            read(each)
            continue
        with pytest.raises(FormatError) as caught:
            read(each)
        (found,) = caught.value.diagnostics
        assert isinstance(found, Diagnostic)
        assert found.code == code
        assert found.place.line > 0


def test_names_in_any_case_and_place():
    plain = two_link_file(GENERAL)
    shouted = re.sub(r"(</?mn:)(\w+)", lambda m: m[1] + m[2].upper(), plain)
    assert read(shouted)[0] == read(plain)[0]
    assert told(read(shouted)[1]) == []


def test_whole_system_may_be_the_root():
    inner = re.findall(
        r"(?s)<mn:manipulators>.*</mn:manipulators>", two_link_file(GENERAL)
    )
    cell, _ = read(f"<mn:manipulatorSystem {SPACES}>{inner[0]}</mn:manipulatorSystem>")
    arm = re.findall(r"(?s)<mn:individual.*</mn:individualManipulator>", inner[0])
    alone, _ = read(arm[0].replace("Manipulator>", f"Manipulator {SPACES}>", 1))
    assert cell == alone
    assert cell.name == "cell"


# What is not known.


def test_unknown_component_is_kept_with_its_library():
    component = (
        '<x:hexapod library="Hexapod.ecp" mode="2" xmlns:x="urn:h"><x:leg>1 2</x:leg>'
        '<x:deep x:u="1"><y:er xmlns:y="urn:y"/></x:deep></x:hexapod>'
    )
    cell, report = read(two_link_file(component))
    (warning,) = (d for d in report.diagnostics if d.severity is Severity.WARNING)
    assert warning.code == "unknown-joint-type"
    assert "<hexapod>, which is in the library 'Hexapod.ecp'" in warning.message
    joint = only_joint(cell)
    assert isinstance(joint, OpaqueJoint)
    assert joint.kind == "hexapod"
    data, report = write(cell)
    assert told(report) == []
    assert b'library="Hexapod.ecp"' in data
    assert read(data)[0] == cell
    assert write(read(data)[0])[0] == data


def test_own_class_is_known_where_it_is_named():
    data, _ = write(two_links(Crank(arm=0.5)))
    assert told(read(data)[1]) == ["unknown-joint-type"]
    assert only_joint(read(data, Crank)[0]) == Crank(arm=0.5)
    assert write(read(data)[0])[0].count(b"<am:arm>0.5</am:arm>") == 1


def test_what_is_not_understood_is_reported():
    text = two_link_file(GENERAL, "<mn:spring>3</mn:spring>")
    assert told(read(text)[1]) == ["unknown-element"]
    text = two_link_file(GENERAL).replace("<mn:system>", '<mn:system colour="red">')
    assert told(read(text)[1]) == ["unknown-attribute"]


def test_exact_numbers_give_way_to_edited_ones():
    pose = Pose.from_rpy(0.3, 0.2, 0.1)
    data, _ = write(two_links(Revolute(precursor=pose)))
    assert b"am:exact" in data
    edited = re.sub(rb'q0="[^"]*"', b'q0="0.5"', data)
    cell, report = read(edited)
    assert "not-exact" in told(report)
    assert not only_joint(cell).precursor.approx_equal(pose, 1e-3)


# What cannot be written.


class Named(Joint, frozen=True):
    label: str

    def pose(self, q):
        return Pose.rotation_z(q)


def test_losses_are_reported():
    curve = Named(label="a")
    fields = {"limits": Limits(lower=0.25), "dynamics": DRIVE}
    data, report = write(two_links(curve, **fields))
    assert told(report) == ["lost-joint"]
    assert told(read(data)[1]) == []
    X = only_joint(read(data)[0]).transform(0.0)
    assert X.approx_equal(curve.transform(0.25), 1e-15)
    arm = two_links(Revolute()).manipulators[0]
    postures = (
        Posture(name="a", joints=("tip",), q=(1.0,)),
        Posture(name="b"),
    )
    arm = Manipulator(
        name="arm",
        links=arm.links,
        postures=postures,
        home="b",
        properties=(Property(name="colour", text="red"),),
    )
    note = Property(name="maker", text="us")
    _, report = write(Workcell(name=" w", manipulators=(arm,), properties=(note,)))
    assert sorted(told(report)) == [
        "lost-posture",
        "lost-posture",
        "lost-space",
        "not-kept",
        "not-kept",
    ]


class Labelled(Mechanism, frozen=True):
    label: str
    units = (Unit.RADIAN,)

    def forward(self, q):
        return Pose.rotation_z(q[0])


def test_a_lost_mechanism_is_fixed_where_its_inputs_are():
    turn = Link(name="turn", parent="base", joint=Revolute(), limits=Limits(lower=0.25))
    last = Link(name="last", parent="base", joint=Labelled(label="a"), inputs=("turn",))
    arm = Manipulator(name="arm", links=(Link(name="base"), turn, last))
    data, report = write(Workcell(manipulators=(arm,)))
    assert told(report) == ["lost-joint"]
    back = read(data)[0].manipulators[0].link("last")
    assert back.inputs == ()
    assert back.joint.transform(0.0).approx_equal(Pose.rotation_z(0.25), 1e-15)


@pytest.mark.parametrize("text", ["\x00", "\ud800"])
def test_what_is_not_a_xml_is_refused(text: str):
    arm = Manipulator(name=text, links=(Link(name="base"),))
    with pytest.raises(FormatError):
        write(Workcell(manipulators=(arm,)))


@pytest.mark.parametrize(
    ("mass", "moment", "fault", "kept"),
    [
        ("-1", "0", "the mass is negative, -1 kg", None),
        ("1", "1e200", "the moments are too large for the mass", None),
        ("1", "2", "a principal moment is negative", 1.0),
    ],
)
def test_of_an_impossible_inertia_the_mass_is_kept_at_most(
    mass: str, moment: str, fault: str, kept: float | None
):
    body = SpatialInertia.from_centre(7.0, (0.0, 0.0, 0.0), EYE)
    text = write(two_links(Revolute(), inertia=body))[0].decode()
    text = text.replace("<mn:mass>7.0<", f"<mn:mass>{mass}<")
    text = text.replace("<mn:momentX>0.0<", f"<mn:momentX>{moment}<")
    cell, report = read(text)
    inertia = cell.manipulators[0].link("tip").inertia
    assert (None if inertia is None else inertia.mass) == kept
    (found,) = report.diagnostics
    assert found.code == "bad-inertia"
    assert fault in found.message
    assert found.place.line > 1


def test_joint_of_another_format_that_nobody_knows_is_refused():
    with pytest.raises(FormatError, match="a joint is of type 'Delta'"):
        write(two_links(OpaqueJoint(kind="Delta", parameters='{"a":1}')))


# Hostile files.


def chain(count: int) -> Workcell:
    links = [Link(name="l0")] + [
        Link(name=f"l{k}", parent=f"l{k - 1}", joint=Revolute())
        for k in range(1, count)
    ]
    return Workcell(name="w", manipulators=(Manipulator(name="m", links=tuple(links)),))


@pytest.mark.thorough
def test_long_chains_are_kept_or_refused():
    cell = chain(2000)
    assert read(write(cell)[0])[0] == cell
    with pytest.raises(FormatError, match="links in a row"):
        write(chain(6000))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "xml-syntax"),
        ("<a/>", "wrong-root"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "xml-doctype"),
        ("<mn:statedSystem/>", "xml-syntax"),
        (f"<mn:statedSystem {MN}/>", "missing-element"),
        (f"<mn:statedSystem {MN}><mn:system><mn:manipulators>", "xml-syntax"),
        (two_link_file(GENERAL).replace(">tip<", ">base<"), "unique-frame"),
        (two_link_file(GENERAL * 2), "wrong-count"),
        (two_link_file(""), "wrong-count"),
        (
            two_link_file(
                "<mn:screwTypeLink><mn:pitch>0</mn:pitch></mn:screwTypeLink>"
            ),
            "zero",
        ),
        (
            two_link_file(
                GENERAL,
                "<mn:jointActuator><mn:lowerLimit>1</mn:lowerLimit>"
                "<mn:upperLimit>0</mn:upperLimit></mn:jointActuator>",
            ),
            "bad-limits",
        ),
        (
            two_link_file(GENERAL, "<mn:namedFrames><mn:namedFrame/></mn:namedFrames>"),
            "no-name",
        ),
        (REPAIRED.replace('q0="1.0"', 'q0="0"'), "bad-quaternion"),
        (REPAIRED.replace('q0="1.0"', 'q0="NaN"'), "bad-number"),
        (REPAIRED.replace(' q3="0.0"', ""), "missing-attribute"),
        (REPAIRED.replace("<cr:orient", "<cr:rotation/><cr:orient"), "two-rotations"),
        (
            REPAIRED.replace('q3="0.0"/>', 'q3="0.0"><translation/></cr:orientation>'),
            "repeated-element",
        ),
        (
            two_link_file(
                GENERAL,
                "",
                "<mn:state><mn:positionStates><mn:positionState>"
                "<mn:jointPositions>1 2</mn:jointPositions></mn:positionState>"
                "</mn:positionStates></mn:state>",
            ),
            "wrong-count",
        ),
    ],
)
def test_faulty_files(text: str, why: str):
    assert any(f"error[{why}]" in line for line in refusals(text))


@pytest.mark.thorough
def test_the_work_of_deep_and_wide_files_is_linear():
    deep = "<mn:childLinks><mn:manipulatorLink>" * 20_000
    text = two_link_file(GENERAL, deep)
    with counted() as work:
        assert any("xml-limit" in line for line in refusals(text))
    assert work.lines < 2_000_000

    def nest(count: int) -> None:
        nested = f"<x:a xmlns:x='u'>{'<x:a>' * count}{'</x:a>' * count}</x:a>"
        found = refusals(two_link_file(nested))
        assert count < 1000 or any("too-deep" in line for line in found)

    assert growth(nest, 1000) < 2.1

    def widen(count: int) -> None:
        wide = two_link_file(GENERAL, "<mn:what/>" * count)
        assert len(told(read(wide)[1])) <= 100

    assert growth(widen, 1000) < 2.1


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damage_is_an_error_or_a_cell(data: st.DataObject):
    text = data.draw(st.sampled_from([REPAIRED, two_link_file(GENERAL)]))
    tokens = ["NaN", "-1", "1e999", "<", ">", '"', "&", "</", "\\", " ", "é"]
    spot = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 12))
    damaged = text[:spot] + data.draw(st.sampled_from(tokens)) + text[spot + cut :]
    try:
        cell, _ = read(damaged)
    except FormatError as error:
        assert any(found.severity is Severity.ERROR for found in error.diagnostics)
    else:
        write(cell)


def test_format_is_in_the_table():
    assert FORMAT in FORMATS
    assert FORMAT.sniff(PRINTED.encode())
    assert FORMAT.sniff(REPAIRED.encode("utf-16"))
    assert not FORMAT.sniff(b"<robot name='energid'/>")


def test_rules_of_collisions_are_reported():
    cell = two_links(Revolute()).replace(rules=Rules(between=False))
    assert told(write(cell)[1]) == ["not-kept"]


def test_groups_of_joints_are_reported():
    groups = (Group(name="all"), Group(name="none"))
    arm = Manipulator(name="arm", links=(Link(name="base"),), groups=groups)
    (found,) = write(Workcell(manipulators=(arm,)))[1].diagnostics
    assert found.message == "a group of joints is not kept (2 times)"


# Joints inside joints.


class Chained(Joint, frozen=True):
    first: Joint
    more: tuple[Joint, ...] = ()

    def pose(self, q):
        X = self.first.transform(q)
        for joint in self.more:
            X = X @ joint.transform(q)
        return X


def test_joints_inside_joints_are_kept():
    turn = Revolute(axis=(0.0, 0.0, 1.0), precursor=Pose.translation(1, 2, 3))
    track = CircleTrack(radius=2.0)
    row = PaulRevolute(theta=0.1, d=0.2, a=0.3, alpha=0.4)
    joint = Chained(first=Chained(first=track), more=(row, turn, Crank(arm=0.3)))
    check_kept(two_links(joint), Chained, Crank)


def test_an_unknown_joint_inside_a_joint_is_kept():
    cell = two_links(Chained(first=Crank(arm=0.3)))
    data, _ = write(cell)
    found, report = read(data, Chained)
    assert told(report) == ["unknown-joint-type"]
    assert write(found)[0] == data


# Elements of people's own.


class OwnCircle(Joint, frozen=True):
    radius: float = 3.0
    unit = Unit.METRE
    token = "MyNameSpace#circleJoint"
    library = "CircleJoint.ecp"

    def pose(self, q):
        turn = Pose.rotation_z(q / self.radius)
        return turn @ Pose.translation(self.radius, 0, 0)


class OwnOval(Joint, frozen=True):
    straight: float
    inner: Joint
    token = "http://example.com/rails#ovalRail"

    def pose(self, q):
        return self.inner.transform(q) @ Pose.translation(self.straight, 0, 0)


def test_a_class_has_its_own_element_and_library():
    circle = OwnCircle(radius=2.0, precursor=Pose.rotation_x(math.pi / 2))
    cell = two_links(OwnOval(straight=1.5, inner=circle))
    check_kept(cell, OwnOval, OwnCircle)
    text = write(cell)[0].decode()
    assert '<own:ovalRail xmlns:own="http://example.com/rails">' in text
    assert '<own:circleJoint library="CircleJoint.ecp" xmlns:own="MyNameSpace">' in text
    check_kept(two_links(circle), OwnCircle)


class SpelledCircle(OwnCircle, frozen=True):
    unit = Unit.METRE
    token = "MyNameSpace#circleJoint"
    library = "CircleJoint.ecp"
    elements = MappingProxyType(
        {"radius": "circleJointRadius", "precursor": "circleJointPrecursor"}
    )


def test_a_class_says_what_its_elements_are_called():
    """The seed's file as written by the seed's class; its radius is not the default."""
    cell, report = read(REPAIRED, SpelledCircle)
    assert told(report) == []
    joint = only_joint(cell)
    assert joint == SpelledCircle(radius=2.0, precursor=joint.precursor)
    assert not joint.precursor.is_identity
    text = write(cell)[0].decode()
    assert "<own:circleJointRadius>2.0</own:circleJointRadius>" in text
    assert "<own:circleJointPrecursor>" in text
    assert read(text, SpelledCircle)[0] == cell
    for elements, why in (
        ({"radios": "r"}, "names the parameter 'radios', which it does not have"),
        ({"radius": "a b"}, "that is not the name of an element"),
    ):
        kind = type("Odd", (OwnCircle,), {"elements": elements, "unit": Unit.METRE})
        with pytest.raises(FormatError, match=why):
            read(REPAIRED, kind)


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_not_a_parameter_of_a_joint_is_refused(strict: bool):
    """The default of a class does not count in place of what the file says."""
    misspelt = REPAIRED.replace("circleJointRadius", "circleJointRadios")
    pose = REPAIRED.replace("cr:translation", "cr:translatoin")
    wrong = [
        (REPAIRED, OwnCircle, "element 'circleJointRadius' of <circleJoint> is not"),
        (misspelt, None, "Did you mean 'circleJointRadius'"),
        (pose, None, "element 'translatoin' of <circleJointPrecursor>"),
        (REPAIRED.replace(' x="', ' X="'), None, "attribute 'X' of <translation>"),
    ]
    for text, kind, why in wrong:
        kinds = [] if kind is None else [kind]
        assert text != REPAIRED or kinds
        report = Report(strict=strict)
        options = ReadOptions(joints={each.tag: each for each in kinds})
        with pytest.raises(FormatError, match=why):
            FORMAT.read(text.encode(), "x.actin.xml", options, report)
        if text is misspelt:  # this class has no default
            continue
        report = Report(lenient=True)
        FORMAT.read(text.encode(), "x.actin.xml", options, report)
        assert any("it is left out" in d.message for d in report.diagnostics)


def test_an_element_in_a_namespace_of_somebody_else_is_another_joint():
    for name in ("circleJoint", "circlejoint"):
        text = REPAIRED.replace("MyNameSpace", "x#").replace(":circleJoint", f":{name}")
        cell, report = read(two_link_file(text.partition("?>")[2] or text))
        joint = only_joint(cell)
        assert isinstance(joint, OpaqueJoint)
        assert joint.kind == name
        assert "unknown-joint-type" in told(report)
        again = read(write(cell)[0])[0]
        assert again == cell
    kind = type("Other", (OwnCircle,), {"token": "x#circleJoint", "unit": Unit.METRE})
    mine = two_links(kind(radius=2.0))
    check_kept(mine, kind)
    both = read(REPAIRED, kind)[0]
    assert type(only_joint(both)) is CircleTrack


def test_plug_ins_are_found_by_their_tokens():
    """Their tag is that of an entry point, and not in the file."""
    rail = OwnOval(straight=1.5, inner=Prismatic())
    text = write(two_links(rail))[0]
    used: list[str] = []

    class Offered(dict[str, type[Joint]]):
        def __getitem__(self, tag: str) -> type[Joint]:
            used.append(tag)
            if tag == "broken":
                raise PluginError("The plug-in 'broken' is broken.")
            return super().__getitem__(tag)

    offered = Offered(broken=OwnOval, rails=OwnOval, crank=Crank)
    report = Report()
    cell = FORMAT.read(text, "x.actin.xml", ReadOptions(plugins=offered), report)
    assert only_joint(cell) == rail
    assert told(report) == ["bad-plugin"]
    assert set(used) == {"broken", "rails", "crank"}
    used.clear()
    FORMAT.read(
        write(two_links(Prismatic()))[0],
        "x.actin.xml",
        ReadOptions(plugins=offered),
        report,
    )
    assert used == []


def test_another_library_than_that_of_the_class_is_kept():
    text = write(two_links(OwnCircle()))[0].decode().replace("CircleJoint.ecp", "B.so")
    cell, _ = read(text, OwnCircle)
    note = Property(name="actin.library", of="tip", text="B.so")
    assert cell.manipulators[0].properties == (note,)
    assert write(cell)[0].decode() == text


@pytest.mark.parametrize("token", ["circleJoint", "#circleJoint", "MyNameSpace#"])
def test_a_token_has_a_namespace_and_a_name(token: str):
    with pytest.raises(JointError, match="it must be a namespace, '#' and a name"):
        type("Odd", (Joint,), {"token": token})


def test_subclasses_have_tokens_of_their_own():
    class Other(OwnCircle, frozen=True):
        pass

    assert (Other.token, Other.library) == ("", "")
