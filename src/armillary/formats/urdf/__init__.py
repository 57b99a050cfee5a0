"""URDF in and out: robots as ROS describes them.

A URDF becomes one manipulator. Links and joints keep their names:

- `revolute`, `continuous` and `prismatic` turn about or slide along `axis`, behind
  `origin`; `mimic` becomes a coupling; lower and upper limits of a `continuous` joint
  have no effect, as in ROS.
- `floating` and `planar` joints have several coordinates. On a root link that carries
  nothing else, such as `world`, they free the base: the child becomes the base of the
  manipulator, the root link is left out, and `origin` becomes the mount. Elsewhere they
  become several joints, as does `spherical` of PyBullet: see `tree.PARTS`.
- A capsule is new in URDF 1.1; its length is that of the straight part.

Every joint that turns about or slides along a line fixed in its outer frame is written,
those of Denavit and Hartenberg and a user's own included. Where the line does not pass
through the outer frame's origin, a fixed joint follows. Named frames become links
behind fixed joints. Several manipulators become one tree below a link `world`, with
frames and joints called `manipulator/name`.
"""

from __future__ import annotations

from typing import Final

from armillary.file_start import first_tag
from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

FORMAT: Final = Format(
    name="urdf",
    title="URDF",
    holds=later("urdf.write", "held_features"),
    suffixes=(".urdf",),
    sniff=lambda data: first_tag(data) == "robot",
    read=later("urdf.read", "read"),
    write=later("urdf.write", "write"),
    tests_itself=True,
    refers_to_meshes=True,
    read_by=("urdf", "xml", "mesh"),
)
