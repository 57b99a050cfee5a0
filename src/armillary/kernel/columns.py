"""Columns of a pipeline as declarations, and stages from the signatures of formulas.

A package declares the columns of its pipelines once: the meaning, shape and unit of
each. A formula names what it reads by its parameters, and what it writes by the fields
of the `NamedTuple` that it returns:

    class SpeedColumns(Columns):
        low = Column("least rates of joints", "c", unit="rad/s or m/s")
        high = Column("greatest rates of joints", "c", unit="rad/s or m/s")
        x = Column("rates of joints", "c", unit="rad/s or m/s")
        scale = Column("part of the rates that is kept")

    class Scaled(NamedTuple):
        x: Vector
        scale: Number

    def within_bounds(x: Vector, low: Vector, high: Vector) -> Scaled: ...

    columns = SpeedColumns(c=6)
    columns.stage(within_bounds)

`SpeedColumns.low` is the declaration, `columns.low` its `Port`: a name with a shape.
Fields of tables are declared in the same way, as formulas read them like columns.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeAlias, final, overload
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from armillary.errors import KernelError, unknown
from armillary.kernel.dense import Operation
from armillary.kernel.packed import Packed
from armillary.kernel.stages import (
    At,
    Call,
    Dense,
    Each,
    Farthest,
    LeastWidth,
    NearestPoint,
    NearRecords,
    Stage,
    Subdivide,
    When,
    While,
)
from armillary.kernel.tables import Field, Table, chosen_index, index
from armillary.trace import Port, Program, trace

__all__ = [
    "Column",
    "Columns",
    "Numbered",
    "at",
    "call",
    "dense",
    "each",
    "farthest",
    "index_field",
    "least_width",
    "nearest",
    "number_field",
    "repeat",
    "subdivide",
    "when",
]

Reads: TypeAlias = Port | Sequence[Port] | None
"""What a parameter reads: one column, a list of them, or nothing."""

Size: TypeAlias = int | tuple[int, ...]
"""A number of entries along an axis, or of those along several."""


class _Declared:
    """What `Column` and `Numbered` declare: a meaning, a shape and a unit."""

    __slots__ = ("into", "meaning", "name", "shape", "unit")

    def __init__(
        self, meaning: str, *shape: int | str, unit: str = "", into: str = ""
    ) -> None:
        self.meaning = meaning
        self.shape = shape
        self.unit = unit
        self.into = into
        self.name = ""

    def __set_name__(self, owner: type[Columns], name: str) -> None:
        """Take the name of the class attribute that it is assigned to."""
        self.name = name


@final
class Column(_Declared):
    """A column, or a field of a table, that formulas read by its name.

    Attributes:
        meaning: What its numbers are, in one line.
        shape: The number of entries along each axis, or the name of a size.
        unit: The unit of the numbers; empty for plain numbers.
        into: For a field that is a position along the first axis of a column, the name
            of that: formulas read what it holds there.
        name: The name of the class attribute that declares it.
    """

    __slots__ = ()

    @overload
    def __get__(self, instance: None, owner: type[Columns]) -> Self: ...
    @overload
    def __get__(self, instance: Columns, owner: type[Columns]) -> Port: ...
    def __get__(self, instance: Columns | None, owner: type[Columns]) -> Self | Port:
        if instance is None:
            return self
        # Found in the instance from now on.
        return vars(instance).setdefault(self.name, instance.port(self))


@final
class Numbered(_Declared):
    """Columns with the same meaning, of which each of a numbered kind of thing has one.

    `columns.rows(3, m=2)` is the port `rows_3`; sizes beside those of `columns`, which
    differ from one to the next, are given there. Formulas of thing 3 name them without
    the number, in stages of `columns.of(3, m=2)`; there `rows()` is the port.

    Attributes: as those of `Column`.
    """

    __slots__ = ()

    @overload
    def __get__(self, instance: None, owner: type[Columns]) -> Self: ...
    @overload
    def __get__(
        self, instance: Columns, owner: type[Columns]
    ) -> Callable[..., Port]: ...
    def __get__(
        self, instance: Columns | None, owner: type[Columns]
    ) -> Self | Callable[..., Port]:
        if instance is None:
            return self

        def port(number: int | None = None, **sizes: Size) -> Port:
            return instance.port(self, number, **sizes)

        return port


class Columns:
    """The columns that the formulas of a pipeline read and write.

    A subclass declares them. Its instances know the sizes, and make stages.
    """

    owner: ClassVar[str] = ""
    """What messages call them; by default the name of the class."""

    number: int | None = None
    """The number of the thing whose `Numbered` columns are meant."""

    def __init__(self, **sizes: Size) -> None:
        """Set the sizes that shapes name."""
        self.sizes = sizes

    def of(self, number: int, **sizes: Size) -> Self:
        """Return the columns of a numbered thing, beside those of all.

        Args:
            number: Its number.
            sizes: Sizes of its columns.
        """
        made = copy.copy(self)
        for column in self.declared():
            vars(made).pop(column.name, None)  # it may have other sizes there
        made.number, made.sizes = number, {**self.sizes, **sizes}
        return made

    def port(
        self, column: Column | Numbered, number: int | None = None, **sizes: Size
    ) -> Port:
        """Return the name and the shape of a column.

        Raises:
            KernelError: A size of its shape or its number is missing.
        """
        known = {**self.sizes, **sizes}
        shape: list[int] = []
        for entries in column.shape:
            if isinstance(entries, str) and entries not in known:
                raise KernelError(
                    f"The column '{column.name}' of {self._label} has the size "
                    f"'{entries}', which is missing: there are {sorted(known)}."
                )
            # A size may be several entries at once: the shape of a matrix under one
            # name.
            size = known[entries] if isinstance(entries, str) else entries
            shape += (size,) if isinstance(size, int) else size
        if isinstance(column, Column):
            return Port(column.name, tuple(shape))
        # A column of a numbered thing: of the one that is named, or of that of `of`.
        number = self.number if number is None else number
        if number is None:
            raise KernelError(
                f"The columns '{column.name}' of {self._label} are numbered; name one "
                "by of(number)."
            )
        return Port(f"{column.name}_{number}", tuple(shape))

    def named(self, name: str) -> Port:
        """Return the port of a column.

        Raises:
            UnknownName: No column of this name is declared.
        """
        column = getattr(type(self), name, None)
        if not isinstance(column, Column | Numbered):
            known = sorted({column.name for column in self.declared()})
            raise unknown("column", name, known, owner=self._label)
        return self.port(column)

    def group(self, *kinds: Any) -> tuple[Port, ...]:
        """Return the ports of the columns that the fields of `NamedTuple`s name."""
        return tuple(self.named(name) for kind in kinds for name in _names(kind))

    def table(self, name: str, *fields: Port | Field, is_single: bool = False) -> Table:
        """Return a table with fields of declared columns, and others.

        Args:
            name: Its name.
            fields: Columns that hold numbers, or are declared `into` another one;
                spans and codes as they are.
            is_single: Whether it always has one record.
        """
        into = _into(type(self))
        listed: list[Field] = []
        for field in fields:
            if isinstance(field, Field):
                listed.append(field)
                continue
            base = field.name.removesuffix(f"_{self.number}")
            column = into.get(field.name, into.get(base, ""))
            made = index_field(field, column) if column else number_field(field)
            listed.append(made)
        return Table(name, tuple(listed), is_single)

    @classmethod
    def declared(cls) -> Iterator[Column | Numbered]:
        """Yield all declarations, those of base classes first."""
        for base in reversed(cls.__mro__):
            for value in vars(base).values():
                if isinstance(value, Column | Numbered):
                    yield value

    def stage(
        self,
        formula: Callable[..., Any],
        *,
        writes: Port | Sequence[Port] = (),
        **reads: Reads,
    ) -> Program:
        """Return a formula as a program on these columns.

        Each positional parameter is the column of its name. A parameter whose type is a
        `NamedTuple` gets one with the columns that its fields name, as lists; so may
        fields of that and of what the formula returns be. One whose type is `Packed`
        gets its column by the names of parts. Keyword-only parameters are not columns:
        `functools.partial` sets them.

        Args:
            formula: A function of traced numbers and arrays of them.
            writes: The columns that it writes, in the order in which it returns them;
                by default those that the fields of the `NamedTuple` it returns name.
            reads: For a parameter another column than that of its name, or several,
                which it gets as a list; None leaves it at its default.

        Raises:
            KernelError: The formula does not say what it writes, or returns another
                shape than is declared.
            UnknownName: No column has the name of a parameter.
        """
        signature = _FormulaSignature.of(formula)
        # `None` in `reads` leaves a parameter at its default; it reads nothing.
        readers = [
            self._reader(parameter, signature, reads)
            for parameter in signature.parameters
            if reads.get(parameter, parameter) is not None
        ]
        # A misspelled name in `reads` would be ignored otherwise.
        if strange := set(reads) - set(signature.parameters):
            raise unknown(
                "parameter", min(strange), signature.parameters, owner=signature.label
            )
        ports = self._written(signature, writes)
        # A group of columns is several inputs of the program and one argument of the
        # formula; `by_names` puts them together again.
        inputs = [port for reader in readers for port in reader.ports]

        @functools.wraps(formula)
        def by_names(*values: Any) -> Any:
            left = iter(values)
            result = formula(**{reader.name: reader.take(left) for reader in readers})
            return tuple(_flat(result)) if len(ports) > 1 else _unpacked(result)

        program = trace(
            by_names,
            name=ports[0].name,
            outputs=tuple(port.name for port in ports),
            **{port.name: port.shape for port in inputs},
        )
        # The trace knows the shapes that the formula returns; the declaration is the
        # other side of that contract.
        for made, declared in zip(program.outputs, ports, strict=True):
            if made.shape != declared.shape:
                raise KernelError(
                    f"{signature.label} returns '{declared.name}' with the shape "
                    f"{made.shape}; {self._label} declares {declared.shape}."
                )
        return program

    def _written(
        self, signature: _FormulaSignature, writes: Port | Sequence[Port]
    ) -> tuple[Port, ...]:
        """Return the columns that a formula writes."""
        ports = (writes,) if isinstance(writes, Port) else tuple(writes)
        if ports:
            return ports
        if not signature.results:
            raise KernelError(
                f"{signature.label} does not say what it writes: return a "
                "NamedTuple whose fields are columns, or pass writes=."
            )
        return tuple(map(self.named, signature.results))

    def _reader(
        self, name: str, signature: _FormulaSignature, reads: dict[str, Reads]
    ) -> _ParameterReader:
        other = reads.get(name)
        if other is not None and not isinstance(other, Port):
            return _ParameterReader(name, tuple(other), list)
        if name in signature.packed:
            kind, port = signature.packed[name], other or self.named(name)
            # Sizes tell the parts apart where others follow that `kind` does not name.
            names = kind.size_names() & set(self.sizes)
            sizes: dict[str, Any] = {size: self.sizes[size] for size in names}
            return _ParameterReader(
                name, (port,), lambda values: kind(next(values), **sizes)
            )
        if other is None and name in signature.groups:
            group = signature.groups[name]
            return _ParameterReader(
                name, self.group(group), lambda values: _made(group, values)
            )
        return _ParameterReader(name, (other or self.named(name),), None)

    @property
    def _label(self) -> str:
        return self.owner or type(self).__name__


@final
class _ParameterReader(msgspec.Struct, frozen=True):
    """What a parameter of a formula reads: one column, or several as one argument."""

    name: str
    ports: tuple[Port, ...]
    group: Callable[[Iterator[Any]], Any] | None

    def take(self, values: Iterator[Any]) -> Any:
        """Return the argument, from the values of all columns that are left."""
        # The values come in the order of the ports of all readers; a column by itself
        # is an array, columns of a group are lists.
        mine = [next(values) for _ in self.ports]
        return mine[0] if self.group is None else self.group(map(_listed, mine))


@final
class _FormulaSignature(msgspec.Struct, frozen=True):
    """What the signature of a formula says about columns.

    Attributes:
        label: What messages call the formula.
        parameters: The names of its positional parameters.
        groups: The parameters whose type is a `NamedTuple`, with that type.
        packed: Those whose type is `Packed`, with that type.
        results: The fields of the `NamedTuple` that it returns, if it does.
    """

    label: str
    parameters: tuple[str, ...]
    groups: dict[str, Any]
    packed: dict[str, type[Packed]]
    results: tuple[str, ...]

    @classmethod
    def of(cls, formula: Callable[..., Any]) -> _FormulaSignature:
        # Types and the name are those of the function inside; what `partial` sets is
        # keyword-only in the signature outside, so no column.
        function = getattr(formula, "func", formula)  # of functools.partial
        label = f"the formula '{getattr(function, '__qualname__', function)}'"
        parameters = inspect.signature(formula).parameters.values()
        names = tuple(
            parameter.name
            for parameter in parameters
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        )
        hints = _hints(function)
        # `Group | None` is a group that a formula may do without.
        wholes = {name: _without_none(kind) for name, kind in hints.items()}
        groups = {name: kind for name, kind in wholes.items() if _is_group(kind)}
        returned = groups.pop("return", None)
        results = _names(returned) if returned else ()
        packed = {name: kind for name, kind in wholes.items() if _is_packed(kind)}
        return cls(label, names, groups, packed, results)


# Of formulas and of types. A formula may hold the cell that it is of, which must not
# stay for the sake of its types.
_known_hints: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def _is_group(kind: Any) -> bool:
    """Return whether a type is a `NamedTuple`."""
    return isinstance(kind, type) and hasattr(kind, "_fields")


def _is_packed(kind: Any) -> bool:
    """Return whether a type names the parts of one column."""
    return isinstance(kind, type) and issubclass(kind, Packed)


def _hints(function: Any) -> dict[str, Any]:
    """Return the types of parameters, or of fields."""
    known = _known_hints.get(function)
    if known is None:
        known = _known_hints[function] = typing.get_type_hints(function)
    return known


def _without_none(kind: Any) -> Any:
    """Return the type of a parameter that may be None as the other type."""
    if not isinstance(kind, types.UnionType):
        return kind
    others = [part for part in typing.get_args(kind) if part is not type(None)]
    return others[0] if len(others) == 1 else kind


@functools.cache
def _into(kind: type[Columns]) -> dict[str, str]:
    """Return which column each declared one leads into, if any."""
    return {column.name: column.into for column in kind.declared()}


@functools.lru_cache(maxsize=256)
def _names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a `NamedTuple`, those of groups in place of groups."""
    names: list[str] = []
    for name, part in _hints(kind).items():
        names += _names(part) if _is_group(part) else (name,)
    return tuple(names)


def _made(kind: Any, values: Iterator[Any]) -> Any:
    """Return a `NamedTuple` of the values of `_names`."""
    parts = _hints(kind).values()
    return kind(*(_made(p, values) if _is_group(p) else next(values) for p in parts))


def _flat(group: Any) -> Iterator[Any]:
    """Yield the values of `_names`."""
    for value in group:
        if _is_group(type(value)):
            yield from _flat(value)
        else:
            yield _unpacked(value)


def _unpacked(value: Any) -> Any:
    """Return the numbers of a packed column, and others as they are."""
    return value.numbers if isinstance(value, Packed) else value


def _listed(value: Any) -> Any:
    """Return an array as a list of its entries, or of its rows as lists."""
    if not isinstance(value, np.ndarray):
        return value
    return [_listed(entry) for entry in typing.cast("Any", value)]


# Fields and regions, of declared columns


def number_field(column: Port) -> Field:
    """Return the field of a table that holds the numbers of a column."""
    return Field(column.name, "real", column.shape)


def index_field(column: Port, into: Port | str, *, by: str = "") -> Field:
    """Return the field that is a position along the first axis of another column.

    Formulas read what that column holds there, by the name of the field.

    by: The field by which each row chooses the position, see `chosen_index`.
    """
    name = into if isinstance(into, str) else into.name
    return chosen_index(column.name, name, by) if by else index(column.name, name)


def each(
    table: Table,
    *stages: Stage,
    within: str = "",
    active: Port | None = None,
    together: bool = False,
    near: NearRecords | None = None,
    several: Sequence[Port] = (),
) -> Each:
    """Return stages that run for each record of a table; see `Each`."""
    name = active.name if active else ""
    ports = tuple(port.name for port in several)
    return Each(table.name, stages, within, name, together, near, ports)


def when(condition: Port, *stages: Stage, together: bool = False) -> When:
    """Return stages that run for rows in which a column is above 0; see `When`."""
    return When(condition.name, stages, together)


def at(table: Table, record: Port, *stages: Stage) -> At:
    """Return stages that run with the record that each row chooses; see `At`."""
    return At(table.name, stages, record.name)


def repeat(condition: Port, *stages: Stage, limit: int) -> While:
    """Return stages that are repeated while a column is above 0; see `While`."""
    return While(condition.name, stages, limit)


def subdivide(
    piece: Sequence[Port],
    *stages: Stage,
    longest: Port,
    covered: Port,
    ended: Port,
    shortest: float,
    limit: int,
    anywhere: bool = False,
) -> Subdivide:
    """Return stages that cover the interval of a row by pieces; see `Subdivide`."""
    at, back, ahead, ending = (port.name for port in piece)
    names = longest.name, covered.name, ended.name
    return Subdivide(
        (at, back, ahead, ending), stages, *names, shortest, limit, anywhere
    )


def nearest(
    tree: Table,
    point: Port,
    *stages: Stage,
    value: Port,
    least: Port,
    enough: Port,
    chosen: Port,
    part: float = 1.0,
) -> NearestPoint:
    """Return stages that measure points of a tree of balls; see `NearestPoint`."""
    (balls,) = (field.name for field in tree.fields)
    columns = value.name, least.name, enough.name
    return NearestPoint(tree.name, balls, point, stages, *columns, chosen, part)


def least_width(
    direction: Port,
    *stages: Stage,
    point: Port,
    extent: Port,
    depth: Port,
    axis: Port,
    least: Port,
    wanted: Port | None = None,
    touch: tuple[Port, Port] | None = None,
) -> LeastWidth:
    """Return stages that find points of a convex body; see `LeastWidth`.

    touch: Its `source` and `touch`, if those are asked for.
    """
    names = extent.name, depth.name
    below = wanted.name if wanted else ""
    more = axis, least.name, below, *(touch or ())
    return LeastWidth(direction, stages, point, *names, *more)


def call(
    code: str,
    reads: Sequence[Port],
    writes: Sequence[Port],
    given: Sequence[str] = (),
) -> Call:
    """Return the call of the pipeline that the record around it chooses; see `Call`."""
    return Call(code, tuple(port.name for port in reads), tuple(writes), tuple(given))


def farthest(table: Table, points: Port, direction: Port, output: Port) -> Farthest:
    """Return the search for the farthest point of a table; see `Farthest`."""
    return Farthest(table.name, points.name, direction.name, output)


def dense(
    operation: Operation,
    formula: Callable[..., Sequence[Any]],
    reads: Sequence[Port],
    writes: Sequence[Port],
    *,
    table: Table | None = None,
    fields: Sequence[Port] = (),
) -> Dense:
    """Return linear algebra in loops, of which `formula` is the same; see `Dense`."""
    return Dense(
        operation,
        tuple(port.name for port in reads),
        tuple(writes),
        formula,
        table.name if table else "",
        tuple(port.name for port in fields),
    )
