from __future__ import annotations

import math
import re

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Coupling, Limits, Link, Manipulator, State
from armillary.errors import StateError
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from four_bar import four_bar

X = (1.0, 0.0, 0.0)


def finger(name: str, parent: str, upper: float, **given: object) -> Link:
    limits = Limits(lower=0.0, upper=upper, velocity=2.0)
    return Link(
        name=name, parent=parent, joint=Prismatic(axis=X), limits=limits, **given
    )  # type: ignore[arg-type]


@pytest.fixture
def cell() -> Cell:
    hand = Manipulator(
        name="hand",
        links=(
            Link(name="palm"),
            finger("left", "palm", 1.0),
            finger(
                "right",
                "palm",
                0.9,
                coupling=Coupling(of="left", multiplier=-1.0, offset=1.0),
            ),
        ),
    )
    wheel = Manipulator(
        name="wheel",
        links=(
            Link(name="axle"),
            Link(name="rim", parent="axle", joint=Revolute(axis=X)),
        ),
    )
    return Cell(manipulators=(hand, wheel))


def test_limits_are_inclusive(cell: Cell):
    lower, upper = cell.limits
    for left in (lower[0], upper[0], 0.5 * (lower[0] + upper[0])):
        assert cell.violations(cell.home.replace(q=[left, 1e9])) == ()


def test_violations_are_just_what_lies_outside_of_the_cells_limits(cell: Cell):
    lower, upper = cell.limits
    random = np.random.default_rng(0)
    for _ in range(200):
        q = random.normal(scale=2.0, size=2)
        is_inside = bool(np.all((lower <= q) & (q <= upper)))
        assert (cell.violations(cell.home.replace(q=q)) == ()) == is_inside


def test_one_that_follows_is_named_with_its_leader(cell: Cell):
    (found,) = cell.violations(cell.home.replace(q=[0.05, 0.0]))
    assert (found.kind, found.subject) == ("above", "hand/right")
    assert (found.value, found.limit) == (0.95, 0.9)
    assert str(found) == (
        "Joint 'hand/right', which follows 'hand/left', is at 0.95, above its upper "
        "limit 0.9."
    )


def test_all_are_reported(cell: Cell):
    state = cell.home.replace(q=[-0.5, 0.0], qd=[3.0, 1e9])
    found = cell.violations(state)
    assert [(each.kind, each.subject) for each in found] == [
        ("below", "hand/left"),
        ("rate", "hand/left"),
        ("above", "hand/right"),
        ("rate", "hand/right"),
    ]
    assert found[3].value == -3.0
    assert "has the rate 3, beyond its limit of 2." in str(found[1])


def test_tolerance_widens_every_limit(cell: Cell):
    just_outside = cell.home.replace(q=[math.nextafter(1.0, 2.0), 0.0])
    assert [each.kind for each in cell.violations(just_outside)] == ["above", "below"]
    assert cell.violations(just_outside, tolerance=1e-12) == ()


def test_the_state_must_fit(cell: Cell):
    with pytest.raises(StateError):
        cell.violations(State(q=(0.0,)))


def test_states_beyond_limits_are_refused_where_that_is_asked() -> None:
    cell = arm.example("irb2400")
    inside = np.zeros(6)
    assert cell.home.replace(q=inside, check_limits=True).q.tolist() == list(inside)
    name = cell.joint_names[0]
    device = cell.device("irb2400")
    for asked in (
        lambda: cell.home.replace(q=[90, 0, 0, 0, 0, 0], check_limits=True),
        lambda: cell.home.joints({name: 90}, check_limits=True),
        lambda: device.with_q(cell.home, [90, 0, 0, 0, 0, 0], check_limits=True),
    ):
        with pytest.raises(StateError, match=r"at 90, above.*np\.deg2rad"):
            asked()
    fast = np.full(6, 1e3)
    with pytest.raises(StateError, match="rate"):
        cell.home.replace(qd=fast, check_limits=True)
    assert cell.home.replace(q=[90, 0, 0, 0, 0, 0]).q[0] == 90
    (broken,) = cell.violations(cell.home.joints({name: 3.2}))
    assert "deg2rad" not in broken.message


def test_limits_are_named_where_loops_cannot_close() -> None:
    """The message named the joints of another robot, and no limit."""
    cell = arm.example("irb2400").add(arm.example("five_bar").manipulators[0])
    beyond = {"right": -1.5, "left": 3.0}
    with pytest.raises(StateError, match=r"right' is at -1\.5, below its lower limit"):
        cell.home.joints(beyond, check_limits=True)
    way = "way to 'five_bar/right' = -1.5, 'five_bar/left' = 3. At these"
    with pytest.raises(StateError, match=re.escape(way)):
        cell.home.joints(beyond)


def test_each_passive_joint_has_its_own_rate():
    """The second linkage is listed first, though it follows the other's rocker."""
    ground, *bars = four_bar().links
    slow = [link.replace(limits=Limits(velocity=1.0)) for link in bars]
    drive = Coupling(of="rocker", multiplier=0.5, offset=0.1)
    followers = [
        link.replace(
            name=f"second_{link.name}",
            parent={"crank": "second_crank"}.get(link.parent, link.parent),
            frames=[
                arm.Frame(name=f"second_{f.name}", pose=f.pose) for f in link.frames
            ],
            coupling=drive if link.name == "crank" else None,
        )
        for link in slow
    ]
    pins = [
        arm.Closure(f"{prefix}tip", f"{prefix}end", position="xy")
        for prefix in ("", "second_")
    ]
    pair = arm.Manipulator(name="pair", links=[ground, *followers, *slow], loops=pins)
    cell = arm.Cell(manipulators=[pair])
    state = cell.home.replace(q=[0.4], qd=[1.0])
    before, after = (cell.close_loops([0.4 + h]).passive for h in (-1e-6, 1e-6))
    rates = dict(zip(cell.passive_names, (after - before) / 2e-6, strict=True))
    found = {
        each.subject.removeprefix("pair/"): each for each in cell.violations(state)
    }
    assert set(found) == {name for name, rate in rates.items() if abs(rate) > 1.0}
    assert set(found) == {"coupler"}
    np.testing.assert_allclose(found["coupler"].value, rates["coupler"], atol=1e-8)
