"""Inverse kinematics of frames as JavaScript: closed forms, and the search's step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.loop_search import loop_constants, loop_tolerances
from armillary.ik.method import squares_of
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE
from armillary.ik.reason import Reason
from armillary.ik.recognised_form import OTHER_ANGLES, RecognisedForm
from armillary.ik.search_step import largest_errors, step_program
from armillary.ik.user_form import UserForm, picked_program, verified_program
from armillary.kernel.javascript import literals, program_function
from armillary.kinematics.state import State
from armillary.model.closed_form import ClosedForm
from armillary.model.workcell import Workcell
from armillary.trace import Program
from armillary.view.target_solver import reaches_poses, target_solver

__all__ = ["INVERSE_LIBRARY", "inverse_members"]

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
        cell: Whose frames.
        state: Where bases are, what is attached, and which branch loops are on.
        frames: Their names.
        closed: Closed forms of the user, by frame.

    Raises:
        UnknownName: There is no such frame.
    """
    found: list[str] = []
    for number, name in enumerate(frames):
        try:
            form = closed.get(name)
            solver = target_solver(cell, name, state, rotation="xyz", closed=form)
            if solver.closed is None and not reaches_poses(cell, name):
                solver = target_solver(cell, name, state, rotation="")
        except ModelError:  # no joint moves it
            continue
        if solver.numeric.problem.can_search:
            found.append(f"{json.dumps(name)}: {_member(solver, f'ik{number}')}")
    return found


def _member(solver: InverseKinematics, name: str) -> str:
    problem = solver.numeric.problem
    selection = problem.selection
    bound = [np.ravel(each) for each in selection.values(problem.tree)]
    allowed, ends = largest_errors(TOLERANCE, 1), problem.limits
    signs = np.zeros(0)
    if selection.passive:
        ends = tuple(map(np.append, ends, problem.passive_limits))
        signs = loop_constants(problem)
        allowed = loop_tolerances(problem, allowed, min(TOLERANCE))
    count = len(problem.tree.cell.joint_names)
    lower, upper = problem.finite_limits
    parts = {
        "joints": str(list(selection.inputs)),
        "passive": str([k - count for k in selection.passive]),
        "lower": _float64(lower),
        "upper": _float64(upper),
        "constants": _float64(np.concatenate([*ends, signs, *bound])),
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


def _form(form: RecognisedForm | UserForm | None, problem: IKProblem, name: str) -> str:
    """Return a closed form as an expression, `null` where there is none to print."""

    def printed(program: Program, suffix: str) -> str:
        return program_function(program, name + suffix)

    n = len(problem.joints)
    if isinstance(form, RecognisedForm):
        values = ", ".join(map(_float64, form.values))
        angle = form.arm_angle_program
        shown = "null" if angle is None else printed(angle, "ArmAngle")
        best, allowed = printed(form.best, "Best"), _float64(form.allowed(TOLERANCE))
        return f"recognisedForm({n}, [{values}], {allowed}, {best}, {shown})"
    if form is None or not form.compiled:
        return "null"
    if problem.selection.passive:
        picked = picked_program(problem, form.form)
        return f"pickedForm({n}, {printed(picked, 'Picked')})"
    bound = problem.selection.values(problem.tree)
    values, allowed = ", ".join(map(_float64, bound)), _float64(squares_of(TOLERANCE))
    verified = printed(verified_program(problem, form.form, traced=True), "Verified")
    count = len(form.branches)
    return f"verifiedForm({n}, {count}, [{values}], {allowed}, {verified})"
