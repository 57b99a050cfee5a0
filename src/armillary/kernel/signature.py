"""The arrays of a computation as NumPy describes them: core dimensions and strides."""

from __future__ import annotations

from typing import Protocol

from armillary.trace import Port

MAX_DIMENSIONS = 3


class Computation(Protocol):
    """What a kernel computes, a Program or a Pipeline: arrays from arrays."""

    @property
    def name(self) -> str:
        """Return what messages call it."""
        ...

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Return its inputs."""
        ...

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Return its outputs."""
        ...


def ufunc_signature(program: Computation, *more: Port) -> str:
    """Return NumPy's generalised signature, such as `(7)->(4,4)`, with more inputs."""

    def group(ports: tuple[Port, ...]) -> str:
        return ",".join(f"({','.join(map(str, port.shape))})" for port in ports)

    return f"{group((*program.inputs, *more))}->{group(program.outputs)}"


def compact_strides(shape: tuple[int, ...], real_bytes: int) -> list[int]:
    """Return the strides of a row-major array without gaps [bytes]."""
    strides: list[int] = []
    step = real_bytes
    for dimension in reversed(shape):
        strides.insert(0, step)
        step *= dimension
    return strides
