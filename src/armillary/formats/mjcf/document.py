"""MJCF files to one document: includes, settings of the compiler, classes of defaults.

MuJoCo pastes the elements of included files in place of `<include>`, and joins sections
that come several times. The elements here keep their file, line and column.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Diagnostic, Report
from armillary.formats.elements import (
    NUMBER,
    TEXT,
    ElementTable,
    Row,
    choice,
    numbers,
    one_of,
)
from armillary.formats.mjcf.schema import ROOTS, attributes_of, report_unknown
from armillary.formats.paths import Roots
from armillary.formats.xml import Element, parse
from armillary.limits import (
    FILE_SIZE,
    MJCF_DEPTH,
    MJCF_ELEMENTS,
    MJCF_FILES,
    MJCF_INCLUDE_DEPTH,
)

__all__ = [
    "COMPILER",
    "MAIN",
    "RESOLVED",
    "SWITCH",
    "TURNS",
    "MjcfDocument",
    "read_document",
    "with_attributes",
    "with_file",
]

SWITCH: Final = choice({"false": False, "true": True})

COMPILER: Final = ElementTable[Report](
    "compiler",
    Row("angle", one_of("radian", "degree"), default="degree"),
    Row("eulerseq", TEXT, default="xyz"),
    Row("autolimits", SWITCH, default=True),
    Row("coordinate", one_of("local", "global"), default="local"),
    Row("meshdir", TEXT, default=""),
    Row("assetdir", TEXT, default=""),
    Row("strippath", SWITCH, default=False),
    Row("discardvisual", SWITCH, default=False),
    Row("alignfree", SWITCH, default=False),
    Row("balanceinertia", SWITCH, default=False),
    Row("boundmass", NUMBER, default=0.0),
    Row("boundinertia", NUMBER, default=0.0),
    Row("settotalmass", NUMBER, default=-1.0),
    Row("inertiagrouprange", numbers(2), default=(0.0, 5.0)),
    Row(
        "inertiafromgeom",
        choice({"auto": None, "true": True, "false": False}),
        default=None,
    ),
)
"""The settings that answers depend on."""

MAIN: Final = "main"
RESOLVED: Final = "\0resolved"
"""The class of elements that have their defaults already; no file can name it."""
TURNS: Final = ("axisangle", "xyaxes", "zaxis", "euler")
"""Attributes that are rotations beside `quat`; each of them stands for all."""

FILED: Final = ("mesh", "hfield", "skin", "flexcomp")
"""Elements whose files are looked for from `meshdir`."""

_SECTIONS: Final = ("equality", "tendon")
"""Sections whose elements share the defaults of one kind, which is called like them."""

_ACTUATOR: Final = "actuator"
"""What kinds of actuators share; those of one have what it alone has beside that."""


def with_attributes(
    element: Element,
    attributes: Mapping[str, str],
    children: Sequence[Element] | None = None,
) -> Element:
    """Return an element with other attributes, and with other children if given."""
    return Element(
        element.name,
        attributes,
        children=element.children if children is None else tuple(children),
        text=element.text,
        path=element.path,
        line=element.line,
        column=element.column,
    )


@dataclass(frozen=True, slots=True)
class MjcfDocument:
    """One model with all that it includes.

    Attributes:
        path: Of its file.
        root: The element around all.
        sections: The children of all sections of a name, in their order.
        settings: Those of the compiler, by their names in `COMPILER`.
        classes: For each class of defaults, for each kind of element its attributes.
        report: Receives the diagnostics.
        models: Those that bodies of it may be attached from, by their names.
        attachments: What was copied from them, as `AttachedBodies`.
    """

    path: str
    root: Element
    sections: dict[str, list[Element]]
    settings: dict[str, Any]
    classes: dict[str, dict[str, dict[str, str]]]
    report: Report
    models: dict[str, MjcfDocument] = field(default_factory=dict[str, Any])
    attachments: list[Any] = field(default_factory=list[Any])

    @property
    def base(self) -> str:
        """Return the folder of the file."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def in_degrees(self) -> bool:
        """Return whether angles are in degrees."""
        return self.settings["angle"] == "degree"

    def effective(self, element: Element, outer: str, childclass: str) -> Element:
        """Return an element with the defaults of its class.

        outer: The element that it is in, by the schema: `"body"`.
        childclass: The class of elements around it that name none.
        """
        name = element.attributes.get("class", childclass)
        if name not in self.classes:
            self.report.error(
                element.place,
                "unknown-class",
                f"{element.label} has the class {quote(name)}, which is not defined",
                hint=self.report.hint(name, self.classes),
            )
            name = MAIN
        of_class = self.classes[name]
        kind = outer if outer in _SECTIONS else element.name
        defaults = of_class.get(kind, {})
        if outer == _ACTUATOR:
            defaults = of_class.get(_ACTUATOR, {}) | defaults
        own = dict(element.attributes)
        own.pop("class", None)
        if not defaults:
            return (
                element
                if len(own) == len(element.attributes)
                else (with_attributes(element, own))
            )
        known = attributes_of(outer, element.name)
        given = {key: text for key, text in defaults.items() if key in known}
        if any(key in own for key in TURNS):
            given = {key: text for key, text in given.items() if key not in TURNS}
        return with_attributes(element, given | own)


def read_document(data: bytes, path: str, roots: Roots, report: Report) -> MjcfDocument:
    """Return the model in a file, with all files that it includes or attaches.

    Raises:
        FormatError: A file cannot be read, or there is too much of it.
    """
    return _read(data, path, roots, report, (os.path.realpath(path),), "")


def _read(
    data: bytes,
    path: str,
    roots: Roots,
    report: Report,
    chain: tuple[str, ...],
    folder: str,
) -> MjcfDocument:
    """Return the model in a file; it calls itself for models that are attached.

    chain: The files that lead to it, and itself.
    folder: Its folder, from that of the first file.
    """
    root = _Includes(path, roots, report).root(data)
    if root.name not in ROOTS:
        report.error(
            root.place, "not-mjcf", f"the root element is {root.label}, not <mujoco>"
        )
        report.raise_if_errors()
    report_unknown(root, report)
    sections: dict[str, list[Element]] = {}
    settings = dict(COMPILER.read(Element("compiler"), report))
    for section in root.children:
        sections.setdefault(section.name, []).extend(section.children)
        if section.name == "compiler":
            given = COMPILER.read(section, report)
            for row in COMPILER.rows:
                if any(key in section.attributes for key in row.attributes):
                    settings[row.key] = given[row.key]
            _check_compiler(section, settings, report)
    classes = _classes(root, report)
    document = MjcfDocument(path, root, sections, settings, classes, report)
    for element in sections.get("asset", []):
        if element.name == "model":
            _add_model(element, document, roots, chain, folder)
    assets = sections.get("asset", [])
    assets[:] = [with_file(each, settings, folder) for each in assets]
    return document


def _add_model(
    element: Element,
    document: MjcfDocument,
    roots: Roots,
    chain: tuple[str, ...],
    folder: str,
) -> None:
    """Add a model that may be attached."""
    report, place = document.report, element.place
    reference = element.required_attribute("file", report)
    if reference is None:
        return
    found = roots.find(reference, base=document.base, place=place)
    if isinstance(found, Diagnostic):
        report.add(found)
        return
    real = os.fspath(found)
    if real in chain:
        names = " -> ".join(os.path.basename(each) for each in (*chain, real))
        message = f"{quote(reference)} attaches itself: {names}"
        report.error(place, "include-cycle", message)
        return
    report.budget.check(MJCF_INCLUDE_DEPTH, len(chain), place)
    report.budget.spend(MJCF_FILES, place)
    shown = os.path.join(os.path.dirname(document.path), reference)
    if os.path.isabs(reference) or not os.path.exists(shown):
        shown = real
    try:
        data = roots.read(real, FILE_SIZE.most)
        beside = os.path.relpath(os.path.dirname(real), os.path.realpath(document.base))
        below = os.path.normpath(os.path.join(folder, beside))
        model = _read(data, shown, roots, report, (*chain, real), below)
    except FormatError as error:
        for diagnostic in error.diagnostics:
            report.add(diagnostic)
        return
    count = sum(1 for _ in model.root.walk())
    report.budget.spend(MJCF_ELEMENTS, place, count)
    name = element.attributes.get("name") or model.root.attributes.get("model", "")
    if name in document.models:
        message = f"a model of the assets is called {quote(name)} already"
        report.error(place, "repeated-name", message, hint="Rename one.")
    document.models[name] = model


def with_file(
    element: Element, settings: Mapping[str, Any], folder: str = ""
) -> Element:
    """Return an element whose file is named from the folder of the first file."""
    reference = element.attributes.get("file", "")
    if not reference or element.name not in FILED:
        return element
    if settings["strippath"]:
        reference = os.path.basename(reference.replace("\\", "/"))
    if not os.path.isabs(reference) and "://" not in reference:
        inside = settings["meshdir"] or settings["assetdir"]
        if inside or folder:
            reference = os.path.normpath(os.path.join(folder, inside, reference))
    return with_attributes(element, {**element.attributes, "file": reference})


def _check_compiler(section: Element, settings: dict[str, Any], report: Report) -> None:
    sequence = settings["eulerseq"]
    if len(sequence) != 3 or not set(sequence) <= set("xyzXYZ"):
        report.error(
            section.place,
            "unknown-value",
            f"'eulerseq' of {section.label} is {quote(sequence)}; it takes three "
            "letters of xyzXYZ",
        )
        settings["eulerseq"] = "xyz"
    if settings["coordinate"] == "global":
        report.error(
            section.place,
            "global-coordinates",
            "the file has global coordinates, which MuJoCo no longer reads",
            hint="Open it with MuJoCo 2.3.3 or older and save it: that writes local "
            "coordinates.",
        )
        settings["coordinate"] = "local"


# Includes


class _Includes:
    """Put included elements in the places of `<include>`."""

    def __init__(self, path: str, roots: Roots, report: Report) -> None:
        self._path, self._roots, self._report = path, roots, report
        self._base = os.path.dirname(os.path.abspath(path))
        self._seen = {os.path.realpath(path): path}
        self._size = 0

    def root(self, data: bytes) -> Element:
        """Return the root element of the main file."""
        element = self._parse(data, self._path)
        return self._expanded(element, self._base, (os.path.realpath(self._path),), 1)

    def _parse(self, data: bytes, path: str) -> Element:
        self._size += len(data)
        return parse(
            data, path, elements=MJCF_ELEMENTS, depth=MJCF_DEPTH, report=self._report
        )

    def _expanded(
        self, outer: Element, base: str, chain: tuple[str, ...], depth: int
    ) -> Element:
        """Return an element without includes; it calls itself for each level."""
        if not any(each.name == "include" or each.children for each in outer.children):
            return outer
        self._report.budget.check(MJCF_DEPTH, depth, outer.place)
        children: list[Element] = []
        for element in outer.children:
            if element.name == "include":
                children.extend(self._included(element, base, chain, depth))
            else:
                children.append(self._expanded(element, base, chain, depth + 1))
        return with_attributes(outer, outer.attributes, children)

    def _included(
        self, element: Element, base: str, chain: tuple[str, ...], depth: int
    ) -> Sequence[Element]:
        """Return the elements of an included file, none after an error."""
        reference = element.required_attribute("file", self._report)
        if reference is None:
            return ()
        report, place = self._report, element.place
        # As in MuJoCo beside the main file, else beside the one that includes.
        found = self._roots.find(reference, base=self._base, place=place)
        if isinstance(found, Diagnostic) and base != self._base:
            beside = self._roots.find(reference, base=base, place=place)
            found = found if isinstance(beside, Diagnostic) else beside
        if isinstance(found, Diagnostic):
            report.add(found)
            return ()
        real = os.fspath(found)
        if real in chain:
            names = " -> ".join(os.path.basename(each) for each in (*chain, real))
            message = f"{quote(reference)} includes itself: {names}"
            report.error(place, "include-cycle", message)
            return ()
        if real in self._seen:
            report.error(
                place,
                "repeated-include",
                f"{quote(reference)} is included already; MuJoCo includes a file once",
            )
            return ()
        budget = report.budget
        budget.check(MJCF_INCLUDE_DEPTH, len(chain), place)
        budget.spend(MJCF_FILES, place)
        self._seen[real] = reference
        shown = os.path.join(os.path.dirname(self._path), reference)
        if os.path.isabs(reference) or not os.path.exists(shown):
            shown = real
        try:
            data = self._roots.read(real, FILE_SIZE.most - self._size)
            inner = self._parse(data, shown)
        except FormatError as error:
            for diagnostic in error.diagnostics:
                report.add(diagnostic)
            name = os.path.basename(real)
            report.note(place, "included-here", f"{quote(name)} is included here")
            return ()
        budget.spend(MJCF_ELEMENTS, place, sum(1 for _ in inner.walk()))
        expanded = self._expanded(inner, os.path.dirname(real), (*chain, real), depth)
        return expanded.children


# Defaults


def _classes(root: Element, report: Report) -> dict[str, dict[str, dict[str, str]]]:
    """Return the attributes that each class of defaults gives to each kind."""
    classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}, RESOLVED: {}}
    pending: list[tuple[Element, str]] = [
        (each, "") for each in reversed(root.children) if each.name == "default"
    ]
    # Depth first, in the order of the file: a class begins as a copy of the outer one.
    while pending:
        element, outer = pending.pop()
        name = element.attributes.get("class", "")
        if not outer:
            if name not in ("", MAIN):
                report.tolerating(f"it is read as {MAIN!r}").error(
                    element.place,
                    "renamed",
                    f"the outermost class of defaults is called {quote(name)}",
                )
                classes.setdefault(name, classes[MAIN])
            name = MAIN
        elif not name:
            report.error(
                element.place, "missing-attribute", f"{element.label} has no 'class'"
            )
            continue
        elif name in classes:
            message = f"a class of defaults is called {quote(name)} already"
            report.error(element.place, "repeated-name", message, hint="Rename one.")
            continue
        else:
            classes[name] = {kind: dict(of) for kind, of in classes[outer].items()}
        for child in element.children:
            if child.name != "default":
                _add_defaults(classes[name], child)
        pending.extend(
            (child, name)
            for child in reversed(element.children)
            if child.name == "default"
        )
    return classes


def _add_defaults(of_class: dict[str, dict[str, str]], element: Element) -> None:
    kind = element.name
    given = dict(element.attributes)
    kinds = [kind]
    if attributes_of(_ACTUATOR, kind) and not attributes_of("body", kind):
        # What all actuators have is shared by all of them.
        kinds.append(_ACTUATOR)
    for each in kinds:
        known = of_class.setdefault(each, {})
        if any(key in given for key in TURNS):
            for key in TURNS:
                known.pop(key, None)
        known.update(given)
