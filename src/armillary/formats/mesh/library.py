"""The libraries of the extra `mesh`."""

from __future__ import annotations

import importlib
from typing import Any

from armillary.formats.diagnostic import Place, fault

__all__ = ["library"]


def library(name: str, what: str, place: Place) -> Any:
    """Return a library of the extra `mesh`.

    what: What it is needed for, for the message.

    Raises:
        FormatError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise fault(
            place,
            "missing-library",
            f"{what} is read with the library {name}, which is not installed",
            hint="Install it: pip install armillary[mesh].",
        ) from error
