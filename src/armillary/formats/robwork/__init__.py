"""RobWork's workcells and devices, read and written.

Reading: `include` makes elements of a file and of those that it includes. `elements`
has the table of what each element may have. `devices`, `joints`, `shapes` and
`transform` read the elements as nodes of `frames`, which finds the parent of each.
`manipulators` makes manipulators and links of the nodes. `setups` reads the files of
rules for collisions, whose patterns `patterns` translates.

Writing: `frame_export` makes frames of RobWork of a manipulator, `write` makes devices
and a workcell of those, and `setups` the rules beside it.
"""

from __future__ import annotations

from typing import Final

from armillary.formats.format import Format
from armillary.formats.robwork.read import read, sniff
from armillary.formats.robwork.write import SUFFIX, write, write_files

__all__ = ["FORMAT"]


FORMAT: Final = Format(
    name="robwork",
    title="RobWork's workcell",
    suffixes=(SUFFIX,),
    sniff=sniff,
    read=read,
    write=write,
    write_files=write_files,
    names_pairs=True,
)
