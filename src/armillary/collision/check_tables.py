"""The tables of collision checks: spheres, pairs of links, and pairs of shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_stages import Question, check_pipeline, compiled
from armillary.collision.shape_pairs import ShapePairs
from armillary.kernel import Kernel
from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.state import State
from armillary.model.geometry.bounding import sphere_around
from armillary.model.shapes import Sphere

__all__ = ["CheckTables", "Limits"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST_SPHERES: Final = 256
"""Room for so many spheres at least; more of them compile other code."""

AXES: Final = np.concatenate([np.eye(3), -np.eye(3)])


class Limits(NamedTuple):
    """For which rows a check decides, and how exactly.

    Attributes:
        margin: What is nearer touches [m].
        rounding: How far distances may be wrong [m].
        most_extent: Rows with a sphere beyond this are left undecided [m].
        most_q: So are those with a joint beyond this, shape (n,) [m or rad].
    """

    margin: float
    rounding: float
    most_extent: float
    most_q: npt.ArrayLike


@final
@dataclass(frozen=True, slots=True)
class CheckTables:
    """Pairs of links, and of their shapes, whose distance changes; as arrays.

    Spheres are numbered: one around each link that is tested, then one for each shape.

    Attributes:
        pairs: All pairs of shapes.
        centres: Centres of spheres in the frames of moving links, shape (s, 3).
        radii: Their radii [m], shape (s,).
        rows: The places of those links, shape (s,).
        links: The spheres of the two links of each pair, shape (k, 2).
        spans: The first of the pairs of spheres, and how many; then those of shapes,
            shape (k, 4).
        of_spheres: The pairs of shapes that are both spheres, sorted by `links`.
        of_shapes: The other pairs of shapes, sorted alike.
    """

    pairs: ShapePairs
    centres: Array
    radii: Array
    rows: Indices
    links: Indices
    spans: Indices
    of_spheres: Indices
    of_shapes: Indices

    @classmethod
    def of(
        cls,
        pairs: ShapePairs,
        owners: Mapping[int, range],
        link_pairs: Indices,
        starts: Indices,
    ) -> Self:
        """Sort pairs.

        Args:
            pairs: Pairs of shapes, those of a pair of links together.
            owners: The shapes of each link, by its place in `link_pairs`.
            link_pairs: The places of both links of each pair, shape (k, 2).
            starts: The first pair of shapes of each pair of links, shape (k,).
        """
        places = list(owners)
        numbers = np.zeros(max(places, default=0) + 1, np.int64)
        numbers[places] = np.arange(len(places))
        around = [_sphere_of_link(pairs, shapes) for shapes in owners.values()]
        centres = [np.array([centre for centre, _ in around]).reshape(-1, 3)]
        first = [shapes.start for shapes in owners.values()]
        counts = np.diff(np.append(starts, len(pairs.pairs)))
        both = pairs.rows[pairs.pairs]
        changes = both[:, 0] != both[:, 1]
        is_sphere = np.array([type(s.shape) is Sphere for s in pairs.shapes], np.bool_)
        are_spheres = is_sphere[pairs.pairs].all(axis=1) & changes
        owner = np.repeat(np.arange(len(starts)), counts)
        spans: list[Indices] = []
        chosen = are_spheres, changes & ~are_spheres
        for which in chosen:
            each = np.bincount(owner[which], minlength=len(starts))
            spans += [np.cumsum(each) - each, each]
        table = np.stack(spans, axis=1).astype(np.int64)
        used = table[:, 1] + table[:, 3] > 0
        return cls(
            pairs,
            np.concatenate([*centres, pairs.centres]),
            np.concatenate([[radius for _, radius in around], pairs.radii]),
            np.concatenate([pairs.rows[first], pairs.rows]),
            numbers[link_pairs][used],
            table[used],
            *map(np.flatnonzero, chosen),
        )

    def kernel(
        self,
        moving: MovingLinks,
        state: State,
        asked: Question,
        limits: Limits,
        dtype: npt.DTypeLike,
    ) -> Kernel:
        """Return the kernel of a question; nothing is compiled for another state.

        Raises:
            KernelError: As for `compile_pipeline`.
        """
        kind = np.dtype(dtype)
        code = compiled(check_pipeline(moving, self._room, asked), kind)
        lanes, is_squared = code.native.lanes, asked == "touching"
        m, r = limits.margin, limits.rounding
        depth: Any = "free" if is_squared else "value"
        callees = [each.callees(depth, kind, lanes) for each in self.pairs.kinds]
        first = len(self.centres) - len(self.pairs.centres)
        spheres, shapes = (
            self.pairs.pairs[each] + first for each in (self.of_spheres, self.of_shapes)
        )
        ordered = np.zeros((len(self.pairs.pairs), 2), np.int64)
        codes = np.zeros_like(ordered)
        for each, called in zip(self.pairs.kinds, callees, strict=True):
            ordered[each.pairs], codes[each.pairs] = each.rows.T, called.codes

        def reach(both: Indices) -> Array:
            radii = self.radii[both].sum(axis=1)
            return (radii + m + r) ** 2 if is_squared else radii

        largest = float(self.radii[spheres].sum(axis=1).max(initial=0.0))
        tables: dict[str, Mapping[str, Any]] = {
            **moving.records(state),
            "limits": {
                "margin": [m],
                "rounding": [r],
                # (R + r)^2 - (R - r)^2 for the largest R, and some more.
                "square_rounding": [4.0 * (largest + m + r) * r],
                "most_extent": [limits.most_extent],
                "most_q": [np.broadcast_to(limits.most_q, moving.joints)],
            },
            "spheres": {
                "carrier_pose": self.rows,
                "centre": self.centres,
                "sphere": np.arange(len(self.centres)),
            },
            "link_pairs": {
                "link_a": self.links[:, 0],
                "link_b": self.links[:, 1],
                "link_reach": reach(self.links),
                "of_spheres": self.spans[:, :2],
                "of_shapes": self.spans[:, 2:],
            },
            "sphere_pairs": {
                "sphere_a": spheres[:, 0],
                "sphere_b": spheres[:, 1],
                "sphere_reach": reach(spheres),
            },
            "shape_pairs": {
                "shape_a": shapes[:, 0],
                "shape_b": shapes[:, 1],
                "shape_reach": reach(shapes),
                "X_A": ordered[self.of_shapes, 0],
                "X_B": ordered[self.of_shapes, 1],
                "distance": codes[self.of_shapes],
            },
        }
        return code(tables, callees)

    def extent(self, X: Array) -> float:
        """Return about how far from the world's origin shapes are [m].

        X: Poses of moving links, shape (f, 3, 4).
        """
        P = np.einsum("kij,kj->ki", X[self.rows, :, :3], self.centres)
        finite = np.isfinite(self.radii)
        reach = np.abs(P + X[self.rows, :, 3]).max(axis=1) + self.radii
        size = reach[finite & np.isfinite(reach)].max(initial=0.0)
        return 8.0 * float(size) + 1.0

    @property
    def _room(self) -> int:
        room = FEWEST_SPHERES
        while room < len(self.centres):
            room *= 4
        return room


def _sphere_of_link(pairs: ShapePairs, shapes: range) -> tuple[Array, float]:
    """Return centre and radius of a sphere around the spheres of shapes."""
    centres, radii = (
        each[shapes.start : shapes.stop] for each in (pairs.centres, pairs.radii)
    )
    if len(shapes) == 1:
        return centres[0], float(radii[0])
    if not np.isfinite(radii).all():
        return centres[0], math.inf
    points = centres[:, None] + radii[:, None, None] * AXES
    centre = np.array(sphere_around(points.reshape(-1, 3)).centre)
    farthest = np.linalg.norm(centres - centre, axis=1) + radii
    return centre, float(farthest.max())
