"""Events of the panel: answered one after the other, errors shown as text."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from armillary.errors import ArmillaryError
from armillary.view.session import Session

__all__ = ["by_people"]

logger = logging.getLogger("armillary.view")


def by_people(session: Session, call: Callable[[], None]) -> Callable[[Any], None]:
    """Return what answers the events of a control by `call`.

    Changes that the program itself makes to a control are not answered. An error of
    ours appears in the browser.
    """

    @wraps(call)
    def answer(event: Any) -> None:
        client = event.client
        if client is None:
            return
        with session.lock:
            if session.closed.is_set():
                return
            try:
                call()
            except ArmillaryError as error:
                logger.info("%s", error)
                client.add_notification(
                    "Not possible", str(error), color="red", auto_close_seconds=8.0
                )

    return answer
