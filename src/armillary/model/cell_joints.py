"""The joints of a cell: those with a place in q, then those that loops determine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote, unknown
from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.joint_drives import Drives, Ranges, read_only, renumbered
from armillary.model.link import Link
from armillary.model.link_poses import BareTree
from armillary.model.loops.equations import PlacedLoop, loop_joints
from armillary.model.loops.loop import Closure, Rod
from armillary.model.loops.system import LoopSystem, combined, loop_system
from armillary.model.manipulator import Manipulator
from armillary.spatial.pose import Pose

__all__ = ["CellJoints"]

Array = npt.NDArray[np.float64]
LoopInCell = tuple[Closure | Rod, FrameRef, FrameRef]


class CellJoints(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The joints of manipulators in the order of the vectors of their cell.

    Attributes:
        manipulators: Whose joints.
        base_frames: Where each manipulator stands.
        loops: Between manipulators, with their frames.
    """

    manipulators: Sequence[Manipulator]
    base_frames: Sequence[FrameRef]
    loops: Sequence[LoopInCell]

    @cached_property
    def system(self) -> LoopSystem:
        """Return which joints loops determine, of all joints by manipulator.

        Raises:
            ModelError: Loops between manipulators cannot be closed.
        """
        systems = [m.loop_system for m in self.manipulators]
        if not self.loops:
            return combined(systems)
        inner = combined(systems)
        start = [q for m in self.manipulators for q in m.home_vector]
        joints = loop_joints([self._links[k] for k in self._all], self._ranges, start)
        followers = set(inner.order[inner.count :])
        ranked = [
            joint._replace(name=name, rank=2 if k in followers else joint.rank)
            for k, (joint, name) in enumerate(zip(joints, self._all_names, strict=True))
        ]
        return loop_system(self.bare_tree, self.placed_loops, ranked)

    @cached_property
    def placed_loops(self) -> list[PlacedLoop]:
        """Return the loops of manipulators, and those between them."""
        placed: list[PlacedLoop] = []
        starts = zip(self._starts, self._offsets, self.manipulators, strict=False)
        for start, offset, manipulator in starts:
            placed += (
                each.moved(links=start, joints=offset)
                for each in manipulator.placed_loops
            )
        drives = dict(zip(self._all_names, self._all, strict=True))
        for loop, a, b in self.loops:
            if not loop.joint:
                placed.append(PlacedLoop(loop, a, b))
                continue
            names = [name for name in drives if _is_called(name, loop.joint)]
            matches = [drives[name] for name in names]
            if not matches:
                known = unknown("joint", loop.joint, drives)
                raise ModelError(f"In {loop.label}: {known}")
            if len(matches) > 1:
                raise ModelError(
                    f"In {loop.label}: joint {quote(loop.joint)} is not unique; say "
                    f"{', '.join(map(quote, names))}."
                )
            (drive,) = self.bare_tree.drives[matches[0]]
            placed.append(PlacedLoop(loop, a, b, drive))
        return placed

    def loops_without(self, k: int) -> list[Closure | Rod]:
        """Return the loops that name no frame and no joint of a manipulator."""
        links = range(self._starts[k], self._starts[k + 1])
        manipulator = self.manipulators[k]
        joints = {link.coordinate for link in manipulator.links}
        return [
            loop
            for loop, a, b in self.loops
            if a.link not in links
            and b.link not in links
            and loop.joint.removeprefix(f"{manipulator.name}/") not in joints
        ]

    @cached_property
    def loops_in_order(self) -> tuple[PlacedLoop, ...]:
        """Return `placed_loops`, drives of their own joints by places in vectors."""
        place = {old: new for new, old in enumerate(self.system.order)}
        return tuple(
            each
            if each.drive is None
            else each._replace(drive=each.drive._replace(of=place[each.drive.of]))
            for each in self.placed_loops
        )

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        return tuple(link for m in self.manipulators for link in m.links)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(accumulate((len(m.links) for m in self.manipulators), initial=0))

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        counts = (len(m.joint_links) for m in self.manipulators)
        return tuple(accumulate(counts, initial=0))

    @cached_property
    def _all(self) -> tuple[int, ...]:
        """Return the links whose joints have a number, by manipulator."""
        pairs = zip(self._starts, self.manipulators, strict=False)
        return tuple(start + k for start, m in pairs for k in m.joint_links)

    @cached_property
    def _all_names(self) -> tuple[str, ...]:
        prefixes = [f"{m.name}/" for m in self.manipulators]
        if len(prefixes) == 1:
            prefixes = [""]
        return tuple(
            f"{prefix}{m.links[k].coordinate}"
            for prefix, m in zip(prefixes, self.manipulators, strict=True)
            for k in m.joint_links
        )

    @cached_property
    def bare_tree(self) -> BareTree:
        """Return the links as they are mounted, moved by all joints by manipulator."""
        parents: list[int] = []
        drives: list[Sequence[Drive]] = []
        placements: dict[int, Pose] = {}
        for k, m in enumerate(self.manipulators):
            start, offset, frame = (
                self._starts[k],
                self._offsets[k],
                self.base_frames[k],
            )
            placements[start + m.base] = frame.pose
            parents += (frame.link if p < 0 else start + p for p in m.parents)
            drives += (
                tuple(drive._replace(of=offset + drive.of) for drive in several)
                for several in m.joint_drives
            )
        return BareTree(self._links, tuple(parents), tuple(drives), placements)

    @cached_property
    def links(self) -> tuple[int, ...]:
        """Return the link behind each joint of q, then behind each passive joint."""
        return tuple(self._all[k] for k in self.system.order)

    @cached_property
    def drives(self) -> Drives:
        """Return what moves the joint of each link, by places in vectors."""
        return renumbered(self.bare_tree.drives, self.system.order)

    @cached_property
    def all_names(self) -> tuple[str, ...]:
        """Return the names of the joints of q, then of the passive ones."""
        return tuple(self._all_names[k] for k in self.system.order)

    @cached_property
    def home(self) -> tuple[float, ...]:
        """Return where all joints are at home, passive ones last [m or rad]."""
        if self.loops:
            return self.system.home
        start = [q for m in self.manipulators for q in m.home_vector]
        return tuple(start[k] for k in self.system.order)

    @cached_property
    def _ranges(self) -> Ranges:
        parts = [m.ranges for m in self.manipulators]
        columns = zip(*parts, strict=True) if parts else [[np.empty(0)]] * 3
        return Ranges(*(np.concatenate(list(each)) for each in columns))

    @cached_property
    def ranges(self) -> Ranges:
        """Return limits and greatest rates of all joints, passive ones last."""
        order = list(self.system.order)
        return Ranges(*(read_only(each[order]) for each in self._ranges))

    @cached_property
    def efforts(self) -> Array:
        """Return the greatest efforts of all joints, passive ones last [N or N m].

        Each is that of a joint itself; what couplings and loops pass on is not in it.
        """
        return self._of_each("effort")

    @cached_property
    def accelerations(self) -> Array:
        """Return the greatest accelerations of all joints, passive ones last.

        [m/s^2 or rad/s^2]. As for efforts, each is that of a joint itself.
        """
        return self._of_each("acceleration")

    @property
    def acceleration_limits(self) -> Array:
        """Return the greatest accelerations of the joints of q."""
        return self.accelerations[: self.system.count]

    def _of_each(self, limit: str) -> Array:
        limits = [getattr(self._links[k].limits, limit) for k in self.links]
        return read_only(np.array(limits, np.float64))


def _is_called(name: str, wanted: str) -> bool:
    return wanted in {name, name.rpartition("/")[2]}
