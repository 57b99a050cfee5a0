"""Jacobians, velocities and accelerations: exact, of any frame, seen from any frame."""

from __future__ import annotations

import numpy as np

import armillary as arm

cell = arm.example("ur5e_on_oval")
q = np.array([2.5, 0.3, -1.1, 0.8, 0.4, -0.7, 0.2])  # on the bend of the track
qd = np.array([1.0, 0.1, -0.2, 0.3, 0.0, 0.5, -0.4])
qdd = np.zeros(7)

# Rows: linear [m/s], then angular [rad/s]; a column for each joint.
J = cell.jacobian("tool0")(q)
print("Jacobian of the tool in the world:")
print(np.array2string(J, precision=3, suppress_small=True))

# The same motion in other axes, or relative to the cart that carries the arm.
in_tool = cell.jacobian("tool0", axes="tool0")(q)
on_cart = cell.jacobian("tool0", relative_to="cart")(q)

twist = cell.velocity("tool0")(q, qd)
acceleration = cell.acceleration("tool0")(q, qd, qdd)
print("velocity    ", np.round(twist, 3))
print("acceleration", np.round(acceleration, 3))

# The law of each: J qd is the velocity, and that is the derivative of the pose.
assert np.allclose(J @ qd, twist, rtol=0, atol=1e-13)
R = cell.fk("tool0")(q)[:3, :3]
assert np.allclose(R @ in_tool[:3], J[:3])
assert np.all(on_cart[:, 0] == 0)  # the cart's own motion is not seen from the cart


def position(t: float) -> np.ndarray:
    """Where the tool is after the time t [m]."""
    return cell.fk("tool0")(q + t * qd)[:3, 3]


def slope_error(h: float) -> float:
    """How far a central difference is from the exact velocity [m/s]."""
    slope = (position(h) - position(-h)) / (2 * h)
    return float(np.abs(slope - twist[:3]).max())


# The error of a difference falls with the square of its step, if the rest is exact.
assert 3.9 < slope_error(2e-3) / slope_error(1e-3) < 4.1

# A cart that rides a bend of 1 m at 1 m/s is drawn inwards with 1 m/s^2.
cart = cell.acceleration("cart")(q, np.eye(7)[0], qdd)
assert np.isclose(np.linalg.norm(cart[:3]), 1.0)
