"""Motions whose torques tell most of masses and friction.

Each joint follows a sum of sines and cosines of one period (Swevers et al., IEEE T-RA
13 (1997)), at rest at both ends:

    q(t) = c + sum_k a_k sin(k w t) + b_k cos(k w t),
    sum_k k a_k = 0,  sum_k k^2 b_k = 0,  w = 2 pi / T

Of these det(J'J) is made greatest, J being the derivatives of torques by what they
decide of the parameters (D-optimal), by exact derivatives of J.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.calibration.identifiability import identified
from armillary.cell.cell import Cell
from armillary.dynamics.questions import torque_rates
from armillary.errors import KernelError, ModelError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kernel.arguments import positive_number, whole_number
from armillary.kinematics.state import State, bound_state, home
from armillary.model.cell_parameters import named_parameters
from armillary.trajectories.motion import Motion

if TYPE_CHECKING:
    from armillary.collision.check import CollisionCheck

__all__ = ["exciting_motion"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

POWER: Final = 24.0
"""Of the norm that stands for the greatest share of limits, smooth and above it."""
PER_PERIOD: Final = 8
"""Samples of the shortest period, at which derivatives are summed."""
PER_PIECE: Final = 4
"""Pieces of the motion between such samples."""
FREE: Final = np.pi
"""How far joints without limits go to each side [rad or m]."""
SHRUNK: Final = 0.85
"""By what amplitudes are multiplied until nothing touches."""
SMALLEST: Final = 0.05
MOST_HARMONICS: Final = 100


def exciting_motion(  # noqa: PLR0913 - options of one question
    cell: Cell,
    parameters: Sequence[str],
    *,
    seconds: float = 10.0,
    harmonics: int = 5,
    state: State | None = None,
    check: CollisionCheck | None = None,
    share: float = 0.9,
    trials: int = 4,
    most_steps: int = 40,
    seed: int = 0,
) -> Motion:
    """Return a motion of all joints whose torques decide parameters best.

    It is within limits of positions, rates and accelerations, begins and ends at rest
    at one place, and can be repeated. Of random sums of sines the best ones are
    improved until det(J'J) is greatest; those of loops, whose kernels have no
    derivatives, are only drawn.

    Args:
        cell: What moves.
        parameters: Names of the numbers that torques are to decide; see `Torques`.
        seconds: The period.
        harmonics: How many sines and cosines there are of each joint, 2 or more.
        state: About where joints move, if limits leave a quarter of their range on each
            side; at home by default. Its attachments count.
        check: Amplitudes are made smaller until nothing of it touches along straight
            lines between 32 `harmonics` instants; such as `cell.collision(state)`, with
            a margin.
        share: How much of the limits is used, above 0, at most 1.
        trials: How many random motions are drawn for each that is improved.
        most_steps: How many steps improve it.
        seed: Of random numbers.

    Raises:
        UnknownName: There is no such parameter.
        ModelError: No parameter is named, torques decide none of them; a number is out
            of its range; links touch even where amplitudes are small; or SciPy is not
            installed.
    """
    if not isinstance(cast(Any, cell), Cell):
        raise ModelError(f"exciting_motion takes a Cell first, not {quote(cell)}.")
    seconds = positive_number("seconds, the period,", seconds)
    share = positive_number("share of limits", share)
    if share > 1.0:
        raise ModelError(f"share of limits is at most 1, not {share}.")
    harmonics = whole_number("harmonics", harmonics, least=2)
    if harmonics > MOST_HARMONICS:
        raise ModelError(
            f"harmonics is at most {MOST_HARMONICS}, not {quote(harmonics)}."
        )
    trials = whole_number("trials", trials, least=1)
    most_steps = whole_number("most_steps", most_steps, least=1)
    seed = whole_number("seed", seed, least=0)
    if check is not None:
        _check_check(cell, check)
    names = tuple(each.name for each in named_parameters(cell.workcell, parameters))
    if not names:
        raise ModelError("exciting_motion needs parameters= with one name at least.")
    at = home(cell.workcell) if state is None else bound_state(cell.workcell, state)
    search = _Excitation(cell, names, at, state, seconds, harmonics, share)
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=search.shape) for _ in range(trials)]
    search.choose(drawn)
    best = search.improved(min(drawn, key=search.value), most_steps)
    return _free(search, best, check, cell, at)


def _check_check(cell: Cell, check: Any) -> None:
    with IMPORT_LOCK:
        from armillary.collision.check import CollisionCheck

    if not isinstance(check, CollisionCheck):
        raise ModelError(
            "check= is a collision check, such as cell.collision(margin=0.01), not "
            f"{quote(check)}."
        )
    if check.cell != cell.workcell:
        raise ModelError(
            f"check= is of another cell, '{check.cell.name}': make it by "
            "cell.collision() of the cell that moves."
        )


def _free(
    search: _Excitation, z: Array, check: CollisionCheck | None, cell: Cell, at: State
) -> Motion:
    """Return the motion of coefficients, smaller where links touch."""
    times, fine = search.fine
    factor, rows = 1.0, cell.workcell.limit_rows
    whole = search.unused(z)
    while factor > SMALLEST:
        q, qd, qdd = search.motion(z, fine, factor * whole)
        is_free = bool(rows.holds(q).all()) if len(rows) else True
        if check is not None and is_free:
            is_free = bool((check.motion(q[:-1], q[1:]).fraction == 1.0).all())
        if is_free:
            return Motion.through(
                times, q, qd, qdd, joint_names=cell.joint_names, start=at
            )
        factor *= SHRUNK
    centre = quote(np.round(search.centre, 3).tolist())
    raise ModelError(
        "Links touch, or coupled limits are passed, even where joints move little "
        f"about {centre}: pass state= with other joint positions."
    )


class _Series(NamedTuple):
    """Positions, rates and accelerations at instants, by coefficients, (n, m) each."""

    q: Array
    qd: Array
    qdd: Array


class _Excitation:
    """Motions by coefficients z, of each joint those of its sines and cosines.

    Attributes:
        shape: Of z, (m, joints).
        centre: About where joints move, shape (joints,).
    """

    def __init__(
        self,
        cell: Cell,
        names: tuple[str, ...],
        at: State,
        state: State | None,
        seconds: float,
        harmonics: int,
        share: float,
    ) -> None:
        self._kernel: Any = torque_rates(cell.workcell, parameters=names, state=state)
        parameters = named_parameters(cell.workcell, names)
        self._p = np.array([each.value for each in parameters])
        self._names, self._share = names, share
        low, high = (np.asarray(x, np.float64) for x in cell.limits)
        q = np.asarray(at.q, np.float64)
        middle = 0.25 * (high - low)
        with np.errstate(invalid="ignore"):
            inner = np.clip(q, low + middle, high - middle)
        self.centre = np.where(np.isfinite(inner), inner, q)
        reach = np.minimum(self.centre - low, high - self.centre)
        reach = np.where(np.isfinite(reach), reach, FREE)
        bounds = np.array([reach, cell.velocity_limits, cell.acceleration_limits])
        self._ratios = np.where(bounds > 0.0, 1.0 / np.maximum(bounds, 1e-12), np.inf)
        self._fixed = ~np.isfinite(self._ratios).all(axis=0)
        self._ratios[:, self._fixed] = 1.0
        count = PER_PERIOD * harmonics
        self._series = _series(seconds * np.arange(count) / count, seconds, harmonics)
        times = np.linspace(0.0, seconds, PER_PIECE * count + 1)
        self.fine = times, _series(times, seconds, harmonics)
        self.shape = self._series.q.shape[1], len(q)
        self._decided: Truths = np.ones(len(names), bool)
        self._scale = np.ones(len(names))

    def choose(self, drawn: Sequence[Array]) -> None:
        """Find what torques decide of the parameters, from several motions."""
        J = np.concatenate([self._rates(*self.motion(z, self._series)) for z in drawn])
        rows = J.reshape(-1, len(self._names))
        found = identified(rows, self._names)
        if not found.rank:
            raise ModelError("Torques do not depend on any of these parameters.")
        self._decided = ~found.is_fixed
        self._scale = np.linalg.norm(rows[:, self._decided], axis=0)

    def unused(self, z: Array) -> Array:
        """Return by what amplitudes of joints may be multiplied to use their share."""
        size, _ = self._sizes(z, self.fine[1])
        pairs = zip(self.fine[1], self._ratios, strict=True)
        return size / np.max([np.abs(x @ z * y).max(axis=0) for x, y in pairs], axis=0)

    def motion(
        self, z: Array, at: _Series, factor: float | Array = 1.0
    ) -> tuple[Array, ...]:
        """Return positions, rates and accelerations, shape (n, joints) each.

        Those of each joint use up to `share` of its limits, times `factor`.
        """
        size = factor * self._share / self._sizes(z, self.fine[1])[0]
        size = np.where(self._fixed, 0.0, size)
        q, qd, qdd = (x @ z * size for x in at)
        return self.centre + q, qd, qdd

    def _sizes(self, z: Array, at: _Series) -> tuple[Array, Array]:
        """Return about the greatest share of limits, at least it, and its slopes by z.

        It is s = |r|_P of the shares r of all instants, by joint.
        """
        shares = [x @ z * ratio for x, ratio in zip(at, self._ratios, strict=True)]
        top = np.maximum(np.abs(shares).max(axis=(0, 1)), 1e-12)
        powers = sum((np.abs(r / top) ** POWER).sum(axis=0) for r in shares)
        size = top * powers ** (1.0 / POWER)
        slopes = sum(
            x.T @ (np.sign(r) * np.abs(r / size) ** (POWER - 1.0)) * ratio
            for x, r, ratio in zip(at, shares, self._ratios, strict=True)
        )
        return size, cast(Array, slopes)

    def _rates(self, q: Array, qd: Array, qdd: Array) -> Array:
        return self._kernel(q, self._p, qd, qdd)

    def value(self, z: Array) -> float:
        """Return -log det(J'J) of the parameters that are decided, in their scales."""
        J = self._rates(*self.motion(z, self._series))[..., self._decided]
        R = np.linalg.qr(J.reshape(-1, len(self._scale)) / self._scale, mode="r")
        diagonal = np.abs(np.diagonal(R))
        return float(-2.0 * np.log(np.maximum(diagonal, 1e-150)).sum())

    def improved(self, z: Array, steps: int) -> Array:
        """Return coefficients of a lesser value, by BFGS.

        With A = J'J, d(-log det A)/dJ = -2 J A^-1, which the kernel takes back to q, qd
        and qdd; these are c + f x z / s(z), so that z gets f x' (g - (g . x z) / s
        ds/dz) / s.
        """
        try:
            back: Any = self._kernel.vjp(["q", "qd", "qdd"])
        except KernelError:  # a closed loop
            return z
        try:
            from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise ModelError(
                "exciting_motion needs SciPy: pip install 'armillary[calibrate]'."
            ) from error

        def slope(flat: Array) -> tuple[float, Array]:
            z = flat.reshape(self.shape)
            at = self.motion(z, self._series)
            J = self._rates(*at)
            own = J[..., self._decided] / self._scale
            Q, R = np.linalg.qr(own.reshape(-1, len(self._scale)))
            weights = np.zeros_like(J)
            weights[..., self._decided] = (
                -2.0 * np.linalg.solve(R, Q.T).T.reshape(own.shape) / self._scale
            )
            grads = back(at[0], self._p, *at[1:], weights)
            size, slopes = self._sizes(z, self.fine[1])
            along = sum(x.T @ g for x, g in zip(self._series, grads, strict=True))
            inner = (z * along).sum(axis=0)
            found = self._share / size * (along - inner / size * slopes)
            value = -2.0 * np.log(np.maximum(np.abs(np.diagonal(R)), 1e-150)).sum()
            return float(value), np.where(self._fixed, 0.0, found).ravel()

        minimised: Any = cast(Any, optimize).minimize
        found = minimised(
            slope,
            z.ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps},
        )
        return found.x.reshape(self.shape)


def _series(times: Array, seconds: float, harmonics: int) -> _Series:
    """Return what coefficients add that leave both ends at rest."""
    k = np.arange(1, harmonics + 1)
    w: Any = 2.0 * np.pi / seconds * k
    phase = np.multiply.outer(times, w)
    sine, cosine = np.sin(phase), np.cos(phase)
    q = np.concatenate([sine, cosine], axis=1)
    qd = np.concatenate([w * cosine, -w * sine], axis=1)
    qdd = np.concatenate([-w * w * sine, -w * w * cosine], axis=1)
    at_rest = np.array([[*k, *(0 * k)], [*(0 * k), *k**2]], np.float64)
    null = np.linalg.svd(at_rest)[2][2:].T
    return _Series(q @ null, qd @ null, qdd @ null)
