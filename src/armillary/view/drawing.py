"""What is drawn of a cell: shapes, frames, names, joints and bounding volumes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import printable, shortened
from armillary.kinematics.speed_bounds import ranges_of
from armillary.limits import DRAWN_FRAMES, DRAWN_JOINTS, DRAWN_VOLUMES
from armillary.model.cloud import Cloud
from armillary.model.frame import FrameRef
from armillary.model.geometry.bounding import (
    BoundingBox,
    BoundingSphere,
    box_around,
    sphere_around,
)
from armillary.model.geometry.triangles import Triangles
from armillary.model.joint import Joint
from armillary.model.link import Link
from armillary.model.link_poses import poses_of
from armillary.model.loops.loop import Rod
from armillary.model.primitive import Primitive
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import HalfSpace, Sphere
from armillary.model.shapes.mesh import MeshSource
from armillary.model.tree import Tree
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.view.joint_symbols import joint_symbol, sampled
from armillary.view.kinds import (
    FARTHEST,
    Axes,
    Drawing,
    Drawings,
    DrawnSurface,
    Label,
    Layer,
    Lines,
)
from armillary.view.surfaces import TOLERANCE, Sketch, Surfaces, lines

__all__ = ["OF_MANIPULATORS", "drawings"]

Array = npt.NDArray[np.float64]
Ranges: TypeAlias = tuple[tuple[float, float], ...]

MOST_FRAMES: Final = DRAWN_FRAMES.most
MOST_JOINTS: Final = DRAWN_JOINTS.most
MOST_BOUNDED: Final = DRAWN_VOLUMES.most

COLOURS: Final[dict[Layer, Colour]] = {
    Layer.VISUALS: (0.70, 0.73, 0.77, 1.0),
    Layer.COLLISIONS: (0.95, 0.55, 0.20, 0.5),
    Layer.SPHERES: (0.30, 0.60, 0.95, 0.2),
    Layer.BOXES: (0.20, 0.50, 0.85, 1.0),
    Layer.JOINTS: (0.25, 0.28, 0.33, 1.0),
}

OF_MANIPULATORS: Final[tuple[Colour, ...]] = (
    (0.70, 0.73, 0.77, 1.0),
    (0.94, 0.62, 0.28, 1.0),
    (0.40, 0.58, 0.74, 1.0),
    (0.78, 0.69, 0.56, 1.0),
    (0.53, 0.68, 0.50, 1.0),
)
"""Colours of manipulators whose links have collision shapes only, by turns."""


def drawings(cell: Workcell, meshes: MeshSource | None) -> Drawings:
    """Return what is drawn of a cell, each thing fixed to a link.

    What cannot be drawn, or has been simplified, is in its notes; no shape is refused.

    meshes: What reads meshes, such as `cell.meshes`.
    """
    return _Artist(cell, meshes).drawings()


class _DrawnBody(NamedTuple):
    """The bounds of a shape, in the frame of its link.

    Attributes:
        points: The points of its drawn surface [m], shape (n, 3).
        box: Around it.
        sphere: The smallest around it, None where only its points are known.
    """

    points: Array
    box: BoundingBox
    sphere: BoundingSphere | None


class _Artist:
    """Draw one cell, by a method for each layer."""

    def __init__(self, cell: Workcell, meshes: MeshSource | None) -> None:
        self._cell = cell
        self._tree = Tree.of(cell)
        self._names = [self._tree.name(k) for k in range(len(cell.links))]
        self._surfaces = Surfaces(meshes, lambda: self._size)
        self._bodies: dict[Shape, _DrawnBody | None] = {}
        self._symbols: dict[Any, Lines | None] = {}
        self._notes: dict[str, None] = {}
        self._has_visuals = any(link.visuals for link in cell.links)

    def drawings(self) -> Drawings:
        # Sticks depend on which links have shapes, so these come first.
        shapes = list(self._shapes())
        items = [
            *shapes,
            *self._sticks(shapes),
            *self._capped(self._bounds(), MOST_BOUNDED, "bounding volumes"),
            *self._capped(self._frames(), 2 * MOST_FRAMES, "frames and names"),
            *self._capped(self._joints(), MOST_JOINTS, "symbols of joints"),
        ]
        notes = (*self._surfaces.notes, *self._notes)
        return Drawings(tuple(items), tuple(self._rods()), bool(shapes), notes)

    def _capped(
        self, items: Iterator[Drawing], most: int, what: str
    ) -> Iterator[Drawing]:
        """Yield the first so many, with a note where there are more."""
        yield from islice(items, most)
        if next(items, None) is not None:
            self._notes[f"Only the first {most} {what} are drawn."] = None

    def _shapes(self) -> Iterator[Drawing]:
        for k, link in enumerate(self._cell.links):
            for layer, shapes in self._layers(link):
                for row, shape in enumerate(shapes):
                    sketch = self._sketch(shape, layer, self._colour(k, layer))
                    for part, what in enumerate(sketch.things):
                        name = f"{self._names[k]}/{layer}/{row}.{part}"
                        yield Drawing(layer, k, name, link.primary @ shape.pose, what)

    def _layers(self, link: Link) -> tuple[tuple[Layer, Sequence[Shape]], ...]:
        """Return the shapes of a link with the layer of each.

        Where no link has visuals, collision shapes are drawn as such.
        """
        shapes = link.collision_shapes
        visuals = link.visuals if self._has_visuals else shapes
        return ((Layer.VISUALS, visuals), (Layer.COLLISIONS, shapes))

    def _colour(self, link: int, layer: Layer) -> Colour:
        """Return the colour of shapes of a link that have none of their own."""
        if layer is not Layer.VISUALS or self._has_visuals:
            return COLOURS[layer]
        return OF_MANIPULATORS[self._cell.owners[link] % len(OF_MANIPULATORS)]

    def _sketch(
        self, shape: Shape, layer: Layer, colour: Colour | None = None
    ) -> Sketch:
        return self._surfaces.of(
            shape, colour or COLOURS[layer], own_colours=layer is Layer.VISUALS
        )

    def _bounds(self) -> Iterator[Drawing]:
        """Yield a sphere and a box around each link's finite collision shapes."""
        for k, link in enumerate(self._cell.links):
            bodies = [
                body
                for shape in link.collision_shapes
                if (body := self._bounded(shape))
            ]
            if not bodies:
                continue
            for layer, what, pose in (
                (Layer.SPHERES, *self._ball(bodies)),
                (Layer.BOXES, _box(bodies), IDENTITY),
            ):
                name = f"{self._names[k]}/{layer}"
                yield Drawing(layer, k, name, link.primary @ pose, what)

    def _bounded(self, shape: Shape) -> _DrawnBody | None:
        """Return the bounds of a shape in the link's primary frame, None without."""
        # Bounds do not depend on name and colour: equal shapes have theirs computed
        # once.
        key = msgspec.structs.replace(shape, name="", colour=None)
        if key not in self._bodies:
            self._bodies[key] = self._body(shape)
        return self._bodies[key]

    def _body(self, shape: Shape) -> _DrawnBody | None:
        R, p = np.array(shape.pose.rotation), np.array(shape.pose.position)
        points = self._sketch(shape, Layer.COLLISIONS).points @ R.T + p
        if not len(points):
            return None
        # Formulas of primitives are exact; triangles cut off what is round.
        if isinstance(shape, Primitive | Cloud):
            centre, radius = shape.bounding_sphere
            sphere = BoundingSphere(shape.pose @ np.array(centre), radius)
            return _DrawnBody(points, shape.bounding_box(shape.pose), sphere)
        return _DrawnBody(points, box_around(points), None)

    def _ball(self, bodies: Sequence[_DrawnBody]) -> tuple[DrawnSurface, Pose]:
        """Return the smallest sphere around bodies, and where it is."""
        sphere = bodies[0].sphere
        # One primitive has its own sphere; of several bodies it is the one around their
        # points, widened by what round surfaces reach beyond their triangles.
        if len(bodies) > 1 or sphere is None:
            around = sphere_around(np.concatenate([body.points for body in bodies]))
            missed = max(_missed(body.sphere, around) for body in bodies)
            sphere = around._replace(radius=around.radius + missed)
        vertices = self._unit_ball.vertices.astype(np.float32) * np.float32(
            sphere.radius
        )
        ball = DrawnSurface(
            vertices, self._unit_ball.faces.astype(np.uint32), COLOURS[Layer.SPHERES]
        )
        return ball, Pose.translation(*sphere.centre)

    @cached_property
    def _unit_ball(self) -> Triangles:
        return Sphere(radius=1.0).triangles(TOLERANCE)

    def _frames(self) -> Iterator[Drawing]:
        """Yield the axes and the name of each frame, those of the world first."""
        # A tenth of the cell, so that axes neither hide it nor vanish in it.
        length = 0.1 * self._size
        axes = Axes(length, 0.06 * length)
        for name in self._cell.frame_names:
            link, pose = self._cell.frame(name)
            yield Drawing(Layer.FRAMES, link, f"{name}/{Layer.FRAMES}", pose, axes)
            text = Label(printable(shortened(self._own_name(name, link))))
            yield Drawing(Layer.NAMES, link, f"{name}/{Layer.NAMES}", pose, text)

    def _own_name(self, name: str, link: int) -> str:
        """Return the name of a frame without that of its manipulator."""
        cell = self._cell
        owner = f"{cell.manipulators[cell.owners[link]].name}/" if link >= 0 else ""
        return name.removeprefix(owner)

    def _joints(self) -> Iterator[Drawing]:
        """Yield the symbol of each joint, fixed to what carries it."""
        for k in range(len(self._cell.links)):
            if not self._tree.drives[k]:
                continue
            what = self._symbol_of(k)
            if what is not None:
                name = f"{self._names[k]}/{Layer.JOINTS}"
                at = self._tree.placement(k)
                yield Drawing(Layer.JOINTS, self._tree.parents[k], name, at, what)

    def _symbol_of(self, link: int) -> Lines | None:
        """Return the symbol of a joint, once for equal ones."""
        joint, ranges, home, size = self._range_of(link)
        key = joint, ranges, tuple(home)
        if key not in self._symbols:
            self._symbols[key] = joint_symbol(joint, ranges, home, size)
        return self._symbols[key]

    def _range_of(self, link: int) -> tuple[Joint, Ranges, list[float], float]:
        """Return a joint, the ranges and home of its coordinates, a symbol's size."""
        lower, upper, _ = self._cell.joints.ranges
        drives = self._tree.drives[link]
        ranges = ranges_of(drives, lambda of: (float(lower[of]), float(upper[of])))
        home = [float(each.at(self._cell.joints.home)) for each in drives]
        return self._cell.links[link].joint, ranges, home, 0.08 * self._size

    def _sticks(self, shapes: Sequence[Drawing]) -> Iterator[Drawing]:
        """Yield lines from each link to what it carries, fixed to one of the two.

        They stand for links without shapes in the layer that is shown at first, so they
        are in it. Beside shapes, manipulators without joints have none, nor links that
        are fixed to shapes, such as frames of sensors.
        """
        # The layer that is shown at first: visuals, unless there are collision shapes
        # only.
        layers = {each.layer for each in shapes}
        only_collisions = layers == {Layer.COLLISIONS}
        layer = Layer.COLLISIONS if only_collisions else Layer.VISUALS
        shaped = {each.link for each in shapes if each.layer is layer}
        owners, drives = self._cell.owners, self._tree.drives
        seen = {owners[k] for k in shaped}
        moving = {owners[k] for k, each in enumerate(drives) if each}
        carrying = self._carrying(shaped)
        for k, ends in enumerate(self._stick_ends()):
            if k in shaped or (seen and owners[k] not in moving):
                continue
            if owners[k] in seen and k not in carrying:
                continue
            # Browsers compute in float32: what lies far out is drawn at the edge, and
            # sticks without length are left out.
            near = np.clip(np.reshape(ends, (-1, 3)), -FARTHEST, FARTHEST)
            far = [end for end in near if np.linalg.norm(end) > 1e-9 * self._size]
            if far:
                points = [(np.zeros(3), end) for end in far]
                what = lines(points, COLOURS[Layer.JOINTS], width=5.0)
                name = f"{self._names[k]}/sticks"
                yield Drawing(layer, k, name, IDENTITY, what)

    def _carrying(self, shaped: Collection[int]) -> set[int]:
        """Return the links with a shape or a joint, and all that carry these."""
        parents: set[int] = set()
        for k in range(len(self._cell.links)):
            # Up the tree from each link that counts, to the first that is already
            # known.
            at = k if k in shaped or self._tree.drives[k] else -1
            while at >= 0 and at not in parents:
                parents.add(at)
                at = self._tree.parents[at]
        return parents

    def _stick_ends(self) -> Sequence[Sequence[Array]]:
        """Return where the sticks of each link end, in its outer frame [m]."""
        ends: list[list[Array]] = [[] for _ in self._cell.links]
        for k, link in enumerate(self._cell.links):
            # A stick leads from the parent to the joint, and from there, if the joint
            # does not move its own origin, to the link; fixed links are led to
            # directly.
            at = self._tree.placement(k) @ link.joint.precursor
            parent = self._tree.parents[k]
            if parent >= 0:
                ends[parent].append(np.array(at.position))
            ends[k] += [] if not self._tree.drives[k] else self._inboard(k)
            if not self._tree.drives[k] and parent >= 0:
                end = self._tree.placement(k) @ link.joint.transform(0.0)
                ends[parent].append(np.array(end.position))
            ends[k] += (
                np.array((link.primary @ frame.pose).position) for frame in link.frames
            )
        return ends

    def _inboard(self, link: int) -> list[Array]:
        """Return the origin of a joint's inner frame in the outer one, if constant."""
        joint = self._cell.links[link].joint
        start = np.array(joint.precursor.position)
        pieces = [
            np.einsum("nij,ni->nj", each.rotations, start - each.origins)
            for each in sampled(*self._range_of(link))
        ]
        if not pieces:
            return []
        points = np.concatenate(pieces)
        # A slide moves the origin, so no single stick could lead to it.
        least = 1e-9 * self._size
        return [points[0]] if np.ptp(points, axis=0).max() <= least else []

    def _rods(self) -> Iterator[tuple[str, str]]:
        for manipulator in self._cell.manipulators:
            for loop in manipulator.loops:
                if isinstance(loop, Rod):
                    yield f"{manipulator.name}/{loop.a}", f"{manipulator.name}/{loop.b}"
        for loop in self._cell.loops:
            if isinstance(loop, Rod):
                yield self._cell.qualified(loop.a), self._cell.qualified(loop.b)

    @cached_property
    def _size(self) -> float:
        """Return the length that sizes of symbols are parts of [m].

        It is the longest side of the box around the origins of all links at home, or
        the size of an ordinary shape, the median, where that is larger.
        """
        frames = [FrameRef(k, IDENTITY) for k in range(len(self._cell.links))]
        poses = poses_of(self._tree, self._cell.joints.home, frames, IN_WORLD)
        points = np.array([X.position for X in poses]).reshape(-1, 3)
        points = points[np.isfinite(points).all(axis=1)].clip(-FARTHEST, FARTHEST)
        size = float(np.ptp(points, axis=0).max()) if len(points) else 0.0
        return max(size, self._size_of_shapes) or 1.0

    @cached_property
    def _size_of_shapes(self) -> float:
        """Return the median diameter of the finite shapes [m], 0 without any."""
        diameters = [
            2.0 * self._radius(shape, layer)
            for link in self._cell.links
            for layer, shapes in self._layers(link)
            for shape in shapes
            if not isinstance(shape, HalfSpace)
        ]
        return float(np.median(diameters)) if diameters else 0.0

    def _radius(self, shape: Shape, layer: Layer) -> float:
        """Return the radius of a sphere around a finite shape [m]."""
        if isinstance(shape, Primitive | Cloud):
            return shape.bounding_sphere.radius
        points = self._sketch(shape, layer).points
        sides = np.ptp(points, axis=0) if len(points) else np.zeros(3)
        return 0.5 * float(np.linalg.norm(sides))


def _missed(sphere: BoundingSphere | None, other: BoundingSphere) -> float:
    """Return how far a round shape may reach out of a sphere around its triangles [m].

    sphere: Around the shape, None for meshes, whose triangles are exact.
    """
    if sphere is None:
        return 0.0
    # Either the exact sphere reaches out of the other, or, which is less, the chords of
    # its triangles cut off at most the tolerance they were made with.
    reach = float(np.linalg.norm(np.subtract(sphere.centre, other.centre)))
    return min(
        max(reach + sphere.radius - other.radius, 0.0), TOLERANCE * sphere.radius
    )


def _box(bodies: Sequence[_DrawnBody]) -> Lines:
    """Return the edges of the box around bodies."""
    lower = np.min([body.box.lower for body in bodies], axis=0)
    upper = np.max([body.box.upper for body in bodies], axis=0)
    return lines(_edges(lower, upper), COLOURS[Layer.BOXES])


def _edges(lower: Array, upper: Array) -> Array:
    """Return the twelve edges of a box, shape (12, 2, 3)."""
    ends = np.array([lower, upper])
    corners = np.array(
        [(ends[i, 0], ends[j, 1], ends[k, 2]) for i, j, k in np.ndindex(2, 2, 2)]
    )
    # Corners are numbered by three bits, upper or lower along x, y and z; an edge joins
    # two numbers that differ in one bit.
    pairs = [(a, a | bit) for bit in (1, 2, 4) for a in range(8) if not a & bit]
    return corners[np.array(pairs)]
