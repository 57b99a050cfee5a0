"""The file that a verb is about, and where it may refer to."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from armillary.cell.cell import Cell
from armillary.cli.hints import diagnostic_text
from armillary.cli.verb import OneOf, Options, option
from armillary.errors import quote
from armillary.formats import registry
from armillary.formats.diagnostic import SWAPPED_LIMITS, Place, Report, Severity
from armillary.formats.mesh.files import MeshFiles, mesh_files
from armillary.model.workcell import Workcell
from armillary.scripts.manipulator import scripted
from armillary.scripts.mechanism import isolate_scripts, scripts_of


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{quote(text)} is not of the form NAME=VALUE")
    return name.removesuffix(":"), value  # as xacro itself writes it, NAME:=VALUE


def _package(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"{quote(text)} is not of the form NAME=DIR")
    return name, _folder(folder)


def _folder(text: str) -> Path:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no folder {quote(text)}")
    return Path(text)


PLUGIN = option(
    "--plugin",
    metavar="PACKAGE",
    action="append",
    default=[],
    help="an installed package whose joints may be imported; may be repeated",
)
FILE_OPTIONS = (
    option(
        "--format", metavar="NAME", help="its format; by default found from the file"
    ),
    option(
        "--package",
        metavar="NAME=DIR",
        action="append",
        default=[],
        type=_package,
        help="the folder of a package that the file refers to; may be repeated",
    ),
    option(
        "--folder",
        metavar="DIR",
        action="append",
        default=[],
        type=_folder,
        help="a further folder that the file may refer to; may be repeated",
    ),
    option(
        "--srdf",
        metavar="FILE",
        is_input=True,
        help="groups, postures and collision rules for the robot in the file",
    ),
    option(
        "--self-collision",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="whether each robot is tested for collision with itself; by default as "
        "the rules of the file say, and yes where it says nothing of collisions",
    ),
    OneOf(
        (
            option(
                "--strict",
                action="store_true",
                help="reject every fault, even if the motion is clear",
            ),
            option(
                "--lenient",
                action="store_true",
                help="repair faults that are otherwise rejected, such as swapped "
                "limits",
            ),
        )
    ),
    option(
        "--swapped-limits",
        choices=tuple(SWAPPED_LIMITS),
        help="how limits with lower above upper are read: swapped, as --lenient does, "
        "or as none",
    ),
    option(
        "--argument",
        metavar="NAME=VALUE",
        type=_argument,
        action="append",
        default=[],
        help="a value for $(arg NAME) in a xacro file; may be repeated",
    ),
    option(
        "--component",
        metavar="FILE",
        help="the component of a kinematics script, which is the file then, and runs",
    ),
    option(
        "--isolated-scripts",
        action="store_true",
        help="run the scripts of the file in processes of their own, with limits",
    ),
    PLUGIN,
)


def file_to_read(name: str) -> Options:
    """Return the argument for the file to read, and the options that say how."""
    file = option(
        "file", metavar=name, is_input=True, help="a file of any known format"
    )
    return file, *FILE_OPTIONS


FILE = file_to_read("FILE")


def read(options: argparse.Namespace) -> tuple[Workcell, Report]:
    """Return the cell in the file that was named, and the report of reading it.

    Raises:
        ArmillaryError: It cannot be read, or is faulty.
    """
    if options.component is not None:
        return _scripted(options)
    workcell, report = registry.read(
        options.file,
        format=options.format,
        packages=dict(options.package),
        folders=options.folder,
        plugins=options.plugin,
        strict=options.strict,
        lenient=options.lenient,
        swapped_limits=options.swapped_limits,
        srdf=options.srdf,
        self_collision=options.self_collision,
        arguments=dict(options.argument),
    )
    if options.isolated_scripts:
        isolate_scripts(workcell)
    return workcell, report


def _scripted(options: argparse.Namespace) -> tuple[Workcell, Report]:
    """Return the cell of a kinematics script; giving its path lets it run."""
    robot = scripted(options.file, component=options.component)
    workcell, report = Workcell(name=robot.name, manipulators=[robot]), Report()
    for script in scripts_of(workcell):
        for each in script.diagnostics:
            place = Place(options.file, each.line, 1)
            report.warning(place, each.kind, each.message)
    return workcell, report


def open_cell(options: argparse.Namespace) -> Cell:
    """Return the cell in the file that was named; warnings go to stderr.

    Raises:
        ArmillaryError: It cannot be read, or is faulty.
    """
    workcell, report = read(options)
    warn(report)
    return Cell.of(workcell, meshes=meshes_of(options))


def meshes_of(options: argparse.Namespace) -> MeshFiles:
    """Return what reads the meshes of the file that was named."""
    return mesh_files(options.file, dict(options.package), options.folder)


def warn(report: Report) -> None:
    """Print the warnings of a report to stderr."""
    for each in report.diagnostics:
        if each.severity is Severity.WARNING:
            print(diagnostic_text(each), file=sys.stderr)
