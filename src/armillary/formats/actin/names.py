"""Names of elements and their namespaces, read as loosely as old files need."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.xml import Element, tag
from armillary.formats.xml.write import Value

OWN: Final = "urn:armillary:actin"
PREFIXES: Final[Mapping[str, str]] = {
    "cr": "http://www.energid.com/namespace/cr",
    "mn": "http://www.energid.com/namespace/mn",
    "am": OWN,
    "mynamespace": "MyNameSpace",
}
# The seed's code and its sample file put the joint into different namespaces.
ALSO: Final = {"MyNameSpace": frozenset({"CircleJointNamespace"})}

# The elements but those of joints and shapes, whose own tables have them.
PRIMARY: Final = "primaryFrame"
ELEMENTS: Final = {
    "cr": "orientation rotation translation",
    "mn": "statedSystem system manipulatorSystem identifier manipulators "
    "individualManipulator manipulatorLink linkKinematicsContainer primaryFrame "
    "childLinks jointActuatorContainer jointActuator lowerLimit upperLimit "
    "maxOutputRate massProperties rigidBodyMassProperties mass firstMoment momentX "
    "momentY momentZ secondMoment jXX jYY jZZ jXY jXZ jYZ namedFrames namedFrame "
    "shapeContainer physicalExtent boundingVolume state manipulatorSystemState "
    "positionStates positionState jointPositions coordinateSystemTransform "
    "velocityStates velocityState jointVelocities time "
    "manipulatorSystemConfiguration manipulatorAttachmentMap "
    "manipulatorAttachmentNode manipulatorId baseManipulatorId linkId offset",
    "am": "maxAcceleration maxEffort motorInertia gearRatio viscousFriction "
    "coulombFriction springStiffness springRest frame loose jointName passive "
    "coupling of multiplier shift input endEffector",
}
PREFIX_OF: Final = {
    name: prefix for prefix, names in ELEMENTS.items() for name in names.split()
}


def actin_tag(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    *children: Element,
    text: str = "",
) -> Element:
    """Return an element to be written.

    name: One of `ELEMENTS`, or another one as `prefix:local`.
    """
    full = name if ":" in name else f"{PREFIX_OF[name]}:{name}"
    return tag(full, attributes, *children, text=text)


def bare(namespace: str) -> str:
    """Return a namespace without spaces around it and `#` at its end."""
    return namespace.strip().removesuffix("#")


def allowed_in(space: str) -> frozenset[str]:
    """Return the bare namespaces in which elements of one are found in files."""
    return frozenset({bare(space)}) | ALSO.get(bare(space), frozenset())


def is_loose(namespace: str) -> bool:
    """Return whether old files have any element there: no namespace, or Actin's."""
    return bare(namespace) in {"", *PREFIXES.values()}


def local(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


class _KnownNames:
    """The names of elements that readers know.

    Attributes:
        proper: The names in their proper spelling.
        spelled: That spelling, by the name in lower case.
        spaces: The bare namespaces that a name may be in, by the name in lower case.
    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        """Take the names of `ELEMENTS`, and others, each with its namespace."""
        self.proper: set[str] = set()
        self.spelled: dict[str, str] = {}
        self.spaces: dict[str, set[str]] = {}
        known = ((name, PREFIXES[prefix]) for name, prefix in PREFIX_OF.items())
        for name, space in (*known, *names):
            self.proper.add(name)
            self.spelled.setdefault(name.lower(), name)
            self.spaces.setdefault(name.lower(), set()).update(allowed_in(space))

    def spelling(self, name: str) -> str:
        """Return the proper spelling of a name; an unknown one stays as it is."""
        return name if name in self.proper else self.spelled.get(name.lower(), name)

    def is_elsewhere(self, element: Element) -> bool:
        """Return whether an element of a known name is in another namespace."""
        allowed = self.spaces.get(element.name.lower())
        return allowed is not None and bare(element.namespace) not in allowed


def canonical(
    root: Element,
    names: Iterable[tuple[str, str]],
    report: Report,
    *,
    shapes: Container[str],
    joints: Container[str],
) -> Element:
    """Return a tree with the known names in their proper spelling.

    Upper and lower case are the same. A known name in another namespace is read all the
    same, with a warning for each such name and namespace. But a joint in a namespace
    that is not Actin's is another joint: all of it but its primary frame stays.

    names: Names of joints and shapes, each with its namespace.
    shapes: Names of elements that are read from our own namespace alone.
    joints: Names of joints, in lower case.
    """
    known = _KnownNames(names)
    elements = list(root.walk())
    left_out, as_written = _of_others(elements, known, shapes, joints)
    others = left_out | as_written
    _report_names((e for e in elements if id(e) not in others), known, report)
    padded = next(filter(_is_padding, elements), None)
    if padded is not None:
        message = "no-break spaces between elements are taken as white space"
        report.note(padded.place, "no-break-space", message)
    made: dict[int, Element] = {}
    for element in reversed(elements):  # children come before their parents
        name = element.name
        made[id(element)] = Element(
            name if id(element) in as_written else known.spelling(name),
            element.attributes,
            children=tuple(made.pop(id(child)) for child in element.children),
            text="" if _is_padding(element) else element.text,
            namespace=element.namespace,
            path=element.path,
            line=element.line,
            column=element.column,
        )
    return made[id(root)]


def _of_others(
    elements: Iterable[Element],
    known: _KnownNames,
    shapes: Container[str],
    joints: Container[str],
) -> tuple[set[int], set[int]]:
    """Return the ids of elements whose names are not ours to judge.

    elements: Each before its children.

    Returns:
        Those of shapes in other namespaces, which are left out; and those of joints in
        other namespaces, whose names stay as they are, but for the primary frame.
    """
    left_out: set[int] = set()
    as_written: set[int] = set()
    for element in elements:
        name, space = element.name, element.namespace
        if id(element) in left_out or (name in shapes and space != OWN):
            left_out |= {id(element), *map(id, element.children)}
            continue
        is_joint = name.lower() in joints and not is_loose(space)
        if id(element) in as_written or (is_joint and known.is_elsewhere(element)):
            inner = (c for c in element.children if c.name.lower() != PRIMARY.lower())
            as_written |= {id(element), *map(id, inner)}
    return left_out, as_written


def _report_names(
    elements: Iterable[Element], known: _KnownNames, report: Report
) -> None:
    """Report each name in another namespace or spelling, once for both together."""
    reported: set[tuple[str, str]] = set()
    for element in elements:
        name, space = element.name, element.namespace
        allowed = known.spaces.get(name.lower())
        if allowed is None or (name, space) in reported:
            continue
        reported.add((name, space))
        if space.removesuffix("#") not in allowed:
            wanted = " or ".join(map(quote, sorted(allowed)))
            report.warning(
                element.place,
                "namespace",
                f"{element.label} is in the namespace {quote(space)}, not in {wanted}; "
                "it is read all the same",
            )
        if name not in known.proper:
            message = f"{element.label} is spelled <{known.spelling(name)}>"
            report.note(element.place, "spelling", message)


def _is_padding(element: Element) -> bool:
    """Return whether the text of an element is the no-break spaces of a web page."""
    return (
        bool(element.text.strip(WHITE_SPACE))
        and not element.text.strip()
        and bool(element.children or element.attributes)
    )


def declared(root: Element) -> Element:
    """Return a tree to be written whose root declares the prefixes that are used."""
    names = (n for each in root.walk() for n in (each.name, *each.attributes))
    used = {name.partition(":")[0] for name in names}
    spaces = {f"xmlns:{p}": uri for p, uri in PREFIXES.items() if p in used}
    attributes = {**root.attributes, **spaces}
    return Element(root.name, attributes, children=root.children, text=root.text)
