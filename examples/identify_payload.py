# needs: examples
"""Find the mass, the centre and the inertia of a gripped part from joint torques.

An arm whose own dynamics are known carries a part that nothing is known about. It
follows an excitation, a sum of sines in each joint, and its torques are measured, here
simulated with noise. They are linear in the ten inertial parameters of the part, so
least squares finds these, and says how far each can be trusted.

    python identify_payload.py [FILE.png]
"""

from __future__ import annotations

import sys

import numpy as np
from matplotlib.figure import Figure

import armillary as arm

NOISE = 0.5  # of each torque [N m], standard deviation
RATE, SECONDS = 200, 10  # samples a second, length of the excitation
INK, LIGHT = "#22303c", "#d1495b"

# The truth, which only the simulation knows: a motor on a plate.
truth = arm.SpatialInertia.from_centre(
    6.0,
    (0.03, -0.05, 0.12),
    [[0.050, 0.004, -0.006], [0.004, 0.070, 0.008], [-0.006, 0.008, 0.040]],
)


def with_part(inertia):
    """Return the cell of an arm, and the state in which it holds the part."""
    part = arm.Manipulator(name="part", links=[arm.Link(name="motor", inertia=inertia)])
    cell = arm.example("irb2400").add(part, bolted=False)
    pose = arm.Pose.from_rpy(0.2, -0.1, 0.4, (0.02, 0.01, 0.1))
    return cell, cell.home.attach("part", "tool0", pose=pose)


cell, state = with_part(None)  # what the user has: the part has no inertia

# Excite: five harmonics of 0.1 Hz in each joint, with random amplitudes.
rng = np.random.default_rng(0)
t = np.arange(RATE * SECONDS) / RATE
w = 2 * np.pi * 0.1 * np.arange(1, 6)
a, b = rng.uniform(-0.2, 0.2, (2, 6, 5))  # [rad]
phase = np.multiply.outer(t, w)
sine, cosine = np.sin(phase), np.cos(phase)
q = cell.home.q + sine @ a.T + cosine @ b.T
qd = (w * cosine) @ a.T - (w * sine) @ b.T
assert (cell.limits[0] < q).all()
assert (q < cell.limits[1]).all()
qdd = -(w**2 * sine) @ a.T - (w**2 * cosine) @ b.T

real, held = with_part(truth)
exact = real.inverse_dynamics(state=held)(q, qd, qdd)
measured = exact + rng.normal(0.0, NOISE, exact.shape)

# Identify: what the arm itself does not explain is Y phi of the part.
own = cell.inverse_dynamics(state=state)(q, qd, qdd)
Y = cell.inertial_regressor(["motor"], state=state)(q, qd, qdd)
rows, rest = Y.reshape(-1, 10), (measured - own).ravel()
phi, residual, *_ = np.linalg.lstsq(rows, rest, rcond=None)
variance = residual[0] / (len(rows) - 10)
deviation = np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows)))
found = arm.SpatialInertia.from_parameters(phi)

names = "m", "h_x", "h_y", "h_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz"
print("about the frame of the part   true      found   +- standard deviation")
for name, x, y, s in zip(names, truth.parameters, phi, deviation, strict=True):
    print(f"{name:24} {x:9.4f}  {y:9.4f}   {s:.4f}")
print("centre of mass [m]:", np.round(found.centre(), 4), "true:", truth.centre())
print(f"noise of the torques: {np.sqrt(variance):.3f} N m")

# Draw a joint: what was measured, and what arm and part explain.
link = cell.manipulators[1].links[0].replace(inertia=found)
known = cell.exchange(cell.manipulators[1].replace(links=[link]))
explained = known.inverse_dynamics(state=known.bind(state))(q, qd, qdd)
figure = Figure(figsize=(9, 4.2), dpi=80, layout="constrained")
axes = figure.subplots()
axes.plot(t, measured[:, 4], ".", color="#b8c4ce", markersize=2, label="measured")
axes.plot(t, own[:, 4], color=LIGHT, label="arm alone")
axes.plot(t, explained[:, 4], color=INK, label="arm with the part found")
axes.set(xlabel="time [s]", ylabel="torque of joint 5 [N m]")
axes.set_title("An unknown part, from the torques that it takes", loc="left")
axes.legend(loc="upper left", ncols=3, markerscale=4)
path = sys.argv[1] if len(sys.argv) > 1 else "identify_payload.png"
axes.set_ylim(top=1.2 * measured[:, 4].max() + 10.0)
figure.savefig(path)
print(f"drawn: {path}")

# The check: each parameter within four standard deviations, and all of them useful.
error = np.abs(phi - truth.parameters)
assert (error < 4 * deviation).all()
assert error[0] < 0.02
assert np.abs(np.subtract(found.centre(), truth.centre())).max() < 1e-3
assert found.fault() is None  # a rigid body can have this inertia
assert abs(np.sqrt(variance) - NOISE) < 0.02
