"""Warnings that name the line of the user's code which led to them."""

from __future__ import annotations

import inspect
import warnings
from typing import Final

__all__ = ["OURS", "warn_user"]

OURS: Final = __name__.partition(".")[0]


def warn_user(text: str) -> None:
    """Warn at the innermost line outside of armillary."""
    levels, frame = 0, inspect.currentframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__")):
        levels, frame = levels + 1, frame.f_back
    warnings.warn(text, stacklevel=levels + 1)


def _is_ours(module: object) -> bool:
    # Code that `exec` runs may be in no module.
    return isinstance(module, str) and module.partition(".")[0] == OURS
