"""Programs of closed forms on disk: the same as traced, and of that arm alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.disk_cache import FORMULAS
from armillary.ik import held_joints
from armillary.ik.closed_forms import decoupled, planar, point, recognise
from armillary.ik.closed_forms.family import NotApplicable
from armillary.ik.closed_forms.program import best_program
from armillary.ik.held_joints import HeldForm
from armillary.ik.recognised_form import RecognisedForm, arm_problem
from armillary.kernel import Kernel
from armillary.kinematics.identity import digest
from armillary.trace import Program


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARMILLARY_CACHE", str(folder))
    return folder


def form_of(cell: arm.Cell) -> RecognisedForm:
    form = cell.ik("tcp").closed
    assert isinstance(form, RecognisedForm)
    return form


def key_of(cell: arm.Cell) -> str | None:
    numbers = arm_problem(cell.ik("tcp")._problem).numbers
    assert numbers is not None
    return digest(numbers, is_ours=True)


def test_a_kept_program_is_what_would_be_traced(place: Path):
    problem = arm_problem(arm.example("scara").ik("tcp")._problem)
    traced = best_program(problem)
    first, again = (form_of(arm.example("scara")).best for _ in range(2))
    assert len(list(place.glob(f"*{FORMULAS}"))) == 1
    assert first == again == traced
    assert first.fingerprint == again.fingerprint == traced.fingerprint


def why_not(cell: arm.Cell) -> str:
    with pytest.raises(NotApplicable) as caught:
        arm_problem(cell.ik("tool0")._problem)
    return str(caught.value)


def test_that_there_is_no_closed_form_is_kept(monkeypatch: pytest.MonkeyPatch):
    first = why_not(arm.example("ur10_on_rail"))
    assert first
    with monkeypatch.context() as other:
        other.setattr(recognise, "recognise", None)
        assert why_not(arm.example("ur10_on_rail")) == first
        with pytest.raises(TypeError):  # of another frame nothing is known
            arm_problem(arm.example("ur10_on_rail").ik("carriage")._problem)
    # An arm with a closed form is recognised each time.
    assert form_of(arm.example("scara")).family == form_of(arm.example("scara")).family


def nearest_of(cell: arm.Cell) -> Program:
    form = HeldForm(cell.ik("tool0")._problem, (0,))
    assert isinstance(form.nearest, Kernel)
    return form.nearest.program


def test_what_is_nearest_of_given_joints_is_kept(
    monkeypatch: pytest.MonkeyPatch, place: Path
):
    first = nearest_of(arm.example("ur10_on_rail"))
    kept = set(place.glob(f"*{FORMULAS}"))
    with monkeypatch.context() as other:
        other.setattr(held_joints, "best_row", None)
        again = nearest_of(arm.example("ur10_on_rail"))
    assert set(place.glob(f"*{FORMULAS}")) == kept
    assert again == first
    assert again.fingerprint == first.fingerprint
    other_cell = arm.example("ur10_on_rail").workcell
    track, arm_on_it = other_cell.manipulators
    links = [
        link.replace(limits=arm.Limits(lower=0.0, upper=3.9))
        if link.name == "carriage"
        else link
        for link in track.links
    ]
    track = track.replace(links=tuple(links))
    shorter = other_cell.replace(manipulators=(track, arm_on_it))
    assert nearest_of(arm.Cell.of(shorter)).fingerprint != first.fingerprint


def moved(cell: arm.Cell, by: float) -> arm.Cell:
    """Return a cell whose tool is at another place."""
    (scara,) = cell.manipulators
    *links, last = scara.links
    shift = arm.Pose.translation(by, 0.0, 0.0)
    frames = [arm.Frame(name=f.name, pose=f.pose @ shift) for f in last.frames]
    changed = scara.replace(links=(*links, last.replace(frames=frames)))
    return arm.Cell.of(cell.workcell.replace(manipulators=(changed,)))


def with_limit(cell: arm.Cell, upper: float) -> arm.Cell:
    (scara,) = cell.manipulators
    links = list(scara.links)
    k = [link.name for link in links].index("forearm")
    limits = arm.Limits(lower=links[k].limits.lower, upper=upper)
    links[k] = links[k].replace(limits=limits)
    return arm.Cell.of(
        cell.workcell.replace(manipulators=(scara.replace(links=tuple(links)),))
    )


def test_any_other_number_is_another_key():
    cell = arm.example("scara")
    known = key_of(cell)
    assert known == key_of(arm.example("scara"))
    others = [
        key_of(moved(cell, 1e-3)),
        key_of(moved(cell, 2e-3)),
        key_of(with_limit(cell, 2.25)),
        key_of(with_limit(cell, np.nextafter(2.25, 3.0))),
    ]
    assert len({known, *others}) == 1 + len(others)


def test_no_two_families_have_the_same_name():
    fewer = [family for families in recognise.FEWER for family in families]
    families = {
        id(family): family.name
        for family in (
            *recognise.FAMILIES,
            recognise.SPHERICAL_SHOULDER,
            *fewer,
            *point.POINT,
            *point.POINT_TURNS,
            decoupled.ORIENTING,
            planar.PLANAR_TWO,
        )
    }
    assert len(set(families.values())) == len(families)


def test_a_form_on_a_model_that_its_geometry_does_not_meet_exactly_is_traced(
    monkeypatch: pytest.MonkeyPatch, place: Path
):
    """Its branches are verified on the model, whose numbers are not in the key."""
    form = form_of(arm.example("scara"))
    problem = form.arm
    inexact = problem._replace(closed=problem.closed._replace(accuracy=1e-9))
    assert inexact.numbers is None
    monkeypatch.setattr(form, "arm", inexact)
    monkeypatch.setattr(form, "is_shared", False)
    assert form.best.instructions
    assert not list(place.glob(f"*{FORMULAS}"))
