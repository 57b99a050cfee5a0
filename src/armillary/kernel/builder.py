"""Machine code with loops and branches: LLVM IR written as typed Python.

A `Function` collects instructions; a `Value` knows its type and computes with the
usual operators. What changes inside a loop is a `Variable`: it lives in memory here,
and LLVM moves it into a register.

    f = Function("sum", F64, numbers=PTR, count=I64)
    total = f.variable(F64, 0.0)
    with f.loop(f["count"]) as k:
        total.set(total.get() + f.load(F64, f["numbers"], k))
    f.ret(total.get())

The straight code of a `Program` is made by `emit.py`; functions here call it, or have
it spliced in.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from armillary.kernel.machine_type import I1, I8, I32, I64, PTR, VOID, Type

__all__ = ["Function", "Loop", "Operand", "Value", "Variable"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A number of machine code under construction.

    Operators take another value of the same type, or a Python number. `<` and `<=`
    compare integers as signed and reals as ordered: NaN compares as false.
    """

    function: Function
    text: str
    type: Type

    def _operand(self, other: Operand) -> str:
        if isinstance(other, Value):
            assert other.type == self.type, (self.type.text, other.type.text)
            return other.text
        return self.type.constant(other)

    def _apply(self, integer: str, real: str, other: Operand) -> Value:
        name = real if self.type.is_real else integer
        text = f"{name} {self.type.text} {self.text}, {self._operand(other)}"
        return self.function.emit(text, self.type)

    def _compare(self, integer: str, real: str, other: Operand) -> Value:
        name = f"fcmp {real}" if self.type.is_real else f"icmp {integer}"
        text = f"{name} {self.type.text} {self.text}, {self._operand(other)}"
        return self.function.emit(text, I1.wide(self.type.lanes))

    def __add__(self, other: Operand) -> Value:
        return self._apply("add", "fadd", other)

    def __sub__(self, other: Operand) -> Value:
        return self._apply("sub", "fsub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._apply("mul", "fmul", other)

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

    def __lt__(self, other: Operand) -> Value:
        return self._compare("slt", "olt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("sle", "ole", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("sgt", "ogt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("sge", "oge", other)

    def equals(self, other: Operand) -> Value:
        """Return where it equals another; NaN equals nothing."""
        return self._compare("eq", "oeq", other)

    def differs(self, other: Operand) -> Value:
        """Return where it differs from another; NaN differs from everything."""
        return self._compare("ne", "une", other)

    def exceeds_or_nan(self, other: Operand) -> Value:
        """Return where a real is greater than another, or one of them is NaN."""
        return self._compare("", "ugt", other)

    def is_nan(self) -> Value:
        """Return where a real is NaN."""
        return self._compare("", "uno", self)

    def shifted_right(self, count: Operand) -> Value:
        """Shift right; copies of the sign come in from the left."""
        return self._apply("ashr", "", count)

    def select(self, yes: Value, no: Value) -> Value:
        """Return, of a truth, `yes` where it holds and `no` elsewhere."""
        assert yes.type == no.type, (yes.type.text, no.type.text)
        kinds = f"{self.type.text} {self.text}, {yes.type.text} {yes.text}"
        return self.function.emit(f"select {kinds}, {no.type.text} {no.text}", yes.type)

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
        order = I32.wide(lanes).text
        return f.emit(
            f"shufflevector {kind.text} {one.text}, {kind.text} poison, "
            f"{order} zeroinitializer",
            kind,
        )

    def mask(self) -> Value:
        """Return truths as an integer of 64 bits: one for each lane, lane 0 lowest."""
        lanes = self.type.lanes
        bits = self if lanes == 1 else self.to(Type(f"i{lanes}"), "bitcast")
        return bits.to(I64, "zext")


Operand = Value | float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A value that code under construction may change; made by `Function.variable`."""

    function: Function
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
@dataclass(frozen=True, slots=True)
class Loop:
    """An endless loop under construction; made by `Function.forever`."""

    function: Function
    again: str
    after: str

    def leave(self, truth: Value | None = None) -> None:
        """Go on behind the loop, where a truth holds."""
        self._go(self.after, truth)

    def repeat(self, truth: Value | None = None) -> None:
        """Begin the next turn, where a truth holds."""
        self._go(self.again, truth)

    def _go(self, label: str, truth: Value | None) -> None:
        if truth is None:
            self.function.jump(label)
            return
        on = self.function.label()
        self.function.branch(truth, label, on)
        self.function.start(on)


@final
class Function:
    """A function under construction: a list of instructions, and names for values.

    A name in brackets gives a parameter: `f["count"]`.
    """

    def __init__(
        self,
        name: str,
        result: Type = VOID,
        *,
        exported: bool = False,
        hints: Sequence[str] = (),
        **parameters: Type,
    ) -> None:
        """Begin a function.

        Args:
            name: Its name in the module.
            result: What it returns.
            exported: Whether it can be called from outside of the module.
            hints: Attributes of LLVM, such as `noinline`.
            parameters: Their types by name.
        """
        self.name = name
        self.result = result
        self._exported = exported
        self._hints = (*hints, "#0")
        self.parameters = {
            key: Value(self, f"%{key}", kind) for key, kind in parameters.items()
        }
        self.declared: dict[str, str] = {}
        self._head: list[str] = []  # memory, reserved once
        self._lines: list[str] = []
        self._count = 0
        self._label = "entry"
        self._is_open = True  # whether the present block still needs its end
        self._pending: tuple[int, str] | None = None

    def __getitem__(self, parameter: str) -> Value:
        return self.parameters[parameter]

    # values and instructions

    def constant(self, kind: Type, number: float) -> Value:
        """Return a number; in a vector, the same in every lane."""
        return Value(self, kind.constant(number), kind)

    def emit(self, text: str, kind: Type) -> Value:
        """Append an instruction and return its result."""
        name = self._name()
        self.do(f"{name} = {text}")
        return Value(self, name, kind)

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        assert self._is_open, "nothing is reached here"
        self._pending = None
        self._lines.append(f"  {text}")

    def splice(self, lines: Sequence[str], declared: Mapping[str, str]) -> None:
        """Append straight code that was made elsewhere, and what it declares."""
        assert self._is_open, "nothing is reached here"
        self._pending = None
        self._lines += lines
        self.declared.update(declared)

    def call(self, name: str, result: Type, *arguments: Value) -> Value:
        """Call a function of the module; what it returns is of type `result`."""
        given = ", ".join(f"{each.type.text} {each.text}" for each in arguments)
        text = f"call {result.text} {name}({given})"
        if result == VOID:
            self.do(text)
            return Value(self, "", VOID)
        return self.emit(text, result)

    def intrinsic(
        self, name: str, result: Type, *arguments: Value, of: Type | None = None
    ) -> Value:
        """Call a function of LLVM, such as `sqrt`; `of` is the type in its name."""
        full = f"@llvm.{name}.{(of or result).suffix}"
        kinds = ", ".join(each.type.text for each in arguments)
        self.declared[full] = f"declare {result.text} {full}({kinds})"
        return self.call(full, result, *arguments)

    def count_trailing_zeros(self, bits: Value) -> Value:
        """Return the position of the lowest bit of an integer that is not 0."""
        return self.intrinsic("cttz", bits.type, bits, self.constant(I1, 1))

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
        name = self._name()
        self._head.append(f"  {name} = alloca [{max(1, size)} x i8], align {align}")
        return Value(self, name, PTR)

    def variable(self, kind: Type, start: Operand) -> Variable:
        """Return a variable that begins with a value."""
        name = self._name()
        self._head.append(f"  {name} = alloca {kind.text}")
        variable = Variable(self, Value(self, name, PTR), kind)
        variable.set(start)
        return variable

    # control

    @contextmanager
    def when(self, truth: Value, *, unlikely: bool = False) -> Generator[None]:
        """Run what follows only where a truth holds; `otherwise` may come behind it.

        unlikely: Whether it hardly ever does.
        """
        then, after = self.label(), self.label()
        self.branch(truth, then, after, unlikely=unlikely)
        self.start(then)
        yield
        end = len(self._lines) if self._is_open else -1
        if self._is_open:
            self.jump(after)
        self.start(after)
        self._pending = end, after

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """Run what follows where the truth of the `when` right before does not hold."""
        assert self._pending is not None, "otherwise comes right behind when"
        (end, _), after = self._pending, self.label()
        self._pending = None
        yield
        if end >= 0:
            self._lines[end] = f"  br label %{after}"
        if self._is_open:
            self.jump(after)
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
        k = self.emit("", I64)
        counter = len(self._lines) - 1
        yield k
        following = k + step
        self._lines[counter] = (
            f"  {k.text} = phi i64 [ {first.text}, %{before} ], "
            f"[ {following.text}, %{self._label} ]"
        )
        self.branch(following < last, body, after)
        self.start(after)

    @contextmanager
    def forever(self) -> Generator[Loop]:
        """Repeat what follows until it leaves the loop or returns."""
        again, after = self.label(), self.label()
        self.jump(again)
        self.start(again)
        yield Loop(self, again, after)
        if self._is_open:
            self.jump(again)
        self.start(after)

    def ret(self, value: Value | None = None) -> None:
        """Return, with a value if the function has a result."""
        self.do("ret void" if value is None else f"ret {value.type.text} {value.text}")
        self._is_open = False

    def label(self) -> str:
        """Return a new name for a block of instructions."""
        return self._name().removeprefix("%")

    def start(self, label: str) -> None:
        """Begin a block of instructions."""
        assert not self._is_open, "the block before goes on nowhere"
        self._lines.append(f"{label}:")
        self._label, self._is_open = label, True
        self._pending = None

    def jump(self, label: str) -> None:
        """Go on with another block."""
        self.do(f"br label %{label}")
        self._is_open = False

    def branch(
        self, truth: Value, yes: str, no: str, *, unlikely: bool = False
    ) -> None:
        """Go on with one of two blocks; `unlikely` if that is hardly ever `yes`."""
        weights = ", !prof !0" if unlikely else ""
        self.do(f"br i1 {truth.text}, label %{yes}, label %{no}{weights}")
        self._is_open = False

    def guard(self, truth: Value, otherwise: str) -> None:
        """Go on here where a truth holds, else with another block."""
        here = self.label()
        self.branch(truth, here, otherwise)
        self.start(here)

    # text

    def _name(self) -> str:
        self._count += 1
        return f"%x{self._count}"

    @property
    def text(self) -> str:
        """Return the whole function in the IR."""
        given = (f"{each.type.text} {each.text}" for each in self.parameters.values())
        linkage = "" if self._exported else "internal "
        head = f"define {linkage}{self.result.text} @{self.name}({', '.join(given)})"
        hints = " ".join(self._hints)
        body = ["entry:", *self._head, *self._lines]
        return "\n".join([f"{head} {hints} {{", *body, "}"])
