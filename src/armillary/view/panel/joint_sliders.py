"""Sliders: one for each joint, in a folder for each manipulator, with its postures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from armillary.kinematics.postures import postures_of
from armillary.kinematics.state import State
from armillary.model.manipulator import Manipulator
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.view.panel.events import by_people
from armillary.view.session import Session

if TYPE_CHECKING:
    import viser

__all__ = [
    "JointSliders",
    "is_angle",
    "joint_folders",
    "label_of",
    "slider_of",
]

STEPS: Final = {Unit.RADIAN: 1e-3, Unit.METRE: 1e-4, Unit.OTHER: 1e-3}
WIDEST: Final = {Unit.RADIAN: 2.0 * math.pi, Unit.METRE: 10.0, Unit.OTHER: 10.0}
"""How far a slider without limits goes to each side."""
MINUS: Final = "\N{MINUS SIGN}"  # at which lines do not break
FARTHEST: Final = 100.0
"""A limit beyond so many times `WIDEST` stands for no limit in many files."""
OPEN_AT_FIRST: Final = 12
"""Folders of cells with more joints than this are closed at first."""


class JointSliders:
    """The joints of a cell; sliders end at their limits.

    Where limits couple joints, a slider goes back to where the others let its joint be.
    """

    def __init__(self, session: Session) -> None:
        """Add a folder for each manipulator with joints."""
        self._session = session
        self._sliders: list[Any] = []
        self._agreed: list[float] = []
        """The positions that sliders had when they last agreed with the state."""
        for manipulator, joints in joint_folders(session.server, session.cell):
            self._add_postures(manipulator)
            for k in joints:
                self._add_slider(k)

    def show(self, state: State) -> None:
        """Move the sliders to the joint positions, but for those people move now."""
        for k, q in enumerate(state.q.tolist()):
            slider = self._sliders[k]
            if q != self._agreed[k] == slider.value:
                _make_room(slider, q)
                self._agreed[k] = slider.value = q
            label = label_of(self._session.cell, k, q)
            if label != slider.label:
                slider.label = label

    def _add_slider(self, k: int) -> None:
        q = float(self._session.state.q[k])
        slider = self._session.server.gui.add_slider(
            **slider_of(self._session.cell, k, q)
        )
        slider.on_update(by_people(self._session, partial(self._moved, k), newest=True))
        self._sliders.append(slider)
        self._agreed.append(q)

    def _moved(self, k: int) -> None:
        state = self._session.state
        q = state.q.tolist()
        wanted = self._agreed[k] = float(self._sliders[k].value)
        least, most = self._session.cell.limit_rows.ends(k, state.q)
        if least <= most:  # else other joints, which are not moved, leave it no room
            q[k] = min(max(wanted, least), most)
        else:
            q[k] = wanted
        self._session.change(state.replace(q=q))

    def _add_postures(self, manipulator: Manipulator) -> None:
        postures = postures_of(manipulator)
        if not postures:
            return
        chosen = self._session.server.gui.add_button_group("Posture", tuple(postures))

        def go() -> None:
            state = self._session.state
            self._session.change(state.joints(postures[chosen.value]))

        chosen.on_click(by_people(self._session, go))


def joint_folders(
    server: viser.ViserServer, cell: Workcell
) -> Iterator[tuple[Manipulator, range]]:
    """Yield manipulators with joints, and their numbers in q, each in a new folder."""
    is_open = len(cell.joint_names) <= OPEN_AT_FIRST
    end = 0
    for manipulator in cell.manipulators:
        joints = range(end, end + len(manipulator.joint_names))
        end = joints.stop
        if joints:
            with server.gui.add_folder(manipulator.name, expand_by_default=is_open):
                yield manipulator, joints


def slider_of(cell: Workcell, k: int, q: float) -> dict[str, Any]:
    """Return the arguments of the slider of a joint, which is now at q [m or rad]."""
    unit, name = _unit_of(cell, k), cell.joint_names[k]
    lower, upper = (float(each[k]) for each in cell.limits)
    most = WIDEST[unit]
    ends = -most, most
    if abs(lower) <= FARTHEST * most:
        ends = lower, most if lower < most else lower + most
    if abs(upper) <= FARTHEST * most:
        ends = ends[0] if ends[0] < upper else upper - most, upper
    if not ends[0] < ends[1]:  # one position only, or far away
        ends = lower, upper
    return {
        "label": label_of(cell, k, q),
        "min": min(ends[0], q),
        "max": max(ends[1], q),
        "step": min(STEPS[unit], (ends[1] - ends[0]) / 100) or STEPS[unit],
        "initial_value": q,
        "hint": f"{name}: {_range(unit, lower, upper)}{_coupled(cell, k)}",
    }


def label_of(cell: Workcell, k: int, q: float | None) -> str:
    """Return the label of the slider of a joint.

    q: Its position [m or rad]; an angle is also shown in degrees. None to leave it out.
    """
    text = f"{cell.joint_names[k].rpartition('/')[2]} [{_unit_of(cell, k).value}]"
    if q is None or not is_angle(cell, k):
        return text
    degrees = f"{round(math.degrees(q), 1) + 0.0:.1f}"  # not -0.0
    return f"{text} {degrees.replace('-', MINUS)}\N{DEGREE SIGN}"


def is_angle(cell: Workcell, k: int) -> bool:
    """Return whether the position of a joint is an angle."""
    return _unit_of(cell, k) is Unit.RADIAN


def _unit_of(cell: Workcell, k: int) -> Unit:
    return cell.links[cell.joints.links[k]].joint.unit


def _range(unit: Unit, lower: float, upper: float) -> str:
    """Return limits as people read them: angles in degrees too."""
    if math.isinf(lower) and math.isinf(upper):
        return "no limits"
    text = f"{lower:g} to {upper:g} {unit.value}"
    if unit is not Unit.RADIAN:
        return text
    return f"{text} ({math.degrees(lower):g} to {math.degrees(upper):g} degrees)"


def _coupled(cell: Workcell, k: int) -> str:
    """Return the limits that couple a joint with others, as the end of a hint."""
    rows = cell.limit_rows
    counts = zip(rows.labels, rows.A[:, k] != 0.0, strict=True)
    labels = dict.fromkeys(label for label, is_one in counts if is_one)
    return f"; with others: {', '.join(labels)}" if labels else ""


def _make_room(slider: Any, q: float) -> None:
    """Widen a slider for a position beyond its ends."""
    if q < slider.min:
        slider.min = q
    elif q > slider.max:
        slider.max = q
