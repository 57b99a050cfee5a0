"""Distance of a cloud from another shape: that of its nearest element.

Two steps. A grid has the distance d of the middle of each of its cells from the nearest
centre of an element, so that a point x of the cell has one between d - |x - middle| and
d + |x - middle|. With the sphere around the other shape that decides for most shapes
whether the cloud is farther away than is asked for, or for spheres that they touch. The
others search a tree of balls around elements, best first: the distance of the other
shape from an element at the centre of a ball, less the radius of the ball, is no more
than the distance of any element in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.distance.ball_tree import BallTree, ball_tree
from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.sizes import with_numbers
from armillary.collision.distance.table import stages_of
from armillary.kernel.columns import Column, Columns, at, nearest, when
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from armillary.model.shapes import Sphere
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    apply,
    norm,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port
from armillary.trace.functions import floor, maximum, minimum, select

__all__ = ["cloud_stages", "cloud_tables"]

Array = npt.NDArray[np.float64]

MOST_CELLS: Final = 2**17
"""Cells of the grid around a cloud, at most: each is a search of the tree."""

CELLS_PER_ELEMENT: Final = 16

PART: Final = 0.95
"""Far from elements distances of cells may be this part of what is stored."""

FAR: Final = 5.0
"""From how many sides of a cell on that is so."""

LINE: Final = 64
"""Bytes of a line of the cache."""

LEAST_SIDE: Final = 1e-6
"""The side of a cell of a cloud that is one point [m]."""

SINGLE_TYPE: Final = np.dtype(np.float32)

SINGLE: Final = 2.0**-18
"""The error of the distances of cells, computed in float32, by coordinates."""

KEPT: Final = 4
"""Clouds whose trees are kept."""


# The stages of a pair


class CellOfGrid(NamedTuple):
    """Where the sphere around the other shape is in the grid."""

    centre: Vector3
    cell: Number
    away: Number
    beyond: Number


class CentreBounds(NamedTuple):
    """Bounds of the distance of that centre from the nearest centre of an element."""

    lower: Number
    upper: Number


class CloudBounds(NamedTuple):
    """What is known about the distance of cores, and what is searched for."""

    bound: Number
    is_open: Number
    nearest: Number
    plenty: Number


def cloud_stages(
    columns: PairColumns,
    *,
    is_full: bool,
    has_depth: bool,
    has_distance: bool,
    is_limited: bool,
) -> tuple[Stage, ...]:
    """Return stages from the pose `X_cloud` of B in A to the separation of cores.

    Args:
        columns: Those of a cloud and another shape.
        is_full: As for `stages_of`.
        has_depth: The same.
        has_distance: The same.
        is_limited: Whether there are columns `wanted` and `exactly`; else all distances
            are.
    """
    stage, cloud = columns.stage, columns.cloud
    assert cloud is not None, "one of both is a cloud"
    wanted = columns.wanted if is_limited else None
    exactly = columns.exactly if is_limited else None
    settings: dict[str, Any] = {
        "columns": columns,
        "has_bounds": not is_full,
        "has_depth": has_depth,
    }
    reads: dict[str, Any] = {"wanted": wanted, **columns.numbers}
    judge = stage(partial(_judge, **settings), **reads)
    cells = columns.cloud_cells
    begin: list[Stage] = [
        stage(partial(_cell, is_ball=_is_ball(columns), cloud=cloud)),
        at(cells, columns.cell, stage(_bounds)),
        judge,
    ]
    sought = stage(_sought, exactly=exactly, writes=columns.is_sought)
    begin.append(sought)
    if is_limited:
        # Cells around the centre bound it from eight sides.
        around: list[Stage] = []
        for corner in np.ndindex(2, 2, 2):
            number = partial(_cell_beside, corner=corner)
            around += [
                stage(number, writes=columns.cell),
                at(cells, columns.cell, stage(partial(_closer_bounds, corner=corner))),
            ]
        begin.append(when(columns.is_sought, *around, judge, sought))
    settings = {"has_depth": has_depth, "has_distance": has_distance}
    search = nearest(
        columns.cloud_tree,
        columns.place,
        _element(columns, columns.place, is_full=False),
        *stages_of(columns, is_full=False, **settings),
        value=columns.value,
        least=columns.nearest,
        enough=columns.plenty,
        chosen=columns.chosen,
    )
    if not is_full:
        found = stage(_found, writes=columns.value)
        return *begin, when(columns.is_sought, search), found
    # Points are those of the nearest element, measured once more.
    begin.append(stage(_unchosen, writes=columns.chosen))
    return (
        *begin,
        when(columns.is_sought, search),
        _element(columns, columns.chosen, is_full=True),
        *stages_of(columns, is_full=True, has_depth=True, has_distance=True),
        stage(
            partial(_moved, cloud=cloud),
            writes=(columns.value, columns.on_a, columns.on_b),
        ),
    )


def _is_ball(columns: PairColumns) -> bool:
    """Return whether B is a sphere, of which only the position counts."""
    return columns.cloud == 0 and isinstance(columns.shapes[1], Sphere)


def _element(columns: PairColumns, place: Port, *, is_full: bool) -> Stage:
    """Return the stage to the pose of B in A, of which one is an element at a place."""
    if _is_ball(columns) and not is_full:
        return columns.stage(_at_ball, place=place, writes=columns.X)
    assert columns.cloud is not None
    formula = partial(_at_element, cloud=columns.cloud)
    return columns.stage(formula, place=place, writes=columns.X)


def _cell(  # noqa: PLR0913
    X_cloud: Matrix,
    around: Vector,
    grid_lower: Vector,
    grid_least: Vector,
    grid_upper: Vector,
    grid_cell: Number,
    grid_scale: Number,
    grid_counts: Vector,
    *,
    is_ball: bool,
    cloud: int,
) -> CellOfGrid:
    """Return the cell that is nearest to the centre of the other shape."""
    X, centre = Pose.from_matrix(X_cloud), three(around[:3])
    # The cloud is A, or it is B, in the frame of A.
    if is_ball:
        x = X.position
    elif cloud == 0:
        x = X @ centre
    else:
        x = apply(transpose(X.rotation), subtract(centre, X.position))
    places: list[Number] = []
    middle: list[Number] = []
    outside: list[Number] = []
    for k in range(3):
        place = floor((x[k] - grid_lower[k]) * grid_scale)
        place = _clamped(place, grid_counts[k])
        places.append(place)
        middle.append(grid_lower[k] + (place + 0.5) * grid_cell)
        outside.append(
            maximum(maximum(grid_least[k] - x[k], x[k] - grid_upper[k]), 0.0)
        )
    away = norm(subtract(x, three(middle)))
    # One axis of the way to the box is not longer than all of it.
    beyond = maximum(maximum(outside[0], outside[1]), outside[2])
    return CellOfGrid(x, _number(places, grid_counts), away, beyond)


def _clamped(place: Number, count: Number) -> Number:
    return minimum(maximum(place, 0.0), count - 1.0)


def _number(places: Sequence[Number], counts: Vector) -> Number:
    return (places[0] * counts[1] + places[1]) * counts[2] + places[2]


def _beside(
    centre: Vector,
    grid_lower: Vector,
    grid_scale: Number,
    grid_counts: Vector,
    corner: tuple[int, ...],
) -> list[Number]:
    """Return the place of one of the eight cells whose middles are around a point."""
    places: list[Number] = []
    for k, step in enumerate(corner):
        place = floor((centre[k] - grid_lower[k]) * grid_scale - 0.5) + float(step)
        places.append(_clamped(place, grid_counts[k]))
    return places


def _cell_beside(
    centre: Vector,
    grid_lower: Vector,
    grid_scale: Number,
    grid_counts: Vector,
    *,
    corner: tuple[int, ...],
) -> Number:
    places = _beside(centre, grid_lower, grid_scale, grid_counts, corner)
    return _number(places, grid_counts)


def _bounds(
    cell_distance: Number, grid_cell: Number, away: Number, beyond: Number
) -> CentreBounds:
    lower = maximum(_proven(cell_distance, grid_cell) - away, beyond)
    return CentreBounds(lower, cell_distance + away)


def _proven(cell_distance: Number, grid_cell: Number) -> Number:
    """Return what the distance of the middle of a cell is not below."""
    is_far = cell_distance > FAR * grid_cell
    return select(is_far, PART * cell_distance, cell_distance)


def _closer_bounds(
    cell_distance: Number,
    centre: Vector,
    grid_lower: Vector,
    grid_cell: Number,
    grid_scale: Number,
    grid_counts: Vector,
    bounds: CentreBounds,
    *,
    corner: tuple[int, ...],
) -> CentreBounds:
    """Return the bounds, now that those of a cell beside the centre are known."""
    places = _beside(centre, grid_lower, grid_scale, grid_counts, corner)
    middle = [
        low + (place + 0.5) * grid_cell
        for low, place in zip(grid_lower, places, strict=True)
    ]
    away = norm(subtract(three(centre), three(middle)))
    return CentreBounds(
        maximum(bounds.lower, _proven(cell_distance, grid_cell) - away),
        minimum(bounds.upper, cell_distance + away),
    )


def _judge(  # noqa: PLR0913
    bounds: CentreBounds,
    outer: Number,
    inner: Number,
    around: Vector,
    wanted: Number = np.inf,
    a: Vector = (),
    b: Vector = (),
    *,
    columns: PairColumns,
    has_bounds: bool,
    has_depth: bool,
) -> CloudBounds:
    """Return what bounds decide, and with what the search of the tree begins."""
    both = zip(columns.shapes, (a, b), strict=True)
    radii: Number = sum((with_numbers(*shape).rounding for shape in both), 0.0)
    lower = bounds.lower - outer - around[3]
    is_far = lower >= wanted  # false of NaN
    bound, least = select(is_far, lower, wanted), wanted
    is_open: Any = ~is_far
    other = columns.shapes[1 - (columns.cloud or 0)]
    if isinstance(other, Sphere) and has_bounds:
        # Of a sphere the nearest element is not farther than this.
        upper = bounds.upper - inner - around[3]
        least = minimum(least, upper)
        if not has_depth:
            is_touching = upper <= 0.0
            bound = select(is_touching, upper, bound)
            is_open = is_open & ~is_touching
    return CloudBounds(
        bound + radii,
        select(is_open, 1.0, 0.0),
        least + radii,
        (-np.inf if has_depth else 0.0) + radii,
    )


def _at_ball(centre: Vector, place: Vector) -> Matrix:
    """Return the pose of a sphere, which need not be turned, in an element."""
    return (
        Pose(IDENTITY.rotation, subtract(three(centre), three(place)))
        .matrix()[:3]
        .tolist()
    )


def _at_element(X_cloud: Matrix, place: Vector, *, cloud: int) -> Matrix:
    """Return the pose of B in A, of which one is an element at a place."""
    X = Pose.from_matrix(X_cloud)
    if cloud == 0:
        position: Vector3 = subtract(X.position, three(place))
    else:
        position = X @ three(place)
    return Pose(X.rotation, position).matrix()[:3].tolist()


def _sought(is_open: Number, exactly: Number = 1.0) -> Number:
    return is_open * exactly


def _found(
    is_open: Number, is_sought: Number, bound: Number, nearest: Number, away: Number
) -> Number:
    # Nothing is known where the pose is NaN, or a search is not wanted.
    value = select(is_sought > 0.0, nearest, bound)
    is_known = (away < np.inf) & (is_sought >= is_open)
    return select(is_known, value, np.nan)


def _unchosen(away: Number) -> Vector3:
    unknown = 0.0 * away + np.nan
    return unknown, unknown, unknown


def _moved(  # noqa: PLR0913, PLR0917
    value: Number,
    on_a: Vector,
    on_b: Vector,
    chosen: Vector,
    is_open: Number,
    is_sought: Number,
    bound: Number,
    nearest: Number,
    away: Number,
    *,
    cloud: int,
) -> tuple[Number, Vector, Vector]:
    """Return the separation from the cloud, of that from its nearest element."""
    # What is not nearer than wanted has no points.
    points = (on_a, on_b)
    if cloud == 0:
        points = tuple(add(three(p), three(chosen)) for p in points)
    is_known = (value > -np.inf) & (value < np.inf)
    far = _found(is_open, is_sought, bound, nearest, away)
    return select(is_known, value, far), points[0], points[1]


# The tables of a cloud


@final
@dataclass(frozen=True, slots=True)
class CloudElements:
    """The elements of a cloud, equal for clouds whose centres are the same."""

    kind: type[Cloud]
    geometry: tuple[Any, ...]
    centres: Array = field(compare=False)

    @classmethod
    def of(cls, cloud: Cloud) -> Self:
        """Return those of a cloud."""
        return cls(type(cloud), cloud.geometry, cloud.centres)


class Grid(NamedTuple):
    """Cells around the centres of elements, in the cloud's frame.

    Attributes:
        corner: The least corner of the grid [m], shape (3,).
        cell: The side of its cells [m].
        counts: How many there are along each axis, shape (3,).
        distances: Of the middle of each cell from the nearest centre [m], shape (c,).
    """

    corner: Array
    cell: float
    counts: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]


def cloud_tables(
    cloud: Cloud, columns: PairColumns, dtype: np.dtype[Any]
) -> dict[str, npt.NDArray[Any]]:
    """Return the records of `columns.cloud_tables`, packed.

    They are made once for all clouds that have the same centres, and those of the last
    few are kept.
    """
    elements, element = CloudElements.of(cloud), cloud.element
    tree, grid = _tree(elements), _grid(elements)
    # Distances of cells are rounded, and so are sums with them.
    size = max(float(np.abs([tree.lower, tree.upper]).max()), grid.cell)
    error = SINGLE * size
    reach = element.bounding_sphere.radius
    record: dict[Port, Any] = {
        columns.grid_lower: [grid.corner],
        columns.grid_least: [tree.lower],
        columns.grid_upper: [tree.upper],
        columns.grid_cell: [grid.cell],
        columns.grid_scale: [1.0 / grid.cell],
        columns.grid_counts: [grid.counts],
        columns.outer: [reach + error],
        columns.inner: [min(_half_width(element), reach) - error],
    }
    table = columns.cloud_grid
    return {
        columns.cloud_tree.name: _tree_records(elements, dtype),
        columns.cloud_cells.name: _cell_records(elements, dtype),
        table.name: table.pack({port.name: x for port, x in record.items()}, {}, dtype),
    }


def _half_width(element: Primitive) -> float:
    """Return the radius of the ball in an element."""
    lower, upper = np.array(element.bounding_box())
    return 0.5 * float((upper - lower).min())


@lru_cache(KEPT)
def _tree(elements: CloudElements) -> BallTree:
    return ball_tree(elements.centres)


@lru_cache(2 * KEPT)
def _tree_records(elements: CloudElements, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    columns, tree = GridColumns(), _tree(elements)
    table = columns.cloud_tree
    packed = table.pack({columns.cloud_balls.name: tree.balls}, {}, dtype)
    # Records begin at lines of the cache.
    room = np.zeros(packed.nbytes + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    aligned = room[start : start + packed.nbytes].view(packed.dtype)
    aligned[:] = packed
    aligned.flags.writeable = False
    return aligned


@lru_cache(2 * KEPT)
def _cell_records(elements: CloudElements, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    columns = GridColumns()
    values = {columns.cell_distance.name: _grid(elements).distances}
    return columns.table("cloud_cells", columns.cell_distance).pack(values, {}, dtype)


@lru_cache(KEPT)
def _grid(elements: CloudElements) -> Grid:
    tree = _tree(elements)
    most = min(MOST_CELLS, CELLS_PER_ELEMENT * len(elements.centres))
    sides = np.maximum(tree.upper - tree.lower, 0.0)
    # The smallest cells of which there are not too many: as large as the volume says,
    # or larger where the cloud is flat.
    longest = max(float(sides.max()), LEAST_SIDE)
    cell = longest / most
    while np.prod(counts := np.floor(sides / cell) + 1.0) > most:
        cell *= 1.1
    counts = counts.astype(np.int64)
    corner = 0.5 * (tree.lower + tree.upper) - 0.5 * cell * counts
    places = np.unravel_index(np.arange(int(counts.prod())), counts.tolist())
    points = corner + cell * (np.stack(places, axis=1) + 0.5)
    records = _tree_records(elements, SINGLE_TYPE)
    # About, then those exactly that are near, where the answer matters most.
    tables = {GridColumns().cloud_tree.name: records}
    about, exactly = (_nearest_centre(part).bound(tables, ()) for part in (PART, 1.0))
    middles = points.astype(np.float32)
    distances: Any = about(middles, np.full(len(points), np.inf, np.float32))
    near = np.flatnonzero(distances <= FAR * cell)
    distances[near] = exactly(middles[near], distances[near])
    return Grid(corner, cell, counts, distances)


@lru_cache(2)
def _nearest_centre(part: float) -> CompiledPipeline:
    """Return the code of the distance of points from the nearest centre.

    It takes points and a distance that is not below the result; see `Nearest` for the
    part.
    """
    columns = GridColumns()
    stage = columns.stage
    search = nearest(
        columns.cloud_tree,
        columns.place,
        stage(_from_point, writes=columns.value),
        value=columns.value,
        least=columns.cell_distance,
        enough=columns.plenty,
        chosen=columns.chosen,
        part=part,
    )
    pipeline = Pipeline(
        "distances_of_cells",
        (columns.point, columns.most),
        (columns.cloud_tree,),
        (stage(_begin_cell), search),
        (columns.cell_distance.name,),
    )
    return compile_pipeline(pipeline, dtype=SINGLE_TYPE)


@final
class GridColumns(Columns):
    """The columns of the search for the distances of cells."""

    owner = "grids around clouds"

    point = Column("the middle of a cell", 3, unit="m")
    most = Column("what the distance is not above", unit="m")
    place = Column("centre of a ball of the tree", 3, unit="m")
    value = Column("how far it is from the point", unit="m")
    cell_distance = Column("distance from the nearest centre", unit="m")
    plenty = Column("distance at which the search ends", unit="m")
    chosen = Column("the nearest centre", 3, unit="m")
    cloud_balls = PairColumns.cloud_balls

    @property
    def cloud_tree(self) -> Table:
        """Return the table of the balls around the elements of a cloud."""
        return self.table("cloud_tree", self.cloud_balls)


class CellBeginning(NamedTuple):
    """That nothing is known of a cell."""

    cell_distance: Number
    plenty: Number
    chosen: Vector


def _begin_cell(most: Number) -> CellBeginning:
    return CellBeginning(most, -np.inf, [0.0, 0.0, 0.0])


def _from_point(place: Vector, point: Vector) -> Number:
    return norm(subtract(three(place), three(point)))
