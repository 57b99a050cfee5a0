"""Machine code written as typed Python: functions of LLVM IR.

A `FunctionBuilder` collects instructions; a `Value`, a number or a vector with a number
in each lane, knows its type and computes with the usual operators. What changes inside
a loop is a `Variable`: it lives in memory here, and LLVM moves it into a register.

    f = FunctionBuilder("sum", F64, numbers=PTR, count=I64)
    total = f.variable(F64, 0.0)
    with f.loop(f["count"]) as k:
        total.set(total.get() + f.load(F64, f["numbers"], k))
    f.ret(total.get())

`emit.py` writes the straight code of a `Program` into such a function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar, final

import msgspec

from armillary.kernel.machine_type import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Type,
    bits_of_lanes,
    real_of,
)

__all__ = [
    "EndlessLoop",
    "FunctionBuilder",
    "Operand",
    "Value",
    "Variable",
    "module_text",
]

T = TypeVar("T")

METADATA = """
attributes #0 = { "probe-stack"="inline-asm" "stackrealign" }
!0 = !{!"branch_weights", i32 1, i32 100000}
!1 = !{i32 1}
"""
"""What functions, unlikely branches and streamed stores refer to.

LLVM touches each page of a large frame in turn, so that a stack that is too small ends
in its guard page and never beyond it. It also aligns the frame, without which spilled
registers of 64 bytes cross cache lines.
"""


def module_text(functions: Sequence[FunctionBuilder]) -> str:
    """Return the IR of a module of functions, and of all that they need."""
    # Several functions need the same declarations, and call the same outlined
    # functions.
    needed: dict[str, str] = {}
    for f in functions:
        needed.update(f.declared)
    return "\n".join([*needed.values(), *(f.text for f in functions), METADATA])


@final
class Value(msgspec.Struct, eq=False):
    """A number, or a vector of them, that code under construction computes.

    Operators take another value of the same type, or a Python number. `<` and `<=`
    compare integers as signed and reals as ordered: NaN compares as false. Each
    operation on reals is rounded by itself, unless it is `contracted`.
    """

    function: FunctionBuilder
    text: str
    type: Type

    @property
    def is_constant(self) -> bool:
        """Return whether it is a number that the code does not compute."""
        return self.text[0] != "%"

    def constant(self, number: float) -> Value:
        """Return a number of the same type."""
        return Value(self.function, self.type.constant(number), self.type)

    def _operand(self, other: Operand) -> str:
        if isinstance(other, Value):
            assert other.type.text == self.type.text, (self.type.text, other.type.text)
            return other.text
        return self.type.constant(other)

    def _apply(self, integer: str, real: str, other: Operand) -> Value:
        name, kind = real if self.type.is_real else integer, self.type
        text = f"{name} {kind.text} {self.text}, {self._operand(other)}"
        return self.function.emit(text, kind)

    def __add__(self, other: Operand) -> Value:
        return self._apply("add", "fadd", other)

    def __sub__(self, other: Operand) -> Value:
        return self._apply("sub", "fsub", other)

    def __rsub__(self, other: float) -> Value:
        return self.constant(other) - self

    def __mul__(self, other: Operand) -> Value:
        return self._apply("mul", "fmul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._apply("", "fdiv", other)

    def __rtruediv__(self, other: float) -> Value:
        return self.constant(other) / self

    def __and__(self, other: Operand) -> Value:
        return self._apply("and", "", other)

    def __or__(self, other: Operand) -> Value:
        return self._apply("or", "", other)

    def __xor__(self, other: Operand) -> Value:
        return self._apply("xor", "", other)

    def __lshift__(self, other: Operand) -> Value:
        return self._apply("shl", "", other)

    def __rshift__(self, other: Operand) -> Value:
        """Shift right; zeros come in from the left."""
        return self._apply("lshr", "", other)

    def __invert__(self) -> Value:
        """Return the other truths, or an integer with all bits changed."""
        return self ^ (1 if self.type.element == "i1" else -1)

    def shifted_right(self, count: Operand) -> Value:
        """Shift right; copies of the sign come in from the left."""
        return self._apply("ashr", "", count)

    # comparisons

    def compare(self, relation: str, other: Operand) -> Value:
        """Return where a relation of LLVM holds: `oeq`, `une`, `uno`, `slt`, ..."""
        kind = self.type
        name = "fcmp" if kind.is_real else "icmp"
        text = f"{name} {relation} {kind.text} {self.text}, {self._operand(other)}"
        return self.function.emit(text, I1.wide(kind.lanes))

    def __lt__(self, other: Operand) -> Value:
        return self.compare("olt" if self.type.is_real else "slt", other)

    def __le__(self, other: Operand) -> Value:
        return self.compare("ole" if self.type.is_real else "sle", other)

    def __gt__(self, other: Operand) -> Value:
        return self.compare("ogt" if self.type.is_real else "sgt", other)

    def __ge__(self, other: Operand) -> Value:
        return self.compare("oge" if self.type.is_real else "sge", other)

    def equals(self, other: Operand) -> Value:
        """Return where it equals another; NaN equals nothing."""
        return self.compare("oeq" if self.type.is_real else "eq", other)

    def differs(self, other: Operand) -> Value:
        """Return where it differs from another; NaN differs from everything."""
        return self.compare("une" if self.type.is_real else "ne", other)

    def exceeds_or_nan(self, other: Operand) -> Value:
        """Return where a real is greater than another, or one of them is NaN."""
        return self.compare("ugt", other)

    def is_nan(self) -> Value:
        """Return where a real is NaN."""
        return self.compare("uno", self)

    def select(self, yes: Operand, no: Operand) -> Value:
        """Return, of truths, `yes` where they hold and `no` elsewhere.

        One of the two may be a Python number.
        """
        if not isinstance(yes, Value):
            assert isinstance(no, Value), "the type of two numbers is not known"
            yes = no.constant(yes)
        elif not isinstance(no, Value):
            no = yes.constant(no)
        kind = yes.type
        assert no.type.text == kind.text, (kind.text, no.type.text)
        # The type of a kernel decides some truths while it is written.
        if self.is_constant:
            return yes if self.text == self.type.constant(1) else no
        return self.function.emit(
            f"select {self.type.text} {self.text}, {kind.text} {yes.text}, "
            f"{kind.text} {no.text}",
            kind,
        )

    # reals

    def contracted(self, name: str, other: Value) -> Value:
        """Return `fadd`, `fsub` or `fmul`, which LLVM may join with others of these.

        A product and the sum it goes into may be rounded once, and zeros lose their
        signs. Nothing is reordered, which could overflow, and NaN in is NaN out.
        """
        text = f"{name} contract nsz {self.type.text} {self.text}, {other.text}"
        return self.function.emit(text, self.type)

    def intrinsic(self, name: str, *others: Operand, note: str = "") -> Value:
        """Return a function of LLVM of values of one type: `sqrt`, `floor`, `fma`.

        note: What stands behind the call.
        """
        f, kind = self.function, self.type.text
        full = f"@llvm.{name}.{self.type.suffix}"
        if full not in f.declared:
            kinds = ", ".join([kind] * (1 + len(others)))
            f.declared[full] = f"declare {kind} {full}({kinds})"
        arguments = f"{kind} {self.text}"
        for other in others:
            arguments += f", {kind} {self._operand(other)}"
        return f.emit(f"call {kind} {full}({arguments}){note}", self.type)

    def __neg__(self) -> Value:
        return self.function.emit(f"fneg {self.type.text} {self.text}", self.type)

    def __abs__(self) -> Value:
        return self.intrinsic("fabs")

    def sqrt(self) -> Value:
        """Return its square root."""
        return self.intrinsic("sqrt")

    def fma(self, factor: Operand, summand: Operand) -> Value:
        """Return it times a factor plus a summand, rounded once."""
        return self.intrinsic("fma", factor, summand)

    def multiply_add(self, factor: Operand, summand: Operand) -> Value:
        """Return the same, rounded twice on machines that have no such instruction."""
        return self.intrinsic("fmuladd", factor, summand)

    def with_sign_of(self, other: Operand) -> Value:
        """Return its absolute value with the sign of another, also of -0 and NaN."""
        return self.intrinsic("copysign", other)

    def bits(self) -> Value:
        """Return the bits of reals as integers."""
        return self.to(self.type.integer, "bitcast")

    def from_bits(self) -> Value:
        """Return the reals with these bits."""
        return self.to(real_of(self.type.bits, self.type.lanes), "bitcast")

    # other types

    def to(self, kind: Type, how: str) -> Value:
        """Return it converted: `zext`, `sext`, `trunc`, `bitcast`, `fptosi`, ..."""
        text = f"{how} {self.type.text} {self.text} to {kind.text}"
        return self.function.emit(text, kind)

    def splat(self, lanes: int) -> Value:
        """Return a vector of `lanes` with this number in each."""
        if lanes == 1:
            return self
        kind, f = self.type.wide(lanes), self.function
        one = f.emit(
            f"insertelement {kind.text} poison, {self.type.text} {self.text}, i32 0",
            kind,
        )
        # LLVM's idiom for a broadcast: into lane 0, and from there into all.
        order = I32.wide(lanes).text
        return f.emit(
            f"shufflevector {kind.text} {one.text}, {kind.text} poison, "
            f"{order} zeroinitializer",
            kind,
        )

    def lane(self, k: int) -> Value:
        """Return the number in a lane."""
        kind = self.type
        if kind.lanes == 1:
            return self
        text = f"extractelement {kind.text} {self.text}, i32 {k}"
        return self.function.emit(text, kind.scalar)

    def shuffled(self, other: Value, order: Sequence[int]) -> Value:
        """Return lanes of this, counted from 0, and of another, counted on behind."""
        # LLVM counts the lanes of both values through.
        kind, mask = self.type, ", ".join(f"i32 {k}" for k in order)
        return self.function.emit(
            f"shufflevector {kind.text} {self.text}, {kind.text} {other.text}, "
            f"<{len(order)} x i32> <{mask}>",
            kind.wide(len(order)),
        )

    def packed(self) -> Value:
        """Return truths as an integer of one bit for each lane, lane 0 lowest."""
        lanes = self.type.lanes
        return self if lanes == 1 else self.to(bits_of_lanes(lanes), "bitcast")

    def mask(self) -> Value:
        """Return the same as an integer of 64 bits."""
        return self.packed().to(I64, "zext")


Operand: TypeAlias = Value | float


@final
class Variable(msgspec.Struct, frozen=True, eq=False):
    """A value that code under construction may change; `variable` makes it."""

    function: FunctionBuilder
    address: Value
    type: Type

    def get(self) -> Value:
        """Return its present value."""
        return self.function.load(self.type, self.address)

    def set(self, value: Operand) -> None:
        """Give it a value."""
        if not isinstance(value, Value):
            value = self.function.constant(self.type, value)
        self.function.store(value, self.address)


@final
class EndlessLoop(msgspec.Struct, frozen=True):
    """An endless loop under construction; `forever` makes it."""

    function: FunctionBuilder
    again: str
    after: str

    def leave(self, truth: Value | None = None) -> None:
        """Go on behind the loop, where a truth holds."""
        self._go(self.after, truth)

    def repeat(self, truth: Value | None = None) -> None:
        """Begin the next iteration, where a truth holds."""
        self._go(self.again, truth)

    def _go(self, label: str, truth: Value | None) -> None:
        if truth is None:
            self.function.jump(label)
            return
        on = self.function.label()
        self.function.branch(truth, label, on)
        self.function.start(on)


@final
class FunctionBuilder:
    """A function under construction: a list of instructions, and names for values.

    A name in brackets gives a parameter: `f["count"]`.

    Attributes:
        name: Its name in the module.
        result: The type that it returns.
        parameters: By name.
        declared: What it needs in its module: declarations and functions, by name.
    """

    def __init__(
        self,
        name: str,
        result: Type = VOID,
        /,
        *,
        exported: bool = False,
        hints: Sequence[str] = (),
        noalias: bool = False,
        more: Mapping[str, Type] | None = None,
        **parameters: Type,
    ) -> None:
        """Begin a function.

        Args:
            name: Its name in the module.
            result: What it returns.
            exported: Whether it can be called from outside of the module.
            hints: Attributes of LLVM, such as `noinline`.
            noalias: Whether nothing else leads to the memory behind its pointers.
            more: Parameters whose names are not known here, before the others.
            parameters: Their types by name.
        """
        self.name = name
        self.result = result
        self._exported = exported
        self._hints = (*hints, "#0")
        self._pointer_hint = " noalias" if noalias else ""
        self.parameters = {
            key: Value(self, f"%{key}", kind)
            for key, kind in {**(more or {}), **parameters}.items()
        }
        self.declared: dict[str, str] = {}
        # Allocas stand at the start of a function: in a loop they would take more of
        # the stack at each iteration.
        self._head: list[str] = []  # memory, reserved once
        self._lines: list[str] = []
        self._labels = 0
        self._label = "entry"
        self._is_open = True  # whether the present block still needs its end
        self._pending: tuple[int, int] | None = None  # see `when`
        # Of the present block:
        self._made: dict[tuple[str, ...], Any] = {}
        self._flagged: Value | None = None
        self._largest: dict[float, Value] = {}

    def __getitem__(self, parameter: str) -> Value:
        return self.parameters[parameter]

    # values and instructions

    def constant(self, kind: Type, number: float) -> Value:
        """Return a number; in a vector, the same in every lane."""
        return Value(self, kind.constant(number), kind)

    def emit(self, text: str, kind: Type) -> Value:
        """Append an instruction and return its result."""
        assert self._is_open, "nothing is reached here"
        # The number of its line names a value; labels and memory count by themselves.
        name = f"%x{len(self._lines)}"
        self._lines.append(f"  {name} = {text}")
        return Value(self, name, kind)

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        assert self._is_open, "nothing is reached here"
        self._lines.append(f"  {text}")

    def needs(self, other: FunctionBuilder) -> None:
        """Note that it calls a finished function, which comes into its module."""
        if f"@{other.name}" not in self.declared:
            self.declared.update(other.declared)
            self.declared[f"@{other.name}"] = other.text

    def once(self, key: tuple[str, ...], make: Callable[[], T]) -> T:
        """Return what `make` returned for the same key in this block, or call it."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def call(self, name: str, result: Type, *arguments: Value) -> Value:
        """Call a function of the module; what it returns is of type `result`."""
        listed = ", ".join(f"{x.type.text} {x.text}" for x in arguments)
        text = f"call {result.text} {name}({listed})"
        if result == VOID:
            self.do(text)
            return Value(self, "", VOID)
        return self.emit(text, result)

    def intrinsic(
        self, name: str, result: Type, *arguments: Value, of: Type | None = None
    ) -> Value:
        """Call a function of LLVM, such as `sqrt`; `of` is the type in its name."""
        # Overloaded functions carry their type in the name: `sqrt.v4f64`.
        full = f"@llvm.{name}.{(of or result).suffix}"
        kinds = ", ".join(x.type.text for x in arguments)
        self.declared[full] = f"declare {result.text} {full}({kinds})"
        return self.call(full, result, *arguments)

    def count_trailing_zeros(self, bits: Value) -> Value:
        """Return the position of the lowest bit of an integer that is not 0."""
        return self.intrinsic("cttz", bits.type, bits, self.constant(I1, 1))

    # lanes for which a formula is not good enough

    def flag(self, truth: Value) -> None:
        """Note such lanes; they are computed again, by an evaluator right everywhere.

        Whoever appends straight code takes what it flags before the block ends.
        """
        known = self._flagged
        self._flagged = truth if known is None else known | truth

    def limit(self, size: Value, bound: float) -> None:
        """Flag the lanes in which `size` exceeds `bound`; NaN does not.

        The largest size noted for a bound, or 0, is compared once, at the end.
        """
        # One comparison for all sines of a program, in place of one for each.
        largest = self._largest.get(bound, size.constant(0.0))
        self._largest[bound] = (size > largest).select(size, largest)

    def taken_flags(self) -> Value | None:
        """Return the flagged lanes, and forget them; None if none can be flagged."""
        for bound, largest in self._largest.items():
            self.flag(largest > bound)
        self._largest.clear()
        flagged, self._flagged = self._flagged, None
        return flagged

    # memory

    def address(self, base: Value, offset: Operand) -> Value:
        """Return an address `offset` bytes behind another."""
        if not isinstance(offset, Value) and offset == 0:
            return base
        return self.element(base, I8, offset)

    def element(self, base: Value, kind: Type, index: Operand) -> Value:
        """Return where element `index` of an array lies."""
        at = index.text if isinstance(index, Value) else int(index)
        return self.emit(f"getelementptr {kind.text}, ptr {base.text}, i64 {at}", PTR)

    def load(
        self, kind: Type, base: Value, index: Operand = 0, *, align: int = 0
    ) -> Value:
        """Return an element of an array; `align` if it is not aligned to its size."""
        if isinstance(index, Value) or index:
            base = self.element(base, kind, index)
        more = f", align {align}" if align else ""
        return self.emit(f"load {kind.text}, ptr {base.text}{more}", kind)

    def gather(self, kind: Type, base: Value, index: Value) -> Value:
        """Return elements of an array, one for each lane of an index."""
        lanes, scalar = kind.lanes, kind.scalar
        places = PTR.wide(lanes)
        at = self.emit(
            f"getelementptr {scalar.text}, ptr {base.text}, "
            f"{index.type.text} {index.text}",
            places,
        )
        truths = I1.wide(lanes)
        name = f"@llvm.masked.gather.{kind.suffix}.v{lanes}p0"
        kinds = f"{places.text}, i32, {truths.text}, {kind.text}"
        self.declared[name] = f"declare {kind.text} {name}({kinds})"
        return self.emit(
            f"call {kind.text} {name}({places.text} {at.text}, i32 {scalar.bytes}, "
            f"{truths.text} {truths.constant(1)}, {kind.text} poison)",
            kind,
        )

    def store(
        self, value: Value, base: Value, index: Operand = 0, *, align: int = 0
    ) -> None:
        """Write an element of an array."""
        if isinstance(index, Value) or index:
            base = self.element(base, value.type, index)
        more = f", align {align}" if align else ""
        self.do(f"store {value.type.text} {value.text}, ptr {base.text}{more}")

    def reserve(self, size: int, align: int = 64) -> Value:
        """Return memory of `size` bytes that lasts until the function returns."""
        return self._reserved(f"[{max(1, size)} x i8], align {align}")

    def variable(self, kind: Type, start: Operand) -> Variable:
        """Return a variable that begins with a value."""
        variable = Variable(self, self._reserved(kind.text), kind)
        variable.set(start)
        return variable

    def _reserved(self, what: str) -> Value:
        name = f"%m{len(self._head)}"
        self._head.append(f"  {name} = alloca {what}")
        return Value(self, name, PTR)

    # control

    @contextmanager
    def when(self, truth: Value, *, unlikely: bool = False) -> Generator[None]:
        """Run what follows only where a truth holds; `otherwise` may come behind it.

        unlikely: Whether it hardly ever does.
        """
        # The test, the block `then`, and `after` it, where both ways meet.
        then, after = self.label(), self.label()
        self.branch(truth, then, after, unlikely=unlikely)
        self.start(then)
        yield
        end = len(self._lines) if self._is_open else -1
        if self._is_open:
            self.jump(after)
        self.start(after)
        # Until the next instruction, `otherwise` may put a block before `after`.
        self._pending = len(self._lines), end

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Run what follows where the truth of the `when` right before does not hold."""
        assert self._pending is not None, "otherwise comes right behind when"
        line, end = self._pending
        assert line == len(self._lines), "otherwise comes right behind when"
        after = self.label()
        yield
        if end >= 0:
            # The jump from the end of `then` went to what is now the other branch; it
            # passes over that.
            self._lines[end] = f"  br label %{after}"
        if self._is_open:
            self.jump(after)
        # Where both ways have returned, nothing comes behind.
        if end >= 0 or f"  br label %{after}" in self._lines[-1:]:
            self.start(after)

    @contextmanager
    def loop(self, end: Operand, start: Operand = 0, step: int = 1) -> Generator[Value]:
        """Run what follows for each integer from `start` up to before `end`."""
        last = end if isinstance(end, Value) else self.constant(I64, end)
        first = start if isinstance(start, Value) else self.constant(I64, start)
        before, body, after = self._label, self.label(), self.label()
        self.branch(first < last, body, after)
        self.start(body)
        # The line is written when the body is known: where its last block ends, and the
        # number that follows.
        k = self.emit("", I64)
        counter = len(self._lines) - 1
        yield k
        following = k + step
        self._lines[counter] = (
            f"  {k.text} = phi i64 [ {first.text}, %{before} ], "
            f"[ {following.text}, %{self._label} ]"
        )
        # The test stands at the end, with one jump for each iteration; the first one,
        # above, is for loops without any.
        self.branch(following < last, body, after)
        self.start(after)

    @contextmanager
    def forever(self) -> Generator[EndlessLoop]:
        """Repeat what follows until it leaves the loop or returns."""
        again, after = self.label(), self.label()
        self.jump(again)
        self.start(again)
        yield EndlessLoop(self, again, after)
        if self._is_open:
            self.jump(again)
        self.start(after)

    def ret(self, value: Value | None = None) -> None:
        """Return, with a value if the function has a result."""
        self._end(
            "ret void" if value is None else f"ret {value.type.text} {value.text}"
        )

    def label(self) -> str:
        """Return a new name for a block of instructions."""
        self._labels += 1
        return f"b{self._labels}"

    def start(self, label: str) -> None:
        """Begin a block of instructions."""
        assert not self._is_open, "the block before goes on nowhere"
        self._lines.append(f"{label}:")
        self._label, self._is_open = label, True
        self._made.clear()

    def jump(self, label: str) -> None:
        """Go on with another block."""
        self._end(f"br label %{label}")

    def branch(
        self, truth: Value, yes: str, no: str, *, unlikely: bool = False
    ) -> None:
        """Go on with one of two blocks; `unlikely` if that is hardly ever `yes`."""
        weights = ", !prof !0" if unlikely else ""
        self._end(f"br i1 {truth.text}, label %{yes}, label %{no}{weights}")

    def guard(self, truth: Value, otherwise: str) -> None:
        """Go on here where a truth holds, else with another block."""
        here = self.label()
        self.branch(truth, here, otherwise)
        self.start(here)

    def _end(self, text: str) -> None:
        """Append the last instruction of a block."""
        self.do(text)
        assert not (self._flagged or self._largest), "flags of the block are not taken"
        self._is_open = False

    # text

    @property
    def length(self) -> int:
        """Return how many instructions it has so far, labels counted."""
        return len(self._lines)

    @property
    def text(self) -> str:
        """Return the whole function in the IR."""
        parameters = ", ".join(
            f"{x.type.text}{self._pointer_hint if x.type == PTR else ''} {x.text}"
            for x in self.parameters.values()
        )
        linkage = "" if self._exported else "internal "
        head = f"define {linkage}{self.result.text} @{self.name}({parameters})"
        body = ["entry:", *self._head, *self._lines]
        return "\n".join([f"{head} {' '.join(self._hints)} {{", *body, "}"])
