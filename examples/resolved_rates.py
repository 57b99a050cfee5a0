"""Resolved rates: a redundant arm draws a line while its joints stay within limits."""

from __future__ import annotations

import numpy as np

import armillary as arm

STEP = 0.01  # [s]
SPEED = 0.25  # [m/s]

cell = arm.example("ur5e_on_oval")
fk = cell.fk("tool0")
error = cell.pose_error("tool0")  # the twist that takes the tool to a target in 1 s

# Seven joints for six numbers: one freedom is left, and used to stay away from limits.
tool = cell.differential_ik("tool0", axes="tool0")
eased = tool.for_purpose("limits", gain=3.0)

start = np.array([-1.2, 0.4, -1.2, 1.5, -1.0, -1.4, 0.3])
line = np.repeat(fk(start)[None], 1400, axis=0)
line[:, 0, 3] += np.linspace(0.0, 1400 * STEP * SPEED, 1400)

q = start
rates = np.empty((len(line), 7))
missed = np.empty(len(line))
for k, target in enumerate(line):
    # Along the line, and back to it where the straight steps have left it.
    forward = target[:3, :3].T @ [SPEED, 0.0, 0.0]
    twist = 5.0 * error(q, target) + np.concatenate([forward, np.zeros(3)])
    answer = eased(q, twist, step=STEP)
    rates[k] = answer.qd
    missed[k] = np.linalg.norm(fk(q)[:3, 3] - target[:3, 3])
    q = q + STEP * answer.qd

track = np.abs(rates[:, 0]).sum() * STEP
print(f"{len(line) * STEP:.0f} s, {len(line) * STEP * SPEED:.1f} m along x")
print(f"the cart rode {track:.1f} m, the last of them on the bend of the oval")
print(f"farthest from the line: {missed.max() * 1e3:.2f} mm")
load = np.abs(rates) / cell.velocity_limits
print(f"fastest joint, of its limit: {load.max():.0%}")

lower, upper = cell.limits
assert ((q >= lower) & (q <= upper)).all()
assert load.max() <= 1.0
assert missed.max() < 2e-3

# Too fast a twist is slowed, not bent: the tool keeps its direction.
requested = np.array([9.0, 0.0, 3.0, 0.0, 0.0, 0.0])
slowed = tool(q, requested, step=STEP)
print(slowed)
assert 0.0 < slowed.scale < 1.0
assert np.allclose(slowed.twist, slowed.scale * requested, atol=1e-9)

# A task of lower priority has only what the tool does not need: that rises, while the
# arm's foot moves along.
both = cell.differential_ik("tool0").then("cart", position="x", rotation="")
twists = np.array([[0.0, 0, 0.1, 0, 0, 0], [0.05, 0, 0, 0, 0, 0]])
answer = both(start, twists)
assert answer.success.all()
assert np.allclose(answer.twist[0], twists[0], atol=1e-9)
print(f"both met, with rates {np.round(answer.qd, 3)}")
