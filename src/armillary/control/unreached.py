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

What is missing is what one task misses by itself, with rates below those that move
joints by 1 rad or 1 m before the error has decayed. Limits of rates do not count, and
tasks that conflict damp nothing: least squares of these are as they are stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armillary.control.task_parts import TaskStages
from armillary.kernel.pipeline import Stage, When, program
from armillary.spatial.ldl import LDLFactor, Rows, gram, inner
from armillary.spatial.vector import Number
from armillary.trace.functions import maximum, select, sqrt

__all__ = ["unreached_stages"]

MISSING: Final = 0.02
"""Part of what a task requests that it misses at least where that damps."""

SUPPRESSED: Final = 0.1
"""The same where directions are kept."""

TINY: Final = 1e-300

FURTHEST: Final = 1.0
"""How far joints move at most by rates that count, in the time 1 / gain [m or rad]."""

SINGULAR: Final = 1e-6
"""Square of singular values of a task, with its weights, that count as 0."""


def unreached_stages(
    tasks: Sequence[TaskStages],
    levels: Sequence[int],
    c: int,
    *,
    keeps_direction: bool = False,
) -> tuple[Stage, ...]:
    """Return the stages that write `stiffness`, the positive diagonal of S.

    Its shape is (p, c): of the tasks of each of p levels of priority.

    Args:
        tasks: The tasks.
        levels: The level of each row of tasks.
        c: How many rates.
        keeps_direction: Whether rates are to keep the direction that tasks request.
            Then only what damping suppresses is missing, near where joints cannot move.
    """
    count = max(levels, default=0) + 1
    listed = [each for each in tasks if each.weights]
    bent = [each for each in listed if each.curvature]

    def none(damping: Any) -> Any:
        return [[0.0 * damping] * c] * count

    begin = program(none, "stiffness", damping=())
    if not bent:
        return (begin,)
    inputs: dict[str, tuple[int, ...]] = {"weights": (len(levels),), "damping": ()}
    names = ["is_missing"]
    for each in bent:
        k, m = each.number, len(each.weights)
        inputs |= {f"rows_{k}": (m, c), f"wanted_{k}": (m,), f"gain_{k}": ()}
        names.append(f"missing_{k}")
    starts: dict[int, int] = {}
    at = 0
    for each in listed:
        starts[each.number] = at
        at += len(each.weights)

    def miss(weights: Any, damping: Any, *values: Any) -> Any:
        given = dict(zip(list(inputs)[2:], values, strict=True))
        found: list[Any] = []
        is_missing: Number = 0.0
        for each in bent:
            k = each.number
            own = weights[starts[k] : starts[k] + len(each.weights)]
            J, v, gain = given[f"rows_{k}"], given[f"wanted_{k}"], given[f"gain_{k}"]
            least, most, part = SINGULAR, FURTHEST * gain, MISSING
            if keeps_direction:
                least, most, part = damping, None, SUPPRESSED
            missing, short = _missing(J, v, own, (least, most, part))
            found.append(missing)
            is_missing = maximum(is_missing, short)
        return is_missing, *found

    after: dict[str, tuple[int, ...]] = {}
    for each in bent:
        k, m = each.number, len(each.weights)
        after |= {f"missing_{k}": (m,), f"curvature_{k}": (m, c), f"gain_{k}": ()}

    def stiffen(*values: Any) -> Any:
        given = dict(zip(after, values, strict=True))
        found: list[list[Number]] = [[0.0] * c for _ in range(count)]
        for each in bent:
            k = each.number
            curved_by: list[Number] = [0.0] * c
            rows = zip(given[f"missing_{k}"], given[f"curvature_{k}"], strict=True)
            for r, row in rows:
                part = r / given[f"gain_{k}"]
                curved_by = [a - part * b for a, b in zip(curved_by, row, strict=True)]
            own = found[levels[starts[k]]]
            own[:] = [a + maximum(b, 0.0) for a, b in zip(own, curved_by, strict=True)]
        return found

    curved = tuple(stage for each in bent for stage in each.curvature)
    stiffness = program(stiffen, "stiffness", **after)
    when = When("is_missing", (*curved, stiffness))
    return begin, program(miss, " ".join(names), **inputs), when


def _missing(
    J: Any, v: Any, weights: Any, sizes: tuple[Any, Any, Any]
) -> tuple[list[Number], Number]:
    """Return W (v - J x), and 1 where that is much of W v.

    With y of (J J' + e W^-1) y = v, the rates x = J' y miss W^-1 e y of v. If they are
    greater than what counts, they are along a direction with a small singular value,
    s = |x| / |W^-1/2 y|. A second e = s^2 (|x| / most - 1) reduces them along it alone,
    so that what other directions reach is not missing.

    sizes: The least e, the greatest length of x or None, and the part of v that is
        much.
    """
    least, most, much = sizes
    rows: Rows = [list(row) for row in J]
    y = _forces(rows, v, weights, least)
    x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    if most is not None:
        square = inner(x, x)
        forces = sum((a * a / w for a, w in zip(y, weights, strict=True)), 0.0)
        value = square / maximum(forces, TINY)
        enough = maximum(least, value * (sqrt(square) / most - 1.0))
        y = _forces(rows, v, weights, enough)
        x = [inner(list(column), y) for column in zip(*rows, strict=True)]
    missing: list[Number] = []
    asked: Number = 0.0
    short: Number = 0.0
    for row, weight, wanted in zip(rows, weights, v, strict=True):
        r = wanted - inner(row, x)
        missing.append(weight * r)
        asked = asked + weight * wanted * wanted
        short = short + weight * r * r
    return missing, select(short > much * much * asked, 1.0, 0.0)


def _forces(rows: Rows, v: Any, weights: Any, e: Any) -> list[Number]:
    """Return y of (J J' + e W^-1) y = v."""
    G = gram(rows)
    for k, weight in enumerate(weights):
        G[k][k] = G[k][k] + e / weight
    return LDLFactor.of(G, SINGULAR * SINGULAR).solve(list(v))
