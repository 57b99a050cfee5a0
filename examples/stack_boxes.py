"""A palletiser stacks boxes, and its cycle is tested.

A palletiser takes boxes from a table and stacks them on a pallet. The time of
the cycle is tested, and that boxes lie where they belong, and that nothing comes too
near. Then it asks where the pallet should stand: `python stack_boxes.py 10000` runs
so many layouts on all processors.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import armillary as arm

steps = arm.steps

SIDE, GAP = 0.3, 0.002  # of a box, and between what lies and what it lies on [m]
TABLE = (1.6, -0.9, 0.4)  # the middle of its top [m]
PALLET = (1.5, 0.9, 0.15)  # of the pallet's top [m]
LAYERS, COLUMNS = 2, 2
LIMITS: Any = {"velocity": 2.0, "acceleration": 6.0}  # of the motors [rad/s, rad/s^2]
DOWN = arm.Pose.rotation_y(np.pi)


def slab(name: str, size: tuple[float, float, float]) -> arm.Manipulator:
    """Return something flat, whose frame `top` is the middle of its upper side."""
    shape = arm.shapes.Box(size=size, pose=arm.Pose.translation(0, 0, -size[2] / 2))
    top = arm.Frame(name="top")
    link = arm.Link(name="slab", collisions=[shape], frames=[top])
    return arm.Manipulator(name=name, links=[link])


(robot,) = arm.example("palletiser").manipulators
shape = arm.shapes.Box(size=(SIDE, SIDE, SIDE))
boxes = [
    arm.Manipulator(name=f"box{k}", links=[arm.Link(name="body", collisions=[shape])])
    for k in range(1, LAYERS * COLUMNS + 1)
]
cell = arm.Cell(
    name="stack of boxes",
    manipulators=[
        robot,
        slab("table", (0.4, 0.4, 0.1)),
        slab("pallet", (0.8, 0.8, 0.15)),
        *boxes,
    ],
)


def above(height: float) -> arm.Pose:
    """Return a pose of the flange at a height above the middle of a box."""
    return arm.Pose.translation(0, 0, height + SIDE / 2) @ DOWN


def program() -> arm.Program:
    """Return what the cell does; places are those of the table and the pallet."""
    work: list[steps.AnyStep] = []
    for k, box in enumerate(boxes):
        layer, column = divmod(k, COLUMNS)
        pick = arm.Pose.translation(0, 0, SIDE / 2 + GAP)
        y = (column - (COLUMNS - 1) / 2) * (SIDE + 0.02)
        put = arm.Pose.translation(0, y, SIDE / 2 + GAP + layer * (SIDE + GAP))
        at_table: Any = {"frame": "flange", "relative_to": "table/top"}
        at_pallet: Any = {"frame": "flange", "relative_to": "pallet/top"}
        work += [
            steps.Appear(part=box.name, at=pick, relative_to="table/top"),
            steps.PTP(to=pick @ above(0.2), **at_table),
            steps.Linear(to=pick @ above(GAP), **at_table),
            steps.Grip(part=box.name, by="flange"),
            steps.Linear(to=pick @ above(0.6), **at_table, label="lift"),
            steps.PTP(to=put @ above(0.3), **at_pallet, label="across"),
            steps.Linear(to=put @ above(GAP), **at_pallet, label="put"),
            steps.Release(part=box.name, onto="pallet/top"),
            steps.Linear(to=put @ above(0.2), **at_pallet),
        ]
    return arm.Program({"palletiser": work}, absent=tuple(box.name for box in boxes))


def layout(pallet: tuple[float, float, float] = PALLET) -> arm.State:
    """Return the state with the table and the pallet at their places."""
    state = cell.home.place("table", arm.Pose.translation(*TABLE))
    return state.place("pallet", arm.Pose.translation(*pallet))


WORK = program()


def cycle(places: np.ndarray) -> np.ndarray:
    """Return the time of the cycle [s] for places (n, 2) of the pallet; NaN if none."""
    states = [layout((x, y, PALLET[2])) for x, y in places.tolist()]
    timelines = cell.runs(WORK, states, **LIMITS)  # faster together than one by one
    return np.array([t.duration if t.success else np.nan for t in timelines])


if __name__ == "__main__":
    timeline = cell.run(WORK, layout(), **LIMITS)
    print(timeline)
    assert timeline.success, timeline.failure
    print(f"{timeline.duration:.3f} s for {len(boxes)} boxes")
    assert timeline.duration < 14.0

    # All boxes are on the pallet, layer by layer.
    end = timeline.state(timeline.duration)
    for k, box in enumerate(boxes):
        assert end.parent(box.name) == "pallet/top"
        height = cell.pose(f"{box.name}/body", end)[2, 3] - PALLET[2]
        layer = k // COLUMNS
        assert abs(height - SIDE / 2 - GAP - layer * (SIDE + GAP)) < 1e-6, k

    # It is proven for all instants, though rods close loops in the arm.
    clearance = timeline.clearance()
    print(clearance)
    assert clearance.is_free
    assert clearance.distance > 0.4 * GAP

    # Where should the pallet stand? The cycle is asked for many places of it.
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    lower, upper = np.array(PALLET[:2]) - 0.15, np.array(PALLET[:2]) + 0.15
    places = np.random.default_rng(0).uniform(lower, upper, (count, 2))
    best = arm.sweep(
        cycle,
        places,
        reduce=arm.sweeps.Best(of="cycle", least=True),
        executor="threads" if count < 100 else "processes",
    )
    (x, y), value = places[best["row"][0]], best["value"][0]
    print(f"the best of {count} places: {value:.3f} s at ({x:.3f}, {y:.3f})")
    assert cycle(np.array([[x, y]])) == value
