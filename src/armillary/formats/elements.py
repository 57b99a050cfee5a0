"""Elements of XML files as tables of rows, by which they are read and written.

A format says once what each of its elements holds. `ElementTable.read` and its `write`
follow the rows:

    MIMIC = ElementTable(
        "mimic",
        Row("joint", TEXT, "of"),
        Row("multiplier", NUMBER, default=1.0),
        Row("offset", NUMBER, default=0.0),
    )
    values = MIMIC.read(element, report)
    # {"of": "finger", "multiplier": 1.0, "offset": 0.5}
    element = MIMIC.write(Coupling(of="finger", offset=0.5))
    # <mimic joint="finger" offset="0.5"/>

- A row stands for one attribute, or for several whose values are one tuple, such as the
  `x`, `y`, `z` of a size. Its kind parses and prints the text, and reports what is
  wrong with it; its field says under which name the value is read and written.
- Formats that write values as children with a text, `<size>1 2 3</size>`, have rows
  with `child=True`.
- Reading gives a value for each field: the default of the row without the attribute,
  after an error None, the default or the first word, as its kind says. An attribute
  without a default is required.
- Writing takes the fields of a mapping or of an object. A value equal to the default is
  left out, unless the row is `always` written.
- What is written reads back as the same values: `tests/formats/test_elements.py` tries
  it with all tables.

The children that an element may have, and whether it has text, are in the table too.
`Elements` are the tables of a format; its `report_unknown` compares a whole file with
them. Without it, `xml.report_unused` reports what no reader has asked for.

To add an element to a format, or an attribute to an element, add its table or row. An
element that makes a shape, `makes=` in its table, needs nothing else. Any other needs
where it is read, by `first_child` and `Elements.read` as in `urdf/joints.py`, and where
it is written, as in `urdf/write.py`; and it leaves the list of what a format does not
read, `FOREIGN` of `urdf/read.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Generic, TypeVar, cast, final

import msgspec

from armillary.errors import quote, suggestion
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.numbers import plain_number, plain_numbers
from armillary.formats.xml import TEXT_KEY, Element, report_unused, tag
from armillary.formats.xml.write import Value

__all__ = [
    "FILE",
    "NAME",
    "NUMBER",
    "REQUIRED",
    "SIZE",
    "TEXT",
    "ElementTable",
    "Elements",
    "Kind",
    "Row",
    "all_numbers",
    "choice",
    "numbers",
    "one_of",
]

T = TypeVar("T")
C = TypeVar("C")
"""What kinds report to: a `Report`, or what a format's reader looks names up in."""

REQUIRED: Final[Any] = object()
"""The default of a row whose attribute must be given."""


# Kinds of values


def _as_it_is(value: Any) -> Value:
    return value


class Kind(msgspec.Struct, Generic[C], frozen=True):
    """How the text of an attribute becomes a value, and a value a text.

    Attributes:
        read: Return the value of an attribute of an element, given the default of its
            row; after an error, which it reports, None or the default.
        write: Return the text or the numbers of a value.
        plain: Return the value of a text without fault, as `read` does, which is asked
            where that is None. Nearly all texts are such, and nothing else is done for
            them; without an attribute the value is then the default.
    """

    read: Callable[[Element, str, C, Any], Any]
    write: Callable[[Any], Value] = _as_it_is
    plain: Callable[[str], Any] | None = None


def _text(element: Element, key: str, report: Report, default: Any) -> Any:
    if default is REQUIRED:
        return element.required_attribute(key, report)
    value = element.attribute(key)
    return default if value is None else value


def _name(element: Element, key: str, report: Report, default: Any) -> Any:
    value = _text(element, key, report, default)
    if value == "":
        message = f"{element.what(key)} is empty"
        report.error(element.place, "missing-name", message)
    return value or None


def _file(element: Element, key: str, report: Report, default: Any) -> Any:
    value = _text(element, key, report, default)
    if value is None or value.strip():
        return value
    message = f"{element.label} names no file"
    report.error(element.place, "empty-reference", message)
    return None


def _number(element: Element, key: str, report: Report, default: Any) -> Any:
    is_required = default is REQUIRED
    value = element.number(key, report, required=is_required)
    return value if value is not None or is_required else default


def _size(element: Element, key: str, report: Report, default: Any) -> Any:
    value = _number(element, key, report, default)
    if value is None or value >= 0.0:
        return value
    message = f"{element.what(key)} is negative"
    report.error(element.place, "negative-size", message)
    return None


def _plain_name(text: str) -> str | None:
    return text or None


def _plain_size(text: str) -> float | None:
    value = plain_number(text)
    return value if value is not None and value >= 0.0 else None


TEXT: Final = Kind(_text, plain=str)
"""Any text, also an empty one."""

NAME: Final = Kind(_name, plain=_plain_name)
"""A text that is not empty."""

FILE: Final = Kind(_file)
"""The name of a file, which is not blank."""

NUMBER: Final = Kind(_number, plain=plain_number)
"""A finite number."""

SIZE: Final = Kind(_size, plain=_plain_size)
"""A number that is not negative."""


def numbers(count: int | None) -> Kind[Report]:
    """Return the kind of `count` finite numbers; None stands for any count."""

    def read(element: Element, key: str, report: Report, default: Any) -> Any:
        is_required = default is REQUIRED
        numbers = element.numbers(key, count, report, required=is_required)
        return numbers if numbers is not None or is_required else default

    return Kind(read, plain=partial(plain_numbers, count=count))


def one_of(*words: str) -> Kind[Report]:
    """Return the kind of one of a few words; after an error it is the first one."""
    return choice(dict(zip(words, words, strict=True)))


def choice(words: Mapping[str, Any]) -> Kind[Report]:
    """Return the kind of one of a few words, each of which stands for a value."""
    first = next(iter(words.values()))

    def read(element: Element, key: str, report: Report, default: Any) -> Any:
        word = _text(element, key, report, default)
        if key not in element.attributes:
            return first if default is REQUIRED else default
        if word in words:
            return words[word]
        report.error(
            element.place,
            "unknown-value",
            f"{element.what(key)} is {quote(word)}, not one of {', '.join(words)}",
            hint=suggestion(word, words),
        )
        return first

    texts = {value: word for word, value in words.items()}
    return Kind(read, texts.__getitem__, words.get)


# Tables


@final
class Row(Generic[C]):
    """One attribute of an element, or several that are one value.

    Attributes:
        attributes: Their names.
        kind: How each is parsed and printed.
        key: The name of the value.
        default: The value without the attribute.
        always: Whether the default is written too.
        child: Whether the value is the text of a child of that name.
        single: The name of its one attribute or child, None for several.
    """

    __slots__ = ("always", "attributes", "child", "default", "key", "kind", "single")

    def __init__(
        self,
        attribute: str,
        kind: Kind[C],
        field: str = "",
        *,
        default: Any = REQUIRED,
        always: bool = False,
        child: bool = False,
    ) -> None:
        """Make a row.

        attribute: The name; names of several are separated by spaces.
        field: The name of the value; by default that of the attribute.
        child: Only for formats whose kinds report to a `Report`.
        """
        self.attributes: Final = tuple(attribute.split())
        self.kind: Final = kind
        self.key: Final = field or attribute
        self.default: Final = default
        self.always: Final = always
        self.child: Final = child
        self.single: Final = self.attributes[0] if len(self.attributes) == 1 else None

    def read(self, element: Element, context: C) -> Any:
        """Return the value; after an error None, the default or the first word."""
        names, read = self.attributes, self.kind.read
        if self.child:
            return self._read_child(element, context)
        if self.single is not None:
            return read(element, self.single, context, self.default)
        texts, plain = [element.attributes.get(name) for name in names], self.kind.plain
        values: list[Any] = [None]
        if plain is not None and None not in texts:
            element.ask(names)
            values = [plain(text) for text in cast(list[str], texts)]
        if None in values:
            values = [read(element, name, context, self.default) for name in names]
        return None if None in values else tuple(values)

    def _read_child(self, element: Element, context: C) -> Any:
        """Return the value of a child's text."""
        is_required = self.default is REQUIRED
        report = cast(Report, context)
        child = element.first_child(self.key_in_file, report, required=is_required)
        if child is None:
            return None if is_required else self.default
        return self.kind.read(child.of_text(), TEXT_KEY, context, self.default)

    @property
    def key_in_file(self) -> str:
        """Return the name of the one attribute or child."""
        return self.attributes[0]

    def write(self, value: Any) -> dict[str, Value]:
        """Return the attributes of a value, nothing for None and for the default.

        The texts of children come as attributes, too.
        """
        if value is None or (value == self.default and not self.always):
            return {}
        names, write = self.attributes, self.kind.write
        if len(names) == 1:
            return {names[0]: write(value)}
        return dict(zip(names, map(write, value), strict=True))


@final
class ElementTable(Generic[C]):
    """What an element of one name holds.

    Attributes:
        name: Of the element.
        rows: Its attributes, and `fields` the names of their values.
        children: The names of the elements that may be inside of it.
        has_text: Whether it has a text.
        makes: The class of the model that has the fields of the rows, if there is one.
    """

    __slots__ = (
        *("_asked", "_leaves", "children", "fields", "has_text", "makes", "name"),
        "rows",
    )

    def __init__(
        self,
        name: str,
        *rows: Row[C],
        children: tuple[str, ...] = (),
        has_text: bool = False,
        makes: type[Any] | None = None,
    ) -> None:
        self.name: Final = name
        self.rows: Final = rows
        self.fields: Final = tuple(row.key for row in rows)
        self._asked: Final = tuple(
            name for row in rows if not row.child for name in row.attributes
        )
        self._leaves: Final = tuple(row.key_in_file for row in rows if row.child)
        self.children: Final = children
        self.has_text: Final = has_text
        self.makes: Final = makes

    def read(self, element: Element, context: C) -> dict[str, Any]:
        """Return the value of each field, as `Row.read` does."""
        element.ask(self._asked)
        leaves = element.leaves(self._leaves) if self._leaves else {}
        values: dict[str, Any] = {}
        for row in self.rows:
            # What most rows come to, without a call of theirs.
            value, name, plain = None, row.single, row.kind.plain
            if name is not None and plain is not None and leaves is not None:
                text = element.attributes.get(name)
                if row.child:
                    leaf = leaves.get(name)
                    text = None if leaf is None else leaf.read_text()
                if text is not None:
                    value = plain(text)
                elif row.default is not REQUIRED:
                    values[row.key] = row.default
                    continue
            values[row.key] = row.read(element, context) if value is None else value
        return values

    def write(
        self, source: Any = None, /, *children: Element, text: str = "", **fields: Any
    ) -> Element:
        """Return the element of some values.

        source: A mapping of fields, or an object that has them.
        fields: Values that come before those of the source. A field that neither has is
            left out, as is one whose value is None.
        """
        values = _values(source, self.fields) | fields
        attributes: dict[str, Value] = {}
        leaves: list[Element] = []
        for row in self.rows:
            written = row.write(values.get(row.key))
            if not row.child:
                attributes |= written
                continue
            for name, value in tag(self.name, written).attributes.items():
                leaves.append(Element(name, text=value))
        return tag(self.name, attributes, *leaves, *children, text=text)


def _values(source: Any, names: Iterable[str]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(cast(Mapping[str, Any], source))
    return {name: getattr(source, name, None) for name in names}


def all_numbers(values: Mapping[str, Any]) -> list[float]:
    """Return the numbers of some values, those in tuples one by one."""
    numbers: list[float] = []
    for value in values.values():
        is_tuple = isinstance(value, tuple)
        numbers += cast(tuple[float, ...], value) if is_tuple else (value,)
    return numbers


@final
class Elements(Generic[C]):
    """The tables of a format, or of one kind of its files, by the names of elements."""

    __slots__ = ("tables",)

    def __init__(self, *tables: ElementTable[C]) -> None:
        self.tables: Final = {table.name: table for table in tables}

    def __getitem__(self, name: str) -> ElementTable[C]:
        return self.tables[name]

    def making(self, kind: type[T]) -> dict[str, type[T]]:
        """Return the classes of a kind that elements make, by the names of these."""
        return {
            name: table.makes
            for name, table in self.tables.items()
            if table.makes is not None and issubclass(table.makes, kind)
        }

    def read(self, element: Element, context: C) -> dict[str, Any]:
        """Return the value of each field, as `Row.read` does."""
        return self.tables[element.name].read(element, context)

    def read_whole(self, element: Element, context: C) -> dict[str, Any] | None:
        """Return the value of each field, or None if one is None.

        That is one after an error, unless its kind has another value then, and one of
        an attribute that is missing and whose default is None.
        """
        values = self.read(element, context)
        return None if None in values.values() else values

    def children(self, element: Element) -> tuple[Element, ...]:
        """Return the children that an element may have, in the order of the file."""
        return element.children_named(*self.tables[element.name].children)

    def write(
        self, kind: str, source: Any = None, /, *children: Element, **fields: Any
    ) -> Element:
        """Return an element of a kind with some values, see `ElementTable.write`."""
        return self.tables[kind].write(source, *children, **fields)

    def of(self, value: object) -> Element | None:
        """Return the element that makes such a value, None if there is none."""
        for table in self.tables.values():
            if table.makes is type(value):
                return table.write(value)
        return None

    def report_unknown(self, root: Element, report: Report) -> None:
        """Report what the tables do not have, in an element and in all below it.

        An unknown element whose name is like a known one is an error: all that follows
        may depend on it. What is below an unknown element is not looked at.
        """
        pending = [root]
        while pending:
            element = pending.pop()
            if element.name not in self.tables:
                continue
            table = self.tables[element.name]
            for row in table.rows:
                for key in row.attributes:
                    element.attribute(key)
            if table.has_text:
                element.read_text()
            pending.extend(self.children(element))
        report_unused(root, report, misspelt=Severity.ERROR)
