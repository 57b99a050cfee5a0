"""`check_loops` passes linkages that keep the laws, and names each that is broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.kinematics.closing.branch import Branch
from armillary.testing import check_loops
from linkages import FAMILIES, Linkage, four_bar

SMALL = 0.2
"""How far driven joints may go, such that all linkages close [rad]."""


def limited(linkage: Linkage, reach: float = SMALL) -> Linkage:
    """Return a linkage whose driven joints have limits."""
    return replace(linkage, limits=dict.fromkeys(linkage.driven, (-reach, reach)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", [*FAMILIES][::2])
def test_linkages_keep_the_laws(family: str) -> None:
    """Families of all kinds of gaps pass near home."""
    linkage = FAMILIES[family](np.random.default_rng(7))
    check_loops(limited(linkage, 0.05).cell(), samples=8)


def test_a_range_in_which_loops_do_not_close_is_named() -> None:
    """A rocker that cannot turn round is tested over a turn."""
    linkage = four_bar(np.random.default_rng(0))
    with pytest.raises(ModelError, match=r"range: <ClosedLoops: .*narrower limits"):
        check_loops(linkage.cell())


def test_passive_joints_beyond_limits_are_named() -> None:
    """The coupler has less room than the crank makes it need."""
    linkage = limited(four_bar(np.random.default_rng(7)), 0.05)
    tight = {**linkage.limits, "coupler": (-1e-3, 1e-3)}
    with pytest.raises(ModelError, match=r"limits: at q = .* passive joint 'coupler'"):
        check_loops(replace(linkage, limits=tight).cell())


def test_a_cell_without_loops_is_refused() -> None:
    """An arm is not a linkage."""
    with pytest.raises(ModelError, match="no closed loops"):
        check_loops(arm.example("ur5e_on_oval"))


def test_kernels_that_differ_from_states_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table of the other branch leads kernels, but not states, to it."""
    cell = limited(four_bar(np.random.default_rng(7)), 0.05).cell()
    _, other = cell.branches().values()
    tables = Branch(cell.workcell, other.positions).tables([0])
    monkeypatch.setattr(Branch, "tables", lambda self, blocks: tables)
    fresh = limited(four_bar(np.random.default_rng(7)), 0.05).cell()
    with pytest.raises(ModelError, match=r"states: at q = .* cell.fk\('.*'\) differs"):
        check_loops(fresh, samples=3)
