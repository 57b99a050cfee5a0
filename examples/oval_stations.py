"""An arm on an oval track serves three stations, and its cycle is tested.

The cart drives to each station while the arm moves to its pose there: rail and arm are
one task. At a station the tool goes down along a line, works, and comes up again.
"""

from __future__ import annotations

import numpy as np

import armillary as arm

steps = arm.steps

WORK = 1.5  # how long the work at a station takes [s]

cell = arm.example("ur5e_on_oval")
ACCELERATION = dict.fromkeys(cell.joint_names, 8.0)  # of the arm [rad/s^2]
ACCELERATION["track/cart"] = 1.0  # [m/s^2]
READY = np.array([-1.6, -1.9, -1.6, -1.2, 1.57, 0.0])  # of the arm [rad]
STATIONS = {"load": 0.0, "test": 4.0, "unload": 8.5}  # places along the track [m]


def at(place: float) -> np.ndarray:
    """Return the joints with the cart at a place, and the arm ready."""
    return np.concatenate([[place], READY])


def program() -> arm.Program:
    """Return one round of the stations, and the way back to the first."""
    fk = cell.fk("tool0")
    round_trip: list[steps.AnyStep] = []
    length = cell.manipulators[0].links[1].joint.period
    assert length is not None
    for name, place in STATIONS.items():
        above = fk(at(place))
        below = above.copy()
        below[2, 3] -= 0.1
        round_trip += [
            steps.PTP(to=at(place), label=name),
            steps.Linear(to=below, frame="tool0", speed=0.2),
            steps.Wait(seconds=WORK, label=f"{name}: work"),
            steps.Linear(to=above, frame="tool0", speed=0.2),
        ]
    round_trip.append(steps.PTP(to=at(length), label="back"))
    return arm.Program({"arm": round_trip}, joints={"arm": cell.joint_names})


if __name__ == "__main__":
    start = cell.home.replace(q=at(0.0))
    timeline = cell.run(program(), start, acceleration=ACCELERATION)
    print(timeline)
    assert timeline.success, timeline.failure
    print(f"{timeline.duration:.3f} s for {len(STATIONS)} stations")
    assert timeline.duration < 21.0

    # From station to station the cart takes as long as it must, with 2 m/s and 1 m/s^2;
    # it moves by less than a millimetre in lines, of which it is a seventh joint.
    spans = {span.name: span for span in timeline.spans}
    for name, way in (("test", 4.0), ("unload", 4.5)):
        took = spans[name].end - spans[name].start
        assert abs(took - (way / 2.0 + 2.0)) < 1e-3, (name, took)

    # The tool works 0.1 m below where the arm is ready, at each station.
    fk = cell.fk("tool0")
    for name, place in STATIONS.items():
        X = fk(timeline.state(spans[f"{name}: work"].start + 0.5 * WORK).q)
        assert np.allclose(X[:3, 3], fk(at(place))[:3, 3] - [0, 0, 0.1], atol=1e-8)

    # The cell has no shapes: nothing is tested, and clearance says so.
    assert timeline.clearance().distance == np.inf
