"""Regions that end with the first row that ends, as functions of columns."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.column_function import ColumnCode, ColumnFunction
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import Each, When
from armillary.kernel.tables import Table, reals, span
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

Array = np.ndarray
GROUPS = Table("groups", (reals("around"), span("members", "points")))
POINTS = Table("points", (reals("point"),))
TABLES = {
    "groups": {"around": [0.0, 5.0], "members": [[0, 2], [2, 1]]},
    "points": {"point": [-0.5, 0.5, 5.0]},
}


def program(formula: Any, output: str, **inputs: tuple[int, ...]) -> Program:
    return trace(formula, name=output, outputs=(output,), **inputs)


def hits(*, together: bool) -> Pipeline:
    """Return 1 for numbers that are within 0.1 of a point, each in a group, else 0."""
    near = program(lambda x, around: 1.0 - abs(x - around), "near", x=(), around=())
    hit = program(
        lambda x, point, going: select(abs(x - point) < 0.1, 0.0, going),
        "going",
        **{"x": (), "point": (), "going": ()},
    )
    options = {"active": "going", "together": together}
    points = Each("points", (hit,), within="members", **options)
    groups = Each("groups", (near, When("near", (points,), together)), **options)
    return Pipeline(
        "hits",
        (Port("x", ()),),
        (GROUPS, POINTS),
        (
            program(lambda x: 1.0 + 0.0 * x, "going", x=()),
            groups,
            program(lambda going: 1.0 - going, "found", going=()),
        ),
        ("found",),
    )


def columns(lanes: int, dtype: str) -> ColumnFunction:
    return ColumnCode(hits(together=True), np.dtype(dtype), lanes)(TABLES)


def found(code: ColumnFunction, x: Array, active: int = -1) -> Array:
    """Return what code finds for a block of rows."""
    memory = np.zeros((3, 64 // code.dtype.itemsize), code.dtype).reshape(-1)
    start = -memory.ctypes.data % 64 // code.dtype.itemsize
    block = memory[start : start + 64 // code.dtype.itemsize]
    block[: code.lanes] = x
    result = np.zeros(256, code.dtype)
    at = -result.ctypes.data % 64 // code.dtype.itemsize
    bits = {1: ctypes.c_bool, 8: ctypes.c_uint8, 16: ctypes.c_uint16}[code.lanes]
    pointers = [ctypes.c_void_p] * 3
    run = ctypes.CFUNCTYPE(bits, *pointers, bits)(code.address)
    mask = (1 << code.lanes) - 1 if active < 0 else active
    output = result[at:]
    assert not run(block.ctypes.data, output.ctypes.data, code.tables, mask)
    return output[: code.lanes].copy()


@pytest.mark.parametrize(("lanes", "dtype"), [(8, "float64"), (16, "float32")])
def test_a_block_says_if_any_of_its_rows_ends(lanes: int, dtype: str):
    code = columns(lanes, dtype)
    kernel = compile_pipeline(hits(together=False))(TABLES)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        x = rng.uniform(-1.0, 6.0, lanes)
        wanted = bool((kernel(x) > 0.0).any())
        assert bool((found(code, x) > 0.0).any()) == wanted
        seen.add(wanted)
    assert seen == {True, False}


def test_rows_that_do_not_count_end_nothing():
    code = columns(8, "float64")
    x = np.full(8, 2.0)
    x[3], x[5] = 0.5, 5.0  # of the first and the second group
    assert found(code, x)[3] > 0.0
    # Where row 3 does not count, the region goes on to the next group.
    assert found(code, x, active=0xFF & ~(1 << 3))[5] > 0.0


def test_the_reference_gives_every_row():
    from armillary.kernel.pipeline_reference import evaluate

    kernel = compile_pipeline(hits(together=False))(TABLES)
    x = np.linspace(-1.0, 6.0, 200)
    (each,) = evaluate(hits(together=True), kernel._native.tables, x)
    np.testing.assert_array_equal(each, kernel(x))


def test_tables_are_checked():
    with pytest.raises(KernelError):
        ColumnCode(hits(together=True), np.dtype(np.float64), 8)({})
