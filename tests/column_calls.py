"""Calls of code that works on columns, as other machine code makes them."""

from __future__ import annotations

import ctypes

import numpy as np

from armillary.kernel.column_function import ColumnFunction

Array = np.ndarray


def aligned(rows: Array, kind: np.dtype) -> Array:
    """Return rows as columns that begin at a line of the cache."""
    columns = np.ascontiguousarray(rows.T, kind)
    memory = np.zeros(columns.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    made = memory[start : start + columns.nbytes].view(kind).reshape(columns.shape)
    made[:] = columns
    return made


def called(code: ColumnFunction, *rows: Array, results: int = 1) -> Array:
    """Return what code finds for as many rows as it computes at once.

    It is of shape (lanes,), of several results (results, lanes).
    """
    assert len(rows[0]) == code.lanes
    columns = [aligned(each.reshape(code.lanes, -1), code.dtype) for each in rows]
    found = aligned(np.zeros((code.lanes, results)), code.dtype)
    kinds = [ctypes.c_void_p] * (len(columns) + 2)
    bits = ctypes.c_uint8 if code.lanes <= 8 else ctypes.c_uint16
    run = ctypes.CFUNCTYPE(bits, *kinds, bits)(code.address)
    inputs = [each.ctypes.data for each in columns]
    flags = run(*inputs, found.ctypes.data, code.tables, (1 << code.lanes) - 1)
    assert flags == 0
    return found[0] if results == 1 else found
