"""Truncated Taylor arithmetic on syntax trees: what random joints are judged by.

A jet is (f, f', f''). It shares nothing with the library: neither its table of
operations nor its chain rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mpmath

Tree = Any
Jet = tuple[Any, Any, Any]
NUMBERS = [0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -0.3, 1.7]
ALONE = ["neg", "sin", "cos", "tan", "exp", "sqrt", "log", "arcsin", "arccos", "arctan"]
ALONE += ["abs", "square", "sinh", "cosh", "tanh", "cbrt", "floor", "sign", "sinc"]
PAIRS = ["+", "-", "*", "/", "**", "min", "max", "hypot", "arctan2", "fmod", "%", "//"]
EVEN = ["+", "-", "*", "**"]  # drawn more often


class Unknown(Exception):
    """There is no finite jet, or roundings decide which."""


def drawn(random: Any, depth: int) -> Tree:
    """Draw a tree: "q", a number, (name, part), (name, left, right) or a branch."""
    kind = random.random()
    if depth == 0 or kind < 0.06:
        return "q" if random.random() < 0.65 else float(random.choice(NUMBERS))
    if kind < 0.4:
        return str(random.choice(ALONE)), drawn(random, depth - 1)
    if kind < 0.92:
        name = str(random.choice(EVEN if kind < 0.65 else PAIRS))
        return name, drawn(random, depth - 1), drawn(random, depth - 1)
    return "if", *(drawn(random, depth - 1) for _ in range(4))


def numbers_in(tree: Tree) -> Iterator[float]:
    if isinstance(tree, float):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree[1:]:
            yield from numbers_in(part)


def moves(tree: Tree) -> bool:
    """Tell whether q is in a tree, but for what makes steps."""
    if isinstance(tree, tuple):
        return tree[0] not in {"floor", "sign", "//"} and any(map(moves, tree[1:]))
    return tree == "q"


@dataclass
class Calculus:
    """Jets over a kind of numbers, with the choices of a first run in floats.

    Attributes:
        m: The module of functions: `math`, or mpmath's.
        choices: What was chosen, in order; filled by the first run.
        ties: At which both pieces are right: which of them to take, by their number.
        is_replay: Whether choices are taken from `choices`.
    """

    m: Any
    choices: list[Any] = field(default_factory=list)
    ties: tuple[int, ...] = ()
    is_replay: bool = False
    tie_count: int = 0
    position: int = 0

    def number(self, x: float) -> Any:
        return self.m.mpf(x) if self.is_replay else x

    def chosen(self, make: Any) -> Any:
        if not self.is_replay:
            self.choices.append(make())
            return self.choices[-1]
        self.position += 1
        return self.choices[self.position - 1]

    def tie(self) -> int:
        """Return 0 or 1, the piece to take where two meet."""
        k = self.tie_count
        self.tie_count += 1
        return self.ties[k] if k < len(self.ties) else 0

    # Which side of an edge a number is on. Exact ones may be at the edge itself.

    def side(self, x: Any, exact: bool, size: Any = 1.0) -> int:
        def make() -> int:
            if x == 0 and exact:
                return 0
            if abs(x) < 1e-9 * (1 + abs(size)):
                raise Unknown
            return 1 if x > 0 else -1

        return self.chosen(make)

    def step(self, x: Any, exact: bool) -> int:
        """Return floor(x)."""

        def make() -> int:
            if not abs(x) < 1e9:
                raise Unknown
            if not exact and abs(x - round(x)) < 1e-9 * (1 + abs(x)):
                raise Unknown
            return math.floor(x)

        return self.chosen(make)


Exact = tuple[Jet, bool]  # and whether the value is free of roundings of functions


def jet(calculus: Calculus, tree: Tree, q: Any) -> Exact:
    """Return the jet of a tree at q.

    Raises:
        Unknown: It is not finite, or an edge is too near to tell.
    """
    c = calculus
    if tree == "q":
        return (q, c.number(1.0), c.number(0.0)), True
    if isinstance(tree, float):
        return (c.number(tree), c.number(0.0), c.number(0.0)), True
    name, *parts = tree
    if name == "if":
        (left, a), (right, b) = (jet(c, part, q) for part in parts[:2])
        side = c.side(left[0] - right[0], a and b, left[0])
        return jet(c, parts[2 if side < 0 else 3], q)
    args = [jet(c, part, q) for part in parts]
    if name == "**" and moves(parts[1]):
        base, exponent = args[0][0][0], args[1][0][0]
        if base < 0 or (base == 0 and exponent == 0):
            raise Unknown  # there is no derivative by the exponent
    try:
        found, exact = (one if len(args) == 1 else two)(c, name, *args)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError):
        raise Unknown from None
    for x in found:
        if isinstance(x, (complex, mpmath.mpc)) or not abs(x) < 1e12:
            raise Unknown
    return found, exact


def through(u: Jet, f: Any, f1: Any, f2: Any) -> Jet:
    """Return the jet of f(u), of f and its derivatives at u."""
    return f, f1 * u[1], f2 * u[1] ** 2 + f1 * u[2]


def circular(m: Any, x: Any) -> Any:
    s, k = m.sin(x), m.cos(x)
    return s, k, -s, -k


def hyperbolic(m: Any, x: Any) -> Any:
    s, k = m.sinh(x), m.cosh(x)
    return s, k, s, k


def tangent(t: Any, sign: int) -> Any:
    slope = 1 + sign * t * t
    return t, slope, sign * 2 * t * slope


def inverse_sine(m: Any, x: Any) -> Any:
    root = m.sqrt((1 - x) * (1 + x))
    return m.asin(x), 1 / root, x / root**3


def inverse_tangent(m: Any, x: Any) -> Any:
    w = 1 / (1 + x * x)
    return m.atan(x), w, -2 * x * w * w


def square_root(m: Any, x: Any) -> Any:
    r = m.sqrt(x)
    return r, 1 / (2 * r), -1 / (4 * r**3)


def cube_root(m: Any, x: Any) -> Any:
    r = m.cbrt(abs(x)) * (1 if x > 0 else -1)
    return r, 1 / (3 * r**2), -2 / (9 * r**5)


def sinc(m: Any, x: Any) -> Jet:
    """Return sin(pi x) / (pi x) and its derivatives, by the series for small x."""
    t = m.pi * x
    if abs(t) < 1:
        one = x * 0 + 1
        terms = [one * (-1) ** k / math.factorial(2 * k + 1) for k in range(14)]
        f = sum(a * t ** (2 * k) for k, a in enumerate(terms))
        f1 = sum(2 * k * a * t ** (2 * k - 1) for k, a in enumerate(terms) if k)
        f2 = sum(
            2 * k * (2 * k - 1) * a * t ** (2 * k - 2) for k, a in enumerate(terms) if k
        )
    else:
        s, k = m.sin(t), m.cos(t)
        f, f1 = s / t, k / t - s / t**2
        f2 = -s / t - 2 * k / t**2 + 2 * s / t**3
    return f, m.pi * f1, m.pi**2 * f2


# The function and two derivatives, of the functions m and of x.
SMOOTH: dict[str, Any] = {
    "neg": lambda m, x: (-x, -1, 0),
    "square": lambda m, x: (x * x, 2 * x, 2),
    "exp": lambda m, x: (m.exp(x),) * 3,
    "log": lambda m, x: (m.log(x), 1 / x, -1 / x**2),
    "sin": lambda m, x: circular(m, x)[:3],
    "cos": lambda m, x: circular(m, x)[1:],
    "sinh": lambda m, x: hyperbolic(m, x)[:3],
    "cosh": lambda m, x: hyperbolic(m, x)[1:],
    "tan": lambda m, x: tangent(m.tan(x), 1),
    "tanh": lambda m, x: tangent(m.tanh(x), -1),
    "arcsin": inverse_sine,
    "arccos": lambda m, x: (m.acos(x), *(-d for d in inverse_sine(m, x)[1:])),
    "arctan": inverse_tangent,
    "sqrt": square_root,
    "cbrt": cube_root,
    "sinc": sinc,
}
EXACT_AT = {"log": 1, "arccos": 1, "neg": None, "square": None, "sqrt": None}
"""Where a function has no rounding but its last: None everywhere, else at 0."""


def one(c: Calculus, name: str, arg: Exact) -> Exact:
    u, exact = arg
    x = u[0]
    if name in {"sign", "floor"}:
        whole = c.side(x, exact) if name == "sign" else c.step(x, exact)
        return (c.number(float(whole)), x * 0, x * 0), True
    if name == "abs":
        side = c.side(x, exact)
        if side == 0:
            side = 1 - 2 * c.tie()
        return (abs(x), side * u[1], side * u[2]), exact
    at = EXACT_AT.get(name, 0)
    return through(u, *SMOOTH[name](c.m, x)), exact and (at is None or x == at)


def times(u: Jet, v: Jet) -> Jet:
    return (
        u[0] * v[0],
        u[1] * v[0] + u[0] * v[1],
        u[2] * v[0] + 2 * u[1] * v[1] + u[0] * v[2],
    )


def inverse(u: Jet) -> Jet:
    return through(u, 1 / u[0], -1 / u[0] ** 2, 2 / u[0] ** 3)


def plus(u: Jet, v: Jet, factor: Any = 1) -> Jet:
    return tuple(a + factor * b for a, b in zip(u, v, strict=True))


def two(c: Calculus, name: str, left: Exact, right: Exact) -> Exact:
    (u, a), (v, b) = left, right
    exact = a and b
    match name:
        case "+" | "-":
            return plus(u, v, 1 if name == "+" else -1), exact
        case "*" | "/":
            return times(u, v if name == "*" else inverse(v)), exact
        case "**":
            return power(c, u, v, exact)
        case "min" | "max":
            side = c.side(u[0] - v[0], exact, u[0])
            first = side < 0 if name == "min" else side > 0
            if side == 0:
                first = c.tie() == 0
            return (u if first else v), exact
        case "hypot":
            square = plus(times(u, u), times(v, v))
            return through(square, *square_root(c.m, square[0])), False
        case "arctan2":
            return direction(c, u, v, exact), False
        case _:
            return remainder(c, name, u, v, exact)


def direction(c: Calculus, u: Jet, v: Jet, exact: bool) -> Jet:
    """Return the jet of the angle of (v, u); its rate is (v u' - u v') / square."""
    c.side(u[0] if v[0] < 0 else 1.0, exact)  # the cut
    square = plus(times(u, u), times(v, v))
    turn = v[0] * u[1] - u[0] * v[1]
    bend = (v[0] * u[2] - u[0] * v[2]) / square[0] - turn * square[1] / square[0] ** 2
    return c.m.atan2(u[0], v[0]), turn / square[0], bend


def remainder(c: Calculus, name: str, u: Jet, v: Jet, exact: bool) -> Exact:
    whole = c.step(u[0] / v[0], exact and is_whole(u[0], v[0]))
    if name == "fmod" and u[0] / v[0] < 0 and u[0] / v[0] != whole:
        whole += 1
    if name == "//":
        zero = u[0] * 0
        return (c.number(float(whole)), zero, zero), True
    return plus(u, v, -whole), exact


def is_whole(x: Any, y: Any) -> bool:
    """Tell whether a quotient is whole, of numbers with few digits, or far from it."""
    quotient = x / y
    return (
        x * 2**20 == int(x * 2**20)
        and y * 2**20 == int(y * 2**20)
        and (quotient * y == x or abs(quotient - round(quotient)) > 1e-6)
    )


def power(c: Calculus, u: Jet, v: Jet, exact: bool) -> Exact:
    """Return the jet of u^v: of a constant exponent, or exp(v log u)."""
    x, y = u[0], v[0]
    if v[1] == 0 and v[2] == 0:
        if x < 0 and y != int(y):
            raise Unknown

        def term(k: int) -> Any:
            factor = math.prod(y - j for j in range(k))
            return factor * x ** (y - k) if factor != 0 else x * 0

        return through(u, x**y, term(1), term(2)), exact and y == int(y)
    if x == 0:
        if y > 2:
            return (x, x * 0, x * 0), exact
        if y == 2:
            return (x, x * 0, 2 * u[1] ** 2), exact
        raise Unknown
    log = through(u, c.m.log(x), 1 / x, -1 / x**2)
    p = times(v, log)
    e = c.m.exp(p[0])
    return through(p, e, e, e), exact and (y in {0.0, 1.0} or x == 1)
