"""Kernels: compiled programs that are called like functions of arrays."""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import keyword
import math
import operator
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.digests import hasher
from armillary.errors import KernelError, ShapeError
from armillary.forks import IMPORT_LOCK, PROGRAM_LOCKS
from armillary.kernel import binding, threads
from armillary.kernel.arguments import (
    Array,
    Batch,
    Computation,
    as_inputs,
    batch_shape,
    described,
    is_on_gpu,
    spread_out,
    ufunc_signature,
)
from armillary.kernel.buffers import SMALLEST, STREAM_FROM, empty
from armillary.kernel.fallback import STATE, finish
from armillary.kernel.general_binding import (
    make_general_function,
    objects_are_as_expected,
)
from armillary.kernel.native import Native, native_of, real_type
from armillary.kernel.object_layout import MOST_BATCH
from armillary.kernel.python_kernel import PythonKernel, PythonProgram
from armillary.trace import Port, Program

if TYPE_CHECKING:
    from armillary.kernel.derivatives import Mode

__all__ = [
    "OPERATIONS_PER_THREAD",
    "Kernel",
    "compile",
    "kernel_of",
    "shared_kernel",
]

# A batch is worth several threads when each gets at least this many operations.
OPERATIONS_PER_THREAD = 2_000_000

OPERATIONS_HOLDING: Final = 200_000
"""So many operations hold the global lock: releasing it costs as much, and more where
other threads wait for it."""

# Here NumPy does not warn: the branch that a row does not take may divide by zero.
_SILENT = contextvars.Context()
_SILENT.run(np.seterr, all="ignore")


class Kernel:
    """A program compiled for this machine; `compile` makes it.

    Call it with an array for each input: `kernel(q)`, `kernel(Q)`, `kernel(Q, out=X)`,
    `kernel(Q, threads=1)`. Leading dimensions are a batch and broadcast as NumPy does;
    the global lock is released while it runs. A kernel never changes; threads may
    share it, and it can be pickled.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: Native) -> None:
        """Wrap machine code; see `compile`."""
        self._native = native

    @property
    def program(self) -> Program:
        """Return what it computes.

        Raises:
            KernelError: It is the kernel of a pipeline, which has several programs.
        """
        program = self._native.program
        if isinstance(program, Program):
            return program
        raise KernelError(
            f"'{program.name}' is a pipeline of several programs, as where loops are "
            "closed, and no function of its results can become a part of it: write a "
            "loss in JAX or torch, with jax() or torch() of this kernel."
        )

    @property
    def computation(self) -> Computation:
        """Return its name, inputs and outputs: a program, or a pipeline of several."""
        return self._native.program

    @property
    def tables(self) -> Mapping[str, Array]:
        """Return the records of each table of a pipeline, by name."""
        return self._native.tables

    @property
    def callees(self) -> tuple[Any, ...]:
        """Return what calls of its pipeline run, see `pipeline_kernel.Callees`."""
        return getattr(self._native.called, "callees", ())

    @property
    def operation_count(self) -> int:
        """Return the number of operations in its programs, each counted once."""
        return self._native.program.operation_count

    @property
    def fingerprint(self) -> str:
        """Return a digest of all that decides its results: programs, tables, type."""
        native = self._native
        digest = hasher(f"{native.core.fingerprint}{native.dtype}".encode())
        for name, records in native.tables.items():
            digest.update(f"{name}{records.shape}".encode() + records.tobytes())
        return digest.hexdigest()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type that it computes in."""
        return self._native.dtype

    @property
    def lanes(self) -> int:
        """Return how many rows it computes at once."""
        return self._native.lanes

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        """Compute the outputs of the program.

        Args:
            inputs: An array for each input, shape (..., *input shape). Of arrays on a
                GPU, such as those of torch and CuPy, results are there, too.
            out: Where to write: an array, or a tuple of one for each output.
            threads: How many threads may share a large batch; by default as many as
                the process may use, or the environment's `ARMILLARY_THREADS`.

        Returns:
            An array (..., *output shape), or a tuple of them for several outputs.

        Raises:
            ShapeError: An array has the wrong shape or type; the message says which.
            KernelError: There is no such number of threads; or see `gpu.call_on_gpu`.
        """
        native = self._native
        if any(map(is_on_gpu, inputs)):
            with IMPORT_LOCK:
                from armillary.kernel.gpu import call_on_gpu

            return call_on_gpu(self, inputs, out=out)
        arrays = as_inputs(native.program, inputs, native.dtype)
        batch = batch_shape(native.program, arrays)
        results = _results(native, out, batch)
        count = _thread_count(native, batch, threads)
        if out is None or _direct(arrays, results):
            _compute(native, arrays, results, batch, count)
        else:
            # A result that shares memory with an input, or with another result, is made
            # elsewhere and copied: blocks are written while others are still read.
            apart = _results(native, None, batch)
            _compute(native, arrays, apart, batch, count)
            for result, array in zip(results, apart, strict=True):
                np.copyto(result, array)
        several: Any = results
        return results[0] if len(results) == 1 else several

    def spread(self, inputs: Sequence[Any]) -> tuple[list[Array], Batch]:
        """Return the inputs of a call as arrays of one batch shape, and that shape.

        Raises:
            ShapeError: As for a call.
        """
        program = self._native.program
        arrays = as_inputs(program, inputs, self.dtype)
        batch = batch_shape(program, arrays)
        return spread_out(program, arrays, batch), batch

    def compact_row(self, inputs: Sequence[Any]) -> list[Array] | None:
        """Return the inputs of a call of one row as compact arrays; None of a batch.

        Raises:
            ShapeError: As for a call.
        """
        program = self._native.program
        arrays = as_inputs(program, inputs, self.dtype)
        for array, port in zip(arrays, program.inputs, strict=True):
            if array.ndim > len(port.shape):
                return None
        return [np.asarray(array, order="C") for array in arrays]

    def for_plain_rows(self) -> Callable[..., Array | None]:
        """Return a function of one row of plain arrays, which is quicker than checks.

        Of anything else it returns None, also where arrays lie otherwise in memory, or
        the kernel has several outputs.
        """
        native = self._native
        if not native.call:
            return binding.nothing
        return _single_rows(native, binding.nothing)

    def vjp(self, inputs: Sequence[str] | None = None) -> Kernel:
        """Return the kernel of gradients: reverse mode, exact.

        With outputs y(x) and cotangents w it computes sum_i w_i dy_i/dx. It takes the
        inputs x, each of any batch, then w for each output, of the output's shape,
        and returns sums for each of `inputs`, of the input's shape. Rows stay apart:
        an input that all rows share gets a row for each.

        Args:
            inputs: The names of inputs to differentiate by; all of them by default.

        Raises:
            KernelError: It iterates, as one of distances; or no input is named, or one
                twice.
            UnknownName: There is no input of a name.
        """
        return self._derivative("vjp", inputs)

    def jvp(self, inputs: Sequence[str] | None = None) -> Kernel:
        """Return the kernel of directional derivatives: forward mode, exact.

        With outputs y(x) and tangents v it computes dy/dx v. It takes the inputs x,
        each of any batch, then v for each of `inputs`, of the input's shape, and
        returns an array for each output, of the output's shape.

        Args:
            inputs: The names of inputs that move; all of them by default.

        Raises:
            KernelError: As of `vjp`.
        """
        return self._derivative("jvp", inputs)

    def then(
        self, function: Callable[..., Any], /, **shapes: tuple[int, ...]
    ) -> Kernel:
        """Return the kernel of a function of what this one computes, such as a loss.

        It is one Program, so that its gradient takes half to a third of the time of one
        in a library, which keeps each step in an array. The function is traced: it
        takes an array of scalars for each output, then for each of `shapes`, and
        returns a number or an array, `result`. Of poses X (4, 4), with a target for
        each row:

            loss = fk.then(lambda X, target: ((X - target) ** 2).sum(), target=(4, 4))
            slopes = loss.vjp(["q"])(Q, targets, 1.0)

        Args:
            function: Takes arrays of traced scalars.
            shapes: Further inputs by name, behind those of this kernel.

        Raises:
            KernelError: It is the kernel of a pipeline, as where loops are closed; or
                it has an input of such a name.
            TraceError: The function cannot be traced.
        """
        with IMPORT_LOCK:
            from armillary.kernel.derivatives import composed_program

        program = composed_program(self.program, function, shapes)
        return shared_kernel(program, dtype=self.dtype)

    def _derivative(self, mode: Mode, inputs: Sequence[str] | None) -> Kernel:
        with IMPORT_LOCK:
            from armillary.kernel.derivatives import (
                derivative_program,
                inputs_to_derive_by,
            )

        native = self._native
        names = inputs_to_derive_by(native.program, mode, inputs)
        if native.derived is not None:
            return native.derived(mode, names).bound(native.tables, ())
        program = derivative_program(native.program, mode, names)
        return shared_kernel(
            program, dtype=native.dtype, lanes=native.requested or None
        )

    def jax(self) -> Callable[..., Any]:
        """Return it as a function of JAX arrays, of any batch, with all derivatives.

        `jit`, `vmap`, `grad`, `jvp` and `hessian` work, of it and of each other. It
        computes on the CPU. Inputs that rows share get the sum of their cotangents.

        Raises:
            KernelError: JAX is not installed, or as of `vjp`.
        """
        with IMPORT_LOCK:
            from armillary.kernel.jax_function import jax_function

        return jax_function(self)

    def torch(self) -> Callable[..., Any]:
        """Return it as a function of tensors, of any batch, with all derivatives.

        `backward`, `torch.func.grad`, `vmap`, `jvp` and `hessian` work. It computes on
        the CPU, in the memory of the tensors. Inputs that rows share get the sum of
        their cotangents.

        Raises:
            KernelError: torch is not installed, or as of `vjp`.
        """
        with IMPORT_LOCK:
            from armillary.kernel.torch_function import torch_function

        return torch_function(self)

    def with_batches(self, compute: Callable[..., Array], rows: int = 0) -> Kernel:
        """Return the same kernel, but batches are computed by a function.

        Args:
            compute: Called like a kernel; pickled with it.
            rows: Batches of so many rows at most need not be, where all is plain.
        """
        parts = Kernel.with_batches, (self, compute, rows)
        return kernel_of(replace(self._native, pickled=parts), compute, rows)

    def with_flagged_rows(self, compute: Callable[..., Array]) -> Kernel:
        """Return the same kernel, but a function computes rows with large arguments.

        compute: Called with an array of rows for each input; pickled with it.
        """
        parts = Kernel.with_flagged_rows, (self, compute)
        return kernel_of(replace(self._native, flagged=compute, pickled=parts))

    def __repr__(self) -> str:
        native = self._native
        signature = ufunc_signature(native.program)
        return f"<kernel {native.program.name} {signature} {self.dtype} x{self.lanes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        native = self._native
        if native.called is not None:
            raise KernelError(
                f"'{native.program.name}' calls other kernels and cannot be pickled; "
                "pickle what it was made from."
            )
        if native.pickled is not None:
            return native.pickled
        return _restored, (native.program, native.dtype.str, native.requested)

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: object) -> Kernel:
        return self


def _results(native: Native, out: Any, batch: Batch) -> tuple[Array, ...]:
    """Return new arrays for the outputs, or those of the caller, checked."""
    ports = native.program.outputs
    if out is None:
        return tuple(empty((*batch, *port.shape), native.dtype) for port in ports)
    targets = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else (out,)
    if len(targets) != len(ports):
        listed = ", ".join(port.name for port in ports) or "none"
        raise ShapeError(
            f"'{native.program.name}' has {len(ports)} outputs ({listed}); out= must "
            f"hold an array for each, and holds {len(targets)}."
        )
    return tuple(
        _result(native, array, port, batch)
        for array, port in zip(targets, ports, strict=True)
    )


def _result(native: Native, array: Any, port: Port, batch: Batch) -> Array:
    name, dtype, shape = native.program.name, native.dtype, (*batch, *port.shape)
    if array is None:
        return empty(shape, dtype)
    if not isinstance(array, np.ndarray):
        raise ShapeError(
            f"'{name}' writes {port.name} to out=, which must be an array, "
            f"not {type(array).__name__}."
        )
    target = cast("Array", array)
    if target.dtype != dtype:
        raise ShapeError(
            f"'{name}' writes {dtype} to out=, which is an array of {target.dtype}."
        )
    if target.shape != shape:
        raise ShapeError(
            f"'{name}' writes {port.name} of shape {shape}; out= has shape "
            f"{target.shape}."
        )
    if not target.flags.writeable:
        raise ShapeError(f"'{name}' cannot write to out=: the array is read-only.")
    return target


def _thread_count(native: Native, batch: Batch, requested: Any) -> int:
    """Return the number of threads to use.

    Raises:
        KernelError: `requested` is not a number, or below 1.
    """
    if requested is not None:
        try:
            requested = operator.index(requested)
        except TypeError:
            raise KernelError(
                f"threads is {requested!r}; it must be a number."
            ) from None
        if requested < 1:
            raise KernelError(f"threads is {requested}; it must be at least 1.")
    # Waking a thread takes as long as many rows.
    worth = math.prod(batch) * native.operations // OPERATIONS_PER_THREAD
    if worth < 2:
        return 1
    # The longest dimension of the batch is divided, so there are no more threads than
    # it has.
    return min(worth, requested or threads.default_threads(), max(batch, default=1))


def _direct(arrays: Sequence[Array], results: Sequence[Array]) -> bool:
    """Tell whether results may be written while inputs and other results are read."""
    return all(result.flags.aligned for result in results) and not any(
        np.may_share_memory(result, other)
        for k, result in enumerate(results)
        for other in (*arrays, *results[:k])
    )


def _of_core(
    native: Native, arrays: Sequence[Array], results: Sequence[Array], batch: Batch
) -> tuple[list[Array], tuple[Array, ...]]:
    """Leave out the arrays of size 0, one of which may be all that knows the batch."""
    program = native.program
    wide = spread_out(program, arrays, batch)
    inputs = [a for a, port in zip(wide, program.inputs, strict=True) if port.size]
    wanted = [r for r, port in zip(results, program.outputs, strict=True) if port.size]
    # A number that the core does not use, see `without_empty_arrays`.
    nothing = np.broadcast_to(native.dtype.type(0), batch)
    return inputs or [nothing], tuple(wanted)


def _compute(
    native: Native,
    arrays: Sequence[Array],
    results: tuple[Array, ...],
    batch: Batch,
    count: int,
) -> None:
    """Compute on `count` threads, which share the longest dimension of the batch."""
    if native.core is not native.program:
        arrays, results = _of_core(native, arrays, results, batch)
    if count == 1:
        _run(native, arrays, results, _ALONE)
        return
    wide = spread_out(native.core, arrays, batch)
    axis = batch.index(max(batch))
    failed = threading.Event()

    def work(rows: slice) -> None:
        # A piece of the longest dimension, and all of the others.
        part = (slice(None),) * axis + (rows,)
        with _telling(failed):
            _run(
                native, [a[part] for a in wide], tuple(r[part] for r in results), failed
            )

    # Large results are written past the caches if each piece is large, too.
    most_pieces = sum(result.nbytes for result in results) // STREAM_FROM
    with _telling(failed):
        threads.share(
            batch[axis],
            count,
            work,
            most_pieces or batch[axis],
            block=_rows_together(native) if axis == len(batch) - 1 else 1,
        )


def _rows_together(native: Native) -> int:
    """Return how many rows take about as long as one of them."""
    core = native.core
    is_in_turn = not isinstance(core, Program) and core.has_row_by_row
    return 1 if is_in_turn else native.lanes


@contextlib.contextmanager
def _telling(failed: threading.Event) -> Generator[None]:
    """Set an event when an error, or an interrupt, passes by."""
    try:
        yield
    except BaseException:
        failed.set()
        raise


_ALONE = threading.Event()  # of calls on one thread; never set


def _run(
    native: Native,
    arrays: Sequence[Array],
    results: tuple[Array, ...],
    failed: threading.Event,
) -> None:
    if native.ufunc is None:
        return
    # Each call, on each thread, notes flagged rows in a state of its own.
    state = native.state.copy()
    try:
        _SILENT.copy().run(native.ufunc, *arrays, state, out=results)
    finally:
        if state[0]:
            finish(native.core, native.with_numpy(), state, results, failed)


def kernel_of(
    native: Native, batches: Callable[..., Array] | None = None, rows: int = 0
) -> Kernel:
    """Return the kernel that calls machine code, of a class of its own.

    The class has its documentation and its compiled call, besides which `batches` may
    replace `Kernel.__call__`, but for batches of up to `rows`.
    """
    # Python looks up `__call__` in the class: a builtin function there is called with
    # no frame of Python in between.
    members: dict[str, object] = dict(_members(native.program))
    slow = batches or Kernel(native).__call__
    if batches:
        members["__call__"] = staticmethod(batches)
    make_general = None
    if native.loop and objects_are_as_expected():
        most = None if batches is None else rows
        make_general = partial(_general, native, slow, most)
    if native.call:
        # A builtin has no descriptor, so it gets the arguments alone, without the
        # kernel. Whatever is not one row of plain arrays goes to the general entry, and
        # what that does not take to the slow callable.
        members["__call__"] = _single_rows(native, slow, make_general)
    elif make_general is not None:
        members["__call__"] = make_general()
    return type("Kernel", (Kernel,), members)(native)


@lru_cache(maxsize=512)
def _members(program: Computation) -> tuple[tuple[str, object], ...]:
    """Return what the classes of all kernels of a program have."""
    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
        for name in _parameter_names(program.inputs)
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in ("out", "threads")
    ]
    return (
        ("__slots__", ()),
        ("__module__", __name__),
        ("__doc__", _documentation(program)),
        ("__signature__", inspect.Signature(parameters)),
    )


def _single_rows(
    native: Native,
    slow: Callable[..., Any],
    make_slow: Callable[[], Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return the entry of single rows, which leaves all else to `slow`."""
    return binding.make_function(
        native.call,
        native.dtype,
        slow,
        native.program.name,
        native.owned,
        int(native.state[STATE.offsets["tables"] // 8]),
        make_slow,
    )


def _general(
    native: Native, slow: Callable[..., Array], most: int | None
) -> Callable[..., Array]:
    """Return the general entry of a kernel, which leaves large batches to `slow`.

    most: The rows of a batch from which on it does; None for what is usual.
    """
    with IMPORT_LOCK:
        from armillary.kernel import compiler

    row_bytes = (
        max(port.size for port in native.program.outputs) * native.dtype.itemsize
    )
    for_one = (2 * OPERATIONS_PER_THREAD - 1) // native.operations
    code = compiler.general_code()
    return make_general_function(
        code.address("general"),
        native.loop,
        native.program,
        native.dtype,
        native.state,
        slow,
        (code, *native.owned),
        most_rows=min(most or for_one, for_one, (SMALLEST - 1) // row_bytes),
        release_from=-(-OPERATIONS_HOLDING // native.operations),
        most_batch=0 if most == 0 else MOST_BATCH,
    )


def _parameter_names(ports: Sequence[Port]) -> list[str]:
    taken = {"out", "threads"}
    # Names of inputs are parameters of the call where all of them can be; in messages
    # and help they are as they are.
    usable = all(
        port.name.isidentifier()
        and not keyword.iskeyword(port.name)
        and port.name not in taken
        for port in ports
    )
    return [port.name if usable else f"input{k}" for k, port in enumerate(ports)]


def _documentation(program: Computation) -> str:
    listed = [
        f"{title}\n" + "\n".join(f"    {described(port)}" for port in ports)
        for title, ports in (("Takes", program.inputs), ("Returns", program.outputs))
        if ports
    ]
    first = f"Compute '{program.name}' with machine code."
    last = "`...` is a batch, broadcast as NumPy does."
    return "\n\n".join(map(_encodable, [first, *listed, last]))


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def compile(
    program: Program, *, dtype: npt.DTypeLike = np.float64, lanes: int | None = None
) -> Kernel:
    """Return `program` as native code for this machine.

    Args:
        program: What to compute.
        dtype: float64 or float32, the type that it computes in.
        lanes: Rows computed at once, a power of two; by default what the machine's
            registers hold.

    Raises:
        KernelError: The type, the lanes, or the program's arrays have no native code.
    """
    return kernel_of(native_of(program, dtype, lanes))


def _restored(program: Program, dtype: str, requested: int) -> Kernel:
    """Return what a pickle holds, compiled for the machine that it is read on."""
    return shared_kernel(program, dtype=dtype, lanes=requested or None)


@lru_cache(maxsize=512)
def _shared(
    name: str, program: Program, dtype: np.dtype[Any], lanes: int | None
) -> Kernel:
    """Return a kernel; programs are equal whatever their name."""
    return compile(program, dtype=dtype, lanes=lanes)


def shared_kernel(
    program: Program, *, dtype: npt.DTypeLike = np.float64, lanes: int | None = None
) -> Kernel:
    """Return the kernel of `program`, the same one for an equal name and question."""
    if isinstance(program, PythonProgram):
        return cast("Kernel", PythonKernel(program, dtype))
    # One of 64 locks, so that different programs are compiled side by side, and the
    # same one once.
    with PROGRAM_LOCKS[hash(program) % len(PROGRAM_LOCKS)]:
        return _shared(program.name, program, real_type(dtype), lanes)
