"""Programs and pipelines as functions that need nothing around them.

    i32 @name(ptr in..., ptr out...)                one row
    i32 @name_rows(ptr in..., ptr out..., count)    rows, in blocks of lanes

Both return 0, or 1 where an argument of a row is beyond what the formulas are right
for, as an angle of more than 2^30 rad. They call no function of a library, allocate
nothing, and keep nothing: scratch is on the stack, tables are constants. What the
instruction set lacks is written by `_SUBSTITUTES`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.kernel.arguments import Computation
from armillary.kernel.block_rows import ALIGNMENT
from armillary.kernel.builder import METADATA, FunctionBuilder, Value
from armillary.kernel.compiler import with_small_buffers, without_empty_arrays
from armillary.kernel.emit import emit_block
from armillary.kernel.gpu_entry import Place, inlined, sizes_of_blocks, thread_code
from armillary.kernel.intrinsics.ieee import KEPT, WHOLE, layout
from armillary.kernel.levels import STACK_PROBE, WINDOWS_HINTS, of_levels
from armillary.kernel.machine_type import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    Type,
    bits_of_lanes,
    real_of,
)
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_code import TABLE, pipeline_code
from armillary.kernel.stages import calls_in
from armillary.kernel.standalone_calls import (
    GLOBAL,
    CalledCode,
    constant_name,
    dispatch_code,
    numbered_tables,
)
from armillary.kernel.targets import Platform
from armillary.trace import Port, Program

__all__ = [
    "MOST_STACK",
    "StandaloneFunction",
    "software_fma",
    "standalone_module",
]

Array = npt.NDArray[Any]

MOST_STACK: Final = 2**19
"""Bytes of the stack that a function may take; threads may have no more."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class StandaloneFunction:
    """A function to be made.

    Attributes:
        name: Its name, an identifier of C.
        computation: What it computes, without empty arrays.
        bound: Values of inputs that callers do not give, by name.
        tables: The records of each table of a pipeline, with numbers of callees.
        callees: What the calls of a pipeline run.
    """

    name: str
    computation: Program | Pipeline
    bound: Mapping[str, Array]
    tables: Mapping[str, Array]
    callees: tuple[CalledCode, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        computation: Computation,
        *,
        bound: Mapping[str, npt.ArrayLike] | None = None,
        tables: Mapping[str, Array] | None = None,
        callees: Sequence[CalledCode] = (),
    ) -> StandaloneFunction:
        """Return a function, checked.

        Args:
            name: Its name, an identifier of C.
            computation: What it computes.
            bound: Values of inputs that callers do not give, by name.
            tables: The records of each table of a pipeline, as its kernel has them.
            callees: What its calls run.

        Raises:
            KernelError: It has no outputs.
        """
        assert isinstance(computation, Program | Pipeline)
        tables = dict(tables or {})
        if isinstance(computation, Program):
            given_ports = tuple(port for port in computation.inputs if port.size)
            # NumPy needs an input, these functions do not.
            computation = replace(without_empty_arrays(computation), inputs=given_ports)
        elif any(calls_in(computation.stages)):
            tables = numbered_tables(computation, tables, callees)
        if not computation.outputs:
            raise KernelError(f"'{computation.name}' has no result to compile.")
        given = {key: np.asarray(value) for key, value in (bound or {}).items()}
        return cls(
            name=name,
            computation=computation,
            bound=given,
            tables=tables,
            callees=tuple(callees),
        )

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Return the inputs that callers give."""
        ports = self.computation.inputs
        return tuple(port for port in ports if port.name not in self.bound)


def standalone_module(
    functions: Sequence[StandaloneFunction],
    bits: int,
    platform: Platform | None,
) -> str:
    """Return the IR of a module of functions.

    Args:
        functions: What it exports.
        bits: Of the reals that they compute in.
        platform: Where they run; None for code of scalars that becomes source.

    Raises:
        KernelError: A function takes too much of the stack; or as for a kernel.
    """
    if platform is not None:
        platform.check_type(bits)
    if platform is not None and platform.levels:
        made = {
            level: standalone_module(functions, bits, each)
            for level, each in platform.levels.items()
        }
        machines = [each.machine for each in platform.levels.values()]
        if not platform.is_windows:
            return of_levels(made, machines)
        return of_levels(made, machines, more=STACK_PROBE, hints=WINDOWS_HINTS)
    declared: dict[str, str] = {}
    parts: list[str] = []
    constants: set[bytes] = set()
    for each in functions:
        most = platform.machine.lanes(bits) if platform else 1
        real = real_of(bits, most, of_wasm=platform is not None and platform.is_wasm)
        most = with_small_buffers(each.computation, real).lanes
        blocks = [_Block(each, real.wide(k)) for k in sorted({1, most})]
        for block in blocks:
            declared.update(block.declared)
            is_gpu = platform is not None and platform.is_gpu
            parts += block.of_threads() if is_gpu else block.texts
        address = platform.address if platform else I64
        if platform and platform.is_gpu:
            parts += thread_code(blocks[0], blocks[0].real, declared)
        else:
            parts += [f.text for f in _entries(blocks[0], blocks[-1], address)]
        constants.update(data for block in blocks for data in block.constants)
    parts += map(_constant, sorted(constants))
    if platform and platform.is_gpu:
        parts.append(sizes_of_blocks([each.name for each in functions]))
    return _assembled(declared, parts, platform)


def _assembled(
    declared: Mapping[str, str], parts: Sequence[str], platform: Platform | None
) -> str:
    """Return the text of a module, with what the platform lacks."""
    text = "\n".join(parts)
    missing: frozenset[str] = _MEMORY | (
        platform.lacks if platform else frozenset[str]()
    )
    if "fma" in missing:
        text = _WHOLE_FMA.sub(_of_whole_number, text)
    if platform and platform.is_wasm:
        text = _KEPT.sub(r'call \1 asm sideeffect "", "=r,0"(\1 \2)', text)
    heads: list[str] = []
    for full, declaration in declared.items():
        _, name, *_, suffix = full.split(".")
        substitute = _SUBSTITUTES.get(name)
        if platform is None or substitute is None or name not in missing:
            heads.append(declaration)
            continue
        own = f"{name}_{suffix}"
        text = text.replace(f"{full}(", f"@{own}(")
        heads.append(substitute(own, suffix).text)
    return "\n".join([*heads, text, _attributes(platform)])


def _attributes(platform: Platform | None) -> str:
    # No tables for unwinding, which refer to functions of a library.
    hints = ["nounwind"]
    if platform and platform.is_windows:
        hints += WINDOWS_HINTS
    elif platform and platform.has_pages:
        hints += ['"probe-stack"="inline-asm"', '"stackrealign"']
    return re.sub(r"(?<=#0 = {).*(?=})", f" {' '.join(hints)} ", METADATA)


class _Block:
    """The code of a block of rows, under names of its own, and calls of it.

    Attributes:
        function: Whose block it is.
        real: The type of a vector with a lane for each row.
        scratch: Memory that it works in [bytes].
        declared: What it needs of LLVM, by name.
        texts: Its functions.
    """

    def __init__(self, function: StandaloneFunction, real: Type) -> None:
        self.function, self.real, self.lanes = function, real, real.lanes
        self.prefix = f"{function.name}_x{real.lanes}_"
        made, self.scratch = _block_code(function.computation, real)
        self.declared: dict[str, str] = {}
        self.texts: list[str] = []
        self._called: frozenset[bytes] = frozenset()
        if isinstance(function.computation, Pipeline) and any(
            calls_in(function.computation.stages)
        ):
            self._add_callees(function.computation, function.callees)
        own: dict[str, str] = {}
        for f in made:
            for name, text in f.declared.items():
                (self.declared if name.startswith("@llvm.") else own)[name] = text
        for text in (*own.values(), *(f.text for f in made)):
            self.texts.append(GLOBAL.sub(rf"@{self.prefix}\1", text))
        if self.scratch > MOST_STACK:
            raise KernelError(
                f"'{function.name}' needs {self.scratch} bytes of working memory; on "
                f"the stack it may take {MOST_STACK}. Ask for fewer results at once."
            )

    def _add_callees(
        self, computation: Pipeline, callees: Sequence[CalledCode]
    ) -> None:
        made = dispatch_code(computation, callees, self.real, self.prefix)
        self.declared.update(made.declared)
        self.texts += made.texts
        self._called = made.constants

    def bound(self, port: Port) -> bytes:
        """Return the rows of an input that callers do not give."""
        value = np.broadcast_to(self.function.bound[port.name], port.shape)
        real = np.dtype(f"<f{self.real.bits // 8}")
        return np.tile(np.ravel(value).astype(real), self.lanes).tobytes()

    @property
    def constants(self) -> Iterator[bytes]:
        """Yield the bytes of all constants that calls of it refer to."""
        for port in self.function.computation.inputs:
            if port.name in self.function.bound:
                yield self.bound(port)
        for records in self.function.tables.values():
            yield records.tobytes()
        yield from self._called

    def of_threads(self) -> list[str]:
        """Return its functions for the threads of a GPU."""
        own = f"@{self.prefix}block("
        return [
            inlined(text) if own in text[: text.index("{")] else text
            for text in self.texts
        ]

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return self.function.name

    @property
    def ports(self) -> list[tuple[str, Port]]:
        """Return the inputs and outputs that callers give, by name in an entry."""
        named = {"in": self.function.inputs, "out": self.function.computation.outputs}
        return [
            (f"{k}{i}", p) for k, ports in named.items() for i, p in enumerate(ports)
        ]

    def begun(self, name: str, *, result: Type = I32, **more: Type) -> FunctionBuilder:
        """Return an entry, begun, with its parameters."""
        parameters = {**dict.fromkeys([key for key, _ in self.ports], PTR), **more}
        return FunctionBuilder(name, result, exported=True, more=parameters)

    def called(self, f: FunctionBuilder, place: Place) -> Value:
        """Call it for the rows from one on; return the lanes that it flags.

        Args:
            f: The function that does.
            place: Where the first row of an input or output lies, by its name in `f`.
        """
        function = self.function
        free = {port.name: k for k, port in enumerate(function.inputs)}
        arguments = [
            place(f"in{free[port.name]}", port)
            if port.name in free
            else Value(f, f"@{constant_name(self.bound(port))}", PTR)
            for port in function.computation.inputs
        ]
        outputs = enumerate(function.computation.outputs)
        arguments += [place(f"out{k}", port) for k, port in outputs]
        arguments.append(self._reserved(f, "scratch", self.scratch))
        if not isinstance(function.computation, Program):
            arguments.append(self._tables(f))
        bits = bits_of_lanes(self.lanes)
        return f.call(f"@{self.prefix}block", bits, *arguments)

    def called_from(self, f: FunctionBuilder, row: Value) -> Value:
        """Call it for the rows from `row` on, which follow each other."""
        scalar = self.real.scalar
        return self.called(
            f, lambda name, port: f.element(f[name], scalar, row * port.size)
        )

    def _tables(self, f: FunctionBuilder) -> Value:
        """Return where the words of tables are: see `pipeline_code.TABLE`."""
        tables = self.function.tables
        words = self._reserved(f, "tables", TABLE.bytes * len(tables))
        for k, records in enumerate(tables.values()):
            entry = f.address(words, TABLE.bytes * k)
            start = Value(f, f"@{constant_name(records.tobytes())}", PTR)
            TABLE.store(start, entry, "records")
            TABLE.store(len(records), entry, "count")
        return words

    def _reserved(self, f: FunctionBuilder, what: str, size: int) -> Value:
        return f.once((what, str(self.lanes)), lambda: f.reserve(size, ALIGNMENT))


_CALLEES: Final = "callees"
"""The function that runs what a `Call` chooses."""


def _block_code(
    computation: Program | Pipeline, real: Type
) -> tuple[list[FunctionBuilder], int]:
    if isinstance(computation, Program):
        return emit_block(computation, real)
    return pipeline_code(computation, real, dispatcher=f"@{_CALLEES}")


def _entries(single: _Block, wide: _Block, address: Type) -> list[FunctionBuilder]:
    """Return the functions that callers see.

    Args:
        single: The code of one row.
        wide: That of most rows at once, which may be the same.
        address: The type of the number of rows.
    """
    name = single.function.name
    f = single.begun(name)
    f.ret(single.called(f, lambda name, _: f[name]).to(I32, "zext"))
    entries = [f]
    f = wide.begun(f"{name}_rows", count=address)
    count = f["count"]
    if count.type != I64:
        count = count.to(I64, "zext")
    flagged = f.variable(I32, 0)
    whole = f.constant(I64, 0)
    if wide.lanes > 1:
        whole = count & -wide.lanes
        with f.loop(whole, 0, wide.lanes) as k:
            mask = wide.called_from(f, k).differs(0).to(I32, "zext")
            flagged.set(flagged.get() | mask)
    with f.loop(count, whole) as k:
        flagged.set(flagged.get() | single.called_from(f, k).to(I32, "zext"))
    f.ret(flagged.get())
    return [*entries, f]


def _constant(data: bytes) -> str:
    name = constant_name(data)
    data = data or bytes(8)
    text = "".join(f"\\{byte:02X}" for byte in data)
    return f'@{name} = internal constant [{len(data)} x i8] c"{text}", align 64'


# what instruction sets lack

_MEMORY: Final = frozenset({"memcpy", "memset"})
"""Functions of LLVM that become calls of a library, whatever the instruction set."""


def _type_of(suffix: str) -> Type:
    """Return the type in the name of a function of LLVM, such as `v4f64`."""
    lanes, _, element = suffix.rpartition("f")
    real = F64 if element == "64" else F32
    return real.wide(int(lanes[1:] or 1))


def software_fma(name: str, suffix: str) -> FunctionBuilder:
    """Return x y + z with one rounding in all but rare cases, for all machines.

    The product and the sum are made of two reals each (Dekker, A floating-point
    technique for extending the available precision, 1971).

    Args:
        name: What to call the function.
        suffix: The type, as in the name of LLVM's function.
    """
    real = _type_of(suffix)
    f = FunctionBuilder(name, real, x=real, y=real, z=real)
    x, y, z = f["x"], f["y"], f["z"]
    # Each as a sum of two reals of half the digits, whose products are exact. The first
    # is rounded, so that the other needs one digit less.
    low_bits = 27 if real.bits == 64 else 12
    rounding = 1 << (low_bits - 1)
    (x_high, x_low), (y_high, y_low) = (
        (high, v - high)
        for v in (x, y)
        for high in [((v.bits() + rounding) & (-1 << low_bits)).from_bits()]
    )
    product = x * y
    error = (x_high * y_high - product) + x_high * y_low + x_low * y_high
    error += x_low * y_low
    # The sum and what its rounding leaves, by Knuth.
    total = product + z
    part = total - product
    rest = (product - (total - part)) + (z - part)
    result = total + (rest + error)
    # Where a product overflows, the sum is infinite or NaN already.
    f.ret(result.is_nan().select(total, result))
    return f


def _rint_of(x: Value) -> Value:
    # Numbers of this size have no digits behind the point.
    whole = x.constant(2.0 ** layout(x).fraction)
    size = abs(x)
    rounded = ((size + whole) - whole).with_sign_of(x)
    return (size < whole).select(rounded, x)


def _floor_of(x: Value) -> Value:
    near = _rint_of(x)
    return (near > x).select(near - 1.0, near)


def _of_one(formula: Callable[[Value], Value]) -> Callable[..., FunctionBuilder]:
    def made(name: str, suffix: str) -> FunctionBuilder:
        real = _type_of(suffix)
        f = FunctionBuilder(name, real, x=real)
        f.ret(formula(f["x"]))
        return f

    return made


def _memory_function(name: str, *, copies: bool) -> FunctionBuilder:
    """Return the copy of bytes, or their filling with one value."""
    kind = PTR if copies else I8
    f = FunctionBuilder(name, to=PTR, source=kind, size=I64, volatile=I1)
    words = f["size"] & -4 if copies else f.constant(I64, 0)
    with f.loop(words, 0, 4) as k:
        f.store(f.load(I32, f.address(f["source"], k)), f.address(f["to"], k))
    with f.loop(f["size"], words) as k:
        value = f.load(I8, f["source"], k) if copies else f["source"]
        f.store(value, f["to"], k)
    f.ret()
    return f


_WHOLE_FMA: Final = re.compile(
    r"  (%\w+) = call (.+?) @llvm\.fma\.[\w.]+\((.+?) (%\w+), .+? "
    r"(0x[0-9A-F]{16}|splat \(\w+ 0x[0-9A-F]{16}\)), \3 (.+)\)" + WHOLE
)


_KEPT: Final = re.compile(rf"bitcast (.+) (%\w+) to \1{KEPT}")
"""A number that is kept in its place: by an instruction of unknown effect, of none."""


def _of_whole_number(found: re.Match[str]) -> str:
    """Return the instructions of `whole_fma` for a machine without `fma`.

    Parts of the factor are so short that their products with whole numbers are exact;
    what is left is too small for its rounding to count.
    """
    made, kind, _, k, constant, total = found.groups()
    is_double = "double" in kind
    bits, smallest = (23, 2.0**-70) if is_double else (8, 2.0**-36)
    real = real_of(64 if is_double else 32)
    splat = constant.startswith("splat")
    (factor,) = struct.unpack(">d", bytes.fromhex(constant.rstrip(")")[-16:]))
    lines: list[str] = []
    while factor:
        part = factor if abs(factor) < smallest else _rounded(factor, bits)
        factor -= part
        text = real.constant(part)
        text = f"splat ({real.text} {text})" if splat else text
        step = f"{made}.{len(lines)}"
        lines.append(f"  {step} = fmul {kind} {k}, {text}")
        into = f"{step}s" if factor else made
        lines.append(f"  {into} = fadd {kind} {total}, {step}")
        total = into
    return "\n".join(lines)


def _rounded(number: float, bits: int) -> float:
    """Return a number to so many binary digits."""
    fraction, exponent = math.frexp(number)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)


_SUBSTITUTES: Final[dict[str, Callable[[str, str], FunctionBuilder]]] = {
    "fma": software_fma,
    "rint": _of_one(_rint_of),
    "floor": _of_one(_floor_of),
    "trunc": _of_one(lambda x: _floor_of(abs(x)).with_sign_of(x)),
    "memcpy": lambda name, _: _memory_function(name, copies=True),
    "memset": lambda name, _: _memory_function(name, copies=False),
}
"""Functions in place of LLVM's, by its name; each takes a name and a suffix."""
