"""The kinematics of a cell in a state as JavaScript, for a page without Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from armillary.kernel.javascript import LIBRARY, literal, literals, pipeline_function
from armillary.kernel.pipeline import Pipeline
from armillary.kinematics.inputs import PASSIVE
from armillary.kinematics.moving_links import POSES, MovingLinks, moving_links
from armillary.kinematics.state import State
from armillary.model.closed_form import ClosedForm
from armillary.model.workcell import Workcell
from armillary.view.page_inverse import INVERSE_LIBRARY, inverse_members

__all__ = ["kinematics_script"]

NO_FORMS: Final[Mapping[str, ClosedForm]] = MappingProxyType({})
UNCOMPILED: Final = (
    "A script of this cell runs in Python only, or the cell is too large to compile: "
    "joints cannot be moved in this page."
)

NO_LOOPS: Final = "const closeLoops = () => {};"
LOOPS: Final = """\
const posesOfLoops = new Float64Array(poseSize);
const passiveJoints = new Float64Array(passiveSize);
const poses = (q, out) => linksAt(q, out, passiveJoints);
const closeLoops = (q, x, n, passive) => {
  if (passive.length === 0) return;
  linksAt(q, posesOfLoops, passiveJoints);
  passive.forEach((joint, k) => { x[n + k] = passiveJoints[joint]; });
};"""
"""How solvers get passive joints: behind the first n numbers of x, at q."""


def kinematics_script(
    cell: Workcell,
    state: State,
    *,
    frames: Sequence[str] = (),
    closed: Mapping[str, ClosedForm] = NO_FORMS,
) -> str:
    """Return the kinematics of a cell as a JavaScript expression, an object.

    Its members are

    - `joints`: for each joint of q its `name`, `unit`, `lower` and `upper` limit
      [m or rad], which may be infinite;
    - `q`: the joint positions of the state;
    - `links`: the number in the cell of each moving link, -1 for the world;
    - `reason`: why the page cannot compute poses, empty where it can;
    - `poses(q, out)`: fills `out`, a `Float64Array` of 12 numbers for each of `links`,
      with its pose in the world, the first three rows of the matrix; NaN where a loop
      cannot be closed. Null where there is a reason;
    - `ik`: for each of `frames` that joints can place: the numbers of these `joints`,
      the `family` of its closed form, empty where it is searched for, and
      `solve(target, q, out)`, which fills `out` with the joint positions nearest to `q`
      that bring the frame to `target`, 16 numbers of a pose in the world. It returns
      whether there are any; q and out are `Float64Array`s of all joints.

    Args:
        cell: Whose kinematics.
        state: Where bases are, what is attached, and which branch loops are on.
        frames: Names of the frames that the page places.
        closed: Closed forms of the user, by frame; those that cannot be traced are not
            used.

    Raises:
        UnknownName: There is no such frame.
    """
    moving = moving_links(cell)
    if not moving.is_compiled:
        members = [f"reason: {json.dumps(UNCOMPILED)}", "poses: null", "ik: {}"]
        return _expression(cell, state, members, "")
    solvers = inverse_members(cell, state, frames, closed)
    members = ['reason: ""', "poses", f"ik: {{ {', '.join(solvers)} }}"]
    return _expression(cell, state, members, f"{LIBRARY}{_poses(moving, state)}")


def _expression(cell: Workcell, state: State, members: list[str], before: str) -> str:
    """Return an expression: an object with members that every cell has, and more."""
    members = [
        f"joints: [{', '.join(_joints(cell))}]",
        f"q: [{literals(state.q)}]",
        f"links: {list(moving_links(cell).links)}",
        *members,
    ]
    result = "return {\n  " + ",\n  ".join(members) + ",\n};"
    return f"(() => {{\n{before}\n{result}\n}})()"


def _joints(cell: Workcell) -> list[str]:
    rows = zip(cell.joint_names, cell.joints.links, *cell.limits, strict=False)
    return [
        f"{{ name: {json.dumps(name)}, "
        f"unit: {json.dumps(cell.links[link].joint.unit.name.lower())}, "
        f"lower: {literal(lower)}, upper: {literal(upper)} }}"
        for name, link, lower, upper in rows
    ]


def _poses(moving: MovingLinks, state: State) -> str:
    """Return the functions `poses`, and `closeLoops`, which solvers call.

    `closeLoops` fills in passive joints behind the first n numbers of x.
    """
    joints = f"const jointCount = {moving.joints};"
    if moving.count == 1:
        still = f"const poses = (q, out) => out.set([{literals(np.eye(4)[:3])}]);"
        return "\n".join([joints, still, NO_LOOPS, INVERSE_LIBRARY])
    stages, tables = moving.stages, moving.tables
    passive = len(moving.cell.joints.home) - moving.joints
    results = (POSES, PASSIVE) if passive else (POSES,)
    pipeline = Pipeline("links", moving.inputs, tables, stages, results)
    code = pipeline_function(pipeline, moving.records(state), "linksAt")
    closing = f"const poses = linksAt;\n{NO_LOOPS}"
    if passive:
        sizes = f"const poseSize = {12 * moving.count}, passiveSize = {passive};"
        closing = f"{sizes}\n{LOOPS}"
    return "\n".join([joints, code, closing, INVERSE_LIBRARY])
