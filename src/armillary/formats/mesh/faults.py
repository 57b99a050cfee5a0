"""Errors of mesh files, and the libraries of the extra `mesh`."""

from __future__ import annotations

import importlib
from typing import Any

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Place, Severity

__all__ = ["library", "refusal"]


def refusal(place: Place, code: str, message: str, *, hint: str = "") -> FormatError:
    """Return the error for a fault of a mesh file."""
    return FormatError(
        Diagnostic(
            place=place,
            severity=Severity.ERROR,
            code=code,
            message=message,
            hint=hint,
        )
    )


def library(name: str, what: str, place: Place) -> Any:
    """Return a library of the extra `mesh`.

    what: What it is needed for, for the message.

    Raises:
        FormatError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise refusal(
            place,
            "missing-library",
            f"{what} is read with the library {name}, which is not installed",
            hint="Install it: pip install armillary[mesh].",
        ) from error
