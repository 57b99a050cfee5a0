"""Solvers as one kernel, with nothing behind it in Python: for GPUs and elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.ik.numeric import NumericSearch
from armillary.ik.query import TOLERANCE
from armillary.ik.recognised_form import RecognisedForm
from armillary.ik.search_pipeline import search_pipeline
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.trace import Port

__all__ = ["SolverKernel", "solver_kernel"]

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SolverKernel:
    """A solver that is one kernel; call it with arrays, also with those on a GPU.

    A call of the solver puts a branch just beyond a limit at that limit; this returns
    it where it is.

    - Of a closed form: `target` (..., 4, 4), then `arm_angle` of arms that have one.
      Returns all branches: q (..., branches, n) [m or rad], NaN where a branch does not
      exist; squared errors [m^2, rad^2] (..., branches, 2); reasons (..., branches),
      values of `Reason`, 0.5 more just beyond a limit; how many branches are so, (...);
      and how many stand for infinitely many answers, (...).
    - Of a search: `target` (..., 16), row by row, then `near` (..., n). Returns q
      (..., n), squares (..., 2), and 1 where the target is met, 0 where it is not, -1
      where it is not a pose, (...).

    Attributes:
        kernel: The kernel of all inputs.
        bound: Inputs that are constants, by name.
    """

    kernel: Kernel
    bound: Mapping[str, Array]

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Return what a call gives, in order."""
        ports = self.kernel.computation.inputs
        return tuple(port for port in ports if port.name not in self.bound)

    def __call__(self, *inputs: Any, out: Any = None) -> tuple[Any, ...]:
        """Compute all results; see the class.

        Raises:
            ShapeError: The number, the shape or the type of arrays is wrong.
            KernelError: As for a kernel on a GPU.
        """
        names = [port.name for port in self.inputs]
        if len(inputs) != len(names):
            raise ShapeError(
                f"The solver's kernel takes {', '.join(names)}; {len(inputs)} given."
            )
        given = {**self.bound, **dict(zip(names, inputs, strict=True))}
        ports = self.kernel.computation.inputs
        made: Any = self.kernel(*[given[port.name] for port in ports], out=out)
        return made


def solver_kernel(form: object, search: NumericSearch) -> SolverKernel:
    """Return the kernel of a closed form; of a search where that is of another kind.

    Raises:
        KernelError: The search needs more than a kernel.
    """
    if not isinstance(form, RecognisedForm):
        made = search_pipeline(search.problem)
        kernel = compile_pipeline(made.pipeline)(made.tables)
        return SolverKernel(kernel=kernel, bound=made.bound)
    first = form.program.inputs[: len(form.values)]
    bound = {
        port.name: np.asarray(v, np.float64)
        for port, v in zip(first, form.values, strict=True)
    }
    bound["allowed"] = form.allowed(TOLERANCE)
    return SolverKernel(kernel=shared_kernel(form.program), bound=bound)
