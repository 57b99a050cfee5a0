"""SDF in: frames, joints, includes and loops as SDF means them.

Poses are computed by hand, from products of matrices that say what the file says.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Budget, Report
from armillary.formats.format import ReadOptions
from armillary.formats.paths import Roots
from armillary.formats.sdf import FORMAT
from armillary.limits import SDF_ELEMENTS, SDF_FILES, Limit
from armillary.model.coupling import Coupling
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.limits import Limits
from armillary.model.loops.loop import Closure
from armillary.model.mount import Mount
from armillary.model.workcell import DEFAULT_RULES, Workcell
from armillary.spatial.pose import Pose

Array = npt.NDArray[np.float64]


def read(text: str, path: str = "x.sdf", **roots: object) -> tuple[Workcell, Report]:
    report = Report()
    options = ReadOptions(roots=Roots(**roots))  # type: ignore[arg-type]
    return FORMAT.read(text.encode(), path, options, report), report


def model(body: str, *, version: str = "1.9", attributes: str = "") -> str:
    return f"""<sdf version="{version}"><model name="m" {attributes}>
    <self_collide>false</self_collide>{body}</model></sdf>"""


def world(body: str, *, version: str = "1.11") -> str:
    return f'<sdf version="{version}"><world name="w">{body}</world></sdf>'


def codes(report: Report) -> set[str]:
    return {each.code for each in report.diagnostics}


def refusal(text: str) -> set[str]:
    with pytest.raises(FormatError) as caught:
        read(text)
    return {each.code for each in caught.value.diagnostics}


def X(
    x: float = 0, y: float = 0, z: float = 0, r: float = 0, p: float = 0, w: float = 0
):
    """The pose of six numbers of SDF."""
    turn = [
        Pose.rotation_z(w).matrix(),
        Pose.rotation_y(p).matrix(),
        Pose.rotation_x(r).matrix(),
    ]
    return Pose.translation(x, y, z).matrix() @ turn[0] @ turn[1] @ turn[2]


def poses(cell: Workcell, **q: float) -> dict[str, Array]:
    """The poses of all links and frames in the world, by the joints of the model."""
    found: dict[str, Array] = {}
    for manipulator in cell.manipulators:
        mount = cell.mounted.get(manipulator.name)
        base = np.eye(4)
        if mount is not None:
            on = np.eye(4) if mount.on == "world" else found[mount.on]
            base = on @ mount.pose.matrix()
        for k in manipulator.order:
            link = manipulator.links[k]
            at = (
                base
                if link.parent is None
                else found[f"{manipulator.name}/{link.parent}"]
            )
            moved = link.joint.transform(q.get(link.coordinate, 0.0)).matrix()
            found[f"{manipulator.name}/{link.name}"] = at @ moved
            for frame in link.frames:
                pose = (link.primary @ frame.pose).matrix()
                found[f"{manipulator.name}/{frame.name}"] = at @ moved @ pose
    return found


LINKS = """<link name="a"><pose>1 2 3 0 0 1.5707963267948966</pose></link>
<link name="b"><pose relative_to="a">0.5 0 0 0.3 0 0</pose></link>"""


def joint(
    kind: str, body: str = "", *, axis: str = "<axis><xyz>0 0 1</xyz></axis>"
) -> str:
    return f"""<joint name="j" type="{kind}"><parent>a</parent><child>b</child>
    {axis}{body}</joint>"""


# Frames


def test_poses_are_relative_to_what_they_name():
    cell, report = read(
        model(LINKS + joint("revolute"), attributes='canonical_link="b"')
    )
    found = poses(cell, j=0.7)
    a = X(1, 2, 3, w=math.pi / 2)
    assert np.allclose(found["m/a"], a, atol=1e-15)
    assert np.allclose(found["m/b"], a @ X(0.5, r=0.3) @ X(w=0.7), atol=1e-15)
    assert report.diagnostics == ()
    assert cell.mounts[0].bolted is False


def test_joint_poses_are_relative_to_the_child_and_axes_to_a_frame():
    body = """<pose>0 0 0.1 0 0.4 0</pose><axis>
    <xyz expressed_in="f">1 0 0</xyz></axis>"""
    frame = """<frame name="f" attached_to="b">
    <pose relative_to="a">0 0 0 0 0 0.9</pose></frame>"""
    cell, _ = read(model(LINKS + frame + joint("revolute", body, axis="")))
    # The axis is x of f, whose axes are those of `a`, turned by 0.9; the line passes
    # through the joint, which is 0.1 above the child.
    a, X_AB, X_BJ = X(1, 2, 3, w=math.pi / 2), X(0.5, r=0.3), X(z=0.1, p=0.4)
    X_AJ = X_AB @ X_BJ
    axis = X_AJ[:3, :3].T @ X(w=0.9)[:3, 0]
    turned = Pose.rotation_about(axis, 0.7).matrix()
    expected = a @ X_AJ @ turned @ np.linalg.inv(X_BJ)
    found = poses(cell, j=0.7)
    assert np.allclose(found["m/b"], expected, atol=1e-15)
    X_BF = np.linalg.inv(X_AB) @ X(w=0.9)
    assert np.allclose(found["m/f"], expected @ X_BF, atol=1e-15)


@pytest.mark.parametrize(
    ("version", "flag", "in_model"),
    [("1.4", "", True), ("1.5", "", False), ("1.6", "true", True), ("1.6", "0", False)],
)
def test_axes_before_1_7_may_be_in_the_frame_of_the_model(
    version: str, flag: str, in_model: bool
):
    said = f"<use_parent_model_frame>{flag}</use_parent_model_frame>" if flag else ""
    axis = f"<axis><xyz>0 1 0</xyz>{said}</axis>"
    links = """<link name="a"/><link name="b"><pose>1 0 0 0.5 0 0</pose></link>"""
    cell, _ = read(model(links + joint("revolute", axis=axis), version=version))
    axis_B = X(r=0.5)[:3, :3].T @ [0, 1, 0] if in_model else [0, 1, 0]
    expected = X(1, r=0.5) @ Pose.rotation_about(axis_B, 0.8).matrix()
    assert np.allclose(poses(cell, j=0.8)["m/b"], expected, atol=1e-15)


def test_degrees_and_quaternions():
    links = """<link name="a"><pose degrees="true">0 0 0 90 0 45</pose></link>
    <link name="b"><pose rotation_format="quat_xyzw">1 2 3 0 0 0.6 0.8</pose></link>
    <link name="c"><pose/></link>"""
    cell, _ = read(model(links))
    found = poses(cell)
    assert np.allclose(found["m/a"], X(r=math.pi / 2, w=math.pi / 4), atol=1e-15)
    turned = X(1, 2, 3, w=2 * math.atan2(0.6, 0.8))
    assert np.allclose(found["m_b/b"], turned, atol=1e-15)
    assert np.allclose(found["m_c/c"], np.eye(4))


NESTED = """<model name="arm" placement_frame="tool">
  <pose relative_to="table">0 0 1 0 0 0</pose>
  <link name="l"><pose>0 0.2 0 0 0 0</pose></link>
  <frame name="tool" attached_to="l"><pose>0.1 0 0 0 0 1</pose></frame></model>"""


def test_nested_models_and_placement_frames():
    body = f"""<link name="table"><pose>1 0 0 0 0 0.5</pose></link>{NESTED}
    <frame name="eye" attached_to="arm::tool"><pose>0 0 0.3 0 0 0</pose></frame>
    <joint name="j" type="prismatic"><parent>table</parent><child>arm::l</child>
    <axis><xyz expressed_in="__model__">0 1 0</xyz></axis></joint>"""
    cell, _ = read(model(body))
    found = poses(cell, j=0.25)
    # The pose is that of the tool, which the joint moves along y of the model.
    tool = X(y=0.25) @ X(1, w=0.5) @ X(z=1)
    X_LT = X(0.1, w=1)
    assert np.allclose(found["m/arm::tool"], tool, atol=1e-15)
    assert np.allclose(found["m/arm::l"], tool @ np.linalg.inv(X_LT), atol=1e-15)
    assert np.allclose(found["m/eye"], tool @ X(z=0.3), atol=1e-15)


def test_frames_of_the_world_are_a_fixture():
    text = world(
        """<frame name="lid" attached_to="box::l"><pose>0 0 0.5 0 0 0</pose></frame>
        <frame name="cell"><pose>1 0 0 0 0 0</pose></frame>
        <frame name="bench" attached_to="cell"><pose>0 1 0 0 0 0</pose></frame>
        <model name="box"><pose relative_to="bench">0 0 1 0 0 0</pose>
        <static>true</static><link name="l"/></model>"""
    )
    cell, _ = read(text)
    found = poses(cell)
    assert np.allclose(found["environment/bench"], X(1, 1))
    assert np.allclose(found["box/l"], X(1, 1, 1))
    assert np.allclose(found["box/lid"], X(1, 1, 1.5))
    assert cell.mounted["box"].bolted


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>', "cycle"),
        ('<frame name="f"><pose relative_to="f"/></frame>', "cycle"),
        ('<link name="l"><pose relative_to="k"/></link>', "unknown-frame"),
        ('<frame name="f" attached_to="nowhere"/>', "unknown-frame"),
        ('<link name="a"/>', "repeated-name"),
        ('<frame name="a"/>', "repeated-name"),
        ('<link name="l"><pose>1 2 nan 0 0 0</pose></link>', "bad-number"),
        ('<link name="l"><pose>1e999 0 0 0 0 0</pose></link>', "bad-number"),
        ('<link name="l"><pose>1 2 3</pose></link>', "wrong-count"),
        (
            '<link name="l"><pose rotation_format="x">0 0 0 0 0 0</pose></link>',
            "unknown-value",
        ),
        ("<link/>", "missing-attribute"),
        ('<joint name="k" type="fixed"><parent>a</parent></joint>', "missing-element"),
        (
            '<joint name="k" type="hinge"><parent>a</parent><child>b</child></joint>',
            "unknown-joint-type",
        ),
        (
            '<joint name="k" type="fixed"><parent>a</parent><child>c</child></joint>',
            "unknown-link",
        ),
        (
            '<joint name="k" type="fixed"><parent>a</parent><child>a</child></joint>',
            "same-link",
        ),
        (
            joint("fixed").replace(">b<", ">world<"),
            "unknown-link",
        ),
    ],
)
def test_faults_are_refused(body: str, code: str):
    links = '<link name="a"/><link name="b"/>'
    if code != "repeated-name" or "link" in body:
        assert code in refusal(model(links + body))
    else:
        _, report = read(model(links + body))
        assert code in codes(report)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<sdf version='1.9'/>", "no-model"),
        ("<sdf version='1.9'><light name='x'/></sdf>", "no-model"),
        ("<world name='x'/>", "not-sdf"),
    ],
)
def test_files_without_models_are_refused(text: str, code: str):
    assert refusal(text) == {code}


@pytest.mark.parametrize("version", ["1.13", "2.0", "0.9", "x", ""])
def test_other_versions_are_read_with_a_warning(version: str):
    _, report = read(model('<link name="a"/>', version=version))
    assert codes(report) == {"unknown-version"}


# Joints


def test_limits_and_dynamics():
    axis = """<axis><xyz>0 0 2</xyz><limit><lower>-1e16</lower><upper>1.5</upper>
    <effort>-1</effort><velocity>3</velocity><stiffness>1e8</stiffness></limit>
    <dynamics><damping>0.1</damping><friction>0.2</friction>
    <spring_reference>0.3</spring_reference><spring_stiffness>4</spring_stiffness>
    </dynamics></axis>"""
    motor = """<drake:rotor_inertia>1e-4</drake:rotor_inertia>
    <drake:gear_ratio>50</drake:gear_ratio>"""
    cell, report = read(model(LINKS + joint("revolute", motor, axis=axis)))
    link = cell.links[1]
    assert link.limits == Limits(upper=1.5, velocity=3.0)
    assert link.dynamics == JointDynamics(
        damping=0.1,
        friction=0.2,
        rest=0.3,
        stiffness=4.0,
        motor_inertia=1e-4,
        gear_ratio=50.0,
    )
    assert codes(report) == {"axis-length", "not-kept"}
    text = model(LINKS + joint("revolute", axis=axis.replace("1.5", "inf")))
    assert read(text)[0].links[1].limits.upper == math.inf


def test_swapped_limits_are_read_as_the_caller_says():
    axis = "<axis><limit><lower>1</lower><upper>-1</upper></limit></axis>"
    text = model(LINKS + joint("revolute", axis=axis))
    assert refusal(text) == {"swapped-limits"}
    for swapped, limits in (
        ("swap", Limits(lower=-1, upper=1)),
        ("unlimited", Limits()),
    ):
        report = Report(swapped_limits=swapped)
        cell = FORMAT.read(text.encode(), "x.sdf", ReadOptions(), report)
        assert cell.links[1].limits == limits


@pytest.mark.parametrize(
    ("pitch", "advance"),
    [
        ("<screw_thread_pitch>0.02</screw_thread_pitch>", 0.02 / (2 * math.pi)),
        # The older parameter is in radians per metre, left-handed above zero.
        ("<thread_pitch>-50</thread_pitch>", 0.02),
        (
            "<thread_pitch>9</thread_pitch><screw_thread_pitch>1</screw_thread_pitch>",
            1 / (2 * math.pi),
        ),
    ],
)
def test_screws(pitch: str, advance: float):
    cell, _ = read(model('<link name="a"/><link name="b"/>' + joint("screw", pitch)))
    expected = X(z=advance * 1.2, w=1.2)
    assert np.allclose(poses(cell, j=1.2)["m/b"], expected, atol=1e-15)


def test_joints_of_two_and_three_axes():
    axes = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    links = '<link name="a"/><link name="b"><pose>0 0 1 0 0 0.4</pose></link>'
    cell, report = read(model(links + joint("universal", axis=axes)))
    found = poses(cell, j_1=0.3, j_2=-0.8)["m/b"]
    assert np.allclose(found, X(z=1, w=0.4) @ X(r=0.3) @ X(p=-0.8), atol=1e-15)
    assert codes(report) == {"split-joint"}
    ball, _ = read(model(links + joint("ball", axis="")))
    assert ball.joint_names == ("j_yaw", "j_pitch", "j_roll")
    found = poses(ball, j_yaw=0.5, j_pitch=0.2, j_roll=-0.1)["m/b"]
    assert np.allclose(found, X(z=1, w=0.4) @ X(r=-0.1, p=0.2, w=0.5), atol=1e-15)


def test_a_joint_may_be_traversed_backwards():
    # Both joints have the child c, so one of a and b hangs on it.
    body = """<link name="a"/><link name="b"><pose>2 0 0 0 0 0</pose></link>
    <link name="c"><pose>1 0 0 0.2 0 0</pose></link>
    <joint name="ac" type="revolute"><parent>a</parent><child>c</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
    <joint name="bc" type="universal"><parent>b</parent><child>c</child>
    <axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2></joint>"""
    cell, _ = read(model(body))
    assert [link.parent for link in cell.links][:2] == [None, "a"]
    found = poses(cell, ac=0.6, bc_1=0.3, bc_2=0.9)
    c = X(1, r=0.2) @ X(w=0.6)
    assert np.allclose(found["m/c"], c, atol=1e-15)
    X_BC = np.linalg.inv(X(2)) @ X(1, r=0.2) @ X(r=0.3) @ X(p=0.9)
    assert np.allclose(found["m/b"], c @ np.linalg.inv(X_BC), atol=1e-15)


def follower(mimic: str, name: str = "k") -> str:
    return f"""<link name="{name}l"/><joint name="{name}" type="prismatic">
    <parent>a</parent><child>{name}l</child><axis>{mimic}</axis></joint>"""


def test_mimic_has_a_reference():
    mimic = """<mimic joint="j"><multiplier>3</multiplier><offset>0.5</offset>
    <reference>0.25</reference></mimic>"""
    cell, _ = read(model(LINKS + joint("revolute") + follower(mimic)))
    # 3 (q - 0.25) + 0.5
    assert cell.links[2].coupling == Coupling(of="j", multiplier=3.0, offset=-0.25)
    drake = '<drake:mimic joint="j" multiplier="2" offset="0.1"/>'
    cell, _ = read(model(LINKS + joint("revolute") + follower(drake)))
    assert cell.links[2].coupling == Coupling(of="j", multiplier=2.0, offset=0.1)
    axes = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    second = '<mimic joint="j" axis="axis2"/>'
    cell, _ = read(model(LINKS + joint("universal", axis=axes) + follower(second)))
    assert cell.links[-1].coupling == Coupling(of="j_2")


@pytest.mark.parametrize("of", ["k", "nothing"])
def test_mimics_of_nothing_are_refused(of: str):
    mimic = f'<mimic joint="{of}"><multiplier>1</multiplier></mimic>'
    text = model(LINKS + joint("revolute") + follower(mimic))
    assert refusal(text) == {"mimic-cycle" if of == "k" else "unknown-joint"}


def test_gearboxes_couple_joints():
    body = """<link name="a"/><link name="b"/><link name="c"/>
    <joint name="ab" type="revolute"><parent>a</parent><child>b</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
    <joint name="ca" type="revolute"><parent>c</parent><child>a</child>
    <axis><xyz>0 0 1</xyz></axis></joint>
    <joint name="gear" type="gearbox"><parent>b</parent><child>c</child>
    <gearbox_ratio>4</gearbox_ratio><gearbox_reference_body>a</gearbox_reference_body>
    <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 -1</xyz></axis2></joint>"""
    cell, _ = read(model(body))
    # theta_2 = -4 theta_1. theta_1 is ab; theta_2, of c on a about -z, is ca.
    coupled = {link.coordinate: link.coupling for link in cell.links if link.coupling}
    assert coupled == {"ca": Coupling(of="ab", multiplier=-4.0)}


FOUR_BAR = """<link name="ground"/>
<link name="crank"><pose>0 0 0 0 0 0</pose></link>
<link name="bar"><pose>0 0 1 0 0 0</pose></link>
<link name="rocker"><pose>2 0 0 0 0 0</pose></link>
<joint name="q1" type="revolute"><parent>ground</parent><child>crank</child>
<axis><xyz>0 1 0</xyz></axis></joint>
<joint name="q2" type="revolute"><parent>crank</parent><child>bar</child>
<axis><xyz>0 1 0</xyz></axis></joint>
<joint name="q3" type="revolute"><parent>ground</parent><child>rocker</child>
<axis><xyz>0 1 0</xyz></axis></joint>
<joint name="q4" type="revolute"><pose>0 0 1 0 0 0</pose><parent>bar</parent>
<child>rocker</child><axis><xyz>0 1 0</xyz>{}</axis></joint>"""


@pytest.mark.parametrize("limit", ["", "<dynamics><damping>1</damping></dynamics>"])
def test_joints_that_close_loops(limit: str):
    # A parallelogram: the rocker turns as the crank does, and the bar stays level.
    cell, _ = read(model(FOUR_BAR.format(limit)))
    cell = arm.Cell(manipulators=cell.manipulators)
    assert cell.joint_names == ("q1",)
    rows = np.linspace(-0.5, 0.5, 5)[:, None]
    bar, rocker = cell.fk("bar")(rows), cell.fk("rocker")(rows)
    assert np.allclose(bar[:, :3, :3], np.eye(3), atol=1e-9)
    for q, pose in zip(rows[:, 0], rocker, strict=True):
        assert np.allclose(pose, X(2, p=q), atol=1e-9)


def test_joints_with_the_world():
    fixed = """<joint name="w" type="fixed"><parent>world</parent>
    <child>a</child></joint>"""
    cell, _ = read(model(LINKS + fixed + joint("revolute")))
    (mount,) = cell.mounts
    assert mount.bolted and np.allclose(mount.pose.matrix(), X(1, 2, 3, w=math.pi / 2))
    sliding = fixed.replace("fixed", "prismatic")
    cell, _ = read(model(LINKS + sliding + joint("revolute")))
    assert cell.mounts == (Mount(manipulator="m"),)
    assert cell.links[0].name == "world" and cell.joint_names == ("w", "j")


def test_static_models_do_not_move():
    cell, report = read(model(LINKS + joint("revolute") + "<static>1</static>"))
    assert cell.joint_names == () and cell.mounted["m"].bolted
    assert codes(report) == {"not-kept"}


def test_links_that_nothing_connects_are_manipulators():
    cell, _ = read(model(LINKS))
    assert [m.name for m in cell.manipulators] == ["m", "m_b"]
    assert not cell.mounted["m_b"].bolted


def test_joints_between_models():
    text = world(
        """<model name="base"><static>true</static><link name="l"/>
        <frame name="plate" attached_to="l"><pose>0 0 1 0 0 0</pose></frame></model>
        <model name="arm"><pose relative_to="base::plate">0 0 0.5 0 0 0</pose>
        <link name="l"/></model>
        <model name="tool"><pose relative_to="arm">0 0 2 0 0 0</pose>
        <link name="l"/></model>
        <joint name="bolt" type="fixed"><parent>base::plate</parent>
        <child>arm::l</child></joint>
        <joint name="slide" type="prismatic"><parent>arm::l</parent>
        <child>tool::l</child><axis><xyz>0 0 1</xyz></axis></joint>"""
    )
    cell, _ = read(text)
    # A joint that moves makes one manipulator of two models.
    assert [m.name for m in cell.manipulators] == ["base", "arm"]
    assert cell.mounted["arm"].on == "base/plate" and cell.mounted["arm"].bolted
    found = poses(cell, slide=0.25)
    assert np.allclose(found["arm/arm::l"], X(z=1.5))
    assert np.allclose(found["arm/tool::l"], X(z=3.75))


def test_whether_links_are_tested_against_each_other():
    boxes = """<link name="a"><collision name="c"><geometry><sphere><radius>0.1</radius>
    </sphere></geometry></collision></link>"""
    two = boxes + boxes.replace('"a"', '"b"') + joint("revolute")
    plain = model(two)
    assert read(plain)[0].rules == DEFAULT_RULES
    said = plain.replace("<self_collide>false", "<self_collide>true")
    assert read(said)[0].rules == DEFAULT_RULES.include_self("m")
    silent = plain.replace("<self_collide>false</self_collide>", "")
    cell, report = read(silent)
    assert cell.rules == DEFAULT_RULES.include_self("m")
    assert codes(report) == {"self-collision"}
    one = plain.replace(
        '<link name="b">', '<link name="b"><self_collide>1</self_collide>'
    )
    assert read(one)[0].rules == DEFAULT_RULES.include("m/b", "m/*")


# Links


def test_inertias_are_about_the_centre_of_mass():
    body = """<link name="a"><inertial><pose>0 0 0.5 0 0 1.5707963267948966</pose>
    <mass>2</mass><inertia><ixx>1</ixx><iyy>2</iyy><izz>2.5</izz></inertia></inertial></link>"""
    cell, _ = read(model(body))
    inertia = cell.links[0].inertia
    assert inertia is not None and inertia.mass == 2.0
    # Turned by a right angle, and moved by 0.5 m: m d^2 = 0.5 about x and y.
    assert np.allclose(inertia.rotational, np.diag([2.5, 1.5, 2.5]), atol=1e-15)


BOXES = """<collision name="c"><density>500</density><pose>0 0 1 0 0 0</pose>
<geometry><box><size>1 2 3</size></box></geometry></collision>
<collision name="d"><pose relative_to="b">0 0 0 0 0 0</pose>
<geometry><sphere><radius>0.5</radius></sphere></geometry></collision>"""


@pytest.mark.parametrize(
    ("said", "of_ball", "factor"),
    [
        ("", 1000.0, 1.0),
        ("<density>200</density>", 200.0, 1.0),
        ("<mass>10</mass>", 1000.0, 10.0 / (3000.0 + 1000.0 * math.pi / 6.0)),
    ],
)
def test_inertias_of_shapes(said: str, of_ball: float, factor: float):
    auto = f'<link name="a"><inertial auto="true">{said}</inertial>{BOXES}</link>'
    cell, report = read(model(auto + '<link name="b"><pose>2 0 0 0 0 0</pose></link>'))
    inertia = cell.manipulators[0].link("a").inertia
    box, ball = 3000.0, of_ball * math.pi / 6.0
    assert inertia is not None and not report.diagnostics
    assert np.isclose(inertia.mass, factor * (box + ball))
    centre = np.array([2.0 * ball, 0.0, box]) / (box + ball)
    assert np.allclose(inertia.centre(), centre)
    own = 0.1 * ball
    moments = [13 / 12 + 1, 10 / 12 + 1, 5 / 12]
    about = np.diag(box * np.array(moments) + own + ball * np.array([0.0, 4.0, 4.0]))
    assert np.allclose(inertia.rotational, factor * about)


@pytest.mark.parametrize(
    "shapes", ["", BOXES.replace("500", "-1"), BOXES.replace("box><", "plane><")]
)
def test_inertias_that_no_shapes_have_are_left_out(shapes: str):
    body = f'<link name="a"><inertial auto="1"/>{shapes}</link><link name="b"/>'
    cell, report = read(model(body))
    assert cell.manipulators[0].link("a").inertia is None
    assert "bad-inertia" in codes(report)


GEOMETRIES = {
    "box": "<box><size>1 2 3</size></box>",
    "sphere": "<sphere><radius>2</radius></sphere>",
    "cylinder": "<cylinder><radius>1</radius><length>4</length></cylinder>",
    "capsule": "<capsule><radius>1</radius><length>4</length></capsule>",
    "ellipsoid": "<ellipsoid><radii>1 2 3</radii></ellipsoid>",
    "cone": "<cone><radius>1</radius><length>4</length></cone>",
    "mesh": "<mesh><uri>a.stl</uri><scale>1 -1 2</scale></mesh>",
    "half_space": "<plane><normal>0 0 1</normal><size>3 4</size></plane>",
    "convex_polyhedron": """<polyline><point>0 0</point><point>1 0</point>
    <point>0 1</point><height>2</height></polyline>""",
}


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_shapes(kind: str):
    text = f"""<link name="a"><collision name="c"><pose>1 0 0 0 0 0</pose>
    <geometry>{GEOMETRIES[kind]}</geometry></collision></link>"""
    cell, report = read(model(text))
    (shape,) = cell.links[0].collisions
    assert type(shape).__struct_config__.tag == kind
    assert shape.name == "c" and shape.pose.position == (1.0, 0.0, 0.0)
    assert report.diagnostics == ()


@pytest.mark.parametrize(
    ("geometry", "code"),
    [
        ("<box><size>1 2 -3</size></box>", "negative-size"),
        ("<box/>", "missing-element"),
        ("<bocks/>", "bad-geometry"),
        ("<sphere><radius>1e308</radius></sphere>", "bad-shape"),
        ("<mesh><uri> </uri></mesh>", "empty-reference"),
        ("<plane><normal>0 0 0</normal></plane>", "zero-axis"),
        ("<heightmap><uri>x.png</uri></heightmap>", "not-kept"),
        (
            "<polyline><point>0 0</point><point>2 0</point><point>0.5 0.5</point>"
            "<point>0 2</point></polyline>",
            "not-kept",
        ),
    ],
)
def test_bad_shapes_are_left_out(geometry: str, code: str):
    text = f"""<link name="a"><collision name="c"><geometry>{geometry}</geometry>
    </collision></link>"""
    cell, report = read(model(text))
    assert cell.links[0].collisions == () and code in codes(report)


def test_colours():
    text = """<link name="a"><visual name="v"><geometry><plane><size>2 3</size></plane>
    </geometry><transparency>0.5</transparency><material><ambient>1 0 0 1</ambient>
    <diffuse>0.1 0.2 2 0.8</diffuse></material></visual></link>"""
    cell, report = read(model(text))
    (shape,) = cell.links[0].visuals
    assert shape.colour == (0.1, 0.2, 1.0, 0.4)
    assert isinstance(shape, arm.shapes.Box) and shape.size == (2.0, 3.0, 0.0)
    assert codes(report) == {"colour-range"}


def test_what_has_no_place_is_listed():
    extra = """<plugin name="p" filename="x.so"><deep><deeper/></deep></plugin>
    <link name="a"><sensor name="s" type="imu"/><gravity>0</gravity></link>"""
    _, report = read(model(extra))
    listed = {d.message.partition(" is not kept")[0] for d in report.diagnostics}
    assert listed == {"<plugin>", "<sensor>", "<gravity>"}
    _, report = read(world("<state world_name='w'/><wrold/>"))
    assert codes(report) == {"not-kept", "unknown-element"}


def test_shapes_may_be_relative_to_any_frame():
    placed = """<frame name="f" attached_to="b"><pose>0 0 1 0 0 0</pose></frame>
    <link name="b"><pose>1 0 0 0 0 0.5</pose></link>
    <link name="a"><pose>0 2 0 0 0 0</pose>
    <visual name="{0}"><pose relative_to="{0}">0 0 0.5 0 0 0</pose>
    <geometry><sphere><radius>1</radius></sphere></geometry></visual></link>"""
    at = {"f": X(1, z=1, w=0.5), "__model__": X(), "b": X(1, w=0.5), "a": X(y=2)}
    for name, X_MF in at.items():
        cell, report = read(model(placed.format(name)))
        links = [link for m in cell.manipulators for link in m.links]
        (shape,) = next(link.visuals for link in links if link.name == "a")
        expected = X(y=-2) @ X_MF @ X(z=0.5)
        assert np.allclose(shape.pose.matrix(), expected, atol=1e-15)
        assert report.diagnostics == ()
    cell, report = read(model(placed.format("nowhere")))
    assert not any(link.visuals for m in cell.manipulators for link in m.links)
    assert codes(report) == {"unknown-frame"}


# Includes


def folder(root: Path, name: str, **files: str) -> None:
    (root / name).mkdir(parents=True)
    for file, text in files.items():
        (root / name / file.replace("_", ".")).write_text(text)


CONFIG = """<model><name>arm</name><sdf version="1.4">old.sdf</sdf>
<sdf version="1.9">new.sdf</sdf><sdf version="9.9">later.sdf</sdf></model>"""
ARM = """<sdf version="1.9"><model name="arm"><pose>9 9 9 0 0 0</pose>
<link name="l"><pose>0 0 1 0 0 0</pose>
<collision name="c"><geometry><mesh><uri>meshes/a.stl</uri></mesh></geometry>
</collision>
</link><frame name="grip" attached_to="__model__"><pose>0 1 0 0 0 0</pose></frame>
</model></sdf>"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder(tmp_path, "arm", model_config=CONFIG, new_sdf=ARM, old_sdf="<sdf/>")
    return tmp_path


def include(body: str, attributes: str = "") -> str:
    return f"<include {attributes}>{body}</include>"


@pytest.mark.parametrize(
    "uri", ["model://arm", "arm", "arm/new.sdf", "model://arm/new.sdf"]
)
def test_includes_are_found(models: Path, uri: str):
    text = world(include(f"<uri>{uri}</uri><name>left</name><static>1</static>"))
    path = models / "w.sdf"
    cell, report = read(text, str(path), folders=[models])
    assert [m.name for m in cell.manipulators] == ["left"]
    assert cell.mounted["left"] == Mount(
        manipulator="left", pose=Pose.translation(9, 9, 10)
    )
    # The mesh is beside the model; the cell refers to it from its own folder.
    (shape,) = cell.links[0].collisions
    assert isinstance(shape, arm.shapes.Mesh) and shape.file == "arm/meshes/a.stl"
    assert codes(report) == {"reference-missing"}


def test_includes_are_found_by_the_environment(
    models: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(models))
    path = tmp_path_factory.mktemp("elsewhere") / "w.sdf"
    cell, _ = read(world(include("<uri>model://arm</uri>")), str(path))
    assert cell.manipulators[0].name == "arm"


def test_a_pose_and_a_placement_frame_of_an_include(models: Path):
    body = """<uri>arm</uri><placement_frame>grip</placement_frame>
    <pose>1 0 0 0 0 1.5707963267948966</pose>"""
    cell, _ = read(world(include(body)), str(models / "w.sdf"))
    found = poses(cell)
    assert np.allclose(found["arm/grip"], X(1, w=math.pi / 2), atol=1e-15)
    assert np.allclose(found["arm/l"], X(1, w=math.pi / 2) @ X(y=-1, z=1), atol=1e-15)


def test_merged_includes_have_no_scope(models: Path):
    body = """<link name="base"/>
    <joint name="j" type="fixed"><parent>base</parent><child>grip</child></joint>"""
    placed = """<uri>arm</uri><placement_frame>grip</placement_frame>
    <pose relative_to="base">0 0 2 0 0 0</pose>"""
    text = model(body + include(placed, 'merge="true"'))
    cell, _ = read(text, str(models / "w.sdf"))
    found = poses(cell)
    assert np.allclose(found["m/grip"], X(z=2), atol=1e-15)
    assert np.allclose(found["m/l"], X(y=-1, z=3), atol=1e-15)


def test_a_missing_include_leaves_the_rest(models: Path):
    text = world(include("<uri>model://missing</uri>") + include("<uri>arm</uri>"))
    cell, report = read(text, str(models / "w.sdf"), folders=[models])
    assert len(cell.manipulators) == 1
    assert "reference-missing" in codes(report)


URDF = """<robot name="r"><link name="l"/>
<link name="tip"><collision><geometry><mesh filename="meshes/a.stl"/></geometry>
</collision></link><joint name="turn" type="revolute">
<parent link="l"/><child link="tip"/>
<origin xyz="0 0 1" rpy="0 0 0.5"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="2" effort="3" velocity="4"/></joint></robot>"""


@pytest.mark.parametrize("root", ["l", "world"])
def test_a_urdf_is_included(models: Path, root: str):
    (models / "arm" / "r.urdf").write_text(URDF.replace('"l"', f'"{root}"'))
    placed = "<uri>arm/r.urdf</uri><name>robot</name><pose>1 2 0 0 0 0</pose>"
    joint = """<joint name="j" type="fixed"><parent>robot::tip</parent>
    <child>arm::l</child></joint>"""
    text = world(include(placed) + include("<uri>arm</uri>") + joint)
    cell, _ = read(text, str(models / "w.sdf"))
    robot = cell.manipulators[cell.number("robot")]
    tip = robot.link("tip")
    assert tip.limits == Limits(lower=-1.0, upper=2.0, velocity=4.0, effort=3.0)
    found = poses(cell, turn=0.3)
    assert np.allclose(found["robot/tip"], X(1, 2, 1, w=0.5) @ X(r=0.3), atol=1e-15)
    (shape,) = tip.collisions
    assert isinstance(shape, arm.shapes.Mesh) and shape.file == "arm/meshes/a.stl"
    assert cell.mounted["robot"].bolted is (root == "world")
    assert cell.mounted["arm"].on == "robot/tip"


@pytest.mark.parametrize("wrong", ['link="tip"/></joint>', 'xyz="0 0 1e309"'])
def test_a_faulty_urdf_is_left_out(models: Path, wrong: str):
    text = URDF.replace("</robot>", f'<joint name="k" {wrong}</robot>')
    (models / "r.urdf").write_text(text)
    text = world(include("<uri>r.urdf</uri>") + include("<uri>arm</uri>"))
    cell, report = read(text, str(models / "w.sdf"))
    assert [m.name for m in cell.manipulators] == ["arm"]
    assert any(d.place.path.endswith("r.urdf") for d in report.diagnostics)


def test_loops_may_lead_through_several_models(models: Path):
    joints = "".join(
        f"""<joint name="{name}" type="revolute"><pose>{x} 0 0 0 0 0</pose>
        <parent>{parent}::l</parent><child>{child}::l</child>
        <axis><xyz>0 0 1</xyz></axis></joint>"""
        for name, parent, child, x in (
            ("p", "a", "b", -1),
            ("q", "b", "c", -1),
            ("r", "c", "d", -1),
            ("s", "d", "a", -1),
        )
    )
    corners = {"a": "0 0 0 0 0 0", "b": "1 0 0 0 0 1.5707963267948966"}
    corners |= {"c": "1 1 0 0 0 3.141592653589793", "d": "0 1 0 0 0 4.71238898038469"}
    bars = "".join(
        include(f"<uri>arm</uri><name>{name}</name><pose>{pose}</pose>")
        for name, pose in corners.items()
    )
    cell, _ = read(world(bars + joints), str(models / "w.sdf"))
    (four_bar,) = cell.manipulators
    assert len(four_bar.loops) == 1 and len(four_bar.joint_names) == 1


def test_joints_between_what_stands_close_loops_of_the_cell(models: Path):
    """Models that a moving joint connects are one, unless each is held by itself."""
    ground, crank, bar, rocker = re.findall("<link.*", FOUR_BAR)
    q1, q2, q3, q4 = re.findall("<joint.*?</joint>", FOUR_BAR, re.DOTALL)
    bolt = """<joint name="w" type="fixed"><parent>world</parent>
    <child>ground</child></joint>"""
    left = f'<model name="l">{ground}{crank}{bar}{bolt}{q1}{q2}</model>'
    right = f'<model name="r">{ground}{rocker}{bolt}{q3}</model>'
    pin = q4.replace(">bar<", ">l::bar<").replace(">rocker<", ">r::rocker<")
    cell, _ = read(world(left + right + pin.format("")), str(models / "w.sdf"))
    (closure,) = cell.loops
    assert isinstance(closure, Closure)
    assert (closure.a, closure.b) == ("l/q4_parent", "r/q4_child")
    assert (closure.rotation, closure.name) == ("xz", "q4")
    closed = arm.Cell(manipulators=cell.manipulators, loops=cell.loops)
    assert closed.joint_names == ("l/q1",)
    # One with limits keeps its coordinate.
    limited = pin.format("<limit><lower>-1</lower><upper>1</upper></limit>")
    cell, _ = read(world(left + right + limited), str(models / "w.sdf"))
    (weld,) = cell.loops
    assert isinstance(weld, Closure)
    assert (weld.a, weld.b, weld.rotation) == ("l/q4_end", "r/q4_child", "xyz")
    # A model that nothing else holds is one with that on which it stands.
    alone = right.replace(bolt, "")
    cell, _ = read(world(left + alone + pin.format("")), str(models / "w.sdf"))
    assert len(cell.manipulators) == 1 and not cell.loops


@pytest.mark.parametrize("uri", ["https://x.org/models/y", "../../etc", "/etc/passwd"])
def test_includes_lead_nowhere_else(models: Path, uri: str):
    text = world(include(f"<uri>{uri}</uri>"))
    with pytest.raises(FormatError) as caught:
        read(text, str(models / "w.sdf"))
    first, *rest = caught.value.diagnostics
    assert first.code == "no-model"
    assert all(d.code.startswith("reference-") for d in rest) and rest


def test_includes_that_include_themselves(models: Path):
    inner = model(include("<uri>a.sdf</uri>"))
    outer = model('<link name="l"/>' + include("<uri>b.sdf</uri>"))
    (models / "b.sdf").write_text(inner)
    (models / "a.sdf").write_text(outer)
    with pytest.raises(FormatError) as caught:
        registry.read(models / "a.sdf")
    assert {d.code for d in caught.value.diagnostics} == {"include-cycle"}


@pytest.mark.parametrize("limit", [SDF_FILES, SDF_ELEMENTS])
def test_includes_are_bounded(models: Path, limit: Limit):
    # Each file includes the next one many times.
    for k in range(4):
        many = "".join(
            include(f"<uri>f{k + 1}.sdf</uri><name>x{n}</name>") for n in range(6)
        )
        (models / f"f{k}.sdf").write_text(model(f'<link name="l"/>{many}'))
    (models / "f4.sdf").write_text(model('<link name="l"/>'))
    path, report = models / "f0.sdf", Report(budget=Budget({limit: 60}))
    with pytest.raises(FormatError) as caught:
        FORMAT.read(path.read_bytes(), str(path), ReadOptions(), report)
    assert {d.code for d in caught.value.diagnostics} == {limit.code}


def test_nested_models_are_bounded():
    deep = "<model name='m'><link name='l'/>" * 100 + "</model>" * 100
    assert "include-limit" in refusal(f"<sdf version='1.9'>{deep}</sdf>")


def test_long_chains_of_frames_take_linear_time():
    frames = '<frame name="f0"/>' + "".join(
        f'<frame name="f{k}" attached_to="f{k - 1}"><pose>0 0 1 0 0 0</pose></frame>'
        for k in range(1, 1000)
    )
    cell, _ = read(model('<link name="l"/>' + frames))
    assert np.allclose(poses(cell)["m/f999"], X(z=999))


# Hostile files

LIMIT = "<axis><limit><lower>-1</lower><upper>2</upper></limit></axis>"
HOSTILE = model(
    f"""{NESTED.replace("table", "a")}{joint("revolute", axis=LIMIT)}
    <link name="b"><pose relative_to="a">0.5 0 0 0.3 0 0</pose></link>
    <link name="a"><inertial><mass>1</mass><inertia><ixx>1</ixx></inertia></inertial>
    <collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision>
    </link><joint name="s" type="screw"><parent>a</parent><child>arm::l</child>
    <screw_thread_pitch>2</screw_thread_pitch></joint>"""
)
NUMBER_IN_TEXT = re.compile(r"(?<=[> ])[-+0-9.]+(?=[< ])")


@pytest.mark.parametrize("word", ["nan", "-inf", "1e308", "-1e308", "1e-300", "0", ""])
def test_every_number_may_be_wrong(word: str, tmp_path: Path):
    places = [match.span() for match in NUMBER_IN_TEXT.finditer(HOSTILE)]
    assert len(places) > 30
    path, refused = tmp_path / "x.sdf", 0
    for start, end in places:
        path.write_text(HOSTILE[:start] + word + HOSTILE[end:])
        try:
            registry.read(path)
        except FormatError as error:
            refused += 1
            assert all(d.place.line for d in error.diagnostics if d.code != "bad-model")
    assert refused or word in {"0", "1e-300"}
