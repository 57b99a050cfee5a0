# needs: calibrate, examples
"""Choose link lengths and the place of an arm for two seams, by exact gradients.

Unknown are four numbers of the cell, upper arm, forearm and where the base stands, and
the joint positions at each point of the seams. Least squares by SciPy makes the arm
short, with the elbow bent and joints far from their limits, while the torch is where
the seams are: kernels of `parameters=` give all derivatives, of joints and of numbers.

    python design_arm.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import least_squares

import armillary as arm

POINTS = 6  # of each seam
LIMITS = np.radians([170.0, 120.0, 150.0, 180.0, 120.0, 180.0])
INK, LIGHT = "#22303c", "#d1495b"


def turn(name, parent, axis, place, limit):
    joint = arm.joints.Revolute(axis=axis, precursor=arm.Pose.translation(*place))
    limits = arm.Limits(lower=-limit, upper=limit)
    return arm.Link(name=name, parent=parent, joint=joint, limits=limits)


X, Y, Z = np.eye(3)
links = [
    arm.Link(name="base"),
    turn("pan", "base", Z, (0, 0, 0.3), LIMITS[0]),
    turn("lift", "pan", Y, (0, 0, 0.1), LIMITS[1]),
    turn("elbow", "lift", Y, (0, 0, 0.5), LIMITS[2]),  # the upper arm is 0.5 m
    turn("roll", "elbow", X, (0.5, 0, 0), LIMITS[3]),  # and so is the forearm
    turn("pitch", "roll", Y, (0, 0, 0), LIMITS[4]),
    turn("torch", "pitch", X, (0.1, 0, 0), LIMITS[5]),
]
tip = arm.Frame(name="tip", pose=arm.Pose.translation(0.25, 0, 0))
links[-1] = links[-1].replace(frames=[tip])
cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)]).mount("arm")

# The seams: along a beam and around a pipe, the torch tilted.
s = np.linspace(0.0, 1.0, POINTS)
seams = [
    arm.Pose.translation(1.5, -0.6 + 1.2 * x, 0.5) @ arm.Pose.rotation_y(0.9) for x in s
]
for x in np.pi * (0.2 + 0.6 * s):
    place = arm.Pose.translation(1.3 - 0.25 * np.cos(x), 0.2, 1.1 + 0.25 * np.sin(x))
    seams.append(place @ arm.Pose.rotation_y(0.5 * np.pi - 0.5 * np.cos(x)))
targets = np.array([each.matrix() for each in seams])
count = len(targets)

names = ["elbow.precursor.z", "roll.precursor.x", "arm.mount.x", "arm.mount.y"]
fk = cell.fk("tip", parameters=names)
by_q, by_p = (
    cell.jacobian("tip", parameters=names),
    cell.parameter_jacobian("tip", names),
)
SHORT, CENTRED, BENT = 1.0, 0.05, 0.3  # weights
MISSED = 1.0, 10.0, 100.0, 1000.0  # of what the tip misses, one after the other
BEHIND = len(names)


def split(x):
    return x[BEHIND:].reshape(count, 6), x[:BEHIND]


def residuals(x, weight):
    q, p = split(x)
    missed = (fk(q, p) - targets)[:, :3]
    whole = 1.0 + p[:2]  # twice the lengths
    return np.concatenate(
        [
            weight * missed.ravel(),
            SHORT * whole,
            CENTRED * (q / LIMITS).ravel(),
            BENT * np.sin(q[:, 2]),  # 0 where upper arm and forearm are at right angles
        ]
    )


def slopes(x, weight):
    """Return the derivatives: a twist (v, w) moves R by [w] R and the tip by v."""
    q, p = split(x)
    R = fk(q, p)[:, :3, :3]

    def of(J):
        turned = np.cross(J[:, 3:, None, :], R[..., None], axis=1)
        return np.concatenate([turned, J[:, :3, None, :]], axis=2).reshape(
            12 * count, -1
        )

    rows = np.zeros((12 * count + 2 + 7 * count, len(x)))
    at, missed = np.arange(count), rows[: 12 * count]
    missed[:, :BEHIND] = weight * of(by_p(q, p))
    blocks = missed[:, BEHIND:].reshape(count, 12, count, 6)
    blocks[at, :, at] = weight * of(by_q(q, p)).reshape(count, 12, 6)
    rows[12 * count + np.arange(2), np.arange(2)] = SHORT
    centred = rows[12 * count + 2 : 18 * count + 2, BEHIND:]
    centred[:] = CENTRED * np.diag(np.tile(1.0 / LIMITS, count))
    rows[18 * count + 2 + at, BEHIND + 6 * at + 2] = BENT * np.cos(q[:, 2])
    return rows


start = np.concatenate([[0.5, 0.5, 0.0, 0.0], np.tile([0, 0.3, 0.3, 0, 0.3, 0], count)])
lower = np.concatenate([[-0.3, -0.3, -0.5, -1.0], np.tile(-0.97 * LIMITS, count)])
upper = np.concatenate([[1.0, 1.0, 0.8, 1.0], np.tile(0.97 * LIMITS, count)])
x, steps = start, 0
for weight in MISSED:
    found = least_squares(
        residuals, x, jac=slopes, bounds=(lower, upper), args=(weight,), xtol=1e-6
    )
    x, steps = found.x, steps + found.nfev
q, p = split(x)
print(f"{steps} steps")
print(f"upper arm {0.5 + p[0]:.3f} m, forearm {0.5 + p[1]:.3f} m")
print(f"base at x = {p[2]:.3f} m, y = {p[3]:.3f} m")

# The cell with these numbers, by its own inverse kinematics.
designed = cell.with_parameters(dict(zip(names, p, strict=True)))
before = cell.ik("tip")(targets)
after = designed.ik("tip")(targets, near=q)
print(f"points that are reached: {before.success.sum()}, now {after.success.sum()}")

figure = Figure(figsize=(7, 5), dpi=80, layout="constrained")
axes = figure.add_subplot(projection="3d")
for model, rows, color, label in (
    (cell, np.zeros((1, 6)), LIGHT, "before, at rest"),
    (designed, q[[0, POINTS - 1, -1]], INK, "designed, at three points"),
):
    frames = ["base", "lift", "elbow", "pitch", "torch", "tip"]
    lines = np.stack([model.fk(each)(rows)[:, :3, 3] for each in frames], axis=1)
    for k, line in enumerate(lines):
        axes.plot(*line.T, color=color, marker="o", ms=3, label=None if k else label)
for seam in targets[:POINTS], targets[POINTS:]:
    axes.plot(*seam[:, :3, 3].T, color="#3a7d44", lw=3)
axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", aspect="equal")
axes.legend()
path = sys.argv[1] if len(sys.argv) > 1 else "design_arm.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check: derivatives are exact, all is reached, within limits, and not by chance.
step = 1e-6 * np.random.default_rng(0).normal(size=len(x))
change = residuals(x + step, 1.0) - residuals(x - step, 1.0)
assert np.abs(change - 2.0 * slopes(x, 1.0) @ step).max() < 1e-9
assert np.abs(fk(q, p) - targets).max() < 1e-3
assert after.success.all()
assert not before.success.all()
assert (np.abs(q) <= LIMITS + 1e-9).all()
