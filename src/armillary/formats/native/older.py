"""What older native files hold in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.errors import ModelError
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.link import Link
from armillary.model.property import Property

__all__ = ["with_dynamics"]

DYNAMICS: Final = "urdf.dynamics"
DAMPED: Final = ("damping", "friction")


def with_dynamics(
    links: Sequence[Link], properties: Sequence[Property]
) -> tuple[tuple[Link, ...], tuple[Property, ...]]:
    """Return links and properties with damping and friction where they belong now.

    They were properties of the links behind joints, before links had `dynamics`. What
    a link cannot take remains a property.
    """
    moved: dict[str, JointDynamics] = {}
    kept: list[Property] = []
    free = {
        link.name
        for link in links
        if link.has_coordinate and link.dynamics == NO_DYNAMICS
    }
    for each in properties:
        is_old = each.name == DYNAMICS and each.of in free - moved.keys()
        if is_old and len(each.numbers) == len(DAMPED):
            try:
                fields = dict(zip(DAMPED, each.numbers, strict=True))
                moved[each.of] = JointDynamics(**fields)
                continue
            except ModelError:
                pass  # a negative one, which older files may hold
        kept.append(each)
    if not moved:
        return tuple(links), tuple(properties)
    changed = (
        link.replace(dynamics=moved[link.name]) if link.name in moved else link
        for link in links
    )
    return tuple(changed), tuple(kept)
