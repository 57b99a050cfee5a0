"""What a traced script gains over Python, and costs beside a class of the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import armillary as arm
from armillary.kernel import shared_kernel
from benchmarks.measure import Figure, best_times, cheaper, faster, within

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "scripts"
BATCH = 100_000
CALLS = 200
IDLE = """
from vcPythonKinematics import *
import vcMatrix
still = vcMatrix.new()
def OnGetJointCount(): return 6
def OnForward(kin):
    kin.Target = still
    return True
def OnInverse(kin): return False
"""


class Scara(arm.Mechanism):
    """The SCARA of the examples as a class."""

    upper: float  # [m]
    fore: float
    height: float
    units = (arm.RADIAN, arm.RADIAN, arm.METRE, arm.RADIAN)

    def forward(self, q):
        """Return the pose of the flange."""
        elbow = arm.Pose.rotation_z(q[0]) @ arm.Pose.translation(self.upper, 0, 0)
        wrist = arm.Pose.translation(self.fore, 0, q[2] + self.height)
        return elbow @ arm.Pose.rotation_z(q[1]) @ wrist @ arm.Pose.rotation_z(q[3])


def repeated(call: Callable[[], object]) -> Callable[[], object]:
    """Return a task that makes many calls."""

    def task() -> None:
        for _ in range(CALLS):
            call()

    return task


def figures() -> Iterator[Figure]:
    """Yield the figures of scripts."""
    robot = arm.scripted(EXAMPLES / "scara.py", component=EXAMPLES / "scara.json")
    flange = robot.link("flange")
    host, own = flange.joint.host, Scara(upper=0.325, fore=0.275, height=0.09)
    cell = arm.Cell(manipulators=[robot])
    native = arm.Cell(manipulators=[robot.exchange(flange.replace(joint=own))])
    fk, rival, ik = cell.fk("flange"), native.fk("flange"), cell.ik("flange")
    Q = np.random.default_rng(0).uniform(*cell.limits, (BATCH, 4))
    X, Y = np.empty((2, BATCH, 4, 4))
    inverse = shared_kernel(ik.closed.program)
    pose = arm.Pose.from_matrix(fk(Q[0]))
    script, kernel, peer, forward, every, solve = best_times(
        lambda: fk(Q, out=X, threads=1),
        lambda: inverse(X, threads=1),
        lambda: rival(Q, out=Y, threads=1),
        repeated(lambda: host.forward([30.0, -40.0, 10.0, 20.0])),
        lambda: ik.all(X),
        repeated(lambda: host.solutions(pose)),
    )
    assert np.abs(X - Y).max() < 1e-12
    forward, solve = forward / CALLS, solve / CALLS
    what = "a traced SCARA script, tool pose"
    yield faster(f"{what}, beside Python", script / BATCH, forward, at_least=500)
    yield cheaper(f"{what}, beside a class", script / BATCH, peer / BATCH, at_most=1.2)
    what = "the same, both configurations"
    yield faster(f"{what}, beside Python", kernel / BATCH, solve, at_least=200)
    yield faster(f"{what}, verified (ik.all)", every / BATCH, solve, at_least=200)
    yield within("the host of scripts, one event", _idle(), at_most=30e-6)


def _idle() -> float:
    """Return the time of an event that does nothing [s]."""
    from armillary.scripts.component import component_of
    from armillary.scripts.host import Host
    from armillary.scripts.source import prepared

    data, _ = component_of({"joints": [{"name": f"J{k + 1}"} for k in range(6)]})
    host = Host(prepared(IDLE, "idle"), data)
    (best,) = best_times(repeated(lambda: host.forward([0.0] * 6)), clock=perf_counter)
    return best / CALLS
