"""Scripts on traced scalars: what they remember, and functions that are formulas.

A script is run again for each outcome of its ifs, so what it keeps in globals must be
as before each time. Functions that only compute are traced on their own: an `if` in a
function that is called for each joint then does not multiply the paths of its caller.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final, cast

from armillary.scripts.host_modules import MATH, TRIANGLES
from armillary.scripts.matrix import ScriptMatrix
from armillary.scripts.vector import ScriptVector
from armillary.trace import Traced
from armillary.trace.branches import explore

__all__ = ["formulas_of", "remembered"]

SLOTTED: Final = (ScriptMatrix, ScriptVector)
OUTER: Final = "__builtins__"

# What a script keeps.


@contextmanager
def remembered(roots: Iterable[object], module: str) -> Generator[None]:
    """Undo at the end what happens meanwhile to all that `roots` reach.

    roots: Lists, dicts, sets, vectors, matrices, and instances of the script's classes.
    module: The name of the script's module.
    """
    memory = _Memory(module)
    for root in roots:
        memory.add(root)
    try:
        yield
    finally:
        memory.restore()


class _Memory:
    """The contents of changeable objects, each of which gets its own back."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._kept: dict[int, tuple[Any, Any]] = {}

    def add(self, root: object) -> None:
        """Keep the contents of `root` and of all that it reaches."""
        waiting: list[Any] = [root]
        while waiting:
            item = waiting.pop()
            if id(item) in self._kept or not self._is_kept(item):
                continue
            contents = _contents(item)
            self._kept[id(item)] = item, contents
            if isinstance(contents, dict):
                waiting += cast(dict[Any, Any], contents).values()
            else:
                waiting += contents

    def _is_kept(self, item: Any) -> bool:
        if isinstance(item, (list, dict, set, *SLOTTED)):
            return True
        kind: Any = item if isinstance(item, type) else cast(Any, type(item))
        is_ours = kind.__module__.startswith("armillary.scripts.")
        return kind.__module__ == self._module or (
            is_ours and not isinstance(item, type) and hasattr(item, "__dict__")
        )

    def restore(self) -> None:
        """Give all of them their contents back."""
        for item, contents in self._kept.values():
            _put_back(item, contents)


def _contents(item: Any) -> Any:
    if isinstance(item, SLOTTED):
        return {name: getattr(item, name) for name in type(item).__slots__}
    if isinstance(item, dict):
        names = cast(dict[Any, Any], item)
        return {key: names[key] for key in names if key != OUTER}
    if isinstance(item, (list, set)):
        return cast(Any, item).copy()
    if isinstance(item, type):
        return {
            name: value
            for name, value in vars(item).items()
            if not name.startswith("__") and not callable(value)
        }
    return dict(_attributes(item))


def _put_back(item: Any, contents: Any) -> None:
    if isinstance(item, list):
        item[:] = contents
    elif isinstance(item, (dict, set)):
        container = cast(Any, item)
        if isinstance(item, dict) and OUTER in container:
            contents = {**contents, OUTER: container[OUTER]}
        container.clear()
        container.update(contents)
    elif isinstance(item, (*SLOTTED, type)):
        for name, value in contents.items():
            setattr(item, name, value)
    else:
        attributes = _attributes(item)
        attributes.clear()
        attributes.update(contents)


def _attributes(item: object) -> dict[str, Any]:
    return vars(item)


# Functions that are formulas.

PURE_CALLS: Final = {
    *(name for name, value in MATH.items() if callable(value)),
    *TRIANGLES,
    *("abs", "min", "max", "float", "int", "len", "range", "xrange", "round", "sum"),
    *("list", "tuple", "zip", "enumerate", "bool", "pow"),
}
FORBIDDEN: Final = (
    *(ast.Global, ast.Nonlocal, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await),
    *(ast.Lambda, ast.Import, ast.ImportFrom, ast.ClassDef, ast.With, ast.NamedExpr),
    *(ast.Try, ast.AsyncFunctionDef),
)


def formulas_of(tree: ast.Module) -> tuple[str, ...]:
    """Return the names of functions at the top of a script that only compute.

    They read what they like, but write to local names alone, and call only such
    functions and those of `math`.
    """
    defined = {
        each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)
    }
    candidates = {name for name, each in defined.items() if _only_computes(each)}
    while True:
        allowed = PURE_CALLS | candidates
        left = {name for name in candidates if _calls(defined[name]) <= allowed}
        if left == candidates:
            return tuple(sorted(left))
        candidates = left  # once more: these may have called what has gone


def _only_computes(function: ast.FunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, FORBIDDEN):
            return False
        if isinstance(node, ast.FunctionDef) and node is not function:
            return False
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(
            node.ctx, ast.Load
        ):
            return False
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            return False
    return True


def _calls(function: ast.FunctionDef) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@contextmanager
def traced_apart(namespace: dict[str, Any], names: Iterable[str]) -> Generator[None]:
    """Let functions that only compute join their own branches meanwhile."""
    plain = {
        name: namespace[name]
        for name in names
        if isinstance(namespace.get(name), FunctionType)
    }
    for name, function in plain.items():
        namespace[name] = _joined(function)
    try:
        yield
    finally:
        namespace.update(plain)


def _joined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that explores its branches where an argument is traced."""

    def call(*args: Any, **options: Any) -> Any:
        tape = _tape_of(args, options)
        if tape is None:
            return function(*args, **options)
        # Each `if` of the function is a select in the trace of its caller.
        returns = _Returns()
        numbers = explore(
            tape,
            lambda: function(*args, **options),
            function.__name__,
            flat=returns.flat,
        )
        if returns.differ:  # its caller has to tell the branches apart
            return function(*args, **options)
        return _unflatten(returns.shapes[0], iter(numbers))

    return call


class _Returns:
    """What a function returns on its branches.

    Attributes:
        shapes: The structure on each branch.
        differ: Whether they differ, or hold something else than numbers.
    """

    def __init__(self) -> None:
        self.shapes: list[Any] = []
        self.differ = False
        self._count = 0

    def flat(self, returned: Any) -> list[Any]:
        """Return the numbers on one branch, as many as on the first."""
        numbers: list[Any] = []
        try:
            self.shapes.append(_flatten(returned, numbers))
        except TypeError:
            self.differ = True
        if self.shapes[:1] != self.shapes[-1:]:
            self.differ = True
        if self.differ:
            return [0.0] * self._count
        self._count = len(numbers)
        return numbers


def _tape_of(args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    waiting = [*args, *options.values()]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Traced):
            return item.tape
        if isinstance(item, (list, tuple)):
            waiting += cast(Any, item)
        elif isinstance(item, SLOTTED):
            waiting += _contents(item).values()
    return None


def _flatten(value: Any, numbers: list[Any]) -> Any:
    """Append the numbers in a value, and return its structure."""
    if isinstance(value, builtins.bool) or not isinstance(
        value, (int, float, list, tuple, Traced)
    ):
        raise TypeError
    if isinstance(value, (list, tuple)):
        items = cast("list[Any]", value)
        return type(items), [_flatten(item, numbers) for item in items]
    numbers.append(value)
    return None


def _unflatten(shape: Any, numbers: Any) -> Any:
    if shape is None:
        return next(numbers)
    kind, parts = shape
    return kind(_unflatten(part, numbers) for part in parts)
