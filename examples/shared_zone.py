"""Two arms weld at one part in turn: a zone keeps them apart.

Both arms come from the sides, weld for a while at the middle of the part, and go home.
Without the zone their torches would meet; with it, one waits for the other, and the
cell is proven to keep its clearance.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

steps = arm.steps

WELD = 0.8  # how long a weld takes [s]
SPOT = (0.0, 0.0, 0.7)  # where both weld, each to 10 mm beyond its middle [m]
ACCELERATION = 15.0  # of all joints [rad/s^2]

# The arms stand nearer to each other than in the example, so that both reach the spot.
placed = {
    "left": arm.Pose.translation(0.78, 0, 0) @ arm.Pose.rotation_z(np.pi),
    "right": arm.Pose.translation(-0.78, 0, 0),
}
given = arm.example("two_arms_positioner")
cell = given.replace(
    mounts=[
        arm.Mount(manipulator=each.manipulator, pose=placed[each.manipulator])
        if each.manipulator in placed
        else each
        for each in given.mounts
    ]
)


def work(side: str) -> list[steps.AnyStep]:
    """Return what an arm does: near the spot, to it, weld, back again, and home."""
    X = cell.pose(f"{side}/tcp", cell.home)
    X[:3, 3] = SPOT
    spot = arm.Pose.from_matrix(X) @ arm.Pose.translation(0, 0, 0.01)
    near = spot @ arm.Pose.translation(0, 0, -0.12)
    frame = f"{side}/tcp"
    return [
        steps.PTP(to=near, frame=frame),
        steps.Linear(to=spot, frame=frame, speed=0.25),
        steps.Wait(seconds=WELD, label="weld"),
        steps.Linear(to=near, frame=frame, speed=0.25),
        steps.PTP(to="home"),
    ]


def program(*, with_zone: bool = True) -> arm.Program:
    """Return what both arms do."""
    tasks = {}
    for side in ("left", "right"):
        whole = work(side)
        tasks[side] = [steps.Zone(zone="part", steps=whole)] if with_zone else whole
    return arm.Program(tasks)


if __name__ == "__main__":
    timeline = cell.run(program(), acceleration=ACCELERATION)
    print(timeline)
    assert timeline.success, timeline.failure
    clearance = timeline.clearance()
    print(clearance)
    assert clearance.is_free
    assert clearance.distance > 0.01
    assert (timeline.loads().use < 1.0).all()

    # Without the zone both are done in half of the time, and touch.
    at_once = cell.run(program(with_zone=False), acceleration=ACCELERATION)
    touching = at_once.clearance()
    print(f"without the zone: {at_once.duration:.3f} s, {touching}")
    assert at_once.duration < 0.51 * timeline.duration
    assert touching.distance < 0.0

    # One waits for the other, which is the critical path.
    waits = [span for span in timeline.spans if span.waited_for]
    assert [span.waited_for for span in waits] == ["zone 'part'"]
    assert {span.task for span in timeline.critical_path} == {"left", "right"}
