"""How a question to a cell becomes a kernel, each made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.equations.selection import Selection
from armillary.errors import ModelError
from armillary.kernel import Kernel, shared_kernel
from armillary.model.workcell import Workcell
from armillary.solve.scene import Scene
from armillary.trace import Program

__all__ = ["Joints", "joints_key", "kernel_of", "selection_of"]

Joints = Sequence[str] | None


def kernel_of(
    cell: Workcell,
    key: Any,
    make: Callable[[], Program],
    dtype: npt.DTypeLike = np.float64,
) -> Kernel:
    """Return the kernel of a question to a cell, which keeps it.

    key: Equal for equal questions, `dtype` among them.
    """
    known: dict[Any, Kernel] = vars(cell).setdefault("kernels", {})
    kernel = known.get(key)
    if kernel is None:
        kernel = known.setdefault(key, shared_kernel(make(), dtype=dtype))
    return kernel


def selection_of(cell: Scene, joints: Joints) -> Selection:
    """Return which joints are inputs, by name, all by default; the rest is at home.

    Raises:
        UnknownName: A joint does not exist.
        ModelError: A bare name is not unique, or one is named twice.
    """
    rest = cell.home.q
    if joints is None:
        return Selection(tuple(range(len(rest))), rest)
    if isinstance(joints, str):
        raise ModelError(f"joints= takes a list of names, not the text '{joints}'.")
    places = tuple(cell.joint(name) for name in joints)
    if len(set(places)) < len(places):
        raise ModelError(f"joints= names a joint twice: {list(joints)}.")
    return Selection(places, rest)


def joints_key(joints: Joints) -> tuple[str, ...] | str | None:
    """Return names of joints as a part of the key of a question."""
    return joints if joints is None or isinstance(joints, str) else tuple(joints)
