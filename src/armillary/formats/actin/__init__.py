"""Actin-style XML: cells in the words of Energid's toolkit.

No model file of Actin is public. Known are the names of its elements, from its public
headers and pages, and one printed sample, damaged, of a joint. So this is a layout of
our own with Actin's names, and Actin itself has read or written none of it: an element
for each object, components by their registered names, transforms as orientation and
translation, second moments of mass, states beside the model.

What Actin has no word for is in a namespace of our own, `urn:armillary:actin`: joints
that are not Actin's, and the attribute `exact`, which holds the numbers that Actin's
form of them would round. A `library=` attribute is kept and written again; nothing is
ever loaded because of it.
"""

from __future__ import annotations

from typing import Final

from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

MARKS: Final = tuple(
    word.encode(encoding)
    for word in ("www.energid.com/namespace/", "urn:armillary:actin")
    for encoding in ("utf-8", "utf-16-le", "utf-16-be")
)

FORMAT: Final = Format(
    name="actin",
    title="Actin-style XML",
    holds=later("actin.cell", "held_features"),
    suffixes=(".actin.xml",),
    sniff=lambda data: any(mark in data for mark in MARKS),
    read=later("actin.cell", "read"),
    write=later("actin.cell", "write"),
    refers_to_meshes=True,
)
