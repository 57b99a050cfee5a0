"""Lanes of a vector in an order that is known only when the code runs.

LLVM has no instruction for this, and its own code for it takes the lanes through memory
one by one. So the instructions of some machines are named here.
"""

from __future__ import annotations

from armillary.kernel.builder import Value
from armillary.kernel.machine_type import F64, I32, Type, real_of

__all__ = ["can_permute", "permuted"]

_FOUR, _EIGHT = F64.wide(4), F64.wide(8)
_FEATURES = {_FOUR: "+avx2", _EIGHT: "+avx512f"}


def can_permute(real: Type, features: str) -> bool:
    """Return whether a machine has an instruction for it.

    Args:
        real: The vector.
        features: Of the machine, as LLVM lists them.
    """
    return _FEATURES.get(real) in features.split(",")


def permuted(value: Value, order: Value) -> Value:
    """Return a vector whose lane k is the lane order[k] of another.

    Args:
        value: A vector for which `can_permute` holds.
        order: Integers of 64 bits, within its lanes.
    """
    real = value.type
    if real == _EIGHT:
        return _called("@llvm.x86.avx512.permvar.df.512", value, order)
    # AVX2 has it for halves of numbers alone: 2 k and 2 k + 1 in place of k.
    halves = I32.wide(2 * real.lanes)
    low = order << 1
    both = (low | (low << 32)) + (1 << 32)
    as_halves = value.to(real_of(32, halves.lanes), "bitcast")
    found = _called("@llvm.x86.avx2.permps", as_halves, both.to(halves, "bitcast"))
    return found.to(real, "bitcast")


def _called(name: str, value: Value, order: Value) -> Value:
    f, kind = value.function, value.type.text
    f.declared[name] = f"declare {kind} {name}({kind}, {order.type.text})"
    return f.call(name, value.type, value, order)
