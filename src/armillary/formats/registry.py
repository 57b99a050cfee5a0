"""The table of formats, and reading and writing of files in any of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from armillary.errors import FormatError, ModelError, quote, unknown
from armillary.forks import IMPORT_LOCK
from armillary.formats import (
    actin,
    bundle,
    isaac,
    mjcf,
    native,
    robwork,
    sdf,
    urdf,
    usd,
    xacro,
)
from armillary.formats.descriptions import described, is_name
from armillary.formats.diagnostic import (
    NOWHERE,
    SWAPPED_LIMITS,
    Diagnostic,
    Place,
    Report,
    Severity,
    fault,
)
from armillary.formats.files import read_bytes, write_bytes
from armillary.formats.format import Format, ReadOptions, WriteOptions
from armillary.formats.joint_types import PluginJoints, by_tag
from armillary.formats.kept_reading import kept_reading
from armillary.formats.mesh.files import MeshFiles
from armillary.formats.paths import Roots
from armillary.formats.srdf import FORMAT as SRDF
from armillary.limits import FILE_SIZE
from armillary.model.joint import Joint
from armillary.model.link_pattern import links_of
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import DEFAULT_RULES, Workcell
from armillary.paused_collector import collector_paused

if TYPE_CHECKING:
    from armillary.trajectories.motion import Motion
    from armillary.view.motion import Playable

__all__ = ["FORMATS", "Loaded", "load", "log", "read", "save", "write"]

Folder = str | os.PathLike[str]

# A format is a package in this folder and its row here. Where the contents of a file
# look like several formats, the first row wins.
FORMATS: Final[tuple[Format, ...]] = (
    native.FORMAT,
    bundle.FORMAT,
    isaac.FORMAT,
    urdf.FORMAT,
    sdf.FORMAT,
    mjcf.FORMAT,
    actin.FORMAT,
    robwork.FORMAT,
    usd.FORMAT,
)

# Recognised by the ending only: an SRDF is read onto a cell, and a xacro file is a
# program, which is run only if its name or the caller says so.
NAMED_ONLY: Final[tuple[Format, ...]] = (SRDF, xacro.FORMAT)


class Loaded(NamedTuple):
    """What is in a file.

    Attributes:
        cell: The cell.
        report: Warnings and notes.
        meshes: What reads the meshes of the cell.
        motions: Its motions by name.
    """

    cell: Workcell
    report: Report
    meshes: MeshSource
    motions: Mapping[str, Motion]


def read(path: Folder, **options: Any) -> tuple[Workcell, Report]:
    """Return the cell in a file, and its warnings and notes, as `load` does."""
    return load(path, **options)[:2]


def load(  # noqa: PLR0913
    path: Folder,
    *,
    format: str | None = None,
    packages: Mapping[str, Folder] | None = None,
    folders: Iterable[Folder] = (),
    joints: Mapping[str, type[Joint]] | Iterable[type[Joint]] = (),
    plugins: Iterable[str] = (),
    strict_order: bool = False,
    strict: bool = False,
    lenient: bool = False,
    swapped_limits: str | None = None,
    srdf: Folder | None = None,
    self_collision: bool | None = None,
    arguments: Mapping[str, str] | None = None,
    fetch: bool = False,
) -> Loaded:
    """Return the cell in a file, with what the file has beside it.

    Args:
        path: A plain file, or the name of a robot of `robot_descriptions`.
        format: Name of its format; by default recognised from its name and contents.
        packages: The folder of each package, for references `package://name/...`.
        folders: Further folders that the file may refer to.
        joints: Your own joint classes, or a mapping from their tags. A joint of an
            unknown type is kept as it is, but cannot move.
        plugins: Installed packages whose joints may be imported if the file holds
            them, besides those that the user's configuration allows.
        strict_order: Refuse a link that comes before its parent, as Isaac does.
        strict: Refuse every fault, even if the motion is clear all the same.
        lenient: Guess what is refused otherwise, such as swapped limits; each guess is
            a warning.
        swapped_limits: How limits with lower above upper are read: `swap`, which
            `lenient` does too, or `unlimited`, as some simulators do.
        srdf: A file with groups, postures and collision rules for the robot.
        self_collision: Whether each robot is tested against itself, whatever the file
            says, see `Rules.include_self`. By default as the rules of the file say; a
            robot whose file says nothing of collisions is tested.
        arguments: Values for `$(arg name)` in a xacro file; variants of a USD stage by
            the names of their sets.
        fetch: Whether the repository of a robot that is given by its name in
            `robot_descriptions` may be cloned.

    Raises:
        FormatError: A file cannot be read, or is faulty; it lists all diagnostics.
        UnknownName: There is no such format or plug-in, or reading of swapped limits.
        ModelError: `joints` are not joint classes, or two share a tag; `strict` and
            `lenient` are both given; `self_collision` is not True, False or None; or
            the file takes no arguments.
    """
    report = _report_of(strict, lenient, swapped_limits)
    wanted: Any = self_collision
    if type(wanted) not in {bool, np.bool_, type(None)}:
        raise ModelError(
            f"self_collision= takes True, False or None, not {quote(wanted)}."
        )
    wanted = None if wanted is None else bool(wanted)
    chosen = None if format is None else _named(format)
    name = os.fspath(path)
    if is_name(name):
        found = described(name, fetch=fetch)
        name, folders = found.path, (*folders, *found.folders)
        packages = {**found.packages, **(packages or {})}
        arguments = {**found.arguments, **(arguments or {})}
    options = ReadOptions(
        roots=Roots(packages=packages, folders=folders),
        joints=by_tag(joints),
        plugins=PluginJoints(plugins),
        strict_order=bool(strict_order),
        arguments=arguments or {},
    )
    named = chosen or _by_suffix(name)
    data = read_bytes(name, (FILE_SIZE if named is None else named.size).most)
    with collector_paused():
        chosen = chosen or _recognised(name, data)
        if arguments and not chosen.takes_arguments:
            raise ModelError(
                f"arguments= is for xacro files and variants of USD; {name} is neither."
            )
        try:
            cell = kept_reading(chosen, data, name, options, report)
        except ModelError as error:  # such as products of numbers that overflow
            raise fault(name, "bad-model", str(error).removesuffix(".")) from error
    report.raise_if_errors()
    if srdf is not None:
        with IMPORT_LOCK:
            from armillary.formats.srdf.read import read_onto

        companion = os.fspath(srdf)
        cell = read_onto(cell, read_bytes(companion), companion, report)
    cell = _with_self(cell, name, chosen, wanted, report)
    if chosen.meshes is not None:
        meshes = chosen.meshes(data, name, options.roots)
    else:
        meshes = MeshFiles(os.path.dirname(os.path.abspath(name)), roots=options.roots)
    motions: Mapping[str, Motion] = {}
    if chosen.motions is not None:
        motions = chosen.motions(data, name, report)
    report.raise_if_errors()
    return Loaded(cell, report, meshes, motions)


def _report_of(strict: bool, lenient: bool, swapped_limits: str | None) -> Report:
    """Return a report with the options of `read` that decide what is a fault."""
    if strict and lenient:
        raise ModelError(
            "strict=True refuses what lenient=True guesses; choose one of them."
        )
    if swapped_limits is not None and swapped_limits not in SWAPPED_LIMITS:
        raise unknown("reading of swapped limits", swapped_limits, SWAPPED_LIMITS)
    return Report(
        strict=bool(strict),
        lenient=bool(lenient),
        swapped_limits=swapped_limits or "",
    )


def _with_self(
    cell: Workcell,
    path: str,
    chosen: Format,
    is_wanted: bool | None,
    report: Report,
) -> Workcell:
    """Return a cell whose rules say whether its robots are tested against themselves.

    is_wanted: What the caller says; None where the file decides.
    """
    robots = [
        each.name
        for each in cell.manipulators
        if sum(bool(link.collision_shapes) for link in each.links) > 1
    ]
    is_silent = chosen.tests_itself and cell.rules == DEFAULT_RULES
    if not robots or (is_wanted is None and not is_silent):
        return cell
    if is_wanted is False:
        rules = cell.rules
        for name in robots:
            links = links_of(name)
            rules = rules.without_self(name).exclude(links, links)
        return cell.replace(rules=rules)
    if is_wanted is None:
        with IMPORT_LOCK:
            from armillary.formats.srdf.beside import srdf_beside

        beside = srdf_beside(path, robots[0])
        hint = f"{beside} lies beside it: load with srdf={beside!r}." if beside else ""
        report.note(
            Place(path),
            "self-collision",
            f"the file says nothing of collisions, so {quote(robots[0])} is tested "
            "against itself, except links that share a joint or touch at home",
            hint=hint or "Name its rules with srdf=..., or use self_collision=False.",
        )
    return cell.replace(rules=cell.rules.include_self(*robots))


def log(report: Report) -> None:
    """Send diagnostics to the log `armillary.formats`, notes with level INFO."""
    if not report.diagnostics:
        return
    import logging  # most files are clean

    log_of_formats = logging.getLogger("armillary.formats")
    for diagnostic in report.diagnostics:
        is_warning = diagnostic.severity is Severity.WARNING
        log_of_formats.log(
            logging.WARNING if is_warning else logging.INFO, "%s", diagnostic
        )


def save(
    cell: Workcell,
    path: Folder,
    *,
    format: str | None = None,
    lossless: bool = False,
    meshes: MeshSource | None = None,
    motions: Mapping[str, Motion | Playable] | None = None,
    own_motions: Mapping[str, Motion] | None = None,
    rate: float | None = None,
) -> Report:
    """Write a cell to a file, as a whole or not at all.

    A format that needs further files has them beside it: `lab.prox.xml` holds the rules
    of `lab.wc.xml`. Existing ones are replaced, too.

    Args:
        cell: What to write.
        path: The file, which is replaced if it exists.
        format: Name of the format; by default that of the ending of the path.
        lossless: Raise instead of writing if the format cannot hold everything.
        meshes: What reads the meshes of the cell, for pairs that touch at home and for
            formats that hold meshes.
        motions: Motions by name, for formats that hold them; USD also takes the
            timeline of a program.
        own_motions: Those of the cell, which are written where `motions` is None.
        rate: Samples of a motion a second, where the format samples it.

    Returns:
        A warning for each thing that the format could not hold.

    Raises:
        FormatError: The format cannot hold this cell, or the file cannot be written.
        ModelError: `cell` is not a cell; the format holds one motion and several are
            given; or `rate` is for a format that samples none.
        UnknownName: There is no such format.
    """
    _check_cell(cell)
    name = os.fspath(path)
    chosen = _by_suffix(name) if format is None else _named(format)
    if chosen is None:
        raise fault(
            name,
            "unknown-format",
            f"the ending of {quote(os.path.basename(name))} is not one of a format",
            hint="Name a format with format=..., or end the name in "
            f"{_endings(*FORMATS, SRDF)}.",
        )
    folder, file_name = os.path.split(name)
    report = Report()
    held = _motions_for(chosen, motions, own_motions or {}, rate, report)
    options = WriteOptions(meshes=meshes, motions=held, rate=rate, folder=folder)
    if chosen.refers_to_meshes and isinstance(meshes, MeshFiles):
        with IMPORT_LOCK:
            from armillary.formats.mesh.references import with_moved_meshes

        cell = with_moved_meshes(cell, folder, meshes, report, has_packages=True)
    if chosen.names_pairs:
        with IMPORT_LOCK:
            from armillary.collision.pairs import with_home_pairs

        cell = with_home_pairs(cell, meshes)
    if chosen.write_files is not None:
        files = chosen.write_files(cell, file_name, options, report)
    else:
        files = {file_name: chosen.write(cell, report)}
    _check_losses(cell, chosen, report, lossless=lossless)
    for each, data in files.items():
        path = os.path.join(folder, each)
        if os.path.dirname(each) and os.path.isdir(folder or "."):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        write_bytes(path, data)
    return report


def write(
    cell: Workcell,
    *,
    format: str,
    lossless: bool = False,
    meshes: MeshSource | None = None,
) -> tuple[bytes, Report]:
    """Return the bytes of a cell in a format, and what it could not hold.

    meshes: As for `save`.

    Raises:
        FormatError: The format cannot hold this cell; with `lossless`, not all of it.
        ModelError: `cell` is not a cell.
        UnknownName: There is no such format.
    """
    _check_cell(cell)
    chosen = _named(format)
    report = Report()
    if chosen.names_pairs:
        with IMPORT_LOCK:
            from armillary.collision.pairs import with_home_pairs

        cell = with_home_pairs(cell, meshes)
    with collector_paused():
        options = (WriteOptions(meshes=meshes),) if chosen.takes_options else ()
        data = chosen.write(cell, report, *options)
    _check_losses(cell, chosen, report, lossless=lossless)
    return data, report


def _motions_for(
    chosen: Format,
    given: Mapping[str, Motion | Playable] | None,
    own: Mapping[str, Motion],
    rate: float | None,
    report: Report,
) -> Mapping[str, Motion | Playable]:
    """Return the motions that a format takes, and list those that it does not hold.

    Raises:
        ModelError: It holds one motion and several are given, or it samples none; or a
            motion is given without a name.
    """
    if given is not None and not isinstance(cast("Any", given), Mapping):
        raise ModelError(
            f"motions= takes a motion for each name, such as {{'cycle': motion}}, not "
            f"{quote(given)}."
        )
    with IMPORT_LOCK:
        from armillary.formats.features import SAMPLED

    held = chosen.holds().get("motions")
    if rate is not None and held != SAMPLED:
        able = ", ".join(
            each.title for each in FORMATS if each.holds().get("motions") == SAMPLED
        )
        raise ModelError(
            f"A rate is for formats that sample a motion: {able}; {chosen.title} does "
            "not. Leave it out, or write the samples alone, by Motion.write."
        )
    motions = own if given is None else given
    if held == SAMPLED and len(motions) > 1 and given is not None:
        names = ", ".join(map(quote, motions))
        raise ModelError(
            f"{chosen.title} holds one motion, not {len(motions)}: {names}. Give the "
            "one that is to be written."
        )
    if motions and (held is None or (held == SAMPLED and len(motions) > 1)):
        report.unsupported.add("a motion", count=len(motions))
        return {}
    return motions


def _check_cell(cell: Any) -> None:
    if not isinstance(cell, Workcell):
        raise ModelError(
            f"A {type(cell).__name__} is not a cell. Put it into one: a joint into a "
            "Link, links into a Manipulator, and manipulators into a Cell."
        )


def _check_losses(
    cell: Workcell, chosen: Format, report: Report, *, lossless: bool
) -> None:
    """Raise the errors of a writer, and its warnings if nothing may be lost."""
    report.raise_if_errors()
    lost = [d for d in report.diagnostics if d.severity is Severity.WARNING]
    if lossless and lost:
        summary = Diagnostic(
            place=NOWHERE,
            code="lossy",
            message=f"{chosen.title} cannot hold all of cell {quote(cell.name)}",
            hint="What would be lost follows.",
        )
        raise FormatError(summary, *report.diagnostics)


def _named(name: str) -> Format:
    """Return the format of a name."""
    known = (*FORMATS, *NAMED_ONLY)
    for each in known:
        if each.name == name:
            return each
    raise unknown("format", name, [each.name for each in known])


def _by_suffix(path: str) -> Format | None:
    """Return the format of the ending of a path."""
    name = os.path.basename(path).lower()
    matches = [
        (len(suffix), each)
        for each in (*FORMATS, *NAMED_ONLY)
        for suffix in each.suffixes
        if name.endswith(suffix)
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def _recognised(path: str, data: bytes) -> Format:
    """Return the format of a file, on which its name and contents must agree."""
    named = _by_suffix(path)
    if named is not None and (named in NAMED_ONLY or named.sniff(data)):
        return named
    seen = next((each for each in FORMATS if each.sniff(data)), None)
    if seen is None:
        with IMPORT_LOCK:
            from armillary.formats.foreign import foreign_to

        known = foreign_to(path, data)
        if known is not None:
            message = f"this is {known.title}, which is not read"
            if named is not None:
                message = f"this is {known.title}, not {named.title}"
            raise fault(path, "unknown-format", message, hint=known.fix)
    if named is not None and seen is not None:
        raise fault(
            path,
            "wrong-content",
            f"the name says {named.title}, but the contents look like {seen.title}",
            hint=f"Rename the file, or say format={seen.name!r}.",
        )
    if named is None and seen is None:
        known = _endings(*FORMATS, *NAMED_ONLY)
        hint = f"Name it with format=...; known are {known}."
        if path.endswith(".py"):
            hint = "A kinematics script is read by arm.scripted(path, component=...)."
        raise fault(
            path,
            "unknown-format",
            "neither the ending nor the contents of this file are of a known format",
            hint=hint,
        )
    # If the contents look like no format, the reader of the named one explains why.
    chosen = named or seen
    assert chosen is not None
    return chosen


def _endings(*formats: Format) -> str:
    return ", ".join(f"{each.suffixes[0]} ({each.name})" for each in formats)
