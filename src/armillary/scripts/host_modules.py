"""What scripts may import from their host, and the builtins they run with.

Functions of `math`, `min`, `max`, `float` and the like take traced scalars, too, and
record them; on floats they are those of Python.
"""

from __future__ import annotations
import __future__

import builtins
import math
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from armillary.errors import ScriptError
from armillary.scripts.constants import CONSTANTS
from armillary.scripts.matrix import DEGREE, ScriptMatrix
from armillary.scripts.vector import ScriptVector
from armillary.trace import Traced
from armillary.trace import functions as f

__all__ = ["MATH", "TRIANGLES", "builtins_of", "host_modules"]

Function = Callable[..., Any]


def sssa(a: Any, b: Any, c: Any) -> Any:
    """Return the angle [rad] opposite side a of a triangle with sides a, b, c.

    cos = (b b + c c - a a) / (2 b c), within [-1, 1]; where b or c is zero the limit.
    """
    # Selected without a branch, so that one trace holds for all triangles.
    above, below = b * b + c * c - a * a, 2.0 * b * c
    is_flat = below == 0.0
    ratio = f.select(is_flat, f.sign(above), above / f.select(is_flat, 1.0, below))
    return f.acos(f.maximum(-1.0, f.minimum(1.0, ratio)))


def sass(a: Any, angle: Any, b: Any) -> Any:
    """Return the third side of a triangle from two sides and the angle between [rad].

    sqrt(a a + b b - 2 a b cos angle).
    """
    return f.sqrt(f.maximum(0.0, a * a + b * b - 2.0 * a * b * f.cos(angle)))


def sasa(a: Any, angle: Any, b: Any) -> Any:
    """Return the angle [rad] between the third side and b: that opposite a."""
    return sssa(a, b, sass(a, angle, b))


TRIANGLES: Final[dict[str, Function]] = {"sssa": sssa, "sass": sass, "sasa": sasa}


def _log(x: Any, base: Any = math.e) -> Any:
    return f.log(x) if base == math.e else f.log(x) / f.log(base)


def _log10(x: Any) -> Any:
    return f.log(x) / math.log(10.0)


def _degrees(x: Any) -> Any:
    return x / DEGREE


def _radians(x: Any) -> Any:
    return x * DEGREE


def _copysign(x: Any, y: Any) -> Any:
    return f.select(y < 0.0, 0.0 - f.absolute(x), f.absolute(x))


RECORDED: Final[dict[str, Function]] = {
    **{
        name: getattr(f, name)
        for name in (
            *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
            *("sqrt", "exp", "hypot", "sinh", "cosh", "tanh", "cbrt"),
            *("floor", "ceil", "fmod"),
        )
    },
    "fabs": f.absolute,
    "pow": f.power,
    "trunc": f.truncate,
    "log": _log,
    "log10": _log10,
    "degrees": _degrees,
    "radians": _radians,
    "copysign": _copysign,
}
"""What functions of `math` are on traced scalars."""


def _either(plain: Function, recorded: Function) -> Function:
    """Return a function that is `plain`, and `recorded` where an argument is traced."""

    def function(*args: Any) -> Any:
        for arg in args:
            if isinstance(arg, Traced):
                return recorded(*args)
        return plain(*args)

    return function


MATH: Final[dict[str, Any]] = {
    name: _either(value, RECORDED[name]) if name in RECORDED else value
    for name, value in vars(math).items()
    if not name.startswith("_")
}
"""The names of the module `math` as scripts see it."""


def _least(*values: Any, **options: Any) -> Any:
    return _of_several(builtins.min, f.minimum, values, options)


def _greatest(*values: Any, **options: Any) -> Any:
    return _of_several(builtins.max, f.maximum, values, options)


def _of_several(
    plain: Function, recorded: Function, values: tuple[Any, ...], options: Any
) -> Any:
    items = list(values[0]) if len(values) == 1 else list(values)
    if options or not any(isinstance(item, Traced) for item in items):
        return plain(items, **options)
    extreme = items[0]
    for item in items[1:]:
        extreme = recorded(extreme, item)
    return extreme


class _FloatType(type):
    """Makes `float(x)` keep a traced scalar, and `isinstance(x, float)` true for it."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (builtins.float, Traced))

    def __call__(cls, value: Any = 0.0) -> Any:
        return value if isinstance(value, Traced) else builtins.float(value)


class _Float(metaclass=_FloatType):
    """What scripts know as `float`."""


OF_PYTHON_2: Final[dict[str, Any]] = {
    "xrange": range,
    "unicode": str,
    "long": int,
}


def builtins_of(modules: Mapping[str, ModuleType]) -> dict[str, Any]:
    """Return the builtins that a script runs with.

    modules: Those of its host, which imports find first.
    """

    def import_(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        if level == 0 and name in modules:
            return modules[name]
        try:
            return builtins.__import__(name, globals, locals, fromlist, level)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            offered = ", ".join(modules)
            raise ModuleNotFoundError(
                f"there is no module {name}; a script may import {offered}, and "
                "modules of Python",
                name=name,
            ) from None

    def print_(*values: Any, **options: Any) -> None:
        apart: dict[str, Any] = {"file": sys.stderr, **options}
        print(*values, **apart)  # noqa: T201

    own = {
        "__import__": import_,
        "print": print_,
        "min": _least,
        "max": _greatest,
        "float": _Float,
        **OF_PYTHON_2,
    }
    return {**vars(builtins), **own}


def host_modules(own: Mapping[str, Function]) -> dict[str, ModuleType]:
    """Return the modules of a script's host by name.

    own: Functions of the one script: `getComponent` and the like.
    """
    kinematics = {
        **CONSTANTS,
        **{name: _either(fn, fn) for name, fn in TRIANGLES.items()},
        **own,
    }
    return {
        "vcPythonKinematics": _module("vcPythonKinematics", kinematics),
        "vcMatrix": _module("vcMatrix", {"new": ScriptMatrix}),
        "vcVector": _module("vcVector", {"new": ScriptVector}),
        "math": _module("math", MATH),
        "__future__": __future__,
    }


def _module(name: str, values: Mapping[str, Any]) -> ModuleType:
    made = ModuleType(name, f"The module {name} as scripts see it.")
    vars(made).update(values)
    return made


def not_offered(what: str) -> Function:
    """Return a function that says what this host does not offer."""

    def refuse(*args: Any) -> Any:
        raise ScriptError(
            f"{what} is not offered here: a script runs without an application or a "
            "simulation, only with its component and its kinematics object."
        )

    return refuse
