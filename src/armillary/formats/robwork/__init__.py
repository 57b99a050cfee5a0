"""RobWork's workcells and devices, in and out."""

from __future__ import annotations

from typing import Final

from armillary.formats.format import Format
from armillary.formats.robwork.read import read
from armillary.formats.robwork.roots import sniff
from armillary.formats.robwork.write import write

__all__ = ["FORMAT"]


FORMAT: Final = Format(
    name="robwork",
    title="RobWork's workcell",
    suffixes=(".wc.xml",),
    sniff=sniff,
    read=read,
    write=write,
)
