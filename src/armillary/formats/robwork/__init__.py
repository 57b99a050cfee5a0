"""RobWork's workcells and devices, read and written.

`elements` has the tables of all elements, by which they are read and written; `parts`
has what is about a frame, both ways, and `transform` poses.

Reading: `include` makes elements of a file and of those that it includes. `read` makes
frames of them, and `frames` finds the parent of each; `joints` reads their motions.
`cells` makes manipulators and links of the frames, `junctions` closes their loops.
`rules` reads the files of rules for collisions.

Writing: `frame_export` makes frames of RobWork of a manipulator, `write` makes devices
and a workcell of those, and `rules` the file of rules beside it.
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
