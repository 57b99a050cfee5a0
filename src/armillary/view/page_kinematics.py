"""The kinematics of a cell in a state as JavaScript, for a page without Python."""

from __future__ import annotations

import json

import numpy as np

from armillary.kernel.javascript import LIBRARY, literal
from armillary.kernel.javascript_pipeline import pipeline_function
from armillary.kernel.pipeline import Pipeline
from armillary.kinematics.moving_links import POSES, MovingLinks, moving_links
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell

__all__ = ["kinematics_script"]

UNCOMPILED = (
    "A script of this cell runs in Python only, or the cell is too large to compile: "
    "joints cannot be moved in this page."
)


def kinematics_script(cell: Workcell, state: State) -> str:
    """Return the kinematics of a cell as a JavaScript expression, an object.

    Its members are

    - `joints`: for each joint of q its `name`, `unit`, `lower` and `upper` limit
      [m or rad], which may be infinite;
    - `q`: the joint positions of the state;
    - `links`: the number in the cell of each moving link, -1 for the world;
    - `reason`: why the page cannot compute poses, empty where it can;
    - `poses(q, out)`: fills `out`, a `Float64Array` of 12 numbers for each of `links`,
      with its pose in the world, the first three rows of the matrix; NaN where a loop
      cannot be closed. Null where there is a reason.

    Args:
        cell: Whose kinematics.
        state: Where bases are, what is attached, and which branch loops are on.
    """
    moving = moving_links(cell)
    members = [
        f"joints: [{', '.join(_joints(cell))}]",
        f"q: {_numbers(state.q)}",
        f"links: {list(moving.links)}",
        f"reason: {json.dumps('' if moving.is_compiled else UNCOMPILED)}",
        f"poses: {'poses' if moving.is_compiled else 'null'}",
    ]
    poses = _poses(moving, state) if moving.is_compiled else ""
    result = "return {\n  " + ",\n  ".join(members) + ",\n};"
    return f"(() => {{\n{LIBRARY}{poses}\n{result}\n}})()"


def _joints(cell: Workcell) -> list[str]:
    rows = zip(cell.joint_names, cell.joints.links, *cell.limits, strict=False)
    return [
        f"{{ name: {json.dumps(name)}, "
        f"unit: {json.dumps(cell.links[link].joint.unit.name.lower())}, "
        f"lower: {literal(lower)}, upper: {literal(upper)} }}"
        for name, link, lower, upper in rows
    ]


def _numbers(values: object) -> str:
    return f"[{', '.join(map(literal, np.ravel(np.asarray(values)).tolist()))}]"


def _poses(moving: MovingLinks, state: State) -> str:
    """Return the function from q to the poses of moving links."""
    if moving.count == 1:
        still = _numbers(np.eye(4)[:3])
        return f"const poses = (q, out) => out.set({still});"
    stages, tables = moving.stages, moving.tables
    pipeline = Pipeline("links", moving.inputs, tables, stages, (POSES,))
    return pipeline_function(pipeline, moving.records(state), "poses")
