"""Play, pause, scrub and speed of the motion that a viewer was given."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import numpy as np

from armillary.kinematics.state import State
from armillary.view.motion import PlayedMotion, trace_of
from armillary.view.panel.charts import PanelCharts
from armillary.view.panel.events import by_people
from armillary.view.session import Session

__all__ = ["Playback"]

PERIOD: Final = 1 / 40  # [s] between two pictures
NO_LINES: Final = np.zeros((0, 2, 3), np.float32)
SPEEDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)


class Playback:
    """Controls that appear with the first motion.

    Attributes:
        time: The instant that is shown [s].
        is_playing: Whether it moves.
    """

    def __init__(self, session: Session) -> None:
        """Start without a motion."""
        self._session = session
        self._motion: PlayedMotion | None = None
        self._shown = session.state
        self._folder: Any = session.server.gui.add_folder("Motion", visible=False)
        self._slider: Any = None
        self._charts = PanelCharts(session, self._folder, self._chosen)
        self.time = 0.0
        self.is_playing = False
        with self._folder:
            self._play = session.server.gui.add_button("Pause")
            self._speed = session.server.gui.add_dropdown(
                "speed", tuple(f"{each:g}x" for each in SPEEDS), initial_value="1x"
            )
            self._loop = session.server.gui.add_checkbox("repeat", True)
            self._traced = session.server.gui.add_checkbox(
                "trace", False, hint="Draws the way of end effectors"
            )
        self._play.on_click(by_people(session, self._switch))
        self._traced.on_update(by_people(session, self._draw_trace))
        self._wake = threading.Event()
        session.play = self.load
        threading.Thread(target=self._run, daemon=True).start()

    def load(self, motion: PlayedMotion, *, play: bool, trace: bool = False) -> None:
        """Show a motion from its start; with `trace` also the way of end effectors."""
        with self._session.lock:
            self._motion = motion
            self._traced.value = trace
            self._draw_trace()
            self._session.scene.show_obstacles(motion.obstacles.surfaces)
            self.time = float(motion.times[0])
            if self._slider is not None:
                self._slider.remove()
            first, last = self.time, float(motion.times[-1])
            with self._folder:
                self._slider = self._session.server.gui.add_slider(
                    "time [s]",
                    min=first,
                    max=max(last, first + 1e-3),
                    step=1e-3,
                    initial_value=first,
                )
            self._slider.on_update(
                by_people(self._session, self._scrubbed, newest=True)
            )
            self._charts.load(motion.charts)
            self._folder.visible = True
            self._show_now()
            self._set_playing(play)

    def show(self, state: State) -> None:
        """Move the slider to the instant that is shown."""
        if state is not self._shown:  # people changed it
            self._session.scene.hide(frozenset())
        self._charts.show(self.time)
        if self._slider is not None and self.is_playing:
            self._slider.value = self.time

    def _draw_trace(self) -> None:
        assert self._motion is not None, "it was loaded"
        lines = trace_of(self._motion) if self._traced.value else NO_LINES
        self._session.scene.show_trace(lines)

    def _set_playing(self, is_playing: bool) -> None:
        self.is_playing = is_playing
        self._shown = self._session.state
        self._play.label = "Pause" if is_playing else "Play"
        if is_playing:
            self._wake.set()
        else:
            self._wake.clear()

    def _switch(self) -> None:
        motion = self._motion
        if motion is not None and not self.is_playing and self.time >= motion.times[-1]:
            self.time = float(motion.times[0])
        self._set_playing(not self.is_playing)

    def _scrubbed(self) -> None:
        self.go_to(float(self._slider.value))

    def _chosen(self, time: float) -> None:
        self._slider.value = time
        self.go_to(time)

    def go_to(self, time: float) -> None:
        """Pause and show an instant [s]."""
        if self._motion is not None:
            self._set_playing(False)
            self.time = time
            self._show_now()

    def _show_now(self, *, remember: bool = True) -> None:
        """Show the state at the instant that is reached."""
        assert self._motion is not None, "it was loaded"
        k = self._motion.instant(self.time)
        self._shown = self._motion.state(k)
        if self._motion.obstacles.surfaces:
            self._session.scene.move_obstacles(self._motion.obstacles.poses[k])
        self._session.scene.hide(self._motion.absent(k))
        self._session.change(self._shown, remember=remember)

    def _run(self) -> None:
        before = time.monotonic()
        while not self._session.closed.is_set():
            if not self._wake.wait(1.0):
                before = time.monotonic()
                continue
            now = time.monotonic()
            with self._session.lock:
                if self.is_playing and not self._session.closed.is_set():
                    self._step(min(now - before, 0.5))
            before = now
            time.sleep(max(0.0, PERIOD - (time.monotonic() - now)))

    def _step(self, passed: float) -> None:
        motion = self._motion
        assert motion is not None, "it plays"
        if self._session.state is not self._shown:  # people or the program changed it
            self._set_playing(False)
            return
        first, last = float(motion.times[0]), float(motion.times[-1])
        self.time += passed * float(self._speed.value.rstrip("x"))
        if self.time > last:
            if self._loop.value and last > first:
                self.time = first + (self.time - last) % (last - first)
            else:
                self.time = last
                self._set_playing(False)
        self._show_now(remember=False)
