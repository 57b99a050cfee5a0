# needs: examples
"""Find where an arm must stand to weld both sides of a girder without touching it.

Candidates are places and heights of a column on the floor. They are joints of the cell,
so that the collision check moves the column, too. For each of them and each weld, all
branches of inverse kinematics are tested for collisions. A candidate is the better the
farther the arm stays from singularities at every weld. The picture shows the welds that
are possible from each place; a page, which needs the extra `view`, the arm at the best.

    python base_placement.py [COUNT [FILE.png [FILE.html]]]
"""

from __future__ import annotations

import sys
import time

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import armillary as arm

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000  # of candidates, about
HEIGHTS = np.linspace(0.0, 1.2, 16)  # of the column [m]
FAR = 1.0  # how far the column may be from the middle of the girder along x and y [m]
SEAM = np.linspace(-0.3, 0.3, 6)  # x of the welds on each side [m]
TABLE, LONG, WIDE, HIGH = 0.6, 0.7, 0.1, 0.08  # height; size of the girder [m]
INK, PAPER = "#22303c", "#ffffff"


def box(size, place):
    """Return a box with its centre at a place [m]."""
    return arm.shapes.Box(size=size, pose=arm.Pose.translation(*place))


column = [
    arm.Link(name="floor"),
    arm.Link(name="x", parent="floor", joint=arm.joints.Prismatic(axis=(1, 0, 0))),
    arm.Link(name="y", parent="x", joint=arm.joints.Prismatic(axis=(0, 1, 0))),
    arm.Link(
        name="height",
        parent="y",
        joint=arm.joints.Prismatic(axis=(0, 0, 1)),
        collisions=[box((0.2, 0.2, 1.5), (0, 0, -0.751))],
    ),
]
stick = arm.shapes.Capsule(
    radius=0.015, length=0.14, pose=arm.Pose.translation(0, 0, 0.09)
)
tip = arm.Frame(name="tip", pose=arm.Pose.translation(0, 0, 0.19))
torch = arm.Link(name="torch", collisions=[stick], frames=[tip])
girder = arm.Link(
    name="girder",
    collisions=[
        box((1.0, 0.4, TABLE), (0, 0, TABLE / 2)),
        box((LONG, WIDE, HIGH), (0, 0, TABLE + HIGH / 2)),
    ],
)
robot = arm.example("oval_track_cell").manipulators[1]
cell = arm.Cell(
    manipulators=[
        arm.Manipulator(name="column", links=column),
        robot,
        arm.Manipulator(name="tool", links=[torch]),
        arm.Manipulator(name="work", links=[girder]),
    ],
    mounts=[
        arm.Mount(manipulator="column"),
        arm.Mount(manipulator="ur5e", on="column/height"),
        arm.Mount(manipulator="tool", on="ur5e/tool0"),
        arm.Mount(manipulator="work"),
    ],
    rules=arm.Rules().include("ur5e/*", "ur5e/*"),
)
STAND, ARM = cell.joint_names[:3], cell.joint_names[3:]
check = cell.collision()
base = cell.fk("ur5e/base", joints=STAND)
ik = cell.ik("tip", relative_to="ur5e/base", joints=ARM)
jacobian = cell.jacobian("tip", joints=ARM)


def welds():
    """Return poses of the tip on both sides, tilted by 45 degrees, shape (k, 4, 4)."""
    found = []
    for side in (-1, 1):
        tilted = arm.Pose.rotation_x(np.pi - side * np.pi / 4)
        for x in SEAM:
            place = arm.Pose.translation(x, side * (WIDE / 2 + 0.01), TABLE + 0.01)
            found.append((place @ tilted).matrix())
    return np.array(found)


def branches(rows):
    """Return joint positions of all branches for each weld, and how good they are.

    rows: x, y and height of the column [m], shape (n, 3).
    Returns q, shape (n, k, 8, 9), and the manipulability |det J|, NaN of those that
    touch or do not exist.
    """
    found = ik.all(np.linalg.inv(base(rows))[:, None] @ WELDS)
    stand = np.broadcast_to(rows[:, None, None], (*found.q.shape[:-1], 3))
    q = np.concatenate([stand, found.q], axis=-1)
    free = found.success.copy()
    free[free] = ~check(q[free])
    good = np.full(free.shape, np.nan)
    good[free] = np.abs(np.linalg.det(jacobian(found.q[free])))
    return q, good


def placed(rows):
    """Return how many welds are possible, and the worst of them if all are."""
    _, good = branches(rows)
    best = np.fmax.reduce(good, axis=-1)
    return {"possible": np.isfinite(best).sum(axis=-1), "worst": best.min(axis=-1)}


WELDS = welds()
side = round((COUNT / len(HEIGHTS)) ** 0.5)
x = np.linspace(-FAR, FAR, side)
candidates = arm.grid([x, x, HEIGHTS])
began = time.perf_counter()
found = arm.sweep(
    placed,
    candidates,
    executor="threads",  # most of the function is native
    reduce={
        "best": arm.sweeps.Best(of="worst"),
        "place": arm.sweeps.Best(of="possible", by=len(HEIGHTS)),
        "whole": arm.sweeps.Histogram(of="possible", edges=range(len(WELDS) + 2)),
    },
)
took = time.perf_counter() - began
print(f"{candidates.count:,} candidates, {len(WELDS)} welds each: {took:.1f} s")
print(f"{found['whole_count'][-1]:,} can do all welds")
(row,) = found["best_row"]
best = candidates.rows(row, row + 1)
print("the best stands at x {:.2f}, y {:.2f}, height {:.2f} m".format(*best[0]))

figure = Figure(figsize=(6.4, 5.8), dpi=90, facecolor=PAPER, layout="constrained")
axes = figure.subplots()
half = FAR * side / (side - 1)
picture = axes.imshow(
    found["place_value"].reshape(side, side).T,
    origin="lower",
    extent=(-half, half, -half, half),
    cmap=colormaps["viridis"],
    norm=BoundaryNorm(np.arange(len(WELDS) + 2) - 0.5, 256),
)
axes.add_patch(
    Rectangle((-LONG / 2, -WIDE / 2), LONG, WIDE, color="#9aa5b1", label="girder")
)
axes.plot(*WELDS[:, :2, 3].T, "o", color=INK, markersize=4, label="welds")
axes.plot(*best[0, :2], "*", color="#d9534f", markersize=14, label="best place")
figure.legend(loc="outside lower center", ncols=3, labelcolor=INK, frameon=False)
bar = figure.colorbar(picture, ticks=range(0, len(WELDS) + 1, 2))
bar.set_label("welds that are possible, at the best height", color=INK)
axes.set_xlabel("x of the column [m]", color=INK)
axes.set_ylabel("y of the column [m]", color=INK)
path = sys.argv[2] if len(sys.argv) > 2 else "base_placement.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check. From the best place every weld is reached without contact; where the column
# would stand in the work, nothing is possible; and no candidate is better.
q, good = branches(best)
chosen = np.take_along_axis(q[0], np.nanargmax(good[0], axis=1)[:, None, None], 1)[:, 0]
assert np.abs(cell.fk("tip")(chosen) - WELDS).max() < 1e-5
assert not check(chosen).any()
assert np.nanmax(good[0], axis=1).min() == found["best_value"][0]
middle = np.array([[0.0, 0.0, height] for height in HEIGHTS])
assert not placed(middle)["possible"].any()
every = arm.sweep(
    placed, candidates.rows(0, candidates.count)[::50], executor="threads"
)
assert not (every["worst"] > found["best_value"]).any()
assert np.array_equal(every["possible"] == len(WELDS), np.isfinite(every["worst"]))
for page in sys.argv[3:]:
    cell.export(page, motion=chosen, times=np.arange(len(chosen)))
