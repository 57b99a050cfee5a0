"""Isaac SDK's `*.kinematic.json`: a tree of links, each with a motor that carries it.

The frame of a link is behind its own motor, as in this library. Isaac's state vector
holds the motors in the order of the file, q is depth first: use the names of joints.
The cell and its one manipulator are named after the file.
"""

from __future__ import annotations

import re
from typing import Final

from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

_MARK: Final = re.compile(rb'"links"\s*:\s*\[')
_OTHERS: Final = re.compile(rb'"format"\s*:\s*"armillary')

FORMAT: Final = Format(
    name="isaac",
    title="Isaac's kinematic tree",
    holds=later("isaac.write", "held_features"),
    suffixes=(".kinematic.json",),
    sniff=lambda data: bool(_MARK.search(data)) and not _OTHERS.search(data),
    read=later("isaac.read", "read"),
    write=later("isaac.write", "write"),
    tests_itself=True,
)
