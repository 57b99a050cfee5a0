"""The API reference: what it shows, and the pages that Sphinx reads it from."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Final

# The public modules, each with the classes to show: all that are public if None.
# Those with a list hold classes that users receive from a cell and do not make.
REFERENCE: Final[dict[str, tuple[str, ...] | None]] = {
    "armillary": None,
    "armillary.errors": None,
    "armillary.model.joints": None,
    "armillary.shapes": None,
    "armillary.testing": None,
    "armillary.cell.device": ("Device",),
    "armillary.cell.differential_drive": ("DifferentialDrive",),
    "armillary.collision.check": ("CollisionCheck", "Contact"),
    "armillary.planning.cartesian_path": ("Stretch", "Tool"),
    "armillary.trajectories.motion": ("Motion",),
    "armillary.trajectories.motion_parts": (
        "Attachment",
        "Marker",
        "Peaks",
        "Samples",
    ),
    "armillary.trajectories.timed_path": ("PathReason", "TimedPath"),
    "armillary.dynamics.trajectory": ("Trajectory",),
    "armillary.formats.diagnostic": ("Diagnostic", "Report", "Severity"),
    "armillary.ik.differential": ("DifferentialSolver", "Rates"),
    "armillary.ik.inverse_kinematics": ("InverseKinematics",),
    "armillary.ik.path": ("Path",),
    "armillary.ik.solution": ("Answers", "Solution"),
    "armillary.kernel.kernel": ("Kernel",),
    "armillary.kinematics.all_frames": ("Poses",),
    "armillary.kinematics.bound_kernel": ("BoundKernel",),
    "armillary.kinematics.closing.solver": ("LoopReason",),
    "armillary.kinematics.loops": ("ClosedLoops", "Mobility"),
    "armillary.kinematics.questions": ("Between",),
    "armillary.kinematics.violations": ("Violation",),
    "armillary.model.group": ("Group",),
    "armillary.model.limit_rows": ("LimitRows",),
    "armillary.model.link_pairs": ("PairDecision", "Pairs"),
    "armillary.model.posture": ("Posture",),
    "armillary.model.property": ("Property",),
    "armillary.model.rules": ("Rule", "Touch"),
    "armillary.model.shape": ("Shape",),
    "armillary.model.unit": ("Unit",),
    "armillary.model.wheels": ("Wheels",),
    "armillary.model.workcell": ("Workcell",),
    "armillary.view.viewer": ("Viewer",),
}


def write_reference(folder: Path) -> None:
    """Write a page for each public module, and one that lists them.

    Files whose text has not changed are left alone, so that a second build is fast.
    """
    pages = {f"{name}.rst": _module_page(name) for name in REFERENCE}
    pages["index.rst"] = _index()
    folder.mkdir(exist_ok=True)
    for path in set(folder.iterdir()) - {folder / name for name in pages}:
        path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _index() -> str:
    names = "".join(f"   {name}\n" for name in REFERENCE)
    return f"{_title('API reference')}\n.. toctree::\n   :maxdepth: 2\n\n{names}"


def _module_page(name: str) -> str:
    shown = REFERENCE[name]
    lines = [_title(name)]
    if shown is None:
        lines += [f".. automodule:: {name}\n   :no-members:\n"]
    else:
        lines += [f".. currentmodule:: {name}\n"]
    module = import_module(name)
    for each in sorted(shown or module.__all__, key=str.lower):
        thing = getattr(module, each)
        if inspect.isclass(thing):
            kind = "exception" if issubclass(thing, Exception) else "class"
            lines += [f".. auto{kind}:: {each}\n   :members:\n"]
        elif inspect.isfunction(thing):
            lines += [f".. autofunction:: {each}\n"]
    return "\n".join(lines)


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"
