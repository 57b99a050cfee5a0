"""MJCF in and out: the models of MuJoCo.

Reading: `document` puts included files into their places and finds the settings of the
compiler and the classes of defaults; `bodies` resolves frames and replicates. `trees`
makes manipulators and links of bodies with the motions of `joints`; `shapes` reads
geoms and meshes, and `inertias` finds what bodies weigh. `equality` makes couplings and
loops, `drives` reads actuators, `rules` what is tested for collision, `keys` postures.
`kept` holds what a cell has no counterpart for.

Writing: `write` makes bodies of links, and the other sections of what a cell has.
"""

from __future__ import annotations

from typing import Final

from armillary.file_start import first_tag
from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

FORMAT: Final = Format(
    name="mjcf",
    title="MJCF, MuJoCo's XML",
    holds=later("mjcf.write", "held_features"),
    suffixes=(".mjcf", ".mjcf.xml"),
    sniff=lambda data: first_tag(data) in ("mujoco", "mujocoinclude"),
    read=later("mjcf.read", "read"),
    write=later("mjcf.write", "write"),
    write_files=later("mjcf.write", "write_files"),
    names_pairs=True,
    read_by=("mjcf", "xml", "mesh"),
)
