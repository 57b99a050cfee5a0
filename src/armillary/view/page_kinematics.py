"""The kinematics of a cell in a state as JavaScript, for a page without Python."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.ik.general_form import GeneralForm
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.method import squares_of
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE
from armillary.ik.reason import Reason
from armillary.ik.recognised_form import OTHER_ANGLES, RecognisedForm
from armillary.ik.search_pipeline import step_constants
from armillary.ik.search_step import step_program
from armillary.ik.user_form import UserForm, picked_program, verified_program
from armillary.kernel.javascript import (
    LIBRARY,
    literal,
    literals,
    pipeline_function,
    program_function,
)
from armillary.kernel.pipeline import Pipeline
from armillary.kinematics.inputs import PASSIVE
from armillary.kinematics.moving_links import POSES, MovingLinks, straight_links
from armillary.kinematics.state import State
from armillary.model.closed_form import ClosedForm
from armillary.model.end_effectors import frames_by_use
from armillary.model.workcell import Workcell
from armillary.trace import Program
from armillary.view.target_solver import reaches_poses, target_solver

__all__ = ["kinematics_script", "solver_names"]

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
        cell: The cell whose kinematics are printed.
        state: Where bases are, what is attached, and which branch loops are on.
        frames: Names of the frames that the page places.
        closed: Closed forms of the user, by frame; those that cannot be traced are not
            used.

    Raises:
        UnknownName: There is no such frame.
    """
    moving = straight_links(cell)
    if not moving.is_straight:
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
        f"links: {list(straight_links(cell).links)}",
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
    # The world alone: nothing moves, and a pipeline without stages is not printed.
    if moving.count == 1:
        still = f"const poses = (q, out) => out.set([{literals(np.eye(4)[:3])}]);"
        return "\n".join([joints, still, NO_LOOPS, INVERSE_LIBRARY])
    stages, tables = moving.stages, moving.tables
    passive = len(moving.cell.joints.home) - moving.joints
    results = (POSES, PASSIVE) if passive else (POSES,)
    pipeline = Pipeline("links", moving.inputs, tables, stages, results)
    code = pipeline_function(pipeline, moving.records(state), "linksAt")
    closing = f"const poses = linksAt;\n{NO_LOOPS}"
    # Where loops are closed, the pipeline also returns the passive joints, and solvers
    # call it to close the loops of what they try.
    if passive:
        sizes = f"const poseSize = {12 * moving.count}, passiveSize = {passive};"
        closing = f"{sizes}\n{LOOPS}"
    return "\n".join([joints, code, closing, INVERSE_LIBRARY])


# inverse kinematics


INVERSE_LIBRARY: Final = (
    f"""\
const SOLVED = {int(Reason.SOLVED)}, SINGULAR = {int(Reason.SINGULAR)};
const LIMITS = {int(Reason.LIMITS)}, NOT_FOUND = {int(Reason.NOT_FOUND)};
const OUT_OF_REACH = {int(Reason.OUT_OF_REACH)};
const OTHER_ANGLES = {OTHER_ANGLES.tolist()};
const FOUND = 1, NONE = 0, UNKNOWN = -1, MOST_STEPS = 100;
"""
    + """\
function squaredStep(a, b, n, first = 0) {
  let sum = 0;
  for (let k = 0; k < n; k++) sum += (a[first + k] - b[k]) ** 2;
  return sum;
}
// Closed forms: functions of target, near and x, which gets the nearest answer.
function recognisedForm(n, values, allowed, best, armAngle) {
  const answer = new Float64Array(n + 3), angle = new Float64Array(armAngle ? 1 : 0);
  const angles = armAngle ? [angle] : [];
  const run = (target, near) => {
    best(...values, target, allowed, near, ...angles, answer);
    return Math.floor(answer[n + 2]);
  };
  return (target, near, x) => {
    if (armAngle) armAngle(near, angle);
    let reason = run(target, near);
    if (reason === SOLVED || reason === SINGULAR) {
      x.set(answer.subarray(0, n));
      return FOUND;
    }
    if (reason !== LIMITS || !armAngle) return reason === NOT_FOUND ? UNKNOWN : NONE;
    const start = angle[0];
    let least = Infinity;
    for (const other of OTHER_ANGLES) {
      angle[0] = start + other;
      reason = run(target, near);
      const step = squaredStep(answer, near, n);
      if ((reason === SOLVED || reason === SINGULAR) && step < least) {
        least = step;
        x.set(answer.subarray(0, n));
      }
    }
    return least < Infinity ? FOUND : UNKNOWN;
  };
}
function verifiedForm(n, count, values, allowed, verified) {
  const branches = new Float64Array(count * (n + 3));
  return (target, near, x) => {
    verified(...values, near, target, allowed, branches);
    let least = Infinity, isReached = false;
    for (let first = 0; first < branches.length; first += n + 3) {
      const step = squaredStep(branches, near, n, first);
      if (branches[first + n + 2] !== OUT_OF_REACH) isReached = true;
      if (branches[first + n + 2] !== SOLVED || !(step < least)) continue;
      least = step;
      x.set(branches.subarray(first, first + n));
    }
    return least < Infinity ? FOUND : isReached ? UNKNOWN : NONE;
  };
}
function pickedForm(n, picked) {
  const answer = new Float64Array(n + 1);
  return (target, near, x) => {
    picked(near, target, answer);
    x.set(answer.subarray(0, n));
    return answer[n] > 0 ? FOUND : UNKNOWN;
  };
}
// The solver of a frame: its closed form, else steps from q; answers are verified.
function inverse({ joints, passive, lower, upper, constants, allowed, step, form }) {
  const n = joints.length, near = new Float64Array(n);
  const x = new Float64Array(n + passive.length), next = new Float64Array(x.length);
  const errors = new Float64Array(allowed.length), whole = new Float64Array(jointCount);
  const within = (value, k) => Math.min(Math.max(value, lower[k]), upper[k]);
  const misses = (target) => {
    step(x, target, constants, next, errors);
    return errors.some((error, k) => !(error <= allowed[k]));
  };
  const isAnswer = (target) => {
    for (let k = 0; k < n; k++) whole[joints[k]] = x[k] = within(x[k], k);
    closeLoops(whole, x, n, passive);
    return !misses(target);
  };
  const search = (target) => {
    x.set(near);
    closeLoops(whole, x, n, passive);
    for (let k = 0; k < MOST_STEPS && misses(target); k++) x.set(next);
    return isAnswer(target);
  };
  return (target, q, out) => {
    whole.set(q);
    for (let k = 0; k < n; k++) near[k] = whole[joints[k]] = within(q[joints[k]], k);
    const found = form ? form(target, near, x) : UNKNOWN;
    if (found === NONE) return false;
    if (found === UNKNOWN || !isAnswer(target)) {
      for (let k = 0; k < n; k++) whole[joints[k]] = near[k];
      if (!search(target)) return false;
    }
    out.set(whole);
    return true;
  };
}
"""
)
"""Functions that printed members call; `jointCount` and `closeLoops` stand before."""


def inverse_members(
    cell: Workcell,
    state: State,
    frames: Sequence[str],
    closed: Mapping[str, ClosedForm],
) -> list[str]:
    """Return the members of an object: for each frame that can be placed its solver.

    Frames that fewer than six joints move, without a closed form, are placed by their
    position only.

    Args:
        cell: The cell that has the frames.
        state: Where bases are, what is attached, and which branch loops are on.
        frames: The names of the frames.
        closed: Closed forms of the user, by frame.

    Raises:
        UnknownName: There is no such frame.
    """
    members: list[str] = []
    for number, name in enumerate(frames):
        try:
            form = closed.get(name)
            # Whole poses if a closed form or at least six joints can reach them, else
            # positions.
            solver = target_solver(cell, name, state, rotation="xyz", closed=form)
            if solver.closed is None and not reaches_poses(cell, name):
                solver = target_solver(cell, name, state, rotation="")
        except ModelError:  # no joint moves it
            continue
        if solver.numeric.problem.can_search:
            members.append(f"{json.dumps(name)}: {_member(solver, f'ik{number}')}")
    return members


def _member(solver: InverseKinematics, name: str) -> str:
    problem = solver.numeric.problem
    selection = problem.selection
    constants, allowed = step_constants(problem)
    count = len(problem.tree.cell.joint_names)
    lower, upper = problem.finite_limits
    parts = {
        "joints": str(list(selection.inputs)),
        "passive": str([k - count for k in selection.passive]),
        "lower": _float64(lower),
        "upper": _float64(upper),
        "constants": _float64(constants),
        "allowed": _float64(allowed),
        "step": program_function(step_program(problem), f"{name}Step"),
        "form": _form(solver.closed, problem, name),
    }
    listed = ", ".join(f"{key}: {text}" for key, text in parts.items())
    family = "" if solver.closed is None else solver.closed.family
    return (
        f"{{ joints: {parts['joints']}, family: {json.dumps(family)}, "
        f"solve: inverse({{ {listed} }}) }}"
    )


def _float64(values: npt.ArrayLike) -> str:
    """Return numbers as a new typed array of JavaScript."""
    return f"Float64Array.of({literals(values)})"


def _form(
    form: RecognisedForm | GeneralForm | UserForm | None, problem: IKProblem, name: str
) -> str:
    """Return a closed form as an expression, `null` where there is none to print."""

    def printed(program: Program, suffix: str) -> str:
        return program_function(program, name + suffix)

    n = len(problem.joints)
    # A closed form that is recognised chooses the nearest branch in its own program.
    if isinstance(form, RecognisedForm):
        values = ", ".join(map(_float64, form.values))
        angle = form.arm_angle_program
        shown = "null" if angle is None else printed(angle, "ArmAngle")
        best, allowed = printed(form.best, "Best"), _float64(form.allowed(TOLERANCE))
        return f"recognisedForm({n}, [{values}], {allowed}, {best}, {shown})"
    if form is None or isinstance(form, GeneralForm) or not form.compiled:
        return "null"
    # Of closed loops the form picks one answer, which the search verifies.
    if problem.selection.passive:
        picked = picked_program(problem, form.form)
        return f"pickedForm({n}, {printed(picked, 'Picked')})"
    # A closed form of the user: each branch is verified, and the nearest is taken.
    bound = problem.selection.values(problem.tree)
    values, allowed = ", ".join(map(_float64, bound)), _float64(squares_of(TOLERANCE))
    verified = printed(verified_program(problem, form.form, traced=True), "Verified")
    count = len(form.branches)
    return f"verifiedForm({n}, {count}, [{values}], {allowed}, {verified})"


# targets that are dragged


MOST_SOLVERS: Final = 60
"""Most solvers of a page: each is some kilobytes of text, a closed form up to 100."""


def solver_names(cell: Workcell, state: State) -> dict[str, str]:
    """Return for each frame that joints move the frame whose solver places it.

    Frames of one link that reach whole poses share the solver of the first of them.
    They are in the order of `frames_by_use`.

    Args:
        cell: The cell that has the frames.
        state: What is attached to what.
    """
    moving = straight_links(cell)
    solvers: dict[str, str] = {}
    firsts: dict[int, str] = {}
    for name in frames_by_use(cell):
        row = moving.fixed_to(state.tree, cell.frame(name).link).row
        if not row:  # the world
            continue
        if reaches_poses(cell, name):
            solvers[name] = firsts.setdefault(row, name)
        else:
            solvers[name] = name
        if len({*solvers.values()}) == MOST_SOLVERS:
            break
    return solvers
