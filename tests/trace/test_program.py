from __future__ import annotations

import functools
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import (
    Instruction,
    Interval,
    Op,
    Port,
    Program,
    evaluate,
    listing,
    trace,
)
from armillary.trace import functions as f
from programs import enclose, verify


def planar(q, length):
    """Position and rotation of the tip of a planar arm with two joints."""
    a, b = q[0], q[0] + q[1]
    x = length * f.cos(a) + 0.5 * f.cos(b)
    y = length * f.sin(a) + 0.5 * f.sin(b)
    return [x, y], [[f.cos(b), -f.sin(b)], [f.sin(b), f.cos(b)]]


@pytest.fixture
def program() -> Program:
    return trace(planar, outputs=("tip", "turn"), q=(2,), length=())


def oval(q):
    straight, radius = 3.0, 1.0
    s = q % (2 * straight + 2 * math.pi * radius)
    if s < straight:
        return s, -radius
    s = s - straight
    if s < math.pi * radius:
        return straight + radius * np.sin(s / radius), -radius * np.cos(s / radius)
    s = s - math.pi * radius
    if s < straight:
        return straight - s, radius
    s = s - straight
    return -radius * np.sin(s / radius), radius * np.cos(s / radius)


def test_listings(program: Program, golden):
    track = trace(oval, outputs=("x", "y"), q=())
    odd = trace(
        lambda a, b: [a[1, 0] if b > 0 else math.nan, 1e-30 * b, 2.0],
        name="odd",
        a=(2, 2),
        b=(),
    )
    empty = trace(lambda: [], name="empty")
    texts = [listing(each) for each in (program, track, odd, empty)]
    golden("trace/listings.txt", "\n\n".join(texts) + "\n")
    assert str(program) == texts[0]


def test_inputs_and_outputs_have_names_and_shapes(program: Program):
    verify(program)
    assert program.name == "planar"
    assert program.inputs == (Port("q", (2,)), Port("length", ()))
    assert program.outputs == (Port("tip", (2,)), Port("turn", (2, 2)))
    assert [port.size for port in program.outputs] == [2, 4]
    expected = planar([0.3, 0.4], 1.5)
    flat = [*expected[0], *expected[1][0], *expected[1][1]]
    assert evaluate(program, [0.3, 0.4, 1.5]) == pytest.approx(flat, rel=1e-15)


def test_only_what_is_needed_is_kept():
    def wasteful(x, y):
        f.sin(x) * 7 + f.exp(y)
        return x + 1

    program = trace(wasteful, x=(), y=())
    assert [step.name for step in program.instructions] == ["input", "const", "add"]
    assert program.operation_count == 1
    assert len(program.inputs) == 2


def test_shapes_of_arguments():
    seen = []

    def formula(scalar, vector, matrix, none):
        seen.append([np.shape(x) for x in (vector, matrix, none)])
        assert not isinstance(scalar, np.ndarray)
        return scalar + vector[2] + matrix[1, 0] + none.sum()

    program = trace(formula, scalar=(), vector=(3,), matrix=(2, 2), none=(0,))
    assert seen == [[(3,), (2, 2), (0,)]]
    assert evaluate(program, [1.0, *(0.0, 0.0, 10.0), *(0.0, 0.0, 100.0, 0.0)]) == [
        111.0
    ]


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (1.0, ()),
        (np.float32(1.0), ()),
        (True, ()),
        (np.array(1.0), ()),
        ([], (0,)),
        ([1, 2.0, np.True_], (3,)),
        (np.eye(3), (3, 3)),
        ([np.ones(2), (1, 2)], (2, 2)),
        ([np.array(1.0), 2.0], (2,)),
        (np.zeros((2, 0)), (2, 0)),
    ],
)
def test_shapes_of_results(value, shape):
    program = trace(lambda: value)
    assert program.outputs == (Port("result", shape),)
    expected = np.asarray(value, dtype=float).ravel().tolist()
    assert evaluate(program, []) == expected


WRONG = {
    "NoneType None where a number": None,
    "str 'x' where a number": ["x"],
    "complex 1j where a number": 1j,
    "dict {.*} where a number": {"x": 1.0},
    "rows of unequal length": [[1.0], [1.0, 2.0]],
    "rows of unequal length ": [1.0, [2.0]],
    "object <object": object(),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_not_a_number_cannot_be_returned(message: str):
    with pytest.raises(
        TraceError, match=rf"test_program\.py:\d+: 'f' returns {message.strip()}"
    ):
        trace(lambda: WRONG[message], name="f")


def test_as_many_outputs_as_announced():
    for values, count in (((1.0,), "1 values"), ((1.0,) * 3, "3 values"), (2.0, "one")):
        message = rf"'f' returns {count}.* where 2 were announced: a, b\."
        with pytest.raises(TraceError, match=message):
            trace(lambda values=values: values, name="f", outputs=("a", "b"))
    with pytest.raises(TraceError, match="'f' returns one number where 2"):
        trace(lambda q: q, name="f", outputs=("a", "b"), q=())
    assert trace(lambda: 1.0, outputs="whole").outputs == (Port("whole", ()),)
    assert trace(lambda: (), outputs=()).outputs == ()


def test_names_of_functions():
    assert trace(functools.partial(oval, 1.0), outputs="xy"[:1]).name == "function"
    assert trace(oval, name="track", q=()).name == "track"


def test_a_program_is_a_value(program: Program):
    again = trace(planar, outputs=("tip", "turn"), q=(2,), length=())
    assert again == program
    assert hash(again) == hash(program)
    assert {program: 1}[again] == 1
    with pytest.raises(FrozenInstanceError):
        program.name = "other"  # type: ignore[misc]


def test_a_program_can_be_pickled(program: Program):
    for fresh in (True, False):
        if not fresh:
            assert program.fingerprint
        copy = pickle.loads(pickle.dumps(program))
        assert copy == program
        assert hash(copy) == hash(program)
        assert copy.fingerprint == program.fingerprint


def test_the_fingerprint_is_of_what_is_computed(program: Program):
    assert replace(program, name="other").fingerprint == program.fingerprint
    assert replace(program, name="other") != program
    assert len(program.fingerprint) == 64
    steps = program.instructions
    changes = [
        {"inputs": (Port("p", (2,)), program.inputs[1])},
        {"inputs": (Port("q", (1, 2)), program.inputs[1])},
        {"outputs": (Port("tip", (2,)), Port("turn", (4,)))},
        {"inputs": (*program.inputs, Port("more", ()))},
        {"results": program.results[::-1]},
        {"instructions": (*steps, Instruction("const", value=1.0))},
        {"instructions": (*steps, Instruction("const", value=1.0 + 2.0**-52))},
        {"instructions": (*steps, Instruction("const", value=1.0, kind="truth"))},
        {"instructions": (*steps, Instruction("neg", (0,)))},
        {"instructions": (*steps, Instruction("neg", (1,)))},
    ]
    prints = {replace(program, **change).fingerprint for change in changes}
    assert len(prints | {program.fingerprint}) == len(changes) + 1


def test_an_output_is_not_an_input():
    steps = (Instruction("input"),)
    first = Program("p", (Port("x", ()), Port("y", ())), (Port("z", ()),), steps, (0,))
    second = Program("p", (Port("x", ()),), (Port("y", ()), Port("z", ())), steps, (0,))
    assert first.fingerprint != second.fingerprint


def test_the_fingerprint_does_not_depend_on_the_process():
    program = trace(lambda x: f.sin(x) + math.nan, x=())
    expected = "35dfdc5b"
    assert program.fingerprint[:8] == expected


def test_a_program_records_itself_again(program: Program):
    again = trace(
        lambda q, length: np.reshape(evaluate(program, [*q, length])[2:], (2, 2)),
        q=(2,),
        length=(),
    )
    expected = evaluate(program, [0.3, 0.4, 1.5])[2:]
    assert evaluate(again, [0.3, 0.4, 1.5]) == expected
    whole = trace(lambda *args: evaluate(program, args), a=(), b=(), length=())
    assert whole.instructions == program.instructions


def test_evaluation_with_another_meaning(program: Program):
    q = np.linspace(-3.0, 3.0, 5)

    def on_arrays(thing):
        return thing.on_arrays if isinstance(thing, Op) else thing

    columns = evaluate(program, [q, q + 1, np.full(5, 2.0)], on_arrays)
    rows = [evaluate(program, [x, x + 1, 2.0]) for x in q.tolist()]
    np.testing.assert_allclose(np.transpose(columns), rows, rtol=1e-14, atol=1e-15)

    depths = evaluate(
        program,
        [0, 0, 0],
        lambda thing: (lambda *args: 1 + max(args)) if isinstance(thing, Op) else 0,
    )
    assert depths[:2] == [4, 4]


def test_enclosures_hold_and_are_tight_enough(program: Program):
    rng = np.random.default_rng(5)
    for _ in range(50):
        middle, half = rng.uniform(-3, 3, 3), 10.0 ** rng.uniform(-6, 0, 3)
        ranges = [Interval(m - h, m + h) for m, h in zip(middle, half, strict=True)]
        enclosures = enclose(program, ranges)
        for _ in range(20):
            point = rng.uniform(middle - half, middle + half)
            for x, enclosure in zip(evaluate(program, point), enclosures, strict=True):
                assert enclosure.contains(x)
        assert max(x.width for x in enclosures) < 12.0 * max(half) + 1e-12
        assert not any(x.undefined for x in enclosures)


def test_equal_ranges_are_not_equal_numbers():
    program = trace(lambda x, y: [x * y, x * x], x=(), y=())
    same = Interval(-1.0, 1.0)
    product, square = enclose(program, [same, same])
    assert product.low <= -1.0
    assert square.low == 0.0


def test_the_seam_of_a_track_is_enclosed():
    program = trace(lambda q: q % 2.0, q=())
    assert enclose(program, [Interval(0.5, 1.5)])[0] == Interval(0.5, 1.5)
    (whole,) = enclose(program, [Interval(-math.inf, math.inf)])
    assert (whole.low, whole.high) == (-2.0, pytest.approx(4.0))


def test_a_comparison_with_what_may_be_undefined_may_be_false():
    program = trace(lambda q: 1.0 if f.sqrt(q) < 9.0 else 2.0, q=())
    assert enclose(program, [Interval(-1.0, 4.0)]) == [Interval(1.0, 2.0)]
    assert enclose(program, [Interval(0.0, 4.0)]) == [Interval(1.0, 1.0)]
    assert evaluate(program, [-1.0]) == [2.0]


def test_constants_that_are_not_number_are_enclosed():
    (enclosure,) = enclose(trace(lambda: math.nan), [])
    assert enclosure.undefined


# Pickles.


def test_instructions_are_unpacked_when_they_are_asked_for():
    def formula(x):
        return [x * math.nan, x - math.inf, x + 0.1, -0.0, x > 0.5]

    made = trace(formula, x=())
    again = pickle.loads(pickle.dumps(made))
    assert "instructions" not in vars(again)
    assert again == made
    assert (again.length, again.operation_count) == (made.length, made.operation_count)
    assert "instructions" not in vars(again)
    steps, expected = again.instructions, made.instructions
    assert [(s.name, s.args, s.kind) for s in steps] == [
        (s.name, s.args, s.kind) for s in expected
    ]
    assert [s.value.hex() for s in steps] == [s.value.hex() for s in expected]
    assert all(isinstance(step, Instruction) for step in steps)
    assert replace(again, name="g").instructions == again.instructions
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        again.nothing  # noqa: B018


def test_pickles_of_equal_programs_are_equal():
    """So they may stand in keys, whatever was asked of either before."""

    def formula(x):
        return x * x + 1.0

    one, other = trace(formula, x=()), trace(formula, x=())
    one.fingerprint  # noqa: B018
    assert pickle.dumps(one) == pickle.dumps(other)
    assert pickle.dumps(pickle.loads(pickle.dumps(one))) == pickle.dumps(other)
