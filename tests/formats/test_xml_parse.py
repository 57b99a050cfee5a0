from __future__ import annotations

import gc
import tracemalloc
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import FormatError
from armillary.file_start import first_tag
from armillary.formats.diagnostic import Budget, Report
from armillary.formats.xml import Element, parse
from armillary.limits import (
    XML_ATTRIBUTES,
    XML_DEPTH,
    XML_ELEMENTS,
    XML_SIZE,
    XML_VALUE,
    Limit,
)
from work import counted, growth

MEBIBYTE = 1 << 20


def refusal(data: bytes, most: dict[Limit, int] | None = None, **options) -> str:
    with pytest.raises(FormatError) as caught:
        parse(data, "f.xml", budget=Budget(most), **options)
    assert len(caught.value.diagnostics) == 1
    return str(caught.value)


def shape(element: Element):
    """What a tree says, as nested tuples, without walking by recursion."""
    return [
        (e.name, dict(e.attributes), e.text, [c.name for c in e.children])
        for e in element.walk()
    ]


# --- What is read ---------------------------------------------------------------------


def test_a_tree_keeps_names_attributes_children_and_text():
    root = parse(
        b"<?xml version='1.0'?>\n<robot name='r'>\n  <link name='a'/>\n"
        b"  <!-- c --><origin>1 <![CDATA[<2>]]>&amp;&#181;</origin>\n</robot>\n",
        "f.xml",
    )
    assert (root.name, dict(root.attributes), root.text) == ("robot", {"name": "r"}, "")
    link, origin = root.children
    assert (link.name, dict(link.attributes), link.text) == ("link", {"name": "a"}, "")
    assert (origin.name, origin.text) == ("origin", "1 <2>&µ")


def test_every_element_knows_its_line_and_column():
    root = parse(b"<a>\n  <b/><c\n x='1'/>\n\t<d>\xc3\xbc<e/></d></a>", "dir/f.xml")
    places = {e.name: str(e.place) for e in root.walk()}
    assert places == {
        "a": "dir/f.xml:1:1",
        "b": "dir/f.xml:2:3",
        "c": "dir/f.xml:2:7",
        "d": "dir/f.xml:4:2",
        "e": "dir/f.xml:4:6",
    }


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]
)
def test_unicode_is_read_with_and_without_a_byte_order_mark(encoding):
    data = "<a n='ü€𝛑'>ü</a>".encode(encoding)
    if encoding in ("utf-16-le", "utf-16-be"):
        data = "\ufeff".encode(encoding) + data
    root = parse(data, "f.xml")
    assert root.attributes["n"] == "ü€𝛑"
    assert root.text == "ü"
    assert str(root.place) == "f.xml:1:1"


@pytest.mark.parametrize("encoding", ["iso-8859-1", "ISO-8859-1", "windows-1252"])
def test_the_single_byte_encodings_of_old_files_are_read(encoding):
    text = f"<?xml version='1.0' encoding='{encoding}'?><a>ü°</a>"
    assert parse(text.encode(encoding), "f.xml").text == "ü°"


def test_undeclared_prefixes_are_accepted_as_written():
    root = parse(b"<r xmlns:y='u'><sensor:ray x:a='1'/></r>", "f.xml")
    (ray,) = root.children
    assert ray.name == "sensor:ray"
    assert dict(ray.attributes) == {"x:a": "1"}
    assert dict(root.attributes) == {"xmlns:y": "u"}


def test_namespaces_are_resolved_on_request():
    root = parse(
        b"<cr:a xmlns:cr='http://e.example/cr' xmlns=' spaced#'>"
        b"<b cr:x='1' y='2'/><c xmlns=''/></cr:a>",
        "f.xml",
        namespaces=True,
    )
    b, c = root.children
    assert (root.name, root.namespace) == ("a", "http://e.example/cr")
    assert (b.name, b.namespace) == ("b", " spaced#")
    assert dict(b.attributes) == {"{http://e.example/cr}x": "1", "y": "2"}
    assert (c.name, c.namespace) == ("c", "")


def test_resolved_prefixes_must_be_declared():
    text = refusal(b"<a>\n<x:b/></a>", namespaces=True)
    assert text.startswith("f.xml:2:1: error[xml-syntax]: unbound prefix")


def test_a_processing_instruction_is_reported_to_have_no_effect():
    report = Report()
    parse(b"<?php boom?><a>\n<?b?></a>", "f.xml", report=report)
    assert list(map(str, report.diagnostics)) == [
        "f.xml:1:1: note[xml-instruction]: "
        "the processing instruction 'php' has no effect",
        "f.xml:2:1: note[xml-instruction]: "
        "the processing instruction 'b' has no effect",
    ]


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=10)
ATTRIBUTES = st.dictionaries(NAMES, TEXTS, max_size=3)


def build(name, attributes, children, text):
    node = ElementTree.Element(name, attributes)
    node.text = text
    node.extend(children)
    return node


TREES = st.recursive(
    st.builds(
        build, NAMES, st.dictionaries(NAMES, TEXTS, max_size=3), st.just([]), TEXTS
    ),
    lambda inner: st.builds(
        build, NAMES, st.dictionaries(NAMES, TEXTS), st.lists(inner, max_size=4), TEXTS
    ),
    max_leaves=20,
)


@given(TREES, st.sampled_from(["utf-8", "utf-16", "iso-8859-1"]))
def test_trees_agree_with_the_standard_library(tree, encoding):
    data = ElementTree.tostring(tree, encoding)
    assert shape(parse(data, "f.xml")) == [
        (
            node.tag,
            node.attrib,
            "" if len(node) and not node.text.strip(" \t\r\n") else node.text,
            [child.tag for child in node],
        )
        for node in tree.iter()
    ]


# --- What is refused ------------------------------------------------------------------


BILLION_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "lol">'
    + b"".join(
        b'<!ENTITY %c "%s">' % (ord("b") + i, b"&%c;" % (ord("a") + i) * 10)
        for i in range(9)
    )
    + b"]><r x='&j;'>&j;</r>"
)
QUADRATIC = (
    b'<!DOCTYPE r [<!ENTITY a "'
    + b"x" * 50_000
    + b'">]><r>'
    + b"&a;" * 50_000
    + b"</r>"
)


@pytest.mark.parametrize(
    "data",
    [
        BILLION_LAUGHS,
        QUADRATIC,
        b'<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>',
        b'<!DOCTYPE r SYSTEM "http://127.0.0.1:1/x.dtd"><r/>',
        b'<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]><r/>',
        b'<!DOCTYPE r PUBLIC "-//A//B" "x.dtd"><r/>',
        b"<!DOCTYPE r><r/>",
        b'<!DOCTYPE r [<!ATTLIST r a CDATA "smuggled">]><r/>',
    ],
)
def test_document_types_are_refused_before_they_cost_anything(data):
    tracemalloc.start()
    try:
        with counted() as work:
            text = refusal(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "error[xml-doctype]: the document type 'r' is not read" in text
    assert "Remove <!DOCTYPE ...>" in text
    assert peak < MEBIBYTE
    assert work.lines < 1000


def test_only_the_entities_of_xml_itself_are_known():
    root = parse(b"<a b='&lt;&gt;&amp;&quot;&apos;'/>", "f.xml")
    assert root.attributes["b"] == "<>&\"'"
    text = refusal(b"<a>\n&nbsp;</a>")
    assert text.startswith("f.xml:2:1: error[xml-syntax]: undefined entity. Only &lt;")


@pytest.mark.parametrize(
    ("data", "start", "words"),
    [
        (b"", "1:1", "the document has no element"),
        (b" \n", "2:1", "the document has no element"),
        (b"<!-- only -->", "1:14", "the document has no element"),
        (b"<a>\n <b>", "2:5", "the document ends inside <b> of line 2"),
        (b"<a>\n <b x='1", "2:2", "the document ends inside <a> of line 1"),
        (b"<a>\n <![CDATA[x", "2:12", "the document ends inside <a> of line 1"),
        (b"<a>\xc3", "1:4", "the document ends inside <a> of line 1"),
        (b"<a", "1:1", "unclosed token"),
        (b"<a>\n<b></a>", "2:6", "mismatched tag; <b> of line 2 is still open"),
        (b"<a/>\n<b/>", "2:1", "A document has one root element."),
        (b"<a/>x", "1:5", "junk after document element"),
        (b"<a x='1' x='2'/>", "1:10", "duplicate attribute"),
        (b"<a x=1/>", "1:6", "not well-formed"),
        (b"<a>&</a>", "1:5", "not well-formed"),
        (b'{"links": []}', "1:1", "not well-formed"),
        (b"solid stl", "1:1", "syntax error"),
        (b"\n<?xml version='1.0'?><a/>", "2:1", "must be the very first thing"),
        (b"<a><?xml version='1.0'?></a>", "1:4", "must be the very first thing"),
        (b"<?xml version='2.7'?><a/>", "1:1", "there is no XML version '2.7'"),
        (b"<?xml versoin='1.0'?><a/>", "1:7", "XML declaration not well-formed"),
        (b"<a>\x00</a>", "1:4", "the byte 0x00 is not allowed"),
        (b"<a\x00/>", "1:3", "the byte 0x00 is not allowed"),
        (b"<a>\x1b[31m</a>", "1:4", "the byte 0x1b is not allowed"),
        (b"<a>\n \xff</a>", "2:2", "the byte 0xff does not belong to the encoding"),
        (b"<a>\xed\xa0\x80</a>", "1:4", "the byte 0xed does not belong"),
        (b"<a>\xc0\xaf</a>", "1:4", "the byte 0xc0 does not belong"),
        (b"<a>&#xD800;</a>", "1:4", "reference to invalid character number"),
        (b"<a>&#0;</a>", "1:4", "reference to invalid character number"),
        (b"<a>&#x110000;</a>", "1:4", "reference to invalid character number"),
    ],
)
def test_what_is_not_well_formed_is_refused_where_it_is(data, start, words):
    text = refusal(data)
    assert text.startswith(f"f.xml:{start}: error[xml-")
    assert words in text


@pytest.mark.parametrize(
    "encoding", ["utf8", "zlib", "hex", "undefined", "idna", "utf-7", "no-such", "big5"]
)
def test_other_encodings_are_refused_with_the_fix(encoding):
    text = refusal(f"<?xml version='1.0' encoding='{encoding}'?><a/>".encode())
    assert f"error[xml-encoding]: the encoding '{encoding}' is not read" in text
    assert 'write encoding="UTF-8"' in text


@pytest.mark.parametrize(
    "data",
    [
        b"<?xml version='1.0' encoding='utf-16'?><a/>",
        "<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-8-sig"),
        "<?xml version='1.0' encoding='utf-8'?><a/>".encode("utf-16"),
    ],
)
def test_a_declaration_of_another_encoding_than_the_files_is_refused(data):
    assert "Declare the encoding in which the file is saved" in refusal(data)


@pytest.mark.parametrize(
    "data",
    [
        "<a b='x\ud800y'/>".encode("utf-16", "surrogatepass"),
        "<a b='x\ud800y'/>".encode("utf-16-le", "surrogatepass"),
        "<a>\udc00</a>".encode("utf-16-be", "surrogatepass"),
        "<a/>".encode("utf-16") + b"\0",
    ],
)
def test_broken_utf_16_is_refused(data):
    assert "error[xml-encoding]: broken UTF-16 in line 1" in refusal(data)


def test_utf_32_is_refused():
    assert "error[xml-syntax]" in refusal("<a/>".encode("utf-32"))


def test_messages_about_long_and_strange_names_stay_short_and_printable():
    for name in ("x" * 500_000, "\u202e\u00fcber"):
        text = refusal(f"<{name}><b></{name}>".encode())
        assert text.isprintable()
        assert len(text) < 300


@given(st.binary(max_size=60))
def test_any_bytes_give_a_tree_or_our_error(data):
    try:
        assert isinstance(parse(data, "f.xml"), Element)
    except FormatError as error:
        assert str(error).isprintable()


SAMPLE = (
    b'<?xml version="1.0" encoding="utf-8"?>\n<robot name="r"><!-- c -->'
    b'<link name="a"/><x:y z="&#181;">t &lt; <![CDATA[u]]></x:y><?p i?></robot>'
)


@given(
    st.integers(0, len(SAMPLE)),
    st.integers(0, 12),
    st.sampled_from([b"", b"<", b">", b"&", b"\x00", b"\xff", b"'", b"<!DOCTYPE a>"]),
    st.booleans(),
)
def test_damaged_documents_give_a_tree_or_our_error(at, cut, put, namespaces):
    data = SAMPLE[:at] + put + SAMPLE[at + cut :]
    try:
        parse(data, "f.xml", namespaces=namespaces)
    except FormatError as error:
        assert str(error).startswith("f.xml:")


# --- What is bounded ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "fits", "beyond", "words"),
    [
        ({XML_SIZE: 8}, b"<abcde/>", b"<abcdef/>", "9 bytes, more than 8"),
        (
            {XML_DEPTH: 2},
            b"<a><b/></a>",
            b"<a><b><c/></b></a>",
            "more than 2 deep",
        ),
        (
            {XML_ELEMENTS: 2},
            b"<a><b/></a>",
            b"<a><b/><b/></a>",
            "than 2 elements",
        ),
        (
            {XML_ATTRIBUTES: 1},
            b"<a b=''/>",
            b"<a b='' c=''/>",
            "2 attributes, more than 1",
        ),
        (
            {XML_VALUE: 3},
            b"<a b='123'/>",
            b"<a b='1234'/>",
            "an attribute has 4 characters, more than 3",
        ),
    ],
)
def test_each_limit_is_kept_to_the_unit(most, fits, beyond, words):
    parse(fits, "f.xml", budget=Budget(most))
    text = refusal(beyond, most)
    assert "error[xml-limit]" in text
    assert words in text


DEEP = b"<a>" * 100_000 + b"</a>" * 100_000


def test_a_deep_document_is_refused_with_a_message():
    text = refusal(DEEP)
    assert text == (
        "f.xml:1:30001: error[xml-limit]: elements are nested more than 10000 deep. "
        "Check that it is the right file; if so, split it."
    )


@pytest.mark.thorough
def test_a_deep_document_is_loaded_and_freed_when_it_is_allowed():
    root = parse(DEEP, "f.xml", budget=Budget({XML_DEPTH: 100_000}))
    assert sum(1 for _ in root.walk()) == 100_000
    assert repr(root) == "<Element <a> at f.xml:1:1>"
    del root
    gc.collect()


def test_nothing_holds_a_tree_after_its_last_use():
    # A tree that waits for the collector of cycles would pile up in a long run.
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(10):
            parse(b"<a>" + b"<b c='d'/>" * 200 + b"</a>", "f.xml")
        after = len(gc.get_objects())
    finally:
        gc.enable()
    assert after - before < 200


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        (b"<a x='", b"'/>"),
        (b"<!--", b"--><a/>"),
        (b"<?p ", b"?><a/>"),
        (b"<", b"/>"),
        (b"<a><b x='", b"'/></a>"),
    ],
)
def test_markup_without_an_end_in_sight_is_refused_early(head, tail):
    data = head + b">" * (60 * MEBIBYTE) + tail
    if head == b"<":
        data = data.replace(b">" * 60, b"n" * 60)
    with counted() as work:
        text = refusal(data)
    # Without the bound all pieces are read, and expat begins again at each.
    assert work.lines < 1000
    assert "one tag or comment has more than 8388608 bytes" in text


def test_the_work_of_long_attributes_and_texts_is_linear():
    attribute = b"<b x='" + b">" * (MEBIBYTE - 10) + b"'/>"

    def read(count: int) -> None:
        data = b"<a>" + attribute * count + b"x" * (count * MEBIBYTE) + b"</a>"
        root = parse(data, "f.xml")
        assert len(root.children) == count
        assert len(root.text) == count * MEBIBYTE

    assert growth(read, 10) < 2.1


@pytest.mark.thorough
def test_a_chain_of_a_hundred_thousand_links_is_loaded():
    link = b'<link name="l%d"/><joint name="j%d"><parent link="l%d"/></joint>\n'
    data = b"<r>" + b"".join(link % (i, i, i) for i in range(100_000)) + b"</r>"
    root = parse(data, "f.xml")
    assert len(root.children) == 200_000
    last = root.children[-1]
    assert last.attributes["name"] == "j99999"
    assert last.place.line == 100_000


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<robot/>", "robot"),
        (" <?xml version='1.0'?><!-- <a/> -->\n<!DOCTYPE a><robot name='x'>", "robot"),
        ("<robots>", "robots"),
        ("text", ""),
        ("<!-- never closed", ""),
        ("<never-closed", ""),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_first_tag_is_found_without_parsing(text, name, encoding):
    assert first_tag(text.encode(encoding)) == name


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("<a/><b/>", [1, 5]),
        ("text <a/>", [6]),
        ("<?xml version='1.0'?><a/><b/>", [22, 26]),
        ("\ufeff<a/><b/>", [1, 5]),
        ("", []),
    ],
)
def test_several_roots_keep_their_locations(text, columns):
    whole = parse(text.encode(), "f.xml", several=True)
    assert [child.place.column for child in whole.children] == columns
    with pytest.raises(FormatError) as caught:
        parse(f"{text}<c".encode(), "f.xml", several=True)
    assert caught.value.diagnostics[0].place.column <= len(text) + 3
