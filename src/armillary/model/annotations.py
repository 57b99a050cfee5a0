"""What is wrong with what is said of a manipulator beside its links."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from armillary.errors import quote
from armillary.model.group import Group, group_faults
from armillary.model.link import Link
from armillary.model.posture import Posture, posture_faults
from armillary.model.property import Property
from armillary.model.wheels import Wheels, wheel_faults

__all__ = ["Fault", "note_faults"]


class Fault(NamedTuple):
    """What is wrong, and in which item of which field of a manipulator.

    Attributes:
        field: Such as `postures`.
        place: Of the item, None for the field as a whole.
        message: A sentence.
    """

    field: str
    place: int | None
    message: str


def note_faults(
    links: Sequence[Link],
    joint_names: Sequence[str],
    places: Container[str],
    *,
    postures: Sequence[Posture] = (),
    home: str = "",
    groups: Sequence[Group] = (),
    properties: Sequence[Property] = (),
    wheels: Wheels | None = None,
) -> Iterator[Fault]:
    """Yield what is wrong with what a manipulator has beside its links.

    links: A legal tree.
    joint_names: Of the joints that have a place in q.
    places: Names of the links and frames.
    """
    for place, message in posture_faults(postures, joint_names):
        yield Fault("postures", place, message)
    if home and all(posture.name != home for posture in postures):
        message = f"No posture is called {quote(home)}, in which it shall start."
        yield Fault("home", None, message)
    if groups:
        names = {link.name for link in links}
        joints = {link.coordinate for link in links if link.parent is not None}
        for place, message in group_faults(groups, names, joints):
            yield Fault("groups", place, message)
    for place, each in enumerate(properties):
        if each.of and each.of not in places:
            message = (
                f"Property {quote(each.name)} is about {quote(each.of)}, which is not "
                "a link or frame here."
            )
            yield Fault("properties", place, message)
    if wheels is not None:
        for message in wheel_faults(wheels, joint_names):
            yield Fault("wheels", None, message)
