"""Proofs that constraints hold along motions, judged by samples of poses."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.planning.planned_cell import PlannedCell
from ball_arm import Wave, cell_of

Array = np.ndarray
FRAME = "robot/link3"
KINDS = {
    "pose": {},
    "axis": {"position": "", "rotation": "xy"},
    "box": {
        "position": "y",
        "rotation": "xz",
        "box": ((-0.3, -1.0, -0.2), (0.3, 1.0, 0.2)),
    },
}


@pytest.mark.parametrize("relative_to", ["world", "robot/link1"])
@pytest.mark.parametrize("kind", KINDS)
def test_proofs_for_users_joints_tell_what_samples_do(kind: str, relative_to: str):
    cell, rng = cell_of([], joint=Wave), np.random.default_rng(3)
    pose = cell.fk([FRAME], relative_to=relative_to)
    q = rng.uniform(-2.0, 2.0, 4)
    (target,) = pose(q)
    asked = arm.FrameConstraint(
        FRAME, relative_to, target, distance=0.02, angle=0.05, **KINDS[kind]
    )
    planned = PlannedCell(cell.collision(), np.ones(4), 0.1)
    surface = planned.manifold([asked], None, np.empty((0, 4)), None)
    sizes = np.geomspace(1e-4, 0.2, 120)[:, None]
    A, B = (q + sizes * rng.normal(size=(120, 4)) for _ in range(2))

    def worst(a: Array, b: Array) -> float:
        Q = a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
        X = np.linalg.inv(target) @ pose(Q)[:, 0]
        p, turn = X[:, :3, 3], X[:, :3, :3]
        if kind == "box":
            p = p - np.clip(p, *np.array(asked.box)) * (1.0, 0.0, 1.0)
        far = np.linalg.norm(p, axis=1) / asked.distance * (kind != "axis")
        cosine = 0.5 * (np.trace(turn, axis1=1, axis2=2) - 1.0)
        if kind != "pose":
            k = 2 if kind == "axis" else 1
            cosine = turn[:, k, k]
        angle = np.arccos(np.clip(cosine, -1.0, 1.0)) / asked.angle
        return float(np.maximum(far, angle).max())

    most = np.array([worst(a, b) for a, b in zip(A, B, strict=True)])
    holds = surface.holds(A, B, 0.1)
    assert not holds[most > 1.0 + 1e-6].any() and holds[most < 0.9].all()
    assert 3 < holds.sum() < len(holds) - 3
