"""Where files of the user are kept on each system."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["user_folder"]


def user_folder(
    *, windows: tuple[str, ...], mac: tuple[str, ...], other: tuple[str, ...]
) -> Path | None:
    """Return the folder of armillary for files of a kind; None without a home.

    Args:
        windows: The environment variable that names the folder around it, then the
            parts of its path in the home of the user, which count without that.
        mac: The parts alone; macOS has no such variable.
        other: As on Windows, of all other systems.
    """
    if sys.platform == "darwin":
        base = _home(mac)
    else:
        variable, *default = windows if sys.platform == "win32" else other
        named = os.environ.get(variable, "")
        base = Path(named) if os.path.isabs(named) else _home(default)
    return base and base / "armillary"


def _home(parts: Sequence[str]) -> Path | None:
    home = os.path.expanduser("~")
    return Path(home, *parts) if os.path.isabs(home) else None
