"""Files that hold no model: other formats, archives, meshes, mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.file_start import first_tag, is_zip
from armillary.zip_archive import ArchiveError, ZipArchive

__all__ = ["Foreign", "foreign_start", "foreign_to"]


class Foreign(NamedTuple):
    """What a file is.

    Attributes:
        title: In a few words.
        fix: What to do about it.
    """

    title: str
    fix: str


class _Kind(NamedTuple):
    """A kind of file that is recognised.

    Attributes:
        title: What messages call it.
        fix: What to do about it.
        starts: The first bytes of its files.
        tags: Names of the root elements, if it is XML.
        endings: Of the names of its files.
        holds: Return whether the bytes of a file are of this kind.
    """

    title: str
    fix: str
    starts: tuple[bytes, ...] = ()
    tags: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    holds: Callable[[bytes], bool] | None = None


SNIFFED: Final = 4096
TRIANGLE: Final = 50
STL_HEAD: Final = 84
MODELS: Final = (".urdf", ".xacro", ".srdf", ".sdf", ".mjcf", ".xml", ".json", ".usd")
SHOWN: Final = 3

_IGES: Final = re.compile(rb".{72}S\s*1\s*\r?\n", re.DOTALL)
_OBJ: Final = re.compile(
    rb"(?:\s*(?:#[^\n]*|mtllib[^\n]*|[og] [^\n]*)\n)*\s*v( +\S+){3}"
)

EXPORT: Final = "Export URDF or a format of docs/formats.md from the program it is of."
MESH: Final = "A mesh belongs to a link: name it in the file of a robot."
UNPACK: Final = "Unpack it, and load the model in it."
DOWNLOAD: Final = "Download the file itself, such as by the button 'Raw'."


def _is_binary_stl(data: bytes) -> bool:
    count = int.from_bytes(data[STL_HEAD - 4 : STL_HEAD], "little")
    return count > 0 and len(data) == STL_HEAD + TRIANGLE * count


def _is_text_stl(data: bytes) -> bool:
    return data.lstrip()[:6].lower() == b"solid " and b"facet" in data[:SNIFFED]


def _is_gltf(data: bytes) -> bool:
    return data.lstrip()[:1] == b"{" and b'"asset"' in data and b'"accessors"' in data


def _is_obj(data: bytes) -> bool:
    return _OBJ.match(data[:SNIFFED]) is not None


def _is_iges(data: bytes) -> bool:
    return _IGES.match(data) is not None


def _is_motion(data: bytes) -> bool:
    return b'"armillary motion"' in data[:SNIFFED]


def _is_tar(data: bytes) -> bool:
    return data[257:262] == b"ustar"


KINDS: Final = (
    # Mistakes with a file that was to be another
    _Kind(
        "a pointer of Git LFS in place of the file",
        "Fetch the file: git lfs pull, in its repository.",
        starts=(b"version https://git-lfs",),
    ),
    _Kind(
        "a web page",
        DOWNLOAD,
        starts=(b"<!DOCTYPE html", b"<!doctype html", b"<html", b"<HTML"),
        tags=("html", "HTML"),
    ),
    _Kind("a PDF document", EXPORT, starts=(b"%PDF",)),
    _Kind("an image", EXPORT, starts=(b"\x89PNG", b"\xff\xd8\xff", b"GIF8")),
    # Archives
    _Kind("an archive (gzip)", UNPACK, starts=(b"\x1f\x8b",)),
    _Kind("an archive (bzip2)", UNPACK, starts=(b"BZh",)),
    _Kind("an archive (xz)", UNPACK, starts=(b"\xfd7zXZ",)),
    _Kind("an archive (zstd)", UNPACK, starts=(b"\x28\xb5\x2f\xfd",)),
    _Kind("an archive (7z)", UNPACK, starts=(b"7z\xbc\xaf\x27\x1c",)),
    _Kind("an archive (RAR)", UNPACK, starts=(b"Rar!",)),
    _Kind("an archive (tar)", UNPACK, holds=_is_tar),
    # Of our own
    _Kind(
        "a motion",
        "arm.Motion.read reads it.",
        holds=_is_motion,
    ),
    _Kind("an array of NumPy", "np.load reads it.", starts=(b"\x93NUMPY",)),
    # Meshes
    _Kind("a COLLADA mesh, not a robot", MESH, tags=("COLLADA",)),
    _Kind("a glTF mesh, not a robot", MESH, starts=(b"glTF",), holds=_is_gltf),
    _Kind("a PLY mesh, not a robot", MESH, starts=(b"ply\n", b"ply\r")),
    _Kind("a text STL mesh, not a robot", MESH, holds=_is_text_stl),
    _Kind("a binary STL mesh, not a robot", MESH, holds=_is_binary_stl),
    _Kind("an AC3D mesh, not a robot", MESH, starts=(b"AC3Db",)),
    _Kind("an OBJ mesh, not a robot", MESH, holds=_is_obj),
    # Geometry of CAD, and other simulators
    _Kind("STEP, geometry of CAD", EXPORT, (b"ISO-10303-21",), (), (".step", ".stp")),
    _Kind(
        "IGES, geometry of CAD",
        EXPORT,
        endings=(".iges", ".igs"),
        holds=_is_iges,
    ),
    _Kind("Parasolid, geometry of CAD", EXPORT, (b"**ABCDEFGHIJKLMNOPQRSTUVWXYZ",)),
    _Kind("a file of SolidWorks or Office", EXPORT, (b"\xd0\xcf\x11\xe0",)),
    _Kind("FBX", EXPORT, (b"Kaydara FBX",), (), (".fbx",)),
    _Kind("a file of Blender", EXPORT, (b"BLENDER",), (), (".blend",)),
    _Kind("a scene of CoppeliaSim", EXPORT, (b"VREP",), (), (".ttt", ".ttm")),
    _Kind("a world of Webots", EXPORT, (b"#VRML_SIM",), (), (".wbt", ".proto")),
    _Kind("VRML", EXPORT, (b"#VRML",), (), (".wrl",)),
    _Kind(
        "a launch file of ROS",
        "Load the URDF or xacro that it names as robot_description.",
        tags=("launch",),
    ),
    _Kind(
        "the manifest of a ROS package",
        "Load a robot of the package, usually in urdf/ or robots/.",
        tags=("package",),
    ),
    _Kind("a robot of OpenRAVE", EXPORT, tags=("Robot", "Environment", "KinBody")),
)
"""Kinds of files; the first that fits counts."""


def foreign_start(data: bytes) -> Foreign | None:
    """Return what a file is that begins like no model, mesh or image at all.

    Only its first bytes are looked at.
    """
    for each in KINDS:
        is_mistake = each.fix in {DOWNLOAD, UNPACK} or "LFS" in each.title
        if is_mistake and each.starts and data.startswith(each.starts):
            return Foreign(each.title, each.fix)
    return None


def foreign_to(path: str, data: bytes) -> Foreign | None:
    """Return what a file is that no reader knows; None where that is not clear."""
    name, tag = path.lower(), first_tag(data)
    if is_zip(data) and not name.endswith(".usdz"):
        return _zip(data)
    start = data.lstrip()[:64] if tag == "" else data[:64]
    for each in KINDS:
        if (
            (tag and tag in each.tags)
            or (each.starts and start.startswith(each.starts))
            or (each.endings and name.endswith(each.endings))
            or (each.holds is not None and each.holds(data))
        ):
            return Foreign(each.title, each.fix)
    return None


def _zip(data: bytes) -> Foreign:
    """Return what is in an archive without a cell."""
    try:
        names = ZipArchive(data).names
    except ArchiveError as error:
        return Foreign(f"an archive (ZIP) that is refused: {error}", UNPACK)
    models = [name for name in names if name.lower().endswith(MODELS)]
    if not models:
        return Foreign("an archive (ZIP) without cell.json or another model", UNPACK)
    shown = ", ".join(map(quote, models[:SHOWN]))
    more = f" and {len(models) - SHOWN} more" if len(models) > SHOWN else ""
    fix = f"Unpack it, and load the model in it: {shown}{more}."
    return Foreign("an archive (ZIP) without cell.json", fix)
