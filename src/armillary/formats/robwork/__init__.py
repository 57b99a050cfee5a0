"""RobWork's workcells and devices, in and out.

The way in: `fragment` makes elements of one file, `expand` puts the included ones into
their places, `roots` tells what it is. `read` makes nodes of the elements, first all
(`bodies`, `device`), then where each hangs (`placing`), then what is said of them.
`scene` gives the nodes to manipulators, `build` makes links and frames of them;
`setups` opens the files of rules, `read_setups` reads them, and `frames` knows what the
patterns in them mean.

The way out: `draft` makes frames of RobWork of a manipulator, `write_device` makes a
device of those, `write` the workcell around it, `write_setups` the rules beside it.
"""

from __future__ import annotations

from typing import Final

from armillary.formats.format import Format
from armillary.formats.robwork.read import read
from armillary.formats.robwork.roots import sniff
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
)
