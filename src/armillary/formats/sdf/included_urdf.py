"""A URDF that a file of SDF includes."""

from __future__ import annotations

from msgspec.structs import replace

from armillary.errors import FormatError, ModelError
from armillary.formats.diagnostic import Place, Report, Severity, fault
from armillary.formats.format import ReadOptions
from armillary.formats.paths import Roots
from armillary.formats.sdf.write import write
from armillary.formats.urdf.read import read
from armillary.model.mount import WORLD, Mount

__all__ = ["urdf_as_sdf"]


def urdf_as_sdf(data: bytes, path: str, roots: Roots, report: Report) -> bytes:
    """Return the SDF of a URDF that is included.

    A link `world` at its root is the world, and without one it stands free, as Gazebo
    has it. It is tested against itself, as a URDF is that is read by itself.

    report: Of the file that includes it, which gets its warnings and notes.

    Raises:
        FormatError: With the errors of the URDF.
    """
    own, written = report.apart(), report.apart()
    try:
        cell = read(data, path, ReadOptions(roots=roots), own)
        (robot,) = cell.manipulators
        mounts = cell.mounts
        if robot.links[robot.base].name == WORLD:
            mounts = (Mount(manipulator=robot.name),)
        rules = cell.rules.include_self(robot.name)
        text = write(cell.replace(rules=rules, mounts=mounts), written)
    except ModelError as error:  # such as products of numbers that overflow
        raise fault(path, "bad-model", str(error).removesuffix(".")) from error
    except FormatError as error:
        worst = [d for d in error.diagnostics if d.severity is Severity.ERROR]
        raise FormatError(*worst) from error
    lost = [d for d in written.diagnostics if d.severity is Severity.WARNING]
    for each in (*own.diagnostics, *lost):
        report.add(each if each.place.path else replace(each, place=Place(path)))
    return text
