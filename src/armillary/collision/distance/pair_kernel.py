"""Kernels of pairs of shapes: compiled for two kinds, then given the sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np

from armillary.collision.distance.depth import RECORDS, TABLES
from armillary.collision.distance.separation import COLUMNS, Separation
from armillary.collision.distance.sizes import form_of, numbers_of, with_numbers
from armillary.collision.distance.support import hull_records, hull_table, sizes_of
from armillary.collision.distance.table import (
    has_formula,
    is_listed,
    is_search,
    stages_of,
)
from armillary.kernel.kernel import Kernel, in_two_passes
from armillary.kernel.pipeline import Each, Pipeline, Stage
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.tables import Table, reals
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron, Sphere
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    add,
    apply,
    multiply,
    negate,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port, trace
from armillary.trace.functions import absolute, select

__all__ = ["Asked", "called_pipeline", "pair_kernel", "rows_kernel"]

Asked: TypeAlias = Literal["all", "value", "free", "gap", "touch"]
ValueAsked: TypeAlias = Literal["value", "free", "gap", "touch"]

Sizes: TypeAlias = Literal["table", "alone", "rows", "called"]

WITHOUT_DEPTH: Final[Mapping[Asked, ValueAsked]] = {"value": "free", "gap": "touch"}
"""What gives the same where shapes are apart."""

RESULTS: Final = {"value": (), "gap": (), "points": (2, 3), "normal": (3,)}


@lru_cache(maxsize=1024)
def pair_kernel(
    a: Primitive, b: Primitive, asked: Asked, dtype: np.dtype[Any]
) -> Kernel:
    """Return the kernel of two shapes.

    Args:
        a: The first.
        b: The second.
        asked: `all`, then it takes the poses of both, shape (4, 4), and returns value,
            gap, points and normal; else it takes that of `b` in `a` and returns the
            value, for `free` without depth, for `gap` without distances, for `touch`
            without both.
        dtype: float64 or float32.

    Raises:
        ModelError: Both are half spaces.
    """
    is_turned = not is_listed(a, b)
    if is_turned:
        a, b = b, a
    where: Sizes = "table"
    if asked != "all" and has_formula(a, b) and a.pose == b.pose == IDENTITY:
        where = "alone"  # half of the time of two capsules
    code = _compiled(form_of(a), form_of(b), asked, is_turned, where, dtype)
    sizes: dict[str, Any] = {}
    if where == "table":
        sizes = {"pose_a": [_rows(a.pose)], "pose_b": [_rows(b.pose)]}
    for side, shape in (("a", a), ("b", b)):
        if sizes_of(shape, side):
            sizes[side] = [numbers_of(shape)]
    kernel = _with_tables(code, a, b, sizes)
    if asked not in WITHOUT_DEPTH or not is_search(a, b):
        return kernel
    first = a, b, WITHOUT_DEPTH[asked], dtype
    if is_turned:
        first = b, a, *first[2:]
    return in_two_passes(kernel, partial(pair_kernel, *first))


@lru_cache(maxsize=1024)
def rows_kernel(a: Primitive, b: Primitive, asked: ValueAsked) -> Kernel:
    """Return the kernel of many pairs of shapes like two, each row with its own pair.

    It takes the poses of both links, those of the shapes in their links, all of shape
    (3, 4), and `numbers_of` those shapes that have some; it returns the value.

    Args:
        a: The first, in an order that is listed; only the corners of a polyhedron
            matter, not other numbers.
        b: The second.
        asked: As for `pair_kernel`.

    Raises:
        ModelError: Both are half spaces.
    """
    dtype = np.dtype(np.float64)
    code = _compiled(form_of(a), form_of(b), asked, False, "rows", dtype)
    kernel = _with_tables(code, a, b, {})
    if asked not in WITHOUT_DEPTH or not is_search(a, b):
        return kernel
    first = partial(rows_kernel, a, b, WITHOUT_DEPTH[asked])
    return in_two_passes(kernel, first)


def _with_tables(
    code: CompiledPipeline, a: Primitive, b: Primitive, sizes: Mapping[str, Any]
) -> Kernel:
    tables: dict[str, Any] = {"sizes": sizes, **RECORDS}
    for side, shape in (("a", a), ("b", b)):
        if isinstance(shape, ConvexPolyhedron):
            tables[f"hull_{side}"] = hull_records(shape, side)
    return code({table.name: tables[table.name] for table in code.pipeline.tables})


@lru_cache(maxsize=256)
def _compiled(
    a: Primitive,
    b: Primitive,
    asked: Asked,
    is_turned: bool,
    sizes: Sizes,
    dtype: np.dtype[Any],
) -> CompiledPipeline:
    return compile_pipeline(_pipeline(a, b, asked, is_turned, sizes), dtype=dtype)


@lru_cache(maxsize=256)
def called_pipeline(a: Primitive, b: Primitive, asked: Asked) -> Pipeline:
    """Return what is called for pairs of shapes like two, in an order that is listed.

    It takes the poses of both links as columns, shape (3, 4), and returns the value, or
    value, gap, points and normal.
    """
    return _pipeline(form_of(a), form_of(b), asked, False, "called")


def _pipeline(
    a: Primitive, b: Primitive, asked: Asked, is_turned: bool, sizes: Sizes
) -> Pipeline:
    """Return the pipeline for two shapes of any sizes, each of one kind.

    sizes: Where poses and numbers of the shapes are: `rows` for inputs, of which each
        row has its own, `table` for a table, `called` for one beside columns of poses;
        `alone` for a table of the numbers, where there are no poses.
    """
    is_full, has_rows = asked == "all", sizes == "rows"
    poses: dict[str, tuple[int, ...]] = {"X_AB": (4, 4)}
    if is_full or sizes in {"rows", "called"}:
        is_whole = is_full and sizes != "called"
        poses = dict.fromkeys(("X_A", "X_B"), (4, 4) if is_whole else (3, 4))
    results: Mapping[str, tuple[int, ...]] = RESULTS if is_full else {"value": ()}
    own: dict[str, tuple[int, ...]] = {}
    if sizes != "alone":
        own = {"pose_a": (3, 4), "pose_b": (3, 4)}
    numbers = {**sizes_of(a, "a"), **sizes_of(b, "b")}
    relative = trace(
        _relative(a, b, is_turned=is_turned, is_placed=bool(own)),
        name="relative",
        outputs=("X",),
        **poses,
        **own,
    )
    given: dict[str, tuple[int, ...]] = {"value": ()}
    if is_full:
        columns = {name: shape for name, shape in COLUMNS.items() if name != "gap"}
        given = columns | poses | own
    radii = _Radii(a, b, tuple(numbers))
    last = trace(
        radii.separation(is_turned) if is_full else radii.value,
        name="rounded",
        outputs=tuple(name for name in results if name != "gap"),
        **given,
        **numbers,
    )
    core = stages_of(
        a,
        b,
        is_full=is_full,
        has_depth=asked not in {"free", "touch"},
        has_distance=asked not in {"gap", "touch"},
    )
    stages: tuple[Stage, ...] = (relative, *core, last)
    fields, tables = {**own, **numbers}, [*TABLES]
    if has_rows:
        poses |= fields
    else:
        stages = (Each("sizes", stages),)
        record = tuple(reals(name, shape) for name, shape in fields.items())
        tables.append(Table("sizes", record, is_single=True))
    for side, shape in (("a", a), ("b", b)):
        if isinstance(shape, ConvexPolyhedron):
            tables.append(hull_table(side))
    return Pipeline(
        f"distance_{type(a).__name__}_{type(b).__name__}".lower(),
        tuple(Port(name, shape) for name, shape in poses.items()),
        tuple(tables),
        stages,
        tuple(results),
    )


def _relative(a: Primitive, b: Primitive, *, is_turned: bool, is_placed: bool) -> Any:
    """Return the function from poses of two shapes to that of the second in the first.

    Behind those of links come those of the shapes in them, if they are placed.

    Positions are subtracted first, so that no digits are lost far from the origin, and
    vectors are turned before rotations are multiplied, which spheres do not need.
    """

    def relative(*poses: Any) -> Any:
        own_a = own_b = IDENTITY
        given = list(poses)
        if is_placed:
            own_b, own_a = _placed(b, given.pop()), _placed(a, given.pop())
        links = [Pose.from_matrix(X[:3]) for X in given]
        if is_turned:
            links.reverse()
        if len(links) == 2:
            placed = _seen_from(*links) @ own_b
        else:
            (X,) = links
            placed = _seen_from(X, own_b) if is_turned else X @ own_b
        return _seen_from(own_a, placed).matrix()[:3]

    return relative


def _seen_from(base: Pose, X: Pose) -> Pose:
    if base is IDENTITY:
        return X
    back = transpose(base.rotation)
    return Pose(
        multiply(back, X.rotation), apply(back, subtract(X.position, base.position))
    )


def _placed(shape: Primitive, X: Any) -> Pose:
    """Return the pose of a shape in its link; a sphere is not turned."""
    pose = Pose.from_matrix(X)
    is_ball = isinstance(shape, Sphere)
    return Pose(IDENTITY.rotation, pose.position) if is_ball else pose


@final
@dataclass(frozen=True, slots=True)
class _Radii:
    """Two shapes, of which radii are added to the separation of their cores.

    Attributes:
        a: The first.
        b: The second.
        sides: Which of them have numbers, `a` and `b`.
    """

    a: Primitive
    b: Primitive
    sides: tuple[str, ...]

    def of(self, sizes: Sequence[Any]) -> tuple[Any, Any]:
        """Return both radii from the numbers of those shapes that have some."""
        given = dict(zip(self.sides, sizes, strict=True))
        a = with_numbers(self.a, given.get("a", ()))
        b = with_numbers(self.b, given.get("b", ()))
        return a.rounding, b.rounding

    def value(self, value: Any, *sizes: Any) -> Any:
        """Return the distance of the shapes from that of their cores."""
        return value - sum(self.of(sizes), 0.0)

    def separation(self, is_turned: bool) -> Any:
        """Return the function from the separation of cores to that of the shapes."""

        def rounded(value: Any, on_a: Any, on_b: Any, normal: Any, *given: Any) -> Any:
            X_A, X_B, own, _, *sizes = given
            core = Separation(value, three(on_a), three(on_b), three(normal))
            found = core.rounded(*self.of(sizes))
            X_WA = Pose.from_matrix(X_B if is_turned else X_A) @ _placed(self.a, own)
            is_number = absolute(found.value) < math.inf
            nothing = (select(is_number, 0.0, math.nan),) * 3
            points = [add(X_WA @ p, nothing) for p in (found.on_a, found.on_b)]
            normal = add(X_WA.rotate(found.normal), nothing)
            if is_turned:
                points, normal = points[::-1], negate(normal)
            return found.value, points, normal

        return rounded


def _rows(pose: Pose) -> Any:
    return pose.matrix()[:3]
