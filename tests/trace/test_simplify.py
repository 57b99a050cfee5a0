from __future__ import annotations

import itertools
import math

import pytest

from armillary.trace import OPS, evaluate, listing, trace
from armillary.trace import functions as f
from armillary.trace.ops import (
    ABS,
    ADD,
    AND,
    DIV,
    LT,
    MUL,
    NEG,
    NOT,
    OR,
    POW,
    SELECT,
    SUB,
)
from programs import verify

SPECIAL = [0.0, 0.5, 1.0, -1.0, 3.0, -2.5, 1e-9, 1.1, 2.1, 4.35, -7e5]
SPECIAL += [math.inf, -math.inf, math.nan]


def body(function) -> str:
    """The operations of a program, in one line."""
    count = function.__code__.co_argcount
    program = trace(function, **dict.fromkeys("abc"[:count], ()))
    verify(program)
    return "; ".join(line.strip() for line in listing(program).splitlines()[1:])


def same(x: float, y: float) -> bool:
    return x == y or (math.isnan(x) and math.isnan(y))


def near(x: float, y: float) -> bool:
    """Tell whether two numbers are the same but for the rounding of small constants."""
    return same(x, y) or abs(x - y) <= 1e-15 * max(abs(x), abs(y), 1.0)


# What is written, and what is recorded. The values of both are compared at every
# combination of special numbers, NaN and infinities among them.
SOUND = {
    "a + 0": (lambda a: ADD(a, 0.0), "result = a"),
    "0 + a": (lambda a: ADD(0.0, a), "result = a"),
    "a - 0": (lambda a: SUB(a, 0.0), "result = a"),
    "0 - a": (lambda a: SUB(0.0, a), "%1 = neg a; result = %1"),
    "a + -b": (lambda a, b: ADD(a, NEG(b)), "%2 = sub a b; result = %2"),
    "-a + b": (lambda a, b: ADD(NEG(a), b), "%2 = sub b a; result = %2"),
    "a - -b": (lambda a, b: SUB(a, NEG(b)), "%2 = add a b; result = %2"),
    "-a - b": (
        lambda a, b: SUB(NEG(a), b),
        "%2 = add a b; %3 = neg %2; result = %3",
    ),
    "-a - -b": (lambda a, b: SUB(NEG(a), NEG(b)), "%2 = sub b a; result = %2"),
    "a - 1": (lambda a: SUB(a, 1.0), "%2 = add a -1.0; result = %2"),
    "(a + .1) + .2": (
        lambda a: ADD(ADD(a, 0.1), 0.2),
        "%2 = add a 0.1; %4 = add %2 0.2; result = %4",
    ),
    ".3 - (.1 - a)": (
        lambda a: SUB(0.3, SUB(0.1, a)),
        "%2 = sub 0.1 a; %4 = sub 0.3 %2; result = %4",
    ),
    "a + (b - a)": (
        lambda a, b: ADD(a, SUB(b, a)),
        "%2 = sub b a; %3 = add a %2; result = %3",
    ),
    "2 - -a": (lambda a: SUB(2.0, NEG(a)), "%2 = add a 2.0; result = %2"),
    "-(-a)": (lambda a: NEG(NEG(a)), "result = a"),
    "-(a - b)": (lambda a, b: NEG(SUB(a, b)), "%2 = sub b a; result = %2"),
    "-(2 a)": (lambda a: NEG(MUL(2.0, a)), "%2 = mul -2.0 a; result = %2"),
    "1 a": (lambda a: MUL(1.0, a), "result = a"),
    "a -1": (lambda a: MUL(a, -1.0), "%1 = neg a; result = %1"),
    "2 -a": (lambda a: MUL(2.0, NEG(a)), "%2 = mul -2.0 a; result = %2"),
    "2 (3 a)": (
        lambda a: MUL(2.0, MUL(a, 3.0)),
        "%2 = mul 3.0 a; %4 = mul 2.0 %2; result = %4",
    ),
    "10 (.1 a)": (
        lambda a: MUL(10.0, MUL(a, 0.1)),
        "%2 = mul 0.1 a; %4 = mul 10.0 %2; result = %4",
    ),
    "-a b": (
        lambda a, b: MUL(NEG(a), b),
        "%2 = mul a b; %3 = neg %2; result = %3",
    ),
    "-a -b": (lambda a, b: MUL(NEG(a), NEG(b)), "%2 = mul a b; result = %2"),
    "a / 4": (lambda a: DIV(a, 4.0), "%2 = mul 0.25 a; result = %2"),
    "a / -.5": (lambda a: DIV(a, -0.5), "%2 = mul -2.0 a; result = %2"),
    "a / 2^126": (
        lambda a: DIV(a, 2.0**126),
        f"%2 = mul {2.0**-126!r} a; result = %2",
    ),
    "a / 2^-127": (
        lambda a: DIV(a, 2.0**-127),
        f"%2 = div a {2.0**-127!r}; result = %2",
    ),
    "a / 49": (lambda a: DIV(a, 49.0), "%2 = div a 49.0; result = %2"),
    "a / 1": (lambda a: DIV(a, 1.0), "result = a"),
    "a / 0": (lambda a: DIV(a, 0.0), "%2 = div a 0.0; result = %2"),
    "a / inf": (lambda a: DIV(a, math.inf), "%2 = div a inf; result = %2"),
    "a / nan": (lambda a: DIV(a, math.nan), "%2 = div a nan; result = %2"),
    "-a / b": (
        lambda a, b: DIV(NEG(a), ABS(b)),
        "%2 = abs b; %3 = div a %2; %4 = neg %3; result = %4",
    ),
    "a / -b": (
        lambda a, b: DIV(a, NEG(ABS(b) + 1.0)),
        "%2 = abs b; %4 = add %2 1.0; %5 = div a %4; %6 = neg %5; result = %6",
    ),
    "a / a": (lambda a: DIV(a, a), "%1 = div a a; result = %1"),
    "sin -a": (lambda a: f.sin(NEG(a)), "%1 = sin a; %2 = neg %1; result = %2"),
    "tan -a": (lambda a: f.tan(NEG(a)), "%1 = tan a; %2 = neg %1; result = %2"),
    "asin -a": (lambda a: f.asin(NEG(a)), "%1 = asin a; %2 = neg %1; result = %2"),
    "atan -a": (lambda a: f.atan(NEG(a)), "%1 = atan a; %2 = neg %1; result = %2"),
    "sign -a": (lambda a: f.sign(NEG(a)), "%1 = sign a; %2 = neg %1; result = %2"),
    "cos -a": (lambda a: f.cos(NEG(a)), "%1 = cos a; result = %1"),
    "abs -a": (lambda a: ABS(NEG(a)), "%1 = abs a; result = %1"),
    "abs abs": (lambda a: ABS(ABS(a)), "%1 = abs a; result = %1"),
    "abs sqrt": (lambda a: ABS(f.sqrt(a)), "%1 = sqrt a; result = %1"),
    "abs exp": (lambda a: ABS(f.exp(a)), "%1 = exp a; result = %1"),
    "abs hypot": (lambda a, b: ABS(f.hypot(a, b)), "%2 = hypot a b; result = %2"),
    "abs square": (lambda a: ABS(MUL(a, a)), "%1 = mul a a; result = %1"),
    "abs log": (lambda a: ABS(f.log(a)), "%1 = log a; %2 = abs %1; result = %2"),
    "abs sin": (lambda a: ABS(f.sin(a)), "%1 = sin a; %2 = abs %1; result = %2"),
    "abs a b": (lambda a, b: ABS(MUL(a, b)), "%2 = mul a b; %3 = abs %2; result = %3"),
    "sqrt a sqrt a": (
        lambda a: MUL(f.sqrt(a), f.sqrt(a)),
        "%1 = sqrt a; %2 = mul %1 %1; result = %2",
    ),
    "hypot a 0": (lambda a: f.hypot(a, 0.0), "%1 = abs a; result = %1"),
    "hypot -a -b": (
        lambda a, b: f.hypot(NEG(a), NEG(b)),
        "%2 = hypot a b; result = %2",
    ),
    "a^0": (lambda a: POW(a, 0.0), "result = 1.0"),
    "a^1": (lambda a: POW(a, 1.0), "result = a"),
    "a^2": (lambda a: POW(a, 2.0), "%1 = mul a a; result = %1"),
    "a^5": (
        lambda a: POW(a, 5.0),
        "%1 = mul a a; %2 = mul %1 %1; %3 = mul a %2; result = %3",
    ),
    "a^65": (lambda a: POW(a, 65.0), "%2 = pow a 65.0; result = %2"),
    "a^1.5": (lambda a: POW(a, 1.5), "%2 = pow a 1.5; result = %2"),
    "a^0.5": (
        lambda a: POW(a, 0.5),
        "%1 = sqrt a; %3 = eq -inf a; %5 = select %3 inf %1; result = %5",
    ),
    "(a a)^0.5": (
        lambda a: POW(MUL(a, a), 0.5),
        "%1 = mul a a; %2 = sqrt %1; result = %2",
    ),
    "min a a": (lambda a: f.minimum(a, a), "result = a"),
    "max a a": (lambda a: f.maximum(a, a), "result = a"),
    "a < a": (lambda a: LT(a, a), "result = 0.0"),
    "a <= a": (lambda a: SELECT(a <= a, 1.0, 2.0), None),  # noqa: PLR0124
    "a = a": (lambda a: SELECT(a == a, 1.0, 2.0), None),  # noqa: PLR0124
    "choose a a": (lambda a, b: SELECT(LT(a, b), a, a), "result = a"),
    "choose not": (
        lambda a, b: SELECT(NOT(LT(a, b)), a, b),
        "%2 = lt a b; %3 = select %2 b a; result = %3",
    ),
    "choose true": (lambda a, b: SELECT(True, a, b), "result = a"),
    "choose false": (lambda a, b: SELECT(False, a, b), "result = b"),
    "choose -a -b": (
        lambda a, b: SELECT(LT(a, b), NEG(a), NEG(b)),
        "%2 = lt a b; %3 = select %2 a b; %4 = neg %3; result = %4",
    ),
    "choose twice": (
        lambda a, b, c: SELECT(LT(a, b), SELECT(LT(a, b), a, b), c),
        "%3 = lt a b; %4 = select %3 a c; result = %4",
    ),
    "choose twice, no": (
        lambda a, b, c: SELECT(LT(a, b), a, SELECT(LT(a, b), b, c)),
        "%3 = lt a b; %4 = select %3 a c; result = %4",
    ),
    "choose sin": (
        lambda a, b: SELECT(LT(a, b), f.sin(a), f.sin(b)),
        "%2 = lt a b; %3 = select %2 a b; %4 = sin %3; result = %4",
    ),
    "choose log or -log": (
        lambda a, b: SELECT(LT(a, b), f.log(a), NEG(f.log(b))),
        "%2 = lt a b; %3 = select %2 a b; %4 = log %3; %5 = neg %4; "
        "%6 = select %2 %4 %5; result = %6",
    ),
    "choose -sqrt or sqrt": (
        lambda a, b: SELECT(LT(a, b), NEG(f.sqrt(a)), f.sqrt(b)),
        "%2 = lt a b; %3 = select %2 a b; %4 = sqrt %3; %5 = neg %4; "
        "%6 = select %2 %5 %4; result = %6",
    ),
    "choose -exp or -exp": (
        lambda a, b: SELECT(LT(a, b), NEG(f.exp(a)), NEG(f.exp(b))),
        "%2 = lt a b; %3 = select %2 a b; %4 = exp %3; %5 = neg %4; result = %5",
    ),
    "choose sin a or -sin a": (
        lambda a, b: SELECT(LT(a, b), f.sin(a), NEG(f.sin(a))),
        "%2 = lt a b; %3 = sin a; %4 = neg %3; %5 = select %2 %3 %4; result = %5",
    ),
    "choose sin or cos": (
        lambda a, b: SELECT(LT(a, b), f.sin(a), f.cos(a)),
        "%2 = lt a b; %3 = sin a; %4 = cos a; %5 = select %2 %3 %4; result = %5",
    ),
    "true and": (lambda a: AND(True, LT(a, 0.0)), None),
    "false and": (lambda a: AND(LT(a, 0.0), False), "result = 0.0"),
    "true or": (lambda a: OR(LT(a, 0.0), True), "result = 1.0"),
    "false or": (lambda a: OR(False, LT(a, 0.0)), None),
    "and itself": (lambda a: AND(LT(a, 0.0), LT(a, 0.0)), None),
    "or itself": (lambda a: OR(LT(a, 0.0), LT(a, 0.0)), None),
    "not not": (lambda a: NOT(NOT(LT(a, 0.0))), None),
}
EVERY = pytest.mark.parametrize(("function", "expected"), SOUND.values(), ids=SOUND)


@EVERY
def test_a_rule_records_what_it_should(function, expected):
    if expected is not None:
        assert body(function) == expected


@EVERY
def test_a_rule_never_changes_a_value(request, function, expected):
    count = function.__code__.co_argcount
    program = trace(function, **dict.fromkeys("abc"[:count], ()))
    alike = near if "^" in request.node.name else same
    for args in itertools.product(SPECIAL, repeat=count):
        assert alike(evaluate(program, args)[0], float(function(*args))), args


# The identities that hold for numbers, but not for NaN and infinities.
EXCEPTIONS = {
    "0 a": (lambda a: MUL(0.0, a), "result = 0.0"),
    "0 / a": (lambda a: DIV(0.0, a), "result = 0.0"),
    "a - a": (lambda a: SUB(a, a), "result = 0.0"),
    "a + -a": (lambda a: ADD(a, NEG(a)), "result = 0.0"),
    "sin^2 + cos^2": (
        lambda a: ADD(MUL(f.sin(a), f.sin(a)), MUL(f.cos(a), f.cos(a))),
        "result = 1.0",
    ),
    "cos^2 + sin^2": (
        lambda a: ADD(POW(f.cos(a), 2.0), POW(f.sin(a), 2.0)),
        "result = 1.0",
    ),
}


@pytest.mark.parametrize(("function", "expected"), EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_the_exceptions_are_right_for_numbers(function, expected):
    assert body(function) == expected
    count = function.__code__.co_argcount
    program = trace(function, **dict.fromkeys("abc"[:count], ()))
    for args in itertools.product((0.5, 1.0, -3.0, 1e3), repeat=count):
        assert evaluate(program, args)[0] == pytest.approx(function(*args), rel=1e-15)


def test_what_only_looks_like_a_sine_and_cosine_pair():
    def formula(a, b):
        s, c = f.sin(a), f.cos(a)
        return [
            s * s + f.cos(b) * f.cos(b),
            s * c + c * s,
            s * s + s * s,
            a * a + b * b,
            s * s + b * b,
            s * s + c * f.exp(b),
        ]

    program = trace(formula, a=(), b=())
    for a, b in ((0.3, 1.2), (-2.0, 0.1)):
        assert evaluate(program, [a, b]) == pytest.approx(formula(a, b), rel=1e-15)


TINY, HUGE = 1e-200, 1e200
POWERS = [(1e10, -32), (1e160, -2), (1e-160, -2), (-1e103, -3), (7e-104, -3), (3.0, -4)]


@pytest.mark.parametrize(("x", "n"), POWERS)
def test_powers_below_zero_at_the_ends_of_the_range(x: float, n: int):
    (result,) = evaluate(trace(lambda a: a**n, a=()), [x])
    exact = POW.on_floats(x, float(n))
    assert result == pytest.approx(exact, rel=1e-14, abs=1e-323)


LIMITS = {
    "products underflow": (lambda a: TINY * (TINY * a), 1e300),
    "products overflow": (lambda a: HUGE * (HUGE * a), 1e-300),
    "products lose digits": (lambda a: 1e-160 * (1e-155 * a), 1e300),
    "sums overflow": (lambda a: (a + 1.7e308) + 1.7e308, -1.7e308),
    "differences overflow": (lambda a: (a - 1.7e308) - 1.7e308, 1.7e308),
    "constant minus sum": (lambda a: 1.7e308 - (a + -1.7e308), 1.7e308),
    "constant minus difference": (lambda a: -1.7e308 - (1.7e308 - a), 1.7e308),
    "constant plus difference": (lambda a: (1.7e308 - a) + 1.7e308, 1.7e308),
    "reciprocal is subnormal": (lambda a: a / 1.7e308, 1.7e308),
    "reciprocal is infinite": (lambda a: a / 5e-324, 5e-324),
    "reciprocal is exact": (lambda a: a / 2.0**1022, 2.0**1020),
    "product underflows first": (lambda a: 2.0**600 * (2.0**-600 * a), 1e-200),
    "product overflows first": (lambda a: 2.0**-600 * (2.0**600 * a), 1e200),
}


@pytest.mark.parametrize(("function", "x"), LIMITS.values(), ids=LIMITS)
def test_constants_stay_in_range(function, x: float):
    program = trace(function, a=())
    assert evaluate(program, [x]) == [pytest.approx(function(x), rel=1e-15, abs=0.0)]


def test_a_rotation_cancels():
    def formula(a):
        c, s = f.cos(a), f.sin(a)
        return [c * c + s * s, s * c - c * s, c * s - s * c]

    assert body(formula) == "result = 1.0 0.0 0.0"


def test_every_operation_of_constants_folds():
    for op in (op for op in OPS.values() if not op.depends_on_type):

        def formula(a, *, op=op):
            half = a * 0.0 + 0.5
            return op(*(half if kind == "real" else half > 0 for kind in op.args))

        assert evaluate(trace(formula, a=()), [math.nan]) == [formula(2.0)]
        assert "%" not in body(formula)


def test_deeply_nested_choices_do_not_crash():
    def formula(a):
        x, sign = (a, 1.0) if a < 0 else (2.0 * a, -1.0)
        for _ in range(2000):
            x = f.acos(f.cos(sign * x))
        return x

    program = trace(formula, a=())
    assert program.operation_count < 2 * 2000 + 5
    for x in (-0.5, 0.5):
        assert evaluate(program, [x]) == [pytest.approx(formula(x))]
