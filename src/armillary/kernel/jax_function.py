"""Kernels as functions of JAX: one primitive, whose derivatives are kernels again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, Final

import numpy as np

from armillary.kernel import xla_call
from armillary.kernel.derivatives import (
    Derivative,
    Differentiable,
    named,
    opened,
    summed,
    with_batch_first,
)

FIX: Final = (
    "JAX computes in float32 unless jax.config.update('jax_enable_x64', True) is "
    "called first; convert arrays with .astype."
)


def jax_function(kernel: Differentiable) -> Callable[..., Any]:
    """Return a kernel as a function of JAX arrays; see `Kernel.jax`.

    Raises:
        KernelError: JAX is not installed, or the kernel has no derivatives.
    """
    jnp, question = opened(kernel, "jax.numpy", "jax")
    primitive = _primitive()

    def function(*inputs: Any) -> Any:
        results = primitive.bind(*map(jnp.asarray, inputs), question=question)
        return results[0] if len(results) == 1 else tuple(results)

    return named(function, kernel)


@cache
def _primitive() -> Any:
    """Return the primitive that calls kernels, and has rules for all that JAX does."""
    jax: Any = import_module("jax")
    core: Any = import_module("jax.extend.core")
    ad: Any = import_module("jax.interpreters.ad")
    batching: Any = import_module("jax.interpreters.batching")
    mlir: Any = import_module("jax.interpreters.mlir")
    jnp = jax.numpy
    call = core.Primitive("armillary_kernel")
    call.multiple_results = True

    def compute(*arrays: Any, question: Derivative) -> list[Any]:
        shapes(*arrays, question=question)
        return [jnp.asarray(array) for array in _on_host(question, *arrays)]

    def shapes(*given: Any, question: Derivative) -> list[Any]:
        question.check([each.dtype for each in given], FIX)
        batch = question.batch([each.shape for each in given])
        return [
            jax.core.ShapedArray((*batch, *port.shape), question.kernel.dtype)
            for port in question.compiled.computation.outputs
        ]

    def lowered(context: Any, *arrays: Any, question: Derivative) -> Any:
        # As `jax.pure_callback`, which copies what it passes once more.
        results, *_ = mlir.emit_python_callback(
            context,
            partial(_on_host, question),
            None,
            list(arrays),
            context.avals_in,
            context.avals_out,
            has_side_effect=False,
            returns_token=False,
        )
        return results

    def rates(
        primals: Sequence[Any], tangents: Sequence[Any], *, question: Derivative
    ) -> tuple[Any, Any]:
        moving = tuple(k for k, t in enumerate(tangents) if type(t) is not ad.Zero)
        along = [ad.instantiate_zeros(tangents[k]) for k in moving]
        results = call.bind(*primals, question=question)
        if question.is_own_derivative(moving):
            fixed = primals[: question.fixed]
            return results, call.bind(*fixed, *along, question=question)
        slope = question.along(moving)
        return results, call.bind(*primals, *along, question=slope)

    def transposed(
        cotangents: Sequence[Any], *args: Any, question: Derivative
    ) -> list[Any]:
        fixed, linear = args[: question.fixed], args[question.fixed :]
        assert not any(map(ad.is_undefined_primal, fixed))
        weights = [ad.instantiate_zeros(each) for each in cotangents]
        places = [k for k, x in enumerate(linear) if ad.is_undefined_primal(x)]
        if question.mode == "jvp":
            wanted = tuple(question.inputs[k] for k in places)
            turned = question.transposed(wanted)
            found = call.bind(*fixed, *weights, question=turned)
        else:
            every = call.bind(*fixed, *weights, question=question.transposed(()))
            found = [every[k] for k in places]
        results: list[Any] = [None] * len(args)
        for k, each in zip(places, found, strict=True):
            results[question.fixed + k] = summed(each, linear[k].aval.shape, jnp.sum)
        return results

    def mapped(
        args: Sequence[Any], dims: Sequence[Any], *, question: Derivative
    ) -> tuple[Any, Any]:
        arrays = [
            x if d is None else jnp.moveaxis(x, d, 0)
            for x, d in zip(args, dims, strict=True)
        ]
        wanted = with_batch_first(
            [x.shape for x in arrays],
            [len(port.shape) for port in question.ports],
            [d is not None for d in dims],
        )
        arrays = [x.reshape(shape) for x, shape in zip(arrays, wanted, strict=True)]
        results = call.bind(*arrays, question=question)
        return results, [0] * len(results)

    call.def_impl(compute)
    call.def_abstract_eval(shapes)
    ad.primitive_jvps[call] = rates
    ad.primitive_transposes[call] = transposed
    batching.primitive_batchers[call] = mapped
    mlir.register_lowering(call, lowered, cacheable=False)
    if xla_call.is_registered():
        mlir.register_lowering(call, _lowered_to_call, "cpu", cacheable=False)
    return call


def _lowered_to_call(context: Any, *arrays: Any, question: Derivative) -> Any:
    ffi: Any = import_module("jax.ffi")
    number = np.int64(xla_call.number_of(question))
    return ffi.ffi_lowering(xla_call.CALL)(context, *arrays, question=number)


def _on_host(question: Derivative, *arrays: Any) -> tuple[Any, ...]:
    """Compute in the memory of the CPU, which arrays of JAX there share."""
    return question(*map(np.asarray, arrays))
