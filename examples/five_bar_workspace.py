# needs: examples
"""Draw where a five-bar reaches in each of its assemblies, and how well it moves there.

Half a million random joint positions give tool points and Jacobians on each branch. The
colour of a point of the picture is the area that the tool covers there per area of
joint positions, |det J|, on average.

    python five_bar_workspace.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

STEP = 0.002  # [m]
LEFT, RIGHT, LOW, HIGH = -0.36, 0.36, -0.1, 0.58  # what the picture shows [m]
INK = "#22303c"

cell = arm.example("five_bar")
lower, upper = cell.limits
Q = np.random.default_rng(0).uniform(lower, upper, (500_000, 2))


def area_per_area(state):
    """Return tool points of a state's branch and |det J| there [m^2/rad^2]."""
    points = cell.fk("tool", state=state)(Q)[:, :2, 3]
    (a, b), (c, d) = np.moveaxis(cell.jacobian("tool", state=state)(Q)[:, :2], 0, 2)
    return points, np.abs(a * d - b * c)


def picture(points, area):
    """Return the mean of each pixel, NaN where no point is."""
    shape = round((HIGH - LOW) / STEP), round((RIGHT - LEFT) / STEP)
    known = np.isfinite(area)
    column, row = ((points[known] - [LEFT, LOW]) / STEP).astype(int).T
    pixel = np.ravel_multi_index((row, column), shape)
    count = np.bincount(pixel, minlength=shape[0] * shape[1])
    total = np.bincount(pixel, area[known], minlength=len(count))
    mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return mean.reshape(shape)


def drawn(axes, state):
    """Draw the linkage at home."""
    names = ["right", "fore_right", "tool", "fore_left", "left"]
    x, y = np.array([cell.pose(name, state)[:2, 3] for name in names]).T
    axes.plot(x, y, "-o", color=INK, linewidth=3, markerfacecolor="white")


figure = Figure(figsize=(9, 4.2), dpi=80, layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
reached = {}
for axes, (name, state) in zip(panels, cell.branches().items(), strict=True):
    points, area = area_per_area(state)
    reached[name] = points, area
    extent = (LEFT, RIGHT, LOW, HIGH)
    image = axes.imshow(
        picture(points, area), origin="lower", extent=extent, vmin=0, vmax=0.12
    )
    drawn(axes, state)
    axes.set_title(f"branch {name!r}", loc="left")
    axes.set_xlabel("x [m]")
    print(f"{name}: {np.isfinite(area).sum():,} tool points")
panels[0].set_ylabel("y [m]")
figure.colorbar(image, ax=panels, label="|det J| [m²/rad²]")
path = sys.argv[1] if len(sys.argv) > 1 else "five_bar_workspace.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check: assemblies mirror each other at the line of the elbows, and both close
# where the forearms reach from elbow to elbow.
home, other = (reached[name][0] for name in ("home", "2"))
elbow = 0.25 * np.stack([np.cos(Q), np.sin(Q)], axis=2) + [[0.1, 0], [-0.1, 0]]
gap = np.linalg.norm(elbow[:, 0] - elbow[:, 1], axis=1)
middle = elbow.mean(axis=1)
clear = np.abs(gap - 0.6) > 1e-6
for each in (home, other):
    assert np.array_equal(np.isfinite(each[:, 0])[clear], gap[clear] < 0.6)
both = np.isfinite(home[:, 0]) & np.isfinite(other[:, 0])
assert np.abs(home + other - 2 * middle)[both].max() < 1e-9
