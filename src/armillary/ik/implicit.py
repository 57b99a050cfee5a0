"""Inverse kinematics as functions of JAX and torch, with gradients by the target.

Answers q of a target X have e(q, X) = 0, with the twist e of `pose_error`. So by the
implicit function theorem dq = -(de/dq)^+ de, which is one step of Newton's method from
an answer that is itself constant: its value changes nothing but rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.ik.problem import IKProblem
from armillary.ik.solution import Solution
from armillary.kernel.sloped import imported, torch_constants
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.poses import pose_error_program

__all__ = ["jax_function", "torch_function"]

Array = npt.NDArray[np.float64]

Solver = Callable[..., Solution]
"""An `InverseKinematics`, called with targets and near."""

SINGULAR: Final = 1e-6
"""Directions in which joints move the frame less than this do not follow a target."""


class _Answers(NamedTuple):
    """What answers targets, as constants of a step of Newton's method.

    Attributes:
        solver: The inverse kinematics of one full pose.
        rates: The kernel of de/dq along directions.
    """

    solver: Solver
    rates: AnyKernel

    def __call__(
        self, targets: Array, near: Array | None = None
    ) -> tuple[Array, Array]:
        """Return q and the pseudo-inverse of de/dq, NaN where a target is not reached.

        Returns:
            Shapes (..., n) and (..., n, 6).
        """
        found = self.solver(targets, near=near)
        q = np.where(np.asarray(found.success)[..., np.newaxis], found.q, np.nan)
        count = q.shape[-1]
        X, at = targets[..., np.newaxis, :, :], np.nan_to_num(q)[..., np.newaxis, :]
        J: Any = self.rates(at, X, np.eye(count))
        slopes = np.swapaxes(np.asarray(J, np.float64), -1, -2)
        # Loops may not close at 0, where joints without an answer are put.
        is_known = np.isfinite(slopes).all((-2, -1)) & np.isfinite(q).all(-1)
        inverse = np.full(np.swapaxes(slopes, -1, -2).shape, np.nan)
        inverse[is_known] = np.linalg.pinv(slopes[is_known], rcond=SINGULAR)
        return q, inverse


def _opened(
    solver: Solver, problem: IKProblem, library: str
) -> tuple[_Answers, Callable[..., Any]]:
    """Return what answers, and e(q, X) as a function of a library.

    Raises:
        KernelError: Not one full pose is asked for, or the library is not installed.
    """
    if len(problem.goals) != 1 or not problem.goals[0].is_whole:
        raise KernelError(
            f"ik.{library}() needs a goal of one full pose: targets that leave "
            "directions free have no gradient of their own."
        )
    (goal,) = problem.goals
    program = pose_error_program(
        problem.tree, goal.frame, goal.relative_to, problem.selection, form="matrix"
    )
    error = problem.closed(program)
    function = error.jax() if library == "jax" else error.torch()
    return _Answers(solver, error.jvp(["q"])), function


def _batch(shapes: Sequence[tuple[int, ...]], count: int) -> tuple[int, ...]:
    """Return the batch of a target and, if given, of `near` with so many joints.

    Raises:
        ShapeError: They have other shapes, or do not fit each other.
    """
    batches: list[tuple[int, ...]] = []
    ends = {"target": (4, 4), "near": (count,)}
    for (name, own), shape in zip(ends.items(), shapes, strict=False):
        batch, end = shape[: -len(own)], shape[-len(own) :]
        if end != own:
            listed = ", ".join(map(str, ("...", *own)))
            raise ShapeError(
                f"'{name}' needs the shape ({listed}); an array of shape {shape} was "
                "given."
            )
        batches.append(batch)
    try:
        return np.broadcast_shapes(*batches)
    except ValueError:
        raise ShapeError(
            f"The batches of target and near, {batches[0]} and {batches[1]}, do not "
            "fit each other."
        ) from None


def torch_function(solver: Solver, problem: IKProblem) -> Callable[..., Any]:
    """Return answers as a function of tensors; see `InverseKinematics.torch`."""
    answers, error = _opened(solver, problem, "torch")
    torch = imported("torch")
    constants = torch_constants(answers, [2, 1])

    def ik(target: Any, near: Any = None) -> Any:
        given = [
            x if torch.is_tensor(x) else torch.tensor(x, dtype=torch.float64)
            for x in (target, near)
            if x is not None
        ]
        target = given[0]
        q, inverse = constants(*[x.detach() for x in given])
        return q - (inverse @ error(q, target)[..., None])[..., 0]

    return torch.compiler.disable(ik)


def jax_function(solver: Solver, problem: IKProblem) -> Callable[..., Any]:
    """Return answers as a function of JAX arrays; see `InverseKinematics.jax`."""
    answers, error = _opened(solver, problem, "jax")
    with IMPORT_LOCK:
        from armillary.kernel.jax_function import FIX

    jax = imported("jax")
    jnp, count = jax.numpy, len(problem.joints)

    def host(*given: Any) -> tuple[Array, Array]:
        return answers(*map(np.asarray, given))

    def ik(target: Any, near: Any = None) -> Any:
        given = [jnp.asarray(x) for x in (target, near) if x is not None]
        if any(x.dtype != np.float64 for x in given):
            raise ShapeError(f"Inverse kinematics computes in float64. {FIX}")
        batch = _batch([x.shape for x in given], count)
        shape = partial(jax.ShapeDtypeStruct, dtype=np.float64)
        q, inverse = jax.pure_callback(
            host,
            (shape((*batch, count)), shape((*batch, count, 6))),
            *map(jax.lax.stop_gradient, given),
            vmap_method="broadcast_all",
        )
        return q - (inverse @ error(q, given[0])[..., None])[..., 0]

    return ik
