"""Vectors of numbers whose parts have names: one declaration of what stands where.

    class Bump(Packed):
        centre = Part("its middle", 3, unit="m")
        slopes = Part("by how much it rises", "c")
        radius = Part("its radius", unit="m")

    Bump.size(c=6)  # 10
    bump = Bump(numbers)  # a list of traced numbers, or an array (..., 10)
    bump.slopes  # six of them
    bump.replaced(radius=0.0).numbers  # all of them, as a list

`Columns.stage` gives formulas a column as such an object by the type of a parameter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Self, cast, final, overload

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, unknown

__all__ = ["Packed", "Part", "width_of"]


Array = npt.NDArray[Any]


@final
class Part:
    """A part of a packed vector.

    Attributes:
        meaning: What its numbers are, in one line.
        shape: The number of entries along each axis, or the name of a size; () is one
            number.
        unit: The unit of the numbers; empty for plain numbers.
        name: The name of the class attribute that declares it.
    """

    __slots__ = ("meaning", "name", "shape", "unit")

    def __init__(self, meaning: str, *shape: int | str, unit: str = "") -> None:
        self.meaning = meaning
        self.shape = shape
        self.unit = unit
        self.name = ""

    def __set_name__(self, owner: type[Packed], name: str) -> None:
        """Take the name of the class attribute that it is assigned to."""
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type[Packed]) -> Self: ...
    @overload
    def __get__(self, instance: Packed, owner: type[Packed]) -> Any: ...
    def __get__(self, instance: Packed | None, owner: type[Packed]) -> Any:
        return self if instance is None else instance.part(self.name)

    def __set__(self, instance: Packed, value: Any) -> None:
        """Write the numbers of an array; those that broadcast to its shape."""
        place, shape = instance.places[self.name]
        if len(shape) < 2:
            instance.numbers[..., place] = value
        else:
            instance.part(self.name)[...] = value


class Packed:
    """Numbers of several things in one vector, by the names of its parts.

    A subclass declares the parts, in their order, those of its base classes first.

    Attributes:
        numbers: All numbers: a list, or an array with the parts along its last axis,
            whose parts are views.
        places: Where the numbers of each part are along that axis, and its shape.
    """

    __slots__ = ("numbers", "places")

    def __init__(self, numbers: Any, **sizes: int) -> None:
        """Name the parts of numbers.

        Args:
            numbers: A sequence of traced numbers, or an array of numbers. Others may
                follow behind the parts if all sizes are given.
            sizes: Sizes that shapes name. One that a single vector has may be missing,
                as the number of numbers tells it.
        """
        # Traced numbers come in arrays of objects of one dimension.
        kind = cast("Array", numbers).dtype.kind if _is_array(numbers) else "O"
        self.numbers: Any = list(numbers) if kind == "O" else numbers
        self.places = _places(type(self), width_of(numbers), *sizes.items())

    def part(self, name: str) -> Any:
        """Return a part: a number, nested lists, or a view of an array."""
        place, shape = self.places[name]
        numbers = self.numbers
        if isinstance(numbers, list):
            return _nested(cast("list[Any]", numbers)[place], shape)
        part = numbers[..., place]
        return part if len(shape) < 2 else part.reshape(*part.shape[:-1], *shape)

    def replaced(self, **parts: Any) -> Self:
        """Return the same with other parts, as a list of numbers."""
        own = {name: self.part(name) for name in self.places}
        return type(self).of(**{**own, **parts})

    @classmethod
    def of(cls, **parts: Any) -> Self:
        """Return a list of numbers, those of each part.

        Raises:
            UnknownName: There is no such part.
            KernelError: A part is missing.
        """
        names = [part.name for part in cls.parts()]
        if strange := set(parts) - set(names):
            raise unknown("part", min(strange), names, owner=cls.__name__)
        if missing := set(names) - set(parts):
            raise KernelError(f"{cls.__name__} needs the part '{min(missing)}'.")
        values = [(parts[part.name], len(part.shape)) for part in cls.parts()]
        return cls([number for value, rank in values for number in _flat(value, rank)])

    @classmethod
    def parts(cls) -> Iterator[Part]:
        """Yield all parts, in their order."""
        for base in reversed(cls.__mro__):
            for value in vars(base).values():
                if isinstance(value, Part):
                    yield value

    @classmethod
    def size_names(cls) -> set[str]:
        """Return the names of sizes that shapes of its parts name."""
        return {s for part in cls.parts() for s in part.shape if isinstance(s, str)}

    @classmethod
    def size(cls, **sizes: int) -> int:
        """Return how many numbers it has, with the sizes that shapes name."""
        return sum(_count(part.shape, sizes) for part in cls.parts())


def width_of(numbers: Any) -> int:
    """Return how many numbers a list has, or an array along its last axis."""
    return numbers.shape[-1] if _is_array(numbers) else len(numbers)


def _is_array(numbers: Any) -> bool:
    return isinstance(numbers, np.ndarray)


@functools.cache
def _places(
    kind: type[Packed], count: int, *given: tuple[str, int]
) -> dict[str, tuple[int | slice, tuple[int, ...]]]:
    """Return where the numbers of each part are, and its shape.

    Raises:
        KernelError: The number of numbers is another one.
    """
    sizes, parts = dict(given), list(kind.parts())
    for size in kind.size_names() - set(sizes):
        # One part has that size, along its one axis: what others leave is its own.
        sizes[size] = count - kind.size(**{**sizes, size: 0})
    needed = kind.size(**sizes)
    if needed > count or min(sizes.values(), default=0) < 0:
        raise KernelError(f"{kind.__name__} does not have {count} numbers.")
    places: dict[str, tuple[int | slice, tuple[int, ...]]] = {}
    begin = 0
    for part in parts:
        shape = tuple(sizes[s] if isinstance(s, str) else s for s in part.shape)
        end = begin + math.prod(shape)
        places[part.name] = slice(begin, end) if shape else begin, shape
        begin = end
    return places


def _count(shape: Sequence[int | str], sizes: dict[str, int]) -> int:
    return math.prod(sizes[s] if isinstance(s, str) else s for s in shape)


def _nested(numbers: Any, shape: tuple[int, ...]) -> Any:
    """Return numbers as nested lists of a shape, the last axis fastest."""
    if len(shape) < 2:
        return numbers
    step = math.prod(shape[1:])
    rows = (numbers[k * step : (k + 1) * step] for k in range(shape[0]))
    return [_nested(row, shape[1:]) for row in rows]


def _flat(value: Any, rank: int) -> list[Any]:
    """Return the numbers of nested sequences."""
    if not rank:
        return [value]
    return [number for entry in value for number in _flat(entry, rank - 1)]
