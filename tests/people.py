"""People in tests of the viewer: browsers without a screen, and what they wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 300.0  # [s]; machines that run tests may be busy, and first plans compile


def until(true: Callable[[], bool]) -> None:
    """Wait for what a browser causes."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def part(viewer: Any, name: str) -> Any:
    """The part of the panel whose class has this name."""
    (found,) = (p for p in viewer._parts if type(p).__name__ == name)
    return found


class Person:
    """A browser that sends the events of controls, without a screen."""

    def __init__(self, client_id: int = 0) -> None:
        self.client = self
        self.client_id = client_id
        self.phase = "update"
        self.told: list[str] = []

    def add_notification(self, _: str, body: str, **__: Any) -> None:
        self.told.append(body)

    def drag(self, gizmo: Any, phase: str) -> None:
        self.phase = phase
        for call in gizmo._controls._impl_aux.update_cb:
            call(self)

    def press(self, buttons: Any, label: str) -> None:
        buttons._impl.value = label
        for call in buttons._impl.update_cb:
            call(self)
