"""Model any robot workcell, with any joints, and compute with it at native speed.

    import armillary as arm

    cell = arm.load("robot.urdf")  # or arm.example("ur5e_on_oval")
    fk = cell.fk("tool0")          # a kernel: fk(q), or fk(Q) for a batch
    found = cell.ik("tool0")(fk(q))
    state = cell.home.grip("part", by="gripper/tcp")

`Cell` has the questions, `State` what moves. `Manipulator`, `Link` and the joints in
`joints` make a model by hand, with `Limits`, `JointDynamics` and `SpatialInertia`; a
subclass of `Joint` with a method `pose(q)` is a joint of your own, and
`armillary.testing.check_joint` checks it. `Closure` and `Rod` close
loops of links. `SearchOptions` says how long inverse kinematics searches, `Reason` and
`RateReason` why an answer is what it is. `tasks` and
`Obstacles` are for controllers. `sweep` asks a question of millions of samples, such
as `cell.samples(n)` or a `grid`, and `sweeps` has what it can keep of them.
`calibrate` finds numbers of a cell from `measurements` of it. All errors are in
`errors` and derive from `ArmillaryError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from armillary import errors
from armillary.errors import ArmillaryError, unknown

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from importlib.resources.abc import Traversable

    from armillary import shapes, sweeps
    from armillary.calibration import measurements
    from armillary.calibration.calibrate import calibrate
    from armillary.calibration.calibration import Calibration
    from armillary.cell.cell import Cell
    from armillary.control import tasks
    from armillary.control.obstacles import Obstacles
    from armillary.formats.diagnostic import Report
    from armillary.ik.reason import RateReason, Reason
    from armillary.kernel.search import SearchOptions
    from armillary.kinematics.state import State
    from armillary.model import joints
    from armillary.model.closed_form import ClosedForm, OutOfReach
    from armillary.model.coupled_limit import CoupledLimit
    from armillary.model.coupling import Coupling
    from armillary.model.frame import Frame
    from armillary.model.joint import Joint
    from armillary.model.joint_dynamics import JointDynamics
    from armillary.model.limits import Limits
    from armillary.model.link import Link
    from armillary.model.loops.loop import Closure, Rod
    from armillary.model.manipulator import Manipulator
    from armillary.model.mechanism import Mechanism
    from armillary.model.mount import Mount
    from armillary.model.posture import Posture
    from armillary.model.rules import Rules
    from armillary.model.unit import Unit
    from armillary.model.workcell import Workcell
    from armillary.planning.cartesian_path import CartesianPath, LineReason
    from armillary.planning.constraint import FrameConstraint
    from armillary.planning.plan import Plan, PlanReason
    from armillary.planning.planner import Planner
    from armillary.planning.roadmap import Roadmap
    from armillary.planning.segments import Arc, Line
    from armillary.programs import steps
    from armillary.programs.program import Program, Sensor
    from armillary.programs.timeline import Timeline
    from armillary.scripts.manipulator import scripted
    from armillary.spatial.inertia import SpatialInertia
    from armillary.spatial.pose import Pose
    from armillary.sweeps.samples import grid
    from armillary.sweeps.sweep import sweep
    from armillary.trajectories.motion import Motion
    from armillary.view.motion import Playable

    METRE: Final = Unit.METRE
    OTHER: Final = Unit.OTHER
    RADIAN: Final = Unit.RADIAN
    __version__: str

__all__ = [
    "METRE",
    "OTHER",
    "RADIAN",
    "Arc",
    "ArmillaryError",
    "Calibration",
    "CartesianPath",
    "Cell",
    "ClosedForm",
    "Closure",
    "CoupledLimit",
    "Coupling",
    "Frame",
    "FrameConstraint",
    "Joint",
    "JointDynamics",
    "Limits",
    "Line",
    "LineReason",
    "Link",
    "Manipulator",
    "Mechanism",
    "Motion",
    "Mount",
    "Obstacles",
    "OutOfReach",
    "Plan",
    "PlanReason",
    "Planner",
    "Pose",
    "Posture",
    "Program",
    "RateReason",
    "Reason",
    "Roadmap",
    "Rod",
    "Rules",
    "SearchOptions",
    "Sensor",
    "SpatialInertia",
    "State",
    "Timeline",
    "calibrate",
    "errors",
    "example",
    "example_names",
    "grid",
    "joints",
    "load",
    "measurements",
    "save",
    "scripted",
    "shapes",
    "steps",
    "sweep",
    "sweeps",
    "tasks",
]

# Where each public name is. It is imported on first use, so that what a program does
# not use costs it nothing; the command line prints its help without NumPy.
_MODULES: Final = {
    "joints": "armillary.model.joints",
    "measurements": "armillary.calibration.measurements",
    "shapes": "armillary.shapes",
    "steps": "armillary.programs.steps",
    "sweeps": "armillary.sweeps",
    "tasks": "armillary.control.tasks",
}
_HOMES: Final = {
    "Arc": "armillary.planning.segments",
    "Calibration": "armillary.calibration.calibration",
    "CartesianPath": "armillary.planning.cartesian_path",
    "Cell": "armillary.cell.cell",
    "ClosedForm": "armillary.model.closed_form",
    "Closure": "armillary.model.loops.loop",
    "CoupledLimit": "armillary.model.coupled_limit",
    "Coupling": "armillary.model.coupling",
    "Frame": "armillary.model.frame",
    "FrameConstraint": "armillary.planning.constraint",
    "Joint": "armillary.model.joint",
    "JointDynamics": "armillary.model.joint_dynamics",
    "Limits": "armillary.model.limits",
    "Line": "armillary.planning.segments",
    "LineReason": "armillary.planning.cartesian_path",
    "Link": "armillary.model.link",
    "Manipulator": "armillary.model.manipulator",
    "Mechanism": "armillary.model.mechanism",
    "Motion": "armillary.trajectories.motion",
    "Mount": "armillary.model.mount",
    "Obstacles": "armillary.control.obstacles",
    "OutOfReach": "armillary.model.closed_form",
    "Plan": "armillary.planning.plan",
    "PlanReason": "armillary.planning.plan",
    "Planner": "armillary.planning.planner",
    "Pose": "armillary.spatial.pose",
    "Posture": "armillary.model.posture",
    "Program": "armillary.programs.program",
    "RateReason": "armillary.ik.reason",
    "Reason": "armillary.ik.reason",
    "Roadmap": "armillary.planning.roadmap",
    "Rod": "armillary.model.loops.loop",
    "Rules": "armillary.model.rules",
    "SearchOptions": "armillary.kernel.search",
    "Sensor": "armillary.programs.program",
    "SpatialInertia": "armillary.spatial.inertia",
    "State": "armillary.kinematics.state",
    "Timeline": "armillary.programs.timeline",
    "calibrate": "armillary.calibration.calibrate",
    "grid": "armillary.sweeps.samples",
    "scripted": "armillary.scripts.manipulator",
    "sweep": "armillary.sweeps.sweep",
}

_Folder = str | os.PathLike[str]
_ENDING = ".cell.json"
_SCRIPTS = ("approved", "isolated")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(_imported(_HOMES[name]), name)
    elif name in _MODULES:
        value = _imported(_MODULES[name])
    elif name in {"METRE", "OTHER", "RADIAN"}:
        value = _imported("armillary.model.unit").Unit[name]
    elif name == "__version__":
        value = _imported("importlib.metadata").version("armillary")
    else:
        raise AttributeError(f"module 'armillary' has no attribute {name!r}")
    globals()[name] = value
    return value


def _import_lock() -> AbstractContextManager[Any]:
    # Imported late itself, with its locks and a logger: most of what it costs to import
    # this package alone.
    from armillary.forks import IMPORT_LOCK

    return IMPORT_LOCK


def _imported(name: str) -> Any:
    # Where one thread imports a package and another a module of it, Python may fail.
    with _import_lock():
        return import_module(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load(  # noqa: PLR0913
    path: _Folder,
    *,
    format: str | None = None,
    packages: Mapping[str, _Folder] | None = None,
    folders: Iterable[_Folder] = (),
    joints: Mapping[str, type[Joint]] | Iterable[type[Joint]] = (),
    plugins: Iterable[str] = (),
    strict_order: bool = False,
    strict: bool = False,
    lenient: bool = False,
    swapped_limits: str | None = None,
    srdf: _Folder | None = None,
    self_collision: bool | None = None,
    arguments: Mapping[str, str] | None = None,
    scripts: str = "approved",
    fetch: bool = False,
) -> Cell:
    """Return the cell in a file of any known format.

    A file with faults is read if the motion is clear nevertheless. What changes an
    answer, such as a shape that is left out, is a warning in the log
    `armillary.formats`.

    Args:
        path: A plain file; or the name of a robot that the package
            `robot_descriptions` lists, such as `panda_description`.
        format: Name of its format; by default found from its name and contents.
        packages: The folder of each package, for references `package://name/...`.
        folders: Further folders that the file may refer to.
        joints: Your own classes of joints that the file may hold.
        plugins: Installed packages whose joints may be imported where the file holds
            them, besides those that the user's configuration allows.
        strict_order: Reject a link that comes before its parent, as Isaac does.
        strict: Reject every fault, even if the motion is clear.
        lenient: Repair faults that are otherwise rejected, such as swapped limits; each
            repair is a warning.
        swapped_limits: How limits with lower above upper are read: `swap`, which
            `lenient` does too, or `unlimited`, as some simulators read them.
        srdf: A file with groups, postures and collision rules for the robot.
        self_collision: Whether each robot is tested against itself, see
            `Rules.include_self`. By default the rules of the file decide; a robot whose
            file says nothing of collisions, such as a URDF without `srdf`, is tested.
        arguments: Variants of a USD stage by the names of their sets; or values for
            `$(arg name)` in a `.xacro` file. The latter is a
            program: it is run in a process of its own, which may only read files, in
            the folders that are allowed. Load only those that you trust.
        scripts: What happens to kinematics scripts in the file when they are first
            needed: `approved` ones run, or, with `isolated`, also others, in processes
            of their own with limits. Loading runs none.
        fetch: Whether the repository of a robot that is given by its name may be cloned
            over the network, once; else it must be on this machine.

    Raises:
        FormatError: The file cannot be read, or is faulty; it lists all diagnostics.
        UnknownName: There is no such format or plug-in, or choice of scripts or of
            swapped limits.
    """
    with _import_lock():
        from armillary.cell.cell import Cell
        from armillary.formats import registry

    if scripts not in _SCRIPTS:
        raise unknown("choice of scripts", scripts, _SCRIPTS)

    loaded = registry.load(
        path,
        format=format,
        packages=packages,
        folders=folders,
        joints=joints,
        plugins=plugins,
        strict_order=strict_order,
        strict=strict,
        lenient=lenient,
        swapped_limits=swapped_limits,
        srdf=srdf,
        self_collision=self_collision,
        arguments=arguments,
        fetch=fetch,
    )
    registry.log(loaded.report)
    if scripts == "isolated":
        with _import_lock():
            from armillary.scripts.mechanism import isolate_scripts

        isolate_scripts(loaded.cell)
    return Cell.of(loaded.cell, meshes=loaded.meshes, motions=loaded.motions)


def save(
    cell: Cell | Workcell,
    path: _Folder,
    *,
    format: str | None = None,
    lossless: bool = False,
    motions: Mapping[str, Motion | Playable] | None = None,
    rate: float | None = None,
) -> Report:
    """Write a cell to a file, as a whole or not at all.

    Warnings go to the log `armillary.formats`. A format that needs further files has
    them beside it: `lab.prox.xml` holds the rules of `lab.wc.xml`.

    Args:
        cell: What to write.
        path: The file, which is replaced where it exists.
        format: Name of the format; by default found from the ending of the path.
        lossless: Raise instead of writing where the format cannot hold everything.
        motions: Motions by name, for formats that hold them; by default those of the
            cell. A bundle, `.cell.zip`, holds any number, USD one, as an animation,
            or the timeline of a program, `cell.run(program)`.
        rate: Samples of a motion a second in USD; 30 by default.

    Returns:
        A warning for each thing that the format could not hold, in its `diagnostics`.

    Raises:
        FormatError: The format cannot hold this cell, or the file cannot be written.
        ModelError: More motions are given than the format holds, or a rate for one
            that samples none.
        UnknownName: There is no such format.
    """
    with _import_lock():
        from armillary.cell.cell import Cell
        from armillary.formats import registry

    workcell, meshes = (
        (cell.workcell, cell.meshes) if isinstance(cell, Cell) else (cell, None)
    )
    report = registry.save(
        workcell,
        path,
        format=format,
        lossless=lossless,
        meshes=meshes,
        motions=motions,
        own_motions=cell.motions if isinstance(cell, Cell) else None,
        rate=rate,
    )
    registry.log(report)
    return report


def example(name: str) -> Cell:
    """Return a cell that comes with armillary, such as `ur5e_on_oval`.

    Raises:
        UnknownName: No example has this name; the message lists them.
    """
    known = example_names()
    if name not in known:
        raise unknown("example cell", name, known)
    found = _examples() / f"{name}{_ENDING}"
    if isinstance(found, os.PathLike):
        return load(found)
    with _imported("importlib.resources").as_file(found) as path:
        return load(path)


def example_names() -> tuple[str, ...]:
    """Return the names of the cells that come with armillary, sorted."""
    names = [each.name for each in _examples().iterdir()]
    return tuple(sorted(n.removesuffix(_ENDING) for n in names if n.endswith(_ENDING)))


def _examples() -> Traversable:
    folder = _imported("pathlib").Path(__file__).with_name("cells")
    if folder.is_dir():  # else it is in an archive
        return folder
    resources = _imported("importlib.resources")
    with _import_lock():  # it imports, too
        return resources.files("armillary") / "cells"
