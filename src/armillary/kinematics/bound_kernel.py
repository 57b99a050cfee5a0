"""Kernels whose first inputs are bound to values of a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.digests import hasher
from armillary.kernel import Kernel
from armillary.trace import Program

__all__ = ["AnyKernel", "BoundKernel", "bind", "for_plain_rows"]


class BoundKernel(partial[npt.NDArray[Any]]):
    """A kernel with its first inputs bound; call it with the others, as the kernel.

    What a state decides is bound: positions of further joints, poses of bases. It
    takes and returns what the kernel does, `out` and `threads` among that.
    """

    @property
    def kernel(self) -> Kernel:
        """Return the kernel of all inputs, the same one for all states alike."""
        return cast("Kernel", self.func)

    @property
    def bound(self) -> tuple[Any, ...]:
        """Return the values of its first inputs; read-only."""
        return self.args

    @property
    def program(self) -> Program:
        """Return what the kernel computes, of all inputs."""
        return self.kernel.program

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type that it computes in."""
        return self.kernel.dtype

    @property
    def fingerprint(self) -> str:
        """Return a digest of the kernel and the values that are bound."""
        digest = hasher(self.kernel.fingerprint.encode())
        for each in self.bound:
            digest.update(f"{each.shape}".encode() + each.tobytes())
        return digest.hexdigest()

    @property
    def operation_count(self) -> int:
        """Return the number of operations in its programs, each counted once."""
        return self.kernel.operation_count

    @property
    def lanes(self) -> int:
        """Return how many rows it computes at once."""
        return self.kernel.lanes

    def vjp(self, inputs: Sequence[str] | None = None) -> AnyKernel:
        """Return the kernel of gradients by inputs that are not bound.

        Raises:
            KernelError: As for `Kernel.vjp`.
        """
        return bind(self.kernel.vjp(self._free(inputs)), list(self.bound))

    def jvp(self, inputs: Sequence[str] | None = None) -> AnyKernel:
        """Return the kernel of derivatives along inputs that are not bound.

        Raises:
            KernelError: As for `Kernel.jvp`.
        """
        return bind(self.kernel.jvp(self._free(inputs)), list(self.bound))

    def then(
        self, function: Callable[..., Any], /, **shapes: tuple[int, ...]
    ) -> AnyKernel:
        """Return the kernel of a function of what it computes; see `Kernel.then`.

        Args:
            function: Takes arrays of traced scalars.
            shapes: Further inputs by name.

        Raises:
            KernelError: As for `Kernel.then`.
            TraceError: The same.
        """
        return bind(self.kernel.then(function, **shapes), list(self.bound))

    def _free(self, inputs: Sequence[str] | None) -> Sequence[str]:
        if inputs is not None:
            return inputs
        ports = self.kernel.computation.inputs[len(self.bound) :]
        return [port.name for port in ports]

    def jax(self) -> Callable[..., Any]:
        """Return it as a function of JAX arrays; see `Kernel.jax`.

        Raises:
            KernelError: As for `Kernel.jax`.
        """
        return partial(self.kernel.jax(), *self.bound)

    def torch(self) -> Callable[..., Any]:
        """Return it as a function of tensors; see `Kernel.torch`.

        Raises:
            KernelError: As for `Kernel.torch`.
        """
        return partial(self.kernel.torch(), *self.bound)

    def __repr__(self) -> str:
        return f"<{len(self.args)} inputs bound of {self.kernel!r}>"


AnyKernel = Kernel | BoundKernel


def for_plain_rows(kernel: AnyKernel) -> Callable[..., npt.NDArray[Any] | None]:
    """Return what `Kernel.for_plain_rows` does, first inputs bound."""
    if isinstance(kernel, BoundKernel):
        return partial(kernel.kernel.for_plain_rows(), *kernel.bound)
    return kernel.for_plain_rows()


def bind(kernel: Kernel, values: list[Any]) -> AnyKernel:
    """Return a kernel with its first inputs bound, itself where there is nothing.

    values: An array for each.
    """
    if not values:
        return kernel
    arrays: list[npt.NDArray[Any]] = []
    for each in values:
        array = np.array(each, dtype=kernel.dtype)
        array.flags.writeable = False
        arrays.append(array)
    return BoundKernel(kernel, *arrays)
