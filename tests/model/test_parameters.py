"""Parameters in their stored form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.parameters import (
    approx_equal,
    is_numeric,
    numbers_of,
    parameter_types,
    stored,
)
from armillary.spatial.pose import Pose

SHIFT = Pose.translation(1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("given", "annotation", "kept"),
    [
        (2, float, 2.0),
        (2, int, 2),
        (2.0, int, 2),
        (np.float32(0.5), float, 0.5),
        (np.int64(3), Any, 3),
        (np.bool_(True), bool, True),
        (True, bool, True),
        ("a", str, "a"),
        (None, None | float, None),
        (2, float | None, 2.0),
        (2, str | float, 2.0),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        ([1, 2], list[float], (1.0, 2.0)),
        ([1, 2], Sequence[float], (1.0, 2.0)),
        ([1, 2], list, (1, 2)),
        ((1, "a"), tuple[float, str], (1.0, "a")),
        (np.array([[1, 2], [3, 4]]), tuple[tuple[float, float], ...],
         ((1.0, 2.0), (3.0, 4.0))),
        (np.array([1.5]), np.ndarray, (1.5,)),
        (np.array(1.5), float, 1.5),
        (SHIFT, Pose, SHIFT),
        (SHIFT.matrix(), Pose, SHIFT),
        ([SHIFT.matrix()], tuple[Pose, ...], (SHIFT,)),
        (SHIFT.matrix().tolist(), Pose | None, SHIFT),
        (5, None, 5),
        (5, "float", 5),
    ],
)  # fmt: skip
def test_what_is_stored(given: Any, annotation: Any, kept: Any):
    result = stored(given, annotation, "J.p")
    assert result == kept
    assert repr(result) == repr(kept)  # of the same kinds throughout
    assert stored(result, annotation, "J.p") == result


def test_zero_has_one_sign():
    assert math.copysign(1.0, stored(-0.0, float, "J.p")) == 1.0
    assert math.copysign(1.0, stored((-0.0,), tuple[float], "J.p")[0]) == 1.0


def test_what_is_stored_already_is_kept_as_it_is():
    value = 0.25
    assert stored(value, float, "J.p") is value


class Strange:
    pass


@pytest.mark.parametrize(
    ("given", "annotation", "message"),
    [
        (math.nan, float, "J.p is nan; it must be finite."),
        (math.inf, Any, "J.p is inf"),
        (10**400, float, "J.p is inf"),
        ([1.0, [2.0, math.nan]], Any, "J.p[1][1] is nan"),
        ({"a": 1}, Any, "J.p is a dict"),
        ({1}, Any, "J.p is a set"),
        (b"a", Any, "J.p is a bytes"),
        (1j, Any, "J.p is a complex"),
        (Decimal(1), float, "J.p is a Decimal"),
        (math.sin, Any, "J.p is a function"),
        (Strange, Any, "J.p is a class"),
        (Strange(), Any, "J.p is a Strange"),
        (np.array([object()]), Any, "J.p[0] is a object"),
        ("2", float, "J.p must be a number, not '2'"),
        (True, float, "J.p must be a number, not True"),
        (None, float, "J.p must be a number, not None"),
        ((1.0,), float, "J.p must be a number, not a tuple"),
        (2.5, int, "J.p must be a whole number, not 2.5"),
        (1, bool, "J.p must be True or False, not 1"),
        (1, str, "J.p must be a text, not 1"),
        ("x" * 99, float, "J.p must be a number, not a long str"),
        ("a", float | None, "J.p must be a number, not 'a'"),
        ("a", tuple[float, ...], "J.p must be several values, not 'a'"),
        ((1.0,), tuple[float, float], "J.p must be 2 values, not 1: (1.0,)."),
        ((1.0, "a"), tuple[float, float], "J.p[1] must be a number, not 'a'"),
        (1.0, Pose, "J.p must be a Pose or a 4x4 array, not 1.0"),
        (np.eye(3), Pose, "J.p is not a pose."),
    ],
)
def test_what_is_refused(given: Any, annotation: Any, message: str):
    with pytest.raises(JointError) as error:
        stored(given, annotation, "J.p")
    assert message in str(error.value)


def test_a_list_within_itself_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(JointError, match="nested more than"):
        stored(endless, Any, "J.p")


def test_annotations_of_a_class():
    class Known:
        a: float
        b: tuple[float, ...]

    assert parameter_types(Known) == {"a": float, "b": tuple[float, ...]}

    class Unknown:
        a: Missing  # noqa: F821

    assert parameter_types(Unknown) == {}


def test_near_equality():
    assert approx_equal((1.0, (2.0,)), (1.5, (2.5,)), 0.5)
    assert not approx_equal((1.0, (2.0,)), (1.5, (2.6,)), 0.5)
    assert not approx_equal((1.0,), (1.0, 2.0), 9.0)
    assert not approx_equal((1.0,), 1.0, 9.0)
    assert approx_equal(1, 1.5, 0.5)
    assert not approx_equal(True, False, 9.0)
    assert not approx_equal(True, 1, 9.0)
    assert approx_equal(None, None, 0.0)
    assert not approx_equal(None, 0.0, 9.0)
    assert approx_equal("a", "a", 0.0)
    assert not approx_equal("a", "b", 9.0)
    assert approx_equal(SHIFT, Pose.translation(1.5, 2.0, 3.0), 0.5)
    assert not approx_equal(SHIFT, Pose.translation(1.6, 2.0, 3.0), 0.5)


def test_numbers():
    assert is_numeric((1, (2.0, SHIFT)))
    assert not is_numeric((1, (2.0, "a")))
    assert not is_numeric(True)
    assert not is_numeric(None)
    assert list(numbers_of((1, (2.0, SHIFT)))) == [1.0, 2.0, 1.0, 2.0, 3.0]
