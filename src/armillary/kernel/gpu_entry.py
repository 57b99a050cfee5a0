"""Entries of kernels on a GPU: a thread for each row, and memory in its own order.

A GPU reads and writes memory fastest where the threads of a warp, 32 that go in step,
touch 32 numbers that follow each other. Numbers of a row follow each other instead, so
threads that read theirs are a row apart. So each warp first copies its rows to memory
that its processor shares, then each thread computes a row there, and the warp copies
results out:

    copied:    shared[r, c] = in[first + r, c]    for all r, c of the warp, in order
    computed:  thread r runs the block on rows r of shared memory, if it has a row
    written:   out[first + r, c] = shared[r, c]

Rows of shared memory have an odd number of places: 32 threads, one in each row, then
touch 32 banks. What does not fit there is read and written by the block itself. The
last warp may have fewer rows. Its other threads copy as that of the last row does, and
compute nothing: a block may read what it has written, which no other thread may change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I32, I64, PTR, VOID, Type
from armillary.trace import Port

__all__ = [
    "THREADS",
    "Place",
    "ThreadCode",
    "inlined",
    "sizes_of_blocks",
    "thread_code",
]

THREADS: Final = 32
"""Threads of a block: those of one warp, since warps share nothing."""

MOST_SHARED: Final = 48 * 1024
"""Bytes that a block may share on every GPU."""

Place: TypeAlias = Callable[[str, Port], Value]
"""Where the row of an input or output lies, by its name in an entry."""


class ThreadCode(Protocol):
    """What is asked of the code of one row."""

    @property
    def ports(self) -> Sequence[tuple[str, Port]]:
        """Return the inputs and outputs that callers give, by name in an entry."""
        ...

    @property
    def name(self) -> str:
        """Return the name of the function."""
        ...

    def begun(self, name: str, *, result: Type, **more: Type) -> FunctionBuilder:
        """Return an entry, begun, with its parameters."""
        ...

    def called(self, f: FunctionBuilder, place: Place) -> Value:
        """Call it for a row."""
        ...


def thread_code(code: ThreadCode, scalar: Type, declared: dict[str, str]) -> list[str]:
    """Return the kernel `code.name`, and the functions of its three steps.

    Args:
        code: What a thread computes.
        scalar: The type of its numbers.
        declared: What the module needs of LLVM, by name; this adds to it.
    """
    shared = _Shared.of(code, scalar)
    strides = {f"stride_{name}": I64 for name, _ in code.ports if name[:2] == "in"}
    steps: list[FunctionBuilder] = []
    for step in (_copied, _computed, _written):
        f = code.begun(
            f"{code.name}_x1{step.__name__}", result=VOID, count=I64, **strides
        )
        thread = _Thread.of(f, shared)
        with f.when(thread.first < f["count"]):
            step(thread, code)
        f.ret()
        steps.append(f)
    f = code.begun(code.name, result=VOID, count=I64, **strides)
    for k, step in enumerate(steps):
        if k:  # what threads of the warp wrote is there for all of them
            f.call(f"@{SYNC}", VOID, f.constant(I32, -1))
        f.call(f"@{step.name}", VOID, *f.parameters.values())
    f.ret()
    declared[f"@{SYNC}"] = f"declare void @{SYNC}(i32)"
    for each in REGISTERS:
        declared[f"@{each}"] = f"declare i32 @{each}()"
    texts = [shared.text]
    for step in steps:
        text = step.text.replace("define void", "define internal void", 1)
        texts.append(inlined(text))
    return [*texts, f.text.replace("define void", "define ptx_kernel void", 1)]


def inlined(text: str) -> str:
    """Return the text of a function that LLVM inlines into its callers.

    Only there does LLVM know which addresses are in shared memory.
    """
    return text.replace(" #0 {", " alwaysinline #0 {", 1)


def sizes_of_blocks(names: Sequence[str]) -> str:
    """Return what tells the driver how many threads blocks of kernels have."""
    listed = ", ".join(f"!{10 + k}" for k in range(len(names)))
    lines = [f"!nvvm.annotations = !{{{listed}}}"]
    for k, name in enumerate(names):
        lines.append(f'!{10 + k} = !{{ptr @{name}, !"reqntidx", i32 {THREADS}}}')
    return "\n".join(lines)


SYNC: Final = "llvm.nvvm.bar.warp.sync"
"""Threads of a warp wait for each other."""

REGISTERS: Final = tuple(
    f"llvm.nvvm.read.ptx.sreg.{each}.x" for each in ("ctaid", "tid")
)
"""The numbers of the block and of the thread in it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """Rows in the memory that the threads of a block share.

    Attributes:
        name: Of the memory.
        scalar: The type of numbers.
        offsets: Where the rows of each input or output begin [numbers], by name in an
            entry.
        size: Of all [numbers].
    """

    name: str
    scalar: Type
    offsets: dict[str, int]
    size: int

    @classmethod
    def of(cls, code: ThreadCode, scalar: Type) -> _Shared:
        """Return where rows lie: of as many ports as fit, small ones first."""
        offsets: dict[str, int] = {}
        size = 0
        most = MOST_SHARED // scalar.bytes
        for name, port in sorted(code.ports, key=lambda each: each[1].size):
            taken = THREADS * _pitch(port)
            if size + taken <= most:
                offsets[name] = size
                size += taken
        return cls(
            name=f"{code.name}_x1_shared", scalar=scalar, offsets=offsets, size=size
        )

    @property
    def text(self) -> str:
        """Return its definition."""
        kind = f"[{max(1, self.size)} x {self.scalar.text}]"
        return f"@{self.name} = internal addrspace(3) global {kind} undef, align 16"


def _pitch(port: Port) -> int:
    """Return how many numbers rows of shared memory are apart: an odd number."""
    return port.size | 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    """Which thread runs a step, and which rows its warp has.

    Attributes:
        f: The step.
        shared: Where rows are shared.
        base: Their address.
        first: The row of the warp's first thread.
        last: Its last row, counted from the first, at most 31.
        lane: Which thread of the warp it is.
    """

    f: FunctionBuilder
    shared: _Shared
    base: Value
    first: Value
    last: Value
    lane: Value

    @classmethod
    def of(cls, f: FunctionBuilder, shared: _Shared) -> _Thread:
        """Read the registers of a thread."""
        group, lane = (f.call(f"@{each}", I32) for each in REGISTERS)
        first = group.to(I64, "zext") * THREADS
        left = f["count"] - first - 1
        last = (left < THREADS - 1).select(left, THREADS - 1).to(I32, "trunc")
        space = f"@{shared.name} to ptr"
        return cls(
            f=f,
            shared=shared,
            base=f.emit(f"addrspacecast ptr addrspace(3) {space}", PTR),
            first=first,
            last=last,
            lane=lane,
        )

    def shared_at(self, name: str, port: Port, row: Value, column: Value) -> Value:
        """Return where a number of a row is shared."""
        place = row * _pitch(port) + column + self.shared.offsets[name]
        return self.f.element(self.base, self.shared.scalar, place.to(I64, "zext"))

    def given_at(self, name: str, port: Port, row: Value, column: Value) -> Value:
        """Return where callers have a number of a row."""
        f, stride = self.f, f"stride_{name}"
        step = f[stride] if stride in f.parameters else port.size
        place = (self.first + row.to(I64, "zext")) * step + column.to(I64, "zext")
        return f.element(f[name], self.shared.scalar, place)

    def numbers(self, port: Port) -> list[tuple[Value, Value]]:
        """Return rows and columns of the numbers that it copies: each 32nd."""
        made: list[tuple[Value, Value]] = []
        for k in range(port.size):
            number = self.lane + THREADS * k
            size = number.constant(port.size).text
            row = self.f.emit(f"udiv i32 {number.text}, {size}", I32)
            made.append((_least(row, self.last), number - row * port.size))
        return made


def _least(a: Value, b: Value) -> Value:
    return (a < b).select(a, b)


def _copied(thread: _Thread, code: ThreadCode) -> None:
    _copy(thread, code, "in")


def _written(thread: _Thread, code: ThreadCode) -> None:
    _copy(thread, code, "out")


def _copy(thread: _Thread, code: ThreadCode, which: str) -> None:
    """Copy the rows of a warp, numbers that follow each other at once."""
    f, scalar = thread.f, thread.shared.scalar
    for name, port in code.ports:
        if name not in thread.shared.offsets or not name.startswith(which):
            continue
        places = [
            (thread.given_at(name, port, *at), thread.shared_at(name, port, *at))
            for at in thread.numbers(port)
        ]
        if which == "out":
            places = [(own, given) for given, own in places]
        # All are read before any is written, so that many are on their way.
        values = [f.load(scalar, source) for source, _ in places]
        for value, (_, target) in zip(values, places, strict=True):
            f.store(value, target)


def _computed(thread: _Thread, code: ThreadCode) -> None:
    f, zero = thread.f, thread.f.constant(I32, 0)

    def place(name: str, port: Port) -> Value:
        is_shared = name in thread.shared.offsets
        where = thread.shared_at if is_shared else thread.given_at
        return where(name, port, thread.lane, zero)

    with f.when(thread.lane <= thread.last):
        code.called(f, place)
