"""Frames that turn about the tangent as little as can be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.model.rotation_minimizing_frame import Rolling, rolling
from armillary.model.spline import spline_through

KNOT = np.array(
    [
        (math.sin(a) + 2 * math.sin(2 * a), math.cos(a) - 2 * math.cos(2 * a),
         -math.sin(3 * a))
        for a in np.arange(24) * math.pi / 12
    ]
)  # fmt: skip


def first_z(points: np.ndarray, closed: bool) -> np.ndarray:
    slope = spline_through(points, closed=closed).segments[0].slope(np.zeros(1))[0]
    z = np.cross(slope, [0.3, -0.2, 0.9])
    return z / np.linalg.norm(z)


def frames(
    rolled: Rolling, k: int, count: int = 401
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arc lengths on piece k, tangents, and unit directions across them."""
    piece, field = rolled.spline.pieces[k], rolled.fields[k]
    t = 0.5 * piece.length * np.linspace(-1.0, 1.0, count)
    w = np.array([piece.parameter_at(piece.middle + each) for each in t])
    slope = rolled.spline.segments[piece.segment].slope(w)
    T = slope / np.linalg.norm(slope, axis=1)[:, np.newaxis]
    z = np.vander(t, 6, increasing=True) @ field
    assert np.abs((z * T).sum(axis=1)).max() < 1e-2
    z = z - (z * T).sum(axis=1)[:, np.newaxis] * T
    return piece.middle + t, T, z / np.linalg.norm(z, axis=1)[:, np.newaxis]


@pytest.mark.parametrize("closed", [False, True])
def test_it_turns_about_the_tangent_as_little_as_can_be(closed: bool):
    spline = spline_through(KNOT, closed=closed)
    rolled = rolling(spline, first_z(KNOT, closed), closed=closed)
    spins, turnings = [], []
    for k in range(len(rolled.fields)):
        s, T, z = frames(rolled, k)
        ds = (s[2:] - s[:-2])[:, np.newaxis]
        y = np.cross(z, T)[1:-1]
        spins.append(-(y * (z[2:] - z[:-2]) / ds).sum(axis=1))
        turnings.append(np.linalg.norm((T[2:] - T[:-2]) / ds, axis=1))
    spin, limit = np.concatenate(spins), 1e-4 * np.concatenate(turnings).max()
    # Open: none; closed: at one rate all the way round.
    assert np.abs(spin - (spin.mean() if closed else 0.0)).max() <= 1.5 * limit
    assert abs(spin.mean()) * spline.length <= math.pi


def test_it_is_carried_as_by_many_small_turns():
    """Turn z from each tangent to the next, about the axis across both."""
    z = first_z(KNOT, False)
    rolled = rolling(spline_through(KNOT, closed=False), z, closed=False)
    worst = 0.0
    for k in range(len(rolled.fields)):
        _, T, found = frames(rolled, k)
        for here, before in zip(range(len(T)), [0, *range(len(T) - 1)], strict=True):
            axis, cosine = np.cross(T[before], T[here]), T[before] @ T[here]
            z = cosine * z + np.cross(axis, z) + (axis @ z) / (1 + cosine) * axis
            worst = max(worst, np.linalg.norm(z - found[here]))
    assert worst < 1e-4


def test_around_a_closed_curve_it_comes_back():
    z = first_z(KNOT, True)
    spline = spline_through(KNOT, closed=True)
    rolled = rolling(spline, z, closed=True)
    last, field = rolled.spline.pieces[-1], rolled.fields[-1]
    back = (0.5 * last.length) ** np.arange(6.0) @ field
    assert back == pytest.approx(z, abs=1e-8)


def test_pieces_meet():
    rolled = rolling(
        spline_through(KNOT, closed=False), first_z(KNOT, False), closed=False
    )
    pieces = rolled.spline.pieces
    for k in range(len(pieces) - 1):
        before = (0.5 * pieces[k].length) ** np.arange(6.0) @ rolled.fields[k]
        after = (-0.5 * pieces[k + 1].length) ** np.arange(6.0) @ rolled.fields[k + 1]
        assert before == pytest.approx(after, abs=1e-9)
        assert pieces[k + 1].start == pytest.approx(pieces[k].end, rel=1e-14)


def test_in_a_plane_the_normal_stays():
    flat = KNOT * (1.0, 1.0, 0.0)
    z = np.array([0.0, 0.0, 1.0])
    rolled = rolling(spline_through(flat, closed=True), z, closed=True)
    for field in rolled.fields:
        assert field[0] == pytest.approx(z, abs=1e-15)
        assert (field[1:] == 0.0).all()


def test_a_helix_turns_by_its_torsion():
    """The principal normal turns about x by the torsion; the frame does not."""
    radius, rise, turns = 1.0, 0.4, 2
    angle = np.linspace(0.0, 2.0 * math.pi * turns, 16 * turns + 1)
    points = np.stack(
        [radius * np.cos(angle), radius * np.sin(angle), rise * angle], axis=1
    )
    spline = spline_through(points, closed=False)
    rolled = rolling(spline, first_z(points, False), closed=False)
    torsion = rise / (radius**2 + rise**2)
    phases, lengths = [], []
    count = len(rolled.fields)
    for k in range(count // 4, 3 * count // 4):  # the ends of a natural spline differ
        s, T, z = frames(rolled, k, 101)
        normal = np.gradient(T, s, axis=0)
        sine = (np.cross(z, normal) * T).sum(axis=1)
        phases.append(np.arctan2(sine, (z * normal).sum(axis=1))[50])
        lengths.append(s[50])
    rate = np.polyfit(lengths, np.unwrap(phases), 1)[0]
    assert rate == pytest.approx(torsion, rel=1e-2)
