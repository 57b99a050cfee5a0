"""ZIP archives that are not trusted, with the checks that Python leaves out."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final, final

from armillary.errors import printable
from armillary.limits import (
    ARCHIVE_CONTENT,
    ARCHIVE_FILES,
    ARCHIVE_RATIO,
    REFERENCE_LENGTH,
    Limit,
)

__all__ = ["ArchiveError", "ZipArchive", "zip_bytes"]

ENTRY: Final = b"PK\1\2"
ENCRYPTED: Final = 0x2041
"""Flags of entries: encrypted, strongly encrypted, with a masked header."""

UNIX: Final = 3
PERMISSIONS: Final = (stat.S_IFREG | 0o644) << 16
EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
SMALL: Final = 1 << 20
"""Files of fewer bytes may be compressed as well as they can be."""

DAMAGED: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError),
    *(NotImplementedError, RuntimeError, OverflowError, LookupError),
)
"""What `zipfile` raises at damaged archives."""


class ArchiveError(Exception):
    """Why an archive is refused.

    Attributes:
        limit: The limit that it exceeds, if it is that.
    """

    def __init__(self, message: str, limit: Limit | None = None) -> None:
        super().__init__(message)
        self.limit = limit


@final
class ZipArchive:
    """The plain files in an archive, each inflated when it is read.

    An archive is refused as a whole where a name leads out of it or occurs twice, a
    file is a link, encrypted, or compressed in another way than by deflating, files
    share bytes, or the limits of archives are exceeded. Folders are left out.

    data: The bytes of the archive, which are kept.
    """

    def __init__(self, data: bytes) -> None:
        """List the files.

        Raises:
            ArchiveError: It is refused, or damaged.
        """
        self._data = data
        # Each entry takes a kilobyte of memory as soon as the list is read.
        if data.count(ENTRY) > ARCHIVE_FILES.most + 100:
            raise _excess(ARCHIVE_FILES)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except DAMAGED as error:
            raise ArchiveError(f"the archive is damaged: {error}") from error
        entries = self._zip.infolist()
        if len(entries) > ARCHIVE_FILES.most:
            raise _excess(ARCHIVE_FILES, len(entries))
        total = sum(each.file_size for each in entries)
        if total > ARCHIVE_CONTENT.most:
            raise _excess(ARCHIVE_CONTENT, total)
        self._entries: dict[str, zipfile.ZipInfo] = {}
        end = 0
        for each in sorted(entries, key=lambda each: each.header_offset):
            if each.header_offset < end:
                raise ArchiveError(f"{_shown(each)} shares bytes with another file")
            end = each.header_offset + each.compress_size
            _check(each)
            if each.is_dir():
                continue
            if each.filename in self._entries:
                raise ArchiveError(f"{_shown(each)} occurs twice")
            self._entries[each.filename] = each

    def __reduce__(self) -> tuple[type[ZipArchive], tuple[bytes]]:
        return ZipArchive, (self._data,)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all files, sorted."""
        return tuple(sorted(self._entries))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def size(self, name: str) -> int:
        """Return how many bytes a file has.

        Raises:
            KeyError: There is no such file.
        """
        return self._entries[name].file_size

    def read(self, name: str) -> bytes:
        """Return the bytes of a file, whose checksum is compared.

        Raises:
            KeyError: There is no such file.
            ArchiveError: It is damaged.
        """
        entry = self._entries[name]
        try:
            with self._zip.open(entry) as file:
                data = file.read()
        except DAMAGED as error:
            raise ArchiveError(f"{_shown(entry)} is damaged: {error}") from error
        if len(data) != entry.file_size:
            raise ArchiveError(f"{_shown(entry)} is damaged: it ends too early")
        return data


def zip_bytes(files: Mapping[str, bytes], *, first: str = "") -> bytes:
    """Return an archive of files, the same bytes for the same files.

    files: Their contents by name.
    first: The name that comes first; all others are sorted.
    """
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in sorted(files, key=lambda name: (name != first, name)):
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.create_system, entry.external_attr = UNIX, PERMISSIONS
            data = files[name]
            packed = len(zlib.compress(data)) or 1
            # What would be refused as a bomb, and what does not shrink, stays as it is.
            is_worth_it = packed < len(data)
            is_plain = len(data) < SMALL or len(data) < ARCHIVE_RATIO.most * packed // 2
            fits = is_worth_it and is_plain
            entry.compress_type = zipfile.ZIP_DEFLATED if fits else zipfile.ZIP_STORED
            archive.writestr(entry, data)
    return held.getvalue()


def _check(entry: zipfile.ZipInfo) -> None:
    """Raise unless an entry is a plain file or a folder inside of the archive."""
    name, shown = entry.orig_filename, _shown(entry)
    parts = entry.filename.removesuffix("/").split("/")
    if (
        len(name) > REFERENCE_LENGTH.most
        or not name.isprintable()
        or "\\" in name
        or ":" in parts[0]
        or any(part in {"", ".", ".."} for part in parts)
    ):
        raise ArchiveError(f"{shown} is not the name of a file inside of the archive")
    if entry.flag_bits & ENCRYPTED:
        raise ArchiveError(f"{shown} is encrypted")
    if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        method = entry.compress_type
        raise ArchiveError(f"{shown} is compressed by method {method}, unknown here")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if entry.create_system == UNIX and kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        what = "a link" if stat.S_ISLNK(kind) else "a device"
        raise ArchiveError(f"{shown} is {what}, not a plain file")
    if entry.file_size >= SMALL:
        ratio = entry.file_size // max(1, entry.compress_size)
        if ratio > ARCHIVE_RATIO.most:
            raise _excess(ARCHIVE_RATIO, ratio)


def _excess(limit: Limit, count: int | None = None) -> ArchiveError:
    return ArchiveError(limit.excess(count), limit)


def _shown(entry: zipfile.ZipInfo) -> str:
    return printable(repr(entry.orig_filename[:100]))
