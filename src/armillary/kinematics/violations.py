"""What of a state breaks the limits of joints, and how that is reported."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from armillary.errors import StateError, quote
from armillary.kinematics.closing.rates import followed_rates
from armillary.model.drive import Drive
from armillary.model.fields import kept
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell

__all__ = ["Violation", "refuse_violations", "violations_of"]


class Violation(NamedTuple):
    """A limit that a state breaks, or links that touch.

    Attributes:
        kind: `below`, `above` or `rate` of a joint; `coupled` of a limit of several
            joints; `self-collision` of links of one manipulator, `collision` of two;
            `untested` where links cannot be tested.
        subject: The joint, the coupled limit, or both links, qualified; the cell where
            links are untested.
        value: What the joint or the sum of joints has [m, rad, m/s or rad/s]; the
            distance of links [m], below 0 where they overlap.
        limit: What it may have, in the same unit; of links the margin [m].
        message: A sentence with all of it.
        links: Both links; empty for joints.
    """

    kind: str
    subject: str
    value: float
    limit: float
    message: str
    links: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.message


def violations_of(
    cell: Workcell, q: Sequence[float], qd: Sequence[float], tolerance: float
) -> Iterator[Violation]:
    """Yield what breaks a limit, joints that follow others included.

    q: Positions of all joints, passive ones last.
    qd: Rates of the independent joints; empty where nothing moves.
    """
    if qd and cell.passive_names:
        passive = range(len(qd), len(q))
        rates = followed_rates(cell, q, dict(enumerate(qd)), passive)
        qd = [*qd, *rates.values()]
    limited = kept(cell, "limited joints", lambda: _limited(cell))
    for manipulator, link, drive in limited:
        position = drive.at(q)
        rate = drive.multiplier * qd[drive.of] if qd else 0.0
        for kind, value, limit in _broken(link, position, rate, tolerance):
            subject = f"{manipulator.name}/{link.coordinate}"
            message = _sentence(kind, subject, value, limit, link, manipulator)
            yield Violation(kind, subject, value, limit, message)
    if len(cell.limit_rows):
        yield from _coupled(cell, q, tolerance)


def _coupled(
    cell: Workcell, q: Sequence[float], tolerance: float
) -> Iterator[Violation]:
    """Yield the limits of several joints that positions break."""
    listed = [(m.coupled_limits, f"{m.name}/") for m in cell.manipulators]
    for limits, prefix in [*listed, (cell.coupled_limits, "")]:
        for limit in limits:
            value = sum(
                c * cell.drive(f"{prefix}{joint}").at(q)
                for joint, c in zip(limit.joints, limit.coefficients, strict=True)
            )
            below = value < limit.lower - tolerance
            if not (below or value > limit.upper + tolerance):
                continue
            end = limit.lower if below else limit.upper
            side = "below its lower" if below else "above its upper"
            subject = f"{prefix}{limit.label}"
            message = (
                f"Coupled limit {quote(subject)}: {limit.sum} is {value:.6g}, {side} "
                f"limit {end:.6g}."
            )
            yield Violation("coupled", subject, value, end, message)


def refuse_violations(cell: Workcell, q: Sequence[float], qd: Sequence[float]) -> None:
    """Refuse positions and rates that break a limit.

    Raises:
        StateError: They do; the message names all that they break.
    """
    broken = list(violations_of(cell, q, qd, 0.0))
    if broken:
        raise StateError(" ".join(map(str, broken)))


def _limited(cell: Workcell) -> tuple[tuple[Manipulator, Link, Drive], ...]:
    """Return the links whose joints have limits, depth first, and what moves them.

    A mechanism has none; those of the coordinates that it takes hold for it.
    """
    return tuple(
        (manipulator, manipulator.links[k], cell.joints.drives[start + k][0])
        for start, manipulator in zip(cell.starts, cell.manipulators, strict=False)
        for k in manipulator.order
        if manipulator.links[k].has_coordinate
    )


def _broken(
    link: Link, position: float, rate: float, tolerance: float
) -> Iterator[tuple[str, float, float]]:
    limits = link.limits
    if position < limits.lower - tolerance:
        yield "below", position, limits.lower
    if position > limits.upper + tolerance:
        yield "above", position, limits.upper
    if abs(rate) > limits.velocity + tolerance:
        yield "rate", rate, limits.velocity


def _sentence(
    kind: str,
    subject: str,
    value: float,
    limit: float,
    link: Link,
    manipulator: Manipulator,
) -> str:
    followed = ""
    if link.coupling is not None:
        followed = f", which follows {quote(f'{manipulator.name}/{link.coupling.of}')},"
    what = {
        "below": f"is at {value:.6g}, below its lower limit {limit:.6g}",
        "above": f"is at {value:.6g}, above its upper limit {limit:.6g}",
        "rate": f"has the rate {value:.6g}, beyond its limit of {limit:.6g}",
    }[kind]
    turns = link.joint.unit is Unit.RADIAN and abs(value) > 4.0 * math.pi
    hint = " If it is in degrees, convert it: np.deg2rad(q)." if turns else ""
    return f"Joint {quote(subject)}{followed} {what}.{hint}"
