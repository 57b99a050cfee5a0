"""Rows of every size reach the lanes and come back."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.kernel import compile
from armillary.kernel.transpose import squares_of
from armillary.trace import trace

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17]
SHAPES = [(1, "f8"), (2, "f8"), (4, "f8"), (8, "f8"), (4, "f4"), (16, "f4")]


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("size", SIZES)
def test_squares_cover_a_row(size: int, lanes: int):
    squares = squares_of(size, lanes)
    assert {k for square in squares for k in square} == set(range(size))
    assert all(len(square) in {1, lanes} for square in squares)
    assert len(squares) <= max(-(-size // lanes), min(size, lanes)) or lanes == 1


@pytest.mark.parametrize(("lanes", "kind"), SHAPES)
def test_elements_keep_their_places(lanes: int, kind: str):
    """All sizes in one kernel: each input goes out as it is, and every third of it."""
    shapes = {f"a{size}": (size,) for size in SIZES}
    outputs = [f"{name}_{what}" for name in shapes for what in ("all", "third")]
    program = trace(
        lambda *a: [part for x in a for part in (x, x[::-3])], outputs=outputs, **shapes
    )
    kernel = compile(program, lanes=lanes, dtype=kind)
    random = np.random.default_rng(lanes)
    for count in (1, lanes, 2 * lanes + 1):
        rows = [random.normal(size=(count, size)).astype(kind) for size in SIZES]
        results = kernel(*rows)
        for k, row in enumerate(rows):
            np.testing.assert_array_equal(results[2 * k], row, strict=True)
            np.testing.assert_array_equal(results[2 * k + 1], row[:, ::-3], strict=True)
