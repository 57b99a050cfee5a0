"""URDF in and out: robots as ROS describes them.

What a URDF says becomes one manipulator. Links keep their names, and so do joints:

- `revolute`, `continuous` and `prismatic` turn or slide about `axis` behind `origin`;
  `mimic` becomes a coupling; what a `continuous` joint says of lower and upper counts
  for nothing, as in ROS.
- `floating` and `planar` have more than one coordinate. Where such a joint hangs its
  child on a root link that carries nothing else, such as `world`, the child becomes the
  base of the manipulator, the root link is left out, and `origin` becomes the mount: a
  base moves through the state. Anywhere else a planar joint `j` becomes the joints
  `j_x`, `j_y` (prismatic, along the plane) and `j_theta` (revolute, about its normal),
  and a floating one `j_x`, `j_y`, `j_z`, `j_yaw`, `j_pitch`, `j_roll`, in that order,
  with links of the same names between them; PyBullet's `spherical` joint becomes the
  last three. Roll, pitch and yaw are those of `rpy`, so
  two of the six fall together where the pitch is a right angle.
- A capsule is new in URDF 1.1; its length is that of the straight part.

Out goes every joint that turns or slides about a line fixed in its outer frame: those
above, those of Denavit and Hartenberg, a user's own. Where the line does not pass
through the outer frame's origin, a fixed joint follows. Named frames become links
behind fixed joints. Several manipulators become one tree below a link `world`, their
frames and joints called `manipulator/name`.
"""

from __future__ import annotations

from typing import Final

from armillary.formats.format import Format
from armillary.formats.urdf.read import read, sniff
from armillary.formats.urdf.write import write

__all__ = ["FORMAT"]

FORMAT: Final = Format(
    name="urdf",
    title="URDF",
    suffixes=(".urdf",),
    sniff=sniff,
    read=read,
    write=write,
)
