"""Where loops lead over stretches of a motion, and how fast: proven enclosures.

Over a stretch, inputs u of a block of passive joints p are within `reach` of those of
its middle, where p is known. Of the rows F(u, p) = 0 that are solved for, let J be the
rates and H the second derivatives at the middle, T bounds of the magnitudes of third
derivatives nearby, and B about the inverse of the rates by p. With x = (u, p), changes
d of them and their bounds D, second derivatives are within T D of H, and

    S = |B H| + |B| (T D),      G = -B J_u,

so that by Taylor's formula all solutions near the middle have

    |d_p - G d_u| <= |B F| + |B J_p - 1| D_p + D S D / 2.

If the right side and |G| D_u together are at most D_p, the operator p - B F(u, p) maps
the box D_p into itself, so that there is a solution for each u. With

    E = |B J_p - 1| + (S D)_p,    E v <= c v,    v > 0,    c < 1

it is the only one in the box, and rates are nowhere singular (Krawczyk 1969; Neumaier,
Interval Methods for Systems of Equations, chapter 5; c bounds the spectral radius of E,
by Collatz and Wielandt). So the assembly that moves on from that of the middle is this
one. Its rates p' differ from G u' by y, with

    |y| <= (S D)_u |u'| + E |G u'| + E |y| =: w + E |y|,
    |y| <= z + e / (1 - c) v                where w + E z - z <= e v,

and z is a few terms of w + E w + E E w + ... Likewise v is D_p + E D_p / c + ...

A stretch for which this cannot be shown is to be halved. T is found by intervals, which
round outwards. What rounding adds elsewhere is bounded by `NOISE` of a row, which is
some thousand times what its formula loses, and by the part `MORE` of each bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, permutations
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.kinematics.closing.branch import Branch
from armillary.kinematics.closing.solver import solved_on
from armillary.model.fields import kept, kept_few
from armillary.model.loops.equations import LoopEquations
from armillary.model.loops.system import Block, LoopSystem
from armillary.model.upper_bound import enclosed
from armillary.model.workcell import Workcell
from armillary.trace import Program, jvp, trace
from armillary.trace.interval import Interval

__all__ = ["Stretches", "hull", "refined", "with_passive"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

NOISE: Final = 1e-12
"""What rounding may add to a row, of the size of its loop, and to its rates."""

MORE: Final = 1.0 + 1e-9
"""What sums of bounds are multiplied with, for their own rounding."""

CONTRACTS: Final = 0.25
"""The greatest c: with a greater one bounds of rates are much larger than rates."""

TERMS: Final = 6
"""Terms of geometric series of E."""

MOST_BOXES: Final = 6
"""Boxes that are tried around passive joints."""

WIDER: Final = 1.2
"""By how much the next one is wider than what was found to be needed."""

NARROWEST_BOX: Final = 1e-9
"""The narrowest of them [rad, or of the size of a loop]."""

DEEPEST: Final = 2
"""How often stretches are parted that are too many for one box of T."""

MOST_STRETCHES: Final = 20_000
"""So many more than at first stretches are halved to at most."""

LARGEST: Final = 0.5
"""The widest box that is tried [rad, or of the size of a loop]."""

GRID: Final = 1.0 / 8.0
"""To multiples of this the boxes are widened for which T is found, so that motions
near each other share it [rad, or of the size of a loop]."""

MOST_NUMBERS: Final = 4_000_000
"""Second derivatives of stretches that are enclosed at once."""

MOST_JOINED: Final = 24
"""Joints of blocks that are enclosed as one, whose third derivatives are many."""

MOST_KEPT: Final = 256
"""Such boxes that a cell keeps."""


class Stretches(NamedTuple):
    """Where joints are over s stretches of motions, and how fast they are.

    Attributes:
        q: Positions in the middle of each [m or rad], shape (s, n).
        reach: How far they are from those at most, shape (s, n); infinite where nothing
            is known.
        rate: Rates that are about right [per unit of what the motion depends on], shape
            (s, n).
        spread: How far rates are from those at most, shape (s, n).
    """

    q: Array
    reach: Array
    rate: Array
    spread: Array

    def of(self, rows: Indices) -> Stretches:
        """Return some of them."""
        return Stretches(*(each[rows] for each in self))

    def joined(self, firsts: Indices) -> Stretches:
        """Return stretches that are made of some one after the other.

        firsts: The first of each, ascending, shape (k,).
        """
        found: list[Array] = []
        for middle, half in (self[:2], self[2:]):
            low = np.minimum.reduceat(middle - half, firsts)
            high = np.maximum.reduceat(middle + half, firsts)
            found += [0.5 * (low + high), 0.5 * (high - low) * MORE]
        return Stretches(*found)

    def holds(self, rows: Indices, positions: Array, joints: Sequence[int]) -> Truths:
        """Return whether joints are where those of stretches may be.

        Args:
            rows: The stretch of each, shape (k,).
            positions: Of some joints, shape (k, m).
            joints: Which these are, shape (m,).
        """
        where = rows[:, None], np.array(joints)
        away = np.abs(positions - self.q[where])
        return np.asarray((away <= self.reach[where] + NOISE).all(axis=1))

    @property
    def fastest(self) -> Array:
        """Return the greatest magnitudes of rates, infinite where nothing is known."""
        known = np.isfinite(self.reach)
        return np.where(known, np.abs(self.rate) + self.spread, math.inf)

    @property
    def is_known(self) -> Truths:
        """Return for which stretches something is known of all joints, shape (s,)."""
        return np.asarray(np.isfinite(self.reach).all(axis=1))


def hull(stretches: Stretches) -> tuple[Array, Array]:
    """Return the least and greatest positions of each joint, where they are known.

    What is not known of one joint leaves what is known of others in these stretches:
    loops of other robots in the cell may be next to a singularity meanwhile.
    """
    known = np.isfinite(stretches.reach)
    q, reach = (np.where(known, each, 0.0) for each in stretches[:2])
    lower = np.where(known, q - reach, math.inf).min(axis=0, initial=math.inf)
    upper = np.where(known, q + reach, -math.inf).max(axis=0, initial=-math.inf)
    never = np.isinf(lower)
    return np.where(never, 0.0, lower), np.where(never, 0.0, upper)


def refined(
    branch: Branch | None,
    times: Array,
    at: Callable[[Array], Array],
    stretches: Callable[[Array, Array], Stretches],
    least: float,
) -> tuple[Array, Stretches]:
    """Return stretches of all joints, halved where loops are not proven to move on.

    Args:
        branch: On which loops are closed; None of a cell without loops.
        times: Instants between which stretches are at first, shape (k + 1,).
        at: Returns the joints of q at instants: (k,) -> (k, n).
        stretches: Returns those of the joints of q between instants (k,) and (k,).
        least: Shorter ones are not halved.

    Returns:
        Instants, and stretches between them, with passive joints behind those of q.
        Reaches are infinite where nothing is proven.
    """
    a, b = times[:-1], times[1:]
    most = len(a) + MOST_STRETCHES
    found = stretches(a, b)
    if branch is not None:
        known, _ = solved_on(branch.cell, branch, np.concatenate([found.q, at(times)]))
        middle, ends = known[: len(a)], known[len(a) :]
        found = _with_passive(branch, found, middle, (ends[:-1], ends[1:]))
    while True:
        # Where loops do not close at all nothing will be found.
        open_ = ~found.is_known & (b - a > least) & np.isfinite(found.q).all(axis=1)
        if not open_.any() or len(a) > most:
            break
        middle = 0.5 * (a + b)[open_]
        halves = (
            np.stack([a[open_], middle], axis=1).ravel(),
            np.stack([middle, b[open_]], axis=1).ravel(),
        )
        more = with_passive(branch, stretches(*halves), *map(at, halves))
        a, b = (
            np.concatenate([old[~open_], new])
            for old, new in zip((a, b), halves, strict=True)
        )
        order = np.argsort(a)
        a, b = a[order], b[order]
        found = Stretches(
            *(
                np.concatenate([old[~open_], new])[order]
                for old, new in zip(found, more, strict=True)
            )
        )
    return np.append(a, b[-1:]), found


def with_passive(
    branch: Branch | None, stretches: Stretches, *ends: Array
) -> Stretches:
    """Return stretches with the passive joints of loops behind the joints of q.

    Args:
        branch: On which loops are closed; None of a cell without loops.
        stretches: Of the joints of q.
        ends: Positions at which loops have to be closed by the same assemblies, such as
            both ends of each stretch, shape (s, n).

    Returns:
        Reaches are infinite where nothing is proven. Where loops do not close in the
        middle positions are those of an end, NaN if they do not there either.
    """
    if branch is None:
        return stretches
    passive, _ = solved_on(branch.cell, branch, np.concatenate([stretches.q, *ends]))
    middle, *at_ends = np.split(passive, 1 + len(ends))
    return _with_passive(branch, stretches, middle, at_ends)


def _with_passive(
    branch: Branch, stretches: Stretches, middle: Array, ends: Sequence[Array]
) -> Stretches:
    """Return the same by passive joints in the middle and at ends, shape (s, m) each.

    They are NaN where loops do not close.
    """
    found = LoopBounds.of(branch.cell).beside(stretches, middle, ends)
    for end in ends:
        own = found.q[:, -end.shape[1] :]
        np.copyto(own, end, where=np.isnan(own))
    return found


@dataclass(frozen=True, eq=False)
class BlockBounds:
    """A block of passive joints, and what is asked of its rows.

    Attributes:
        block: The block.
        loops: The equations of all loops, by their numbers.
        joints: The places of its joints, inputs first.
        scales: What each row is multiplied by to be of the size of its loop, (r,).
        units: What changes of its joints are compared with, shape (x,).
    """

    block: Block
    loops: Sequence[LoopEquations]
    joints: list[int]
    scales: list[float]
    units: Array

    @classmethod
    def of(cls, system: LoopSystem, block: Block) -> Self:
        """Read them from a system of loops."""
        joints = [*block.inputs, *block.unknowns]
        return cls(
            block,
            system.equations,
            joints,
            [system.scale(*row) for row in block.rows],
            np.array([system.units[k] for k in joints]),
        )

    @cached_property
    def kernel(self) -> Kernel:
        """Return the kernel of `derivatives`."""
        size = len(self.joints)
        names = "rows", "rates", "second"
        program = trace(
            self.derivatives, name="loop_derivatives", outputs=names, x=(size,)
        )
        return shared_kernel(program)

    def derivatives(self, x: Any) -> Any:
        """Return rows and their first and second derivatives, of the size of loops.

        x: Traced positions of its joints.

        Returns:
            Shapes (r,), (r, x) and (r, x, x).
        """
        places: Any = dict(zip(self.joints, x, strict=True))
        known = {loop: self.loops[loop].rows(places) for loop, _ in self.block.rows}
        rows: list[Any] = []
        rates: list[Any] = []
        for (loop, row), scale in zip(self.block.rows, self.scales, strict=True):
            of_row = known[loop].rates[row]
            at = dict(zip(self.loops[loop].joints, of_row, strict=True))
            rows.append(scale * known[loop].values[row])
            rates.append([scale * at.get(k, 0.0) for k in self.joints])
        second = [[jvp(row, [(q, 1.0)]) for q in x] for row in rates]
        return rows, rates, second

    def third_bounds(self, lower: Array, upper: Array) -> Array:
        """Return bounds of third derivatives of rows in a box, shape (r, x, x, x).

        They are infinite where rows or their derivatives may jump.

        Args:
            lower: Least positions of its joints, shape (x,).
            upper: Greatest.
        """
        size = len(self.units)
        found = np.zeros((len(self.scales), size, size, size))
        place = {k: at for at, k in enumerate(self.joints)}
        for loop, program in self.thirds.items():
            at = [place[k] for k in self.loops[loop].joints]
            box = [Interval(float(lower[k]), float(upper[k])) for k in at]
            numbers, may_jump = enclosed(program, box)
            own = list(combinations_with_replacement(at, 3))
            # Rows and lower derivatives are there to see whether they jump.
            third = numbers[len(numbers) - self.loops[loop].size * len(own) :]
            sizes = [max(-each.low, each.high) for each in third]
            for r, (of, row) in enumerate(self.block.rows):
                if of != loop:
                    continue
                for k, where in enumerate(own, start=row * len(own)):
                    size_of = math.inf if may_jump else sizes[k] * self.scales[r]
                    for each in permutations(where):
                        found[(r, *each)] = size_of
        return found

    @cached_property
    def thirds(self) -> dict[int, Program]:
        """Return the program of the third derivatives of each of its loops.

        Those by each combination of joints, whose order does not matter; before them
        rows and derivatives of lower orders.
        """
        numbers = sorted({loop for loop, _ in self.block.rows})
        return {loop: _third_derivatives(self.loops[loop]) for loop in numbers}


def _third_derivatives(equations: LoopEquations) -> Program:
    count = len(equations.joints)

    def derived(x: Any) -> Any:
        places: Any = dict(zip(equations.joints, x, strict=True))
        found = equations.rows(places)
        lower, rows = [found.values, *found.rates], found.rates
        for order in (1, 2):
            known = list(combinations_with_replacement(range(count), order))
            wanted = list(combinations_with_replacement(range(count), order + 1))
            before = [dict(zip(known, row, strict=True)) for row in rows]
            rows = [
                [jvp([row[each[:-1]]], [(x[each[-1]], 1.0)])[0] for each in wanted]
                for row in before
            ]
            lower += rows
        return [number for part in lower for number in part]

    return trace(derived, name="third", x=(count,))


def _joined(system: LoopSystem) -> list[Block]:
    """Return the blocks of loops, as one where passive joints of others are inputs.

    A box forgets that its joints move together: boxes of a chain of blocks, one after
    the other, would get wider by the same factor from each to the next.
    """
    groups: list[list[Block]] = []
    for block in system.blocks:
        own = {system.block_of.get(k) for k in block.inputs} - {None}
        needed = {system.blocks[b] for b in own if b is not None}
        before = [group for group in groups if not needed.isdisjoint(group)]
        groups = [group for group in groups if group not in before]
        groups.append([each for group in before for each in group] + [block])
    joined: list[Block] = []
    for group in groups:
        unknowns = {k: None for block in group for k in block.unknowns}
        inputs = {k: None for block in group for k in block.inputs if k not in unknowns}
        if len(unknowns) + len(inputs) > MOST_JOINED:
            joined += sorted(group, key=system.blocks.index)
            continue
        rows = tuple(row for block in group for row in block.rows)
        loops = tuple(loop for block in group for loop in block.loops)
        joined.append(Block(tuple(unknowns), tuple(inputs), rows, loops))
    return joined


class LoopBounds:
    """Proves where the loops of a cell lead, and how fast.

    Attributes:
        count: How many joints are in q.
        blocks: The blocks of passive joints, in solving order.
    """

    def __init__(self, cell: Workcell) -> None:
        """Read the loops of a cell."""
        system = cell.loop_system
        self.count = system.count
        self.blocks = tuple(BlockBounds.of(system, each) for each in _joined(system))

    @classmethod
    def of(cls, cell: Workcell) -> Self:
        """Return those of a cell, which keeps them."""
        return kept(cell, "loop bounds", lambda: cls(cell))

    def beside(
        self, given: Stretches, passive: Array, ends: Sequence[Array]
    ) -> Stretches:
        """Return stretches with passive joints behind the others.

        Args:
            given: Of the joints of q, shape (s, n).
            passive: Passive joints in the middle of each, shape (s, m); NaN where
                loops cannot be closed.
            ends: Those at other places of each stretch.
        """
        every = np.arange(len(passive))
        more = np.zeros_like(passive)
        whole = Stretches(*(np.concatenate([each, more], axis=1) for each in given))
        whole.q[:, self.count :] = passive
        whole.reach[:, self.count :] = math.inf
        for number, block in enumerate(self.blocks):
            known = np.isfinite(whole.q[:, block.joints]).all(axis=1)
            known &= np.isfinite(whole.reach[:, list(block.block.inputs)]).all(axis=1)
            rows = np.flatnonzero(known)
            # Second derivatives of stretches of hours do not fit in memory at once.
            size = len(block.block.unknowns) * len(block.joints) ** 2
            parts = math.ceil(len(rows) * size / MOST_NUMBERS)
            for part in np.array_split(rows, parts) if parts else ():
                self._enclose(number, whole, part)
            # The assemblies there are those to which that of the middle moves on.
            unknowns = list(block.block.unknowns)
            near = np.ones(len(passive), np.bool_)
            for end in ends:
                own = end[:, [k - self.count for k in unknowns]]
                near &= whole.holds(every, own, unknowns)
            whole.reach[np.flatnonzero(~near)[:, None], unknowns] = math.inf
        return whole

    def _enclose(self, number: int, whole: Stretches, rows: Indices) -> None:
        """Fill in the passive joints of a block, in rows where inputs are known."""
        bounds = self.blocks[number]
        unknowns = list(bounds.block.unknowns)
        part = Stretches(*(each[rows[:, None], bounds.joints] for each in whole))
        middles = Middles.of(bounds, part)
        # All together have one box for T; those for which that is too large have
        # smaller ones, as long as boxes get smaller.
        groups = [(np.flatnonzero(middles.may_be_proven(bounds)), b"", 0)]
        while groups:
            group, before, depth = groups.pop()
            if not len(group):
                continue
            some = Middles(*(each[group] for each in middles))
            box = some.box(bounds)
            key = np.stack(box).tobytes()
            if key == before:
                continue
            third = self._thirds(number, box)
            if not np.isfinite(third).all():  # by what is next to them, perhaps
                box = some.box(bounds, rounded=False)
                third = bounds.third_bounds(*box)
            proven, found = some.proven(bounds, third, box, part.of(group))
            good = rows[group[proven]][:, None], unknowns
            whole.reach[good] = found.reach[proven]
            whole.rate[good] = found.rate[proven]
            whole.spread[good] = found.spread[proven]
            if depth < DEEPEST:
                halves = np.array_split(group[~proven], 2)
                groups += [(half, key, depth + 1) for half in halves]

    def _thirds(self, number: int, box: tuple[Array, Array]) -> Array:
        """Return bounds of third derivatives of the rows of a block in a box, kept."""
        key = number, *(each.tobytes() for each in box)
        bounds = self.blocks[number]
        return kept_few(
            self, "third derivatives", key, lambda: bounds.third_bounds(*box), MOST_KEPT
        )


class Middles(NamedTuple):
    """What the head of this module computes in the middle of s stretches of a block.

    Attributes:
        q: Positions of inputs and unknowns, shape (s, x).
        G: Rates of unknowns for unit rates of inputs, shape (s, p, u).
        G_off: How far these may be off, shape (s, p, u).
        size: |B|, shape (s, p, r).
        off: |B J_p - 1|, shape (s, p, p).
        BH: |B H|, shape (s, p, x, x).
        first: What is known of |d_p| before second derivatives count, shape (s, p).
        D: Reaches of inputs, and boxes of unknowns to begin with, shape (s, x).
    """

    q: Array
    G: Array
    G_off: Array
    size: Array
    off: Array
    BH: Array
    first: Array
    D: Array

    @classmethod
    def of(cls, bounds: BlockBounds, part: Stretches) -> Self:
        """Compute them.

        Args:
            bounds: The block.
            part: The stretches of inputs, with unknowns behind.
        """
        q = np.ascontiguousarray(part.q)
        d, units = len(bounds.block.inputs), bounds.units
        derivatives: Any = bounds.kernel(q)
        F, J, H = (np.asarray(each, np.float64) for each in derivatives)
        B = _inverse(J[:, :, d:])
        size = np.abs(B)
        noise = NOISE * size.sum(axis=2)
        G, G_off = -B @ J[:, :, :d], noise[:, :, None] / units[:d]
        off = np.abs(B @ J[:, :, d:] - np.eye(len(units) - d))
        off += noise[:, :, None] / units[d:]
        p, x = B.shape[1], q.shape[1]
        BH = np.abs(B @ H.reshape(len(q), -1, x * x)).reshape(-1, p, x, x)
        D = part.reach.copy()
        first = noise + np.abs(_times(B, F)) + _times(np.abs(G) + G_off, D[:, :d])
        D[:, d:] = 2.0 * first + NARROWEST_BOX * units[d:]
        return cls(q, G, G_off, size, off, BH, first, D)

    def may_be_proven(self, bounds: BlockBounds) -> Truths:
        """Return which stretches would contract if T were 0, in the least boxes."""
        d, D = len(bounds.block.inputs), self.D.copy()
        D[:, d:] *= 0.5
        E = self.off + _times(self.BH, D[:, None])[:, :, d:]
        _, c = _contraction(E, D[:, d:])
        contracts = c <= CONTRACTS
        small = (LARGEST * bounds.units >= self.D).all(axis=1)
        return np.asarray(contracts & small)

    def box(self, bounds: BlockBounds, *, rounded: bool = True) -> tuple[Array, Array]:
        """Return a box of joints that has room for all stretches, shape (x,) twice.

        rounded: Whether it is made a little larger, so that others have the same.
        """
        room = self.D.copy()
        room[:, len(bounds.block.inputs) :] *= 2.0
        lower, upper = (self.q - room).min(axis=0), (self.q + room).max(axis=0)
        if not rounded:
            return lower, upper
        step = GRID * bounds.units
        return np.floor(lower / step) * step, np.ceil(upper / step) * step

    def proven(
        self,
        bounds: BlockBounds,
        T: Array,
        box: tuple[Array, Array],
        part: Stretches,
    ) -> tuple[Truths, Stretches]:
        """Return for which stretches a box is mapped into itself, and that of unknowns.

        Args:
            bounds: The block.
            T: Bounds of third derivatives, shape (r, x, x, x).
            box: Where these hold.
            part: The stretches of inputs, with unknowns behind.
        """
        d, D = len(bounds.block.inputs), self.D.copy()
        found = self.mapped(T, D, d)
        for _ in range(MOST_BOXES):
            small = (found.needed <= LARGEST * bounds.units[d:]).all(axis=1)
            again = ~found.proven & small
            if not again.any():
                break
            D[again, d:] = WIDER * found.needed[again]
            found = self.mapped(T, D, d)
        lower, upper = box
        within = ((self.q - D >= lower) & (self.q + D <= upper)).all(axis=1)
        fastest = part.fastest[:, :d]
        rate = _times(self.G, part.rate[:, :d])
        straight = _times(np.abs(self.G), part.spread[:, :d])
        straight += _times(self.G_off, fastest)
        w = straight + _times(found.SD[:, :, :d], fastest)
        w += _times(found.E, np.abs(rate) + straight)
        z = w
        with np.errstate(invalid="ignore", over="ignore"):
            for _ in range(TERMS):
                z = w + _times(found.E, z)
            e = ((w + _times(found.E, z) - z) / found.v).max(axis=1).clip(0.0)
            y = z + (e / (1.0 - np.minimum(found.c, CONTRACTS)))[:, None] * found.v
        unknowns = Stretches(self.q[:, d:], D[:, d:], rate, MORE * y)
        return np.asarray(found.proven & within), unknowns

    def mapped(self, T: Array, D: Array, d: int) -> Mapped:
        """Return to what boxes are mapped.

        Args:
            T: Bounds of third derivatives, shape (r, x, x, x).
            D: The boxes, shape (s, x).
            d: How many of the x joints are inputs.
        """
        r, x = T.shape[:2]
        bent = _times((D @ T.reshape(-1, x).T).reshape(-1, r, x, x), D[:, None])
        SD = _times(self.BH, D[:, None]) + self.size @ bent
        E = self.off + SD[:, :, d:]
        v, c = _contraction(E, D[:, d:])
        needed = self.first + _times(self.off, D[:, d:]) + 0.5 * _times(SD, D)
        needed *= MORE
        proven = (needed <= D[:, d:]).all(axis=1) & (c <= CONTRACTS)
        return Mapped(SD, E, v, c, needed, np.asarray(proven))


class Mapped(NamedTuple):
    """To what boxes around unknowns are mapped, in the letters of this module.

    Attributes:
        SD: S D, shape (s, p, x).
        E: Shape (s, p, p).
        v: Shape (s, p).
        c: Shape (s,).
        needed: What D_p has to be at least, shape (s, p).
        proven: Whether it is, and c is small enough, shape (s,).
    """

    SD: Array
    E: Array
    v: Array
    c: Array
    needed: Array
    proven: Truths


def _contraction(E: Array, D: Array) -> tuple[Array, Array]:
    """Return v and c: (s, p, p) and (s, p) -> (s, p) and (s,)."""
    v = D
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(TERMS):
            v = D + _times(E, v) / CONTRACTS
        return v, (_times(E, v) / v).max(axis=1)


def _times(A: Array, x: Array) -> Array:
    """Return products of matrices with vectors, for each stretch."""
    return (A @ x[..., None])[..., 0]


def _inverse(J: Array) -> Array:
    """Return about the inverse of rates by unknowns: (s, r, p) -> (s, p, r).

    Rows that follow from others are solved for along with them.
    """
    if J.shape[1] == J.shape[2]:
        with suppress(np.linalg.LinAlgError):
            return np.asarray(np.linalg.inv(J), np.float64)
    return np.asarray(np.linalg.pinv(J), np.float64)
