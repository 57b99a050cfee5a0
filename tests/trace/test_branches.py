from __future__ import annotations

import functools
import itertools
import math
import random
import re

import numpy as np
import pytest

from armillary.errors import JointError, TraceError
from armillary.trace import OPS, evaluate, trace
from armillary.trace import branches as paths
from armillary.trace import functions as f
from armillary.trace.contradiction import is_contradiction
from armillary.trace.tape import Tape
from programs import verify

GRID = [-7.5, -3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, math.nan]


def elif_chain(q):
    if q < 0:
        return -1.0 - q
    elif q < 1:
        return q * q
    elif q == 2:
        return 7.0
    else:
        return f.sqrt(q)


def chained(q):
    return 1.0 if 0 <= q < 2 else 2.0


def reversed_chain(q):
    return 1.0 if 2 > q >= 0 else 2.0


def logic(q):
    if (q > 0 and q < 2) or not q < 3:
        return q
    return -q if q or q > 1 else 5.0


def truth_of_number(q):
    return 3.0 if not q else q  # noqa: SIM212


def bounded_while(q):
    count = 0
    while count < 6 and q > 1:
        q, count = q / 2, count + 1
    return q + count


def bounded_for(q):
    total = 0.0
    for k in range(4):
        if q > k:
            total = total + q - k
        if total > 5:
            break
    else:
        total = total + 100.0
    return total


def early_return(q):
    for k in range(4):
        if q < k:
            return k
        if q == k:
            continue
        q = q - 0.125
    return q


def nested(q):
    def inner(x, depth=0):
        if depth > 2 or x < 1:
            return x

        def innermost(y):
            return y if y < 3 else 2 * y

        return innermost(x) + inner(x - 5, depth + 1)

    return inner(q)


def conditional_expressions(q):
    return (q if q > 0 else -q) + (1.0 if q > 1 else 2.0) * (3.0 if q > 0 else 4.0)


def builtins(q):
    values = [q, 1.0, -q]
    return (
        max(values) + 10 * min(values) + 100 * sorted(values)[1] + 1e3 * (q in values)
    )


def membership(q):
    return 1.0 if q in (1.0, 2.0, 3.0) else 2.0 if q not in [4.0] else 3.0


def comprehension(q):
    return sum(q - k for k in range(5) if q > k) + sum(x * x for x in [q, 1.0] if x)


def any_and_all(q):
    return 1.0 * any(q > k for k in (1, 3)) + 2.0 * all(q > k for k in (-1, 0))


def index_by_truth(q):
    return [10.0, 20.0][q > 1] + (30.0, 40.0)[q > 2]


def matched(q):
    match q:
        case 1.0:
            return 5.0
        case 2.0 | 3.0:
            return 6.0
        case _:
            return q


def oval(q, straight=3.0, radius=1.0):
    """The track of the design: two straights and two half circles."""
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


FORMULAS = [
    elif_chain,
    chained,
    reversed_chain,
    logic,
    truth_of_number,
    bounded_while,
    bounded_for,
    early_return,
    nested,
    conditional_expressions,
    builtins,
    membership,
    comprehension,
    any_and_all,
    index_by_truth,
    matched,
    oval,
]


@pytest.mark.parametrize("function", FORMULAS, ids=lambda x: x.__name__)
def test_branches_do_what_they_do_on_numbers(function):
    program = trace(function, q=())
    verify(program)
    for q in GRID:
        if math.isnan(q) and function is builtins:  # NaN has no order to sort by
            continue
        expected = np.ravel(np.asarray(function(q), dtype=float))
        np.testing.assert_allclose(evaluate(program, [q]), expected, rtol=1e-14)


def test_branches_on_two_inputs():
    def quadrant(x, y):
        if x > 0:
            return 1.0 if y > 0 else 4.0
        return 2.0 if y > 0 else 3.0

    program = trace(quadrant, x=(), y=())
    assert program.operation_count == 5
    for x, y in itertools.product((-1.0, 1.0), repeat=2):
        assert evaluate(program, [x, y]) == [quadrant(x, y)]


def test_a_known_answer_is_not_asked_again():
    runs = []

    def formula(q):
        runs.append(q)
        first = q < 0
        return [first and 1.0, not (q < 0), (q < 0) == first, 1.0 if q < 0 else 2.0]

    assert evaluate(trace(formula, q=()), [-1.0]) == [1.0, 0.0, 1.0, 1.0]
    assert len(runs) == 2


def test_both_sides_of_an_inequality_are_one_question():
    runs = []

    def formula(q):
        runs.append(q)
        return (
            (1.0 if q == 0 else 2.0) + (1.0 if q != 0 else 2.0) + (q > 1 and not q <= 1)
        )

    trace(formula, q=())
    assert len(runs) == 6


def test_equal_branches_leave_no_trace():
    assert trace(lambda q: q * 2 if q > 0 else q + q * 1, q=()).operation_count == 4
    assert trace(lambda q: q * 2 if q > 0 else 2 * q, q=()).operation_count == 1


def test_branches_inside_of_branches_of_another_trace():
    def inner(p):
        return p if p > 1 else 1.0

    def outer(q):
        program = trace(inner, p=())
        return evaluate(program, [q])[0] if q > 0 else evaluate(program, [-q])[0]

    program = trace(outer, q=())
    for q in GRID[:-1]:
        assert evaluate(program, [q]) == [max(abs(q), 1.0)]


def test_explorations_of_one_tape_nest_without_multiplying():
    tape = Tape()
    q, runs = tape.input(0), []

    def outer():
        runs.append(1)
        values = [
            paths.explore(tape, lambda k=k: [1.0 if q > k else 2.0], "inner")[0]
            for k in range(20)
        ]
        return [sum(values)] if q > 0 else values[:1]

    paths.explore(tape, outer, "outer")
    assert len(runs) == 2


def here(function, offset: int) -> str:
    """The beginning of a message about a line of a function, as a pattern."""
    first = function.__code__.co_firstlineno
    return f"^{re.escape(__file__)}:{first + offset}: "


def refused(function, offset: int, message: str, **shapes) -> None:
    with pytest.raises(TraceError, match=here(function, offset) + message):
        trace(function, **(shapes or {"q": ()}))


def test_a_loop_that_ends_on_a_traced_value():
    def endless(q):
        while q > 0:
            q = q - 1
        return q

    refused(endless, 1, "'endless' asked for more than 256 answers .* on one path")


def test_a_loop_that_asks_the_same_forever(monkeypatch):
    monkeypatch.setattr(paths, "QUESTION_LIMIT", 1000)

    def stuck(q):
        while q > 0:
            pass
        return q

    refused(stuck, 1, "'stuck' asks for the same answer again and again")


def test_a_loop_that_never_asks(monkeypatch):
    monkeypatch.setattr("armillary.trace.program.Tape", lambda: Tape(limit=1000))

    def growing(q):
        while True:
            q = q * q + 1

    refused(growing, 2, "the trace has more than 1000 operations")


def test_a_recursion_without_end():
    def deeper(q):
        return deeper(q + 1)

    refused(deeper, 1, "'deeper' recurses without end")


def test_too_many_paths():
    runs = 0

    def wide(q):
        nonlocal runs
        runs += 1
        total = 0.0
        if q[0] > 3:
            total = 1.0
        for k in range(10):
            total += 1.0 if q[k] > 0 else 2.0
        return total

    refused(wide, 7, r"'wide' branches .* in more than 512 ways.*numpy\.where", q=(10,))
    assert runs <= 514


def test_answers_that_follow_from_others_make_no_branches():
    """Five thresholds for each of three numbers: 15 questions, 216 paths, not 32768."""
    marks = (-2.0, -0.5, 0.0, 0.5, 2.0)

    def staged(q):
        return [sum(1.0 if x > mark else 0.0 for mark in marks) for x in q]

    program = trace(staged, q=(3,))
    rows = np.random.default_rng(0).choice([*marks, -3.0, -1.0, 0.2, 1.0, 9.0], (40, 3))
    for row in rows.tolist():
        assert evaluate(program, row) == staged(row)
    found = evaluate(program, [math.nan, 1.0, 1.0])
    assert math.isnan(found[0])  # of NaN no threshold tells


def test_as_many_paths_as_allowed():
    def wide(q):
        return sum(1.0 if q[k] > 0 else 2.0 for k in range(9))

    program = trace(wide, q=(9,))
    rng = np.random.default_rng(3)
    for q in rng.normal(size=(20, 9)):
        assert evaluate(program, q.tolist()) == [wide(q)]


def test_an_exception_on_a_branch():
    def picky(q):
        if q > 0 and q > 5:
            raise ValueError("too far")
        return q

    first = picky.__code__.co_firstlineno
    where = re.escape(
        f"the condition at {__file__}:{first + 1} is true and the condition at "
        f"{__file__}:{first + 1} is true. Every branch is run"
    )
    refused(picky, 2, rf"'picky' raised ValueError: too far\. It did so where {where}")


def test_an_exception_without_a_branch():
    def broken(q):
        return [q].pop(1)

    with pytest.raises(TraceError) as caught:
        trace(broken, q=())
    place = f"{__file__}:{broken.__code__.co_firstlineno + 1}"
    message = f"{place}: 'broken' raised IndexError: pop index out of range."
    assert str(caught.value) == message
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_wrong_signature():
    def none():
        return 1.0

    refused(none, 0, r"'none' raised TypeError: .*takes 0 positional arguments")


def test_our_own_errors_pass_through():
    def formula(q):
        raise JointError("this joint is no good")

    with pytest.raises(JointError, match=r"^this joint is no good$"):
        trace(formula, q=())


def test_interrupts_pass_through_and_leave_no_trace():
    def formula(q):
        raise KeyboardInterrupt

    tape = Tape()
    before = tape.decision
    with pytest.raises(KeyboardInterrupt):
        paths.explore(tape, lambda: formula(tape.input(0)), "formula")
    assert tape.decision is before


def test_other_numbers_on_another_run():
    rng = random.Random(1)

    def lucky(q):
        return q if q > rng.random() else 0.0

    refused(lucky, 1, "'lucky' did something else when it was run again")


def test_fewer_questions_on_another_run():
    kept = {}

    def remembers(q):
        if q > 0 and "key" not in kept:
            kept["key"] = 1.0 if q > 1 else 2.0
        return kept.get("key", q)

    refused(remembers, 0, "'remembers' did something else when it was run again")


def test_a_memory_of_calls_is_refused():
    @functools.lru_cache
    def cached(q):
        return q if q > 0 else -q

    def formula(q):
        return cached(q)

    refused(formula, 1, "a traced scalar was used as a key of a dict, set or cache")


@pytest.mark.parametrize(
    ("yes", "no", "shapes"),
    [
        ([1.0, 2.0], [1.0], r"the shape \(2,\) on one branch and \(1,\) on another"),
        ([1.0], 1.0, r"the shape \(1,\) on one branch and \(\) on another"),
        (
            [[1.0, 2.0]],
            [[1.0], [2.0]],
            r"the shape \(1, 2\) .* and \(2, 1\) on another",
        ),
    ],
)
def test_shapes_that_differ_between_branches(yes, no, shapes):
    def formula(q):
        return yes if q > 0 else no

    refused(formula, 0, f"'formula' returns {shapes}; all branches must")


def test_outputs_that_differ_between_branches():
    def formula(q):
        return ([q, q], q) if q > 0 else (q, [q, q])

    with pytest.raises(
        TraceError, match=r"the shape \(2,\) and \(\) on one branch and"
    ):
        trace(formula, outputs=("a", "b"), q=())


def test_what_is_explored_must_return_equally_many_numbers():
    tape = Tape()
    q = tape.input(0)
    with pytest.raises(
        TraceError, match="'f' returns 1 numbers on one branch and 2 on"
    ):
        paths.explore(tape, lambda: [1.0] if q > 0 else [1.0, 2.0], "f")


def test_arguments_are_fresh_on_every_run():
    def mutates(q):
        q += 1.0
        if q[0] > 0:
            q[1] = 5.0
        return q

    program = trace(mutates, q=(2,))
    for q in ((-3.0, 0.5), (1.0, 0.5)):
        assert evaluate(program, q) == mutates(np.array(q)).tolist()


def test_the_line_is_named_even_below_numpy():
    def formula(q):
        return np.vectorize(math.cos)(q)

    refused(formula, 1, "a plain float was asked of a traced scalar", q=(2,))


# What an array of the user's own makes NumPy do: it compares the elements by itself.
OF_OBJECTS = {
    "maximum": lambda q: np.maximum(np.array([q, 1.0]), 0.5),
    "maximum, first": lambda q: np.maximum(0.5, np.array([q, 1.0])),
    "minimum": lambda q: np.minimum(np.array([q, 1.0]), 0.5),
    "clip": lambda q: np.clip(np.array([q, 1.0]), -1, 0.5),
    "largest": lambda q: np.max(np.array([q, 1.0])),
    "smallest": lambda q: np.array([1.0, q]).min(),
    "sort": lambda q: np.sort(np.array([q, 1.0, 2.0]))[1],
    "median": lambda q: np.median(np.array([q, 1.0, 2.0])),
    "sign": lambda q: np.sign(np.array([q])),
    "after it": lambda q: 1.0 / (2.0 + np.maximum(np.array([q, 1.0]), 0.5)),
}


@pytest.mark.parametrize("function", OF_OBJECTS.values(), ids=OF_OBJECTS)
def test_functions_of_object_arrays_give_nan_for_nan(function):
    program = trace(function, q=())
    for q in (-3.0, 0.0, 0.5, 0.7, 1.0, 1.5, 9.0):
        np.testing.assert_allclose(evaluate(program, [q]), np.ravel(function(q)))
    (first, *others) = evaluate(program, [math.nan])
    assert math.isnan(first)
    assert not any(map(math.isnan, others))


def test_a_comparison_written_out_stays_what_it_is():
    def formula(q):
        return [1.0 if q > 0 else 2.0, 1.0 if any([q > 1, q > 2]) else 2.0]

    assert evaluate(trace(formula, q=()), [math.nan]) == [2.0, 2.0]


def _halves(q):
    if q < 0:
        sign = -1.0
    elif q >= 0:
        sign = 1.0
    return sign


def _pieces(q):
    if q < 0:
        return 1.0
    elif q > 2:
        return 2.0
    elif 0 <= q <= 2:
        return 3.0


def _all_of_three(q):
    if q > 0:
        x = 1.0
    if q == 0:
        x = 2.0
    if q < 0:
        x = 3.0
    return x


def _refused(q):
    if q != q:  # noqa: PLR0124
        raise ValueError("q is NaN")
    return 2 * q


def _endless(q):
    while True:
        if q < 1:
            return 0.0
        if q >= 1:
            return 1.0


def _shapeless(q):
    if q < 1:
        return 0.0
    if q >= 1:
        return 1.0
    return [q, q]


def _negated(q):
    if -q > 0:
        x = 1.0
    elif q >= 0:
        x = 2.0
    return x


def _outside(q):
    if abs(q) <= 1:
        return 1.0
    if q > 1:
        return 2.0
    if q < -1:
        return 3.0


def _square_below_zero(q):
    if q * q < 0:
        raise ValueError("cannot be")
    return q


def _wave_above_one(q):
    if np.sin(q) + 3 > 5:
        raise ValueError("cannot be")
    return q


def _at_once(q):
    if np.logical_and(q >= -1, q <= 1):
        return 1.0
    if np.logical_or(q < -1, q > 1):
        return 2.0


def _far_and_near(q):
    if abs(q - 1) > 3 and 0 < q < 2:
        raise ValueError("cannot be")
    return q


NAN_ONLY = [_halves, _pieces, _all_of_three, _refused, _endless, _shapeless]
NAN_ONLY += [_negated, _outside, _at_once]
IMPOSSIBLE = [_square_below_zero, _wave_above_one, _far_and_near]


@pytest.mark.parametrize("function", NAN_ONLY + IMPOSSIBLE)
def test_a_path_that_only_nan_takes_is_nan(function, monkeypatch):
    monkeypatch.setattr(paths, "QUESTION_LIMIT", 100)
    program = trace(function, q=())
    for q in (-2.0, 0.0, 0.5, 1.0, 2.0, 3.0):
        assert evaluate(program, [q]) == [function(q)]
    assert math.isnan(evaluate(program, [math.nan])[0])


def _open(q):
    if q < 0:
        return 1.0
    if q > 0:
        return 2.0
    raise ValueError("nothing at 0")


def _gap(q):
    if q < 1:
        return 1.0
    if q > 2:
        return 2.0
    raise ValueError("nothing in between")


def _end(q):
    if q < 1:
        return 1.0
    if q > 1:
        return 2.0
    if q <= 2:
        raise ValueError("nothing at 1")
    return 0.0


def _touching(q):
    if abs(q) < 1:
        return 1.0
    if q > 1:
        return 2.0
    if q < -1:
        return 3.0
    raise ValueError("nothing at -1 and 1")


def _rounded(q):
    if q > 0 and q * 0.1 <= 0:
        raise ValueError("nothing where it underflows")
    return q


@pytest.mark.parametrize("function", [_open, _gap, _end, _touching, _rounded])
def test_a_path_that_a_number_takes_may_not_raise(function):
    with pytest.raises(
        TraceError, match=r"raised ValueError: nothing .* none may raise"
    ):
        trace(function, q=())


ARGUMENTS = [-math.inf, -1e300, -3.0, -1.0, -5e-324, 0.0, 5e-324, 0.5, 1.0, 2.0, 1e300]


@pytest.mark.parametrize("seed", range(40))
def test_a_path_that_numbers_take_is_not_a_contradiction(seed):
    rng = np.random.default_rng(seed)
    tape = Tape()
    nodes = [tape.input(0), tape.input(1), *map(tape.constant, (-1.0, 0.0, 1.0, 2.0))]
    names = [name for name, op in OPS.items() if set(op.args) == {"real"}]
    for name in rng.choice(names, 30):
        picked = rng.choice(len(nodes), OPS[name].arity)
        node = tape.make(str(name), *(nodes[k] for k in picked))
        if node.kind == "real":
            nodes.append(node)
    truths = [node for node in tape.nodes if node.kind == "truth" and node.args]
    truths.append(tape.make("lt", nodes[0], nodes[1]))
    for name in rng.choice(["and", "or"], 5):
        picked = rng.choice(len(truths), 2)
        truths.append(tape.make(str(name), *(truths[k] for k in picked)))
    compared = 0
    for q in itertools.product(ARGUMENTS, repeat=2):
        values: dict[int, float] = {}  # of what is computed from numbers alone
        for node in tape.nodes:
            if node.name == "input":
                values[node.index] = q[int(node.value)]
            elif node.name == "const":
                values[node.index] = node.value
            elif all(arg.index in values for arg in node.args):
                args = (values[arg.index] for arg in node.args)
                value = OPS[node.name].on_floats(*args)
                if not math.isnan(value):
                    values[node.index] = value
        known = [truth for truth in truths if truth.index in values]
        compared += len(known)
        answers = [(truth, bool(values[truth.index])) for truth in known]
        assert not is_contradiction(answers), (q, answers)
    assert compared > len(ARGUMENTS)


def test_a_return_of_none_names_its_path():
    def formula(q):
        if q > 1:
            return 1.0

    line = formula.__code__.co_firstlineno + 1
    where = re.escape(f"It does so where the condition at {__file__}:{line} is false.")
    refused(formula, 0, f"'formula' returns NoneType None where a .* {where}")


def test_a_fault_that_is_caught_is_raised_all_the_same():
    def swallowing(q):
        try:
            sine = math.sin(q)
        except Exception:
            sine = 0.0
        return sine + q

    with pytest.raises(
        TraceError, match=r"test_branches\.py:.*a plain float was asked"
    ):
        trace(swallowing, q=())

    def on_a_branch(q):
        try:
            return np.i0(q) if q > 0 else q
        except Exception:
            return 0.0

    with pytest.raises(TraceError, match=r"test_branches\.py:"):
        trace(on_a_branch, q=())


def test_errors_of_the_users_own_may_be_caught():
    def formula(q):
        try:
            return {}["q"]
        except KeyError:
            return 2 * q

    assert evaluate(trace(formula, q=()), [1.5]) == [3.0]
