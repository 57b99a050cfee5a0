"""Events of the panel: answered one after the other, errors shown as text."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

from armillary.errors import ArmillaryError
from armillary.view.session import Session

__all__ = ["by_people"]

logger = logging.getLogger("armillary.view")


def by_people(
    session: Session, call: Callable[[], None], *, newest: bool = False
) -> Callable[[Any], None]:
    """Return what answers the events of a control by `call`.

    Changes that the program itself makes to a control are not answered. An error of
    ours appears in the browser, and the controls go back to the state that is shown.

    newest: Whether one answer, which reads the value of the control when it begins,
        is enough for all events before it, such as those of a drag.
    """
    waiting = Lock()

    @wraps(call)
    def answer(event: Any) -> None:
        client = event.client
        if client is None or (newest and not waiting.acquire(blocking=False)):
            return
        with session.lock:
            if newest:
                waiting.release()
            if session.closed.is_set():
                return
            try:
                call()
            except ArmillaryError as error:
                session.changed.set()
                logger.info("%s", error)
                client.add_notification(
                    "Not possible", str(error), color="red", auto_close_seconds=8.0
                )

    return answer
