"""What a format is: the contract of every file in this folder that reads or writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Place, Report, Severity
from armillary.formats.paths import Roots
from armillary.model.joint import Joint
from armillary.model.workcell import Workcell

__all__ = ["Format", "ReadOptions", "fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a caller may say about the reading of a file.

    Attributes:
        roots: Folders into which the file may refer.
        joints: The caller's own classes of joints by their tags.
        plugins: The classes in plug-ins that are allowed; each is imported when it is
            looked up.
        strict_order: Refuse a link that stands before its parent, where the format's
            own reader does.
        arguments: Values for the arguments of a xacro file.
    """

    roots: Roots = field(default_factory=Roots)
    joints: Mapping[str, type[Joint]] = field(default_factory=dict[str, type[Joint]])
    plugins: Mapping[str, type[Joint]] = field(default_factory=dict[str, type[Joint]])
    strict_order: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How files of one format are told apart, read and written.

    Attributes:
        name: For the `format=` of a caller, and for messages.
        title: What it is, in a few words.
        suffixes: Endings of file names, lower case, the usual one first.
        sniff: Tell from the bytes of a whole file whether it looks like this format.
            Cheap, and no judge of its faults.
        read: Make the cell from the bytes of a file and its path. Everything that was
            not understood, or left out, is added to the report as a warning; faults are
            added as errors and raised together: `report.raise_if_errors()`.
        write: Make the bytes of a file from a cell. Everything that the format cannot
            hold is added to the report as a warning; what is only told in another way
            as a note; a cell that makes no file at all as an error, raised as above.
        write_files: Make all files of a cell by their names, where one is not enough
            for all: further ones beside the one whose name is given, which comes last.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Callable[[bytes, str, ReadOptions, Report], Workcell]
    write: Callable[[Workcell, Report], bytes]
    write_files: Callable[[Workcell, str, Report], Mapping[str, bytes]] | None = None


def fault(path: str, code: str, message: str, *, hint: str = "") -> FormatError:
    """Return the error for a single fault of a file as a whole."""
    return FormatError(
        Diagnostic(
            place=Place(path),
            severity=Severity.ERROR,
            code=code,
            message=message,
            hint=hint,
        )
    )
