"""The memory of this machine: arrays that cannot fit are refused at once."""

from __future__ import annotations

import math
import os

from armillary.errors import SweepError

__all__ = ["check_fits"]


def memory_size() -> float:
    """Return the memory of this machine [bytes], infinite where it is not known."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return math.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_fits(count: int, size: int, what: str, instead: str) -> None:
    """Check that things of a size [bytes] fit into the memory of this machine.

    Raises:
        SweepError: They do not; it says what to do `instead`.
    """
    memory = memory_size()
    if count * size > memory:
        raise SweepError(
            f"{count:,} {what} of {size} bytes need {count * size / 1e9:.3g} GB; this "
            f"machine has {memory / 1e9:.3g} GB. At most {memory // size:,.0f} fit: "
            f"{instead}."
        )
