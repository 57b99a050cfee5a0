"""Why a chain of joints does not belong to a family."""

from __future__ import annotations

from armillary.errors import ArmillaryError


class NotApplicable(ArmillaryError):
    """A chain has no closed form of the kind that was tried; the message says why."""


def demand(truth: bool, otherwise: str) -> None:
    """Go on only where `truth` holds.

    Raises:
        NotApplicable: It does not; the message is `otherwise`.
    """
    if not truth:
        raise NotApplicable(otherwise)
