from __future__ import annotations

import copy
import functools
import inspect
import math
import operator
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import Scalar, TracedBool, evaluate, trace
from armillary.trace.tape import Tape


def here(offset: int = 0) -> str:
    """The `file:line` of the caller, as a pattern."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return re.escape(f"{__file__}:{frame.f_back.f_lineno + offset}: ")


@pytest.fixture
def q() -> Scalar:
    found = Tape().input(0)
    assert isinstance(found, Scalar)
    return found


ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.mod,
    operator.floordiv,
    operator.pow,
]
COMPARISONS = [
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
OTHERS = [2, 2.5, np.float64(2.5), np.float32(2.5), np.int64(3), True, Fraction(1, 2)]


@pytest.mark.parametrize("other", OTHERS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("function", ARITHMETIC, ids=lambda x: x.__name__)
def test_operators_record_what_they_mean_on_floats(function, other):
    right = trace(lambda q: function(q, other), q=())
    left = trace(lambda q: function(other, q), q=())
    for x in (0.3, 1.0, 4.75):
        assert evaluate(right, [x]) == [pytest.approx(function(x, float(other)))]
        assert evaluate(left, [x]) == [pytest.approx(function(float(other), x))]


@pytest.mark.parametrize("other", OTHERS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("function", COMPARISONS, ids=lambda x: x.__name__)
def test_comparisons_record_what_they_mean_on_floats(function, other):
    right = trace(lambda q: function(q, other), q=())
    left = trace(lambda q: function(other, q), q=())
    for x in (0.3, 2.5, 4.75, math.nan):
        assert evaluate(right, [x]) == [function(x, float(other))]
        assert evaluate(left, [x]) == [function(float(other), x)]


@pytest.mark.parametrize("other", OTHERS, ids=lambda x: type(x).__name__)
def test_a_number_on_the_left_gives_a_scalar(q: Scalar, other):
    for function in ARITHMETIC:
        assert type(function(other, q)) is Scalar
    for function in COMPARISONS:
        assert type(function(other, q)) is TracedBool


def test_unary_operators():
    program = trace(
        lambda q: [-q, +q, abs(q), math.floor(q), math.ceil(q), math.trunc(q)], q=()
    )
    for x in (-2.5, -0.0, 0.5, 3.0):
        expected = [-x, x, abs(x), math.floor(x), math.ceil(x), math.trunc(x)]
        assert evaluate(program, [x]) == expected


def test_divmod_is_pythons():
    program = trace(lambda q: [*divmod(q, 3), *divmod(7, q)], q=())
    for x in (-7.5, 0.5, 9.0):
        assert evaluate(program, [x]) == pytest.approx([*divmod(x, 3), *divmod(7, x)])


def test_truths_are_numbers_as_pythons_are():
    def formula(q):
        a, b = q > 0, q < 1
        return [a + 1, 2 - a, a * q, 3 / (a + 1), a == b, a != b, a == 1, sum([a, b])]

    program = trace(formula, q=())
    for x in (-1.0, 0.5, 2.0):
        assert evaluate(program, [x]) == [float(value) for value in formula(x)]


def test_logic_of_truths_needs_no_branch():
    def formula(q):
        a, b = q > 0, q < 1
        return [a & b, a | b, a ^ b, a & True, False | b, True ^ b, a & 1]

    def inverted(q):
        return ~(q > 0)

    program = trace(formula, q=())
    for x in (-1.0, 0.5, 2.0):
        assert evaluate(program, [x]) == [float(value) for value in formula(x)]
    assert evaluate(trace(inverted, q=()), [1.0]) == [0.0]


def test_a_truth_can_be_counted_with_and_index():
    program = trace(lambda q: [[5.0, 6.0][q > 0], int(q > 0), float(q > 1)], q=())
    assert evaluate(program, [0.5]) == [6.0, 1.0, 0.0]
    assert evaluate(program, [-0.5]) == [5.0, 0.0, 0.0]


def test_strangers_are_different(q: Scalar):
    assert (q == None) is False  # noqa: E711
    assert (q != None) is True  # noqa: E711
    assert (q == "x") is False
    assert (q != "x") is True


@pytest.mark.parametrize("function", [*ARITHMETIC, operator.lt, operator.ge])
@pytest.mark.parametrize("stranger", ["x", None, 1j, [1.0]])
def test_strangers_cannot_be_computed_with(q: Scalar, function, stranger):
    for args in ((q, stranger), (stranger, q)):
        with pytest.raises(
            (TypeError, TraceError), match=r"Scalar|string|an index|complex"
        ):
            function(*args)


def test_numbers_beyond_floats_are_refused(q: Scalar):
    with pytest.raises(TraceError, match=here(1) + "a number beyond the range of"):
        q * 10**400


NO_VALUE = "was asked of a traced scalar, which has no value yet"


@pytest.mark.parametrize(
    ("misuse", "wanted"),
    [
        (float, "a plain float"),
        (math.cos, "a plain float"),
        (int, "an int"),
        (complex, "a complex number"),
        (lambda q: round(q, 2), r"a number of so many digits \(numpy.round gives it\)"),
        (range, "an index"),
        ([1, 2].__getitem__, "an index"),
        ("{:.2f}".format, r"a number in the format '\.2f'"),
        (lambda q: np.array([q], dtype=float), "a plain float"),
        (lambda q: np.eye(2).__setitem__((0, 0), q), "a plain float"),
        (lambda q: np.eye(2).__setitem__(0, [q, 1.0]), "a plain float"),
    ],
)
def test_a_scalar_has_no_value(q: Scalar, misuse, wanted):
    with pytest.raises(
        TraceError, match=f"^{re.escape(__file__)}:.*{wanted} {NO_VALUE}"
    ):
        misuse(q)


def test_the_line_of_a_misuse_is_named(q: Scalar):
    with pytest.raises(TraceError, match=here(1) + "a plain float was asked"):
        math.cos(q)
    with pytest.raises(TraceError, match=here(1) + "an index was asked"):
        [1, 2, 3][q]
    with pytest.raises(TraceError, match=here(1) + "a number in the format"):
        f"{q:6.3f}"


def test_a_scalar_cannot_be_looked_up(q: Scalar):
    for misuse in (lambda: {1.0: 2.0}[q], lambda: q in {1.0}, lambda: hash(q > 0)):
        with pytest.raises(TraceError, match="used as a key of a dict, set or cache"):
            misuse()
    cached = functools.lru_cache(lambda x: -x if x < 0 else x)
    with pytest.raises(TraceError, match="used as a key"):
        trace(cached, name="cached", q=())


def test_a_scalar_shows_what_it_is(q: Scalar):
    assert repr(q) == f"{q}" == "<traced input 0>"
    assert str(q + 1) == "<traced add>"
    assert f"{q > 0}" == "<traced lt>"


def test_a_scalar_stays_itself(q: Scalar):
    assert copy.copy(q) is q
    assert copy.deepcopy([q])[0] is q
    with pytest.raises(TraceError, match="cannot be pickled; it lives in one trace"):
        pickle.dumps(q)


def test_the_answer_of_a_truth_outside_of_a_trace(q: Scalar):
    with pytest.raises(TraceError, match=here(1) + "a traced truth value was asked"):
        bool(q > 0)
    with pytest.raises(TraceError, match="outside of trace"):
        bool(q)


def test_methods_carry_numpys_names(q: Scalar):
    names = "sin cos tan arcsin arccos arctan sqrt exp log fabs sign floor conjugate"
    for name in (*names.split(), "radians", "degrees", "deg2rad", "rad2deg"):
        assert getattr(q, name)() is getattr(np, name)(q)
    for name in ("arctan2", "hypot", "fmod"):
        assert getattr(q, name)(2.0) is getattr(np, name)(q, 2.0)
    assert q.clip(-1.0, 1.0) is np.clip(q, -1.0, 1.0)


def test_a_division_that_is_caught_is_refused():
    """It raises nothing while it is traced, so that the answer would be another one."""

    def caught(q):
        try:
            return 1 / q
        except ZeroDivisionError:
            return 7.0

    def helped(q):
        return caught(q) + 1

    for function in (caught, helped):
        with pytest.raises(
            TraceError, match=r"test_scalar\.py:\d+: .*ZeroDivisionError"
        ):
            trace(function, q=())

    def of_numbers(q):
        try:
            return q * (1 / 0.0)
        except ZeroDivisionError:
            return q / 2.0

    assert evaluate(trace(of_numbers, q=()), [3.0]) == [1.5]
