"""A hand reaches into the cell of an arm at work; the arm avoids it and comes back.

The arm on a rail keeps its tool in place. A hand, a capsule, comes along the tool,
stays for a while and leaves again. Nothing is compiled for it: obstacles are numbers.
`python hand_in_cell.py hand.html` writes a page that shows it.
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary import tasks

RATE, MARGIN = 250.0, 0.03  # [1/s], [m]

cell = arm.example("ur10_on_rail")
fk = cell.fk("tool0")
start = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
target = fk(start)
control = cell.controller(
    [tasks.Frame("tool0"), tasks.Posture()],
    avoid=cell.collision(margin=MARGIN),
    acceleration=15.0,
    rate=RATE,
)


def hand(time: float) -> arm.Obstacles:
    """Return the hand: it comes at 0.3 m/s, stays for a second and leaves."""
    way = 0.3 * np.clip([time, time - 3.0], 0.0, 2.0)  # [m]
    speed = 0.3 * ((time < 2.0) - (3.0 <= time < 5.0))
    tip = target[:3, 3] + [0.0, 0.65 - way[0] + way[1], 0.0]
    elbow = tip + np.array([0.0, 0.4, 0.0])
    return arm.Obstacles([[tip, elbow]], radii=0.06, velocities=[0.0, -speed, 0.0])


motion = control.simulate(start, [target, None], 2000, obstacles=hand)
away = np.linalg.norm(fk(motion.q)[:, :3, 3] - target[:3, 3], axis=1)
print(motion.summary())
print(f"least distance {1e3 * motion.distance.min():.2f} mm; margin {1e3 * MARGIN} mm")
print(
    f"the tool gave way by {away.max():.3f} m, and is {away[-1]:.1e} m off at the end"
)
avoiding = motion.reason == arm.RateReason.AVOIDING
texts = {text for each in motion.active[avoiding] for text in each}
print("it gave way to", sorted(text for text in texts if "obstacle" in text))

assert motion.distance.min() > MARGIN - 5e-4
assert avoiding.any()
assert away.max() > 0.05
assert away[-1] < 1e-3
assert np.abs(np.diff(motion.qd, axis=0)).max() <= 15.0 / RATE * (1 + 1e-9)
for page in sys.argv[1:]:
    cell.export(page, motion=motion)
