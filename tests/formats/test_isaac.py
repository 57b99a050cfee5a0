from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armillary import Cell, load, save
from armillary.errors import FormatError
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.features import FEATURES
from armillary.formats.format import ReadOptions
from armillary.formats.isaac import FORMAT
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.group import Group
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import Fixed, OvalTrack, Prismatic, Revolute
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.shapes import Sphere
from armillary.model.unit import Unit
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

ROBOTS = ("ur3e", "ur5", "ur5e", "ur10")


def read(data: bytes | str, *, strict_order: bool = False) -> tuple[Workcell, Report]:
    report = Report()
    text = data.encode() if isinstance(data, str) else data
    options = ReadOptions(strict_order=strict_order)
    return FORMAT.read(text, "lab/arm.kinematic.json", options, report), report


def read_quietly(data: bytes | str) -> Manipulator:
    cell, report = read(data)
    assert [str(found) for found in report.diagnostics] == []
    return cell.manipulators[0]


def told(report: Report, severity: Severity = Severity.WARNING) -> list[str]:
    return [found.code for found in report.diagnostics if found.severity is severity]


def refusals(data: bytes | str, **options: Any) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(data, **options)
    return [str(found) for found in caught.value.diagnostics]


def write(cell: Workcell) -> tuple[bytes, Report]:
    report = Report()
    return FORMAT.write(cell, report), report


def poses(manipulator: Manipulator, q: dict[str, float]) -> dict[str, Pose]:
    """Where all frames are, each link's own motor included."""
    found: dict[str, Pose] = {}
    for k in manipulator.order:
        link = manipulator.links[k]
        below = IDENTITY if link.parent is None else found[link.parent]
        found[link.name] = below @ link.joint.transform(q.get(link.coordinate, 0.0))
        for frame in link.frames:
            found[frame.name] = found[link.name] @ link.primary @ frame.pose
    return found


def tree(*links: str) -> str:
    return '{"links": [\n' + ",\n".join(links) + "\n]}"


BASE = '{"name": "base"}'


def constant(pose: str) -> str:
    """A tree whose only moved link has a constant motor of this pose."""
    motor = f'{{"type": "constant", "properties": {{"pose": {pose}}}}}'
    return tree(BASE, f'{{"name": "tip", "parent": "base", "motor": {motor}}}')


def revolute(properties: str, kind: str = "revolute") -> str:
    motor = f'{{"type": "{kind}", "properties": {properties}}}'
    return tree(BASE, f'{{"name": "tip", "parent": "base", "motor": {motor}}}')


def tip(text: str) -> Pose:
    return read_quietly(text).link("tip").joint.transform(0.0)


# The gold numbers of Isaac's own answers.


@pytest.mark.parametrize(
    ("robot", "position"),
    [
        ("ur5e", (-0.8172, -0.2329, 0.0628)),
        ("ur3e", (-0.45675, -0.22315, 0.0665)),
        ("ur5", (-0.81725, -0.19145, -0.00549)),
        ("ur10", (-1.1843, -0.25614, 0.0116)),
    ],
)
def test_published_arms_at_zero(shared: Path, robot, position):
    data = (shared / "data/isaac" / f"{robot}.kinematic.json").read_bytes()
    manipulator = read_quietly(data)
    last = manipulator.links[manipulator.order[-1]].name
    X = poses(manipulator, {})[last]
    assert X.position == pytest.approx(position, abs=2e-5)
    expected = Pose(((1, 0, 0), (0, 0, -1), (0, 1, 0)), position)
    assert X.approx_equal(expected, 2e-5)
    assert len(manipulator.joint_names) == 6
    lower, upper = manipulator.limits
    assert np.all(np.isfinite(lower)) and np.all(lower < upper)


def test_example_of_the_manual(shared: Path):
    (page,) = (shared / "seeds").glob("004*.txt")
    text = page.read_text("utf-8")
    manipulator = read_quietly(text[text.index("{\n") : text.rindex("}") + 1])
    assert [link.name for link in manipulator.links] == ["base", "axis1", "joint1"]
    assert manipulator.joint_names == ("joint1",)
    turned = Pose.from_rotation_position(
        ((0, 1, 0), (1, 0, 0), (0, 0, -1)), (0, 0, 0.1373)
    )
    for q in (0.0, 0.7, -2.0):
        X = poses(manipulator, {"joint1": q})["joint1"]
        assert X.approx_equal(turned @ Pose.rotation_z(q), 1e-15)


@pytest.mark.parametrize("robot", ROBOTS)
def test_files_come_back(shared: Path, robot):
    data = (shared / "data/isaac" / f"{robot}.kinematic.json").read_bytes()
    cell, _ = read(data)
    written, report = write(cell)
    assert told(report) == []
    back, _ = read(written)
    assert back.joint_names == cell.joint_names
    assert np.array_equal(back.limits, cell.limits)
    generator = random.Random(1)
    for _ in range(5):
        q = {name: generator.uniform(-3.0, 3.0) for name in cell.joint_names}
        expected = poses(cell.manipulators[0], q)
        for name, X in poses(back.manipulators[0], q).items():
            assert X.approx_equal(expected[name], 1e-14)


@pytest.mark.parametrize("robot", ROBOTS)
def test_any_order_of_links_is_read_but_not_strictly(shared: Path, robot):
    data = (shared / "data/isaac" / f"{robot}.kinematic.json").read_bytes()
    shuffled = json.loads(data)
    random.Random(2).shuffle(shuffled["links"])
    text = json.dumps(shuffled)
    expected = read_quietly(data)
    cell, report = read(text)
    assert set(told(report, Severity.NOTE)) == {"order", "joint-order"}
    assert told(report) == []
    assert cell.joint_names == expected.joint_names
    assert poses(cell.manipulators[0], {}) == poses(expected, {})
    assert all("error[order]" in found for found in refusals(text, strict_order=True))
    read(data, strict_order=True)


# Every form of a pose.

QUARTER = Pose.from_quaternion((math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)), (1, 2, 3))
T = '"translation": [1, 2, 3]'


@pytest.mark.parametrize(
    ("pose", "expected"),
    [
        ("[1, 0, 0, 1, 1, 2, 3]", QUARTER),
        ("[-2, 0, 0, -2, 1, 2, 3]", QUARTER),
        (f"{{{T}, " + '"rotation": [0.5, 0, 0, 0.5]}', QUARTER),
        (f"{{{T}, " + '"rotation": {"qw": 1, "qx": 0, "qy": 0, "qz": 1}}', QUARTER),
        (
            f"{{{T}, " + '"rotation": {"axis": [0, 0, 2], "angle_degrees": 90}}',
            QUARTER,
        ),
        (
            f'{{{T}, "rotation": {{"axis": [0, 0, -1], "angle_radians": '
            f"{-math.pi / 2}}}}}",
            QUARTER,
        ),
        (f"{{{T}, " + '"rotation": {"yaw_degrees": 90}}', QUARTER),
        (f'{{{T}, "rotation": {{"yaw_radians": {math.pi / 2}}}}}', QUARTER),
        (
            f'{{{T}, "rotation": {{"roll_degrees": 0, "yaw_radians": {math.pi / 2}}}}}',
            QUARTER,
        ),
        (f"{{{T}}}", Pose.translation(1, 2, 3)),
        ('{"rotation": [1, 0, 0, 0]}', IDENTITY),
        ("{}", IDENTITY),
    ],
)
def test_pose_forms(pose, expected):
    assert tip(constant(pose)).approx_equal(expected, 1e-15)


def test_roll_pitch_yaw_turn_about_moving_axes():
    pose = '{"rotation": {"roll_radians": 0.3, "pitch_degrees": 40, "yaw_radians": -1}}'
    expected = (
        Pose.rotation_x(0.3) @ Pose.rotation_y(math.radians(40)) @ Pose.rotation_z(-1.0)
    )
    assert tip(constant(pose)).approx_equal(expected, 1e-15)


@pytest.mark.parametrize(
    ("rotation", "why"),
    [
        ("[1, 0, 0]", "an array of four numbers"),
        ("[1, 0, 0, true]", "an array of four numbers"),
        ('"none"', "an array of four numbers"),
        ("null", "an array of four numbers"),
        ("{}", "gives no rotation"),
        ('{"yaw": 1}', "gives no rotation"),
        ('{"angle_degrees": 90}', "has no axis"),
        ('{"axis": [0, 1], "angle_degrees": 90}', "has no axis"),
        ('{"axis": [0, 0, 1]}', "no angle"),
        (
            '{"axis": [0, 0, 1], "angle_degrees": 90, "angle_radians": 1.57}',
            "angle in both units",
        ),
        ('{"yaw_degrees": 90, "yaw_radians": 1.57}', "yaw in both units"),
        ('{"yaw_degrees": "90"}', "yaw that is not a number"),
        ('{"yaw_degrees": 90, "qw": 1}', "gives two rotations"),
        ('{"axis": [0, 0, 1], "angle_degrees": 1, "yaw_degrees": 1}', "two rotations"),
        ('{"qw": 1, "qx": 0, "qy": 0}', "lacks one of qw"),
        ('{"qw": 1, "qx": 0, "qy": 0, "qz": null}', "lacks one of qw"),
        ('{"qw": 1, "qx": 0, "qy": 0, "qz": 1' + "0" * 400 + "}", "lacks one of qw"),
    ],
)
def test_what_isaac_ignores_is_reported(rotation, why):
    cell, report = read(constant(f'{{{T}, "rotation": {rotation}}}'))
    assert cell.manipulators[0].link("tip").joint.transform(0.0).position == (1, 2, 3)
    assert cell.manipulators[0].link("tip").joint.precursor.rotation == (
        IDENTITY.rotation
    )
    (ignored,) = (d for d in report.diagnostics if d.code == "ignored-rotation")
    assert why in ignored.message
    assert ignored.severity is Severity.WARNING
    assert ignored.place.line == 3


def test_ignored_translation_is_reported():
    cell, report = read(constant('{"translation": [1, 2], "rotation": [1, 0, 0, 0]}'))
    assert cell.manipulators[0].link("tip").joint == Fixed()
    assert told(report) == ["ignored-translation"]


@pytest.mark.parametrize("limits", ["[1]", "[1, 2, 3]", '["a", 1]', "1", "null", "{}"])
def test_ignored_limits_are_reported(limits):
    cell, report = read(revolute(f'{{"axis": [0, 0, 1], "limits": {limits}}}'))
    assert cell.manipulators[0].link("tip").limits == UNLIMITED
    assert told(report) == ["ignored-limits"]


def test_unknown_keys_are_reported():
    text = """{"version": 1, "links": [{"name": "a", "colour": "red", "motor":
        {"type": "constant", "rate": 1, "properties": {"axis": [0, 0, 1],
        "pose": {"position": [0, 0, 0], "rotation": {"yaw_degrees": 0, "w": 1}}}}}]}"""
    cell, report = read(text)
    found = [d for d in report.diagnostics if d.code == "unknown-key"]
    assert len(found) == len(report.diagnostics) == 6
    assert [d.message.split("'")[1] for d in found] == [
        "version",
        "colour",
        "rate",
        "axis",
        "position",
        "w",
    ]
    assert [d.place.line for d in found] == [1, 1, 2, 2, 3, 3]
    assert cell.joint_names == ()


# Motors.


def test_revolute_motor():
    manipulator = read_quietly(revolute('{"axis": [0, 3, 0], "limits": [-1, 2]}'))
    link = manipulator.link("tip")
    assert link.joint == Revolute(axis=(0, 1, 0))
    assert link.limits == Limits(lower=-1, upper=2)
    assert manipulator.joint_names == ("tip",)


def test_largest_numbers_stand_for_no_limit():
    most = repr(sys.float_info.max)
    motor = f'{{"axis": [0, 0, 1], "limits": [-{most}, {most}]}}'
    assert read_quietly(revolute(motor)).link("tip").limits == UNLIMITED


def test_link_without_motor_stays_at_its_parent():
    text = tree(BASE, '{"name": "tip", "parent": "base"}')
    assert read_quietly(text).link("tip").joint == Fixed()


def test_prismatic_motor_is_an_extension():
    cell, report = read(revolute('{"axis": [0, 0, 2]}', kind="prismatic"))
    assert cell.manipulators[0].link("tip").joint == Prismatic(axis=(0, 0, 1))
    assert told(report) == ["not-of-isaac", "axis-length"]


def test_root_that_moves_is_mounted_on_an_added_base():
    motor = '{"type": "revolute", "properties": {"axis": [0, 0, 1]}}'
    text = tree(
        f'{{"name": "base", "motor": {motor}}}', '{"name": "tip", "parent": "base"}'
    )
    cell, report = read(text)
    assert told(report, Severity.NOTE) == ["added-base"]
    manipulator = cell.manipulators[0]
    assert manipulator.joint_names == ("base",)
    assert manipulator.links[manipulator.base].name == "base_2"
    X = poses(manipulator, {"base": 0.5})["tip"]
    assert X.approx_equal(Pose.rotation_z(0.5), 1e-15)


def test_cell_is_named_after_the_file():
    for path, name in [
        ("/robots/UR5e.Kinematic.json", "UR5e"),
        ("arm.json", "arm"),
        (".kinematic.json", "robot"),
        ("world.kinematic.json", "robot"),
    ]:
        cell = FORMAT.read(tree(BASE).encode(), path, ReadOptions(), Report())
        assert cell.name == name
        assert [m.name for m in cell.manipulators] == [name]


# Hostile files.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1:1: error[truncated]: the file is empty"),
        ("[]", "error[wrong-type]: a kinematic tree is an object with links"),
        ("{}", "error[no-links]"),
        ('{"links": []}', ":1:2: error[no-links]"),
        ('{"links": {}}', "error[no-links]"),
        (tree(BASE)[:-3], "error[truncated]"),
        (tree(BASE) + "]", "error[malformed]"),
        (tree("1"), ":2:1: error[wrong-type]: a link is an object"),
        (tree("{}"), "error[no-name]"),
        (tree('{"name": ""}'), "error[no-name]"),
        (tree('{"name": 1}'), "error[no-name]"),
        (tree(BASE, BASE), ":3:1: error[unique-frame]"),
        (tree(BASE, '{"name": "b"}'), ":3:1: error[one-base]"),
        (tree(BASE, '{"name": "b", "parent": "c"}'), ":3:1: error[parent]"),
        (tree(BASE, '{"name": "b", "parent": null}'), ":3:15: error[wrong-type]"),
        (tree(BASE, '{"name": "b", "parent": "b"}'), "error[cycle]"),
        (tree('{"name": "b", "parent": "b"}'), "error[base]"),
        (tree('{"name": "a", "motor": null}'), ":2:15: error[unknown-motor]"),
        (tree('{"name": "a", "motor": {}}'), "a motor needs a type"),
        (
            tree('{"name": "a", "motor": {"type": "revolut"}}'),
            ":2:25: error[unknown-motor]: no motor type 'revolut'. Did you mean "
            "'revolute'?",
        ),
        (
            tree('{"name": "a", "motor": {"type": "spherical"}}'),
            "Known types: constant, revolute, prismatic.",
        ),
        (tree('{"name": "a", "motor": {"type": 3}}'), "no motor type 3"),
        (tree('{"name": "a", "motor": {"type": "constant"}}'), "error[no-properties]"),
        (
            tree('{"name": "a", "motor": {"type": "constant", "properties": {}}}'),
            "error[no-pose]",
        ),
        (constant("[1, 0, 0, 0, 1, 2]"), "error[bad-pose]: a pose is an object, or"),
        (constant("[1, 0, 0, 0, 1, 2, null]"), "error[bad-pose]"),
        (constant("null"), "error[bad-pose]"),
        (constant("[0, 0, 0, 0, 1, 2, 3]"), "error[bad-pose]"),
        (constant('{"rotation": [0, 0, 0, 0]}'), "error[bad-pose]"),
        (
            constant('{"rotation": {"axis": [0, 0, 0], "angle_degrees": 1}}'),
            "error[bad-pose]",
        ),
        (constant('{"translation": [0, 0, NaN]}'), "NaN is not a number in JSON"),
        (constant('{"translation": [0, 0, 1e999]}'), "too large for a double"),
        (constant('{"translation": [0, 0, 1], "translation": 1}'), "[duplicate-key]"),
        (revolute("{}"), "error[bad-axis]: a revolute motor needs an axis"),
        (revolute('{"axis": [0, 1]}'), "error[bad-axis]"),
        (revolute('{"axis": [0, 0, 0]}'), "error[bad-motor]: Revolute.axis"),
        (revolute('{"axis": [0, 0, 1], "limits": [2, 1]}'), "swapped"),
        ("[" * 200_000, "error[too-deep]"),
        (constant("[" * 100_000 + "]" * 100_000), "error[too-deep]"),
        ("\x00", "error[malformed]"),
    ],
)
def test_hostile_files_are_refused_in_words(text, expected):
    found = refusals(text)
    assert all(each.startswith("lab/arm.kinematic.json") for each in found)
    assert any(expected in each for each in found), found


def test_many_faults_are_reported_at_once():
    found = refusals(
        tree("3", '{"name": "a", "motor": {"type": "x"}}', '{"parent": "a"}')
    )
    assert [each.split(": ")[0].rpartition("json:")[2] for each in found] == [
        "2:1",
        "3:25",
        "4:1",
    ]


@pytest.mark.thorough
def test_a_long_chain_in_the_worst_order():
    links = [f'{{"name": "l{k + 1}", "parent": "l{k}"}}' for k in range(20_000)]
    cell, report = read(tree(*reversed(links), '{"name": "l0"}'))
    assert len(cell.manipulators[0].order) == 20_001
    (note,) = report.diagnostics
    assert "'l20000' comes before its parent 'l19999', and 19999 more" in note.message
    data, _ = write(cell)
    assert read(data, strict_order=True)[0].joint_names == ()


# What is written.

finite = st.floats(-10.0, 10.0)
turns = st.tuples(finite, finite, finite, finite).filter(lambda q: math.hypot(*q) > 0.1)
places = st.just(IDENTITY) | st.builds(
    Pose.from_quaternion, turns, st.tuples(finite, finite, finite)
)
axes = st.tuples(finite, finite, finite).filter(lambda v: math.hypot(*v) > 0.1)
joints = st.one_of(
    st.builds(Fixed, precursor=places),
    st.builds(Revolute, precursor=places, axis=axes),
    st.builds(Prismatic, precursor=places, axis=axes),
)
WITHIN_TURNS = 12.0  # what is a little more would be warned of as degrees
limits = st.builds(
    lambda low, high: Limits(lower=-low, upper=high),
    *[
        st.floats(0.0, WITHIN_TURNS) | st.floats(1e3, 1e308) | st.just(math.inf)
        for _ in range(2)
    ],
)


@st.composite
def any_tree(draw: st.DrawFn) -> Manipulator:
    count = draw(st.integers(1, 6))
    links = [Link(name="l0", joint=Fixed(precursor=draw(places)))]
    for k in range(1, count):
        frame = Frame(name=f"f{k}", pose=draw(places))
        links.append(
            Link(
                name=f"l{k}",
                parent=f"l{draw(st.integers(0, k - 1))}",
                joint=draw(joints),
                joint_name=draw(st.sampled_from(["", f"j{k}", f"l{k}"])),
                limits=draw(limits),
                primary=draw(places),
                frames=(frame,) if draw(st.booleans()) else (),
            )
        )
    return Manipulator(name="arm", links=tuple(draw(st.permutations(links))))


@settings(max_examples=50)
@given(any_tree(), st.randoms(use_true_random=False))
def test_all_names_poses_and_limits_come_back(manipulator, generator):
    data, report = write(Workcell(name="arm", manipulators=(manipulator,)))
    assert set(told(report)) <= {"not-of-isaac"}
    cell, _ = read(data, strict_order=True)
    back = cell.manipulators[0]
    assert back.joint_names == manipulator.joint_names
    assert np.array_equal(back.limits, manipulator.limits)
    q = {name: generator.uniform(-3, 3) for name in back.joint_names}
    found = poses(back, q)
    for name, X in poses(manipulator, q).items():
        size = 1.0 + max(map(abs, X.position))
        assert found[name].approx_equal(X, 1e-13 * size)


def test_text_is_for_people(golden):
    data, _ = write(Workcell(manipulators=(two_links(joint_name="turn"),)))
    golden("isaac/two.kinematic.json", data.decode())


def two_links(
    joint: Joint | None = None, *, fields: Any = None, **link: Any
) -> Manipulator:
    given = Revolute(precursor=Pose.translation(0, 0, 1)) if joint is None else joint
    tip = Link(name="tip", parent="base", joint=given, **link)
    return Manipulator(name="arm", links=(Link(name="base"), tip), **(fields or {}))


def cart() -> Manipulator:
    sides = [
        Link(
            name=name,
            parent="base",
            joint=Revolute(axis=(0, 1, 0), precursor=Pose.translation(0, y, 0)),
        )
        for name, y in (("l", 0.1), ("r", -0.1))
    ]
    wheels = Wheels(left="l", right="r", radius=0.1)
    return Manipulator(name="cart", links=(Link(name="base"), *sides), wheels=wheels)


LOSSES: dict[str, Workcell] = {
    code: cell if isinstance(cell, Workcell) else Workcell(manipulators=(cell,))
    for code, cell in {
        "limits of velocity": two_links(limits=Limits(velocity=1.0)),
        "masses": two_links(inertia=SpatialInertia.zero()),
        "damping": two_links(dynamics=JointDynamics(damping=0.5)),
        "visuals": two_links(visuals=(Sphere(radius=1.0),)),
        "end effectors": two_links(frames=(Frame(name="f", end_effector=True),)),
        "passive joints": two_links(passive=True),
        "lost-joint": two_links(OvalTrack(straight=1.0, radius=1.0)),
        "not-of-isaac": two_links(Prismatic()),
        "postures": two_links(fields={"postures": (Posture(name="p"),)}),
        "wheels": cart(),
        "properties": two_links(fields={"properties": (Property(name="p"),)}),
        "lost-coupling": Manipulator(
            name="arm",
            links=(
                Link(name="base"),
                Link(name="a", parent="base", joint=Revolute()),
                Link(
                    name="b",
                    parent="base",
                    joint=Revolute(),
                    coupling=Coupling(of="a"),
                ),
            ),
        ),
        "lost-joint-name": Manipulator(
            name="arm",
            links=(
                Link(name="base"),
                Link(name="a", parent="base", joint=Revolute(), joint_name="base"),
            ),
        ),
        "groups": two_links(fields={"groups": (Group(name="all"),)}),
        "collision rules": Workcell(manipulators=(two_links(),), rules=Rules.nothing()),
        "movable bases": Workcell(
            manipulators=(two_links(),),
            mounts=(Mount(manipulator="arm", bolted=False),),
        ),
    }.items()
}


@pytest.mark.parametrize("code", LOSSES)
def test_what_is_lost_is_reported(code):
    data, report = write(LOSSES[code])
    is_code = code.startswith(("lost-", "not-"))
    assert told(report) == [code if is_code else "not-kept"]
    found = [d.message for d in report.diagnostics if d.code == "not-kept"]
    assert is_code or f"{FEATURES[code].what} is not kept" in found[0]
    read(data, strict_order=True)


def test_every_field_of_the_model_is_written_or_reported():
    """A field that is new to the model must be thought of here."""
    held = {
        Workcell: {"name", "manipulators", "mounts"},
        Manipulator: {"name", "links", "home"},
        Link: {"name", "parent", "joint", "joint_name", "limits", "primary", "frames"},
        Limits: {"lower", "upper"},
        Frame: {"name", "pose"},
        Mount: {"manipulator", "on", "pose"},
    }
    told_of = {
        Workcell: {"properties", "rules", "loops", "coupled_limits"},
        Manipulator: {
            *("loops", "postures", "groups", "properties", "wheels"),
            "coupled_limits",
        },
        Link: {
            *("inertia", "visuals", "collisions", "passive", "coupling", "inputs"),
            "dynamics",
        },
        Limits: {"velocity", "acceleration", "effort"},
        Frame: {"end_effector"},
        Mount: {"bolted"},
    }
    for model, fields in held.items():
        assert fields | told_of[model] == set(model.__struct_fields__), model


def test_joint_that_isaac_has_not_is_written_as_fixed():
    track = OvalTrack(straight=1.0, radius=0.5, precursor=Pose.translation(0, 0, 1))
    data, report = write(
        Workcell(manipulators=(two_links(track, limits=Limits(lower=0.25)),))
    )
    (warning,) = (d for d in report.diagnostics if d.severity is Severity.WARNING)
    assert "is of type OvalTrack; it is fixed at q = 0.25" in warning.message
    link = read(data)[0].manipulators[0].link("tip")
    assert link.joint.transform(0.0).approx_equal(track.transform(0.25), 1e-15)


def test_joint_of_unknown_type_is_written_as_fixed():
    joint = OpaqueJoint(kind="Delta", precursor=Pose.translation(0, 0, 1))
    data, report = write(Workcell(manipulators=(two_links(joint),)))
    assert told(report) == ["lost-joint"]
    link = read(data)[0].manipulators[0].link("tip")
    assert link.joint == Fixed(precursor=Pose.translation(0, 0, 1))


def test_mount_moves_the_base():
    where = Pose.from_rpy(0.1, 0.2, 0.3, (1, 2, 3))
    cell = Workcell(
        manipulators=(two_links(),), mounts=(Mount(manipulator="arm", pose=where),)
    )
    manipulator = read(write(cell)[0])[0].manipulators[0]
    assert poses(manipulator, {})["base"].approx_equal(where, 1e-15)


def test_name_is_left_to_the_file():
    _, report = write(Workcell(manipulators=(two_links(),)))
    assert told(report, Severity.NOTE) == ["name"]


@pytest.mark.parametrize("count", [0, 2])
def test_only_one_manipulator_is_a_tree(count):
    parts = [Manipulator(name=f"m{k}", links=(Link(name="a"),)) for k in range(count)]
    with pytest.raises(FormatError, match=rf"the cell has {count} manipulators"):
        write(Workcell(manipulators=tuple(parts)))


@settings(max_examples=150)
@given(st.data())
def test_damage_is_an_error_or_a_cell(data):
    text = constant('{"translation": [1, 2, 3], "rotation": {"yaw_degrees": 90}}')
    tokens = ["NaN", "-1", "1e999", "null", "{", "]", '"', ",", "0", "\\", " "]
    spot = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 4))
    damaged = text[:spot] + data.draw(st.sampled_from(tokens)) + text[spot + cut :]
    try:
        cell, _ = read(damaged)
    except FormatError as error:
        assert any(found.severity is Severity.ERROR for found in error.diagnostics)
    else:
        write(cell)


class Rim(Joint, frozen=True):
    radius: float
    inner: Joint
    unit = Unit.METRE
    motor = "rim"

    def pose(self, q):
        return self.inner.transform(q / self.radius) @ Pose.translation(
            self.radius, 0, 0
        )


def test_a_class_may_have_a_type_of_motor(tmp_path):
    joint = Rim(
        radius=2.0,
        inner=Revolute(axis=(0, 0, 1), precursor=Pose.translation(0, 0, 1)),
        precursor=Pose.rotation_x(0.5),
    )
    limits = Limits(lower=-1.0, upper=2.0)
    tip = Link(name="tip", parent="base", joint=joint, limits=limits)
    cell = Cell(manipulators=[Manipulator(name="arm", links=[Link(name="base"), tip])])
    path = tmp_path / "arm.kinematic.json"
    report = save(cell, path)
    assert [found.code for found in report.diagnostics] == ["not-of-isaac", "name"]
    again = load(path, joints=[Rim])
    assert again.limits[1] == 2.0
    for q in ([0.0], [1.7]):
        assert again.fk("tip")(q) == pytest.approx(cell.fk("tip")(q), abs=1e-15)
    with pytest.raises(FormatError, match="no motor type 'rim'"):
        load(path)
