"""Random models of MuJoCo as text, and what MuJoCo says of a model."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

import armillary as arm
from armillary.formats.several_joints import BALL

Array = NDArray[np.float64]

TURNS = (
    lambda rng: f'quat="{_numbers(rng, 4)}"',
    lambda rng: f'euler="{_numbers(rng, 3, 90)}"',
    lambda rng: f'axisangle="{_numbers(rng, 3)} {rng.uniform(-170, 170):.3f}"',
    lambda rng: f'xyaxes="{_numbers(rng, 6)}"',
    lambda rng: f'zaxis="{_numbers(rng, 3)}"',
    lambda rng: "",
)
GEOMS = (
    '<geom type="sphere" size=".07"/>',
    '<geom type="box" size=".1 .2 .05" mass="2"/>',
    '<geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/>',
    '<geom class="light" type="cylinder" size=".05 .2" pos=".1 0 0"/>',
    '<geom type="ellipsoid" size=".1 .2 .15" euler="10 20 30" rgba="1 0 0 1"/>',
    '<geom type="box" size=".1 .2 .05" shellinertia="true" mass=".5"/>',
    '<geom type="mesh" mesh="dented"/>',
)
HEAD = """<mujoco model="{name}">
  <compiler angle="degree" eulerseq="{sequence}"/>
  <default>
    <joint armature=".02"/>
    <default class="light">
      <geom density="100"/>
      <joint damping="3" range="-40 70"/>
    </default>
  </default>
  <asset>
    <mesh name="dented" scale=".1 .2 .3" refpos=".1 0 0" refquat="1 1 0 0"
      vertex="0 0 0  1 0 0  0 2 0  0 0 3  .2 .2 .2"
      face="0 2 1  0 1 3  0 3 2  1 2 4  2 3 4  3 1 4" inertia="{inertia}"/>
  </asset>
"""


def _numbers(rng: np.random.Generator, count: int, size: float = 1.0) -> str:
    return " ".join(f"{x:.4f}" for x in rng.uniform(-size, size, count))


def random_model(seed: int, *, balls: bool = True) -> str:
    """Return a model with bodies in frames, of several joints each, and geoms."""
    rng = np.random.default_rng(seed)
    pieces = [
        HEAD.format(
            name=f"random{seed}",
            sequence=("xyz", "zYx", "XYZ", "zxz")[seed % 4],
            inertia=("legacy", "exact", "convex", "shell")[seed % 4],
        ),
        '  <worldbody><geom type="plane" size="1 1 .1"/>',
        '  <body name="loose" pos="3 0 1"><freejoint/><geom size=".1"/></body>',
    ]
    open_tags: list[str] = []
    for number in range(7):
        while open_tags and rng.random() < 0.3:
            pieces.append(open_tags.pop())
        if rng.random() < 0.4:
            turn = TURNS[rng.integers(len(TURNS))](rng)
            pieces.append(f'<frame pos="{_numbers(rng, 3)}" {turn}>')
            open_tags.append("</frame>")
        childclass = ' childclass="light"' if rng.random() < 0.4 else ""
        turn = TURNS[rng.integers(len(TURNS))](rng)
        pose = f'pos="{_numbers(rng, 3)}" {turn}'
        pieces.append(f'<body name="b{number}" {pose}{childclass}>')
        open_tags.append("</body>")
        pieces += _joints(rng, number, balls=balls)
        if rng.random() < 0.4:
            pieces.append(
                f'<inertial mass="3" pos="{_numbers(rng, 3)}" euler="10 20 30" '
                'diaginertia=".1 .2 .25"/>'
            )
        pieces.append(GEOMS[rng.integers(len(GEOMS))])
        if rng.random() < 0.5:
            pieces.append(f'<site name="s{number}" pos="{_numbers(rng, 3)}"/>')
    pieces += [*reversed(open_tags), "  </worldbody>", "</mujoco>"]
    return "\n".join(pieces)


def _joints(rng: np.random.Generator, number: int, *, balls: bool) -> list[str]:
    """Return the joints of a body; MuJoCo allows a ball after slides only."""
    joints: list[str] = []
    for k in range(int(rng.integers(0, 4))):
        kind = ("hinge", "slide")[int(rng.integers(2))]
        values = f'axis="{_numbers(rng, 3)}" pos="{_numbers(rng, 3)}"'
        if rng.random() < 0.4:
            values += f' ref="{rng.uniform(-0.5, 0.5):.3f}"'
        if rng.random() < 0.4:
            values += ' stiffness="5" springref=".3" frictionloss=".2"'
        joints.append(f'<joint name="j{number}_{k}" type="{kind}" {values}/>')
    if balls and not joints and rng.random() < 0.6:
        joints = [f'<joint name="j{number}" type="ball" pos="{_numbers(rng, 3)}"/>']
    return joints


class Judge:
    """MuJoCo, asked for the positions that a cell has.

    model: The model.
    cell: The cell that was read from it.
    """

    def __init__(self, model: mujoco.MjModel, cell: arm.Cell) -> None:
        self.model, self.cell = model, cell
        self.data = mujoco.MjData(model)
        self._places = {
            name.rpartition("/")[2]: k for k, name in enumerate(cell.joint_names)
        }
        frames = cell.workcell.frame_names
        self._frames = {name.rpartition("/")[2]: name for name in frames}

    def name(self, kind: Any, number: int) -> str:
        """Return the name of something of the model, without that of a manipulator."""
        return (mujoco.mj_id2name(self.model, kind, number) or "").rpartition("/")[2]

    def place(self, q: Array) -> None:
        """Put the model where the cell is at positions, shape (n,)."""
        model, data = self.model, self.data
        data.qpos[:] = model.qpos0
        for k in range(model.njnt):
            name = self.name(mujoco.mjtObj.mjOBJ_JOINT, k)
            at = model.jnt_qposadr[k]
            if model.jnt_type[k] == mujoco.mjtJoint.mjJNT_BALL:
                angles = [q[self._places[f"{name}_{end}"]] for end in BALL]
                data.qpos[at : at + 4] = arm.Pose.from_rpy(*angles[::-1]).quaternion()
            elif model.jnt_type[k] != mujoco.mjtJoint.mjJNT_FREE:
                data.qpos[at] = q[self._places[name]]
        mujoco.mj_forward(model, data)

    def worst_pose(self, Q: Array) -> float:
        """Return how far any body or site is from where MuJoCo has it."""
        poses = self.cell.poses(self.cell.home, q=Q)
        worst = 0.0
        for k, q in enumerate(Q):
            self.place(q)
            data, model = self.data, self.model
            for kind, count, p, R in (
                (mujoco.mjtObj.mjOBJ_BODY, model.nbody, data.xpos, data.xmat),
                (mujoco.mjtObj.mjOBJ_SITE, model.nsite, data.site_xpos, data.site_xmat),
            ):
                for number in range(kind == mujoco.mjtObj.mjOBJ_BODY, count):
                    if self.name(kind, number) not in self._frames:
                        continue  # a base that was not named
                    X = poses[self._frames[self.name(kind, number)]]
                    X = X[k] if X.ndim == 3 else X
                    worst = max(worst, np.abs(X[:3, 3] - p[number]).max())
                    worst = max(
                        worst, np.abs(X[:3, :3] - R[number].reshape(3, 3)).max()
                    )
        return float(worst)

    def worst_mass(self, Q: Array) -> float:
        """Return the difference of the mass matrices, over their greatest entry."""
        M = np.asarray(self.cell.mass_matrix()(Q))
        order = [0] * M.shape[1]
        for k in range(self.model.njnt):
            name = self.name(mujoco.mjtObj.mjOBJ_JOINT, k)
            if name in self._places:
                order[self._places[name]] = self.model.jnt_dofadr[k]
        worst = 0.0
        full = np.zeros((self.model.nv, self.model.nv))
        for k, q in enumerate(Q):
            self.place(q)
            mujoco.mj_fullM(self.model, self.data, full)
            expected = full[np.ix_(order, order)]
            worst = max(worst, np.abs(M[k] - expected).max() / np.abs(expected).max())
        return float(worst)
