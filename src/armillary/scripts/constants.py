"""The constants that scripts import from `vcPythonKinematics`."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from armillary.scripts.matrix import ScriptMatrix
from armillary.scripts.vector import ScriptVector

__all__ = ["CONSTANTS", "SolutionWarning", "default_of"]


class SolutionWarning(IntEnum):
    """What a script says of a solution."""

    REACHABLE = 0
    UNREACHABLE = 1
    SINGULARITY = 2
    JOINT_LIMIT = 3


KINDS: Final[dict[str, Any]] = {
    "VC_BOOLEAN": lambda: False,
    "VC_INTEGER": lambda: 0,
    "VC_REAL": lambda: 0.0,
    "VC_STRING": lambda: "",
    "VC_VECTOR": ScriptVector,
    "VC_MATRIX": ScriptMatrix,
}
"""The kinds of properties, and what makes the value that a new one has."""

CONSTRAINTS: Final = (
    "VC_PROPERTY_DEFAULT",
    "VC_PROPERTY_STEP",
    "VC_PROPERTY_LIMIT",
)

CONSTANTS: Final[dict[str, Any]] = {
    **{f"VC_SOLUTION_{each.name}": int(each) for each in SolutionWarning},
    **{name: name for name in (*KINDS, *CONSTRAINTS)},
}


def default_of(kind: Any) -> Any:
    """Return the value of a new property of a kind, None of an unknown one."""
    make = KINDS.get(kind) if isinstance(kind, str) else None
    return None if make is None else make()
