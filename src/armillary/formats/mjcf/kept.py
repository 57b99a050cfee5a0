"""What a cell has no counterpart for: kept as properties, and written again.

An element becomes the property `mjcf.<section>`, or `mjcf.<its name>` of a link; the
text of the property is the element. References in it to bodies, joints, geoms and sites
are the names that the cell has: `manipulator/name`. The further attributes of an
element that is read become the property `mjcf.<its name>`, whose `of` is the link and
whose description says which of its parts they are about, such as `collisions 2`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from armillary.errors import FormatError
from armillary.formats.diagnostic import Report
from armillary.formats.mjcf.document import with_attributes
from armillary.formats.xml import Element, parse, to_text
from armillary.formats.xml.write import HEADER
from armillary.limits import MJCF_DEPTH, MJCF_ELEMENTS
from armillary.model.property import Property

__all__ = [
    "PREFIX",
    "REFERENCES",
    "SETTINGS",
    "element_in",
    "kept",
    "renamed_references",
    "rest",
]

PREFIX: Final = "mjcf."

SETTINGS: Final = ("option", "size", "statistic", "visual", "custom", "extension")
"""Sections that are kept as a whole."""

REFERENCES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("joint", "joint1", "joint2", "jointinparent"), "joint"),
    **dict.fromkeys(
        ("body", "body1", "body2", "subtree1", "subtree2", "childbody"), "body"
    ),
    **dict.fromkeys(
        ("site", "site1", "site2", "refsite", "cranksite", "slidersite", "sidesite"),
        "site",
    ),
    **dict.fromkeys(("geom", "geom1", "geom2"), "geom"),
}
"""The attributes that name something, and what."""

TYPED: Final = {"objname": "objtype", "refname": "reftype"}
"""Attributes that name something whose kind another attribute says."""

KINDS: Final = {"body": "body", "xbody": "body", "geom": "geom", "site": "site"}

Lookup = Callable[[str, str, Element], str | None]
"""Return the new name of a kind and a name; None where the element must go."""


def renamed_references(element: Element, new_name: Lookup) -> Element | None:
    """Return an element whose references have other names, None if one has none."""
    attributes = dict(element.attributes)
    for key, value in element.attributes.items():
        kind = REFERENCES.get(key)
        if key == "target" and element.name in ("camera", "light"):
            kind = "body"
        if key in TYPED:
            kind = KINDS.get(element.attributes.get(TYPED[key], ""))
        if kind is None:
            continue
        name = new_name(kind, value, element)
        if name is None:
            return None
        attributes[key] = name
    children = [renamed_references(child, new_name) for child in element.children]
    if None in children:
        return None
    return with_attributes(element, attributes, [c for c in children if c is not None])


def kept(
    name: str, element: Element, *, of: str = "", description: str = ""
) -> Property:
    """Return the property that keeps an element, without materials, which are not kept.

    name: Without `mjcf.`.
    """
    text = to_text(_without_material(element)).removeprefix(HEADER).strip()
    return Property(name=f"{PREFIX}{name}", of=of, text=text, description=description)


def _without_material(element: Element) -> Element:
    attributes = dict(element.attributes)
    attributes.pop("material", None)
    children = [_without_material(child) for child in element.children]
    return with_attributes(element, attributes, children)


def rest(element: Element, read: Collection[str]) -> Element | None:
    """Return the attributes of an element that are not read, None if all are.

    The numbers in them are as in the file.
    """
    left = {key: text for key, text in element.attributes.items() if key not in read}
    if not left:
        return None
    return with_attributes(element, left, ())


def element_in(note: Property, report: Report) -> Element | None:
    """Return the element that a property keeps, None if it keeps none.

    It may come from a file that is not trusted, or may have been edited.
    """
    try:
        return parse(
            note.text.encode(),
            f"property {note.name}",
            budget=report.budget.renewed(),
            elements=MJCF_ELEMENTS,
            depth=MJCF_DEPTH,
        )
    except (FormatError, UnicodeEncodeError):
        return None
