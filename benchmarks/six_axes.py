"""All answers of arms of six axes that no simple form knows, beside ssik in one run.

ssik ships solvers of named arms. Each is also the judge: answers that it has and we
miss, where the least singular value of the Jacobian is above 1e-3, are counted.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from benchmarks.closed import one_thread
from benchmarks.measure import Figure, absent, beside, best_times, faster, within

Array = npt.NDArray[np.float64]

COUNT, FEW = 4096, 200
NAMES = {
    "CRX-10iA": "fanuc.crx10ia_ik",
    "xArm6": "ufactory.xarm6_ik",
    "YAM": "i2rt.yam_ik",
}
GOALS = {"CRX-10iA": 15e-6, "xArm6": 20e-6, "YAM": 15e-6}


def figures() -> Iterator[Figure]:
    """Yield the figures of arms of six axes."""
    with one_thread():
        yield random_axes()
        for name, module in NAMES.items():
            what = f"{name}, all answers, ssik"
            yield from beside("ssik", what, partial(_of_arm, name, module, what))


def random_axes() -> Figure:
    """Return the figure of an arm whose axes are anywhere."""
    rng = np.random.default_rng(0)
    links = [Link(name="base")]
    for k in range(6):
        axis = rng.normal(size=3)
        there = Pose.translation(*rng.uniform(-0.3, 0.3, 3))
        joint = arm.joints.Revolute(precursor=there, axis=tuple(axis))
        links.append(Link(name=f"link{k}", parent=links[-1].name, joint=joint))
    cell = Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))
    ik = cell.ik("link5")
    q = rng.uniform(-np.pi, np.pi, (COUNT, 6))
    targets = cell.fk("link5")(q)
    answers = ik.all(targets)
    apart = (answers.q - q[:, None] + np.pi) % (2.0 * np.pi) - np.pi
    assert np.nanmin(np.abs(apart).max(axis=2), axis=1).max() < 1e-6
    (ours,) = best_times(lambda: ik.all(targets))
    return within("six random axes, all answers", ours / COUNT, at_most=7e-6)


def _of_arm(name: str, path: str, what: str) -> Iterator[Figure]:
    try:
        peer: Any = importlib.import_module(f"ssik.prebuilt.{path}")
    except ImportError as error:
        yield absent(what, str(error))
        return
    cell = cell_of_peer(peer)
    ik = cell.ik("tool")
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (COUNT, 6))
    targets = np.asarray(cell.fk("tool")(q))
    options = {"respect_limits": False, "enumerate_windings": False}
    few = targets[:FEW]
    found = [[s.q for s in peer.solve(X, **options)] for X in few]
    missed = _missed(cell, ik.all(few), found)
    assert missed == 0, f"{missed} of ssik's answers are not among ours"
    ours, one, theirs = best_times(
        lambda: ik.all(targets),
        lambda: [ik.all(X) for X in few],
        lambda: [peer.solve(X, **options) for X in few],
    )
    each = theirs / FEW
    yield within(f"{name}, all answers", ours / COUNT, at_most=GOALS[name])
    yield faster(what, ours / COUNT, each, at_least=10)
    yield faster(f"{name} ik.all(X), one call, ssik", one / FEW, each, at_least=1)


def _missed(cell: Cell, ours: arm.Answers, theirs: list[list[Array]]) -> int:
    """Return how many regular answers of the peer are not among ours."""
    J = cell.jacobian("tool")
    missed = 0
    for k, rows in enumerate(theirs):
        known = ours.q[k][ours.success[k]]
        for q in rows:
            apart = (known - q + np.pi) % (2.0 * np.pi) - np.pi
            if np.abs(apart).max(axis=1).min(initial=9.0) > 1e-3:
                missed += bool(np.linalg.svd(J(q))[1][-1] > 1e-3)
    return missed


def cell_of_peer(peer: Any) -> Cell:
    """Return the arm of a module of ssik, all joints free to turn half around."""
    links = [Link(name="base")]
    limits = arm.Limits(lower=-np.pi, upper=np.pi)
    before = Pose.identity()
    rows = zip(peer._JOINT_T_LEFTS, peer._JOINT_AXES, peer._JOINT_T_RIGHTS, strict=True)
    for k, (left, axis, right) in enumerate(rows):
        there = before @ Pose.from_matrix(left)
        joint = arm.joints.Revolute(precursor=there, axis=tuple(axis))
        parent = links[-1].name
        links.append(Link(name=f"l{k}", parent=parent, joint=joint, limits=limits))
        before = Pose.from_matrix(right)
    tool = arm.joints.Fixed(precursor=before)
    links.append(Link(name="tool", parent=links[-1].name, joint=tool))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))
