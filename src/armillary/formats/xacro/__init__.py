"""Read xacro files: macros that make URDF, expanded in a process of their own."""

from __future__ import annotations

from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Report, fault
from armillary.formats.format import Format, ReadOptions, later
from armillary.formats.urdf import FORMAT as URDF
from armillary.model.workcell import Workcell

__all__ = ["FORMAT"]


def _read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Expand a file and read the URDF that it makes.

    Diagnostics have the lines of the expanded text, and say so.
    """
    with IMPORT_LOCK:
        from armillary.formats.xacro.expand import expand

    urdf = expand(path, options.roots, options.arguments, report)
    return URDF.read(urdf, f"{path} (expanded)", options, report)


def _write(_cell: Workcell, _report: Report) -> bytes:
    raise fault(
        "",
        "unwritable",
        "xacro is not written",
        hint="Write URDF: its files are xacro files as well.",
    )


# Only the ending or the caller may choose it: nothing else runs the code in a file.
FORMAT = Format(
    name="xacro",
    title="xacro",
    holds=later("urdf.write", "held_features"),
    suffixes=(".xacro",),
    sniff=lambda _: False,
    read=_read,
    write=_write,
    tests_itself=True,
    takes_arguments=True,
)
