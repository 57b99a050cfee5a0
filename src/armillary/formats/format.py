"""The contract of a format, which every package in this folder fulfils."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Report
from armillary.formats.paths import Roots
from armillary.model.joint import Joint
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

__all__ = ["Format", "ReadOptions", "WriteOptions", "later"]


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported when it is first called.

    A program pays only for the formats that it reads and writes.

    Args:
        module: Its name, below `armillary.formats`.
        name: Of the function.
    """

    def function(*args: Any) -> Any:
        with IMPORT_LOCK:
            loaded = import_module(f"armillary.formats.{module}")
        return getattr(loaded, name)(*args)

    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of reading a file.

    Attributes:
        roots: The folders that the file may refer to.
        joints: The caller's joint classes by tag.
        plugins: The allowed joint classes of plug-ins by tag; each is imported when it
            is looked up.
        strict_order: Whether to refuse a link that comes before its parent, as the
            format's original reader does.
        arguments: Values for the arguments of a xacro file; variants of a USD stage by
            the names of their sets.
    """

    roots: Roots = field(default_factory=Roots)
    joints: Mapping[str, type[Joint]] = field(default_factory=dict[str, type[Joint]])
    plugins: Mapping[str, type[Joint]] = field(default_factory=dict[str, type[Joint]])
    strict_order: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of writing a file, for formats that take them.

    Attributes:
        meshes: What reads the meshes of the cell, whose triangles the file holds.
        motion: How the cell moves in the file, in a form that `Cell.view` takes.
        rate: Samples of it a second, where nothing else says when they are.
    """

    meshes: MeshSource | None = None
    motion: Any = None
    rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How files of one format are recognised, read and written.

    Attributes:
        name: For the `format=` of a caller, and for messages.
        title: What the format is, in a few words.
        suffixes: Endings of file names, lower case, the usual one first.
        sniff: Return whether the bytes of a whole file look like this format. Cheap;
            it does not look for faults.
        read: Return the cell from the bytes of a file and its path. Whatever is not
            understood or left out is a warning in the report; errors are raised
            together with `report.raise_if_errors()`.
        write: Return the bytes of a file from a cell. Whatever the format cannot hold
            is a warning in the report, what is only expressed differently a note; a
            cell that cannot be written at all is an error, raised as above.
        write_files: Return all files of a cell by name, for formats that may need
            further files beside the named one, which comes last.
        tests_itself: Whether files say nothing of collisions, so that by default a
            robot is tested against itself.
        names_pairs: Whether files name the pairs that are not tested, so that those
            that touch at home are looked for before one is written.
        takes_arguments: Whether the caller may give `arguments=`.
        takes_options: Whether `WriteOptions` are the last argument of `write` and
            `write_files`.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Callable[[bytes, str, ReadOptions, Report], Workcell]
    write: Callable[..., bytes]
    write_files: Callable[..., Mapping[str, bytes]] | None = None
    tests_itself: bool = False
    names_pairs: bool = False
    takes_arguments: bool = False
    takes_options: bool = False
