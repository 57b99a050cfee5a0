"""RobWork's elements: what each means, and what is said of those that mean nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from armillary import Cell, Closure, Coupling, Pose
from armillary.errors import FormatError, StateError
from armillary.formats import registry
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.paths import Roots
from armillary.formats.robwork import FORMAT
from armillary.formats.robwork.read import sniff
from armillary.model.joints import CraigPrismatic, CraigRevolute
from armillary.model.shapes import Box, Cone, Cylinder, HalfSpace, Mesh, Sphere
from armillary.model.wheels import Wheels

Array = npt.NDArray[np.float64]


def read(text: str, path: str = "cell.wc.xml") -> tuple[Cell, Report]:
    report = Report()
    options = ReadOptions(roots=Roots())
    cell = FORMAT.read(text.encode(), path, options, report)
    return Cell.of(cell), report


def cell_of(text: str) -> Cell:
    """The cell of a text in which nothing is to be found fault with."""
    cell, report = read(text)
    assert [str(d) for d in report.diagnostics] == []
    return cell


def serial(body: str, rest: str = "") -> str:
    head = '<SerialDevice name="d"><Frame name="Base"/>'
    return f"{head}{body}{rest}</SerialDevice>"


def diagnostics(text: str) -> dict[str, str]:
    """Code to message, of everything that is no error."""
    _, report = read(text)
    return {d.code: str(d) for d in report.diagnostics}


def faults(text: str) -> dict[str, str]:
    with pytest.raises(FormatError) as caught:
        read(text)
    return {d.code: str(d) for d in caught.value.diagnostics}


def about(axis: str, degrees: float) -> Array:
    """A rotation about a coordinate axis, as a 4x4 matrix."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    X = np.eye(4)
    X[i, i] = X[j, j] = c
    X[j, i], X[i, j] = s, -s
    return X


def along(x: float, y: float, z: float) -> Array:
    X = np.eye(4)
    X[:3, 3] = x, y, z
    return X


def pose(cell: Cell, frame: str, *q: float, relative_to: str = "world") -> Array:
    state = cell.home.replace(q=q) if q else cell.home
    return cell.pose(frame, state, relative_to=relative_to)


# Transforms


@pytest.mark.parametrize("order", ["rp", "pr"])
def test_rpy_turns_about_z_first(order: str):
    parts = {"r": "<RPY>20 -50 130</RPY>", "p": "<Pos>1 2 3</Pos>"}
    cell = cell_of(
        f'<WorkCell name="w"><Frame name="a">{parts[order[0]]}{parts[order[1]]}</Frame>'
        "</WorkCell>"
    )
    expected = along(1, 2, 3) @ about("z", 20) @ about("y", -50) @ about("x", 130)
    np.testing.assert_allclose(pose(cell, "a"), expected, atol=1e-15)


def test_right_angles_are_exact():
    cell = cell_of(
        '<WorkCell name="w"><Frame name="a"><RPY>0 -90 -90</RPY><Pos>0 0 0</Pos>'
        "</Frame></WorkCell>"
    )
    expected = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert pose(cell, "a")[:3, :3].tolist() == expected


def test_transform_is_twelve_numbers_by_rows():
    cell = cell_of(
        '<WorkCell name="w"><Frame name="a"><Transform>0 1 0 5\n0 0 1 6\n1 0 0 7'
        "</Transform></Frame></WorkCell>"
    )
    assert pose(cell, "a")[:3].tolist() == [[0, 1, 0, 5], [0, 0, 1, 6], [1, 0, 0, 7]]


def test_empty_angles_are_zeros():
    cell = cell_of(
        '<WorkCell name="w"><Frame name="a"><RPY /><Pos>0 0.0 1.0</Pos></Frame>'
        "</WorkCell>"
    )
    np.testing.assert_array_equal(pose(cell, "a"), along(0, 0, 1))


def frame_with(inner: str) -> str:
    return f'<WorkCell name="w"><Frame name="a">{inner}</Frame></WorkCell>'


def test_half_a_transform_is_reported():
    cell, report = read(frame_with("<Pos>1 2 3</Pos>"))
    np.testing.assert_array_equal(pose(cell, "a"), along(1, 2, 3))
    assert [d.code for d in report.diagnostics] == ["half-transform"]


def test_left_handed_frame_keeps_x_and_y():
    cell, report = read(frame_with("<Transform>1 0 0 4 0 1 0 5 0 0 -1 6</Transform>"))
    np.testing.assert_array_equal(pose(cell, "a"), along(4, 5, 6))
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("left-handed", Severity.WARNING)


def test_rounded_rotation_becomes_a_true_one_in_silence():
    rows = "0.250338 0.214177 -0.944171 0 0.967137 -0.0105239 0.254039 0"
    cell = cell_of(
        frame_with(f"<Transform>{rows} 0.044473 -0.976738 -0.209773 0</Transform>")
    )
    R = pose(cell, "a")[:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(R[0], [0.250338, 0.214177, -0.944171], atol=2e-6)


def test_doubtful_transforms_are_reported():
    sheared = "<Transform>1 0 0 0 0 1 0.001 0 0 0 1 0</Transform>"
    assert set(diagnostics(frame_with(sheared))) == {"sheared"}
    radians = "<RPY>1.5708 0 -3.14</RPY><Pos>0 0 0</Pos>"
    assert set(diagnostics(frame_with(radians))) == {"radians"}
    assert set(diagnostics(frame_with("<Transform />"))) == {"half-transform"}


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("<Transform>2 0 0 0 0 2 0 0 0 0 2 0</Transform>", "bad-rotation"),
        ("<Transform>0 0 0 0 0 0 0 0 0 0 0 0</Transform>", "bad-rotation"),
        ("<Transform>1e200 0 0 0 0 1 0 0 0 0 1 0</Transform>", "bad-rotation"),
        ("<Transform>1 0 0 0</Transform>", "wrong-count"),
        ("<RPY>nan 0 0</RPY><Pos>0 0 0</Pos>", "bad-number"),
        ("<RPY>0 0 0</RPY><Pos>0 inf 0</Pos>", "bad-number"),
        ("<RPY>0 0</RPY><Pos>0 0 0</Pos>", "wrong-count"),
        ("<RPY>0,0,0</RPY><Pos>0 0 0</Pos>", "bad-number"),
        ("<Pos>0 0 0</Pos><RPY/><Pos>0 0 0</Pos>", "repeated-element"),
        ("<Pos>0 0 0</Pos><Transform/>", "two-transforms"),
    ],
)
def test_bad_transforms_are_refused(inner: str, code: str):
    found = faults(frame_with(inner))
    assert code in found
    assert found[code].startswith("cell.wc.xml:1:")


# Joints

MOTIONS: dict[str, Callable[..., Array]] = {
    "Revolute": lambda a: about("z", a),
    "Prismatic": lambda s: along(0, 0, s),
    "Universal": lambda a, b: about("x", a) @ about("y", b),
    "Spherical": lambda a, b, c: about("x", a) @ about("y", b) @ about("z", c),
    "PrismaticUniversal": lambda a, b, s: (
        about("x", a) @ about("y", b) @ along(0, 0, s)
    ),
    "PrismaticSpherical": lambda a, b, c, s: (
        about("x", a) @ about("y", b) @ about("z", c) @ along(0, 0, s)
    ),
}
SLIDES = {"Prismatic", "PrismaticUniversal", "PrismaticSpherical"}


@pytest.mark.parametrize("kind", MOTIONS)
def test_joint_moves_behind_its_transform(kind: str):
    cell = cell_of(
        serial(
            f'<Joint name="J" type="{kind}"><RPY>30 40 50</RPY><Pos>1 2 3</Pos></Joint>'
            '<Frame name="TCP"><RPY>0 0 0</RPY><Pos>0 0 1</Pos></Frame>'
        )
    )
    motion = MOTIONS[kind]
    n = len(cell.joint_names)
    values = np.random.default_rng(1).uniform(-60, 60, n)
    q = np.radians(values)
    if kind in SLIDES:
        q[-1] = values[-1]
    fixed = along(1, 2, 3) @ about("z", 30) @ about("y", 40) @ about("x", 50)
    expected = fixed @ motion(*values)
    np.testing.assert_allclose(pose(cell, "J", *q), expected, atol=1e-13)
    np.testing.assert_allclose(
        pose(cell, "TCP", *q), expected @ along(0, 0, 1), atol=1e-13
    )


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Revolute", ("J",)),
        ("Universal", ("J_x", "J")),
        ("Spherical", ("J_x", "J_y", "J")),
        ("PrismaticSpherical", ("J_x", "J_y", "J_z", "J")),
    ],
)
def test_several_coordinates_become_several_joints(kind: str, names: tuple[str, ...]):
    cell = cell_of(serial(f'<Joint name="J" type="{kind}"/>'))
    assert cell.joint_names == names


def test_universal_joint_is_revolute_joints_between_right_angles():
    """The chain that RobWork's own tests compare a spherical joint with."""
    chain = cell_of(
        serial(
            '<Joint name="a" type="Revolute"><RPY>0 90 0</RPY><Pos>0 0 0</Pos></Joint>'
            '<Joint name="b" type="Revolute"><RPY>0 0 -90</RPY><Pos>0 0 0</Pos></Joint>'
            '<Joint name="c" type="Revolute"><RPY>-90 0 90</RPY><Pos>0 0 0</Pos>'
            "</Joint>"
        )
    )
    one = cell_of(serial('<Joint name="c" type="Spherical"/>'))
    for q in np.random.default_rng(2).uniform(-1.4, 1.4, (5, 3)):
        a, b = pose(chain, "c", *q), pose(one, "c", *q)
        np.testing.assert_allclose(a, b, atol=1e-14)


def dh(alpha: float, a: float, d: float, theta: float) -> Array:
    return about("z", theta) @ along(0, 0, d) @ along(a, 0, 0) @ about("x", alpha)


def craig(alpha: float, a: float, d: float, theta: float) -> Array:
    return about("x", alpha) @ along(a, 0, 0) @ about("z", theta) @ along(0, 0, d)


def hayati(alpha: float, a: float, beta: float, b: float) -> Array:
    X = about("y", beta) @ about("x", alpha)
    r = math.radians(beta)
    X[:3, 3] = a * math.cos(r), b, -a * math.sin(r)
    return X


@pytest.mark.parametrize(
    ("attributes", "expected", "slides"),
    [
        ('d=".3" offset="20" type="schilling"', dh(40, 0.5, 0.3, 20), False),
        ('d=".3" offset="20" type="craig"', craig(40, 0.5, 0.3, 20), False),
        ('d=".3" offset="20"', craig(40, 0.5, 0.3, 20), False),
        ('b=".3" offset="20" type="HGP"', hayati(40, 0.5, 20, 0.3), False),
        ('theta="20" offset=".3" type="schilling"', dh(40, 0.5, 0.3, 20), True),
        ('theta="20" offset=".3"', craig(40, 0.5, 0.3, 20), True),
        ('beta="20" offset=".3" type="HGP"', hayati(40, 0.5, 20, 0.3), True),
    ],
)
def test_denavit_hartenberg_flavours(attributes: str, expected: Array, slides: bool):
    cell = cell_of(serial(f'<DHJoint name="J" alpha="40" a="0.5" {attributes}/>'))
    motion = along(0, 0, 0.7) if slides else about("z", math.degrees(0.7))
    np.testing.assert_allclose(pose(cell, "J", 0.7), expected @ motion, atol=1e-15)


def test_craig_joints_keep_their_parameters():
    cell = cell_of(
        serial(
            '<DHJoint name="a" alpha="90" a="1" d="2" offset="180"/>'
            '<DHJoint name="b" alpha="90" a="1" theta="180" offset="2"/>'
        )
    )
    _, a, b = (link.joint for link in cell.manipulators[0].links)
    assert isinstance(a, CraigRevolute)
    assert isinstance(b, CraigPrismatic)
    assert a.theta == b.theta == math.pi
    assert a.d == b.d == 2


def test_type_of_one_dh_joint_does_not_reach_the_next():
    """In RobWork it does: its parser uses one record for all of them."""
    cell = cell_of(
        serial(
            '<DHJoint name="a" alpha="0" a="1" b="0" offset="0" type="HGP"/>'
            '<DHJoint name="b" alpha="30" a="1" d="2" offset="0"/>'
        )
    )
    expected = along(1, 0, 0) @ craig(30, 1, 2, 0)
    np.testing.assert_allclose(pose(cell, "b", 0, 0), expected, atol=1e-15)


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ('b="0" offset="0"', "dh-type"),
        ('d="0" offset="0" type="HGP"', "dh-type"),
        ('d="0" offset="0" type="Schilling"', "unknown-value"),
    ],
)
def test_doubtful_dh_joints_are_reported(attributes: str, code: str):
    found = diagnostics(serial(f'<DHJoint name="J" alpha="0" a="0" {attributes}/>'))
    assert set(found) == {code}


@pytest.mark.parametrize(
    ("joint", "code"),
    [
        ('<DHJoint name="J" alpha="0" a="0" offset="0"/>', "bad-dh"),
        ('<DHJoint name="J" alpha="0" a="0" d="1" theta="1" offset="0"/>', "bad-dh"),
        ('<DHJoint name="J" a="0" d="1" offset="0"/>', "missing-attribute"),
        ('<DHJoint name="J" alpha="x" a="0" d="1" offset="0"/>', "bad-number"),
        ('<Joint name="J"/>', "missing-attribute"),
        ('<Joint type="Revolute"/>', "missing-attribute"),
        ('<Joint name="" type="Revolute"/>', "missing-name"),
        ('<Joint name="J" type="revolute"/>', "unknown-value"),
        ('<Joint name="J" type="Revolute" state="passive"/>', "unknown-value"),
        ('<Joint name="Base" type="Revolute"/>', "repeated-name"),
    ],
)
def test_bad_joints_are_refused(joint: str, code: str):
    assert code in faults(serial(joint))


def test_wrong_word_brings_the_right_one():
    message = faults(serial('<Joint name="J" type="revolute"/>'))["unknown-value"]
    assert message == (
        "cell.wc.xml:1:44: error[unknown-value]: attribute 'type' of <Joint name='J'> "
        "is 'revolute', not one of Revolute, Prismatic, Universal, Spherical, "
        "PrismaticUniversal, PrismaticSpherical. Did you mean 'Revolute'?"
    )


# Limits

TWO = '<Joint name="R" type="Revolute"/><Joint name="P" type="Prismatic"/>'


def test_limits_are_in_degrees_and_metres():
    cell = cell_of(
        serial(
            TWO,
            '<PosLimit refjoint="R" min="-90" max="180"/><VelLimit refjoint="R" '
            'max="90"/><AccLimit refjoint="R" max="360"/><PosLimit refjoint="P" '
            'min="-2" max="0.5"/><VelLimit refjoint="P" max="3"/>',
        )
    )
    _, r, p = (link.limits for link in cell.manipulators[0].links)
    assert (r.lower, r.upper) == (-math.pi / 2, math.pi)
    assert (r.velocity, r.acceleration) == (math.pi / 2, 2 * math.pi)
    assert (p.lower, p.upper, p.velocity) == (-2, 0.5, 3)
    assert p.acceleration == math.inf


def test_limit_without_a_name_is_for_the_joint_before():
    cell = cell_of(serial(TWO, '<PosLimit min="0" max="1"/>'))
    assert cell.manipulators[0].links[2].limits.upper == 1


def test_limit_inside_of_a_joint_is_its_own():
    cell = cell_of(
        serial('<Joint name="J" type="Revolute"><PosLimit max="9" min="-9"/></Joint>')
    )
    assert cell.manipulators[0].links[1].limits.upper == math.radians(9)


def test_last_limit_counts():
    text = serial(
        '<Joint name="J" type="Revolute"><PosLimit min="-9" max="9"/></Joint>',
        '<PosLimit refjoint="J" min="-5" max="5"/>',
    )
    cell, report = read(text)
    assert cell.manipulators[0].links[1].limits.upper == math.radians(5)
    assert [d.code for d in report.diagnostics] == ["repeated-limit"]


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ('<PosLimit refjoint="X" min="0" max="1"/>', "unknown-joint"),
        ('<PosLimit refjoint="Base" min="0" max="1"/>', "not-kept"),
        ('<PosLimit refjoint="R" min="-3.1416" max="3.1416"/>', "radians"),
        ('<PosLimit refjoint="R" min="0" max="10" mid="5"/>', "unknown-attribute"),
    ],
)
def test_doubtful_limits_are_reported(limit: str, code: str):
    assert set(diagnostics(serial(TWO, limit))) == {code}


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ('<PosLimit refjoint="R" min="1" max="0"/>', "bad-limit"),
        ('<VelLimit refjoint="R" max="-1"/>', "bad-limit"),
        ('<PosLimit refjoint="R" max="1"/>', "missing-attribute"),
        ('<PosLimit refjoint="R" min="nan" max="1"/>', "bad-number"),
    ],
)
def test_bad_limits_are_refused(limit: str, code: str):
    assert set(faults(serial(TWO, limit))) == {code}


def test_limit_before_any_joint_is_refused():
    text = '<SerialDevice name="d"><PosLimit min="0" max="1"/><Frame name="b"/>'
    assert set(faults(f"{text}</SerialDevice>")) == {"unknown-joint"}


# Joints that depend on others, and passive ones


def test_dependent_joint_follows_in_metres_and_radians():
    cell = cell_of(
        serial(
            TWO + '<Joint name="D" type="Revolute"><Depend on="P" gain="2" '
            'offset="0.5"/></Joint>'
        )
    )
    assert cell.joint_names == ("R", "P")
    coupling = cell.manipulators[0].link("D").coupling
    assert coupling == Coupling(of="P", multiplier=2, offset=0.5)
    expected = along(0, 0, 0.1) @ about("z", math.degrees(0.7))
    np.testing.assert_allclose(pose(cell, "D", 0, 0.1), expected, atol=1e-15)


def test_owner_is_looked_up_from_the_inside_out():
    chain = '<SerialChain name="c"><Joint name="R" type="Revolute"/>{}</SerialChain>'
    follower = '<Joint name="D" type="Revolute"><Depend on="{}" gain="1" offset="0"/>'
    for on, found in (("R", "c.R"), ("P", "P"), ("c.R", "c.R")):
        cell = cell_of(serial(TWO + chain.format(follower.format(on) + "</Joint>")))
        coupling = cell.manipulators[0].link("c.D").coupling
        assert coupling is not None
        assert coupling.of == found


def test_follower_limits_that_leave_nothing_are_left_out():
    text = serial(
        '<Joint name="a" type="Prismatic"><PosLimit min="0" max="1"/></Joint>'
        '<Joint name="b" type="Prismatic"><PosLimit min="5" max="6"/>'
        '<Depend on="a" gain="1" offset="0"/></Joint>'
    )
    cell, report = read(text)
    assert [d.code for d in report.diagnostics] == ["limits-exclude"]
    assert (cell.limits[0][0], cell.limits[1][0]) == (0, 1)


@pytest.mark.parametrize(
    "depend",
    [
        '<Depend on="X" gain="1" offset="0"/>',
        '<Depend on="Base" gain="1" offset="0"/>',
        '<Depend on="D" gain="1" offset="0"/>',
        '<Depend on="S" gain="1" offset="0"/>',
    ],
)
def test_owner_must_be_another_joint_of_one_coordinate(depend: str):
    text = serial(
        f'<Joint name="S" type="Spherical"/><Joint name="D" type="Revolute">{depend}'
        "</Joint>"
    )
    assert set(faults(text)) & {"bad-depend", "bad-device"}


def test_only_simple_joints_depend():
    text = serial(
        TWO + '<Joint name="D" type="Universal"><Depend on="R" gain="1" offset="0"/>'
        "</Joint>"
    )
    assert "bad-depend" in faults(text)


def test_owner_in_another_device_is_refused():
    one = serial('<Joint name="J" type="Revolute"/>')
    two = (
        '<SerialDevice name="e"><Frame name="b"/><Joint name="K" type="Revolute">'
        '<Depend on="d.J" gain="1" offset="0"/></Joint></SerialDevice>'
    )
    message = faults(f'<WorkCell name="w">{one}{two}</WorkCell>')["bad-depend"]
    assert "'d.J', which is not in the same device" in message


def test_passive_joint_moves_but_is_not_in_a_posture():
    cell = cell_of(
        serial(
            '<Joint name="a" type="Revolute"/><Joint name="b" type="Revolute" '
            'state="Passive"/><Joint name="c" type="Revolute"/>',
            '<Q name="Bent">1 2</Q>',
        )
    )
    manipulator = cell.manipulators[0]
    assert cell.joint_names == ("a", "b", "c")
    assert [link.passive for link in manipulator.links] == [False, False, True, False]
    assert manipulator.posture("Bent").joints == ("a", "c")
    bend = about("z", math.degrees(0.9))
    np.testing.assert_allclose(pose(cell, "c", 0.2, 0.3, 0.4), bend, atol=1e-15)


# Postures


def test_home_is_where_the_cell_starts():
    text = serial(TWO, '<Q name="Away">3 4</Q><Q name="Home">1 2</Q>')
    cell = cell_of(text)
    assert cell.manipulators[0].home == "Home"
    assert cell.home.q.tolist() == [1, 2]
    assert cell.manipulators[0].posture("Away").q == (3, 4)


def test_posture_of_a_tree_goes_along_the_ways_to_its_ends():
    """RobWork's q: joints as they come up on the way to each end effector."""
    cell = cell_of(
        '<TreeDevice name="t"><Frame name="B"/>'
        '<Joint name="a" type="Revolute"/><Joint name="dead" type="Revolute"/>'
        '<Joint name="b" refframe="a" type="Revolute"/>'
        '<Joint name="c" refframe="B" type="Revolute"/>'
        '<Frame name="E1" refframe="c" type="EndEffector"/>'
        '<Frame name="E2" refframe="b" type="EndEffector"/>'
        '<Q name="p">1 2 3</Q></TreeDevice>'
    )
    assert cell.manipulators[0].posture("p").joints == ("c", "a", "b")
    assert cell.joint_names == ("a", "dead", "b", "c")


@pytest.mark.parametrize(
    ("q", "code"),
    [
        ('<Q name="x">1</Q>', "wrong-count"),
        ('<Q name="x">90 0</Q>', "degrees"),
        ('<Q name="x">0 2</Q>', "out-of-range"),
        ('<Q name="x">0 0</Q><Q name="x">1 0</Q>', "repeated-posture"),
    ],
)
def test_doubtful_postures_are_reported(q: str, code: str):
    assert set(diagnostics(serial(TWO, f'<PosLimit min="0" max="1"/>{q}'))) == {code}


@pytest.mark.parametrize(
    ("q", "code"),
    [
        ('<Q name="Home">1</Q>', "wrong-count"),
        ('<Q name="x">nan 0</Q>', "bad-number"),
        ("<Q>0 0</Q>", "missing-attribute"),
    ],
)
def test_bad_postures_are_refused(q: str, code: str):
    assert set(faults(serial(TWO, q))) == {code}


# Where frames hang

ARM = serial('<Joint name="J" type="Revolute"/>')


def at(name: str, x: int, more: str = "") -> str:
    return f'<Frame name="{name}" {more}><RPY/><Pos>{x} 0 0</Pos></Frame>'


def workcell(*parts: str) -> str:
    return f'<WorkCell name="w">{"".join(parts)}</WorkCell>'


def test_frame_without_refframe_hangs_on_the_world():
    cell = cell_of(workcell(at("a", 1), at("b", 2), at("c", 4, 'refframe="a"')))
    assert [pose(cell, name)[0, 3] for name in "abc"] == [1, 2, 5]


def test_refframe_may_be_declared_later_or_be_in_a_device():
    cell = cell_of(
        workcell(
            at("x", 0), at("a", 1, 'refframe="b"'), at("b", 2), ARM,
            at("tool", 3, 'refframe="d.J"'), at("tip", 4, 'refframe="tool"'),
        )
    )  # fmt: skip
    assert pose(cell, "a")[0, 3] == 3
    np.testing.assert_allclose(
        pose(cell, "tip", math.pi / 2), along(2, 7, 0) @ about("z", 90), atol=1e-15
    )


def test_first_frame_hangs_on_the_world_in_any_case():
    text = workcell(at("a", 1, 'refframe="b"'), at("b", 2))
    cell, report = read(text)
    assert pose(cell, "a")[0, 3] == 1
    assert [d.code for d in report.diagnostics] == ["refframe-ignored"]


def test_device_is_mounted_on_the_frame_before_it():
    cell = cell_of(workcell(at("a", 1), at("b", 2), ARM, at("c", 4)))
    assert pose(cell, "d/Base")[0, 3] == 2
    assert cell.workcell.mounted["d"].on == "environment/b"


def test_device_alone_is_mounted_on_the_world():
    cell = cell_of(workcell(ARM, at("a", 1)))
    np.testing.assert_array_equal(pose(cell, "d/Base"), np.eye(4))
    assert {(m.manipulator, m.on, m.bolted) for m in cell.mounts} == {
        ("environment", "world", True),
        ("d", "world", True),
    }


def test_only_what_robwork_moves_is_movable():
    free = at("c", 3, 'type="Movable"') + at("e", 5, 'daf="true"')
    device = ARM.replace('"d"', '"f"').replace(
        '<Frame name="Base"', '<Frame name="Base" type="Movable"'
    )
    assert device.count("Movable") == 1
    cell = cell_of(workcell(at("a", 1), device, ARM, free))
    assert set(cell.movable_bases) == {"c", "e", "f"}
    for fixed in ("environment/WORLD", "environment/a", "d/Base"):
        assert not cell.is_movable(fixed)
    with pytest.raises(StateError, match="'environment' is fixed"):
        cell.home.place("environment", Pose.translation(0, 0, 1))
    data, _ = registry.write(cell.workcell, format="robwork")
    again, _ = read(data.decode())
    assert again.movable_bases == cell.movable_bases


def test_movable_frames_in_devices_are_reported_and_written_again():
    inside = at("a", 1, 'type="Movable"') + at("b", 2, 'daf="true"')
    inside += at("c", 3, 'type="EndEffector" daf="true"')
    cell, report = read(serial(inside))
    said = [d.message for d in report.diagnostics if d.code == "not-kept"]
    assert said == [
        "that a movable frame inside of a device can be moved is not kept; there are "
        "3, and this is the first"
    ]
    data, _ = registry.write(cell.workcell, format="robwork")
    text = data.decode()
    assert text.count('type="Movable"') == 1
    assert text.count('daf="true"') == 2
    again, _ = read(text)
    assert again == cell


def test_movable_frames_that_carry_nothing_of_their_device_are_parts():
    inside = (
        '<Frame name="Base"/><Joint name="J" type="Revolute"><RPY/><Pos/></Joint>'
        '<Frame name="tool" refframe="J" type="EndEffector"><RPY/><Pos>0 0 1</Pos>'
        "</Frame>"
        '<Frame name="box" refframe="J" type="Movable" daf="true"><RPY/>'
        "<Pos>1 0 0</Pos></Frame>"
        '<Frame name="lid" refframe="box"><RPY/><Pos>0 0 2</Pos></Frame>'
        '<Frame name="on" refframe="J" daf="true"><RPY/><Pos/></Frame>'
        '<Joint name="K" refframe="on" type="Revolute"><RPY/><Pos/></Joint>'
    )
    cell, report = read(workcell(f'<TreeDevice name="d">{inside}</TreeDevice>'))
    # K turns on the frame `on`, which so stays a frame of the device.
    assert [d.code for d in report.diagnostics] == ["not-kept"]
    assert cell.movable_bases == ("d.box",)
    state = cell.home.replace(q=[0.5, 0.0])
    X = cell.pose("d.lid", state)
    np.testing.assert_allclose(X[:3, 3], [np.cos(0.5), np.sin(0.5), 2.0], atol=1e-15)
    gripped = state.grip("d.box", by="d/tool").replace(q=[0.0, 0.0])
    moved = cell.pose("d.box", gripped)
    np.testing.assert_allclose(moved[:3, 3], [1.0, 0.0, 0.0], atol=1e-12)
    data, _ = registry.write(cell.workcell, format="robwork")
    again, _ = read(data.decode())
    assert again.movable_bases == cell.movable_bases
    back = again.pose("d.lid", again.home.replace(q=[0.5, 0.0]))
    np.testing.assert_allclose(back, X, atol=1e-15)


def test_pose_of_the_base_is_not_a_part_of_the_device():
    body = '<Frame name="B"><RPY>90 0 0</RPY><Pos>1 2 3</Pos></Frame>'
    tool = '<Frame name="T"><RPY/><Pos>1 0 0</Pos></Frame>'
    cell = cell_of(f'<SerialDevice name="d">{body}{tool}</SerialDevice>')
    np.testing.assert_array_equal(pose(cell, "T", relative_to="B"), along(1, 0, 0))
    np.testing.assert_allclose(
        pose(cell, "T"), along(1, 2, 3) @ about("z", 90) @ along(1, 0, 0), atol=1e-15
    )


def test_base_that_moves_gets_a_base_in_front():
    text = '<SerialDevice name="d"><Joint name="J" type="Revolute"/></SerialDevice>'
    cell, report = read(text)
    assert [d.code for d in report.diagnostics] == ["base-added"]
    assert cell.frame_names == ("world", "d/Base", "d/J")


def test_chain_follows_the_order_and_tells_where_refframe_differs():
    text = serial(at("a", 1) + at("b", 2) + at("c", 4, 'refframe="Base"'))
    cell, report = read(text)
    assert pose(cell, "c")[0, 3] == 7
    assert [d.code for d in report.diagnostics] == ["refframe-ignored"]
    fine = serial(
        at("a", 1) + at("b", 2, 'refframe="a"') + at("c", 4, 'refframe="d.b"')
    )
    assert pose(cell_of(fine), "c")[0, 3] == 7


def test_tree_follows_refframes_and_else_the_order():
    cell = cell_of(
        '<TreeDevice name="t"><Frame name="B"/>'
        + at("a", 1) + '<SerialChain name="k">' + at("x", 2) + at("y", 4)
        + "</SerialChain>" + at("b", 8) + at("c", 16, 'refframe="a"')
        + "</TreeDevice>"
    )  # fmt: skip
    xs = [pose(cell, name)[0, 3] for name in ("k.x", "k.y", "b", "c")]
    assert xs == [3, 7, 15, 17]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (workcell(at("fixture", 1), at("b", 1, 'refframe="fixtures"')), "fixture"),
        ('<TreeDevice name="t"><Frame name="Base"/><Frame name="b" refframe="base"/>'
         "</TreeDevice>", "Base"),
    ],
)  # fmt: skip
def test_unknown_refframe_is_refused(text: str, hint: str):
    assert faults(text)["unknown-frame"].endswith(f"Did you mean {hint!r}?")


def test_later_frame_of_a_tree_is_refused():
    text = '<TreeDevice name="t"><Frame name="B"/><Frame name="a" refframe="b"/>'
    message = faults(f'{text}<Frame name="b"/></TreeDevice>')["unknown-frame"]
    assert "not declared before it in the same device" in message


@pytest.mark.parametrize(
    "text",
    [
        workcell(at("x", 0), at("a", 1, 'refframe="b"'), at("b", 2, 'refframe="a"')),
        workcell(at("x", 0), at("a", 1, 'refframe="a"')),
        workcell(at("x", 0), at("a", 1, 'refframe="d.J"'), ARM),
    ],
)
def test_frames_that_are_their_own_ancestors_are_refused(text: str):
    assert set(faults(text)) == {"cycle"}


# What becomes of frames


def test_fixed_frames_are_the_environment():
    cell = cell_of(workcell(at("a", 1), at("b", 2, 'refframe="a"')))
    assert cell.frame_names == ("world", "environment/WORLD", "environment/a",
                                "environment/b")  # fmt: skip
    assert [link.name for link in cell.manipulators[0].links] == ["WORLD", "a"]


def test_frames_that_may_move_are_parts():
    cell = cell_of(
        workcell(
            at("m", 1, 'type="Movable"'),
            at("n", 2, 'refframe="m"'),
            at("p", 4, 'type="Movable" daf="true" refframe="m"'),
            at("q", 8, 'daf="true"'),
        )
    )
    assert [m.name for m in cell.manipulators] == ["m", "p", "q"]
    assert cell.manipulators[0].frame_refs.keys() == {"m", "n"}
    assert {m.manipulator: (m.on, m.bolted) for m in cell.mounts} == {
        "m": ("world", False),
        "p": ("m/m", False),
        "q": ("world", False),
    }


def test_part_follows_what_it_hangs_on_until_it_is_gripped():
    cell = cell_of(
        workcell(ARM, at("x", 0), at("part", 1, 'refframe="d.J" type="Movable"'))
    )
    turned = cell.home.replace(q=[math.pi / 2])
    np.testing.assert_allclose(cell.pose("part", turned)[:3, 3], [0, 1, 0], atol=1e-15)
    held = turned.grip("part", by="environment/x")
    moved = held.replace(q=[0.0])
    np.testing.assert_allclose(cell.pose("part", moved)[:3, 3], [0, 1, 0], atol=1e-15)


def test_frames_on_devices_are_fixed_parts():
    cell = cell_of(
        workcell(
            ARM, at("x", 0), at("plate", 1, 'refframe="d.J"'),
            at("edge", 1, 'refframe="plate"'),
        )
    )  # fmt: skip
    assert [m.name for m in cell.manipulators] == ["environment", "d", "plate"]
    assert cell.manipulators[2].frame_refs.keys() == {"plate", "edge"}
    mount = next(m for m in cell.mounts if m.manipulator == "plate")
    assert (mount.on, mount.bolted) == ("d/J", True)


def test_names_in_chains_keep_their_dots():
    cell = cell_of(
        '<TreeDevice name="h"><Frame name="B"/><SerialChain name="f1">'
        '<Joint name="J" type="Revolute"/><SerialChain name="t"><Frame name="e"/>'
        "</SerialChain></SerialChain></TreeDevice>"
    )
    assert cell.frame_names == ("world", "h/B", "h/f1.J", "h/f1.t.e")


def test_part_with_the_name_of_a_device_is_renamed():
    text = workcell(ARM, at("x", 0), at("d", 1, 'type="Movable"'))
    cell, report = read(text)
    assert [m.name for m in cell.manipulators] == ["environment", "d", "d_2"]
    assert [d.code for d in report.diagnostics] == ["renamed"]


def test_movable_base_is_not_fixed():
    text = '<SerialDevice name="d"><Frame name="B" type="Movable"><RPY/><Pos>1 0 0'
    cell = cell_of(f"{text}</Pos></Frame></SerialDevice>")
    assert [(m.bolted, m.pose.position[0]) for m in cell.mounts] == [(False, 1)]


def test_movable_frame_in_a_device_is_reported_and_kept_as_data():
    cell, report = read(serial(at("a", 1, 'type="Movable"') + at("b", 2)))
    assert [d.code for d in report.diagnostics] == ["not-kept"]
    assert [(n.name, n.of, n.text) for n in cell.manipulators[0].properties[1:]] == [
        ("robwork.type", "a", "Movable")
    ]


def test_bare_frames_are_named_frames_and_ends_are_marked():
    cell = cell_of(
        '<TreeDevice name="t"><Frame name="B"/><Joint name="J" type="Revolute"/>'
        '<Frame name="e" type="EndEffector"/><Frame name="o" refframe="J"/>'
        "</TreeDevice>"
    )
    frames = cell.manipulators[0].link("J").frames
    assert [(f.name, f.end_effector) for f in frames] == [("e", True), ("o", False)]


def test_last_frame_of_a_serial_device_is_its_end():
    joint = '<Joint name="J" type="Revolute"><RPY/><Pos>0 0 1</Pos></Joint>'
    places = '<Frame name="flange"/><Frame name="tcp"><RPY/><Pos>0 0 2</Pos></Frame>'
    text = f'<SerialDevice name="d"><Frame name="B"/>{joint}{places}</SerialDevice>'
    device = cell_of(text).device("d")
    assert device.ends == ("d/tcp",)
    np.testing.assert_allclose(device.fk()([0.0])[:3, 3], [0, 0, 3])
    marked = text.replace('name="flange"', 'name="flange" type="EndEffector"')
    assert cell_of(marked).device("d").ends == ("d/flange",)


def test_moving_frame_outside_of_devices_is_passive():
    cell = cell_of(
        workcell('<Frame name="door" type="Revolute"><RPY/><Pos>1 0 0</Pos></Frame>')
    )
    assert cell.joint_names == ("door",)
    assert cell.manipulators[0].link("door").passive
    np.testing.assert_allclose(
        pose(cell, "door", 0.5), along(1, 0, 0) @ about("z", math.degrees(0.5))
    )


# Properties and shapes


def test_properties_keep_their_kinds():
    cell = cell_of(
        workcell(
            '<Property name="w" desc="a remark">text</Property>',
            '<Frame name="a"><Property name="p" type="double">1.5</Property></Frame>',
            '<Property name="q" refframe="a" type="Q">1 2 3</Property>',
        )
    )
    (w,) = cell.properties
    assert (w.name, w.text, w.description) == ("w", "text", "a remark")
    p, q = cell.manipulators[0].properties
    assert (p.of, p.numbers, q.of, q.numbers) == ("a", (1.5,), "a", (1, 2, 3))


def test_device_keeps_its_own_properties():
    cell = cell_of(serial('<Property name="x">1</Property>'))
    assert [n.name for n in cell.manipulators[0].properties] == ["robwork.device", "x"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('<Property name="x">1</Property><Property name="x">2</Property>',
         "repeated-property"),
        ('<Property name="x" type="double">one</Property>', "bad-number"),
    ],
)  # fmt: skip
def test_doubtful_properties_are_reported(text: str, code: str):
    cell, report = read(workcell(text))
    assert [d.code for d in report.diagnostics] == [code]
    assert len(cell.properties) < 2


def test_shapes():
    cell, report = read(
        workcell(
            at("a", 0),
            '<Drawable name="1" refframe="a"><RPY/><Pos>1 0 0</Pos>'
            '<RGB>0 0.5 1</RGB><Box x="1" y="2" z="3"/></Drawable>'
            '<Drawable name="2" refframe="a" colmodel="Disabled"><RGB>0 0 0 0.5</RGB>'
            '<Sphere radius="1"/></Drawable>'
            '<CollisionModel name="3" refframe="a"><Cylinder radius="1" z="2"/>'
            '<Polytope file="no/such"/><Cone radius="1" z="2"/><Plane/>'
            "</CollisionModel>",
        )
    )
    link = cell.manipulators[0].link("a")
    box, ball = link.visuals
    assert isinstance(box, Box)
    assert (box.size, box.colour, box.pose.position) == (
        (1, 2, 3), (0, 0.5, 1, 1), (1, 0, 0)
    )  # fmt: skip
    assert isinstance(ball, Sphere)
    assert (ball.radius, ball.colour) == (1, (0, 0, 0, 0.5))
    same, rod, mesh, cone, floor = link.collisions
    assert same == box
    assert isinstance(rod, Cylinder)
    assert (rod.radius, rod.length) == (1, 2)
    assert isinstance(mesh, Mesh)
    assert mesh.file == "no/such"
    assert isinstance(cone, Cone)
    assert (cone.bottom, cone.top, cone.length) == (1, 0, 2)
    assert isinstance(floor, HalfSpace)
    assert [d.code for d in report.diagnostics] == ["missing-mesh"]


@pytest.mark.parametrize("inner", [0.0, 0.3])
def test_a_tube_is_made_of_convex_pieces(inner: float):
    """Together they have the volume of a tube with so many sides, and a hole."""
    for level, attribute in ((20, ""), (7, 'level="7"')):
        tube = f'<Tube radius="{inner}" thickness="0.2" z="0.5" {attribute}/>'
        cell, report = read(
            workcell(at("a", 0), f'<Drawable name="t">{tube}</Drawable>')
        )
        pieces = cell.manipulators[0].link("a").visuals
        assert not report.diagnostics
        assert len(pieces) == level
        area = 0.5 * np.sin(2.0 * np.pi / level) * ((inner + 0.2) ** 2 - inner**2)
        for piece in pieces:
            assert piece.volume == pytest.approx(0.5 * area)
            assert piece.support((0, 0, 1))[2] == pytest.approx(0.25)
            corners = np.asarray(piece.vertices)[:, :2]
            assert np.linalg.norm(corners, axis=1).max() == pytest.approx(inner + 0.2)
            assert np.linalg.norm(corners, axis=1).min() == pytest.approx(inner)


def test_shapes_of_the_world():
    cell = cell_of(
        workcell(
            '<Drawable name="wall" refframe="WORLD"><Sphere radius="1"/></Drawable>'
        )
    )
    assert cell.manipulators[0].link("WORLD").visuals[0].name == "wall"


def test_shape_without_refframe_is_for_the_frame_before():
    cell = cell_of(
        workcell(at("a", 0), at("b", 0), '<Drawable name="x"><Sphere radius="1"/>'
                 "</Drawable>")
    )  # fmt: skip
    assert cell.manipulators[0].link("b").visuals[0].name == "x"


@pytest.mark.parametrize(
    ("drawable", "code"),
    [
        ('<Drawable name="x" refframe="b"><Sphere radius="1"/></Drawable>',
         "unknown-frame"),
        ('<Drawable name="x"><Custom type="t" param="1"/></Drawable>', "not-kept"),
        ('<Drawable name="x"><Tube radius="1" thickness="0" z="1"/></Drawable>',
         "no-volume"),
        ('<Drawable name="x"><Tube radius="1" thickness="1" z="1" level="2"/>'
         "</Drawable>", "bad-level"),
        ('<Drawable name="x"><Sphere radius="1" level="5"/></Drawable>', "not-kept"),
        ('<Drawable name="x"><Sphere radius="0"/></Drawable>', "no-volume"),
        ('<Drawable name="x"><RGB>255 0 0</RGB><Sphere radius="1"/></Drawable>',
         "bad-colour"),
        ('<Drawable><Sphere radius="1"/></Drawable>', "missing-name"),
    ],
)  # fmt: skip
def test_doubtful_shapes_are_reported(drawable: str, code: str):
    assert code in diagnostics(workcell(at("a", 0), drawable))


@pytest.mark.parametrize(
    ("drawable", "code"),
    [
        ('<Drawable name="x"><Sphere radius="-1"/></Drawable>', "negative-size"),
        ('<Drawable name="x"><Sphere/></Drawable>', "missing-attribute"),
        (
            '<Drawable name="x"><Tube thickness="1" z="1"/></Drawable>',
            "missing-attribute",
        ),
        (
            '<Drawable name="x"><Tube radius="-1" thickness="1" z="1"/></Drawable>',
            "negative-size",
        ),
        ('<Drawable name="x"><Polytope file=" "/></Drawable>', "empty-reference"),
        ('<Drawable name="x" colmodel="yes"/>', "unknown-value"),
        ('<Drawable name="x"><Sphere radius="1e300"/></Drawable>', "bad-shape"),
    ],
)
def test_bad_shapes_are_refused(drawable: str, code: str):
    assert set(faults(workcell(at("a", 0), drawable))) == {code}


def test_shape_in_a_frame_is_the_frames_own():
    text = workcell(
        at("b", 0),
        '<Frame name="a"><Drawable name="x" refframe="b"><Sphere radius="1"/>'
        '</Drawable><Drawable name="y" refframe="a"><Sphere radius="1"/></Drawable>'
        "</Frame>",
    )
    cell, report = read(text)
    assert len(cell.manipulators[0].link("a").visuals) == 2
    assert [d.code for d in report.diagnostics] == ["refframe-ignored"]


# Devices of other kinds

LEGS = (
    '<Frame name="B"/><SerialChain name="l"><Joint name="a" type="Revolute"/>'
    '<Joint name="p" type="Revolute" state="Passive"/></SerialChain>'
    '<Frame name="r0" refframe="B"/><SerialChain name="r"><Joint name="b" '
    'type="Revolute"/></SerialChain>'
)


def parallel(body: str = LEGS, rest: str = "") -> str:
    return f'<ParallelDevice name="x">{body}{rest}</ParallelDevice>'


def test_legs_of_a_parallel_device_meet_at_junctions():
    junction = "<Junction><Chains>l</Chains><Chains>r</Chains></Junction>"
    cell, report = read(parallel(rest=f'{junction}<Q name="Home">1 2</Q>'))
    assert report.diagnostics == ()
    assert (cell.joint_names, cell.passive_names) == (("l.a", "r.b"), ("l.p",))
    assert cell.home.q.tolist() == [1, 2]
    assert cell.home.passive == pytest.approx((1.0,))
    assert cell.manipulators[0].loops == (Closure("l.p", "r.b", "xyz", "xyz"),)
    assert [(n.name, n.text) for n in cell.manipulators[0].properties] == [
        ("robwork.device", "ParallelDevice"),
        ("robwork.junction", "l | r"),
    ]


def test_without_junctions_all_legs_meet():
    third = (
        '<Frame name="s0" refframe="B"/><SerialChain name="s"><Joint name="c" '
        'type="Revolute" state="Passive"/></SerialChain><Frame name="end"/>'
    )
    cell, report = read(parallel(LEGS + third))
    assert report.diagnostics == ()
    assert [(loop.a, loop.b) for loop in cell.manipulators[0].loops] == [
        ("l.p", "r.b"),
        ("l.p", "end"),
    ]
    assert (cell.joint_names, cell.passive_names) == (("l.a", "r.b"), ("l.p", "s.c"))
    state = cell.home.replace(q=[0.3, 0.5])
    assert state.passive == pytest.approx((0.2, 0.5))


def test_a_chain_goes_on_where_another_ends():
    """A leg begins where several frames stand on one, and where the chain changes."""
    body = (
        '<Frame name="B"/><SerialChain name="a"><Joint name="j" type="Revolute"/>'
        '</SerialChain><Frame name="e"/><SerialChain name="b"><Joint name="j" '
        'type="Revolute" state="Passive"/><Frame name="k"/></SerialChain>'
        '<Frame name="c0" refframe="B"/><SerialChain name="c"><Joint name="j" '
        'type="Revolute" state="Passive"/></SerialChain><Frame name="f"/>'
        '<Frame name="d0" refframe="B"/><SerialChain name="d"><Joint name="j" '
        'type="Revolute"/></SerialChain>'
    )
    junctions = [("a", "c"), ("a b", "d")]
    rest = "".join(
        f"<Junction><Chains>{one}</Chains><Chains>{other}</Chains></Junction>"
        for one, other in junctions
    )
    cell = read(parallel(body, rest))[0]
    assert [(loop.a, loop.b) for loop in cell.manipulators[0].loops] == [
        ("a.j", "f"),
        ("b.k", "d.j"),
    ]
    state = cell.home.replace(q=[0.4, 1.0])
    assert dict(zip(cell.passive_names, state.passive, strict=True)) == pytest.approx(
        {"b.j": 0.6, "c.j": 0.4}
    )


@pytest.mark.parametrize(
    ("junction", "code"),
    [
        ("<Junction><Chains>l</Chains></Junction>", "bad-junction"),
        ("<Junction><Chains>l</Chains><Chains>rr</Chains></Junction>", "unknown-chain"),
        ("<Junction><Chains>l r</Chains><Chains>r</Chains></Junction>", "bad-junction"),
    ],
)
def test_bad_junctions_are_refused(junction: str, code: str):
    assert code in faults(parallel(rest=junction))


def test_a_leg_that_does_not_begin_at_the_base_is_refused():
    body = f'{LEGS}<Frame name="s" refframe="l.a"/>'
    message = faults(parallel(body))["bad-junction"]
    assert "the leg to 's' begins at 'l.a', not at the base 'B'" in message
    assert "With lenient=True, it is read as an open tree" in message


def test_loops_that_cannot_be_closed_are_refused_or_left_open():
    text = parallel(
        LEGS.replace(
            '"r0" refframe="B"/>', '"r0" refframe="B"><RPY/><Pos>1 0 0</Pos></Frame>'
        )
    )
    assert "The loops cannot close at home" in faults(text)["bad-loop"]
    report = Report(lenient=True)
    cell = FORMAT.read(text.encode(), "x.wc.xml", ReadOptions(), report)
    assert cell.joint_names == ("l.a", "l.p", "r.b")
    (found,) = report.diagnostics
    assert (found.code, found.severity) == ("bad-loop", Severity.WARNING)
    assert found.message.endswith("it is read as an open tree")


def test_one_leg_has_no_loop():
    found = diagnostics(parallel(LEGS.partition('<Frame name="r0')[0]))
    assert "has one leg" in found["open-loop"]


def test_joints_that_loops_determine_otherwise_than_marked_are_reported():
    active = diagnostics(parallel(LEGS.replace('state="Passive"', "")))
    assert "also determine 'r.b'" in active["loop-joints"]
    passive = LEGS.replace(
        'type="Revolute"/></Serial', 'type="Revolute" state="Passive"/></Serial'
    )
    assert "leave 'l.p' free" in diagnostics(parallel(passive))["loop-joints"]


def test_mobile_device():
    cell = cell_of(
        workcell(
            at("a", 1),
            '<MobileDevice name="m" basename="Base"><AxelWidth>0.4</AxelWidth>'
            '<LeftWheel name="L"/><RightWheel name="R"/><Frame name="laser"><RPY/>'
            '<Pos>0 0 1</Pos></Frame><Frame name="hub" refframe="L"/></MobileDevice>',
        )
    )
    device = cell.manipulators[1]
    assert device.joint_names == ("L", "R")
    assert [m.manipulator for m in cell.mounts] == ["environment"]
    assert cell.movable_bases == ("m",)
    turn = about("x", 90)
    np.testing.assert_allclose(pose(cell, "L"), along(0, 0.2, 0) @ turn, atol=1e-15)
    np.testing.assert_allclose(pose(cell, "R"), along(0, -0.2, 0) @ turn, atol=1e-15)
    np.testing.assert_array_equal(pose(cell, "laser"), along(0, 0, 1))
    np.testing.assert_array_equal(pose(cell, "hub"), pose(cell, "L"))
    assert device.wheels == Wheels(left="L", right="R", travel=1.0)
    assert cell.differential_drive("m").axle.width == 0.4


@pytest.mark.parametrize(
    ("device", "code"),
    [
        ('<MobileDevice name="m"><AxelWidth>1</AxelWidth><LeftWheel name="L"/>'
         '<RightWheel name="R"/></MobileDevice>', "missing-attribute"),
        ('<MobileDevice name="m" basename="B"><LeftWheel name="L"/>'
         '<RightWheel name="R"/></MobileDevice>', "missing-element"),
        ('<MobileDevice name="m" basename="B"><AxelWidth>wide</AxelWidth>'
         '<LeftWheel name="L"/><RightWheel name="R"/></MobileDevice>', "bad-number"),
        ('<MobileDevice name="m" basename="B"><AxelWidth>0</AxelWidth>'
         '<LeftWheel name="L"/><RightWheel name="R"/></MobileDevice>', "bad-device"),
        ('<MobileDevice name="m" basename="B"><AxelWidth>1</AxelWidth>'
         '<LeftWheel name="L"/><RightWheel name="L"/></MobileDevice>', "repeated-name"),
        ('<SerialDevice><Frame name="a"/></SerialDevice>', "missing-attribute"),
        (ARM + ARM, "repeated-name"),
    ],
)  # fmt: skip
def test_bad_devices_are_refused(device: str, code: str):
    assert code in faults(workcell(device))


def test_device_without_frames_is_left_out():
    cell, report = read(workcell('<SerialDevice name="d"/>', at("a", 1)))
    assert [d.code for d in report.diagnostics] == ["empty-device"]
    assert [m.name for m in cell.manipulators] == ["environment"]


# What is not known


def test_likely_slip_is_an_error_and_other_elements_are_not():
    slip = faults(workcell('<Fram name="a"/>'))["unknown-element"]
    assert slip == (
        "cell.wc.xml:1:20: error[unknown-element]: the element 'Fram' of "
        "<WorkCell name='w'> was not understood. Did you mean 'Frame'?"
    )
    other = diagnostics(workcell('<Weather name="a"/>', at("a", 1)))["unknown-element"]
    assert "1:20: warning[unknown-element]: the element 'Weather' of" in other


def test_unknown_attributes_and_texts_are_reported():
    found = diagnostics(workcell('<Frame name="a" refFrame="b">stray</Frame>'))
    assert "Did you mean 'refframe'?" in found["unknown-attribute"]
    assert "'stray'" in found["unknown-text"]


def test_all_errors_are_reported_at_once():
    text = workcell(
        '<Frame/><Joint name="x"/><Frame name="WORLD"/>', at("a", 1, 'daf="maybe"')
    )
    assert set(faults(text)) == {
        "missing-attribute", "unknown-element", "repeated-name", "unknown-value"
    }  # fmt: skip


def test_name_of_the_cell():
    assert cell_of('<WorkCell name="lab"/>').name == "lab"
    assert read('<WorkCell name=""/>', "some/where/cell_7.wc.xml")[0].name == "cell_7"
    assert cell_of(ARM).name == "d"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("<CollisionSetup/>", "no-workcell", "this is a collision setup"),
        ("<ProximitySetup/>", "no-workcell", "this is a proximity setup"),
        ('<Frame name="a"/><Joint/>', "fragment", "begins with <Frame name='a'>"),
        ("<workcell/>", "no-workcell", "Did you mean 'WorkCell'?"),
        ("<robot/>", "no-workcell", "root element is <robot>"),
        (ARM + ARM, "several-roots", "Put several devices into one <WorkCell>"),
        (ARM + "<Frame/>", "several-roots", "not in it"),
        ("", "no-workcell", "no element"),
    ],
)
def test_other_files_are_refused_with_what_they_are(text: str, code: str, words: str):
    assert words in faults(text)[code]


@pytest.mark.parametrize(
    "text",
    [
        '<WorkCell name="w"/>',
        '\ufeff<?xml version="1.0"?>\n<!-- a > b -->\n<SerialDevice name="x">',
        "  <TreeDevice name='x'/>",
        "<CollisionSetup>",
        "<workcell/>",
    ],
)
def test_sniff_knows_its_files(text: str):
    assert sniff(text.encode())


@pytest.mark.parametrize(
    "text", ["<robot name='x'/>", "", "{}", "<!-- open", "<WorkCellar/>", "WorkCell"]
)
def test_sniff_leaves_others_alone(text: str):
    assert not sniff(text.encode())


def test_format_is_registered(tmp_path):
    path = tmp_path / "any.xml"
    path.write_text(ARM)
    cell, _ = registry.read(path)
    assert cell.joint_names == ("J",)
