# needs: examples
"""Draw where an arm can reach: a slice of its workspace, with the tool pointing down.

For each place of the upright plane through the base, inverse kinematics counts the
answers, or says why there is none. The picture shows an arm whose joints turn freely,
and the same arm where they may turn less.

    python reach_slice.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import armillary as arm
from armillary.model.display import plural

STEP = 0.005  # [m]
WIDE, LOW, HIGH = 1.0, -0.9, 1.0  # how far the slice extends [m]
NARROW = np.radians(120)
SHOWN = (0.5, 0.25)  # x, z where the arm is drawn [m]
INK, PAPER = "#22303c", "#ffffff"
COLOURS = {
    arm.Reason.OUT_OF_REACH: "#e9ecef",
    arm.Reason.LIMITS: "#f2b880",
    arm.Reason.NOT_FOUND: "#e9ecef",  # micrometres from the edge of reach: undecided
}


def arm_within(angle: float) -> arm.Cell:
    """Return a UR5e on the floor whose joints turn from -angle to angle [rad]."""
    ur5e = arm.example("ur5e_on_oval").manipulators[1]
    limits = arm.Limits(lower=-angle, upper=angle)
    base, *links = ur5e.links
    links = [link.replace(limits=limits) for link in links]
    return arm.Cell(manipulators=[arm.Manipulator(name="ur5e", links=[base, *links])])


def tool_down(x, z):
    """Return poses in the plane y = 0 that look down, shape (..., 4, 4)."""
    X = np.zeros((*np.broadcast(x, z).shape, 4, 4))
    X[...] = np.diag([1.0, -1.0, -1.0, 1.0])
    X[..., 0, 3], X[..., 2, 3] = x, z
    return X


def why_none(answers):
    """Return a reason for each target: an answer's, or what keeps all of them off."""
    none = ~answers.success.any(axis=-1)
    limited = (answers.reason == arm.Reason.LIMITS).any(axis=-1)
    unsure = (answers.reason == arm.Reason.NOT_FOUND).any(axis=-1)
    missed = np.where(limited, arm.Reason.LIMITS, arm.Reason.OUT_OF_REACH)
    return np.where(
        none, np.where(unsure, arm.Reason.NOT_FOUND, missed), arm.Reason.SOLVED
    )


def draw(axes, cell, count, reason):
    """Paint a slice, and the arm in it."""
    picture = SHADES[count]
    for kind, colour in COLOURS.items():
        picture[reason == kind] = to_rgb(colour)
    axes.imshow(picture, origin="lower", extent=(-WIDE, WIDE, LOW, HIGH))
    x, _, z = arm_points(cell).T
    axes.plot(x, z, color=PAPER, linewidth=8, solid_capstyle="round")
    axes.plot(x, z, color=INK, linewidth=5, solid_capstyle="round")
    axes.plot(x[:-1], z[:-1], "o", color=PAPER, markeredgecolor=INK, markersize=6)
    axes.plot(*SHOWN, "v", color=PAPER, markeredgecolor=INK, markersize=9)
    axes.axhline(0, color=INK, linewidth=0.8, linestyle=":")
    axes.tick_params(colors=INK, length=0)
    axes.spines[:].set_visible(False)


def arm_points(cell):
    """Return where the links begin in the answer with the highest elbow, (7, 3)."""
    found = cell.ik("tool0").all(tool_down(*SHOWN)).distinct()
    elbow = cell.fk("upper_arm")(found)[:, 2, 3]
    poses = cell.poses(cell.home.replace(q=found[elbow.argmax()]))
    links = cell.manipulators[0].links
    return np.array([poses[f"ur5e/{link.name}"][:3, 3] for link in links])


SHADES = colormaps["viridis_r"](np.linspace(0.05, 0.95, 9))[:, :3]  # by answers

x = np.arange(-WIDE, WIDE - STEP / 2, STEP) + STEP / 2
z = np.arange(LOW, HIGH - STEP / 2, STEP) + STEP / 2
targets = tool_down(x, z[:, None])
cells = {
    "every joint turns by 360° each way": arm_within(2 * np.pi),
    f"by no more than {np.degrees(NARROW):.0f}°": arm_within(NARROW),
}

figure = Figure(figsize=(11, 6.3), dpi=150, facecolor=PAPER, layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
slices = []
for axes, (title, cell) in zip(panels, cells.items(), strict=True):
    answers = cell.ik("tool0").all(targets)
    reason = why_none(answers)
    slices.append((cell, answers, reason))
    draw(axes, cell, answers.count, reason)
    axes.set_title(title, color=INK, loc="left", fontsize=11)
    axes.set_xlabel("x [m]", color=INK)
    print(f"{title}:")
    for kind in arm.Reason:
        if number := (reason == kind).sum():
            print(f"{number:9,} {kind.sentence}")
panels[0].set_ylabel("z [m]", color=INK)

counts = np.unique([answers.count for _, answers, _ in slices])
patches = [
    *(Patch(color=SHADES[n], label=plural(n, "answer")) for n in counts if n),
    Patch(color=COLOURS[arm.Reason.LIMITS], label="only beyond limits"),
    Patch(color=COLOURS[arm.Reason.OUT_OF_REACH], label="out of reach"),
]
below = {"loc": "outside lower center", "ncols": len(patches), "frameon": False}
figure.legend(handles=patches, labelcolor=INK, **below)
title = "Where a UR5e reaches, its tool pointing down, in the plane through its base"
figure.suptitle(title, color=INK, x=0.01, ha="left", fontsize=14)
path = sys.argv[1] if len(sys.argv) > 1 else "reach_slice.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check. Every answer leads to its pose; the free arm is the same left and right;
# limits take answers away and add none; and a search finds none where none is claimed.
for cell, answers, reason in slices:
    off = cell.fk("tool0")(answers.q) - targets[..., None, :, :]
    assert np.abs(off[answers.success]).max() < 1e-5
    nowhere = targets[reason == arm.Reason.OUT_OF_REACH][::100]
    assert not cell.ik("tool0")(nowhere, method="numeric").success.any()
(_, free, reason), (_, limited, _) = slices
assert np.array_equal(free.count, free.count[:, ::-1])
assert (limited.count <= free.count).all()
assert not (reason == arm.Reason.LIMITS).any()
assert (reason == arm.Reason.NOT_FOUND).mean() < 1e-4
