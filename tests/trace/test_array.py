from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import evaluate, trace
from armillary.trace.array import TracedArray
from programs import verify

NUMBERS = [-2.5, -0.25, 0.0, 0.5, 3.0, math.nan]


def squared(q):
    q = q.copy()
    q[1] = 4.0
    return np.sqrt(q**2) + np.sin(q)


def in_place(q):
    q += 1.0
    q[0] *= 2.0
    np.multiply(q, 3.0, out=q)
    return q


# None of these branches: NaN stays NaN, and there are no paths.
STRAIGHT = {
    "clip": lambda q: np.clip(q, -1.0, 1.0),
    "clip by method": lambda q: q.clip(-1.0, [0.5, 1.0, 2.0]),
    "clip from one side": lambda q: np.clip(q, None, 1.0) + q.clip(min=0.0),
    "maximum": lambda q: (
        np.maximum(q, 0.0) + np.maximum(1.0, q) + np.minimum(q, q[::-1])
    ),
    "largest": lambda q: [np.max(q), q.min(), np.amax(q), np.maximum.reduce(q)],
    "largest of rows": lambda q: np.max(np.multiply.outer(q, q) + 0.0, axis=1),
    "sign": lambda q: np.sign(q) + np.abs(q) + np.floor(q) + np.trunc(q),
    "where": lambda q: np.where(q > 0.0, q, -q) + np.where(q[0] > q, q, 2.0),
    "where of logic": lambda q: np.where((q > 0.0) & ~(q > 1.0) | (q == 3.0), q, 0.0),
    "counted": lambda q: (q > 0.0) * 1.0 + np.sum(q > 1.0),
    "finite": lambda q: np.isfinite(q) * 1.0 + np.isnan(q),
    "close": lambda q: [np.isclose(q, 0.5)[2] * 1.0, np.allclose(q, q) * 1.0],
    "unequal": lambda q: (q != np.array([0.5, 0.0, 3.0])) * 1.0,
    "slices": lambda q: np.maximum(q[1:], q[:2]).reshape(2, 1).T,
    "sums": lambda q: [q.sum(), q.mean(), q.prod(), np.cumsum(q)[2], np.trace([q, q])],
    "products": lambda q: q @ q + np.eye(3) @ q + q.dot(q) + np.linalg.norm(q),
    "roots": squared,
    "in place": in_place,
    "angles": lambda q: np.arctan2(q, q[0]) + np.hypot(q, 1.0) + np.radians(q),
    "remainder": lambda q: q % 0.7 + q // 0.7 + np.fmod(q, 0.7),
    "logic": lambda q: np.logical_and(q, q > 0) * 1.0 + np.logical_not(q),
    "stacked": lambda q: np.concatenate([np.maximum(q, 0.0), q]),
    "converted": lambda q: np.asarray(q, dtype=object) * 2.0,
}


@pytest.mark.parametrize("function", STRAIGHT.values(), ids=STRAIGHT)
def test_functions_of_arrays_are_numpys_without_a_branch(function):
    runs = []

    def counted(q):
        runs.append(1)
        return function(q)

    program = trace(counted, q=(3,))
    verify(program)
    assert len(runs) == 1
    for q in itertools.product(NUMBERS, repeat=3):
        with np.errstate(all="ignore"):
            expected = np.asarray(function(np.array(q)), dtype=float).ravel()
        np.testing.assert_allclose(evaluate(program, q), expected, rtol=1e-14)


def masked(q):
    q[q > 1.0] = 1.0
    return q


BRANCHING = {
    "mask": masked,
    "selected": lambda q: q[np.abs(q) < 10.0] * 2.0 if q[0] < 9.0 else q,
    "any and all": lambda q: q if np.any(q > 1.0) and not np.all(q < 0.5) else -q,
    "methods": lambda q: q if (q > 0.0).any() else 2.0 * q,
    "argmax": lambda q: q[np.argmax(q)],
    "sorted": np.sort,
    "counted": lambda q: np.count_nonzero(q > 0.5),
}


@pytest.mark.parametrize("function", BRANCHING.values(), ids=BRANCHING)
def test_answers_about_arrays_branch(function):
    try:
        program = trace(function, q=(2,))
    except TraceError as error:  # as many numbers as the mask has, which may differ
        assert function is BRANCHING["selected"]
        assert "the shape (2,) on one branch and (1,) on another" in str(error)
        return
    for q in itertools.product(NUMBERS[:-1], repeat=2):
        expected = np.asarray(function(np.array(q)), dtype=float).ravel()
        assert evaluate(program, q) == expected.tolist()


def test_what_is_computed_from_arrays_is_one():
    seen = []

    def formula(q):
        seen.extend([q, q * 2, np.sin(q), q[1:], q.reshape(1, 3), q > 0, 1.0 - q])
        seen.extend([q[0] * q, q - q[1], q[0] < q, np.add(q[0], q), np.ones(3) / q])
        seen.extend([np.where(q[0] > 0, q, 1.0), np.clip(q[0], q, 1.0), q @ np.eye(3)])
        assert np.add(q, 1.0, out=q) is q
        return np.maximum(q @ np.eye(3), 0)

    trace(formula, q=(3,))
    assert [type(x) for x in seen] == [TracedArray] * len(seen)


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (np.log2, r"numpy|ufunc"),
        (lambda q: np.linalg.inv(np.outer(q, q)), "Cannot cast ufunc 'inv'"),
        (lambda q: np.add(q, 1.0, where=[True, False]), "numpy.add with options"),
        (lambda q: np.add(q, q, out=np.ones(2)), "make that array with dtype=object"),
        (lambda q: np.ones(2).__iadd__(q), "make that array with dtype=object"),
        (lambda q: q.astype(float), "a plain float was asked"),
    ],
)
def test_misuses_name_their_line(misuse, message: str):
    def formula(q):
        return misuse(q)

    with pytest.raises(TraceError, match=f"^{re.escape(__file__)}:\\d+: .*{message}"):
        trace(formula, q=(2,))
