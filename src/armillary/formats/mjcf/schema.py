"""Which elements MJCF has, and which attributes each: a table of MuJoCo's schema."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element

__all__ = ["attributes_of", "report_unknown"]

ROOTS: Final = ("mujoco", "mujocoinclude")

SAME: Final = {
    "mujocoinclude": "mujoco",
    "worldbody": "body",
    "frame": "body",
    "replicate": "body",
}
"""Elements that hold what another one holds."""

OLDER: Final = {
    "compiler": {"convexhull", "exactmeshinertia"},
    "option": {"apirate", "collision", "mpr_iterations", "mpr_tolerance"},
    "flag": {"passive", "sensornoise"},
    "quality": {"mirrorplane"},
}
"""Attributes that only older versions of MuJoCo read, by the names of elements."""

ANYWHERE: Final = ("include",)


@cache
def _schema() -> dict[str, frozenset[str]]:
    text = (files("armillary.formats.mjcf") / "schema.toml").read_text("utf-8")
    return {
        path: frozenset(names.split()) for path, names in tomllib.loads(text).items()
    }


@cache
def _children() -> dict[str, dict[str, frozenset[str]]]:
    """Return the elements inside of each, with their attributes."""
    children: dict[str, dict[str, frozenset[str]]] = {}
    for path, names in _schema().items():
        outer, _, inner = path.rpartition("/")
        children.setdefault(outer, {})[inner] = names
    for inside in (children["mujoco"], children["body"]):
        inside["worldbody"] = inside["body"] = _schema()["mujoco/body"]
    children["default"] |= {"default": frozenset({"class"})}
    return children


def attributes_of(outer: str, name: str) -> frozenset[str]:
    """Return the attributes of an element in another one, none if it is not known."""
    return _children().get(SAME.get(outer, outer), {}).get(name, frozenset())


def report_unknown(root: Element, report: Report) -> None:
    """Warn of elements and attributes that MJCF does not have.

    An element whose name is like a known one is an error, since a motion may depend on
    it; so is one inside of a body that is not known at all.
    """
    pending = [root]
    while pending:
        outer = pending.pop()
        known = _children().get(SAME.get(outer.name, outer.name), {})
        for element in outer.children:
            if element.name in ANYWHERE:
                continue
            if element.name not in known:
                _report_element(outer, element, known, report)
                continue
            names = known[element.name]
            for key in element.attributes:
                if key not in names and key not in OLDER.get(element.name, ()):
                    report.warning(
                        element.place,
                        "unknown-attribute",
                        f"the attribute {quote(key)} of {element.label} was not "
                        "understood",
                        hint=report.hint(key, names),
                    )
            pending.append(element)


def _report_element(
    outer: Element, element: Element, known: dict[str, frozenset[str]], report: Report
) -> None:
    hint = report.hint(element.name, known)
    message = f"the element {quote(element.name)} of {outer.label} was not understood"
    if hint:
        report.error(element.place, "unknown-element", message, hint=hint)
    else:
        report.warning(element.place, "unknown-element", message)
