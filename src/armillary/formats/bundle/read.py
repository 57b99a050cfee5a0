"""Bundles in: the cell, what reads its meshes, its motions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote

from armillary.errors import ArmillaryError
from armillary.formats.bundle import CELL, MOTIONS
from armillary.formats.bundle.files import BundleFiles, opened
from armillary.formats.diagnostic import Place, Report, fault
from armillary.formats.format import ReadOptions
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.native import FORMAT as NATIVE
from armillary.formats.paths import Roots
from armillary.model.workcell import Workcell
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_files import motion_fields

__all__ = ["meshes", "motions", "read"]

ENDING = ".json"


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a bundle.

    Raises:
        FormatError: The archive is refused, or has no faultless cell.
    """
    archive = opened(data, path)
    if CELL not in archive:
        raise fault(
            path,
            "no-cell",
            f"the archive has no {CELL}, which would be the cell",
            hint="Unpack it, and load the model in it.",
        )
    top = os.path.abspath(path)
    cell = BundleFiles(archive, path, options.roots).read(os.path.join(top, CELL))
    return NATIVE.read(cell, os.path.join(path, CELL), options, report)


def meshes(data: bytes, path: str, roots: Roots) -> MeshFiles:
    """Return what reads the meshes in a bundle, without unpacking it."""
    files = BundleFiles(opened(data, path), path, roots)
    return MeshFiles(os.path.abspath(path), roots=files)


def motions(data: bytes, path: str, report: Report) -> Mapping[str, Motion]:
    """Return the motions in a bundle by name; faulty ones are left out, warned."""
    archive = opened(data, path)
    files = BundleFiles(archive, path, Roots())
    found: dict[str, Motion] = {}
    for entry in archive.names:
        if not (entry.startswith(MOTIONS) and entry.endswith(ENDING)):
            continue
        shown = os.path.join(path, entry)
        try:
            content = files.read(os.path.join(os.path.abspath(path), entry))
            motion = Motion(**motion_fields(content, ENDING, shown))
        except ArmillaryError as error:
            message = str(error).removeprefix(f"{shown}: ").removesuffix(".")
            view = report.tolerating("the motion is left out")
            view.error(Place(shown), "bad-motion", message)
            continue
        found[unquote(entry[len(MOTIONS) : -len(ENDING)])] = motion
    return found
