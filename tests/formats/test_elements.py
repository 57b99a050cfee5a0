"""Tables of elements: what is written by them is read by them, in all formats."""

from __future__ import annotations

from typing import Any

import pytest

from armillary import Link, Manipulator
from armillary.formats.diagnostic import Report
from armillary.formats.elements import (
    NAME,
    NUMBER,
    REQUIRED,
    SIZE,
    TEXT,
    Elements,
    ElementTable,
    Kind,
    Row,
    all_numbers,
    choice,
    numbers,
    one_of,
)
from armillary.formats.mjcf.document import COMPILER
from armillary.formats.mjcf.drives import ACTUATOR
from armillary.formats.mjcf.equality import EQUALITIES
from armillary.formats.mjcf.joints import JOINT
from armillary.formats.mjcf.keys import KEY
from armillary.formats.mjcf.rules import EXCLUDE
from armillary.formats.robwork import elements as robwork
from armillary.formats.sdf import elements as sdf
from armillary.formats.srdf import elements as srdf
from armillary.formats.srdf.names import Names
from armillary.formats.urdf import elements as urdf
from armillary.formats.xml import Element, parse, to_text, unused
from armillary.model.coupling import Coupling

FORMATS: dict[str, Elements[Any]] = {
    "urdf": urdf.ELEMENTS,
    "mjcf": Elements(COMPILER, JOINT, ACTUATOR, EXCLUDE, KEY),
    "mjcf equality": Elements(*EQUALITIES.values()),
    "srdf": srdf.ELEMENTS,
    "srdf states": srdf.IN_STATE,
    "sdf": sdf.ELEMENTS,
    "robwork": robwork.ELEMENTS,
    **{f"robwork {kind}": each for kind, each in robwork.RULE_FILES.items()},
}
TABLES = {
    f"{name} {table.name}": table
    for name, elements in FORMATS.items()
    for table in elements.tables.values()
}
WORDS = (
    *("base", "Fixed", "Movable", "Revolute", "Spherical", "double", "a b", ""),
    *("euler_rpy", "quat_xyzw", "axis", "axis2", "radian", "local", "hinge"),
)
SAMPLES: tuple[Any, ...] = (
    *WORDS,
    *(0.1, -2.5, 1e-300, 7.0, 0.0),
    *(
        (1.5, 2.0),
        (0.1, -0.0, 3.0),
        (0.0, 0.0, 0.6, 0.8),
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
    ),
    *(True, False),
)


def contexts(name: str) -> tuple[Any, Report]:
    report = Report()
    if name.startswith("srdf"):
        robot = Manipulator(name="robot", links=(Link(name="base"),))
        return Names(robot, report), report
    return report, report


def reparsed(element: Element) -> Element:
    return parse(to_text(element).encode(), "x.xml")


def accepted(name: str, table: ElementTable[Any], row: Row[Any]) -> list[Any]:
    """The samples that a row can print and reads without a diagnostic."""
    found: list[Any] = []
    for value in SAMPLES:
        try:
            element = reparsed(table.write({row.key: value}))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # a value of another kind
        context, report = contexts(name)
        read = row.read(element, context)
        if read is not None and not report.diagnostics and type(read) is type(value):
            assert read == value, (table.name, row.attributes)
            found.append(value)
    return found


@pytest.mark.parametrize("name", TABLES)
def test_what_is_written_is_read(name: str):
    table = TABLES[name]
    samples = {row.key: accepted(name, table, row) for row in table.rows}
    assert all(samples.values()), samples
    for k in range(max(map(len, samples.values()), default=1)):
        values = {key: found[k % len(found)] for key, found in samples.items()}
        context, report = contexts(name)
        assert table.read(reparsed(table.write(values)), context) == values
        assert report.diagnostics == ()


@pytest.mark.parametrize("name", TABLES)
def test_what_must_be_there_is_missed(name: str):
    table = TABLES[name]
    context, report = contexts(name)
    values = table.read(Element(table.name), context)
    codes = [d.code for d in report.diagnostics]
    required = [
        a for row in table.rows if row.default is REQUIRED for a in row.attributes
    ]
    children = sum(row.child for row in table.rows if row.default is REQUIRED)
    assert (
        sorted(codes)
        == ["missing-attribute"] * (len(required) - children)
        + ["missing-element"] * children
    )
    assert values.keys() == set(table.fields)


@pytest.mark.parametrize("name", FORMATS)
def test_children_have_tables(name: str):
    known = FORMATS[name].tables
    unread = {"Camera", "Custom", "Volatile"}  # they are reported as not kept
    for table in known.values():
        assert set(table.children) <= known.keys() | unread


# Most texts are without fault, for which little is done

TEXTS = (
    *("", " ", "1", " 1 ", "+1.5", "-2", "1e3", "-0", ".5", "5.", "1e-400", "1e999"),
    *(
        "nan",
        "inf",
        "1_0",
        "0x10",
        "\u0663",
        "1,5",
        "a",
        "true",
        "Revolute",
        "quat_xyzw",
    ),
    *("1 2", "1 2 3", "1\n2\t3", "1, 2, 3", "1,2,3", "1 2 3 4", "1\u00a02 3", "0 0 x"),
    *("1" * 300, "0.1 " * 60),
)


def slow(table: ElementTable[Any]) -> ElementTable[Any]:
    """The table whose kinds tell nothing of plain texts."""
    rows = [
        Row(
            " ".join(row.attributes),
            Kind(row.kind.read, row.kind.write),
            row.key,
            default=row.default,
            always=row.always,
            child=row.child,
        )
        for row in table.rows
    ]
    return ElementTable(table.name, *rows, children=table.children)


def filled(table: ElementTable[Any], text: str, way: int) -> Element:
    """An element with one text in all that its rows read, or in half of it."""
    names = [(name, row.child) for row in table.rows for name in row.attributes]
    given = [each for k, each in enumerate(names) if way < 2 or k % 2 == way % 2]
    leaves = [
        Element(name, text=text, line=k) for k, (name, c) in enumerate(given) if c
    ]
    if way == 1:  # each twice
        leaves += [Element(leaf.name, text="7") for leaf in leaves]
    attributes = {name: text for name, is_child in given if not is_child}
    return Element(table.name, {"other": "", **attributes}, children=tuple(leaves))


@pytest.mark.parametrize("name", TABLES)
def test_plain_texts_are_read_as_all_others(name: str):
    table = TABLES[name]
    for text in (*TEXTS, *WORDS):
        for way in range(4):
            found: list[Any] = []
            for each in (table, slow(table)):
                element = filled(table, text, way)
                context, report = contexts(name)
                values = each.read(element, context)
                left = [
                    leftover
                    for part in (element, *element.children)
                    for leftover in unused(part)
                ]
                found.append((repr(values), report.diagnostics, left))
            assert found[0] == found[1], (text, way)


# What the docstring says

MIMIC = ElementTable(
    "mimic",
    Row("joint", TEXT, "of"),
    Row("multiplier", NUMBER, default=1.0),
    Row("offset", NUMBER, default=0.0),
)


def test_example():
    element = MIMIC.write(Coupling(of="finger", offset=0.5))
    assert to_text(element).endswith('<mimic joint="finger" offset="0.5"/>\n')
    values = MIMIC.read(element, Report())
    assert values == {"of": "finger", "multiplier": 1.0, "offset": 0.5}


ODD = ElementTable(
    "odd",
    Row("name", NAME),
    Row("x y", SIZE, "size"),
    Row("state", choice({"on": True, "off": False})),
    Row("kind", one_of("a", "b"), default="b"),
    Row("rgb", numbers(3), default=(0.0, 0.0, 0.0)),
)


@pytest.mark.parametrize(
    ("attributes", "values", "codes"),
    [
        (
            {"name": "n", "x": "1", "y": "2", "state": "off", "kind": "a"},
            ("n", (1.0, 2.0), False, "a", (0.0, 0.0, 0.0)),
            [],
        ),
        (
            {"name": "", "x": "-1", "y": "2", "state": "of", "rgb": "1 2"},
            (None, None, True, "b", (0.0, 0.0, 0.0)),
            ["missing-name", "negative-size", "unknown-value", "wrong-count"],
        ),
        (
            {"kind": "c"},
            (None, None, True, "a", (0.0, 0.0, 0.0)),
            ["missing-attribute"] * 4 + ["unknown-value"],
        ),
    ],
)
def test_errors(attributes: dict[str, str], values: tuple[Any, ...], codes: list[str]):
    report = Report()
    found = ODD.read(Element("odd", attributes), report)
    assert tuple(found.values()) == values
    assert [d.code for d in report.diagnostics] == codes


def test_numbers_of_values():
    assert all_numbers({"size": (1.0, 2.0), "radius": 3.0}) == [1.0, 2.0, 3.0]
    assert all_numbers({}) == []


def test_unknown_elements_are_reported():
    known = Elements[Report](
        ElementTable("a", Row("x", NUMBER), children=("b",)),
        ElementTable("b", has_text=True),
    )
    root = parse(b'<a x="1" y="2"><b>text</b><bb/><c><d/></c></a>', "f.xml")
    report = Report()
    known.report_unknown(root, report)
    assert [str(d) for d in report.diagnostics] == [
        "f.xml:1:1: warning[unknown-attribute]: the attribute 'y' of <a> was not "
        "understood",
        "f.xml:1:27: error[unknown-element]: the element 'bb' of <a> was not "
        "understood. Did you mean 'b'?",
        "f.xml:1:32: warning[unknown-element]: the element 'c' of <a> was not "
        "understood",
    ]
