"""A plan of a cell: the outlines of its shapes from above, as SVG, DXF or numbers.

The outline of each shape is the convex hull of its corners on the floor. Round shapes
have corners, between which the outline is inside by 0.2 % of the radius at most; shapes
without end, such as floors, have no outline. Lines stand for links without shapes.
"""

from __future__ import annotations

import html
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ViewError, printable, unknown
from armillary.kinematics.state import State, bound_state, home
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.primitive import Primitive
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import HalfSpace
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.view.drawing import OF_MANIPULATORS, drawings
from armillary.view.kinds import Lines
from armillary.view.result_file import check_target, write_result
from armillary.view.surfaces import Surfaces

__all__ = ["FrameWay", "Outline", "PlanView", "plan_view"]

Array = npt.NDArray[np.float64]
Point = tuple[float, float]

DIRECTIONS: Final = 16
"""Points within the polygon of the farthest in these directions cannot be corners."""

ENDINGS: Final = (".dxf", ".svg")
ROUNDNESS: Final = 0.002
"""How far outlines are inside round shapes, as a part of the radius."""

WIDTH: Final = 1000.0
"""Of a picture [pixels]."""
TALLEST: Final = 1.2
"""The greatest height of a picture, as a part of its width."""
MARGIN: Final = 0.06
"""Around what is drawn, as a part of its larger side."""
LABEL: Final = (70.0, 15.0)
"""The width and height that labels keep from each other [pixels]."""

DIGITS: Final = 6
"""Decimals of positions [m]: micrometres."""


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The outline of a shape from above.

    Attributes:
        manipulator: Whose it is.
        link: The link's name.
        corners: Counter-clockwise [m], at least 3.
        lowest: The height of its lowest point [m].
        highest: That of its highest.
        colour: Red, green, blue, opacity in [0, 1].
    """

    manipulator: str
    link: str
    corners: tuple[Point, ...]
    lowest: float
    highest: float
    colour: tuple[float, float, float, float] = OF_MANIPULATORS[0]


class FrameWay(msgspec.Struct, frozen=True, kw_only=True):
    """The way of a frame from above.

    Attributes:
        name: Of the frame.
        points: Where it goes [m].
    """

    name: str
    points: tuple[Point, ...]


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """A cell from above: x to the right and y up.

    Attributes:
        name: Of the cell.
        outlines: Those of shapes, lower ones first.
        sticks: Lines that stand for links without shapes, by their ends.
        ways: Those of frames.
        notes: What could not be drawn.
    """

    name: str
    outlines: tuple[Outline, ...]
    sticks: tuple[tuple[Point, Point], ...] = ()
    ways: tuple[FrameWay, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return the least x and y and the greatest of what is drawn [m]."""
        parts: list[Sequence[Point]] = [each.corners for each in self.outlines]
        parts += [*self.sticks, *(way.points for way in self.ways)]
        points = np.array([point for part in parts for point in part] or [(0.0, 0.0)])
        lower, upper = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        return lower[0], lower[1], upper[0], upper[1]

    @property
    def svg(self) -> str:
        """Return it as an SVG picture, with a grid, in which names are escaped."""
        return "\n".join(_svg(self))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, `.svg` or `.dxf`.

        In DXF positions are in metres, each manipulator has a layer of its name, and
        ways are in the layer `ways`. It needs ezdxf: pip install 'armillary[dxf]'.

        Raises:
            UnknownName: The file has another ending.
            ViewError: It cannot be written, or ezdxf is not installed.
        """
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise unknown("format of plans", ending or os.fspath(path), ENDINGS)
        check_target(path, "cell.svg")
        content = self.svg.encode() + b"\n" if ending == ".svg" else _dxf(self)
        write_result(path, content)


def plan_view(
    cell: Workcell,
    state: State | None = None,
    *,
    ways: Mapping[str, npt.ArrayLike] | None = None,
    meshes: MeshSource | None = None,
) -> PlanView:
    """Return a plan of a cell: the outlines of its shapes from above.

    Shapes are the visual ones, or those for collisions where no link has such.

    Args:
        cell: What is drawn.
        state: The state of the cell; home by default.
        ways: Positions of frames to draw as lines, by name: [m], shape (k, 2 or 3).
        meshes: What reads the files of its meshes; by default that of the cell.

    Raises:
        StateError: The state is not one of this cell.
        ModelError: A way is not a list of finite points.
    """
    now = home(cell) if state is None else bound_state(cell, state)
    surfaces = Surfaces(meshes, lambda: 1.0)
    has_visuals = any(link.visuals for link in cell.links)
    frames: list[FrameRef] = []
    drawn: list[tuple[int, Array, Any]] = []
    for k, link in enumerate(cell.links):
        otherwise = OF_MANIPULATORS[cell.owners[k] % len(OF_MANIPULATORS)]
        for shape in link.visuals if has_visuals else link.collision_shapes:
            points = _corners(surfaces, shape, otherwise)
            if len(points):
                frames.append(FrameRef(k, link.primary @ shape.pose))
                drawn.append((k, points, shape.colour or otherwise))
    poses = poses_of(now.tree, now.positions.tolist(), frames, IN_WORLD)
    outlines: list[Outline] = []
    for (k, points, colour), pose in zip(drawn, poses, strict=True):
        placed = points @ np.array(pose.rotation).T + np.array(pose.position)
        corners = convex_outline(placed[:, :2])
        if np.isfinite(placed).all() and len(corners) > 2:
            outlines.append(
                Outline(
                    manipulator=cell.manipulators[cell.owners[k]].name,
                    link=cell.links[k].name,
                    corners=_points(corners),
                    lowest=float(placed[:, 2].min()),
                    highest=float(placed[:, 2].max()),
                    colour=colour,
                )
            )
    return PlanView(
        name=cell.name,
        outlines=tuple(sorted(outlines, key=lambda each: each.highest)),
        sticks=tuple(_sticks(cell, now, meshes)),
        ways=tuple(_way(name, points) for name, points in (ways or {}).items()),
        notes=tuple(surfaces.notes),
    )


def _corners(surfaces: Surfaces, shape: Shape, colour: Colour) -> Array:
    """Return points whose convex hull is that of a shape [m], none of what is endless.

    Round shapes have more than are drawn elsewhere.
    """
    if isinstance(shape, Primitive) and not isinstance(shape, HalfSpace):
        radius = shape.bounding_sphere.radius
        if radius > 0.0:
            return shape.triangles(ROUNDNESS * radius).vertices
    return surfaces.of(shape, colour).points


def _sticks(
    cell: Workcell, state: State, meshes: MeshSource | None
) -> Iterator[tuple[Point, Point]]:
    """Yield the lines that stand for links without shapes, and rods."""
    found = drawings(cell, meshes)
    items = [item for item in found.items if item.name.endswith("/sticks")]
    frames = [FrameRef(item.link, item.pose) for item in items]
    poses = poses_of(state.tree, state.positions.tolist(), frames, IN_WORLD)
    for item, pose in zip(items, poses, strict=True):
        if isinstance(item.what, Lines):
            R, p = np.array(pose.rotation), np.array(pose.position)
            ends = item.what.points.astype(np.float64) @ R.T + p
            for a, b in map(_points, ends):
                if a != b:
                    yield a, b
    for rod in found.rods:
        ends = [cell.frame(name) for name in rod]
        both = poses_of(state.tree, state.positions.tolist(), ends, IN_WORLD)
        a, b = _points(np.array([pose.position for pose in both]))
        yield a, b


def convex_outline(points: Array) -> Array:
    """Return the corners of the convex hull of points in a plane, counter-clockwise.

    By Andrew's monotone chain (Information Processing Letters 9, 1979). Where all
    points are on a line there are two or fewer.

    points: Shape (n, 2).
    """
    angles = np.arange(DIRECTIONS) * (2.0 * np.pi / DIRECTIONS)
    ways = np.stack([np.cos(angles), np.sin(angles)])
    far = points[np.argmax(points @ ways, axis=0)]
    a, side = far, np.roll(far, -1, axis=0) - far
    # Left of all sides is inside; a side of no length has nobody to its left.
    left = side[:, 0] * (points[:, None, 1] - a[:, 1]) - side[:, 1] * (
        points[:, None, 0] - a[:, 0]
    )
    is_inside = (left[:, (side != 0.0).any(axis=1)] > 0.0).all(axis=1)
    candidates = points if is_inside.all() else points[~is_inside]
    rows = np.unique(candidates, axis=0).tolist()  # by x, then by y
    halves = [_half(rows), _half(rows[::-1])]
    return np.array(halves[0][:-1] + halves[1][:-1] or rows)


def _half(rows: list[list[float]]) -> list[list[float]]:
    """Return the lower half of a hull, of points from left to right."""
    chain: list[list[float]] = []
    for x, y in rows:
        while len(chain) > 1:
            (ax, ay), (bx, by) = chain[-2:]
            if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                break
            chain.pop()
        chain.append([x, y])
    return chain


def _points(points: Array) -> tuple[Point, ...]:
    rows = np.round(points[:, :2], DIGITS) + 0.0
    return tuple((x, y) for x, y in rows.tolist())


def _way(name: str, points: npt.ArrayLike) -> FrameWay:
    array = np.array(points, np.float64)
    if array.ndim != 2 or array.shape[1] not in {2, 3} or not np.isfinite(array).all():
        raise ModelError(
            f"The way of {name!r} is finite points, of shape (k, 2 or 3), not "
            f"{array.shape}."
        )
    return FrameWay(name=name, points=_points(array))


# Pictures


class _Sheet(NamedTuple):
    """The part of the plane that a drawing shows.

    Attributes:
        left: The least x [m].
        bottom: The least y [m].
        right: The greatest x [m].
        top: The greatest y [m].
        scale: Units of the drawing for a metre.
    """

    left: float
    bottom: float
    right: float
    top: float
    scale: float

    @classmethod
    def around(cls, box: tuple[float, float, float, float]) -> Self:
        """Return what shows a box, with a margin."""
        left, bottom, right, top = box
        rim = MARGIN * max(right - left, top - bottom, 0.1)
        left, bottom, right, top = left - rim, bottom - rim, right + rim, top + rim
        scale = min(WIDTH / (right - left), TALLEST * WIDTH / (top - bottom))
        return cls(left, bottom, right, top, scale)

    @property
    def size(self) -> Point:
        """Return the width and the height of the drawing."""
        return self.at(self.right, self.bottom)

    @property
    def step(self) -> float:
        """Return the distance of lines of the grid [m]."""
        widest = max(self.right - self.left, self.top - self.bottom)
        return _round_step(widest / 12.0)

    def at(self, x: float, y: float) -> Point:
        """Return where a point is in the drawing, whose second axis points down."""
        return (x - self.left) * self.scale, (self.top - y) * self.scale

    def path(self, points: Sequence[Point]) -> str:
        """Return points as an attribute of a line."""
        places = (self.at(*each) for each in points)
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in places)


def _svg(plan: PlanView) -> list[str]:
    """Return the elements of a drawing, what is painted over others behind these."""
    sheet = _Sheet.around(plan.box)
    width, height = sheet.size
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" role="img" font-family="sans-serif" font-size="13">',
        f"<title>Plan of {_text(plan.name)}</title>",
        f'<rect width="{width:.2f}" height="{height:.2f}" fill="#fbfcfd"/>',
        *_svg_grid(sheet),
        *_svg_outlines(sheet, plan),
        *_svg_ways(sheet, plan),
        *_svg_names(sheet, plan),
        *_svg_scale(sheet),
        "</svg>",
    ]


def _svg_grid(sheet: _Sheet) -> Iterator[str]:
    """Yield the lines of the grid, of which those of the axes are darker."""
    left, bottom, right, top, _ = sheet
    step = sheet.step
    for low, high, is_x in ((left, right, True), (bottom, top, False)):
        for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1):
            value = k * step
            ends = (
                [(value, bottom), (value, top)]
                if is_x
                else [(left, value), (right, value)]
            )
            (x1, y1), (x2, y2) = (sheet.at(*end) for end in ends)
            colour = "#c4cdd6" if k == 0 else "#e6eaee"
            yield (
                f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" '
                f'stroke="{colour}"/>'
            )


def _svg_outlines(sheet: _Sheet, plan: PlanView) -> Iterator[str]:
    """Yield the outlines of links, which have their heights as titles."""
    for each in plan.outlines:
        red, green, blue, _ = each.colour
        fill = "#" + "".join(f"{round(255 * c):02x}" for c in (red, green, blue))
        yield (
            f'<polygon points="{sheet.path(each.corners)}" fill="{fill}" '
            'fill-opacity="0.85" '
            f'stroke="#39434d" stroke-width="1"><title>{_text(each.manipulator)}/'
            f"{_text(each.link)}, {each.lowest:.3f} to {each.highest:.3f} m high"
            "</title></polygon>"
        )


def _svg_ways(sheet: _Sheet, plan: PlanView) -> Iterator[str]:
    """Yield links without shapes as sticks, and ways of frames."""
    for ends in plan.sticks:
        yield (
            f'<polyline points="{sheet.path(ends)}" stroke="#39434d" stroke-width="4" '
            'stroke-linecap="round"/>'
        )
    for way in plan.ways:
        yield (
            f'<polyline points="{sheet.path(way.points)}" fill="none" '
            'stroke="#c2352b" '
            f'stroke-width="2"><title>{_text(way.name)}</title></polyline>'
        )


def _svg_names(sheet: _Sheet, plan: PlanView) -> Iterator[str]:
    """Yield the names of manipulators, those that would meet below each other."""
    middles: dict[str, list[Point]] = {}
    for each in plan.outlines:
        middles.setdefault(each.manipulator, []).append(_middle(each.corners))
    labels: list[Point] = []
    for name, points in middles.items():
        x, y = sheet.at(*np.mean(points, axis=0).tolist())
        while any(abs(x - u) < LABEL[0] and abs(y - v) < LABEL[1] for u, v in labels):
            y += LABEL[1]
        labels.append((x, y))
        yield (
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="#1d2630" '
            f'stroke="#fff" stroke-width="3" paint-order="stroke">{_text(name)}</text>'
        )


def _svg_scale(sheet: _Sheet) -> list[str]:
    """Return the bar that is as long as a step of the grid, and its length."""
    x, y = 14.0, sheet.size[1] - 14.0
    length = sheet.step * sheet.scale
    return [
        f'<path d="M{x} {y - 5} v5 h{length:.2f} v-5" fill="none" '
        'stroke="#39434d" stroke-width="1.5"/>',
        f'<text x="{x + 0.5 * length:.1f}" y="{y - 7:.1f}" '
        f'text-anchor="middle" fill="#39434d">{sheet.step:g} m</text>',
    ]


def _text(name: str) -> str:
    return html.escape(printable(name))


def _middle(corners: Sequence[Point]) -> Point:
    box = np.array(corners)
    x, y = (0.5 * (box.min(axis=0) + box.max(axis=0))).tolist()
    return x, y


def _round_step(least: float) -> float:
    """Return the least of 1, 2 and 5 times powers of ten that is not less."""
    power = 10.0 ** np.floor(np.log10(least))
    return next(float(k * power) for k in (1, 2, 5, 10) if k * power >= least)


def _dxf(plan: PlanView) -> bytes:
    try:
        ezdxf: Any = import_module("ezdxf")
    except ImportError as error:
        raise ViewError(
            "DXF needs ezdxf: pip install 'armillary[dxf]'; .svg needs nothing."
        ) from error
    drawing: Any = ezdxf.new("R2010", units=ezdxf.units.M)
    space: Any = drawing.modelspace()
    names: dict[str, str] = {}
    for each in plan.outlines:
        layer = names.setdefault(each.manipulator, _layer(each.manipulator, names))
        if layer not in drawing.layers:
            drawing.layers.add(layer)
        space.add_lwpolyline(
            each.corners,
            close=True,
            dxfattribs={"layer": layer, "elevation": each.highest},
        )
    for end in plan.sticks:
        space.add_lwpolyline(end)
    if plan.ways:
        drawing.layers.add("ways", color=1)
    for way in plan.ways:
        space.add_lwpolyline(way.points, dxfattribs={"layer": "ways"})
    text = io.StringIO()
    drawing.write(text)
    return text.getvalue().encode(drawing.output_encoding, "replace")


def _layer(name: str, taken: Mapping[str, str]) -> str:
    """Return a layer for a manipulator; layers have fewer letters than names."""
    bare = "".join(c if c.isalnum() or c in "-_ " else "_" for c in printable(name))
    layer, k = bare[:200] or "_", 2
    while layer in taken.values() or layer == "ways":
        layer, k = f"{bare[:200]}_{k}", k + 1
    return layer
