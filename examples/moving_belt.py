"""Pick and place from a moving conveyor with a delta robot.

Products come along a conveyor at random distances. A light barrier tells the robot that
one comes; it meets the product, goes down with it, grips it, and puts it into a tray
beside the conveyor. The cycle is tested: all products are placed, none is missed, and
the robot keeps away from everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import armillary as arm

steps = arm.steps

COUNT, SPEED = 4, 0.3  # products, and the speed of the conveyor [m/s]
BELT = -1.1  # the height of its surface [m]
SIZE = 0.05  # of a product [m]
FROM, BEAM = -0.9, -0.55  # along the conveyor: where products appear, and the beam [m]
TRAY = (0.0, 0.27)  # the middle of the tray [m]
GAP = 0.001  # between what lies and what it lies on [m]
FAST: Any = {"velocity": 12.0, "acceleration": 150.0}  # of the arms [rad/s, rad/s^2]

(robot,) = arm.example("delta").manipulators
bed = arm.shapes.Box(size=(2.4, 0.3, 0.1), pose=arm.Pose.translation(0, 0, BELT - 0.05))
conveyor = arm.Manipulator(
    name="conveyor",
    links=[
        arm.Link(name="bed", collisions=[bed]),
        arm.Link(
            name="carrier", parent="bed", joint=arm.joints.Prismatic(axis=(1, 0, 0))
        ),
    ],
)
tray = arm.Manipulator(
    name="tray",
    links=[
        arm.Link(
            name="plate",
            collisions=[
                arm.shapes.Box(
                    size=(0.3, 0.2, 0.02),
                    pose=arm.Pose.translation(*TRAY, BELT - 0.01),
                )
            ],
        )
    ],
)
block = arm.Link(name="body", collisions=[arm.shapes.Box(size=(SIZE, SIZE, SIZE))])
products = [
    arm.Manipulator(name=f"product{k}", links=[block]) for k in range(1, COUNT + 1)
]
cell = arm.Cell(name="moving belt", manipulators=[robot, conveyor, tray, *products])

DOWN = arm.Pose.rotation_x(np.pi)
MIDDLE = BELT + GAP + SIZE / 2  # the height of the middle of a product [m]


def above(height: float) -> arm.Pose:
    """Return a pose of the flange above the middle of a product."""
    return arm.Pose.translation(0, 0, SIZE / 2 + height) @ DOWN


def tray_place(k: int) -> arm.Pose:
    """Return where a product is put: the far row first, so that none is passed over."""
    x, y = TRAY[0] + 0.06 * (k % 2) - 0.03, TRAY[1] + 0.03 - 0.06 * (k // 2)
    return arm.Pose.translation(x, y, MIDDLE)


def program(beam: float = BEAM, count: int = COUNT) -> arm.Program:
    """Return what the cell does, with the light barrier at a place [m]."""
    rng = np.random.default_rng(0)
    source: list[steps.AnyStep] = [steps.Drive(joint="conveyor/carrier", speed=SPEED)]
    picks: list[steps.AnyStep] = []
    for k in range(count):
        product, frame = f"product{k + 1}", "flange"
        put = tray_place(k)
        at = arm.Pose.translation(FROM, rng.uniform(-0.06, 0.06), MIDDLE)
        source += [
            steps.Appear(part=product, at=at, on="conveyor/carrier"),
            steps.Wait(seconds=rng.uniform(1.4, 1.8)),
        ]
        body = f"{product}/body"
        picks += [
            steps.WaitFor(signal="beam"),
            steps.PTP(to=above(0.05), frame=frame, relative_to=body, label="meet"),
            steps.Linear(to=above(GAP), frame=frame, relative_to=body, label="down"),
            steps.Wait(seconds=0.05, label="suck"),
            steps.Grip(part=product, by=frame),
            steps.Linear(to=above(0.1), frame=frame, relative_to=body, label="lift"),
            steps.PTP(to=put @ above(0.1), frame=frame, label="over"),
            steps.Linear(to=put @ above(GAP), frame=frame, label="put"),
            steps.Release(part=product),
            steps.Linear(to=put @ above(0.1), frame=frame, label="up"),
            steps.PTP(to="home"),
        ]
    across = arm.shapes.Box(
        size=(0.002, 0.4, 0.002), pose=arm.Pose.translation(beam, 0, MIDDLE)
    )
    return arm.Program(
        {"source": source, "delta": picks},
        sensors={"beam": arm.Sensor(shape=across)},
        absent=tuple(product.name for product in products),
    )


if __name__ == "__main__":
    timeline = cell.run(program(), **FAST)
    print(timeline)
    print(f"{timeline.duration:.3f} s for {COUNT} products")
    assert timeline.success, timeline.failure
    assert timeline.duration < 7.0

    # All products lie in the tray, each at its place.
    end = timeline.state(timeline.duration)
    for k, product in enumerate(products):
        place = cell.pose(f"{product.name}/body", end)[:3, 3]
        assert np.allclose(place, tray_place(k).position, atol=1e-6), (k, place)

    # It is gripped while it moves with the conveyor: the flange is as fast as that.
    for span in timeline.spans:
        if span.name == "Grip":
            moved = [
                cell.pose("flange", timeline.state(span.start - t))[0, 3]
                for t in (2e-3, 1e-3)
            ]
            assert abs(np.diff(moved)[0] / 1e-3 - SPEED) < 1e-6

    # It is proven for all instants, though the rods of the robot close loops.
    clearance = timeline.clearance()
    print(clearance)
    assert clearance.is_free
    assert clearance.distance > GAP - 1e-6

    # A light barrier 75 mm farther along: the first product is met 0.25 s later.
    later = cell.run(program(beam=BEAM + 0.075, count=1), **FAST)
    first = cell.run(program(count=1), **FAST)
    met, meets = (
        next(span.start for span in line.spans if span.name == "meet")
        for line in (first, later)
    )
    print(f"met {meets - met:.6f} s later")
    assert abs(meets - met - 0.25) < 1e-9
