"""SDF in and out: models and worlds as Gazebo and Drake describe them.

A file becomes a cell. Each model of a world becomes a manipulator, a file of one model
a cell of one:

- Versions 1.2 to 1.12 are read, each file by the rules of its own version: since 1.7
  frames are attached to links and poses are relative to frames; before, the axis of a
  joint may be in the frame of its model, up to 1.4 always.
- Includes are followed, those of folders by their `model.config`; merged ones, nested
  models and placement frames too. The names of nested links and joints are those of
  SDF: `model::link`.
- A joint of several coordinates, such as a ball, becomes joints one behind the other. A
  joint that turns about a line beside its link gets a link between. Joints that close a
  loop become closures.
- What is static or fixed to the world has a fixed mount. Links that no joint
  connects with the others of their model become manipulators of their own.
- Links of a model are tested against each other if it says so by `<self_collide>`, or
  if it says nothing.

Written are worlds of SDF 1.11, or one model. What SDF would refuse as a name stands in
the attribute `armillary:name`, so that reading returns it.
"""

from __future__ import annotations

from typing import Final

from armillary.file_start import first_tag
from armillary.formats.format import Format, later

__all__ = ["FORMAT"]

FORMAT: Final = Format(
    name="sdf",
    title="SDF",
    holds=later("sdf.write", "held_features"),
    suffixes=(".sdf", ".world"),
    sniff=lambda data: first_tag(data) in {"sdf", "gazebo"},
    read=later("sdf.read", "read"),
    write=later("sdf.write", "write"),
    refers_to_meshes=True,
    read_by=("sdf", "xml", "mesh"),
)
