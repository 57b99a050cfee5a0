"""Cells of files that earlier processes have read: such files are not parsed again.

A file that is the same, by all its bytes, gives the same cell: to load that takes less
time than to read the file, and nothing that reads the format is imported.
"""

from __future__ import annotations

import io
import itertools
import pickle
import sys
from typing import Any, Final

import msgspec
import numpy as np

from armillary.digests import hasher
from armillary.disk_cache import READINGS, folder, load, source_digest, store
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Report
from armillary.formats.format import Format, ReadOptions
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.workcell import Workcell

__all__ = ["kept_reading"]

MADE_BY: Final = (
    "armillary.errors",
    "armillary.file_start",
    "armillary.limits",
    "armillary.formats",
    "armillary.model",
    "armillary.model.geometry",
    "armillary.model.joints",
    "armillary.model.loops",
    "armillary.model.shapes",
    "armillary.spatial",
    "armillary.trace",
)
"""What decides what is read, besides the format itself and what it shares."""

OWN_JOINTS: Final = "armillary.model.joints."

MOST_KEPT: Final = 16
"""Cells that a process keeps: one that reads more reads each of many files once."""

_readings = itertools.count()


def kept_reading(
    chosen: Format, data: bytes, path: str, options: ReadOptions, report: Report
) -> Workcell:
    """Return the cell in a file, as an earlier process has read it where one has.

    Arguments, errors and what is added to the report, which is new, are those of
    `Format.read`. Files are read each time where more than their bytes decides: folders
    or joints of the caller, types of joints that no class is known for, and other files
    that they include.
    """
    roots = options.roots
    has_more = options.joints or options.arguments or roots.packages or roots.folders
    key = None if has_more else _key(chosen, data, path, options, report)
    if key is None:
        return chosen.read(data, path, options, report)
    content = load(key, READINGS)
    if content is not None:
        cell, found = _Unpickler(io.BytesIO(content)).load()
        report.restore(found)
        return cell
    cell = chosen.read(data, path, options, report)
    found = report.contents()
    kinds = {type(link.joint) for link in cell.links} - {type(None)}
    is_known = all(kind.__module__.startswith(OWN_JOINTS) for kind in kinds)
    is_whole = is_known and OpaqueJoint not in kinds and found is not None
    if is_whole and next(_readings) < MOST_KEPT:
        store(key, pickle.dumps((cell, found), 5), READINGS)
    return cell


class _Unpickler(pickle.Unpickler):
    """Reads what was kept, which is as trusted as machine code.

    Imports alone are made with the lock: the model may warn, and handlers of warnings
    are the caller's.
    """

    def find_class(self, module: str, name: str) -> Any:
        with IMPORT_LOCK:  # shapes and joints that the cell has
            return super().find_class(module, name)


def _key(
    chosen: Format, data: bytes, path: str, options: ReadOptions, report: Report
) -> str | None:
    """Return the digest of all that decides a cell; None where that is not known."""
    if chosen.read_by is None or folder() is None:
        return None
    packages = *MADE_BY, *(f"armillary.formats.{name}" for name in chosen.read_by)
    source = source_digest(packages)
    if source is None:
        return None
    # The path stands in diagnostics, and a robot without a name has that of the file.
    versions = *sys.version_info[:2], np.__version__, msgspec.__version__
    settings = options.strict_order, report.settings
    parts: tuple[Any, ...] = ("reading", packages, versions, settings, path, len(data))
    digest = hasher(repr(parts).encode("utf-8", "surrogatepass"))
    digest.update(source)
    digest.update(data)
    return digest.hexdigest()
