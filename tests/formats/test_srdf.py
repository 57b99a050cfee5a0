from __future__ import annotations

import math
from pathlib import Path

import pytest

import armillary as arm
from armillary.cell.cell import Cell
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.srdf import FORMAT, read_onto
from armillary.formats.urdf import FORMAT as URDF_FORMAT
from armillary.model.group import Group
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.posture import Posture
from armillary.model.rules import Rules
from armillary.model.workcell import Workcell
from work import counted, growth

BALL = '<collision><geometry><sphere radius="1"/></geometry></collision>'
BODIES = ("base", "upper", "fore", "hand", "left", "right")
LINKS = "".join(f'<link name="{name}">{BALL}</link>' for name in BODIES)
URDF = f"""<robot name="arm">
  {LINKS}
  <link name="cart"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="fore"/>
  </joint>
  <joint name="wrist" type="fixed"><parent link="fore"/><child link="hand"/></joint>
  <joint name="grip" type="prismatic">
    <parent link="hand"/><child link="left"/>
    <limit lower="0" upper="0.1" effort="1" velocity="1"/>
  </joint>
  <joint name="follow" type="prismatic">
    <parent link="hand"/><child link="right"/>
    <mimic joint="grip" multiplier="-1"/>
    <limit lower="-0.1" upper="0" effort="1" velocity="1"/>
  </joint>
  <joint name="drive" type="planar"><parent link="base"/><child link="cart"/></joint>
</robot>
"""
ROBOT = URDF_FORMAT.read(URDF.encode(), "arm.urdf", ReadOptions(), Report())


def read(
    *parts: str, name: str = "arm", cell: Workcell = ROBOT
) -> tuple[Workcell, Report]:
    """The cell with an SRDF of these elements on it, and the findings on the SRDF."""
    text = f'<robot name="{name}">\n' + "\n".join(parts) + "\n</robot>"
    report = Report()
    return read_onto(cell, text.encode(), "a.srdf", report), report


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(URDF)
    return path


def arm_of(*parts: str) -> Manipulator:
    cell, report = read(*parts)
    assert not report.count(Severity.WARNING), [str(d) for d in report.diagnostics]
    return cell.manipulators[0]


def warnings(*parts: str) -> list[str]:
    _, report = read(*parts)
    return [str(d) for d in report.diagnostics if d.severity is Severity.WARNING]


def refusal(*parts: str, **options) -> str:
    with pytest.raises(FormatError) as caught:
        read(*parts, **options)
    return str(caught.value)


GROUP = '<group name="arm"><chain base_link="base" tip_link="hand"/></group>'


# Groups.


def test_groups_are_kept_as_they_are_given():
    made = arm_of(
        GROUP,
        '<group name="fingers"><joint name="grip"/><link name="right"/></group>',
        '<group name="all"><group name="arm"/><group name="fingers"/></group>',
    )
    assert made.groups == (
        Group(name="arm", chains=(("base", "hand"),)),
        Group(name="fingers", joints=("grip",), links=("right",)),
        Group(name="all", groups=("arm", "fingers")),
    )
    assert made.group_joints("arm") == ("shoulder", "elbow")
    assert made.group_joints("all") == ("shoulder", "elbow", "grip")


def test_a_joint_that_was_split_stands_for_its_parts():
    made = arm_of('<group name="base"><joint name="drive"/></group>')
    assert made.groups[0].joints == ("drive_x", "drive_y", "drive_theta")


def test_what_the_robot_does_not_have_is_left_out():
    text = (
        '<group name="arm"><joint name="sholder"/><link name="hnd"/>'
        '<chain base_link="base" tip_link="nowhere"/><group name="other"/></group>'
    )
    cell, report = read(GROUP.replace('"arm"', '"good"'), text)
    assert cell.manipulators[0].groups[1] == Group(name="arm")
    assert [str(d) for d in report.diagnostics] == [
        "a.srdf:3:19: warning[unknown-joint]: <joint> names the joint 'sholder', which "
        "the robot does not have; that is left out. Did you mean 'shoulder'?",
        "a.srdf:3:42: warning[unknown-link]: <link> names the link 'hnd', which the "
        "robot does not have; that is left out. Did you mean 'hand'?",
        "a.srdf:3:60: warning[unknown-link]: <chain> names the link 'nowhere', which "
        "the robot does not have; that is left out",
        "a.srdf:3:1: warning[unknown-group]: group 'arm' contains the group 'other', "
        "which does not exist; that is left out",
    ]


def test_groups_must_be_distinguished_and_end():
    assert (
        "a.srdf:3:1: error[repeated-name]: a group is called 'arm' already, at line 2"
        in (refusal(GROUP, GROUP))
    )
    circle = refusal(
        GROUP,
        '<group name="a"><group name="b"/></group>',
        '<group name="b"><group name="a"/></group>',
    )
    assert "error[cycle]: groups contain each other" in circle
    assert "has no attribute 'name'" in refusal(GROUP, "<group/>")
    assert "error[missing-name]" in refusal(GROUP, '<group name=" "/>')


# States.


def test_states_become_postures():
    made = arm_of(
        GROUP,
        '<group_state name="up" group="arm"><joint name="elbow" value="0.5"/>'
        '<joint name="shoulder" value=" -1 "/></group_state>',
    )
    assert made.postures == (
        Posture(name="up", joints=("elbow", "shoulder"), q=(0.5, -1.0)),
    )
    assert not made.home


def test_states_of_one_name_are_distinguished_by_their_groups():
    state = (
        '<group_state name="open" group="{}"><joint name="{}" value="0"/></group_state>'
    )
    cell, report = read(
        GROUP,
        GROUP.replace('"arm"', '"other"'),
        state.format("arm", "elbow"),
        state.format("other", "shoulder"),
    )
    assert [p.name for p in cell.manipulators[0].postures] == ["arm_open", "other_open"]
    assert {d.code for d in report.diagnostics} == {"renamed"}
    assert "error[repeated-name]: group 'arm' has a state called 'open' already" in (
        refusal(GROUP, state.format("arm", "elbow"), state.format("arm", "elbow"))
    )


def test_a_split_joint_has_all_its_coordinates():
    made = arm_of(
        GROUP,
        '<group_state name="there" group="arm"><joint name="drive" value="1 2 3"/>'
        "</group_state>",
    )
    assert made.postures[0].joints == ("drive_x", "drive_y", "drive_theta")
    assert made.postures[0].q == (1.0, 2.0, 3.0)


def test_a_floating_joint_is_a_position_and_a_quaternion(tmp_path: Path):
    path = tmp_path / "a.urdf"
    path.write_text(
        '<robot name="arm"><link name="a"><visual><geometry><sphere radius="1"/>'
        '</geometry></visual></link><link name="b"/><joint name="free" type="floating">'
        '<parent link="a"/><child link="b"/></joint></robot>'
    )
    cell, _ = registry.read(path)
    half = math.sqrt(0.5)
    state = (
        '<group name="g"><joint name="free"/></group><group_state name="s" group="g">'
        f'<joint name="free" value="1 2 3 0 0 {half} {half}"/></group_state>'
    )
    made, _ = read(state, cell=cell)
    found = Cell.of(made)
    posture = found.manipulators[0].posture("s")
    at = dict(zip(posture.joints, posture.q, strict=True))
    X = found.pose("b", found.home.joints(at))
    assert X[:3, 3].tolist() == [1.0, 2.0, 3.0]
    assert abs(X[1, 0] - 1.0) < 1e-15
    assert "error[bad-number]: joint 'free'" in refusal(
        state.replace(f"{half} {half}", "0 0"), cell=cell
    )


def test_positions_that_cannot_be_are_reported():
    state = '<group_state name="s" group="arm">{}</group_state>'
    cell, report = read(
        GROUP,
        state.format(
            '<joint name="shoulder" value="2"/><joint name="grip" value="0.05"/>'
            '<joint name="follow" value="-0.05"/><joint name="wrist" value="0"/>'
        ),
    )
    assert cell.manipulators[0].postures[0].joints == ("shoulder", "grip")
    assert [d.code for d in report.diagnostics] == ["outside-limits"]
    assert "outside of its limits -1 and 1" in str(report.diagnostics[0])
    for joint, words in {
        '<joint name="follow" value="-0.1"/>': "follows 'grip', which is not in this",
        '<joint name="grip" value="0"/><joint name="follow" value="-0.1"/>': (
            "follows 'grip', which puts it at 0; its own position -0.1 is left out"
        ),
        '<joint name="wrist" value="1"/>': "joint 'wrist' is fixed",
        '<joint name="shouldr" value="0"/>': "Did you mean 'shoulder'?",
    }.items():
        (found,) = warnings(GROUP, state.format(joint))
        assert words in found
    for joint, words in {
        '<joint name="elbow" value="1 2"/>': "has 1 coordinate, not 2",
        '<joint name="elbow" value=""/>': "has 1 coordinate, not 0",
        '<joint name="drive" value="1"/>': "has 3 coordinates, not 1",
        '<joint name="elbow" value="nan"/>': "is not finite",
        '<joint name="elbow" value="1,5"/>': "is not a number",
        '<joint name="elbow"/>': "has no attribute 'value'",
        '<joint name="elbow" value="1"/>' * 2: "two positions",
    }.items():
        assert words in refusal(GROUP, state.format(joint))


def test_a_state_without_its_group_is_kept():
    found = warnings(
        GROUP, '<group_state name="s"><joint name="elbow" value="0"/></group_state>'
    )
    assert found == [
        "a.srdf:3:1: warning[missing-attribute]: <group_state name='s'> has no group"
    ]
    (found,) = warnings(GROUP, '<group_state name="s" group="arn"/>')
    assert "names the group 'arn', which does not exist. Did you mean 'arm'?" in found


# The base.


def test_a_fixed_virtual_joint_bolts_the_base():
    joint = '<virtual_joint name="weld" type="{}" parent_frame="map" child_link="{}"/>'
    cell, report = read(GROUP, joint.format("fixed", "base"))
    assert cell.mounts == (Mount(manipulator="arm"),)
    assert not report.diagnostics
    free, report = read(GROUP, joint.format("floating", "base"), cell=cell)
    assert not free.mounts[0].bolted
    assert read(GROUP, joint.format("Floating", "base"))[0].mounts == ()
    assert (
        "stays in a plane is not kept"
        in warnings(GROUP, joint.format("planar", "base"))[0]
    )
    assert (
        "which is not the base 'base'"
        in warnings(GROUP, joint.format("fixed", "hand"))[0]
    )
    assert "not one of fixed, planar, floating" in refusal(joint.format("ball", "base"))
    twice = joint.format("fixed", "base")
    assert "error[repeated-name]: a virtual joint" in refusal(twice, twice)


def test_where_a_posture_has_the_base_is_kept():
    joint = '<joint name="root" value="{}"/>'
    state = f'<group_state name="s" group="arm">{joint}</group_state>'
    joint = (
        '<virtual_joint name="root" type="{}" parent_frame="world" child_link="base"/>'
    )
    cell, report = read(joint.format("floating"), GROUP, state.format("1 2 3 0 0 0 1"))
    assert [d.code for d in report.diagnostics] == ["base-pose"]
    kept = [p for p in cell.manipulators[0].properties if p.name == "srdf.base_pose"]
    assert [(p.of, p.text, p.numbers) for p in kept] == [
        ("base", "s", (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0))
    ]
    assert "has 7 coordinates, not 1" in refusal(
        joint.format("floating"), GROUP, state.format("1")
    )
    # As Pinocchio has it, without a virtual joint.
    _, report = read(GROUP, state.replace("root", "root_joint").format("1 2 3 0 0 0 1"))
    assert [d.code for d in report.diagnostics] == ["base-pose"]


# Collisions.


def pairs(*parts: str) -> set[tuple[str, str]]:
    cell = Cell.of(read(*parts)[0])
    return {
        (a.removeprefix("arm/"), b.removeprefix("arm/"))
        for a, b in cell.pairs(cell.home)
    }


EVERYTHING = {
    (a, b)
    for a in ("base", "fore", "hand", "left", "right", "upper")
    for b in ("base", "fore", "hand", "left", "right", "upper")
    if a < b
} - {("fore", "hand")}  # they are joined by a fixed joint


def test_all_pairs_are_tested_but_those_disabled():
    disabled = [
        '<disable_collisions link1="base" link2="upper" reason="Adjacent"/>',
        '<disable_collisions link2="left" link1="right"/>',
    ]
    assert pairs(*disabled) == EVERYTHING - {("base", "upper"), ("left", "right")}
    cell = Cell.of(read(*disabled)[0])
    why = cell.pairs(cell.home).why
    assert why("upper", "base").reason == "adjacent"
    assert why("left", "right").reason == "srdf"
    assert why("left", "base").reason == "srdf"


def test_enabled_pairs_stand_above_defaults_and_disabled_ones_above_both():
    found = pairs(
        '<disable_collisions link1="left" link2="fore" reason="Never"/>',
        '<disable_default_collisions link="left"/>',
        '<enable_collisions link1="base" link2="left" reason="User"/>',
        '<enable_collisions link1="fore" link2="left"/>',
    )
    without_left = {pair for pair in EVERYTHING if "left" not in pair}
    assert found == without_left | {("base", "left")}


def test_reasons_are_kept():
    parts = [
        f'<disable_collisions link1="base" link2="{link}" reason="{reason}"/>'
        for link, reason in {
            "upper": "Adjacent",
            "fore": "Never",
            "hand": "Always",
            "left": "because",
            "right": "Default",
        }.items()
    ]
    cell = Cell.of(read(*parts)[0])
    why = cell.pairs(cell.home).why
    assert [
        why("base", link).reason for link in ("upper", "fore", "hand", "left", "right")
    ] == [
        "adjacent",
        "never",
        "always",
        "because",
        "default",
    ]


def test_without_a_word_on_collisions_the_rules_stay():
    rules = Rules.nothing().include("base", "hand")
    cell = ROBOT.replace(rules=rules)
    assert read(GROUP, cell=cell)[0].rules is rules
    more, _ = read('<disable_collisions link1="base" link2="hand"/>', cell=cell)
    assert more.rules.rules[: len(rules.rules)] == rules.rules
    assert len(more.rules.rules) == len(rules.rules) + 3


def test_doubtful_pairs_are_reported():
    assert (
        "names 'base' twice"
        in warnings('<disable_collisions link1="base" link2="base"/>')[0]
    )
    again = (
        '<disable_collisions link1="base" link2="hand" reason="Never"/>',
        '<disable_collisions link1="hand" link2="base" reason="Always"/>',
    )
    assert "warning[repeated-pair]" in warnings(*again)[0]
    (found,) = warnings(again[0], again[0].replace("base", "bsae"))
    assert "names the link 'bsae'" in found
    assert "has no attribute 'link2'" in refusal('<disable_collisions link1="base"/>')


# What else there is.


def test_the_rest_is_kept_as_properties():
    made = arm_of(
        GROUP,
        '<end_effector name="gripper" parent_link="hand" group="arm" '
        'parent_group="arm"/>',
        '<passive_joint name="elbow"/>',
        '<joint_property joint_name="elbow" property_name="weight" value="1 2"/>',
        '<link_sphere_approximation link="hand"><sphere center="0 1 2" radius="3"/>'
        '<sphere center="0 0 0" radius="0"/></link_sphere_approximation>',
    )
    assert [link.name for link in made.links if link.passive] == ["fore"]
    assert [(p.name, p.of, p.numbers) for p in made.properties] == [
        ("srdf.end_effector", "hand", ()),
        ("srdf.joint_property", "fore", ()),
        ("srdf.sphere", "hand", (0.0, 1.0, 2.0, 3.0)),
        ("srdf.sphere", "hand", (0.0, 0.0, 0.0, 0.0)),
    ]
    assert made.properties[0].text == (
        '{"name":"gripper","group":"arm","parent_group":"arm"}'
    )


def test_what_is_not_kept_is_reported():
    for part, words in {
        '<grup name="g"/>': "the element 'grup' of <robot name='arm'>",
        '<passive_joint name="wrist"/>': "is fixed; it cannot be passive",
        '<end_effector name="e" parent_link="hand" group="arn"/>': "mean 'arm'?",
        '<passive_joint name="elbow" speed="1"/>': "the attribute 'speed'",
        '<link_sphere_approximation link="hand"/>': "has no <sphere>",
        '<end_effector name="e" parent_link="hand" group="arm"/>' * 2: "called 'e' too",
        '<virtual_joint name="v" type="fixed" parent_frame="w" child_link="base"/>'
        '<virtual_joint name="u" type="fixed" parent_frame="w" child_link="base"/>': (
            "'v' carries the base 'base' already"
        ),
    }.items():
        (found,) = warnings(GROUP, part)
        assert words in found
    sphere = '<link_sphere_approximation link="hand"><sphere center="0 0" radius="1"/>'
    assert "must hold 3 numbers" in refusal(
        GROUP, f"{sphere}</link_sphere_approximation>"
    )
    negative = sphere.replace("0 0", "0 0 0").replace('"1"', '"-1"')
    assert "less than 0" in refusal(GROUP, f"{negative}</link_sphere_approximation>")


def test_what_nothing_is_computed_from_is_a_note():
    _, report = read(GROUP, '<gripper name="g"/>')
    (found,) = report.diagnostics
    assert str(found).endswith("note[not-kept]: <gripper> is not kept")


# Which robot.


def test_it_is_read_onto_the_manipulator_of_its_name():
    parts = [
        Manipulator(
            name=name,
            links=(
                Link(name="base"),
                Link(name="tip", parent="base", joint=Revolute(axis=(0, 0, 1))),
            ),
        )
        for name in ("left", "right")
    ]
    cell = Workcell(manipulators=tuple(parts))
    text = '<disable_collisions link1="base" link2="tip"/><passive_joint name="tip"/>'
    found, report = read(text, name="right", cell=cell)
    assert not report.diagnostics
    assert found.manipulators[0] is parts[0]
    assert found.manipulators[1].links[1].passive
    assert found.rules.rules[-1].a == "right/base"
    assert "no manipulator of the cell is called 'rigt'. Did you mean 'right'?" in (
        refusal(text, name="rigt", cell=cell)
    )


def test_another_name_is_a_warning_and_another_robot_an_error():
    _, report = read(GROUP, name="ur5")
    assert [d.code for d in report.diagnostics] == ["other-name"]
    found = refusal(
        '<group name="g"><joint name="j1"/><joint name="j2"/></group>', name="ur5"
    )
    assert "error[wrong-robot]: none of the 2 links and joints" in found


def test_a_urdf_is_not_a_srdf():
    for text, words in {
        URDF: "this is a URDF: it describes links",
        "<robots/>": "the root element is <robots>, not <robot>",
        "": "error",
        "<!DOCTYPE robot><robot/>": "DOCTYPE",
        "<robot name='arm'>": "error",
    }.items():
        with pytest.raises(FormatError, match=words):
            read_onto(ROBOT, text.encode(), "a.srdf", Report())


@pytest.mark.thorough
def test_too_many_and_too_deep_elements_are_refused():
    many = '<disable_collisions link1="base" link2="hand"/>' * 300_000
    for body in (many, "<group>" * 20_000):
        with pytest.raises(FormatError, match="xml-limit"):
            read(body)


def test_the_work_of_wide_and_nested_groups_is_bounded():
    def resolve(body: str) -> int:
        text = f'<robot name="arm">{body}</robot>'
        with counted() as work:
            made = read_onto(ROBOT, text.encode(), "a.srdf", Report())
            made.manipulators[0].group_joints(made.manipulators[0].groups[-1].name)
        return work.lines

    def wide(count: int) -> None:
        resolve('<group name="g">' + '<joint name="elbow"/>' * count + "</group>")

    assert growth(wide, 1000) < 2.1
    nested = "".join(
        f'<group name="g{k}">'
        + "".join(f'<group name="g{j}"/>' for j in range(k))
        + "</group>"
        for k in range(60)
    )
    assert resolve(nested) < 1000 * 60 * 60  # of 2**60 ways through the groups


def test_the_work_of_wrong_names_is_proportional_to_their_number():
    def disable(count: int) -> None:
        _, report = read(
            "".join(
                f'<disable_collisions link1="no{k}" link2="base"/>'
                for k in range(count)
            )
        )
        assert report.count(Severity.WARNING) == count

    assert growth(disable, 500) < 2.1


# With the rest of armillary.


def test_load_takes_an_srdf_beside_the_file(urdf: Path, tmp_path: Path):
    path = tmp_path / "arm.srdf"
    path.write_text(f'<robot name="arm">{GROUP}</robot>')
    cell = arm.load(urdf, srdf=path)
    assert cell.manipulators[0].group_joints("arm") == ("shoulder", "elbow")
    with pytest.raises(FormatError, match=r"error\[no-such-file\]"):
        arm.load(urdf, srdf=tmp_path / "arn.srdf")


def test_an_srdf_alone_is_explained(tmp_path: Path):
    path = tmp_path / "arm.srdf"
    path.write_text(f'<robot name="arm">{GROUP}</robot>')
    for options in ({}, {"format": "srdf"}):
        with pytest.raises(FormatError, match=r"is not a robot itself\. Load"):
            arm.load(path, **options)
    assert not FORMAT.sniff(path.read_bytes())


def test_it_stands_beside_every_format(urdf: Path, tmp_path: Path):
    path = tmp_path / "arm.srdf"
    pair = '<disable_collisions link1="base" link2="hand"/>'
    path.write_text(f'<robot name="arm">{GROUP}{pair}</robot>')
    cell = arm.load(urdf, srdf=path)
    arm.save(cell, tmp_path / "a.cell.json")
    assert arm.load(tmp_path / "a.cell.json") == cell
    again, report = registry.read(tmp_path / "a.cell.json", srdf=path)
    assert again.manipulators == cell.manipulators
    assert [d.code for d in report.diagnostics] == ["replaced"]
