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

from armillary.formats.format import Format, later

__all__ = ["FORMAT", "SUFFIX"]

SUFFIX: Final = ".wc.xml"

FORMAT: Final = Format(
    name="robwork",
    title="RobWork's workcell",
    holds=later("robwork.write", "held_features"),
    suffixes=(SUFFIX,),
    sniff=later("robwork.read", "sniff"),
    read=later("robwork.read", "read"),
    write=later("robwork.write", "write"),
    write_files=later("robwork.write", "write_files"),
    names_pairs=True,
    refers_to_meshes=True,
)
