"""What a URDF does not hold of a cell, counted, and told once a kind."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, Final

import msgspec

from armillary.formats.diagnostic import Place, Report

__all__ = ["Losses"]

# The fields of each value that are written; any other must be at its default.
WRITTEN: Final[dict[str, frozenset[str]]] = {
    "cell": frozenset({"name", "manipulators", "mounts"}),
    "manipulator": frozenset({"name", "links", "properties"}),
    "link": frozenset(
        {
            *("name", "parent", "joint", "joint_name", "limits", "coupling"),
            *("primary", "inertia", "frames", "visuals", "collisions"),
        }
    ),
    "limit": frozenset({"lower", "upper", "velocity", "effort", "acceleration"}),
    "coupling": frozenset({"of", "multiplier", "offset"}),
    "frame": frozenset({"name", "pose"}),
    "shape": frozenset(
        {"name", "pose", "colour", "size", "radius", "length", "file", "scale"}
    ),
}


class Losses:
    """Count what is lost by its kind, in the order in which it comes up."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, kind: str) -> None:
        """Count one more of a kind."""
        self._counts[kind] += 1

    def add_others(self, noun: str, value: msgspec.Struct) -> None:
        """Count the fields of a value that are not written and not at their default.

        noun: What the value is, a key of `WRITTEN`.
        """
        for name, default in _others(type(value), noun):
            if getattr(value, name) != default:
                self.add(f"{name.replace('_', ' ')!r} of a {noun}")

    def tell(self, report: Report) -> None:
        """Report what was counted."""
        for kind, count in self._counts.items():
            times = f" ({count} times)" if count > 1 else ""
            report.warning(Place(), "not-kept", f"{kind} is not kept{times}")


@functools.cache
def _others(kind: type[msgspec.Struct], noun: str) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a type that are not written, each with its default."""
    return tuple(
        (field.name, _default(field))
        for field in msgspec.structs.fields(kind)
        if field.name not in WRITTEN[noun]
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default
