"""A button that plans a motion that touches nothing, and has it played."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import check_of
from armillary.collision.check_options import CheckOptions
from armillary.collision.untested import nothing_text
from armillary.errors import ArmillaryError
from armillary.kinematics.postures import in_posture, posture_names
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.planning.plan import Plan
from armillary.planning.planner import planner
from armillary.trajectories.motion import Motion
from armillary.view.motion import motion_of
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["PlanControls", "motion_limits"]

Array = npt.NDArray[np.float64]

SHOWN: Final = "the shown state"
"""What people choose to go from the start that they set to where the cell is now."""
TIMEOUT: Final = 5.0
"""How long a search may take [s]."""
RATE, ACCELERATION = 1.0, 5.0
"""Limits of joints that have none, as in many files [m/s or rad/s, and per second]."""


class PlanControls:
    """Where a motion starts and ends, and what came of planning it."""

    def __init__(self, session: Session) -> None:
        """Add the controls, if the cell has joints."""
        self._session = session
        self._start: State | None = None
        self._running = threading.Lock()
        if not session.cell.joint_names:
            return
        gui = session.server.gui
        with gui.add_folder("Plan a motion", expand_by_default=False):
            self._to = gui.add_dropdown(
                "to",
                (SHOWN, *posture_names(session.cell)),
                hint="A posture, from the shown state on; or the shown state, from "
                "where 'Start here' was pressed.",
            )
            self._margin = gui.add_number(
                "margin [m]", 0.0, min=0.0, step=0.001, hint="Nearer counts as touching"
            )
            self._do = gui.add_button_group("", ("Start here", "Plan"))
            self._said = gui.add_text("answer", "", multiline=True, disabled=True)
        self._do.on_click(by_people(session, self._clicked))

    def show(self, state: State) -> None:
        """A plan stays as it was made."""

    def _clicked(self) -> None:
        match self._do.value:
            case "Start here":
                self._start = self._session.state
                self._to.value = SHOWN
                self._said.value = "move the joints to the goal, then press Plan"
            case _:
                self._plan()

    def _plan(self) -> None:
        """Plan in a thread of its own, so that the scene goes on."""
        state, to = self._session.state, self._to.value
        start, goal = state, state
        if to != SHOWN:
            goal = in_posture(state, to)
        elif self._start is not None:
            start = state.replace(q=self._start.q)
        else:
            self._said.value = "press 'Start here', then move the joints to the goal"
            return
        if not self._running.acquire(blocking=False):
            return
        self._said.value = "planning"
        given = start, goal, max(float(self._margin.value), 0.0)
        threading.Thread(target=self._run, args=given, daemon=True).start()

    def _run(self, start: State, goal: State, margin: float) -> None:
        session, motion = self._session, None
        try:
            said, motion = _planned(session, start, goal, margin)
        except ArmillaryError as error:
            said = str(error)
        finally:
            self._running.release()

        def show() -> None:
            self._said.value = said
            if motion is not None:
                played = motion_of(start, motion, times=None, rate=None)
                session.play(played, play=True, trace=True)

        session.draw(show)


def _planned(
    session: Session, start: State, goal: State, margin: float
) -> tuple[str, Motion | None]:
    """Return what is said of a plan, and its motion if there is one."""
    cell = session.cell
    options = CheckOptions(meshes=session.meshes, margin=margin)
    check = check_of(cell, start, options)
    plan = planner(cell, check)(start, goal, timeout=TIMEOUT)
    if not plan.success:
        return "\n".join(_why(plan)), None
    limits: dict[str, Any] = {**motion_limits(cell)}
    motion = plan.timed(**limits)
    how = "proven to be free" if plan.proven else "free at samples"
    lines = [f"{motion.duration:.2f} s, {len(plan.q)} way points", how]
    if not len(check.pairs):
        lines.append(nothing_text(check.pairs))
    return "\n".join(lines), motion


def _why(plan: Plan) -> list[str]:
    """Return why there is no way, and what touches, a line each."""
    lines = [plan.reason.sentence, *plan.joints]
    return lines + [f"{a} - {b}" for a, b in (c.links for c in plan.pairs)]


def motion_limits(cell: Workcell) -> dict[str, Array]:
    """Return the limits of a cell, and those of ours for joints that have none."""
    limits = {
        "velocity": (cell.velocity_limits, RATE),
        "acceleration": (cell.joints.acceleration_limits, ACCELERATION),
    }
    return {
        name: np.where(np.isfinite(own) & (own > 0.0), own, other)
        for name, (own, other) in limits.items()
    }
