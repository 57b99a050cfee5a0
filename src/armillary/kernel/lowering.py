"""How each operation of the table is written in LLVM IR.

The key is the `lowering` of the operation in `trace/ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias, final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.intrinsics import (
    exponential,
    hyperbolic,
    inverse_trig,
    logarithm,
    minmax,
    power,
    remainder,
    roots,
    trig,
)
from armillary.kernel.machine_type import F64, I1, Type, bits_of_lanes

Unary: TypeAlias = Callable[[Value], Value]
Binary: TypeAlias = Callable[[Value, Value], Value]
Ternary: TypeAlias = Callable[[Value, Value, Value], Value]

UNARY: dict[str, Unary] = {
    "neg": lambda x: -x,
    "sqrt": lambda x: x.sqrt(),
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": inverse_trig.asin,
    "acos": inverse_trig.acos,
    "atan": inverse_trig.atan,
    "exp": exponential.exp,
    "log": logarithm.log,
    "abs": abs,
    "sign": minmax.sign,
    "floor": lambda x: x.intrinsic("floor"),
    "round": lambda x: x.intrinsic("rint"),
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "cbrt": roots.cbrt,
    "not": lambda x: ~x,
    "is_single": lambda x: x.function.constant(
        I1.wide(x.type.lanes), x.type.bits == 32
    ),
}
BINARY: dict[str, Binary] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "atan2": inverse_trig.atan2,
    "pow": power.power,
    "hypot": roots.hypot,
    "min": minmax.minimum,
    "max": minmax.maximum,
    "fmod": remainder.fmod,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x.equals(y),
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
}
TERNARY: dict[str, Ternary] = {
    "select": lambda truth, x, y: truth.select(x, y),
}
LOWERING: dict[str, Callable[..., Value]] = {**UNARY, **BINARY, **TERNARY}
FUSED: dict[str, Binary] = {
    "add": lambda x, y: x.contracted("fadd", y),
    "sub": lambda x, y: x.contracted("fsub", y),
    "mul": lambda x, y: x.contracted("fmul", y),
}


# Operations of many instructions.
LONG = frozenset({"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log"}) | {
    *("atan2", "pow", "hypot", "fmod")
}


@lru_cache
def length_of(key: str) -> int:
    """Return about how many instructions an operation is."""
    if key not in LONG:
        return 1
    real = F64.wide(4)
    f = FunctionBuilder("length", x=real, y=real)
    lower(key, [f["x"]] if key in UNARY else [f["x"], f["y"]])
    return f.length


def lower(
    key: str, args: Sequence[Value], *, fused: bool = False, outlined: bool = False
) -> Value:
    """Append the instructions of one operation and return its result.

    Args:
        key: The `lowering` of the operation.
        args: Its arguments, of the function that the instructions go to.
        fused: Whether a product may be rounded together with the sum it goes into.
        outlined: Whether a long operation is called, not repeated at each use.
    """
    # Sine and cosine are one function of two results.
    if outlined and key in LONG:
        results = _outlined(args[0].type, key).called(args)
        return results[1] if key == "cos" else results[0]
    rule = FUSED.get(key) if fused else None
    return (rule or LOWERING[key])(*args)


@final
@dataclass(frozen=True)
class _Outlined:
    """A long operation as a function, which returns reals and the flagged lanes.

    Attributes:
        function: The function; it returns a structure.
        count: The number of reals.
        flags: Whether it ever flags a lane.
    """

    function: FunctionBuilder
    count: int
    flags: bool

    def called(self, args: Sequence[Value]) -> list[Value]:
        """Return its results; a second call with the same arguments is left out."""
        caller, name = args[0].function, self.function.name
        # LLVM does not know that a call of the same arguments returns the same.
        key = name, *(x.text for x in args)
        return caller.once(key, lambda: self._called(caller, args))

    def _called(self, caller: FunctionBuilder, args: Sequence[Value]) -> list[Value]:
        caller.needs(self.function)
        real = args[0].type
        made = caller.call(f"@{self.function.name}", self.function.result, *args)
        kinds = [*[real] * self.count, bits_of_lanes(real.lanes)]
        *results, flags = (
            caller.emit(f"extractvalue {made.type.text} {made.text}, {k}", kind)
            for k, kind in enumerate(kinds)
        )
        if self.flags:
            caller.flag(flags.to(I1.wide(real.lanes), "bitcast"))
        return results


@lru_cache
def _outlined(real: Type, key: str) -> _Outlined:
    """Return the function of a long operation; sine and cosine are one."""
    is_pair = key in {"sin", "cos"}
    count, arity = 2 if is_pair else 1, 1 if key in UNARY else 2
    bits = bits_of_lanes(real.lanes)
    kinds = [*[real] * count, bits]
    result = Type(f"{{ {', '.join(kind.text for kind in kinds)} }}")
    name = "sincos" if is_pair else key
    parameters = {f"a{k}": real for k in range(arity)}
    f = FunctionBuilder(name, result, more=parameters)
    args = [f[name] for name in parameters]
    parts = [*trig.sincos(*args)] if is_pair else [LOWERING[key](*args)]
    flagged = f.taken_flags()
    mask = f.constant(bits, 0) if flagged is None else flagged.packed()
    # A structure is put together field by field.
    whole = Value(f, "poison", result)
    for k, part in enumerate([*parts, mask]):
        value = f"{part.type.text} {part.text}"
        whole = f.emit(f"insertvalue {result.text} {whole.text}, {value}, {k}", result)
    f.ret(whole)
    return _Outlined(f, count, flagged is not None)
