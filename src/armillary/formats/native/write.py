"""Cells to native files: everything, in one canonical text."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import NODEFAULT, Struct

from armillary.errors import ArmillaryError, quote
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Place, Report
from armillary.formats.features import ALL, FEATURES, Held
from armillary.formats.format import WriteOptions
from armillary.formats.json import Record, to_text
from armillary.formats.native.wire import FORMAT_NAME, VERSION, Holds, holds
from armillary.formats.records import joint_record, pose_record
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell

__all__ = ["held_features", "write", "write_files"]

# Cell, manipulators, manipulator, links, link: these are split where they are long.
DEPTH: Final = 5

_encode = msgspec.json.encode


def held_features() -> Held:
    """Return what native files hold of a cell: everything but motions."""
    return {name: ALL for name in FEATURES if name != "motions"}


def write(cell: Workcell, report: Report) -> bytes:
    """Return the text of a native file, the same for equal cells.

    Raises:
        FormatError: A number is not finite, or files cannot identify the class of a
            joint.
    """
    record: Record = {"format": FORMAT_NAME, "version": VERSION}
    record.update(_Writing(report).struct(cell))
    text = to_text(record, depth=DEPTH)
    report.raise_if_errors()
    return text


def write_files(
    cell: Workcell, name: str, options: WriteOptions, report: Report
) -> dict[str, bytes]:
    """Return the text of a native file; references to meshes stay as they are."""
    has_shapes = any(link.visuals or link.collisions for link in cell.links)
    if has_shapes and options.meshes is not None:
        with IMPORT_LOCK:
            from armillary.formats.mesh.files import MeshFiles
            from armillary.formats.mesh.references import report_left_meshes
        if isinstance(options.meshes, MeshFiles):
            folder, meshes = options.folder, options.meshes
            report_left_meshes(cell, name, folder, meshes, report)
    return {name: write(cell, report)}


class _Writing:
    """Makes records of values of the model, and says of links where that fails."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def struct(self, value: Struct) -> Record:
        """Return a struct as files hold it: what has its default is left out."""
        record: Record = {}
        config = value.__struct_config__
        if config.tag_field:
            record[config.tag_field] = config.tag
        plan = _plan(type(value))
        for name, default, default_record, default_text, write in plan:
            item = getattr(value, name)
            # Infinite limits are defaults that no file could hold.
            if item is default or (type(item) is float and item == default != 0.0):
                continue
            if write is not None and item is not None:
                item = write(self, item)
            # 1 equals 1.0 and True, but their texts differ.
            if item != default_record or _encode(item) != default_text:
                record[name] = item
        return record

    def structs(self, values: tuple[Struct, ...]) -> Record:
        """Return the structs of an array as files hold them."""
        if not values:
            return []
        if isinstance(values[0], Link):
            return (self.link(value) for value in cast(tuple[Link, ...], values))
        if isinstance(values[0], Manipulator):
            return (self.struct(value) for value in values)
        return [self.struct(value) for value in values]

    def link(self, link: Link) -> Record:
        """Return a link as files hold it, or report what about it cannot be written."""
        try:
            return self.struct(link)
        except (ArmillaryError, TypeError, ValueError) as error:
            message = f"link {quote(link.name)}: {str(error).removesuffix('.')}"
            self._report.error(Place(), "unwritable", message)
            return {}

    def numbers(self, value: Any) -> Record:
        """Return a number, or numbers in tuples, as floats."""
        if type(value) is float and math.isfinite(value):
            return value + 0.0  # equal cells have equal texts: -0.0 is written as 0.0
        if isinstance(value, (tuple, list)):
            return tuple(map(self.numbers, cast(list[Any], value)))
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(f"{number} cannot be written; only finite numbers can")
        return number + 0.0


Writer = Callable[[_Writing, Any], Record]

_WRITERS: Final[dict[Holds, Writer]] = {
    Holds.POSE: lambda _, pose: pose_record(pose),
    Holds.JOINT: lambda _, joint: joint_record(joint),
    Holds.STRUCT: _Writing.struct,
    Holds.STRUCTS: _Writing.structs,
    Holds.NUMBERS: _Writing.numbers,
}


class _Field(NamedTuple):
    """A field of a struct.

    Attributes:
        name: Of the field, in files too.
        default: What is left out; NODEFAULT where there is none.
        record: That as files would hold it, NODEFAULT where they cannot.
        text: The text of that, None where there is none.
        write: What makes a record of a value, None where it is one.
    """

    name: str
    default: Any
    record: Record
    text: bytes | None
    write: Writer | None


@cache
def _plan(kind: type[Struct]) -> tuple[_Field, ...]:
    """Return the fields of a struct, and how each is written."""
    fields: list[_Field] = []
    for field in msgspec.structs.fields(kind):
        write = _WRITERS.get(holds(field.type))
        record, text = NODEFAULT, None
        if field.default is not NODEFAULT and not _is_infinite(field.default):
            record = field.default
            if write is not None and record is not None:
                record = write(_Writing(Report()), record)
            text = _encode(record)
        fields.append(_Field(field.name, field.default, record, text, write))
    return tuple(fields)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
