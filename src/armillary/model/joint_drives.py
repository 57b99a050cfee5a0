"""What moves the joints of links, and the limits that follow from that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.model.coupling import Coupling
from armillary.model.drive import Drive
from armillary.model.link import Link

__all__ = [
    "Drives",
    "Ranges",
    "joint_drives",
    "joint_ranges",
    "read_only",
    "renumbered",
]

Array = npt.NDArray[np.float64]
Drives = tuple[tuple[Drive, ...], ...]


class Ranges(NamedTuple):
    """Where joints may be, each array of shape (n,) [m or rad, and per second].

    Attributes:
        lower: The least positions.
        upper: The greatest.
        velocity: The greatest rates.
    """

    lower: Array
    upper: Array
    velocity: Array


def joint_drives(links: Sequence[Link], joint_links: Sequence[int]) -> Drives:
    """Return what moves the joint of each link: nothing where it is fixed.

    It is one joint's coordinate, or several where the joint is a mechanism.

    joint_links: The links whose joints have a number.
    """
    by_joint = {
        link.coordinate: k for k, link in enumerate(links) if link.has_coordinate
    }
    by_place: dict[int, Drive] = {
        k: Drive(i, 1.0, 0.0) for i, k in enumerate(joint_links)
    }
    for k in by_joint.values():
        _follow(links, k, by_joint, by_place)
    drives: list[tuple[Drive, ...]] = []
    for k, link in enumerate(links):
        sources = [by_joint[name] for name in link.inputs]
        if link.has_coordinate:
            sources = [k]
        drives.append(tuple(by_place[source] for source in sources))
    return tuple(drives)


def _follow(
    links: Sequence[Link], k: int, by_joint: dict[str, int], found: dict[int, Drive]
) -> None:
    """Find what moves a joint, and all that it follows on the way there."""
    followers: list[tuple[int, Coupling]] = []
    while k not in found:
        coupling = links[k].coupling
        assert coupling is not None
        followers.append((k, coupling))
        k = by_joint[coupling.of]
    drive = found[k]
    for follower, coupling in reversed(followers):
        factor = coupling.multiplier
        offset = factor * drive.offset + coupling.offset
        drive = Drive(drive.of, factor * drive.multiplier, offset)
        found[follower] = drive


def renumbered(drives: Sequence[Sequence[Drive]], order: Sequence[int]) -> Drives:
    """Return drives by other numbers of joints.

    order: The old number of each joint.
    """
    if list(order) == list(range(len(order))):
        return tuple(map(tuple, drives))
    place = {old: new for new, old in enumerate(order)}
    return tuple(
        tuple(drive._replace(of=place[drive.of]) for drive in several)
        for several in drives
    )


def joint_ranges(links: Sequence[Link], drives: Drives, count: int) -> Ranges:
    """Return the limits of joints, narrowed by those of joints that follow them.

    count: Of joints that have a number.
    """
    lower, upper = np.full(count, -math.inf), np.full(count, math.inf)
    velocity = np.full(count, math.inf)
    for link, several in zip(links, drives, strict=True):
        if not link.has_coordinate or several[0].multiplier == 0.0:
            continue
        drive, limits = several[0], link.limits
        ends = [
            (limit - drive.offset) / drive.multiplier
            for limit in (limits.lower, limits.upper)
        ]
        lower[drive.of] = max(lower[drive.of], min(ends))
        upper[drive.of] = min(upper[drive.of], max(ends))
        rate = limits.velocity / abs(drive.multiplier)
        velocity[drive.of] = min(velocity[drive.of], rate)
    return Ranges(*map(read_only, (lower, upper, velocity)))


def read_only(array: Array) -> Array:
    """Return an array that can no longer be changed."""
    array.flags.writeable = False
    return array
