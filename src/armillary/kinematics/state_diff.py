"""What differs between two states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from armillary.kinematics.placement import BaseVelocity, Placement

Numbers: TypeAlias = tuple[float, ...]
Contents: TypeAlias = tuple[
    Numbers, Numbers, tuple[Placement, ...], tuple[BaseVelocity, ...]
]
"""Of a state: joint positions, joint rates, placements, velocities of bases."""


def differences(
    a: Contents, b: Contents, joints: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name of what differs between two states, and its value in each.

    joints: Names of the joints.
    """
    for what, here, there in (("", a[0], b[0]), ("rate of ", a[1], b[1])):
        if len(here) != len(there) or len(here) > len(joints):
            yield f"{what}q".strip(), (here, there)
            continue
        for name, x, y in zip(joints, here, there, strict=False):
            if x != y:
                yield f"{what}{name}", (x, y)
    for what, here, there in (("base of ", a[2], b[2]), ("velocity of ", a[3], b[3])):
        left = {each.manipulator: each for each in here}
        right = {each.manipulator: each for each in there}
        for name in sorted({*left, *right}):
            if left.get(name) != right.get(name):
                yield f"{what}{name}", (left.get(name), right.get(name))
