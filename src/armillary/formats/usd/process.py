"""Ask a confined process for what is in a stage of USD, under limits."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from armillary import confined_process
from armillary.errors import FormatError
from armillary.file_start import is_zip
from armillary.formats.diagnostic import Budget, Diagnostic, Place, Report, fault
from armillary.formats.files import read_bytes
from armillary.formats.mesh.words import STAGES
from armillary.formats.paths import Files, Roots
from armillary.formats.usd.package import check_package
from armillary.limits import (
    REFERENCE_LENGTH,
    USD_ANSWER,
    USD_LAYERS,
    USD_MEMORY,
    USD_PRIMS,
    USD_SECONDS,
)

__all__ = [
    "MeshRecord",
    "PrimRecord",
    "StageRecord",
    "stage_layers",
    "stage_meshes",
    "stage_record",
]

CHILD: Final = str(Path(__file__).with_name("child.py"))
PATIENCE: Final = 3
"""How many times longer than it computes a process may take: others compute, too."""


# To import the library takes far longer than to read most stages, so that one process
# imports it, and forks another for each.
_SERVER: Final = (
    confined_process.ForkServer([CHILD, confined_process.__file__, "serve"])
    if hasattr(os, "fork")
    else None
)


class PrimRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A prim, as far as it is read.

    Attributes:
        path: Such as `/robot/link_1`.
        type: Of its schema: `Xform`.
        name: That users see, where it is not the end of the path.
        schemas: Applied to it.
        pose: Its axes and origin in the world of the stage, three rows of four numbers;
            empty where it has none.
        kind: `component` or `assembly`.
        values: Of attributes, by name.
        targets: Of relationships, by name.
        hidden: Whether it is not drawn.
        purpose: `guide`, `proxy`, `render`, or nothing.
        has_points: Whether a mesh has any.
        box: Ends of a box around a mesh and the radius about its middle.
        colour: Red, green, blue and opacity.
        drawn: Whether it is something to see.
        specs: Layers that have it in their text, the strongest first, and its path
            there; the file itself has no name. Empty where it is the only layer.
    """

    path: str
    type: str
    name: str = ""
    schemas: tuple[str, ...] = ()
    pose: tuple[float, ...] = ()
    kind: str = ""
    values: dict[str, Any] = {}
    targets: dict[str, tuple[str, ...]] = {}
    hidden: bool = False
    purpose: str = ""
    has_points: bool = False
    box: tuple[float, ...] = ()
    colour: tuple[float, ...] = ()
    drawn: bool = False
    specs: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"<{self.path}>"


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A stage, as far as it is read.

    Attributes:
        metres: The length of its unit.
        kilograms: The mass of its unit.
        up: The axis that points up, `Y` or `Z`.
        default: The path of the prim that others refer to.
        prims: In their order, parents first.
        layers: The paths of the other files that it is composed of.
    """

    metres: float
    kilograms: float
    up: str
    default: str
    prims: tuple[PrimRecord, ...]
    layers: tuple[str, ...] = ()


class MeshRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a mesh.

    Attributes:
        mesh: The path of its prim.
        points: Float32, three for each corner, in base 64.
        corners: Int32, of all polygons.
        sizes: Int32, how many corners each polygon has.
        holes: Int32, polygons that are left out.
        left: Whether polygons are clockwise from outside.
        colours, opacities: Float32, of each polygon, where they differ.
        subsets: Polygons that have colours of their own, and these.
    """

    mesh: str
    points: str = ""
    corners: str = ""
    sizes: str = ""
    holes: str = ""
    left: bool = False
    colours: str = ""
    opacities: str = ""
    subsets: tuple[tuple[str, tuple[float, ...] | None], ...] = ()


class UsdAnswer(msgspec.Struct, kw_only=True):
    """A line of the process; its first field that is not empty says what it is.

    Attributes:
        find: A reference of the file `layer`, whose path it asks for.
        layer: See there.
        scene: The stage.
        error: An id of diagnostics, a message, and the file that it is about.
        mesh: The path of a mesh, whose `MeshRecord` the line is.
    """

    find: str = ""
    layer: str = ""
    scene: StageRecord | None = None
    error: tuple[str, str, str] | None = None
    mesh: str = ""


def stage_record(
    data: bytes, path: str, roots: Roots, variants: Mapping[str, str], report: Report
) -> StageRecord:
    """Return what is in a file of USD and in those that it refers to.

    Args:
        data: Its bytes.
        path: A plain file.
        roots: Folders that it may refer to.
        variants: Chosen variants by the names of their sets.
        report: Takes a warning for each reference that is not followed.

    Raises:
        FormatError: The library is not installed, the file is faulty, or it takes too
            much time or memory.
    """
    files = _Layers(path, os.path.realpath(path), roots, report)
    files.data = data
    return _asked(files, report, variants, meshes={}, with_meshes=False)


def stage_meshes(
    path: str, roots: Files, report: Report
) -> tuple[StageRecord, dict[str, MeshRecord]]:
    """Return what is in a file of USD, and its meshes by the paths of their prims.

    Other arguments and errors are those of `stage_record`.
    """
    meshes: dict[str, MeshRecord] = {}
    with roots.on_disk(path) as (local, folders):
        files = _Layers(path, os.path.realpath(local), folders, report)
        stage = _asked(files, report, {}, meshes=meshes, with_meshes=True)
    return stage, meshes


def stage_layers(
    path: str, roots: Files, report: Report
) -> list[tuple[str, Path, bytes]]:
    """Return the other files that a file of USD is composed of.

    For each what names it, relative to the folder of the stage where that is a path,
    where it is, and its bytes. Other arguments and errors are those of `stage_record`.
    """
    folder = os.path.dirname(path)
    with roots.on_disk(path) as (local, folders):
        files = _Layers(path, os.path.realpath(local), folders, report)
        _asked(files, report, {}, meshes={}, with_meshes=False)
        return [
            (name, Path(os.path.normpath(os.path.join(folder, name))), read_bytes(at))
            for at, name in files.followed.items()
            if at != files.real
        ]


def _asked(
    files: _Layers,
    report: Report,
    variants: Mapping[str, str],
    *,
    meshes: dict[str, MeshRecord],
    with_meshes: bool,
) -> StageRecord:
    """Return a stage, and add its meshes to a dictionary."""
    path = files.path
    for answer, line in _answers(files, report, variants, with_meshes):
        if answer.scene is not None:
            layers = tuple(at for at in files.followed if at != files.real)
            return msgspec.structs.replace(answer.scene, layers=layers)
        if answer.mesh:
            record = _decoded(line, MeshRecord, path, report.budget)
            meshes[answer.mesh] = cast(MeshRecord, record)
    raise _ended(path, report.budget)


def _answers(
    files: _Layers,
    report: Report,
    variants: Mapping[str, str],
    with_meshes: bool,
) -> Iterator[tuple[UsdAnswer, bytes]]:
    """Yield the lines of a process, each answered with what it asks for."""
    path, real = files.path, files.real
    if importlib.util.find_spec("pxr") is None:
        raise fault(
            path,
            "missing-library",
            "USD is read with the library usd-core, which is not installed",
            hint="Install it: pip install armillary[usd].",
        )
    budget = report.budget
    data = files.data or read_bytes(real)
    check_package(data, path, budget)
    if not real.lower().endswith(STAGES):
        # The library tells formats by endings: it gets a copy with the right one.
        with tempfile.TemporaryDirectory() as folder:
            named = os.path.join(os.path.realpath(folder), f"stage{_ending(data)}")
            Path(named).write_bytes(data)
            files.copy = named
            yield from _talk(files, variants, budget, with_meshes)
        return
    yield from _talk(files, variants, budget, with_meshes)


def _ending(data: bytes) -> str:
    """Return the ending that fits the contents of a file."""
    if is_zip(data):
        return ".usdz"
    return ".usdc" if data.startswith(b"PXR-USDC") else ".usda"


def _talk(
    files: _Layers, variants: Mapping[str, str], budget: Budget, with_meshes: bool
) -> Iterator[tuple[UsdAnswer, bytes]]:
    """Yield the lines of a process about a file, each answered with what it asks."""
    path = files.path
    message: Any = {
        "path": files.copy or files.real,
        "folders": [os.fspath(each) for each in files.folders if each.is_dir()],
        "variants": dict(variants),
        "meshes": with_meshes,
        "memory": budget.most(USD_MEMORY),
        "seconds": budget.most(USD_SECONDS),
        "prims": budget.most(USD_PRIMS),
        "layers": budget.most(USD_LAYERS),
    }
    end = time.monotonic() + PATIENCE * budget.most(USD_SECONDS)
    process = _process()
    try:
        while True:
            line = process.ask(
                json.dumps(message).encode(),
                seconds=end - time.monotonic(),
                longest=budget.most(USD_ANSWER),
            )
            answer = cast(UsdAnswer, _decoded(line, UsdAnswer, path, budget))
            if answer.error is not None:
                code, text, where = answer.error
                where = path if where in {"", files.copy, files.real} else where
                for each in filter(None, (files.copy, files.real)):
                    text = text.replace(each, path)
                raise _error(code, text, where, path)
            message = files.found(answer.find, answer.layer) if answer.find else ""
            yield answer, line
    finally:
        process.end()


def _process() -> confined_process.ConfinedProcess | confined_process.ForkedProcess:
    """Return a process for one request."""
    if _SERVER is None:
        return confined_process.ConfinedProcess([CHILD, confined_process.__file__])
    return _SERVER.forked()


def _decoded(line: bytes, kind: type[Any], path: str, budget: Budget) -> Any:
    """Return a line as a value; what the process says is not to be trusted."""
    try:
        # That of the standard library knows NaN and infinity, which USD may hold.
        return msgspec.convert(json.loads(line), kind, strict=False)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise _ended(path, budget) from error


def _ended(path: str, budget: Budget) -> FormatError:
    """Return the error of a process that ended without an answer."""
    return fault(
        path,
        "usd-failed",
        "the library usd-core could not read this: it crashed, or took more than "
        f"{budget.most(USD_SECONDS)} s or {budget.most(USD_MEMORY) >> 20} MiB",
        hint="The file is damaged or too large; export it again.",
    )


def _error(code: str, text: str, where: str, path: str) -> FormatError:
    """Return the error that the process found, with the line where it says one."""
    place = Place(where)
    start, _, rest = text.partition(": ")
    name, line, column = [*start.rsplit(":", 2), "", ""][:3]
    if name and line.isdigit() and column.isdigit():
        place, text = Place(name, int(line), int(column)), rest
    hints = {
        "bad-usd": "Export it again, or see what usdchecker says of it.",
        "unknown-variant": "Choose one that is there.",
        "include-limit": "Flatten the stage: usdcat --flatten.",
        "too-many-prims": "Load a part of the stage.",
    }
    if os.path.realpath(path) == place.path:
        place = Place(path, place.line, place.column)
    known = code if code in hints else "bad-usd"
    return fault(place, known, text[:1000] or "it is faulty", hint=hints[known])


class _Layers:
    """Answer which file a reference of a layer is, if it may be read."""

    def __init__(self, path: str, real: str, roots: Roots, report: Report) -> None:
        self.path, self.real = path, real
        self.copy = ""
        self.data = b""
        """Of the file, where it has been read already."""
        self.followed: dict[str, str] = {}
        """What names each file that is read, see `stage_layers`."""
        self._roots, self._report = roots, report
        self._reported: set[tuple[str, str]] = set()

    @property
    def folders(self) -> list[Path]:
        """Return the folders that may be read."""
        own = [Path(os.path.dirname(self.copy))] if self.copy else []
        return [*self._roots.allowed(os.path.dirname(self.real)), *own]

    def found(self, reference: str, layer: str) -> str:
        """Return the path of a file, empty if it is not followed."""
        layer = self.real if layer == self.copy else layer
        place = Place(self.path if layer == self.real else layer)
        found = self._followed(reference, layer, place)
        if not isinstance(found, Diagnostic):
            return found
        if (reference, layer) not in self._reported:
            self._reported.add((reference, layer))
            self._report.warning(
                found.place,
                found.code,
                f"{found.message}; what is in it is left out",
                hint=found.hint,
            )
        return ""

    def _followed(self, reference: str, layer: str, place: Place) -> str | Diagnostic:
        package, inside = _split_package(layer)
        if len(reference) > REFERENCE_LENGTH.most:
            reference = reference[:100]
        if inside or (package == layer and layer.lower().endswith(".usdz")):
            # A file in a package refers to others in it, and to no others.
            if not is_inside(package, inside, reference):
                return Diagnostic(
                    place=place,
                    code="reference-outside",
                    message=f"{reference!r} leads out of the package",
                    hint="Pack the file into it.",
                )
            folder = os.path.dirname(inside)
            name = os.path.normpath(os.path.join(folder, reference))
            return f"{package}[{name}]"
        if any(mark in reference for mark in ("[", "`", ":SDF_FORMAT_ARGS:")):
            return Diagnostic(
                place=place,
                code="reference-syntax",
                message=f"{reference!r} is an expression, which is not followed",
                hint="Name the file itself.",
            )
        found = self._roots.find(reference, base=os.path.dirname(layer), place=place)
        if isinstance(found, Diagnostic):
            return found
        try:
            check_package(read_bytes(found), os.fspath(found), self._report.budget)
        except FormatError as error:
            return error.diagnostics[0]
        self._note(reference, layer, os.fspath(found))
        return os.fspath(found)

    def _note(self, reference: str, layer: str, found: str) -> None:
        is_path = "://" not in reference and not os.path.isabs(reference)
        if is_path:
            named = os.path.join(os.path.dirname(layer), reference)
            reference = os.path.relpath(named, os.path.dirname(self.real))
        self.followed.setdefault(found, reference)


def _split_package(layer: str) -> tuple[str, str]:
    """Return the file of a layer, and its name in that where it is a package."""
    if layer.endswith("]") and "[" in layer:
        package, _, inside = layer[:-1].partition("[")
        return package, inside
    return layer, ""


def is_inside(package: str, inside: str, reference: str) -> bool:
    """Return whether a reference of a file in a package names another one in it."""
    name = os.path.normpath(os.path.join(os.path.dirname(inside), reference))
    is_plain = not any(mark in reference for mark in ("[", "]", "`", ":", "\0"))
    return is_plain and not os.path.isabs(name) and not name.startswith("..")
