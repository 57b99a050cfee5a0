"""The files of a cell in SDF: which each include means, and the meshes of models."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from armillary.errors import FormatError, quote
from armillary.file_start import first_tag
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.geometry import MeshFinder
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.paths import Roots
from armillary.formats.sdf.elements import ELEMENTS
from armillary.formats.xml import Element, parse
from armillary.limits import FILE_SIZE, MANIFEST_SIZE, SDF_ELEMENTS, SDF_FILES

__all__ = ["NEWEST", "ROOTS", "SdfFile", "SdfFiles", "Version"]

Version = tuple[int, int]

NEWEST: Final[Version] = (1, 12)
OLDEST: Final[Version] = (1, 2)
MANIFESTS: Final = ("model.config", "manifest.xml")
ROOTS: Final = ("sdf", "gazebo")
MODEL_FILE: Final = "model.sdf"
NOT_FOLLOWED: Final = ("reference-scheme", "reference-network", "reference-syntax")

_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9]+)?")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass(frozen=True, slots=True)
class SdfFile:
    """One file.

    Attributes:
        path: As messages show it.
        root: The `<sdf>`.
        version: By whose rules it is read.
        size: The number of its elements.
    """

    path: str
    root: Element
    version: Version
    size: int

    @property
    def folder(self) -> str:
        """Return the folder of the file."""
        return os.path.dirname(os.path.abspath(self.path))


class SdfFiles:
    """Reads each file once, and finds what they refer to."""

    def __init__(
        self,
        data: bytes,
        path: str,
        roots: Roots,
        report: Report,
        of_urdf: Callable[[bytes, str, Roots, Report], bytes],
    ) -> None:
        """Read the first file.

        of_urdf: Return the SDF of a URDF that is included, see `urdf_as_sdf`.

        Raises:
            FormatError: It is not XML, or too large.
        """
        self._roots = roots
        self._report = report
        self._of_urdf = of_urdf
        self._meshes = MeshFinder(roots, report)
        self._by_path: dict[str, SdfFile] = {}
        self._bytes = len(data)
        self.first = self._parsed(data, path, report)
        self._by_path[os.path.realpath(path)] = self.first
        self.spend(self.first)

    @property
    def all(self) -> list[SdfFile]:
        """Return each file that was read."""
        return list(self._by_path.values())

    def spend(self, file: SdfFile) -> None:
        """Count the elements of a file once more: it may be included often."""
        self._report.budget.spend(SDF_ELEMENTS, file.root.place, file.size)

    def _parsed(self, data: bytes, path: str, report: Report) -> SdfFile:
        """Return a file.

        report: For what is not SDF.
        """
        root = parse(data, path, elements=SDF_ELEMENTS, report=self._report)
        size = sum(1 for _ in root.walk())
        return SdfFile(path, root, self._version(root, report), size)

    def _version(self, root: Element, report: Report) -> Version:
        """Return the version of a file; report one that is missing or unknown."""
        if root.name not in ROOTS:
            hint = ""
            if root.name in {"world", "model"}:
                hint = 'Put <sdf version="1.11"> around it.'
            elif root.name == "robot":
                hint = "Save the URDF as SDF: arm.save(arm.load(path), path)."
            message = f"the root element is {root.label}, not <sdf>"
            report.error(root.place, "not-sdf", message, hint=hint)
            return NEWEST
        text = ELEMENTS.read(root, self._report)["version"]
        match = _VERSION.fullmatch(text)
        newest = ".".join(map(str, NEWEST))
        if match is None:
            view = self._report.tolerating(f"it is read as {newest}")
            what = f"the version {quote(text)} is not one" if text else "has no version"
            message = f"{root.label}: {what}" if text else f"{root.label} {what}"
            view.error(root.place, "unknown-version", message)
            return NEWEST
        version = int(match[1]), int(match[2])
        if not OLDEST <= version <= NEWEST:
            side = "newer than" if version > NEWEST else "older than"
            known = newest if version > NEWEST else ".".join(map(str, OLDEST))
            view = self._report.tolerating(f"it is read as {known}")
            message = f"this is SDF {text}, {side} what is known"
            view.error(root.place, "unknown-version", message)
        return min(max(version, OLDEST), NEWEST)

    # Includes

    def included(self, uri: str, file: SdfFile, place: Place) -> SdfFile | None:
        """Return the file that a URI means, None after a warning.

        uri: Of a file, or of a folder with a `model.config`.
        file: The one that refers to it.
        """
        self._report.budget.spend(SDF_FILES, place)
        found = self._find(uri, file, place)
        if isinstance(found, Diagnostic):
            return self._left_out(found)
        real = os.path.realpath(found)
        if real not in self._by_path:
            path = self._shown(uri, file, found)
            try:
                data = self._roots.read(real, FILE_SIZE.most - self._bytes)
                self._bytes += len(data)
                if first_tag(data) == "robot":
                    data = self._of_urdf(data, path, self._roots, self._report)
                    path = f"{path} as SDF"
                view = self._report.tolerating("what is included is left out")
                self._by_path[real] = self._parsed(data, path, view)
            except FormatError as error:
                return self._left_out(*error.diagnostics)
        inner = self._by_path[real]
        self.spend(inner)
        return inner

    def _shown(self, uri: str, file: SdfFile, found: Path) -> str:
        """Return the path of a file that was found, as messages show it."""
        plain = os.path.normpath(os.path.join(os.path.dirname(file.path), uri))
        return plain if os.path.realpath(plain) == str(found) else str(found)

    def _left_out(self, *found: Diagnostic) -> None:
        view = self._report.tolerating("what is included is left out")
        for each in found:
            view.error(each.place, each.code, each.message, hint=each.hint)

    def _find(self, uri: str, file: SdfFile, place: Place) -> Path | Diagnostic:
        """Return the file that a URI means, or why it is not followed."""
        uri = uri.strip().rstrip("/")
        direct = self._look(uri, file, place)
        if isinstance(direct, Path) or direct.code in NOT_FOLLOWED:
            return direct
        for name in MANIFESTS:
            manifest = self._look(f"{uri}/{name}", file, place)
            if isinstance(manifest, Path):
                return self._chosen(manifest, uri, file, place)
        bare = self._look(f"{uri}/{MODEL_FILE}", file, place)
        is_folder = "." not in uri.rpartition("/")[2]
        return bare if isinstance(bare, Path) or is_folder else direct

    def _look(self, uri: str, file: SdfFile, place: Place) -> Path | Diagnostic:
        return self._roots.find(uri, base=file.folder, place=place)

    def _chosen(
        self, manifest: Path, uri: str, file: SdfFile, place: Place
    ) -> Path | Diagnostic:
        """Return the file of the newest known version that a manifest names."""
        try:
            data = self._roots.read(manifest, MANIFEST_SIZE.most)
            root = parse(data, str(manifest), report=self._report)
        except FormatError as error:
            return error.diagnostics[0]
        named: list[tuple[Version, str]] = []
        for each in root.children:
            match = _VERSION.fullmatch(each.attributes.get("version", "").strip())
            name = each.text.strip()
            if each.name == "sdf" and name:
                version = (int(match[1]), int(match[2])) if match else (0, 0)
                named.append((version, name))
        known = [each for each in named if each[0] <= NEWEST] or named
        # Of two with one version the first counts.
        name = max(known, key=lambda each: each[0])[1] if known else MODEL_FILE
        return self._look(f"{uri}/{name}", file, place)

    # Meshes

    def mesh_files(self) -> MeshFiles:
        """Return what reads meshes as `mesh` refers to them."""
        return MeshFiles(self.first.folder, roots=self._roots)

    def mesh(self, reference: str, file: SdfFile, place: Place) -> str:
        """Return a reference to a mesh as the first file would write it.

        file: The one that has it.
        """
        first = self.first
        if file is first or file.folder == first.folder:
            self._meshes.look_up(reference, file.folder, place)
            return reference
        # Whatever is beside an included file may be referred to, as that file itself.
        found = self._look(reference, file, place)
        if isinstance(found, Diagnostic):
            if not _SCHEME.match(reference) and not os.path.isabs(reference):
                path = os.path.join(file.folder, reference)
                reference = os.path.relpath(path, first.folder).replace(os.sep, "/")
            self._meshes.look_up(reference, first.folder, place)
            return reference
        at_first = self._roots.find(reference, base=first.folder, place=place)
        if isinstance(at_first, Path) and at_first == found:
            return reference
        return os.path.relpath(found, os.path.realpath(first.folder)).replace(
            os.sep, "/"
        )
