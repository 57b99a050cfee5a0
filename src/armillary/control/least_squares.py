"""The sum of squares that rates minimise, as stages: x'H x / 2 + g'x.

H is packed, see `packed`; the stage `cleared` begins it, others add to it. They are
straight code for few rates and loops for more, by the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from armillary.control.columns import StepColumns
from armillary.kernel.columns import dense
from armillary.kernel.dense import (
    AddDiagonal,
    AddSquares,
    Clear,
    Operation,
    Shrink,
)
from armillary.kernel.stages import Stage
from armillary.spatial.ldl import LDLFactor, shifted
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import Port

__all__ = [
    "LeastSquares",
    "add_diagonal",
    "add_squares",
    "added_squares",
    "cleared",
    "packed",
    "shrink",
    "shrunk",
    "unpacked",
    "with_diagonal",
    "zero_hessian",
]

FREEDOM: Final = 1e-6
"""Square of the singular value of tasks below which directions are free."""


def packed(matrix: Matrix) -> list[Number]:
    """Return the lower half of a symmetric matrix, row by row."""
    return [row[k] for i, row in enumerate(matrix) for k in range(i + 1)]


def unpacked(numbers: Vector, c: int) -> list[list[Number]]:
    """Return the rows of the lower half of a symmetric matrix."""
    rows: list[list[Number]] = []
    left = iter(numbers)
    for i in range(c):
        rows.append([next(left) for _ in range(i + 1)])
    return rows


class LeastSquares(NamedTuple):
    """H, packed, and g."""

    hessian: Vector
    gradient: Vector


def cleared(columns: StepColumns) -> Stage:
    """Return the stage that sets H to 0."""
    # Any column will do: a program has an input.
    return _stage(
        columns,
        Clear(),
        zero_hessian,
        {"gradient": columns.gradient},
        [columns.hessian],
    )


def zero_hessian(gradient: Vector) -> list[Number]:
    """Return H = 0."""
    c = len(gradient)
    return [0.0] * (c * (c + 1) // 2)


def add_squares(
    columns: StepColumns, weights: Port, wanted: Port, rows: Sequence[Port]
) -> Stage:
    """Return the stage that adds sum_k w_k (a_k x - v_k)^2 / 2.

    Args:
        columns: The columns.
        weights: The numbers w.
        wanted: The numbers v.
        rows: Matrices with the rows a.
    """
    model = {name: columns.named(name) for name in LeastSquares._fields}
    reads = {**model, "weights": weights, "wanted": wanted, "rows": rows}
    return _stage(columns, AddSquares(), added_squares, reads, list(model.values()))


def added_squares(
    hessian: Vector,
    gradient: Vector,
    weights: Vector,
    wanted: Vector,
    rows: Sequence[Matrix],
) -> LeastSquares:
    """Return H and g with the squares, see `add_squares`."""
    c = len(gradient)
    H, g = list(hessian), list(gradient)
    listed = [row for matrix in rows for row in matrix]
    for weight, row, v in zip(weights, listed, wanted, strict=True):
        for i in range(c):
            # The lower half of H suffices; g = -J'W v.
            scaled = weight * row[i]
            g[i] = g[i] - scaled * v
            first = i * (i + 1) // 2
            for j in range(i + 1):
                H[first + j] = H[first + j] + scaled * row[j]
    return LeastSquares(H, g)


def add_diagonal(columns: StepColumns) -> Stage:
    """Return the stage that adds the column `ridge` to the diagonal of H."""
    reads = {"hessian": columns.hessian, "ridge": columns.ridge}
    return _stage(columns, AddDiagonal(), with_diagonal, reads, [columns.hessian])


def with_diagonal(hessian: Vector, ridge: Vector) -> Vector:
    """Return H with numbers added to its diagonal."""
    H = list(hessian)
    for i, number in enumerate(ridge):
        place = i * (i + 1) // 2 + i
        H[place] = H[place] + number
    return H


def shrink(columns: StepColumns, rates: Port, to: Port) -> Stage:
    """Return the stage that takes e (H + e)^-1 of rates, with a small e.

    That is nearly the rates in directions that H leaves free, and nearly 0 in others:
    it vanishes along singular vectors with s^2 much above e.
    """
    reads = {"hessian": columns.hessian, "rates": rates}
    return _stage(columns, Shrink(FREEDOM), shrunk, reads, [to])


def shrunk(hessian: Vector, rates: Vector) -> Vector:
    """Return rates in directions that H leaves free, see `shrink`."""
    G = unpacked(hessian, len(rates))
    return LDLFactor.of(shifted(G, FREEDOM), FREEDOM).solve(
        [FREEDOM * rate for rate in rates]
    )


def _stage(
    columns: StepColumns,
    operation: Operation,
    formula: Callable[..., Any],
    reads: Mapping[str, Port | Sequence[Port]],
    writes: Sequence[Port],
) -> Stage:
    """Return a formula as a program, or as the loop that does the same."""
    if columns.is_unrolled:
        return columns.stage(formula, writes=writes, **reads)
    names = list(reads)
    given = [reads[name] for name in names]
    single = [port for port in given if isinstance(port, Port)]
    several = [port for ports in given if not isinstance(ports, Port) for port in ports]

    on_floats = partial(
        _on_floats,
        formula=formula,
        names=tuple(names),
        single=len(single),
        has_one=len(writes) == 1,
    )
    return dense(operation, on_floats, (*single, *several), writes)


def _on_floats(
    *values: Any,
    formula: Callable[..., Any],
    names: tuple[str, ...],
    single: int,
    has_one: bool,
) -> Sequence[Any]:
    """Return the outputs of a formula whose parameters are columns, or a list of some.

    Args:
        values: The columns; several of one parameter come last, as one list.
        formula: The formula.
        names: Its parameters.
        single: How many columns are parameters of their own.
        has_one: Whether it returns one output.
    """
    arguments = list(values[:single])
    arguments += [list(values[single:])] if len(names) > single else []
    result = formula(**dict(zip(names, arguments, strict=True)))
    return (result,) if has_one else result
