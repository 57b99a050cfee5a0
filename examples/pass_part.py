"""Two arms meet to pass a part from one to the other, and keep apart otherwise.

One task says where one tool is relative to the other: both arms share the motion. The
second keeps the place of their meeting at a height.
`python pass_part.py part.html` writes a page that shows the meeting.
"""

from __future__ import annotations

import sys

import numpy as np

import armillary as arm
from armillary import tasks

RATE, MARGIN, ACCELERATION = 250.0, 0.01, 15.0  # [1/s], [m], [rad/s^2]
GAP = 0.06  # between the tools where the part changes hands [m]

cell = arm.example("two_arms_positioner")
between = cell.fk("left/tcp", relative_to="right/tcp")
start = cell.home.q
control = cell.controller(
    [
        tasks.Frame("left/tcp", relative_to="right/tcp", speed=0.3, turn_speed=1.0),
        tasks.Position("left/tcp", axes="yz", weight=0.1),
        tasks.Posture(),
    ],
    avoid=cell.collision(margin=MARGIN),
    acceleration=ACCELERATION,
    rate=RATE,
    joints=cell.joint_names[:12],
)
apart = between(start)
meeting = apart.copy()
meeting[:3, 3] = [0.0, 0.0, GAP]  # face to face
place = [0.0, 0.05, 0.64]  # of which y and z count [m]

together = control.simulate(start, [meeting, place, None], 1000)
back = control.simulate(together.q[-1], [apart, place, None], 1000, qd=together.qd[-1])
closer = meeting.copy()
closer[2, 3] = 0.0  # one torch in the other
never = control.simulate(together.q[-1], [closer, place, None], 500)
for name, motion in {"meeting": together, "parting": back, "too near": never}.items():
    gap = between(motion.q[-1])[2, 3]
    print(f"{name:9} {gap:.4f} m between the tools at the end; {motion.summary()}")
    print(f"{'':9} least distance {1e3 * motion.distance.min():.2f} mm")
print("in the way:", never.active[-1])

assert np.abs(between(together.q[-1]) - meeting).max() < 1e-4
assert np.abs(between(back.q[-1]) - apart).max() < 1e-4
assert never.reason[-1] == arm.RateReason.BLOCKED
for motion in (together, back, never):
    assert motion.distance.min() > MARGIN - 5e-4
    assert (np.abs(motion.qd) <= cell.velocity_limits).all()
for page in sys.argv[1:]:
    cell.export(page, motion=together)
