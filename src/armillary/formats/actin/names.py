"""Names of elements and their namespaces, told apart as loosely as old files need."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.xml import Element

__all__ = ["OWN", "PREFIXES", "canonical", "declared", "local"]

OWN: Final = "urn:armillary:actin"
PREFIXES: Final[Mapping[str, str]] = {
    "cr": "http://www.energid.com/namespace/cr",
    "mn": "http://www.energid.com/namespace/mn",
    "am": OWN,
    "mynamespace": "MyNameSpace",
}
# The seed's code and its sample file put the joint into different namespaces.
ALSO: Final = {"MyNameSpace": frozenset({"CircleJointNamespace"})}

KNOWN: Final = {
    "cr": (
        "orientation",
        "rotation",
        "translation",
    ),
    "mn": (
        "statedSystem",
        "system",
        "manipulatorSystem",
        "identifier",
        "manipulators",
        "individualManipulator",
        "manipulatorLink",
        "linkKinematicsContainer",
        "primaryFrame",
        "childLinks",
        "jointActuatorContainer",
        "jointActuator",
        "lowerLimit",
        "upperLimit",
        "maxOutputRate",
        "massProperties",
        "rigidBodyMassProperties",
        "mass",
        "firstMoment",
        "momentX",
        "momentY",
        "momentZ",
        "secondMoment",
        "jXX",
        "jYY",
        "jZZ",
        "jXY",
        "jXZ",
        "jYZ",
        "namedFrames",
        "namedFrame",
        "state",
        "manipulatorSystemState",
        "positionStates",
        "positionState",
        "jointPositions",
        "coordinateSystemTransform",
        "manipulatorSystemConfiguration",
        "manipulatorAttachmentMap",
        "manipulatorAttachmentNode",
        "manipulatorId",
        "baseManipulatorId",
        "linkId",
        "offset",
    ),
    "am": (
        "maxAcceleration",
        "maxEffort",
        "frame",
        "loose",
        "jointName",
        "passive",
        "coupling",
        "input",
        "of",
        "multiplier",
        "shift",
        "endEffector",
    ),
}


def local(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


def canonical(
    root: Element,
    names: Iterable[tuple[str, str]],
    report: Report,
    *,
    shapes: Container[str],
) -> Element:
    """Return a tree with the known names spelled as they should be.

    Upper and lower case count for nothing. A known name of another namespace is taken
    all the same, with a warning for each such name and namespace.

    names: Further known ones, each with its namespace.
    shapes: Names of elements that are read from our own namespace alone.
    """
    table: dict[str, tuple[str, set[str]]] = {}
    known = ((bare, PREFIXES[p]) for p, each in KNOWN.items() for bare in each)
    bares: set[str] = set()
    for bare, space in (*known, *names):
        bares.add(bare)
        spaces = table.setdefault(bare.lower(), (bare, set()))[1]
        spaces.add(space.removesuffix("#"))
        spaces |= ALSO.get(space, frozenset())
    elements = list(root.walk())
    _tell(_read_elements(root, shapes), table, bares, report)
    padded = next(filter(_is_padding, elements), None)
    if padded is not None:
        message = "no-break spaces between elements are taken as white space"
        report.note(padded.place, "no-break-space", message)
    # Read backwards, what is inside an element comes before it.
    made: dict[int, Element] = {}
    for element in reversed(elements):
        spelled = table.get(element.name.lower())
        is_spelled = element.name in bares
        at = element.place
        made[id(element)] = Element(
            element.name if spelled is None or is_spelled else spelled[0],
            element.attributes,
            children=tuple(made.pop(id(child)) for child in element.children),
            text="" if _is_padding(element) else element.text,
            namespace=element.namespace,
            place=(at.path, at.line, at.column),
        )
    return made[id(root)]


def _read_elements(root: Element, shapes: Container[str]) -> Iterator[Element]:
    """Yield the elements but the shapes of other namespaces, which are left out."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.name in shapes and element.namespace != OWN:
            continue
        yield element
        waiting.extend(reversed(element.children))


def _is_padding(element: Element) -> bool:
    """Return whether the text of an element is the no-break spaces of a web page."""
    return (
        bool(element.text.strip(WHITE_SPACE))
        and not element.text.strip()
        and bool(element.children or element.attributes)
    )


def _tell(
    elements: Iterable[Element],
    table: Mapping[str, tuple[str, set[str]]],
    bares: set[str],
    report: Report,
) -> None:
    """Report names that are in the wrong namespace or case, each once."""
    told: set[tuple[str, str]] = set()
    for element in elements:
        spelled = table.get(element.name.lower())
        key = (element.name, element.namespace)
        if spelled is None or key in told:
            continue
        told.add(key)
        name, spaces = spelled
        if element.namespace.removesuffix("#") not in spaces:
            wanted = " or ".join(map(quote, sorted(spaces)))
            report.warning(
                element.place,
                "namespace",
                f"{element.label} is in the namespace {quote(element.namespace)}, not "
                f"in {wanted}; it is read all the same",
            )
        if element.name not in bares:
            report.note(
                element.place, "spelling", f"{element.label} is spelled <{name}>"
            )


def declared(root: Element) -> Element:
    """Return a tree to be written whose root declares the prefixes that are used."""
    used: set[str] = set()
    for element in root.walk():
        for name in (element.name, *element.attributes):
            used.add(name.partition(":")[0])
    spaces = {
        f"xmlns:{prefix}": uri for prefix, uri in PREFIXES.items() if prefix in used
    }
    attributes = {**root.attributes, **spaces}
    return Element(root.name, attributes, children=root.children, text=root.text)
