"""Judges of planned motions that share no code with checks of collision.

Poses of links are products, in NumPy and float64, of what the model says of its joints.
Cells of spheres are judged by distances in NumPy, at thousands of samples of each edge;
others by coal, whose broad phase Pinocchio runs, at small steps.
"""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.model.shape import Shape
from armillary.shapes import Box, Capsule, Mesh, Sphere
from benchmarks.distances import peer_shape
from benchmarks.peer_checks import PeerChecks

Array = npt.NDArray[np.float64]

STEP = float(np.deg2rad(0.1))
"""Between two states that coal is asked for [m or rad]."""
SAMPLES = 4000
BLOCK = 40
"""Neighbouring samples of a sphere, which one ball encloses before each is tested."""


class LinkPoses:
    """Poses of the links of a cell at home bases, by products in NumPy."""

    def __init__(self, cell: arm.Cell) -> None:
        """Prepare for a cell without closed loops and coupled joints."""
        work = cell.workcell
        assert not work.loop_system.passive, "links of loops are not placed here"
        self.names = [f"{m.name}/{k.name}" for m in cell.manipulators for k in m.links]
        rows = {name: k for k, name in enumerate(self.names)}
        coordinates = {link: k for k, link in enumerate(work.joints.links)}
        self._links: list[tuple[int | None, Array, Any, int | None]] = []
        self._order: list[int] = []
        placed: set[int | None] = {None}
        for m, base in zip(cell.manipulators, work.base_frames, strict=True):
            for link in m.links:
                row = rows[f"{m.name}/{link.name}"]
                parent, before = (
                    None if base.link < 0 else base.link,
                    base.pose.matrix(),
                )
                if link.parent is not None:
                    parent, before = rows[f"{m.name}/{link.parent}"], np.eye(4)
                self._links.append((parent, before, link.joint, coordinates.get(row)))
        while len(self._order) < len(self._links):
            for row, (parent, *_) in enumerate(self._links):
                if row not in placed and parent in placed:
                    placed.add(row)
                    self._order.append(row)

    def __call__(self, Q: Array) -> Array:
        """Return poses in the world: (k, n) -> (k, links, 4, 4)."""
        X = np.zeros((len(Q), len(self._links), 4, 4))
        for row in self._order:
            parent, before, joint, number = self._links[row]
            at = np.eye(4) if parent is None else X[:, parent]
            moved = _moved(joint, np.zeros(1) if number is None else Q[:, number])
            X[:, row] = at @ before @ moved
        return X


def _moved(joint: Any, q: Array) -> Array:
    """Return the poses of a joint, (k, 4, 4), by Rodrigues' formula where it turns."""
    if not isinstance(joint, arm.joints.Revolute):
        return joint.precursor.matrix() @ np.array(
            [joint.pose(float(each)).matrix() for each in q]
        )
    x, y, z = joint.axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    s, c = np.sin(q)[:, None, None], np.cos(q)[:, None, None]
    X = np.tile(np.eye(4), (len(q), 1, 1))
    X[:, :3, :3] = np.eye(3) + s * K + (1.0 - c) * (K @ K)
    return joint.precursor.matrix() @ X


def samples(path: Array, step: float = STEP) -> Array:
    """Return rows along way points, no joint moving farther than a step, (k, n)."""
    rows = [path[:1]]
    for a, b in pairwise(path):
        count = max(1, int(np.ceil(np.abs(b - a).max() / step)))
        rows.append(a + np.linspace(0.0, 1.0, count + 1)[1:, None] * (b - a))
    return np.concatenate(rows)


class CoalJudge:
    """Tells which states touch, by coal: every link that has shapes flies freely."""

    def __init__(self, cell: arm.Cell, check: CollisionCheck) -> None:
        """Make the same shapes, meshes as hulls, and the same pairs."""
        pin: Any = import_module("pinocchio")
        self._poses = LinkPoses(cell)
        model, geometry = pin.Model(), pin.GeometryModel()
        links = {
            f"{m.name}/{link.name}": link for m in cell.manipulators for link in m.links
        }
        self._rows: list[int] = []
        objects: dict[str, list[int]] = {}
        for name in dict.fromkeys(each for pair in check.pairs for each in pair):
            here = pin.SE3.Identity()
            joint = model.addJoint(0, pin.JointModelFreeFlyer(), here, name)
            self._rows.append(self._poses.names.index(name))
            for k, shape in enumerate(links[name].collision_shapes):
                solid: Any = shape
                if isinstance(shape, Mesh):
                    assert cell.meshes is not None, "it was loaded from files"
                    solid = cell.meshes.hull(shape)
                at = pin.SE3(shape.pose.matrix())
                made = pin.GeometryObject(f"{name}{k}", joint, at, peer_shape(solid))
                objects.setdefault(name, []).append(geometry.addGeometryObject(made))
        for a, b in check.pairs:
            for i in objects[a]:
                for j in objects[b]:
                    geometry.addCollisionPair(pin.CollisionPair(i, j))
        self._checks = PeerChecks(model, geometry)

    def touching(self, Q: Array) -> npt.NDArray[np.bool_]:
        """Return which states touch: (k, n) -> (k,)."""
        X = self._poses(Q)[:, self._rows]
        given = np.concatenate([X[..., :3, 3], _quaternions(X[..., :3, :3])], axis=-1)
        rows = given.reshape(len(Q), -1)
        return np.array([self._checks.touches(row) for row in rows])


def _quaternions(R: Array) -> Array:
    """Return unit quaternions x y z w of rotations, shape (..., 3, 3) -> (..., 4)."""
    rotation: Any = import_module("scipy.spatial.transform").Rotation
    return rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat().reshape(*R.shape[:-2], 4)


class SphereJudge:
    """Tells how deep links in spheres touch along a path, in NumPy.

    Links that move have spheres; what stands still has spheres, capsules or boxes.
    """

    def __init__(self, cell: arm.Cell, check: CollisionCheck) -> None:
        """Take the shapes and the pairs of links of a check."""
        self._poses = LinkPoses(cell)
        names = self._poses.names
        home = self._poses(cell.home.q[None])[0]
        moving = {names.index(n) for n in names if _moves(self._poses, names.index(n))}
        first: dict[int, list[int]] = {}
        centres: list[Any] = []
        radii: list[float] = []
        fixed: dict[int, list[tuple[Shape, Array]]] = {}
        every = [link for m in cell.manipulators for link in m.links]
        for row, link in enumerate(every):
            for shape in link.collision_shapes:
                if row in moving or (isinstance(shape, Sphere) and row not in fixed):
                    assert isinstance(shape, Sphere), "links that move are in spheres"
                    first.setdefault(row, []).append(len(radii))
                    centres.append(shape.pose.position)
                    radii.append(shape.radius)
                else:
                    X = home[row] @ shape.pose.matrix()
                    fixed.setdefault(row, []).append((shape, X))
        self._spheres, self._centre, self._radius = (
            first,
            np.array(centres),
            np.array(radii),
        )
        pairs: list[tuple[int, int]] = []
        self._solids: list[tuple[list[int], Shape, Array]] = []
        for a, b in check.pairs:
            i, j = sorted(map(names.index, (a, b)), key=lambda row: row in fixed)
            pairs += [(k, m) for k in first.get(i, ()) for m in first.get(j, ())]
            for shape, X in fixed.get(j, ()):
                self._solids.append((first[i], shape, X))
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2)

    def depth(self, path: Array, count: int = SAMPLES) -> float:
        """Return the greatest depth along way points [m], below 0 if all is free.

        Args:
            path: Way points, shape (k, n).
            count: How many samples each edge has, its ends among them.
        """
        worst = -np.inf
        for a, b in pairwise(path):
            Q = a + np.linspace(0.0, 1.0, count)[:, None] * (b - a)
            worst = max(worst, self._depth(Q))
        return worst

    def _depth(self, Q: Array) -> float:
        X, radius = self._poses(Q), self._radius
        points = np.empty((len(Q), len(radius), 3))
        for row, chosen in self._spheres.items():
            R, p = X[:, row, :3, :3], X[:, row, :3, 3]
            turned = self._centre[chosen] @ R.transpose(0, 2, 1)
            points[:, chosen] = turned + p[:, None]
        # Blocks of neighbours; the last sample fills the last one.
        rest = np.repeat(points[-1:], -len(points) % BLOCK, axis=0)
        blocks = np.concatenate([points, rest]).reshape(-1, BLOCK, *points.shape[1:])
        balls = blocks.mean(axis=1)
        reach = np.linalg.norm(blocks - balls[:, None], axis=-1).max(axis=1)
        worst = -np.inf
        if len(self._pairs):
            i, j = self._pairs.T
            apart = np.linalg.norm(balls[:, i] - balls[:, j], axis=-1)
            near = apart < reach[:, i] + reach[:, j] + radius[i] + radius[j]
            for pair in np.flatnonzero(near.any(axis=0)).tolist():
                m, n = self._pairs[pair]
                rows = near[:, pair]
                gap = np.linalg.norm(blocks[rows, :, m] - blocks[rows, :, n], axis=-1)
                worst = max(worst, float(radius[m] + radius[n] - gap.min()))
        for chosen, shape, X_solid in self._solids:
            gap = _distance(balls[:, chosen], shape, X_solid)
            near = gap < reach[:, chosen] + radius[chosen]
            for k in np.flatnonzero(near.any(axis=0)).tolist():
                rows = blocks[near[:, k], :, chosen[k]]
                least = float(_distance(rows, shape, X_solid).min())
                worst = max(worst, float(radius[chosen[k]]) - least)
        return worst


def _moves(poses: LinkPoses, row: int) -> bool:
    """Return whether joints move a link, by where it is at two states."""
    count = 1 + max(
        (number for *_, number in poses._links if number is not None), default=-1
    )
    two = poses(np.stack([np.zeros(count), np.full(count, 0.1)]))[:, row]
    return not np.array_equal(two[0], two[1])


def _distance(points: Array, shape: Shape, X: Array) -> Array:
    """Return distances of points from a solid, 0 inside: (..., 3) -> (...)."""
    local = (points - X[:3, 3]) @ X[:3, :3]
    match shape:
        case Sphere():
            return np.linalg.norm(local, axis=-1) - shape.radius
        case Capsule():
            half = 0.5 * shape.length
            local[..., 2] -= local[..., 2].clip(-half, half)
            return np.linalg.norm(local, axis=-1) - shape.radius
        case Box():
            out = np.abs(local) - 0.5 * np.array(shape.size)
            return np.linalg.norm(out.clip(0.0), axis=-1)
        case _:
            raise NotImplementedError(type(shape))
