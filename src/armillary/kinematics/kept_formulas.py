"""Formulas that earlier processes have traced: a tenth of the time of tracing them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from armillary import disk_cache
from armillary.disk_cache import FORMULAS, source_digest
from armillary.forks import IMPORT_LOCK
from armillary.kinematics.identity import digest
from armillary.model.fields import kept
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.workcell import Workcell
from armillary.trace import Program

__all__ = ["LAYERS_BELOW", "MOTION", "kept_formula", "motion_digest"]

if TYPE_CHECKING:
    from armillary.kernel.pipeline import Pipeline

Formula = TypeVar(
    "Formula", bound="Program | Pipeline | tuple[Program | str, ...] | None"
)

LAYERS_BELOW: Final = (
    "armillary.trace",
    "armillary.spatial",
    "armillary.kernel",
    "armillary.model",
    "armillary.model.geometry",
    "armillary.model.shapes",
)
"""Packages on which most formulas depend."""

MOTION: Final = (
    *LAYERS_BELOW,
    "armillary.model.joints",
    "armillary.model.loops",
    "armillary.kinematics",
    "armillary.kinematics.closing",
)
"""Packages on which formulas of the motion of a cell depend."""

OWN_JOINTS: Final = "armillary.model.joints."
MOVES_NOTHING: Final = {"visuals", "collisions", "inertia", "dynamics"}


def kept_formula(
    what: str,
    parts: tuple[Any, ...],
    make: Callable[[], Formula],
    *,
    made_by: tuple[str, ...],
) -> Formula:
    """Return a formula that an earlier process has traced, or else what `make` traces.

    An empty tuple is not kept.

    Args:
        what: What it is, for the key.
        parts: All that decides it. What has classes or functions of others is traced
            each time, since they may do something else next time.
        make: Traces it; what it raises is raised.
        made_by: The modules and packages whose source decides it.
    """
    source = source_digest(made_by)
    key = None
    if source is not None and disk_cache.folder() is not None:
        python = sys.version_info[:2]
        key = digest((what, made_by, source, python, parts), is_ours=True)
    if key is None:
        return make()
    content = disk_cache.load(key, FORMULAS)
    if content is not None:
        with IMPORT_LOCK:  # it may import what a stage names
            return pickle.loads(content)  # as trusted as machine code
    made = make()
    if made == ():
        return made  # spares nothing
    if made is not None and not isinstance(made, tuple):
        made.fingerprint  # noqa: B018  # is kept with it
    disk_cache.store(key, pickle.dumps(made, 5), FORMULAS)
    return made


def motion_digest(cell: Workcell) -> str | None:
    """Return the digest of what decides how a cell moves, as it was built.

    It has all of the cell but its rules, and shapes, masses and drives of links. None
    where joints of others move it, scripts, mechanisms or closed loops.
    """
    return kept(cell, "motion digest", lambda: _motion_digest(cell))


def _motion_digest(cell: Workcell) -> str | None:
    kinds = {type(each.joint) for each in cell.links}
    has_loops = len(cell.joints.home) > len(cell.joint_names)
    if has_loops or OpaqueJoint in kinds:
        return None
    if not all(kind.__module__.startswith(OWN_JOINTS) for kind in kinds):
        return None
    parts = [_fields(cell, {"rules", "manipulators"})]
    for manipulator in cell.manipulators:
        parts.append(_fields(manipulator, {"links"}))
        parts += [_fields(link, MOVES_NOTHING) for link in manipulator.links]
    return digest(parts, is_ours=True)


def _fields(struct: msgspec.Struct, left_out: set[str]) -> list[Any]:
    names = struct.__struct_fields__
    return [getattr(struct, name) for name in names if name not in left_out]
