"""Compiled formulas against the functions they were traced from, run on plain floats.

The interpreter, NumPy and LLVM all run the traced program, so they share what tracing
does wrong. Here the user's own function is the judge. Below an operation with an edge
(a root, a comparison, a floor, ...) a compiled formula must have every rounding of the
function; elsewhere it may round less often, and mpmath judges both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import armillary as arm
from armillary.kernel import compile
from armillary.trace import evaluate, trace

Function = Callable[..., Any]

TINY = [5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 1e-160]
LARGE = [1e15 + 0.5, 2.0**52 + 1.0, 2.0**53, 1e150, 1e154, 1e200, 1e300, 1.7e308]
SIZES = [0.0, *TINY, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0, 1.1, 1.5, 2.5, 3.0, 49.0, *LARGE]
SIZES += [math.pi, math.pi / 2, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 98.0, 147.0, 4.35]
HARD = [*SIZES, *(-x for x in SIZES), math.inf, -math.inf, math.nan]
FEW = [0.0, -0.0, 5e-324, 0.1, 0.3, -0.7, 1.0, 3.0, -49.0, 1e15 + 0.5, 1e154, -1e300]
PAIRS = [*itertools.product(HARD, FEW), *((x, x) for x in HARD)]


def truth(function: Function, args: Any, kind: str = "float64") -> float | None:
    """What the function gives; None where it, or a step of it, is no finite number."""
    scalar = np.dtype(kind).type
    try:
        with np.errstate(invalid="raise", divide="raise", over="raise"):
            result = function(*map(scalar, args))
    except FloatingPointError:
        return None
    except ZeroDivisionError:
        return None
    return float(result) if np.isfinite(result) else None


def ulps(found: float, wanted: float, kind: str = "float64") -> float:
    """How many units in the last place two numbers are apart; 0 and -0 are the same."""
    spacing = float(np.spacing(np.dtype(kind).type(abs(wanted))))
    return math.inf if math.isnan(found) else abs(found - wanted) / spacing


def compiled(function: Function, count: int, kind: str, lanes: int | None) -> Any:
    program = trace(lambda q: function(*q), name="formula", q=(count,))
    return compile(program, dtype=kind, lanes=lanes)


# Formulas that go wrong if a rounding is lost, and by how many units in the last place
# the result may differ from the function's own at hard numbers.


def _table(q):
    return 1.0 if q / 49 >= 1 else 0.0


def _between(q):
    if 0.1 + (q + 0.2) < 0.3:
        return -1.0
    return 2.0 if q * 3 / 3 > q else 1.0


FORMULAS: dict[str, tuple[Function, int]] = {
    "stroke": (lambda a, b: np.sqrt(a**2 - b**2), 0),
    "products": (lambda a, b: np.sqrt(a * b - b * a), 0),
    "law of cosines": (
        lambda a, b: np.arccos((a * a + b * b - (a - b) ** 2) / (2 * a * b)),
        3,
    ),
    "arcsine": (lambda a, b: np.arcsin((a * a + b * b) / (a * a + b * b)), 3),
    "logarithm": (lambda a, b: np.log(a * a - b * b), 2),
    "power": (lambda a, b: (a * a - b * b) ** 1.5, 2),
    "station": (lambda a, b: np.floor(a / 49.0), 0),
    "station of a tenth": (lambda a, b: np.floor(a / 0.1), 0),
    "whole": (lambda a, b: a // 0.1, 0),
    "whole of": (lambda a, b: a // b, 0),
    "rest": (lambda a, b: a % 0.1, 0),
    "rest of": (np.fmod, 0),
    "ceiling": (lambda a, b: np.ceil(a / 3 - b / 3), 0),
    "towards zero": (lambda a, b: np.trunc(10 * (0.1 * a)), 0),
    "sum of constants": (lambda a, b: np.floor((a + 0.1) + 0.2), 0),
    "difference of constants": (lambda a, b: np.floor(0.3 - (0.1 - a)), 0),
    "there and back": (lambda a, b: np.floor(a + (b - a)), 0),
    "product of constants": (lambda a, b: np.floor(10 * (a * 0.1)), 0),
    "sign": (lambda a, b: np.sign(a * b - (a + b)), 0),
    "direction": (lambda a, b: abs(np.arctan2(a * a - b * b, -1.0)), 3),
    "pole": (lambda a, b: 1.0 / (a * a - b * b), 0),
    "table": (lambda a, b: _table(a), 0),
    "between": (lambda a, b: _between(a), 0),
    "branch": (lambda a, b: a if a * a - b * b >= 0 else b, 0),
    "equal": (lambda a, b: 1.0 if a * a == b * b + a else 0.0, 0),
    "root": (lambda a, b: np.sqrt(a + b) if a + b >= 0 else 0.0, 0),
    "square": (lambda a, b: np.floor(a**2), 0),
    "product near overflow": (lambda a, b: a * b * b * a, 0),
    "sum near overflow": (lambda a, b: a - b + b - a + b, 0),
    "powers": (lambda a, b: a**-2 + 0 * b, 1),
    "length": (np.hypot, 2),
    "nearest": (lambda a, b: np.round(a / 3 - b / 3) + np.rint(a), 0),
    "decimals": (lambda a, b: np.round(a, 1), 1),
    "table of a cam": (
        lambda a, b: np.floor(np.interp(a / 3, [0.0, 0.1, 1.0, 49.0], [0, 0.3, 7, 1])),
        0,
    ),
    "table of choices": (
        lambda a, b: np.select([a / 3 < b / 3, a * a > b], [a, b], 0.0) + 0 * a,
        0,
    ),
    "cube root": (lambda a, b: np.cbrt(a), 2),
    "hyperbolic": (lambda a, b: np.sinh(a), 4),
    "catenary": (lambda a, b: np.cosh(a) + 0 * b, 4),
    "saturation": (lambda a, b: np.tanh(a), 4),
    "bounds": (lambda a, b: np.floor(np.clip(a / 3, -1, 1) * 3), 0),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize(("function", "bound"), FORMULAS.values(), ids=FORMULAS)
def test_a_formula_is_the_function(function: Function, bound: int, kind: str):
    with np.errstate(over="ignore"):
        pairs = np.array(PAIRS).astype(kind)
    if kind == "float32":  # remainders of large quotients are taken in float64
        pairs = pairs[~(abs(pairs[:, 0]) > 1e5)]
    results = [compiled(function, 2, kind, lanes)(pairs) for lanes in (1, None)]
    compared = 0
    for args, *found in zip(pairs, *results, strict=True):
        wanted = truth(function, args, kind)
        if wanted is not None:
            compared += 1
            for number in found:
                error = ulps(float(number), wanted, kind)
                assert error <= bound, (args, number, wanted)
    assert compared > len(pairs) / 8


# Products and quotients of constants, where one of them leaves the range of the type.
CONSTANTS = {
    "quotient": (lambda q: np.floor(q / 2.0**-130), 3 * 2.0**-130, "float32"),
    "large quotient": (lambda q: np.sign(q / 2.0**127), 2.0**-20, "float32"),
    "small": (lambda q: (q * 2.0**-100) * (2.0**-100 * 1.5), 2.0**100, "float32"),
    "large": (lambda q: 2.0**100 * (2.0**60 * q), 2.0**-130, "float32"),
    "overflow": (lambda q: 2.0**-100 * (3 * 2.0**120 * q), 1e5, "float32"),
    "underflow": (lambda q: np.sign((q * 0.1) * 2.0**100), 5e-324, "float64"),
    "there and back": (
        lambda q: np.sign(2.0**600 * (2.0**-600 * q)),
        1e-200,
        "float64",
    ),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("lanes", [1, None])
@pytest.mark.parametrize(("function", "q", "kind"), CONSTANTS.values(), ids=CONSTANTS)
def test_constants_at_the_ends_of_the_range(function, q, kind, lanes):
    number = np.dtype(kind).type(q)
    with np.errstate(over="ignore", under="ignore"):
        wanted = function(number)
    found = compiled(lambda x: function(x) * 1.0, 1, kind, lanes)([number])
    assert found.dtype == kind
    assert found == wanted, (found, wanted)


# Random formulas: exact operations in any order, an operation with an edge on top.

Tree = Any
NUMBERS = [0.1, 0.3, 1.0, 2.0, 3.0, 7.0, 49.0, -0.7, 10.0]
EXACT: dict[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mod": lambda x, y: x % y,
    "floor divide": lambda x, y: x // y,
    "min": np.minimum,
    "max": np.maximum,
    "where": lambda x, y: np.where(x < y, y - x, x),
    "if": lambda x, y: x - y if x >= y else y,
}
EXACT_ALONE: dict[str, Function] = {
    "neg": lambda x: -x,
    "sqrt": np.sqrt,
    "abs": abs,
    "square": lambda x: x**2,
    "floor": np.floor,
    "sign": np.sign,
    "ceil": np.ceil,
}
ON_TOP: dict[str, tuple[Function, int]] = {
    "acos": (np.arccos, 3),
    "asin": (np.arcsin, 3),
    "log": (np.log, 2),
    "power": (lambda x: x**0.7, 2),
    "step": (lambda x: 1.0 if x > 0 else 0.0, 0),
    "inverse": (lambda x: 1.0 / x, 0),
    "direction": (lambda x: abs(np.arctan2(x, -2.0)), 3),
    **{name: (EXACT_ALONE[name], 0) for name in ("sqrt", "floor", "sign")},
}


def tree(random: np.random.Generator, depth: int, names: list[str]) -> Tree:
    """Draw a formula of x, y, z: nested tuples of a name and its arguments."""
    if depth == 0 or random.random() < 0.1:
        if random.random() < 0.7:
            return str(random.choice(["x", "y", "z"]))
        return float(random.choice(NUMBERS))
    below = [tree(random, depth - 1, names) for _ in range(2)]
    kind = random.random()
    if kind > 0.8:
        return str(random.choice(list(EXACT_ALONE))), below[0]
    basic = ["add", "sub", "sub", "mul", "mul", "div"]
    return str(random.choice(basic if kind < 0.6 else names)), *below


def points(random: np.random.Generator, count: int) -> np.ndarray:
    """Draw rows of three numbers: whole, hard, ordinary, and often equal."""
    finite = [x for x in HARD if math.isfinite(x)]
    hard = random.choice(finite, (count, 3))
    whole = random.integers(-300, 300, (count, 3)).astype(float)
    smooth = random.uniform(-4.0, 4.0, (count, 3))
    rows = np.concatenate([hard, whole, smooth, np.round(smooth, 1)])
    equal = rows.copy()
    equal[:, 1] = equal[:, 0]
    return np.concatenate([rows, equal])


def value(tree: Tree, inputs: dict[str, Any]) -> Any:
    """Compute a tree; numbers meet inputs alone, so that NumPy keeps their type."""
    if isinstance(tree, str):
        return inputs[tree]
    if isinstance(tree, float):
        return inputs["x"] * 0 + tree
    name, *parts = tree
    args = [value(part, inputs) for part in parts]
    return (EXACT[name] if len(args) == 2 else EXACT_ALONE[name])(*args)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(6))
def test_random_formulas_keep_every_rounding_below_an_edge(seed: int, kind: str):
    random = np.random.default_rng(seed)
    names = list(EXACT)
    if kind == "float32":  # remainders of large quotients are taken in float64
        names = [name for name in names if name not in {"mod", "floor divide"}]
    tops, depths = random.choice(list(ON_TOP), 25), random.integers(2, 5, 25)
    formulas = [
        (str(top), tree(random, int(depth), names))
        for top, depth in zip(tops, depths, strict=True)
    ]

    def function(top: str, below: Tree) -> Function:
        return lambda *q: ON_TOP[top][0](value(below, dict(zip("xyz", q, strict=True))))

    functions = [function(*formula) for formula in formulas]
    parts = [trace(lambda q, f=f: f(*q), name="part", q=(3,)) for f in functions]
    program = trace(lambda q: [evaluate(part, q)[0] for part in parts], q=(3,))
    with np.errstate(over="ignore"):
        rows = points(random, 12).astype(kind)
    found = [compile(program, dtype=kind, lanes=lanes)(rows) for lanes in (1, None)]
    compared = 0
    for k, (top, below) in enumerate(formulas):
        for row, *numbers in zip(rows, *(f[:, k] for f in found), strict=True):
            wanted = truth(functions[k], row, kind)
            if wanted is not None:
                compared += 1
                for number in numbers:
                    error = ulps(float(number), wanted, kind)
                    assert error <= ON_TOP[top][1], (top, below, row, number, wanted)
    assert compared > 0.1 * len(rows) * len(formulas)


# Where no edge comes later a product and a sum may be rounded as one: no less exact.


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_products_are_as_exact_as_the_function(seed: int):
    random = np.random.default_rng(seed)
    terms = random.integers(0, 4, (int(random.integers(2, 12)), 2)).tolist()
    rows = random.choice([-3.0, 0.1, 1 / 3, 1e6, 7.7], (40, 4))

    def function(*q):
        return sum(q[a] * q[b] * (-1) ** a for a, b in terms)

    results = compiled(function, 4, "float64", None)(rows)
    for q, found in zip(rows.tolist(), results, strict=True):
        exact = function(*map(mpmath.mpf, q))
        size = sum(abs(q[a] * q[b]) for a, b in terms)
        assert abs(found - exact) <= len(terms) * 2.0**-53 * size + 1e-300


def test_sums_are_taken_in_the_order_they_are_written_in():
    def formula(a, b, c, d):
        return a + b + c + d

    rows = np.array(list(itertools.permutations([1e16, 1.0, -1e16, 1.0])))
    huge = np.array(
        list(itertools.permutations([1.7e308, 1.7e308, -1.7e308, -1.7e308]))
    )
    for lanes in (1, 2, 4, 8):
        kernel = compiled(formula, 4, "float64", lanes)
        for q in (rows, huge):
            with np.errstate(over="ignore", invalid="ignore"):
                np.testing.assert_array_equal(kernel(q), [formula(*row) for row in q])


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_products_are_taken_in_the_order_they_are_written_in(lanes: int):
    kernel = compiled(lambda *q: math.prod(q), 8, "float64", lanes)
    rows = np.array(
        [
            [0.0, 1.0, 1e200, 1e200, 1.0, 1.0, 1.0, 1.0],
            [1e-200, 1e200, 1e-200, 1e200, 1e200, 1e-200, 1e200, 1e-200],
            [1e200, 1e-200, 1e200, 1e-200, 1e-100, 1e100, 1e-300, 1e300],
        ]
        * 3
    )
    np.testing.assert_array_equal(kernel(rows), [math.prod(row) for row in rows])


# Joints, in cells.


class ScissorLift(arm.Joint):
    beam: float
    unit = arm.METRE

    def pose(self, q):
        return arm.Pose.translation(0, 0, np.sqrt(self.beam**2 - q**2))


class Table(arm.Joint):
    """Turn by a quarter for every 49 mm."""

    def pose(self, q):
        return arm.Pose.rotation_z(np.pi / 2 * np.floor(q / 49.0))


def cell_of(joint: arm.Joint) -> arm.Cell:
    link = arm.Link(name="link", parent="ground", joint=joint)
    links = (arm.Link(name="ground"), link)
    return arm.Cell(manipulators=(arm.Manipulator(name="m", links=links),))


def poses(joint: arm.Joint, q: np.ndarray) -> np.ndarray:
    """The poses of a link on a joint, by machine code, in batches and one by one."""
    fk = cell_of(joint).fk("link")
    batch = fk(q[:, None])
    np.testing.assert_array_equal(batch, [fk([x]) for x in q])
    return batch


@pytest.mark.sampled(6)
@pytest.mark.parametrize("beam", [k / 10 for k in range(1, 31)])
def test_a_lift_reaches_the_ends_of_its_stroke(beam: float):
    joint = ScissorLift(beam=beam)
    q = np.array([beam, -beam, 0.6 * beam, np.nextafter(beam, 0.0), 0.0])
    heights = [float(np.sqrt(beam**2 - x**2)) for x in q]
    np.testing.assert_array_equal(poses(joint, q)[:, 2, 3], heights)


def test_a_table_stands_at_its_stations():
    q = np.array([49.0 * k for k in range(-200, 200)])
    found = poses(Table(), q)
    wanted = np.array([Table().pose(x).matrix() for x in q])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)


BUILT_IN: dict[str, arm.Joint] = {
    "revolute": arm.joints.Revolute(axis=(0.6, 0.0, 0.8)),
    "prismatic": arm.joints.Prismatic(axis=(0.6, 0.0, 0.8)),
    "Denavit-Hartenberg": arm.joints.PaulRevolute(d=0.2, a=0.1, alpha=0.7),
    "modified": arm.joints.CraigPrismatic(alpha=0.7, a=0.1, theta=0.3),
    "curve": arm.joints.Curve(points=[(0, 0, 0), (1, 0, 0), (1, 1, 0.5), (2, 1, 1)]),
    "closed curve": arm.joints.Curve(
        points=[(0, 0, 0), (1, 0, 0), (1, 1, 0.2), (0, 1, 0)], closed=True
    ),
    "screw": arm.joints.Screw(pitch=0.01),
    "oval track": arm.joints.OvalTrack(straight=3.0, radius=0.7),
    "circle track": arm.joints.CircleTrack(radius=0.7),
}


@pytest.mark.parametrize("joint", BUILT_IN.values(), ids=BUILT_IN)
def test_a_built_in_joint_is_its_own_function(joint: arm.Joint):
    lap = joint.period or 1.0
    parts = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 1000.0, 1e6, *TINY]
    q = np.array([sign * lap * part for part in parts for sign in (1.0, -1.0)])
    q = np.concatenate([q, np.nextafter(q, np.inf), np.nextafter(q, -np.inf)])
    found = poses(joint, q)
    wanted = np.array([joint.pose(float(x)).matrix() for x in q])
    sizes = 1.0 + np.abs(q)[:, None, None]
    assert np.all(np.abs(found - wanted) <= 4e-16 * sizes)


class Cam(arm.Joint):
    """Turn by the angle of a crank whose push rod has come to its end at 1."""

    def pose(self, q):
        lift = np.sqrt(np.maximum(1 - q * q, 0))
        return arm.Pose.translation(0, 0, lift) @ arm.Pose.rotation_x(
            np.arccos(np.clip(q, -1, 1))
        )


def test_the_jacobian_of_a_joint_behind_its_stop_is_zero():
    q = np.array([[2.0], [-1.5], [1e9], [0.5]])
    J = cell_of(Cam()).jacobian("link")(q)
    np.testing.assert_array_equal(J[:3], 0.0)
    slope = 1 / np.sqrt(0.75)
    np.testing.assert_allclose(J[3, :, 0], [0, 0, -slope / 2, -slope, 0, 0], atol=1e-15)
    assert np.all(np.isnan(cell_of(Cam()).fk("link")([np.nan])[:3, 3][2:]))


class Ramp(arm.Joint):
    """Stand still below 0, then rise and move along a spiral."""

    def pose(self, q):
        r = np.maximum(q, 0)
        height = np.linalg.norm(r * np.array([np.cos(q), np.sin(q)]))
        return arm.Pose.translation(np.sqrt(r * (2 + q)), 0, height)


def test_the_jacobian_of_a_joint_that_stands_still_is_zero():
    q = np.array([[-1.0], [-1.5], [0.5]])
    for dtype in ("float64", "float32"):
        J = cell_of(Ramp()).jacobian("link", dtype=dtype)(q.astype(dtype))
        np.testing.assert_array_equal(J[:2], 0.0)
        np.testing.assert_allclose(J[2, :, 0], [1.5 / 1.25**0.5, 0, 1, 0, 0, 0], 1e-6)
