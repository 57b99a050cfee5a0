"""Packages of USD: archives whose files are stored as they are."""

from __future__ import annotations

import io
import zipfile
import zlib

from armillary.errors import quote
from armillary.file_start import is_zip
from armillary.formats.diagnostic import Budget, fault
from armillary.limits import FILE_SIZE, USD_PACKED

__all__ = ["check_package"]


def check_package(data: bytes, path: str, budget: Budget) -> None:
    """Check the archive of a package; other files pass.

    The format allows neither compression nor encryption, so that no package can hold
    more than it is large.

    Raises:
        FormatError: It is damaged, or its files are compressed, overlap, or are too
            many.
    """
    if not is_zip(data):
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, zlib.error, NotImplementedError):
        raise fault(
            path, "bad-usd", "this package is damaged", hint="Export it again."
        ) from None
    budget.check(USD_PACKED, len(files), path)
    for each in files:
        if each.compress_type != zipfile.ZIP_STORED or each.flag_bits & 1:
            raise fault(
                path,
                "bad-usd",
                f"{quote(each.filename)} of this package is compressed or encrypted, "
                "which USD does not allow",
                hint="Pack it with usdzip.",
            )
    budget.check(FILE_SIZE, sum(each.file_size for each in files), path)
