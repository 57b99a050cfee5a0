"""Cells of files that were read before: such files are not parsed again.

A file that is the same, by all its bytes, gives the same cell: to load that takes less
time than to read the file, and nothing that reads the format is imported. A process
keeps its last readings in memory, later ones find those of the disk.
"""

from __future__ import annotations

import io
import itertools
import os
import pickle
import sys
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from armillary.digests import hasher
from armillary.disk_cache import READINGS, folder, load, source_digest, store
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Report
from armillary.formats.format import Format, ReadOptions
from armillary.formats.paths import FollowedReference
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import has_degrees
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
"""Readings that a process stores: one that reads more reads each of many files once."""

MOST_RECENT: Final = 8
MOST_BYTES: Final = 4 * 2**20
"""How many readings stay in memory, and how many bytes their files have in all.

The cells of files without meshes take some 20 times as much memory as the files do.
"""

_readings = itertools.count()
_recent: dict[_Wanted, _Reading] = {}  # the last one was asked for last


class _Wanted(NamedTuple):
    """What decides a cell, besides other files: two that are equal ask for the same.

    The path stands in diagnostics, and a robot without a name has that of the file;
    references are followed from where it is.
    """

    format: str
    path: str
    place: str
    settings: tuple[Any, ...]
    roots: tuple[Any, ...]
    cache: str
    data: bytes


class _Reading(NamedTuple):
    """What was read: a cell, the contents of the report, and references to others."""

    cell: Workcell
    found: tuple[Any, ...]
    followed: tuple[FollowedReference, ...]


def kept_reading(
    chosen: Format, data: bytes, path: str, options: ReadOptions, report: Report
) -> Workcell:
    """Return the cell in a file, as it was read before where it was.

    Arguments, errors and what is added to the report, which is new, are those of
    `Format.read`. Files are read each time where more than their bytes decides: joints
    or arguments of the caller, types of joints that no class is known for, and other
    files that are read with them. Whether the meshes that they refer to are there is
    asked each time.

    Cells of one file have their manipulators in common, which are immutable, and none
    of what they find out later.
    """
    asked = _asked(chosen, data, path, options, report)
    if asked is None:
        return chosen.read(data, path, options, report)
    known = _recent.pop(asked, None)
    if known is not None and options.roots.still_lead(known.followed):
        _recent[asked] = known
        report.restore(known.found)
        return known.cell.replace()
    key = _key(chosen, asked)
    content = None if key is None else load(key, READINGS)
    if content is not None:
        reading: _Reading = _Unpickler(io.BytesIO(content)).load()
        if options.roots.still_lead(reading.followed):
            report.restore(reading.found)
            return _remembered(asked, reading)
    with options.roots.noting() as noted:
        cell = chosen.read(data, path, options, report)
    found, followed = report.contents(), tuple(filter(None, noted))
    kinds = {type(link.joint) for link in cell.links} - {type(None)}
    is_known = all(kind.__module__.startswith(OWN_JOINTS) for kind in kinds)
    is_whole = is_known and OpaqueJoint not in kinds and len(followed) == len(noted)
    if found is None or not is_whole:
        return cell
    reading = _Reading(cell, found, followed)
    if key is not None and next(_readings) < MOST_KEPT:
        store(key, pickle.dumps(reading, 5), READINGS)
    return _remembered(asked, reading)


def _remembered(asked: _Wanted, reading: _Reading) -> Workcell:
    """Keep a reading in memory, if it may be; return a cell of its own.

    Warnings of the model come with each load. Loops between manipulators are solved
    when a cell is made of these, which takes as long as to read them.
    """
    cell = reading.cell
    is_large = len(asked.data) > MOST_BYTES  # it would leave no room for others
    if is_large or cell.loops or any(map(has_degrees, cell.links)):
        return cell
    _recent[asked] = reading
    size = sum(len(each.data) for each in tuple(_recent))
    for each in tuple(_recent):
        if size <= MOST_BYTES and len(_recent) <= MOST_RECENT:
            break
        _recent.pop(each, None)
        size -= len(each.data)
    return cell.replace()  # what the caller's finds out ends with it


class _Unpickler(pickle.Unpickler):
    """Reads what was kept, which is as trusted as machine code.

    Imports alone are made with the lock: the model may warn, and handlers of warnings
    are the caller's.
    """

    def find_class(self, module: str, name: str) -> Any:
        with IMPORT_LOCK:  # shapes and joints that the cell has
            return super().find_class(module, name)


def _asked(
    chosen: Format, data: bytes, path: str, options: ReadOptions, report: Report
) -> _Wanted | None:
    """Return what decides a cell; None where that is not known, or nothing is kept."""
    cache, roots = folder(), options.roots
    has_more = options.joints or options.arguments
    if chosen.read_by is None or cache is None or has_more:
        return None
    return _Wanted(
        format=chosen.name,
        path=path,
        place=os.path.abspath(path),
        settings=(options.strict_order, report.settings),
        roots=roots.as_texts,
        cache=str(cache),
        data=data,
    )


def _key(chosen: Format, asked: _Wanted) -> str | None:
    """Return the digest of what was asked and of the source of what reads it."""
    read_by = chosen.read_by or ()
    packages = *MADE_BY, *(f"armillary.formats.{name}" for name in read_by)
    source = source_digest(packages)
    if source is None:
        return None
    versions = *sys.version_info[:2], np.__version__, msgspec.__version__
    decides = asked._replace(cache="", data=b"")
    parts: tuple[Any, ...] = (
        *("reading", packages, versions),
        *(*decides, len(asked.data)),
    )
    digest = hasher(repr(parts).encode("utf-8", "surrogatepass"))
    digest.update(source)
    digest.update(asked.data)
    return digest.hexdigest()
