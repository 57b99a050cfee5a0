from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from scipy import special
from scipy.interpolate import CubicSpline

from armillary.errors import TraceError
from armillary.kernel import compile
from armillary.trace import Scalar, evaluate, jvp, trace
from armillary.trace.numpy_dispatch import UFUNCS
from armillary.trace.tape import Tape

POINTS = [-2.5, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0, math.inf, -math.inf, math.nan]
OF_TRUTHS = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert]
UNARY = [u for u in UFUNCS if u.nin == 1 and u not in OF_TRUTHS]
BINARY = [u for u in UFUNCS if u.nin == 2 and u not in OF_TRUTHS]


def is_other_on_purpose(ufunc, x: float, y: float) -> bool:
    """Tell where a traced function is not NumPy's."""
    if ufunc is np.power:  # of numbers NumPy takes the root, of arrays it does not
        return (x, y) == (-math.inf, 0.5)
    return ufunc is np.hypot and math.isnan(x + y)  # NaN in, NaN out


def agree(program, function, *args: float) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(function(*args), dtype=float).ravel()
    np.testing.assert_allclose(
        evaluate(program, args), expected, rtol=1e-14, atol=1e-300
    )


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_functions_of_one_number_are_numpys(ufunc):
    program = trace(ufunc, q=())
    for x in POINTS:
        agree(program, ufunc, np.float64(x))


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_functions_of_two_numbers_are_numpys(ufunc):
    program = trace(ufunc, x=(), y=())
    by_constant = trace(lambda x: ufunc(x, 1.5), x=())
    of_constant = trace(lambda y: ufunc(np.float64(-0.75), y), y=())
    for x in POINTS:
        agree(by_constant, lambda x: ufunc(x, 1.5), x)
        if not is_other_on_purpose(ufunc, -0.75, x):
            agree(of_constant, lambda y: ufunc(-0.75, y), x)
        for y in POINTS:
            if not is_other_on_purpose(ufunc, x, y):
                agree(program, ufunc, x, y)


@pytest.mark.parametrize("ufunc", OF_TRUTHS, ids=lambda u: u.__name__)
def test_functions_of_truths_are_numpys(ufunc):
    for known in (np.bool_(True), np.bool_(False), True):
        others = (known,) * (ufunc.nin - 1)

        def first(q, others=others):
            return ufunc(q > 0, *others) * 1.0

        def last(q, others=others):
            return ufunc(*others, q > 0) * 1.0

        for function in (first, last):
            program = trace(function, q=())
            for x in (1.0, -1.0):
                agree(program, function, np.float64(x))
    program = trace(lambda q: (np.bool_(True) & (q > 0)) * 1.0, q=())
    assert [evaluate(program, [x]) for x in (1.0, -1.0)] == [[1.0], [0.0]]


def test_a_default_alone_may_be_traced():
    program = trace(lambda q: np.select([np.bool_(False), False], [1.0, 2.0], q), q=())
    assert evaluate(program, [3.0]) == [3.0]


SPECIAL = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 1e300, math.inf]
WHOLE = {
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "divmod": lambda x, y: list(divmod(x, y)),
    "numpy.divmod": lambda x, y: list(np.divmod(x, y)),
    "fmod": np.fmod,
    "remainder": np.remainder,
    "whole": lambda x, y: [
        np.trunc(x),
        np.ceil(x),
        np.floor(x),
        np.rint(x),
        np.sign(x),
    ],
}


@pytest.mark.parametrize("function", WHOLE.values(), ids=WHOLE)
def test_whole_numbers_are_numpys_at_special_points(function):
    """A zero divisor gives infinities, so that a branch on them is NumPy's."""
    program = trace(function, name="whole", x=(), y=())
    signed = [*SPECIAL, *(-x for x in SPECIAL), math.nan]
    x, y = (column.ravel() for column in np.meshgrid(signed, signed))
    with np.errstate(all="ignore"):
        wanted = np.array([np.ravel(function(a, b)) for a, b in zip(x, y, strict=True)])
        on_arrays = evaluate(
            program, [x, y], lambda thing: getattr(thing, "on_arrays", thing)
        )
    on_floats = [evaluate(program, pair) for pair in np.array([x, y]).T.tolist()]
    compiled = compile(program)(x, y).reshape(len(x), -1)
    for found in (on_floats, np.array(on_arrays).T, compiled):
        np.testing.assert_array_equal(found, wanted)


def test_a_nan_makes_the_length_nan():
    program = trace(np.hypot, x=(), y=())
    assert math.isnan(evaluate(program, [math.inf, math.nan])[0])


ARRAYS = {
    "scale": lambda q, a: np.array([1.0, 2.0]) * q + a,
    "by array": lambda q, a: q * np.array([1.0, 2.0]) / a - np.array([3.0, 1.0]),
    "power": lambda q, a: q ** np.array([1.0, 2.0]),
    "compare": lambda q, a: (np.array([1.0, 2.0]) < q) * 1.0,
    "unequal": lambda q, a: (q != np.array([1.0, 2.0])) * 1.0,
    "truths": lambda q, a: ((q > 1) & np.array([True, False])) * 1.0,
    "where": lambda q, a: np.where(q > 0, q, -q),
    "where arrays": lambda q, a: np.where(q > 0, np.array([1.0, 2.0]), [q, 1.0]),
    "where of an array": lambda q, a: np.where(a > 0, a, -a),
    "clip": lambda q, a: [np.clip(q, -1, 1), np.clip(q, None, 1), np.clip(q, 0, None)],
    "clip by name": lambda q, a: np.clip(q, a_min=-1, a_max=1),
    "clip array": lambda q, a: np.clip(a, -1, q),
    "cross": lambda q, a: np.cross([q, a[0], 1.0], [0.0, q, a[1]]),
    "dot": lambda q, a: np.dot(a, a) + np.dot(a, [1.0, 2.0]),
    "norm": lambda q, a: np.linalg.norm(a) + np.linalg.norm([q, 1.0]),
    "norms": lambda q, a: np.linalg.norm(np.outer(a, a), axis=1),
    "matmul": lambda q, a: np.array([[q, 1.0], [-1.0, q]]) @ a,
    "matmul of numbers": lambda q, a: np.eye(2) @ a @ np.array([[1.0, q], [q, 2.0]]),
    "einsum": lambda q, a: np.einsum("i,j,k->ik", a, a, a),
    "einsum optimized": lambda q, a: np.einsum(
        "i,j,ij->", a, a, np.eye(2), optimize=True
    ),
    "inner": lambda q, a: [np.inner(a, a), np.vdot(a, a), np.outer(a, a)[0, 1]],
    "kron": lambda q, a: np.kron(a, a),
    "tensordot": lambda q, a: np.tensordot(np.outer(a, a), a, 1),
    "stack": lambda q, a: np.stack([q, 2 * q, a[0]]),
    "concatenate": lambda q, a: np.concatenate([a, [q, 1.0]]),
    "hstack": lambda q, a: np.hstack([a, q, 3.0]),
    "vstack": lambda q, a: np.vstack([a, a]),
    "block": lambda q, a: np.block([[q, 1.0], [0.0, q]]),
    "sin of array": lambda q, a: np.sin(a) + np.cos(a) * np.tan(q),
    "roots": lambda q, a: np.sqrt(np.square(a)) + np.hypot(a, a[::-1]),
    "angles": lambda q, a: np.arctan2(a, q) + np.radians(a) + np.rad2deg(a),
    "remainders": lambda q, a: np.fmod(a, 0.3) + np.remainder(a, 0.3) + np.floor(a),
    "sums": lambda q, a: [np.sum(a), a.mean(), np.prod(a), np.cumsum(a)[1]],
    "trace": lambda q, a: np.trace(np.outer(a, a)),
    "largest": lambda q, a: [np.max(a), np.argmax(a), max(q, 0.0), min(a)],
    "sort": lambda q, a: np.sort([a[0], q, a[1]]),
    "in place": lambda q, a: np.multiply(a, q, out=np.ones(2, dtype=a.dtype)),
    "close": lambda q, a: [np.isclose(q, 0.5), np.allclose(q, 0.5, atol=1.0)],
    "polynomial": lambda q, a: np.polyval([1.0, 2.0, 3.0], q),
    "linspace": lambda q, a: np.linspace(0.0, q, 3),
    "sizes": lambda q, a: [np.size(q), np.ndim(q), np.real(q)],
    "vectorized": lambda q, a: np.vectorize(lambda x: x * x)(a),
    "homogeneous": lambda q, a: np.r_[a, 1.0] @ np.diag([q, 1.0, 2.0]),
}


@pytest.mark.parametrize("function", ARRAYS.values(), ids=ARRAYS)
def test_arrays_of_scalars_do_what_arrays_of_numbers_do(function):
    program = trace(function, q=(), a=(2,))
    for q, a in ((0.5, (0.25, -1.5)), (-1.5, (2.0, 0.75)), (2.0, (1.0, 1.0))):
        expected = np.asarray(function(q, np.array(a)), dtype=float)
        assert program.outputs[0].shape == expected.shape
        np.testing.assert_allclose(
            evaluate(program, [q, *a]), expected.ravel(), rtol=1e-14, atol=1e-15
        )


def test_where_and_clip_of_a_scalar_need_no_branch():
    def formula(q):
        for k in range(20):
            q = np.where(q > k, q - k, np.clip(q, -k, k) + 1.0)
        return q

    program = trace(formula, q=())
    for x in (-3.0, 2.5, 40.0):
        assert evaluate(program, [x]) == [pytest.approx(float(formula(x)))]


def test_closeness_knows_infinity_and_nan():
    program = trace(lambda x, y: np.isclose(x, y, equal_nan=True), x=(), y=())
    for x in POINTS:
        for y in (*POINTS, 0.5 + 1e-9):
            agree(program, lambda x, y: np.isclose(x, y, equal_nan=True), x, y)


MISUSES = {
    r"numpy\.log2 has no meaning for a traced scalar. These have: absolute": np.log2,
    r"'erf' has no meaning for a traced scalar.*numpy\.interp": special.erf,
    r"a plain float was asked.*In place of a spline": CubicSpline(
        range(4), [0, 1, 0, 2]
    ),
    r"an index was asked.*a count that depends": lambda q: list(range((q > 0) + 1)),
    r"no attribute 'arctan2'. NumPy cannot take": lambda q: np.arctan2(
        np.array([q, -1.0]), np.array([1.0, q])
    ),
    r"so many digits \(numpy.round": lambda q: round(q, 2),
    r"no meaning where xp holds traced": lambda q: np.interp(q, [0.0, q], [1.0, 2.0]),
    r"every number is larger than": lambda q: np.interp(q, [0.0, 0.0], [1.0, 2.0]),
    r"are not finite": lambda q: np.interp(q, [0.0, np.nan, 1.0], [1.0, 2.0, 3.0]),
    r"that are not finite": lambda q: np.interp(q, [0.0, np.inf], [1.0, 2.0]),
    r"the period 0; it must": lambda q: np.interp(q, [0, 1], [1, 2], period=0),
    r"the period inf; it must": lambda q: np.interp(q, [0, 1], [1, 2], period=np.inf),
    r"numpy\.select got 2 conditions and 1": lambda q: np.select([q > 0, q > 1], [q]),
    r"numpy\.interp got an fp with numbers that are not": lambda q: np.interp(
        q, [0.0, 1.0, 2.0], [0.0, np.nan, 1.0]
    ),
    r"fp with numbers that are not finite": lambda q: np.interp(q, [0, 1], [0, np.inf]),
    r"traced truth cannot be shifted .*4 \* truth": lambda q: (q > 0) << 2,
    r"truth cannot be shifted": lambda q: 1 << (q > 0),
    r"combines truths alone": lambda q: (q > 0) & 2,
    r"combines truths alone.*compare numbers first": lambda q: q | (q > 0),
    r"combines truths .*alone": lambda q: np.bitwise_or(q > 0, 3),
    r"numpy\.choose has no meaning .* numpy\.where": lambda q: np.choose(q > 0, [q, 1]),
    r"numpy\.choose has no": lambda q: np.choose(np.array([q > 0]), [q, 1.0]),
    r"pow\(x, y, z\) has no meaning": lambda q: pow(q, 2, 3),
    r"the complex number 1j, but is real": lambda q: 1j * q,
    r"the complex number 2j": lambda q: q + np.complex64(2j).item(),
    r"xp of shape \(2,\) and fp of shape \(1,\)": lambda q: np.interp(q, [0, 1], [1]),
    r"numpy\.multiply\.outer has no meaning": lambda q: np.multiply.outer(q, [1.0]),
    r"numpy\.add with options has no meaning": lambda q: np.add(q, 1.0, dtype=float),
    r"numpy\.multiply was to be written into an array of float64": lambda q: (
        np.multiply(q, 2.0, out=np.ones(1))
    ),
    r"does not support argument 1 of type float.*take it of single scalars": lambda q: (
        np.sin(np.array([q, 1.0]))
    ),
    r"Cannot cast ufunc 'inv'.*or write it out": lambda q: np.linalg.inv([[q]]),
}


@pytest.mark.parametrize("message", MISUSES)
def test_what_cannot_be_traced_is_reported_with_its_line(message: str):
    misuse = MISUSES[message]

    def formula(q):
        return misuse(q)

    with pytest.raises(TraceError, match=f"^{re.escape(__file__)}:\\d+: .*{message}"):
        trace(formula, q=())


def test_an_array_of_numbers_cannot_be_scaled_in_place():
    q = Tape().input(0)
    numbers = np.ones(2)
    with pytest.raises(TraceError, match="make that array with dtype=object"):
        numbers *= q
    objects = np.ones(2, dtype=object)
    kept = objects
    objects *= q
    assert objects is kept
    assert all(type(x) is Scalar for x in objects)


def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = Tape().input(0)
        assert type(np.float64(1e308) * (q * np.float64(1e308))) is Scalar
        assert type(np.array(2.0) * q) in {Scalar, np.ndarray}


KNOTS, VALUES = [-1.0, 0.1, 0.3, 2.0, 49.0], [2.0, -1.0, -1.0, 0.7, 3.3]
TABLES = {
    "interp": lambda q: np.interp(q, KNOTS, VALUES),
    "ends": lambda q: np.interp(q, KNOTS, VALUES, left=-9.0, right=9.0),
    "period": lambda q: np.interp(q, [1.0, 5.0, 4.0], [2.0, -1.0, 0.5], period=4.5),
    "one knot": lambda q: np.interp(q, [0.1], [2.0], left=1.0),
    "two knots": lambda q: np.interp(q, [0.1, 2.0], [2.0, 1.0]),
    "select": lambda q: np.select([q < 0, q < 1], [-q, q * q], 7.0),
    "select, no default": lambda q: np.select([q > 2], [q]),
    "piecewise": lambda q: np.piecewise(q, [q < 0, q >= 1], [lambda x: -x, 3.0, 2.0]),
    "round": np.round,
    "rint": np.rint,
    "Python's round": round,
    "digits": lambda q: np.round(q, 1),
    "tens": lambda q: np.round(q, -1),
    "fix": np.fix,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "cbrt": np.cbrt,
    "negative truth": lambda q: -bool(q > 0) + 0.0,
}
ENDS = [-1e4, -3.0, -2.5, -1.0, -0.5, -0.25, 0.0, 0.1, 0.15, 0.25, 0.3, 0.5, 1.0, 1.5]
ENDS += [2.0, 2.5, 3.0, 4.0, 4.5, 5.0, 9.0, 15.0, 25.0, 49.0, 50.0, 300.0, math.nan]


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
@pytest.mark.parametrize("function", TABLES.values(), ids=TABLES)
def test_tables_and_rounding_are_numpys(function):
    program = trace(function, q=())
    for q in ENDS:
        (found,) = evaluate(program, [q])
        if math.isnan(q) and function in {round, TABLES["one knot"]}:
            assert math.isnan(found)
            continue
        with np.errstate(over="ignore"):
            wanted = float(function(np.float64(q)))
        np.testing.assert_allclose(found, wanted, rtol=4e-16, atol=0)


def test_tables_of_arrays_and_of_traced_values():
    def formula(q):
        at = np.interp(q, KNOTS, VALUES)
        return np.concatenate([at, np.interp(q, [0.0, 1.0], [q[0], 2.0]), np.round(q)])

    program = trace(formula, q=(2,))
    for q in ([0.2, 0.9], [-5.0, 60.0]):
        np.testing.assert_allclose(evaluate(program, q), formula(np.array(q)))


def test_a_table_has_the_slope_of_its_piece():
    def slope(q):
        return jvp([np.interp(q, KNOTS, VALUES)], [(q, 1.0)])[0]

    program = trace(slope, q=())
    for q in (-2.0, 0.0, 0.2, 1.0, 10.0, 60.0):
        ends = np.interp([q - 1e-3, q + 1e-3], KNOTS, VALUES)
        assert evaluate(program, [q])[0] == pytest.approx(np.diff(ends)[0] / 2e-3)


def test_a_truth_with_a_sign_is_a_number():
    program = trace(lambda q: [-(q > 0), +(q > 0), abs(q > 0)], q=())
    assert evaluate(program, [1.0]) == [-1.0, 1.0, 1.0]
    assert evaluate(program, [-1.0]) == [0.0, 0.0, 0.0]


def test_the_parts_of_a_real_number():
    program = trace(lambda q: [q.real, q.imag, np.real(q), np.conjugate(q)], q=())
    assert evaluate(program, [3.0]) == [3.0, 0.0, 3.0, 3.0]
