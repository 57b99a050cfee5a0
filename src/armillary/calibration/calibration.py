"""What a calibration has found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from armillary.calibration.identifiability import Dependence, Identified
from armillary.calibration.measurements import Measurement
from armillary.cell.cell import Cell

__all__ = ["Calibration"]

Array = npt.NDArray[np.float64]
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
