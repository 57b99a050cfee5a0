"""Arms whose axes miss those of a simpler family by little: first by its formula.

A calibrated arm is nearly that of its data sheet. The nearest axes of each family are
taken, and its formula gives angles of the nominal arm, from which Newton's method leads
to those of the true one. With axes that are off by d, no other answers exist where all
of these are regular: an answer appears or vanishes only where the arm is singular
within about d of the target, and the nominal formula then misses by about sqrt(d) at
most, or has an answer at which det J is about sqrt(d) or less. Targets at which that is
so, and those at which Newton's method leads elsewhere, or from a miss to an answer, are
left to the general solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.closed_forms.dh_from_axes import Arm, arm_of
from armillary.ik.closed_forms.family import Family, NotApplicable, Preferred
from armillary.ik.closed_forms.general_6r.found_solutions import APART, apart_of
from armillary.ik.closed_forms.general_6r.geometry import SixAxes
from armillary.ik.closed_forms.general_6r.orders import ERROR
from armillary.ik.closed_forms.general_6r.solver import SixAxesSolver, Solutions
from armillary.ik.closed_forms.general_6r.stages import polish_kernel
from armillary.ik.closed_forms.recognise import FAMILIES, Closed
from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.closed_forms.subproblems import ZERO_TURN, Turn
from armillary.kernel import shared_kernel
from armillary.spatial.ldl import LDLFactor, gram
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector, cross, dot, subtract
from armillary.trace import Program, trace
from armillary.trace.functions import cos, select, sin

__all__ = ["LEAST_DEVIATION", "NominalSolver", "solver_of"]

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

FARTHEST: Final = 0.01
"""How far axes may be from those of a family [rad, or lengths in units of the arm]."""

CLEAR: Final = 5.0
"""A branch has no answer if it misses by so many square roots of the deviation."""

REGULAR: Final = 1.0
"""Least det J of an answer, of that usual for the arm, in square roots of deviation."""

WIDE: Final = 0.25
"""Square of what a branch misses at most, from which a true answer is still sought."""

MOVED: Final = 0.3
"""How far Newton's method may lead from a nominal answer [rad]."""

LEAST_DEVIATION: Final = 1e-7  # deviation that is counted with, at least
MET: Final = 1e-14  # square of what a nominal answer misses by rounding
ROUNDS, SAMPLES = 3, 128

_WRIST = 3, 4, 5
_PARTS: Final[tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]] = (
    (("meet", _WRIST), ("parallel", (1, 2))),
    (("meet", _WRIST), ("meet", (0, 1))),
    (("meet", _WRIST), ("meet", (1, 2))),
    (("meet", _WRIST), ("parallel", (0, 1))),
    (("parallel", (1, 2, 3)), ("meet", (4, 5))),
)
"""Of each of FAMILIES which axes meet, and which are parallel."""


class Nominal(NamedTuple):
    """The nearest arm of a family, and how far its axes are off."""

    closed: Closed
    deviation: float


def solver_of(axes: SixAxes) -> SixAxesSolver | NominalSolver:
    """Return the solver of an arm: by a nominal formula first where one is near.

    Raises:
        NotApplicable: As for `SixAxesSolver`.
    """
    general = SixAxesSolver(axes)
    # Formulas of families are those of six joints that turn.
    nominal = nominal_of(axes) if axes.is_plain else None
    return general if nominal is None else NominalSolver(general, nominal)


def nominal_of(axes: SixAxes) -> Nominal | None:
    """Return the nearest arm that a formula solves, None where none is near."""
    frame, screws = np.eye(4), list[ScrewAxis]()
    for k in range(6):
        screws.append(ScrewAxis(k, True, frame[:3, 2], frame[:3, 3], 1.0))
        frame = frame @ axes.scaled[k] if k < len(axes.links) else frame
    chain = Chain(tuple(screws), frame, tuple(range(1, 7)))
    found: list[Nominal] = []
    for backwards, way in ((False, chain), (True, chain.reversed())):
        for family, parts in zip(FAMILIES, _PARTS, strict=True):
            near, deviation = _nearest(way, parts)
            if deviation > FARTHEST:
                continue
            closed = _fitted(family, near, backwards=backwards)
            if closed is not None:
                found.append(Nominal(closed, max(deviation, LEAST_DEVIATION)))
    return min(found, key=lambda each: each.deviation, default=None)


class NominalSolver:
    """The solver of an arm near one that has a formula; used as `SixAxesSolver`."""

    def __init__(self, general: SixAxesSolver, nominal: Nominal) -> None:
        """Prepare for an arm and the nearest one of a family."""
        self.arm, self.nominal = general.arm, nominal
        self._general = general
        links = general.arm.scaled
        self._formula = shared_kernel(_formula_program(nominal.closed))
        self._links = np.ascontiguousarray(links[:, :3])
        slides = general.arm.slides
        self._polish = polish_kernel(self._links, slides, len(slides))
        self._size = shared_kernel(_determinant_program())
        self.first = None
        angles = np.random.default_rng(7).uniform(-np.pi, np.pi, (SAMPLES, 6))
        usual = float(np.median(self._size(self._links, angles)))
        self._least = REGULAR * math.sqrt(nominal.deviation) * usual
        self._clear = CLEAR**2 * nominal.deviation

    def solve(
        self,
        inner: Array,
        *,
        first: Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> Solutions:
        """Return all solutions of targets, as `SixAxesSolver.solve`."""
        assert first is None, "there is no such kernel"
        count = len(inner)
        angles, missed, loose = self._formula(inner, threads=threads)
        met = missed < MET
        unclear = ((loose > 0.0) | (~met & (missed < self._clear))).any(axis=1)
        unclear |= ~met.any(axis=1)  # that there is no answer is not proven by this
        # Those that are met come first, so that of copies the others are the new ones.
        tried = (met | (missed < WIDE)) & ~unclear[:, np.newaxis]
        order = np.argsort(~met, axis=1, kind="stable")
        rows, place = np.nonzero(np.take_along_axis(tried, order, axis=1))
        branch = order[rows, place]
        start, is_met, own = angles[rows, branch], met[rows, branch], inner[rows]
        q, error, keys, _ = self._polish(own, start, threads=threads)
        for _ in range(ROUNDS):
            if not (error >= ERROR).any():
                break
            q, error, keys, _ = self._polish(own, q, threads=threads)
        found = error < ERROR
        # A branch is sure if Newton's method stayed near its start, where det J is far
        # from 0: then no other solution is as near.
        step = q - start
        step -= 2.0 * np.pi * np.rint(step / (2.0 * np.pi))
        moved = np.einsum("ij,ij->i", step, step)
        size = self._size(self._links, q, threads=threads)
        regular = found & (moved < MOVED**2) & (size > self._least)
        unclear[rows[is_met & ~regular]] = True
        rows, q, keys, is_met = rows[found], q[found], keys[found], is_met[found]
        # Each target's solutions side by side, to find copies. Answers of the formula
        # must differ, and starts beside them must lead to copies of those.
        counts = np.bincount(rows, minlength=count)
        slot = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
        table = np.zeros((*met.shape, keys.shape[1]))
        table[rows, slot] = keys
        new = apart_of(met.shape[1])(table, counts.astype(np.float64), APART)
        unclear[rows[(new[rows, slot] > 0.0) != is_met]] = True
        rows, q = rows[is_met], q[is_met]
        # What is unclear is asked of the general solver.
        left = np.flatnonzero(unclear)
        kept = ~unclear[rows]
        unsure, infinite = np.zeros((2, count), np.bool_)
        if not left.size:
            return Solutions(rows, q, unsure, infinite)
        rows, q = rows[kept], q[kept]
        rest = self._general.solve(np.ascontiguousarray(inner[left]), threads=threads)
        unsure[left], infinite[left] = rest.unsure, rest.infinite
        rows = np.concatenate([rows, left[rest.rows]])
        order = np.argsort(rows, kind="stable")
        q = np.concatenate([q, rest.angles])[order]
        return Solutions(rows[order], q, unsure, infinite)

    def solve_one(self, inner: Array) -> tuple[Array, bool]:
        """Return what `solve` does of one target: angles (m, 6), whether unsure."""
        clear = self._clear_one(inner)
        if clear is not None:
            return clear, False
        solved = self.solve(inner[np.newaxis])
        return solved.angles, bool(solved.unsure[0])

    def _clear_one(self, inner: Array) -> Array | None:
        """Return what `solve` finds of a target that is clear, by the same steps.

        None where something is unclear. For one target the steps of `solve` take as
        long in NumPy as thirty targets in its kernels.
        """
        angles, missed, loose = self._formula(inner)
        met = missed < MET
        if ((loose > 0.0) | ((missed < self._clear) & ~met)).any():
            return None
        ours = met.nonzero()[0]
        branch = np.concatenate([ours, ((missed < WIDE) & ~met).nonzero()[0]])
        count = len(ours)
        if not count:
            return None
        start, own = angles[branch], np.repeat(inner[np.newaxis], len(branch), axis=0)
        q, error, keys, _ = self._polish(own, start)
        for _ in range(ROUNDS):
            if not (error >= ERROR).any():
                break
            q, error, keys, _ = self._polish(own, q)
        found, mine = error < ERROR, q[:count]
        step = mine - start[:count]
        step -= 2.0 * np.pi * np.rint(step / (2.0 * np.pi))
        moved = np.einsum("ij,ij->i", step, step)
        size = self._size(self._links, mine)
        if not (found[:count] & (moved < MOVED**2) & (size > self._least)).all():
            return None
        keys = keys[found]
        table = np.zeros((len(missed), keys.shape[1]))
        table[: len(keys)] = keys
        new = apart_of(len(missed))(table, np.array(float(len(keys))), APART)
        is_new = new[: len(keys)] > 0.0
        return mine if is_new[:count].all() and not is_new[count:].any() else None


def _nearest(
    chain: Chain, parts: tuple[tuple[str, tuple[int, ...]], ...]
) -> tuple[Chain, float]:
    """Return the chain with some axes made parallel or to meet, and by how much."""
    screws = list(chain.screws)
    for what, which in parts:
        some = [screws[k] for k in which]
        if what == "parallel":
            # The mean direction, of axes that may point the other way.
            signs = [math.copysign(1.0, each.axis @ some[0].axis) for each in some]
            mean = sum(s * each.axis for s, each in zip(signs, some, strict=True))
            mean = mean / np.linalg.norm(mean)
            for k, sign in zip(which, signs, strict=True):
                screws[k] = screws[k]._replace(axis=sign * mean)
        else:
            # The point nearest to all axes: sum (1 - a a') (c - p) = 0.
            across = [np.eye(3) - np.outer(each.axis, each.axis) for each in some]
            sums = sum(A @ each.point for A, each in zip(across, some, strict=True))
            centre = np.linalg.pinv(sum(across), rcond=1e-9) @ sums
            for k in which:
                screws[k] = screws[k]._replace(point=centre)
    deviation = 0.0
    for old, new in zip(chain.screws, screws, strict=True):
        off = new.point - old.point
        off = off - old.axis * (off @ old.axis)
        turn = float(np.linalg.norm(new.axis - old.axis))
        deviation = max(deviation, turn, float(np.linalg.norm(off)))
    return chain._replace(screws=tuple(screws)), deviation


def _fitted(family: Family[Arm], chain: Chain, *, backwards: bool) -> Closed | None:
    try:
        arm = arm_of(chain)
        formula = family.fit(arm)
    except NotApplicable:
        return None
    return Closed(family, arm, formula, backwards, False, 0.0)


def _formula_program(closed: Closed) -> Program:
    """Return the program of a target to the nominal angles.

    Returns:
        Input `target` (4, 4), as for the general solver. Outputs `angles` (b, 6),
        `missed` (b,), the square of what is missed, and `loose` (b,): 1 where an angle
        is free, or a miss proves nothing.
    """

    def formula(target: Matrix) -> Any:
        X = Pose.from_matrix(target)
        angles: list[list[Number]] = []
        missed: list[Number] = []
        loose: list[Number] = []
        for answer in closed.solve(X, Preferred([ZERO_TURN] * 6)):
            q: list[Number] = [0.0] * 6
            for turn, drive in zip(answer.turns, closed.arm.drives, strict=True):
                q[drive.of] = (turn.angle - drive.offset) / drive.multiplier
            Y = closed.pose(answer.turns, ())
            apart = subtract(X.position, Y.position)
            total = dot(apart, apart)
            for a, b in zip(X.rotation, Y.rotation, strict=True):
                off = subtract(a, b)
                total = total + dot(off, off)
            angles.append(q)
            missed.append(total)
            free = select(answer.singular, 1.0, 0.0)
            miss = select(answer.loose, 1.0, 0.0)
            loose.append(free + select(total < MET, 0.0, miss))
        return angles, missed, loose

    outputs = ("angles", "missed", "loose")
    return trace(formula, name="nominal", outputs=outputs, target=(4, 4))


def _determinant_program() -> Program:
    """Return the program of links (5, 3, 4) and angles (6,) to the size of det J."""

    def size(links: Any, angles: Vector) -> Number:
        pose, frames = Pose.identity(), list[Pose]()
        for k, angle in enumerate(angles):
            frames.append(pose)
            pose = pose @ Turn(cos(angle), sin(angle)).pose
            if k < 5:
                pose = pose @ Pose.from_matrix(links[k])
        columns: list[list[Number]] = []
        for frame in frames:
            axis = tuple(row[2] for row in frame.rotation)
            arm = subtract(pose.position, frame.position)
            columns.append([*cross(axis, arm), *axis])
        return LDLFactor.of(gram(columns), 1e-30).root_of_determinant

    shapes = {"links": (5, 3, 4), "angles": (6,)}
    return trace(size, name="det_J", outputs=("size",), **shapes)
