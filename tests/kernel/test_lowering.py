"""Long operations, repeated or called: the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from armillary.kernel import compile, compiler, emit, vectorize
from armillary.kernel.lowering import LONG, length_of
from armillary.kernel.machine_type import F64
from armillary.trace import OPS, Program, trace
from armillary.trace.functions import by_precision


@pytest.fixture(scope="module")
def all_long() -> Program:
    def function(q: Any) -> Any:
        x, y = q
        inside = np.clip(x * 0.3, -1.0, 1.0)
        size = abs(y) + 0.1
        return [
            *(np.sin(x), np.cos(x), np.tan(y), np.cos(y), np.sin(x + y)),
            *(np.arcsin(inside), np.arccos(inside), np.arctan(x), np.arctan2(x, y)),
            *(np.exp(x), np.log(size), size**x, np.hypot(x, y), x % size),
        ]

    return trace(function, name="all", q=(2,))


def test_every_long_operation_is_used(all_long: Program):
    used = {step.name for step in all_long.instructions}
    assert {name for name in OPS if OPS[name].lowering in LONG} <= used
    assert all(length_of(key) > 8 for key in LONG)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("lanes", [1, 2, 8, 16])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_called_operations_give_the_same_bits(
    all_long: Program, monkeypatch: pytest.MonkeyPatch, lanes: int, kind: str
):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    q = np.random.default_rng(0).uniform(-3, 3, (50, 2)).astype(kind)
    q[::7, 0] = 1e12
    q[3, 1], q[5, 0] = np.nan, np.inf
    repeated = compile(all_long, lanes=lanes, dtype=kind)
    monkeypatch.setattr(emit, "OUTLINED_FROM", 0)
    called = compile(all_long, lanes=lanes, dtype=kind)
    np.testing.assert_array_equal(called(q), repeated(q))
    np.testing.assert_array_equal(called(q[7]), repeated(q[7]))
    wanted = vectorize(all_long, q[::7]).astype(kind)
    np.testing.assert_array_equal(called(q)[::7], wanted)


def test_sine_and_cosine_are_one_call(
    all_long: Program, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(emit, "OUTLINED_FROM", 0)
    text = compiler.kernel_text(all_long, F64.wide(4))
    assert text.count("call { <4 x double>, <4 x double>, i4 } @sincos(") == 3


@pytest.mark.parametrize("name", ["sin", "arctan", "exp"])
def test_long_chains_are_short_code(name: str):
    """Of 13 000 operations; LLVM needs 10 us for each line, or more."""

    def chain(q: Any) -> Any:
        x = q[0]
        for k in range(6500):
            x = getattr(np, name)(x) + q[k % 3]
        return [x]

    program = trace(chain, name="chain", q=(3,))
    text = compiler.kernel_text(program, F64.wide(8))
    assert text.count("\n") < 6 * 13_000


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_a_bound_depends_on_the_type_of_a_kernel(lanes: int):
    def bounded(x: Any) -> Any:
        bound = by_precision(x, double=1e-20, single=1e-9)
        fixed = by_precision(x * 0.0, double=2.0, single=x)
        return [bound, fixed, 1.0 if x * x < bound else 2.0]

    program = trace(bounded, x=())
    x = np.full(5, 1e-7)
    expected = {"float64": [1e-20, 2.0, 2.0], "float32": [1e-9, 1e-7, 1.0]}
    for kind, row in expected.items():
        found = compile(program, dtype=kind, lanes=lanes)(x)
        np.testing.assert_allclose(found, [row] * 5, rtol=1e-6)
    np.testing.assert_array_equal(vectorize(program, x), [expected["float64"]] * 5)
    assert bounded(1e-7) == expected["float64"]


def test_a_loose_program_rounds_products_and_sums_as_one_below_edges():
    strict = trace(lambda a, b: np.sqrt(a * a + b * b), name="norm", a=(), b=())
    loose = replace(strict, is_loose=True)
    assert strict.fingerprint != loose.fingerprint
    real = F64.wide(4)
    assert "fmul contract" not in compiler.kernel_text(strict, real)
    assert "fmul contract" in compiler.kernel_text(loose, real)
    a, b = np.random.default_rng(0).normal(size=(2, 1000))
    np.testing.assert_allclose(compile(loose)(a, b), np.hypot(a, b), rtol=1e-15)
