"""Attached models: copies of bodies under other names, and of what refers to them.

As in MuJoCo, an attachment copies a body with all that it carries, what is in a frame,
or all of a model; its assets; the elements of the other sections whose references are
all inside; and keyframes, of which the other joints stand as in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os.path import basename, splitext
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.mjcf.body import Body, FrameAround, PlacedElement
from armillary.formats.mjcf.document import (
    MAIN,
    RESOLVED,
    MjcfDocument,
    with_attributes,
)
from armillary.formats.mjcf.kept import REFERENCES, TYPED, renamed_references
from armillary.formats.mjcf.poses import read_pose
from armillary.formats.xml import Element
from armillary.limits import MJCF_COPIES
from armillary.model.mount import WORLD
from armillary.spatial.pose import Pose

__all__ = ["AttachedBodies", "attach", "merge_sections"]

SECTIONS: Final = ("tendon", "contact", "equality", "actuator", "sensor")
"""Those whose elements are copied; tendons come first, as others name them."""

OF_SECTIONS: Final = {
    **dict.fromkeys(("tendon", "tendon1", "tendon2"), "tendon"),
    "actuator": "actuator",
}
"""Attributes that name elements of a section."""

OF_ASSETS: Final = ("material", "mesh", "hfield", "texture")


class AttachedBodies(NamedTuple):
    """A model of which bodies were copied.

    Attributes:
        document: What was copied from.
        source: All its bodies.
        prefix: Of the names of the copies.
        suffix: Behind them.
        is_whole: Whether all of the model was copied.
        bodies: The number that each body has as a copy.
    """

    document: MjcfDocument
    source: Sequence[Body]
    prefix: str
    suffix: str
    is_whole: bool
    bodies: dict[int, int]


def attach(
    element: Element,
    source: Sequence[Body],
    target: list[Body],
    owner: int,
    pose: Pose,
    *,
    suffix: str = "",
) -> AttachedBodies | None:
    """Copy what an `<attach>` names behind the bodies of a model; None after an error.

    Args:
        element: The attachment.
        source: The bodies of the model that it names, or those read so far.
        target: Where the copies go.
        owner: The body that carries them.
        pose: Of the frames around the attachment.
        suffix: Of its replicate.
    """
    document = source[0].document
    report = document.report
    prefix = element.required_attribute("prefix", report)
    if prefix is None:
        return None
    name, frame = (element.attributes.get(key, "") for key in ("body", "frame"))
    copies = _chosen(element, source, name, frame)
    if copies is None:
        return None
    count = sum(len(parts) for k in copies for parts in source[k].parts.values())
    report.budget.spend(MJCF_COPIES, element.place, count + len(copies))
    numbers: dict[int, int] = {}
    for k in copies:
        body = source[k]
        if body.parent in numbers and body.parent > 0:
            parent, placed = numbers[body.parent], body.pose
        else:
            parent, placed = owner, pose @ _own_pose(body, name, frame)
        # Children of a body are elements, too; what they hold was read already.
        element_of_body = with_attributes(body.element, body.element.attributes, ())
        own = _renamed(element_of_body, prefix, suffix)
        parts = {
            kind: [
                part._replace(element=_renamed(part.element, prefix, suffix))
                for part in parts
            ]
            for kind, parts in body.parts.items()
        }
        name_of_copy = own.attributes.get("name", "")
        numbers[k] = len(target)
        target.append(
            replace(
                body,
                name=name_of_copy,
                element=own,
                parent=parent,
                pose=placed,
                frames=() if parent == owner else body.frames,
                parts=parts,
            )
        )
    _add_parts(source, target[owner], pose, name, frame, prefix, suffix)
    is_whole = not name and not frame
    return AttachedBodies(document, source, prefix, suffix, is_whole, numbers)


def _own_pose(body: Body, name: str, frame: str) -> Pose:
    """Return the pose of a body without the frames around what is attached."""
    if name:
        return read_pose(body.element, body.document)
    around = _frame_of(body, frame)
    return body.pose if around is None else around.outer.inverse() @ body.pose


def _frame_of(each: Body | PlacedElement, frame: str) -> FrameAround | None:
    """Return the frame of a name around a body or an element, None if there is none."""
    return next((around for around in each.frames if around.name == frame), None)


def _chosen(
    element: Element, source: Sequence[Body], name: str, frame: str
) -> list[int] | None:
    """Return the numbers of the bodies that are copied, depth first."""
    inside: set[int] = set()
    found: list[int] = []
    for k, body in enumerate(source[1:], 1):
        if name:
            is_top = body.name == name
        else:
            is_top = body.parent == 0
            if frame:
                is_top = _frame_of(body, frame) is not None
        if is_top or body.parent in inside:
            inside.add(k)
            found.append(k)
    what, wanted = ("body", name) if name else ("frame", frame)
    parts = (part for body in source for each in body.parts.values() for part in each)
    if wanted and not found and not (frame and any(_frame_of(p, frame) for p in parts)):
        report = source[0].document.report
        known = {each.name for each in source[1:] if each.name}
        report.error(
            element.place,
            "unknown-link" if name else "unknown-frame",
            f"{element.label} attaches the {what} {quote(wanted)}, which does not "
            "exist",
            hint=report.hint(wanted, known) if name else "",
        )
        return None
    return found


def _add_parts(
    source: Sequence[Body],
    owner: Body,
    pose: Pose,
    name: str,
    frame: str,
    prefix: str,
    suffix: str,
) -> None:
    """Copy what is not in a body that is copied: in the world, or in a frame."""
    if name:
        return
    for body in source if frame else source[:1]:
        for kind, parts in list(body.parts.items()):
            copies = [
                part._replace(
                    element=_renamed(part.element, prefix, suffix),
                    pose=pose
                    @ (around.outer.inverse() @ part.pose if around else part.pose),
                    frames=(),
                )
                for part in parts
                if (around := _frame_of(part, frame)) or not frame
            ]
            owner.parts.setdefault(kind, []).extend(copies)


def _renamed(element: Element, prefix: str, suffix: str = "") -> Element:
    """Return an element in which all names are those of a copy."""
    attributes = dict(element.attributes)
    for key, value in element.attributes.items():
        is_target = key == "target" and element.name in ("camera", "light")
        if key in OF_ASSETS:
            attributes[key] = f"{prefix}{value}"
        elif (
            key in ("name", "camera", *REFERENCES, *TYPED, *OF_SECTIONS) or is_target
        ) and (key == "name" or value != WORLD):
            attributes[key] = f"{prefix}{value}{suffix}"
    children = [_renamed(child, prefix, suffix) for child in element.children]
    return with_attributes(element, attributes, children)


def merge_sections(
    document: MjcfDocument,
    bodies: Sequence[Body],
    attachments: Sequence[AttachedBodies],
    suffixes: Sequence[str],
) -> None:
    """Add to a model what goes with the bodies that were attached or replicated.

    suffixes: Of the names of each replicate. Elements that refer to what is replicated
        are replicated with it.
    """
    names = _names(bodies)
    own = {name: list(document.sections.get(name, [])) for name in SECTIONS}
    parts = [(each, own if each.document is document else None) for each in attachments]
    open_: dict[str, list[Element]] = {}
    if suffixes:
        open_ = _unresolved(own, document, names)
        copies = [
            AttachedBodies(document, bodies, "", each, False, {}) for each in suffixes
        ]
        parts += [(each, open_) for each in copies]
    made: set[int] = set()
    for each, elements in parts:
        sections = each.document.sections if elements is None else elements
        count = sum(len(sections.get(name, ())) for name in SECTIONS)
        document.report.budget.spend(MJCF_COPIES, document.root.place, count)
        for name in SECTIONS:
            for element in sections.get(name, []):
                resolved = _resolved(element, each.document, name)
                copy = _copied(resolved, each, names)
                if copy is not None:
                    document.sections.setdefault(name, []).append(copy)
                    names[name].add(copy.attributes.get("name", ""))
                    made.add(id(element))
    if suffixes:
        gone = {id(each) for elements in open_.values() for each in elements} & made
        for elements in document.sections.values():
            elements[:] = [each for each in elements if id(each) not in gone]
    _add_assets(document, attachments)
    document.attachments.extend(attachments)


def _unresolved(
    sections: dict[str, list[Element]],
    document: MjcfDocument,
    names: dict[str, set[str]],
) -> dict[str, list[Element]]:
    """Return the elements that refer to what does not exist; add the others' names."""
    as_it_is = AttachedBodies(document, (), "", "", True, {})
    found: dict[str, list[Element]] = {}
    for section in SECTIONS:
        found[section] = []
        for element in sections[section]:
            if _copied(element, as_it_is, names) is None:
                found[section].append(element)
            else:
                names[section].add(element.attributes.get("name", ""))
    return found


def _add_assets(document: MjcfDocument, attachments: Sequence[AttachedBodies]) -> None:
    """Add the assets of attached models, once for each prefix."""
    known: set[tuple[int, str]] = set()
    for each in attachments:
        other, key = each.document, (id(each.document), each.prefix)
        if other is document or key in known:
            continue
        known.add(key)
        document.sections.setdefault("asset", []).extend(
            _named(_resolved(element, other, "asset"), each.prefix)
            for element in other.sections.get("asset", [])
            if element.name != "model"
        )


def _names(bodies: Sequence[Body]) -> dict[str, set[str]]:
    """Return the names in the tree by their kinds."""
    names = {"body": {body.name for body in bodies if body.name} | {WORLD}}
    for kind in ("joint", "geom", "site"):
        names[kind] = {
            part.element.attributes["name"]
            for body in bodies
            for part in body.of(kind)
            if "name" in part.element.attributes
        }
    return names | {section: set[str]() for section in SECTIONS}


def _resolved(element: Element, document: MjcfDocument, outer: str) -> Element:
    """Return an element that no class of defaults of another model may change."""
    effective = document.effective(element, outer, MAIN)
    return with_attributes(effective, {**effective.attributes, "class": RESOLVED})


def _named(asset: Element, prefix: str) -> Element:
    """Return a copy of an asset; a mesh without a name has that of its file."""
    copy = _renamed(asset, prefix)
    if asset.name != "mesh" or "name" in asset.attributes:
        return copy
    name = splitext(basename(asset.attributes.get("file", "")))[0]
    return with_attributes(copy, {**copy.attributes, "name": f"{prefix}{name}"})


def _copied(
    element: Element, attachment: AttachedBodies, names: dict[str, set[str]]
) -> Element | None:
    """Return the copy of an element, None where it refers to what is not copied."""
    prefix, suffix = attachment.prefix, attachment.suffix
    copy = _renamed(element, prefix, suffix)
    count = 0

    def lookup(kind: str, name: str, _: Element) -> str | None:
        nonlocal count
        if name in names.get(kind, ()):
            count += name != WORLD
            return name
        # Other ends of tendons may be outside of a replicate.
        outside = name.removesuffix(suffix)
        is_end = suffix and not prefix and element.name in ("spatial", "fixed")
        return outside if is_end and outside in names.get(kind, ()) else None

    found = renamed_references(copy, lookup)
    if found is None:
        return None
    for key, section in OF_SECTIONS.items():
        name = found.attributes.get(key)
        if name is not None and lookup(section, name, found) is None:
            return None
    return found if count or attachment.is_whole else None
