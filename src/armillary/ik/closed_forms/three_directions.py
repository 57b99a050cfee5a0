"""Arms with one slide whose five turns are about axes of three directions.

Parallel neighbours of the turns are a block, about one direction; the rotation tells
the sum of the angles of each of three blocks, as it tells those of a wrist. Then all
frames between blocks are known, and what is left is geometry:

- Of a block of three turns the slide makes up for the height along their axes, and a
  triangle across them tells the angles.
- Of two blocks of two turns, a and b, with the slide across the axes of b: the height
  along these depends on the angle of a alone; then the arm of b is turned to the line
  on which the slide leaves it.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from armillary.ik.closed_forms.decoupled import FLAT, LOOSE, WRIST
from armillary.ik.closed_forms.family import (
    BranchChoice,
    Family,
    Formula,
    FormulaAnswer,
    Preferred,
    require,
)
from armillary.ik.closed_forms.prismatic_arm import PrismaticArm, Slide
from armillary.ik.closed_forms.subproblems import (
    ZERO_TURN,
    Turn,
    facing,
    flat,
    plane,
    triangle,
)
from armillary.ik.closed_forms.wrist import beyond_reach, wrist_turns
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    ZERO,
    Number,
    Vector3,
    add,
    cross,
    dot,
    scale,
    subtract,
    transpose,
)
from armillary.trace.functions import absolute, maximum, select, sqrt

DIRECTIONS = 3
SAMPLES = 8
SQUARE = 1e-9
"""Cosine of the angle between directions that are at right angles, at most."""


class _Placed(NamedTuple):
    """An arm whose blocks are turned as the rotation asks for.

    Attributes:
        entries: The frame that each block turns in.
        ends: The frame before the first block, then behind each of them.
        sums: Of the angles of each block.
        left: The position without what lies between blocks.
        singular: See `FormulaAnswer`.
        sine_square: Of the sine by which errors of the target are divided in the
            angles.
        miss: See `FormulaAnswer`: by the rotation.
    """

    entries: list[Pose]
    ends: list[Pose]
    sums: list[Turn]
    left: Vector3
    singular: Any
    sine_square: Number
    miss: Number

    def of_block(self, block: int, v: Vector3) -> Vector3:
        """Return a vector as seen by a block."""
        return self.entries[block].inverse().rotate(v)

    def answer(
        self,
        turns: dict[int, list[Turn]],
        length: Number,
        *,
        is_free: Any,
        sine_square: Number,
        miss: Number,
    ) -> FormulaAnswer:
        """Return an answer, with the turns of some blocks; others have one turn each.

        Args:
            turns: By the number of the block.
            length: That of the slide.
            is_free: Whether other angles or lengths will do.
            sine_square: As of the blocks, of all that divides errors of the target.
            miss: As of `FormulaAnswer`.
        """
        blocks = [turns.get(k, [total]) for k, total in enumerate(self.sums)]
        every = list(itertools.chain(*blocks))
        singular, loose = self.singular | is_free, sine_square <= LOOSE
        return FormulaAnswer(every, singular, loose, [length], miss)


class _Blocks(NamedTuple):
    """The turns of an arm by their directions.

    Attributes:
        arm: The arm.
        firsts: The place of the first turn of each block, then the number of turns.
        slide: What slides.
        block: The block that the slide is inside of; -1 if it is in none.
        end: Where it is in `_Placed.ends`, if it is in none.
    """

    arm: PrismaticArm
    firsts: tuple[int, ...]
    slide: Slide
    block: int
    end: int

    @property
    def counts(self) -> list[int]:
        """Return how many turns each block has."""
        return [b - a for a, b in itertools.pairwise(self.firsts)]

    def of(self, turns: Any) -> list[Any]:
        """Return what is given for each turn, by blocks."""
        return [list(turns[a:b]) for a, b in itertools.pairwise(self.firsts)]

    def placed(self, target: Pose, preferred: Preferred) -> list[_Placed]:
        """Return both ways to turn the blocks."""
        arm = self.arm
        x, _, z = transpose(target.rotation)
        one, two = (arm.links[first - 1] for first in self.firsts[1:-1])
        wanted = ZERO_TURN
        for turn in preferred.turns[: self.firsts[1]]:
            wanted = wanted.plus(turn)
        ways: list[_Placed] = []
        for *sums, free in wrist_turns(x, z, one, two, wanted):
            sine = one.sin * two.sin * sums[1].sin
            ends, entries = [IDENTITY], list[Pose]()
            for total, link in zip(sums, (None, one, two), strict=True):
                entry = ends[-1] if link is None else ends[-1] @ link.pose
                entries.append(entry)
                ends.append(entry @ total.pose)
            left = target.position
            for end, first in zip(ends, self.firsts, strict=True):
                left = subtract(left, end.rotate(arm.spans[first]))
            miss = beyond_reach(z, one, two)
            parts = entries, ends, sums, left, free, sine * sine, miss * miss
            ways.append(_Placed(*parts))
        return ways

    def way(self, placed: _Placed, block: int) -> Vector3:
        """Return the direction of the slide as seen by a block, if it is in none.

        Inside of a block it may slide along the axes.
        """
        if self.block < 0:
            return placed.of_block(block, placed.ends[self.end].rotate(self.slide.way))
        along = placed.entries[self.block].rotate((0.0, 0.0, self.slide.way[2]))
        return placed.of_block(block, along)

    def is_across(self, block: int) -> bool:
        """Return whether the slide is across the axes of a block at all angles."""
        if self.block == block:
            return self.slide.way[2] == 0.0
        if self.block >= 0 and any(self.slide.way[:2]):
            return False
        rng = np.random.default_rng(0)
        for angles in rng.uniform(-3.0, 3.0, (SAMPLES, len(self.arm.drives))):
            turns = [Turn(float(np.cos(x)), float(np.sin(x))) for x in angles]
            frames = self.arm.frames(turns)
            way = frames[self.slide.after].rotate(self.slide.way)
            axis = frames[self.firsts[block + 1]].rotate((0.0, 0.0, 1.0))
            if abs(dot(way, axis)) > SQUARE:
                return False
        return True


def _blocks_of(arm: PrismaticArm) -> _Blocks:
    """Return the blocks of an arm.

    Raises:
        NotApplicable: They are not three, or not one joint slides.
    """
    require(len(arm.slides) == 1, f"{len(arm.slides)} joints slide")
    count = len(arm.drives)
    firsts = [0, *(k + 1 for k, link in enumerate(arm.links) if not link.parallel)]
    many = f"axes of {len(firsts)} directions turn"
    require(len(firsts) == DIRECTIONS, many)
    firsts.append(count)
    (slide,) = arm.slides
    is_outside = slide.after in firsts
    inside = next(k for k, first in enumerate(firsts) if slide.after <= first) - 1
    return _Blocks(
        arm,
        tuple(firsts),
        slide,
        -1 if is_outside else inside,
        firsts.index(slide.after) if is_outside else -1,
    )


def _with_three(arm: PrismaticArm) -> Formula:
    """Return the formula where three of the turns are about parallel axes.

    Raises:
        NotApplicable: It is not so, or the slide is across them.
    """
    blocks = _blocks_of(arm)
    require(3 in blocks.counts, "no three neighbours are parallel")
    b = blocks.counts.index(3)
    _require_apart(arm, blocks, b)
    across = f"joint {blocks.slide.number} slides across three parallel axes"
    require(not blocks.is_across(b), across)
    first = blocks.firsts[b]
    inside = blocks.slide.after - first if blocks.block == b else 0

    def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        answers: list[FormulaAnswer] = []
        for placed in blocks.placed(target, preferred):
            spans = [arm.spans[first + 1], arm.spans[first + 2]]
            way = blocks.slide.way if inside else blocks.way(placed, b)
            v = placed.of_block(b, placed.left)
            # Heights along the axes: v = R(t1) (l1 + R(t2) l2) + d way.
            is_flat = absolute(way[2]) <= FLAT
            rise = v[2] - spans[0][2] - spans[1][2]
            d = rise / select(is_flat, 1.0, way[2])
            if inside:
                spans[inside - 1] = add(spans[inside - 1], scale(d, way))
            else:
                v = subtract(v, scale(d, way))
            upper, fore = map(flat, spans)
            # d is the height divided by way_z, which divides its error, too.
            sine_square = placed.sine_square * way[2] * way[2]
            gap = _beyond_triangle(arm, upper, fore, v)
            miss = maximum(placed.miss, sine_square * gap)
            wanted = preferred.turns[first]
            for one, two, free in triangle(upper, fore, v, arm.size, wanted):
                last = placed.sums[b].plus(one.plus(two).back)  # t3 = sum - (t1 + t2)
                answers.append(
                    placed.answer(
                        {b: [one, two, last]},
                        d,
                        is_free=is_flat | free,
                        sine_square=sine_square,
                        miss=miss,
                    )
                )
        return answers

    return solve


def _with_pairs(arm: PrismaticArm) -> Formula:
    """Return the formula of two pairs of parallel axes, the slide across one of them.

    Raises:
        NotApplicable: It is not so.
    """
    blocks = _blocks_of(arm)
    pairs = [k for k, count in enumerate(blocks.counts) if count == 2]
    require(len(pairs) == 2, "no two pairs of neighbours are parallel")
    for pair in pairs:
        _require_apart(arm, blocks, pair)
    across = [pair for pair in pairs if blocks.is_across(pair)]
    skew = f"joint {blocks.slide.number} slides across neither of two pairs of axes"
    require(bool(across), skew)
    b = across[0]
    (a,) = (pair for pair in pairs if pair != b)
    span_a, span_b = (arm.spans[blocks.firsts[k] + 1] for k in (a, b))

    def solve(target: Pose, preferred: Preferred) -> list[FormulaAnswer]:
        answers: list[FormulaAnswer] = []
        for placed in blocks.placed(target, preferred):
            # left = Ra(ta) la + Rb(tb) lb + d way. Heights along zb depend neither on d
            # nor on tb: zb . (left - Ra(ta) la) = zb . lb tells ta.
            axis = placed.entries[b].rotate((0.0, 0.0, 1.0))
            h = placed.of_block(a, axis)
            height = dot(axis, placed.left) - span_b[2]
            wanted = preferred.turns[blocks.firsts[a]]
            *ones, free = facing(h, span_a, height, arm.size**2, wanted)
            size = arm.size**2 + dot(placed.left, placed.left)
            gap = _beyond(h, span_a, height) / size
            miss_of_a = maximum(placed.miss, placed.sine_square * gap)
            for one in ones:
                turned = one.apply(span_a)
                reached = placed.entries[a].rotate(turned)
                v = placed.of_block(b, subtract(placed.left, reached))
                # The height changes by this per angle, for an arm of one metre.
                slope = cross(h, turned)[2]
                arm_a = plane(span_a, span_a)
                sine_square = placed.sine_square * slope * slope / arm_a
                # What is left lies in the plane across zb: tb and d.
                lines, gap = _to_line(blocks, placed, b, v, preferred)
                miss = maximum(miss_of_a, sine_square * gap / size)
                for two, d, also in lines:
                    turns = {
                        a: [one, placed.sums[a].plus(one.back)],
                        b: [two, placed.sums[b].plus(two.back)],
                    }
                    answers.append(
                        placed.answer(
                            turns,
                            d,
                            is_free=free | also,
                            sine_square=sine_square,
                            miss=miss,
                        )
                    )
        return answers

    return solve


def _to_line(
    blocks: _Blocks, placed: _Placed, b: int, v: Vector3, preferred: Preferred
) -> tuple[list[tuple[Turn, Number, Any]], Number]:
    """Return turns and lengths d with v = R(t) l + d way, or R(t) (l + d way).

    In the plane across the axes of block b; with each whether others will do. Then the
    square of the distance by which the line is too far away, 0 if it is not.
    """
    span = flat(blocks.arm.spans[blocks.firsts[b] + 1])
    square, wanted = blocks.arm.size**2, preferred.turns[blocks.firsts[b]]
    v = flat(v)
    if blocks.block == b:
        way = blocks.slide.way
        across = (way[1], 0.0 - way[0], 0.0)
        *backs, free = facing(across, v, dot(across, span), square, wanted.back)
        lengths = [dot(way, subtract(back.apply(v), span)) for back in backs]
        ends = zip(backs, lengths, strict=True)
        gap = _beyond(across, v, dot(across, span))
        return [(t.back, d, free) for t, d in ends], gap
    way = flat(blocks.way(placed, b))
    across = (way[1], 0.0 - way[0], 0.0)
    *turns, free = facing(across, span, dot(across, v), square, wanted)
    lengths = [dot(way, subtract(v, turn.apply(span))) for turn in turns]
    gap = _beyond(across, span, dot(across, v))
    return [(t, d, free) for t, d in zip(turns, lengths, strict=True)], gap


def _beyond(h: Vector3, p: Vector3, c: Number) -> Number:
    """Return the square by which c is beyond all h . Rz p, 0 if it is not."""
    e, most = c - h[2] * p[2], sqrt(plane(h, h) * plane(p, p))
    excess = maximum(absolute(e) - most, 0.0)
    return excess * excess


def _beyond_triangle(
    arm: PrismaticArm, upper: Vector3, fore: Vector3, v: Vector3
) -> Number:
    """Return the square by which v is out of reach, as a part of its own and the arm's.

    |v|^2 = |u|^2 + |f|^2 + 2 |u| |f| cos t_2; half of how far that is beyond is at most
    the distance times the sum of all lengths.
    """
    uu, ff, vv = plane(upper, upper), plane(fore, fore), plane(v, v)
    excess = maximum(0.5 * absolute(vv - uu - ff) - sqrt(uu * ff), 0.0)
    part = excess / (arm.size**2 + vv)
    return part * part


def _require_apart(arm: PrismaticArm, blocks: _Blocks, block: int) -> None:
    """Go on only where the axes of a block are different lines.

    Raises:
        NotApplicable: They are not.
    """
    first, end = blocks.firsts[block : block + 2]
    slide = blocks.slide
    for k in range(first + 1, end):
        is_apart = flat(arm.spans[k]) != ZERO
        is_apart |= slide.after == k and flat(slide.way) != ZERO
        same = f"axes {arm.numbers[k - 1]} and {arm.numbers[k]} are the same line"
        require(is_apart, same)


THREE_AND_SLIDE = Family(
    "three parallel axes, two others, and a slide",
    _with_three,
    (
        WRIST,
        BranchChoice(
            "elbow",
            "left",
            "right",
            "z1 . ((A2 - A1) x (A3 - A2)), of the parallel axes",
        ),
    ),
)

PAIRS_AND_SLIDE = Family(
    "two pairs of parallel axes, another, and a slide",
    _with_pairs,
    (
        WRIST,
        BranchChoice(
            "pair",
            "left",
            "right",
            "z1 . (z3 x (A2 - A1)), of axes 1 and 2 of one pair, 3 of that across "
            "which the slide is",
        ),
        BranchChoice(
            "slide",
            "ahead",
            "behind",
            "u . (A2 - A1), of the pair across which the slide is, u its way",
        ),
    ),
)
