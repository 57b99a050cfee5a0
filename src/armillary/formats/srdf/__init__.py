"""SRDF in and out: what MoveIt and others say of a robot beside its URDF.

An SRDF is not a robot: it is read onto the manipulator of a URDF, or of any other file:
`load("ur5.urdf", srdf="ur5.srdf")`.

- `group` becomes a group, and `group_state` a posture, of the manipulator.
- `disable_collisions`, `enable_collisions` and `disable_default_collisions` become
  rules: all pairs of the robot's links are tested except those that are disabled, with
  their reasons, and those that cannot move relative to each other. Without any of these
  elements the rules stay as they are.
- `virtual_joint` of type `fixed` bolts the base to the world; the other types leave it
  free. `passive_joint` makes a joint passive.
- `end_effector`, `virtual_joint`, `joint_property`, `link_sphere_approximation`, and
  the pose of the base in a posture, are kept as properties of the manipulator,
  `srdf.*`, and written again.

As in MoveIt, an element that names a link or joint that does not exist is left out with
a warning; an SRDF that names none of the robot's is refused.
"""

from __future__ import annotations

from typing import Final, NoReturn

from armillary.formats.diagnostic import Report, fault
from armillary.formats.format import Format, ReadOptions, later

__all__ = ["FORMAT"]


def _read(data: bytes, path: str, options: ReadOptions, report: Report) -> NoReturn:
    """Explain that an SRDF is not read alone."""
    raise fault(
        path,
        "companion",
        "an SRDF describes the robot of a URDF, and is not a robot itself",
        hint="Load the URDF with this file beside it: load('robot.urdf', srdf=...).",
    )


FORMAT: Final = Format(
    name="srdf",
    title="SRDF",
    holds=later("srdf.write", "held_features"),
    suffixes=(".srdf",),
    sniff=lambda data: False,
    read=_read,
    write=later("srdf.write", "write"),
    names_pairs=True,
)
