"""Joint positions in files: one number for each link but the base."""

from __future__ import annotations

from armillary.errors import quote
from armillary.formats.actin.exact import exact_attribute, exactly
from armillary.formats.actin.values import identifier, text_element
from armillary.formats.diagnostic import Place, Report
from armillary.formats.numbers import number_text
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture

__all__ = ["position_elements", "read_posture"]

NAME = "state"


def read_posture(
    state: Element | None, manipulator: Manipulator, rates: list[float], report: Report
) -> Posture | None:
    """Return the joint positions of a state, None where it holds none.

    rates: Of each link, the change of our coordinate for one of the file's.
    """
    if state is None:
        return None
    name = identifier(state, report) or NAME
    element = state.only_child("jointPositions", report)
    if element is None:
        return None
    places = _places(manipulator)
    given = element.text_numbers(len(places), report)
    if given is None:
        return None
    said = tuple(q * rates[k] for q, k in zip(given, places, strict=True))
    if said:
        said = exactly(element, said, report)
    report_unused(element, report)
    by_link = dict(zip(places, said, strict=True))
    for k, q in by_link.items():
        if k not in manipulator.coordinates and q != 0.0:
            message = f"link {quote(manipulator.links[k].name)} has no coordinate"
            report.warning(element.place, "unused-position", message)
    return Posture(
        name=name,
        joints=manipulator.joint_names,
        q=tuple(by_link[k] for k in manipulator.coordinates),
    )


def position_elements(
    manipulator: Manipulator, rates: dict[str, float], report: Report
) -> list[Element]:
    """Return the joint positions at home, nothing where there is no such posture.

    rates: Of each link, the change of our coordinate for one of the file's.
    """
    for posture in manipulator.postures:
        if posture.name != manipulator.home:
            message = f"posture {quote(posture.name)} is not kept"
            report.warning(Place(), "lost-posture", message)
    if not manipulator.home:
        return []
    home = manipulator.posture(manipulator.home)
    if home.joints != manipulator.joint_names:
        message = (
            f"posture {quote(home.name)} names other joints, or in another order, "
            "than q does; those that it leaves out are written as 0"
        )
        report.warning(Place(), "lost-posture", message)
    by_joint = dict(zip(home.joints, home.q, strict=True))
    links = [manipulator.links[k] for k in _places(manipulator)]
    wanted = [
        by_joint.get(link.coordinate, 0.0) if link.moves else 0.0 for link in links
    ]
    factors = [rates[link.name] for link in links]
    said = [q / f + 0.0 for q, f in zip(wanted, factors, strict=True)]
    exact = exact_attribute(wanted, (q * f for q, f in zip(said, factors, strict=True)))
    text = " ".join(map(number_text, said))
    return [
        text_element("mn:identifier", home.name, report),
        tag("mn:jointPositions", exact, text=text),
    ]


def _places(manipulator: Manipulator) -> list[int]:
    """Return all links but the base, depth first."""
    return [k for k in manipulator.order if k != manipulator.base]
