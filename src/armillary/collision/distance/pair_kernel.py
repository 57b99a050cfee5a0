"""Kernels of pairs of shapes: compiled for two kinds, then given the sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armillary.collision.distance.columns import RECORDS, TABLES, PairColumns
from armillary.collision.distance.separation import Separation
from armillary.collision.distance.sizes import form_of, numbers_of, with_numbers
from armillary.collision.distance.support import hull_records
from armillary.collision.distance.table import (
    has_formula,
    is_listed,
    is_search,
    stages_of,
)
from armillary.forks import IMPORT_LOCK
from armillary.kernel.columns import at, each, number_field
from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table, pack_all
from armillary.kernel.two_passes import in_two_passes
from armillary.kinematics.kept_formulas import LAYERS_BELOW, kept_formula
from armillary.model.cloud import Cloud
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron, HalfSpace, Sphere
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    apply,
    multiply,
    negate,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port, Program
from armillary.trace.functions import absolute, select

__all__ = [
    "LINKS_OF",
    "SIZES_OF",
    "Asked",
    "called_pipeline",
    "numbered_code",
    "pair_kernel",
    "rows_kernel",
    "sphere_around_shape",
    "sphere_numbers",
]

Asked: TypeAlias = Literal["all", "value", "free", "gap", "touch", "steps"]
ValueAsked: TypeAlias = Literal["value", "free", "gap", "touch", "steps"]

Sizes: TypeAlias = Literal["table", "alone", "rows", "numbered", "called", "given"]

WITHOUT_DEPTH: Final[Mapping[Asked, ValueAsked]] = {"value": "free", "gap": "touch"}
"""What gives the same where shapes are apart."""

MAKERS: Final = (*LAYERS_BELOW, "armillary.collision.distance")
"""Packages on which formulas of pairs of shapes depend."""

SIZES: Final = "sizes"
"""The table of the poses and numbers of the two shapes."""

SIZES_OF: Final = "sizes_a", "sizes_b"
"""The tables of the pose and numbers of each shape, where there are many pairs."""

LINKS_OF: Final = "links_a", "links_b"
"""The tables of poses of links, where rows are pairs that have numbers of these."""


@lru_cache(maxsize=1024)
def pair_kernel(
    a: Primitive | Cloud, b: Primitive | Cloud, asked: Asked, dtype: np.dtype[Any]
) -> Kernel:
    """Return the kernel of two shapes.

    Args:
        a: The first.
        b: The second.
        asked: `all`, then it takes the poses of both, shape (4, 4), and returns value,
            gap, points and normal; else it takes that of `b` in `a` and returns the
            value, for `free` without depth, for `gap` without distances, for `touch`
            without both, for `steps` where steps prove it and else one not above 0.
        dtype: float64 or float32.

    Raises:
        ModelError: Both are half spaces.
    """
    # The code is that of the pair in its listed order; it turns results back.
    is_turned = not is_listed(a, b)
    if is_turned:
        a, b = b, a
    # One code for a kind of pairs, whatever their sizes: numbers are in a table. Closed
    # forms of shapes at the origin have another code without poses.
    where: Sizes = "table"
    is_cloud = isinstance(a, Cloud) or isinstance(b, Cloud)
    is_alone = has_formula(a, b) and not is_cloud and a.pose == b.pose == IDENTITY
    if asked != "all" and is_alone:
        where = "alone"  # half of the time of two capsules
    code = _compiled(form_of(a), form_of(b), asked, is_turned, where, dtype)
    sizes: dict[str, Any] = {}
    if where == "table":
        sizes = {
            PairColumns.pose_a.name: [_rows(a.pose)],
            PairColumns.pose_b.name: [_rows(b.pose)],
        }
    for column, shape in ((PairColumns.a, a), (PairColumns.b, b)):
        if numbers := numbers_of(shape):
            sizes[column.name] = [numbers]
    if is_cloud:
        other = b if isinstance(a, Cloud) else a
        sizes[PairColumns.around.name] = [sphere_numbers(other)]
    kernel = _with_tables(code, a, b, sizes)
    # Most pairs are apart: a kernel without the search for depths decides these, and
    # only the rows that it leaves take the whole one.
    sooner = _sooner(a, b, asked)
    if sooner is None:
        return kernel
    first = a, b, sooner, dtype
    if is_turned:
        first = b, a, *first[2:]
    return in_two_passes(kernel, partial(pair_kernel, *first))


@lru_cache(maxsize=1024)
def rows_kernel(
    a: Primitive | Cloud, b: Primitive | Cloud, asked: ValueAsked
) -> Kernel:
    """Return the kernel of many pairs of shapes like two, each row with its own pair.

    It takes the poses of both links, those of the shapes in their links, all of shape
    (3, 4), and `numbers_of` those shapes that have some, then of a pair with a cloud
    `sphere_numbers` of the other shape; it returns the value.

    Args:
        a: The first, in an order that is listed; only the corners of a polyhedron
            and what a cloud is made of matter, not other numbers.
        b: The second.
        asked: As for `pair_kernel`.

    Raises:
        ModelError: Both are half spaces.
    """
    dtype = np.dtype(np.float64)
    code = _compiled(form_of(a), form_of(b), asked, False, "rows", dtype)
    kernel = _with_tables(code, a, b, {})
    sooner = _sooner(a, b, asked)
    if sooner is None:
        return kernel
    return in_two_passes(kernel, partial(rows_kernel, a, b, sooner))


@lru_cache(maxsize=256)
def numbered_code(a: Primitive, b: Primitive, asked: ValueAsked) -> CompiledPipeline:
    """Return the code of many pairs of shapes like two, whose rows are numbers.

    Each row has the numbers of two records of `LINKS_OF`, the poses of both links, and
    two of `SIZES_OF`, the shapes; it returns the value, which is that of `rows_kernel`.

    Args:
        a: The first, in an order that is listed; not a polyhedron.
        b: The second.
        asked: As for `pair_kernel`.
    """
    return _compiled(
        form_of(a), form_of(b), asked, False, "numbered", np.dtype(np.float64)
    )


def _sooner(
    a: Primitive | Cloud, b: Primitive | Cloud, asked: Asked
) -> ValueAsked | None:
    """Return what batches of a pair in a listed order are asked first, if anything."""
    if not is_search(a, b):
        return None
    if asked in {"value", "free"}:
        with IMPORT_LOCK:
            from armillary.collision.distance.curved import are_curved
        if are_curved(a, b):
            return "steps"
    return WITHOUT_DEPTH.get(asked)


def sphere_around_shape(shape: Primitive | Cloud) -> BoundingSphere:
    """Return a sphere around a shape, in its own frame; infinite for half spaces."""
    if isinstance(shape, HalfSpace):
        return BoundingSphere((0.0, 0.0, 0.0), math.inf)
    # A half space has no end. Others give a sphere, or a box.
    try:
        return shape.bounding_sphere
    except NotImplementedError:  # a user's own shape may define `farthest` only
        lower, upper = np.array(shape.bounding_box())
        middle = 0.5 * (lower + upper)
        return BoundingSphere(
            three(middle.tolist()), float(np.linalg.norm(upper - middle))
        )


def sphere_numbers(shape: Primitive | Cloud) -> list[float]:
    """Return the centre and the radius of a sphere around a shape, in its frame."""
    centre, radius = sphere_around_shape(shape)
    return [*centre, radius]


def _with_tables(
    code: CompiledPipeline,
    a: Primitive | Cloud,
    b: Primitive | Cloud,
    sizes: Mapping[str, Any],
) -> Kernel:
    """Return the kernel of two shapes: their numbers, poses and corners as tables."""
    # Records of the search for depths are the same for all pairs; only tables that the
    # code has are passed on.
    tables: dict[str, Any] = {SIZES: sizes, **RECORDS}
    columns = PairColumns(a, b)
    for side in columns.sides:
        if isinstance(side.shape, ConvexPolyhedron):
            tables[side.hull.name] = hull_records(side.shape, side)
    pipeline, dtype = code.pipeline, code.native.dtype
    packed: dict[str, Any] = {}
    for body in columns.bodies:
        if isinstance(body, Cloud):
            with IMPORT_LOCK:
                from armillary.collision.distance.cloud import cloud_tables

            packed = cloud_tables(body, columns, dtype)
    # Large tables are packed once for all pairs.
    rest = [table for table in pipeline.tables if table.name not in packed]
    given = {table.name: tables[table.name] for table in rest}
    packed |= pack_all(rest, given, pipeline.columns, dtype)
    return code.bound({table.name: packed[table.name] for table in pipeline.tables}, ())


@lru_cache(maxsize=256)
def _compiled(
    a: Primitive | Cloud,
    b: Primitive | Cloud,
    asked: Asked,
    is_turned: bool,
    sizes: Sizes,
    dtype: np.dtype[Any],
) -> CompiledPipeline:
    pipeline = _kept_pipeline(a, b, asked, is_turned, sizes)
    return compile_pipeline(pipeline, dtype=dtype)


@lru_cache(maxsize=256)
def called_pipeline(
    a: Primitive | Cloud, b: Primitive | Cloud, asked: Asked, *, are_given: bool = False
) -> Pipeline:
    """Return what is called for pairs of shapes like two, in an order that is listed.

    It takes the poses of both links as columns, shape (3, 4), and returns the value, or
    value, gap, points and normal.

    are_given: Whether callers give the poses and numbers of both shapes; else they are
        in tables of its own. Then it also takes a distance from which on a lower bound
        will do, which is not below that one: most pairs with clouds are answered by
        that, and the search of other pairs ends; and whether the answer may be NaN
        where that does not decide, a number that is not above 0, which pairs without
        clouds do not read. Closed forms read neither.
    """
    sizes: Sizes = "given" if are_given else "called"
    return _kept_pipeline(form_of(a), form_of(b), asked, False, sizes)


def _kept_pipeline(
    a: Primitive | Cloud,
    b: Primitive | Cloud,
    asked: Asked,
    is_turned: bool,
    sizes: Sizes,
) -> Pipeline:
    parts = a, b, asked, is_turned, sizes
    made = partial(_pipeline, *parts)
    return kept_formula("distance", parts, made, made_by=MAKERS)


def _between(
    columns: PairColumns, asked: ValueAsked | Literal["all"], *, is_limited: bool
) -> tuple[Stage, ...]:
    """Return the stages from the pose of B in A to what is asked of the cores."""
    if asked == "steps":
        with IMPORT_LOCK:
            from armillary.collision.distance.curved import proven_stages
        return proven_stages(columns)
    stages = stages_of
    if columns.cloud is not None:
        with IMPORT_LOCK:
            from armillary.collision.distance.cloud import cloud_stages
        stages = cloud_stages
    return stages(
        columns,
        is_full=asked == "all",
        has_depth=asked not in {"free", "touch"},
        has_distance=asked not in {"gap", "touch"},
        is_limited=is_limited,
    )


def _pipeline(
    a: Primitive | Cloud,
    b: Primitive | Cloud,
    asked: Asked,
    is_turned: bool,
    sizes: Sizes,
) -> Pipeline:
    """Return the pipeline for two shapes of any sizes, each of one kind.

    sizes: Where poses and numbers of the shapes are: `rows` for inputs, of which each
        row has its own; `numbered` for tables, those of links, too, of which each row
        has numbers of records; `table` for a table; `called` for one for each shape,
        beside columns of poses, which callers give where it is `given`, with two
        further columns; `alone` for a table of the numbers, where there are no poses.
    """
    # The stages: where B is in A, how far their cores are apart, and the radii around
    # these. What differs are the sources of poses and numbers.
    is_full, is_limited = asked == "all", sizes == "given"
    is_called = is_limited or sizes == "called"
    is_whole = is_full and not is_called
    columns = PairColumns(a, b, pose_rows=4 if is_whole else 3)
    links: tuple[Port, ...] = (columns.X_AB,)
    if is_full or is_called or sizes in {"rows", "numbered"}:
        links = columns.X_A, columns.X_B
    own = () if sizes == "alone" else (columns.pose_a, columns.pose_b)
    by_side = columns.numbers.values()
    numbers = tuple(port for port in by_side if port)
    stages = (
        _relative(columns, links, own, is_turned=is_turned),
        *_between(columns, asked, is_limited=is_limited),
        _rounded(columns, is_turned=is_turned) if is_full else _rounded_value(columns),
    )
    # Numbers are inputs, or fields of a record; then all stages run at that record.
    inputs, tables = links, [*TABLES]
    around = () if columns.cloud is None else (columns.around,)
    if sizes == "rows":
        inputs = *links, *own, *numbers, *around
    elif sizes == "numbered":
        inputs = columns.link_a, columns.link_b, columns.shape_a, columns.shape_b
        further = _numbered_tables(columns)
        for table, number in zip(further, inputs, strict=True):
            stages = (at(table, number, *stages),)
        tables += further
    elif is_called:
        inputs = *links, *((columns.wanted, columns.exactly) if is_limited else ())
        # Many pairs share a shape, whose record is there once.
        for k, (name, pose, port) in enumerate(
            zip(SIZES_OF, own, by_side, strict=True)
        ):
            is_other = columns.cloud == 1 - k
            fields = pose, *((port,) if port else ()), *(around if is_other else ())
            tables.append(Table(name, (*map(number_field, fields),), is_single=True))
            stages = (each(tables[-1], *stages),)
    else:
        fields = tuple(map(number_field, (*own, *numbers, *around)))
        tables.append(Table(SIZES, fields, is_single=True))
        stages = (each(tables[-1], *stages),)
    tables += [s.hull for s in columns.sides if isinstance(s.shape, ConvexPolyhedron)]
    if columns.cloud is not None:
        tables += columns.cloud_tables
        stages = (each(columns.cloud_grid, *stages),)
    value, gap, *_ = columns.separation
    results = (value, gap, columns.points, columns.normal) if is_full else (value,)
    return Pipeline(
        f"distance_{type(a).__name__}_{type(b).__name__}".lower(),
        inputs,
        tuple(tables),
        stages,
        tuple(port.name for port in results),
        given=SIZES_OF if sizes == "given" else (),
    )


def _numbered_tables(columns: PairColumns) -> list[Table]:
    """Return the tables of which each row has numbers of records, one of each.

    Two of poses of links; two of shapes: their pose in the link, and their numbers.
    """
    poses = columns.pose_a, columns.pose_b
    records: list[tuple[Port, ...]] = [(columns.X_A,), (columns.X_B,)]
    for pose, port in zip(poses, columns.numbers.values(), strict=True):
        records.append((pose, port) if port else (pose,))
    return [
        Table(name, (*map(number_field, ports),))
        for name, ports in zip((*LINKS_OF, *SIZES_OF), records, strict=True)
    ]


def _relative(
    columns: PairColumns,
    links: Sequence[Port],
    own: Sequence[Port],
    *,
    is_turned: bool,
) -> Program:
    """Return the program from poses of links to the pose X of B in A.

    With poses X_A, X_B of links and P_a, P_b of the shapes in them it is

        X = P_a^-1 X_A^-1 X_B P_b.

    Positions are subtracted first, so that no digits are lost far from the origin, and
    vectors are turned before rotations are multiplied, which spheres do not need.

    Args:
        columns: The columns of A and B.
        links: The poses of both links in the world, or that of the second in the first;
            where turned, the first is that of B.
        own: The poses of A and B in their links, or none for the identity.
        is_turned: Whether the first link is that of B.
    """
    a, b = columns.bodies

    def relative(links: Sequence[Matrix], own: Sequence[Matrix] = ()) -> Matrix:
        # The identity itself, which no traced pose is, is skipped in products.
        own_a = own_b = IDENTITY
        if own:
            own_b, own_a = _placed(b, own[1]), _placed(a, own[0])
        poses = [Pose.from_matrix(X[:3]) for X in links]
        if is_turned:
            poses.reverse()
        # X_A^-1 X_B P_b, or X_AB P_b; if that is the pose of A in B, its inverse.
        if len(poses) == 2:
            placed = _seen_from(*poses) @ own_b
        else:
            (X,) = poses
            placed = _seen_from(X, own_b) if is_turned else X @ own_b
        return _seen_from(own_a, placed).matrix()[:3].tolist()

    writes = columns.X if columns.cloud is None else columns.X_cloud
    return columns.stage(relative, links=links, own=own or None, writes=writes)


def _seen_from(base: Pose, X: Pose) -> Pose:
    """Return base^-1 X."""
    if base is IDENTITY:
        return X
    back = transpose(base.rotation)
    return Pose(
        multiply(back, X.rotation), apply(back, subtract(X.position, base.position))
    )


def _placed(shape: Primitive | Cloud, X: Matrix) -> Pose:
    """Return the pose of a shape in its link; a sphere is not turned."""
    pose = Pose.from_matrix(X)
    is_ball = isinstance(shape, Sphere)
    return Pose(IDENTITY.rotation, pose.position) if is_ball else pose


def _radii(columns: PairColumns, a: Vector, b: Vector) -> list[Number]:
    """Return the radii around the cores of both shapes, from their numbers."""
    # `rounding` is that of a shape with traced numbers: a formula of these.
    both = zip(columns.shapes, (a, b), strict=True)
    return [with_numbers(*shape).rounding for shape in both]


def _rounded_value(columns: PairColumns) -> Program:
    """Return the program from the distance of cores to that of shapes."""

    def rounded(value: Number, a: Vector = (), b: Vector = ()) -> Number:
        return value - sum(_radii(columns, a, b), 0.0)

    return columns.stage(rounded, writes=columns.value, **columns.numbers)


def _rounded(columns: PairColumns, *, is_turned: bool) -> Program:
    """Return the program from the separation of cores, in A, to that of shapes."""

    def rounded(
        core: Separation,
        X_A: Matrix,
        X_B: Matrix,
        pose_a: Matrix,
        pose_b: Matrix,
        a: Vector = (),
        b: Vector = (),
    ) -> tuple[Number, Matrix, Vector3]:
        # The core's points move outwards by the radii, and from A to the world.
        core = Separation(
            core.value, three(core.on_a), three(core.on_b), three(core.normal)
        )
        grown = core.rounded(*_radii(columns, a, b))
        link = Pose.from_matrix(X_B if is_turned else X_A)
        X_WA = link @ _placed(columns.bodies[0], pose_a)
        # Where the value is not a number, points are not either.
        is_number = absolute(grown.value) < math.inf
        nothing = (select(is_number, 0.0, math.nan),) * 3
        points = [add(X_WA @ p, nothing) for p in (grown.on_a, grown.on_b)]
        normal = add(X_WA.rotate(grown.normal), nothing)
        if is_turned:
            points, normal = points[::-1], negate(normal)
        return grown.value, points, normal

    writes = columns.value, columns.points, columns.normal
    return columns.stage(rounded, writes=writes, **columns.numbers)


def _rows(pose: Pose) -> Any:
    return pose.matrix()[:3]
