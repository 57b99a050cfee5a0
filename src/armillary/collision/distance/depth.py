"""Depth of overlapping convex bodies: the origin is inside their difference A - B.

The depth is the least width from the origin to a plane that A - B does not cross. A ray
from the origin leaves A - B through a facet: three points around the ray are replaced
by farther ones until they span it. The ray is then turned to the normal of the nearest
plane so far, until none on the way is nearer. This is done for a few rays.

Each width on the way separates the bodies, so the least one is a true separating
translation, and an upper bound of the depth. It is the depth where it is small against
the bodies, since one ray then leads to the nearest facet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from armillary.collision.distance.gjk import aim, difference
from armillary.collision.distance.separation import choose, direction
from armillary.collision.distance.support import support_of
from armillary.kernel.pipeline import Each, Stage, While
from armillary.kernel.tables import Table, reals
from armillary.model.primitive import Primitive
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    negate,
    scale,
    subtract,
    three,
)
from armillary.trace import trace
from armillary.trace.functions import by_precision, maximum, select

__all__ = ["RAYS", "RAY_TABLE", "depth_stages"]

LIMIT: Final = 400
"""Most points that are looked at for a ray; the rays that compare take about 10."""

RAY_TABLE: Final = Table(
    "rays",
    (
        reals("along"),
        reals("from_last"),
        reals("from_axis"),
        reals("fixed", (3,)),
        reals("fineness"),
    ),
)
RAYS: Final[Mapping[str, Sequence[Any]]] = {
    # From centre to centre, away from where the search came, along the axes of A; then
    # the best of them again, to all digits.
    "along": [1.0, *[0.0] * 8],
    "from_last": [0.0, 1.0, *[0.0] * 7],
    "from_axis": [*[0.0] * 8, 1.0],
    "fixed": [
        *[(0.0, 0.0, 0.0)] * 2,
        *[tuple(s * (j == k) for j in range(3)) for k in range(3) for s in (1.0, -1.0)],
        (0.0, 0.0, 0.0),
    ],
    "fineness": [*[1e-3] * 8, 1e-10],
}

PORTAL: Final = {
    "portal": (3, 3),  # points of A - B around the ray
    "ray": (3,),
    "against": (3,),  # minus the normal of the plane through the portal
    "gained": (),  # 1 if the depth has become less on the way along this ray
    "going": (),
}


def depth_stages(a: Primitive, b: Primitive) -> tuple[Stage, ...]:
    """Return stages from what `gjk_stages` left to the columns `depth` and `axis`."""
    around = {"simplex": (3, 3), "tip": (3,)}
    begin = trace(
        _begin,
        name="no_depth",
        outputs=("depth", "axis"),
        tip=(3,),
    )
    start = trace(
        _start,
        name="ray",
        outputs=tuple(PORTAL),
        X=(3, 4),
        **around,
        last=(3,),
        axis=(3,),
        along=(),
        from_last=(),
        from_axis=(),
        fixed=(3,),
    )
    step = trace(
        _step,
        name="refine",
        outputs=(*PORTAL, "depth", "axis"),
        X=(3, 4),
        point_a=(3,),
        point_b=(3,),
        portal=(3, 3),
        ray=(3,),
        against=(3,),
        gained=(),
        depth=(),
        axis=(3,),
        **around,
        extent=(),
        fineness=(),
    )
    search = (aim("against"), *support_of(a, "a"), *support_of(b, "b"), step)
    return begin, Each("rays", (start, While("going", search, LIMIT)))


def _begin(tip: Any) -> Any:
    return math.inf, (0.0, 0.0, 1.0)


def _start(X: Any, simplex: Any, tip: Any, last: Any, axis: Any, *record: Any) -> Any:
    along, from_last, from_axis, fixed = record
    ray = add(scale(along, three(X[:, 3])), scale(0.0 - from_last, three(last)))
    ray = add(add(ray, scale(from_axis, three(axis))), three(fixed))
    ray = direction(ray, 0.0, (0.0, 0.0, 1.0))
    portal = _portal(simplex, tip, ray)
    return portal, ray, negate(_normal(portal, ray)), 0.0, 1.0


def _step(X: Any, point_a: Any, point_b: Any, *columns: Any) -> Any:
    portal, ray, against, gained, depth, axis, simplex, tip, extent, fineness = columns
    corners, ray = [three(corner) for corner in portal], three(ray)
    normal = negate(three(against))
    w = difference(X, point_a, point_b)
    width = dot(normal, w)
    tiny = by_precision(width, double=1e-13, single=1e-6)
    is_less = width < depth - tiny * extent
    depth, axis = select(is_less, width, depth), choose(is_less, normal, axis)
    relative = maximum(fineness, by_precision(width, double=0.0, single=1e-5))
    beyond = width - dot(normal, corners[0])
    is_facet = ~(beyond > tiny * extent + relative * width)
    is_gain = is_less | (gained > 0.0)
    turned = choose(is_facet, axis, ray)
    again = _portal(simplex, tip, turned)
    # The ray is in one of the cones of w and two corners.
    sides = [dot(ray, cross(w, corner)) for corner in corners]
    sign = select(dot(corners[0], cross(corners[1], corners[2])) < 0.0, -1.0, 1.0)
    found = corners
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        is_here = (sign * sides[i] >= 0.0) & (sign * sides[j] <= 0.0)
        replaced = [w if n == k else corner for n, corner in enumerate(corners)]
        found = [choose(is_here, p, q) for p, q in zip(replaced, found, strict=True)]
    found = [choose(is_facet, p, q) for p, q in zip(again, found, strict=True)]
    goes_on = select(is_facet & ~is_gain, 0.0, 1.0)
    gained = select(is_gain & ~is_facet, 1.0, 0.0)
    against = negate(_normal(found, turned))
    return found, turned, against, gained, goes_on, depth, axis


def _portal(simplex: Any, tip: Any, ray: Vector3) -> list[Vector3]:
    """Return the face of a tetrahedron around the origin that a ray leaves through."""
    points = [*(three(point) for point in simplex), three(tip)]
    found = points[:3]
    for i, j, k in ((0, 1, 3), (0, 2, 3), (1, 2, 3)):
        a, b, c = points[i], points[j], points[k]
        sign = select(dot(a, cross(b, c)) < 0.0, -1.0, 1.0)
        is_here = (
            (sign * dot(ray, cross(a, b)) >= 0.0)
            & (sign * dot(ray, cross(b, c)) >= 0.0)
            & (sign * dot(ray, cross(c, a)) >= 0.0)
        )
        found = [choose(is_here, p, q) for p, q in zip((a, b, c), found, strict=True)]
    return found


def _normal(corners: Sequence[Vector3], ray: Vector3) -> Vector3:
    """Return the unit normal of a triangle on the side of a ray; the ray if flat."""
    a, b, c = corners
    normal = cross(subtract(b, a), subtract(c, a))
    sign: Number = select(dot(normal, ray) < 0.0, -1.0, 1.0)
    return direction(scale(sign, normal), 0.0, ray)
