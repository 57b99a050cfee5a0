"""Questions with slopes that are not one Program, as functions of JAX and torch.

Such as distances, whose kernels iterate: y(q) and dy/dq are computed here, and the
function is y + dy/dq (q - q_0) at q_0 = q, y, dy/dq and q_0 being constants. It has the
value and the first derivatives of y.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.derivatives import LIBRARIES

__all__ = ["imported", "jax_sloped", "torch_constants", "torch_sloped"]

Array = npt.NDArray[np.float64]
Question = Callable[[Array], Array]
"""From q (..., n) to y (..., k), or dy/dq (..., k, n)."""


def imported(library: str) -> Any:
    """Return a library that functions are made for.

    Raises:
        KernelError: It is not installed.
    """
    from importlib import import_module

    try:
        return import_module(library)
    except ImportError as error:
        raise KernelError(
            f"This needs {LIBRARIES[library]}: pip install 'armillary[{library}]'."
        ) from error


def torch_sloped(question: Question, slopes: Question) -> Callable[[Any], Any]:
    """Return a question as a function of tensors of float64 on the CPU.

    Raises:
        KernelError: torch is not installed.
    """
    torch = imported("torch")

    def both(q: Array) -> tuple[Array, Array]:
        return question(q), slopes(q)

    constants = torch_constants(both, [1])

    def function(q: Any) -> Any:
        if q.dtype != torch.float64:
            raise ShapeError(f"q needs float64, not {q.dtype}; convert by .double().")
        still = q.detach()
        y, J = constants(still)
        return y + (J @ (q - still)[..., None])[..., 0]

    return torch.compiler.disable(function)


def torch_constants(
    compute: Callable[..., Sequence[Array]], ranks: Sequence[int]
) -> Callable[..., Any]:
    """Return a function of arrays as one of tensors that has no derivatives.

    `torch.func.vmap` maps it, for leading dimensions of all arrays are a batch.

    Args:
        compute: The function; returns at least two arrays.
        ranks: The number of its own dimensions of each argument, behind the batch.

    Raises:
        KernelError: torch is not installed.
    """
    torch = imported("torch")
    with IMPORT_LOCK:
        from armillary.kernel.torch_function import mapped_first

    class Constants(torch.autograd.Function):
        """The function, as torch calls it."""

        @staticmethod
        def forward(*tensors: Any) -> tuple[Any, ...]:
            if elsewhere := {str(x.device) for x in tensors if x.device.type != "cpu"}:
                raise ShapeError(
                    "Inverse kinematics and distances are computed on the CPU; tensors "
                    f"on {', '.join(sorted(elsewhere))} were given. Use .cpu()."
                )
            found = compute(*[x.detach().numpy() for x in tensors])
            # What is computed may be read-only, or share memory that changes.
            return tuple(torch.from_numpy(np.array(each)) for each in found)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.mark_non_differentiable(*output)

        @staticmethod
        def vmap(info: Any, dims: tuple[Any, ...], *tensors: Any) -> tuple[Any, Any]:
            moved = mapped_first(tensors, dims, ranks[: len(tensors)])
            found = Constants.apply(*moved)
            return found, (0,) * len(found)

    return Constants.apply


def jax_sloped(
    question: Question, slopes: Question, count: int
) -> Callable[[Any], Any]:
    """Return a question as a function of JAX arrays of float64.

    count: How many numbers it has, k.

    Raises:
        KernelError: JAX is not installed.
    """
    jax = imported("jax")
    with IMPORT_LOCK:
        from armillary.kernel.jax_function import FIX

    def host(q: Any) -> tuple[Array, Array]:
        at = np.asarray(q)
        return question(at), slopes(at)

    def function(q: Any) -> Any:
        given = jax.numpy.asarray(q)
        if given.dtype != np.float64:
            raise ShapeError(f"q needs float64, not {given.dtype}. {FIX}")
        shape = partial(jax.ShapeDtypeStruct, dtype=np.float64)
        *batch, n = given.shape
        still = jax.lax.stop_gradient(given)
        y, J = jax.pure_callback(
            host,
            (shape((*batch, count)), shape((*batch, count, n))),
            still,
            vmap_method="broadcast_all",
        )
        return y + (J @ (given - still)[..., None])[..., 0]

    return function
