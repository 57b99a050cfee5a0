# needs: examples
"""Draw which motor needs how much torque along a path, with and without a gripped part.

An arm on an oval track grips a block of steel and carries it once around, its tool
rising and sinking. The cart stops at both ends of each bend, where its rate of turning
would jump. The masses of this cell are estimates, see docs/examples.md; the block's are
those of its shape, filled with steel.

    python torque_along_path.py [FILE.png]
"""

from __future__ import annotations

import math
import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

STEEL = 7850.0  # [kg/m^3]
GRAVITY = np.array([0, 0, -9.81])  # [m/s^2]
STRAIGHT, BEND = 3.0, math.pi  # lengths of the track [m]
LEG = 3.0  # [s] for each of them
OUT, HIGH, WAVE = -0.6, 0.3, 0.1  # where the tool goes, from the plate of the cart [m]
RATE = 200  # samples per second
INK, PAPER = "#22303c", "#ffffff"
COLOURS = "#6c8ead", "#c8553d"  # without the part, and with it


def table(torques, limits):
    """Print the greatest torque of each joint, and its share of the limit."""
    print(f"{'':20}{'limit':>10}" + "".join(f"{name:>24}" for name in torques))
    for k, joint in enumerate(joints):
        unit = "N" if joint == "track/cart" else "N m"
        row = f"{joint:20}{limits[k]:>6.0f} {unit:3}"
        for torque in torques.values():
            most = np.abs(torque[:, k]).max()
            mark = " exceeded" if most > limits[k] else ""
            row += f"{most:>10.1f} {unit:3}{100 * most / limits[k]:>8.1f} %{mark}"
        print(row)


def draw(axes, k, torques):
    """Draw the torque of a joint over time."""
    for colour, (name, torque) in zip(COLOURS, torques.items(), strict=True):
        axes.plot(t, torque[:, k], color=colour, linewidth=1.6, label=name)
    for leg in range(1, len(legs)):
        axes.axvline(leg * LEG, color=INK, linewidth=0.6, linestyle=":")
    axes.set_title(joints[k], color=INK, loc="left", fontsize=10)
    axes.set_ylabel("N" if k == 0 else "N m", color=INK)
    style(axes)


def draw_shares(axes, torques, limits):
    """Draw the greatest torque of each joint by its limit."""
    for n, (colour, torque) in enumerate(zip(COLOURS, torques.values(), strict=True)):
        shares = 100 * np.abs(torque).max(axis=0) / limits
        axes.barh(np.arange(7) + 0.2 - 0.4 * n, shares, 0.4, color=colour)
    axes.axvline(100, color=INK, linewidth=1.2)
    axes.set_yticks(range(7), [joint.rpartition("/")[2] for joint in joints])
    axes.invert_yaxis()
    axes.set_title("greatest, in % of the limit", color=INK, loc="left", fontsize=10)
    style(axes)


def style(axes):
    """Draw a grid and nothing else around a panel."""
    axes.tick_params(colors=INK, length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.grid(color="#e9ecef")
    axes.set_axisbelow(True)


# The cell, the part being made of steel, and a state in which the gripper holds it.
cell = arm.example("oval_track_cell")
part = cell.manipulators[cell.index["part"]]
block = part.link("block")
block = block.replace(inertia=block.inertia_of_shapes(STEEL))
cell = cell.exchange(part.exchange(block))
joints = cell.joint_names[:7]  # the track and the arm
home = cell.home
reach = cell.ik("tcp", joints=joints)(cell.pose("grasp", home), near=home.q[:7])
assert reach.success, reach
there = home.joints(dict(zip(joints, reach.q.tolist(), strict=True)))
gripped = there.joints({"opening": 0.0255}).grip("part", by="gripper/tcp")

# Where the cart is: from rest to rest on each leg, by 10 u^3 - 15 u^4 + 6 u^5.
legs = [BEND, STRAIGHT, BEND, STRAIGHT]
u = np.arange(0, LEG, 1 / RATE) / LEG
ease = u**3 * (10 - 15 * u + 6 * u**2)
starts = STRAIGHT / 2 + np.cumsum([0, *legs[:-1]])
s = np.concatenate([a + b * ease for a, b in zip(starts, legs, strict=True)])
t = np.arange(len(s)) / RATE

# The arm follows: its tool is outside of the track, and points down.
targets = np.tile(np.diag([-1.0, 1.0, -1.0, 1.0]), (len(s), 1, 1))
targets[:, 1, 3] = OUT
targets[:, 2, 3] = HIGH + WAVE * np.sin(3 * (s - s[0]))
ik = cell.ik("tcp", relative_to="plate", joints=joints[1:])
answer, jumps = ik.path(targets, start=ik(targets[0], near=there.q[1:7]).q)
assert answer.success.all()
assert not len(jumps)
q = np.column_stack([s, answer.q])
qd = np.gradient(q, t, axis=0)
qdd = np.gradient(qd, t, axis=0)

# The torques. What is gripped in a state counts, and nothing else differs.
states = {"without the part": gripped.release("part"), "with the part": gripped}
torques = {
    name: cell.inverse_dynamics(joints=joints, state=state)(q, qd, qdd)
    for name, state in states.items()
}
limits = cell.effort_limits[:7]
print(f"The part has {block.inertia.mass:.2f} kg. Along the path motors need at most:")
table(torques, limits)

figure = Figure(figsize=(13, 6), dpi=80, facecolor=PAPER, layout="constrained")
panels = figure.subplots(2, 4)
for k, axes in enumerate(panels.flat[:7]):
    draw(axes, k, torques)
draw_shares(panels[1, 3], torques, limits)
for axes in panels.flat[4:7]:
    axes.set_xlabel("t [s]; the cart stops at dotted lines", color=INK)
handles, labels = panels[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
title = "Torques of an arm that carries a block of steel once around an oval track"
figure.suptitle(title, color=INK, x=0.01, ha="left", fontsize=14)
path = sys.argv[1] if len(sys.argv) > 1 else "torque_along_path.png"
figure.savefig(path)
print(f"drawn: {path}")

# The check. What motors do beyond holding the weight becomes kinetic energy; and the
# part makes all the difference: its weight and inertia, moved along its path.
for name, state in states.items():
    M = cell.mass_matrix(joints=joints, state=state)(q)
    kinetic = np.einsum("ki,kij,kj->k", qd, M, qd) / 2
    weight = cell.gravity_torque(joints=joints, state=state)(q)
    power = np.einsum("ki,ki->k", torques[name] - weight, qd)
    work = np.concatenate([[0], np.cumsum(power[1:] + power[:-1]) / (2 * RATE)])
    assert np.abs(work - kinetic).max() < 1e-3 * kinetic.max()

X = cell.fk("part/block", joints=joints, state=gripped)(q)
J = cell.jacobian("part/block", joints=joints, state=gripped)(q)
R = X[:, :3, :3]
lever = R @ np.array(block.inertia.centre())
acceleration = np.gradient(np.gradient(X[:, :3, 3] + lever, t, axis=0), t, axis=0)
force = block.inertia.mass * (acceleration - GRAVITY)
turning = R @ np.array(block.inertia.about_centre()) @ R.swapaxes(1, 2)
spin = np.einsum("kij,kjl,kl->ki", turning, J[:, 3:], qd)
moment = np.gradient(spin, t, axis=0) + np.cross(lever, force)
wrench = np.concatenate([force, moment], axis=1)
more = torques["with the part"] - torques["without the part"]
off = np.einsum("kij,ki->kj", J, wrench) - more
assert np.abs(off).max() < 5e-3 * np.abs(more).max()
