"""Tests of a cell for collision: yes or no, clearance, distances and contacts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import check_records, columns_of, whole_kernel
from armillary.collision.check_options import CheckOptions
from armillary.collision.check_stages import UNDECIDED, Question
from armillary.collision.check_tables import CheckTables
from armillary.collision.contact import Contact, contacts_of
from armillary.collision.latest_state import LatestState
from armillary.collision.lengths import margin_of, number_of
from armillary.collision.moved_bases import moved_bases
from armillary.collision.pairs import applied_rules, with_home_pairs
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.precision import converted
from armillary.collision.shape_pairs import Placed
from armillary.collision.tested_shapes import tables_of
from armillary.errors import ModelError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel
from armillary.kernel.arguments import FLOAT64, broadcast, is_on_gpu
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kernel.sloped import jax_sloped, torch_sloped
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.placement import base_names
from armillary.kinematics.speed_bounds import speeds_are_known
from armillary.kinematics.state import State, bound_state, home
from armillary.model.fields import kept, kept_few
from armillary.model.link_pairs import Pairs
from armillary.model.rules import Rules
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.trace import Port, Program

if TYPE_CHECKING:  # distances, motions and planners: imported where they are asked for
    from armillary.collision.exact_pairs import ExactPairs
    from armillary.collision.motion import MotionProver, Motions
    from armillary.collision.nearest_pairs import NearestPairs
    from armillary.collision.nearest_stages import Measure
    from armillary.collision.obstacles import GivenObstacles, StandingObstacles
    from armillary.kernel.column_function import ColumnFunction, PostponedColumns

__all__ = ["CollisionCheck", "Contact", "check_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

BLOCK: Final = 1 << 18
"""Numbers of the rows that are computed at once: of poses, and of pairs."""


def check_of(
    cell: Workcell,
    state: State | None = None,
    options: CheckOptions = CheckOptions(),  # noqa: B008
    obstacles: StandingObstacles | None = None,
) -> CollisionCheck:
    """Return a check as `questions.collision` does, without a warning.

    obstacles: What stands around the cell, checked.
    """
    rules, given, meshes, exact = options
    margin = margin_of(given)
    bound = home(cell) if state is None else bound_state(cell, state)
    tree = bound.tree

    def made() -> tuple[CheckOptions, CheckTables]:
        tested = applied_rules(cell, rules, meshes).pairs(tree)
        options = CheckOptions(rules, margin, meshes, exact)
        return options, tables_of(cell, bound, tested, meshes, exact=exact)

    # States that attach the same share all but where bodies are. What is kept holds the
    # rules and meshes, so that they are known by their identity.
    key = id(rules), margin, id(meshes), bool(exact)
    options, tables = kept_few(tree.alike or tree, "tables of checks", key, made)
    if obstacles is None and not exact:
        return CollisionCheck(cell, options, bound, tables)
    # A message about what triangles need comes now.
    placed = PlacedPairs.of(cell, bound, tables, meshes, exact=exact)
    check = CollisionCheck(cell, options, bound, tables, _known=placed)
    return check if obstacles is None else _among(check, placed, obstacles)


def _among(
    alone: CollisionCheck, placed: PlacedPairs, obstacles: StandingObstacles
) -> CollisionCheck:
    """Return a check, whose pairs are placed, among obstacles."""
    with IMPORT_LOCK:
        from armillary.collision.obstacles import among
    pairs = among(placed, obstacles, alone.options.meshes)
    known = alone.cell, alone.options, alone.state, pairs.tables
    return CollisionCheck(*known, obstacles, alone, pairs)


@final
@dataclass(frozen=True, eq=False, repr=False)
class CollisionCheck:
    """A test of a cell for collision, see `Cell.collision`; threads may share it.

    Attributes:
        cell: The cell whose links are tested.
        options: What it was made with.
        state: The state whose attachments, bases and branch of loops are used.
        tables: The shapes of the tested links, and their pairs.
        obstacles: What stands around the cell, see `with_obstacles`; None if nothing.
    """

    cell: Workcell
    options: CheckOptions
    state: State
    tables: CheckTables
    obstacles: StandingObstacles | None = None
    _alone: CollisionCheck | None = None
    _known: PlacedPairs | None = None

    def __repr__(self) -> str:
        return f"<collision check of {len(self.pairs)} pairs, margin {self.margin} m>"

    def __reduce__(self) -> tuple[Any, ...]:
        return check_of, (self.cell, self.state, self.options, self.obstacles)

    def __copy__(self) -> CollisionCheck:
        return self

    def __deepcopy__(self, memo: object) -> CollisionCheck:
        return self

    @property
    def pairs(self) -> Pairs:
        """Return the pairs of links that are tested."""
        return self.tables.tested

    @cached_property
    def _placed(self) -> PlacedPairs:
        """Return where the shapes are, which single answers often do not need."""
        if self._known is not None:
            return self._known
        _, _, meshes, exact = self.options
        return PlacedPairs.of(self.cell, self.state, self.tables, meshes, exact=exact)

    @property
    def rules(self) -> Rules | None:
        """Return what replaces the rules of the cell, or None."""
        return self.options.rules

    @property
    def margin(self) -> float:
        """Return below which distance links count as touching [m]."""
        return self.options.margin

    @property
    def nearness(self) -> float:
        """Return by how much more than the margin links are apart that do not touch.

        In motions [m]: 1e-6 m, of cells that are smaller than a metre at most 1e-6 of
        their extent; or what rounding may be, some 1e-10 m, where that is more.
        """
        return self._prover.rounding

    @property
    def meshes(self) -> MeshSource | None:
        """Return what reads meshes."""
        return self.options.meshes

    @property
    def is_exact(self) -> bool:
        """Return whether meshes are treated by their triangles."""
        return self.options.exact and self._placed.triangles is not None

    @property
    def placed(self) -> Placed:
        """Return where the shapes are in the links that move."""
        return self._placed.placed

    def with_obstacles(
        self,
        obstacles: GivenObstacles,
        *,
        allowed: Sequence[tuple[str, str]] = (),
    ) -> CollisionCheck:
        """Return the check of the same cell among obstacles that stand in the world.

        They are in place of those that this check has. Nothing is compiled, but for the
        first pair of two kinds of shapes and where there are four times as many shapes,
        and what is known of the cell is taken over: it takes a fraction of the time of
        another cell, or of a state of one that has the obstacles as manipulators.
        Answers are those of such a cell whose rules test obstacles against the links
        that move.

        Every link that moves, with what is attached to it, is tested against every
        obstacle, whatever rules say of other links; links that stand still and
        obstacles are not tested with each other. In `pairs`, distances and contacts the
        pairs with obstacles come behind those of links; the link comes first.

        Args:
            obstacles: The shapes of each obstacle in the world [m], one or several, by
                its name, such as `{"table": arm.shapes.Box(size=(1, 1, 0.1))}`; hulls
                stand for meshes.
            allowed: Pairs of an obstacle and a link, or a frame on it, that may touch.

        Raises:
            ModelError: The obstacles are not shapes by name, one has the name of a
                link, a mesh cannot be read, two half spaces are to be tested, or the
                check is `exact`.
            UnknownName: `allowed` names an obstacle or a link that does not exist.
        """
        with IMPORT_LOCK:
            from armillary.collision.obstacles import StandingObstacles

        if self.options.exact:
            raise ModelError(
                "Obstacles are tested by their shapes and hulls, not by triangles: "
                "make the check without exact=True, or add the obstacles to the cell."
            )
        alone = self._alone or self
        given = StandingObstacles.of(obstacles, allowed, self.meshes)
        return _among(alone, alone._placed, given)

    def __call__(self, q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether links touch or are nearer than the margin.

        It is True where the pose of a tested link is NaN, which is not known to be
        free: where `q` has NaN, or a loop cannot be closed.

        Args:
            q: Joint positions [m or rad], shape (..., n); on a GPU answers are, too.

        Returns:
            Truths, shape (...).

        Raises:
            ShapeError: `q` has another shape.
        """
        # One row of floats takes the short way: no batch, no copies, no blocks.
        verdict = self._verdict_of_one(q)
        if verdict is not None:
            return verdict
        if is_on_gpu(q):
            return self._on_gpu("touching", q)
        (Q,), batch = self._rows(q=q)
        return self._are_touching(Q).reshape(batch)

    def at_bases(
        self, q: npt.ArrayLike, bases: Mapping[str, npt.ArrayLike]
    ) -> npt.NDArray[np.bool_]:
        """Return whether links touch where bases stand elsewhere, in each row.

        The same is said of `state.place(name, pose)` for each row; here a batch is one
        call. The first one compiles the check of a cell in which these bases are
        joints.

        Args:
            q: Joint positions [m or rad], shape (..., n).
            bases: Poses of bases in the world by the names of their manipulators,
                shape (..., 4, 4), broadcast with q. Others are as in `state`.

        Returns:
            Truths, shape (...).

        Raises:
            ShapeError: A shape does not fit.
            UnknownName: A manipulator does not exist.
            StateError: A base is fixed.
            ModelError: A base is attached in `state`, a matrix is not a pose, or bases
                are not given by name.
        """
        names = base_names(bases)
        (Q,), batch = self._rows(q=q)
        if not names:
            return self(q)
        moved = kept(
            self,
            ("moved bases", names),
            lambda: moved_bases(self.state, names, self._with_carriers),
        )
        return moved(Q.reshape(*batch, Q.shape[1]), bases)

    def _with_carriers(self, cell: Workcell, state: State) -> CollisionCheck:
        """Return this check of a cell in which bases are joints, too."""
        options, obstacles = self.options, self.obstacles
        rules = self.cell.rules if options.rules is None else options.rules
        if rules.needs_home:  # what touches where bases are at home, not at zero
            named = with_home_pairs(self.cell.replace(rules=rules), options.meshes)
            options = options._replace(rules=named.rules)
        check = check_of(cell, state, options, obstacles)
        if obstacles is None:
            return check
        # As in other states, obstacles do not count for links that stand still on
        # such a base.
        names, known = set(obstacles.names), set(self.pairs)
        still = [(b, a) for a, b in check.pairs if b in names and (a, b) not in known]
        if not still:
            return check
        allowed = (*obstacles.allowed, *still)
        return check_of(cell, state, options, obstacles._replace(allowed=allowed))

    def _verdict_of_one(self, q: Any) -> Truths | None:
        """Return the answer for one row, where that is quick; else None."""
        if not (type(q) is np.ndarray and q.ndim == 1 and q.dtype.kind == "f"):
            return None
        # Anything else, also what is to be refused, takes the general way.
        verdict, known = None, self.__dict__
        if "is_asked" not in known:
            # Many checks are asked once: the records of the last state will do.
            known["is_asked"] = True
            latest: LatestState | None = self.tables.latest.get(self.options.margin)
            if latest is not None and len(q) == latest.joints:
                verdict = latest.ask(self.state, converted(q, latest.dtype))
        if verdict is None:
            if self._of_one is None or len(q) != len(self.cell.joint_names):
                return None
            ask, dtype = self._of_one
            verdict = ask(converted(q, dtype)).item()
        if verdict == UNDECIDED:
            return None
        truth: Any = np.True_ if verdict > UNDECIDED else np.False_
        return truth

    @cached_property
    def _of_one(self) -> tuple[Callable[[Array], Array], np.dtype[Any]] | None:
        """Return what decides single rows, of which type, if there is such a thing."""
        latest: LatestState | None = self.tables.latest.get(self.margin)
        records = None if latest is None else latest.records(self.state)
        if records is None:
            is_decisive = self._moves and not self.is_exact
            moving = self._placed.moving
            if not (is_decisive and moving.is_compiled and self.may_be_free):
                return None
            records = self._records("touching")
            if self._known is None and not self.state.passive.size:
                columns = columns_of(moving, self.tables.room)
                LatestState.keep(self._placed, records, columns, self.margin)
        own = records
        return kept(self, "touching", lambda: own).for_one(), own.code.made_for[0]

    def edge_columns(
        self, *, pad: float = 0.0, certain: bool = False
    ) -> ColumnFunction | None:
        """Return code that tells if links touch at any of some rows; see `edge_stages`.

        None where Python decides.

        Args:
            pad: By how much farther than the margin links touch [m]; it is 0 where
                shapes are searched for their nearest points.
            certain: Whether what rounding decides touches; else it may be free.
        """
        if self.is_exact or not self._placed.moving.is_compiled:
            return None
        with IMPORT_LOCK:
            from armillary.collision.edge_kernel import edge_columns
        return edge_columns(self._placed, self.margin, pad=pad, certain=certain)

    def edge_proof_columns(self, lower: Array, upper: Array) -> ColumnFunction | None:
        """Return code that proves pieces of motions; None where it would prove nothing.

        See `edge_proof_stages`: what it does not prove may be proven by
        `motion_columns`.

        Args:
            lower: Least joint positions for which it is asked, shape (joints,).
            upper: Greatest.
        """
        if self.is_exact or not speeds_are_known(straight_links(self.cell), self.state):
            return None
        with IMPORT_LOCK:
            from armillary.collision.edge_kernel import edge_proof_columns
            from armillary.collision.motion_kernel import PositionBox
        return edge_proof_columns(self._placed, self.margin, PositionBox(lower, upper))

    def motion_columns(self, lower: Array, upper: Array) -> PostponedColumns | None:
        """Return code that tells if motions are free; None where nothing bounds speeds.

        Of columns of both ends it gives two: 1 and 0 where a motion is free.

        Args:
            lower: Least joint positions for which it answers, shape (joints,).
            upper: Greatest.
        """
        return None if self.is_exact else self._prover.columns(lower, upper)

    def approach_rates(self, lower: Array, upper: Array) -> Array:
        """Return how fast links of pairs can approach each other, at most.

        Args:
            lower: Least joint positions for which it is asked, shape (n,); those of
                passive joints of loops may be behind them.
            upper: Greatest.

        Returns:
            For unit rates of joints [m per unit], in the order of `pairs`, shape (k,
            n); infinite where nothing is known.
        """
        with IMPORT_LOCK:
            from armillary.collision.volumes import approach_rates
        return approach_rates(self._placed, lower, upper)

    @property
    def _moves(self) -> bool:
        """Return whether links of a pair move against each other."""
        return len(self.tables.links) > 0

    @cached_property
    def may_be_free(self) -> bool:
        """Return whether no shapes that move together touch, whatever q is."""
        return self._placed.are_apart(self.margin)

    def _are_touching(self, Q: Array) -> Truths:
        """Return whether links touch: (n, joints) -> (n,).

        The kernel leaves rows undecided where rounding decides; for these the least
        distance is computed. So it is for all rows in which hulls touch if meshes are
        treated by their triangles: where hulls are apart meshes are, too.
        """
        if not self.may_be_free:
            return np.ones(len(Q), np.bool_)
        verdicts = self._answers("touching", Q)
        touching: Truths = verdicts > UNDECIDED
        is_open = verdicts >= UNDECIDED if self.is_exact else verdicts == UNDECIDED
        rows = np.flatnonzero(is_open)
        if len(rows):
            touching[rows] = ~(self._least(Q[rows], self.margin) > self.margin)
        return touching

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
        if is_on_gpu(q):
            return self._on_gpu("clearance", q)
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
        row = self._row(q)
        if row is not None and len(self.pairs):
            return self._measures.distances(self._placed.poses_at(row)).copy()
        (Q,), batch = self._rows(q=q)
        distances = np.empty((len(Q), len(self.pairs)))
        for rows, X in self._blocks(Q, "distance"):
            distances[rows] = self._measures.distances(X)
        return distances.reshape(*batch, len(self.pairs))

    def distances_of(self, pairs: Indices, Q: Array) -> Array:
        """Return the distances of some pairs, as `distances` does of all.

        Args:
            pairs: The places of k pairs in `pairs`, shape (k,).
            Q: Joint positions [m or rad], shape (m, n).

        Returns:
            Distances [m], shape (m, k).
        """
        if len(pairs) == len(self.pairs):
            return self.distances(Q)[:, pairs]
        distances = np.empty((len(Q), len(pairs)))
        for rows, X in self._blocks(Q, "distance"):
            distances[rows] = self._placed.distances(X, pairs)
        return distances

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
        row = self._row(q)
        if row is not None and len(self.pairs):
            return self._measures.slopes(row, self._placed.poses_at(row)).copy()
        (Q,), batch = self._rows(q=q)
        slopes = np.zeros((len(Q), len(self.pairs), Q.shape[1]))
        for rows, X in self._blocks(Q, "slope"):
            slopes[rows] = self._measures.slopes(Q[rows], X)
        return slopes.reshape(*batch, *slopes.shape[1:])

    def jax(self) -> Callable[[Any], Any]:
        """Return `distances` of JAX arrays, with `gradients` as first derivatives."""
        return jax_sloped(self.distances, self.gradients, len(self.pairs))

    def torch(self) -> Callable[[Any], Any]:
        """Return `distances` of tensors, with `gradients` as first derivatives."""
        return torch_sloped(self.distances, self.gradients)

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
        row = self._row(q)
        if row is None:
            (Q,), batch = self._rows(q=q)
            if batch:
                raise ShapeError(
                    f"contacts are of one q of shape {Q.shape[-1:]}, not of "
                    f"{(*batch, *Q.shape[-1:])}; check.distances takes many."
                )
            row = Q[0]
        most = self.margin if within is None else number_of("distance", within)
        if not len(self.pairs):
            return []
        links, numbers = self._measures.contacts(self._placed.poses_at(row), most)
        return contacts_of(self.tables, links, numbers)

    def motion(
        self, q0: npt.ArrayLike, q1: npt.ArrayLike, *, step: float | None = None
    ) -> Motions:
        """Return how far straight motions in joint positions are free of collision.

        Each row is answered as if it were alone, to the last bit.
        They are proven, by bounds of how fast joints move links: no contact between
        samples is missed. Links touch that come nearer than the margin and `nearness`.
        Meshes are treated by their hulls, also where a check is `exact`; with `step`,
        and of cells with closed loops, they are treated as the check does.

        Args:
            q0: Where motions begin [m or rad], shape (..., n).
            q1: Where they end, shape (..., n); both are broadcast together.
            step: Nothing is proven, but samples are tested between which no joint moves
                more than this [m or rad], the ends included: sample i of m is
                q0 + (i / m) (q1 - q0). `fraction` and `q` are those of the last sample
                before the first that touches, 0 and q0 where q0 itself touches.

        Raises:
            ShapeError: `q0` or `q1` has another shape.
            ModelError: The speed of links is not known, since a script that is not
                compiled moves them, and there is no `step`; or `step` is not above 0.
        """
        # Two rows of floats take the short way, as for a call.
        one = self._motion_of_one(q0, q1) if step is None else None
        if one is not None:
            return one
        with IMPORT_LOCK:
            from armillary.collision.motion import Motions
            from armillary.collision.straight_motions import motions_of
        (Q0, Q1), batch = self._rows(q0=q0, q1=q1)
        given, is_open = (self, self._prover, (Q0, Q1), step), self.may_be_free
        return Motions.of(Q0, Q1, *motions_of(*given, may_be_free=is_open), batch)

    def _motion_of_one(self, q0: Any, q1: Any) -> Motions | None:
        """Return the answer for one motion, where that is quick; else None."""
        shape = self._shape_of_one
        for q in (q0, q1):
            if type(q) is not np.ndarray or q.shape != shape or q.dtype is not FLOAT64:
                return None
        return self._prover.of_one(q0, q1)

    @cached_property
    def _shape_of_one(self) -> tuple[int, ...] | None:
        """Return the shape of joint positions that motions are quick for, if any."""
        is_known = speeds_are_known(straight_links(self.cell), self.state)
        is_quick = is_known and self._moves and self.may_be_free
        return (self._placed.moving.joints,) if is_quick else None

    @cached_property
    def _prover(self) -> MotionProver:
        with IMPORT_LOCK:
            from armillary.collision.motion import MotionProver
        return MotionProver(self._placed, self.margin)

    @cached_property
    def _measures(self) -> NearestPairs | ExactPairs:
        """Return what measures each pair of links."""
        with IMPORT_LOCK:
            from armillary.collision.exact_pairs import ExactPairs
            from armillary.collision.nearest_pairs import NearestPairs
        return (ExactPairs if self.is_exact else NearestPairs)(self._placed)

    def _answers(self, asked: Question, Q: Array) -> Array:
        """Return the answers of a kernel about pairs that move: (n, joints) -> (n,)."""
        # Without pairs that move a row is free wherever its positions are numbers.
        if not self._moves:
            found = (0.0, UNDECIDED) if asked == "touching" else (np.inf, np.nan)
            return np.where(np.isnan(Q).any(axis=1), found[1], found[0])
        # Positions too large for float32 become infinite, and so undecided. Poses of
        # scripts that are not compiled are made by Python, and given to the kernel.
        kernel, moving = self._kernel(asked), self._placed.moving
        if moving.is_compiled:
            with np.errstate(over="ignore"):
                return kernel(Q.astype(kernel.dtype, copy=False))
        return kernel(moving.interpreted(self.state, Q))

    def kernel(self, asked: Question, dtype: np.dtype[Any]) -> Kernel:
        """Return the kernel of what is asked alone, in `dtype`; see `whole_kernel`."""
        of = self._placed, asked, self.margin, dtype
        make = partial(whole_kernel, *of, exact=self.is_exact)
        return kept(self, (asked, dtype), make)

    def _on_gpu(self, asked: Question, q: Any) -> Any:
        """Return answers where positions are; what is in doubt touches."""
        with IMPORT_LOCK:  # what GPUs need
            from armillary.kernel.gpu_libraries import library_of
        found: Any = self.kernel(asked, library_of(q).read("q", q).dtype)(q)
        return found > 0.0 if asked == "touching" else found

    def _kernel(self, asked: Question) -> Kernel:
        """Return the kernel of a question, which this caches."""
        return kept(self, ("kernel", asked), lambda: self._records(asked).kernel())

    def _records(self, asked: Question) -> PipelineRecords:
        """Return the records of a question, which this caches."""
        make = partial(check_records, self._placed, asked, self.margin)
        return kept(self, asked, make)

    def _least(self, Q: Array, enough: float | None = None) -> Array:
        """Return the least distance of all pairs, or only which side of `enough`.

        What the kernel leaves NaN, for numbers too large, is computed without it.
        """
        if self.is_exact:
            blocks = (X for _, X in self._blocks(Q, "distance"))
            least = [self._placed.least(X, enough) for X in blocks]
            return np.concatenate([np.zeros(0), *least])
        least = np.minimum(self._answers("clearance", Q), self._placed.constant)
        unknown = np.flatnonzero(np.isnan(least))
        for rows, X in self._blocks(Q[unknown], "distance"):
            least[unknown[rows]] = self._measures.distances(X).min(axis=1)
        return least

    def _row(self, q: Any) -> Array | None:
        """Return joint positions that are one row of floats; else None."""
        # What is to be refused takes the general way, which says why; so do triangles.
        is_row = type(q) is np.ndarray and q.ndim == 1 and q.dtype == np.float64
        is_one = is_row and not self.is_exact and len(q) == self._placed.moving.joints
        return q if is_one else None

    def _rows(self, **given: npt.ArrayLike) -> tuple[list[Array], tuple[int, ...]]:
        """Return joint positions as rows, and the shape of their batch."""
        # The checks and messages of shapes are those of kernels with these inputs.
        n = self._placed.moving.joints
        ports = tuple(Port(name, (n,)) for name in given)
        program = Program("collision", ports, (), (), ())
        arrays, batch = broadcast(program, tuple(given.values()))
        return [each.reshape(math.prod(batch), n) for each in arrays], batch

    def _blocks(self, Q: Array, asked: Measure) -> Iterator[tuple[slice, Array]]:
        """Yield some rows at a time with poses of all links; nothing without pairs."""
        if not len(self.pairs):
            return
        step = max(1, BLOCK // self._measures.width(asked))
        for start in range(0, len(Q), step):
            rows = slice(start, start + step)
            yield rows, self._placed.poses(Q[rows])
