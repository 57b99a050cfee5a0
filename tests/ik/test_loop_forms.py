"""Closed forms of bodies on legs, beside distances computed by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.linkages import BASE, PLATFORM, ROD, UPPER, delta, stewart, stewart_legs
from tests.ik.test_loops import five_bar, samples

import armillary as arm
from armillary.ik.legs import DrivenLeg, RodForm
from armillary.ik.reason import Reason
from armillary.ik.user_form import UserForm
from armillary.model.drive import Drive

Array = npt.NDArray[np.float64]


def linear_delta() -> arm.Cell:
    """Return three vertical slides around a platform on rods of 0.5 m."""
    links = [arm.Link(name="base")]
    loops: list[arm.Rod] = []
    balls: list[arm.Frame] = []
    for k in range(3):
        turn = arm.Pose.rotation_z(2.0 * np.pi * k / 3.0)
        joint = arm.joints.Prismatic(
            axis=(0, 0, 1), precursor=turn @ arm.Pose.translation(0.3, 0, 0)
        )
        limits = arm.Limits(lower=0.3, upper=0.9)
        links.append(
            arm.Link(name=f"slide{k}", parent="base", joint=joint, limits=limits)
        )
        ball = turn @ arm.Pose.translation(0.05, 0, 0)
        balls.append(arm.Frame(name=f"ball{k}", pose=ball))
        loops.append(arm.Rod(f"slide{k}", f"ball{k}", length=0.5))
    on = "base"
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("platform", (0, 0, 1))):
        links.append(
            arm.Link(
                name=name,
                parent=on,
                joint=arm.joints.Prismatic(axis=axis),
                passive=True,
                frames=balls if name == "platform" else [],
            )
        )
        on = name
    names = [f"slide{k}" for k in range(3)]
    start = arm.Posture(name="start", joints=[*names, "platform"], q=[0.6] * 3 + [0.1])
    manipulator = arm.Manipulator(
        name="printer", links=links, loops=loops, postures=[start], home="start"
    )
    return arm.Cell(manipulators=[manipulator])


def form_of(ik: Any) -> RodForm:
    """Return the closed form of a solver, that of a body on legs."""
    closed = ik.closed
    assert isinstance(closed, UserForm), ik.why_not_closed
    assert isinstance(closed.form, RodForm)
    return closed.form


def test_stewart_platform_agrees_with_the_lengths_of_its_legs() -> None:
    """The joints are the distances of the balls."""
    cell = stewart()
    _, X = samples(cell, "platform")
    ik = cell.ik("platform")
    assert len(form_of(ik).names) == 1
    found = ik(X)
    assert found.success.all()
    assert np.abs(found.q - stewart_legs(X)).max() < 1e-12


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rods_as_links", [False, True])
@pytest.mark.parametrize("rotation", ["", "xyz"])
def test_each_branch_of_the_delta_keeps_the_lengths_of_its_rods(
    rods_as_links: bool, rotation: str
) -> None:
    """By NumPy, ends of rods are as far apart as they are long, in all branches."""
    cell = delta(rods_as_links=rods_as_links)
    _, X = samples(cell, "platform")
    ik = cell.ik("platform", rotation=rotation)
    assert len(form_of(ik).names) == 8
    branches = UserForm(ik._problem, form_of(ik))._branches(X)[..., :3]
    assert np.isfinite(branches).all()
    for k in range(3):
        angle = 2.0 * np.pi * k / 3.0
        c, s = np.cos(angle), np.sin(angle)
        out, q = np.array([c, s, 0.0]), branches[..., k, None]
        elbow = (BASE + UPPER * np.cos(q)) * out - UPPER * np.sin(q) * [0, 0, 1]
        ball = X[:, None, :3, 3] + PLATFORM * out
        assert np.abs(np.linalg.norm(elbow - ball, axis=-1) - ROD).max() < 1e-12


@pytest.mark.parametrize("make", [delta, linear_delta, five_bar])
def test_all_gives_each_known_answer_and_only_answers(make: Any) -> None:
    """Whatever q led to the target is among them, and each leads there."""
    cell = make()
    name = "tip" if make is five_bar else "platform"
    q, X = samples(cell, name, 200)
    ik = cell.ik(name, rotation="")
    form_of(ik)
    answers = ik.all(X)
    apart = np.remainder(answers.q - q[:, None] + np.pi, 2.0 * np.pi) - np.pi
    assert np.nanmin(np.abs(apart).max(axis=-1), axis=1).max() < 1e-9
    rows, which = np.nonzero(answers.success)
    reached = cell.fk(name)(answers.q[rows, which])
    assert np.abs(reached - X[rows])[:, :3, 3].max() < 1e-9


@pytest.mark.parametrize("slides", [False, True])
def test_a_leg_exactly_at_its_reach_has_one_solution_twice(slides: bool) -> None:
    """Stretched, and but for rounding beyond; no farther."""
    ways = ((0.0, 0.0, 1.0),) if slides else ((0.3, 0.0, 0.0), (0.0, 0.3, 0.0))
    leg = DrivenLeg(Drive(0, 1.0, 0.0), (0.0, 0.0, 0.0), 0.5, (0.0, 0.0, 0.0), ways)
    reach, there = (0.5, 0.0) if slides else (0.8, 0.0)
    for beyond, is_reached in ((0.0, True), (1e-13, True), (1e-4, False)):
        found = leg.solutions(arm.Pose.translation(reach + beyond, 0.0, 0.0))
        off = np.array(found) - (there if is_reached else np.nan)
        off -= 0.0 if slides else 2.0 * np.pi * np.rint(off / (2.0 * np.pi))
        assert off == pytest.approx(
            [0.0 if is_reached else np.nan] * 2, abs=1e-5, nan_ok=True
        )


def two_cranks() -> arm.Cell:
    """Return cranks of 0.3 m at x = 0 and 0.5; a link of 0.4 m and a rod of 0.35."""
    passive = arm.joints.Revolute(precursor=arm.Pose.translation(0.3, 0, 0))
    tip = arm.Frame(name="tip", pose=arm.Pose.translation(0.4, 0, 0))
    knob = arm.Frame(name="knob", pose=arm.Pose.translation(0.3, 0, 0))
    second = arm.joints.Revolute(precursor=arm.Pose.translation(0.5, 0, 0))
    first = arm.joints.Revolute()
    links = [
        arm.Link(name="base"),
        arm.Link(name="left", parent="base", joint=first),
        arm.Link(
            name="coupler", parent="left", joint=passive, frames=[tip], passive=True
        ),
        arm.Link(name="right", parent="base", joint=second, frames=[knob]),
    ]
    start = arm.Posture(
        name="start", joints=["left", "coupler", "right"], q=[2.0, -1.4, 1.2]
    )
    return arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="cranks",
                links=links,
                loops=[arm.Rod("knob", "tip", length=0.35)],
                postures=[start],
                home="start",
            )
        ]
    )


def test_a_chain_of_a_single_passive_joint_is_a_leg() -> None:
    """Both cranks follow from the tip by the law of cosines."""
    cell = two_cranks()
    ik = cell.ik("tip", rotation="")
    assert len(form_of(ik).names) == 4
    q, X = samples(cell, "tip", 100)
    answers = ik.all(X)
    for k, (centre, link) in enumerate(((0.0, 0.4), (0.5, 0.35))):
        x, y = X[:, 0, 3] - centre, X[:, 1, 3]
        cosine = (0.09 + x * x + y * y - link**2) / (0.6 * np.hypot(x, y))
        angles = np.arctan2(y, x)[:, None] + np.arccos(cosine)[:, None] * [1.0, -1.0]
        off = answers.q[:, :, k, None] - angles[:, None]
        off = np.abs(np.remainder(off + np.pi, 2.0 * np.pi) - np.pi).min(axis=-1)
        assert np.nanmax(off) < 1e-9
    off = np.remainder(answers.q - q[:, None] + np.pi, 2.0 * np.pi) - np.pi
    assert np.nanmin(np.abs(off).max(axis=-1), axis=1).max() < 1e-9


def test_a_leg_that_does_not_reach_proves_a_target_out_of_reach() -> None:
    """Targets at a distance beyond that of stretched legs."""
    cell = delta()
    X = np.tile(np.eye(4), (20, 1, 1))
    X[:, 2, 3] = -(UPPER + ROD + BASE) * np.linspace(1.0, 9.0, 20)
    found = cell.ik("platform", rotation="")(X)
    assert (found.reason == Reason.OUT_OF_REACH).all()


def test_legs_beyond_their_limits_are_the_reason() -> None:
    """A platform too high for its legs is blocked by limits, not out of reach."""
    cell = stewart()
    X = np.eye(4)
    X[2, 3] = 3.0
    found = cell.ik("platform")(X)
    assert found.reason == Reason.LIMITS
    assert (found.q == cell.limits[1]).all()


def test_a_tilted_target_is_not_reached_by_a_platform_that_cannot_tilt() -> None:
    """Its legs are solved for, but forward kinematics refuses the answer."""
    cell = delta()
    X = cell.fk("platform")(cell.home.q)
    tilted = X @ arm.Pose.rotation_x(0.1).matrix()
    assert not cell.ik("platform")(tilted).success
    assert cell.ik("platform", rotation="")(tilted).success


def test_targets_that_are_not_poses_are_invalid() -> None:
    """A shorn matrix among good ones is invalid; the others are solved."""
    cell = delta()
    _, X = samples(cell, "platform", 20)
    X = X.copy()
    X[3, 0, 1], X[5, 0, 0] = 0.5, np.nan
    reason = cell.ik("platform")(X).reason
    assert np.flatnonzero(reason == Reason.INVALID_TARGET).tolist() == [3, 5]
    assert (np.delete(reason, [3, 5]) == Reason.SOLVED).all()


class OwnDelta(arm.ClosedForm):
    """The inverse of the delta with knees outwards, as a user writes it."""

    branches: ClassVar = ("out",)

    def __init__(self, *, compiled: bool) -> None:
        self.compiled = compiled

    def inverse(self, pose: arm.Pose) -> Sequence[Sequence[Any]]:
        """Return the angles of the three arms."""
        x, y, z = pose.position
        if not self.compiled:
            z = float(z)  # a traced scalar refuses it
        found = []
        for k in range(3):
            c, s = np.cos(2.0 * np.pi * k / 3.0), np.sin(2.0 * np.pi * k / 3.0)
            r, side = c * x + s * y + PLATFORM - BASE, c * y - s * x
            C = (r * r + side * side + z * z + UPPER**2 - ROD**2) / (2.0 * UPPER)
            found.append(
                np.arctan2(-z, r) - np.arccos(C / np.sqrt(r * r + z * z)),
            )
        return [found]


@pytest.mark.parametrize("compiled", [True, False])
def test_a_closed_form_of_the_user_is_verified_with_loops_closed(
    compiled: bool,
) -> None:
    """It answers where its branch does; the search answers the other targets."""
    cell = delta()
    _, X = samples(cell, "platform", 100)
    ik = cell.ik("platform", closed=OwnDelta(compiled=compiled))
    assert isinstance(ik.closed, UserForm)
    assert ik.closed.compiled is compiled
    found = ik(X)
    assert found.success.all()
    assert (found.steps == 0).mean() > 0.5
    assert np.abs(cell.fk("platform")(found.q) - X).max() < 2e-6
