"""A stretch of straight-line LLVM IR under construction, on vectors or scalars.

A value is the text that stands for it in the IR: `%12` or a constant. There are three
kinds: reals (`<4 x double>`), integers as wide as the reals (`<4 x i64>`), and truths
(`<4 x i1>`). With one lane they are plain scalars, as a GPU wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from armillary.kernel.machine_type import I1, Type, real_of

Value = str

# A product and the sum it goes into may be rounded once, and zeros lose their signs.
# Nothing is reordered, which could overflow, and NaN in is NaN out.
FUSED = "contract nsz "


@dataclass(frozen=True)
class LaneType:
    """The machine type of the values: the bits of a real and the number of lanes."""

    bits: int
    lanes: int

    @cached_property
    def number(self) -> Type:
        """Return the type of one real."""
        return real_of(self.bits)

    @cached_property
    def scalar(self) -> str:
        """Return the IR type of one real."""
        return self.number.text

    @cached_property
    def real(self) -> str:
        """Return the IR type of a value of reals."""
        return self.number.wide(self.lanes).text

    @cached_property
    def integer(self) -> str:
        """Return the IR type of a value of integers."""
        return Type(f"i{self.bits}", self.lanes).text

    @cached_property
    def truth(self) -> str:
        """Return the IR type of a value of truths."""
        return I1.wide(self.lanes).text

    @cached_property
    def suffix(self) -> str:
        """Return the ending of an intrinsic's name for reals, such as `v4f64`."""
        return self.number.wide(self.lanes).suffix

    @cached_property
    def bytes(self) -> int:
        """Return the size of one real."""
        return self.number.bytes


@dataclass(frozen=True, slots=True)
class Outlined:
    """A function of reals that returns reals and the mask of the lanes it flags.

    Attributes:
        name: Of the function.
        result: The type that it returns.
        count: How many reals.
        flags: Whether it ever flags a lane.
        declared: Its text, and what it needs, by name.
    """

    name: str
    result: str
    count: int
    flags: bool
    declared: dict[str, str]

    @classmethod
    def of(
        cls,
        shape: LaneType,
        name: str,
        arity: int,
        body: Callable[..., Sequence[Value]],
    ) -> Outlined:
        """Return the function that computes what `body` appends to a block."""
        b = VectorBuilder(shape)
        results = body(b, *(f"%a{k}" for k in range(arity)))
        mask = b.flag_mask()
        kinds = [*[shape.real] * len(results), f"i{shape.lanes}"]
        result = f"{{ {', '.join(kinds)} }}"
        value = "poison"
        for k, (kind, part) in enumerate(zip(kinds, [*results, mask], strict=True)):
            value = b.emit(f"insertvalue {result} {value}, {kind} {part}, {k}")
        given = ", ".join(f"{shape.real} %a{k}" for k in range(arity))
        head = f"define internal {result} @{name}({given}) #0 {{"
        text = "\n".join([head, *b.lines, f"  ret {result} {value}", "}"])
        declared = {**b.declared, f"@{name}": text}
        return cls(name, result, len(results), b.flagged is not None, declared)


class VectorBuilder:
    """Collect instructions and hand out names.

    The methods are named after LLVM's instructions. With `fused=True` a product and a
    sum may become one instruction; the intrinsics, which rely on exact rounding, leave
    it off and ask for `fma` by name.
    """

    def __init__(
        self, shape: LaneType, *, outlined: bool = False, prefix: str = "v"
    ) -> None:
        """Start an empty block for values of `shape`.

        Args:
            shape: The values.
            outlined: Whether long operations are called, not repeated at each use.
            prefix: What names begin with; of its own for each of several blocks that
                become one function.
        """
        self.shape = shape
        self._real = shape.number.wide(shape.lanes)
        self._prefix = prefix
        self.outlined = outlined
        self._called: dict[tuple[str, ...], list[Value]] = {}
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.shared: dict[tuple[str, Value], tuple[Value, Value]] = {}
        self.flagged: Value | None = None
        self.largest: dict[float, Value] = {}
        self._count = 0

    def fresh(self) -> Value:
        """Return a new name."""
        self._count += 1
        return f"%{self._prefix}{self._count}"

    def emit(self, text: str) -> Value:
        """Append an instruction and return the name of its result."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    # constants

    def real(self, number: float) -> Value:
        """Return a constant real, rounded to the block's precision."""
        return self._real.constant(number)

    def integer(self, number: int) -> Value:
        """Return a constant integer."""
        return Type(f"i{self.shape.bits}", self.shape.lanes).constant(number)

    def truth(self, value: bool) -> Value:
        """Return a constant truth."""
        return I1.wide(self.shape.lanes).constant(value)

    # reals

    def _arithmetic(self, name: str, x: Value, y: Value, fused: bool) -> Value:
        return self.emit(f"{name} {FUSED if fused else ''}{self.shape.real} {x}, {y}")

    def fadd(self, x: Value, y: Value, *, fused: bool = False) -> Value:
        """Return x + y."""
        return self._arithmetic("fadd", x, y, fused)

    def fsub(self, x: Value, y: Value, *, fused: bool = False) -> Value:
        """Return x - y."""
        return self._arithmetic("fsub", x, y, fused)

    def fmul(self, x: Value, y: Value, *, fused: bool = False) -> Value:
        """Return x y."""
        return self._arithmetic("fmul", x, y, fused)

    def fdiv(self, x: Value, y: Value) -> Value:
        """Return x / y."""
        return self._arithmetic("fdiv", x, y, fused=False)

    def fneg(self, x: Value) -> Value:
        """Return -x."""
        return self.emit(f"fneg {self.shape.real} {x}")

    def call(self, intrinsic: str, *args: Value) -> Value:
        """Return an LLVM intrinsic of reals, such as `sqrt`, `floor`, `fabs`."""
        real = self.shape.real
        name = f"@llvm.{intrinsic}.{self.shape.suffix}"
        kinds = ", ".join([real] * len(args))
        self.declared[name] = f"declare {real} {name}({kinds})"
        return self.emit(
            f"call {real} {name}({', '.join(f'{real} {arg}' for arg in args)})"
        )

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """Return x y + z, rounded once."""
        return self.call("fma", x, y, z)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Return sum_k coefficients[k] x^k by Horner's rule with fused steps."""
        *rest, top = coefficients
        result = self.real(top)
        for coefficient in reversed(rest):
            result = self.fma(result, x, self.real(coefficient))
        return result

    def fcmp(self, relation: str, x: Value, y: Value) -> Value:
        """Return a comparison: `olt`, `ole`, `oeq`, `une`, `uno`, ..."""
        return self.emit(f"fcmp {relation} {self.shape.real} {x}, {y}")

    def select(self, truth: Value, x: Value, y: Value, *, kind: str = "real") -> Value:
        """Return x where `truth` holds, else y; `kind` is their kind."""
        if not truth.startswith("%"):
            return x if truth == self.truth(True) else y
        wide = getattr(self.shape, kind)
        return self.emit(f"select {self.shape.truth} {truth}, {wide} {x}, {wide} {y}")

    def outlined_call(self, function: Outlined, args: Sequence[Value]) -> list[Value]:
        """Return what a function of its own computes of reals."""
        known = self._called.get((function.name, *args))
        if known is not None:
            return known
        self.declared.update(function.declared)
        given = ", ".join(f"{self.shape.real} {arg}" for arg in args)
        made = self.emit(f"call {function.result} @{function.name}({given})")
        *found, flags = (
            self.emit(f"extractvalue {function.result} {made}, {k}")
            for k in range(function.count + 1)
        )
        if self.shape.lanes > 1:
            mask = f"i{self.shape.lanes}"
            flags = self.emit(f"bitcast {mask} {flags} to {self.shape.truth}")
        if function.flags:
            self.flag(flags)
        self._called[function.name, *args] = found
        return found

    # integers and bits

    def bits(self, x: Value) -> Value:
        """Return the bits of a real as an integer."""
        return self.emit(f"bitcast {self.shape.real} {x} to {self.shape.integer}")

    def from_bits(self, x: Value) -> Value:
        """Return the real with these bits."""
        return self.emit(f"bitcast {self.shape.integer} {x} to {self.shape.real}")

    def integers(self, name: str, x: Value, y: Value) -> Value:
        """Return an integer operation: `add`, `sub`, `and`, `or`, `xor`, `shl`, ..."""
        return self.emit(f"{name} {self.shape.integer} {x}, {y}")

    def icmp(self, relation: str, x: Value, y: Value) -> Value:
        """Return a comparison of integers: `eq`, `ne`, `slt`, ..."""
        return self.emit(f"icmp {relation} {self.shape.integer} {x}, {y}")

    # memory

    def load_slot(self, pointer: Value, slot: int, kind: str) -> Value:
        """Return the value of a slot of scratch memory; truths are kept as reals."""
        address = self._slot(pointer, slot)
        align = f"align {self.shape.bytes * self.shape.lanes}"
        real = self.emit(f"load {self.shape.real}, ptr {address}, {align}")
        return real if kind == "real" else self.fcmp("une", real, self.real(0.0))

    def store_slot(self, pointer: Value, slot: int, value: Value, kind: str) -> None:
        """Keep a value in a slot of scratch memory."""
        if kind == "truth":
            value = self.select(value, self.real(1.0), self.real(0.0))
        address = self._slot(pointer, slot)
        align = f"align {self.shape.bytes * self.shape.lanes}"
        self.lines.append(f"  store {self.shape.real} {value}, ptr {address}, {align}")

    def _slot(self, pointer: Value, slot: int) -> Value:
        return self.emit(f"getelementptr {self.shape.real}, ptr {pointer}, i64 {slot}")

    # truths

    def truths(self, name: str, x: Value, y: Value) -> Value:
        """Return `and`, `or` or `xor` of truths."""
        return self.emit(f"{name} {self.shape.truth} {x}, {y}")

    def flag(self, truth: Value) -> None:
        """Note lanes for which a formula is not good enough.

        The finished kernel computes flagged lanes again, by the slower evaluator that
        is right everywhere.
        """
        known = self.flagged
        self.flagged = truth if known is None else self.truths("or", known, truth)

    def limit(self, size: Value, bound: float) -> None:
        """Flag the lanes in which `size` exceeds `bound`; NaN does not.

        The largest size noted for a bound, or 0, is compared once, at the end.
        """
        largest = self.largest.get(bound, self.real(0.0))
        greater = self.fcmp("ogt", size, largest)
        self.largest[bound] = self.select(greater, size, largest)

    def flagged_lanes(self) -> Value:
        """Return which lanes were flagged, a truth."""
        for bound, largest in self.largest.items():
            self.flag(self.fcmp("ogt", largest, self.real(bound)))
        self.largest.clear()
        return self.flagged or self.truth(False)

    def flag_mask(self) -> Value:
        """Return the flagged lanes as an integer of one bit for each, lane 0 lowest."""
        lanes = self.flagged_lanes()
        if self.flagged is None:
            return "0"
        count = self.shape.lanes
        if count == 1:
            return lanes
        return self.emit(f"bitcast {self.shape.truth} {lanes} to i{count}")
