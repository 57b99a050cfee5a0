"""Charts of a motion in the panel: a cursor, and a choice of steps to go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from armillary.errors import printable, shortened
from armillary.view.chart import Chart, escaped
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["PanelCharts"]

WIDTH: Final = 345.0
"""Of charts in the panel [pixels]."""
NO_STEP: Final = "-"


class PanelCharts:
    """The charts of the motion that is played."""

    def __init__(
        self, session: Session, folder: Any, go_to: Callable[[float], None]
    ) -> None:
        """Start without charts; `go_to` shows an instant."""
        self._session, self._folder, self._go_to = session, folder, go_to
        self._handles: list[Any] = []
        self._cursors: list[tuple[Any, Chart]] = []
        self._times: dict[str, float] = {}
        self._chosen: Any = None

    def load(self, charts: tuple[Chart, ...]) -> None:
        """Show charts in place of the ones before."""
        gui: Any = self._session.server.gui
        for handle in self._handles:
            handle.remove()
        self._handles, self._cursors = [], []
        if not charts:
            return
        self._times = {NO_STEP: 0.0}
        for step in charts[0].steps:
            name = f"{step.start:.3f} s  {step.manipulator}: {step.name}"
            self._times.setdefault(printable(shortened(name)), step.start)
        for mark in charts[0].marks:
            name = f"{mark.time:.3f} s  {mark.what}"
            self._times.setdefault(printable(shortened(name)), mark.time)
        with self._folder:
            self._chosen = gui.add_dropdown(
                "go to", tuple(self._times), initial_value=NO_STEP
            )
            self._chosen.on_update(by_people(self._session, self._go))
            self._handles.append(self._chosen)
            for chart in charts:
                if len(charts) > 1:
                    self._handles.append(gui.add_html(f"<b>{escaped(chart.title)}</b>"))
                cursor = gui.add_html("")
                self._cursors.append((cursor, chart))
                self._handles += [cursor, gui.add_html(chart.svg(WIDTH))]

    def show(self, time: float) -> None:
        """Put the cursors at a time [s]."""
        for handle, chart in self._cursors:
            x, height = chart.place(time, WIDTH)
            handle.content = (
                '<div style="position:relative;height:0"><div style="position:absolute;'
                f"left:{100.0 * x / WIDTH:.2f}%;top:0;height:{height:.0f}px;width:2px;"
                'background:#111;z-index:1"></div></div>'
            )

    def _go(self) -> None:
        name = self._chosen.value
        if name != NO_STEP:
            self._go_to(self._times[name])
