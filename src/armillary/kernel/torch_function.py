"""Kernels as functions of torch, whose derivatives are kernels again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from armillary.errors import ShapeError
from armillary.kernel.derivatives import (
    Derivative,
    Differentiable,
    named,
    opened,
    summed,
    with_batch_first,
)

FIX: Final = "Convert tensors with .double(), or .float() for kernels of float32."


def torch_function(kernel: Differentiable) -> Callable[..., Any]:
    """Return a kernel as a function of tensors; see `Kernel.torch`.

    Raises:
        KernelError: torch is not installed, or the kernel has no derivatives.
    """
    torch, question = opened(kernel, "torch", "torch")
    call = _function()
    dtype = getattr(torch, kernel.dtype.name)

    def function(*inputs: Any) -> Any:
        tensors = [
            x if torch.is_tensor(x) else torch.tensor(x, dtype=dtype) for x in inputs
        ]
        results = call.apply(question, *tensors)
        return results[0] if len(results) == 1 else results

    # The compiler of torch would trace NumPy; it goes on behind the call.
    return torch.compiler.disable(named(function, kernel))


def mapped_first(
    tensors: Sequence[Any], dims: Sequence[int | None], ranks: Sequence[int]
) -> list[Any]:
    """Return tensors whose mapped dimensions come first of their batches.

    dims: Which dimension of each `torch.func.vmap` maps.
    ranks: The number of its own dimensions of each, behind those of the batch.
    """
    moved = [
        x if d is None else x.movedim(d, 0) for x, d in zip(tensors, dims, strict=True)
    ]
    shapes = [tuple(x.shape) for x in moved]
    wanted = with_batch_first(shapes, ranks, [d is not None for d in dims])
    return [x.reshape(shape) for x, shape in zip(moved, wanted, strict=True)]


@cache
def _function() -> Any:
    """Return the class that calls kernels, and has rules for all that torch does."""
    torch: Any = import_module("torch")

    class KernelFunction(torch.autograd.Function):
        """A kernel with its derivatives in both modes, and batches."""

        @staticmethod
        def forward(question: Derivative, *inputs: Any) -> tuple[Any, ...]:
            question.check([str(x.dtype).removeprefix("torch.") for x in inputs], FIX)
            places = {x.device.type for x in inputs}
            if places == {"cuda"}:  # results are tensors there
                return question(*[x.detach().contiguous() for x in inputs])
            if places != {"cpu"}:
                listed = ", ".join(sorted({str(x.device) for x in inputs}))
                raise ShapeError(
                    f"'{question.kernel.computation.name}' computes on the CPU, or on "
                    f"one NVIDIA GPU; tensors on {listed} were given. Move them "
                    "together."
                )
            # Views of the same memory, in both directions.
            results = question(*[x.detach().numpy() for x in inputs])
            return tuple(torch.from_numpy(np.asarray(each)) for each in results)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            question, *tensors = inputs
            ctx.question = question
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> tuple[Any, ...]:
            wanted = tuple(k for k, is_ in enumerate(ctx.needs_input_grad[1:]) if is_)
            tensors = ctx.saved_tensors
            slope = Derivative(ctx.question.compiled, "vjp", wanted)
            found = KernelFunction.apply(slope, *tensors, *cotangents)
            results: list[Any] = [None] * len(tensors)
            for k, each in zip(wanted, found, strict=True):
                results[k] = summed(each, tuple(tensors[k].shape), torch.sum)
            return (None, *results)

        @staticmethod
        def jvp(ctx: Any, _: Any, *tangents: Any) -> tuple[Any, ...]:
            moving = tuple(k for k, t in enumerate(tangents) if t is not None)
            slope = ctx.question.along(moving)
            along = [tangents[k] for k in moving]
            return KernelFunction.apply(slope, *ctx.saved_tensors, *along)

        @staticmethod
        def vmap(
            info: Any, dims: tuple[Any, ...], question: Derivative, *inputs: Any
        ) -> tuple[Any, Any]:
            ranks = [len(port.shape) for port in question.ports]
            tensors = mapped_first(inputs, dims[1:], ranks)
            results = KernelFunction.apply(question, *tensors)
            return results, (0,) * len(results)

    # Each call asks for it, and finding it anew takes as long as a small kernel.
    forward: Any = KernelFunction.forward
    forward.__signature__ = inspect.signature(forward)
    return KernelFunction
