"""What poses and positions of whole mechanisms decide: ranks by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Coupling, Link, Manipulator, joints
from armillary.calibration.measurements import Distances, Poses, Positions

HALF, Z = np.pi / 2, (0.0, 0.0, 1.0)


def rank(
    cell: Cell,
    names: Sequence[str],
    frame: str,
    kind: str = "poses",
    to: str = "world",
    span: float = 0.4,
) -> int:
    """Return how many combinations of numbers a measurement decides."""
    home = np.array(cell.home.q)
    Q = home + np.random.default_rng(0).uniform(-span, span, (30, len(home)))
    X = cell.fk(frame, relative_to=to)(Q)
    x = X[:, :3, 3]
    given = {
        "poses": lambda: Poses(frame, Q, X, relative_to=to),
        "positions": lambda: Positions(frame, Q, x, relative_to=to),
        "distances": lambda: Distances(frame, Q, np.linalg.norm(x, axis=1), to=to),
    }[kind]()
    return arm.calibrate(cell, given, names, most_steps=1).identified.rank


def chain(*poses: arm.Pose, kinds: Sequence[type[arm.Joint]], **more: object) -> Cell:
    """Return a chain of joints along z, each behind a pose, and a frame at the end."""
    links = [Link(name="l0")]
    for k, (pose, kind) in enumerate(zip(poses, kinds, strict=False)):
        joint = kind(axis=Z, precursor=pose, **more)
        links.append(Link(name=f"l{k + 1}", parent=f"l{k}", joint=joint))
    end = Link(
        name="end",
        parent=links[-1].name,
        joint=joints.Fixed(precursor=poses[-1]),
    )
    return Cell(manipulators=[Manipulator(name="m", links=[*links, end])])


def six_of_each(cell: Cell) -> list[str]:
    return [x for x in cell.parameters() if "precursor" in x or x.startswith("m/end")]


R, P = joints.Revolute, joints.Prismatic
AT = arm.Pose.from_rpy
TOOL = AT(0.3, -0.2, 0.4, (0.1, 0.05, 0.2))

# Of r joints that turn and p that slide, with the frame in front and the tool, poses
# decide 4 r + 2 p + 6 numbers (Everett, Driels and Mooring, 1987).
WHOLE = {
    "turntable": ("R", [AT(0, 0, 0, (0.3, 0, 0))], 10),
    "linear axis": ("P", [AT(0, 0, 0, (0.3, 0, 0))], 8),
    "two parallel axes": ("RR", [AT(0, 0, 0), AT(0, 0, 0, (0.5, 0, 0))], 14),
    "gantry": ("PPP", [AT(0, HALF, 0), AT(HALF, 0, 0), AT(HALF, 0, HALF)], 12),
    "SCARA": (
        "RRRP",
        [AT(0, 0, 0), AT(0, 0, 0, (0.5, 0, 0)), AT(0, 0, 0, (0.4, 0, 0)), AT(0, 0, 0)],
        20,
    ),
    "spherical wrist": ("RRR", [AT(0, 0, 0), AT(HALF, 0, 0), AT(-HALF, 0, 0)], 18),
    # A base that goes anywhere on a floor; turned by more than the two slides see.
    "mobile base": ("PPR", [AT(0, HALF, 0), AT(HALF, 0, 0), AT(HALF, 0, HALF)], 14),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_models(name: str) -> None:
    kinds, poses, count = WHOLE[name]
    cell = chain(*poses, TOOL, kinds=[R if k == "R" else P for k in kinds])
    assert rank(cell, six_of_each(cell), "end") == count


def test_a_camera_at_a_turntable() -> None:
    """Of the table and the camera only relative poses are seen."""
    eye = Manipulator(name="eye", links=[Link(name="lens")])
    table = chain(AT(0, 0, 0, (0.3, 0, 0)), TOOL, kinds=[R]).mount("m")
    cell = table.add(eye, pose=AT(2.0, 0.1, 0.3, (1.0, 0.5, 0.8)))
    names = list(cell.parameters(["end", "m.mount", "eye.mount"]))
    assert len(names) == 18
    # What turns or slides along its axis with the table is also seen behind it.
    assert rank(cell, names, "end", to="lens") == 6 + 6 - 2


def test_a_screw() -> None:
    """The axis, its pitch and the tool."""
    cell = chain(AT(0, 0, 0, (0.3, 0, 0)), TOOL, kinds=[joints.Screw], pitch=0.02)
    assert rank(cell, [*six_of_each(cell), "l1.pitch"], "end") == 4 + 1 + 6


def test_an_oval_track() -> None:
    """Where it stands and where the tool is, but for heights, which are one."""
    cell = arm.example("ur5e_on_oval").mount("track")
    names = ["track.mount", "plate", "cart.straight", "cart.radius"]
    assert rank(cell, names, "plate", span=4.0) == 6 + 6 - 1 + 2
    # On a straight part it is a linear axis, and nothing is seen of the bends.
    assert rank(cell, names, "plate", span=0.2) == 2 + 6


def test_a_delta() -> None:
    """Rods, elbows and balls are decided; motors and balls together are not."""
    cell = arm.example("delta")
    rods = [f"elbow{k}-ball{k}.length" for k in (1, 2, 3)]
    assert rank(cell, rods, "platform", "positions") == 3
    names = [f"{x}{k}.x" for k in (1, 2, 3) for x in ("ball", "elbow")]
    assert rank(cell, [*rods, *names], "platform", "positions") == 3 + 6
    # The platform does not turn: a ball nearer to its middle is a motor farther out.
    moved = [f"J{k}.precursor.{x}" for k in (1, 2, 3) for x in "xyz"]
    balls = [f"ball{k}.{x}" for k in (1, 2, 3) for x in "xyz"]
    assert rank(cell, [*moved, *balls], "platform", "positions") == 9


def test_a_five_bar() -> None:
    """Four bars, two points of the ground and two zeros; where it stands is these."""
    cell = arm.example("five_bar").mount("five_bar")
    bars = ["fore_right.precursor.x", "fore_left.precursor.x", "tool.x", "tip.x"]
    ground = [f"{side}.precursor.{x}" for side in ("right", "left") for x in "xy"]
    zeros = ["right.offset", "left.offset"]
    names = [*bars, *ground, *zeros, "five_bar.mount.x", "five_bar.mount.y"]
    names.append("five_bar.mount.rz")
    assert rank(cell, names, "tool", "positions") == 4 + 4 + 2


@pytest.mark.parametrize(("a", "count"), [(0.4, 3), (0.5, 2)])
def test_distances_of_two_bars(a: float, count: int) -> None:
    """r^2 = a^2 + b^2 + 2 a b cos(q2): of a = b only their sum."""
    cell = chain(
        AT(0, 0, 0), AT(0, 0, 0, (0.5, 0, 0)), AT(0, 0, 0, (a, 0, 0)), kinds=[R, R]
    )
    names = ["l1.precursor.rz", "l2.precursor.x", "l2.precursor.rz", "end.x"]
    assert rank(cell, names, "end", "distances", "l0") == count


def test_coupled_joints() -> None:
    """The offset of a coupling is that of the angle; its factor is one more."""
    links = [
        Link(name="l0"),
        Link(name="l1", parent="l0", joint=R(axis=Z)),
        Link(
            name="l2",
            parent="l1",
            joint=R(axis=Z, precursor=AT(0, 0, 0, (0.5, 0, 0))),
            coupling=Coupling(of="l1", multiplier=-2.0),
        ),
        Link(
            name="end",
            parent="l2",
            joint=joints.Fixed(precursor=AT(0, 0, 0, (0.4, 0, 0))),
        ),
    ]
    cell = Cell(manipulators=[Manipulator(name="m", links=links)])
    names = ["l2.coupling.multiplier", "l2.coupling.offset", "l2.precursor.rz"]
    assert rank(cell, names, "end") == 2
