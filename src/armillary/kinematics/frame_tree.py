"""The frames of a cell as a tree: each on its link, links on links, bases on frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from armillary.kinematics.state import State
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import WORLD, Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["Base", "FrameTree"]


class Base(NamedTuple):
    """Where a base stands: on which frame, at which pose there, and why it may move.

    Attributes:
        on: Qualified name of the frame.
        pose: Of the base in it.
        manner: `held`, `loose`, or nothing for what stays where it was built.
    """

    on: str = WORLD
    pose: Pose = IDENTITY
    manner: str = ""


class FrameTree:
    """Who stands on whom; names of frames are qualified, the world is the root."""

    def __init__(self, cell: Workcell, state: State | None = None) -> None:
        """Read mounts and placements.

        state: Who holds whom; by default as the cell was built.
        """
        self._cell = cell
        self._bases = {
            each.manipulator: Base(
                cell.qualified(each.on), each.pose, "" if each.bolted else "loose"
            )
            for each in cell.mounts
        }
        for each in () if state is None else state.placements:
            manner = "loose" if each.on == WORLD else "held"
            on = cell.qualified(each.on)
            self._bases[each.manipulator] = Base(on, each.pose, manner)
        self._standing: dict[str, list[str]] = {}
        for manipulator in cell.manipulators:
            base = f"{manipulator.name}/{manipulator.links[manipulator.base].name}"
            self._standing.setdefault(self.base(manipulator.name).on, []).append(base)

    def base(self, manipulator: str) -> Base:
        """Return where a manipulator stands."""
        return self._bases.get(manipulator, Base())

    def parent(self, frame: str) -> str | None:
        """Return the frame that carries a frame, None for the world."""
        if frame == WORLD:
            return None
        at = self._cell.frame(frame)
        owner = self._cell.manipulators[at.manipulator]
        link = owner.links[at.link]
        if not self.is_link(frame):
            return f"{owner.name}/{link.name}"
        if link.parent is None:
            return self.base(owner.name).on
        return f"{owner.name}/{link.parent}"

    def is_link(self, frame: str) -> bool:
        """Return whether a frame is that of a link, rather than one fixed to it."""
        owner, _, bare = frame.partition("/")
        return frame != WORLD and bare in self._manipulator(owner).index

    def children(self, frame: str) -> Iterator[str]:
        """Yield what stands on a frame: named frames, links, then bases."""
        if self.is_link(frame):
            owner, _, bare = frame.partition("/")
            manipulator = self._manipulator(owner)
            k = manipulator.index[bare]
            for each in manipulator.links[k].frames:
                yield f"{owner}/{each.name}"
            for child in manipulator.children[k]:
                yield f"{owner}/{manipulator.links[child].name}"
        yield from self._standing.get(frame, ())

    def lineage(self, frame: str) -> list[str]:
        """Return a frame and all that carry it, the world last."""
        found = [frame]
        while (above := self.parent(found[-1])) is not None:
            found.append(above)
        return found

    def common_ancestor(self, frames: Sequence[str]) -> str:
        """Return the nearest frame that is or carries each of these, one at least."""
        shared = self.lineage(frames[0])
        for frame in frames[1:]:
            line = set(self.lineage(frame))
            shared = [each for each in shared if each in line]
        return shared[0]

    def _manipulator(self, name: str) -> Manipulator:
        return self._cell.manipulators[self._cell.index[name]]
