"""The contract of a format, which every package in this folder fulfils."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Report
from armillary.formats.paths import Roots
from armillary.limits import FILE_SIZE, Limit
from armillary.model.joint import Joint
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.formats.features import Held
    from armillary.trajectories.motion import Motion
    from armillary.view.motion import Playable

__all__ = ["Format", "ReadOptions", "WriteOptions", "later"]


def later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module that is imported when it is first called.

    A program pays only for the formats that it reads and writes.

    Args:
        module: Its name, below `armillary.formats`.
        name: Of the function.
    """

    def function(*args: Any, **options: Any) -> Any:
        with IMPORT_LOCK:
            loaded = import_module(f"armillary.formats.{module}")
        return getattr(loaded, name)(*args, **options)

    return function


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
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

    roots: Roots = msgspec.field(default_factory=Roots)
    joints: Mapping[str, type[Joint]] = msgspec.field(
        default_factory=dict[str, type[Joint]]
    )
    plugins: Mapping[str, type[Joint]] = msgspec.field(
        default_factory=dict[str, type[Joint]]
    )
    strict_order: bool = False
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is written with a cell.

    Attributes:
        meshes: What reads its meshes, None where that is not known.
        motions: Its motions by name, and for formats that sample them timelines of
            programs.
        rate: Samples of them a second, where a format samples them.
        folder: That the file is written into.
    """

    meshes: MeshSource | None = None
    motions: Mapping[str, Motion | Playable] = msgspec.field(
        default_factory=dict[str, "Motion | Playable"]
    )
    rate: float | None = None
    folder: str = ""


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How files of one format are recognised, read and written.

    Attributes:
        name: For the `format=` of a caller, and for messages.
        title: What the format is, in a few words.
        holds: Return what files hold of a cell, see `armillary.formats.features`: each
            feature with `ALL` or which part of it. What it does not name is lost, of
            which the writer warns by `report_losses`. docs/formats.md shows it.
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
            further files beside the named one, which comes last, or more than the cell:
            its meshes or motions. It comes before `write`.
        meshes: Return what reads the meshes of a file, from its bytes, its path and the
            folders that may be read, for formats whose files have meshes inside. By
            default meshes are files beside that of the cell.
        motions: Return the motions in a file by name, from its bytes and its path;
            faulty ones are left out with a warning.
        size: How large a file may be.
        tests_itself: Whether files say nothing of collisions, so that by default a
            robot is tested against itself.
        names_pairs: Whether files name the pairs that are not tested, so that those
            that touch at home are looked for before one is written.
        refers_to_meshes: Whether meshes are named from the folder of the file, for
            other programs: in another folder they have other names there. Files of
            armillary's own keep theirs.
        read_by: Packages of `armillary.formats` that read it, where a cell follows from
            the bytes of its file, the options, and what is asked of `Roots` alone: it
            is kept, see `armillary.formats.kept_reading`.
        takes_arguments: Whether the caller may give `arguments=`.
        takes_options: Whether `write` takes `WriteOptions`, too: the one file that it
            makes has the meshes in it.
    """

    name: str
    title: str
    holds: Callable[[], Held]
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool]
    read: Callable[[bytes, str, ReadOptions, Report], Workcell]
    write: Callable[..., bytes]
    write_files: (
        Callable[[Workcell, str, WriteOptions, Report], Mapping[str, bytes]] | None
    ) = None
    meshes: Callable[[bytes, str, Roots], MeshSource] | None = None
    motions: Callable[[bytes, str, Report], Mapping[str, Motion]] | None = None
    size: Limit = FILE_SIZE
    tests_itself: bool = False
    names_pairs: bool = False
    refers_to_meshes: bool = False
    read_by: tuple[str, ...] | None = None
    takes_arguments: bool = False
    takes_options: bool = False
