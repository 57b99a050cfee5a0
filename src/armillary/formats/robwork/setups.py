"""The files of collision and proximity setups that a loaded cell refers to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Place
from armillary.formats.paths import Roots
from armillary.formats.robwork.expand import Follower
from armillary.formats.robwork.node import SEPARATOR, WORLD_FRAME
from armillary.formats.robwork.notes import DEVICE, PREFIX, SETUPS
from armillary.model.property import Property
from armillary.model.workcell import WORLD, Workcell

__all__ = ["Setup", "find_setups", "frame_names"]

_NAMES: Final = {f"{PREFIX}{kind}": kind for kind in SETUPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """A file with rules, and whose names are meant in it.

    Attributes:
        kind: `CollisionSetup`, `ProximitySetup` or `Calibration`.
        file: Its path, in a folder that may be read.
        scope: The device and chains whose names stand before those in the file, such
            as `SchunkHand.f1`; empty for the whole workcell.
    """

    kind: str
    file: Path
    scope: str = ""

    def full_name(self, name: str) -> str:
        """Return the name, unique in the workcell, that a name in the file means."""
        return SEPARATOR.join(filter(None, (self.scope, name)))


def find_setups(
    cell: Workcell,
    path: str | os.PathLike[str],
    *,
    packages: Mapping[str, str | os.PathLike[str]] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
) -> tuple[Setup, ...]:
    """Return the setups that a cell refers to, those of devices first.

    Args:
        cell: Loaded from a RobWork file.
        path: That file.
        packages: As given to `load`.
        folders: As given to `load`.

    Raises:
        FormatError: A file is missing, or outside of the folders that may be read; all
            of them are listed.
    """
    name = os.fspath(path)
    follower = Follower(name, Roots(packages=packages, folders=folders))
    found: list[Setup] = []
    faults: list[Diagnostic] = []
    for scope, note in _references(cell):
        file = follower.find(note.text, Place(name))
        if isinstance(file, Diagnostic):
            faults.append(file)
        else:
            found.append(Setup(kind=_NAMES[note.name], file=Path(file), scope=scope))
    if faults:
        raise FormatError(*faults)
    return tuple(found)


def _references(cell: Workcell) -> Iterator[tuple[str, Property]]:
    for manipulator in cell.manipulators:
        for note in manipulator.properties:
            if note.name in _NAMES:
                chains = (note.description,) if note.description else ()
                yield SEPARATOR.join((manipulator.name, *chains)), note
    for note in cell.properties:
        if note.name in _NAMES:
            yield "", note


def frame_names(cell: Workcell) -> dict[str, str]:
    """Return, for each frame's full name in RobWork, its name in a loaded cell.

    `PA10.Joint1` is `PA10/Joint1` and `SchunkHand.f1.Joint2` is `SchunkHand/f1.Joint2`;
    a frame of the workcell is in the environment or in a part, and `WORLD` is `world`.
    """
    names = {WORLD_FRAME: WORLD}
    for manipulator in cell.manipulators:
        is_device = any(note.name == DEVICE for note in manipulator.properties)
        scope = (manipulator.name,) if is_device else ()
        for place in manipulator.places:
            full = SEPARATOR.join((*scope, place))
            names.setdefault(full, f"{manipulator.name}/{place}")
    return names
