"""Which links touch, painted red, and the nearest others with a line between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from armillary.collision.check import CollisionCheck, check_of
from armillary.collision.check_options import CheckOptions
from armillary.collision.contact import Contact
from armillary.collision.pairs import applied_rules
from armillary.collision.untested import nothing_text
from armillary.errors import ArmillaryError
from armillary.kinematics.state import State
from armillary.model.shapes.mesh import MeshSource
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["Contacts"]

NEAR: Final = 0.1  # [m]
MOST_LISTED: Final = 8
LINE: Final = (240, 140, 20)
NO_LINE: Final = np.zeros((1, 2, 3), np.float32)


class Contacts:
    """Contacts of the state that is shown, found by a thread of its own."""

    def __init__(self, session: Session) -> None:
        """Add the controls and start the thread."""
        self._session = session
        gui = session.server.gui
        with gui.add_folder("Distances", expand_by_default=False):
            self._is_on = gui.add_checkbox("show", True)
            self._within = gui.add_number(
                "within [m]", NEAR, min=0.0, step=0.01, hint="Pairs nearer than this"
            )
            self._list = gui.add_text("pairs", "", multiline=True, disabled=True)
        self._lines: Any = session.server.scene.add_line_segments(
            "/contacts",
            NO_LINE,
            LINE,
            thickness=3.0,
            thickness_units="screen",
            visible=False,
        )
        self._wanted: State | None = None
        self._wake = threading.Event()
        for control in (self._is_on, self._within):
            control.on_update(by_people(session, lambda: self.show(session.state)))
        threading.Thread(target=self._run, daemon=True).start()
        self.show(session.state)

    def show(self, state: State) -> None:
        """Ask for the contacts of a state."""
        self._wanted = state
        self._wake.set()

    def _run(self) -> None:
        while not self._session.closed.is_set():
            if not self._wake.wait(1.0):
                continue
            self._wake.clear()
            state = self._wanted
            if state is None:
                continue
            start = time.monotonic()
            try:
                self._draw(state)
            except ArmillaryError as error:
                nothing = frozenset[int](), list[Any](), str(error)
                self._session.draw(partial(self._show, *nothing))
            # Large cells leave most of the time to the scene.
            self._session.closed.wait(2.0 * (time.monotonic() - start))

    def _draw(self, state: State) -> None:
        """Find the contacts of a state, paint and list them."""
        session = self._session
        if not self._is_on.value:
            session.draw(lambda: self._show(frozenset(), [], ""))
            return
        check = check_of(session.cell, state, CheckOptions(meshes=session.meshes))
        contacts = check.contacts(state.q, within=max(float(self._within.value), 0.0))
        touching = {name for c in contacts if c.distance <= 0.0 for name in c.links}
        red = frozenset(session.cell.frame(name).link for name in touching)
        near = [c.points for c in contacts if np.isfinite(c.points).all()]
        text = "\n".join([*_untested(check, session.meshes), _listed(contacts)])
        session.draw(lambda: self._show(red, near, text))

    def _show(self, red: frozenset[int], lines: list[Any], text: str) -> None:
        self._session.scene.mark(red)
        self._lines.points = np.array(lines, np.float32) if lines else NO_LINE
        self._lines.visible = bool(lines)
        self._list.value = text


def _untested(check: CollisionCheck, meshes: MeshSource | None) -> Iterator[str]:
    """Yield what is not tested though no rule says so, a line each."""
    if not len(check.pairs):
        yield nothing_text(check.pairs)
    rules = applied_rules(check.cell, None, meshes)
    for name in rules.untested_manipulators(check.pairs):
        yield f"not tested: {name} against itself, see rules.include_self({name!r})"


def _listed(found: list[Contact]) -> str:
    lines = [
        f"{1e3 * c.distance:8.1f} mm  {c.links[0]} - {c.links[1]}"
        for c in found[:MOST_LISTED]
    ]
    if len(found) > MOST_LISTED:
        lines.append(f"and {len(found) - MOST_LISTED} more")
    return "\n".join(lines) or "none"
