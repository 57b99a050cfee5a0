"""Single values in elements, read and written: texts, numbers, poses.

Where Actin's form of numbers would round them, the attribute `exact` holds them too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.names import OWN, actin_tag
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.numbers import WHITE_SPACE, has_direction, number_text
from armillary.formats.xml import Element, report_unused
from armillary.formats.xml.write import Value
from armillary.spatial.pose import IDENTITY, Pose, pose_of_entries
from armillary.spatial.vector import EYE, ZERO, Rows

T = TypeVar("T")

EXACT: Final = f"{{{OWN}}}exact"
EXACT_TOLERANCE: Final = 1e-9
QUATERNION: Final = ("q0", "q1", "q2", "q3")
AXES: Final = ("x", "y", "z")


def built(
    make: Callable[..., T],
    fields: dict[str, Any],
    element: Element,
    code: str,
    report: Report,
) -> T | None:
    """Return what a class of the model makes of its fields.

    It is None where a field is wrong or missing, which is reported at the element.
    """
    try:
        return make(**fields)
    except (ArmillaryError, TypeError) as error:
        message = f"{element.label}: {str(error).removesuffix('.')}"
        report.error(element.place, code, message)
        return None


def text(parent: Element, name: str, report: Report, default: str = "") -> str:
    """Return the text of the only child of a name."""
    child = parent.only_child(name, report)
    return (default if child is None else child.read_text()) or default


def text_element(name: str, value: str, report: Report) -> Element:
    """Return an element that holds a text, and warn of white space around it."""
    if value != value.strip(WHITE_SPACE):
        message = f"the white space around {quote(value)} is not kept"
        report.warning(NOWHERE, "lost-space", message)
    return actin_tag(name, text=value)


def value_text(value: Any) -> str:
    """Return the text of a text, a truth, nothing, a number, or numbers in tuples."""
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " ".join(map(value_text, cast(tuple[Any, ...], value)))
    return number_text(value)


def flag(parent: Element, name: str, report: Report) -> bool:
    """Return whether there is a child of a name, which holds nothing."""
    child = parent.only_child(name, report)
    if child is not None:
        report_unused(child, report)
    return child is not None


def number(
    parent: Element, name: str, report: Report, factor: float = 1.0
) -> float | None:
    """Return `factor` times the number in the only child of a name; None without it."""
    child = parent.only_child(name, report)
    numbers = None if child is None else child.text_numbers(1, report)
    if child is None or numbers is None:
        return None
    (value,) = exactly(child, (numbers[0] * factor,), report)
    return value


def number_element(name: str, value: float, factor: float = 1.0) -> Element:
    """Return an element whose number times `factor` is a value."""
    said = value / factor + 0.0
    exact = exact_attribute((value + 0.0,), (said * factor + 0.0,))
    return actin_tag(name, exact, text=number_text(said))


def exactly(
    element: Element, said: tuple[float, ...], report: Report
) -> tuple[float, ...]:
    """Return the exact numbers of an element, or `said` where they contradict it.

    said: The numbers that follow from the rest of the element.
    """
    exact = element.numbers(EXACT, len(said), report) if said else None
    if exact is None:
        return said
    margin = EXACT_TOLERANCE * max(map(abs, said))
    if all(abs(a - b) <= margin for a, b in zip(exact, said, strict=True)):
        return exact
    report.warning(
        element.place,
        "not-exact",
        f"'exact' of {element.label} is left out: it contradicts the element",
        hint="Remove it after editing the element.",
    )
    return said


def exact_attribute(
    wanted: Iterable[float], said: Iterable[float]
) -> dict[str, Iterable[float]]:
    """Return the attribute that holds numbers, nothing where `said` equals them."""
    numbers = tuple(wanted)
    return {} if numbers == tuple(said) else {"am:exact": numbers}


# Poses: an orientation as a quaternion w, x, y, z, and a translation.


def read_pose(element: Element | None, report: Report) -> Pose:
    """Return the pose in an element; a missing part is that of the identity.

    The orientation may be called `rotation`, and the translation may be inside it, as
    in the seed's damaged sample.
    """
    if element is None:
        return IDENTITY
    turns = element.children_named("orientation", "rotation")
    inside = [p for turn in turns[:1] for p in turn.children_named("translation")]
    positions = [*element.children_named("translation"), *inside]
    for code, elements in ("two-rotations", turns), ("repeated-element", positions):
        if len(elements) > 1:
            message = f"{elements[1].label} is a second one in the pose {element.label}"
            report.error(elements[1].place, code, message, hint="Keep one.")
    if inside:
        message = "the translation inside the orientation is taken as beside it"
        report.note(inside[0].place, "translation-inside", message)
    origin = ZERO
    if positions:
        x, y, z = positions[0].each_number(AXES, report, default=0.0) or ZERO
        origin = (x, y, z)
    return Pose(_read_rotation(turns[0], report) if turns else EYE, origin)


def _read_rotation(element: Element, report: Report) -> Rows:
    wxyz = element.each_number(QUATERNION, report)
    if wxyz is None or not has_direction(
        wxyz,
        f"the quaternion {quote(' '.join(f'{q:g}' for q in wxyz))}",
        element.place,
        report,
        codes=("bad-quaternion", "quaternion-length"),
        hint="Its length must be 1; the identity is 1 0 0 0.",
    ):
        return EYE
    said = entries(Pose.from_quaternion(wxyz))[:9]
    return pose_of_entries((*exactly(element, said, report), *ZERO)).rotation


def pose_elements(pose: Pose) -> tuple[Element, Element]:
    """Return the orientation and the translation of a pose."""
    wxyz = tuple(float(q) + 0.0 for q in pose.quaternion())
    said = entries(Pose.from_quaternion(wxyz))[:9]
    exact = exact_attribute(entries(pose)[:9], said)
    quaternion: dict[str, Value] = dict(zip(QUATERNION, wxyz, strict=True))
    xyz: dict[str, Value] = dict(zip(AXES, entries(pose)[9:], strict=True))
    return actin_tag("orientation", quaternion | exact), actin_tag("translation", xyz)


def entries(pose: Pose) -> tuple[float, ...]:
    """Return the nine numbers of the rotation, row by row, and those of the origin."""
    return tuple(float(number) + 0.0 for number in pose.entries)
