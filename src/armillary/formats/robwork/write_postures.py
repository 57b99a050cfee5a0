"""Postures as `Q` elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.draft import NOWHERE, Draft
from armillary.formats.robwork.postures import HOME
from armillary.formats.robwork.q_order import joints_of_q
from armillary.formats.xml import Element, tag
from armillary.model.posture import Posture

__all__ = ["posture_elements"]


def posture_elements(
    draft: Draft, kind: str, losses: Counter[str], report: Report
) -> list[Element]:
    """Return the postures as vectors of RobWork's q."""
    manipulator = draft.manipulator
    if kind == "MobileDevice":
        if manipulator.postures:
            losses["a posture of a mobile device"] += 1
        return []
    joints = joints_of_q(draft, kind)
    names = {coordinate: name for name, coordinate in joints}
    found = [_posture(each, joints, names, losses) for each in manipulator.postures]
    home = manipulator.home
    if home == HOME:
        return found
    for k, each in enumerate(manipulator.postures):
        if each.name == HOME:
            # In RobWork the device would start there.
            report.warning(
                NOWHERE,
                "renamed",
                f"the posture {quote(HOME)} of {quote(manipulator.name)} is not where "
                f"it starts, and becomes {quote(f'{HOME}_2')}",
            )
            found[k] = _posture(each, joints, names, losses, name=f"{HOME}_2")
    if home:
        start = _posture(manipulator.posture(home), joints, names, losses, name=HOME)
        found.append(start)
        report.note(
            NOWHERE,
            "home",
            f"the posture {quote(home)} of {quote(manipulator.name)}, in which it "
            f"starts, is written as {quote(HOME)} too",
        )
    return found


def _posture(
    posture: Posture,
    joints: Sequence[tuple[str, str]],
    names: dict[str, str],
    losses: Counter[str],
    *,
    name: str = "",
) -> Element:
    given = dict(zip(posture.joints, posture.q, strict=True))
    if any(joint not in names for joint in given):
        losses["the position of a joint that RobWork's q does not hold"] += 1
    if any(coordinate not in given for _, coordinate in joints):
        losses["that a posture leaves a joint where it is (0 is written)"] += 1
    values = [given.get(coordinate, 0.0) for _, coordinate in joints]
    text = " ".join(map(repr, values))
    return tag("Q", {"name": name or posture.name}, text=text)
