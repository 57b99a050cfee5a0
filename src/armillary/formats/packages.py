"""Folders of ROS packages and Gazebo models, from the environment and above a file.

- Of ROS: the folder above the file that holds a `package.xml` of that name; those in
  `AMENT_PREFIX_PATH`, as `share/name`; those in and below `ROS_PACKAGE_PATH`.
- Of Gazebo: the folder of that name above the file that holds a `model.config`; those
  in `GZ_SIM_RESOURCE_PATH`, `IGN_GAZEBO_RESOURCE_PATH`, `GAZEBO_MODEL_PATH` and
  `SDF_PATH`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from armillary.errors import FormatError
from armillary.formats.files import read_bytes
from armillary.limits import MANIFEST_SIZE, PACKAGE_DEPTH, PACKAGE_FOLDERS

__all__ = ["MODEL", "PACKAGE", "folder_beside", "folders_of", "own_folder"]

PACKAGE: Final = "package"
MODEL: Final = "model"

# The file in the folder of each kind that marks it.
_MARKS: Final = {PACKAGE: "package.xml", MODEL: "model.config"}
_MODEL_PATHS: Final = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
    "SDF_PATH",
)
_NAME: Final = re.compile(rb"<name>\s*([A-Za-z0-9_.-]+)\s*</name>")
_IGNORE: Final = ("CATKIN_IGNORE", "COLCON_IGNORE")
_HIGHEST: Final = 16


def own_folder(home: Path, kind: str = PACKAGE) -> Path | None:
    """Return the nearest folder from `home` upwards that is a package or model.

    The user's home and the root of the file system do not count.
    """
    folder, users = str(home), str(Path.home())
    for _ in range(_HIGHEST + 1):
        above = os.path.dirname(folder)
        if folder in (users, above):  # the root is above itself
            return None
        if os.path.isfile(os.path.join(folder, _MARKS[kind])):
            return Path(folder)
        folder = above
    return None


def folders_of(name: str, home: Path, kind: str) -> Iterator[Path]:
    """Yield the folders that a package or model of a name may have.

    home: The folder of the file that refers to it.
    """
    around = own_folder(home, kind)
    if around is not None and (around.name == name or _declared(around, kind) == name):
        yield around
    if kind == MODEL:
        for variable in _MODEL_PATHS:
            yield from (folder / name for folder in _listed(variable))
        return
    for prefix in _listed("AMENT_PREFIX_PATH"):
        yield prefix / "share" / name
    below = _below(os.environ.get("ROS_PACKAGE_PATH", ""))
    if name in below:
        yield below[name]


def folder_beside(name: str, home: Path, kind: str) -> Path | None:
    """Return a package or model of a name next to one of the folders above a file."""
    for folder in home.parents[:_HIGHEST]:
        if (folder / name / _MARKS[kind]).is_file():
            return folder / name
    return None


def _listed(variable: str) -> list[Path]:
    """Return the absolute folders in an environment variable."""
    entries = os.environ.get(variable, "").split(os.pathsep)
    return [Path(entry) for entry in entries if os.path.isabs(entry)]


@lru_cache(maxsize=4)
def _below(path: str) -> dict[str, Path]:
    """Return the packages in and below the folders of a path variable, by name.

    Of two with the same name the first counts, as in ROS.
    """
    packages: dict[str, Path] = {}
    left = PACKAGE_FOLDERS.most
    for entry in filter(os.path.isabs, path.split(os.pathsep)):
        pending = [(Path(entry), 0)]
        while pending and left:
            left -= 1
            folder, depth = pending.pop()
            if (folder / _MARKS[PACKAGE]).is_file():
                packages.setdefault(_declared(folder, PACKAGE) or folder.name, folder)
            elif depth < PACKAGE_DEPTH.most:
                pending.extend((each, depth + 1) for each in _inside(folder))
    return packages


def _inside(folder: Path) -> list[Path]:
    """Return the subfolders to search for packages, last name first."""
    try:
        with os.scandir(folder) as entries:
            entries_by_name = {each.name: each for each in entries}
            if any(name in entries_by_name for name in _IGNORE):
                return []
            names = [
                name
                for name, each in entries_by_name.items()
                if not name.startswith(".") and each.is_dir()
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names, reverse=True)]


def _declared(folder: Path, kind: str) -> str:
    """Return the name in the manifest of a package, or nothing."""
    if kind != PACKAGE:
        return ""
    try:
        text = read_bytes(folder / _MARKS[kind], cap=MANIFEST_SIZE.most)
    except FormatError:
        return ""
    name = _NAME.search(text)
    return "" if name is None else name[1].decode()
