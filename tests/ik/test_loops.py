"""Inverse kinematics of cells with closed loops: what it finds is verified by fk."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.linkages import delta, four_bar, stewart

import armillary as arm
from armillary.ik.reason import Reason

Array = npt.NDArray[np.float64]

PASSIVE: dict[str, Any] = {"passive": True}


def hinge(axis: str, *at: float) -> arm.Joint:
    """Return a joint that turns about an axis through a point of its parent."""
    vector = tuple(float(axis == letter) for letter in "xyz")
    before = arm.Pose.translation(*at) if at else arm.Pose.translation(0, 0, 0)
    return arm.joints.Revolute(axis=vector, precursor=before)


def frame(name: str, *at: float) -> arm.Frame:
    """Return a frame at a point of its link."""
    return arm.Frame(name=name, pose=arm.Pose.translation(*at))


def one(*links: arm.Link, **more: Any) -> arm.Cell:
    """Return a cell of one manipulator."""
    return arm.Cell(manipulators=[arm.Manipulator(name="linkage", links=links, **more)])


def five_bar() -> arm.Cell:
    """Return two arms of 0.2 and 0.3 m whose ends meet: frame `tip`."""
    return one(
        arm.Link(name="ground"),
        arm.Link(name="left", parent="ground", joint=hinge("z", -0.1, 0, 0)),
        arm.Link(
            name="left_rod",
            parent="left",
            joint=hinge("z", 0.2, 0, 0),
            frames=[frame("tip", 0.3, 0, 0)],
            **PASSIVE,
        ),
        arm.Link(name="right", parent="ground", joint=hinge("z", 0.1, 0, 0)),
        arm.Link(
            name="right_rod",
            parent="right",
            joint=hinge("z", 0.2, 0, 0),
            frames=[frame("end", 0.3, 0, 0)],
            **PASSIVE,
        ),
        loops=[arm.Closure("tip", "end", position="xy")],
        postures=[
            arm.Posture(
                name="start",
                joints=["left", "left_rod", "right", "right_rod"],
                q=[2.0, -1.0, 1.1, 1.0],
            )
        ],
        home="start",
    )


def coupled_wrist() -> arm.Cell:
    """Return an arm of six joints, the fifth of which a four-bar moves: `tool`."""
    return one(
        arm.Link(name="base"),
        arm.Link(name="a1", parent="base", joint=hinge("z", 0, 0, 0.3)),
        arm.Link(name="a2", parent="a1", joint=hinge("y", 0.1, 0, 0.1)),
        arm.Link(name="a3", parent="a2", joint=hinge("y", 0.0, 0, 0.5)),
        arm.Link(name="a4", parent="a3", joint=hinge("x", 0.1, 0, 0.05)),
        arm.Link(name="crank", parent="a4", joint=hinge("y", 0.1, 0, 0)),
        arm.Link(
            name="coupler",
            parent="crank",
            joint=hinge("y", 0, 0, 0.08),
            frames=[frame("pin", 0.3, 0, 0)],
            **PASSIVE,
        ),
        arm.Link(
            name="wrist",
            parent="a4",
            joint=hinge("y", 0.4, 0, 0),
            frames=[frame("horn", 0, 0, 0.1)],
            **PASSIVE,
        ),
        arm.Link(
            name="a6",
            parent="wrist",
            joint=hinge("x", 0.06, 0, 0),
            frames=[frame("tool", 0.1, 0.02, 0)],
        ),
        loops=[arm.Closure("pin", "horn", position="xz")],
    )


def counterbalanced(lower: float = -math.inf) -> arm.Cell:
    """Return two links in a plane, the first with a cylinder that carries nothing."""
    return one(
        arm.Link(name="base"),
        arm.Link(
            name="upper",
            parent="base",
            joint=hinge("y"),
            frames=[frame("eye", 0.1, 0, 0)],
        ),
        arm.Link(
            name="fore",
            parent="upper",
            joint=hinge("y", 0.4, 0, 0),
            frames=[frame("tip", 0.3, 0, 0)],
        ),
        arm.Link(
            name="cylinder", parent="base", joint=hinge("y", 0, 0, -0.3), **PASSIVE
        ),
        arm.Link(
            name="piston",
            parent="cylinder",
            joint=arm.joints.Prismatic(axis=(0, 0, 1)),
            limits=arm.Limits(lower=lower),
            frames=[frame("rod_end", 0, 0, 0)],
            **PASSIVE,
        ),
        loops=[arm.Closure("eye", "rod_end", position="xz")],
        postures=[arm.Posture(name="start", joints=["piston"], q=[0.3])],
        home="start",
    )


def samples(cell: arm.Cell, name: str, count: int = 400) -> tuple[Array, Array]:
    """Return joint positions at which loops are closed, and the poses of a frame."""
    lower, upper = cell.limits
    lower = np.where(np.isfinite(lower), lower, -math.pi)
    upper = np.where(np.isfinite(upper), upper, math.pi)
    rng = np.random.default_rng(7)
    q = rng.uniform(lower, upper, (20 * count, len(lower)))
    X = cell.fk(name)(q)
    closed = np.isfinite(X).all(axis=(1, 2))
    return q[closed][:count], X[closed][:count]


LINKAGES: Sequence[tuple[Callable[[], arm.Cell], str, dict[str, str]]] = (
    (cache(delta), "platform", {"rotation": ""}),
    (cache(lambda: delta(rods_as_links=True)), "platform", {"rotation": ""}),
    (cache(five_bar), "tip", {"rotation": ""}),
    (cache(stewart), "platform", {}),
    (cache(coupled_wrist), "tool", {}),
    (cache(four_bar), "rocker", {"position": "", "rotation": "z"}),
    (cache(counterbalanced), "tip", {"rotation": ""}),
)
NAMES = ("delta", "delta of links", "five-bar", "Stewart", "wrist", "four-bar", "arm")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", [None, "numeric"])
@pytest.mark.parametrize(("make", "name", "goal"), LINKAGES, ids=NAMES)
def test_answers_lead_to_the_targets(
    make: Callable[[], arm.Cell], name: str, goal: dict[str, str], method: str | None
) -> None:
    """fk(ik(X)) is X on the branch of home, for every pose that fk leads to."""
    cell = make()
    _, X = samples(cell, name)
    assert len(X) > 100
    found = cell.ik(name, **goal)(X, method=method)
    assert found.success.all(), found.summary()
    Y = cell.fk(name)(found.q)
    if goal.get("position", "xyz"):
        assert np.abs(Y - X)[:, :3, 3].max() < 2e-6
    if goal.get("rotation", "xyz"):
        assert np.abs(Y - X)[:, :3, :3].max() < 2e-6
    lower, upper = cell.limits
    assert ((found.q >= lower) & (found.q <= upper)).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("make", "name", "goal"), LINKAGES, ids=NAMES)
def test_near_a_known_answer_it_is_found(
    make: Callable[[], arm.Cell], name: str, goal: dict[str, str]
) -> None:
    """With near=q the answer to fk(q) is no farther from it than q itself is."""
    cell = make()
    q, X = samples(cell, name, 50)
    found = cell.ik(name, **goal)(X, near=q)
    assert found.success.all()
    assert np.abs(found.q - q).max() < 1e-5


@pytest.mark.parametrize("name", ["home", "other", "moved"])
def test_answers_lie_on_the_branch_of_the_state(name: str) -> None:
    """In a state on another branch, or of a base elsewhere, answers lead to targets."""
    cell = four_bar()
    states = cell.branches()
    assert len(states) == 2
    (other,) = (state for key, state in states.items() if key != "home")
    (bar,) = cell.manipulators
    moved = cell.home.place(bar.name, arm.Pose.translation(1.0, 2.0, 3.0))
    state = {"home": cell.home, "other": other, "moved": moved}[name]
    q = np.linspace(-3.0, 3.0, 50)[:, None]
    X = cell.fk("tip", state=state)(q)
    method = "numeric" if name == "moved" else None
    found = cell.ik("tip", rotation="", state=state)(X, method=method)
    assert found.success.all(), found.summary()
    assert np.abs(cell.fk("tip", state=state)(found.q) - X)[:, :3, 3].max() < 2e-6
    copy = pickle.loads(pickle.dumps(cell.ik("tip", rotation="", state=state)))
    assert np.allclose(copy(X, method=method).q, found.q)


def test_an_assembly_of_another_branch_alone_is_not_an_answer() -> None:
    """The platform of the delta above its base is reached on the other branch only."""
    cell = delta()
    above = np.eye(4)
    above[2, 3] = -cell.fk("platform")(cell.home.q)[2, 3]
    found = cell.ik("platform", rotation="")(above, method="numeric")
    assert not found.success
    below = above.copy()
    below[2, 3] *= -1.0
    assert cell.ik("platform", rotation="")(below, method="numeric").success


@pytest.mark.parametrize("method", [None, "numeric"])
def test_far_targets_fail_with_a_reason(method: str | None) -> None:
    """Nothing is claimed to be reached that is not."""
    cell = delta()
    _, X = samples(cell, "platform", 50)
    X = X.copy()
    X[:, :3, 3] *= 5.0
    found = cell.ik("platform", rotation="")(X, method=method)
    assert not found.success.any()
    assert set(np.unique(found.reason)) <= {
        Reason.NOT_FOUND,
        Reason.OUT_OF_REACH,
        Reason.LIMITS,
    }


@pytest.mark.parametrize("method", [None, "numeric"])
def test_passive_joints_keep_their_limits(method: str | None) -> None:
    """Targets beyond the limits of the platform are blocked by them, others solved."""
    free = delta()
    z = free.home.passive[-1]
    low, high = z - 0.02, z + 0.02
    cell = with_limits(free, "platform", arm.Limits(lower=low, upper=high))
    _, X = samples(cell, "platform", 300)
    found = cell.ik("platform", rotation="")(X, method=method)
    height = X[:, 2, 3]
    inside = (height > low + 1e-6) & (height < high - 1e-6)
    outside = (height < low - 1e-6) | (height > high + 1e-6)
    assert inside.any()
    assert outside.any()
    assert found.success[inside].all(), found.summary()
    assert (found.reason[outside] == Reason.LIMITS).all(), found.summary()


def test_loops_that_do_not_carry_the_goal_are_closed_within_limits() -> None:
    """Of the two elbows only the one that the cylinder allows is an answer."""
    free, bound = counterbalanced(), counterbalanced(lower=0.3)
    _, X = samples(free, "tip")
    found = bound.ik("tip", rotation="")(X)
    assert found.success.any()
    assert not found.success.all()
    for q in found.q[found.success]:
        assert not bound.violations(bound.home.replace(q=q), tolerance=1e-6)
    q, _ = samples(free, "tip")
    allowed = np.linalg.norm(_eye(q) - [0, -0.3], axis=1) > 0.3 + 1e-6
    assert found.success[allowed].all()


def _eye(q: Array) -> Array:
    """Return x and z of the eye of the counterbalance, shape (..., 2)."""
    return 0.1 * np.stack([np.cos(q[:, 0]), -np.sin(q[:, 0])], axis=-1)


def with_limits(cell: arm.Cell, name: str, limits: arm.Limits) -> arm.Cell:
    """Return a cell of one manipulator with other limits of a joint."""
    (manipulator,) = cell.manipulators
    links = [
        msgspec.structs.replace(link, limits=limits) if link.name == name else link
        for link in manipulator.links
    ]
    return arm.Cell(manipulators=[manipulator.replace(links=links)])


def test_some_joints_alone_are_found() -> None:
    """Others stay at home, or where the state has them."""
    cell = five_bar()
    state = cell.home.replace(q=np.add(cell.home.q, [0.1, -0.05]))
    fk = cell.fk("tip", joints=["left"], state=state)
    q = state.q[0] + np.linspace(-0.2, 0.2, 20)[:, None]
    X = fk(q)
    ik = cell.ik("tip", joints=["left"], state=state, rotation="")
    found = ik(X)
    assert found.success.all(), found.summary()
    assert np.abs(fk(found.q) - X)[:, :3, 3].max() < 2e-6


def test_paths_are_followed() -> None:
    """A circle of the delta has no jump."""
    cell = delta()
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    X = np.tile(np.eye(4), (200, 1, 1))
    X[:, 0, 3], X[:, 1, 3] = 0.05 * np.cos(angle), 0.05 * np.sin(angle)
    X[:, 2, 3] = cell.home.passive[-1] - 0.03
    way = cell.ik("platform", rotation="").path(X)
    assert way.answer.success.all()
    assert not way.jumps.size
    assert np.abs(cell.fk("platform")(way.answer.q) - X).max() < 2e-6


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("make", "name", "goal"), LINKAGES, ids=NAMES)
def test_rates_achieve_what_the_jacobian_says(
    make: Callable[[], arm.Cell], name: str, goal: dict[str, str]
) -> None:
    """J qd is met by rates whose twist is the same."""
    cell = make()
    q, _ = samples(cell, name, 50)
    rng = np.random.default_rng(1)
    twists = np.einsum(
        "kij,kj->ki", cell.jacobian(name)(q), rng.uniform(-0.1, 0.1, q.shape)
    )
    found = cell.differential_ik(name, limits=False, **goal)(q, twists, damping=1e-6)
    rows = [*range(3)] if goal.get("position", "xyz") else []
    rows += [*range(3, 6)] if goal.get("rotation", "xyz") == "xyz" else []
    achieved = np.einsum("kij,kj->ki", cell.jacobian(name)(q), found.qd)
    assert np.abs(found.twist - achieved).max() < 1e-9
    assert np.abs((found.twist - twists)[:, rows]).max(initial=0.0) < 1e-6


@pytest.mark.parametrize("step", [0.0, 0.1, 1.0])
def test_rates_of_passive_joints_keep_limits(step: float) -> None:
    """All rates are slowed down alike, just as far as the limits need it."""
    free = delta()
    z = free.home.passive[-1]
    limits = arm.Limits(lower=z - 0.02, upper=z + 0.02, velocity=0.1)
    cell = with_limits(free, "platform", limits)
    for speed in (0.01, 0.05, 0.5, -0.5):
        found = cell.differential_ik("platform", rotation="")(
            cell.home.q, [0, 0, speed, 0, 0, 0], step=step
        )
        most = min(0.1, 0.02 / step if step else math.inf)
        expected = math.copysign(min(abs(speed), most), speed)
        assert found.twist[2] == pytest.approx(expected)
        assert bool(found.success) == (abs(speed) <= most)
        state = cell.home.replace(qd=found.qd)
        assert not cell.violations(state, tolerance=1e-9)


def test_what_is_found_is_not_searched_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = four_bar()
    ik = cell.ik("tip", rotation="")
    X = cell.fk("tip")([[0.3], [0.9]])
    monkeypatch.setattr(ik.numeric, "_settle", lambda *_: pytest.fail("searched"))
    assert ik(X, method="numeric").success.all()
