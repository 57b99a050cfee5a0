"""Which parameters of a joint are lengths: found from the law of scaling.

A joint scaled by f moves its outer frame along the path scaled by f: with q' = f q
where q is a length and q' = q elsewhere, R'(q') = R(q) and p'(q') = f p(q). Of all
choices of parameters, the smallest that obeys the law holds the lengths.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeVar, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, JointError
from armillary.model.motion import TracedMotion
from armillary.model.parameters import Parameterised, is_numeric, numbers_of
from armillary.model.unit import Unit
from armillary.model.values_read import values_read
from armillary.spatial.pose import IDENTITY, Pose

Array = npt.NDArray[np.float64]

TRIAL_FACTORS = (2.0, 0.5, 1.01, 0.99)
TOLERANCE = 1e-9
MOST_PARAMETERS = 10
PROBES = 512
TINY = 1e-300

J = TypeVar("J", bound=msgspec.Struct)


class ScaleRefused(JointError):
    """The rules of a joint's own refuse the parameters of its scaled copy."""


def scaled_parameters(joint: J, factor: float) -> J:
    """Return `joint` with the parameters that are lengths multiplied by `factor`.

    Raises:
        JointError: No choice of parameters obeys the law, or the joint refuses the
            scaled ones.
    """
    declared: tuple[str, ...] | None = cast(Any, joint).lengths
    if declared is not None:
        return _with_scaled(joint, declared, factor)
    names = _lengths(msgspec.structs.replace(joint, precursor=IDENTITY))
    scaled = _with_scaled(joint, names, factor)
    if not _obeys(joint, scaled, factor):
        raise _unscalable(joint, factor)
    return scaled


def _lengths(joint: Any) -> tuple[str, ...]:
    """Return the names of the parameters that are lengths."""
    return _found_lengths(joint, values_read(joint))


@lru_cache(maxsize=1024)
def _found_lengths(joint: Any, read: Hashable) -> tuple[str, ...]:
    names = _candidates(joint)
    refusal: ScaleRefused | None = None
    for factor in TRIAL_FACTORS:
        refusal = None
        for count in range(len(names) + 1):
            for chosen in combinations(names, count):
                try:
                    candidate = _with_scaled(joint, chosen, factor)
                    is_right = _obeys(joint, candidate, factor)
                except ScaleRefused as error:
                    refusal = refusal or error
                    continue
                except ArmillaryError:  # its motion cannot be traced then
                    continue
                if is_right:
                    return chosen
        if refusal is None:
            break
    raise refusal or _unscalable(joint, TRIAL_FACTORS[0])


def _candidates(joint: Any) -> list[str]:
    names = [
        name
        for name in joint.__struct_fields__
        if name != "precursor" and _may_be_length(getattr(joint, name))
    ]
    if len(names) > MOST_PARAMETERS:
        kind = type(joint).__name__
        raise JointError(
            f"{kind} has {len(names)} numeric parameters; which of them are lengths is "
            f"found only for up to {MOST_PARAMETERS}. Override {kind}.scaled(factor)."
        )
    return names


def _may_be_length(value: Any) -> bool:
    """Return whether a parameter is numeric and not of whole numbers."""
    if isinstance(value, tuple):
        return all(map(_may_be_length, cast(Sequence[Any], value)))
    return is_numeric(value) and not isinstance(value, int)


def _unscalable(joint: Any, factor: float) -> JointError:
    kind = type(joint).__name__
    return JointError(
        f"{kind} cannot be scaled by {factor:g}: no choice of its parameters "
        f"({', '.join(_candidates(joint)) or 'it has none'}) gives a motion "
        f"{factor:g} times as large. {_likely_reason(joint)} Otherwise override "
        f"{kind}.scaled(factor)."
    )


def _likely_reason(joint: Any) -> str:
    if joint.unit is Unit.METRE:
        hint = "If q is not a length, its unit is not METRE"
    else:
        hint = "If q is a length, write unit = METRE"
    return f"{hint}; lengths must be parameters, and not whole numbers."


def _with_scaled(joint: J, names: Sequence[str], factor: float) -> J:
    try:
        changes = {name: _scaled(getattr(joint, name), factor) for name in names}
        return msgspec.structs.replace(joint, **changes)
    except ArmillaryError as error:
        raise ScaleRefused(
            f"{type(joint).__name__} refuses to be scaled by {factor:g}. {error}"
        ) from error


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(item, factor) for item in cast(Sequence[Any], value))
    if isinstance(value, (Pose, Parameterised)):
        return cast(Any, value).scaled(factor)
    return value * factor


def _obeys(joint: Any, candidate: Any, factor: float) -> bool:
    """Tell whether the law holds at the probes, as far as the motion is defined."""
    q = _probes(joint)
    motion: TracedMotion = joint.motion
    expected = motion.poses(q)
    expected[:, :, 3] *= factor
    rates = [factor if unit.scales_with_length else 1.0 for unit in joint.input_units]
    actual = candidate.motion.poses(q * (rates if q.ndim > 1 else rates[0]))
    defined = np.isfinite(expected).all(axis=(1, 2))
    if not defined.any() or (defined != np.isfinite(actual).all(axis=(1, 2))).any():
        return False
    error = np.abs(actual - expected)[defined]
    distance = np.abs(expected[defined, :, 3]).max(axis=1)
    error[:, :, 3] /= (distance + np.median(distance) + TINY)[:, np.newaxis]
    return bool(error.max() <= TOLERANCE)


def _probes(joint: Any) -> Array:
    """Return coordinates where the motion is likely to show all that it depends on.

    They lie evenly over several times what the parameters add up to, and finely about
    zero; lengths of tracks, angles of stops and the like are in there.
    """
    values = tuple(getattr(joint, name) for name in _candidates(joint))
    size = 1.0 + sum(map(abs, numbers_of(values)))
    random = np.random.default_rng(0)
    signs = random.choice([-1.0, 1.0], PROBES)
    near = signs * size * 10.0 ** random.uniform(-6.0, 1.0, PROBES)
    q = np.concatenate([random.uniform(-4.0 * size, 4.0 * size, PROBES), near])
    if not joint.motion.shape:
        return q
    return np.stack([random.permutation(q) for _ in joint.input_units], axis=1)
