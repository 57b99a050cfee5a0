"""The arrays of a program as NumPy describes them: core dimensions and strides."""

from __future__ import annotations

from armillary.trace import Port, Program

MAX_DIMENSIONS = 3


def ufunc_signature(program: Program, *more: Port) -> str:
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
