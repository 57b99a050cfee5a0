"""Axes of length 1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.axis import direction
from armillary.model.joints import Prismatic, Revolute, Screw
from armillary.testing import random_direction


def test_axes_get_length_one_once():
    random = np.random.default_rng(0)
    for _ in range(300):
        given = tuple(
            10.0 ** random.uniform(-9, 9) * np.array(random_direction(random))
        )
        axis = direction(given, "axis")
        assert abs(math.hypot(*axis) - 1.0) < 4e-16
        assert direction(axis, "axis") is axis
        assert np.cross(axis, given) == pytest.approx(
            0.0, abs=1e-15 * max(map(abs, given))
        )


@pytest.mark.parametrize("scale", [1e-11, 1e150, 1e308])
def test_axes_may_be_of_any_size(scale: float):
    axis = direction((scale, scale, 0.0), "axis")
    assert axis == pytest.approx((math.sqrt(0.5), math.sqrt(0.5), 0.0), rel=1e-15)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 0.0), (1e-13, 0.0, 0.0)])
def test_no_direction_is_refused(axis: tuple[float, float, float]):
    for kind in (Revolute, Prismatic):
        with pytest.raises(JointError, match=rf"{kind.__name__}\.axis is \(.*no direc"):
            kind(axis=axis)


@pytest.mark.parametrize("axis", [(1.0, 0.0), "z", 3.0, None, (1.0, 0.0, 0.0, 0.0)])
def test_what_is_not_an_axis_is_refused(axis: object):
    with pytest.raises(JointError, match=r"Screw\.axis must be 3 values"):
        Screw(pitch=0.1, axis=axis)


def test_negative_zeros_are_not_kept():
    assert math.copysign(1.0, Revolute(axis=(-0.0, 0.0, -2.0)).axis[0]) == 1.0
