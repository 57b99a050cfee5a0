"""What each format holds of a cell: what it states, its writer and reader bear out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import shapes
from armillary.errors import FormatError
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.features import (
    _OF_FIELDS,
    ALL,
    FEATURES,
    OWN_JOINTS,
    features_of,
)
from armillary.formats.format import ReadOptions, WriteOptions
from armillary.formats.registry import FORMATS, NAMED_ONLY
from armillary.model.group import Group
from armillary.model.joints import JOINT_TYPES
from armillary.model.property import Property
from armillary.model.shapes import SHAPES
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from four_bar import four_bar


class Crank(arm.Joint):
    arm: float = 0.5

    def pose(self, q):
        return arm.Pose.rotation_z(2.0 * q) @ arm.Pose.translation(self.arm, 0.0, 0.0)


class Arm(arm.Mechanism):
    units = (arm.RADIAN,)

    def forward(self, q):
        return arm.Pose.rotation_z(q[0])


def links(**tip) -> list[arm.Link]:
    tip = {"joint": arm.joints.Revolute(axis=(0, 0, 1)), **tip}
    return [arm.Link(name="base"), arm.Link(name="tip", parent="base", **tip)]


def robot(manipulator=None, cell=None, **tip) -> Workcell:
    """A cell of one joint, whose tip, manipulator and cell have some fields more."""
    one = arm.Manipulator(name="r", links=links(**tip), **(manipulator or {}))
    return Workcell(name="r", manipulators=[one], **(cell or {}))


def shaped(shape: shapes.Primitive) -> Workcell:
    return robot(collisions=[shape])


def joint_of(name: str):
    kind = JOINT_TYPES[name]
    given = {
        "Screw": {"pitch": 0.1},
        "CircleTrack": {"radius": 1.0},
        "OvalTrack": {"straight": 2.0, "radius": 0.5},
        "Curve": {"points": [(0, 0, 0), (1, 0, 0), (2, 1, 0)]},
        "FourBarSlider": {"nominal": 1.0, "offset": 0.6, "lever": 0.5, "opposite": 0.7},
    }
    return kind(**given.get(name, {}))


def shape_of(name: str):
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    given = {
        "Box": {"size": (1, 2, 3)},
        "Sphere": {"radius": 1.0},
        "Cylinder": {"radius": 1.0, "length": 2.0},
        "Capsule": {"radius": 1.0, "length": 2.0},
        "Lozenge": {"size": (1, 2), "radius": 0.5},
        "CircularLozenge": {"disc": 1.0, "radius": 0.5},
        "TriangularLozenge": {"corners": corners[:3], "radius": 0.5},
        "Ellipsoid": {"radii": (1, 2, 3)},
        "Cone": {"bottom": 1.0, "length": 2.0},
        "Tetrahedron": {"corners": corners},
        "ConvexPolyhedron": {"vertices": corners},
        "Mesh": {"file": "a.stl"},
    }
    if name == "Points":
        return shapes.Points([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    if name == "Voxels":
        return shapes.Voxels(np.ones((2, 1, 1), bool))
    return getattr(shapes, name)(**given.get(name, {}))


SPHERE = shapes.Sphere(radius=0.1)
WHEEL = {"parent": "base", "joint": arm.joints.Revolute(axis=(0, 0, 1))}
AHEAD = arm.Pose.translation(1, 0, 0)
CELLS = {
    **{name: robot(joint=joint_of(name)) for name in JOINT_TYPES if name in FEATURES},
    **{kind.__name__: shaped(shape_of(kind.__name__)) for kind in SHAPES},
    OWN_JOINTS: robot(joint=Crank()),
    "joints of several coordinates": Workcell(
        name="r",
        manipulators=[
            arm.Manipulator(
                name="r",
                links=[
                    arm.Link(name="base"),
                    arm.Link(
                        name="c", parent="base", joint=arm.joints.AngleCoordinate()
                    ),
                    arm.Link(name="tip", parent="base", joint=Arm(), inputs=["c"]),
                ],
            )
        ],
    ),
    "couplings": Workcell(
        name="r",
        manipulators=[
            arm.Manipulator(
                name="r",
                links=[
                    *links(),
                    arm.Link(
                        name="end",
                        parent="tip",
                        joint=arm.joints.Revolute(axis=(0, 0, 1)),
                        coupling=arm.Coupling(of="tip", multiplier=2.0),
                    ),
                ],
            )
        ],
    ),
    "passive joints": robot(passive=True),
    "closed loops": Workcell(manipulators=[four_bar()]),
    "names of joints": robot(joint_name="j"),
    "limits of position": robot(limits=arm.Limits(lower=-1.0, upper=2.0)),
    "limits of velocity": robot(limits=arm.Limits(velocity=3.0)),
    "limits of acceleration": robot(limits=arm.Limits(acceleration=3.0)),
    "limits of effort": robot(limits=arm.Limits(effort=3.0)),
    "coupled limits": robot(
        manipulator={
            "coupled_limits": [arm.CoupledLimit(joints={"tip": 2.0}, upper=1.0)]
        }
    ),
    "motors and gears": robot(
        dynamics=arm.JointDynamics(motor_inertia=0.1, gear_ratio=5.0)
    ),
    "damping": robot(dynamics=arm.JointDynamics(damping=0.1)),
    "friction": robot(dynamics=arm.JointDynamics(friction=0.1)),
    "springs": robot(dynamics=arm.JointDynamics(stiffness=0.1)),
    "masses": robot(
        inertia=arm.SpatialInertia.from_centre(
            2.0, (0, 0, 0), ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        )
    ),
    "frames": robot(frames=[arm.Frame(name="f")]),
    "end effectors": robot(frames=[arm.Frame(name="f", end_effector=True)]),
    "primary frames": robot(primary=arm.Pose.translation(1, 0, 0)),
    "visuals": robot(visuals=[SPHERE]),
    "collision shapes": robot(collisions=[SPHERE]),
    "colours": robot(visuals=[shapes.Sphere(radius=0.1, colour=(1.0, 0.5, 0.0, 1.0))]),
    "names of shapes": robot(collisions=[shapes.Sphere(radius=0.1, name="ball")]),
    "several manipulators": Workcell(
        manipulators=[arm.Manipulator(name=name, links=links()) for name in "ab"]
    ),
    "mounts": robot(
        cell={
            "mounts": [arm.Mount(manipulator="r", pose=arm.Pose.translation(1, 0, 0))]
        }
    ),
    "movable bases": robot(
        cell={"mounts": [arm.Mount(manipulator="r", pose=AHEAD, bolted=False)]}
    ),
    "postures": robot(
        manipulator={"postures": [arm.Posture(name="p", joints=["tip"], q=[0.5])]}
    ),
    "home": robot(
        manipulator={
            "postures": [arm.Posture(name="p", joints=["tip"], q=[0.5])],
            "home": "p",
        }
    ),
    "groups": robot(manipulator={"groups": [Group(name="g", joints=["tip"])]}),
    "wheels": Workcell(
        manipulators=[
            arm.Manipulator(
                name="r",
                links=[
                    arm.Link(name="base"),
                    arm.Link(name="left", **WHEEL),
                    arm.Link(name="right", **WHEEL),
                ],
                wheels=Wheels(left="left", right="right", radius=0.1, track_width=1.0),
            )
        ]
    ),
    "collision rules": robot(
        collisions=[SPHERE], cell={"rules": arm.Rules().exclude("r/base", "r/tip")}
    ),
    "properties": robot(manipulator={"properties": [Property(name="x", text="y")]}),
}
WRITTEN_OTHERWISE = {"unbounded", "not-of-isaac", "mesh-left-out"}
"""Warnings of what is read back all the same, and of a file that is not there."""

WRITTEN = [each for each in (*FORMATS, *NAMED_ONLY) if each.name != "xacro"]


def test_every_feature_has_a_cell_and_is_found_in_it():
    assert {*CELLS} == {*FEATURES} - {"motions"}
    for name, cell in CELLS.items():
        assert features_of(cell)[name] >= 1, name
    assert not features_of(Workcell(name="r"))
    assert [*features_of(CELLS["groups"])] == ["Revolute", "groups"]


def test_every_field_of_the_model_is_a_feature_or_part_of_the_tree():
    tree = {
        *("name", "manipulators", "mounts", "manipulator", "links", "parent"),
        *("joint", "limits", "dynamics", "pose"),
    }
    for kind, known in _OF_FIELDS.items():
        assert {each.name for each in msgspec.structs.fields(kind)} <= {*known, *tree}
        assert set(known.values()) <= {*FEATURES}


@pytest.mark.parametrize("form", WRITTEN, ids=lambda form: form.name)
def test_formats_hold_what_they_state_and_warn_of_the_rest(form, tmp_path: Path):
    if form.name == "usd":
        pytest.importorskip("pxr")
    held = form.holds()
    assert {*held} <= {*FEATURES}, "a feature is misspelt"
    wrong = [
        f"{name}: {fault}"
        for name, cell in CELLS.items()
        if (fault := misstated(form, held.get(name), name, cell, tmp_path))
    ]
    assert not wrong


def misstated(
    form, stated: str | None, name: str, cell: Workcell, tmp_path: Path
) -> str:
    """Say where what a format states of a feature is not so."""
    report = Report()
    try:
        options = (WriteOptions(),) if form.takes_options else ()
        data = form.write(cell, report, *options)
        found = report.diagnostics
    except FormatError as error:
        data, found = b"", error.diagnostics
    told = [
        each.code
        for each in found
        if each.severity is not Severity.NOTE and each.code not in WRITTEN_OTHERWISE
    ]
    if form.name == "srdf":  # what it does not hold is in the file of the robot
        return ""
    if stated is None:
        return "" if told else "lost silently"
    if stated != ALL:
        return ""
    if told:
        return f"said to be lost: {told}"
    options = ReadOptions(joints={"Crank": Crank, "Arm": Arm})
    path = tmp_path / "r.x"
    path.write_bytes(data)  # which the library of USD opens itself
    back = features_of(form.read(data, str(path), options, Report()))
    return "" if back[name] == features_of(cell)[name] else "not read back"


# The table of docs/formats.md

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
HEAD = "## What each format holds\n"


def table() -> str:
    """The table of what each format holds, by topics."""
    held = {form.name: form.holds() for form in WRITTEN}
    names = [f"`{name}`" for name in held]
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    topic = ""
    for name, feature in FEATURES.items():
        if feature.topic != topic:
            topic = feature.topic
            lines.append(f"| **{topic}** |{' |' * len(names)}")
        cells = (each.get(name, "") for each in held.values())
        lines.append(f"| {name} | {' | '.join(cells)} |".replace("|  |", "| |"))
    return "\n".join([*lines, ""]).replace("|  |", "| |")


def test_the_page_shows_what_formats_state(request: pytest.FixtureRequest):
    before, head, after = PAGE.read_text("utf-8").partition(HEAD)
    text, _, rest = after.partition("\n\n| ")
    old, _, rest = f"| {rest}".partition("\n\n")
    page = f"{before}{head}{text}\n\n{table()}\n{rest}"
    if request.config.getoption("--update"):
        PAGE.write_text(page, encoding="utf-8", newline="\n")
        return
    assert f"{old}\n" == table(), "accept it with --update"
