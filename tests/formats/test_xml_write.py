from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import FormatError
from armillary.formats.diagnostic import Budget, Report
from armillary.formats.xml import Element, parse, tag, to_text
from armillary.limits import XML_DEPTH

HEADER = '<?xml version="1.0" encoding="utf-8"?>\n'
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:-]{0,8}", fullmatch=True)
XML_CHARACTERS = st.characters(exclude_categories=["Cs"]).filter(
    lambda c: c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff")
)
TEXTS = st.text(XML_CHARACTERS, max_size=10)
ATTRIBUTES = st.dictionaries(NAMES, TEXTS, max_size=3)


def build(name, attributes, children, text):
    return tag(name, attributes, *children, text=text)


TREES = st.recursive(
    st.builds(
        build, NAMES, st.dictionaries(NAMES, TEXTS, max_size=3), st.just([]), TEXTS
    ),
    lambda inner: st.builds(
        build, NAMES, st.dictionaries(NAMES, TEXTS), st.lists(inner, max_size=4), TEXTS
    ),
    max_leaves=20,
)


def said(root: Element):
    """What a tree says; white space around children is not part of it."""
    return [
        (
            element.name,
            dict(element.attributes),
            ""
            if element.children and not element.text.strip(" \t\r\n")
            else element.text,
            len(element.children),
        )
        for element in root.walk()
    ]


@given(TREES)
def test_what_is_written_reads_back_the_same_and_writes_the_same(tree):
    text = to_text(tree)
    again = parse(text.encode(), "f.xml")
    assert said(again) == said(tree)
    assert to_text(again) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_bit_for_bit(value):
    root = parse(to_text(tag("a", {"x": value, "y": (value, 1)})).encode(), "f.xml")
    report = Report()
    assert root.number("x", report).hex() == value.hex()
    assert root.numbers("y", 2, report) == (value, 1)
    assert report.diagnostics == ()


def test_documents_are_indented_and_end_with_a_newline():
    tree = tag(
        "robot",
        {"name": "arm"},
        tag("link", {"name": "a"}),
        tag("joint", {}, tag("origin", {"xyz": (0, 0.5, -1e-7)}), tag("p", text=" 1 ")),
    )
    assert to_text(tree) == HEADER + (
        '<robot name="arm">\n'
        '  <link name="a"/>\n'
        "  <joint>\n"
        '    <origin xyz="0 0.5 -1e-07"/>\n'
        "    <p> 1 </p>\n"
        "  </joint>\n"
        "</robot>\n"
    )


def test_no_white_space_is_added_where_it_would_become_text():
    tree = tag("a", None, tag("b", None, tag("c")), tag("d"), text="mixed")
    assert to_text(tree) == HEADER + "<a>mixed<b><c/></b><d/></a>\n"


def test_values_become_text():
    values = {
        "text": "t",
        "int": 3,
        "float": 0.1,
        "true": True,
        "false": False,
        "array": np.array([1.0, 0.5]),
        "numpy": np.float64(2.5),
        "none": None,
    }
    assert dict(tag("a", values).attributes) == {
        "text": "t",
        "int": "3",
        "float": "0.1",
        "true": "true",
        "false": "false",
        "array": "1.0 0.5",
        "numpy": "2.5",
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, (0.0, -math.inf)])
def test_numbers_that_are_not_finite_are_refused(value):
    with pytest.raises(FormatError, match="cannot be written"):
        tag("a", {"x": value})


def test_what_would_end_an_attribute_or_text_is_escaped():
    tree = tag("a", {"x": "\"<>&'\n\t\r"}, text="]]> <b/> &amp; \r")
    assert to_text(tree) == HEADER + (
        '<a x="&quot;&lt;&gt;&amp;\'&#10;&#9;&#13;">'
        "]]&gt; &lt;b/&gt; &amp;amp; &#13;</a>\n"
    )


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x0b", "\ud800", "\ufffe"])
def test_characters_that_xml_does_not_have_are_refused(character):
    for tree in (tag("a", {"name": character}), tag("a", text=f"x{character}")):
        with pytest.raises(FormatError) as caught:
            to_text(tree)
        assert "error[xml-write]: <a" in str(caught.value)
        assert f"cannot hold the character {character!r}" in str(caught.value)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name", ["", " ", "1a", "a b", "a/><b", "a='1'", "-a", "ü b", "ü/><b", "\ud800"]
)
def test_what_is_not_a_name_is_refused(name):
    for tree in (Element(name), Element("a", {name: ""})):
        with pytest.raises(FormatError, match="that is not a name in XML"):
            to_text(tree)


@pytest.mark.parametrize("name", ["größe", "角度", "ns:ñ", "Ω1"])
def test_names_of_other_scripts_are_written(name):
    tree = tag(name, {name: "1"})
    assert said(parse(to_text(tree).encode(), "f.xml")) == said(tree)


def test_a_resolved_namespace_is_refused_rather_than_lost():
    root = parse(b"<x:a xmlns:x='u'/>", "f.xml", namespaces=True)
    with pytest.raises(FormatError, match=r"f\.xml:1:1: .* has a resolved namespace"):
        to_text(root)


def test_a_deep_tree_is_written_in_linear_space():
    depth = 20_000
    tree = Element("a")
    for _ in range(depth - 1):
        tree = Element("a", children=(tree,))
    text = to_text(tree)
    assert len(text) < depth * 150
    again = parse(text.encode(), "f.xml", budget=Budget({XML_DEPTH: depth}))
    assert sum(1 for _ in again.walk()) == depth
