"""Splines go through their points, smoothly, and know their length."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from armillary.errors import JointError
from armillary.model.spline import SPEED_TOLERANCE, Spline, spline_through

RING = np.array(
    [(math.cos(a), math.sin(a), 0.3 * math.sin(2 * a)) for a in np.arange(9) * 0.698131]
)
WILD = np.random.default_rng(0).normal(size=(7, 3))
CASES = {
    "ring": (RING, True),
    "open ring": (RING, False),
    "wild": (WILD, False),
    "wild ring": (WILD, True),
    "two points": (np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]), False),
    "triangle": (np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), True),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[np.ndarray, bool, Spline]:
    points, closed = CASES[request.param]
    return points, closed, spline_through(points, closed=closed)


def jumps(spline: Spline, closed: bool, derivative: str) -> list[float]:
    """How much a derivative jumps where segments meet."""
    segments = list(spline.segments)
    pairs = list(itertools.pairwise(segments))
    if closed:
        pairs.append((segments[-1], segments[0]))
    return [
        float(
            np.abs(
                getattr(a, derivative)(np.array([a.width]))
                - getattr(b, derivative)(np.zeros(1))
            ).max()
        )
        for a, b in pairs
    ]


def test_it_goes_through_its_points(case):
    points, _, spline = case
    for point, segment in zip(points, spline.segments, strict=False):
        assert segment.point(np.zeros(1))[0] == pytest.approx(point, abs=1e-15)


def test_it_is_smooth_where_segments_meet(case):
    _, closed, spline = case
    for derivative in ("point", "slope", "bend"):
        assert max(jumps(spline, closed, derivative), default=0.0) < 1e-12


def test_an_open_one_ends_without_a_bend(case):
    _, closed, spline = case
    if not closed:
        first, last = spline.segments[0], spline.segments[-1]
        assert np.abs(first.bend(np.zeros(1))).max() == 0.0
        assert np.abs(last.bend(np.array([last.width]))).max() < 1e-12


def test_its_length_is_that_of_a_fine_polygon(case):
    _, _, spline = case
    total = 0.0
    for segment in spline.segments:
        points = segment.point(np.linspace(0.0, segment.width, 20001))
        total += float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    assert spline.length == pytest.approx(total, rel=1e-7)


def test_pieces_follow_each_other(case):
    _, _, spline = case
    for a, b in zip(spline.pieces, spline.pieces[1:], strict=False):
        assert b.start == a.end
        if a.segment == b.segment:
            assert b.span[0] == a.span[1]
        else:
            assert (b.segment, b.span[0]) == (a.segment + 1, 0.0)
            assert a.span[1] == spline.segments[a.segment].width


def test_it_is_travelled_at_unit_speed(case):
    _, _, spline = case
    for piece in spline.pieces:
        s = np.linspace(piece.start, piece.end, 50)
        w = np.array([piece.parameter_at(each) for each in s])
        assert w[0] == pytest.approx(piece.span[0], abs=1e-9)
        assert w[-1] == pytest.approx(piece.span[1], abs=1e-9)
        p = spline.segments[piece.segment].point(w)
        travelled = np.linalg.norm(np.diff(p, axis=0), axis=1) / np.diff(s)
        assert travelled.max() <= 1.0 + 2.0 * SPEED_TOLERANCE


def test_a_fine_circle_is_a_circle():
    angles = np.arange(48) * 2.0 * math.pi / 48
    points = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    spline = spline_through(points, closed=True)
    assert spline.length == pytest.approx(2.0 * math.pi, rel=1e-6)
    assert len(spline.pieces) == 48


def test_a_sharp_turn_is_refused():
    points = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0], [0, 0, 0]])
    with pytest.raises(JointError, match=r"turns back on itself between points \d"):
        spline_through(points, closed=False)


def test_control_points_hold_the_curve():
    points, closed = CASES["wild ring"]
    spline = spline_through(points, closed=closed)
    for start, end in ((0.0, spline.length), (1.0, 1.5), (2.0, 2.0)):
        curves = spline.control_points(start, end)
        first, last = curves[0, 0], curves[-1, 3]
        pieces = {id(piece): piece for piece in spline.pieces}.values()
        for s, control in ((start, first), (end, last)):
            piece = next(p for p in pieces if p.start <= s <= p.end)
            w = np.array([piece.parameter_at(s)])
            place = spline.segments[piece.segment].point(w)[0]
            assert control == pytest.approx(place, abs=1e-9)
