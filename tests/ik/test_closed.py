"""Closed forms against forward kinematics, on random arms of every family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.errors import ShapeError, UnknownName
from armillary.ik.closed_forms.recognise import FAMILIES, GENERAL_SIX
from armillary.ik.reason import Reason
from armillary.kernel.references import vectorize
from armillary.kinematics.inputs import Inputs
from armillary.kinematics.poses import poses_program as fk_program
from armillary.model.coupling import Coupling
from armillary.model.limits import Limits
from armillary.model.tree import Tree
from armillary.testing.samples import random_pose
from armillary.trace import Program
from arms import ALLOWED

TAU = 2.0 * np.pi
KINDS = (
    "elbow",
    "elbow, right angles",
    "meeting 12",
    "meeting 23",
    "parallel 12",
    "three parallel",
    "three parallel, right angles",
)
EXPECTED = dict(
    zip(
        KINDS,
        [FAMILIES[k].name for k in (0, 0, 1, 2, 3, 4, 4)],
        strict=True,
    )
)


class Lines(NamedTuple):
    """The axes of an arm at q = 0: directions and points, shape (6, 3)."""

    axes: np.ndarray
    points: np.ndarray


def random_lines(kind: str, rng: np.random.Generator) -> Lines:
    """Return the axes of a random arm of a kind."""
    axes = rng.normal(size=(6, 3))
    points = rng.uniform(-0.5, 0.5, (6, 3))
    x, y, z = np.eye(3)
    if kind == "elbow":
        axes[2] = axes[1]
    elif kind == "elbow, right angles":
        axes = np.array([z, y, -y, x, y, x])
    elif kind == "meeting 12":
        points[1] = points[0]
    elif kind == "meeting 23":
        points[2] = points[1]
    elif kind == "parallel 12":
        axes[1] = -axes[0]
    elif kind == "three parallel":
        axes[2], axes[3] = axes[1], -axes[1]
        points[5] = points[4]
    else:
        axes = np.array([z, y, y, -y, z, y])
        points[5] = points[4]
    if "three" not in kind:
        points[4] = points[5] = points[3]
    axes = axes / np.linalg.norm(axes, axis=1)[:, None]
    return Lines(axes, points + rng.uniform(-1, 1, (6, 1)) * axes)


def cell_of(
    lines: Lines,
    *,
    base: Pose | None = None,
    tool: Pose | None = None,
    limit: float = np.pi,
) -> Cell:
    """Return an arm with given axes, whose links are all parallel at q = 0."""
    links = [Link(name="base")]
    before = np.zeros(3)
    for k, (axis, point) in enumerate(zip(*lines, strict=True)):
        there = Pose.translation(*(point - before))
        if k == 0 and base is not None:
            there = base @ there
        joint = arm.joints.Revolute(precursor=there, axis=tuple(axis))
        limits = Limits(lower=-limit, upper=limit)
        parent = links[-1].name
        links.append(Link(name=f"l{k}", parent=parent, joint=joint, limits=limits))
        before = point
    fixed = arm.joints.Fixed(precursor=tool or Pose.identity())
    links.append(Link(name="tool", parent="l5", joint=fixed))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def backwards(lines: Lines) -> Lines:
    """Return the axes in the opposite order: the arm standing on its tool."""
    return Lines(-lines.axes[::-1], lines.points[::-1])


def moved_lines(lines: Lines, q: np.ndarray) -> Lines:
    """Return where the axes are at q, by the product of exponentials."""
    X = Pose.identity()
    axes, points = [], []
    for axis, point, angle in zip(*lines, q, strict=True):
        axes.append(X.rotate(axis))
        points.append(X @ point)
        turn = Pose.translation(*point) @ Pose.rotation_about(axis, angle)
        X = X @ turn @ Pose.translation(*-point)
    return Lines(np.array(axes), np.array(points))


def turned_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest difference of two joint vectors, whole turns left out."""
    return np.abs((a - b + np.pi) % TAU - np.pi).max(axis=-1)


def poses_program(cell: Cell) -> Program:
    """Return the program of the tool's pose; most arms here are met only once."""
    whole = cell.ik("tool").goals[0]
    return fk_program(
        Tree.of(cell.workcell),
        [whole.frame],
        whole.relative_to,
        single=True,
        form="matrix",
        selection=Inputs(tuple(range(6)), (0.0,) * 6),
    )


def every_branch(cell: Cell, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the branches and their reasons, without machine code."""
    program = cell.ik("tool").closed.program
    q, _, reason, *_ = vectorize(program, targets, ALLOWED)
    return q, reason


def check(cell: Cell, count: int = 300, seed: int = 0) -> None:
    """Hold every branch of random targets to forward kinematics and to each other."""
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))
    fk = poses_program(cell)
    targets = vectorize(fk, q)
    found, reason = every_branch(cell, targets)
    assert found.shape == (count, len(cell.ik("tool").closed.branches), 6)
    success = (reason == Reason.SOLVED) | (reason == Reason.SINGULAR)
    error = np.abs(vectorize(fk, found) - targets[:, None]).max(axis=(-2, -1))
    assert error[success].max() < 2e-6
    assert np.median(error[success]) < 1e-13
    own = np.where(success, turned_apart(found, q[:, None]), np.inf)
    assert (own.min(axis=1) < 1e-5).all()
    # each branch is another answer, and the nearest to zero of its turns
    b = found.shape[1]
    apart = turned_apart(found[:, :, None], found[:, None]) + 9.0 * np.eye(b)
    assert np.nanmin(apart) > 1e-7
    assert np.abs(found[success]).max() <= np.pi


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_branch_reaches_the_target(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    lines = random_lines(kind, rng)
    cell = cell_of(lines, base=random_pose(rng), tool=random_pose(rng))
    assert cell.ik("tool").closed.family == EXPECTED[kind]
    assert cell.ik("tool").why_not_closed == ""
    assert not cell.ik("tool").closed.backwards
    check(cell, seed=seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_arms_are_solved_from_their_other_end(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    lines = backwards(random_lines(kind, rng))
    cell = cell_of(lines, base=random_pose(rng), tool=random_pose(rng))
    assert cell.ik("tool").closed.backwards
    assert cell.ik("tool").closed.family == EXPECTED[kind]
    check(cell)


def test_names_say_where_the_arm_is() -> None:
    """The quantities that the names stand for, from the axes where they then are."""
    quantities = {
        "elbow": (
            lambda z, p, W: np.cross(z[0], z[1]) @ (W - p[0]),
            lambda z, p, W: z[1] @ np.cross(p[2] - p[1], W - p[2]),
        ),
        "meeting 12": (
            lambda z, p, W: np.cross(z[0], z[1]) @ (W - p[0]),
            lambda z, p, W: z[2] @ np.cross(p[2] - p[0], W - p[2]),
        ),
        "meeting 23": (
            lambda z, p, W: z[0] @ np.cross(W - p[0], p[1] - p[0]),
            lambda z, p, W: np.cross(z[1], z[2]) @ (W - p[1]),
        ),
        "parallel 12": (
            lambda z, p, W: np.cross(z[0], z[2]) @ (W - p[1]),
            lambda z, p, W: z[0] @ np.cross(p[1] - p[0], W - p[1]),
        ),
        "three parallel": (
            lambda z, p, W: np.cross(z[0], z[1]) @ (W - p[0]),
            lambda z, p, W: z[1] @ np.cross(p[2] - p[1], p[3] - p[2]),
        ),
    }
    for kind, (shoulder, elbow) in quantities.items():
        rng = np.random.default_rng(7)
        lines = met_by_points(kind, random_lines(kind, rng))
        cell = cell_of(lines)
        q = rng.uniform(-np.pi, np.pi, (5, 6))
        found, reason = every_branch(cell, vectorize(poses_program(cell), q))
        names = cell.ik("tool").closed.branches
        for row, reasons in zip(found, reason, strict=True):
            for k in np.flatnonzero(reasons == Reason.SOLVED):
                axes, points = moved_lines(lines, row[k])
                last = axes[1] if kind == "three parallel" else axes[3]
                signs = (
                    shoulder(axes, points, points[5]),
                    elbow(axes, points, points[5]),
                    last @ np.cross(axes[4], axes[5]),
                )
                words = (("right", "left"), ("up", "down"), ("no flip", "flip"))
                said = tuple(w[int(x < 0)] for w, x in zip(words, signs, strict=True))
                assert names[k] == said, kind


def met_by_points(kind: str, lines: Lines) -> Lines:
    """Return lines whose points lie where axes meet, the last two there as well."""
    axes, points = lines.axes.copy(), lines.points.copy()
    if kind == "elbow":
        axes[2] = axes[1]
    pairs = [(4, 5)] if kind == "three parallel" else [(3, 4), (3, 5)]
    pairs += {"meeting 12": [(0, 1)], "meeting 23": [(1, 2)]}.get(kind, [])
    for one, two in pairs:
        # |p + s a - (p' + t a')| is least where both are the meeting point
        A = np.stack([axes[one], -axes[two]], axis=1)
        s, _ = np.linalg.lstsq(A, points[two] - points[one], rcond=None)[0]
        points[one] = points[two] = points[one] + s * axes[one]
    return Lines(axes, points)


@pytest.fixture(scope="module")
def opw(shared: Path) -> dict[str, Cell]:
    """Return the arms of published parameters."""
    text = (shared / "data/opw/opw_parameters.json").read_text(encoding="utf-8")
    robots = json.loads(text)["robots"]
    assert len(robots) >= 5
    return {name: opw_cell(parameters) for name, parameters in robots.items()}


def opw_cell(p: dict) -> Cell:
    """Return an arm of Brandstoetter's seven lengths, offsets and signs."""
    _, y, z = np.eye(3)
    axes = (z, y, y, z, y, z)
    steps = (
        (0.0, 0.0, 0.0),
        (p["a1"], 0.0, p["c1"]),
        (0.0, 0.0, p["c2"]),
        (p["a2"], p["b"], 0.0),
        (0.0, 0.0, p["c3"]),
        (0.0, 0.0, 0.0),
    )
    links = [Link(name="base")]
    for k, (axis, step) in enumerate(zip(axes, steps, strict=True)):
        turn = np.radians(p["offsets_deg"][k])
        before = Pose.translation(*step) @ Pose.rotation_about(axis, turn)
        sign = p["sign_corrections"][k]
        joint = arm.joints.Revolute(precursor=before, axis=tuple(sign * axis))
        links.append(Link(name=f"l{k}", parent=links[-1].name, joint=joint))
    fixed = arm.joints.Fixed(precursor=Pose.translation(0.0, 0.0, p["c4"]))
    links.append(Link(name="tool", parent="l5", joint=fixed))
    return Cell(manipulators=(Manipulator(name="opw", links=tuple(links)),))


def test_published_opw_arms_have_eight_branches(opw: dict[str, Cell]) -> None:
    for cell in opw.values():
        assert cell.ik("tool").closed.family == EXPECTED["elbow"]
        check(cell, count=100)


@pytest.fixture(scope="module")
def ur() -> Cell:
    """Return an arm with three parallel axes, limits of a turn either way."""
    _, y, z = np.eye(3)
    axes = np.array([z, y, y, y, -z, y])
    points = np.cumsum(
        [
            [0, 0, 0.089],
            [0, 0.136, 0],
            [0.425, -0.12, 0],
            [0.392, 0, 0],
            [0, 0.093, 0],
            [0, 0, -0.095],
        ],
        axis=0,
    ).astype(float)
    tool = Pose.translation(0.0, 0.082, 0.1)
    return cell_of(Lines(axes, points), tool=tool, limit=TAU)


def test_zero_and_zero_wrist_angles_are_solved_and_singular(ur: Cell) -> None:
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (200, 6))
    q[:, 4] = rng.choice([0.0, np.pi, 1e-9, -1e-8], 200)
    q[:100, 2] *= 1e-3  # almost stretched: not every choice of t_6 leads there
    q[0] = 0.0
    targets = ur.fk("tool")(q)
    answer = ur.ik("tool")(targets)
    assert answer.success.all()
    assert np.abs(ur.fk("tool")(answer.q) - targets).max() < 2e-6
    singular = ur.ik("tool").all(targets).reason == Reason.SINGULAR
    assert singular.any(axis=1).all()
    assert (singular.sum(axis=1) < 8).any()


def test_the_nearest_branch_and_the_nearest_turn_are_chosen(ur: Cell) -> None:
    q = np.random.default_rng(0).uniform(-TAU, TAU, (300, 6))
    targets = ur.fk("tool")(q)
    ik = ur.ik("tool")
    for name in ("near", "seed"):
        np.testing.assert_allclose(ik(targets, **{name: q}).q, q, atol=1e-5)
    every = ik.all(targets, near=q)
    assert np.nanmin(np.abs(every.q - q[:, None]).max(axis=-1), axis=1).max() < 1e-5
    home = ik(targets)
    steps = np.where(every.success[..., None], ik.all(targets).q, np.inf)
    np.testing.assert_allclose(
        (home.q**2).sum(axis=1), (steps**2).sum(axis=2).min(axis=1), rtol=1e-9
    )


def test_turns_are_added_where_limits_ask_for_it() -> None:
    rng = np.random.default_rng(0)
    lines = random_lines("elbow, right angles", rng)
    plain = cell_of(lines)
    q = rng.uniform(-np.pi, np.pi, (200, 6))
    targets = plain.fk("tool")(q)
    for low, high in ((-7.0, -0.5), (0.25, 6.75), (-1.0, 8.0)):
        cell = with_limits(plain, low, high)
        every = cell.ik("tool").all(targets)
        assert every.success.sum() == cell_count(every.q, low, high)
        inside = every.q[every.success]
        assert ((inside >= low) & (inside <= high)).all()
        others = inside - TAU * np.sign(inside)  # nearer to zero, if not forbidden
        forbidden = (others < low) | (others > high) | (np.abs(inside) <= np.pi + 1e-12)
        assert (forbidden | (np.abs(others) >= np.abs(inside))).all()


def with_limits(cell: Cell, low: float, high: float) -> Cell:
    """Return an arm with other limits for all its joints."""
    manipulator = cell.manipulators[0]
    links = [
        Link(
            name=link.name,
            parent=link.parent,
            joint=link.joint,
            limits=Limits(lower=low, upper=high),
        )
        for link in manipulator.links
    ]
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def cell_count(q: np.ndarray, low: float, high: float) -> int:
    """Return how many of the branches have some turns within limits."""
    turns = q[..., None] + TAU * np.arange(-3, 4)
    return int(((turns >= low) & (turns <= high)).any(axis=-1).all(axis=-1).sum())


def test_an_answer_at_a_limit_is_within_it() -> None:
    rng = np.random.default_rng(0)
    plain = cell_of(random_lines("elbow, right angles", rng))
    q = rng.uniform(-1.0, 1.0, (100, 6))
    q[np.arange(100), rng.integers(0, 6, 100)] = rng.choice([-1.0, 1.0], 100)
    cell = with_limits(plain, -1.0, 1.0)
    answer = cell.ik("tool")(plain.fk("tool")(q), near=q)
    assert answer.success.all()
    assert np.abs(answer.q).max() <= 1.0
    np.testing.assert_allclose(answer.q, q, atol=1e-6)


def test_answers_put_at_a_limit_are_verified_there() -> None:
    """Within the tolerance of angles beyond it, and with a lever outside of that."""
    rng = np.random.default_rng(0)
    plain = cell_of(random_lines("elbow, right angles", rng))
    q = rng.uniform(-0.9, 0.9, (100, 6))
    q[:, 0] = 1.0 + 9e-4
    targets = plain.fk("tool")(q)
    ik = with_limits(plain, -1.0, 1.0).ik("tool")
    there = np.abs(plain.fk("tool")(np.minimum(q, 1.0)) - targets)[:, :3, 3]
    missed = np.linalg.norm(there, axis=1) > 3e-4
    assert missed.any() and not missed.all()
    every = ik.all(targets, near=q, tolerance=(3e-4, 1e-3))
    for found in (every, ik.all(targets, tolerance=(3e-4, 1e-3))):
        assert np.abs(found.q[found.success]).max() <= 1.0
        assert (found.residual[found.success] <= (3e-4, 1e-3)).all()
    nearest = np.nanargmin(np.abs(every.q - q[:, None]).max(axis=-1), axis=1)
    reason = every.reason[np.arange(100), nearest]
    assert (reason[missed] == Reason.LIMITS).all()
    assert (reason[~missed] == Reason.SOLVED).all()


def test_reasons_are_proven() -> None:
    rng = np.random.default_rng(0)
    plain = cell_of(random_lines("elbow, right angles", rng))
    q = rng.uniform(-np.pi, np.pi, (100, 6))
    targets = plain.fk("tool")(q)
    tight = with_limits(plain, 0.0, 0.1).ik("tool")
    answer, every = tight(targets), tight.all(targets)
    none = ~every.success.any(axis=1)
    assert none.mean() > 0.9
    assert (answer.reason[none] == Reason.LIMITS).all()
    assert (every.reason[none] == Reason.LIMITS).any(axis=1).all()
    assert ((answer.q >= 0.0) & (answer.q <= 0.1)).all()
    found = plain.fk("tool")(answer.q)
    far = np.linalg.norm(found[:, :3, 3] - targets[:, :3, 3], axis=1)
    np.testing.assert_allclose(answer.residual[:, 0], far, atol=1e-9)
    targets[:, :3, 3] *= 5.0
    answer, every = tight(targets), tight.all(targets)
    gone = (every.reason == Reason.OUT_OF_REACH).all(axis=1)
    assert gone.mean() > 0.9
    assert (answer.reason[gone] == Reason.OUT_OF_REACH).all()
    assert np.isnan(every.q[gone]).all()


@pytest.mark.parametrize("kind", ["elbow", "three parallel"])
def test_what_misses_its_family_is_an_arm_of_six_axes(kind: str) -> None:
    rng = np.random.default_rng(0)
    lines = random_lines(kind, rng)
    off = lines.points.copy()
    off[5] += 1e-4 * np.cross(lines.axes[4], lines.axes[5])
    cell = cell_of(Lines(lines.axes, off))
    ik = cell.ik("tool")
    assert ik.closed is not None and ik.closed.family == GENERAL_SIX.name
    targets = cell.fk("tool")(rng.uniform(-2.0, 2.0, (20, 6)))
    assert ik(targets).success.all()
    every = ik.all(targets)
    assert every.complete.all()
    nominal = cell_of(lines).ik("tool").all(targets)
    assert (every.count >= nominal.count).mean() > 0.8
    good = every.success
    error = cell.fk("tool")(every.q) - targets[:, None]
    assert np.abs(error[good]).max() < 1e-9


@pytest.mark.parametrize("kind", ["elbow", "meeting 12", "parallel 12"])
def test_an_axis_through_the_centre_of_the_wrist_has_no_closed_form(kind: str) -> None:
    lines = met_by_points(kind, random_lines(kind, np.random.default_rng(0)))
    points = lines.points.copy()
    points[2] = points[3]
    ik = cell_of(Lines(lines.axes, points)).ik("tool")
    assert ik.closed is None
    assert "axis 3 goes through the centre of the wrist" in ik.why_not_closed


class Handle(arm.Joint):
    """A revolute of a user's own, geared, about an axis off its frames' origins."""

    def pose(self, q: float) -> Pose:
        turn = Pose.rotation_x(0.5 * q + 0.3)
        return Pose.translation(0.1, 0.2, 0.3) @ turn @ Pose.translation(0.0, 0.1, 0.4)


class Wave(arm.Joint):
    """A joint that only looks like a revolute near zero."""

    def pose(self, q: float) -> Pose:
        return Pose.rotation_x(q + 0.01 * q * q)


@pytest.mark.parametrize("joint", [Handle(), Wave()])
def test_joints_count_by_their_motion(joint: arm.Joint) -> None:
    """Two parallel axes of any making, one more, and a wrist."""
    x, y, z = np.eye(3)
    before = Pose.rotation_x(-0.7) @ Pose.translation(0.4, 0.0, 0.1)
    paul = arm.joints.PaulRevolute(d=0.2, a=0.1, alpha=0.7)
    wrist = Pose.translation(0.5, 0.0, 0.1)
    joints = (
        joint,
        paul,
        arm.joints.Revolute(precursor=before),
        arm.joints.Revolute(precursor=wrist, axis=tuple(x)),
        arm.joints.Revolute(axis=tuple(z)),
        arm.joints.Revolute(axis=tuple(y)),
    )
    names = ("base", *"abcdef")
    links = [Link(name="base")]
    links += [
        Link(name=name, parent=parent, joint=made)
        for parent, name, made in zip(names, names[1:], joints, strict=False)
    ]
    cell = Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))
    ik = cell.ik("f")
    if isinstance(joint, Wave):
        assert "'a' neither turns about a line" in ik.why_not_closed
        assert "in proportion to q" in ik.why_not_closed
        return
    assert ik.closed.family == EXPECTED["elbow"]
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (100, 6))
    q[:, 0] *= 2.0  # half a radian per unit
    answer = ik(cell.fk("f")(q), near=q)
    np.testing.assert_allclose(answer.q, q, atol=1e-5)


def test_couplings_and_moving_frames_of_reference() -> None:
    rng = np.random.default_rng(2)
    cell = cell_of(random_lines("three parallel, right angles", rng))
    links = list(cell.manipulators[0].links)
    links[2] = msgspec.structs.replace(links[2], joint_name="lift")
    links.append(
        Link(
            name="pointer",
            parent="base",
            joint=arm.joints.Revolute(axis=(0.0, 0.0, 1.0)),
            coupling=Coupling(of="lift", multiplier=-2.0, offset=0.5),
        )
    )
    coupled = Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))
    assert coupled.ik("tool").closed is not None
    assert (
        "moves more than one"
        in coupled.ik("tool", relative_to="pointer").why_not_closed
    )
    # the base as seen from the tool: the same chain, taken from its other end
    q = rng.uniform(-3.0, 3.0, (50, 6))
    ik = cell.ik("base", relative_to="tool")
    assert ik.closed is not None
    targets = cell.fk("base", relative_to="tool")(q)
    np.testing.assert_allclose(ik(targets, near=q).q, q, atol=1e-5)


def test_coincident_branches_are_listed_once(ur: Cell) -> None:
    stretched = np.array([0.4, -0.7, 0.0, 0.3, 0.9, -0.2])
    every = ur.ik("tool").all(ur.fk("tool")(stretched))
    assert every.q.shape == (8, 6)
    distinct = every.distinct()
    assert 0 < len(distinct) < every.count
    assert turned_apart(distinct, stretched).min() < 1e-6


def test_batches_shapes_and_bad_rows(ur: Cell) -> None:
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (3, 1, 2, 6))
    targets = ur.fk("tool")(q)
    ik = ur.ik("tool")
    every = ik.all(targets)
    assert every.q.shape == (3, 1, 2, 8, 6)
    assert every.success.shape == every.reason.shape == (3, 1, 2, 8)
    assert every.residual.shape == (3, 1, 2, 8, 2)
    assert every.count.shape == (3, 1, 2)
    assert every.residual[every.success].max() < 1e-6
    assert ik.all(np.empty((0, 4, 4))).q.shape == (0, 8, 6)
    assert ik.all(targets[0, 0, 0]).q.shape == (8, 6)
    for array in (every.q, every.success, every.reason):
        assert not array.flags.writeable
    bad = targets.copy()
    bad[0, 0, 0, 0, 0] = np.nan
    bad[0, 0, 1, :3, :3] *= 1.1
    bad[1, 0, 0, :3, 0] *= -1.0
    bad[1, 0, 1, 0, 3] = np.inf
    reasons = ik.all(bad).reason.reshape(6, 8)
    assert (reasons[:4] == Reason.INVALID_TARGET).all()
    np.testing.assert_array_equal(reasons[4:], every.reason.reshape(6, 8)[4:])
    with pytest.raises(UnknownName, match="magic"):
        ik(targets, method="magic")
    with pytest.raises(ShapeError, match="above 0"):
        ik.all(targets, tolerance=(0.0, 1e-6))
    with pytest.raises(ShapeError, match="near needs shape"):
        ik.all(targets, near=np.zeros(5))


def test_rounded_rotations_are_taken_as_they_are_meant(ur: Cell) -> None:
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (200, 6))
    targets = ur.fk("tool")(q).astype(np.float32)
    answer = ur.ik("tool")(targets, near=q)
    assert answer.success.all()
    assert np.median(np.abs(answer.q - q).max(axis=1)) < 1e-5


def test_native_code_agrees_with_numpy(ur: Cell) -> None:
    targets = ur.fk("tool")(np.random.default_rng(0).uniform(-3.0, 3.0, (50, 6)))
    every = ur.ik("tool").all(targets)
    found, reason = every_branch(ur, targets)
    np.testing.assert_array_equal(every.reason, reason)
    np.testing.assert_allclose(every.q, found, atol=1e-7)


def test_a_wrist_above_the_first_axis_leaves_that_joint_free() -> None:
    x, y, z = np.eye(3)
    axes = np.array([z, y, y, x, y, x])
    points = np.array(
        [
            [0.0, 0.0, 0.0],
            [0.1, 0.0, 0.4],
            [0.1, 0.0, 0.9],
            [0.6, 0.0, 1.0],
            [0.6, 0.0, 1.0],
            [0.6, 0.0, 1.0],
        ]
    )
    cell = cell_of(Lines(axes, points))  # the tool in the centre of the wrist
    rng = np.random.default_rng(0)
    targets = np.array([random_pose(rng).matrix() for _ in range(50)])
    targets[:, :3, 3] = [0.0, 0.0, 1.2]
    ik = cell.ik("tool")
    every = ik.all(targets)
    assert (every.reason == Reason.SINGULAR).all()
    assert every.success.all()
    answer = ik(targets)
    assert (answer.reason == Reason.SINGULAR).all()
    assert np.abs(cell.fk("tool")(answer.q) - targets).max() < 1e-12
    # a hair beside the axis each branch is one of its own again
    targets[:, 0, 3] += 1e-9
    every = ik.all(targets)
    assert (every.reason == Reason.SOLVED).all()
    assert np.abs(cell.fk("tool")(every.q) - targets[:, None]).max() < 1e-9


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "kind", ["elbow, right angles", "three parallel, right angles"]
)
def test_rounded_axes_are_verified_on_the_model(kind: str) -> None:
    """Axes written with ten digits miss each other by nothing that matters."""
    rng = np.random.default_rng(5)
    lines = random_lines(kind, rng)
    axes = lines.axes + 2e-9 * rng.normal(size=(6, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    cell = cell_of(Lines(axes, lines.points))
    ik = cell.ik("tool")
    assert ik.closed.family == EXPECTED[kind]
    q = rng.uniform(-3.0, 3.0, (300, 6))
    targets = cell.fk("tool")(q)
    every = ik.all(targets)
    apart = cell.fk("tool")(every.q) - targets[:, None]
    distance = np.linalg.norm(apart[..., :3, 3], axis=-1)
    good = every.success
    np.testing.assert_allclose(every.residual[good][:, 0], distance[good], atol=1e-12)
    assert 1e-12 < np.median(distance[good]) < 1e-7
    assert np.nanmin(turned_apart(every.q, q[:, None]), axis=1).max() < 1e-3
    # tolerances that the formula does not meet are met by going on from there
    answer = ik(targets, near=q, tolerance=(1e-11, 1e-11))
    assert answer.success.all()
    assert answer.residual.max() < 1e-11


def straight_wrist(cell: Cell) -> float:
    """Return the fifth coordinate at which axes 4 and 6 are as parallel as can be."""
    drive = cell.ik("tool").closed.arm.closed.arm.drives[4]
    return -drive.offset / drive.multiplier


@pytest.mark.parametrize("bend", [1e-3, 1e-5, 1e-7, 1e-9, 0.0])
@pytest.mark.parametrize("kind", ["elbow", "meeting 12", "three parallel"])
def test_oblique_wrists_next_to_their_singular_pose(kind: str, bend: float) -> None:
    """Where axes 4 and 6 come nearest, the two answers of the wrist become one."""
    rng = np.random.default_rng(KINDS.index(kind))
    cell = cell_of(random_lines(kind, rng))
    straight = straight_wrist(cell)
    q = rng.uniform(-np.pi, np.pi, (100, 6))
    q[:, 4] = straight + bend
    targets = vectorize(poses_program(cell), q)
    found, reason = every_branch(cell, targets)
    success = (reason == Reason.SOLVED) | (reason == Reason.SINGULAR)
    assert success.any(axis=1).all()
    reached = vectorize(poses_program(cell), found) - targets[:, None]
    assert np.abs(reached[success]).max() < 2e-6


@pytest.mark.parametrize("bend", [1e-7, 1e-6, 3e-6, 1e-5, 1e-4])
def test_a_target_next_to_a_reachable_one_is_not_proven_out_of_reach(
    ur: Cell, bend: float
) -> None:
    """Almost stretched, almost at a zero wrist angle, and rounded: t_6 is a guess."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (1000, 6))
    q[:, 2] *= 1e-2
    q[:, 4] = bend
    targets = ur.fk("tool")(q)
    targets[:, :3, 3] += rng.normal(size=(1000, 3)) * 2e-8
    for target, turn in zip(targets, rng.normal(size=(1000, 3)) * 2e-7, strict=True):
        target[:3, :3] += np.cross(target[:3, :3], turn)
    answer = ur.ik("tool")(targets)
    assert answer.success.all()
    assert answer.residual.max() <= 1e-6


def test_limits_decide_before_nearness() -> None:
    rng = np.random.default_rng(0)
    plain = cell_of(random_lines("elbow, right angles", rng))
    q = rng.uniform(-2.0, 2.0, (200, 6))
    ik = with_limits(plain, -2.0, 2.0).ik("tool")
    targets = plain.fk("tool")(q)
    answer, every = ik(targets), ik.all(targets)
    assert answer.success.all()
    nearest = np.nanargmin((every.q**2).sum(axis=2), axis=1)
    assert not every.success[np.arange(200), nearest].all()


def test_a_wrist_on_the_second_axis_leaves_that_joint_free() -> None:
    x, y, z = np.eye(3)
    steps = [[0.0, 0.0, 0.4], [0.0, 0.1, 0.0], [0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]
    points = np.cumsum([*steps, np.zeros(3), np.zeros(3)], axis=0)
    cell = cell_of(Lines(np.array([z, y, y, x, y, x]), points))
    folded = np.array([0.3, 0.4, np.pi, 0.2, 0.9, -0.5])
    target = cell.fk("tool")(folded)
    every = cell.ik("tool").all(target)
    assert every.success.any()
    assert (every.reason[every.success] == Reason.SINGULAR).all()
