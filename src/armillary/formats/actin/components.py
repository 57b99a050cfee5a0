"""The table of joints: which element stands for which class, and its parameters.

A joint is added to the format by one row here. A class of your own needs none: it is
written under its tag, and read where `joints=[...]` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

import msgspec

from armillary.formats.actin.names import PREFIXES, local
from armillary.formats.actin.opaque import is_kept
from armillary.model.joint import Joint
from armillary.model.joints import (
    JOINT_TYPES,
    CircleTrack,
    CraigPrismatic,
    CraigRevolute,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.joints.opaque import OpaqueJoint

__all__ = ["Component", "Parameter", "components", "element_name", "row_for"]

_PLAIN_TAG: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a joint and its element.

    Attributes:
        element: Its name, as `prefix:local`.
        field: The parameter of the class.
        is_reciprocal: Whether the file holds 1 / value.
    """

    element: str
    field: str
    is_reciprocal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """How a class of joints stands in a file.

    Attributes:
        element: Its name, as `prefix:local`.
        kind: The class.
        parameters: In the order in which they are written.
        choices: Children that hold a word, with the words that mean this row: the first
            is written, the last where there is a precursor.
        precursor: Name of the element of the pose in front of the motion.
        unused: Children that may stand there, but have no meaning in this row.
        rate: The parameter by which a coordinate of the file is divided to have ours;
            none where they are the same.
        namespace: That of the prefix `own`, which stands for the token of a class.
    """

    element: str
    kind: type[Joint]
    parameters: tuple[Parameter, ...] = ()
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    precursor: str = "mn:precursor"
    unused: tuple[str, ...] = ()
    rate: str = ""
    namespace: str = ""

    @property
    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the names of its elements, each with its namespace."""
        for name in (
            self.element,
            self.precursor,
            *(choice[0] for choice in self.choices),
            *(parameter.element for parameter in self.parameters),
        ):
            prefix, _, bare = name.partition(":")
            yield bare, self.namespace if prefix == "own" else PREFIXES[prefix]

    def holds(self, joint: Joint) -> bool:
        """Return whether this row says all of a joint."""
        if type(joint) is not self.kind:
            return False
        said = {parameter.field for parameter in self.parameters} | {"precursor"}
        defaults = _defaults(self.kind)
        return all(
            name in said or getattr(joint, name) == defaults[name]
            for name in joint.__struct_fields__
        ) and all(
            self.is_omitted(joint, parameter.field)
            or (
                _is_writable(getattr(joint, parameter.field))
                and not (
                    parameter.is_reciprocal and not getattr(joint, parameter.field)
                )
            )
            for parameter in self.parameters
        )

    def is_omitted(self, joint: Joint, field: str) -> bool:
        """Return whether a parameter is left out: in elements of our own, defaults."""
        is_default = getattr(joint, field) == _defaults(self.kind)[field]
        return is_default and self.element.startswith("am:")

    def coordinate_rate(self, joint: Joint) -> float:
        """Return the change of our coordinate for one of the file's."""
        return 1.0 / float(getattr(joint, self.rate)) if self.rate else 1.0


_FOUR: Final = ("theta", "d", "a", "alpha")
_DH: Final = tuple(Parameter(f"mn:{name}", name) for name in _FOUR)


def _dh(
    revolute: type[Joint], prismatic: type[Joint], *types: str
) -> tuple[Component, Component]:
    """Return the rows of one order of Denavit and Hartenberg."""
    has_four = types != ("GENERAL",)
    turning, sliding = (
        Component(
            element="mn:denavitHartenberg",
            kind=kind,
            parameters=_DH if has_four else (),
            choices=(("mn:dhType", types), ("mn:jointType", (motion,))),
            unused=() if has_four else tuple(f"mn:{name}" for name in _FOUR),
        )
        for kind, motion in ((revolute, "ROTATIONAL"), (prismatic, "PRISMATIC"))
    )
    return turning, sliding


ACTINS: Final = (
    *_dh(PaulRevolute, PaulPrismatic, "PAUL", "GEN_PAUL"),
    *_dh(CraigRevolute, CraigPrismatic, "CRAIG", "GEN_CRAIG"),
    *_dh(Revolute, Prismatic, "GENERAL"),
    # Actin's pitch is rotation per length, and its coordinate the length.
    Component(
        element="mn:screwTypeLink",
        kind=Screw,
        parameters=(Parameter("mn:pitch", "pitch", is_reciprocal=True),),
        rate="pitch",
    ),
    Component(
        element="mynamespace:circleJoint",
        kind=CircleTrack,
        parameters=(Parameter("mynamespace:circleJointRadius", "radius"),),
        precursor="mynamespace:circleJointPrecursor",
    ),
)
"""Actin's own joints and the seed's; the first row that holds a joint is written."""


def components(own: Mapping[str, type[Joint]]) -> tuple[Component, ...]:
    """Return all rows: Actin's, then one for each class of ours and of the caller's.

    A class with a token replaces the rows whose element has the same name.
    """
    kinds = [*JOINT_TYPES.values(), *own.values()]
    rows = [row for row in map(_row_of, kinds) if row is not None]
    taken = {local(row.element).lower() for row in rows if row.namespace}
    return (
        *(row for row in rows if row.namespace),
        *(
            row
            for row in (*ACTINS, *rows)
            if not row.namespace and local(row.element).lower() not in taken
        ),
    )


def row_for(joint: Joint) -> Component | None:
    """Return the row under which a joint is written, None where there is none."""
    own = _row_of(type(joint))
    rows = ACTINS if own is None else (*ACTINS, own)
    return next((row for row in rows if row.holds(joint)), None)


@cache
def _row_of(kind: type[Joint]) -> Component | None:
    """Return the row of a class that is none of Actin's; None if none is possible.

    It is not where the tag is no name, or two parameters differ by case alone.
    """
    namespace, _, name = kind.token.rpartition("#")
    name = name or element_name(kind.tag)
    if not _PLAIN_TAG.fullmatch(name):
        return None
    reserved = {local(row.element).lower() for row in ACTINS}
    if not namespace and name.lower() in reserved:
        return None
    fields = [field for field in kind.__struct_fields__ if field != "precursor"]
    elements = [element_name(field) for field in fields]
    if len({each.lower() for each in elements}) < len(fields):
        return None
    prefix = "own" if namespace else "am"
    return Component(
        element=f"{prefix}:{name}",
        kind=kind,
        parameters=tuple(
            Parameter(f"{prefix}:{element}", field)
            for element, field in zip(elements, fields, strict=True)
        ),
        namespace=namespace,
    )


def _is_writable(value: Any) -> bool:
    """Return whether an element can hold a value: numbers, true or false, joints."""
    if isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        return len(items) > 1 and (
            all(type(item) in {int, float} for item in items)
            or all(isinstance(item, Joint) and _is_writable(item) for item in items)
        )
    if isinstance(value, OpaqueJoint):
        return is_kept(value)
    if isinstance(value, Joint):
        return row_for(value) is not None
    return type(value) in {bool, int, float}


def element_name(name: str) -> str:
    """Return a name as Actin would spell it: `oval_track` is ovalTrack."""
    first, *rest = [part for part in name.split("_") if part] or [""]
    return first[:1].lower() + first[1:] + "".join(p[:1].upper() + p[1:] for p in rest)


@cache
def _defaults(kind: type[Joint]) -> dict[str, Any]:
    """Return the default of each parameter of a class; required ones have a mark."""
    names, values = kind.__struct_fields__, kind.__struct_defaults__
    bare = len(names) - len(values)
    return dict.fromkeys(names[:bare], msgspec.NODEFAULT) | dict(
        zip(names[bare:], values, strict=True)
    )
