"""A picture of a calibration: how rows fit, and how well parameters are known."""

from __future__ import annotations

import os
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError

__all__ = ["plot"]

Array = npt.NDArray[np.float64]

INK, LIGHT, HELD = "#22303c", "#d1495b", "#b8c0c8"
WITHIN: Final = 1.96
"""Standard deviations that hold 95 % of errors."""
SMALLEST: Final = 1e-3
"""Residuals that are drawn as they are; smaller ones lie there."""


class DrawnCalibration(Protocol):
    """What is drawn of a `Calibration`: its attributes of the same names."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of parameters."""
        ...

    @property
    def start(self) -> Array:
        """Return their nominal values, shape (k,)."""
        ...

    @property
    def values(self) -> Array:
        """Return the values that were found, shape (k,)."""
        ...

    @property
    def std(self) -> Array:
        """Return their standard deviations, shape (k,)."""
        ...

    @property
    def residuals(self) -> tuple[Array, ...]:
        """Return residuals of each measurement, shape (n, d)."""
        ...

    @property
    def before(self) -> tuple[Array, ...]:
        """Return the same of the nominal cell."""
        ...

    @property
    def noise(self) -> float:
        """Return the size of residuals in parts of those stated."""
        ...


def plot(found: DrawnCalibration, path: str | os.PathLike[str]) -> None:
    """Draw what was found; see `Calibration.plot`."""
    try:
        import matplotlib.figure as of_matplotlib  # pyright: ignore
    except ImportError as error:
        raise ModelError(
            "A picture of a calibration needs Matplotlib: pip install "
            "'armillary[plot]'."
        ) from error
    library: Any = of_matplotlib
    names = [name.partition("/")[2] or name for name in found.names]
    height = max(3.6, 1.2 + 0.18 * len(names))
    figure = library.Figure(figsize=(10.0, height), dpi=100, layout="constrained")
    left, right = figure.subplots(1, 2)
    _rows(left, found)
    _parameters(right, found, names)
    ending = os.path.splitext(path)[1][1:]
    known = figure.canvas.get_supported_filetypes()
    if ending not in known:
        raise ModelError(
            f"A picture ends in one of {', '.join(known)}, not in '.{ending}'."
        )
    figure.savefig(path)


def _rows(axes: Any, found: DrawnCalibration) -> None:
    """Draw the root mean square of each row, in standard deviations."""
    start = 0
    for before, after in zip(found.before, found.residuals, strict=True):
        rows = start + np.arange(len(after))
        start += len(after)
        for values, color, label in (
            (before, LIGHT, "nominal"),
            (after, INK, "calibrated"),
        ):
            sizes = np.maximum(np.sqrt((values**2).mean(axis=1)), SMALLEST)
            name = label if rows[0] == 0 else None
            axes.plot(rows, sizes, ".", color=color, label=name)
    axes.axhline(1.0, color=HELD, zorder=0)
    axes.set_yscale("log")
    axes.set_xlabel("row")
    axes.set_ylabel("residual / standard deviation")
    axes.set_title(f"Measurements, noise {found.noise:.3g}", loc="left")
    axes.legend()


def _parameters(axes: Any, found: DrawnCalibration, names: list[str]) -> None:
    """Draw changes of parameters and their intervals, fixed ones grey."""
    change = 1e3 * (found.values - found.start)
    reach = 1e3 * WITHIN * found.std
    places = np.arange(len(names))
    known = np.isfinite(reach)
    axes.axvline(0.0, color=HELD, zorder=0)
    axes.errorbar(
        *(change[known], places[known], None, reach[known]),
        fmt="o",
        color=INK,
        markersize=3,
        label="found, with 95 % interval",
    )
    if not known.all():
        axes.plot(
            *(change[~known], places[~known], "x"),
            color=LIGHT,
            label="not identifiable",
        )
    axes.set_yticks(places, names, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("found less nominal, in thousandths of SI units (mm, mrad)")
    axes.set_title("Parameters", loc="left")
    axes.legend(fontsize=7)
