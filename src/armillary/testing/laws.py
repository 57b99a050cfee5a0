"""Laws that a part must obey, checked one by one, and how a broken one is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, JointError

Array = npt.NDArray[np.float64]
Subject = TypeVar("Subject")

TOLERANCE: Final = 1e-9  # relative to 1 plus the size of the numbers compared


def broken_laws(
    name: str,
    kind: str,
    laws: Mapping[str, Callable[[Subject], None]],
    subject: Subject,
) -> str:
    """Return a text that names every broken law and its fault; empty if all hold.

    Args:
        name: The name of the class of what is checked.
        kind: What the laws are about, such as `joints`.
        laws: Each raises an error if the subject breaks it.
        subject: What is checked.
    """
    faults = {law: _fault(check, subject) for law, check in laws.items()}
    lines = [f"  {law}: {fault}" for law, fault in faults.items() if fault is not None]
    if not lines:
        return ""
    count = "a law" if len(lines) == 1 else f"{len(lines)} laws"
    return "\n".join([f"{name} breaks {count} of {kind}.", *lines])


def _fault(check: Callable[[Subject], None], subject: Subject) -> str | None:
    """Return what is wrong, None if the law holds."""
    try:
        check(subject)
    except ArmillaryError as error:
        return str(error)
    except Exception as error:  # whatever the user's own code raises is a fault
        return f"it raised {type(error).__name__}: {error}"
    return None


def require_equal(
    a: Array | float,
    b: Array | float,
    name: str,
    other: str,
    tolerance: float = TOLERANCE,
) -> None:
    """Compare numbers that a law says are equal.

    Args:
        a: The numbers to judge, any shape.
        b: The numbers that they should be, the same shape.
        name: What `a` is.
        other: What `b` is.
        tolerance: Relative to 1 plus the size of `b`.

    Raises:
        JointError: They differ, or are not finite.
    """
    with np.errstate(invalid="ignore"):  # two infinities differ, too
        error = float(np.abs(np.subtract(a, b)).max())
    if not error <= tolerance * (1.0 + float(np.abs(b).max())):
        raise JointError(
            f"{name} differs from {other} by {error:.3g}: {row(a)} and {row(b)}."
        )


def row(values: Array | float) -> str:
    """Return numbers as text, in brackets, rounded."""
    return "(" + ", ".join(f"{value:.6g}" for value in np.ravel(values)) + ")"
