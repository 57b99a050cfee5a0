"""A torch follows a seam; the positioner turns the seam so that a clamp is avoided.

The target of the torch is given relative to the seam, which the positioner moves: arm
and positioner share the motion. The clamp is a capsule that no file knows of.
"""

from __future__ import annotations

import numpy as np

import armillary as arm
from armillary import tasks

RATE, MARGIN, ACCELERATION = 250.0, 0.01, 15.0  # [1/s], [m], [rad/s^2]
SPEED, LENGTH = 0.04, 0.2  # along the seam [m/s], [m]

cell = arm.example("two_arms_positioner")
fk = cell.fk("left/tcp", relative_to="seam")
start = np.array(cell.home.q)
moving = [name for name in cell.joint_names if not name.startswith("right/")]
control = cell.controller(
    [
        tasks.Frame(
            "left/tcp", relative_to="seam", rotation="xy", axes="left/tcp", speed=0.2
        ),
        tasks.Posture(),
    ],
    avoid=cell.collision(margin=MARGIN),
    acceleration=ACCELERATION,
    rate=RATE,
    joints=moving,
)


def torch(time: float) -> np.ndarray:
    """Return the pose of the torch in the seam: two seconds to approach, then along."""
    target = fk(start).copy()
    along = np.clip(SPEED * (time - 2.0), 0.0, LENGTH) - LENGTH / 2
    target[:3, 3] = [0.08, along, 0.08]
    return target


clamp = arm.Obstacles(ends=[[[0.2, 0.2, 0.62], [0.2, 0.2, 0.8]]], radii=0.03)
steps = int(RATE * (2.0 + LENGTH / SPEED + 1.0))
found = {}
for name, obstacles in {"without": None, "with": clamp}.items():
    motion = control.simulate(start, [torch, None], steps, obstacles=obstacles)
    wanted = np.array([torch(t) for t in motion.time])
    off = np.linalg.norm((fk(motion.q) - wanted)[:, :3, 3], axis=1)
    welding = motion.time > 2.0
    turned = np.degrees(np.ptp(motion.q[:, -2:], axis=0))
    print(f"{name} the clamp: {motion.summary()}")
    print(f"    torch at most {1e3 * off[welding].max():.2f} mm behind on the seam")
    print(f"    least distance {1e3 * motion.distance.min():.2f} mm")
    print(
        f"    positioner tilts by {turned[0]:.1f} and turns by {turned[1]:.1f} degrees"
    )
    found[name] = motion, off[welding].max()

for motion, lag in found.values():
    assert motion.distance.min() > MARGIN - 5e-4
    assert lag < 1.01 * SPEED / 10.0  # an error fades as exp(-10 t)
    assert np.abs(fk(motion.q[-1])[:3, 3] - wanted[-1, :3, 3]).max() < 1e-4
alone, beside = (motion for motion, _ in found.values())
assert arm.RateReason.AVOIDING not in alone.reason
assert arm.RateReason.AVOIDING in beside.reason
assert np.ptp(beside.q[:, -2]) > 2 * np.ptp(alone.q[:, -2])
