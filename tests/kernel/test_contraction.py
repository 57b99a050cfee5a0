"""Products and sums that are rounded once: decided in the text, the same for all."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from armillary.kernel.builder import FunctionBuilder, Value, module_text
from armillary.kernel.code import Code
from armillary.kernel.contraction import with_contraction_decided
from armillary.kernel.host import host
from armillary.kernel.jit import to_object
from armillary.kernel.machine_type import F64, PTR, Type

Formula = Callable[[Value, Value, Value], Value]

FORMULAS: dict[str, tuple[Formula, Callable[[Fraction, Fraction, Fraction], Fraction]]]
FORMULAS = {
    "x y + z": (
        lambda x, y, z: x.contracted("fmul", y).contracted("fadd", z),
        lambda x, y, z: x * y + z,
    ),
    "z + x y": (
        lambda x, y, z: z.contracted("fadd", x.contracted("fmul", y)),
        lambda x, y, z: x * y + z,
    ),
    "x y - z": (
        lambda x, y, z: x.contracted("fmul", y).contracted("fsub", z),
        lambda x, y, z: x * y - z,
    ),
    "z - x y": (
        lambda x, y, z: z.contracted("fsub", x.contracted("fmul", y)),
        lambda x, y, z: z - x * y,
    ),
    "3 x - z": (
        lambda x, y, z: x.constant(3.0).contracted("fmul", x).contracted("fsub", z),
        lambda x, y, z: 3 * x - z,
    ),
}
has_fma = pytest.mark.skipif(
    not {"+fma", "+neon"} & {*host().features.split(",")}, reason="two roundings here"
)


def text_of(formula: Formula, kind: Type) -> str:
    f = FunctionBuilder("run", exported=True, to=PTR, x=PTR, y=PTR, z=PTR)
    values = [f.load(kind, f[name], align=8) for name in "xyz"]
    f.store(formula(*values), f["to"], align=8)
    f.ret()
    return module_text([f])


def results(text: str, level: int, rows: np.ndarray) -> np.ndarray:
    """Return what code of a level makes of rows x, y, z, each (lanes,)."""
    code = Code(to_object(text, host(), level), host())
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(code.address("run"))
    out = np.empty_like(rows[:, 0])
    for row, to in zip(rows, out, strict=True):
        run(to.ctypes.data, *(each.ctypes.data for each in row))
    return out


@has_fma
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_product_is_rounded_with_its_sum(name: str, lanes: int):
    formula, exact = FORMULAS[name]
    text = with_contraction_decided(text_of(formula, F64.wide(lanes)))
    assert "contract" not in text
    rows = np.random.default_rng(0).normal(size=(50, 3, lanes))
    expected = [
        [float(exact(*map(Fraction, column))) for column in row.T] for row in rows
    ]
    for level in (0, 1, 2):
        assert (results(text, level, rows) == np.array(expected)).all()


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_product_that_is_used_twice_is_rounded(lanes: int):
    def formula(x: Value, y: Value, z: Value) -> Value:
        product = x.contracted("fmul", y)
        return product.contracted("fadd", z).contracted("fsub", product)

    text = with_contraction_decided(text_of(formula, F64.wide(lanes)))
    assert "fmuladd" not in text
    rows = np.random.default_rng(0).normal(size=(50, 3, lanes))
    x, y, z = rows.transpose(1, 0, 2)
    for level in (0, 1, 2):
        assert (results(text, level, rows) == x * y + z - x * y).all()


def test_what_is_not_marked_stays():
    text = text_of(lambda x, y, z: x * y + z, F64)
    assert with_contraction_decided(text) == text


def test_of_two_products_the_first_is_taken_up():
    def formula(x: Value, y: Value, z: Value) -> Value:
        return x.contracted("fmul", y).contracted("fadd", y.contracted("fmul", z))

    text = with_contraction_decided(text_of(formula, F64))
    assert text.count("call double @llvm.fmuladd.f64(double %") == 1
    assert text.count("declare double @llvm.fmuladd.f64(") == 1
    rows = np.random.default_rng(0).normal(size=(50, 3, 1))
    assert (results(text, 0, rows) == results(text, 2, rows)).all()
