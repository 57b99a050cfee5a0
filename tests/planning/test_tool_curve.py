"""Curves of a tool: lines, arcs and blends, compared with geometry by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.errors import ModelError
from armillary.planning.segments import Arc, Line, Segment
from armillary.planning.tool_curve import LEVER, Blend, ToolCurve, curve_through
from rotations import rotation

NONE = Blend(0.0, None)


def pose(p: list[float], v: tuple[float, ...] = (0.0, 0.0, 0.0)) -> np.ndarray:
    X = np.eye(4)
    X[:3, 3], X[:3, :3] = p, rotation(np.array(v))
    return X


def through(*segments: Segment, first: np.ndarray | None = None, blend: Blend = NONE):
    names = [f"Target {k}" for k in range(len(segments))]
    return curve_through(
        pose([0.5, 0.0, 0.3]) if first is None else first, segments, names, blend
    )


def test_a_line_is_straight_and_turns_by_the_shortest_way():
    first, last = pose([0.5, 0.0, 0.3], (0.2, 0.3, -0.4)), pose([0.1, 0.6, 0.2])
    spin = np.array([0.3, -1.1, 2.0])
    last[:3, :3] = first[:3, :3] @ rotation(spin)
    curve = through(Line(last), first=first)
    way = last[:3, 3] - first[:3, 3]
    assert curve.length == pytest.approx(np.linalg.norm(way), rel=1e-14)
    t = np.linspace(0.0, 1.0, 33)
    X = curve.points(t * curve.length).pose
    np.testing.assert_allclose(X[:, :3, 3], first[:3, 3] + t[:, None] * way, atol=1e-14)
    turned = np.stack([first[:3, :3] @ rotation(x * spin) for x in t])
    np.testing.assert_allclose(X[:, :3, :3], turned, atol=1e-14)


def test_an_arc_goes_through_its_point_at_a_constant_distance_of_its_centre():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b, c = rng.normal(size=(3, 3))
        curve = through(Arc(to=c, through=b), first=pose(a))
        p = curve.points(np.linspace(0.0, curve.length, 4001)).pose[:, :3, 3]
        np.testing.assert_allclose(p[[0, -1]], [a, c], atol=1e-12)
        # The circle through three points by its defining equations.
        u, v = b - a, c - a
        A = np.stack([u, v, np.cross(u, v)])
        centre = a + np.linalg.solve(A, [u @ u / 2, v @ v / 2, 0.0])
        radius = np.linalg.norm(a - centre)
        np.testing.assert_allclose(
            np.linalg.norm(p - centre, axis=1), radius, rtol=1e-10
        )
        near = np.linalg.norm(p - b, axis=1)
        k = int(near.argmin())
        assert near[k] < 1e-3 * curve.length
        assert 0 < k < 4000
        steps = np.linalg.norm(np.diff(p, axis=0), axis=1)
        np.testing.assert_allclose(steps.sum(), curve.length, rtol=1e-6)


def test_an_arc_about_an_axis_turns_the_tool_with_it():
    first = pose([0.5, 0.2, 0.3], (0.1, 0.7, -0.2))
    axis, centre, angle = np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.0, 0.4]), -2.5
    segment = Arc(axis=axis, centre=centre, angle=angle)
    curve = through(segment, first=first)
    t = np.linspace(0.0, 1.0, 17)
    X = curve.points(t * curve.length).pose
    for k, x in enumerate(t):
        R = rotation(x * angle * axis / np.linalg.norm(axis))
        np.testing.assert_allclose(X[k, :3, :3], R @ first[:3, :3], atol=1e-13)
        moved = centre + R @ (first[:3, 3] - centre)
        np.testing.assert_allclose(X[k, :3, 3], moved, atol=1e-13)
    fixed = through(
        Arc(axis=axis, centre=centre, angle=angle, orientation="fixed"), first=first
    ).points(t * curve.length)
    np.testing.assert_allclose(fixed.pose[:, :3, 3], X[:, :3, 3], atol=1e-13)
    assert np.abs(fixed.pose[:, :3, :3] - first[:3, :3]).max() < 1e-15


CORNERS: tuple[Segment, ...] = (
    Line(pose([0.5, 0.4, 0.3], (0.0, 0.0, 0.8))),
    Arc(to=[0.2, 0.6, 0.3], through=[0.45, 0.55, 0.35]),
    Line(pose([0.2, 0.2, 0.3], (0.4, 0.0, 0.8))),
    Arc(axis=[0, 0, 2], angle=-2.0, centre=[0.4, 0.2, 0.0]),
    Line(pose([0.3, 0.5, 0.5], (0.0, 0.4, 0.2))),
)


@pytest.mark.parametrize("blend", [Blend(0.04, None), Blend(0.0, 0.003)])
def test_blended_curves_are_smooth_to_their_curvature(blend: Blend):
    curve = through(*CORNERS, blend=blend)
    assert not curve.sharp.any()
    # From both sides of each junction: pose, slope and curvature are the same.
    at, m = curve.start[1:-1], np.arange(len(curve.segment) - 1)
    for a, b in zip(curve.points(at, m), curve.points(at, m + 1), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("blend", [NONE, Blend(0.04, None), Blend(0.0, 0.003)])
def test_rates_and_their_bounds_agree_with_differences(blend: Blend):
    curve = through(*CORNERS, blend=blend)
    h = 1e-4
    for m, (a, b) in enumerate(zip(curve.start[:-1], curve.start[1:], strict=True)):
        s = np.linspace(a, b, 41)
        piece = np.full(41, m)
        X, V, A = curve.points(s, piece)
        ahead, behind = curve.points(s + h, piece), curve.points(s - h, piece)
        change = (ahead.pose - behind.pose) / (2.0 * h)
        spread = max(1.0, *curve.jerk[m])
        np.testing.assert_allclose(V[:, :3], change[:, :3, 3], atol=spread * h * h)
        W = change[:, :3, :3] @ X[:, :3, :3].transpose(0, 2, 1)
        w = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=1)
        np.testing.assert_allclose(V[:, 3:], w, atol=spread * h * h)
        np.testing.assert_allclose(
            A, (ahead.rate - behind.rate) / (2.0 * h), atol=1e-3 * spread
        )
        # Second and third differences stay below the bounds, and come near them.
        X2 = np.diff(curve.points(np.linspace(a, b, 2001), np.full(2001, m)).pose, 2, 0)
        X3 = np.diff(X2, 1, 0)
        step = (b - a) / 2000
        for bound, seen in ((curve.bend, X2 / step**2), (curve.jerk, X3 / step**3)):
            linear = np.linalg.norm(seen[:, :3, 3], axis=1).max()
            angular = np.linalg.norm(seen[:, :3, :3], 2, axis=(1, 2)).max()
            assert linear <= bound[m, 0] * 1.001 + 0.05
            assert angular <= bound[m, 1] * 1.001 + 0.05
            assert bound[m, 0] <= 2.0 * linear + 0.05


def test_a_blend_between_lines_passes_the_corner_as_stated():
    for angle in (0.3, 1.2, 2.5, math.pi - 1e-3):
        corner = np.array([1.0, 0.0, 0.0])
        end = corner + np.array([math.cos(angle), math.sin(angle), 0.0])
        for blend in (Blend(0.1, None), Blend(0.0, 0.02)):
            curve = through(
                Line(corner), Line(end), first=pose([0.0, 0.0, 0.0]), blend=blend
            )
            p = curve.points(np.linspace(0.0, curve.length, 8001)).pose[:, :3, 3]
            nearest = np.linalg.norm(p - corner, axis=1).min()
            if blend.deviation is None:
                expected = 0.375 * 0.1 * math.sin(0.5 * angle)
                assert nearest == pytest.approx(expected, rel=1e-3)
            else:
                assert 0.998 * 0.02 <= nearest <= 0.02 * (1.0 + 1e-9)


def test_blends_by_deviation_take_no_more_than_fits():
    short = Line([0.5, 0.01, 0.3]), Line([0.51, 0.01, 0.3]), Line([0.51, 0.5, 0.3])
    curve = through(*short, blend=Blend(0.0, 1.0))
    assert not curve.sharp.any()
    assert curve.length == pytest.approx(0.51)
    assert (curve.lengths <= 0.49).all()


def test_segments_that_go_on_smoothly_make_no_corners():
    tangent = Arc(
        axis=[0, 0, 1], angle=1.0, centre=[0.2, 0.4, 0.3], orientation="fixed"
    )
    curve = through(Line([0.5, 0.4, 0.3]), tangent, blend=Blend(0.05, None))
    assert curve.sharp.tolist() == [False, False]
    assert through(Line([0.5, 0.4, 0.3]), Line([0.2, 0.4, 0.3])).sharp[0]


def test_a_turn_in_place_has_a_length():
    curve = through(Line(pose([0.5, 0.0, 0.3], (0.0, 0.0, 1.5))))
    assert curve.length == pytest.approx(1.5 * LEVER)
    assert curve.way.sum() == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("segments", "blend", "message"),
    [
        ((Line([0.5, 0.0, 0.3]),), NONE, "Target 0 has no length"),
        (
            (Line([0.5, 0.1, 0.3]), Line([0.5, 0.1, 0.3])),
            NONE,
            "Target 1 has no length",
        ),
        (
            (Arc(to=[0.5, 0.2, 0.3], through=[0.5, 0.1, 0.3]),),
            NONE,
            "straight line; use Line",
        ),
        (
            (Arc(to=[0.5, 0.2, 0.3], through=[0.5, 0.1, 0.3 + 1e-9]),),
            NONE,
            "straight line",
        ),
        (
            (Arc(to=[0.5, 0.2, 0.3], through=[0.5, 0.0, 0.3]),),
            NONE,
            "its start and 'through' coincide",
        ),
        (
            (Arc(to=[0.5, 0.0, 0.3], through=[0.5, 0.2, 0.3]),),
            NONE,
            "its start and its end coincide; a whole circle is",
        ),
        (
            (Line(pose([0.5, 0.0, 0.4], (0.0, math.pi, 0.0))),),
            NONE,
            "Target 0 turns the tool by half a turn",
        ),
        (
            (Line([0.5, 0.1, 0.3]), Line([0.5, 0.1, 0.5])),
            Blend(0.11, None),
            "Blends do not fit into Target 0: they take 0 m at its start and 0.11 m",
        ),
        (
            (Line([0.5, 0.3, 0.3], blend=0.15), Line([0.5, 0.3, 0.5]), Line([0, 0, 0])),
            Blend(0.06, None),
            "Blends do not fit into Target 1: they take 0.15 m at its start and 0.06",
        ),
    ],
)
def test_what_makes_no_curve_is_refused_by_name(
    segments: tuple[Segment, ...], blend: Blend, message: str
):
    with pytest.raises(ModelError) as error:
        through(*segments, blend=blend)
    assert message in str(error.value)


def test_pieces_meet_without_gaps():
    curve: ToolCurve = through(*CORNERS)
    at, m = curve.start[1:-1], np.arange(len(curve.segment) - 1)
    a, b = curve.points(at, m).pose, curve.points(at, m + 1).pose
    np.testing.assert_allclose(a, b, atol=1e-13)
    assert curve.sharp.tolist() == [True, True, True, True, False]
    assert curve.segment.tolist() == [0, 1, 2, 3, 4]
