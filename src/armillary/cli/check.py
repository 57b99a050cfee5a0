"""`armillary check`: every diagnostic of a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from armillary.cli.explain import explanation
from armillary.cli.hints import diagnostic_text, with_options
from armillary.cli.input import FILE, read
from armillary.cli.options import JSON
from armillary.cli.verb import option, verb
from armillary.collision.pairs import applied_rules
from armillary.collision.untested import (
    home_parts,
    untested_parts,
    untested_text,
)
from armillary.collision.violations import violations
from armillary.errors import FormatError, ModelError, printable, quote
from armillary.formats.diagnostic import Diagnostic, Place, Severity, explained
from armillary.formats.mesh.files import MeshFiles
from armillary.kinematics.state import home
from armillary.model.display import plural
from armillary.model.shapes import Mesh
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

FAULTY = 1
RESTING = 1e-6  # how deep parts that rest on others may be in them [m]


@verb(
    "check",
    (
        *FILE,
        option("--explain", "also print what the ids mean", action="store_true"),
        JSON,
    ),
    description="Print all diagnostics, each with its location, id and fix, and "
    "which links touch at home. The exit code is 0 if none is an error, else 1.",
)
def run(options: argparse.Namespace) -> int:
    """Print the diagnostics and return 1 if one is an error."""
    errors = 0
    diagnostics: Sequence[Any] = ()
    try:
        cell, report, meshes, _ = read(options)
        diagnostics = report.diagnostics
        _ = cell.limits
        contacts_and_meshes = [
            *_meshes(cell, meshes, options.file),
            *_contacts(cell, meshes, options.file),
        ]
        known = {(each.code, each.message) for each in diagnostics}
        diagnostics = [
            *diagnostics,
            *(
                each
                for each in contacts_and_meshes
                if (each.code, each.message) not in known
            ),
        ]
    except FormatError as error:
        diagnostics = error.diagnostics
        errors = sum(_severity(each) is Severity.ERROR for each in diagnostics)
    except ModelError as error:
        diagnostics = [*diagnostics, error]
        errors = 1
    if options.json:
        print(json.dumps({"diagnostics": list(map(diagnostic_object, diagnostics))}))
        return FAULTY if errors else 0
    for each in diagnostics:
        print(diagnostic_text(each, fix=True))
    if options.explain:
        for line in _explanations(diagnostics):
            print(line)
    warnings = sum(_severity(each) is Severity.WARNING for each in diagnostics)
    counted = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
    print(f"{printable(options.file)}: {counted}")
    return FAULTY if errors else 0


def _meshes(cell: Workcell, meshes: MeshSource, path: str) -> Iterator[Diagnostic]:
    """Yield the faults of files of meshes, each file once.

    Visuals are read as the viewer reads them, collision shapes as hulls.
    """
    seen: set[tuple[str, bool]] = set()
    for link in cell.links:
        for shapes, is_visual in ((link.collision_shapes, False), (link.visuals, True)):
            for shape in shapes:
                if not isinstance(shape, Mesh) or (shape.file, is_visual) in seen:
                    continue
                seen.add((shape.file, is_visual))
                yield from _mesh(shape, meshes, path, is_visual=is_visual)
    if isinstance(meshes, MeshFiles):
        yield from meshes.report.diagnostics


def _mesh(
    mesh: Mesh, meshes: MeshSource, path: str, *, is_visual: bool
) -> Iterator[Diagnostic]:
    """Yield why a mesh cannot be used, as warnings: the motion of links is known."""
    place = Place(path)
    try:
        if is_visual:
            meshes.parts(mesh)
        else:
            meshes.hull(mesh)
    except FormatError as error:
        for each in error.diagnostics:
            if isinstance(each, Diagnostic):
                where = each.place if each.place.path else place
                yield replace(each, place=where, severity=Severity.WARNING)
    except ModelError as error:
        text = f"the mesh {quote(mesh.file)} has no hull: {error}".removesuffix(".")
        yield Diagnostic(
            place=place, code="bad-mesh", message=text, severity=Severity.WARNING
        )


def _contacts(cell: Workcell, meshes: MeshSource, path: str) -> Iterator[Diagnostic]:
    """Yield which links touch at home, or are not tested."""
    place = Place(path)

    def diagnostic(code: str, text: str, fix: str = "") -> Diagnostic:
        return Diagnostic(
            place=place,
            code=code,
            message=with_options(text).removesuffix("."),
            severity=Severity.WARNING,
            hint=with_options(fix),
        )

    at_home = tuple(applied_rules(cell, None, meshes).home_pairs)
    untested: list[str] = []  # manipulators, which one diagnostic lists
    for each in violations(cell, home(cell), tolerance=RESTING, meshes=meshes):
        if each.kind != "untested":
            if each.links:
                text = f"At home, links {each.message.removeprefix('Links ')}"
                yield diagnostic("links-touch", text)
        elif each.message == untested_text(each.subject):
            untested.append(each.subject)
        else:
            yield diagnostic("links-untested", each.message)
    if untested:
        yield diagnostic("links-untested", *untested_parts(untested))
    if at_home:
        text, fix = home_parts(at_home, most=len(at_home))
        yield replace(diagnostic("touch-at-home", text, fix), severity=Severity.NOTE)


def _explanations(diagnostics: Sequence[Any]) -> Iterator[str]:
    """Yield what the ids of diagnostics mean, each once."""
    codes = (each.code for each in diagnostics if isinstance(each, Diagnostic))
    for code in dict.fromkeys(codes):
        yield from explanation(code, explained(code))


def _severity(diagnostic: Any) -> Severity:
    return getattr(diagnostic, "severity", Severity.ERROR)


def diagnostic_object(diagnostic: Any) -> dict[str, Any]:
    """Return a diagnostic as it is printed as JSON; an error of the model has no id."""
    if not isinstance(diagnostic, Diagnostic):
        return {
            "severity": Severity.ERROR.value,
            "message": with_options(str(diagnostic)),
        }
    place = diagnostic.place
    return {
        "severity": diagnostic.severity.value,
        "id": diagnostic.code,
        "path": place.path,
        "line": place.line or None,
        "column": place.column or None,
        "message": diagnostic.message,
        "fix": with_options(diagnostic.hint) or None,
    }
