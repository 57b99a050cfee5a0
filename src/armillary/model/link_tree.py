"""How the links of a cell are joined: what is rigid, what carries what, who is next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.model.link_pattern import LinkName
from armillary.model.workcell import WORLD, FrameRef, Workcell

__all__ = ["Carried", "LinkTree"]

Indices = npt.NDArray[np.int64]

THE_WORLD: Final = -1
NOTHING: Final = -2


class Carried(NamedTuple):
    """A manipulator whose base is carried by a link, and how people say it.

    Attributes:
        manipulator: Its place in the cell.
        holder: Number of the link that carries it.
        verb: `bolted to`, `standing on` or `held by`.
    """

    manipulator: int
    holder: int
    verb: str


class LinkTree:
    """The links of a cell by numbers, and how they are joined where it was built.

    Links are numbered through all manipulators, in their order.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the links of `cell` and at its mounts."""
        self.cell = cell
        self.starts: list[int] = [0]
        for manipulator in cell.manipulators:
            self.starts.append(self.starts[-1] + len(manipulator.links))
        self._bolted = {mount.manipulator for mount in cell.mounts if mount.bolted}
        self.owners = np.repeat(
            np.arange(len(cell.manipulators)), np.diff(self.starts)
        ).astype(np.int64)
        links = [link for m in cell.manipulators for link in m.links]
        self.has_shapes = np.array(
            [bool(link.collision_shapes) for link in links], dtype=np.bool_
        )
        # The link below each one in its own manipulator, NOTHING below a base.
        self._below = [
            start + parent if parent >= 0 else NOTHING
            for start, m in zip(self.starts, cell.manipulators, strict=False)
            for parent in m.parents
        ]
        self._is_fixed = [not link.moves for link in links]
        self.bolted = tuple(self._find_bolted())
        self.groups, self.carriers = self._walk()

    def name(self, number: int) -> LinkName:
        """Return the name of a link."""
        k = int(self.owners[number])
        manipulator = self.cell.manipulators[k]
        return LinkName(
            manipulator.name, manipulator.links[number - self.starts[k]].name
        )

    # where the cell was built

    def _find_bolted(self) -> Iterator[Carried]:
        for k, at in enumerate(self.cell.base_frames):
            if at.link >= 0 and self.cell.manipulators[k].name in self._bolted:
                yield Carried(k, at.link, "bolted to")

    def _walk(self) -> tuple[Indices, Indices]:
        """Return for each link its rigid group, and what with shapes is below it.

        A group has the number of its link that is nearest to the world, or -1 where it
        is fixed to that. What is below is -1 where nothing is.
        """
        groups = np.full(self.starts[-1], NOTHING, dtype=np.int64)
        carriers = np.full(self.starts[-1], THE_WORLD, dtype=np.int64)
        supports = {each.manipulator: each.holder for each in self.bolted}
        for k in self._by_height():
            manipulator, start = self.cell.manipulators[k], self.starts[k]
            is_bolted = manipulator.name in self._bolted
            for place in manipulator.order:
                link = start + place
                below = self._below[link]
                if below == NOTHING:
                    below = supports.get(k, THE_WORLD)
                    joins = is_bolted
                else:
                    joins = self._is_fixed[link]
                if below == THE_WORLD:
                    groups[link] = THE_WORLD if joins else link
                    continue
                groups[link] = groups[below] if joins else link
                carriers[link] = below if self.has_shapes[below] else carriers[below]
        return groups, carriers

    def _by_height(self) -> list[int]:
        """Return the manipulators, each behind the one that it is bolted to."""
        below = {
            each.manipulator: int(self.owners[each.holder]) for each in self.bolted
        }
        found: dict[int, None] = {}
        for k in range(len(self.cell.manipulators)):
            line: list[int] = []
            at: int | None = k
            while at is not None and at not in found:
                line.append(at)
                at = below.get(at)
            found.update(dict.fromkeys(reversed(line)))
        return list(found)

    def kin(self) -> tuple[Indices, Indices]:
        """Return the parent and the grandparent of each link, as RobWork has them.

        -1 stands for the world, -2 for none. Mounts that are not bolted join nothing,
        and a frame that a base is bolted to counts as a link of its own.
        """
        count = self.starts[-1]
        parents = np.array(self._below, dtype=np.int64).reshape(count)
        above_frames: dict[int, int] = {}
        for number, mount in enumerate(self.cell.mounts):
            if not mount.bolted:
                continue
            at = self.cell.frame(mount.on)
            k = self.cell.index[mount.manipulator]
            base = self.starts[k] + self.cell.manipulators[k].base
            holder = at.link
            if mount.on == WORLD or self._is_link(mount.on, at):
                parents[base] = holder
            else:
                parents[base] = count + number
                above_frames[count + number] = holder
        padded = np.full(count + len(self.cell.mounts) + 2, NOTHING, dtype=np.int64)
        padded[:count] = parents
        for frame, holder in above_frames.items():
            padded[frame] = holder
        # Both stand-ins for no link are at the end, and have no parent themselves.
        return parents, padded[parents]

    def _is_link(self, name: str, at: FrameRef) -> bool:
        link = self.name(at.link)
        return name in {link.link, link.qualified}

    # what a state adds

    def nearest_base(self, k: int) -> tuple[Indices, Indices]:
        """Return the links with shapes that are rigid with the base of manipulator k.

        The second array has those with no link with shapes between themselves and the
        base, whether they move or not.
        """
        manipulator, start = self.cell.manipulators[k], self.starts[k]
        rigid: set[int] = set()
        open_below: set[int] = set()
        found: list[int] = []
        nearest: list[int] = []
        for place in manipulator.order:
            link = start + place
            below = self._below[link]
            is_base = below == NOTHING
            joins = is_base or (self._is_fixed[link] and below in rigid)
            is_open = is_base or below in open_below
            if joins:
                rigid.add(link)
            if self.has_shapes[link]:
                if joins:
                    found.append(link)
                if is_open:
                    nearest.append(link)
            elif is_open:
                open_below.add(link)
        return np.array(found, dtype=np.int64), np.array(nearest, dtype=np.int64)

    def bearer(self, link: int, held: dict[int, int]) -> tuple[int, bool]:
        """Return the link with shapes at or below a link, -1 where there is none.

        The second value tells whether the two are rigidly joined.

        held: The links that carry what states move, by the place of the manipulator.

        Raises:
            ModelError: Manipulators hold each other in a circle.
        """
        supports = {each.manipulator: each.holder for each in self.bolted} | held
        seen: set[int] = set()
        is_rigid = True
        while link >= 0 and not self.has_shapes[link]:
            if self._below[link] >= 0:
                is_rigid = is_rigid and self._is_fixed[link]
                link = self._below[link]
                continue
            k = int(self.owners[link])
            if k in seen:
                name = quote(self.cell.manipulators[k].name)
                raise ModelError(f"Manipulator {name} is held by what it holds itself.")
            seen.add(k)
            link = supports.get(k, THE_WORLD)
        return link, is_rigid
