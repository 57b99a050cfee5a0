"""Finds numbers of a cell from measurements, by least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.calibration.calibration import Calibration
from armillary.calibration.consistent_inertias import complete_inertias, consistent
from armillary.calibration.identifiability import covariance_of, identified
from armillary.calibration.measurement import Compared, Measurement, as_sigma
from armillary.calibration.pose_starts import pose_starts
from armillary.cell.cell import Cell
from armillary.errors import ModelError, quote, unknown
from armillary.kernel.arguments import whole_number
from armillary.model.cell_parameters import (
    DYNAMICS,
    MOUNT,
    first_places,
    named_parameters,
)
from armillary.model.joint_dynamics import AT_LEAST_ZERO

if TYPE_CHECKING:
    from armillary.model.workcell import Workcell

__all__ = ["calibrate"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Truths = npt.NDArray[np.bool_]

TOLERANCE: Final = 1e-12
"""Relative changes of parameters, or of the sum of squares, that end the search."""

ROUGHLY: Final = 1e-4
"""The same for searches that others follow."""

FAR: Final = 2.0
"""By how much a residual is above the median to be that of an outlier, at first."""

NEARER: Final = 3.0
"""By how much less that is in each further search, at least."""

LOSSES: Final[Mapping[str, Callable[[Array], Array]]] = MappingProxyType(
    {
        "linear": np.ones_like,
        "soft_l1": lambda z: 1.0 / np.sqrt(1.0 + z),
        "huber": lambda z: 1.0 / np.sqrt(np.maximum(z, 1.0)),
        "cauchy": lambda z: 1.0 / (1.0 + z),
    }
)
"""Losses of SciPy, and what the square of a residual counts at a value of it."""


def calibrate(
    cell: Cell,
    measurements: Measurement | Sequence[Measurement],
    parameters: Sequence[str],
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    priors: Mapping[str, float] | None = None,
    loss: str = "linear",
    most_steps: int = 100,
) -> Calibration:
    """Find numbers of a cell with which it does what was measured.

    The sum of squares of residuals, each over its standard deviation, becomes least
    (trust regions, by SciPy); derivatives are exact. Which parameters measurements
    decide is found where the search begins: of those that stand for one another, such
    as offsets along parallel axes, the last ones stay where they are, but those that
    say where manipulators stand and frames are on links come before all others. If the
    mount of a manipulator is among the parameters, it need not be mounted.

    The search begins with the nominal cell, but for poses whose six numbers are all
    parameters: up to two of them, as of a tool and a base, have a start from
    `Poses` or `Positions` in closed form, so that they may be anywhere.

    Inertias of which all ten numbers are parameters are kept such that a body can have
    them; those that measurements do not decide come near to nominal ones
    (`consistent_inertias.py`). Friction, damping, stiffness and the inertia of motors
    are kept at 0 or above.

    Args:
        cell: The nominal cell.
        measurements: One or several, such as `arm.measurements.Positions`.
        parameters: Names of numbers to find, see `cell.parameters`.
        bounds: The least and the greatest value of parameters, by name.
        priors: The standard deviation of parameters about their nominal values, by
            name: what is known of them without measurements.
        loss: `linear`, or one that outliers count less for: `soft_l1`, `huber`,
            `cauchy`; see `scipy.optimize.least_squares`.
        most_steps: After how many steps the search ends without success.

    Returns:
        What was found; `.cell` is the calibrated cell.

    Raises:
        UnknownName: A frame, a parameter or a loss does not exist.
        ModelError: There is nothing to find or nothing measured; arrays do not fit the
            cell; a row cannot be computed with the nominal values; or SciPy is not
            installed.
    """
    if not isinstance(cast(Any, cell), Cell):
        raise ModelError(f"calibrate takes a Cell first, not {quote(cell)}.")
    listed = _listed(measurements)
    if not isinstance(cast(Any, loss), str) or loss not in LOSSES:
        raise unknown("loss", loss, LOSSES)
    _check_mappings(bounds=bounds, priors=priors)
    cell = _mounted(cell, parameters)
    workcell = cell.workcell
    found = named_parameters(workcell, parameters)
    most_steps = whole_number("most_steps", most_steps, least=1)
    if not found:
        raise ModelError("calibrate needs parameters= with one name at least.")
    names = [each.name for each in found]
    start = np.array([each.value for each in found])
    lower, upper = _bounds(workcell, names, start, bounds or {})
    known = _priors(workcell, names, priors or {})
    problem = _Problem(workcell, listed, names, start, known)
    before = tuple(each.residuals for each in problem.compared(start))
    bodies = complete_inertias(found)
    _check_unbounded(bodies, names, lower, upper)
    guess = pose_starts(
        workcell,
        listed,
        found,
        is_robust=loss != "linear",
    )
    guess = problem.better(start, np.clip(guess, lower, upper))
    decided = identified(problem.all_rates(guess), names, first_places(workcell, found))
    free = problem.choose(~decided.is_fixed)
    problem.rescale(guess)
    scale = problem.scale[free]
    ends = (lower - start)[free] / scale, (upper - start)[free] / scale
    x = _inside((guess - start)[free] / scale, *ends)
    solved, steps = _searched(problem, x, ends, loss, most_steps)
    p = problem.values(solved.x)
    if bodies:
        p = problem.consistent(p, bodies, (lower, upper), loss)
    rates = problem.all_rates(p)
    return Calibration(
        nominal=cell,
        measurements=tuple(listed),
        names=tuple(names),
        start=start,
        values=p,
        identified=decided,
        covariance=covariance_of(rates, decided.is_fixed),
        rates=rates,
        residuals=tuple(each.residuals for each in problem.compared(p)),
        before=before,
        success=bool(solved.success),
        message=str(solved.message),
        steps=steps,
        again=partial(
            calibrate,
            cell,
            parameters=tuple(names),
            bounds=dict(bounds or {}),
            priors=dict(priors or {}),
            loss=loss,
            most_steps=most_steps,
        ),
    )


def _searched(
    problem: _Problem, x: Array, ends: tuple[Array, Array], loss: str, most_steps: int
) -> tuple[Any, int]:
    """Return what SciPy finds from x, and how many steps it took.

    Losses that outliers count less for hardly pull at what is many standard deviations
    away, as all rows are at a start that is not good, and have minima of their own
    there. So what counts as far away is first what is far among the residuals, and less
    with each search, until it is a standard deviation.
    """
    least_squares = _least_squares()
    far, steps = 1.0, 0
    if loss != "linear":
        far = max(1.0, FAR * float(np.median(np.abs(problem.residuals(x)))))
    while True:
        tolerance = TOLERANCE if far == 1.0 else ROUGHLY
        solved = least_squares(
            problem.residuals,
            x,
            jac=problem.rates,
            bounds=ends,
            loss=loss,
            f_scale=far,
            x_scale=1.0,
            xtol=tolerance,
            ftol=tolerance,
            gtol=tolerance,
            max_nfev=max(1, most_steps - steps),
        )
        steps += int(solved.nfev)
        if far == 1.0 or steps >= most_steps:
            return solved, steps
        x = solved.x
        typical = float(np.median(np.abs(problem.residuals(x))))
        far = max(1.0, min(far / NEARER, FAR * typical))


def _inside(x: Array, low: Array, high: Array) -> Array:
    """Return a start that is a step away from bounds; at one, steps would be tiny."""
    step = np.minimum(1.0, 0.1 * (high - low))
    return np.clip(x, low + step, high - step)


def _least_squares() -> Any:
    try:
        from scipy import optimize  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ModelError(
            "Calibration needs SciPy: pip install 'armillary[calibrate]'."
        ) from error
    solver: Any = optimize
    return solver.least_squares


def _listed(measurements: Any) -> list[Measurement]:
    is_listed = isinstance(measurements, Sequence) and not isinstance(measurements, str)
    listed: list[Any] = [*cast(Any, measurements)] if is_listed else [measurements]
    if not listed:
        raise ModelError("calibrate needs one measurement at least.")
    for each in listed:
        if not isinstance(each, Measurement):
            raise ModelError(
                f"{quote(each)} is not a measurement, such as "
                "arm.measurements.Positions(frame, q, positions)."
            )
    return listed


def _mounted(cell: Cell, names: Sequence[Any]) -> Cell:
    """Return the cell with manipulators mounted whose mounts are parameters.

    One that comes from a file alone is at the world, which is that of whoever measures.
    """
    for name in names if isinstance(cast(Any, names), Sequence) else ():
        owner, dot, _ = str(name).partition(f".{MOUNT}")
        if dot and owner in cell.workcell.index and owner not in cell.workcell.mounted:
            cell = cell.mount(owner)
    return cell


def _check_mappings(**given: Any) -> None:
    for name, each in given.items():
        if not (each is None or isinstance(each, Mapping)):
            raise ModelError(
                f"{name}= is a dictionary by names of parameters, not {quote(each)}."
            )


def _bounds(
    cell: Workcell,
    names: Sequence[str],
    start: Array,
    bounds: Mapping[str, tuple[float, float]],
) -> tuple[Array, Array]:
    lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
    for k, name in enumerate(names):
        *_, part, field = name.split(".")
        if part == DYNAMICS and field in AT_LEAST_ZERO:
            lower[k] = 0.0
    for name, ends in bounds.items():
        low, high = _ends(name, ends)
        for k in _places(cell, names, name, "bounds"):
            lower[k], upper[k] = low, high
            if not lower[k] <= start[k] <= upper[k] or lower[k] == upper[k]:
                raise ModelError(
                    f"bounds= of {quote(names[k])} are {low} to {high}; they must be "
                    f"apart, with its nominal value {start[k]:g} between them."
                )
    return lower, upper


def _check_unbounded(
    bodies: Sequence[Indices], names: Sequence[str], lower: Array, upper: Array
) -> None:
    """Refuse bounds of inertias that are kept such that a body can have them."""
    for places in bodies:
        bounded = places[np.isfinite(lower[places]) | np.isfinite(upper[places])]
        if len(bounded):
            raise ModelError(
                f"bounds= has {quote(names[bounded[0]])}, of an inertia whose ten "
                "numbers are all found, such that a body can have them. Use priors=, "
                "or leave some of the ten out of parameters=."
            )


def _ends(name: str, ends: Any) -> tuple[float, float]:
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        raise ModelError(
            f"bounds= of {quote(name)} are two numbers, (low, high); not {quote(ends)}."
        ) from None
    return low, high


def _priors(cell: Workcell, names: Sequence[str], priors: Mapping[str, float]) -> Array:
    """Return one over the standard deviation of each parameter, 0 if not known."""
    weights = np.zeros(len(names))
    for name, sigma in priors.items():
        known = as_sigma(sigma, f"priors= of {quote(name)}")
        for k in _places(cell, names, name, "priors"):
            weights[k] = 1.0 / known
    return weights


def _places(cell: Workcell, names: Sequence[str], name: str, what: str) -> list[int]:
    places: list[int] = []
    for each in named_parameters(cell, (name,)):
        if each.name not in names:
            raise ModelError(
                f"{what}= names {quote(each.name)}, which is not among parameters=."
            )
        places.append(names.index(each.name))
    return places


class _Problem:
    """Residuals of all measurements, by parameters in parts of `scale` from the start.

    Attributes:
        scale: One over the length of the column of each parameter at the start.
    """

    def __init__(
        self,
        cell: Workcell,
        measurements: Sequence[Measurement],
        names: Sequence[str],
        start: Array,
        known: Array,
    ) -> None:
        self._cell, self._measurements, self._names = cell, measurements, names
        self._start, self._known = start, known
        self._free = np.ones(len(names), bool)
        self._last: tuple[Array, tuple[Compared, ...]] | None = None
        for each in measurements:
            each.check(cell)
        self._check_start()
        self.rescale(start)

    def _check_start(self) -> None:
        compared = self.compared(self._start)
        for each, found in zip(self._measurements, compared, strict=True):
            bad = ~np.isfinite(found.residuals).all(axis=1)
            if bad.any():
                rows = ", ".join(map(str, np.flatnonzero(bad)[:5]))
                raise ModelError(
                    f"Row {rows} of {each.label} cannot be computed with the nominal "
                    "cell: its loops do not close there, or a joint is outside of its "
                    "domain."
                )

    def rescale(self, p: Array) -> None:
        """Take as parts of parameters what changes residuals by 1 at p."""
        lengths = np.linalg.norm(self.all_rates(p), axis=0)
        self.scale = np.where(lengths > 0.0, 1.0 / np.maximum(lengths, 1e-300), 1.0)

    def better(self, p: Array, guess: Array) -> Array:
        """Return that of two starts whose typical residual is less."""
        sizes = [
            np.median(np.abs(m.compared(self._cell, self._names, each).residuals))
            for each in (p, guess)
            for m in self._measurements
        ]
        count = len(self._measurements)
        is_better = sum(sizes[count:]) < sum(sizes[:count])
        return guess if is_better else p

    def choose(self, free: Truths) -> Truths:
        """Note which parameters are to be found; the others stay at the start."""
        self._free = free
        return free

    def values(self, x: Array) -> Array:
        """Return all parameters, those that are found x parts of `scale` away."""
        p = self._start.copy()
        p[self._free] += x * self.scale[self._free]
        return p

    def residuals(self, x: Array) -> Array:
        """Return all residuals, those of priors last."""
        p = self.values(x)
        parts = [each.residuals.ravel() for each in self.compared(p)]
        return np.concatenate([*parts, self._known * (p - self._start)])

    def rates(self, x: Array) -> Array:
        """Return their derivatives by x."""
        rates = self.all_rates(self.values(x))
        return rates[:, self._free] * self.scale[self._free]

    def all_rates(self, p: Array) -> Array:
        """Return the derivatives of all residuals by parameters, shape (m, k)."""
        count = len(self._names)
        parts = [each.rates.reshape(-1, count) for each in self.compared(p)]
        return np.concatenate([*parts, np.diag(self._known)])

    def consistent(
        self, p: Array, bodies: Sequence[Indices], ends: tuple[Array, Array], loss: str
    ) -> Array:
        """Return parameters near p whose inertias bodies can have.

        Args:
            p: Where the sum of squares is least.
            bodies: Where the numbers of each inertia are.
            ends: The least and the greatest value of parameters.
            loss: How residuals count.
        """
        low, high = ends
        free = self._free & (low < p) & (p < high)
        free[np.concatenate(bodies)] = True
        while True:
            residuals = [each.residuals.ravel() for each in self.compared(p)]
            whole = np.concatenate([*residuals, self._known * (p - self._start)])
            weights = np.sqrt(LOSSES[loss](whole**2))
            rates = self.all_rates(p)[:, free] * weights[:, np.newaxis]
            places = [np.cumsum(free)[each] - 1 for each in bodies]
            own = consistent(rates, whole * weights, p[free], self._start[free], places)
            found = p.copy()
            found[free] = own
            beyond = free & ((found < low) | (found > high))
            if not beyond.any():
                return found
            # What would pass a bound stays there, and the others are found anew.
            free &= ~beyond
            p = np.where(beyond, np.clip(found, low, high), p)

    def compared(self, p: Array) -> tuple[Compared, ...]:
        """Return what the model says beside each measurement.

        It is kept for one p: the search asks for derivatives where it has residuals.
        """
        if self._last is None or not np.array_equal(self._last[0], p):
            found = (m.compared(self._cell, self._names, p) for m in self._measurements)
            self._last = p.copy(), tuple(found)
        return self._last[1]
