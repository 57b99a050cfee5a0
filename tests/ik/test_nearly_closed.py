"""Arms whose axes miss those of a family by little, as calibrated ones do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary import Cell
from armillary.ik.closed_forms.general_6r.nominal import NominalSolver
from armillary.ik.general_form import GeneralForm
from arms import turned_apart

from .test_closed import Lines, backwards, cell_of, random_lines

SHARES = {1e-6: 0.3, 1e-3: 0.5, 5e-3: 0.8}
"""How far axes are off, and for which part of hard targets the formula may not do."""

KINDS = "elbow, right angles", "meeting 12", "three parallel, right angles"


def calibrated(kind: str, size: float, *, turned: bool = False) -> Cell:
    """Return an arm of a kind whose axes are off by `size` [rad, m]."""
    rng = np.random.default_rng(4)
    lines = random_lines(kind, rng)
    lines = backwards(lines) if turned else lines
    axes = lines.axes + size * rng.normal(size=(6, 3))
    return cell_of(Lines(axes, lines.points + 0.5 * size * rng.normal(size=(6, 3))))


def solver_of(cell: Cell) -> NominalSolver:
    form: Any = cell.ik("tool").closed
    assert isinstance(form, GeneralForm)
    solver: Any = vars(form)["_solver"]
    assert isinstance(solver, NominalSolver)
    return solver


def hard(cell: Cell) -> np.ndarray:
    """Return joint positions, a third of them next to a straight wrist or elbow."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (300, 6))
    q[:60, 4] = 0.05 * rng.normal(size=60)
    q[60:100, 2] = 0.05 * rng.normal(size=40)
    return q


@pytest.mark.parametrize("size", SHARES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_nominal_formula_finds_what_the_general_solver_does(
    kind: str, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = calibrated(kind, size)
    solver = solver_of(cell)
    general: Any = vars(solver)["_general"]
    q = hard(cell)
    targets = cell.fk("tool")(q)
    asked: list[int] = []
    solve = general.solve

    def counted(inner: np.ndarray, **options: Any) -> Any:
        asked.append(len(inner))
        return solve(inner, **options)

    monkeypatch.setattr(general, "solve", counted)
    ik = cell.ik("tool")
    found = ik.all(targets)
    assert sum(asked) < SHARES[size] * len(q)  # the others need the formula alone
    monkeypatch.setattr(solver, "solve", solve)
    expected = ik.all(targets)
    sure = found.complete & expected.complete
    assert sure.mean() > 0.9
    assert (found.count == expected.count)[sure].all()
    own = np.nanmin(turned_apart(found.q, q[:, None]), axis=1)
    assert own.max() < 1e-6
    for k in np.flatnonzero(sure):
        a, b = (x.q[k][x.success[k]] for x in (found, expected))
        assert turned_apart(a[:, None], b).min(axis=1).max() < 1e-6
    poses = cell.fk("tool")(found.q)
    assert np.abs(poses - targets[:, None])[found.success].max() < 1e-9


def test_an_arm_near_a_family_from_its_other_end() -> None:
    cell = calibrated("elbow, right angles", 1e-3, turned=True)
    assert solver_of(cell).nominal.closed.backwards
    q = hard(cell)
    found = cell.ik("tool").all(cell.fk("tool")(q))
    assert np.nanmin(turned_apart(found.q, q[:, None]), axis=1).max() < 1e-6


def test_one_target_has_the_answers_of_its_row() -> None:
    cell = calibrated("three parallel, right angles", 1e-3)
    ik, targets = cell.ik("tool"), cell.fk("tool")(hard(cell)[::10])
    rows = ik.all(targets)
    for k, target in enumerate(targets):
        one = ik.all(target)
        assert np.array_equal(one.q, rows.q[k], equal_nan=True)
        assert one.complete == rows.complete[k]


def test_arms_far_from_any_family_have_no_nominal_one() -> None:
    cell = calibrated("elbow, right angles", 0.2)
    form: Any = cell.ik("tool").closed
    assert not isinstance(vars(form)["_solver"], NominalSolver)
