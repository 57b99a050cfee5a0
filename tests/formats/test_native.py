from __future__ import annotations

import functools
import importlib
import json
import math
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armillary.errors import FormatError, JointError
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.format import ReadOptions
from armillary.formats.native import FORMAT
from armillary.formats.native.schema import schema_text
from armillary.model import joints as built_in
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.joints import JOINT_TYPES
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.shape import Shape
from armillary.model.shapes import (
    SHAPES,
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Lozenge,
    Mesh,
    Points,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
    Voxels,
)
from armillary.model.unit import Unit
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.rotation import orthonormality_error
from armillary.trace.functions import sin

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "schema" / "cell.schema.json"


class Wobble(Joint, frozen=True):
    """A joint of ours that has a parameter of every kind."""

    amplitude: float
    count: int = 3
    label: str = "x"
    smooth: bool = True
    knots: tuple[tuple[float, float], ...] = ()
    hinge: Pose = IDENTITY
    end: Pose | None = None
    unit = Unit.METRE

    def pose(self, q):
        return self.hinge @ Pose.translation(q, self.amplitude * sin(q), 0.0)


OWN = {"Wobble": Wobble}


def read(
    data: bytes | str, *, joints: dict[str, type[Joint]] | None = None
) -> Workcell:
    return read_reporting(data, joints=joints)[0]


def read_reporting(
    data: bytes | str, *, joints: dict[str, type[Joint]] | None = None
) -> tuple[Workcell, Report]:
    report = Report()
    text = data.encode() if isinstance(data, str) else data
    options = ReadOptions(joints=OWN if joints is None else joints)
    return FORMAT.read(text, "lab.cell.json", options, report), report


def write(cell: Workcell) -> bytes:
    report = Report()
    data = FORMAT.write(cell, report)
    assert report.diagnostics == ()
    return data


def marked(text: str, expected: str) -> tuple[str, str]:
    """A text without its mark §, and what is expected with that spot for HERE."""
    before, _, after = text.partition("§")
    spot = f":{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}:"
    return before + after, expected.replace("HERE", spot)


def refusals(data: bytes | str, **options: Any) -> list[str]:
    """Every error of a file, as people read it."""
    with pytest.raises(FormatError) as caught:
        read_reporting(data, **options)
    return [str(found) for found in caught.value.diagnostics]


def refusal(data: bytes | str, **options: Any) -> str:
    (found,) = refusals(data, **options)
    return found


# Random cells.

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 2.0**53, 2.0**53 + 2, 1 / 3]
numbers = st.sampled_from(EXTREMES) | st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-10.0, 10.0)
positive = st.floats(0.1, 10.0)
names = st.text(min_size=1, max_size=8).filter(lambda name: "/" not in name)
NAMES = ["arm", "a b", "ß", "手", "🤖", 'quo"te', "back\\slash", "\t", "\x00", "\u2028"]
directions = st.tuples(moderate, moderate, moderate).filter(
    lambda v: math.hypot(*v) > 1e-3
)


def three(entries: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[float, ...]]:
    return st.tuples(entries, entries, entries)


quaternions = st.tuples(moderate, moderate, moderate, moderate).filter(
    lambda q: math.hypot(*q) > 1e-3
)
turned = st.builds(Pose.from_quaternion, quaternions, three(numbers))
flipped = st.builds(
    Pose,
    st.just(((0.0, -1.0, -0.0), (1.0, 0.0, 0.0), (-0.0, 0.0, 1.0))),
    three(numbers),
)
still = st.builds(lambda p: Pose(IDENTITY.rotation, p), three(numbers))
poses = st.just(IDENTITY) | turned | flipped | still
tame = st.builds(Pose.from_quaternion, quaternions, three(moderate))

BUILT_IN: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    **dict.fromkeys(("Fixed", "AngleCoordinate", "LengthCoordinate"), st.just({})),
    "Revolute": st.fixed_dictionaries({}, optional={"axis": directions}),
    "Prismatic": st.fixed_dictionaries({}, optional={"axis": directions}),
    "Screw": st.fixed_dictionaries({"pitch": numbers, "axis": directions}),
    **{
        tag: st.fixed_dictionaries(
            {}, optional={"a": moderate, "alpha": moderate, "d": moderate}
        )
        for tag in ("PaulRevolute", "PaulPrismatic", "CraigRevolute", "CraigPrismatic")
    },
    "CircleTrack": st.fixed_dictionaries({"radius": positive}),
    "OvalTrack": st.fixed_dictionaries({"straight": positive, "radius": positive}),
    "Curve": st.fixed_dictionaries(
        {"points": st.just(((0, 0, 0), (1, 0, 0.5), (1, 2, 0)))},
        optional={"up": st.none() | st.just((-1.0, 0.5, 2.0)), "closed": st.booleans()},
    ),
    "FourBarSlider": st.fixed_dictionaries(
        {"nominal": st.just(0.4), "lever": st.just(0.3), "opposite": st.just(0.35)},
        optional={"offset": st.floats(-0.1, 0.1), "pivoted": st.booleans()},
    ),
}
wobbles = st.builds(
    Wobble,
    amplitude=moderate,
    count=st.integers(-(2**70), 2**70),
    label=st.text(max_size=5),
    smooth=st.booleans(),
    knots=st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple),
    hinge=tame,
    end=st.none() | tame | st.just(IDENTITY),
)
opaque = st.builds(
    OpaqueJoint,
    kind=st.sampled_from(["Delta", "Wobble2", "手"]),
    precursor=poses,
    parameters=st.dictionaries(
        names.filter(lambda name: name not in {"type", "precursor"}),
        st.recursive(
            st.none() | st.booleans() | numbers | st.integers() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=3,
    ).map(lambda found: json.dumps(found, ensure_ascii=False, separators=(",", ":"))),
)


@st.composite
def any_joint(draw: st.DrawFn) -> Joint:
    tag = draw(st.sampled_from([*BUILT_IN, "wobble", "opaque"]))
    if tag == "wobble":
        return draw(wobbles).prepend(draw(tame))
    if tag == "opaque":
        return draw(opaque)
    return JOINT_TYPES[tag](precursor=draw(poses), **draw(BUILT_IN[tag]))


ends = numbers | st.sampled_from([-math.inf, math.inf])


@st.composite
def any_limits(draw: st.DrawFn) -> Limits:
    lower, upper = sorted((draw(numbers), draw(numbers)))
    rates = [abs(draw(numbers)) if draw(st.booleans()) else math.inf for _ in range(3)]
    return Limits(
        lower=-math.inf if draw(st.booleans()) else lower,
        upper=math.inf if draw(st.booleans()) else upper,
        velocity=rates[0],
        acceleration=rates[1],
        effort=rates[2],
    )


not_negative = st.sampled_from([0.0, 5e-324, 1e150]) | st.floats(0.0, 10.0)
dynamics = st.builds(
    JointDynamics,
    motor_inertia=not_negative,
    gear_ratio=st.sampled_from([-100.0, 1e-3, 1.0]),
    damping=not_negative,
    friction=not_negative,
    stiffness=not_negative,
    rest=numbers,
)
unit_numbers = st.floats(0.0, 1.0)
SLANTED = np.vstack([np.zeros(3), np.eye(3)])
look = {
    "name": st.text(max_size=3),
    "pose": poses,
    "colour": st.none() | st.tuples(*[unit_numbers] * 4),
}
slants = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).normal)
parameters: dict[type[Shape], dict[str, Any]] = {
    Box: {"size": three(positive)},
    Sphere: {"radius": positive},
    Cylinder: {"radius": positive, "length": positive},
    Capsule: {"radius": positive, "length": positive},
    Lozenge: {"size": st.tuples(positive, positive), "radius": positive},
    CircularLozenge: {"disc": positive, "radius": positive},
    TriangularLozenge: {
        "corners": slants.map(lambda normal: normal(size=(3, 3))),
        "radius": positive,
    },
    HalfSpace: {},
    Ellipsoid: {"radii": three(positive)},
    Cone: {"bottom": positive, "top": positive, "length": positive},
    Tetrahedron: {
        "corners": slants.map(lambda normal: SLANTED + 0.1 * normal(size=(4, 3)))
    },
    ConvexPolyhedron: {
        "vertices": slants.map(
            lambda normal: ConvexPolyhedron.around(normal(size=(9, 3))).vertices
        )
    },
    Points: {
        "data": slants.map(lambda normal: normal(size=(7, 3))),
        "radius": positive,
    },
    Voxels: {
        "data": slants.map(lambda normal: normal(size=(3, 1, 4)) > -0.5).filter(np.any),
        "size": st.floats(0.01, 10.0),
    },
    Mesh: {"file": st.text(min_size=1).filter(str.strip), "scale": three(positive)},
}
shapes = st.one_of(
    *(st.builds(kind, **own, **look) for kind, own in parameters.items())
)
inertias = st.integers(0, 2**32).map(
    lambda seed: random_inertia(np.random.default_rng(seed))
)


def random_inertia(random: np.random.Generator) -> SpatialInertia:
    """The inertia of some masses at points."""
    masses, points = random.uniform(0.0, 9.0, 5), random.normal(size=(5, 3))
    second = np.einsum("i,ij,ik->jk", masses, points, points)
    moments = [*np.diag(second), second[0, 1], second[0, 2], second[1, 2]]
    return SpatialInertia.from_second_moment(
        masses.sum(), masses @ points, np.round(moments, 9)
    )


@st.composite
def any_manipulator(draw: st.DrawFn, name: str) -> Manipulator:
    used = draw(st.lists(st.sampled_from(NAMES) | names, unique=True, max_size=8))
    called = ["base", *(each for each in used if each != "base")]
    links: list[Link] = []
    for k, link_name in enumerate(called[: max(1, len(called) - 2)]):
        free = [link.coordinate for link in links if link.moves and not link.coupling]
        joint = draw(any_joint()) if k else built_in.Fixed(precursor=draw(poses))
        coupling = None
        if free and not isinstance(joint, built_in.Fixed) and draw(st.booleans()):
            coupling = Coupling(
                of=draw(st.sampled_from(free)),
                multiplier=draw(numbers),
                offset=draw(numbers),
            )
        drive = not isinstance(joint, built_in.Fixed) and draw(st.booleans())
        links.append(
            Link(
                name=link_name,
                parent=draw(st.sampled_from(called[:k])) if k else None,
                joint=joint,
                joint_name=f"joint {k}" if draw(st.booleans()) else "",
                limits=draw(any_limits()),
                dynamics=draw(dynamics) if drive else JointDynamics(),
                coupling=coupling,
                primary=draw(poses),
                passive=draw(st.booleans()),
                inertia=draw(st.none() | inertias),
                visuals=tuple(draw(st.lists(shapes, max_size=1))),
                collisions=tuple(draw(st.lists(shapes, max_size=2))),
            )
        )
    tip = Frame(name="tip?", pose=draw(poses), end_effector=draw(st.booleans()))
    if "tip?" not in called:
        links.append(Link(name="tip link?", parent="base", frames=(tip,)))
    bare = Manipulator(name=name, links=tuple(draw(st.permutations(links))))
    postures = []
    for posture in draw(st.lists(names, unique=True, max_size=2)):
        q = draw(st.lists(numbers, max_size=len(bare.joint_names)))
        postures.append(
            Posture(name=posture, joints=bare.joint_names[: len(q)], q=tuple(q))
        )
    return msgspec.structs.replace(
        bare,
        postures=tuple(postures),
        home=draw(st.sampled_from(["", *(posture.name for posture in postures)])),
        properties=tuple(
            draw(st.lists(properties(["", *bare.frame_refs]), max_size=2))
        ),
        wheels=draw(wheels(bare.joint_names)),
    )


def wheels(joints: tuple[str, ...]) -> st.SearchStrategy[Wheels | None]:
    if len(joints) < 2:
        return st.none()
    pair = {"left": st.just(joints[0]), "right": st.just(joints[1])}
    lengths = st.floats(0.01, 10.0)
    return st.none() | st.builds(
        Wheels, **pair, radius=lengths, track_width=st.none() | lengths
    )


def properties(subjects: list[str]) -> st.SearchStrategy[Property]:
    return st.builds(
        Property,
        name=names,
        of=st.sampled_from(subjects),
        text=st.text(max_size=5),
        numbers=st.lists(numbers, max_size=2).map(tuple),
        description=st.text(max_size=5),
    )


@st.composite
def any_cell(draw: st.DrawFn) -> Workcell:
    called = draw(
        st.lists(
            (st.sampled_from(NAMES) | names).filter(lambda name: name != WORLD),
            unique=True,
            max_size=3,
        )
    )
    manipulators = tuple(draw(any_manipulator(name)) for name in called)
    mounts = tuple(
        Mount(
            manipulator=name,
            on=f"{called[k - 1]}/base" if k and draw(st.booleans()) else WORLD,
            pose=draw(poses),
            bolted=draw(st.booleans()),
        )
        for k, name in enumerate(called)
        if draw(st.booleans())
    )
    return Workcell(
        name=draw(st.text(max_size=4)),
        manipulators=manipulators,
        mounts=mounts,
        properties=tuple(draw(st.lists(properties(["", WORLD]), max_size=1))),
    )


slowly = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@functools.cache
def validator() -> Any:
    return jsonschema.Draft202012Validator(json.loads(schema_text()))


def exactly(value: object) -> str:
    """A text that differs where values do, but for the sign of a zero."""
    return re.sub(r"-0\.0\b(?![\de])", "0.0", repr(msgspec.to_builtins(value)))


@pytest.mark.filterwarnings("ignore:The limits of joint")  # which may look like degrees
@slowly
@given(any_cell())
def test_everything_comes_back(cell: Workcell):
    data = write(cell)
    back = read(data)
    assert back == cell
    assert exactly(back) == exactly(cell)
    assert write(back) == data
    assert json.loads(data)["version"] == 1
    validator().validate(json.loads(data))


def test_every_joint_and_shape_is_among_the_random_ones():
    assert set(BUILT_IN) == set(JOINT_TYPES)
    assert set(parameters) == set(SHAPES)


# One cell with everything in it.


def lab() -> Workcell:
    quarter = Pose.from_rpy(0.0, 0.0, math.pi / 2, (0.0, 0.0, 0.5))
    tcp = Frame(name="tcp", pose=Pose.translation(0.0, 0.0, 0.1), end_effector=True)
    drum = Link(
        name="drum",
        parent="base",
        joint=built_in.Revolute(precursor=quarter, axis=(0.0, 1.0, 0.0)),
        joint_name="spin",
        limits=Limits(lower=-3.0, upper=2.5, velocity=1.0, effort=80.0),
        primary=Pose.from_rpy(0.1, 0.2, 0.3),
        inertia=SpatialInertia.from_centre(2.0, (0.0, 0.0, 0.25), np.eye(3)),
        frames=(tcp,),
        visuals=(Mesh(file="package://lab/drum.dae", colour=(1.0, 0.5, 0.0, 1.0)),),
        collisions=(Cylinder(name="hull", radius=0.2, length=0.5), Sphere(radius=0.3)),
    )
    belt = Link(
        name="belt",
        parent="drum",
        joint=built_in.Prismatic(axis=(1.0, 0.0, 0.0)),
        coupling=Coupling(of="spin", multiplier=-0.2, offset=0.05),
        collisions=(Box(size=(1.0, 0.2, 0.1), pose=Pose.translation(0.5, 0.0, 0.0)),),
    )
    ride = Link(
        name="ride",
        parent="base",
        joint=built_in.OvalTrack(straight=2.0, radius=0.5),
        limits=Limits(lower=0.0),
    )
    delta = OpaqueJoint(kind="Delta", parameters='{"legs":[0.2,0.4],"flip":false}')
    arm = Manipulator(
        name="arm",
        links=(
            Link(name="base"),
            drum,
            belt,
            ride,
            Link(name="odd", parent="ride", joint=delta),
            Link(name="wobbly", parent="ride", joint=Wobble(amplitude=0.5)),
        ),
        postures=(Posture(name="rest", joints=("spin", "ride"), q=(0.5, 1.0)),),
        home="rest",
    )
    part = Manipulator(name="part", links=(Link(name="blank"),))
    mount = Mount(manipulator="part", on="arm/tcp", pose=Pose.translation(0, 0, 0.02))
    return Workcell(
        name="lab",
        manipulators=(arm, part),
        mounts=(mount,),
        properties=(Property(name="robwork.note", of="tcp", numbers=(1.0, 0.5)),),
    )


def test_text_is_for_people(golden):
    golden("native/lab.cell.json", write(lab()).decode())


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "tests" / "golden" / "native" / "lab.cell.json").read_text("utf-8")


def test_golden_file_is_read(text):
    cell, report = read_reporting(text)
    assert cell == lab()
    assert [found.code for found in report.diagnostics] == ["unknown-joint-type"]
    validator().validate(json.loads(text))


def test_published_schema_is_that_of_the_code(request):
    """`python -m armillary.formats.native.schema` writes it, and so does --update."""
    if request.config.getoption("--update"):
        SCHEMA.write_text(schema_text(), encoding="utf-8", newline="\n")
    assert SCHEMA.read_text("utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text()))


def test_members_may_stand_in_any_order_and_layout(text):
    def reversed_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # The parameters of a joint of unknown type are kept in their order.
        is_joint = any(key == "type" for key, _ in pairs)
        return dict(pairs if is_joint else reversed(pairs))

    tree = json.loads(text, object_pairs_hook=reversed_members)
    for layout in ({"indent": 4}, {"separators": (",", ":")}, {"ensure_ascii": False}):
        assert read(json.dumps(tree, **layout)) == read(text)
    assert read(b"\xef\xbb\xbf" + text.encode()) == read(text)


# Poses, as people write them.


def linked(pose: str) -> str:
    link = f'{{"name": "a", "primary": {pose}}}'
    return one_manipulator(f"[{link}]")


def one_manipulator(links: str, rest: str = "") -> str:
    return (
        '{"format": "armillary cell", "version": 1, "manipulators": [\n'
        f'{{"name": "m", "links": {links}}}\n]{rest}}}'
    )


def primary(pose: str) -> Pose:
    return read(linked(pose)).manipulators[0].links[0].primary


def test_pose_forms():
    p = (1.0, 2.0, 3.0)
    rpy = Pose.from_rpy(0.1, -0.2, 0.3, p)
    quaternion = [2.0 * value for value in rpy.quaternion()]
    rows = [list(row) for row in rpy.rotation]
    assert primary("{}") == IDENTITY
    assert primary('{"position": [1, 2, 3]}') == Pose.translation(*p)
    assert primary('{"position": [1, 2, 3], "rpy": [0.1, -0.2, 0.3]}') == rpy
    assert primary(f'{{"position": [1, 2, 3], "rotation": {rows}}}') == rpy
    found = primary(f'{{"position": [1, 2, 3], "quaternion_wxyz": {quaternion}}}')
    assert found.approx_equal(rpy, 1e-15)


@pytest.mark.parametrize(
    ("pose", "why"),
    [
        ('{"rpy": [0,0,1], "quaternion_wxyz": [1,0,0,0]}', "give one of them"),
        ('{"quaternion_wxyz": [0,0,0,0]}', "quaternion"),
        ('{"rotation": [[1,0,0],[0,1,0],[0,0,1.001]]}', "sheared or scaled"),
        ('{"rotation": [[1,0,0],[0,1,0],[0,0,-1]]}', "reflection"),
        ('{"rotation": [[1,0,0],[0,1,0],[0,0,1e308]]}', "sheared or scaled"),
        ('{"rotation": [1,0,0,0,1,0,0,0,1]}', "rotation[0]: expected an array"),
        ('{"position": [1, 2]}', "length 3"),
        ('{"positoin": [1, 2, 3]}', "no field 'positoin'"),
        ("[1, 2, 3]", "expected an object, got an array"),
    ],
)
def test_what_is_not_a_pose_is_refused(pose, why):
    assert why in refusal(linked(pose))


@given(quaternions, three(numbers))
def test_written_rotations_are_rotations(quaternion, position):
    pose = Pose.from_quaternion(quaternion, position)
    part = Manipulator(name="m", links=(Link(name="a", primary=pose),))
    back = read(write(Workcell(manipulators=(part,)))).manipulators[0].links[0].primary
    assert exactly(back) == exactly(pose)
    assert orthonormality_error(back.rotation) < 1e-14


# Joints of people's own.


def own_cell() -> str:
    joint = '{"type": "Wobble", "precursor": {"position": [0, 0, 1]}, "amplitude": 2}'
    return one_manipulator(
        f'[{{"name": "a"}}, {{"name": "b", "parent": "a", "joint": {joint}}}]'
    )


def test_joint_of_a_known_class_moves():
    joint = read(own_cell()).manipulators[0].links[1].joint
    assert joint == Wobble(amplitude=2.0, precursor=Pose.translation(0, 0, 1))
    assert joint.transform(0.3).position == (0.3, 2.0 * math.sin(0.3), 1.0)


class Gear(Joint, frozen=True):
    teeth: float

    def check(self):
        if 20.0 / self.teeth < 1.0:
            raise JointError("Too many teeth.")

    def pose(self, q):
        return Pose.rotation_z(q / self.teeth)


@pytest.mark.parametrize(("teeth", "why"), [(0, "division by zero"), (30, "Too many")])
def test_own_class_may_refuse_in_its_own_words(teeth, why):
    joint = f'{{"type": "Gear", "teeth": {teeth}}}'
    links = f'[{{"name": "a"}}, {{"name": "b", "parent": "a", "joint": {joint}}}]'
    found = refusal(one_manipulator(links), joints={"Gear": Gear})
    assert "error[bad-joint]: " in found and why in found


def test_joint_of_an_unknown_class_is_kept_but_cannot_move():
    cell, report = read_reporting(own_cell(), joints={})
    joint = cell.manipulators[0].links[1].joint
    assert isinstance(joint, OpaqueJoint)
    assert cell.joint_names == ("b",)
    assert read(write(cell)) == read(own_cell())
    with pytest.raises(JointError, match=r"'Wobble' is not known .* joints=\[\.\.\.\]"):
        joint.transform(0.0)
    (found,) = report.diagnostics
    _, spot = marked(own_cell().replace('"type"', '§"type"'), "HERE")
    assert str(found) == (
        f"lab.cell.json{spot} warning[unknown-joint-type]: joint type 'Wobble' is not "
        "known; it is kept as it is, but cannot move. Give its class when the cell is "
        "loaded: joints=[...]."
    )


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("", "are not a JSON object"),
        ("[1]", "are not a JSON object"),
        ('{"a": NaN}', "are not a JSON object"),
        ('{"a": ' + "[" * 5000, "are not a JSON object"),
        ('{"a": "\ud800"}', "are not a JSON object"),
        ('{"type": "x"}', "hold 'type'"),
        ('{"precursor": {}}', "hold 'precursor'"),
    ],
)
def test_opaque_joint_holds_a_json_object(parameters, why):
    with pytest.raises(JointError, match=why):
        OpaqueJoint(kind="Delta", parameters=parameters)


def test_opaque_joints_are_equal_by_what_they_hold():
    text = '{ "a" : [1e+2, "\\u00e9"] }'
    joint = OpaqueJoint(kind="Delta", parameters=text)
    assert joint.parameters == '{"a":[100.0,"é"]}'


def test_unknown_type_is_reported_once_with_a_guess():
    joint = '{"type": "Revolut", "axis": [0, 0, 1]}'
    links = ", ".join(
        f'{{"name": "l{k}", "parent": "a", "joint": {joint}}}' for k in range(3)
    )
    _, report = read_reporting(one_manipulator(f'[{{"name": "a"}}, {links}]'))
    (found,) = report.diagnostics
    assert "in 3 joints" in found.message
    assert found.hint.startswith("Did you mean 'Revolute'? Give its class")


@pytest.mark.parametrize(
    ("joint", "why"),
    [
        ('{"axis": [0, 0, 1]}', "has no type"),
        ('{"type": 3}', "has no type"),
        ('{"type": ""}', "has no type"),
        ('{"type": "Revolute", "axis": [0, 0, 0]}', "no direction"),
        ('{"type": "Revolute", "axes": [0, 0, 1]}', "Did you mean 'axis'?"),
        ('{"type": "Revolute", "axis": [0, 0]}', "Revolute.axis"),
        ('{"type": "Revolute", "axis": "z"}', "Revolute.axis"),
        ('{"type": "Revolute", "precursor": {"rpy": [0, 0]}}', "length 3"),
        ('{"type": "Revolute", "precursor": 1}', "precursor"),
        ('{"type": "OvalTrack", "radius": 1}', "needs the parameter 'straight'"),
        ('{"type": "OvalTrack", "radius": -1, "straight": 1}', "radius > 0"),
        ('{"type": "Wobble", "amplitude": "2"}', "amplitude"),
        ('{"type": "Wobble", "amplitude": 2, "count": 1.5}', "count"),
        ('{"type": "Wobble", "amplitude": 1' + "0" * 400 + "}", "inf"),
        ('{"type": "Delta", "precursor": [0]}', "precursor"),
        ('{"type": "Delta", "x": ' + "[" * 50 + "]" * 50 + "}", "nested"),
        ('{"type": "Delta", "x": ' + "[" * 2000 + "]" * 2000 + "}", "nested"),
    ],
)
def test_what_is_not_a_joint_is_refused(joint, why):
    found = refusal(
        one_manipulator(
            f'[{{"name": "a"}}, {{"name": "b", "parent": "a", "joint": {joint}}}]'
        )
    )
    assert why in found
    assert found.startswith("lab.cell.json")


# Cells that cannot be written.


def refusal_to_write(link: Link) -> str:
    part = Manipulator(name="m", links=(Link(name="base"), link))
    with pytest.raises(FormatError) as caught:
        FORMAT.write(Workcell(manipulators=(part,)), Report())
    (found,) = caught.value.diagnostics
    return str(found)


class Typed(Joint, frozen=True):
    type: float = 1.0

    def pose(self, q):
        return Pose.translation(q * self.type, 0.0, 0.0)


class FakeRevolute(Joint, frozen=True):
    tag = "Revolute"

    def pose(self, q):
        return Pose.translation(q, 0.0, 0.0)


@pytest.mark.parametrize(
    ("inertia", "fault"),
    [
        ({"mass": -5.0}, "the mass is negative, -5 kg"),
        ({"first_moment": [1e200, 0, 0]}, "the moments are too large for the mass"),
        ({"rotational": [[1, 2, 0], [2, 1, 0], [0, 0, 1]]}, "moment is negative: -1,"),
        ({"mass": 0.0, "first_moment": [1, 0, 0]}, "a first moment, but no mass"),
    ],
)
def test_an_impossible_inertia_is_refused_with_its_line(inertia, fault):
    body = {
        "mass": 1.0,
        "first_moment": [0, 0, 0],
        "rotational": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    }
    link = {"name": "base", "inertia": body | inertia}
    cell = {"manipulators": [{"name": "arm", "links": [link]}]}
    with pytest.raises(FormatError, match=r"bad-inertia\]: .*" + fault) as caught:
        read(json.dumps({"format": "armillary cell", "version": 1, **cell}, indent=1))
    (found,) = caught.value.diagnostics
    assert found.place.line == 10


def test_an_inertia_that_is_wrong_but_harmless_is_kept_with_a_warning():
    body = SpatialInertia.from_centre(1.0, (0, 0, 0), np.diag([1.0, 1.0, 3.0]))
    arm = Manipulator(name="arm", links=(Link(name="base", inertia=body),))
    cell, report = read_reporting(write(Workcell(manipulators=(arm,))).decode())
    assert cell.manipulators[0].links[0].inertia == body
    assert [found.code for found in report.diagnostics] == ["bad-inertia"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"limits": Limits(upper=-math.inf)}, "-inf cannot be written"),
        ({"joint": Typed()}, "is called 'type'"),
        ({"joint": FakeRevolute()}, "has the tag of the built-in Revolute"),
    ],
)
def test_what_cannot_come_back_is_not_written(fields, why):
    found = refusal_to_write(Link(name="odd", parent="base", **fields))
    assert found.startswith("error[unwritable]: link 'odd': ")
    assert why in found


def test_half_characters_are_not_written():
    part = Manipulator(name="m", links=(Link(name="\ud800"),))
    with pytest.raises(FormatError, match=r"'\\ud800' has half a surrogate pair"):
        FORMAT.write(Workcell(manipulators=(part,)), Report())


def test_whole_numbers_and_sequences_are_written_as_what_they_stand_for():
    box = Box(
        size=[1, 2, np.float64(3.0)],
        pose=Pose(((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)),
    )
    part = Manipulator(name="m", links=(Link(name="a", collisions=[box]),))
    data = write(Workcell(manipulators=(part,)))
    assert b'{"shape": "box", "size": [1.0, 2.0, 3.0]}' in data
    assert write(read(data)) == data


# Hostile files.

GOOD = '[{"name": "a"}, {"name": "b", "parent": "a"}]'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "lab.cell.json:1:1: error[truncated]: the file is empty"),
        (" \n ", "error[truncated]: the file is empty"),
        ("[]", "expected an object, got an array"),
        ("{}", "error[wrong-format]: the format is '', not 'armillary cell'"),
        ('{§"format": "urdf"}', "HERE error[wrong-format]: the format is 'urdf'"),
        ('{"format": "armillary cell"}', "[wrong-version]: the version is 0"),
        (
            '{"format": "armillary cell", §"version": 2, "new": 1}',
            "HERE error[wrong-version]: the version is 2; this armillary reads "
            "version 1. Update armillary.",
        ),
        ('{"format": "armillary cell", "version": "1"}', "version: expected a whole"),
        ('{"format": "armillary cell", "version": 1§', "HERE error[truncated]"),
        (one_manipulator(GOOD)[:-5], "error[truncated]: the file ends too early"),
        (one_manipulator(GOOD) + "§{}", "HERE error[malformed]: this is not JSON"),
        (one_manipulator('[{"name": "a",}]'), "[malformed]"),
        (one_manipulator("[{§'name': 'a'}]"), "HERE error[malformed]"),
        (one_manipulator('[{"name": "a"} // base\n]'), "[malformed]"),
        (one_manipulator(GOOD, ', "mounts": §NaN'), "HERE error[malformed]: NaN"),
        (linked('{"position": [0, 0, NaN]}'), "NaN is not a number in JSON"),
        (linked('{"position": [0, 0, Infinity]}'), "Infinity is not a number in JSON"),
        (linked('{"position": [0, 0, §1e999]}'), "HERE error[bad-number]"),
        (linked('{"position": [0, 0, -1e999]}'), "too large for a double"),
        (linked('{"position": [0, 0, 1' + "0" * 400 + "]}"), "too large for a double"),
        (linked('{"position": [0, 0, 01]}'), "[malformed]"),
        (linked('{"position": [0, 0, true]}'), "expected a number, got true"),
        (linked('{"position": [0, 0, "1"]}'), "primary.position[2]: expected a number"),
        (linked("null"), "primary"),
        (one_manipulator('[{"name": "a", "naem": 1}]'), "[0] has no field 'naem'"),
        (one_manipulator('[{"parent": "a"}]'), "missing required field `name`"),
        (one_manipulator('[{§"name": 1}]'), "HERE error[wrong-type]"),
        (one_manipulator('{"name": "a"}'), "links: expected an array"),
        (one_manipulator('[{"name": "a", "limits": {"lower": null}}]'), "lower"),
        (one_manipulator('[{"name": "a", §"name": "b"}]'), "HERE error[duplicate-key]"),
        (one_manipulator('[{"name": "a", "n\\u0061me": "b"}]'), "the key 'name'"),
        (one_manipulator('[{"name"  : "a", §"name"\n: "a"}]'), "[duplicate-key]"),
        (one_manipulator('[{"name": "\\":", §"name": "\\":"}]'), "[duplicate-key]"),
        (one_manipulator('[{"name": "\\u0022:", §"name": "a"}]'), "[duplicate-key]"),
        (
            one_manipulator('[{"name": "a", "joint": {"b": [{"c": 1, §"c": 1}]}}]'),
            "HERE error[duplicate-key]",
        ),
        (one_manipulator('[{"name": "\\ud800"}]'), "half of a surrogate pair"),
        (one_manipulator('[{"name": "a\nb"}]'), "[malformed]"),
        (one_manipulator('[{"name": "\x00"}]'), "[malformed]"),
        ("[" * 200_000, "expected an object, got an array"),
        ('{"format": ' * 200_000, "format: expected a string"),
        ('{"x": ' * 200_000, "[too-deep]"),
        (one_manipulator("[" * 200_000 + "]" * 200_000), "[too-deep]"),
        (
            one_manipulator('[{"name": "a", "visuals": [{"shape": "blob"}]}]'),
            "visuals[0].shape",
        ),
        (one_manipulator('[{"name": "a", "visuals": [{"radius": 1}]}]'), "`shape`"),
    ],
)
def test_hostile_text_is_refused_in_words(data, why):
    data, why = marked(data, why)
    found = refusal(data)
    assert found.startswith("lab.cell.json")
    assert why in found


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xff\xfe{\x00", ":1:1: error[encoding]: byte 0xff is not UTF-8"),
        (
            one_manipulator('[{"name": "\u00df"}]').encode("latin-1"),
            "0xdf is not UTF-8",
        ),
        (one_manipulator(GOOD).encode("utf-16"), "[encoding]"),
        (b"\x00" * 1000, "[malformed]"),
        (b"\x80\x02}q\x00.", "[encoding]"),
        (bytes(range(256)), "error["),
    ],
)
def test_hostile_bytes_are_refused_in_words(data, why):
    assert why in refusal(data)


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ("[]", "error[base]: It has no links"),
        ('[{"name": ""}]', "error[link-name]"),
        ('[{"name": "a"}, §{"name": "b"}]', "HERE error[one-base]"),
        ('[{"name": "a"}, §{"name": "a", "parent": "a"}]', "HERE error[unique-frame]"),
        ('[{"name": "a"}, §{"name": "b", "parent": "c"}]', "HERE error[parent]"),
        ('[{"name": "a", "parent": "a"}]', "error[base]: No link is the base"),
        (
            '[{"name": "a"}, {"name": "b", "parent": "c"}, '
            '{"name": "c", "parent": "b"}]',
            "error[cycle]",
        ),
        ('[{"name": "a", "joint": {"type": "Revolute"}}]', "error[fixed-base]"),
        (
            '[{"name": "a"}, {"name": "b", "parent": "a", "coupling": {"of": "b"}}]',
            "error[coupling-fixed]",
        ),
        (
            '[{"name": "a"}, §{"name": "b", "parent": "a", '
            '"joint": {"type": "Revolute"}, "coupling": {"of": "b"}}]',
            "HERE error[coupling-cycle]",
        ),
        (
            '[{"name": "a"}, §{"name": "b", "parent": "a", '
            '"joint": {"type": "Revolute"}, "coupling": {"of": "x"}}]',
            "HERE error[coupling-unknown]",
        ),
        (
            '[{"name": "a"}, {"name": "b", "parent": "a", '
            '§"limits": {"lower": 1, "upper": 0}}]',
            "HERE error[bad-limits]: The limits are swapped",
        ),
        (
            '[{"name": "a"}, {"name": "b", "parent": "a", "limits": {"effort": -1}}]',
            "error[bad-limits]",
        ),
        (
            '[{"name": "a"}, §{"name": "b", "parent": "a", "dynamics": {"rest": 1}}]',
            "HERE error[dynamics-fixed]: Joint 'b' is fixed",
        ),
        (
            '[{"name": "a"}, {"name": "b", "parent": "a", '
            '§"dynamics": {"damping": -1}}]',
            "HERE error[bad-jointdynamics]: 'damping' of a joint is -1.0; it cannot be",
        ),
    ],
)
def test_broken_rules_are_reported_by_their_ids(links, expected):
    links, expected = marked(one_manipulator(links), expected)
    assert any(expected in found for found in refusals(links))


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ('§"home": "x"', "HERE error[bad-home]: No posture is called 'x'"),
        ('"postures": [§{"name": "p", "joints": ["a"]}]', "HERE error[bad-posture]"),
        (
            '"postures": [{"name": "o"}, §{"name": "p", "joints": ["a"], "q": [0]}]',
            "HERE error[bad-posture]: Posture 'p' names the joint 'a'",
        ),
        (
            '"groups": [{"name": "g"}, §{"name": "h", "links": ["x"]}]',
            "HERE error[bad-group]: Group 'h' names the link 'x'",
        ),
        ('§"groups": [{"name": "g", "groups": ["g"]}]', "HERE error[bad-group]"),
        ('"properties": [§{"name": "n", "of": "x"}]', "HERE error[bad-property]"),
        (
            '§"wheels": {"left": "a", "right": "b"}',
            "HERE error[bad-wheels]: A drive has either the radius",
        ),
    ],
)
def test_broken_notes_are_reported(notes, expected):
    data, expected = marked(one_manipulator(f"{GOOD}, {notes}"), expected)
    assert expected in refusal(data)


TURNS = (
    '[{"name": "a"}, {"name": "b", "parent": "a", "joint": {"type": "Revolute"}}, '
    '{"name": "c", "parent": "b", "joint": {"type": "Revolute"}, '
    '"dynamics": {"stiffness": 1}}]'
)
DAMPED = JointDynamics(damping=0.5, friction=2.0)


@pytest.mark.parametrize(
    ("of", "numbers", "is_moved"),
    [
        ("b", "[0.5, 2.0]", True),
        ("a", "[0.5, 2.0]", False),  # the base has no coordinate
        ("c", "[0.5, 2.0]", False),  # it has dynamics of its own
        ("b", "[0.5]", False),
        ("b", "[-0.5, 2.0]", False),
    ],
)
def test_damping_of_older_files_is_of_the_joint(of: str, numbers: str, is_moved: bool):
    noted = f'{{"name": "urdf.dynamics", "of": "{of}", "numbers": {numbers}}}'
    other = '{"name": "weight", "of": "b", "numbers": [1]}'
    (old,) = read(
        one_manipulator(f'{TURNS}, "properties": [{other}, {noted}]')
    ).manipulators
    assert [each.name for each in old.properties] == [
        "weight",
        *([] if is_moved else ["urdf.dynamics"]),
    ]
    found = [link.dynamics for link in old.links]
    first = DAMPED if is_moved else JointDynamics()
    assert found == [JointDynamics(), first, JointDynamics(stiffness=1.0)]


def test_wheels_that_do_not_exist_are_reported():
    notes = '§"wheels": {"left": "a", "right": "b", "radius": 1}'
    data, place = marked(one_manipulator(f"{GOOD}, {notes}"), "HERE error[bad-wheels]")
    left, right = refusals(data)
    assert f"{place}: The wheel 'a' is not a joint" in left
    assert f"{place}: The wheel 'b' is not a joint" in right


@pytest.mark.parametrize(
    ("manipulators", "mounts", "expected"),
    [
        ("m m", "", "error[bad-manipulator]: The name 'm' is taken"),
        ("world", "", "error[bad-manipulator]: The name 'world' is taken"),
        ("a/b", "", "error[bad-manipulator]: Manipulator 'a/b' breaks"),
        ("m", '{"manipulator": "x"}', "error[bad-mount]: no manipulator named 'x'"),
        ("m", '{"manipulator": "m", "on": "nowhere"}', "'nowhere': no frame named"),
        ("m n", '{"manipulator": "m"}, §{"manipulator": "m"}', "HERE error[bad-mount]"),
        ("m", '{"manipulator": "m", "on": "m/base"}', "the mounts form a cycle"),
        (
            "m",
            '], "properties": [§{"name": "n", "of": "x"}',
            "HERE error[bad-property]",
        ),
        (
            "m",
            '], "properties": [{"name": ""}',
            "error[bad-property]: A property has no",
        ),
    ],
)
def test_broken_cells_are_reported_by_their_parts(manipulators, mounts, expected):
    parts = ", ".join(
        f'{{"name": "{name}", "links": [{{"name": "base"}}]}}'
        for name in manipulators.split()
    )
    data = (
        '{"format": "armillary cell", "version": 1, "name": "c", '
        f'"manipulators": [{parts}], "mounts": [{mounts}]}}'
    )
    data, expected = marked(data, expected)
    assert expected in refusal(data)


def test_many_faults_are_reported_at_once():
    links = """[
  {"name": "base"},
  {"name": "a", "parent": "base", "joint": {"type": "Revolute", "axis": [0, 0, 0]}},
  {"name": "b", "parent": "base", "limits": {"lower": 2, "upper": 1}},
  {"name": "c", "parent": "base", "primary": {"quaternion_wxyz": [0, 0, 0, 0]}}
]"""
    found = refusals(one_manipulator(links))
    assert [each.split(": ")[0] for each in found] == [
        "lab.cell.json:4:35",
        "lab.cell.json:5:35",
        "lab.cell.json:6:35",
    ]


def test_faults_beyond_the_longest_walk_have_no_line():
    filler = " " * (17 << 20)
    found = refusal(one_manipulator(filler + '[{"name": 1}]'))
    assert found.startswith(
        "lab.cell.json: error[wrong-type]: manipulators[0].links[0]"
    )


def test_truncation_at_every_byte_is_an_error(text):
    data = text.encode()
    for k in range(0, len(data.rstrip()) - 1, 7):
        with pytest.raises(FormatError) as caught:
            read(data[:k])
        assert caught.value.diagnostics[0].code in {"truncated", "malformed"}


@settings(max_examples=150)
@given(st.data())
def test_damage_is_an_error_or_a_cell(text, data):
    tokens = [
        "NaN",
        "-1",
        "1e999",
        "null",
        "{",
        "]",
        '"',
        ",",
        "0",
        "\\",
        "\ud7ff",
        " ",
    ]
    spot = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 4))
    damaged = text[:spot] + data.draw(st.sampled_from(tokens)) + text[spot + cut :]
    try:
        cell = read(damaged)
    except FormatError as error:
        assert all(found.place.path == "lab.cell.json" for found in error.diagnostics)
        assert any(found.severity is Severity.ERROR for found in error.diagnostics)
    else:
        assert write(read(write(cell))) == write(cell)


@pytest.mark.thorough
def test_a_chain_of_100_000_links_is_read_and_written():
    links = ",".join(f'{{"name":"l{k + 1}","parent":"l{k}"}}' for k in range(100_000))
    cell = read(one_manipulator(f'[{{"name":"l0"}},{links}]'))
    assert len(cell.manipulators[0].order) == 100_001
    assert write(cell).count(b"\n") > 100_000


def test_schema_refuses_what_is_refused_for_its_form(text):
    tree = json.loads(text)
    for spoil in (
        lambda cell: cell.update(version=2),
        lambda cell: cell.update(extra=1),
        lambda cell: cell["manipulators"][0]["links"][1]["joint"].update(axes=1),
        lambda cell: cell["manipulators"][0]["links"][1]["joint"].pop("type"),
        lambda cell: cell["manipulators"][0]["links"][1].update(
            primary={"rpy": [0, 0, 0], "quaternion_wxyz": [1, 0, 0, 0]}
        ),
        lambda cell: cell["manipulators"][0]["links"][1]["collisions"][0].pop("radius"),
    ):
        spoilt = json.loads(json.dumps(tree))
        spoil(spoilt)
        assert not validator().is_valid(spoilt)
        refusals(json.dumps(spoilt))


def test_schema_command_prints_the_schema(capsys):
    module = importlib.import_module("armillary.formats.native.schema")
    assert module.schema_text() == SCHEMA.read_text("utf-8")


def test_equal_cells_have_equal_texts():
    def cell(zero: float, one: float) -> Workcell:
        X = Pose(((1.0, zero, 0.0), (0.0, one, 0.0), (zero, 0.0, 1.0)), (1.0, zero, 0))
        link = Link(
            name="tip",
            parent="base",
            joint=built_in.Revolute(axis=(0, 0, one), precursor=X),
            limits=Limits(lower=zero, upper=2),
            primary=X,
            inertia=SpatialInertia(
                one,
                (zero, 0.0, 0.0),
                ((one, zero, 0.0), (zero, one, 0.0), (0.0, 0.0, 1.0)),
            ),
            frames=(Frame(name="f", pose=X),),
            visuals=(Box(size=(1.0, one, 2.0), pose=X),),
        )
        arm = Manipulator(
            name="arm",
            links=(Link(name="base"), link),
            postures=(Posture(name="rest", joints=("tip",), q=(zero,)),),
            properties=(Property(name="x", numbers=(zero, one)),),
        )
        part = Manipulator(name="part", links=(Link(name="part"),))
        mount = Mount(manipulator="part", on="tip", pose=X)
        return Workcell(manipulators=(arm, part), mounts=(mount,))

    assert cell(0.0, 1.0) == cell(-0.0, 1)
    assert write(cell(0.0, 1.0)) == write(cell(-0.0, 1))


def test_a_broken_rule_is_reported_once_and_alone():
    text = one_manipulator('[{"name": "a"}, {"name": "b", "parent": "c"}]')
    with pytest.raises(FormatError) as caught:
        read(text)
    assert [found.code for found in caught.value.diagnostics] == ["parent"]


# Joints inside joints.


class Pair(Joint, frozen=True):
    first: Joint
    more: tuple[Joint, ...] = ()

    def pose(self, q):
        X = self.first.transform(q)
        for joint in self.more:
            X = X @ joint.transform(q)
        return X


def with_joint(joint: Joint) -> Workcell:
    tip = Link(name="tip", parent="base", joint=joint)
    arm = Manipulator(name="arm", links=(Link(name="base"), tip))
    return Workcell(manipulators=(arm,))


def test_joints_inside_joints_come_back():
    turn = built_in.Revolute(axis=(0, 0, 1), precursor=Pose.translation(1, 2, 3))
    joint = Pair(first=Pair(first=turn), more=(Wobble(amplitude=0.5), turn))
    cell = with_joint(joint)
    own = {"Pair": Pair, "Wobble": Wobble}
    assert read(write(cell), joints=own) == cell
    assert write(read(write(cell), joints=own)) == write(cell)
    validator().validate(json.loads(write(cell)))


def test_an_unknown_joint_inside_a_joint_is_kept_but_cannot_move():
    cell = with_joint(Pair(first=Wobble(amplitude=0.5)))
    found, report = read_reporting(write(cell), joints={"Pair": Pair})
    assert [each.code for each in report.diagnostics] == ["unknown-joint-type"]
    assert "'Wobble' is not known" in report.diagnostics[0].message
    assert write(found) == write(cell)
    joint = found.manipulators[0].links[1].joint
    assert isinstance(joint.first, OpaqueJoint)
    with pytest.raises(JointError, match="Joint type 'Wobble' is not known here"):
        joint.transform(0.0)
