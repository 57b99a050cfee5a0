"""What a calibration has found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.calibration.identifiability import Dependence, Identified
from armillary.calibration.measurements import Measurement, numbers_in_rows
from armillary.calibration.next_poses import best_rows
from armillary.cell.cell import Cell
from armillary.errors import ModelError

__all__ = ["Calibration"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration:
    """Numbers of a cell that were found from measurements, and how well.

    Attributes:
        nominal: The cell as it was.
        measurements: What was measured.
        names: Of the parameters.
        start: Their nominal values, shape (k,).
        values: The values that were found, shape (k,).
        identified: Which of them the measurements decide.
        covariance: Of the parameters, shape (k, k), from the standard deviations of
            measurements; infinite on the diagonal where values are fixed.
        rates: Derivatives of all residuals by parameters, those of priors last, shape
            (m, k).
        residuals: Of each measurement, what the calibrated model says less what was
            measured, over its standard deviation; shape (n, d).
        before: The same of the nominal cell.
        success: Whether the search came to an end.
        message: Why it ended.
        steps: How often residuals were computed.
    """

    nominal: Cell
    measurements: tuple[Measurement, ...]
    names: tuple[str, ...]
    start: Array
    values: Array
    identified: Identified
    covariance: Array
    rates: Array
    residuals: tuple[Array, ...]
    before: tuple[Array, ...]
    success: bool
    message: str
    steps: int

    @property
    def parameters(self) -> dict[str, float]:
        """Return the value of each parameter by its name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @cached_property
    def cell(self) -> Cell:
        """Return the cell with these parameters.

        Raises:
            ModelError: No cell has a value that was found; see `cell.with_parameters`.
        """
        return self.nominal.with_parameters(self.parameters)

    @property
    def std(self) -> Array:
        """Return the standard deviation of each parameter, shape (k,)."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def identifiable(self) -> Truths:
        """Return whether measurements decide each parameter by itself, shape (k,)."""
        return self.identified.identifiable

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Return which parameters stand for one another."""
        return self.identified.dependences

    @property
    def noise(self) -> float:
        """Return the standard deviation of residuals in parts of those stated.

        It is near 1 where the model and the stated errors are right.
        """
        squares = sum(float((each**2).sum()) for each in self.residuals)
        count = sum(each.size for each in self.residuals) - self.identified.rank
        return float(np.sqrt(squares / count)) if count > 0 else float("nan")

    def __repr__(self) -> str:
        return (
            f"<Calibration of {len(self.names)} parameters, {self.identified.rank} "
            f"identifiable, noise {self.noise:.3g}>"
        )

    def next_poses(
        self, candidates: npt.ArrayLike, count: int, *, like: int = 0
    ) -> Indices:
        """Return which joint positions to measure next, the most telling ones first.

        With them the volume of the ellipsoid of errors becomes least (D-optimal, by
        exchange).

        Args:
            candidates: Joint positions that can be measured [m or rad], shape (n, j),
                such as rows of `cell.samples(1000)` at which nothing touches.
            count: How many to choose, at most n.
            like: Which of `measurements` will be repeated there.

        Returns:
            Rows of `candidates`, shape (count,).

        Raises:
            ModelError: `candidates` have another shape, or are fewer than `count`; or
                there is no such measurement.
        """
        joints = len(self.nominal.joint_names)
        rows = numbers_in_rows(candidates, (joints,), "joint positions", "candidates")
        if not (isinstance(cast(Any, count), int | np.integer) and 0 < count <= len(rows)):
            raise ModelError(
                f"next_poses chooses 1 to {len(rows)} of the candidates, not {count}."
            )
        if not 0 <= like < len(self.measurements):
            raise ModelError(
                f"like= is the number of a measurement, 0 to "
                f"{len(self.measurements) - 1}, not {like}."
            )
        cell, free = self.nominal.workcell, ~self.identified.is_fixed
        rates = self.measurements[like].rates_at(cell, self.names, self.values, rows)
        usable = np.flatnonzero(np.isfinite(rates).all(axis=(1, 2)))
        if len(usable) < count:
            raise ModelError(
                f"Only {len(usable)} of the candidates can be computed; the loops of "
                "others do not close."
            )
        chosen = best_rows(self.rates[:, free], rates[usable][:, :, free], count)
        return usable[chosen]

    def report(self) -> str:
        """Return a text: parameters with errors, dependences, residuals."""
        lines = [repr(self)[1:-1], ""]
        width = max(map(len, self.names))
        lines.append(
            f"{'parameter':{width}}  {'nominal':>12} {'found':>14} {'std':>10}"
        )
        rows = zip(self.names, self.start, self.values, self.std, strict=True)
        for name, start, value, std in rows:
            error = f"{std:10.2e}" if np.isfinite(std) else "fixed"
            lines.append(f"{name:{width}}  {start:12.6g} {value:14.8g} {error:>10}")
        if self.dependences:
            lines += ["", "not identifiable:"]
            lines += (f"  {each}" for each in self.dependences)
        lines += ["", "residuals (root mean square, in the unit measured):"]
        for each, before, after in zip(
            self.measurements, self.before, self.residuals, strict=True
        ):
            for unit in dict.fromkeys(each.units):
                columns = [k for k, u in enumerate(each.units) if u == unit]
                sizes = [
                    np.sqrt(((rows * each.sigmas)[:, columns] ** 2).mean())
                    for rows in (before, after)
                ]
                lines.append(f"  {each.label}: {sizes[0]:.3g} -> {sizes[1]:.3g} {unit}")
        return "\n".join(lines) + "\n"
