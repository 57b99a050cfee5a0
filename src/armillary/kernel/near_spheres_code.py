"""The code that finds pairs of spheres that are near each other: a broad phase.

Spheres are fixed to frames, and which pairs count is a bit for each. All others are
compared with a sphere eight at a time, which is faster than to sort them as long as
they are not many thousands.
"""

from __future__ import annotations

from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import F64, I8, I64, PTR

__all__ = ["near_spheres"]

AT_ONCE: Final = 8
"""Spheres that are compared with one at once: the bits of a byte."""

ROUNDING: Final = 1e-14
"""By which part of the largest coordinate or radius spheres are taken to be larger.

Centres are sums of four products, distances of three more: they are wrong by less.
"""

POSE: Final = 12
"""Numbers of a pose, by rows."""


def near_spheres() -> FunctionBuilder:
    """Write the function that returns how many pairs of spheres are near.

    Its parameters are contiguous arrays of 64 bits, and numbers:

    - X: Poses of frames, shape (f, 3, 4).
    - frames: The frame of each sphere, integers, shape (n,).
    - centres: In these frames, shape (n, 3).
    - radii: At least 0, shape (n,); what is infinite is near everything.
    - bits: Which pairs count: bit j of row i, where i < j, in bytes, shape (n, n / 8).
    - count: n.
    - within: How near; NaN is near everything.
    - points: Memory for 4 n numbers, with n rounded up to a multiple of 8.
    - found: Memory for i n + j of each pair that is near, in order.
    - room: For how many of them; more are counted alone.
    """
    f = FunctionBuilder(
        "near_spheres",
        I64,
        exported=True,
        X=PTR,
        frames=PTR,
        centres=PTR,
        radii=PTR,
        bits=PTR,
        count=I64,
        within=F64,
        points=PTR,
        found=PTR,
        room=I64,
    )
    count = f["count"]
    blocks = (count + (AT_ONCE - 1)) >> (AT_ONCE.bit_length() - 1)
    padded = blocks * AT_ONCE
    # Centres in the world, then radii: a column after the other.
    columns = [f.element(f["points"], F64, padded * k) for k in range(4)]
    extent = f.variable(F64, 0.0)
    with f.loop(count) as k:
        X = f.element(f["X"], F64, f.load(I64, f["frames"], k) * POSE)
        centre = [f.load(F64, f["centres"], k * 3 + axis) for axis in range(3)]
        numbers = [_coordinate(f, X, axis, centre) for axis in range(3)]
        numbers.append(f.load(F64, f["radii"], k))
        for number, column in zip(numbers, columns, strict=True):
            f.store(number, column, k)
            # Half spaces are infinite, and NaN is near everything.
            size = abs(number)
            is_more = (size > extent.get()) & (size < float("inf"))
            extent.set(is_more.select(size, extent.get()))
    larger = f["within"] + extent.get() * ROUNDING
    total, wide = f.variable(I64, 0), F64.wide(AT_ONCE)
    with f.loop(count) as i:
        *point, radius = [f.load(F64, column, i).splat(AT_ONCE) for column in columns]
        radius = radius + larger.splat(AT_ONCE)
        tested = f.element(f["bits"], I8, i * blocks)
        with f.loop(blocks, i >> (AT_ONCE.bit_length() - 1)) as block:
            first = block * AT_ONCE
            *others, reach = [
                f.load(wide, f.element(column, F64, first), align=F64.bytes)
                for column in columns
            ]
            square = _square(point, others)
            reach = reach + radius
            is_apart = square > reach * reach  # not of NaN
            mask = (~is_apart).packed() & f.load(I8, tested, block)
            with f.when(mask.differs(0), unlikely=True):
                left = f.variable(I64, mask.to(I64, "zext"))
                with f.forever() as loop:
                    j = first + f.count_trailing_zeros(left.get())
                    with f.when(total.get() < f["room"]):
                        f.store(i * count + j, f["found"], total.get())
                    total.set(total.get() + 1)
                    left.set(left.get() & (left.get() - 1))
                    loop.leave(left.get().equals(0))
    f.ret(total.get())
    return f


def _coordinate(f: FunctionBuilder, X: Value, axis: int, centre: list[Value]) -> Value:
    """Return a coordinate of a point of a frame in the world."""
    turned, shift = (f.load(F64, X, 4 * axis + k) for k in range(3)), 4 * axis + 3
    found = f.load(F64, X, shift)
    for number, factor in zip(turned, centre, strict=True):
        found = found.contracted("fadd", number.contracted("fmul", factor))
    return found


def _square(point: list[Value], others: list[Value]) -> Value:
    """Return the squares of distances."""
    found: Value | None = None
    for a, b in zip(point, others, strict=True):
        between = a - b
        one = between.contracted("fmul", between)
        found = one if found is None else found.contracted("fadd", one)
    assert found is not None
    return found
