from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import trace
from armillary.trace.source_location import defined, fault, raised, running


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_running_line_is_the_users():
    assert running() == f"{__file__}:{line()}"
    by_numpy = np.vectorize(lambda x: running(), otypes=[object])
    assert by_numpy(1.0) == f"{__file__}:{line() - 1}"


def test_where_an_error_was_raised():
    try:
        np.linalg.inv(np.ones((2, 3)))
    except np.linalg.LinAlgError as error:
        assert raised(error) == f"{__file__}:{line() - 2}"
    assert raised(ValueError()) == ""


class Callable:
    def __call__(self):
        return 1.0

    def method(self):
        return 1.0


def test_where_a_function_is_defined():
    first = f"{__file__}:{Callable.__call__.__code__.co_firstlineno}"
    second = f"{__file__}:{Callable.method.__code__.co_firstlineno}"
    assert defined(Callable()) == first
    assert defined(Callable().method) == second
    assert defined(functools.partial(Callable.method, None)) == second
    assert defined(abs) == ""


def test_a_fault_begins_with_its_place():
    assert str(fault("it broke")) == f"{__file__}:{line()}: it broke"
    assert str(fault("it broke", "a.py:3")) == "a.py:3: it broke"
    assert str(fault("it broke", "")) == "it broke"
    assert isinstance(fault("it broke"), TraceError)


@pytest.mark.parametrize("number", [3, (0.5,), (-1,)])
def test_a_wrong_shape_is_reported_where_it_is_asked_for(number):
    with pytest.raises(
        TraceError, match=r"test_source_location\.py:\d+: input 'x' has the shape"
    ):
        trace(abs, x=number)
