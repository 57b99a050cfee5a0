"""The check of a closed form of the user's own: every law of ik, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.errors import ModelError
from armillary.ik.user_form import branch_numbers, inverse_program
from armillary.kernel import vectorize
from armillary.model.closed_form import ClosedForm
from armillary.model.mount import WORLD
from armillary.spatial.pose import Pose
from armillary.testing.laws import broken_laws, row

Array = npt.NDArray[np.float64]

NEAR, STEP = 1e-6, 1e-6
FAR = 1e6
"""How far away a target is that nothing reaches [m]."""


class _CheckedForm(NamedTuple):
    """A closed form, joint positions to test, and the model's poses there if any."""

    form: ClosedForm
    q: Array
    model: Array | None

    def pose(self, q: Array) -> Array:
        """Return the matrix of `forward`."""
        pose: Any = self.form.forward(q)
        if not isinstance(pose, Pose):
            raise ModelError(f"forward returned {type(pose).__name__}, not a Pose.")
        return pose.matrix()

    def branches(self, X: Array) -> Array:
        """Return q of every branch, NaN where there is none."""
        # Unchecked, as traced poses are: a target may be NaN.
        pose = Pose.from_rotation_position(X[:3, :3], X[:3, 3])
        numbers = branch_numbers(self.form, pose, self.q.shape[1])
        return _reached(np.array(numbers, dtype=np.float64))


def _reached(found: Array) -> Array:
    """Return q of the branches that `branch_numbers` describes, NaN out of reach."""
    return np.where(found[:, -1:] == 1.0, found[:, :-1], np.nan)


def check_inverse(
    form: ClosedForm,
    *,
    lower: Any = None,
    upper: Any = None,
    cell: Cell | None = None,
    frame: str | None = None,
    relative_to: str = WORLD,
    joints: Any = None,
    samples: int = 24,
) -> None:
    """Check that a closed form obeys the laws of inverse kinematics.

    What `forward` gives is a pose; `inverse` of it contains the joint positions that
    led there, each branch that exists leads back, no two are the same, and a named
    branch stays the same nearby; a target out of reach or not finite has none; traced
    and plain answers agree; and `forward` is the cell's, where one is given.

    Args:
        form: The closed form.
        lower: Lowest joint positions to test [m or rad], shape (n,); by default the
            limits of the cell, or -2.5 where it has none.
        upper: Highest joint positions to test [m or rad], shape (n,).
        cell: A model of the same mechanism.
        frame: The frame of the cell whose pose `forward` computes.
        relative_to: The frame of the cell in which that pose is given.
        joints: Names of its joints in the order of q; all by default.
        samples: Number of joint positions to test.

    Raises:
        ModelError: A law is broken, or neither limits nor a cell with a frame are
            given. The message names every broken law, where, and the numbers.
    """
    ends = _ends(lower, upper, cell, joints)
    low, high = ends
    # The same positions in every run, so that a broken law can be looked at again.
    q = np.random.default_rng(0).uniform(low, high, (samples, len(low)))
    model = None
    if cell is not None:
        if frame is None:
            raise ModelError("check_inverse needs the frame of the cell: frame=.")
        model = cell.fk(frame, relative_to=relative_to, joints=joints)(q)
    subject = _CheckedForm(form, q, model)
    faults = broken_laws(type(form).__name__, "ik", LAWS, subject)
    if faults:
        raise ModelError(faults)


def _ends(lower: Any, upper: Any, cell: Cell | None, joints: Any) -> list[Array]:
    """Return between which joint positions to look."""
    if (lower is None or upper is None) and cell is None:
        raise ModelError("check_inverse needs lower and upper, or a cell.")
    ends: list[Array] = []
    for k, given in enumerate((lower, upper)):
        if given is not None or cell is None:
            ends.append(np.asarray(given, dtype=np.float64))
            continue
        indices = [cell.joint(name) for name in joints or cell.joint_names]
        ends.append(np.clip(cell.limits[k][indices], -2.5, 2.5))
    return ends


def _forward_is_a_pose(subject: _CheckedForm) -> None:
    for q in subject.q:
        Pose.from_matrix(subject.pose(q))


def _forward_is_the_models(subject: _CheckedForm) -> None:
    if subject.model is None:
        return
    for q, X in zip(subject.q, subject.model, strict=True):
        apart = np.abs(subject.pose(q) - X).max()
        if not apart < NEAR:
            raise ModelError(
                f"at q = {row(q)} forward and the cell's fk differ by {apart:.3g}."
            )


def _q_comes_back(subject: _CheckedForm) -> None:
    for q in subject.q:
        if _branch_of(subject, q) is None:
            raise ModelError(f"no branch of inverse(forward(q)) is q = {row(q)}.")


def _branches_lead_back(subject: _CheckedForm) -> None:
    for q in subject.q:
        X = subject.pose(q)
        for words, branch in zip(subject.form.names, subject.branches(X), strict=True):
            if np.isnan(branch).any():
                continue
            apart = np.abs(subject.pose(branch) - X).max()
            if not apart < NEAR:
                raise ModelError(
                    f"the branch '{'/'.join(words)}' of the pose of q = {row(q)} "
                    f"misses it by {apart:.3g}."
                )


def _branches_differ(subject: _CheckedForm) -> None:
    for q in subject.q:
        branches = subject.branches(subject.pose(q))
        for k, one in enumerate(branches):
            for other in branches[:k]:
                if _equal_up_to_turns(one, other):
                    raise ModelError(
                        f"two branches of the pose of q = {row(q)} are the same."
                    )


def _branches_keep_their_names(subject: _CheckedForm) -> None:
    for q in subject.q:
        branches = [_branch_of(subject, q + h) for h in (0.0, STEP, -STEP)]
        if len(set(branches)) > 1:
            names = ["/".join(subject.form.names[k]) for k in branches if k is not None]
            raise ModelError(
                f"around q = {row(q)} it is now '{names[0]}', now '{names[-1]}'."
            )


def _out_of_reach_is_none(subject: _CheckedForm) -> None:
    X = subject.pose(subject.q[0]).copy()
    X[:3, 3] += FAR
    branches = subject.branches(X)
    if np.isfinite(branches).all(axis=1).any():
        raise ModelError(f"it has an answer {FAR:g} m away.")


def _nothing_gives_nothing(subject: _CheckedForm) -> None:
    X = np.full((4, 4), np.nan)
    if np.isfinite(_traced_or_plain(subject, X)).all(axis=1).any():
        raise ModelError("a pose of NaN has an answer.")


def _traced_is_plain(subject: _CheckedForm) -> None:
    program = _program(subject)
    if program is None:
        return
    for q in subject.q:
        X = subject.pose(q)
        traced = _reached(np.asarray(vectorize(program, X)))
        plain = subject.branches(X)
        if not np.allclose(traced, plain, atol=1e-9, equal_nan=True):
            raise ModelError(
                f"at the pose of q = {row(q)} traced and plain answers differ."
            )


LAWS: Final[dict[str, Callable[[_CheckedForm], None]]] = {
    "forward gives a pose": _forward_is_a_pose,
    "forward is that of the model": _forward_is_the_models,
    "inverse contains q": _q_comes_back,
    "every branch leads to the target": _branches_lead_back,
    "branches differ": _branches_differ,
    "branches keep their names": _branches_keep_their_names,
    "out of reach there is nothing": _out_of_reach_is_none,
    "nothing leads to NaN": _nothing_gives_nothing,
    "traced is plain": _traced_is_plain,
}
"""Every law by its name, in the order in which they are checked."""


def _program(subject: _CheckedForm) -> Any:
    try:
        return inverse_program(subject.form, subject.q.shape[1])
    except Exception:  # then it runs as plain Python, which is allowed
        return None


def _traced_or_plain(subject: _CheckedForm, X: Array) -> Array:
    """Return what a cell would be answered; plain Python is not asked about NaN."""
    program = _program(subject)
    if program is None:
        return np.full((1, 1), np.nan)
    return _reached(np.asarray(vectorize(program, X)))


def _branch_of(subject: _CheckedForm, q: Array) -> int | None:
    """Return which branch of the pose of q is q."""
    for k, branch in enumerate(subject.branches(subject.pose(q))):
        if _equal_up_to_turns(branch, q):
            return k
    return None


def _equal_up_to_turns(a: Array, b: Array) -> bool:
    """Return whether two vectors are the same but for whole turns."""
    apart = np.abs(a - b)
    return bool((np.minimum(apart, np.abs(apart - np.pi * 2)) < NEAR).all())
