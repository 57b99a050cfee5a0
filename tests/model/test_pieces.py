"""Where traced functions are smooth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armillary.model.joints import OvalTrack, Revolute
from armillary.model.upper_bound import choices, edges
from armillary.trace import trace

GRID = np.linspace(-5.0, 5.0, 201) + 0.01


def program_of(function):
    return trace(function, name="f", q=())


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (np.sin, []),
        (lambda q: q if q < 1.25 else 2.0 * q, [1.25]),
        (lambda q: np.abs(q - 0.5), [0.5]),
        (lambda q: np.minimum(q, 2.0), [2.0]),
        (lambda q: np.maximum(q, -2.0), [-2.0]),
        (lambda q: np.sign(q + 3.0), [-3.0]),
        (lambda q: np.floor(q / 4.0), [-4.0, 0.0, 4.0]),
        (lambda q: np.fmod(q, 3.0), [-3.0, 3.0]),
        (lambda q: 1.0 if np.cos(q) < 0.5 else q,
         [-5 * math.pi / 3, -math.pi / 3, math.pi / 3, 5 * math.pi / 3]),
    ],
)  # fmt: skip
def test_edges_are_found(function, places):
    found = edges(program_of(function), GRID)
    if len(places) == 4:  # the first and last lie outside
        places = places[1:3]
    near = {place for place in places for pair in found if abs(pair[0] - place) < 1e-9}
    assert near == set(places)
    for low, high in found:
        assert 0.0 <= high - low <= 1e-14


def test_the_oval_has_four_edges_a_lap():
    joint = OvalTrack(straight=2.0, radius=0.5)
    q = np.linspace(-1.0, -1.0 + joint.period, 300) + 1e-3
    bend = math.pi * 0.5
    found = edges(joint.motion.program, q)[:, 0]
    expected = [1.0, 1.0 + bend, 3.0 + bend, 3.0 + 2.0 * bend]
    assert found == pytest.approx(expected, abs=1e-12)


def test_smooth_functions_have_no_choices():
    assert choices(Revolute().motion.program, GRID).shape == (201, 0)
    assert len(edges(Revolute().motion.program, GRID)) == 0


def test_what_is_undefined_is_not_an_endless_change():
    program = program_of(lambda q: np.floor(np.sqrt(q)))
    found = edges(program, np.linspace(-3.0, 0.5, 50))
    assert len(found) == 0
