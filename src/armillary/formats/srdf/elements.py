"""The elements of SRDF: what each holds, read and written by one table."""

from __future__ import annotations

from typing import Any, Final

from armillary.formats.elements import (
    NUMBER,
    REQUIRED,
    TEXT,
    Elements,
    ElementTable,
    Kind,
    Row,
    numbers,
)
from armillary.formats.srdf.names import Names
from armillary.formats.xml import Element

__all__ = ["ELEMENTS", "IN_STATE", "OF_ROBOT"]


def _reported(kind: Kind[Any]) -> Kind[Names]:
    """Return a kind that looks up no names."""

    def read(element: Element, key: str, names: Names, default: Any) -> Any:
        return kind.read(element, key, names.report, default)

    return Kind(read)


def _name(element: Element, key: str, names: Names, default: Any) -> Any:
    if default is REQUIRED:
        return names.required(element, key)
    return (element.attribute(key) or default).strip()


def _link(element: Element, key: str, names: Names, _default: Any) -> Any:
    return names.link(element, key)


_NAME: Final = Kind(_name)
"""A name without white space around it."""

_LINK: Final = Kind(_link)
"""The name of a link of the robot."""

_MEMBER: Final = Kind(_name)
"""The name of a joint or group, which is looked up later."""

OF_ROBOT: Final = (_LINK, _MEMBER)
"""The kinds of names that are those of one manipulator only."""

_REASON: Final = Row("reason", _reported(TEXT), default="")
_PAIR: Final = (Row("link1", _LINK), Row("link2", _LINK), _REASON)

ELEMENTS: Final = Elements[Names](
    # Groups and postures
    ElementTable("group", Row("name", _MEMBER)),
    ElementTable("link", Row("name", _LINK)),
    ElementTable("joint", Row("name", _MEMBER)),
    ElementTable("chain", Row("base_link", _LINK), Row("tip_link", _LINK)),
    ElementTable(
        "group_state", Row("name", _MEMBER), Row("group", _MEMBER, default="")
    ),
    # Collisions
    ElementTable("disable_default_collisions", Row("link", _LINK)),
    ElementTable("enable_collisions", *_PAIR),
    ElementTable("disable_collisions", *_PAIR),
    # What is beside groups and collisions
    ElementTable("passive_joint", Row("name", _MEMBER)),
    ElementTable(
        "virtual_joint",
        Row("name", _NAME),
        Row("type", _NAME),
        Row("parent_frame", _NAME),
        Row("child_link", _LINK),
    ),
    ElementTable(
        "end_effector",
        Row("name", _NAME),
        Row("parent_link", _LINK),
        Row("group", _MEMBER),
        Row("parent_group", _MEMBER, default=""),
    ),
    ElementTable(
        "joint_property",
        Row("joint_name", _MEMBER, "joint"),
        Row("property_name", _NAME, "name"),
        Row("value", _reported(TEXT)),
    ),
    ElementTable("link_sphere_approximation", Row("link", _LINK)),
    ElementTable(
        "sphere", Row("center", _reported(numbers(3))), Row("radius", _reported(NUMBER))
    ),
)

IN_STATE: Final = Elements[Names](
    ElementTable("joint", Row("name", _MEMBER), Row("value", _reported(numbers(None))))
)
"""What a `group_state` holds; a `joint` of a group has no value."""
