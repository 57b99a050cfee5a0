"""Kernels some inputs of which are held at fixed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armillary.kernel import Kernel

__all__ = ["HeldKernel"]


class HeldKernel:
    """A kernel of q whose further inputs are held; call it as the kernel, with q alone.

    Attributes:
        kernel: Of q and of what is held.
        held: The values of its inputs behind q; read-only.
    """

    __slots__ = ("held", "kernel")

    def __init__(self, kernel: Kernel, held: Sequence[Any]) -> None:
        """Hold values, an array for each input of `kernel` but the first."""
        self.kernel = kernel
        self.held = tuple(np.array(each, dtype=kernel.dtype) for each in held)
        for each in self.held:
            each.flags.writeable = False

    def __call__(self, q: Any, *, out: Any = None, threads: Any = None) -> Any:
        """Compute for q, shape (..., n); see `Kernel`."""
        if out is None and threads is None:
            return self.kernel(q, *self.held)  # the way of single calls
        return self.kernel(q, *self.held, out=out, threads=threads)

    def __repr__(self) -> str:
        return f"<{len(self.held)} inputs held of {self.kernel!r}>"
