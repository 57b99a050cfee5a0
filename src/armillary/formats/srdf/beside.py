"""SRDF files near the file of a robot, to suggest one to callers who named none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from armillary.limits import NEIGHBOURS

__all__ = ["srdf_beside"]

FOLDERS: Final = (".", "srdf", "config", "../srdf", "../config")
"""Where they are, relative to the robot's file, in robots' and MoveIt's packages."""

ENDING: Final = ".srdf"


def srdf_beside(path: str, robot: str) -> str | None:
    """Return the SRDF that most likely belongs to a robot's file; none is opened.

    One whose name begins like that of the robot's file comes first, then one that has
    the name of the robot, then the only one of a folder.

    Args:
        path: The robot's file.
        robot: The name of the robot in it.
    """
    stem = os.path.basename(path).split(".")[0].lower()
    folder = Path(path).parent
    same: list[Path] = []
    alone: list[Path] = []
    for each in FOLDERS:
        files = _files(Path(os.path.normpath(folder / each)))
        named = [file for file in files if file.name.lower().startswith(stem)]
        if named:  # longer names are those of variants, such as with a gripper
            return str(min(named, key=lambda file: len(file.name)))
        same += [file for file in files if file.stem.lower() == robot.lower()]
        alone += files if len(files) == 1 else []
    return str((same + alone)[0]) if same or alone else None


def _files(folder: Path) -> list[Path]:
    """Return the SRDF files among the first of a folder, sorted; none without one."""
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name
                for _, entry in zip(range(NEIGHBOURS.most), entries, strict=False)
                if entry.name.lower().endswith(ENDING) and entry.is_file()
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]
