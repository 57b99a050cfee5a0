"""Derivatives of kernels as kernels, which functions of other libraries call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Literal, Protocol

import msgspec
import numpy as np

from armillary.errors import KernelError, ShapeError, quote, unknown
from armillary.kernel.arguments import Computation, as_inputs, batch_shape
from armillary.trace import (
    Followers,
    Port,
    Program,
    composed,
    cotangent_program,
    tangent_program,
)

__all__ = [
    "Derivative",
    "Differentiable",
    "Mode",
    "composed_program",
    "derivative_program",
    "followed_program",
    "inputs_to_derive_by",
    "named",
    "opened",
    "summed",
    "with_batch_first",
]

Mode = Literal["jvp", "vjp"]

LIBRARIES: Final = {"jax": "JAX", "torch": "torch"}
TRANSFORMED: Final = {"jvp": tangent_program, "vjp": cotangent_program}


def inputs_to_derive_by(
    computation: Computation, mode: Mode, inputs: Sequence[str] | None
) -> tuple[str, ...]:
    """Return names of inputs, of all where it is None.

    Raises:
        KernelError: No input is named, or one twice.
        UnknownName: There is no input of a name.
    """
    name = computation.name
    names = [port.name for port in computation.inputs]
    try:
        wanted: list[Any] = names if inputs is None else list(inputs)
    except TypeError:
        raise KernelError(
            f"The {mode} of '{name}' takes a list of names of inputs, such as "
            f"{names[:1]}, not {quote(inputs)}."
        ) from None
    for each in wanted:
        if not isinstance(each, str) or each not in names:
            raise unknown("input", each, names, owner=f"'{name}'")
    if not wanted or len(set(wanted)) < len(wanted):
        raise KernelError(
            f"The {mode} of '{name}' needs names of inputs, each once, not {wanted}."
        )
    return tuple(wanted)


def derivative_program(
    computation: Computation, mode: Mode, inputs: Sequence[str]
) -> Program:
    """Return the Program of a derivative by inputs of these names.

    Raises:
        KernelError: It is a pipeline.
    """
    if not isinstance(computation, Program):
        raise KernelError(
            f"'{computation.name}' is a pipeline of several programs, which iterate, "
            f"and has no {mode}. Kernels of closed loops have one, but not those that "
            "were pickled: pickle their derivatives. Of others ask for derivatives as "
            "a question, such as check.gradients."
        )
    names = [port.name for port in computation.inputs]
    return _derived(computation, mode, tuple(names.index(each) for each in inputs))


def composed_program(
    program: Program, function: Callable[..., Any], shapes: Mapping[str, Any]
) -> Program:
    """Return the Program of a function of outputs; see `Kernel.then`.

    Raises:
        KernelError: Two inputs have the same name.
    """
    for port in program.inputs:
        if port.name in shapes:
            raise KernelError(
                f"'{program.name}' has an input {quote(port.name)} already; give that "
                "of the function another name."
            )
    return composed(program, function, shapes)


def followed_program(
    program: Program, mode: Mode, inputs: Sequence[str], followers: Followers
) -> Program:
    """Return the Program of a derivative where more moves than inputs of these names.

    followers: What else.
    """
    names = [port.name for port in program.inputs]
    places = [names.index(each) for each in inputs]
    return TRANSFORMED[mode](program, places, followers)


class Differentiable(Protocol):
    """What a derivative asks of a `Kernel`."""

    @property
    def computation(self) -> Computation:
        """Return what it computes."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type that it computes in."""
        ...

    def jvp(self, inputs: Sequence[str] | None = None) -> Differentiable:
        """Return the kernel of directional derivatives."""
        ...

    def vjp(self, inputs: Sequence[str] | None = None) -> Differentiable:
        """Return the kernel of gradients."""
        ...

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Compute the outputs."""
        ...


@lru_cache(maxsize=512)
def _derived(program: Program, mode: str, inputs: tuple[int, ...]) -> Program:
    return TRANSFORMED[mode](program, inputs)


class Derivative(msgspec.Struct, frozen=True, dict=True, weakref=True):
    """A kernel, or a derivative of it that is linear in its last arguments.

    Attributes:
        kernel: y(x).
        mode: `value` for y(x), `jvp` for (x, v) -> dy/dx v, `vjp` for (x, w) ->
            w dy/dx.
        inputs: Positions of the inputs that v, or the result of `vjp`, belongs to.
    """

    kernel: Differentiable
    mode: Mode | Literal["value"] = "value"
    inputs: tuple[int, ...] = ()

    @property
    def compiled(self) -> Differentiable:
        """Return the kernel that computes it."""
        return self.kernel if self.mode == "value" else _compiled(self)

    @property
    def ports(self) -> tuple[Port, ...]:
        """Return its arguments."""
        return self.compiled.computation.inputs

    @property
    def fixed(self) -> int:
        """Return how many arguments it is not linear in; the first ones."""
        return len(self.kernel.computation.inputs)

    def along(self, moving: tuple[int, ...]) -> Derivative:
        """Return its derivative by arguments that move: (args, tangents) -> tangents.

        By those that it is linear in it is the same, of their tangents in their place;
        see `is_own_derivative`.
        """
        return Derivative(self.compiled, "jvp", moving)

    def is_own_derivative(self, moving: tuple[int, ...]) -> bool:
        """Tell whether only, and all, arguments move that it is linear in."""
        is_linear = self.mode != "value"
        return is_linear and moving == tuple(range(self.fixed, len(self.ports)))

    def transposed(self, wanted: tuple[int, ...]) -> Derivative:
        """Return the transpose of a linear one.

        wanted: Of `jvp`, the positions of the inputs whose cotangents it returns; that
            of `vjp` returns the tangents of all outputs.
        """
        if self.mode == "jvp":
            return Derivative(self.kernel, "vjp", wanted)
        return Derivative(self.kernel, "jvp", self.inputs)

    def check(self, dtypes: Sequence[Any], fix: str) -> None:
        """Check the number and the types of its arguments.

        Raises:
            ShapeError: They are others; types are never converted, for that would cost
                digits without a word.
        """
        name, ports = self.kernel.computation.name, self.ports
        if len(dtypes) != len(ports):
            listed = ", ".join(port.name for port in ports)
            raise ShapeError(
                f"'{name}' takes {len(ports)} arrays ({listed}); {len(dtypes)} given."
            )
        needed = self.kernel.dtype.name
        for port, dtype in zip(ports, dtypes, strict=True):
            if str(dtype) != needed:
                raise ShapeError(
                    f"'{name}' computes in {needed}; {port.name} was given "
                    f"as {dtype}. {fix}"
                )

    def batch(self, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the batch of arguments of some shapes.

        Raises:
            ShapeError: They do not fit.
        """
        # Arrays of these shapes that hold no memory: one check of shapes for all.
        dummy = self.kernel.dtype.type(0)
        arrays = [np.broadcast_to(dummy, shape) for shape in shapes]
        program = self.compiled.computation
        return batch_shape(program, as_inputs(program, arrays, self.kernel.dtype))

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the arrays that it computes, one for each output."""
        results: Any = self.compiled(*arrays)
        is_single = len(self.compiled.computation.outputs) == 1
        return (results,) if is_single else results


@lru_cache(maxsize=512)
def _compiled(derivative: Derivative) -> Differentiable:
    kernel = derivative.kernel
    names = [kernel.computation.inputs[k].name for k in derivative.inputs]
    return kernel.jvp(names) if derivative.mode == "jvp" else kernel.vjp(names)


def opened(kernel: Differentiable, module: str, extra: str) -> tuple[Any, Derivative]:
    """Return a module of a library, and what its function of a kernel asks.

    extra: What installs the library, and the name of the method of kernels.

    Raises:
        KernelError: It is not installed, or the kernel has no derivatives.
    """
    try:
        library = import_module(module)
    except ImportError as error:
        raise KernelError(
            f"kernel.{extra}() needs {LIBRARIES[extra]}: pip install "
            f"'armillary[{extra}]'."
        ) from error
    kernel.vjp()  # raises where there is none, and compiles what `grad` asks for
    return library, Derivative(kernel)


def named(function: Callable[..., Any], kernel: Differentiable) -> Callable[..., Any]:
    """Return a function that is called and documented as its kernel is."""
    function.__name__ = function.__qualname__ = kernel.computation.name
    function.__doc__ = kernel.__doc__
    return function


def with_batch_first(
    shapes: Sequence[tuple[int, ...]], ranks: Sequence[int], is_mapped: Sequence[bool]
) -> list[tuple[int, ...]]:
    """Return shapes of arguments whose mapped dimension comes first of their batch.

    Args:
        shapes: Of the arguments, the mapped dimension being the first.
        ranks: The number of its own dimensions of each, behind those of the batch.
        is_mapped: Whether an argument has a mapped dimension.
    """
    given = list(zip(shapes, ranks, is_mapped, strict=True))
    batches = [len(shape) - rank - mapped for shape, rank, mapped in given]
    most = max(batches)
    return [
        (shape[0], *(1,) * (most - batch), *shape[1:]) if mapped else tuple(shape)
        for (shape, _, mapped), batch in zip(given, batches, strict=True)
    ]


def summed(array: Any, shape: tuple[int, ...], add: Callable[..., Any]) -> Any:
    """Return a cotangent summed over what its argument was broadcast over.

    Args:
        array: The cotangent, shape (*batch, *port).
        shape: The argument's, of a smaller batch or one with dimensions of 1.
        add: Sums an array over a tuple of axes.
    """
    extra = array.ndim - len(shape)
    if extra:
        array = add(array, tuple(range(extra)))
    axes = tuple(k for k, n in enumerate(shape) if n == 1 != array.shape[k])
    return add(array, axes).reshape(shape) if axes else array
