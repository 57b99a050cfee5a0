"""Vectors, matrices of rows, and snapping."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import ModelError, ShapeError
from armillary.spatial import vector as vec
from armillary.trace import evaluate, trace


def test_products_are_those_of_numpy(sample) -> None:
    for numbers in sample(24):
        m, n = np.reshape(numbers[:9], (3, 3)), np.reshape(numbers[9:18], (3, 3))
        a, b = numbers[18:21], numbers[21:]
        size = max(map(abs, numbers))
        pairs = [
            (vec.add(a, b), np.add(a, b)),
            (vec.subtract(a, b), np.subtract(a, b)),
            (vec.dot(a, b), np.dot(a, b)),
            (vec.cross(a, b), np.cross(a, b)),
            (vec.norm(a), np.linalg.norm(a)),
            (vec.apply(vec.rows(m), a), m @ a),
            (vec.multiply(vec.rows(m), vec.rows(n)), m @ n),
            (vec.transpose(vec.rows(m)), m.T),
            (vec.apply(vec.skew(a), b), np.cross(a, b)),
            (vec.determinant(vec.rows(m)), np.linalg.det(m)),
            (vec.largest(a), np.max(np.abs(a))),
        ]
        for ours, expected in pairs:
            np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-15 * size)


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1.0, 1e200])
def test_unit_keeps_the_direction_at_every_size(factor: float) -> None:
    direction = vec.unit((3.0 * factor, 0.0, -4.0 * factor))
    np.testing.assert_allclose(direction, (0.6, 0.0, -0.8), rtol=1e-15)


def test_unit_leaves_unit_vectors_as_they_are(sample) -> None:
    for numbers in sample(3):
        once = vec.unit(numbers)
        assert vec.unit(once) == once


@pytest.mark.parametrize(
    "direction", [(0.0, 0.0, 0.0), (math.nan, 1.0, 0.0), (math.inf, 0.0, 0.0)]
)
def test_unit_refuses_what_has_no_direction(direction: vec.Vector3) -> None:
    with pytest.raises(ModelError, match="is zero or not finite"):
        vec.unit(direction)


def test_negation_makes_no_negative_zeros() -> None:
    for value in (*vec.negate(vec.ZERO), *vec.skew(vec.ZERO)[0]):
        assert math.copysign(1.0, value) == 1.0


@pytest.mark.parametrize("exact", [0.0, 1.0, -1.0])
def test_snap_takes_in_what_is_within_its_distance_only(exact: float) -> None:
    for offset in (0.0, 5e-16, -5e-16, 8e-16):
        assert vec.snap(exact + offset) == exact
    for offset in (2.5e-15, -2.5e-15, 1e-7):
        assert vec.snap(exact + offset) == exact + offset
    assert math.copysign(1.0, vec.snap(-0.0)) == 1.0
    assert math.isnan(vec.snap(math.nan))


@pytest.mark.parametrize("quarters", range(-8, 9))
def test_sine_and_cosine_of_right_angles_are_exact(quarters: int) -> None:
    sine, cosine = vec.sine_cosine(quarters * math.pi / 2)
    assert (sine, cosine) == ([0, 1, 0, -1][quarters % 4], [1, 0, -1, 0][quarters % 4])


def test_products_with_zeros_and_ones_leave_no_trace() -> None:
    def turned(a: np.ndarray) -> vec.Vector3:
        return vec.apply(vec.multiply(vec.EYE, vec.EYE), vec.vector(a))

    program = trace(turned, a=(3,))
    assert program.operation_count == 0
    assert evaluate(program, [1.0, 2.0, 3.0]) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (vec.vector, (1, 2), r"shape \(3,\), not \(2,\)"),
        (vec.vector, "abc", r"shape \(3,\), not \(\)"),
        (vec.vector, (1, 2, "x"), "A number was expected, not 'x'"),
        (vec.vector, (1, 2, None), "A number was expected, not None"),
        (vec.rows, np.eye(4), r"shape \(3, 3\), not \(4, 4\)"),
        (vec.rows, [[1], [1, 2], [3]], r"shape \(3, 3\), not \(3,\)"),
        (vec.rows, [np.eye(2), np.ones((2, 3))], "three rows of three numbers"),
    ],
)
def test_what_has_another_shape_is_refused(make, values, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        make(values)


def test_largest_of_nothing_and_with_nan():
    assert vec.largest([]) == 0.0
    assert vec.largest([1.0, -np.inf]) == np.inf
    for place in range(3):
        values = [1.0, -2.0, np.inf]
        values[place] = float("nan")
        assert np.isnan(vec.largest(values))
        values[place - 1] = 3  # no float: the general way
        assert np.isnan(vec.largest(values))
