"""The numbers of shapes, which are inputs of kernels: one fits all sizes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec

from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shape import SHARED_FIELDS
from armillary.model.shapes import SHAPES, ConvexPolyhedron
from armillary.spatial.pose import IDENTITY

__all__ = ["form_of", "numbers_of", "solid_of", "with_numbers"]

Body = TypeVar("Body", Primitive, Cloud, Primitive | Cloud)


def numbers_of(shape: Primitive | Cloud) -> list[Any]:
    """Return all numbers of a shape; not those of a polyhedron, which are a table.

    Those of a cloud are the numbers of its elements.
    """
    shape = solid_of(shape)
    if isinstance(shape, ConvexPolyhedron):
        return []
    # Of all fields of its own, in their order; those of tuples of points one by one.
    numbers: list[Any] = []
    for name in _own_fields(type(shape)):
        value = getattr(shape, name)
        if type(value) is float:
            numbers.append(value)
        elif type(value) is tuple and {*map(type, cast("tuple[Any, ...]", value))} == {
            float
        }:
            numbers += value
        else:
            numbers += _flat(value)
    return numbers


@cache
def _own_fields(kind: type[Primitive]) -> tuple[str, ...]:
    """Return the fields of a kind of shapes that not all shapes have."""
    names = kind.__struct_fields__
    return tuple(name for name in names if name not in SHARED_FIELDS)


def solid_of(shape: Primitive | Cloud) -> Primitive:
    """Return a shape, or of a cloud one element."""
    return shape.element if isinstance(shape, Cloud) else shape


def with_numbers(shape: Primitive, numbers: Sequence[Any]) -> Any:
    """Return a shape with other numbers, floats or traced; they are not checked."""
    # Shapes are frozen and check their fields; a copy that is filled in by force lets
    # formulas written for shapes run on traced numbers.
    made, rest = copy.copy(shape), iter(numbers)
    if not isinstance(shape, ConvexPolyhedron):
        for name in shape.__struct_fields__:
            if name not in SHARED_FIELDS:
                value = _filled(getattr(shape, name), rest)
                msgspec.structs.force_setattr(made, name, value)
    return made


def form_of(shape: Body) -> Body:
    """Return the same shape for all of a kind that a kernel is compiled for."""
    # Equal for all sizes, so that it is the key of caches of code. Those of the package
    # have nothing but numbers, or corners.
    if isinstance(shape, Cloud):
        return shape.form()
    kind = type(shape)
    if kind in _FORMS:
        return _FORMS[kind]
    made = with_numbers(shape, [0.0] * len(numbers_of(shape)))
    shared: dict[str, Any] = {"name": "", "pose": IDENTITY, "colour": None}
    if isinstance(shape, ConvexPolyhedron):
        shared["vertices"] = ()
    for name, value in shared.items():
        msgspec.structs.force_setattr(made, name, value)
    if kind in SHAPES and kind is not ConvexPolyhedron:
        _FORMS[kind] = made
    return made


_FORMS: Final[dict[type[Any], Any]] = {}


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            yield from _flat(item)
    elif _is_number(value):
        yield value


def _filled(value: Any, numbers: Iterator[Any]) -> Any:
    """Return a value with its floats replaced in order."""
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return tuple(_filled(item, numbers) for item in items)
    return next(numbers) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
