"""A base on two wheels goes where they roll it; and the wheels do not slip."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Mount, Pose, State, joints
from armillary.errors import ModelError, StateError, UnknownName
from armillary.model.wheels import Wheels
from armillary.testing.samples import random_pose

RADIUS, WIDTH = 0.1, 0.5
SEEDS = range(4)


def wheel(
    name: str, y: float, axis: tuple[float, ...] = (0, 1, 0), x: float = 0
) -> Link:
    at = Pose.translation(x, y, RADIUS)
    joint = joints.Revolute(axis=axis, precursor=at)
    return Link(name=name, parent="deck", joint=joint)


def robot(
    *, x: float = 0.0, axes: Any = ((0, 1, 0), (0, 1, 0)), shift: float = 0.0
) -> Cell:
    """A cart with an arm of two joints on it, and a part."""
    cart = Manipulator(
        name="cart",
        links=[
            Link(name="deck"),
            wheel("left", shift + WIDTH / 2, axes[0], x),
            wheel("right", shift - WIDTH / 2, axes[1], x),
            Link(name="mast", parent="deck"),
        ],
    )
    turns = [
        joints.Revolute(axis=axis, precursor=Pose.translation(0.1, 0, 0.4))
        for axis in ((0, 0, 1), (0, 1, 0))
    ]
    links = [
        Link(name="foot"),
        Link(name="upper", parent="foot", joint=turns[0]),
        Link(name="tool", parent="upper", joint=turns[1]),
    ]
    mount = Mount(manipulator="arm", on="mast", pose=Pose.translation(0.2, 0, 0.3))
    part = Manipulator(name="part", links=[Link(name="block")])
    return Cell(
        manipulators=[cart, Manipulator(name="arm", links=links), part], mounts=[mount]
    )


def driven(cell: Cell) -> Any:
    return cell.differential_drive("cart", left="left", right="right", radius=RADIUS)


def somewhere(cell: Cell, seed: int) -> State:
    """A random state, the cart on some plane, the part held by the tool."""
    random = np.random.default_rng(seed)
    state = cell.home.replace(q=random.normal(size=len(cell.joint_names)))
    state = state.place("cart", random_pose(random))
    return state.grip("part", by="tool")


VARIANTS = [
    {},
    {"x": 0.13},
    {"axes": ((0, -1, 0), (0, 1, 0))},
    {"x": -0.2, "axes": ((0, -1, 0), (0, -1, 0)), "shift": 0.07},
]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_wheels_do_not_slip(variant: dict[str, Any], seed: int) -> None:
    cell = robot(**variant)
    drive = driven(cell)
    random = np.random.default_rng(seed)
    state = drive.with_qd(somewhere(cell, seed), random.normal(size=2))
    for name in ("left", "right"):
        # The point of the wheel that is on the ground stands still.
        V = cell.twist(name, state, axes="deck")
        ground = V[:3] + np.cross(V[3:], [0, 0, -RADIUS])
        np.testing.assert_allclose(ground, 0, atol=1e-13)
        assert abs(V[0]) > 1e-3


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rolling_has_the_slope_that_twists_and_jacobians_say(
    variant: dict[str, Any], seed: int
) -> None:
    cell = robot(**variant)
    drive = driven(cell)
    state = somewhere(cell, seed)
    rates = np.random.default_rng(seed + 1).normal(size=2)
    moving = drive.with_qd(state, rates)
    for frame in ("deck", "left", "block"):
        V = drive.jacobian(frame, state) @ rates
        np.testing.assert_allclose(V, cell.twist(frame, moving), atol=1e-12)
        errors = []
        for h in (2e-3, 1e-3):
            before, after = (
                cell.pose(frame, drive.roll(state, step * rates)) for step in (-h, h)
            )
            slope = (after - before) / (2 * h)
            now = cell.pose(frame, state)
            spin = slope[:3, :3] @ now[:3, :3].T
            found = [*slope[:3, 3], spin[2, 1], spin[0, 2], spin[1, 0]]
            errors.append(np.abs(found - V).max())
        assert errors[1] < 0.3 * errors[0] + 1e-9
        assert errors[1] < 1e-4


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_an_arc_is_exact_in_any_number_of_steps(
    variant: dict[str, Any], seed: int
) -> None:
    cell = robot(**variant)
    drive = driven(cell)
    start = somewhere(cell, seed)
    dq = np.random.default_rng(seed + 2).normal(size=2) * 5
    once = drive.roll(start, dq)
    state = start
    for _ in range(7):
        state = drive.roll(state, dq / 7)
    np.testing.assert_allclose(drive.q(once), drive.q(start) + dq, atol=1e-12)
    np.testing.assert_allclose(
        cell.pose("block", state), cell.pose("block", once), atol=1e-11
    )
    back = drive.with_q(once, drive.q(start))
    np.testing.assert_allclose(
        cell.pose("deck", back), cell.pose("deck", start), atol=1e-12
    )
    assert set(once.difference(start)) == {*drive.joint_names, "base of cart"}


def test_straight_and_in_place_and_about_one_wheel() -> None:
    cell = robot()
    drive = driven(cell)
    ahead = cell.pose("deck", drive.roll(cell.home, [2.0, 2.0]))
    np.testing.assert_allclose(ahead, Pose.translation(0.2, 0, 0).matrix(), atol=1e-15)
    angle = 2 * RADIUS * 1.5 / WIDTH
    spun = cell.pose("deck", drive.roll(cell.home, [-1.5, 1.5]))
    np.testing.assert_allclose(spun, Pose.rotation_z(angle).matrix(), atol=1e-15)
    left = drive.roll(cell.home, [0.0, 3.0])  # to the left, about the left wheel
    np.testing.assert_allclose(
        cell.pose("left", left)[:3, 3], cell.pose("left", cell.home)[:3, 3], atol=1e-15
    )
    assert cell.pose("deck", left)[1, 0] > 0.5


def test_one_wheel_after_the_other_leads_elsewhere() -> None:
    cell = robot()
    drive = driven(cell)
    one = drive.roll(drive.roll(cell.home, [9.0, 0.0]), [0.0, 9.0])
    both = drive.roll(cell.home, [9.0, 9.0])
    np.testing.assert_array_equal(drive.q(one), drive.q(both))
    assert np.abs(cell.pose("deck", one) - cell.pose("deck", both)).max() > 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_rates_for_a_wanted_motion(variant: dict[str, Any]) -> None:
    cell = robot(**variant)
    drive = driven(cell)
    random = np.random.default_rng(0)
    speed, turning = random.normal(size=(2, 3))
    V = drive.rates(speed, turning) @ drive.base_jacobian.T
    np.testing.assert_allclose(V[:, 5], turning, atol=1e-14)
    middle = 0.5 * (drive.axle.left + drive.axle.right)
    np.testing.assert_allclose(V[:, 0] - turning * middle, speed, atol=1e-14)


@pytest.mark.parametrize("seed", SEEDS)
def test_wheels_and_arm_together(seed: int) -> None:
    cell = robot()
    drive = driven(cell)
    state = somewhere(cell, seed)
    J = drive.jacobian("block", state, joints=cell.joint_names)
    assert J.shape == (6, 4)
    rates = np.random.default_rng(seed).normal(size=4)
    moving = drive.with_qd(state.replace(qd=rates), rates[:2])
    np.testing.assert_allclose(J @ rates, cell.twist("block", moving), atol=1e-12)
    options = {"relative_to": "upper", "point": "deck", "axes": "left"}
    J = drive.jacobian("block", state, joints=cell.joint_names, **options)
    V = cell.twist("block", moving, **options)
    np.testing.assert_allclose(J @ rates, V, atol=1e-12)
    np.testing.assert_allclose(J[:, :2], 0, atol=1e-12)  # nothing there rolls apart


def test_robworks_mobile_device_without_its_slips(tmp_path: Path) -> None:
    path = tmp_path / "cart.wc.xml"
    path.write_text(
        '<WorkCell name="w"><MobileDevice name="m" basename="Base"><AxelWidth>1'
        '</AxelWidth><LeftWheel name="L"/><RightWheel name="R"/></MobileDevice>'
        "</WorkCell>"
    )
    cell = arm.load(path)
    drive = cell.differential_drive("m")
    assert drive.axle.width == 1.0
    # Its manual's formula, with the angle's sign put right: r = 1.5, an angle of 1.
    X = cell.pose("Base", drive.with_q(cell.home, [1.0, 2.0]))
    expected = Pose.rotation_z(1.0).matrix()
    expected[:2, 3] = 1.5 * math.sin(1.0), 1.5 * (1.0 - math.cos(1.0))
    np.testing.assert_allclose(X, expected, atol=1e-15)
    J = drive.base_jacobian  # to the left where the right wheel is faster
    np.testing.assert_allclose(J[[0, 1, 5]], [[0.5, 0.5], [0, 0], [-1, 1]], atol=1e-15)


def test_wheels_of_a_manipulator_drive_it_wherever_it_is() -> None:
    cell = robot()
    own = Wheels(left="left", right="right", radius=RADIUS)
    cart = msgspec.structs.replace(cell.manipulators[cell.index["cart"]], wheels=own)
    mine = cell.exchange(cart)
    assert mine.differential_drive("cart").axle == driven(cell).axle
    with pytest.raises(ModelError, match="itself has wheels, which count if nothing"):
        mine.differential_drive("cart", radius=2.0)
    given = mine.differential_drive("cart", left="left", right="right", radius=2.0)
    assert given.axle.travel == (2.0, 2.0)


def test_wheels_that_are_invalid_are_refused() -> None:
    faulty: list[tuple[dict[str, Any], str]] = [
        ({}, "either the radius"),
        ({"radius": 1.0, "travel": 1.0}, "either the radius"),
        ({"radius": -1.0}, "cannot roll -1.0"),
        ({"travel": math.inf}, "cannot roll inf"),
        ({"radius": 1.0, "track_width": 0.0}, "track_width of two wheels"),
        ({"radius": 1.0, "right": "left"}, "Both wheels are 'left'"),
        ({"radius": 1.0, "right": "deck"}, "'deck' is not a joint"),
    ]
    links = [Link(name="deck"), wheel("left", 0.2), wheel("right", -0.2)]
    for options, message in faulty:
        with pytest.raises(ModelError, match=message):
            wheels = Wheels(**{"left": "left", "right": "right", **options})
            Manipulator(name="cart", links=links, wheels=wheels)


def test_drives_are_values() -> None:
    drive = driven(robot())
    assert drive == driven(robot())
    assert hash(drive) == hash(driven(robot()))
    assert pickle.loads(pickle.dumps(drive)) == drive
    assert drive.joint_names == ("cart/left", "cart/right")


def test_what_does_not_roll_is_refused() -> None:
    cell = robot()
    drive = driven(cell)
    bolted = cell.mount("cart", pose=Pose.translation(0, 0, 1))
    tilted = robot(axes=((0, 1, 0), (1, 0, 0)))
    spread = robot().exchange(
        Manipulator(
            name="cart",
            links=[
                Link(name="deck"),
                wheel("left", 0.2),
                wheel("right", -0.2, x=0.1),
                Link(name="mast", parent="deck"),
            ],
        )
    )

    def made(of: Cell, name: str = "cart", **more: Any) -> Any:
        options = {"left": "left", "right": "right", "radius": RADIUS, **more}
        return lambda: of.differential_drive(name, **options)

    held = cell.home.grip("cart", by="block")
    asked = [
        (made(cell, "crt"), UnknownName, "Did you mean 'cart'"),
        (made(cell, left="lft"), UnknownName, "Known joints: cart/left"),
        (made(cell, left="right", right="left"), ModelError, "swap them"),
        (made(cell, right="left"), ModelError, "swap them"),
        (made(cell, left="upper"), ModelError, "not on one axle"),
        (made(cell, left="tool"), ModelError, "hangs on a joint"),
        (made(cell, "part"), ModelError, "not a part of its base"),
        (made(cell, travel=1.0), ModelError, "either the radius"),
        (made(cell, radius=None), ModelError, "either the radius"),
        (made(cell, radius=math.nan), ModelError, "cannot roll nan"),
        (made(cell, radius=0.0), ModelError, "cannot roll 0.0"),
        (made(cell, left=None), ModelError, "itself has no wheels"),
        (lambda: cell.differential_drive("cart"), ModelError, "itself has no wheels"),
        (made(cell, track_width=-1.0), ModelError, "track_width"),
        (made(cell, track_width=math.inf), ModelError, "track_width"),
        (made(tilted), ModelError, "not about y"),
        (made(spread), ModelError, "not on one axle"),
        (made(bolted), StateError, "fixed"),
        (lambda: drive.roll(held, [1, 1]), StateError, "carried by 'part/block'"),
        (lambda: drive.with_qd(held, [1, 1]), StateError, "carried by 'part/block'"),
        (lambda: drive.roll(cell.home, [1.0]), StateError, "two finite numbers"),
        (lambda: drive.roll(cell.home, [1.0, math.nan]), StateError, "two finite"),
        (lambda: drive.with_q(cell.home, "up"), StateError, "two finite numbers"),
        (lambda: drive.jacobian("dck", cell.home), UnknownName, "no frame"),
        (lambda: drive.jacobian("deck", State()), StateError, "0 joint positions"),
    ]
    for attempt, kind, text in asked:
        with pytest.raises(kind, match=text):
            attempt()
    assert driven(cell).axle.width == WIDTH
    wide = cell.differential_drive(
        "cart", left="left", right="right", radius=RADIUS, track_width=0.7
    )
    assert wide.axle.width == pytest.approx(0.7)
