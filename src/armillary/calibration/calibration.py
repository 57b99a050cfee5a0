"""What a calibration has found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.doubts import doubts_of_rows
from armillary.calibration.identifiability import (
    Combination,
    Dependence,
    Identified,
)
from armillary.calibration.measurement import Measurement, numbers_in_rows
from armillary.calibration.next_poses import best_rows
from armillary.cell.cell import Cell
from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.arguments import whole_number
from armillary.model.cell_parameters import named_parameters
from armillary.model.mount import WORLD
from armillary.model.varied_joint import SIX, part_at

if TYPE_CHECKING:
    from armillary.calibration.compensation import CorrectionTable, DHTable, TargetTable

__all__ = ["Calibration"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Truths = npt.NDArray[np.bool_]

DOUBTFUL: Final = 3.0
"""Residuals above so many stated standard deviations are doubted."""
TYPICAL: Final = 0.6745
"""The median size of what is normally distributed, in standard deviations."""
FAR: Final = 0.1
"""Poses that are corrected by more [m or rad] are printed as poses, too."""


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
            measurements, where those that are fixed are right, else of `combinations`;
            infinite on the diagonal of fixed ones.
        rates: Derivatives of all residuals by parameters, those of priors last, shape
            (m, k).
        residuals: Of each measurement, what the calibrated model says less what was
            measured, over its standard deviation; shape (n, d).
        before: The same of the nominal cell.
        success: Whether the search came to an end.
        message: Why it ended.
        steps: How often residuals were computed.
        again: Calibrates the nominal cell with other measurements, and the same
            parameters and options.
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
    again: Callable[[Sequence[Measurement]], Calibration]

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
    def combinations(self) -> tuple[Combination, ...]:
        """Return the sums of parameters that measurements decide.

        One for each parameter that is not fixed; of inertias they are the base inertial
        parameters. Their values and standard deviations do not depend on where the
        fixed ones are.
        """
        free = np.flatnonzero(~self.identified.is_fixed).tolist()
        factors = {self.names[k]: {self.names[k]: 1.0} for k in free}
        for each in self.dependences:
            for name, factor in each.others.items():
                factors[name][each.parameter] = factor
        values, std = self.parameters, dict(zip(self.names, self.std, strict=True))
        return tuple(
            Combination(
                name,
                sums,
                sum(x * values[k] for k, x in sums.items()),
                float(std[name]),
            )
            for name, sums in factors.items()
        )

    @property
    def noise(self) -> float:
        """Return the standard deviation of residuals in parts of those stated.

        It is near 1 where the model and the stated errors are right.
        """
        squares = sum(float((each**2).sum()) for each in self.residuals)
        count = sum(each.size for each in self.residuals) - self.identified.rank
        count -= sum(each.unknowns for each in self.measurements)
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
        count = whole_number("count, how many poses to choose,", count, least=1)
        if count > len(rows):
            raise ModelError(
                f"next_poses chooses 1 to {len(rows)} of the candidates, not {count}."
            )
        like = whole_number("like, the number of a measurement,", like, least=0)
        if like >= len(self.measurements):
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

    def correction_table(
        self,
        frame: str,
        axes: Mapping[str, npt.ArrayLike],
        *,
        q: npt.ArrayLike | None = None,
        relative_to: str = WORLD,
    ) -> CorrectionTable:
        """Return corrections for a controller that knows the nominal cell alone.

        Args:
            frame: The frame that is to be where the nominal one would be.
            axes: The positions of joints of a grid [m or rad], two or more of each,
                ascending, by name.
            q: Where all other joints are [m or rad], shape (n,), at home by default;
                not near a singular position, where corrections are large.
            relative_to: In which frame it counts.

        Raises:
            UnknownName: A frame or a joint does not exist.
            ModelError: Positions do not ascend, there are too many points; or the real
                frame cannot be where the nominal one is, such as one of five joints.
        """
        with IMPORT_LOCK:
            from armillary.calibration.compensation import correction_table

        return correction_table(
            self.nominal, self.cell, frame, axes, q=q, relative_to=relative_to
        )

    def target_table(
        self,
        frame: str,
        axes: Mapping[str, npt.ArrayLike],
        *,
        near: npt.ArrayLike | None = None,
        relative_to: str = WORLD,
    ) -> TargetTable:
        """Return corrections for a controller that takes poses alone.

        Args:
            frame: The frame that is to be at targets.
            axes: The values of x, y, z [m], roll, pitch or yaw [rad] of a grid, two or
                more of each, ascending, by name.
            near: Joint positions [m or rad], shape (n,), at home by default: what is
                not in the grid is as the nominal frame is there, and solutions are near
                them, as the controller's must be.
            relative_to: The frame in which targets are given.

        Raises:
            UnknownName: A frame does not exist, or a number of a pose.
            ModelError: Values do not ascend, there are too many points, or a robot does
                not reach one.
        """
        with IMPORT_LOCK:
            from armillary.calibration.compensation import target_table

        return target_table(
            self.nominal, self.cell, frame, axes, near=near, relative_to=relative_to
        )

    def dh_table(self, frame: str, *, relative_to: str = WORLD) -> DHTable:
        """Return the calibrated arm by Denavit and Hartenberg's parameters.

        Args:
            frame: The frame behind it.
            relative_to: The frame in front of it.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: A joint of it does not turn about a line of its own.
        """
        with IMPORT_LOCK:
            from armillary.calibration.compensation import dh_table

        return dh_table(self.cell, frame, relative_to=relative_to)

    def cross_validated(self, parts: int = 5) -> tuple[Array, ...]:
        """Return the residuals of rows that the calibration does not know.

        Rows are dealt to parts, and those of each part compared with what is found from
        all others. Values far above those of `residuals` say that there are too many
        parameters for so few rows.

        Args:
            parts: How many, 2 or more.

        Returns:
            Of each measurement, over its standard deviation, shape (n, d). Rows on
            shapes of unknown place are always used together, and have none: (0, d).

        Raises:
            ModelError: There are fewer rows than parts, or all are on unknown shapes.
        """
        split = [each.unknowns == 0 for each in self.measurements]
        if not any(split):
            raise ModelError(
                "Rows on shapes of unknown place are used together; none can be left "
                "out, so there is nothing to cross-validate."
            )
        least = min(
            (len(m) for m, s in zip(self.measurements, split, strict=True) if s),
            default=0,
        )
        parts = whole_number("parts", parts, least=2)
        if parts > least:
            raise ModelError(
                f"Rows cannot be dealt to {parts} parts: there must be 2 at least, and "
                f"a row of each measurement in each; the fewest rows are {least}."
            )
        found = [
            np.full((len(m) * s, len(m.units)), np.nan)
            for m, s in zip(self.measurements, split, strict=True)
        ]
        for part in range(parts):
            places = [
                np.flatnonzero((np.arange(len(m)) % parts == part) & s)
                for m, s in zip(self.measurements, split, strict=True)
            ]
            others = [
                m.rows(np.setdiff1d(np.arange(len(m)), own))
                for m, own in zip(self.measurements, places, strict=True)
            ]
            p = self.again(others).values
            for rows, m, own in zip(found, self.measurements, places, strict=True):
                if len(own):
                    kept = m.rows(own)
                    rows[own] = kept.compared(
                        self.nominal.workcell, self.names, p
                    ).residuals
        return tuple(found)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Return what is likely to be wrong with the measurements or the model."""
        found: list[str] = []
        if not self.success:
            found.append(f"the search did not end: {self.message}")
        if np.isnan(self.noise):
            found.append(
                "there are no more measured numbers than parameters, so nothing says "
                "how good the parameters are; measure more rows."
            )
        if self.noise > DOUBTFUL:
            sizes = np.concatenate([np.abs(x).ravel() for x in self.residuals])
            typical = float(np.median(sizes))
            reason = "these are too small, parameters are missing, or rows are wrong."
            if typical < TYPICAL * DOUBTFUL:
                reason = f"half of them are {typical:.2g} at most, so rows are wrong."
            found.append(
                f"residuals are {self.noise:.3g} times the standard deviations stated: "
                + reason
            )
        found += doubts_of_rows(
            self.nominal.workcell,
            self.measurements,
            self.names,
            self.residuals,
        )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as numbers and texts for JSON, in SI units."""
        rows = zip(self.names, self.start, self.values, self.std, strict=True)
        return {
            "parameters": [
                {
                    "name": name,
                    "nominal": float(start),
                    "value": float(value),
                    "std": float(std) if np.isfinite(std) else None,
                    "identifiable": bool(own),
                }
                for (name, start, value, std), own in zip(
                    rows, self.identifiable, strict=True
                )
            ],
            "rank": self.identified.rank,
            "dependences": [each._asdict() for each in self.dependences],
            "combinations": [each._asdict() for each in self.combinations],
            "noise": None if np.isnan(self.noise) else self.noise,
            "residuals": [
                {"measurement": label, "unit": unit, "before": a, "after": b}
                for label, unit, a, b in self._sizes()
            ],
            "doubts": list(self.doubts),
            "success": self.success,
        }

    def _sizes(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield root mean squares before and after, by measurement and unit."""
        for each, before, after in zip(
            self.measurements, self.before, self.residuals, strict=True
        ):
            for unit in dict.fromkeys(each.units):
                columns = [k for k, u in enumerate(each.units) if u == unit]
                a, b = (
                    float(np.sqrt(((rows * each.sigmas)[:, columns] ** 2).mean()))
                    for rows in (before, after)
                )
                yield each.label, unit, a, b

    def _far_poses(self) -> Iterator[str]:
        """Yield poses whose corrections are far from small, of which numbers mix."""
        workcell = self.nominal.workcell
        found = named_parameters(workcell, self.names)
        moved = dict.fromkeys(
            (each.path, each.name.rpartition(".")[0])
            for each, change in zip(found, self.values - self.start, strict=True)
            if each.component in SIX and abs(change) > FAR
        )
        for path, name in moved:
            pose = part_at(self.cell.workcell, path)
            angles = np.degrees(pose.rpy())
            numbers = (
                *(f"{x:.6f}" for x in pose.position),
                *(f"{a:.4f}" for a in angles),
            )
            yield f"  {name}: {', '.join(numbers)}"

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw residuals before and after, and parameters with their 95 % intervals.

        Args:
            path: The picture to write; its ending says as what, such as `.png`, `.svg`.

        Raises:
            ModelError: Matplotlib is not installed, or does not know the ending.
            OSError: The file cannot be written.
        """
        with IMPORT_LOCK:
            from armillary.calibration.plot import plot

        plot(self, path)

    def report(self) -> str:
        """Return a text: parameters with errors, dependences, residuals, doubts."""
        lines = [repr(self)[1:-1], ""]
        width = max(map(len, self.names))
        lines.append(
            f"{'parameter':{width}}  {'nominal':>12} {'found':>14} {'std':>10}"
        )
        rows = zip(self.names, self.start, self.values, self.std, strict=True)
        for name, start, value, std in rows:
            error = f"{std:10.2e}" if np.isfinite(std) else "fixed"
            lines.append(f"{name:{width}}  {start:12.6g} {value:14.8g} {error:>10}")
        far = [*self._far_poses()]
        if far:
            lines += ["", "of these, poses: x, y, z [m], roll, pitch, yaw [degrees]:"]
            lines += far
        if self.dependences:
            lines += ["", "not identifiable:"]
            lines += (f"  {each}" for each in self.dependences)
        lines += ["", "residuals (root mean square, in the unit measured):"]
        for label, unit, before, after in self._sizes():
            lines.append(f"  {label}: {before:.3g} -> {after:.3g} {unit}")
        if self.doubts:
            lines += ["", "doubts:"]
            lines += (f"  {each}" for each in self.doubts)
        return "\n".join(lines) + "\n"
