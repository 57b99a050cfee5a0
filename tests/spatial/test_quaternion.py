"""Quaternions: a group, its rotations, and all four cases of the way back."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from armillary.errors import ModelError, ShapeError
from armillary.spatial import quaternion as quat
from armillary.spatial.vector import apply, multiply, rows
from armillary.trace import evaluate, trace

near = {"rtol": 0, "atol": 4e-15}


def units(sample) -> list[quat.Quaternion]:
    """Unit quaternions around one, and around each of the axes' half turns."""
    centres = itertools.cycle([(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, 0), (0, 0, 0, 1)])
    return [
        quat.normalised(tuple(map(float, np.add(centre, numbers))))
        for centre, numbers in zip(centres, sample(4, count=24), strict=False)
    ]


def scipy_rotation(q: quat.Quaternion) -> Rotation:
    return Rotation.from_quat([q[1], q[2], q[3], q[0]])


def test_product_is_a_group(sample) -> None:
    for a, b, c in zip(*[iter(units(sample))] * 3, strict=True):
        left = quat.product(quat.product(a, b), c)
        np.testing.assert_allclose(left, quat.product(a, quat.product(b, c)), **near)
        assert quat.product(a, quat.ONE) == pytest.approx(a, abs=0)
        undone = quat.product(a, quat.conjugate(a))
        np.testing.assert_allclose(undone, quat.ONE, **near)


def test_rows_are_those_of_scipy_and_products_of_rows_are_products(sample) -> None:
    for a, b in zip(*[iter(units(sample))] * 2, strict=True):
        m, n = quat.rows_from_quaternion(a), quat.rows_from_unit_quaternion(b)
        np.testing.assert_allclose(m, scipy_rotation(a).as_matrix(), **near)
        both = quat.rows_from_quaternion(quat.product(a, b))
        np.testing.assert_allclose(multiply(m, n), both, **near)


def test_rotating_a_vector_is_applying_its_rows(sample) -> None:
    for q, v in zip(units(sample), sample(3, count=24), strict=True):
        expected = apply(quat.rows_from_quaternion(q), v)
        np.testing.assert_allclose(quat.rotate(q, v), expected, **near)


def test_the_way_there_and_back_is_the_identity_up_to_sign(sample) -> None:
    for q in units(sample):
        back = quat.quaternion_from_rows(quat.rows_from_quaternion(q))
        assert back[0] >= 0.0
        assert abs(quat.inner(back, q)) == pytest.approx(1.0, abs=1e-15)
        sign = math.copysign(1.0, quat.inner(back, q))
        np.testing.assert_allclose(back, np.multiply(sign, q), **near)


def test_length_does_not_matter_to_the_rotation(sample) -> None:
    for q in units(sample):
        expected = quat.rows_from_quaternion(q)
        for factor in (1e-100, 0.5, 3.0, 1e100):
            longer = tuple(factor * x for x in q)
            np.testing.assert_allclose(
                quat.rows_from_quaternion(longer), expected, **near
            )


@pytest.mark.parametrize("signs", list(itertools.product((1.0, -1.0), repeat=3)))
def test_half_turns_about_any_axis_come_back(signs: tuple[float, ...]) -> None:
    for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 3, 4), (1, 2, 2)):
        v = np.multiply(axis, signs) / np.linalg.norm(axis)
        m = rows(2.0 * np.outer(v, v) - np.eye(3))
        back = quat.quaternion_from_rows(m)
        assert back[0] == pytest.approx(0.0, abs=1e-15)
        np.testing.assert_allclose(np.abs(np.dot(back[1:], v)), 1.0, atol=1e-15)


def test_traced_conversion_takes_each_of_its_four_cases(sample) -> None:
    def convert(m):
        return quat.quaternion_from_rows(rows(m))

    program = trace(convert, m=(3, 3))
    largest = set()
    for q in units(sample):
        m = quat.rows_from_quaternion(q)
        back = evaluate(program, [x for row in m for x in row])
        np.testing.assert_allclose(back, quat.quaternion_from_rows(m), **near)
        largest.add(int(np.argmax(np.abs(back))))
    assert largest == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "bad", [(0.0,) * 4, (math.nan, 0, 0, 1.0), (math.inf, 0, 0, 0)]
)
def test_what_stands_for_no_rotation_is_refused(bad: quat.Quaternion) -> None:
    for function in (quat.rows_from_quaternion, quat.normalised):
        with pytest.raises(ModelError, match="stands for no rotation"):
            function(bad)


def test_another_count_of_numbers_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(4,\), not \(3,\)"):
        quat.quaternion((1, 2, 3))
