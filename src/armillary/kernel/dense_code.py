"""The machine code of `Dense` stages: linear algebra in loops, for one row at a time.

Each stage is a function of addresses. Numbers of a column of several rows, which are
apart, are brought together in working memory first, and taken back in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.kernel.active_set_code import active_set_code, active_set_numbers
from armillary.kernel.builder import FunctionBuilder
from armillary.kernel.dense import (
    ActiveSet,
    AddDiagonal,
    AddSquares,
    Clear,
    Shrink,
    SolveMotion,
)
from armillary.kernel.factor_code import Factor, packed_row
from armillary.kernel.least_motion_code import least_motion_code, least_motion_numbers
from armillary.kernel.machine_type import I64, PTR, Type
from armillary.kernel.memory import Struct
from armillary.kernel.row_code import DenseSite, Records, RowCode, Strided, padded
from armillary.kernel.stages import Dense

__all__ = ["APART", "dense_function", "working_numbers"]

APART: Final = 2
"""Inputs of `ActiveSet`, the last ones, of which it copies what counts by itself."""


def working_numbers(stage: Dense, sizes: Sequence[int]) -> int:
    """Return the numbers of working memory that a stage needs.

    sizes: How many numbers each of its inputs has.
    """
    ports = sum(padded(port.size) for port in stage.outputs)
    return _own(stage, sizes) + sum(map(padded, _together(stage, sizes))) + ports


def _together(stage: Dense, sizes: Sequence[int]) -> Sequence[int]:
    """Return the sizes of the inputs that may be copied before a stage begins."""
    is_set = isinstance(stage.operation, ActiveSet)
    return sizes[:-APART] if is_set else sizes


def _own(stage: Dense, sizes: Sequence[int]) -> int:
    match stage.operation:
        case Clear() | AddDiagonal():
            return 0
        case AddSquares():
            c, most = sizes[1], max(sizes[4:])
            return (2 * (most // c) + 1) * padded(c)
        case Shrink():
            return Factor.numbers(sizes[1]) + padded(sizes[1])
        case ActiveSet():
            nears = sizes[-1]
            return active_set_numbers(sizes[1], nears)
        case SolveMotion():
            return least_motion_numbers(sizes[2], sizes[-1])


def dense_function(
    name: str,
    stage: Dense,
    scalar: Type,
    sizes: Sequence[int],
    steps: tuple[Sequence[int], int],
    layout: Struct | None,
) -> FunctionBuilder:
    """Return @name(ptr in..., ptr out..., ptr work, ptr records, i64 count).

    Args:
        name: Its name.
        stage: What it computes, for one row.
        scalar: The type of numbers.
        sizes: How many numbers each input has.
        steps: From one number of each input to the next, and of outputs.
        layout: How records of its table lie.
    """
    of_inputs, step = steps
    inputs = [f"in{k}" for k in range(len(sizes))]
    outputs = [f"out{k}" for k in range(len(stage.outputs))]
    pointers = dict.fromkeys((*inputs, *outputs, "work", "records"), PTR)
    f = FunctionBuilder(name, more={**pointers, "count": I64})
    rows = RowCode(f, scalar)
    work = f["work"]
    places = [Strided(f[x], by) for x, by in zip(inputs, of_inputs, strict=True)]
    # Inputs that are apart come together; outputs that are inputs begin as these.
    for k, size in enumerate(_together(stage, sizes)):
        place = places[k]
        if place.step != 1:
            rows.copy(work, place.start, size, step=place.step)
            places[k], work = Strided(work, 1), rows.at(work, padded(size))
    results = [f[x] for x in outputs]
    if step != 1:
        for k, port in enumerate(stage.outputs):
            if port.name in stage.inputs:
                results[k] = places[stage.inputs.index(port.name)].start
            else:
                results[k], work = work, rows.at(work, padded(port.size))
    records = layout and Records(f["records"], f["count"], layout)
    site = DenseSite(rows, places, sizes, results, work, records)
    _append(stage, site)
    if step != 1:
        for port, x, result in zip(stage.outputs, outputs, results, strict=True):
            with f.loop(port.size) as k:
                rows.put(rows.get(result, k), f[x], k * step)
    f.ret()
    return f


def _append(stage: Dense, site: DenseSite) -> None:
    """Append what a stage computes."""
    rows, f = site.rows, site.rows.f
    match stage.operation:
        case Clear():
            for port, result in zip(stage.outputs, site.outputs, strict=True):
                with f.loop(port.size) as k:
                    rows.put(0.0, result, k)
        case AddSquares():
            _add_squares(site)
        case AddDiagonal():
            _add_diagonal(site)
        case Shrink() as shrink:
            _shrink(site, shrink)
        case ActiveSet() as method:
            active_set_code(site, method, stage.fields)
        case SolveMotion() as motion:
            least_motion_code(site, motion)


def _add_squares(site: DenseSite) -> None:
    """Add sum_k w_k a_k a_k' to H, and -sum_k w_k v_k a_k to g."""
    rows, f = site.rows, site.rows.f
    H, g = site.outputs
    c = site.sizes[1]
    width = padded(c)
    weights, wanted = (place.start for place in site.inputs[2:4])
    first = 0
    for place, size in zip(site.inputs[4:], site.sizes[4:], strict=True):
        m = size // c
        # A has the rows a, B the rows -w a.
        A, B, sums = (rows.at(site.work, k * m * width) for k in range(3))
        with f.loop(m) as k:
            a, b = (rows.at(matrix, k * width) for matrix in (A, B))
            rows.clear(a, width)
            weight, value = (rows.get(row, k + first) for row in (weights, wanted))
            with f.loop(c) as j:
                number = rows.get(place.start, k * c + j)
                part = -(weight * number)
                rows.put(number, a, j)
                rows.put(part, b, j)
                rows.put(rows.get(g, j) + part * value, g, j)
        with f.loop(c) as i:
            rows.clear(sums, width)
            rows.take(
                sums,
                A,
                rows.at(B, i),
                count=m,
                size=width,
                step=width,
                end=width,
            )
            row = rows.at(H, packed_row(i))
            with f.loop(i + 1) as j:
                rows.put(rows.get(row, j) + rows.get(sums, j), row, j)
        first += m


def _add_diagonal(site: DenseSite) -> None:
    rows, (H,), diagonal = site.rows, site.outputs, site.inputs[1].start
    with rows.f.loop(site.sizes[1]) as k:
        place = packed_row(k) + k
        rows.put(rows.get(H, place) + rows.get(diagonal, k), H, place)


def _shrink(site: DenseSite, shrink: Shrink) -> None:
    rows, (x,) = site.rows, site.outputs
    c = site.sizes[1]
    factor = Factor(rows, c, site.work)
    factor.make(site.inputs[0].start, least=shrink.ease, shift=shrink.ease)
    y = rows.at(site.work, Factor.numbers(c))
    rows.clear(y, padded(c))
    with rows.f.loop(c) as k:
        rows.put(rows.get(site.inputs[1].start, k) * shrink.ease, y, k)
    factor.forward(y)
    factor.backward(y)
    rows.copy(x, y, c)
