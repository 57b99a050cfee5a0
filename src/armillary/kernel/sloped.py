"""Questions with slopes that are not one Program, as functions of JAX and torch.

Such as distances, whose kernels iterate: y(q) and dy/dq are computed here, and the
function is y + dy/dq (q - q_0) at q_0 = q, y, dy/dq and q_0 being constants. It has the
value and the first derivatives of y.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError
from armillary.kernel.derivatives import LIBRARIES

__all__ = ["imported", "jax_sloped", "torch_sloped"]

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

    def function(q: Any) -> Any:
        if q.dtype != torch.float64:
            raise ShapeError(f"q needs float64, not {q.dtype}; convert by .double().")
        at = q.detach().numpy()
        y, J = (torch.from_numpy(np.array(ask(at))) for ask in (question, slopes))
        return y + (J @ (q - q.detach())[..., None])[..., 0]

    return torch.compiler.disable(function)


def jax_sloped(
    question: Question, slopes: Question, count: int
) -> Callable[[Any], Any]:
    """Return a question as a function of JAX arrays of float64.

    count: How many numbers it has, k.

    Raises:
        KernelError: JAX is not installed.
    """
    jax = imported("jax")
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
