"""The table of joints: which element each class has, and its parameters.

A joint is added to the format by one row here. A class of your own needs none: its
element has the name of its tag, or is its token, and is read if `joints=[...]` has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast, get_args

import msgspec

from armillary.errors import JointError, quote
from armillary.formats.actin.names import PREFIXES, allowed_in, bare, local
from armillary.formats.actin.opaque import is_kept
from armillary.formats.records import PRECURSOR, defaults_of
from armillary.model.joint import Joint
from armillary.model.joints import (
    JOINT_TYPES,
    CircleTrack,
    CraigPrismatic,
    CraigRevolute,
    FourBarSlider,
    PaulPrismatic,
    PaulRevolute,
    Prismatic,
    Revolute,
    Screw,
)
from armillary.model.joints.opaque import OpaqueJoint

PLAIN_TAG: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """The element of a class of joints. Names of elements are `prefix:local`.

    Attributes:
        element: Its name.
        kind: The class.
        parameters: The element and the field of each parameter, in their order.
        choices: Children that hold a word, with the words of this row: the first is
            written, the last if there is a precursor.
        precursor: Name of the element of the pose in front of the motion.
        unused: Children that may be there, but have no meaning in this row.
        zeros: Children that may be there, but must be 0: the class has no field for it.
        constants: Fields that have the same value in all joints of this row.
        reciprocal: The parameter whose reciprocal the file holds; a coordinate of the
            file is ours times that parameter.
        namespace: That of the prefix `own`, of the token of a class.
    """

    element: str
    kind: type[Joint]
    parameters: tuple[tuple[str, str], ...] = ()
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    precursor: str = "mn:precursor"
    unused: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()
    reciprocal: str = ""
    namespace: str = ""

    @property
    def names(self) -> Iterator[tuple[str, str]]:
        """Yield the local names of its elements, each with its namespace."""
        for name, *_ in (
            (self.element,),
            (self.precursor,),
            *self.choices,
            *self.parameters,
            *((each,) for each in (*self.unused, *self.zeros)),
        ):
            prefix, _, plain = name.partition(":")
            yield plain, self.namespace if prefix == "own" else PREFIXES[prefix]

    @property
    def space(self) -> str:
        """Return the namespace of its element, without `#` at the end."""
        return bare(next(self.names)[1])

    def is_in(self, namespace: str) -> bool:
        """Return whether the element may be in a namespace."""
        return bare(namespace) in allowed_in(self.space)

    @property
    def is_ours(self) -> bool:
        """Return whether Actin does not know the element, which we name after a tag."""
        return self.element.startswith("am:")

    def holds(self, joint: Joint) -> bool:
        """Return whether this row says all of a joint."""
        if type(joint) is not self.kind:
            return False
        written = {field for _, field in self.parameters}
        constants = dict(self.constants)
        for field in joint.__struct_fields__:
            value = getattr(joint, field)
            if field == PRECURSOR or self.is_omitted(joint, field):
                continue
            if field in constants:
                if value != constants[field]:
                    return False
            elif field in written:
                is_vectors = row_width(self.kind, field) is not None
                if not (is_vectors or _is_writable(value)) or (
                    field == self.reciprocal and not value
                ):
                    return False
            elif value != defaults_of(self.kind)[field]:
                return False
        return True

    def is_omitted(self, joint: Joint, field: str) -> bool:
        """Return whether a parameter is left out: in elements of ours, defaults."""
        return self.is_ours and getattr(joint, field) == defaults_of(self.kind)[field]

    def rate(self, joint: Joint) -> float:
        """Return the change of our coordinate for one of the file's."""
        return 1.0 / getattr(joint, self.reciprocal) if self.reciprocal else 1.0


_FOUR: Final = ("theta", "d", "a", "alpha")


def _dh(
    revolute: type[Joint], prismatic: type[Joint], *types: str
) -> tuple[Component, Component]:
    """Return the rows of one order of Denavit and Hartenberg."""
    has_four = types != ("GENERAL",)
    turning, sliding = (
        Component(
            element="mn:denavitHartenberg",
            kind=kind,
            parameters=tuple((f"mn:{f}", f) for f in _FOUR) if has_four else (),
            choices=(("mn:dhType", types), ("mn:jointType", (motion,))),
            unused=() if has_four else tuple(f"mn:{f}" for f in _FOUR),
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
        parameters=(("mn:pitch", "pitch"),),
        reciprocal="pitch",
    ),
    *(
        Component(
            element="mn:quadrilateralTypeLink",
            kind=FourBarSlider,
            choices=(("mn:sliderType", (word,)),),
            parameters=(
                ("mn:nominalSliderLength", "nominal"),
                ("mn:d1Length", "offset"),
                ("mn:d2Length", "lever"),
                ("mn:oppositeLength", "opposite"),
            ),
            zeros=("mn:zDistanceA", "mn:zDistanceB", "mn:zDistanceC"),
            constants=(("pivoted", pivoted),),
        )
        for word, pivoted in (("PIVOTED_SLIDER", True), ("FIXED_SLIDER", False))
    ),
    Component(
        element="mynamespace:circleJoint",
        kind=CircleTrack,
        parameters=(("mynamespace:circleJointRadius", "radius"),),
        precursor="mynamespace:circleJointPrecursor",
    ),
)
"""Actin's own joints and the seed's; the first row that holds a joint is written."""


def components(own: Mapping[str, type[Joint]]) -> tuple[Component, ...]:
    """Return all rows: Actin's, then one for each class of ours and of the caller's.

    A class with a token replaces the rows whose element has this name and namespace.
    """
    kinds = [*JOINT_TYPES.values(), *own.values()]
    # Classes with a token say their element and namespace themselves, and win.
    rows = [row for row in map(_row_of, kinds) if row is not None]
    tokens = [row for row in rows if row.namespace]
    taken = {(local(row.element).lower(), row.space) for row in tokens}
    others = (row for row in (*ACTINS, *rows) if not row.namespace)
    free = (r for r in others if (local(r.element).lower(), r.space) not in taken)
    return (*tokens, *free)


def row_for(joint: Joint) -> Component | None:
    """Return the row by which a joint is written, None without one."""
    rows = (*ACTINS, _row_of(type(joint)))
    return next((row for row in rows if row is not None and row.holds(joint)), None)


@cache
def _row_of(kind: type[Joint]) -> Component | None:
    """Return the row of a class that is not Actin's.

    It is None where the tag is not a name in XML or the name of an element of Actin's,
    or where two parameters differ by case alone.
    """
    namespace, _, name = kind.token.rpartition("#")
    name = name or element_name(kind.tag)
    reserved = {local(row.element).lower() for row in ACTINS}
    fields = [field for field in kind.__struct_fields__ if field != PRECURSOR]
    _check_elements(kind)
    said = kind.elements
    elements = [said.get(field, element_name(field)) for field in fields]
    before = said.get(PRECURSOR)
    if (
        not PLAIN_TAG.fullmatch(name)
        or (not namespace and name.lower() in reserved)
        or len({each.lower() for each in elements}) < len(fields)
    ):
        return None
    prefix = "own" if namespace else "am"
    names = [f"{prefix}:{each}" for each in elements]
    return Component(
        element=f"{prefix}:{name}",
        kind=kind,
        parameters=tuple(zip(names, fields, strict=True)),
        precursor="mn:precursor" if before is None else f"{prefix}:{before}",
        namespace=namespace,
    )


def _check_elements(kind: type[Joint]) -> None:
    """Check `elements` of a class.

    Raises:
        JointError: A key is not a parameter, or a value not the name of an element.
    """
    for field, name in kind.elements.items():
        if field not in kind.__struct_fields__:
            known = ", ".join(kind.__struct_fields__)
            raise JointError(
                f"{kind.__name__}.elements names the parameter {quote(field)}, which "
                f"it does not have. Its parameters are {known}."
            )
        if not PLAIN_TAG.fullmatch(name):
            raise JointError(
                f"{kind.__name__}.elements says {quote(name)} for {quote(field)}; that "
                "is not the name of an element."
            )


@cache
def row_width(kind: type[Joint], field: str) -> int | None:
    """Return how many numbers each vector in a field of vectors has, None in others."""
    types = {each.name: each.type for each in msgspec.structs.fields(kind)}
    outer = get_args(types[field])
    inner = get_args(outer[0]) if outer[1:] == (Ellipsis,) else ()
    is_numbers = bool(inner) and all(each is float for each in inner)
    return len(inner) if is_numbers else None


def _is_writable(value: Any) -> bool:
    """Return whether an element can hold a value: numbers, words, joints."""
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
    return value is None or type(value) in {bool, int, float}


def element_name(name: str) -> str:
    """Return a name as Actin would spell it: `oval_track` is ovalTrack."""
    first, *rest = [part for part in name.split("_") if part] or [""]
    return first[:1].lower() + first[1:] + "".join(p[:1].upper() + p[1:] for p in rest)
