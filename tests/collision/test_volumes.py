"""Capsules around links and boxes around shapes, beside distances of the shapes."""

from __future__ import annotations

import numpy as np

import armillary as arm
from armillary.collision.shape_boxes import BoxPair, gap_of_boxes
from armillary.collision.volumes import box_around, box_records, capsule_around
from armillary.shapes import Box, Capsule, ConvexPolyhedron, Sphere, distance


def test_capsules_contain_spheres_and_touch_one_of_them():
    rng = np.random.default_rng(0)
    for count in (1, 2, 9):
        centres, radii = rng.normal(size=(count, 3)), rng.uniform(0.0, 0.4, count)
        ends, radius = capsule_around(centres, radii)
        way = ends[1] - ends[0]
        t = ((centres - ends[0]) @ way / max(way @ way, 1e-30)).clip(0.0, 1.0)
        apart = np.linalg.norm(centres - ends[0] - t[:, None] * way, axis=1)
        assert (apart + radii <= radius).all()
        assert radius - (apart + radii).max() < 1e-5


def test_boxes_contain_points_along_one_of_two_frames():
    rng = np.random.default_rng(1)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for R in (np.eye(3), turned):
        points = rng.uniform(-1.0, 1.0, (200, 3)) * (1.0, 0.3, 0.1) @ R
        centre, axes, half = box_around(points)
        along = (points - centre) @ axes.T
        assert (np.abs(along) <= half + 1e-12).all()
        assert half.prod() < 1.1 * 0.03


def test_gaps_of_boxes_are_no_more_than_distances():
    rng = np.random.default_rng(2)
    hull = ConvexPolyhedron(vertices=rng.normal(size=(20, 3)) * (0.3, 0.1, 0.05))
    solids = [
        hull,
        Box(size=(0.5, 0.2, 0.02)),
        Capsule(radius=0.05, length=0.4),
        Sphere(radius=0.1),
    ]
    cell = arm.Cell()
    for k, solid in enumerate(solids):
        link = arm.Link(name="body", collisions=[solid])
        cell = cell.add(arm.Manipulator(name=f"m{k}", links=[link]), bolted=False)
    tight = 0
    for _ in range(40):
        poses = {
            f"m{k}": arm.Pose.from_rpy(
                *rng.uniform(-3.0, 3.0, 3), rng.uniform(-0.5, 0.5, 3)
            )
            for k in range(len(solids))
        }
        state = cell.home.place_all(poses)
        pairs = cell.collision(state)._placed
        each = pairs.tables.ordered_shapes
        columns = _Names()
        fields = box_records(columns, pairs, each)
        for row, (a, b) in enumerate(each.tolist()):
            given = [fields[name][row] for name in BoxPair._fields[2:]]
            X = np.eye(4)[:3]
            gap = float(gap_of_boxes(BoxPair(X, X, *given)))
            shapes = [pairs.tables.pairs.shapes[k] for k in (a, b)]
            sides = [(each.shape, poses[each.link.split("/")[0]]) for each in shapes]
            (one, X_A), (other, X_B) = sides
            true = float(distance(one, X_A, other, X_B).value)
            assert gap <= true + 1e-9
            tight += gap > 0.0
    assert tight > 60


class _Names:
    """Columns that are their own names."""

    def __getattr__(self, name: str) -> str:
        return name
