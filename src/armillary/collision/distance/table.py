"""Which pair of shapes is done how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from armillary.collision.distance.box import (
    box_box,
    box_box_gap,
    box_lozenge,
    lozenge_lozenge,
)
from armillary.collision.distance.capsule import (
    box_capsule,
    capsule_capsule,
    lozenge_capsule,
)
from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.half_space import half_space_stages
from armillary.collision.distance.separation import Formula, GapFormula, Separation
from armillary.collision.distance.sizes import solid_of, with_numbers
from armillary.collision.distance.sphere import (
    box_sphere,
    capsule_sphere,
    circular_lozenge_sphere,
    cone_sphere,
    cylinder_sphere,
    lozenge_sphere,
    sphere_sphere,
    tetrahedron_sphere,
    triangular_lozenge_sphere,
)
from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.stages import Stage
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    Cylinder,
    HalfSpace,
    Lozenge,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Vector
from armillary.trace import Program

# Of a pair in the other order A and B are exchanged, and results are turned back. Pairs
# that are not here are searched, so that a new shape needs no row.
FORMULAS: Final[Mapping[tuple[type[Primitive], type[Primitive]], Formula]] = {
    (Sphere, Sphere): sphere_sphere,
    (Capsule, Sphere): capsule_sphere,
    (Lozenge, Sphere): lozenge_sphere,
    (CircularLozenge, Sphere): circular_lozenge_sphere,
    (TriangularLozenge, Sphere): triangular_lozenge_sphere,
    (Box, Sphere): box_sphere,
    (Cylinder, Sphere): cylinder_sphere,
    (Cone, Sphere): cone_sphere,
    (Tetrahedron, Sphere): tetrahedron_sphere,
    (Capsule, Capsule): capsule_capsule,
    (Box, Capsule): box_capsule,
    (Lozenge, Capsule): lozenge_capsule,
    (Box, Box): box_box,
    (Box, Lozenge): box_lozenge,
    (Lozenge, Lozenge): lozenge_lozenge,
}
"""Pairs in closed form, in one of both orders."""

# A gap along one axis proves two boxes apart; the nearest points of their edges take
# longer.
GAPS: Final[Mapping[tuple[type[Primitive], type[Primitive]], GapFormula]] = {
    (Box, Box): box_box_gap,
}
"""Those in which a gap between shapes takes less time than their distance."""


def has_formula(a: Primitive | Cloud, b: Primitive | Cloud) -> bool:
    """Return whether a pair is done in closed form, in this order.

    A cloud is, if its elements are.
    """
    a, b = solid_of(a), solid_of(b)
    return (type(a), type(b)) in FORMULAS


def is_listed(a: Primitive | Cloud, b: Primitive | Cloud) -> bool:
    """Return whether a pair is done in this order; the other one uses it, too.

    A cloud has the place that its elements have, and comes first where both orders do.
    """
    is_second = isinstance(b, Cloud)
    a, b = solid_of(a), solid_of(b)
    if is_second and type(a) is type(b):
        return False
    # Closed forms and half spaces have one order; others are sorted by name, so that
    # both orders share code.
    kinds = type(a), type(b)
    if kinds in FORMULAS or isinstance(a, HalfSpace):
        return True
    if kinds[::-1] in FORMULAS or isinstance(b, HalfSpace):
        return False
    return kinds[0].__name__ <= kinds[1].__name__


def is_search(a: Primitive | Cloud, b: Primitive | Cloud) -> bool:
    """Return whether a pair, in a listed order, is done by iteration."""
    a, b = solid_of(a), solid_of(b)
    return not (has_formula(a, b) or isinstance(a, HalfSpace))


def stages_of(
    columns: PairColumns,
    *,
    is_full: bool,
    has_depth: bool,
    has_distance: bool,
    is_limited: bool = False,
) -> tuple[Stage, ...]:
    """Return stages from the pose X of B in A to the separation of their cores.

    They read the numbers of the shapes from fields or columns `a` and `b`, and corners
    of polyhedra from tables, so that they fit shapes of any sizes.

    Args:
        columns: Those of the two shapes.
        is_full: Whether points and the normal are asked for, besides the value.
        has_depth: Whether the depth is asked for; else any value that is not above 0
            will do where cores overlap.
        has_distance: Whether the distance is asked for; else a number above 0 that is
            not above it will do where cores are apart.
        is_limited: Whether there is a column `wanted`: where the distance is above that
            and 0, a lower bound that is above both will do.

    Raises:
        ModelError: Both are half spaces.
    """
    # A closed form if there is one, else by the farthest points of the shapes.
    a, b = columns.shapes
    kinds = type(a), type(b)
    if kinds in FORMULAS:
        gap = None if has_distance else GAPS.get(kinds)
        return (_program(gap or FORMULAS[kinds], columns, is_full=is_full),)
    if isinstance(b, HalfSpace):
        raise ModelError(
            "Two half spaces overlap without end, unless they are exactly opposite; "
            "they have no distance. Leave this pair out."
        )
    if isinstance(a, HalfSpace):
        return half_space_stages(columns)
    with IMPORT_LOCK:
        from armillary.collision.distance.convex import (
            convex_stages,  # kept formulas need none
        )

    return convex_stages(
        columns,
        is_full=is_full,
        has_depth=has_depth,
        has_distance=has_distance,
        is_limited=is_limited,
    )


def _program(
    formula: Formula | GapFormula, columns: PairColumns, *, is_full: bool
) -> Program:
    shape_a, shape_b = columns.shapes

    def separation(X: Matrix, a: Vector = (), b: Vector = ()) -> Any:
        apart = formula(
            with_numbers(shape_a, a), with_numbers(shape_b, b), Pose.from_matrix(X)
        )
        if not isinstance(apart, Separation):
            return apart
        if not is_full:
            return apart.value
        return apart.value, 0.0, apart.on_a, apart.on_b, apart.normal

    # A closed form is exact: its `gap` is 0. Products and sums may be rounded as one.
    writes = columns.separation if is_full else columns.value
    program = columns.stage(separation, writes=writes, **columns.numbers)
    return replace(program, is_loose=True)
