"""URDF in: what each tag means, and what is said of each fault."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.paths import Roots
from armillary.formats.urdf import FORMAT
from armillary.formats.xml import Element
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.mount import Mount
from armillary.model.shapes import Box, Capsule, Cylinder, HalfSpace, Mesh, Sphere
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose
from work import counted, growth


def read(
    text: str | bytes,
    options: ReadOptions | None = None,
    path: str = "arm.urdf",
    **how: Any,
) -> tuple[Workcell, Report]:
    report = Report(**how)
    data = text.encode() if isinstance(text, str) else text
    return FORMAT.read(data, path, options or ReadOptions(), report), report


def codes(report: Report) -> list[str]:
    return [diagnostic.code for diagnostic in report.diagnostics]


def lines(report: Report) -> list[str]:
    return [str(diagnostic) for diagnostic in report.diagnostics]


def poses(cell: Workcell, q: Mapping[str, float]) -> dict[str, Pose]:
    """The pose of every link in the base of a cell's one manipulator."""
    (manipulator,) = cell.manipulators
    found: dict[str, Pose] = {}
    for k in manipulator.order:
        link = manipulator.links[k]
        at = 0.0
        for drive in manipulator.drives[k]:
            at = drive.multiplier * q[cell.joint_names[drive.of]] + drive.offset
        placed = link.joint.transform(at)
        found[link.name] = (
            placed if link.parent is None else found[link.parent] @ placed
        )
    return found


LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'
ENDS = '<parent link="base"/><child link="tip"/>'


def robot(*parts: str) -> str:
    """A document with its parts from line 2 on, one a line."""
    return "\n".join(['<robot name="arm">', *parts, "</robot>"])


def joint(inside: str = LIMIT, *, type: str = "revolute", name: str = "j") -> str:
    return f'<joint name="{name}" type="{type}">{ENDS}{inside}</joint>'


def fixed(name: str, parent: str, child: str) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="fixed">{ends}</joint>'


def pair(inside: str = LIMIT, *, type: str = "revolute") -> str:
    """Two links and the joint between them, on lines 2, 3 and 4."""
    return robot('<link name="base"/>', '<link name="tip"/>', joint(inside, type=type))


def links(text: str) -> dict[str, Link]:
    cell, _ = read(text)
    return {link.name: link for link in cell.manipulators[0].links}


def tip(text: str) -> Link:
    return links(text)["tip"]


def shaped(geometry: str, *, kind: str = "visual", extra: str = "") -> str:
    shape = f"<{kind}><geometry>{geometry}</geometry>{extra}</{kind}>"
    return robot(f'<link name="base">{shape}</link>')


def inertial(
    mass: str = "2", *, ixx: str = "3", ixy: str = "0", izz: str = "3", origin: str = ""
) -> str:
    moments = f'ixx="{ixx}" iyy="3" izz="{izz}" ixy="{ixy}" ixz="0" iyz="0"'
    return robot(
        f'<link name="base"><inertial>{origin}<mass value="{mass}"/>'
        f"<inertia {moments}/></inertial></link>"
    )


def faults(text: str | bytes, *, strict: bool = True) -> list[str]:
    """What is said of a file that is refused."""
    with pytest.raises(FormatError) as caught:
        read(text, strict=strict)
    return [str(diagnostic) for diagnostic in caught.value.diagnostics]


# What the parts mean.


def test_a_robot_is_a_cell_with_one_manipulator_of_its_name():
    cell, report = read(pair())
    assert (cell.name, cell.manipulators[0].name) == ("arm", "arm")
    assert cell.joint_names == ("j",)
    assert lines(report) == []


def test_a_revolute_joint_turns_about_its_axis_behind_its_origin():
    link = tip(
        pair(f'<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/>{LIMIT}')
    )
    X_PF = Pose.from_rpy(0.1, 0.2, 0.3, (1.0, 2.0, 3.0))
    assert link.joint == Revolute(axis=(0.0, 0.0, 1.0), precursor=X_PF)
    assert link.joint.transform(0.7) == X_PF @ Pose.rotation_z(0.7)
    limits = link.limits
    assert (limits.lower, limits.upper) == (-1.0, 2.0)
    assert (limits.effort, limits.velocity) == (3.0, 4.0)
    assert limits.acceleration == math.inf


def test_a_prismatic_joint_slides_along_its_axis():
    link = tip(pair(f'<axis xyz="0 1 0"/>{LIMIT}', type="prismatic"))
    assert link.joint == Prismatic(axis=(0.0, 1.0, 0.0))


def test_the_axis_is_x_where_nothing_is_said():
    assert tip(pair()).joint == Revolute(axis=(1.0, 0.0, 0.0))


def test_a_fixed_joint_holds_its_child_whatever_its_axis():
    link = tip(pair('<axis xyz="0 0 0"/><origin xyz="1 0 0"/>', type="fixed"))
    assert link.joint == Fixed(precursor=Pose.translation(1.0, 0.0, 0.0))
    assert not link.moves
    assert link.coordinate == "j"


def test_a_continuous_joint_keeps_its_rate_and_effort_but_no_range():
    link = tip(pair('<limit effort="3" velocity="4"/>', type="continuous"))
    assert (link.limits.lower, link.limits.upper) == (-math.inf, math.inf)
    assert (link.limits.effort, link.limits.velocity) == (3.0, 4.0)
    assert tip(pair("", type="continuous")).limits.velocity == math.inf


def test_right_angles_are_exact():
    half = "1.5707963267948966"
    pose = tip(pair(f'<origin rpy="{half} 0 -{half}"/>', type="fixed")).joint.precursor
    assert pose.rotation == ((0.0, 0.0, -1.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def test_roll_comes_first():
    pose = tip(pair('<origin rpy="0.4 0.5 0.6"/>', type="fixed")).joint.precursor
    turned = Pose.rotation_z(0.6) @ Pose.rotation_y(0.5) @ Pose.rotation_x(0.4)
    assert pose.approx_equal(turned, 1e-15)


def test_a_quaternion_of_urdf_1_1_ends_with_w():
    pose = tip(pair('<origin quat_xyzw="0 0 0.6 0.8"/>', type="fixed")).joint.precursor
    assert pose.approx_equal(Pose.from_quaternion((0.8, 0.0, 0.0, 0.6)), 1e-15)


def test_acceleration_of_urdf_1_2_is_kept():
    text = LIMIT.replace("/>", ' acceleration="9"/>')
    assert tip(pair(text)).limits.acceleration == 9.0


def test_lower_and_upper_are_zero_where_nothing_is_said():
    limits = tip(pair('<limit upper="2" effort="1" velocity="1"/>')).limits
    assert (limits.lower, limits.upper) == (0.0, 2.0)


def test_links_come_depth_first_in_the_order_of_joints():
    names = "base", "a", "b", "a1"
    cell, _ = read(
        robot(
            *(f'<link name="{name}"/>' for name in reversed(names)),
            fixed("to_b", "base", "b"),
            fixed("to_a1", "a", "a1"),
            fixed("to_a", "base", "a"),
        )
    )
    assert [link.name for link in cell.manipulators[0].links] == [
        "base",
        "b",
        "a",
        "a1",
    ]


# Mimic.


def follower(leader: str) -> str:
    """A joint on line 5 that follows one of another type."""
    return robot(
        '<link name="base"/><link name="tip"/><link name="end"/>',
        joint("", type=leader),
        '<joint name="k" type="revolute"><parent link="tip"/><child link="end"/>',
        f'{LIMIT}<mimic joint="j"/></joint>',
    )


def fingers(*mimics: str, limit: str = LIMIT) -> str:
    """A base with fingers f0, f1, ..., the joint of each with its `<mimic>`."""
    parts = ['<link name="base"/>']
    for k, mimic in enumerate(mimics):
        parts.append(f'<link name="f{k}"/>')
        parts.append(
            f'<joint name="j{k}" type="prismatic"><parent link="base"/>'
            f'<child link="f{k}"/>{limit}{mimic}</joint>'
        )
    return robot(*parts)


def test_a_mimic_joint_follows_and_has_no_place_in_q():
    cell, report = read(
        fingers(
            '<mimic joint="j1" multiplier="-2" offset="0.5"/>',
            '<mimic joint="j2"/>',
            "",
            limit='<limit lower="-9" upper="9" effort="1" velocity="1"/>',
        )
    )
    assert cell.joint_names == ("j2",)
    assert lines(report) == []
    found = poses(cell, {"j2": 0.3})
    assert found["f2"].position == (0.3, 0.0, 0.0)
    assert found["f1"].position == (0.3, 0.0, 0.0)
    np.testing.assert_allclose(found["f0"].position, (-0.1, 0.0, 0.0), atol=1e-15)


def test_the_limits_of_a_mimic_joint_narrow_those_of_its_leader():
    text = fingers("", '<mimic joint="j0" multiplier="4"/>')
    cell, report = read(text)
    assert lines(report) == []
    assert cell.limits[0].tolist() == [-0.25]
    assert cell.limits[1].tolist() == [0.5]


@pytest.mark.parametrize("multiplier", ["-1", "-0.5"])
def test_limits_of_a_mimic_joint_that_leave_its_leader_nothing_are_left_out(
    multiplier: str,
):
    limit = '<limit lower="0" upper="0.5" effort="1" velocity="1"/>'
    mimic = f'<mimic joint="j0" multiplier="{multiplier}"/>'
    cell, report = read(fingers("", mimic, limit=limit))
    low = 0.5 / float(multiplier)
    column = 1 + fingers("", mimic, limit=limit).splitlines()[5].index("<mimic")
    assert lines(report) == [
        f"arm.urdf:6:{column}: warning[mimic-limits]: the limits of joint 'j1' would "
        f"restrict 'j0', which it follows, to [{low:g}, 0], but that joint has "
        "[0, 0.5]; they are left out"
    ]
    assert cell.limits[1].tolist() == [0.5]
    assert cell.manipulators[0].link("f1").limits.velocity == 1.0


def test_a_mimic_that_stands_still_is_not_a_contradiction():
    cell, report = read(fingers("", '<mimic joint="j0" multiplier="0" offset="0.5"/>'))
    assert lines(report) == []
    assert poses(cell, {"j0": 0.3})["f1"].position == (0.5, 0.0, 0.0)


def test_a_mimic_on_a_fixed_joint_does_nothing():
    cell, report = read(pair('<mimic joint="other"/>', type="fixed"))
    assert cell.joint_names == ()
    assert codes(report) == ["fixed-mimic"]


@pytest.mark.thorough
def test_a_long_chain_of_mimics_is_refused_after_little_work():
    text = fingers("", *(f'<mimic joint="j{k}"/>' for k in range(1500)))
    with counted() as work:
        (found,) = faults(text)
    assert work.lines < 10_000_000
    assert (
        "error[mimic-chain]: joint 'j33' follows 'j0' over more than 32 joints" in found
    )


# Joints with more than one coordinate.


def test_a_floating_joint_on_a_bare_root_makes_a_free_base():
    cell, report = read(pair('<origin xyz="0 0 1"/>', type="floating"))
    assert [link.name for link in cell.manipulators[0].links] == ["tip"]
    assert cell.joint_names == ()
    assert cell.mounts == (Mount(manipulator="arm", pose=Pose.translation(0, 0, 1)),)
    assert lines(report) == [
        "arm.urdf:4:1: note[free-base]: floating joint 'j' makes link 'tip' the base, "
        "which moves through the state; link 'base' is left out"
    ]


def test_a_free_base_at_the_origin_needs_no_mount():
    cell, _ = read(pair("", type="floating"))
    assert cell.mounts == ()


def test_a_planar_joint_on_a_bare_root_makes_a_free_base_and_loses_its_plane():
    _, report = read(pair("", type="planar"))
    assert lines(report) == [
        "arm.urdf:4:1: note[free-base]: planar joint 'j' makes link 'tip' the base, "
        "which moves through the state; link 'base' is left out",
        "arm.urdf:4:1: warning[not-kept]: that base 'tip' stays in a plane is not kept",
    ]


VISUAL = '<visual><geometry><sphere radius="1"/></geometry></visual>'


def carried(type: str, inside: str = "") -> str:
    """A joint on a root that is more than a frame."""
    return robot(
        f'<link name="base">{VISUAL}</link>',
        '<link name="tip"/>',
        joint(inside, type=type),
    )


def test_a_planar_joint_elsewhere_becomes_three_joints():
    cell, report = read(carried("planar", '<origin xyz="5 0 0"/><axis xyz="0 0 1"/>'))
    assert cell.joint_names == ("j_x", "j_y", "j_theta")
    names = [link.name for link in cell.manipulators[0].links]
    assert names == ["base", "j_x", "j_y", "tip"]
    found = poses(cell, {"j_x": 1.0, "j_y": 2.0, "j_theta": 0.3})["tip"]
    assert found.approx_equal(
        Pose.translation(6.0, 2.0, 0.0) @ Pose.rotation_z(0.3), 1e-15
    )
    assert lines(report) == [
        "arm.urdf:4:1: note[split-joint]: planar joint 'j' becomes 3 joints: j_x, j_y, "
        "j_theta"
    ]


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, -1), (1, -2, 0.5)])
def test_the_plane_is_normal_to_the_axis(axis: tuple[float, ...]):
    text = carried("planar", f'<axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>')
    cell, _ = read(text)
    at = {"j_x": 0.0, "j_y": 0.0, "j_theta": 0.0}
    first = np.array(poses(cell, {**at, "j_x": 1.0})["tip"].position)
    second = np.array(poses(cell, {**at, "j_y": 1.0})["tip"].position)
    normal = np.array(axis) / np.linalg.norm(axis)
    np.testing.assert_allclose(np.cross(first, second), normal, atol=1e-15)
    turned = poses(cell, {**at, "j_theta": 0.7})["tip"]
    assert turned.approx_equal(Pose.rotation_about(axis, 0.7), 1e-15)


@pytest.mark.parametrize("form", [carried, pair])
def test_a_spherical_joint_becomes_three_joints(form):
    """PyBullet's; on a bare root, too, the base stays where it is."""
    origin = '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'
    if form is carried:
        cell, report = read(carried("spherical", origin))
    else:
        cell, report = read(pair(origin, type="spherical"))
    assert cell.joint_names == ("j_yaw", "j_pitch", "j_roll")
    assert "split-joint" in codes(report)
    q = {"j_yaw": 0.6, "j_pitch": 0.5, "j_roll": 0.4}
    expected = Pose.from_rpy(0.1, 0.2, 0.3, (1, 2, 3)) @ Pose.from_rpy(0.4, 0.5, 0.6)
    assert poses(cell, q)["tip"].approx_equal(expected, 1e-14)


def test_a_floating_joint_elsewhere_becomes_six_joints():
    cell, report = read(carried("floating", '<origin rpy="0.1 0.2 0.3"/>'))
    names = [f"j_{end}" for end in ("x", "y", "z", "yaw", "pitch", "roll")]
    assert list(cell.joint_names) == names
    assert codes(report) == ["split-joint"]
    q = dict(zip(names, (1.0, 2.0, 3.0, 0.6, 0.5, 0.4), strict=True))
    expected = Pose.from_rpy(0.1, 0.2, 0.3) @ Pose.from_rpy(
        0.4, 0.5, 0.6, (1.0, 2.0, 3.0)
    )
    assert poses(cell, q)["tip"].approx_equal(expected, 1e-14)


def test_derived_names_stay_unique():
    cell, _ = read(
        robot(
            f'<link name="base">{VISUAL}</link><link name="tip"/><link name="j_y"/>',
            joint("", type="planar"),
            fixed("j_x", "tip", "j_y"),
        )
    )
    assert cell.joint_names == ("j_x_2", "j_y", "j_theta")
    names = [link.name for link in cell.manipulators[0].links]
    assert names == ["base", "j_x_2", "j_y_2", "tip", "j_y"]


# Bodies.


def test_inertia_is_about_the_links_origin():
    text = inertial(
        ixy="0.5", origin='<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>'
    )
    inertia = links(text)["base"].inertia
    assert inertia is not None
    assert inertia.mass == 2.0
    assert inertia.first_moment == (2.0, 0.0, 0.0)
    # Turned by a right angle, ixy changes its sign; 2 kg at 1 m add 2 to yy and zz.
    expected = [[3.0, -0.5, 0.0], [-0.5, 5.0, 0.0], [0.0, 0.0, 5.0]]
    np.testing.assert_allclose(inertia.rotational, expected, atol=1e-15)


def test_a_massless_link_is_not_a_fault():
    _, report = read(inertial("0", ixx="0", izz="0").replace('iyy="3"', 'iyy="0"'))
    assert lines(report) == []


def test_shapes():
    text = robot(
        '<link name="base"><visual name="v"><origin xyz="1 2 3"/><geometry>'
        '<box size="1 2 3"/></geometry></visual>',
        '<visual><geometry><cylinder radius="1" length="2"/></geometry></visual>',
        '<collision><geometry><sphere radius="1"/></geometry></collision>',
        '<collision><geometry><mesh filename="package://p/m.stl" scale="1 -1 2"/>'
        "</geometry></collision></link>",
    )
    base = links(text)["base"]
    assert base.visuals == (
        Box(name="v", pose=Pose.translation(1, 2, 3), size=(1.0, 2.0, 3.0)),
        Cylinder(radius=1.0, length=2.0),
    )
    assert base.collisions == (
        Sphere(radius=1.0),
        Mesh(file="package://p/m.stl", scale=(1.0, -1.0, 2.0)),
    )


def test_the_length_of_a_capsule_is_that_of_its_straight_part():
    cell, report = read(
        shaped('<capsule radius="1" length="4"/>', extra='<origin xyz="0 5 0"/>')
    )
    assert cell.manipulators[0].links[0].visuals == (
        Capsule(pose=Pose.translation(0, 5, 0), radius=1.0, length=4.0),
    )
    assert codes(report) == []


def test_a_size_beyond_all_workcells_is_not_a_shape():
    (fault,) = faults(shaped('<sphere radius="1e300"/>'))
    assert "error[bad-shape]: <sphere>" in fault
    assert "radius is 1e+300; it must be a length from 0 to 1e+15 m" in fault


BALL = '<sphere radius="1"/>'
RED = '<color rgba="1 0 0 0.5"/>'


@pytest.mark.parametrize(
    "text",
    [
        shaped(BALL, extra=f'<material name="red">{RED}</material>'),
        shaped(BALL, extra=f'<material name="">{RED}</material>'),
        shaped(BALL, extra='<material name="red"/>').replace(
            "</robot>", f'<material name="red">{RED}</material></robot>'
        ),
        shaped(BALL, extra='<material name="red"/>').replace(
            "</link>",
            f'</link><link name="tip"><visual><geometry>{BALL}</geometry>'
            f'<material name="red">{RED}</material></visual></link>'
            f"{fixed('j', 'base', 'tip')}",
        ),
    ],
    ids=["in the visual", "nameless", "of the robot", "of another visual"],
)
def test_colours(text: str):
    cell, report = read(text)
    assert cell.manipulators[0].links[0].visuals[0].colour == (1.0, 0.0, 0.0, 0.5)
    assert lines(report) == []


def test_collisions_have_colours_too():
    text = shaped(BALL, kind="collision", extra=f'<material name="r">{RED}</material>')
    assert links(text)["base"].collisions[0].colour == (1.0, 0.0, 0.0, 0.5)


# Meshes.


def mesh(reference: str) -> str:
    return shaped(f'<mesh filename="{reference}"/>')


def test_meshes_are_not_looked_for_without_folders():
    _, report = read(mesh("package://robot/nothing.stl"))
    assert lines(report) == []


@pytest.mark.parametrize("slashes", ["//", "///"])
def test_meshes_are_found_in_packages(tmp_path: Path, slashes: str):
    (tmp_path / "part.stl").touch()
    options = ReadOptions(roots=Roots(packages={"robot": tmp_path}))
    text = mesh(f"package:{slashes}robot/part.stl")
    cell, report = read(text, options)
    assert lines(report) == []
    (shape,) = cell.manipulators[0].links[0].visuals
    assert isinstance(shape, Mesh)
    assert shape.file == f"package:{slashes}robot/part.stl"


def test_a_missing_mesh_is_reported_once(tmp_path: Path):
    options = ReadOptions(roots=Roots(packages={"robot": tmp_path}))
    text = mesh("package://robot/part.stl")
    text = (
        text.replace("</link>", "").replace("</robot>", "")
        + (text.split('<link name="base">')[1])
    )
    cell, report = read(text, options)
    assert len(cell.manipulators[0].links[0].visuals) == 2
    (line,) = lines(report)
    assert line.startswith("arm.urdf:2:")
    assert (
        "warning[reference-missing]: 'package://robot/part.stl' does not exist" in line
    )


def test_the_search_for_missing_meshes_ends(tmp_path: Path):
    options = ReadOptions(roots=Roots(folders=[tmp_path]))
    visual = '<visual><geometry><mesh filename="m{}.stl"/></geometry></visual>'
    text = robot(
        f'<link name="base">{"".join(visual.format(k) for k in range(70))}</link>'
    )
    _, report = read(text, options)
    assert len(codes(report)) == 51
    assert lines(report)[-1].endswith("50 meshes are missing; no more are looked up")


# Names.


@pytest.mark.parametrize(
    ("root", "name", "expected"),
    [
        ("<robot>", "arm", ["missing-name"]),
        ('<robot name="">', "arm", ["missing-name"]),
        ('<robot name="a/b">', "a_b", ["renamed"]),
        ('<robot name="world">', "world_robot", ["renamed"]),
        ('<robot name="ünïcode 7">', "ünïcode 7", []),
    ],
)
def test_the_name_of_the_manipulator(root: str, name: str, expected: list[str]):
    cell, report = read(f'{root}<link name="base"/></robot>', path="folder/arm.v2.urdf")
    assert cell.manipulators[0].name == name
    assert codes(report) == expected


# What is not kept, or not known.


def test_dynamics_of_zero_are_nothing_to_keep():
    _, report = read(pair(f'{LIMIT}<dynamics damping="0" friction="0.0"/>'))
    assert lines(report) == []


def test_damping_and_friction_are_kept():
    cell, report = read(pair(f'{LIMIT}<dynamics damping="0.5" friction="2"/>'))
    kept = cell.manipulators[0].link("tip").dynamics
    assert kept == JointDynamics(damping=0.5, friction=2.0)
    assert lines(report) == []


def test_a_fixed_joint_has_no_damping():
    cell, report = read(pair('<dynamics damping="0.5"/>', type="fixed"))
    assert cell.manipulators[0].link("tip").dynamics == JointDynamics()
    assert lines(report) == []


@pytest.mark.parametrize("type_", ["planar", "floating", "spherical"])
def test_damping_of_several_coordinates_is_reported(type_: str):
    text = pair('<dynamics damping="0.5"/>', type=type_)
    cell, report = read(text)
    assert all(link.dynamics == JointDynamics() for link in cell.links)
    assert any(f"<dynamics> of a {type_} joint is not kept" in x for x in lines(report))


SIMPLE = "<type>transmission_interface/SimpleTransmission</type>"
INERTIA = '<drake:rotor_inertia value="2e-4"/>'


def driven(inside: str, *, of: str = "j", type: str = SIMPLE) -> str:
    """A robot whose joint has an actuator."""
    return robot(
        '<link name="base"/>',
        '<link name="tip"/>',
        joint(f'{LIMIT}<dynamics damping="0.5"/>'),
        f'<transmission name="t">{type}<joint name="{of}"><hardwareInterface/></joint>'
        f'<actuator name="m">{inside}<hardwareInterface/></actuator></transmission>',
    )


@pytest.mark.parametrize(
    ("inside", "inertia", "ratio"),
    [
        (f'{INERTIA}<drake:gear_ratio value="-100"/>', 2e-4, -100.0),
        (INERTIA, 2e-4, 1.0),
        (f"{INERTIA}<mechanicalReduction>50</mechanicalReduction>", 2e-4, 50.0),
        ("<mechanicalReduction>50</mechanicalReduction>", 0.0, 50.0),
        (
            "<mechanicalReduction>50</mechanicalReduction>"
            '<drake:gear_ratio value="60"/>',
            0.0,
            60.0,
        ),
    ],
)
def test_motors_are_kept(inside: str, inertia: float, ratio: float):
    cell, report = read(driven(inside))
    kept = cell.manipulators[0].link("tip").dynamics
    assert kept == JointDynamics(motor_inertia=inertia, gear_ratio=ratio, damping=0.5)
    (line,) = lines(report)
    assert "note[not-kept]: <hardwareInterface> is not kept" in line


@pytest.mark.parametrize(
    "text",
    [
        driven(INERTIA, of="k"),
        driven(INERTIA, type=""),
        driven(INERTIA, type=SIMPLE.replace("Simple", "Differential")),
        driven(""),
        driven(f'{INERTIA}</actuator><actuator name="n">'),
        driven(INERTIA).replace("revolute", "fixed"),
    ],
    ids=["joint", "no type", "type", "nothing", "two motors", "fixed"],
)
def test_other_transmissions_are_not_kept(text: str):
    cell, report = read(text)
    dynamics = cell.manipulators[0].link("tip").dynamics
    assert dynamics.motor_inertia == 0.0
    found = [line for line in lines(report) if "<transmission>" in line]
    assert [line.partition(" ")[2] for line in found] == [
        "note[not-kept]: <transmission> is not kept"
    ]


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        ('<drake:rotor_inertia value="-1"/>', "bad-jointdynamics"),
        ('<drake:gear_ratio value="0"/>', "bad-jointdynamics"),
        ('<drake:rotor_inertia value="x"/>', "bad-number"),
        ("<drake:rotor_inertia/>", "missing-attribute"),
        ("<mechanicalReduction>many</mechanicalReduction>", "bad-number"),
    ],
)
def test_faulty_motors_are_left_out(inside: str, code: str):
    cell, report = read(driven(inside))
    kept = cell.manipulators[0].link("tip").dynamics
    assert kept == JointDynamics(damping=0.5)
    assert f"warning[{code}]" in lines(report)[0]
    assert lines(report)[0].endswith("; it is left out")
    assert f"error[{code}]" in faults(driven(inside))[0]


def test_the_first_of_two_motors_counts():
    text = driven(INERTIA)
    line = text.splitlines()[4]
    twice = text.replace(line, f"{line}\n{line.replace('2e-4', '3e-4')}")
    cell, report = read(twice)
    assert cell.manipulators[0].link("tip").dynamics.motor_inertia == 2e-4
    assert "warning[repeated-element]" in lines(report)[0]


@pytest.mark.parametrize("name", ["damping", "friction"])
def test_negative_damping_is_left_out(name: str):
    text = pair(f'{LIMIT}<dynamics {name}="-0.5"/>')
    cell, report = read(text)
    assert cell.manipulators[0].link("tip").dynamics == JointDynamics()
    (line,) = lines(report)
    assert line.endswith(f"has a negative {name}; it is left out")
    assert "error[negative-damping]" in faults(text)[0]


@pytest.mark.parametrize(
    ("name", "code"),
    [("mu_coulomb", "not-kept"), ("K", "not-kept"), ("wind", "unknown-attribute")],
)
def test_what_others_say_of_dynamics_is_a_note(name: str, code: str):
    _, report = read(pair(f'{LIMIT}<dynamics damping="1" {name}="2"/>'))
    (line,) = lines(report)
    assert f"note[{code}]: " in line


@pytest.mark.parametrize("inside", ['damping="x"', 'damping="nan" friction="inf"'])
def test_faulty_damping_is_left_out(inside: str):
    cell, report = read(pair(f"{LIMIT}<dynamics {inside}/>"))
    assert cell.manipulators[0].link("tip").dynamics == JointDynamics()
    assert {*codes(report)} == {"bad-number"}


@pytest.mark.parametrize("type_", ["Revolute", " revolute", "REVOLUTE"])
def test_types_may_be_written_with_capitals(type_: str):
    _, report = read(pair(type=type_))
    assert lines(report) == [
        f"arm.urdf:4:1: warning[spelling]: <joint name='j'> has the type '{type_}'; it "
        "is read as revolute"
    ]
    assert "error[spelling]" in faults(pair(type=type_))[0]


def test_a_scale_of_one_number_is_that_of_all_axes():
    cell, report = read(shaped('<mesh filename="a.stl" scale="0.001"/>'))
    (shape,) = cell.manipulators[0].links[0].visuals
    assert isinstance(shape, Mesh)
    assert shape.scale == (0.001, 0.001, 0.001)
    assert codes(report) == ["wrong-count"]


def test_a_plane_is_a_half_space():
    text = shaped('<plane normal="1 0 0"/>', kind="collision")
    cell, report = read(text)
    (shape,) = cell.manipulators[0].links[0].collisions
    assert isinstance(shape, HalfSpace)
    normal = [row[2] for row in shape.pose.rotation]
    assert normal == pytest.approx([1.0, 0.0, 0.0], abs=1e-15)
    assert codes(report) == ["bad-geometry"]
    assert "error[bad-geometry]" in faults(text)[0]


def test_a_shape_whose_pose_is_not_known_is_left_out():
    text = robot(
        f'<link name="base"><visual><origin xyz="0 nan 0"/><geometry>{BALL}'
        f"</geometry></visual><visual><geometry>{BALL}</geometry></visual></link>"
    )
    cell, report = read(text)
    assert len(cell.manipulators[0].links[0].visuals) == 1
    assert codes(report) == ["bad-number"]


def test_infinite_limits_are_nothing():
    text = pair('<limit lower="-inf" upper="INF" effort="inf" velocity="1e16"/>')
    limits = tip(text).limits
    assert (limits.lower, limits.upper) == (-math.inf, math.inf)
    assert (limits.effort, limits.velocity) == (math.inf, 1e16)


@pytest.mark.parametrize("lower", ["inf", "nan", "x", "-pi", ""])
def test_limits_that_are_not_numbers_are_refused_or_unlimited(lower: str):
    text = pair(f'<limit lower="{lower}" upper="1" effort="1" velocity="1"/>')
    assert any("With lenient=True" in fault for fault in faults(text, strict=False))
    cell, _ = read(text, lenient=True)
    limits = cell.manipulators[0].links[1].limits
    assert (limits.lower, limits.upper) == (-math.inf, 1.0)


def test_macros_are_left_out_where_no_motion_depends_on_them():
    visual = f"<visual><geometry>{BALL}</geometry><xacro:red/></visual>"
    text = robot(
        '<xacro:property name="a" value="1"/>', f'<link name="base">{visual}</link>'
    )
    cell, report = read(text)
    assert len(cell.manipulators[0].links[0].visuals) == 1
    assert codes(report).count("xacro") == 1
    # A call alone is what remains of a file that was expanded without its macro.
    _, report = read(pair().replace("<joint", "<xacro:sensor/><joint", 1))
    assert codes(report) == ["xacro", "not-kept"]
    assert "as by other readers" in str(report.diagnostics[0])
    for inside in ("<xacro:include/>", "<xacro:if><link/></xacro:if>"):
        assert any("error[xacro]" in x for x in faults(robot(inside), strict=False))
        _, report = read(pair().replace("<joint", f"{inside}<joint", 1), lenient=True)
        assert codes(report).count("xacro") == 1
    macro = pair('<origin xyz="0 0 ${a}"/>')
    assert any("error[xacro]" in fault for fault in faults(macro, strict=False))
    with pytest.raises(FormatError, match=r"error\[xacro\]"):
        read(macro, lenient=True)


def test_the_caller_chooses_what_swapped_limits_mean():
    text = pair('<limit lower="1" upper="-2" effort="1" velocity="1"/>')
    (fault,) = faults(text, strict=False)
    for way in ("lenient=True, they are swapped", "swapped_limits='unlimited'"):
        assert way in fault
    ways: list[tuple[dict[str, Any], tuple[float, float]]] = [
        ({"lenient": True}, (-2.0, 1.0)),
        ({"swapped_limits": "swap"}, (-2.0, 1.0)),
        ({"swapped_limits": "unlimited"}, (-math.inf, math.inf)),
        ({"swapped_limits": "unlimited", "lenient": True}, (-math.inf, math.inf)),
    ]
    for how, expected in ways:
        cell, report = read(text, **how)
        limits = cell.manipulators[0].links[1].limits
        assert (limits.lower, limits.upper) == expected
        assert codes(report) == ["swapped-limits"]
    with pytest.raises(FormatError, match=r"error\[swapped-limits\]"):
        read(text, strict=True, swapped_limits="swap")


def test_what_is_unknown_where_nothing_moves_is_a_note_unless_misspelt():
    text = robot(
        f'<link name="base" concave="yes"><visual><geometry>{BALL}</geometry>'
        "<max_contacts/></visual></link>"
    )
    _, report = read(text)
    assert report.count(Severity.WARNING) == 0
    assert len(report.diagnostics) == 2
    _, report = read(robot('<link name="base"><vusual/></link>'))
    assert "Did you mean 'visual'?" in lines(report)[0]
    assert report.count(Severity.WARNING) == 1


def test_what_other_programs_add_is_a_note():
    text = robot('<link name="base"><drake:x/></link>', "<mujoco/>", "<a:b/>")
    _, report = read(text)
    assert codes(report) == ["not-kept"] * 3
    assert report.count(Severity.WARNING) == 0


def test_thousands_of_unknown_attributes_are_little_work():
    attributes = " ".join(f'a{k}="0"' for k in range(250))
    text = robot(*(f'<link name="base" {attributes}/>' for _ in range(20)))
    with counted() as work:
        assert any("repeated-name" in fault for fault in faults(text))
    assert work.lines < 500 * 250 * 20


DOUBTS = {
    "a long axis": pair(f'<axis xyz="0 0 2"/>{LIMIT}'),
    "no effort and velocity": pair('<limit lower="0" upper="1"/>'),
    "no range": pair('<limit effort="1" velocity="1"/>', type="prismatic"),
    "the range of a continuous joint": pair(LIMIT, type="continuous"),
    "a long quaternion": pair(f'{LIMIT}<origin quat_xyzw="0 0 0 2"/>'),
    "a jerk": pair(LIMIT.replace("/>", ' jerk="9"/>')),
    "an unknown element": pair(f"{LIMIT}<axes/>"),
    "an unknown attribute of a limit": pair(LIMIT.replace("lower", "lowr")),
    "an unknown attribute of an origin": pair(f'{LIMIT}<origin xzy="0 0 0"/>'),
    "a stray text": pair(f"{LIMIT}stray"),
    "an unknown version": '<robot name="r" version="7"><link name="base"/></robot>',
    "a flat box": shaped('<box size="0 1 1"/>'),
    "no ball": shaped('<sphere radius="0"/>'),
    "a flat mesh": shaped('<mesh filename="m" scale="1 0 1"/>'),
    "moments against the triangle inequality": inertial(izz="9"),
    "a negative moment": inertial(ixx="-1"),
    "an indefinite inertia": inertial(ixy="4"),
    "moments without mass": inertial("0"),
    "a negative mass": inertial("-1"),
    "a free base": pair('<origin xyz="0 0 1"/>', type="floating"),
    "a free base in a plane": pair("", type="planar"),
    "a planar joint on a body": carried("planar", LIMIT),
    "a floating joint on a body": carried("floating"),
    "a capsule": shaped('<capsule radius="1" length="4"/>'),
    "an unknown material": shaped(BALL, extra='<material name="rad"/>').replace(
        "</robot>", f'<material name="red">{RED}</material></robot>'
    ),
    "an empty material": shaped(BALL, extra="<material/>"),
    "a colour up to 255": shaped(
        BALL, extra='<material name="b"><color rgba="255 0 0 1"/></material>'
    ),
    "a texture": shaped(
        BALL, extra='<material name="b"><texture filename="t.png"/></material>'
    ),
    "two materials of one name": robot(
        f'<material name="red">{RED}</material>',
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        '<link name="base"/>',
    ),
    "a fixed joint that mimics": pair('<mimic joint="other"/>', type="fixed"),
    "no name": '<robot><link name="base"/></robot>',
    "a name with a slash": '<robot name="a/b"><link name="base"/></robot>',
    "what others read": robot(
        "<gazebo><anything/></gazebo>",
        "<gazebo/>",
        '<transmission name="t"/>',
        "<ros2_control/>",
        '<link name="base" type="x"><sensor/></link><link name="tip"/>',
        joint(
            f'{LIMIT}<dynamics damping="1"/><calibration rising="0"/>'
            "<safety_controller/>"
        ),
    ),
}


def test_doubts_are_reported_with_their_place(golden: Callable[[str, str], None]):
    told = [
        f"# {name}\n" + "".join(f"{line}\n" for line in lines(read(text)[1]))
        for name, text in DOUBTS.items()
    ]
    golden("urdf_doubts.txt", "\n".join(told))


def test_an_axis_within_rounding_of_length_one_is_not_a_news():
    link = tip(pair(f'<axis xyz="0.7071068 0.7071068 0"/>{LIMIT}'))
    assert isinstance(link.joint, Revolute)
    assert math.hypot(*link.joint.axis) == pytest.approx(1.0, abs=1e-15)
    _, report = read(pair(f'<axis xyz="0.7071068 0.7071068 0"/>{LIMIT}'))
    assert lines(report) == []


# Faults.

FAULTS = {
    "a link without a name": robot("<link/>"),
    "a link with an empty name": robot('<link name=""/>'),
    "two links of one name": robot('<link name="base"/>', '<link name="base"/>'),
    "two joints of one name": pair().replace("</robot>", f"{joint()}\n</robot>"),
    "an unknown parent": pair().replace('parent link="base"', 'parent link="bases"'),
    "three roots": robot('<link name="a"/>', '<link name="b"/>', '<link name="c"/>'),
    "two parents": robot(
        '<link name="base"/>',
        '<link name="tip"/>',
        joint("", type="fixed"),
        joint("", type="fixed", name="k"),
    ),
    "a cycle": robot(
        '<link name="base"/>',
        '<link name="tip"/>',
        '<link name="end"/>',
        fixed("j", "tip", "end"),
        fixed("k", "end", "tip"),
    ),
    "a link on itself": robot('<link name="base"/>', fixed("j", "base", "base")),
    "no parent": pair().replace('<parent link="base"/>', ""),
    "no name of a child": pair().replace('<child link="tip"/>', "<child/>"),
    "an empty name of a child": pair().replace('child link="tip"', 'child link=""'),
    "an unknown type of joint": pair(type="revolut"),
    "no type of joint": pair().replace(' type="revolute"', ""),
    "a zero axis": pair(f'<axis xyz="0 0 0"/>{LIMIT}'),
    "an axis of two numbers": pair(f'<axis xyz="0 0"/>{LIMIT}'),
    "an axis of none": pair(f"<axis/>{LIMIT}"),
    "a revolute joint without a limit": pair(""),
    "a prismatic joint without a limit": pair("", type="prismatic"),
    "swapped limits": pair('<limit lower="1" upper="-1" effort="1" velocity="1"/>'),
    "lower above a missing upper": pair('<limit lower="1" effort="1" velocity="1"/>'),
    "a negative limit": pair('<limit lower="0" upper="1" effort="1" velocity="-1"/>'),
    "an infinite limit": pair(LIMIT.replace('"4"', '"inf"')),
    "a NaN": pair(f'<origin xyz="0 nan 0"/>{LIMIT}'),
    "a number too large": pair(f'<origin rpy="0 1e999 0"/>{LIMIT}'),
    "two rotations": pair(f'<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>{LIMIT}'),
    "a zero quaternion": pair(f'<origin quat_xyzw="0 0 0 0"/>{LIMIT}'),
    "two origins": pair(f"<origin/><origin/>{LIMIT}"),
    "a mimic of nothing": fingers("", '<mimic joint="j"/>'),
    "a mimic of itself": fingers('<mimic joint="j0"/>'),
    "a cycle of mimics": fingers(
        '<mimic joint="j1"/>', '<mimic joint="j2"/>', '<mimic joint="j1"/>'
    ),
    "mimics by 1e308": fingers(
        "",
        '<mimic joint="j0" multiplier="1e308"/>',
        '<mimic joint="j1" multiplier="1e308"/>',
    ),
    "a mimic of a fixed joint": follower("fixed"),
    "a mimic of a planar joint": follower("planar"),
    "a floating joint that mimics": pair('<mimic joint="j"/>', type="floating"),
    "a mimic without a joint, by no number": pair(f'{LIMIT}<mimic multiplier="x"/>'),
    "a NaN mass": inertial("nan"),
    "no mass": inertial().replace('<mass value="2"/>', ""),
    "five moments": inertial().replace('iyy="3" ', ""),
    "an inertia too large": inertial("1e300", origin='<origin xyz="1e300 0 0"/>'),
    "no geometry": robot('<link name="base"><visual/></link>'),
    "an empty geometry": shaped(""),
    "an unknown shape": shaped("<spere/>"),
    "two shapes": shaped(BALL + BALL),
    "a negative size": shaped('<sphere radius="-1"/>'),
    "half a cylinder": shaped("<cylinder radius='1'/>"),
    "a mesh of nothing": shaped("<mesh/>"),
    "a mesh of no file": shaped("<mesh filename=' '/>"),
    "three parts of a colour": shaped(
        BALL, extra='<material name="m"><color rgba="1 0 0"/></material>'
    ),
    "an empty robot": "<robot/>",
    "an SRDF": '<robot name="r"><group name="arm"/></robot>',
    "materials alone": '<robot name="r"><material name="m"/></robot>',
    "another format": "<sdf/>",
    "a macro": robot('<xacro:macro name="m"/>'),
    "a substitution": robot('<link name="${prefix}base"/>'),
    "a document type": f"<!DOCTYPE robot>{pair()}",
    "half a file": pair()[:-9],
}


def test_faults_are_reported_with_their_place_and_fix(
    golden: Callable[[str, str], None],
):
    told = [
        f"# {name}\n" + "".join(f"{line}\n" for line in faults(text))
        for name, text in FAULTS.items()
    ]
    golden("urdf_faults.txt", "\n".join(told))


def test_what_leaves_no_doubt_about_the_motion_is_read(
    golden: Callable[[str, str], None],
):
    told: list[str] = []
    for name, text in FAULTS.items():
        for how in ({}, {"lenient": True}):
            try:
                _, report = read(text, **how)
            except FormatError:
                continue
            head = "lenient: " if how else ""
            told.append(f"# {head}{name}\n" + "".join(f"{x}\n" for x in lines(report)))
            break
    golden("urdf_tolerated.txt", "\n".join(told))


def test_all_faults_are_reported_at_once():
    text = robot(
        '<link name="base"/>',
        '<link name="base"/>',
        joint('<origin xyz="nan 0 0"/>', type="hinge"),
        joint(LIMIT.replace("-1", "9"), name="k"),
        '<joint name="m" type="fixed"/>',
    )
    found = [line.split("]")[0].removeprefix("arm.urdf:") for line in faults(text)]
    assert found == [
        "4:1: error[unknown-joint-type",
        "4:70: error[bad-number",
        "5:73: error[swapped-limits",
        "6:1: error[missing-element",
        "6:1: error[missing-element",
        "3:1: error[repeated-name",
        "4:51: error[unknown-link",
        "5:54: error[unknown-link",
    ]


@pytest.mark.thorough
def test_thousands_of_wrong_names_are_little_work():
    count = 1000
    text = robot(
        *(f'<link name="link_{k}_of_the_robot"/>' for k in range(count)),
        *(
            f'<joint name="j{k}" type="fixed"><parent link="lnk_{k}_of_the_robot"/>'
            f'<child link="lnk_{k + 1}_of_the_robot"/></joint>'
            for k in range(count)
        ),
    )
    with counted() as work:
        found = faults(text)
    assert work.lines < 30_000 * count
    assert found[-1].startswith("arm.urdf: note[more]: ... and 90")
    assert found[-1].endswith(" more errors; the rest of the file was not read")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("joint", "count"),
    [
        ('<joint name="j{}" type="revolut"/>', 10_000),
        ("<joint/>", 10_000),
        ('<joint name="j{}" type="fixed"><origin xyz="0 x 0"/></joint>', 7_000),
        ('<joint name="j{}" type="fixed"><parent link="a{}"/></joint>', 7_000),
        ('<link name="base"/>', 10_000),
    ],
)
def test_reading_ends_soon_after_more_faults_than_anybody_reads(joint: str, count: int):
    text = robot('<link name="base"/>', *(joint.format(k, k) for k in range(count)))
    data = text.encode()
    with counted() as work:
        found = faults(data, strict=False)
    assert work.lines < 500 * count
    assert len(found) == 101
    assert found[-1].endswith("the rest of the file was not read")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", [5_000, 100_000])
def test_a_long_chain_loads_or_is_refused(count: int):
    parts = ['<link name="l0"/>']
    parts.extend(
        f'<link name="l{k}"/><joint name="j{k}" type="fixed"><parent link="l{k - 1}"/>'
        f'<child link="l{k}"/></joint>'
        for k in range(1, count)
    )
    text = robot(*parts)
    if count > 10_000:
        (fault,) = faults(text)
        assert "error[xml-limit]: the robot has more than 150000 elements" in fault
    else:
        cell, _ = read(text)
        assert len(cell.manipulators[0].links) == count


WHOLE = robot(
    f'<material name="red">{RED}</material>',
    '<link name="world"/><link name="a"/><link name="b"/><link name="c"/>',
    '<link name="base"><inertial><origin xyz="1 2 3" rpy="1 2 3"/><mass value="2"/>',
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>',
    '<visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual>',
    '<collision><geometry><capsule radius="1" length="2"/></geometry></collision>',
    "</link>",
    '<joint name="f" type="floating"><parent link="world"/><child link="base"/>',
    '<origin xyz="0 0 1"/></joint>',
    f'<joint name="j" type="revolute"><parent link="base"/><child link="a"/>{LIMIT}',
    '<origin rpy="0 1.5707963267948966 0"/><axis xyz="0 0 1"/></joint>',
    f'<joint name="k" type="prismatic"><parent link="a"/><child link="b"/>{LIMIT}',
    '<mimic joint="j" multiplier="0.5" offset="0.1"/></joint>',
    '<joint name="p" type="planar"><parent link="b"/><child link="c"/></joint>',
)
SCRAPS = (
    *("nan", "-1", "0", "1e308", "", "j", "base", "0 0 0", "revolute", "planar"),
    *("fixed", "${x}", "1,5", "x" * 100, "/", "&#0;", "&lt;"),
)


def damaged(text: str, rng: np.random.Generator) -> str:
    """Replace a value, or take out, double or move a tag."""
    pattern = r'"[^"]*"' if rng.random() < 0.7 else r"<[^>]*>"
    pieces = list(re.finditer(pattern, text))
    at, other = rng.integers(len(pieces), size=2)
    old, start, end = pieces[at].group(), pieces[at].start(), pieces[at].end()
    if old.startswith('"'):
        new = f'"{rng.choice(SCRAPS)}"'
    else:
        new = str(rng.choice(["", old + old, pieces[other].group()]))
    return text[:start] + new + text[end:]


def test_damaged_files_make_a_cell_that_moves_or_are_refused():
    rng = np.random.default_rng(5)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(400):
        try:
            cell, _ = read(damaged(WHOLE, rng))
        except FormatError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        assert np.all(cell.limits[0] <= cell.limits[1])
        for pose in poses(cell, dict.fromkeys(cell.joint_names, 0.3)).values():
            assert all(map(math.isfinite, pose.entries))
    assert min(outcomes.values()) > 50


def test_who_is_less_strict_reads_more_and_nothing_else():
    rng = np.random.default_rng(7)
    counts = [0, 0, 0]
    for _ in range(300):
        text = damaged(WHOLE, rng)
        cells: list[Workcell | None] = []
        for how in ({"strict": True}, {}, {"lenient": True}):
            try:
                cells.append(read(text, **how)[0])
            except FormatError:
                cells.append(None)
        for k, cell in enumerate(cells):
            if cell is not None:
                counts[k] += 1
                assert all(cell == other for other in cells[k:])
    assert 30 < counts[0] < counts[1] < counts[2]


# Which files are URDF.


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<robot/>", True),
        (
            b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <a> --> <!-- --><robot name='a'>",
            True,
        ),
        ("<robot name='a'/>".encode("utf-16"), True),
        (b"<!DOCTYPE robot><robot/>", True),
        (b"<robots/>", False),
        (b"<sdf><robot/></sdf>", False),
        (b"<!-- <robot/>", False),
        (b'{"robot": 1}', False),
        (b"", False),
    ],
)
def test_sniffing(data: bytes, expected: bool):
    assert FORMAT.sniff(data) is expected


def test_sniffing_is_linear():
    def sniff(count: int) -> None:
        assert not FORMAT.sniff(b"<!---->" * count + b"<sdf/>")

    assert growth(sniff, 1000) < 2.1
    sniff(100_000)  # a regular expression that goes back would not end


def test_files_are_loaded_and_saved_by_their_ending(tmp_path: Path):
    path = tmp_path / "some.urdf"
    path.write_text(pair())
    cell, report = registry.read(path)
    assert lines(report) == []
    assert registry.save(cell, tmp_path / "other.urdf").diagnostics == ()
    assert registry.read(tmp_path / "other.urdf")[0] == cell
    with pytest.raises(FormatError, match=r"some\.xml:4:1: error\[missing-limit\]"):
        (tmp_path / "some.xml").write_text(pair(""))
        registry.read(tmp_path / "some.xml", strict=True)


def test_a_file_without_fault_asks_for_no_place_and_makes_each_link_once(monkeypatch):
    parts = [
        f'<link name="l{k}"><inertial><origin xyz="0 0 0.1" rpy="0.1 0 0"/>'
        '<mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        '</inertial><collision><origin xyz="0 0 0.1"/><geometry><box size="1 1 1"/>'
        "</geometry></collision></link>"
        for k in range(20)
    ]
    parts += [
        f'<joint name="j{k}" type="revolute"><parent link="l{k}"/>'
        f'<child link="l{k + 1}"/><origin xyz="0 0 1"/>{LIMIT}</joint>'
        for k in range(19)
    ]
    asked: list[str] = []
    for kind, name in ((Element, "place"), (Element, "label")):
        get = getattr(kind, name).fget
        counts = property(
            lambda self, get=get, name=name: (asked.append(name), get(self))[1]
        )
        monkeypatch.setattr(kind, name, counts)
    check = Link._check_inertia
    monkeypatch.setattr(
        Link, "_check_inertia", lambda *given: (asked.append("link"), check(*given))[1]
    )
    cell, report = read(robot(*parts))
    assert len(cell.manipulators[0].links) == 20
    assert not report.diagnostics
    assert asked == ["link"] * 20
