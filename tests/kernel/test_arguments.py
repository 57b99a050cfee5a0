"""What is said of arrays that do not fit: the program, the shapes, the mend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary.errors import ArmillaryError, ShapeError
from armillary.kernel import compile, interpret, vectorize
from armillary.kernel.arguments import (
    as_inputs,
    batch_shape,
    broadcast,
    compact_strides,
    ufunc_signature,
)
from armillary.trace import Program, trace

Evaluator = Callable[..., Any]

NEEDS = "'arm' needs q of shape (..., 7)"


@pytest.fixture(params=["kernel", "interpret", "vectorize"])
def evaluator(request: pytest.FixtureRequest) -> Callable[[Program], Evaluator]:
    """All evaluators say the same."""
    if request.param == "kernel":
        return compile
    function = {"interpret": interpret, "vectorize": vectorize}[request.param]
    return lambda program: lambda *arrays: function(program, *arrays)


SHAPES: dict[str, tuple[Any, str]] = {
    "too short": (
        np.zeros(6),
        f"{NEEDS}; an array of shape (6,) was given. The last dimension must be 7, "
        "not 6.",
    ),
    "batch too short": (
        np.zeros((4, 2, 6)),
        f"{NEEDS}; an array of shape (4, 2, 6) was given. The last dimension must be "
        "7, not 6.",
    ),
    "transposed": (
        np.zeros((7, 5)),
        f"{NEEDS}; an array of shape (7, 5) was given. Its first dimension fits: pass "
        "its transpose.",
    ),
    "number": (0.5, f"{NEEDS}; an array of shape () was given."),
    "nothing": (
        [],
        f"{NEEDS}; an array of shape (0,) was given. The last dimension "
        "must be 7, not 0.",
    ),
    "ragged": ([[1.0] * 7, [2.0] * 6], f"{NEEDS}; rows of unequal length were given."),
    "text": (
        "home",
        f"{NEEDS} of real numbers; an array of <U4 was given. Convert it "
        "first: np.asarray(array, dtype=float).",
    ),
    "numbers as text": (
        ["1"] * 7,
        f"{NEEDS} of real numbers; an array of <U1 was given."
        " Convert it first: np.asarray(array, dtype=float).",
    ),
    "bytes": ([b"1"] * 7, "an array of |S1 was given."),
    "none": (None, f"{NEEDS} of real numbers; an array of object was given."),
    "none within": ([None] + [1.0] * 6, "an array of object was given."),
    "objects": (
        np.ones(7, object),
        "Convert it first: np.asarray(array, dtype=float).",
    ),
    "empty objects": (np.ones((0, 7), object), "an array of object was given."),
    "complex": (
        np.ones(7, complex),
        f"{NEEDS} of real numbers; an array of complex128 "
        "was given. Pass its real part: array.real.",
    ),
    "dates": (np.zeros(7, "M8[s]"), "an array of datetime64[s] was given."),
    "spans": (np.zeros(7, "m8[s]"), "an array of timedelta64[s] was given."),
    "records": (np.zeros(7, [("x", float)]), "an array of [('x', '<f8')] was given."),
    "dict": ({"q": [0.0] * 7}, "an array of object was given."),
    "masked": (
        np.ma.array(np.zeros(7), mask=[0, 0, 1, 0, 0, 0, 0]),
        f"{NEEDS}; a masked array was given, some of whose numbers are masked. Say "
        "what they shall be: array.filled(np.nan).",
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_what_does_not_fit(
    arm: Program, evaluator: Callable[[Program], Evaluator], case: str
):
    given, said = SHAPES[case]
    with pytest.raises(ShapeError) as raised:
        evaluator(arm)(given)
    assert said in str(raised.value)
    assert isinstance(raised.value, ArmillaryError | ValueError)


def test_what_fits_although_it_looks_odd(
    arm: Program, evaluator: Callable[[Program], Evaluator]
):
    wanted = evaluator(arm)(np.ones((1, 7)))
    for given in (
        np.ma.ones((1, 7)),  # nothing is masked
        [np.ones(7)],
        [[True] * 7],
        np.ones((7, 1)).T,
        np.ones((1, 7), np.float16),
    ):
        np.testing.assert_array_equal(evaluator(arm)(given), wanted)
        assert type(evaluator(arm)(given)) is np.ndarray


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "'arm' takes 1 array, q of shape (..., 7); 0 given."),
        ((1, 2), "'arm' takes 1 array, q of shape (..., 7); 2 given."),
    ],
)
def test_wrong_count(
    arm: Program, evaluator: Callable[[Program], Evaluator], given: Any, said: str
):
    with pytest.raises(ShapeError) as raised:
        evaluator(arm)(*given)
    assert str(raised.value) == said


def test_wrong_count_of_several(
    many: Program, evaluator: Callable[[Program], Evaluator]
):
    with pytest.raises(ShapeError) as raised:
        evaluator(many)(1.0)
    assert str(raised.value) == (
        "'many' takes 3 arrays, a of shape (..., 3), b of shape (...), m of shape "
        "(..., 2, 3); 1 given."
    )


def test_wrong_count_of_none(evaluator: Callable[[Program], Evaluator]):
    program = trace(lambda: 1.0, name="one")
    with pytest.raises(ShapeError, match=r"^'one' takes no arrays; 1 given\.$"):
        evaluator(program)(1.0)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3,), "an array of shape (3,) was given."),
        ((3, 2), "The last dimensions must be 2, 3, not 3, 2."),
        ((5, 2, 2), "The last dimensions must be 2, 3, not 2, 2."),
    ],
)
def test_matrices(
    many: Program,
    evaluator: Callable[[Program], Evaluator],
    shape: tuple[int, ...],
    said: str,
):
    with pytest.raises(ShapeError) as raised:
        evaluator(many)(np.zeros(3), 0.0, np.zeros(shape))
    assert str(raised.value).startswith("'many' needs m of shape (..., 2, 3); ")
    assert str(raised.value).endswith(said)


def test_batches_that_do_not_fit_together(
    many: Program, evaluator: Callable[[Program], Evaluator]
):
    with pytest.raises(ShapeError) as raised:
        evaluator(many)(np.zeros((4, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    assert str(raised.value) == (
        "'many' was given batches that do not fit together: a has (4,), b has (2, 3), "
        "m has (). Each dimension must be the same in all of them, or 1."
    )


def test_arrays_that_fit_are_taken_as_they_are(arm: Program):
    q = np.zeros((3, 7))
    assert as_inputs(arm, [q])[0] is q
    assert as_inputs(arm, [q], np.dtype(np.float32))[0].dtype == np.float32


@pytest.mark.parametrize(
    "batches", [((), (), ()), ((2,), (2,), (2,)), ((3, 1), (4,), ()), ((0,), (1,), ())]
)
def test_batch(many: Program, batches: Any):
    shapes = [port.shape for port in many.inputs]
    given = [np.zeros((*b, *s)) for b, s in zip(batches, shapes, strict=True)]
    wanted = np.broadcast_shapes(*batches)
    assert batch_shape(many, given) == wanted
    arrays, batch = broadcast(many, given)
    assert batch == wanted
    assert [a.shape for a in arrays] == [(*wanted, *s) for s in shapes]
    assert not any(a.flags.writeable for a in arrays)


def test_signatures(many: Program, arm: Program):
    assert ufunc_signature(arm) == "(7)->(4,4)"
    assert ufunc_signature(many) == "(3),(),(2,3)->(2),(),(3,2,2),(3),(2)"
    assert ufunc_signature(trace(lambda: 1.0, name="one")) == "->()"


@pytest.mark.parametrize("shape", [(), (3,), (1,), (4, 4), (2, 3, 4), (1, 5, 1)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_strides_are_those_of_numpy(shape: tuple[int, ...], kind: str):
    array = np.zeros(shape, kind)
    assert tuple(compact_strides(shape, array.itemsize)) == array.strides
