"""The structs of the native format, derived from those of the model.

Each has the fields of its model struct, so that every name and default is written once.
Only poses and joints look different in a file, and what has its default is left out.
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from armillary.formats.native import FORMAT_NAME
from armillary.formats.records import PoseInFile
from armillary.model.joint import Joint
from armillary.model.shape import Shape
from armillary.model.shapes import SHAPES
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose

__all__ = [
    "FORMAT_NAME",
    "JOINT_REFERENCE",
    "VERSION",
    "Head",
    "Holds",
    "JointInFile",
    "cell_in_file",
    "derived",
    "holds",
    "in_file",
    "struct_in_file",
]

VERSION: Final = 1
JOINT_REFERENCE: Final = "#/$defs/Joint"

JointInFile: TypeAlias = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": JOINT_REFERENCE})
]
"""A joint: its type and its parameters, which the type knows."""


class Head(Struct, kw_only=True):
    """The members that identify a file of this format, and its version."""

    format: str = ""
    version: int = 0


def derived(
    model: type[Struct],
    name: str,
    *,
    head: Sequence[tuple[str, Any]] = (),
    tag_field: str | None = None,
    tag: str | int | None = None,
) -> type[Struct]:
    """Return a struct with the fields of a struct of the model, as files hold them.

    Its `model` is that struct. Every field with a default is UNSET where it is absent.
    head: Further fields, which come first.
    """
    return msgspec.defstruct(
        name,
        [*head, *(_field(field) for field in msgspec.structs.fields(model))],
        kw_only=True,
        forbid_unknown_fields=True,
        gc=False,  # a tree from a file has no cycles to look for
        tag_field=tag_field,
        tag=tag,
        namespace={"__doc__": _documentation(model), "model": model},
    )


def _documentation(model: type[Struct]) -> str:
    """Return the docstrings of a struct and of those that it inherits from."""
    bases = model.__mro__[: model.__mro__.index(Struct)]
    return "\n\n".join(inspect.cleandoc(base.__doc__ or "") for base in bases)


@cache
def struct_in_file(model: type[Struct]) -> type[Struct]:
    """Return the struct that files hold in place of a struct of the model."""
    config = model.__struct_config__
    return derived(model, model.__name__, tag_field=config.tag_field, tag=config.tag)


@cache
def cell_in_file() -> type[Struct]:
    """Return the struct of a whole file: a cell, with the name of the format."""
    return derived(Workcell, "Cell", head=[("format", str), ("version", int)])


class Holds(enum.Enum):
    """What a field of the model holds, as far as files care."""

    POSE = enum.auto()
    JOINT = enum.auto()
    STRUCT = enum.auto()
    STRUCTS = enum.auto()
    NUMBERS = enum.auto()
    PLAIN = enum.auto()


def holds(annotation: Any) -> Holds:
    """Return what a field of the model with this annotation holds, None aside."""
    if annotation is Pose:
        return Holds.POSE
    if annotation is Joint:
        return Holds.JOINT
    kinds = set(_parts(annotation))
    if any(isinstance(kind, type) and issubclass(kind, Struct) for kind in kinds):
        is_array = get_origin(annotation) is tuple
        return Holds.STRUCTS if is_array else Holds.STRUCT
    return Holds.NUMBERS if kinds & {float, Any} else Holds.PLAIN


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of."""
    arguments = get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _parts(argument)


def in_file(annotation: Any) -> Any:
    """Return what files hold in place of what a field of the model holds."""
    if annotation is Any:  # a number or a traced scalar
        return float
    if annotation is Pose:
        return PoseInFile
    if annotation is Joint:
        return JointInFile
    if annotation is Shape:
        return Union[tuple(map(struct_in_file, SHAPES))]  # noqa: UP007
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return struct_in_file(annotation)
    generic: Any = get_origin(annotation)
    if generic is None:
        return cast(Any, annotation)
    arguments = tuple(map(in_file, get_args(annotation)))
    if generic is types.UnionType:
        return Union[arguments]  # noqa: UP007
    return generic[arguments]


def _field(field: msgspec.structs.FieldInfo) -> Any:
    kind = in_file(field.type)
    if field.required:
        return field.encode_name, kind
    return field.encode_name, kind | UnsetType, UNSET
