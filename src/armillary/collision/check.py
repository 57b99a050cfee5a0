"""Tests of a cell for collision: yes or no, clearance, distances and contacts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import UNDECIDED, Question
from armillary.collision.check_tables import CheckTables
from armillary.collision.contact import Contact, contact_of, nearest_first
from armillary.collision.exact import ExactMeshes
from armillary.collision.gradient import gradients
from armillary.collision.lengths import margin_of, number_of
from armillary.collision.motion import MotionProver, MotionReason, Motions, sampled
from armillary.collision.pairs import pairs
from armillary.collision.precision import double_precision, precision_of
from armillary.collision.shape_pairs import Placed
from armillary.collision.tested_shapes import placed_shapes, tables_of
from armillary.collision.untested import warn_of_untested
from armillary.errors import ShapeError
from armillary.kernel import Kernel
from armillary.kernel.arguments import broadcast
from armillary.kinematics.bound_state import bound_state, home
from armillary.kinematics.moving_links import MovingLinks, moving_links, poses_of_links
from armillary.kinematics.state import State
from armillary.model.fields import kept
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.trace import Port, Program

__all__ = ["CollisionCheck", "Contact", "check_of", "collision"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

BLOCK: Final = 1 << 17
"""Pairs of shapes, or frames, of the rows that are computed at once."""


def collision(
    cell: Workcell,
    state: State | None = None,
    *,
    rules: Rules | None = None,
    margin: float = 0.0,
    meshes: MeshSource | None = None,
    exact: bool = False,
) -> CollisionCheck:
    """Return the test for collision of the links of a cell.

    Call it with joint positions; it compiles one kernel for the cell, whatever is
    attached to what, and one for every two kinds of shapes. A warning names, once for
    a cell, manipulators of which no pair of links is tested though no rule says so, and
    pairs that are left out because they touch at home.

    Args:
        cell: What has the links.
        state: Whose attachments, moved bases and branch of closed loops count; by
            default as the cell was built.
        rules: Which pairs are tested, in place of the cell's own.
        margin: Links nearer than this count as touching [m], at least 0.
        meshes: What reads meshes, such as `armillary.formats.mesh.MeshFiles(folder)`;
            by default what `arm.load` has left with the cell. Meshes are treated by
            their hulls, and a warning says so once.
        exact: Treat meshes by their triangles, where hulls do not decide; this needs
            coal, `pip install armillary[exact]`.

    Raises:
        StateError: The state is not one of this cell.
        UnknownName: The rules name a link that does not exist.
        ModelError: A mesh of a link that is tested cannot be read, two half spaces are
            to be tested, there are too many pairs, or the margin is invalid; or coal is
            not installed and `exact` needs it.
    """
    check = check_of(
        cell, state, rules=rules, margin=margin, meshes=meshes, exact=exact
    )
    warn_of_untested(cell, rules, meshes, check.pairs)
    return check


def check_of(
    cell: Workcell,
    state: State | None = None,
    *,
    rules: Rules | None = None,
    margin: float = 0.0,
    meshes: MeshSource | None = None,
    exact: bool = False,
) -> CollisionCheck:
    """Return what `collision` does, without warnings of what is not tested."""
    margin = margin_of(margin)
    bound = home(cell) if state is None else bound_state(cell, state)
    tested = pairs(cell, bound, rules=rules, meshes=meshes)
    moving = moving_links(cell)
    tables = tables_of(cell, bound, tested, moving, meshes, exact=exact)
    placed = placed_shapes(tables, moving, bound.tree)
    by_triangles = ExactMeshes.of(cell, tables, meshes) if exact else None
    given = partial(check_of, rules=rules, margin=margin, meshes=meshes, exact=exact)
    asked = cell, bound, rules, tested, margin
    return CollisionCheck(*asked, tables, placed, moving, by_triangles, given)


@final
@dataclass(frozen=True, eq=False, repr=False)
class CollisionCheck:
    """A test of a cell for collision, see `Cell.collision`; threads may share it.

    Attributes:
        cell: Whose links are tested.
        state: Whose attachments, moved bases and branch of closed loops count.
        rules: What replaces the rules of the cell, or None.
        pairs: The pairs of links that are tested.
        margin: Links nearer than this count as touching [m].
        tables: The shapes of those links, and their pairs.
        placed: Where the shapes are in the links that move.
    """

    cell: Workcell
    state: State
    rules: Rules | None
    pairs: Pairs
    margin: float
    tables: CheckTables
    placed: Placed
    _moving: MovingLinks
    _exact: ExactMeshes | None
    _again: partial[CollisionCheck]

    def __repr__(self) -> str:
        return f"<collision check of {len(self.pairs)} pairs, margin {self.margin} m>"

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again, (self.cell, self.state)

    def __copy__(self) -> CollisionCheck:
        return self

    def __deepcopy__(self, memo: object) -> CollisionCheck:
        return self

    @property
    def meshes(self) -> MeshSource | None:
        """Return what reads meshes."""
        return self._again.keywords["meshes"]

    @property
    def is_exact(self) -> bool:
        """Return whether meshes are treated by their triangles."""
        return self._exact is not None

    def __call__(self, q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether links touch or are nearer than the margin.

        It is True where the pose of a tested link is NaN, which is not known to be
        free: where `q` has NaN, or a loop cannot be closed.

        Args:
            q: Joint positions [m or rad], shape (..., n).

        Returns:
            Truths, shape (...).

        Raises:
            ShapeError: `q` has another shape.
        """
        if not self._constant > self.margin:
            return np.ones(self._rows(q=q)[1], np.bool_)
        verdict = self._verdict_of_one(q)
        if verdict is not None:
            return verdict
        (Q,), batch = self._rows(q=q)
        verdicts = self._answers("touching", Q)
        touching: Truths = verdicts > UNDECIDED
        # Where hulls are apart meshes are, too.
        is_left = touching if self._exact else verdicts == UNDECIDED
        left = np.flatnonzero(is_left | (verdicts == UNDECIDED))
        if len(left):
            touching[left] = ~(self._least(Q[left], self.margin) > self.margin)
        return touching.reshape(batch)

    def _verdict_of_one(self, q: Any) -> Truths | None:
        """Return the answer for one row, where that is quick; else None."""
        if not (type(q) is np.ndarray and q.ndim == 1 and q.dtype.kind == "f"):
            return None
        kernel = self._quick
        if kernel is None or len(q) != self._moving.joints:
            return None
        if q.dtype != kernel.dtype:
            with np.errstate(over="ignore"):
                q = q.astype(kernel.dtype)
        verdict = kernel(q)
        return None if verdict == UNDECIDED else np.greater(verdict, UNDECIDED)

    @cached_property
    def _quick(self) -> Kernel | None:
        """Return the kernel that decides single rows, if there is one."""
        can = (
            self._moving.is_compiled and len(self.tables.links) > 0 and not self._exact
        )
        return self._kernel("touching") if can else None

    def clearance(self, q: npt.ArrayLike) -> Array:
        """Return the least distance of all pairs.

        Args:
            q: Joint positions [m or rad], shape (..., n).

        Returns:
            Distances [m], shape (...): below 0 where links overlap, infinite if no pair
            is tested, NaN where the pose of a tested link is NaN.

        Raises:
            ShapeError: `q` has another shape.
        """
        (Q,), batch = self._rows(q=q)
        return self._least(Q).reshape(batch)

    def distances(self, q: npt.ArrayLike) -> Array:
        """Return the distance of each pair.

        Args:
            q: Joint positions [m or rad], shape (..., n).

        Returns:
            Distances [m] in the order of `pairs`, shape (..., k), below 0 where links
            overlap; NaN where the pose of a link is NaN.

        Raises:
            ShapeError: `q` has another shape.
        """
        (Q,), batch = self._rows(q=q)
        found = np.full((len(Q), len(self.pairs)), np.inf)
        for rows, X in self._blocks(Q):
            values = self._all_values(X)
            found[rows] = np.minimum.reduceat(values, self.tables.starts, axis=1)
        return found.reshape(*batch, len(self.pairs))

    def gradients(self, q: npt.ArrayLike) -> Array:
        """Return the slopes of `distances` by joint positions.

        Where distances have an edge, as between two nearest points, it is the slope on
        one side of it.

        Args:
            q: Joint positions [m or rad], shape (..., n).

        Returns:
            Slopes [m per unit of q], shape (..., k, n); NaN where distances are.

        Raises:
            ShapeError: `q` has another shape.
        """
        (Q,), batch = self._rows(q=q)
        starts, count = self.tables.starts, len(self.pairs)
        found = np.zeros((len(Q), count, Q.shape[1]))
        for rows, X in self._blocks(Q):
            values = self._all_values(X)
            spans = np.split(values, starts[1:], axis=1)
            nearest = np.stack([np.argmin(each, axis=1) for each in spans], axis=1)
            nearest += starts
            found[rows] = gradients(
                self.tables, self.placed, self.state, Q[rows], X, nearest, self._exact
            )
            is_nan = np.isnan(np.take_along_axis(values, nearest, axis=1))
            found[rows][is_nan] = np.nan
        return found.reshape(*batch, count, Q.shape[1])

    def contacts(
        self, q: npt.ArrayLike, *, within: float | None = None
    ) -> list[Contact]:
        """Return the pairs that touch or are near, nearest first.

        Pairs whose poses are NaN come last, with NaN as distance.

        Args:
            q: Joint positions [m or rad], shape (n,).
            within: Up to which distance [m]; by default the margin.

        Raises:
            ShapeError: `q` has another shape.
            ModelError: `within` is not a number.
        """
        (Q,), batch = self._rows(q=q)
        if batch:
            raise ShapeError(
                f"contacts are of one q of shape {Q.shape[-1:]}, not of "
                f"{(*batch, *Q.shape[-1:])}; check.distances takes many."
            )
        if not len(self.pairs):
            return []
        most = self.margin if within is None else number_of("distance", within)
        tables, X = self.tables, self._poses(Q)
        near = tables.near(self.placed, X[0], most)
        if not len(near):
            return []
        which, starts = tables.shapes_of(near)
        values = self._values(X, np.zeros_like(which), which)
        found: list[Contact] = []
        for k, first, span in zip(
            near.tolist(), starts, np.split(values, starts[1:]), strict=True
        ):
            at = int(np.argmin(span))  # a NaN, if there is one
            if not span[at] > most:
                pair = int(which[first + at])
                found.append(
                    contact_of(tables, self.placed, k, pair, X[0], self._exact)
                )
        return sorted(found, key=nearest_first)

    def motion(
        self, q0: npt.ArrayLike, q1: npt.ArrayLike, *, step: float | None = None
    ) -> Motions:
        """Return how far straight motions in joint positions are free of collision.

        Each row is answered as if it were alone, to the last bit.
        They are proven, by bounds of how fast joints move links: no contact between
        samples is missed. Links touch that come nearer than the margin and 1e-6 m.
        Meshes are treated by their hulls, also where a check is `exact`; with `step`
        they are treated as the check does.

        Args:
            q0: Where motions begin [m or rad], shape (..., n).
            q1: Where they end, shape (..., n); both are broadcast together.
            step: Nothing is proven, but samples are tested between which no joint moves
                more than this [m or rad], the ends included: sample i of m is
                q0 + (i / m) (q1 - q0). `fraction` and `q` are those of the last sample
                before the first that touches, 0 and q0 where q0 itself touches.

        Raises:
            ShapeError: `q0` or `q1` has another shape.
            ModelError: The speed of links is not known, since a closed loop or a script
                that is not compiled moves them, and there is no `step`; or `step` is
                not above 0.
        """
        (Q0, Q1), batch = self._rows(q0=q0, q1=q1)
        if not self._constant > self.margin:
            fraction = np.zeros(len(Q0))
            reason = np.full(len(Q0), MotionReason.CONTACT, np.int8)
        elif step is not None:
            fraction, reason = sampled(self, Q0, Q1, step)
        elif not len(self.tables.links):
            fraction = np.ones(len(Q0))
            reason = np.full(len(Q0), MotionReason.FREE, np.int8)
        else:
            self._prover.check()
            fraction, reason = self._prover(Q0, Q1)
        is_invalid = ~(np.isfinite(Q0) & np.isfinite(Q1)).all(axis=1)
        fraction[is_invalid], reason[is_invalid] = np.nan, MotionReason.INVALID
        return Motions.of(Q0, Q1, fraction, reason, batch)

    @cached_property
    def _prover(self) -> MotionProver:
        return MotionProver(
            self.tables,
            self._moving,
            self.state,
            self.placed,
            self.margin,
            self._extent,
        )

    def _answers(self, asked: Question, Q: Array) -> Array:
        """Return the answers of a kernel about pairs that move: (n, joints) -> (n,)."""
        if not len(self.tables.links):
            known, unknown = (
                (0.0, UNDECIDED) if asked == "touching" else (np.inf, np.nan)
            )
            return np.where(np.isnan(Q).any(axis=1), unknown, known)
        kernel = self._kernel(asked)
        if self._moving.is_compiled:
            with np.errstate(over="ignore"):
                return kernel(Q.astype(kernel.dtype, copy=False))
        return kernel(self._moving.interpreted(self.state, Q))

    def _kernel(self, asked: Question) -> Kernel:
        """Return the kernel of a question, which this keeps."""
        return kept(self, asked, lambda: self._made(asked))

    def _made(self, asked: Question) -> Kernel:
        moving, state, placed = self._moving, self.state, self.placed
        precision = double_precision(moving, self._extent)
        if asked == "touching":
            pairs = self.tables.pairs
            precision = precision_of(moving, state, pairs, placed, self._extent)
        return self.tables.kernel(moving, state, placed, asked, self.margin, precision)

    @cached_property
    def _extent(self) -> float:
        X = self._poses(self.state.q[np.newaxis])[0]
        return self.tables.extent(self.placed, X)

    def _least(self, Q: Array, enough: float | None = None) -> Array:
        """Return the least distance of all pairs, or only which side of `enough`."""
        if self._exact:
            blocks = (X for _, X in self._blocks(Q))
            found = [self._exact.least(self.placed, X, enough) for X in blocks]
            return np.concatenate([np.zeros(0), *found])
        least = np.minimum(self._answers("clearance", Q), self._constant)
        left = np.flatnonzero(np.isnan(least))
        for rows, X in self._blocks(Q[left]):
            least[left[rows]] = np.min(self._all_values(X), axis=1)
        return least

    @cached_property
    def _constant(self) -> float:
        """Return the least distance of the pairs of shapes that move together.

        The pair with the least bound comes first; others follow if they may be nearer.
        The depth of some pairs is an upper bound, so all that may overlap are wanted.
        """
        table, together = self.tables.pairs, self.tables.together
        if not len(together):
            return np.inf
        X = self._poses(self.state.q[np.newaxis])
        rows = np.zeros_like(together)
        bounds = table.bounds(self.placed, X, rows, together)
        order = np.argsort(bounds)
        least = np.inf
        for which in (order[:1], order[1:]):
            near = which[bounds[which] < max(least, 0.0)] if len(which) else which
            found = self._values(X, rows[near], together[near])
            least = min(least, found.min(initial=np.inf))
        return float(least)

    def _all_values(self, X: Array) -> Array:
        """Return the distances of all pairs of shapes: (n, f, 3, 4) -> (n, k)."""
        count = len(self.tables.pairs.pairs)
        rows = np.repeat(np.arange(len(X)), count)
        return self._values(X, rows, np.tile(np.arange(count), len(X))).reshape(
            -1, count
        )

    def _values(self, X: Array, rows: Indices, which: Indices) -> Array:
        """Return the distances of pairs of shapes, NaN where a pose has NaN."""
        table = self.tables.pairs
        if self._exact:
            return self._exact.values(self.placed, X, rows, which)
        values = table.distances(self.placed, X, rows, which, "value")
        bounds = table.bounds(self.placed, X, rows, which)
        return np.where(np.isnan(bounds), np.nan, values)

    def _rows(self, **given: npt.ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
        """Return joint positions as rows, and the shape of their batch."""
        n = self._moving.joints
        ports = tuple(Port(name, (n,)) for name in given)
        program = Program("collision", ports, (), (), ())
        arrays, batch = broadcast(program, tuple(given.values()))
        return [each.reshape(math.prod(batch), n) for each in arrays], batch

    def _blocks(self, Q: Array) -> Iterator[tuple[slice, Array]]:
        """Yield some rows at a time with poses of all links; nothing without pairs."""
        if not len(self.pairs):
            return
        per_row = max(self._moving.count, len(self.tables.pairs.pairs))
        step = max(1, BLOCK // per_row)
        for start in range(0, len(Q), step):
            rows = slice(start, start + step)
            yield rows, self._poses(Q[rows])

    def _poses(self, Q: Array) -> Array:
        """Return the poses of moving links: (n, joints) -> (n, f, 3, 4)."""
        return poses_of_links(self._moving, self.state)(Q)
