"""A seam on a part that a positioner turns, as a program.

The joints of arm and positioner are those of one task: the torch goes along a line and
an arc on the part, and all of them share the motion. A signal says when the arc burns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import armillary as arm

steps = arm.steps

SPEED = 0.05  # of the torch along the seam [m/s]
ACCELERATION = 10.0  # of all joints [rad/s^2]

cell = arm.example("two_arms_positioner")
joints = [name for name in cell.joint_names if not name.startswith("right/")]


def program() -> arm.Program:
    """Return what arm and positioner do; targets are on the part."""
    above = cell.pose("left/tcp", cell.home, relative_to="seam")
    onto = above.copy()
    onto[:3, 3] += [0.0, 0.0, -0.05]

    def moved(x: float, y: float, z: float) -> np.ndarray:
        X = onto.copy()
        X[:3, 3] += [x, y, z]
        return X

    corner, end, away = moved(0, 0.15, 0), moved(0.05, 0.2, 0), moved(0.05, 0.2, 0.1)
    middle = moved(0.05 * (1 - 0.5**0.5), 0.15 + 0.05 * 0.5**0.5, 0)[:3, 3]
    on_part: Any = {"frame": "left/tcp", "relative_to": "seam"}
    weld = [
        steps.Linear(to=onto, **on_part, label="down"),
        steps.Set(signal="arc"),
        steps.Linear(
            to=[corner, arm.Arc(to=end, through=middle)],
            **on_part,
            speed=SPEED,
            label="seam",
        ),
        steps.Set(signal="arc", value=False),
        steps.Linear(to=away, **on_part, label="away"),
        steps.PTP(to="home", speed=0.5),
    ]
    return arm.Program({"weld": weld}, joints={"weld": joints})


if __name__ == "__main__":
    timeline = cell.run(program(), acceleration=ACCELERATION)
    print(timeline)
    assert timeline.success, timeline.failure
    assert timeline.duration < 6.0

    # The arc burns along the seam, for as long as the torch takes at its speed.
    on, off = (change.time for change in timeline.signals if change.time > 0.0)
    length = 0.15 + 0.05 * np.pi / 2
    print(f"{length:.4f} m of seam in {off - on:.3f} s")
    assert length / SPEED <= off - on < 1.01 * length / SPEED

    # On the part the torch keeps its height, by forward kinematics.
    fk = cell.fk("left/tcp", relative_to="seam")
    heights = fk(timeline.at(np.linspace(on, off, 200)).q)[:, 2, 3]
    assert np.ptp(heights) < 1e-5

    clearance, loads = timeline.clearance(), timeline.loads()
    print(clearance)
    assert clearance.is_free
    assert (loads.use < 1.0).all()
