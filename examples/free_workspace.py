# needs: examples
"""Draw where an arm can work between obstacles: a slice of its free workspace.

For each place of an upright plane through the base, with the tool pointing forward,
inverse kinematics gives every branch; one check tests all of them for collision with
a shelf, the floor and the arm itself. The picture shows how many are free, and why
there is none elsewhere.

    python free_workspace.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

import armillary as arm
from armillary.model.display import plural

STEP = 0.01  # [m]
LEFT, RIGHT, LOW, HIGH = -1.0, 1.1, -0.1, 1.2  # what the slice shows [m]
MARGIN = 0.01  # how far links are to stay apart [m]
SHOWN = (0.62, 0.62)  # x, z where the arm is drawn [m]
BOARDS = {  # of the shelf, in the plane y = 0: x, z and size along both [m]
    "bottom": (0.75, 0.2, 0.4, 0.03),
    "middle": (0.75, 0.5, 0.4, 0.03),
    "top": (0.75, 0.8, 0.4, 0.03),
    "back": (0.96, 0.5, 0.03, 0.63),
}
INK, PAPER = "#22303c", "#ffffff"
COLOURS = {
    arm.Reason.OUT_OF_REACH: "#e9ecef",
    arm.Reason.LIMITS: "#f2b880",
    arm.Reason.IN_COLLISION: "#d9776c",
    arm.Reason.NOT_FOUND: "#e9ecef",  # micrometres from the edge of reach: undecided
}


def workplace() -> arm.Cell:
    """Return a UR5e on the floor in front of a shelf."""
    robot = arm.example("oval_track_cell").manipulators[1]
    floor = arm.shapes.HalfSpace.below((0, 0, -0.001), (0, 0, 1))
    boards = [
        arm.shapes.Box(
            size=(width, 0.8, height), name=name, pose=arm.Pose.translation(x, 0, z)
        )
        for name, (x, z, width, height) in BOARDS.items()
    ]
    room = arm.Manipulator(
        name="room",
        links=[
            arm.Link(name="floor", collisions=[floor]),
            arm.Link(name="shelf", parent="floor", collisions=boards),
        ],
    )
    return arm.Cell(
        manipulators=[robot, room],
        mounts=[arm.Mount(manipulator=robot.name), arm.Mount(manipulator="room")],
        rules=arm.Rules().include(f"{robot.name}/*", f"{robot.name}/*"),
    )


def facing(x, z):
    """Return poses in the plane y = 0 whose z points along x, shape (..., 4, 4)."""
    X = np.zeros((*np.broadcast(x, z).shape, 4, 4))
    X[...] = arm.Pose.rotation_y(np.pi / 2).matrix()
    X[..., 0, 3], X[..., 2, 3] = x, z
    return X


def why_none(answers):
    """Return a reason for each target: what keeps the best of its branches off."""
    reason = np.full(answers.count.shape, arm.Reason.OUT_OF_REACH)
    for kind in (arm.Reason.NOT_FOUND, arm.Reason.LIMITS, arm.Reason.IN_COLLISION):
        reason[(answers.reason == kind).any(axis=-1)] = kind
    reason[answers.count > 0] = arm.Reason.SOLVED
    return reason


cell = workplace()
check = cell.collision(margin=MARGIN)
ik = cell.ik("tool0", avoid=check)

x = np.arange(LEFT, RIGHT - STEP / 2, STEP) + STEP / 2
z = np.arange(LOW, HIGH - STEP / 2, STEP) + STEP / 2
targets = facing(x, z[:, None])
answers = ik.all(targets)
reason = why_none(answers)
for kind in arm.Reason:
    if number := (reason == kind).sum():
        print(f"{number:9,} {kind.sentence}")

SHADES = colormaps["viridis_r"](np.linspace(0.05, 0.95, 9))[:, :3]  # by answers
picture = SHADES[answers.count]
for kind, colour in COLOURS.items():
    picture[reason == kind] = to_rgb(colour)
figure = Figure(figsize=(9, 6.4), dpi=120, facecolor=PAPER, layout="constrained")
axes = figure.subplots()
axes.imshow(picture, origin="lower", extent=(LEFT, RIGHT, LOW, HIGH))
for cx, cz, width, height in BOARDS.values():
    corner = cx - width / 2, cz - height / 2
    axes.add_patch(Rectangle(corner, width, height, color=INK))
axes.axhline(0, color=INK, linewidth=2)

q = ik(facing(*SHOWN)).q
poses = cell.poses(cell.home.replace(q=q))
links = cell.manipulators[0].links
px, _, pz = np.array([poses[f"ur5e/{link.name}"][:3, 3] for link in links]).T
axes.plot(px, pz, color=PAPER, linewidth=8, solid_capstyle="round")
axes.plot(px, pz, "-o", color=INK, linewidth=4, markerfacecolor=PAPER)

counts = np.unique(answers.count)
patches = [
    *(Patch(color=SHADES[n], label=plural(int(n), "free answer")) for n in counts if n),
    Patch(color=COLOURS[arm.Reason.IN_COLLISION], label="all touch"),
    Patch(color=COLOURS[arm.Reason.OUT_OF_REACH], label="not reached"),
]
below = {"loc": "outside lower center", "ncols": 4, "frameon": False}
figure.legend(handles=patches, labelcolor=INK, **below)
axes.set_xlabel("x [m]", color=INK)
axes.set_ylabel("z [m]", color=INK)
axes.tick_params(colors=INK, length=0)
axes.spines[:].set_visible(False)
title = "Where a UR5e can work in a shelf, its tool pointing forward"
axes.set_title(title, color=INK, loc="left", fontsize=13)
path = sys.argv[1] if len(sys.argv) > 1 else "free_workspace.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check. What is free is free, and stays in place; what is said to touch does; and
# obstacles take answers away and add none.
free = answers.q[answers.success]
assert check.clearance(free).min() > MARGIN
touching = answers.q[answers.reason == arm.Reason.IN_COLLISION]
assert (check.clearance(touching) <= MARGIN).all()
plain = cell.ik("tool0").all(targets)
assert (answers.count <= plain.count).all()
assert np.array_equal(
    plain.success, answers.success | (answers.reason == arm.Reason.IN_COLLISION)
)
assert (reason == arm.Reason.IN_COLLISION).any() and (answers.count > 0).any()
inside = np.abs(targets[..., 2, 3] - 0.5) < 0.015 + MARGIN  # of the board in the middle
inside &= np.abs(targets[..., 0, 3] - 0.75) < 0.2
assert not (answers.count[inside] > 0).any()
assert not check(q)
