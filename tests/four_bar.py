"""A four-bar linkage in the plane, alone and between two manipulators."""

from __future__ import annotations

from typing import Any

import armillary as arm
from armillary import Closure, Frame, Link, Manipulator, Pose
from armillary.model.joints import Revolute

CRANK, COUPLER, ROCKER, GROUND = 0.1, 0.25, 0.2, 0.3


def moved(x: float) -> Pose:
    return Pose.translation(x, 0.0, 0.0)


def four_bar(name: str = "bar", **changes: Any) -> Manipulator:
    """Return the linkage; coupler and rocker are passive."""
    tip, end = (
        Frame(name="tip", pose=moved(COUPLER)),
        Frame(name="end", pose=moved(ROCKER)),
    )
    parts = {
        "links": [
            Link(name="ground"),
            Link(name="crank", parent="ground", joint=Revolute()),
            Link(
                name="coupler",
                parent="crank",
                joint=Revolute(precursor=moved(CRANK)),
                frames=[tip],
                passive=True,
            ),
            Link(
                name="rocker",
                parent="ground",
                joint=Revolute(precursor=moved(GROUND)),
                frames=[end],
                passive=True,
            ),
        ],
        "loops": [Closure("tip", "end", position="xy")],
    }
    return Manipulator(name=name, **{**parts, **changes})


def linked_arms(**changes: Any) -> arm.Cell:
    """Return the same linkage, of two manipulators."""
    whole = four_bar()
    drive = Manipulator(name="drive", links=whole.links[:3])
    swing = Manipulator(name="swing", links=[whole.links[0], whole.links[3]])
    loops = [Closure("tip", "end", position="xy")]
    return arm.Cell(manipulators=[drive, swing], **{"loops": loops, **changes})
