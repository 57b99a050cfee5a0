"""Bundles out: a cell, the files of its meshes, its motions."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote as url_quote

import msgspec

from armillary.errors import FormatError, ModelError, quote
from armillary.formats.bundle import CELL, MOTIONS
from armillary.formats.bundle.files import REPLACED, entry_of
from armillary.formats.bundle.read import ENDING
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import ALL, FEATURES, Held
from armillary.formats.format import WriteOptions
from armillary.formats.mesh.files import MeshFile, MeshFiles
from armillary.formats.mesh.words import split_reference
from armillary.formats.native import FORMAT as NATIVE
from armillary.limits import BUNDLE_SIZE, FILE_SIZE
from armillary.model.link import Link
from armillary.model.shape import Shape
from armillary.model.shapes import Mesh
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_files import motion_bytes
from armillary.zip_archive import zip_bytes

__all__ = ["held_features", "write", "write_files"]

SHAPES: Final = ("visuals", "collisions")
NAME_LENGTH: Final = 200


def held_features() -> Held:
    """Return what a bundle holds of a cell: everything."""
    return dict.fromkeys(FEATURES, ALL)


def write(cell: Workcell, report: Report, options: WriteOptions) -> bytes:
    """Return a bundle, see `write_files`."""
    return write_files(cell, "", options, report)[""]


def write_files(
    cell: Workcell, name: str, options: WriteOptions, report: Report
) -> dict[str, bytes]:
    """Return the bundle of a cell, the same bytes for equal cells and files.

    A mesh whose file cannot be read is a warning, and stays a reference.

    Raises:
        FormatError: The cell cannot be written, or the bundle would be too large.
        ModelError: A motion is not a `Motion`, or has no fitting name.
    """
    references = sorted({split_reference(mesh.file)[0] for mesh in _meshes(cell)})
    packed = _Packed(_mesh_files(references, options.meshes, report), report)
    files = {
        CELL: NATIVE.write(_renamed(cell, packed.replaced), report),
        **packed.files,
        **_motion_files(options.motions),
    }
    for entry, content in files.items():
        report.budget.check(FILE_SIZE, len(content), os.path.join(name, entry))
    data = zip_bytes(files, first=CELL)
    report.budget.check(BUNDLE_SIZE, len(data), name)
    return {name: data}


def _meshes(cell: Workcell) -> Iterator[Mesh]:
    for link in cell.links:
        for shape in (*link.visuals, *link.collisions):
            if isinstance(shape, Mesh):
                yield shape


def _mesh_files(
    references: Sequence[str], meshes: MeshSource | None, report: Report
) -> dict[str, list[MeshFile]]:
    """Return the files of each mesh, its own first; warn of those that are missing."""
    found: dict[str, list[MeshFile]] = {}
    if references and not isinstance(meshes, MeshFiles):
        message = f"the files of {len(references)} meshes are not known"
        hint = "Load the cell from its file, or make it with a MeshFiles of the folder."
        report.warning(NOWHERE, "mesh-left-out", message, hint=hint)
        return found
    for reference in references:
        assert isinstance(meshes, MeshFiles)
        try:
            found[reference] = meshes.files(Mesh(file=reference))
        except FormatError as error:
            _left_out(reference, error.diagnostics, report)
    return found


def _left_out(reference: str, why: Iterable[Any], report: Report) -> None:
    reasons = "; ".join(getattr(each, "message", str(each)) for each in why)
    message = f"the mesh {quote(reference)} is not in the bundle: {reasons}"
    report.warning(NOWHERE, "mesh-left-out", message)


class _Packed:
    """Where files of meshes are in a bundle.

    Attributes:
        files: Contents by name in the bundle.
        replaced: For each reference that leads out of the bundle, the one in its place.
    """

    def __init__(self, meshes: Mapping[str, list[MeshFile]], report: Report) -> None:
        self.files: dict[str, bytes] = {}
        self.replaced: dict[str, str] = {}
        self._report = report
        outside: dict[str, list[MeshFile]] = {}
        for reference, files in meshes.items():
            entries = self._entries(entry_of(reference, ""), files)
            if entries is None:
                outside[reference] = files
            else:
                self.files |= entries
        self._replace(outside)

    def _entries(
        self, entry: str | None, files: Sequence[MeshFile]
    ) -> dict[str, bytes] | None:
        """Return the files of a mesh by name; None if one leads elsewhere or clashes.

        entry: Where the mesh itself is.
        """
        entries: dict[str, bytes] = {}
        for k, file in enumerate(files):
            if k:
                entry = entry_of(file.reference, posixpath.dirname(next(iter(entries))))
            if entry is None:
                return None
            known = entries.get(entry, self.files.get(entry, file.data))
            if known != file.data:
                return None
            entries[entry] = file.data
        return entries

    def _replace(self, outside: Mapping[str, list[MeshFile]]) -> None:
        """Put meshes whose references lead elsewhere below a folder of their own.

        Files keep their places relative to each other, so that references in them hold.
        """
        paths = [file.path for files in outside.values() for file in files]
        if not paths:
            return
        common = os.path.commonpath([path.parent for path in paths])
        for reference, files in outside.items():
            place = files[0].path.relative_to(common).as_posix()
            entry = f"{REPLACED}/{place}"
            entries = self._entries(entry, files)
            if entries is None:
                message = (
                    f"files that the mesh {quote(reference)} refers to are not in the "
                    "bundle: their references lead out of it"
                )
                self._report.warning(NOWHERE, "mesh-left-out", message)
                entries = {entry: files[0].data}
            self.files |= entries
            self.replaced[reference] = entry
        self._report.note(
            NOWHERE,
            "mesh-renamed",
            f"{len(outside)} references to meshes lead out of the bundle, such as "
            f"{quote(next(iter(outside)))}, and are replaced",
        )


def _renamed(cell: Workcell, names: Mapping[str, str]) -> Workcell:
    """Return a cell with other references to meshes."""
    if not names:
        return cell

    def shape_of(shape: Shape) -> Shape:
        if isinstance(shape, Mesh):
            file, inside = split_reference(shape.file)
            if file in names:
                prim = f"#{inside}" if inside else ""
                return msgspec.structs.replace(shape, file=f"{names[file]}{prim}")
        return shape

    def link_of(link: Link) -> Link:
        shapes = {kind: tuple(map(shape_of, getattr(link, kind))) for kind in SHAPES}
        return msgspec.structs.replace(link, **shapes)

    manipulators = [
        msgspec.structs.replace(each, links=tuple(map(link_of, each.links)))
        for each in cell.manipulators
    ]
    return cell.replace(manipulators=manipulators)


def _motion_files(motions: Mapping[str, Any]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for name, motion in motions.items():
        if not isinstance(motion, Motion):
            raise ModelError(
                f"The motion {quote(name)} is a {type(motion).__name__}; motions= "
                "takes an arm.Motion for each name, such as timeline.motion(task)."
            )
        if not name or len(url_quote(name, safe=" ")) > NAME_LENGTH:
            raise ModelError(f"{quote(name)} is not a name for a motion in a bundle.")
        entry = f"{MOTIONS}{url_quote(name, safe=' ')}{ENDING}"
        files[entry] = motion_bytes(motion, ENDING)
    return files
