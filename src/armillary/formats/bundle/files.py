"""The files in a bundle, and where references lead in it."""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from msgspec.structs import replace

from armillary.errors import FormatError, nearest, quote
from armillary.formats.bundle import CELL, MOTIONS
from armillary.formats.diagnostic import Budget, Diagnostic, Place, fault
from armillary.formats.mesh.words import STAGES
from armillary.formats.packages import MODEL, PACKAGE
from armillary.formats.paths import Roots, check_plain, refusal
from armillary.limits import FILE_SIZE
from armillary.zip_archive import ArchiveError, ZipArchive

__all__ = ["REPLACED", "BundleFiles", "entry_of", "opened"]

PACKAGES: Final = "packages"
REPLACED: Final = "files"
"""The folder of files whose references lead out of the bundle otherwise."""


def opened(data: bytes, path: str) -> ZipArchive:
    """Return the archive in the bytes of a file.

    Raises:
        FormatError: It is refused, or damaged.
    """
    try:
        return ZipArchive(data)
    except ArchiveError as error:
        raise _refused(path, error) from error


def entry_of(reference: str, folder: str) -> str | None:
    """Return the name in a bundle of the file to which a reference leads.

    Args:
        reference: Of a mesh, or in the file of one.
        folder: That of the file that refers, in the bundle; empty for the top.

    Returns:
        None where it leads elsewhere, or to what is not a file of a mesh.
    """
    scheme, is_url, rest = reference.partition("://")
    if is_url and scheme.lower() in {PACKAGE, MODEL}:
        top = f"{PACKAGES}/"
        name = posixpath.normpath(posixpath.join(top, rest.lstrip("/")))
    else:
        top = ""
        name = posixpath.normpath(posixpath.join(folder, reference))
    is_inside = name.startswith(top) and not name.startswith(("..", "/"))
    is_plain = ":" not in name.partition("/")[0] and "\\" not in name
    is_ours = name in {".", CELL} or name.startswith(MOTIONS)
    is_fine = is_inside and is_plain and name.isprintable() and not is_ours
    return name if is_fine else None


@final
class BundleFiles:
    """The files in a bundle; where there is none, those beside it.

    archive: The bundle.
    path: Of its file.
    roots: Folders that may be read for what is not in it.
    """

    def __init__(self, archive: ZipArchive, path: str, roots: Roots) -> None:
        self._archive = archive
        self._top = Path(os.path.abspath(path))
        self._roots = roots

    def find(
        self, reference: str, *, base: str | os.PathLike[str], place: Place
    ) -> Path | Diagnostic:
        """Return the file that a reference names, see `Files.find`."""
        name = self._name(base)
        if name is None:  # of a file beside the bundle
            return self._roots.find(reference, base=base, place=place)
        try:
            check_plain(reference)
        except FormatError as error:
            return replace(error.diagnostics[0], place=place)
        entry = entry_of(reference, name)
        if entry is not None and entry in self._archive:
            return self._top / entry
        beside = self._roots.find(reference, base=self._top.parent, place=place)
        if isinstance(beside, Path):
            return beside
        likely = nearest(entry or reference, self._archive.names)
        hint = f"Did you mean {quote(likely)}?" if likely else "Write the bundle anew."
        message = f"{quote(reference)} is not in the bundle"
        return replace(
            refusal("reference-missing", message, hint).diagnostics[0], place=place
        )

    def read(self, path: str | os.PathLike[str], cap: int = FILE_SIZE.most) -> bytes:
        """Return the bytes of a file, see `Files.read`."""
        name = self._name(path)
        if name is None:
            return self._roots.read(path, cap)
        try:
            Budget({FILE_SIZE: cap}).check(
                FILE_SIZE, self._archive.size(name), os.fspath(path)
            )
            return self._archive.read(name)
        except KeyError:
            raise fault(
                os.fspath(path), "no-such-file", "it is not in the bundle"
            ) from None
        except ArchiveError as error:
            raise _refused(os.fspath(path), error) from error

    def size(self, path: str | os.PathLike[str]) -> int:
        """Return the number of bytes of a file."""
        name = self._name(path)
        return self._roots.size(path) if name is None else self._archive.size(name)

    @contextmanager
    def on_disk(self, path: str | os.PathLike[str]) -> Generator[tuple[Path, Roots]]:
        """Yield where a stage and its layers are copied, see `Files.on_disk`."""
        name = self._name(path)
        if name is None:
            with self._roots.on_disk(path) as found:
                yield found
            return
        with tempfile.TemporaryDirectory() as made:
            folder = Path(os.path.realpath(made))
            for entry in self._archive.names:
                if entry.lower().endswith(STAGES):
                    copy = folder / entry
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(self.read(self._top / entry))
            folders = (folder, folder / PACKAGES, *self._roots.folders)
            roots = Roots(packages=self._roots.packages, folders=folders)
            yield folder / name, roots

    def _name(self, path: str | os.PathLike[str]) -> str | None:
        """Return the name of a file or folder in the bundle, None for one outside."""
        try:
            name = Path(path).relative_to(self._top).as_posix()
        except ValueError:
            return None
        return "" if name == "." else name


def _refused(path: str, error: ArchiveError) -> FormatError:
    return fault(
        path,
        "bad-archive",
        str(error),
        hint="Write the bundle anew with arm.save, or unpack it where that is safe.",
    )
