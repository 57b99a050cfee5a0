"""Closed forms of SCARA, planar, Cartesian, cylindrical and polar arms, and wrists."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.ik.reason import Reason
from armillary.kernel.references import vectorize
from armillary.testing.samples import random_pose
from arms import ALLOWED, arm_of_axes

SCARA = "three parallel axes, as SCARA and planar arms have"
SLIDING = "two parallel axes and a slide across them"
TWO = "two parallel axes"
FEW = "turns by the rotation, slides by the position"
THREE = "turns by the rotation, slides by the position, with three turns"

# z turns about z, l slides along it, x across it; r turns, p slides anywhere
PATTERNS = {
    SCARA: ("zzz", "zzzl", "zzlz", "zlzz", "lzzz"),
    SLIDING: ("zzx", "zxz", "xzz", "zzxl", "zlxz", "lxzz", "xzlz"),
    TWO: ("zz", "zzl", "zlz", "lzz"),
    FEW: ("r", "p", "pp", "rp", "rr", "ppp", "rpp", "prp", "rrp", "rppr", "ppprr"),
    THREE: ("rrr", "rrrp", "rrpr", "pprrr", "ppprrr", "rpprpr", "rrrppp"),
}
REACH = 0.7  # how far a joint slides to either side


def random_arm(pattern: str, seed: int = 0) -> Cell:
    """Return a random arm of a pattern, somewhere, with some tool."""
    rng = np.random.default_rng([seed, *map(ord, pattern)])
    frame = random_pose(rng).matrix()[:3, :3]
    axes = []
    for letter in pattern:
        angle = rng.uniform(-3.0, 3.0)
        if letter in "zl":
            axes.append(frame[:, 2] * rng.choice([-1.0, 1.0]))
        elif letter == "x":
            axes.append(frame[:, 0] * np.cos(angle) + frame[:, 1] * np.sin(angle))
        else:
            axes.append(rng.normal(size=3))
    turning = [letter in "zr" for letter in pattern]
    return arm_of_axes(
        "".join("R" if turns else "P" for turns in turning),
        np.array(axes),
        rng.uniform(-0.5, 0.5, (len(pattern), 3)),
        base=random_pose(rng),
        tool=random_pose(rng),
        limit=[np.pi if turns else REACH for turns in turning],
    )


def scara(*, limits: tuple[float, ...] = (2.3, 2.5, 0.1, np.pi)) -> Cell:
    """Return a SCARA arm: two links of 0.3 m and 0.25 m, a lift, a spin."""
    points = [(0, 0, 0.4), (0.3, 0, 0.4), (0.55, 0, 0.3), (0.55, 0, 0.2)]
    return arm_of_axes("RRPR", [(0, 0, 1)] * 4, points, limit=limits)


def apart(cell: Cell, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest difference of joint vectors, whole turns left out."""
    difference = np.abs(a - b)
    turns = cell.limits[1] > 3.0
    whole = np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi)
    return np.where(turns, whole, difference).max(axis=-1)


def sample(cell: Cell, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return random q within the limits, and where the tool is then."""
    most = cell.limits[1]
    q = np.random.default_rng(1).uniform(-most, most, (count, len(most)))
    return q, cell.fk("tool")(q)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("family", "pattern"),
    [(family, pattern) for family, row in PATTERNS.items() for pattern in row],
)
def test_every_branch_reaches_the_target(family: str, pattern: str) -> None:
    cell = random_arm(pattern)
    closed = cell.ik("tool").closed
    assert closed.family == family
    q, targets = sample(cell)
    found, squares, reason, *_ = vectorize(closed.program, targets, ALLOWED)
    assert found.shape == (200, len(closed.branches), len(pattern))
    met = np.isin(reason, (Reason.SOLVED, Reason.SINGULAR, Reason.LIMITS))
    error = np.abs(cell.fk("tool")(found) - targets[:, None]).max(axis=(-2, -1))
    assert error[met].max() < 2e-6
    assert np.median(error[met]) < 1e-14
    own = np.where(met, apart(cell, found, q[:, None]), np.inf)
    assert own.min(axis=1).max() < 1e-6
    assert np.isnan(found[~met]).all()
    if pattern not in PATTERNS[THREE]:  # where a small bend leaves doubt
        assert (reason[~met] == Reason.OUT_OF_REACH).all()
    assert (squares[met] <= 1e-12).all()
    b = len(closed.branches)
    between = apart(cell, found[:, :, None], found[:, None]) + 9.0 * np.eye(b)
    assert np.nanmin(between) > 1e-6


@pytest.mark.parametrize("pattern", ["zzlz", "zxz", "xzz", "zzx", "rpr", "pprrr"])
def test_no_branch_is_missed(pattern: str) -> None:
    """A search from many starts finds only what the formula finds."""
    cell = random_arm(pattern)
    ik = cell.ik("tool")
    _, targets = sample(cell, 5)
    searched = ik.all(targets, method="numeric")
    known = vectorize(ik.closed.program, targets, ALLOWED)[0]
    for row, every in zip(range(5), known, strict=True):
        q = searched.q[row][searched.success[row]]
        assert len(q)
        assert np.nanmin(apart(cell, q[:, None], every), axis=1).max() < 1e-3


def test_scara_answers_within_its_limits() -> None:
    cell = scara()
    ik = cell.ik("tool")
    q, targets = sample(cell, 1000)
    answer = ik(targets)
    assert answer.success.all()
    assert (np.abs(answer.q) <= cell.limits[1]).all()
    assert np.abs(cell.fk("tool")(answer.q) - targets).max() < 1e-9
    assert np.abs(ik(targets, near=q).q - q).max() < 1e-7
    found = ik.all(targets)
    assert ik.closed.branches == (("left",), ("right",))
    assert (found.q[:, 0, 1] > 0.0).all()
    assert (found.q[:, 1, 1] < 0.0).all()


def test_what_a_scara_cannot_do_is_proven() -> None:
    cell = scara()
    ik = cell.ik("tool")
    _, targets = sample(cell, 4)
    targets[0] = targets[0] @ Pose.rotation_x(1e-2).matrix()
    targets[1, 0, 3] += 5.0
    targets[2, 2, 3] += 0.5
    targets[3, 0, 0] = np.nan
    reasons = [
        Reason.OUT_OF_REACH,
        Reason.OUT_OF_REACH,
        Reason.LIMITS,
        Reason.INVALID_TARGET,
    ]
    assert ik(targets).reason.tolist() == reasons
    assert ik.all(targets).reason.tolist() == [[reason] * 2 for reason in reasons]


def test_an_axis_above_another_is_singular() -> None:
    points = [(0.0, 0.0, 0.0), (0.3, 0.0, 0.0), (0.6, 0.0, 0.0)]
    cell = arm_of_axes("RRR", [(0, 0, 1)] * 3, points)
    ik, q = cell.ik("tool"), np.array([0.4, np.pi, 0.7])
    found = ik.all(cell.fk("tool")(q))
    assert (found.reason == Reason.SINGULAR).all()
    assert np.abs(cell.fk("tool")(found.q) - cell.fk("tool")(q)).max() < 1e-7


def test_the_edge_of_reach_is_reached() -> None:
    cell = scara()
    q = np.array([[0.3, 0.0, 0.02, 0.4], [0.3, 1e-9, 0.02, 0.4]])
    answer = cell.ik("tool")(cell.fk("tool")(q))
    assert answer.success.all()
    assert np.abs(answer.q - q).max() < 1e-6


def test_a_polar_slide_through_the_first_axis() -> None:
    """Of RPR with the axes in one place at q = 0, all turns reach that place."""
    axes = [(0, 0, 1), (1, 0, 0), (0, 0, 1)]
    cell = arm_of_axes("RPR", axes, np.zeros((3, 3)), limit=[np.pi, 1.0, np.pi])
    ik, fk = cell.ik("tool"), cell.fk("tool")
    q = np.array([0.5, 0.4, -0.3])
    found = ik.all(fk(q))
    assert found.success.all()
    assert np.allclose(found.q[0], q)
    assert np.allclose(found.q[1], [0.5 - np.pi, -0.4, np.pi - 0.3])
    assert ik.closed.branches == (("ahead",), ("behind",))
    q[1] = 0.0
    assert (ik.all(fk(q)).reason == Reason.SINGULAR).all()


def test_a_tilt_next_to_nothing_proves_nothing() -> None:
    """Of three axes, one leaning by 1e-6, the rotation hardly tells the angles."""
    axes = [(0, 0, 1), (0, 1e-6, 1), (0, 0, 1)]
    cell = arm_of_axes("RRR", axes, [(0, 0, 0), (0.4, 0, 0), (0.7, 0, 0)])
    _, targets = sample(cell, 50)
    noise = Pose.rotation_x(1e-7).matrix()
    answer = cell.ik("tool")(targets @ noise)
    assert not (answer.reason == Reason.OUT_OF_REACH).any()
    assert answer.success.mean() > 0.9


def test_a_gantry_with_a_wrist_reaches_any_pose() -> None:
    cell = arm_of_axes(
        "PPPRRR",
        [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), (0, 1, 0), (0, 0, 1)],
        np.zeros((6, 3)),
        tool=Pose.translation(0.1, 0.0, 0.2),
        limit=10.0,
    )
    ik, rng = cell.ik("tool"), np.random.default_rng(0)
    targets = np.array([random_pose(rng).matrix() for _ in range(200)])
    found = ik.all(targets)
    assert found.success.all()
    assert np.abs(cell.fk("tool")(found.q) - targets[:, None]).max() < 1e-12
    assert (found.q[:, 0, 4] < 0.0).all()  # z1 . (z2 x z3) = -sin(q_5)
    singular = ik.all(cell.fk("tool")([0.1, 0.2, 0.3, 0.4, 0.0, 0.6]))
    assert (singular.reason == Reason.SINGULAR).all()


def test_a_plain_gantry_keeps_its_rotation() -> None:
    cell = arm_of_axes("PPP", np.eye(3), np.zeros((3, 3)), limit=2.0)
    ik = cell.ik("tool")
    target = Pose.translation(0.1, -0.2, 0.3).matrix()
    assert np.allclose(ik(target).q, [0.1, -0.2, 0.3])
    assert ik(target @ Pose.rotation_z(0.1).matrix()).reason == Reason.OUT_OF_REACH
    assert ik.closed.branches == ((),)


def test_denavit_hartenbergs_joints_and_gains_count_by_their_motion() -> None:
    make = arm.joints
    links = (
        Link(name="base"),
        Link(name="a", parent="base", joint=make.PaulRevolute(a=0.3, d=0.2)),
        Link(name="b", parent="a", joint=make.PaulRevolute(a=0.2, alpha=np.pi)),
        Link(name="c", parent="b", joint=make.PaulPrismatic(theta=0.3)),
        Link(name="tool", parent="c", joint=make.PaulRevolute(d=0.1)),
    )
    cell = Cell(manipulators=(Manipulator(name="arm", links=links),))
    ik = cell.ik("tool")
    assert ik.closed.family == SCARA
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 4))
    found = ik.all(cell.fk("tool")(q))
    assert found.success.all()
    assert np.abs(found.q - q[:, None]).max(axis=-1).min(axis=1).max() < 1e-9


@pytest.mark.parametrize(
    ("kinds", "axes", "points", "why"),
    [
        (
            "RRR",
            [(0, 0, 1)] * 3,
            [(0, 0, 0), (0, 0, 1), (1, 0, 0)],
            "axes 1 and 2 are the same line",
        ),
        (
            "PPP",
            [(1, 0, 0), (0, 1, 0), (1, 1, 0)],
            np.zeros((3, 3)),
            "joints 1, 2 and 3 do not slide independently",
        ),
        (
            "PRP",
            [(0, 0, 1)] * 3,
            np.zeros((3, 3)),
            "joints 1 and 3 do not slide independently",
        ),
        (
            "PPPPRRR",
            np.eye(3)[[0, 1, 2, 0, 0, 1, 2]],
            np.zeros((7, 3)),
            "7 joints move the frame, more than a pose needs",
        ),
        # A finger that slides on the hand of an arm.
        (
            "RRRRRRP",
            np.eye(3)[[2, 1, 1, 0, 1, 0, 1]],
            [(0, 0, 0), (0, 0, 1), (1, 0, 1), *[(2, 0, 1)] * 4],
            "7 joints move the frame, more than a pose needs",
        ),
    ],
)
def test_what_is_next_to_a_family_is_reported_why(
    kinds: str, axes: list[tuple[float, ...]], points: object, why: str
) -> None:
    ik = arm_of_axes(kinds, axes, points).ik("tool")
    assert ik.closed is None
    assert why in ik.why_not_closed
