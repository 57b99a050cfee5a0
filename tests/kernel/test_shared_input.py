"""What an input decides alone is computed once for a batch that shares it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import armillary as arm
from armillary.errors import ShapeError
from armillary.kernel import compile
from armillary.kernel.shared_input import kernel_of_shared_input
from armillary.trace import Program, trace
from work import lines


def formula(x: Any, p: Any) -> Any:
    decided = np.sin(p[0]) * np.cos(p[1]) + np.sin(p[2]) * np.cos(p[0])
    # The product below would be rounded with the sum, were it not cut from it.
    return [x[0] * decided, x[1] + np.exp(p[1]), x[0] + p[0] * p[2]]


@pytest.fixture(scope="module")
def kernels() -> tuple[Any, Any]:
    plain = compile(trace(formula, name="f", x=(2,), p=(3,)))
    return plain, kernel_of_shared_input(plain.program, "p")


@pytest.mark.parametrize("rows", [1, 5, 512, 5000])
def test_a_row_gives_the_same_in_all_calls(kernels: Any, rows: int):
    plain, shared = kernels
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(rows, 2)), rng.normal(size=3)
    expected = np.array([shared(row, p) for row in x[:50]])
    np.testing.assert_allclose(plain(x, p)[:50], expected, rtol=1e-15, atol=1e-15)
    same = np.tile(p, (rows, 1))
    others = shared, copy.copy(shared), pickle.loads(pickle.dumps(shared))
    for call in others:
        for each in (p, p[None], same):
            assert (call(x, each)[:50] == expected).all()
    out = np.empty((rows, 3))
    assert shared(x, p, out=out, threads=1) is out
    assert (out[:50] == expected).all()


def test_rows_of_large_arguments_and_rows_with_an_input_each(kernels: Any) -> None:
    """Angles beyond the fast formulas, on either side of the cut."""
    _, shared = kernels
    rng = np.random.default_rng(1)
    x, p = rng.normal(size=(3000, 2)), rng.normal(size=(3000, 3))
    p[::7, 0] *= 1e12
    expected = np.array([shared(*rows) for rows in zip(x[:60], p[:60], strict=True)])
    for rows in (60, 3000):
        assert (shared(x[:rows], p[:rows])[:60] == expected).all()
    for k in (0, 1):
        assert (shared(x, p[k])[k] == expected[k]).all()
        assert (shared(x[:20], p[k])[k] == expected[k]).all()


def test_parts_are_one_piece_of_code_that_is_rounded_as_kernels_in_turn() -> None:
    """Of a robot: products of one part and sums of the other are many."""
    cell = arm.example("irb2400")
    names = list(cell.parameters(["irb2400/joint_2.precursor", "tool0"]))
    fk, rng = cell.fk("tool0", parameters=names), np.random.default_rng(2)
    q = rng.uniform(-2.0, 2.0, (4000, 6))
    p = rng.uniform(-0.01, 0.01, (4000, len(names)))
    in_turn = fk.__reduce__()[1][1].in_turn
    apart = replace(in_turn, is_shared=False)
    np.testing.assert_array_equal(fk(q, p), apart(q, p))
    np.testing.assert_array_equal(fk(q, p[0]), apart(q, p[:1]))
    np.testing.assert_array_equal(fk(q, p[0]), fk(q, np.tile(p[0], (4000, 1))))
    np.testing.assert_array_equal(fk(q, p)[:9], fk(q[:9], p[:9]))
    whole = fk.program
    same = Program(
        *(whole.name, whole.inputs, whole.outputs, whole.instructions, whole.results)
    )
    np.testing.assert_allclose(compile(same)(q, p), fk(q, p), atol=1e-14)


def test_the_part_that_rows_share_is_computed_once(kernels: Any) -> None:
    _, shared = kernels
    compute = shared.__reduce__()[1][1]
    first, rest = compute.in_turn.parts
    assert {step.name for step in first.program.instructions} >= {"sin", "cos", "exp"}
    assert not {step.name for step in rest.program.instructions} & {"sin", "exp"}
    x, p = np.ones((20_000, 2)), np.ones(3)
    assert lines(lambda: compute(x, p)) < 500


def test_bad_input_is_that_of_the_kernel(kernels: Any) -> None:
    plain, shared = kernels
    shapes = ((5000, 2), (4,)), ((5000, 3), (3,)), ((5000, 2), (5, 3))
    for inputs in [tuple(map(np.ones, each)) for each in shapes]:
        messages = []
        for kernel in (plain, shared):
            with pytest.raises(ShapeError) as caught:
                kernel(*inputs)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("rounds", [0, 1])
def test_nothing_is_cut_where_little_is_decided(rounds: int) -> None:
    def little(x: Any, p: Any) -> Any:
        for _ in range(9):
            x = np.sin(x) * p
        return x + rounds * p**2

    kernel = compile(trace(little, name="g", x=(), p=()))
    assert kernel_of_shared_input(kernel.program, "p").program is kernel.program
