"""Damping of joints where tasks request what no joint positions reach, as stages.

A task asks for rates J x = v, v = gain e, of an error e. Least squares of v - J x are a
good model of e^2 / 2 only where joints can make e vanish: its second derivative by
joint positions is

    J' W J + S,  S_ij = - sum_k w_k r_k d^2 f_k / dq_i dq_j / gain_k,

where f are the values of the tasks, and r what J x misses of v. Where a target is out
of reach, r does not vanish and J becomes singular, so that J' W J alone asks for the
more speed the nearer the best pose is, and joints swing around it for ever. With S,
errors decay as exp(-gain t) up to the nearest pose. The diagonal of S is enough: only
its elements above 0 are added, which damp; those below 0 lead away from where joints
cannot move, as does J' W J alone.

What is missing is counted within the bounds of rates. So a target that is far but
within reach is approached no slower: its damped rates are still above the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from armillary.control.task_parts import TaskStages
from armillary.kernel.pipeline import Stage, When, program
from armillary.kinematics.moving_twists import MovingTwists
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, minimum, select

__all__ = ["MISSED", "Missing", "unreached_stages"]

MISSED: Final = "missing is_missing"
"""The columns of what each row of tasks misses, times its weight; and whether any."""

LEAST: Final = 0.02
"""Part of what is requested that is missing at least where damping is computed."""

SINGULAR: Final = 0.1
"""The same where bounds do not count."""

Missing = Callable[[list[Any], list[Number], tuple[Any, Any]], tuple[Any, Any]]
"""From rows, weights and requests, free rates times -1, and bounds, to `MISSED`."""


def unreached_stages(
    tasks: Sequence[TaskStages], twists: MovingTwists, model: Callable[..., Stage]
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness` (c,), the positive diagonal of S.

    They write `hessian` and `gradient`, too, with `stiffness` in them.

    Args:
        tasks: The tasks.
        twists: Of the moving links.
        model: Returns the stage that finds `hessian` and `gradient`; with `missing` the
            one that writes `MISSED` as well, and does not read `stiffness`.
    """
    c = len(twists.joints)
    listed = [each for each in tasks if each.weights]
    bent = [each for each in listed if each.curvature]

    chosen, n = twists.joints, twists.moving.joints

    def none(q: Any, lower: Any, upper: Any) -> Any:
        own = [q[k] for k in chosen]
        below = [maximum(a - b, 0.0) for a, b in zip(own, lower, strict=True)]
        above = [maximum(b - a, 0.0) for a, b in zip(own, upper, strict=True)]
        return [0.0 * number for number in own], below, above

    limits = dict.fromkeys(("lower", "upper"), (c,))
    begin = program(none, "stiffness below above", q=(n,), **limits)
    if not bent:
        return begin, model()
    inputs = {"missing": (sum(len(each.weights) for each in listed),)}
    for each in bent:
        k = each.number
        inputs |= {f"curvature_{k}": (len(each.weights), c), f"gain_{k}": ()}

    def stiffen(missing: Any, *values: Any) -> Any:
        given = dict(zip(list(inputs)[1:], values, strict=True))
        S: list[Number] = [0.0] * c
        left = iter(missing)
        for each in listed:
            parts = [next(left) for _ in each.weights]
            if not each.curvature:
                continue
            k = each.number
            for r, row in zip(parts, given[f"curvature_{k}"], strict=True):
                part = r / given[f"gain_{k}"]
                S = [a - part * b for a, b in zip(S, row, strict=True)]
        return [maximum(a, 0.0) for a in S]

    curved = tuple(stage for each in bent for stage in each.curvature)
    stiffness = program(stiffen, "stiffness", **inputs)
    when = When("is_missing", (*curved, stiffness, model()))
    return begin, model(missing=_missing), when


def _missing(rows: list[Any], back: list[Number], bounds: Any) -> tuple[Any, Any]:
    """Return what rows miss within the bounds, times their weights, and whether any.

    back: The rates that meet all rows, times -1.
    """
    x = [0.0 - a for a in back]
    if bounds is not None:
        limited = zip(x, *bounds, strict=True)
        x = [minimum(maximum(a, low), high) for a, low, high in limited]
    least = LEAST if bounds is not None else SINGULAR
    missing: list[Number] = []
    asked: Number = 0.0
    short: Number = 0.0
    for row, weight, wanted in rows:
        r = wanted - inner(list(row), x)
        missing.append(weight * r)
        asked = asked + weight * wanted * wanted
        short = short + weight * r * r
    return missing, select(short > least * least * asked, 1.0, 0.0)
