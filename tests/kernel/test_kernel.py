"""Kernels as functions of arrays: layouts, types, `out=`, warnings, identity."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.errors import KernelError, ShapeError
from armillary.kernel import Kernel, compile, interpret, shared_kernel, vectorize
from armillary.trace import Program, trace

Array = npt.NDArray[Any]
Draw = Callable[..., list[Array]]


def exactly(found: Any, wanted: Any) -> None:
    """Assert that the bits are the same."""
    np.testing.assert_array_equal(found, wanted, strict=True)


# Every layout of an array gives the bits of the compact one.


class Reading(np.ndarray):
    """A subclass of arrays."""


def unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 3, np.uint8)
    result = memory[3:].view(array.dtype).reshape(array.shape)
    result[...] = array
    assert not result.flags.aligned or array.size == 0
    return result


def every_second(array: Array) -> Array:
    wide = np.full(tuple(2 * n for n in array.shape), np.nan, array.dtype)
    part = wide[tuple(slice(None, None, 2) for _ in array.shape)]
    part[...] = array
    return part


def read_only(array: Array) -> Array:
    result = array.copy()
    result.flags.writeable = False
    return result


def in_a_record(array: Array) -> Array:
    record = np.zeros(array.shape, [("tag", np.int8), ("x", array.dtype)])
    record["x"] = array
    return record["x"]


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "Fortran order": np.asfortranarray,
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "every second": every_second,
    "unaligned": unaligned,
    "in a record": in_a_record,
    "swapped bytes": lambda a: a.astype(a.dtype.newbyteorder("S")),
    "read-only": read_only,
    "subclass": lambda a: a.copy().view(Reading),
    "list": lambda a: a.tolist(),
    "transposed": lambda a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    "buffer": lambda a: memoryview(np.ascontiguousarray(a)),
    "longdouble": lambda a: a.astype(np.longdouble),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
@pytest.mark.parametrize("count", [1, 9])
def test_every_layout(
    formulas: dict[str, Program], draw: Draw, name: str, layout: str, count: int
):
    program = formulas[name]
    kernel = compile(program)
    inputs = draw(program, (count,))
    wanted = kernel(*inputs)
    exactly_all(_tuple(kernel(*map(LAYOUTS[layout], inputs))), _tuple(wanted))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_one_row(arm: Program, draw: Draw, layout: str):
    kernel = compile(arm)
    (q,) = draw(arm, ())
    wanted = kernel(q)
    exactly(wanted, kernel(q[None])[0])
    exactly(kernel(LAYOUTS[layout](q)), wanted)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
def test_core_dimensions_in_any_order(many: Program, draw: Draw, axes: tuple[int, ...]):
    kernel = compile(many)
    a, b, m = draw(many, (5,))
    wanted = kernel(a, b, m)
    shuffled = m.transpose(axes).copy().transpose(np.argsort(axes))
    exactly_all(kernel(a, b, shuffled), wanted)
    out = tuple(
        np.full_like(array.T, np.nan).T if array.ndim < 4 else every_second(array)
        for array in wanted
    )
    exactly_all(kernel(a, b, m, out=out), wanted)


def exactly_all(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        exactly(one, other)


def test_zero_strides(many: Program, draw: Draw):
    a, b, m = draw(many, ())
    kernel = compile(many)
    wide = [np.broadcast_to(x, (6, *x.shape)) for x in (a, b, m)]
    single = kernel(a, b, m)
    for found, one in zip(kernel(*wide), single, strict=True):
        exactly(found, np.broadcast_to(one, found.shape))
    # Also within a row.
    flat = np.broadcast_to(np.float64(0.7), (3,))
    exactly_all(kernel(flat, b, m), kernel(flat.copy(), b, m))


@pytest.mark.parametrize(
    "batches",
    [
        ((), (4,), (4,)),
        ((3, 1), (1, 5), (5,)),
        ((1,), (), (7,)),
        ((2, 1, 3), (4, 1), ()),
        ((0,), (1,), ()),
        ((1, 0), (5, 1), (1,)),
    ],
    ids=str,
)
def test_inputs_broadcast(many: Program, draw: Draw, batches: Any):
    inputs = draw(many, *batches)
    batch = np.broadcast_shapes(*batches)
    kernel = compile(many)
    results = kernel(*inputs)
    wanted = interpret(many, *inputs)
    for result, expected, port in zip(results, wanted, many.outputs, strict=True):
        assert result.shape == (*batch, *port.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)
    wide = [
        np.broadcast_to(x, (*batch, *port.shape)).copy()
        for x, port in zip(inputs, many.inputs, strict=True)
    ]
    exactly_all(results, kernel(*wide))


def test_inputs_are_not_changed(formulas: dict[str, Program], draw: Draw):
    for program in formulas.values():
        inputs = draw(program, (6,))
        kept = [array.copy() for array in inputs]
        compile(program)(*inputs)
        exactly_all(inputs, kept)


# Types.


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int64, np.float16, np.bool_])
def test_other_numbers_are_converted(arm: Program, kind: type):
    q = np.array([[0, 1, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 1, 1]], kind)
    exactly(compile(arm)(q), compile(arm)(q.astype(np.float64)))


def test_python_numbers(track: Program):
    kernel = compile(track)
    for s in (4, 4.0, np.float64(4.0), np.array(4), True + 3, np.int8(4)):
        x, y = kernel(s)
        assert x.shape == y.shape == ()
        exactly_all((x, y), kernel(np.array(4.0)))


def test_float32_kernels(formulas: dict[str, Program], draw: Draw):
    for program in formulas.values():
        kernel = compile(program, dtype=np.float32)
        assert kernel.lanes >= compile(program).lanes
        inputs = [array.astype(np.float32) for array in draw(program, (11,))]
        wanted = interpret(program, *inputs)
        for result, expected in zip(
            _tuple(kernel(*inputs)), _tuple(wanted), strict=True
        ):
            assert result.dtype == np.float32
            np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4)
        exactly_all(  # float64 is converted
            _tuple(kernel(*(x.astype(np.float64) for x in inputs))),
            _tuple(kernel(*inputs)),
        )


def _tuple(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("dtype", ["f8", "<f4" if sys.byteorder == "little" else ">f4"])
def test_dtype_in_any_words(track: Program, dtype: str):
    assert compile(track, dtype=dtype).dtype is np.dtype(dtype)


@pytest.mark.parametrize(
    ("dtype", "said"),
    [
        (np.int64, "float64 or float32, not in int64"),
        ("f2", "not in float16"),
        (np.dtype("f8").newbyteorder("S"), "float64 or float32, not in "),
        (complex, "not in complex128"),
        ("real", "'real' is not a dtype"),
    ],
)
def test_other_types_have_no_kernel(track: Program, dtype: Any, said: str):
    with pytest.raises(KernelError, match=said):
        compile(track, dtype=dtype)
    with pytest.raises(KernelError, match=said):
        shared_kernel(track, dtype=dtype)


@pytest.mark.parametrize("lanes", [0, 3, -4, 32, "4"])
def test_lanes_are_a_power_of_two(track: Program, lanes: Any):
    with pytest.raises(KernelError, match=r"must be one of \(1, 2, 4, 8, 16\)"):
        compile(track, lanes=lanes)


# out=


def test_out_is_returned(arm: Program, draw: Draw):
    (q,) = draw(arm, (5,))
    kernel = compile(arm)
    out = np.full((5, 4, 4), np.nan)
    assert kernel(q, out=out) is out
    exactly(out, kernel(q))
    out[:] = np.nan
    assert kernel(q, out=(out,)) is out
    exactly(out, kernel(q))


@pytest.mark.parametrize(
    "layout",
    [
        "Fortran order",
        "every second",
        "unaligned",
        "reversed",
        "subclass",
        "in a record",
    ],
)
@pytest.mark.parametrize("batch", [(), (1,), (3,), (4,), (9,)], ids=str)
def test_out_of_every_layout(
    arm: Program, draw: Draw, layout: str, batch: tuple[int, ...]
):
    (q,) = draw(arm, batch)
    kernel = compile(arm)
    out = LAYOUTS[layout](np.full((*batch, 4, 4), np.nan))
    assert kernel(q, out=out) is out
    np.testing.assert_array_equal(out, kernel(q))


def test_out_leaves_its_surroundings_alone(arm: Program, draw: Draw):
    (q,) = draw(arm, (6,))
    around = np.full((8, 6, 6), -7.0)
    compile(arm)(q, out=around[1:7, 1:5, 1:5])
    exactly(around[1:7, 1:5, 1:5], compile(arm)(q))
    around[1:7, 1:5, 1:5] = -7.0
    assert (around == -7.0).all()


def test_out_for_several_outputs(many: Program, draw: Draw):
    kernel = compile(many)
    inputs = draw(many, (4,))
    wanted = kernel(*inputs)
    out = tuple(np.full_like(array, np.nan) for array in wanted)
    results = kernel(*inputs, out=out)
    assert all(a is b for a, b in zip(results, out, strict=True))
    exactly_all(out, wanted)
    # None stands for a new array.
    first = np.full_like(wanted[0], np.nan)
    results = kernel(*inputs, out=(first, None, None, None, None))
    assert results[0] is first
    exactly_all(results, wanted)


@pytest.mark.parametrize("name", ["rolled", "long"])
@pytest.mark.parametrize("rows", [1, 3, 4, 21])
def test_out_may_share_memory_with_the_input(long: Program, name: str, rows: int):
    rolled = trace(lambda q: [q[3] + 1, q[0], q[1] * q[2], q[2]], q=(4,))
    program = {"rolled": rolled, "long": long}[name]
    kernel = compile(program)
    memory = np.random.default_rng(3).uniform(-1, 1, (rows + 2, 4))
    for given, wanted in [
        (slice(0, rows), slice(0, rows)),
        (slice(0, rows), slice(1, rows + 1)),
        (slice(1, rows + 1), slice(0, rows)),
        (slice(0, rows), slice(rows - 1, None, -1)),
    ]:
        there = memory.copy()
        kernel(there[given], out=there[wanted])
        exactly(there[wanted], kernel(memory[given]))
    there = memory[:rows].copy()
    kernel(there, out=there[:, ::-1])
    exactly(there[:, ::-1], kernel(memory[:rows]))


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (
            np.empty((3, 4, 4)),
            r"writes pose of shape \(2, 4, 4\); out= has shape "
            r"\(3, 4, 4\)\.",
        ),
        (np.empty((4, 4)), r"out= has shape \(4, 4\)"),
        (
            np.empty((2, 4, 4), np.float32),
            "writes float64 to out=, which is an array of float32",
        ),
        (np.empty((2, 4, 4), np.dtype("f8").newbyteorder("S")), "which is an array of"),
        (np.broadcast_to(1.0, (2, 4, 4)), "the array is read-only"),
        ([[0.0]], "must be an array, not list"),
        ((), r"'arm' has 1 outputs \(pose\); out= must hold an array for each, .* 0\."),
        ((None, None), r"'arm' has 1 outputs \(pose\); .* and holds 2\."),
    ],
)
def test_bad_out(arm: Program, draw: Draw, out: Any, said: str):
    (q,) = draw(arm, (2,))
    with pytest.raises(ShapeError, match=said):
        compile(arm)(q, out=out)


def test_bad_out_for_several_outputs(track: Program):
    with pytest.raises(
        ShapeError, match=r"'track' has 2 outputs \(x, y\); .* holds 1\."
    ):
        compile(track)([1.0], out=np.empty(1))


# Numbers that are none, and branches that are not taken.


def test_nothing_warns(track: Program):
    hazards = trace(
        lambda q: [1 / q[0], np.sqrt(q[1]), np.log(q[0] * 0), q[0] * 1e308 * 1e308],
        name="hazards",
        q=(2,),
    )
    q = np.array([[0.0, -1.0], [1.0, np.nan], [np.inf, -np.inf], [5e-324, 1e308]] * 2)
    for kind in ("float64", "float32"):
        kernel = compile(hazards, dtype=kind)
        with warnings.catch_warnings(), np.errstate(all="raise"):
            warnings.simplefilter("error")
            rows = (
                q.astype(kind) if kind == "float64" else np.float32([[0, -1], [1, 2]])
            )
            kernel(rows)
            kernel(rows[0])
            kernel(rows.tolist())
    assert np.isinf(compile(hazards)(q)[0, 0])


def test_the_error_state_of_numpy_is_left_alone(arm: Program):
    with np.errstate(divide="raise", over="call", call=print):
        before = np.geterr()
        compile(arm)(np.full((3, 7), np.inf))
        assert np.geterr() == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
def test_bad_numbers_stay_in_their_row(
    formulas: dict[str, Program], draw: Draw, name: str, bad: float
):
    program = formulas[name]
    kernel = compile(program)
    inputs = draw(program, (10,))
    wanted = _tuple(kernel(*inputs))
    for row in range(10):
        spoilt = [array.copy() for array in inputs]
        for array in spoilt:
            array[row] = bad
        results = _tuple(kernel(*spoilt))
        others = np.arange(10) != row
        for result, expected in zip(results, wanted, strict=True):
            exactly(result[others], expected[others])
        references = zip(results, _tuple(interpret(program, *spoilt)), strict=True)
        for result, reference in references:
            exactly(np.isnan(result[row]), np.isnan(reference[row]))


def test_comparisons_with_nan_are_false():
    def compare(q: Any) -> list[Any]:
        x, y = q
        answers = [x < y, x <= y, x == y, x != y, (x < y) | (x > y), (x <= y) & (y < 9)]
        return [np.where(answer, 1.0, 0.0) for answer in answers]

    program = trace(compare, q=(2,))
    numbers = [np.nan, -np.inf, -1.0, 0.0, 1.0, np.inf]
    q = np.array([[x, y] for x in numbers for y in numbers])
    for lanes in (1, 2, 4):
        exactly(compile(program, lanes=lanes)(q), interpret(program, q))
    exactly(vectorize(program, q), interpret(program, q))
    exactly(interpret(program, [np.nan, 1.0]), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))


@pytest.mark.parametrize("joint", range(7))
def test_nan_reaches_what_depends_on_it_and_nothing_else(arm: Program, joint: int):
    q = np.linspace(-1, 1, 7)
    known = compile(arm)(q)
    q[joint] = np.nan
    pose = compile(arm)(q)
    exactly(np.isnan(pose), np.isnan(interpret(arm, q)))
    exactly(pose[3], np.array([0.0, 0.0, 0.0, 1.0]))
    exactly(pose[~np.isnan(pose)], known[~np.isnan(pose)])


# Arrays of size 0, constants, inputs that are passed on.


def test_robot_without_joints():
    kernel = compile(trace(lambda q: np.eye(4) * 2.0, name="fixed", q=(0,)))
    exactly(kernel(np.zeros(0)), 2.0 * np.eye(4))
    exactly(kernel([]), 2.0 * np.eye(4))
    exactly(kernel(np.zeros((3, 2, 0))), np.broadcast_to(2.0 * np.eye(4), (3, 2, 4, 4)))
    assert kernel(np.zeros((0, 0))).shape == (0, 4, 4)
    out = np.empty((5, 4, 4))
    assert kernel(np.zeros((5, 0)), out=out) is out
    exactly(out[4], 2.0 * np.eye(4))
    with pytest.raises(ShapeError, match=r"q of shape \(\.\.\., 0\)"):
        kernel(np.zeros(1))


def test_jacobian_without_columns():
    kernel = compile(trace(lambda q: np.zeros((6, 0)), name="jacobian", q=(3,)))
    assert kernel(np.zeros(3)).shape == (6, 0)
    assert kernel(np.zeros((2, 3))).shape == (2, 6, 0)
    out = np.empty((2, 6, 0))
    assert kernel(np.zeros((2, 3)), out=out) is out


def test_empty_arrays_among_others():
    def function(none: Any, q: Any, nothing: Any) -> Any:
        return q * 2, np.zeros((2, 0)), [1.0, q[0]]

    names = ["twice", "empty", "some"]
    program = trace(function, none=(0, 3), q=(2,), nothing=(0,), outputs=names)
    kernel = compile(program)
    q = np.arange(6.0).reshape(3, 2)
    # The batch may be known from an empty array alone.
    for inputs in (
        (np.zeros((0, 3)), q, np.zeros(0)),
        (np.zeros((5, 1, 0, 3)), q, np.zeros((3, 0))),
        (np.zeros((4, 0, 3)), q[0], np.zeros((1, 0))),
    ):
        exactly_all(kernel(*inputs), vectorize(program, *inputs))
        exactly_all(kernel(*inputs), interpret(program, *inputs))


def test_program_without_inputs():
    kernel = compile(trace(lambda: [1.0, 2.5], name="numbers"))
    exactly(kernel(), np.array([1.0, 2.5]))
    assert str(inspect.signature(kernel)) == "(*, out=None, threads=None)"


def test_program_without_outputs():
    kernel = compile(trace(lambda q: (), name="silent", q=(2,), outputs=()))
    assert kernel([1.0, 2.0]) == ()
    with pytest.raises(ShapeError):
        kernel([1.0])


def test_constants_and_inputs_as_outputs():
    program = trace(
        lambda q: (q, q[::-1], np.full((5,), 3.5)), q=(5,), outputs=list("abc")
    )
    for lanes in (1, 2, 4, 8):
        q = np.random.default_rng(0).normal(size=(lanes + 1, 5))
        same, back, fixed = compile(program, lanes=lanes)(q)
        exactly(same, q)
        exactly(back, q[:, ::-1])
        exactly(fixed, np.full(q.shape, 3.5))


def test_special_constants():
    numbers = [np.nan, np.inf, -np.inf, 5e-324, 1e308, -1e-310, 0.1]
    program = trace(lambda q: numbers, q=(1,))
    exactly(compile(program)(np.zeros((9, 1)))[8], np.array(numbers))
    single = compile(program, dtype=np.float32)(np.zeros(1, np.float32))
    with np.errstate(over="ignore"):
        exactly(single, np.array(numbers, np.float32))


@pytest.mark.thorough
def test_large_outputs():
    links = trace(
        lambda q: np.array(
            [[[k * q[0] + i] * 4 for i in range(4)] for k in range(500)]
        ),
        name="links",
        q=(2,),
    )
    q = np.random.default_rng(0).normal(size=(5, 2))
    wanted = np.empty((5, 500, 4, 4))
    wanted[...] = (q[:, :1] * np.arange(500))[..., None, None] + np.arange(4)[:, None]
    kernel = compile(links)
    np.testing.assert_allclose(kernel(q), wanted, rtol=1e-15)
    np.testing.assert_allclose(kernel(q[0]), wanted[0], rtol=1e-15)


# What a kernel says of itself, and where it can be sent.


def test_repr(many: Program):
    kernel = compile(many, dtype="f4", lanes=4)
    text = "<kernel many (3),(),(2,3)->(2),(),(3,2,2),(3),(2) float32 x4>"
    assert repr(kernel) == text


def test_signature_and_help(arm: Program, many: Program):
    assert str(inspect.signature(compile(arm))) == "(q, /, *, out=None, threads=None)"
    signature = "(a, b, m, /, *, out=None, threads=None)"
    assert str(inspect.signature(compile(many))) == signature
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        help(compile(arm))
    text = shown.getvalue()
    assert "Kernel(q, /, *, out=None, threads=None)" in text
    assert "q of shape (..., 7)" in text
    assert "pose of shape (..., 4, 4)" in text
    assert "threads" in text


def test_signature_of_odd_names():
    program = trace(lambda *a: a[0], name="a\0b\ud800", **{"out": (), "class": ()})
    kernel = compile(program)
    assert str(inspect.signature(kernel)).startswith("(input0, input1, /")
    assert kernel(1.5, 2.0) == 1.5
    assert kernel([1.5], 2.0) == 1.5


@pytest.mark.parametrize("name", ["arm", "many"])
def test_pickle(formulas: dict[str, Program], draw: Draw, name: str):
    program = formulas[name]
    for options in ({}, {"dtype": "f4"}, {"lanes": 2}, {"dtype": "f4", "lanes": 1}):
        kernel = compile(program, **options)
        again = pickle.loads(pickle.dumps(kernel))
        assert (again.dtype, again.lanes) == (kernel.dtype, kernel.lanes)
        assert again.program == program
        inputs = draw(program, (5,))
        exactly_all(_tuple(again(*inputs)), _tuple(kernel(*inputs)))


def test_pickles_of_equal_kernels_share_code(arm: Program):
    data = pickle.dumps(shared_kernel(arm))
    assert pickle.loads(data) is pickle.loads(data) is shared_kernel(arm)


def test_copies_are_the_kernel_itself(arm: Program, many: Program):
    for kernel in (compile(arm), compile(many)):
        assert copy.copy(kernel) is kernel
        assert copy.deepcopy([kernel])[0] is kernel


def test_kernels_do_not_change(arm: Program):
    kernel = compile(arm)
    for name in ("program", "dtype", "lanes", "other"):
        with pytest.raises(AttributeError):
            setattr(kernel, name, None)


def test_equal_programs_share_a_kernel(arm: Program):
    again = trace(lambda q: q * 2.0, name="twice", q=(3,))
    also = trace(lambda q: q * 2.0, name="twice", q=(3,))
    assert again is not also
    assert shared_kernel(again) is shared_kernel(also)
    assert shared_kernel(again, dtype=np.float64) is shared_kernel(also)
    assert shared_kernel(again, dtype=np.float32) is not shared_kernel(also)
    assert shared_kernel(arm) is not shared_kernel(also)
    assert isinstance(shared_kernel(arm), Kernel)


def test_threads_that_want_one_kernel_get_the_same():
    program = trace(lambda q: np.exp(q) * 3.25, name="shared by threads", q=(3,))
    barrier = threading.Barrier(8)
    found: list[Kernel] = []

    def ask() -> None:
        barrier.wait()
        found.append(shared_kernel(program))

    workers = [threading.Thread(target=ask) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


NARROW = """
import sys
import numpy as np
from armillary.kernel import compile, vectorize
from armillary.trace import trace

def function(q, s):
    x = np.sin(q[0]) * q[1] if q[0] < s else np.arctan2(q[1], q[2])
    return [[x, q[2]], [np.exp(s), 1.0]]

program = trace(function, name="narrow", q=(3,), s=())
random = np.random.default_rng(0)
for dtype in ("f8", "f4"):
    kernel = compile(program, dtype=dtype)
    assert kernel.lanes == max(1, int(sys.argv[1]) // (8 * kernel.dtype.itemsize))
    for count in (1, 2, 3, 4, 5, 9, 17):
        q = random.uniform(-2, 2, (count, 3)).astype(dtype)
        s = random.uniform(-2, 2, count).astype(dtype)
        wanted = vectorize(program, q, s)
        assert np.allclose(kernel(q, s), wanted, rtol=1e-5, atol=1e-6)
        assert np.array_equal(kernel(q, s)[0], kernel(q[0], s[0]))
        assert np.array_equal(kernel(q[::-1], s[::-1])[::-1], kernel(q, s))
print("agreed")
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bits", ["64", "128", "256", "512"])
def test_registers_of_other_widths(bits: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_VECTOR_BITS", bits)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NARROW, bits],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "agreed\n"), done.stderr
