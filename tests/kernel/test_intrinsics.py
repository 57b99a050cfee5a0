"""Every operation in native code: its error in ulp, its special values, its flags."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from armillary.kernel.builder import FunctionBuilder, Value, module_text
from armillary.kernel.host import host
from armillary.kernel.intrinsics import inverse_trig as arc
from armillary.kernel.intrinsics import logarithm
from armillary.kernel.intrinsics import trig as circular
from armillary.kernel.jit import machine
from armillary.kernel.lowering import LOWERING, lower
from armillary.kernel.machine_type import I1, I64, PTR, real_of
from armillary.trace.ops import OPS

Reals = NDArray[np.floating]


@dataclass(frozen=True)
class Kind:
    """A kind of real: its bits, and the exponents of its least and largest numbers."""

    bits: int
    dtype: type[np.floating]
    least: int
    most: int
    circular_limit: float
    fraction: int
    lanes: int


DOUBLE = Kind(64, np.float64, -1074, 1023, 2.0**30, 52, 4)
SINGLE = Kind(32, np.float32, -149, 127, 2.0**16, 23, 8)
KINDS = pytest.mark.parametrize("kind", [DOUBLE, SINGLE], ids=["float64", "float32"])
LANES = (1, 2, 4, 8)


# Native code of every operation, as loops over arrays.


class Evaluator:
    """All operations of the table, compiled for reals of `bits` bits in `lanes`."""

    def __init__(self, bits: int, lanes: int) -> None:
        self.real = real_of(bits, lanes)
        text = module_text([self._function(name) for name in OPS])
        module = llvm.parse_assembly(text)
        module.verify()
        self._engine = llvm.create_mcjit_compiler(module, machine(host()))
        self._engine.finalize_object()

    def _function(self, name: str) -> FunctionBuilder:
        real, kinds = self.real, OPS[name].args
        arrays = [*(f"in{i}" for i in range(len(kinds))), "result", "flags"]
        parameters = {"n": I64, **dict.fromkeys(arrays, PTR)}
        f = FunctionBuilder(name, exported=True, more=parameters)

        def at(array: str, k: Value) -> Value:
            return f.element(f[array], real.scalar, k)

        with f.loop(f["n"], step=real.lanes) as k:
            args: list[Value] = []
            for i, kind in enumerate(kinds):
                x = f.load(real, at(f"in{i}", k), align=4)
                args.append(x if kind == "real" else x.differs(0.0))
            result = lower(OPS[name].lowering, args)
            flagged = f.taken_flags() or f.constant(I1.wide(real.lanes), 0)
            if OPS[name].result == "truth":
                result = result.select(1.0, f.constant(real, 0.0))
            f.store(result, at("result", k), align=4)
            flags = flagged.select(1.0, f.constant(real, 0.0))
            f.store(flags, at("flags", k), align=4)
        f.ret()
        return f

    def __call__(self, name: str, *args: Reals) -> tuple[Reals, NDArray[np.bool_]]:
        """Return the results and which lanes are flagged."""
        dtype = np.float64 if self.real.bits == 64 else np.float32
        n = args[0].size
        size = n + -n % self.real.lanes
        inputs = [np.resize(arg.astype(dtype, casting="safe"), size) for arg in args]
        result, flags = np.empty(size, dtype), np.empty(size, dtype)
        arrays = [*inputs, result, flags]
        address = self._engine.get_function_address(name)
        kinds = [ctypes.c_int64, *[ctypes.c_void_p] * len(arrays)]
        run = ctypes.CFUNCTYPE(None, *kinds)(address)
        run(size, *(array.ctypes.data for array in arrays))
        return result[:n], flags[:n] != 0.0


@lru_cache
def evaluator(bits: int, lanes: int) -> Evaluator:
    return Evaluator(bits, lanes)


def native(
    kind: Kind, name: str, *args: Reals, lanes: int | None = None
) -> tuple[Reals, NDArray[np.bool_]]:
    """The results and flags of an operation in native code."""
    return evaluator(kind.bits, lanes or kind.lanes)(name, *args)


# Right answers, and the distance from them.


@dataclass(frozen=True)
class Answer:
    """A right result: the nearest real, and what it lacks, in its ulps."""

    head: Reals
    rest: Reals

    def error(self, got: Reals) -> Reals:
        """The error of results in ulps; where the head is infinite, 0 or inf."""
        with np.errstate(invalid="ignore"):
            error = (got - self.head).astype(float) / ulp(self.head) - self.rest
            same = got == self.head
        return np.where(
            np.isfinite(self.head), np.abs(error), np.where(same, 0, np.inf)
        )


def ulp(x: Reals) -> Reals:
    """The distance of the reals around x, in float64; anything where x is no number."""
    form = np.finfo(x.dtype)
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    lowest = form.minexp - form.nmant
    return np.ldexp(1.0, np.maximum(exponent - form.nmant - 1, lowest))


def exactly(function: Callable[..., mpmath.mpf], *args: Reals) -> Answer:
    """The float64 answers of a function of mpmath."""
    with mpmath.workprec(160):
        values = [
            function(*map(mpmath.mpf, map(float, row)))
            for row in zip(*args, strict=True)
        ]
        head = np.array([float(value) for value in values])
        rest = [
            float((value - mpmath.mpf(near)) / mpmath.mpf(step))
            if np.isfinite(near)
            else 0.0
            for value, near, step in zip(
                values, head.tolist(), ulp(head).tolist(), strict=True
            )
        ]
    return Answer(head, np.array(rest))


def rounded(values: NDArray[np.float64]) -> Answer:
    """The float32 answers, from float64 values that are good enough."""
    with np.errstate(all="ignore"):
        head = values.astype(np.float32)
        rest = np.where(np.isfinite(head), (values - head) / ulp(head), 0.0)
    return Answer(head, rest)


# Where the functions are measured.

Sampler = Callable[[Kind, np.random.Generator], list[tuple[Reals, ...]]]
N = {64: 2000, 32: 50_000}


def uniform(kind: Kind, rng: np.random.Generator, reach: float) -> Reals:
    return rng.uniform(-reach, reach, N[kind.bits]).astype(kind.dtype)


def spread(
    kind: Kind, rng: np.random.Generator, low: float, high: float, *, signs: bool = True
) -> Reals:
    """Numbers of all sizes between two exponents."""
    size = np.exp2(rng.uniform(low, high, N[kind.bits]))
    sign = rng.choice([-1.0, 1.0], size.shape) if signs else 1.0
    return (sign * size).astype(kind.dtype)


def around(kind: Kind, *centres: float, steps: int = 20) -> Reals:
    """The reals next to some numbers, on both sides."""
    unsigned = np.uint64 if kind.bits == 64 else np.uint32
    near = np.array(centres, kind.dtype).view(unsigned).astype(np.int64)
    return (
        (near[:, None] + np.arange(-steps, steps))
        .astype(unsigned)
        .view(kind.dtype)
        .ravel()
    )


def beside(kind: Kind, rng: np.random.Generator, centre: float) -> Reals:
    """Numbers at all distances from a centre that is not 0."""
    return (centre + spread(kind, rng, -kind.fraction - 1, -1)).astype(kind.dtype)


def near_multiples_of_half_pi(kind: Kind) -> Reals:
    """Arguments x = m 2^e whose distance from a multiple of pi/2 is least.

    The m are denominators of the continued fraction of 2^e / (pi/2).
    """
    found: list[float] = []
    precision = kind.fraction + 1
    top = int(np.log2(kind.circular_limit)) - precision
    with mpmath.workprec(400):
        for e in range(-precision, top + 1):
            rest, before, m = mpmath.ldexp(2, e) / mpmath.pi, 0, 1
            while m < 1 << precision:
                found.append(float(mpmath.ldexp(m, e)))
                rest = 1 / (rest - mpmath.floor(rest))
                before, m = m, int(mpmath.floor(rest)) * m + before
    x = np.array(found).astype(kind.dtype)
    return np.concatenate([x, -x])


def circular_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    limit = min(1e6, kind.circular_limit)
    quarter = np.rint(uniform(kind, rng, limit).astype(float) / np.pi * 4)
    return [
        (uniform(kind, rng, 10.0),),
        (uniform(kind, rng, limit),),
        (spread(kind, rng, kind.least, np.log2(kind.circular_limit)),),
        ((quarter * np.pi / 4).astype(kind.dtype),),
        (near_multiples_of_half_pi(kind),),
    ]


def arc_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    one = beside(kind, rng, 1.0)
    one = one[one <= 1.0]
    return [
        (uniform(kind, rng, 1.0),),
        (spread(kind, rng, kind.least, 0.0),),
        (np.concatenate([one, -one]),),
        (around(kind, 0.5, -0.5),),
    ]


def exp_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    ln_2 = np.log(2.0)
    ends = (kind.least * ln_2, (kind.least - 1) * ln_2, (kind.most + 1) * ln_2)
    return [
        (uniform(kind, rng, 1.0),),
        (uniform(kind, rng, 1.02 * kind.most * ln_2),),
        ((kind.least * ln_2 + uniform(kind, rng, 50.0)).astype(kind.dtype),),
        (spread(kind, rng, kind.least, 8.0),),
        (around(kind, *ends, ln_2, -ln_2, ln_2 / 2),),
    ]


def log_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    return [
        (spread(kind, rng, -2.0, 2.0, signs=False),),
        (spread(kind, rng, kind.least, kind.most + 0.99, signs=False),),
        (beside(kind, rng, 1.0),),
        (around(kind, 1.0, 0.5**0.5, 2.0**0.5, 2.0 ** (2 - kind.most)),),
    ]


def plane_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    x = spread(kind, rng, kind.least, kind.most)
    pairs = [
        (x, spread(kind, rng, kind.least, kind.most)),
        (x, (x * (1.0 + spread(kind, rng, -8.0, -1.0))).astype(kind.dtype)),
        (x, -x),
        (uniform(kind, rng, 1.0), uniform(kind, rng, 1.0)),
    ]
    # Next to each other, at all the sizes where a scaling might begin.
    sizes = np.linspace(kind.least, kind.most - 4, 40)
    few = rng.uniform(0.0, 4.0, (2, 40, 10)) + sizes[:, None]
    x, y = np.exp2(few).astype(kind.dtype).reshape(2, -1)
    return [*pairs, (x, y)]


def power_samples(kind: Kind, rng: np.random.Generator) -> list[tuple[Reals, ...]]:
    wide = spread(kind, rng, kind.least, kind.most, signs=False)
    narrow = beside(kind, rng, 1.0)
    fill = uniform(kind, rng, 1.1 * kind.most)
    return [
        (spread(kind, rng, -3.0, 3.0, signs=False), uniform(kind, rng, 10.0)),
        (wide, exponents(wide, fill)),
        (narrow, exponents(narrow, fill)),
        (wide, uniform(kind, rng, 2.0)),
        (-wide, np.rint(exponents(wide, fill))),
        (spread(kind, rng, kind.least, kind.least + 40, signs=False), fill / 1000),
    ]


def exponents(x: Reals, log_of_power: Reals) -> Reals:
    """The exponents that bring x to given powers of two."""
    with np.errstate(divide="ignore"):
        logs = np.log2(x.astype(float))
    return (log_of_power / np.where(logs == 0.0, 1.0, logs)).astype(x.dtype)


@dataclass(frozen=True)
class Measure:
    """How a function is measured.

    Attributes:
        bound: The error promised [ulp].
        samples: Arguments.
        exact: The function in mpmath.
        wide: The function in float64, as the answer for float32.
    """

    bound: float
    samples: Sampler
    exact: Callable[..., mpmath.mpf]
    wide: Callable[..., NDArray[np.float64]]


MEASURES = {
    "sin": Measure(2.0, circular_samples, mpmath.sin, np.sin),
    "cos": Measure(2.0, circular_samples, mpmath.cos, np.cos),
    "tan": Measure(4.0, circular_samples, mpmath.tan, np.tan),
    "asin": Measure(3.0, arc_samples, mpmath.asin, np.arcsin),
    "acos": Measure(3.0, arc_samples, mpmath.acos, np.arccos),
    "atan": Measure(3.0, log_samples, mpmath.atan, np.arctan),
    "atan2": Measure(3.0, plane_samples, mpmath.atan2, np.arctan2),
    "exp": Measure(1.5, exp_samples, mpmath.exp, np.exp),
    "log": Measure(1.5, log_samples, mpmath.log, np.log),
    "sinh": Measure(3.0, exp_samples, mpmath.sinh, np.sinh),
    "cosh": Measure(3.0, exp_samples, mpmath.cosh, np.cosh),
    "tanh": Measure(3.0, exp_samples, mpmath.tanh, np.tanh),
    "cbrt": Measure(1.0, log_samples, mpmath.cbrt, np.cbrt),
    "sqrt": Measure(0.5, log_samples, mpmath.sqrt, np.sqrt),
    "pow": Measure(1.5, power_samples, mpmath.power, np.power),
    "hypot": Measure(1.5, plane_samples, mpmath.hypot, np.hypot),
}
MEASURED = pytest.mark.parametrize("name", MEASURES)


def samples(kind: Kind, name: str) -> Iterator[tuple[Reals, ...]]:
    rng = np.random.default_rng(2024)
    with np.errstate(over="ignore", under="ignore"):
        yield from MEASURES[name].samples(kind, rng)


@pytest.mark.sampled(4)
@MEASURED
def test_error_in_float64(name: str):
    measure = MEASURES[name]
    for args in samples(DOUBLE, name):
        got, flags = native(DOUBLE, name, *args)
        error = exactly(measure.exact, *args).error(got)
        assert not flags.any()
        assert error.max() <= measure.bound, worst(error, args)


@MEASURED
def test_error_in_float32(name: str):
    measure = MEASURES[name]
    for args in samples(SINGLE, name):
        got, flags = native(SINGLE, name, *args)
        with np.errstate(all="ignore"):
            wide = measure.wide(*(arg.astype(np.float64) for arg in args))
        # The float64 answer may lack one of its own ulps.
        error = rounded(wide).error(got)
        assert not flags.any()
        assert error.max() <= measure.bound + 1e-6, worst(error, args)


def worst(error: Reals, args: tuple[Reals, ...]) -> str:
    at = int(np.nanargmax(error))
    return f"{error[at]:.2f} ulp at {[arg[at] for arg in args]}"


def test_sine_next_to_every_multiple_of_half_pi():
    k = np.arange(1.0, SINGLE.circular_limit / np.pi * 2)
    for step in (-1, 0, 1):
        x = (k * (np.pi / 2)).astype(np.float32)
        x = (x.view(np.int32) + step).view(np.float32)
        for name, wide in (("sin", np.sin), ("cos", np.cos)):
            got, _ = native(SINGLE, name, x)
            assert rounded(wide(x.astype(np.float64))).error(got).max() <= 2.0


# Special values: the table's own meaning on floats is the answer.

SPECIAL = (
    *(0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 1e6, 2.0**31, 2.0**53, 2.0**70),
    *(np.inf, np.nan),
)


def special(kind: Kind) -> list[float]:
    form = np.finfo(kind.dtype)
    sizes = {
        *map(float, np.array(SPECIAL, kind.dtype)),
        *(float(form.max), float(form.tiny), float(form.smallest_subnormal)),
        *(1.0 + float(form.eps), 1.0 - float(form.epsneg)),
    }
    return [sign * size for size in sorted(sizes) for sign in (1.0, -1.0)]


# Operations that leave the sign of a zero open.
UNSIGNED_ZERO = {
    *("add", "sub", "mul", "neg", "min", "max", "floor", "round", "select"),
    *("sin", "tan"),
}
# NumPy's power takes a square root here, C's does not: the signs differ.
EXCEPT = {"pow": [(-np.inf, 0.5), (-0.0, 0.5)]}


@KINDS
@pytest.mark.parametrize("name", sorted(OPS.keys() - {"is_single"}))  # it asks the type
def test_special_values(kind: Kind, name: str):
    op = OPS[name]
    domains = [special(kind) if of == "real" else [0.0, 1.0] for of in op.args]
    every = itertools.product(*domains)
    rows = [row for row in every if row not in EXCEPT.get(name, ())]
    args = tuple(np.array(rows, kind.dtype).T)
    got, flags = native(kind, name, *args)
    casts = [float if of == "real" else bool for of in op.args]
    answers = [
        float(op.on_floats(*(cast(x) for cast, x in zip(casts, row, strict=True))))
        for row in rows
    ]
    with np.errstate(over="ignore"):
        head = np.array(answers).astype(kind.dtype)
    answer = Answer(head, np.zeros(head.shape))
    nan = np.isnan(head)
    assert np.array_equal(np.isnan(got)[~flags], nan[~flags])
    checked = ~flags & ~nan
    error = np.where(checked, answer.error(got), 0.0)
    assert error.max() <= 4.0, worst(error, args)
    if name not in UNSIGNED_ZERO:
        minus = np.signbit(got) != np.signbit(head)
        assert [rows[i] for i in np.flatnonzero(minus & checked)] == []
    assert [rows[i] for i in np.flatnonzero(flags & ~may_flag(kind, name, args))] == []


def may_flag(kind: Kind, name: str, args: tuple[Reals, ...]) -> NDArray[np.bool_]:
    """Where the documentation allows a flag."""
    with np.errstate(all="ignore"):
        if name in {"sin", "cos", "tan"}:
            return np.abs(args[0]) > kind.circular_limit
        if name == "fmod":
            x, y = np.abs(args)
            return np.isfinite(x) & (y > 0.0) & (x / y >= 2.0**kind.fraction)
    return np.zeros(args[0].shape, bool)


@KINDS
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_are_flagged_exactly_beyond_the_limit(kind: Kind, name: str):
    x = around(kind, kind.circular_limit, -kind.circular_limit)
    _, flags = native(kind, name, x)
    assert np.array_equal(flags, np.abs(x) > kind.circular_limit)


# Exact operations.


@KINDS
def test_remainder_is_exact(kind: Kind):
    rng = np.random.default_rng(7)
    # Divisors and quotients that cover the range, their products finite.
    y = spread(kind, rng, kind.least, kind.most - kind.fraction - 1)
    whole = np.rint(spread(kind, rng, 0.0, kind.fraction))
    product = whole * y
    x = spread(kind, rng, kind.least, kind.most)
    with np.errstate(under="ignore"):
        pairs = [
            (product, y),
            (np.nextafter(product, kind.dtype(np.inf)), y),
            (np.nextafter(product, kind.dtype(-np.inf)), y),
            (uniform(kind, rng, 100.0), uniform(kind, rng, 1.0)),
            (x, y),
            (y, x),
            (x, np.full_like(x, np.inf)),
        ]
    for x, y in pairs:
        got, flags = native(kind, "fmod", x, y)
        expected = np.fmod(x, y)
        assert np.array_equal(got[~flags], expected[~flags])
        assert np.array_equal(np.signbit(got)[~flags], np.signbit(x)[~flags])
        assert np.all(may_flag(kind, "fmod", (x, y))[flags])


@KINDS
@pytest.mark.parametrize(
    "name", ["floor", "round", "abs", "sign", "min", "max", "lt", "le", "eq", "div"]
)
def test_exact_operations_are_those_of_numpy(kind: Kind, name: str):
    rng = np.random.default_rng(8)
    x, y = uniform(kind, rng, 3.0), uniform(kind, rng, 3.0)
    y[::5] = x[::5]
    args = (x, y)[: len(OPS[name].args)]
    got, _ = native(kind, name, *args)
    assert np.array_equal(got, OPS[name].on_arrays(*args))


# Every width gives the same bits.


@pytest.mark.sampled(60)
@KINDS
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("lanes", LANES)
def test_lanes_do_not_matter(kind: Kind, name: str, lanes: int):
    rng = np.random.default_rng(9)
    domains = [spread(kind, rng, -5.0, 5.0)[:203] for _ in OPS[name].args]
    got, flags = native(kind, name, *domains, lanes=lanes)
    same, same_flags = native(kind, name, *domains)
    assert np.array_equal(got, same, equal_nan=True)
    assert np.array_equal(flags, same_flags)


# The code itself.


def function_of(*names: str) -> FunctionBuilder:
    """A function that computes operations of the same values."""
    real = real_of(64, 4)
    f = FunctionBuilder("test", x=real, y=real, z=real)
    truth = f["x"] < f["y"]
    for name in names:
        kinds = zip(OPS[name].args, f.parameters.values(), strict=False)
        lower(OPS[name].lowering, [x if k == "real" else truth for k, x in kinds])
    return f


def test_every_operation_is_lowered():
    assert {op.lowering for op in OPS.values()} == LOWERING.keys()


@pytest.mark.parametrize("name", OPS)
def test_avx2_has_every_instruction(name: str):
    text = function_of(name).text
    assert re.findall(r"ashr|[us]itofp|fpto[us]i|[us]m(?:in|ax)|icmp u", text) == []


@pytest.mark.parametrize("name", MEASURES)
def test_exact_rounding_is_not_given_away(name: str):
    assert "reassoc" not in function_of(name).text


@pytest.mark.parametrize(
    ("names", "more"),
    [(("sin", "cos"), 0), (("cos", "tan"), 1), (("asin", "acos"), 10)],
)
def test_functions_of_one_value_share_their_work(names: tuple[str, str], more: int):
    alone = max(function_of(name).length for name in names)
    assert function_of(*names).length <= alone + more


def test_powers_of_one_value_share_the_logarithm():
    alone = function_of("pow").length
    both = function_of("pow")
    lower("pow", [both["x"], both["z"]])
    assert both.length < 1.6 * alone


def test_constants_in_parts_add_up():
    with mpmath.workprec(200):
        half_pi, ln_2 = mpmath.pi / 2, mpmath.log(2)
        for constant, tables in (
            (half_pi, (circular.PARTS, arc.HALF_PI)),
            (ln_2, (logarithm.LN_2, logarithm.SHORT_LN_2)),
            (mpmath.mpf(2) / 3, (logarithm.TWO_THIRDS,)),
        ):
            for table, kind in itertools.product(tables, (DOUBLE, SINGLE)):
                parts = [float(kind.dtype(part)) for part in table[kind.bits]]
                rest = constant - mpmath.fsum(parts)
                assert abs(rest) <= abs(parts[-1]) * 2.0**-kind.fraction
