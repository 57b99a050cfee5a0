"""Isaac SDK's `*.kinematic.json`: a tree of links, each with a motor that carries it.

The frame of a link is behind its own motor, as ours is. Isaac's state vector holds the
motors in the order of the file; ours is depth first: go by the names. A file is named
after what it holds, and so are the cell and its one manipulator.
"""

from __future__ import annotations

import re
from typing import Final

from armillary.formats.format import Format
from armillary.formats.isaac.read import read
from armillary.formats.isaac.write import write

__all__ = ["FORMAT"]

_MARK: Final = re.compile(rb'"links"\s*:\s*\[')
_OTHERS: Final = re.compile(rb'"format"\s*:\s*"armillary')

FORMAT: Final = Format(
    name="isaac",
    title="Isaac's kinematic tree",
    suffixes=(".kinematic.json",),
    sniff=lambda data: bool(_MARK.search(data)) and not _OTHERS.search(data),
    read=read,
    write=write,
)
