"""Documents that are almost XML: read as they are meant, or refused as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.errors import FormatError
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, parse
from work import growth

PLAIN = '<a b="1"><c d="2"/></a>'


def content(element: Element) -> tuple[object, ...]:
    inner = tuple(content(child) for child in element.children)
    return element.name, dict(element.attributes), element.text, inner


def read(data: str | bytes) -> tuple[Element, list[str]]:
    report = Report()
    data = data.encode() if isinstance(data, str) else data
    root = parse(data, "f.xml", report=report)
    return root, list(map(str, report.diagnostics))


ODD: dict[str, tuple[str | bytes, str]] = {
    "version 0.0": (f'<?xml version="0.0" ?>\n{PLAIN}', "f.xml:1: note[xml-decl"),
    "a late declaration": (f'\n<?xml version="1.0"?>{PLAIN}', "f.xml:2: note[xml-decl"),
    "a licence first": (
        f'<!-- x -->\n<?xml version="1.0"?>{PLAIN}',
        "f.xml:2: note[xml-decl",
    ),
    "hyphens": (f"<!-- a -- b -->{PLAIN}", "f.xml:1: note[xml-syntax]: a comment"),
    "a frame of hyphens": (f"\n<!------ a ------>{PLAIN}", "f.xml:2: note[xml-syntax]"),
    "zero bytes": (f"{PLAIN}\0\0", "f.xml:1: note[xml-syntax]: the document ends"),
    "utf8": (
        f'<?xml version="1.0" encoding="utf8"?>{PLAIN}',
        "note[xml-encoding]: the encoding 'utf8' is not one of XML's; it is read",
    ),
    "GB2312": (
        '<?xml version="1.0" encoding="GB2312"?><!-- 机器人 -->'.encode("gb2312")
        + PLAIN.encode(),
        "note[xml-encoding]: the encoding 'GB2312'",
    ),
    "an end tag too many": (
        f"{PLAIN}\n</a>\n </b>\n",
        "f.xml:2:2: note[xml-syntax]: an end tag",
    ),
    "Latin 1 in a comment": (
        b"<!-- \xe9 -->" + PLAIN.encode(),
        "f.xml:1: warning[xml-encoding]: the byte 0xe9",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_almost_xml_is_read_as_it_is_meant(name: str):
    data, words = ODD[name]
    root, (found,) = read(data)
    assert content(root) == content(read(PLAIN)[0])
    assert words in found
    with pytest.raises(FormatError):
        parse(
            data.encode() if isinstance(data, str) else data,
            "f.xml",
            report=Report(strict=True),
        )


def test_lines_and_columns_stay():
    text = f"<!--\n-- a --\n--> {PLAIN}"
    root, _ = read(text)
    assert (root.place.line, root.place.column) == (3, 5)
    root, _ = read(f'\n  <?xml version="0.0"?> {PLAIN}')
    assert (root.place.line, root.place.column) == (2, 25)


def test_a_lone_ampersand_is_one():
    root, (found,) = read('<a b="x&y.stl" c="&amp;&#65;"/>')
    assert dict(root.attributes) == {"b": "x&y.stl", "c": "&A"}
    assert "an & does not begin an entity" in found


def test_texts_with_the_marks_of_comments_are_not_touched():
    root, _ = read('<?xml version="0.0"?><a><![CDATA[<!-- a -- b -->]]></a>')
    assert root.text == "<!-- a -- b -->"
    with pytest.raises(FormatError):
        read('<?xml version="0.0"?><a b="<!-- -- -->"/>')


def test_names_in_another_encoding_are_read_as_latin_1():
    root, (found,) = read('<a b="café"/>'.encode("latin-1"))
    assert root.attributes["b"] == "café"
    assert "read as ISO-8859-1" in found


@pytest.mark.parametrize(
    "data",
    [
        '<?xml version="0.0"?><!DOCTYPE a><a/>',
        '<?xml version="0.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        "<!-- -- --><a>&b;</a>",
        "<!-- -- --><a/><b/>",
        "<!-- -- --><a",
        "<!-- -- <a/>",
        '<a b="1" b="1"/>',
        '<?xml version="1.0" encoding="utf-7"?><a/>',
        '<?xml version="0.0" encoding="rot13"?><a/>',
        '<?xml version="0.0" encoding="EBCDIC-CP-US"?><a/>',
        b'<?xml version="1.0" encoding="GB2312"?><a b="\xff"/>',
        b'<?xml version="1.0" encoding="\0"?><a/>',
    ],
)
def test_what_is_not_clear_is_refused(data: str | bytes):
    with pytest.raises(FormatError):
        read(data)


@given(st.binary(max_size=60), st.sampled_from(["<!-- -- -->", "<?xml version='0'?>"]))
def test_any_bytes_give_a_tree_or_our_error(data: bytes, head: str):
    try:
        read(head.encode() + data)
    except FormatError as error:
        assert str(error).startswith("f.xml")


@pytest.mark.thorough
@pytest.mark.parametrize("piece", [b"<!--", b"<?xml ", b"<!-- -- -->", b"&", b"\xe9"])
def test_the_work_of_repairs_is_linear(piece: bytes):
    def repair(count: int) -> None:
        with pytest.raises(FormatError):
            read(piece * count)

    assert growth(repair, 2000) < 2.1
    repair(4_000_000 // len(piece))  # regular expressions that go back would not end
