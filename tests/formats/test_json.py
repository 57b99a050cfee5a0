from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import FormatError
from armillary.formats.diagnostic import Place, Report
from armillary.formats.json import Document, to_text
from armillary.formats.json.locations import find_duplicate, find_odd, locations, parts
from work import growth

keys = st.text(max_size=3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=12,
)


def spots(tree: object, steps: tuple[str | int, ...] = ()):
    """Every part of a tree by its steps, in the order of the text."""
    yield steps
    if isinstance(tree, dict):
        for key, item in tree.items():
            yield from spots(item, (*steps, key))
    elif isinstance(tree, list):
        for k, item in enumerate(tree):
            yield from spots(item, (*steps, k))


@given(trees, st.sampled_from([None, 1, 4]), st.booleans())
def test_every_part_is_found_where_it_stands(tree, indent, ascii_only):
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    wanted = list(spots(tree))
    found = locations(text, wanted, "x")
    assert list(found) == wanted
    lines = text.split("\n")
    for steps, place in found.items():
        rest = "\n".join(lines[place.line - 1 :])[place.column - 1 :]
        if steps and isinstance(steps[-1], str):
            assert json.JSONDecoder().raw_decode(rest)[0] == steps[-1]
            continue
        value = tree
        for step in steps:
            value = value[step]
        assert json.JSONDecoder().raw_decode(rest)[0] == value


def test_parts_are_keys_and_values_in_their_order():
    found = [
        (tuple(p.steps), p.token, p.is_key) for p in parts('{"a": [1, {}], "b": []}')
    ]
    assert found == [
        ((), "{", False),
        (("a",), '"a"', True),
        (("a",), "[", False),
        (("a", 0), "1", False),
        (("a", 1), "{", False),
        (("b",), '"b"', True),
        (("b",), "[", False),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": {"a": 2}, "c": {"a": 3}}', None),
        ('[{"a": 1}, {"a": 2}, {"b": 1, "a": {}, "c": {}}]', None),
        ('{"a": 1, "a": 2}', ("a", 9)),
        ('{"a": {"x": {}}, "b": 1, "a": 2}', ("a", 25)),
        ('[{"a": {"x": 1, "y": {}, "x": 2}}]', ("x", 25)),
        ('{"a": [{"b": 1}, {"b": 1, "b": 2}]}', ("b", 26)),
    ],
)
def test_duplicate_keys_are_found(text, expected):
    assert find_duplicate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1e308, "NaN": "1e999 NaN \\u0041"}', None),
        ("[1, 1e999]", ("the number is too large for a double", 4)),
        ("[-1e999]", ("the number is too large for a double", 1)),
        ("[0, NaN]", ("NaN is not a number in JSON", 4)),
        ("[-Infinity]", ("-Infinity is not a number in JSON", 1)),
        ('["\\ud83d\\ude00", "\\udc00"]', ("a text has half of a surrogate pair", 17)),
    ],
)
def test_odd_values_are_found(text, expected):
    assert find_odd(text) == expected


# Layout.


@given(trees, st.integers(0, 6))
def test_layout_keeps_the_tree(tree, depth):
    data = to_text(tree, depth=depth)
    assert data.endswith(b"\n")
    back = json.loads(data)
    assert repr(back) == repr(tree)
    assert to_text(back, depth=depth) == data


def test_layout_splits_what_is_long_and_no_more():
    x, y, z = "x" * 30, "y" * 30, "z" * 30
    long = {"name": x, "items": [y, z]}
    flat = f'{{"name": "{x}", "items": ["{y}", "{z}"]}}\n'
    split = f'{{\n  "name": "{x}",\n  "items": ["{y}", "{z}"]\n}}\n'
    assert to_text(long, depth=0).decode() == flat
    assert to_text(long, depth=1).decode() == split
    assert to_text({"a": [1, 2]}, depth=5) == b'{"a": [1, 2]}\n'
    edge = {"a": "b" * (88 - 9)}
    assert to_text(edge, depth=1).count(b"\n") == 1
    assert to_text({"a": edge["a"] + "b"}, depth=1).count(b"\n") == 3


def test_arrays_made_one_by_one_are_split():
    record = {"n": 1, "items": (k for k in range(3))}
    assert to_text(record, depth=2).decode() == (
        '{\n  "n": 1,\n  "items": [\n    0,\n    1,\n    2\n  ]\n}\n'
    )


def test_half_a_character_is_refused():
    with pytest.raises(FormatError, match=r"'\\ud800' has half a surrogate pair"):
        to_text({"a": "\ud800"}, depth=1)


# Documents.


def test_diagnostics_are_reported_in_their_order_with_their_places():
    report = Report()
    document = Document(b'{"a": 1,\n "b": [2,\n 3]}', "x.json", report)
    document.warning(("b", 1), "late", "this")
    document.note(("a",), "early", "that")
    document.error((), "whole", "all", hint="Mend it.")
    document.warning(("c",), "nowhere", "no such part")
    with pytest.raises(FormatError):
        document.report_all()
    assert [(found.code, found.place) for found in report.diagnostics] == [
        ("late", Place("x.json", 3, 2)),
        ("early", Place("x.json", 1, 2)),
        ("whole", Place("x.json", 1, 1)),
        ("nowhere", Place("x.json")),
    ]


def test_diagnostics_are_reported_once():
    report = Report()
    document = Document(b"[]", "x.json", report)
    document.note((), "once", "this")
    document.report_all()
    document.report_all()
    assert len(report.diagnostics) == 1


def test_values_are_decoded():
    document = Document(b'\xef\xbb\xbf{"a": [1.5, "x"]}', "x.json", Report())
    assert document.decode(object) == {"a": [1.5, "x"]}
    document.check_keys()


def test_the_work_of_many_diagnostics_is_proportional_to_their_number():
    def report(count: int) -> None:
        document = Document(b"[" + b"1,\n" * count + b"1]", "x.json", Report())
        for k in range(count):
            document.note((k,), "many", "one of many")
        document.report_all()

    assert growth(report, 1000) < 2.1
