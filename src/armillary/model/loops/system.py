"""The loops of a manipulator or a cell: which joints follow, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.model.link_poses import LinkTree
from armillary.model.loops.equations import (
    LoopEquations,
    LoopJoint,
    PlacedLoop,
    loop_equations,
)
from armillary.model.unit import Unit

if TYPE_CHECKING:
    from armillary.model.loops.home import Eliminated, ScaledRows

__all__ = ["Block", "LoopSystem", "combined", "loop_system"]

Array = npt.NDArray[np.float64]

MOST_AT_ONCE: Final = 64
SAMPLES: Final = 4
CONSISTENT: Final = 1e-5
"""How far rows that need not be solved for may open, of the size of a loop: files
round directions."""

# the order in which passive joints can be solved for: in blocks, one after another

NOBODY: Final = -1


def matched(rows: Sequence[Sequence[int]], count: int) -> list[int]:
    """Return for each of `count` unknowns a row that has it, each row once, or -1.

    Augmenting paths (Kuhn 1955; Hopcroft and Karp give a faster order, which rows of
    few unknowns do not need).

    rows: The unknowns that are in each row.
    """
    owner = [NOBODY] * count
    for row in range(len(rows)):
        found_by: dict[int, int] = {}  # unknown -> the row from which it was reached
        waiting = [row]
        end = NOBODY
        # Look for a row of an unknown that nobody has: from a row to its unknowns, and
        # from one that is taken to the row that has it.
        while waiting and end == NOBODY:
            at = waiting.pop()
            for unknown in rows[at]:
                if unknown in found_by:
                    continue
                found_by[unknown] = at
                if owner[unknown] == NOBODY:
                    end = unknown
                    break
                waiting.append(owner[unknown])
        # Along that path each row gives its unknown to the one before and takes the
        # next, so that one more is matched.
        while end != NOBODY:
            at = found_by[end]
            previous = next((u for u in rows[at] if owner[u] == at), NOBODY)
            owner[end] = at
            end = NOBODY if at == row else previous
    return owner


def solving_order(needs: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield sets of nodes that need each other, after all that they need.

    The strongly connected components (Tarjan 1972), without recursion.

    needs: The nodes that each node needs.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for start in range(len(needs)):
        if start in index:
            continue
        waiting = [(start, iter(needs[start]))]
        # `index` numbers nodes as they are met; `low` is the least index on the path
        # that a node leads back to.
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        while waiting:
            node, rest = waiting[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    waiting.append((other, iter(needs[other])))
                    break
                if other in on_path:
                    low[node] = min(low[node], index[other])
            else:
                waiting.pop()
                if waiting:
                    below = waiting[-1][0]
                    low[below] = min(low[below], low[node])
                # It leads to nothing earlier: what is on the path behind it needs each
                # other.
                if low[node] == index[node]:
                    together = path[path.index(node) :]
                    del path[len(path) - len(together) :]
                    on_path.difference_update(together)
                    yield sorted(together)


# the loops of a manipulator or a cell: which joints follow, and in which order


class Block(NamedTuple):
    """Passive joints that are solved for together.

    Attributes:
        unknowns: Them, places in the vector of all joints.
        inputs: The joints that decide them: independent ones, and passive ones of
            earlier blocks.
        rows: The number of a loop, and of a row of that: as many as unknowns, and more
            where some follow from the others.
        loops: All loops that are closed with these unknowns, or follow from that.
        more: Joints of loops that follow, besides inputs and unknowns.
    """

    unknowns: tuple[int, ...]
    inputs: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    loops: tuple[int, ...]
    more: tuple[int, ...] = ()

    def renumbered(self, joints: Sequence[int], first_loop: int) -> Block:
        """Return it with other numbers of joints, and of loops."""
        return Block(
            unknowns=tuple(joints[k] for k in self.unknowns),
            inputs=tuple(joints[k] for k in self.inputs),
            rows=tuple((first_loop + loop, row) for loop, row in self.rows),
            loops=tuple(first_loop + loop for loop in self.loops),
            more=tuple(joints[k] for k in self.more),
        )


class LoopSystem(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What loops say about joints, which are numbered independent ones first.

    Attributes:
        order: The joints as they were given, independent ones first, then passive ones.
        count: Of independent joints.
        equations: Of each loop.
        home: The position of every joint at home, closed, in the new order.
        blocks: How passive joints are solved for, one block after another.
        sizes: Of the loop [m], for each: what lengths in it are compared with.
        units: Of each joint, what its changes are compared with: 1, or for lengths the
            size of its loop.
        found: Passive joints that nobody said are passive, places in the new order.
        redundant: Rows that hold because the others do.
    """

    order: tuple[int, ...] = ()
    count: int = 0
    equations: tuple[LoopEquations, ...] = ()
    home: tuple[float, ...] = ()
    blocks: tuple[Block, ...] = ()
    sizes: tuple[float, ...] = ()
    units: tuple[float, ...] = ()
    found: tuple[int, ...] = ()
    redundant: int = 0

    @property
    def passive(self) -> range:
        """Return the passive joints, places in the vector of all joints."""
        return range(self.count, len(self.order))

    def scale(self, loop: int, row: int) -> float:
        """Return what a row is multiplied by to be of the size of its loop."""
        is_length = row < self.equations[loop].lengths
        return 1.0 / self.sizes[loop] if is_length else 1.0

    @cached_property
    def block_of(self) -> dict[int, int]:
        """Return the number of the block that solves for each passive joint."""
        return {k: b for b, block in enumerate(self.blocks) for k in block.unknowns}

    def deciding(self, joints: Iterable[int]) -> dict[int, None]:
        """Return the independent joints that decide where joints are, in order."""
        given = list(joints)
        needed = (self.blocks[b].inputs for b in self.needed(given))
        every = dict.fromkeys(chain(given, *needed))
        return {k: None for k in every if k < self.count}

    def needed(self, joints: Iterable[int]) -> tuple[int, ...]:
        """Return the blocks that must be solved to know where joints are, in order."""
        blocks: set[int] = set()
        waiting = list(joints)
        while waiting:
            b = self.block_of.get(waiting.pop(), -1)
            if b >= 0 and b not in blocks:
                blocks.add(b)
                waiting += (*self.blocks[b].inputs, *self.blocks[b].more)
        return tuple(sorted(blocks))

    def solved_with(self, joints: Iterable[int]) -> tuple[int, ...]:
        """Return the passive joints that are solved for to know where joints are."""
        return tuple(k for b in self.needed(joints) for k in self.blocks[b].unknowns)


def loop_system(
    tree: LinkTree, placed: Sequence[PlacedLoop], joints: Sequence[LoopJoint]
) -> LoopSystem:
    """Find which joints loops determine, and where they stand at home.

    A joint is passive that loops determine once the independent ones are given. Among
    those that could be, it is the one of higher rank, else the later one.

    Args:
        tree: Links, moved by all joints.
        placed: The loops.
        joints: All joints that have a number, as in the drives of the tree.

    Raises:
        ModelError: Nothing moves in a loop, it cannot close at home, home is singular,
            or loops leave nothing to move.
    """
    with IMPORT_LOCK:  # few cells have loops
        from armillary.model.loops import home as at_home

    _check_lengths(placed, joints)
    equations = [loop_equations(tree, each) for each in placed]
    scaled = at_home.ScaledRows(equations, joints)
    used = sorted({k for each in equations for k in each.joints})
    # The joints that elimination takes first become passive: of higher rank, then later
    # ones.
    order = sorted(used, key=lambda k: (joints[k].rank, k), reverse=True)
    start = np.array([joint.start for joint in joints])
    # Rates next to the start, where no accident makes the loops singular, decide which
    # joints can close them at home.
    generic = at_home.eliminated(scaled.rates(scaled.nearby(start)), order)
    home = at_home.closed_near(scaled, start, generic.columns)
    # At home itself fewer may be determined. The rows with pivots are then enough only
    # if the others stay zero as independent joints move.
    elimination = at_home.eliminated(scaled.rates(home), order)
    free = [k for k in used if k not in elimination.columns]
    _check_mobility(scaled, used, elimination.columns)
    opened, worst = at_home.opening(scaled, home, free, elimination)
    if not opened < CONSISTENT:
        ranks = len(elimination.columns), len(generic.columns)
        raise _cannot_move(ranks, opened, equations[worst].loop.label)
    passive = sorted(elimination.columns)
    independent = [k for k in range(len(joints)) if k not in elimination.columns]
    new_order = (*independent, *passive)
    place = {k: new for new, k in enumerate(new_order)}
    renumbered = tuple(
        each._replace(joints=tuple(place[k] for k in each.joints)) for each in equations
    )
    rows = [scaled.addresses[row] for row in elimination.rows]
    spare = [scaled.addresses[row] for row in _spare_rows(scaled, start, elimination)]
    return LoopSystem(
        order=new_order,
        count=len(independent),
        equations=renumbered,
        home=tuple(home[list(new_order)].tolist()),
        blocks=tuple(_blocks(renumbered, rows, spare, len(independent))),
        sizes=tuple(scaled.sizes),
        units=tuple(scaled.units[list(new_order)].tolist()),
        found=tuple(place[k] for k in passive if joints[k].rank == 0),
        redundant=len(scaled.addresses) - len(rows),
    )


def _check_lengths(placed: Sequence[PlacedLoop], joints: Sequence[LoopJoint]) -> None:
    """Raise a `ModelError` if the length of a loop is a joint that is not in metres."""
    for loop, _, _, drive in placed:
        if drive is not None and joints[drive.of].unit is not Unit.METRE:
            raise ModelError(
                f"In {loop.label} by= names {quote(joints[drive.of].name)}, whose "
                "coordinate is not a length; name a joint in metres, such as a "
                "Prismatic or a LengthCoordinate."
            )


def _spare_rows(scaled: ScaledRows, start: Array, found: Eliminated) -> list[int]:
    """Return rows that follow from the others, but not since nothing changes them.

    Those of a planar loop that are across its plane are left out. The others help where
    the ones that are enough at home are not enough elsewhere.
    """
    changes = np.zeros(len(scaled.addresses))
    for seed in range(SAMPLES):
        noise = np.random.default_rng(seed).uniform(-math.pi, math.pi, len(start))
        rates = scaled.at(start + scaled.units * noise)[1][:, list(found.columns)]
        changes = np.maximum(changes, np.abs(rates).max(axis=1, initial=0.0))
    return [
        row
        for row, change in enumerate(changes)
        if change > CONSISTENT and row not in found.rows
    ]


def combined(systems: Sequence[LoopSystem]) -> LoopSystem:
    """Return the loops of several manipulators, whose joints come in turn."""
    independent: list[int] = []
    passive: list[int] = []
    starts = list(accumulate((len(each.order) for each in systems), initial=0))
    for start, each in zip(starts, systems, strict=False):
        independent += (start + k for k in each.order[: each.count])
        passive += (start + k for k in each.order[each.count :])
    order = (*independent, *passive)
    place = {old: new for new, old in enumerate(order)}
    home = [0.0] * len(order)
    units = [1.0] * len(order)
    equations: list[LoopEquations] = []
    blocks: list[Block] = []
    found: list[int] = []
    for start, each in zip(starts, systems, strict=False):
        new = [place[start + old] for old in each.order]
        for k, position, unit in zip(new, each.home, each.units, strict=False):
            home[k], units[k] = position, unit
        first = len(equations)
        equations += (
            one._replace(joints=tuple(new[k] for k in one.joints))
            for one in each.equations
        )
        blocks += (block.renumbered(new, first) for block in each.blocks)
        found += (new[k] for k in each.found)
    return LoopSystem(
        order=order,
        count=len(independent),
        equations=tuple(equations),
        home=tuple(home),
        blocks=tuple(blocks),
        sizes=tuple(size for each in systems for size in each.sizes),
        units=tuple(units),
        found=tuple(found),
        redundant=sum(each.redundant for each in systems),
    )


def _check_mobility(
    scaled: ScaledRows, used: Sequence[int], passive: Sequence[int]
) -> None:
    """Refuse loops that leave none of their joints free."""
    if len(passive) < len(used):
        return
    names = ", ".join(quote(scaled.joints[k].name) for k in used[:8])
    more = f" and {len(used) - 8} more" if len(used) > 8 else ""
    raise ModelError(
        f"The loops leave nothing to move: {len(scaled.addresses)} equations determine "
        f"all {len(used)} joints in them ({names}{more}). Close fewer directions, such "
        "as position='xy' of a planar loop whose axes are not parallel enough, or add "
        "a joint."
    )


def _cannot_move(ranks: tuple[int, int], opened: float, worst: str) -> ModelError:
    here, near = ranks
    if here < near:
        return ModelError(
            f"The loops are singular at home: {here} of {near} passive joints are "
            "determined there, so that they could move either way. Let it start "
            "elsewhere: a posture that is `home`, passive joints included."
        )
    return ModelError(
        "The loops are over-constrained: they close at home, but as soon as a joint "
        f"moves, {worst} opens by {opened:.3g} of its size. Check that axes are "
        "parallel and lengths right, or close fewer directions."
    )


def _blocks(
    equations: Sequence[LoopEquations],
    rows: Sequence[tuple[int, int]],
    spare: Sequence[tuple[int, int]],
    count: int,
) -> list[Block]:
    """Return the blocks of passive joints, in an order in which they can be solved.

    Args:
        equations: Of each loop.
        rows: That are enough, as many as passive joints.
        spare: That follow from them, but are solved along with them.
        count: Of independent joints, before the passive ones.
    """
    joints = [equations[loop].joints for loop, _ in (*rows, *spare)]
    incidence = [[k - count for k in each if k >= count] for each in joints]
    # Each unknown gets a row of its own; it needs the other unknowns of that row. Spare
    # rows are solved with their unknowns, which a ring of needs keeps together.
    owner = matched(incidence[: len(rows)], len(rows))
    needs = [incidence[row] for row in owner]
    for together in incidence[len(rows) :]:
        for one, other in pairwise((*together, *together[:1])):
            needs[one] = [*needs[one], other]
    blocks: list[Block] = []
    for members in solving_order(needs):
        if len(members) > MOST_AT_ONCE:
            raise ModelError(
                f"Loops couple {len(members)} passive joints, which have to be solved "
                f"for at once; at most {MOST_AT_ONCE} can be."
            )
        own = {count + k for k in members}
        solved = [owner[m] for m in members]
        solved += (
            row
            for row in range(len(rows), len(joints))
            if not own.isdisjoint(joints[row])
        )
        around = {k for row in solved for k in joints[row]}
        addresses = sorted((*rows, *spare)[row] for row in solved)
        blocks.append(
            Block(
                unknowns=tuple(sorted(own)),
                inputs=tuple(sorted(around - own)),
                rows=tuple(addresses),
                loops=tuple(sorted({loop for loop, _ in addresses})),
            )
        )
    _add_followers(blocks, equations)
    return blocks


def _add_followers(blocks: list[Block], equations: Sequence[LoopEquations]) -> None:
    """Have loops that hold because others do checked by their last block."""
    block_of = {k: b for b, block in enumerate(blocks) for k in block.unknowns}
    solved = {loop for block in blocks for loop in block.loops}
    for loop, each in enumerate(equations):
        last = max((block_of.get(k, -1) for k in each.joints), default=-1)
        if loop in solved or last < 0:
            continue
        block = blocks[last]
        own = {*block.inputs, *block.unknowns, *block.more}
        blocks[last] = block._replace(
            loops=(*block.loops, loop),
            more=(*block.more, *(k for k in each.joints if k not in own)),
        )
