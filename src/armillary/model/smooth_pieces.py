"""Where a traced function is smooth: between the places at which its choices change."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.trace import Op, Program
from armillary.trace.program import evaluate

Array = npt.NDArray[np.float64]

HALVINGS: Final = 60


def choices(program: Program, q: Array) -> Array:
    """Return all that a program of one number decides on its way.

    Two neighbouring coordinates with the same choices lie on one smooth piece.

    Args:
        program: Of one scalar input.
        q: Coordinates, shape (n,).

    Returns:
        Shape (n, decisions).
    """
    found: list[Array] = []

    def meaning(thing: Op | float) -> Any:
        if not isinstance(thing, Op):
            return thing
        return _watched(thing, found)

    with np.errstate(all="ignore"):
        evaluate(program, [q], meaning)
    columns = [np.broadcast_to(np.nan_to_num(column), q.shape) for column in found]
    return np.stack(columns, axis=-1) if columns else np.zeros((len(q), 0))


def _watched(op: Op, found: list[Array]) -> Any:
    def apply(*args: Any) -> Any:
        result = op.on_arrays(*args)
        decision = _decision(op.name, args, result)
        if decision is not None:
            found.append(np.asarray(decision, dtype=np.float64))
        return result

    return apply


def _decision(name: str, args: tuple[Any, ...], result: Any) -> Any:
    match name:
        case "lt" | "le" | "eq" | "floor" | "sign":
            return result
        case "abs":
            return np.sign(args[0])
        case "min" | "max":
            return np.less_equal(*args)
        case "fmod":
            return np.trunc(np.divide(*args))
        case _:
            return None


def edges(program: Program, q: Array) -> Array:
    """Return places at which choices change, each between two neighbouring numbers.

    Args:
        program: Of one scalar input.
        q: Coordinates between which they are looked for, rising, shape (n,).

    Returns:
        The numbers before and after each, shape (changes, 2).
    """
    decided = choices(program, q)
    changes = np.flatnonzero((decided[1:] != decided[:-1]).any(axis=1))
    low, high, first = q[changes], q[changes + 1], decided[changes]
    for _ in range(HALVINGS if len(changes) else 0):
        middle = 0.5 * (low + high)
        is_alike = (choices(program, middle) == first).all(axis=1)
        low, high = np.where(is_alike, middle, low), np.where(is_alike, high, middle)
    return np.stack([low, high], axis=1)
