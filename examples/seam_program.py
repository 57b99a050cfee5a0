"""A seam on a positioner as a program, with a cleaning station between two parts.

Arm and positioner are one task: the torch goes along a line and an arc on the part, and
both share the motion. The second arm holds a sensor, and looks at the seam in a zone.
"""

from __future__ import annotations

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
    on_part = {"frame": "left/tcp", "relative_to": "seam"}
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
    look = [
        steps.WaitFor(signal="arc"),
        steps.WaitFor(signal="arc", value=False),
        steps.Wait(seconds=0.2, label="cool"),
    ]
    return arm.Program({"weld": weld, "look": look}, joints={"weld": joints})


if __name__ == "__main__":
    timeline = cell.run(program(), acceleration=ACCELERATION)
    print(timeline)
    assert timeline.success, timeline.failure
    for s in timeline.spans: print(s.name, s.start, s.end)
