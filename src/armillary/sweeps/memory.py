"""How much memory there is, so that what cannot fit is an error at once."""

from __future__ import annotations

import math
import os

from armillary.errors import SweepError

__all__ = ["check_rows", "memory_size"]


def memory_size() -> float:
    """Return the memory of this machine [bytes], infinite where it is not known."""
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return math.inf
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_rows(count: int, row_bytes: int, what: str, instead: str) -> None:
    """Check that rows fit into the memory of this machine.

    Raises:
        SweepError: They do not; it says what to do `instead`.
    """
    memory = memory_size()
    if count * row_bytes > memory:
        raise SweepError(
            f"A {what} of {count:,} rows of {row_bytes} bytes needs "
            f"{count * row_bytes / 1e9:.3g} GB; this machine has {memory / 1e9:.3g} "
            f"GB. At most {memory // row_bytes:,.0f} rows fit: {instead}."
        )
