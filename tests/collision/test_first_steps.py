"""The first steps of a search for a distance, whose simplex has few corners."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.gjk import gjk_stages, nearest_of
from armillary.kernel.stages import When, While, programs_in
from armillary.shapes import ConvexPolyhedron


@pytest.mark.parametrize("count", [0, 1, 2])
def test_absent_corners_change_nothing(count: int) -> None:
    """Equal corners count as one, so that all faces have the same nearest point."""
    rng = np.random.default_rng(count)
    for _ in range(200):
        points = rng.normal(size=(1 + count, 3)) + rng.normal(size=3)
        w, *corners = sorted(points, key=np.linalg.norm)
        padded = [*corners, *[corners[-1] if count else w] * (3 - count)]
        with np.errstate(all="ignore"):
            few = nearest_of(tuple(w), [tuple(c) for c in corners])
            all_three = nearest_of(tuple(w), [tuple(c) for c in padded])
        np.testing.assert_array_equal(few.point, all_three.point)
        assert few.square == all_three.square
        assert [*few.weights, *[0.0] * (3 - count)] == list(all_three.weights)
        assert few.remains == all_three.remains
        assert not few.is_inside
        assert not all_three.is_inside
        # Of an edge whose nearer end is w, no point is nearer.
        if count < 2:
            t = np.linspace(0.0, 1.0, 500)[:, np.newaxis]
            found = np.linalg.norm(w + t * ((corners or [w])[0] - w), axis=1).min()
            assert found - 1e-3 < float(few.square) ** 0.5 < found + 1e-12


def test_first_steps_are_short() -> None:
    corners = np.concatenate([np.eye(3), -np.eye(3)])
    hull = ConvexPolyhedron.around(corners)
    _, search = gjk_stages(PairColumns(hull, hull), is_full=True)
    assert isinstance(search, While)
    lengths = [
        sum(len(program.instructions) for program in programs_in(stage.stages))
        for stage in search.stages
        if isinstance(stage, When)
    ]
    assert len(lengths) == 4
    first, second, third, later = lengths
    assert first < 0.25 * later
    assert second < 0.4 * later
    assert third < 0.7 * later
