"""What the root elements of a file tell of it: a workcell, a device, or neither."""

from __future__ import annotations

import re
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.robwork.bodies import BODY
from armillary.formats.robwork.device import DEVICES
from armillary.formats.robwork.fragment import Fragment
from armillary.formats.xml import Element

__all__ = ["WORKCELL", "root_of", "sniff"]

WORKCELL: Final = "WorkCell"
ROOTS: Final = (WORKCELL, *DEVICES)
FRAGMENTS: Final = (*BODY, "Include", "Define", "Use", "Q", "Junction", "Camera")

# Files that go with a workcell, by their first element.
OTHERS: Final = {
    "CollisionSetup": "a collision setup, read with the workcell that names it",
    "ProximitySetup": "a proximity setup, read with the workcell that names it",
    "SerialDeviceCalibration": "the calibration of a device",
    "BaseCalibration": "the calibration of a device",
    "CalibrationMeasurements": "a list of measurements for a calibration",
    "SerialDevicePoseMeasurements": "a list of measurements for a calibration",
    "DynamicWorkCell": "a dynamic workcell, which adds forces to a workcell",
    "IncludeData": "a part of a dynamic workcell, which adds forces to a workcell",
}

_SKIPPED: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(<\?|<!--|<!DOCTYPE)")
_TAG: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*<([A-Za-z]+)(?=[\s/>])")
_ENDS: Final = {b"<?": b">", b"<!--": b"-->", b"<!DOCTYPE": b">"}
_MARKS: Final = frozenset(
    name.lower().encode() for name in (*ROOTS, *FRAGMENTS, *OTHERS)
)


def sniff(data: bytes) -> bool:
    """Return whether the first element is one that RobWork's files begin with.

    Fragments and setups are among them, so that the reader can say what they are.
    """
    place = 0
    while (skipped := _SKIPPED.match(data, place)) is not None:
        found = data.find(_ENDS[skipped[1]], skipped.end())
        if found < 0:
            return False
        place = found + len(_ENDS[skipped[1]])
    tag = _TAG.match(data, place)
    return tag is not None and tag[1].lower() in _MARKS


def root_of(fragment: Fragment, path: str, report: Report) -> Element:
    """Return the one root element, a workcell or a device.

    Raises:
        FormatError: The file is something else; which is said.
    """
    elements = fragment.elements
    roots = [element for element in elements if element.name in ROOTS]
    if len(roots) == 1 and len(elements) == 1:
        return roots[0]
    first = elements[0] if elements else None
    if first is None:
        report.error(Place(path), "no-workcell", "the file has no element")
    elif len(roots) > 1:
        report.error(
            roots[1].place,
            "several-roots",
            f"{roots[1].label} stands beside {roots[0].label}",
            hint="Put several devices into one <WorkCell>.",
        )
    elif roots:
        other = next(element for element in elements if element is not roots[0])
        report.error(
            other.place,
            "several-roots",
            f"{other.label} stands beside {roots[0].label}, not in it",
        )
    else:
        _refuse(first, report)
    report.raise_if_errors()
    raise AssertionError("a file without a root was let pass")


def _refuse(first: Element, report: Report) -> None:
    """Report what a file is that is neither workcell nor device."""
    if first.name in OTHERS:
        report.error(
            first.place, "no-workcell", f"this is {OTHERS[first.name]}, not a workcell"
        )
    elif first.name in FRAGMENTS:
        report.error(
            first.place,
            "fragment",
            f"this is a fragment: it begins with {first.label}, outside of any device "
            "or workcell",
            hint="Load the file that includes it.",
        )
    else:
        likely = next((r for r in ROOTS if r.lower() == first.name.lower()), None)
        report.error(
            first.place,
            "no-workcell",
            f"the root element is {first.label}, not one of {', '.join(ROOTS)}",
            hint=f"Did you mean {quote(likely)}?" if likely else "",
        )
