"""`armillary check`: every diagnostic of a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from armillary.cli.explain import explanation
from armillary.cli.hints import diagnostic_text, with_options
from armillary.cli.input import add_file, meshes_of, read
from armillary.cli.options import add_json
from armillary.collision.pairs import applied_rules
from armillary.collision.untested import home_parts, home_text, untested_parts
from armillary.collision.violations import violations
from armillary.errors import FormatError, ModelError, printable, quote
from armillary.formats.diagnostic import Diagnostic, Place, Severity, explained
from armillary.formats.mesh.files import MeshFiles
from armillary.kinematics.bound_state import home
from armillary.model.display import plural
from armillary.model.shapes import Mesh
from armillary.model.workcell import Workcell

FAULTY = 1
RESTING = 1e-6  # how deep parts that rest on others may be in them [m]


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "check",
        help="every diagnostic of a file, with its location and fix",
        description="Print all diagnostics, each with its location, id and fix, and "
        "which links touch at home. The exit code is 0 if none is an error, else 1.",
    )
    add_file(parser)
    parser.add_argument(
        "--explain", action="store_true", help="also print what the ids mean"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the diagnostics and return 1 if one is an error."""
    errors = 0
    diagnostics: Sequence[Any] = ()
    try:
        cell, report = read(options)
        diagnostics = report.diagnostics
        _ = cell.limits
        meshes = meshes_of(options)
        found = [
            *_meshes(cell, meshes, options.file),
            *_contacts(cell, meshes, options.file),
        ]
        known = {(each.code, each.message) for each in diagnostics}
        diagnostics = [
            *diagnostics,
            *(each for each in found if (each.code, each.message) not in known),
        ]
    except FormatError as error:
        diagnostics = error.diagnostics
        errors = sum(_severity(each) is Severity.ERROR for each in diagnostics)
    except ModelError as error:
        diagnostics = [*diagnostics, error]
        errors = 1
    if options.json:
        print(json.dumps({"diagnostics": list(map(_object, diagnostics))}))
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


def _meshes(cell: Workcell, meshes: MeshFiles, path: str) -> Iterator[Diagnostic]:
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
    yield from meshes.report.diagnostics


def _mesh(
    mesh: Mesh, meshes: MeshFiles, path: str, *, is_visual: bool
) -> Iterator[Diagnostic]:
    """Yield why a mesh cannot be used, as warnings: the motion of links is known."""
    place = Place(path)
    try:
        if is_visual:
            meshes.parts(mesh)
        else:
            meshes.hull(mesh, place=place)
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


def _contacts(cell: Workcell, meshes: MeshFiles, path: str) -> Iterator[Diagnostic]:
    """Yield which links touch at home, or are not tested."""
    place = Place(path)
    at_home = tuple(applied_rules(cell, None, meshes).home_pairs)
    for each in violations(cell, home(cell), tolerance=RESTING, meshes=meshes):
        if at_home and each.message == home_text(at_home):
            continue  # a note follows, which names all of them
        fix = ""
        text = each.message
        if each.kind == "untested" and text.startswith(
            (parts := untested_parts(each.subject))[0]
        ):
            text, fix = parts
        text = with_options(text).removesuffix(".")
        found = Diagnostic(
            place=place,
            code="links-touch",
            message=text,
            severity=Severity.WARNING,
            hint=with_options(fix),
        )
        if each.kind == "untested":
            yield replace(found, code="links-untested")
        elif each.links:
            text = f"At home, links {text.removeprefix('Links ')}"
            yield replace(found, message=text)
    if at_home:
        text, fix = home_parts(at_home, most=len(at_home))
        yield Diagnostic(
            place=place,
            code="touch-at-home",
            message=text.removesuffix("."),
            severity=Severity.NOTE,
            hint=with_options(fix),
        )


def _explanations(diagnostics: Sequence[Any]) -> Iterator[str]:
    """Yield what the ids of diagnostics mean, each once."""
    codes = (each.code for each in diagnostics if isinstance(each, Diagnostic))
    for code in dict.fromkeys(codes):
        yield from explanation(code, explained(code))


def _severity(diagnostic: Any) -> Severity:
    return getattr(diagnostic, "severity", Severity.ERROR)


def _object(diagnostic: Any) -> dict[str, Any]:
    """Return a diagnostic as it is printed as JSON; an error of the model has no id."""
    if not isinstance(diagnostic, Diagnostic):
        return {"severity": Severity.ERROR.value, "message": str(diagnostic)}
    place = diagnostic.place
    return {
        "severity": diagnostic.severity.value,
        "id": diagnostic.code,
        "path": place.path,
        "line": place.line or None,
        "column": place.column or None,
        "message": diagnostic.message,
        "fix": diagnostic.hint or None,
    }
