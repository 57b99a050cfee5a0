"""Many files to one tree: includes, definitions, fragments, and their places."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Report
from armillary.formats.paths import Roots
from armillary.formats.robwork.include import (
    FileFinder,
    expand,
    parse_fragment,
)
from armillary.formats.xml import Element
from armillary.limits import ROBWORK_DEPTH
from work import counted

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below the folder `lab`, and return its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / "lab" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def expanded(path: Path, *folders: Path) -> tuple[str, Report]:
    """The tree of a file in short, and what was found."""
    report = Report()
    finder = FileFinder(str(path), Roots(folders=folders))
    fragment = expand(path.read_bytes(), str(path), finder, report)
    return " ".join(map(short, fragment.children)), report


def short(element: Element) -> str:
    inner = " ".join([*([element.text] if element.text.strip() else []),
                      *map(short, element.children)])  # fmt: skip
    return f"{element.name}({inner})" if inner else element.name


def fine(path: Path, *folders: Path) -> str:
    text, report = expanded(path, *folders)
    assert [str(d) for d in report.diagnostics] == []
    return text


def faults(path: Path, *folders: Path) -> list[Diagnostic]:
    try:
        _, report = expanded(path, *folders)
    except FormatError as error:
        return list(error.diagnostics)
    with pytest.raises(FormatError) as caught:
        report.raise_if_errors()
    return list(caught.value.diagnostics)


# One file


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("<a/>", ["a"]),
        ("<a/><b/>", ["a", "b"]),
        ("<?xml version='1.0' encoding='utf-8'?>\n<a/><b/>", ["a", "b"]),
        ("\ufeff<a/><b/>", ["a", "b"]),
        ("<!-- a -- b ---><a/><!-- <b/> -->", ["a"]),
        ("<?xml version='1.0'>\n<a/>", ["a"]),
        ("<?anything\n<a/>", ["a"]),
        ("<!-- only this -->", []),
        ("", []),
    ],
)
def test_fragments(text: str, names: list[str]):
    report = Report()
    fragment = parse_fragment(text.encode(), "f.xml", report)
    assert [element.name for element in fragment.children] == names
    assert report.diagnostics == ()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("<a/><b/>", [(1, 1), (1, 5)]),
        ("  <a/>\n  <b/>", [(1, 3), (2, 3)]),
        ("<?xml version='1.0'?><a/>\n<b/>", [(1, 22), (2, 1)]),
        ("\ufeff<a/><b/>", [(1, 1), (1, 5)]),
        ("<!-- x\n y --> <a/> <b/>", [(2, 8), (2, 13)]),
        ("<?odd\n<a/>\n<b/>", [(2, 1), (3, 1)]),
    ],
)
def test_places_are_those_of_the_file(text: str, places: list[tuple[int, int]]):
    fragment = parse_fragment(text.encode(), "f.xml", Report())
    found = [(e.place.line, e.place.column) for e in fragment.children]
    assert found == places


def test_an_end_tag_behind_the_end_is_left_out():
    report = Report()
    fragment = parse_fragment(b"<a/>\n</b>", "f.xml", report)
    assert [element.name for element in fragment.children] == ["a"]
    (found,) = report.diagnostics
    assert "end tag" in found.message


def test_places_inside_of_the_first_line_too():
    fragment = parse_fragment(b"<a><b><c/></b></a><d/>", "f.xml", Report())
    (c,) = fragment.children[0].children[0].children
    assert str(c.place) == "f.xml:1:7"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("<a/><b><c></b>", "f.xml:1:13", "mismatched tag"),
        ("<a/>\n</b><c/>", "f.xml:2:2", "not well-formed"),
        ("<a><b></a>", "f.xml:1:9", "mismatched tag"),
        ("<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "f.xml:1:13", "document type"),
        ("<a/><b x=1/>", "f.xml:1:10", "not well-formed"),
    ],
)
def test_errors_have_the_places_of_the_file(text: str, place: str, words: str):
    with pytest.raises(FormatError) as caught:
        parse_fragment(text.encode(), "f.xml", Report())
    (found,) = caught.value.diagnostics
    assert words in found.message
    assert str(found.place) == place


def test_line_of_an_error_behind_a_comment_counts():
    text = "<!-- 1\n2\n3 --><a/>\n<b x=1/>"
    with pytest.raises(FormatError, match=r"f\.xml:4:6"):
        parse_fragment(text.encode(), "f.xml", Report())


def test_nesting_is_bounded():
    deep = "<a>" * (ROBWORK_DEPTH.most + 1) + "</a>" * (ROBWORK_DEPTH.most + 1)
    with pytest.raises(FormatError, match="nested more than 64 deep"):
        parse_fragment(deep.encode(), "f.xml", Report())


# Include


def test_include_puts_all_roots_in_its_place(write: Write):
    write("parts/two.xml", "<b/><c/>")
    main = write("main.xml", '<w><a/><Include file="parts/two.xml"/><d/></w>')
    assert fine(main) == "w(a b c d)"


def test_include_is_relative_to_the_file_that_includes(write: Write):
    write("x/inner.xml", "<i/>")
    write("x/middle.xml", '<m><Include file="inner.xml"/></m>')
    main = write("main.xml", '<w><Include file="x/middle.xml"/></w>')
    assert fine(main) == "w(m(i))"


def test_included_elements_keep_their_places(write: Write):
    inner = write("inner.xml", "\n<i/>\n  <j><k/></j>")
    main = write("main.xml", '<w>\n<Include file="inner.xml"/></w>')
    report = Report()
    finder = FileFinder(str(main), Roots())
    (root,) = expand(main.read_bytes(), str(main), finder, report).children
    i, j = root.children
    assert str(root.place) == f"{main}:1:1"
    assert str(i.place) == f"{inner}:2:1"
    assert str(j.children[0].place) == f"{inner}:3:6"


def test_include_may_bring_text(write: Write):
    write("rpy.xml", " 1 2 3 ")
    main = write("main.xml", '<w><RPY><Include file="rpy.xml"/></RPY></w>')
    assert fine(main) == "w(RPY( 1 2 3 ))"


def test_include_of_text_beside_text_is_refused(write: Write):
    write("rpy.xml", "1 2")
    main = write("main.xml", '<w><RPY>0 <Include file="rpy.xml"/></RPY></w>')
    assert [d.code for d in faults(main)] == ["mixed-text"]


def test_windows_paths_are_understood(write: Write):
    write("parts/two.xml", "<b/>")
    main = write("main.xml", '<w><Include file="parts\\two.xml"/></w>')
    assert fine(main) == "w(b)"


def test_file_may_be_included_twice(write: Write):
    write("i.xml", "<i/>")
    main = write("m.xml", '<w><Include file="i.xml"/><Include file="i.xml"/></w>')
    assert fine(main) == "w(i i)"


def test_folders_allow_what_is_outside(write: Write, tmp_path: Path):
    write("../models/arm.xml", '<arm><Include file="../share/tool.xml"/></arm>')
    write("../share/tool.xml", "<tool/>")
    main = write("main.xml", '<w><Include file="../models/arm.xml"/></w>')
    assert [d.code for d in faults(main)] == ["reference-outside"]
    assert fine(main, tmp_path) == "w(arm(tool))"
    inner = faults(main, tmp_path / "models")
    assert [d.code for d in inner] == ["reference-outside", "included-here"]


def test_the_folder_that_an_error_names_is_enough(write: Write):
    """The usual layout: scenes and devices below one folder."""
    write("../models/arm/arm.xml", '<arm><Include file="../share/tool.xml"/></arm>')
    write("../models/share/tool.xml", "<tool/>")
    main = write("scene/main.xml", '<w><Include file="../../models/arm/arm.xml"/></w>')
    (found,) = faults(main)
    named = re.search(r"folders=\['(.*)'\]", found.hint)
    assert named is not None
    assert fine(main, Path(named[1])) == "w(arm(tool))"


def test_first_files_folder_is_open_to_included_files(write: Write):
    write("share/tool.xml", "<tool/>")
    write("arms/arm.xml", '<arm><Include file="../share/tool.xml"/></arm>')
    main = write("main.xml", '<w><Include file="arms/arm.xml"/></w>')
    assert fine(main) == "w(arm(tool))"


@pytest.mark.parametrize(
    "reference",
    [
        "../secret.xml",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "http://host/x.xml",
        "//host/share/x.xml",
        "sub/../../secret.xml",
        "",
        "   ",
    ],
)
def test_nothing_outside_is_opened(write: Write, reference: str, monkeypatch):
    write("../secret.xml", "<secret/>")
    main = write("main.xml", f'<w><Include file="{reference}"/></w>')
    opened: list[str] = []
    real = os.open

    def spy(path, *rest):
        opened.append(os.fspath(path))
        return real(path, *rest)

    monkeypatch.setattr(os, "open", spy)
    (found,) = faults(main)
    assert found.code.startswith("reference-")
    assert opened == []


def test_link_that_leads_out_is_not_followed(write: Write, tmp_path: Path):
    secret = write("../secret.xml", "<secret/>")
    main = write("main.xml", '<w><Include file="link.xml"/></w>')
    (tmp_path / "lab" / "link.xml").symlink_to(secret)
    assert [d.code for d in faults(main)] == ["reference-outside"]


def test_missing_file_is_reported_with_both_locations(write: Write):
    write("b.xml", '<b>\n <Include file="thre.xml"/></b>')
    write("three.xml", "<c/>")
    main = write("main.xml", '<w>\n\n<Include file="b.xml"/></w>')
    missing, around = faults(main)
    assert missing.code == "reference-missing"
    assert str(missing.place).endswith("b.xml:2:2")
    assert missing.hint == "Did you mean 'three.xml'?"
    assert around.code == "included-here"
    assert str(around.place).endswith("main.xml:3:1")


def test_broken_file_is_reported_with_both_locations(write: Write):
    write("b.xml", "<b>\n</c>")
    main = write("main.xml", '<w><Include file="b.xml"/></w>')
    broken, around = faults(main)
    assert (broken.code, str(broken.place)[-9:]) == ("xml-syntax", "b.xml:2:3")
    assert str(around.place).endswith("main.xml:1:4")


def test_file_that_closes_what_another_opens_is_refused(write: Write):
    write("b.xml", "</a><a>")
    main = write("main.xml", '<w><a><Include file="b.xml"/></a></w>')
    assert faults(main)[0].code == "xml-syntax"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"main.xml": "main.xml"}, "main.xml -> main.xml"),
        ({"main.xml": "b.xml", "b.xml": "sub/../main.xml"},
         "main.xml -> b.xml -> main.xml"),
        ({"main.xml": "b.xml", "b.xml": "c.xml", "c.xml": "b.xml"},
         "main.xml -> b.xml -> c.xml -> b.xml"),
    ],
)  # fmt: skip
def test_include_cycles_are_reported(write: Write, files: dict[str, str], names: str):
    write("sub/x.xml", "")
    for name, other in files.items():
        write(name, f'<w><Include file="{other}"/></w>')
    found = faults(write("main.xml", f'<w><Include file="{files["main.xml"]}"/></w>'))
    assert found[0].code == "include-cycle"
    assert found[0].message.endswith(names)


def test_chain_of_includes_is_bounded(write: Write):
    for k in range(30):
        write(f"{k}.xml", f'<w><Include file="{k + 1}.xml"/></w>')
    found = faults(write("main.xml", '<w><Include file="0.xml"/></w>'))
    assert [d.code for d in found] == ["include-limit"]


@pytest.mark.thorough
def test_include_bomb_is_bounded(write: Write):
    for k in range(12):
        write(f"{k}.xml", f'<Include file="{k + 1}.xml"/>' * 10)
    write("12.xml", "<a/>" * 10)
    with counted() as work:
        found = faults(write("main.xml", '<w><Include file="0.xml"/></w>'))
    assert found[0].code in {"include-limit", "xml-limit"}
    assert work.lines < 20_000_000


def test_include_without_file_is_reported(write: Write):
    assert [d.code for d in faults(write("m.xml", "<w><Include/></w>"))] == [
        "missing-attribute"
    ]


# Define and Use


def test_definition_is_put_where_it_is_used(write: Write):
    main = write(
        "m.xml", '<w><Define id="f"><a/><b/></Define><Use id="f"/><c/><Use id="f"/></w>'
    )
    assert fine(main) == "w(a b c a b)"


def test_definition_may_be_a_text(write: Write):
    main = write("m.xml", '<w><Define id="r">1 2</Define><P><Use id="r"/></P></w>')
    assert fine(main) == "w(P(1 2))"


def test_definitions_may_use_and_include(write: Write):
    write("i.xml", "<i/>")
    main = write(
        "m.xml",
        '<w><Define id="a"><a/></Define><Define id="b"><Use id="a"/>'
        '<Include file="i.xml"/></Define><Use id="b"/></w>',
    )
    assert fine(main) == "w(a i)"


def test_definitions_are_known_in_their_file_only(write: Write):
    write("i.xml", '<Define id="x"><x/></Define><i><Use id="y"/></i>')
    main = write(
        "m.xml",
        '<w><Define id="y"><y/></Define><Include file="i.xml"/><Use id="x"/></w>',
    )
    found = faults(main)
    assert [d.code for d in found] == ["unknown-define", "unknown-define"]
    assert "known in its own file only" in found[0].hint


def test_use_before_the_definition_is_refused(write: Write):
    main = write("m.xml", '<w><Use id="x"/><Define id="x"><x/></Define></w>')
    assert [d.code for d in faults(main)] == ["unknown-define"]


def test_misspelt_use_brings_the_right_name(write: Write):
    main = write("m.xml", '<w><Define id="finger"/><Use id="fingers"/></w>')
    assert faults(main)[0].hint == "Did you mean 'finger'?"


def test_second_definition_counts_from_there_on(write: Write):
    main = write(
        "m.xml",
        '<w><Define id="x"><a/></Define><Use id="x"/><Define id="x"><b/></Define>'
        '<Use id="x"/></w>',
    )
    text, report = expanded(main)
    assert text == "w(a b)"
    assert [d.code for d in report.diagnostics] == ["repeated-define"]


@pytest.mark.parametrize(
    "text",
    [
        '<w><Define id="x"><Use id="x"/></Define><Use id="x"/></w>',
        '<w><Define id="x"><Use id="y"/></Define><Define id="y"><Use id="x"/></Define>'
        '<Use id="y"/></w>',
    ],
)
def test_definitions_that_use_themselves_are_refused(write: Write, text: str):
    assert [d.code for d in faults(write("m.xml", text))] == ["define-cycle"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("innermost", ["<a/>", ""])
def test_bomb_of_definitions_is_bounded(write: Write, innermost: str):
    uses = [f'<Use id="d{k}"/>' * 10 for k in range(12)]
    levels = "".join(f'<Define id="d{k + 1}">{uses[k]}</Define>' for k in range(11))
    text = f'<w><Define id="d0">{innermost}</Define>{levels}<Use id="d11"/></w>'
    with counted() as work:
        found = faults(write("m.xml", text))
    assert [d.code for d in found] == ["xml-limit"]
    assert work.lines < 20_000_000


def test_uses_of_one_definition_are_elements_of_their_own(write: Write):
    """What a reader asks of the one is not asked of the other."""
    main = write(
        "m.xml", '<w><Define id="x"><a/></Define><Use id="x"/><Use id="x"/></w>'
    )
    finder = FileFinder(str(main), Roots())
    (root,) = expand(main.read_bytes(), str(main), finder, Report()).children
    first, second = root.children
    assert first is not second
    assert first.place == second.place
