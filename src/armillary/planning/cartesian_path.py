"""Paths of joints along which a tool follows a curve: what `cell.line` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, StateError
from armillary.ik.avoidance import check_of_same
from armillary.ik.reason import Reason
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.kinematics.ending import Ending
from armillary.kinematics.kernels import selection_of
from armillary.kinematics.questions import jacobian
from armillary.kinematics.state import State, bound_state, home
from armillary.model.workcell import Workcell
from armillary.planning.tool_curve import LEVER, Directions, ToolCurve
from armillary.trajectories.kept_limits import (
    BEYOND,
    limited_spline,
    slowed,
    spline_excess,
)
from armillary.trajectories.limits import acceleration_limits, velocity_limits
from armillary.trajectories.motion import Motion
from armillary.trajectories.time_path import time_path
from armillary.trajectories.timed_path import TimedPath

__all__ = ["CartesianPath", "LineReason", "Stretch", "Tool", "timed_along"]

Array = npt.NDArray[np.float64]

INTERVALS: Final = 200
"""Least intervals of the grid at which limits of a motion hold."""


class LineReason(Ending):
    """How far a tool follows its curve, and why no farther.

    Those up to `IN_COLLISION` mean what they mean in `Reason`, of the pose at which the
    path ends. `LIMITS`: a joint is at a limit there, or a sum of joints at one that
    couples them, and no answer within the limits continues the path. `SINGULAR`: next
    to a singular pose joints would have to move by far while the tool hardly moves.
    `JUMPS`: only another branch goes on from there. `NOT_PROVEN`: samples are as near
    to each other as they may be, and the tool may still be off the curve by more than
    the tolerance.
    """

    FOLLOWED = int(Reason.SOLVED), "followed"
    NOT_FOUND = int(Reason.NOT_FOUND), Reason.NOT_FOUND.sentence
    OUT_OF_REACH = int(Reason.OUT_OF_REACH), Reason.OUT_OF_REACH.sentence
    LIMITS = int(Reason.LIMITS), "blocked by joint limits"
    SINGULAR = (
        int(Reason.SINGULAR),
        "singular: joints would have to move far where the tool hardly moves",
    )
    IN_COLLISION = int(Reason.IN_COLLISION), "in collision: links touch"
    JUMPS = 8, "only by a jump to another branch"
    NOT_PROVEN = 9, "not proven to be within the tolerance"


class Tool(NamedTuple):
    """Which frame follows the curve, and what moves it.

    Attributes:
        cell: What has it.
        frame: Its name.
        relative_to: The frame in which the curve is given.
        joints: Names of the joints in q.
        state: Whose attachments and other joints count; None for the cell at home.
        directions: Which of its axes have directions that count: all, one about which
            it may spin, or none.
    """

    cell: Workcell
    frame: str
    relative_to: str
    joints: tuple[str, ...]
    state: State | None
    directions: Directions = (0, 1, 2)

    def jacobian(self, q: Array) -> Array:
        """Return what counts of its Jacobian, in its own axes, shape (..., r, n).

        q: Joint positions [m or rad], shape (..., n).
        """
        kernel = jacobian(
            self.cell,
            self.frame,
            relative_to=self.relative_to,
            axes=self.frame,
            joints=self.joints,
            state=self.state,
        )
        J = np.asarray(kernel(q))
        if len(self.directions) > 1:
            return J
        # A turn about the axis whose direction counts does not change that.
        turns = [
            3 + k for k in range(3) if self.directions and k not in self.directions
        ]
        return J[..., [0, 1, 2, *turns], :]

    def accept(self, check: CollisionCheck) -> None:
        """Refuse a check of another cell or state.

        Raises:
            ModelError: It is one, or something else.
        """
        now = home(self.cell) if self.state is None else self.state
        try:
            check_of_same(check, self.cell, bound_state(self.cell, now))
        except ModelError as error:
            raise ModelError(str(error).replace("avoid=", "check=")) from None

    @property
    def rest(self) -> Array:
        """Return where all joints of the cell are that do not move, shape (N,)."""
        now = home(self.cell) if self.state is None else self.state
        return bound_state(self.cell, now).q

    def whole(self, q: Array) -> Array:
        """Return positions of all joints of the cell: (k, n) to (k, N)."""
        whole = np.tile(self.rest, (len(q), 1))
        whole[:, [self.cell.joint(name) for name in self.joints]] = q
        return whole


class Stretch(NamedTuple):
    """A part of a path.

    Attributes:
        first: The parameter s at which it begins [m].
        last: That at which it ends [m].
        least: The least singular value on it.
    """

    first: float
    last: float
    least: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class CartesianPath:
    """Joint positions along which a tool follows a curve; arrays are read-only.

    Between two samples joints move straight. Where a path does not succeed, it ends
    where the curve could be followed to.

    Attributes:
        q: Joint positions of k samples [m or rad], shape (k, n); (0, n) where not even
            the first pose is reached.
        s: The parameter of the curve at each, shape (k,) [m]: the length of the way of
            the tool's origin, see `length`.
        reason: Whether the curve is followed to its end, or why not.
        where: The parameter at which the path ends or links touch [m].
        target: The index, among the targets, of what the tool follows there.
        bounds: How far the tool is from the curve between each sample and the next at
            most: distance [m] and angle [rad], shape (k - 1, 2).
        proven: Whether these are proven; otherwise, as for closed loops, they are
            the greatest at the ends of `MEASURED` parts of each interval.
        pairs: Names of the pairs of links that touch at `where`.
        tool: What follows it.
        curve: The poses that it follows.
        corners: Samples at which the direction changes suddenly, so that the tool must
            stop there, shape (c,).
        unchecked: Where links touch, the path as it would be without a check.
    """

    q: Array
    s: Array
    reason: LineReason
    where: float
    target: int
    bounds: Array
    proven: bool
    pairs: tuple[tuple[str, str], ...]
    tool: Tool
    curve: ToolCurve
    corners: npt.NDArray[np.int64]
    unchecked: CartesianPath | None = None

    @property
    def success(self) -> bool:
        """Return whether the curve is followed to its end, and nothing touches."""
        return self.reason == LineReason.FOLLOWED

    @property
    def length(self) -> float:
        """Return the length of the curve [m], a turn in place as 0.1 m per radian."""
        return self.curve.length

    @property
    def joints(self) -> tuple[str, ...]:
        """Return the names of the joints in q."""
        return self.tool.joints

    @property
    def deviation(self) -> tuple[float, float]:
        """Return how far the tool is from the curve at most [m, rad]; NaN without q."""
        if not len(self.q):
            return np.nan, np.nan
        most = self.bounds.max(axis=0, initial=0.0)
        return float(most[0]), float(most[1])

    def poses(self, s: npt.ArrayLike) -> Array:
        """Return the poses of the curve.

        Args:
            s: Parameters within the curve [m], shape (...).

        Returns:
            Poses relative to `tool.relative_to`, shape (..., 4, 4).

        Raises:
            ShapeError: A parameter is beyond the curve, or NaN.
        """
        given = numbers_of("s", s)
        slack = 1e-12 * self.length
        if not ((given >= -slack) & (given <= self.length + slack)).all():
            raise ShapeError(
                f"This curve has parameters from 0 to {self.length:.6g} m."
            )
        flat = self.curve.points(np.clip(given.ravel(), 0.0, self.length)).pose
        return flat.reshape(*given.shape, 4, 4)

    def at(self, s: npt.ArrayLike) -> Array:
        """Return joint positions, straight between samples, shape (..., n) [m or rad].

        Args:
            s: Parameters within the path [m], shape (...).

        Raises:
            ShapeError: A parameter is beyond the path, or NaN.
        """
        given = numbers_of("s", s)
        end = float(self.s[-1]) if len(self.s) else -np.inf
        first = float(self.s[0]) if len(self.s) else 0.0
        slack = 1e-12 * self.length
        if not ((given >= first - slack) & (given <= end + slack)).all():
            raise ShapeError(
                f"This path has parameters from {first:.6g} to {end:.6g} m."
            )
        flat = given.ravel()
        columns: list[Array] = [np.interp(flat, self.s, column) for column in self.q.T]
        return np.stack(columns, axis=-1).reshape(*given.shape, self.q.shape[1])

    @cached_property
    def singular_values(self) -> Array:
        """Return the least singular value of the tool's Jacobian, shape (k,).

        Of its linear rows in units of LEVER, so that it is the least rate of turning
        [rad/s], or tenth of a metre per second, at unit rates of the joints.
        """
        return least_singular_values(self.tool.jacobian(self.q))

    def singular_stretches(self, below: float = 0.05) -> list[Stretch]:
        """Return where the least singular value is below a number.

        Args:
            below: The number, see `singular_values`.

        Raises:
            ModelError: It is not above 0, or not a number.
        """
        values = self.singular_values
        most = positive_number("below=", below, most=np.inf)
        inside = np.concatenate([[False], values < most, [False]])
        edges = np.flatnonzero(np.diff(inside.astype(np.int8)))
        return [
            Stretch(float(self.s[a]), float(self.s[b - 1]), float(values[a:b].min()))
            for a, b in edges.reshape(-1, 2)
        ]

    def timed(
        self,
        *,
        speed: float = np.inf,
        tool_acceleration: float = np.inf,
        velocity: npt.ArrayLike | None = None,
        acceleration: npt.ArrayLike | None = None,
        jerk: npt.ArrayLike | None = None,
    ) -> Motion:
        """Return the fastest motion along the path within limits.

        The tool stops at corners that are not blended. Between two of them the motion
        follows the natural spline through the samples.

        Args:
            speed: The greatest speed of the tool [m/s], on seams where limits of joints
                allow it the speed throughout.
            tool_acceleration: Its greatest acceleration along the path [m/s^2].
            velocity: The greatest rates of the joints, as for `cell.time_path`.
            acceleration: Their greatest accelerations, likewise.
            jerk: Their greatest jerks, likewise; by default not limited.

        Raises:
            StateError: The path does not succeed, or limits leave no speed at a point.
            ShapeError: As for `cell.time_path`.
            ModelError: As for `cell.time_path`, or `speed` is not above 0.
        """
        (motion,) = timed_along(
            [self],
            (speed, tool_acceleration),
            velocity=velocity,
            acceleration=acceleration,
            jerk=jerk,
        )
        if isinstance(motion, StateError):
            raise motion
        state = self.tool.state
        return motion if state is None else motion.bound(state)

    def part(self, first: int, last: int) -> CartesianPath:
        """Return the path from one sample to another.

        Args:
            first: The number of the first sample.
            last: That of the last one, which is a part of it, too.
        """
        corners = self.corners - first
        inner = (corners > 0) & (corners < last - first)
        whole = last == len(self.q) - 1
        return replace(
            self,
            q=self.q[first : last + 1],
            s=self.s[first : last + 1],
            bounds=self.bounds[first:last],
            corners=corners[inner],
            reason=self.reason if whole else LineReason.FOLLOWED,
            where=self.where if whole else float(self.s[last]),
        )

    def __repr__(self) -> str:
        return f"<CartesianPath: {self}>"

    def __str__(self) -> str:
        if self.success:
            along = f"{self.s[-1] - self.s[0]:.6g} m"
            count = f"{len(self.q)} samples along {along}"
            distance, angle = self.deviation
            how = "proven" if self.proven else "measured"
            return f"{count}, {how} to be within {distance:.2g} m and {angle:.2g} rad"
        touching = "".join(f"; {a} and {b}" for a, b in self.pairs)
        return (
            f"{self.reason.sentence}, at s = {self.where:.6g} of {self.length:.6g} m, "
            f"on the way to target {self.target}{touching}"
        )


def timed_along(
    paths: Sequence[CartesianPath], path_rates: tuple[float, float], **limits: Any
) -> list[Motion | StateError]:
    """Return the motions of `CartesianPath.timed`, which begin in no certain state.

    Parts of paths with as many samples are timed in one batch.

    Args:
        paths: Paths of the same joints.
        path_rates: The greatest speed and acceleration of the tool along them.
        limits: `velocity`, `acceleration` and `jerk`, as there.

    Returns:
        For each path the motion, or the error that it has no times.

    Raises:
        ShapeError: As there.
        ModelError: As there.
    """
    rates = (
        positive_number("speed", path_rates[0], most=np.inf),
        positive_number("tool_acceleration", path_rates[1], most=np.inf),
    )
    edges = [[0, *path.corners.tolist(), len(path.q) - 1] for path in paths]
    alike: dict[int, list[tuple[int, int]]] = {}
    for k, path in enumerate(paths):
        # The tool stops at corners.
        for first, last in pairwise(edges[k]) if path.success else ():
            alike.setdefault(last - first, []).append((k, first))
    parts: dict[tuple[int, int], Motion | StateError] = {}
    if alike:
        timing = _Timing.of(paths[0].tool, rates, limits)
        for count, places in alike.items():
            of = [(paths[k], slice(a, a + count + 1)) for k, a in places]
            q, s = (np.stack([getattr(p, x)[at] for p, at in of]) for x in ("q", "s"))
            parts.update(zip(places, timing.motions(q, s), strict=True))
    return [
        _after_each_other([parts[k, a] for a in edges[k][:-1]])
        if path.success
        else StateError(f"This path has no times: {path}.")
        for k, path in enumerate(paths)
    ]


@dataclass(frozen=True)
class _Timing:
    """How parts of paths become motions.

    Attributes:
        tool: What moves along them.
        rows: A and b of limits of positions, A q <= b.
        bounds: Least and greatest rates, and accelerations, shape (2, n) each.
        options: What `time_path` is called with.
    """

    tool: Tool
    rows: tuple[Array, Array]
    bounds: tuple[Array, Array]
    options: dict[str, Any]

    @classmethod
    def of(cls, tool: Tool, rates: tuple[float, float], limits: Any) -> _Timing:
        """Return it for limits of rates of the path and of joints."""
        cell = tool.cell
        chosen = selection_of(cell, tool.joints).inputs
        velocity, acceleration = (
            limits.get(name) for name in ("velocity", "acceleration")
        )
        bounds = (
            velocity_limits(cell, chosen, velocity),
            acceleration_limits(cell, chosen, acceleration, is_needed=True),
        )
        coupled = cell.limit_rows
        if len(coupled):
            coupled = coupled.of_joints(chosen, tool.rest)
        else:
            coupled = coupled.of_joints(chosen, cell.home_q)
        rows = coupled.polytope(*(each[list(chosen)] for each in cell.limits))
        options = {**limits, "path_rates": rates, "joints": tool.joints}
        return cls(tool, rows, bounds, options)

    def motions(self, q: Array, s: Array) -> list[Motion | StateError]:
        """Return the motions along several parts with as many samples.

        Args:
            q: Joint positions of samples, shape (m, k, n).
            s: Their parameters, shape (m, k).
        """
        timed = self._timed(q, s)
        found: list[Any] = []
        for row in range(len(q)):
            try:
                motion = timed.motion(row)
            except StateError as error:
                found.append(error)
                continue
            if spline_excess(motion.curve, q[row], self.rows) > BEYOND:
                knots = timed.curve.knots[row]
                positions, *rates = limited_spline(s[row], knots, self.rows)
                motion = self._timed(positions, s[row], (rates[0], rates[1])).motion()
            found.append(motion)
        if self.options.get("jerk") is not None:
            return found
        good = [k for k, each in enumerate(found) if isinstance(each, Motion)]
        kept = slowed([found[k] for k in good], *self.bounds) if good else ()
        for k, motion in zip(good, kept, strict=True):
            found[k] = motion
        return found

    def _timed(
        self, q: Array, s: Array, derivatives: tuple[Array, Array] | None = None
    ) -> TimedPath:
        return time_path(
            self.tool.cell,
            q,
            at=s,
            derivatives=derivatives,
            intervals=max(2, -(-INTERVALS // (q.shape[-2] - 1))),
            **self.options,
        )


def _after_each_other(parts: Sequence[Motion | StateError]) -> Motion | StateError:
    """Return motions as one, or the first error of those that there are not."""
    motions: list[Motion] = []
    for part in parts:
        if isinstance(part, StateError):
            return part
        motions.append(part)
    first, *others = motions
    return first.then(*others) if others else first


def least_singular_values(J: Array) -> Array:
    """Return the least singular value of Jacobians (k, r, n), lengths in LEVER."""
    scaled = J / np.array([LEVER] * 3 + [1.0] * 3)[: J.shape[1], None]
    if not len(J):
        return np.zeros(0)
    return np.asarray(np.linalg.svd(scaled, compute_uv=False)[:, -1], np.float64)
