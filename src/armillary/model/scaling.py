"""Which parameters of a joint are lengths: found from the law of scaling.

A joint scaled by f moves its outer frame along the path scaled by f: with q' = f q
where q is a length and q' = q elsewhere, R'(q') = R(q) and p'(q') = f p(q). Of all
choices of parameters, the smallest that obeys the law holds the lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypeVar

import msgspec

from armillary.errors import ArmillaryError, JointError
from armillary.spatial.pose import Pose

PROBES = tuple(sign * 0.0173 * 2.37**k for k in range(10) for sign in (1.0, -1.0))
TOLERANCE = 1e-9
MOST_PARAMETERS = 10

J = TypeVar("J", bound=msgspec.Struct)


def scaled_parameters(joint: J, factor: float) -> J:
    """Return `joint` with the parameters that are lengths multiplied by `factor`.

    Raises:
        JointError: No choice of parameters obeys the law.
    """
    names = [
        name
        for name in joint.__struct_fields__
        if name != "precursor" and _is_numeric(getattr(joint, name))
    ]
    for chosen in _choices(names[:MOST_PARAMETERS]):
        candidate = _with_scaled(joint, chosen, factor)
        if candidate is not None and _obeys(joint, candidate, factor):
            return candidate
    kind = type(joint).__name__
    raise JointError(
        f"{kind} cannot be scaled by {factor:g}: no choice of its parameters "
        f"({', '.join(names) or 'it has none'}) gives a motion {factor:g} times as "
        f"large. Override {kind}.scaled(factor)."
    )


def _choices(names: list[str]) -> Iterator[tuple[str, ...]]:
    for count in range(len(names) + 1):
        yield from combinations(names, count)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return all(map(_is_numeric, items))
    return isinstance(value, (int, float, Pose)) and not isinstance(value, bool)


def _with_scaled(joint: J, names: tuple[str, ...], factor: float) -> J | None:
    changes = {name: _scaled(getattr(joint, name), factor) for name in names}
    try:
        return msgspec.structs.replace(joint, **changes)
    except ArmillaryError:  # the joint's own rules refuse it, so it is not the one
        return None


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return tuple(_scaled(item, factor) for item in items)
    return value.scaled(factor) if isinstance(value, Pose) else value * factor


def _obeys(joint: Any, candidate: Any, factor: float) -> bool:
    """Tell whether the law holds at the probes where the motion is defined."""
    coordinate = factor if joint.unit.scales_with_length else 1.0
    for q in PROBES:
        X = joint.motion.pose(q)
        Y = candidate.motion.pose(q * coordinate)
        expected = X.scaled(factor)
        size = 1.0 + max(map(abs, expected.position))
        if all(map(math.isfinite, (*expected.entries, *Y.entries))) and not (
            expected.approx_equal(Y, TOLERANCE * size)
        ):
            return False
    return True
