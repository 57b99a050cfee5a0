"""Closed forms, all branches, beside EAIK in the same run, which is also the judge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.ik.closed_forms.screw_axes import Chain, chain_of
from armillary.ik.reason import Reason
from armillary.kinematics.inputs import Inputs
from armillary.model.tree import Tree
from benchmarks.measure import Figure, beside, best_times, faster, within
from benchmarks.robots import ur5

COUNT = 10_000
FEW = 500
TURN = np.pi / 2
PUMA = (  # alpha, a, d of Craig's order
    (0.0, 0.0, 0.0),
    (-TURN, 0.0, 0.0),
    (0.0, 0.4318, -0.15005),
    (-TURN, 0.0203, -0.4318),
    (TURN, 0.0, 0.0),
    (-TURN, 0.0, 0.0),
)
KR16 = (
    (0.0, 0.0, 0.0),
    (TURN, 0.26, 0.0),
    (0.0, 0.68, 0.0),
    (TURN, -0.035, -0.67),
    (-TURN, 0.0, 0.0),
    (TURN, 0.0, 0.0),
)
UR10 = (
    (0.0, 0.0, 0.1273),
    (TURN, 0.0, 0.0),
    (0.0, -0.612, 0.0),
    (0.0, -0.5723, 0.163941),
    (TURN, 0.0, 0.1157),
    (-TURN, 0.0, 0.0922),
)


def figures() -> Iterator[Figure]:
    """Yield the figures of closed forms."""
    robots: dict[str, Callable[[], tuple[Cell, str]]] = {
        "UR5": lambda: (ur5().cell, "tool0"),
        "UR10": lambda: (craig(UR10), "tool"),
        "Puma 560": lambda: (craig(PUMA), "tool"),
        "KR16": lambda: (craig(KR16), "tool"),
    }
    with one_thread():
        for name, make in robots.items():
            what = f"{name} closed form, EAIK"
            yield from beside("eaik", what, partial(arm_figures, name, *make()))
        yield seven_joints()
        yield scara()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let kernels use one thread."""
    before = os.environ.get("ARMILLARY_THREADS")
    os.environ["ARMILLARY_THREADS"] = "1"
    yield
    del os.environ["ARMILLARY_THREADS"]
    if before is not None:
        os.environ["ARMILLARY_THREADS"] = before


def arm_figures(name: str, cell: Cell, tip: str) -> Iterator[Figure]:
    """Yield the figures of one arm."""
    from eaik.IK_HP import HPRobot

    ik = cell.ik(tip)
    chain = chain_of_cell(cell, tip)
    axes = np.array([screw.axis * screw.gain for screw in chain.screws])
    points = np.array([screw.point for screw in chain.screws])
    steps = np.diff([np.zeros(3), *points, chain.home[:3, 3]], axis=0)
    peer = HPRobot(axes, steps)

    targets = difficult_targets(cell, tip)
    turned = targets.copy()  # EAIK's last frame has the axes of the base
    turned[:, :3, :3] = targets[:, :3, :3] @ chain.home[:3, :3].T
    missed, wrong = judged(cell, tip, targets, peer.IK_batched(turned, 1))
    assert missed == 0, f"{missed} of EAIK's answers are not among ours"
    assert wrong == 0, f"{wrong} of our answers do not lead to the target"

    ours, every, one, batch, alone = best_times(
        lambda: ik.all(targets),
        lambda: [ik.all(X) for X in targets[:FEW]],
        lambda: [ik(X) for X in targets[:FEW]],
        lambda: peer.IK_batched(turned[:FEW], 1),
        lambda: [peer.IK(X) for X in turned[:FEW]],
    )
    each = min(batch, alone) / FEW
    yield within(f"{name} closed form, all branches", ours / COUNT, at_most=0.3e-6)
    what = f"{name} closed form, EAIK, faster of batch and single calls"
    yield faster(what, ours / COUNT, each, at_least=10)
    yield faster(f"{name} ik.all(X), one call, EAIK", every / FEW, each, at_least=1)
    yield faster(f"{name} ik(X), one call, EAIK: all", one / FEW, each, at_least=1)


def iiwa() -> Cell:
    """Return an arm of the iiwa14's lengths."""
    return craig(
        (
            (0.0, 0.0, 0.36),
            (-TURN, 0.0, 0.0),
            (TURN, 0.0, 0.42),
            (TURN, 0.0, 0.0),
            (-TURN, 0.0, 0.4),
            (-TURN, 0.0, 0.0),
            (TURN, 0.0, 0.126),
        )
    )


def seven_joints() -> Figure:
    """Return the figure of an arm of seven joints, its arm angle given."""
    cell = iiwa()
    ik = cell.ik("tool")
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (COUNT, 7))
    targets, angle = cell.fk("tool")(q), ik.closed.arm_angle(q)
    assert ik.all(targets, arm_angle=angle).success.all()
    (ours,) = best_times(lambda: ik.all(targets, arm_angle=angle))
    what = "iiwa14 closed form, all branches at an arm angle"
    return within(what, ours / COUNT, at_most=0.5e-6)


def scara() -> Figure:
    """Return the figure of an arm of three parallel axes and a lift."""
    joints = arm.joints
    kinds = (
        joints.PaulRevolute(a=0.3),
        joints.PaulRevolute(a=0.25),
        joints.PaulPrismatic(),
        joints.PaulRevolute(d=-0.1),
    )
    links = [Link(name="base")]
    for k, joint in enumerate(kinds):
        links.append(Link(name=f"link{k}", parent=links[-1].name, joint=joint))
    cell = Cell(manipulators=(Manipulator(name="scara", links=tuple(links)),))
    ik = cell.ik("link3")
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (COUNT, 4))
    targets = cell.fk("link3")(q)
    assert ik.all(targets).success.all()
    (ours,) = best_times(lambda: ik.all(targets))
    return within("SCARA closed form, all branches", ours / COUNT, at_most=0.1e-6)


def difficult_targets(cell: Cell, tip: str) -> np.ndarray:
    """Return poses at random q, a tenth of which stand at or near a singularity."""
    random = np.random.default_rng(0)
    q = random.uniform(-np.pi, np.pi, (COUNT, 6))
    few = COUNT // 20
    q[:few, 4] = random.choice([0.0, 1e-9, 1e-6, 1e-3, np.pi], few)
    q[few : 2 * few, 2] = random.choice([0.0, 1e-9, 1e-6, 1e-3, np.pi], few)
    q[0] = 0.0
    return cell.fk(tip)(random.permutation(q))


def judged(cell: Cell, tip: str, targets: np.ndarray, answers: list) -> tuple[int, int]:
    """Return how many of a peer's answers we miss, and how many of ours are wrong.

    Where an answer is one of infinitely many, the peer's need not be ours.
    """
    fk, ours = cell.fk(tip), cell.ik(tip).all(targets)
    exists = ours.reason != Reason.OUT_OF_REACH
    error = np.abs(fk(ours.q) - targets[:, None]).max(axis=(-2, -1))
    wrong = int((error[ours.success] > 2e-6).sum())
    assert ours.success.any(axis=1).all(), "a reachable target was not reached"
    missed = 0
    for k, answer in enumerate(answers):
        if (ours.reason[k] == Reason.SINGULAR).any() or not len(answer.Q):
            continue
        q = np.array(answer.Q).reshape(-1, 6)
        q = q[np.abs(fk(q) - targets[k]).max(axis=(-2, -1)) < 1e-6]
        known = ours.q[k][exists[k]]
        apart = (q[:, None] - known + np.pi) % (2.0 * np.pi) - np.pi
        missed += int((np.abs(apart).max(axis=2).min(axis=1) > 1e-3).sum())
    return missed, wrong


def chain_of_cell(cell: Cell, tip: str) -> Chain:
    """Return the axes of all joints of a cell at q = 0."""
    every = Inputs(tuple(range(6)), (0.0,) * 6)
    return chain_of(Tree.of(cell.workcell), cell.frame(tip), cell.frame("world"), every)


def craig(rows: tuple[tuple[float, float, float], ...]) -> Cell:
    """Return an arm of Denavit and Hartenberg's parameters in Craig's order."""
    links = [Link(name="base")]
    for k, (alpha, a, d) in enumerate(rows):
        joint = arm.joints.CraigRevolute(alpha=alpha, a=a, d=d)
        links.append(Link(name=f"link{k}", parent=links[-1].name, joint=joint))
    tool = arm.joints.Fixed(precursor=Pose.identity())
    links.append(Link(name="tool", parent=links[-1].name, joint=tool))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))
