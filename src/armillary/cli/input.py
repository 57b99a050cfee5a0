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
from armillary.formats.mesh.files import mesh_files
from armillary.formats.registry import Loaded
from armillary.model.workcell import Workcell


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
    "--plugin PACKAGE",
    "an installed package whose joints may be imported; may be repeated",
    action="append",
    default=[],
)
FILE_OPTIONS = (
    option("--format NAME", "its format; by default found from the file"),
    option(
        "--package NAME=DIR",
        "the folder of a package that the file refers to; may be repeated",
        action="append",
        default=[],
        type=_package,
    ),
    option(
        "--folder DIR",
        "a further folder that the file may refer to; may be repeated",
        action="append",
        default=[],
        type=_folder,
    ),
    option(
        "--srdf FILE",
        "groups, postures and collision rules for the robot in the file",
        is_input=True,
    ),
    option(
        "--self-collision",
        "whether each robot is tested for collision with itself; by default as "
        "the rules of the file say, and yes where it says nothing of collisions",
        action=argparse.BooleanOptionalAction,
        default=None,
    ),
    OneOf(
        (
            option(
                "--strict",
                "reject every fault, even if the motion is clear",
                action="store_true",
            ),
            option(
                "--lenient",
                "repair faults that are otherwise rejected, such as swapped limits",
                action="store_true",
            ),
        )
    ),
    option(
        "--swapped-limits",
        "how limits with lower above upper are read: swapped, as --lenient does, "
        "or as none",
        choices=tuple(SWAPPED_LIMITS),
    ),
    option(
        "--argument NAME=VALUE",
        "a value for $(arg NAME) in a xacro file, or a variant of USD; may be repeated",
        type=_argument,
        action="append",
        default=[],
    ),
    option(
        "--component FILE",
        "the component of a kinematics script, which is the file then, and runs: JSON, "
        "or a component.rsc",
    ),
    option(
        "--fetch",
        "clone the repository of a robot that is given by its name, over the network",
        action="store_true",
    ),
    option(
        "--isolated-scripts",
        "run the scripts of the file in processes of their own, with limits",
        action="store_true",
    ),
    PLUGIN,
)


def file_to_read(name: str) -> Options:
    """Return the argument for the file to read, and the options that say how."""
    file = option(
        f"file {name}",
        "a file of any known format, or a robot's name, such as panda_description",
        is_input=True,
    )
    return file, *FILE_OPTIONS


FILE = file_to_read("FILE")


def read(options: argparse.Namespace) -> Loaded:
    """Return what is in the file that was named.

    Raises:
        ArmillaryError: It cannot be read, or is faulty.
    """
    if options.component is not None:
        return _scripted(options)
    loaded = registry.load(
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
        fetch=options.fetch,
    )
    if options.isolated_scripts:
        from armillary.scripts.mechanism import isolate_scripts

        isolate_scripts(loaded.cell)
    return loaded


def _scripted(options: argparse.Namespace) -> Loaded:
    """Return the cell of a kinematics script; giving its path lets it run."""
    from armillary.scripts.manipulator import scripted
    from armillary.scripts.mechanism import scripts_of

    robot = scripted(options.file, component=options.component)
    workcell, report = Workcell(name=robot.name, manipulators=[robot]), Report()
    for script in scripts_of(workcell):
        for each in script.diagnostics:
            place = Place(options.file, each.line, 1)
            report.warning(place, each.kind, each.message)
    files = mesh_files(options.file, dict(options.package), options.folder)
    return Loaded(workcell, report, files, {})


def open_cell(options: argparse.Namespace) -> Cell:
    """Return the cell in the file that was named; warnings go to stderr.

    Raises:
        ArmillaryError: It cannot be read, or is faulty.
    """
    loaded = read(options)
    warn(loaded.report)
    return Cell.of(loaded.cell, meshes=loaded.meshes, motions=loaded.motions)


def warn(report: Report) -> None:
    """Print the warnings of a report to stderr."""
    for each in report.diagnostics:
        if each.severity is Severity.WARNING:
            print(diagnostic_text(each), file=sys.stderr)
