"""References to meshes, as the program that reads a written file needs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from armillary.errors import FormatError, ModelError, quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.mesh.stl import stl_bytes
from armillary.formats.mesh.words import split_reference
from armillary.formats.names import FreeNames
from armillary.model.link import Link
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import Mesh
from armillary.model.workcell import Workcell

__all__ = ["report_left_meshes", "with_meshes_of", "with_moved_meshes"]

SHAPES: Final = ("visuals", "collisions")
MOST_FACES: Final = 200_000
"""The most triangles of an STL that MuJoCo reads."""


def with_moved_meshes(
    cell: Workcell,
    folder: str,
    meshes: MeshFiles,
    report: Report,
    *,
    has_packages: bool,
    new: Collection[str] = (),
) -> Workcell:
    """Return a cell whose meshes are named as a file in a folder needs them.

    References that are relative to the folder of the file that was read, and do not
    lead to the same files from the new one, lead there.

    Args:
        cell: With references as they were read.
        folder: Of the file that is written.
        meshes: What finds the files.
        report: Gets a note, and a warning of files that are in a bundle.
        has_packages: Whether the format knows `package://` and `model://`; otherwise
            the files that these name take their places.
        new: References that are from the new folder already.
    """
    moved: dict[str, str] = {}
    packed: list[str] = []
    for reference in sorted({split_reference(m.file)[0] for m in _meshes(cell)}):
        if os.path.isabs(reference) or reference in new:
            continue
        path = meshes.located(reference)
        if path is not None and not path.is_file():
            packed.append(reference)
            continue
        if "://" in reference and has_packages:
            continue
        if path is None or Path(folder, reference).resolve() == path:
            continue
        try:
            name = os.path.relpath(path, os.path.realpath(folder))
        except ValueError:  # on another drive
            name = str(path)
        moved[reference] = Path(name).as_posix()
    if packed:
        others = f" and {len(packed) - 1} more" if len(packed) > 1 else ""
        report.warning(
            NOWHERE,
            "reference-missing",
            f"the file of mesh {quote(packed[0])}{others} is in a bundle, where other "
            "programs do not find it",
            hint="Unpack the bundle, and load its cell.json with its folder 'packages' "
            "among the folders.",
        )
    if not moved:
        return cell
    (before, after), *_ = moved.items()
    report.note(
        NOWHERE,
        "renamed",
        f"{len(moved)} files of meshes are named from the folder of the file, as "
        f"{quote(after)} for {quote(before)}",
        hint="To read it, allow their folder: folders=[...].",
    )

    def renamed(mesh: Mesh) -> Mesh:
        file, inside = split_reference(mesh.file)
        if file not in moved:
            return mesh
        changed = moved[file] + mesh.file[len(file) :] if inside else moved[file]
        return msgspec.structs.replace(mesh, file=changed)

    return _replaced(cell, renamed)


def report_left_meshes(
    cell: Workcell, name: str, folder: str, meshes: MeshFiles, report: Report
) -> None:
    """Warn of references that lead to other files, or none, from another folder.

    Args:
        cell: With references as they stay.
        name: Of the file that is written.
        folder: Of that file.
        meshes: What finds the files now.
        report: Gets the warning, with the bundle that has the files.
    """
    there = meshes.from_folder(folder or ".")
    left = {
        reference: path
        for reference in sorted({split_reference(m.file)[0] for m in _meshes(cell)})
        if (path := meshes.located(reference)) is not None
        and there.located(reference) != path
    }
    if not left:
        return
    first, path = next(iter(left.items()))
    others = f" and {len(left) - 1} more" if len(left) > 1 else ""
    bundle = f"{name.removesuffix('.cell.json')}.cell.zip"
    report.warning(
        NOWHERE,
        "reference-missing",
        f"the file of mesh {quote(first)}{others} will not be found from the folder "
        f"of {quote(name)}",
        hint=f"Save a bundle, which has the meshes: {bundle}."
        + (" Or save it in the folder that it is from." if path.is_file() else ""),
    )


def with_meshes_of(
    endings: tuple[str, ...],
    cell: Workcell,
    folder: str,
    meshes: MeshFiles,
    report: Report,
) -> tuple[Workcell, dict[str, bytes]]:
    """Return a cell whose meshes have some endings, and the files of others as STL.

    Triangles, positions and scales stay; of the colours in a file one is kept, if all
    of its triangles have it.

    Args:
        endings: Of files that stay references.
        cell: The cell.
        folder: Of the new files, relative to that of the cell.
        meshes: What reads the meshes.
        report: Gets a note.
    """
    files: dict[str, bytes] = {}
    made: dict[str, tuple[str, Colour | None]] = {}
    names = FreeNames(set())
    for file in sorted({mesh.file for mesh in _meshes(cell)}):
        path, inside = split_reference(file)
        if not inside and os.path.splitext(path)[1].lower() in endings:
            found = meshes.located(path)
            if found is None or found.is_file():  # and not in a bundle
                continue
        try:
            parts = meshes.parts(Mesh(file=file))
        except (FormatError, ModelError):
            continue  # which the writer warns of
        faces = sum(len(part.triangles.faces) for part in parts or ())
        if not parts or not 0 < faces <= MOST_FACES:
            continue
        corners = [part.triangles.vertices[part.triangles.faces] for part in parts]
        stem = os.path.splitext(os.path.basename(inside or path))[0] or "mesh"
        name = f"{folder}/{names.derive(stem)}.stl"
        colours = {part.colour for part in parts}
        files[name] = stl_bytes(np.concatenate(corners))
        made[file] = name, colours.pop() if len(colours) == 1 else None
    if not made:
        return cell, files
    report.note(
        NOWHERE,
        "shape-replaced",
        f"{len(made)} meshes of other formats, or in a bundle, are written as STL into "
        f"{folder}",
    )

    def replaced(mesh: Mesh) -> Mesh:
        if mesh.file not in made:
            return mesh
        name, colour = made[mesh.file]
        colour = colour if mesh.colour is None else mesh.colour
        return msgspec.structs.replace(mesh, file=name, colour=colour)

    return _replaced(cell, replaced), files


def _meshes(cell: Workcell) -> Iterator[Mesh]:
    for link in cell.links:
        for shape in (*link.visuals, *link.collisions):
            if isinstance(shape, Mesh):
                yield shape


def _replaced(cell: Workcell, new: Callable[[Mesh], Mesh]) -> Workcell:
    """Return a cell with other meshes."""

    def shape_of(shape: Shape) -> Shape:
        return new(shape) if isinstance(shape, Mesh) else shape

    def link_of(link: Link) -> Link:
        shapes = {name: tuple(map(shape_of, getattr(link, name))) for name in SHAPES}
        if all(shapes[name] == getattr(link, name) for name in SHAPES):
            return link
        return msgspec.structs.replace(link, **shapes)

    manipulators = tuple(
        each.replace(links=tuple(map(link_of, each.links)))
        for each in cell.manipulators
    )
    return cell.replace(manipulators=manipulators)
