"""What legs of mechanisms give at the end of their reach."""

from __future__ import annotations

import math

import pytest

from armillary.ik.legs import DrivenLeg
from armillary.model.drive import Drive
from armillary.spatial.pose import Pose

SLIDE = DrivenLeg(Drive(0, 1.0, 0.0), (0, 0, 0), 0.5, (0, 0, 0), ((0.0, 0.0, 1.0),))
"""A rod of 0.5 m whose end slides along z."""
CRANK = DrivenLeg(
    Drive(0, 1.0, 0.0),
    (0, 0, 0),
    0.5,
    (0, 0, 0),
    ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0)),
)
"""The same rod on a crank of 0.3 m, about z."""


@pytest.mark.parametrize("x", [0.5, 0.5 * (1.0 + 1e-15), 0.5 * (1.0 - 1e-15)])
def test_a_slide_exactly_at_its_reach_has_one_place(x: float) -> None:
    """Rounding decides whether the root is of a positive number; it does not count."""
    found = SLIDE.solutions(Pose.translation(x, 0.0, 0.2))
    assert found == pytest.approx([0.2, 0.2], abs=1e-7)


@pytest.mark.parametrize("x", [0.8, 0.8 * (1.0 + 1e-15), 0.2, 0.2 * (1.0 - 1e-15)])
def test_a_crank_exactly_at_its_reach_has_one_angle(x: float) -> None:
    found = CRANK.solutions(Pose.translation(x, 0.0, 0.0))
    angles = [math.remainder(a, math.tau) for a in map(float, found)]
    expected = 0.0 if x > 0.5 else math.pi
    assert [abs(a) for a in angles] == pytest.approx([expected] * 2, abs=1e-6)


def test_beyond_their_reach_there_is_none() -> None:
    for leg, x in ((SLIDE, 0.5 + 1e-6), (CRANK, 0.8 + 1e-6), (CRANK, 0.2 - 1e-6)):
        assert all(map(math.isnan, leg.solutions(Pose.translation(x, 0.0, 0.0))))
