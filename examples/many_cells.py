"""A data set: over a thousand cells at once reach for targets among balls of their own.

Each row of a batch is a cell with its own start, target and balls. The controller takes
a step of all of them in one call. Rows that did not keep the margin say so, by their
reasons, and are left out of the data set, which is written to `cells.npz`.
`python many_cells.py cell.html` writes a page that shows one of the cells, too.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import armillary as arm
from armillary import tasks

COUNT, STEPS, RATE = 1500, 400, 200.0  # [1/s]
MARGIN, RADIUS = 0.02, 0.1  # [m]
ACCELERATION = 30.0  # [rad/s^2]

cell = arm.example("irb2400")
fk, check = cell.fk("tool0"), cell.collision(margin=MARGIN)
lower, upper = cell.limits
rng = np.random.default_rng(0)

# Starts and targets where no links touch, and three balls for each, near the tool.
Q = rng.uniform(0.5 * lower, 0.5 * upper, (6 * COUNT, 6))
Q = Q[check.clearance(Q) > 2 * MARGIN][: 2 * COUNT]
start, target = Q[: len(Q) // 2], fk(Q[len(Q) // 2 :][: len(Q) // 2])
tool = fk(start)[:, None, :3, 3]
balls = tool + rng.uniform(-0.8, 0.8, (len(start), 3, 3))

control = cell.controller(
    tasks.Frame("tool0", speed=1.0, turn_speed=2.0),
    avoid=check,
    acceleration=ACCELERATION,
    rate=RATE,
)
begin = control(
    start, 0 * start, target, obstacles=arm.Obstacles.spheres(balls, RADIUS)
)
free = begin.distance > MARGIN
start, target, balls = start[free], target[free], balls[free]

# The steps come after the batch; 1 stands for all of them.
around = arm.Obstacles.spheres(balls[:, None], RADIUS)
began = time.perf_counter()
motion = control.simulate(start, target[:, None], STEPS, obstacles=around)
took = time.perf_counter() - began

keeps = (motion.distance > MARGIN - 1e-3).all(axis=1)
held_up = np.isin(motion.reason, [arm.RateReason.PUSHED, arm.RateReason.INSIDE])
off = np.abs(fk(motion.q[:, -1]) - target).max(axis=(1, 2))
print(f"{motion.reason.size} steps, {1e6 * took / motion.reason.size:.1f} us each")
for reason, count in motion.summary().items():
    print(f"{count:8} {reason}")
print(
    f"{keeps.sum()} of {len(keeps)} cells kept the margin; {(off < 1e-2).sum()} arrived"
)

assert len(start) > 500
assert keeps.mean() > 0.98
assert held_up[~keeps].any(axis=1).all()
assert (motion.q >= lower).all()
assert (motion.q <= upper).all()
change = np.abs(np.diff(motion.qd, axis=1)).max()
assert change <= ACCELERATION / RATE * (1 + 1e-9)

# What a learner needs: where it was, what was asked and near, what it did, and why.
step, data = slice(None, None, 10), "cells.npz"  # 20 instants a second
np.savez_compressed(
    data,
    time=motion.time[:-1][step],
    q=motion.q[keeps, :-1][:, step],
    qd=motion.qd[keeps, 1:][:, step],
    reason=motion.reason[keeps][:, step],
    distance=motion.distance[keeps][:, step],
    target=target[keeps],
    balls=balls[keeps],
)
with np.load(data) as read:
    q, qd, reason = read["q"], read["qd"], read["reason"]
    around = arm.Obstacles.spheres(read["balls"], RADIUS)
    again = control(q[:, 0], 0 * q[:, 0], read["target"], obstacles=around)
assert np.array_equal(again.qd, qd[:, 0])
assert np.array_equal(again.reason, reason[:, 0])
print(f"{data}: {len(q)} cells, {q.shape[1]} instants each")
for page in sys.argv[1:]:
    cell.export(page, motion=motion.row(0))
