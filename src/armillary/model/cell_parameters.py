"""The numbers of a cell by name, to be inputs of kernels or to have other values.

A name leads from a joint, link, frame or manipulator to a number of it:

| name | number |
| --- | --- |
| `elbow.precursor.x` | a correction of the pose in front of a joint's motion |
| `track.radius`, `elbow.alpha` | a field of the joint, built in or of the user |
| `elbow.offset` | what is added to the joint's coordinate |
| `finger.coupling.multiplier` | of the coupling of a joint that follows |
| `tool0.rz` | a correction of a named frame, or of a link that does not move |
| `ur5e.mount.x` | a correction of where a manipulator stands |
| `drive.length`, `foot1-ball1.length` | of a rod, by its name or that of its frames |
| `forearm.inertia.m`, `.h_x`, `.I_xy` | of a link, in the order of its `parameters` |
| `elbow.dynamics.damping` | of a joint's motor, friction or spring |

A pose has six numbers, a twist that is added behind it: X exp(x, y, z, rx, ry, rz), in
the pose's own axes [m and rad]. They are 0 in the model as it is, so that no chart of
rotations is singular where it matters. A name without the last part stands for all the
numbers behind it: `elbow.precursor` for six.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

from armillary.errors import ModelError, quote, unknown
from armillary.model.fields import kept
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import JointDynamics
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.varied_joint import (
    SIX,
    Path,
    VariedJoint,
    changed_parts,
    corrected,
    part_at,
    unchecked,
)
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import INERTIAL, SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose
from armillary.trace import Traced

__all__ = [
    "CellParameter",
    "all_parameters",
    "drive_offsets",
    "first_places",
    "followed",
    "named_parameters",
    "parameters",
    "values_in",
    "varied_cell",
    "with_parameters",
]

MOUNT: Final = "mount"
OFFSET: Final = "offset"
INERTIA: Final = "inertia"
DYNAMICS: Final = "dynamics"

VALUES: Final = "values of parameters"
NOMINAL: Final = "cell without parameters"

STRUCTURE: Final = {
    "cell": ("index", "owners", "starts"),
    "manipulator": (
        *("index", "parents", "children", "order", "base", "joint_links"),
        *("loop_system", "_start", "home_vector", "coordinates"),
    ),
}
"""What is the same for all values of parameters, and need not be found again."""


class CellParameter(NamedTuple):
    """A number of a cell.

    Attributes:
        name: Qualified, such as `ur5e/elbow.precursor.x`.
        path: The fields and places that lead from the cell to it, or to its pose.
        component: Which number of a twist behind that pose it is, or of that inertia;
            `offset` of a joint's coordinate, whose link `path` leads to; or nothing.
        value: Its value in the cell.
    """

    name: str
    path: Path
    component: str
    value: float


def named_parameters(cell: Workcell, names: Sequence[str]) -> tuple[CellParameter, ...]:
    """Return the numbers that names stand for, in the order of the names.

    Raises:
        UnknownName: There is nothing of that name.
        ModelError: A name is not unique, stands for no number, or a number is named
            twice.
    """
    if isinstance(names, str):
        raise ModelError(
            f"parameters= takes a list of names, not the text {quote(names)}."
        )
    if isinstance(names, Mapping):
        raise ModelError(
            "parameters= takes a list of names, whose values are then an input; "
            "cell.with_parameters(values) is the cell with other values."
        )
    try:
        listed = tuple(names)
    except TypeError:
        raise ModelError(
            f"parameters= takes a list of names, not {quote(names)}."
        ) from None
    for name in listed:
        if not isinstance(cast(Any, name), str):
            raise ModelError(f"A parameter is given by its name, not {quote(name)}.")

    def find() -> tuple[CellParameter, ...]:
        found = tuple(each for name in listed for each in _Names(cell).find(name))
        _check_distinct(found)
        return found

    return kept(cell, ("parameters", listed), find)


def _check_distinct(parameters: Sequence[CellParameter]) -> None:
    seen: set[str] = set()
    for each in parameters:
        if each.name in seen:
            raise ModelError(f"Parameter {quote(each.name)} is named twice.")
        seen.add(each.name)


def all_parameters(cell: Workcell) -> tuple[CellParameter, ...]:
    """Return all numbers that decide poses: of joints, frames and mounts."""

    def find() -> tuple[CellParameter, ...]:
        names = _Names(cell)
        return tuple(each for name in names.roots() for each in names.find(name))

    return kept(cell, "all parameters", find)


def first_places(cell: Workcell, parameters: Sequence[CellParameter]) -> list[int]:
    """Return the places of parameters, those first that say where things are put.

    Nobody knows where a robot stands in the room of a tracker, or a reflector on it,
    but its joints are nearly as its file says.
    """
    return sorted(
        range(len(parameters)), key=lambda k: is_of_joint(cell, parameters[k])
    )


def is_of_joint(cell: Workcell, parameter: CellParameter) -> bool:
    """Tell whether a parameter is of a joint that moves, or of a closed loop."""
    path = parameter.path
    if path[0] == "mounts" or "frames" in path:
        return False
    return "loops" in path or part_at(cell, path[:4]).moves


class _Names:
    """Looks up what the first part of a name stands for, then the fields behind it."""

    def __init__(self, cell: Workcell) -> None:
        """Take the cell."""
        self._cell = cell

    def roots(self) -> Iterator[str]:
        """Yield names that stand for all numbers, each once."""
        cell = self._cell
        for manipulator in cell.manipulators:
            if manipulator.name in cell.mounted:
                yield f"{manipulator.name}.mount"
            for link in manipulator.links:
                if link.parent is not None:
                    yield f"{manipulator.name}/{link.coordinate}"
                yield from (f"{manipulator.name}/{frame.name}" for frame in link.frames)
            for rod in filter(_is_rod, manipulator.loops):
                yield f"{manipulator.name}/{_rod_name(rod)}.length"
        yield from (f"{_rod_name(rod)}.length" for rod in filter(_is_rod, cell.loops))

    def find(self, name: str) -> list[CellParameter]:
        """Return the numbers that one name stands for."""
        cell = self._cell
        owner, slash, bare = name.partition("/")
        if not slash or owner not in cell.index:
            owner, bare = "", name
        if name in {f"{_rod_name(x)}.length" for x in cell.loops if _is_rod(x)}:
            owner, bare = "", name
        # Names may have dots: the longest part that names something counts.
        for end in (len(bare), *reversed([k for k, c in enumerate(bare) if c == "."])):
            thing, rest = bare[:end], bare[end + 1 :]
            steps = tuple(rest.split(".")) if rest else ()
            if not owner and thing in cell.index and steps[:1] == (MOUNT,):
                return self._of_mount(thing, steps[1:], name)
            if steps[:1] == (INERTIA,):
                places = self._links(owner, thing)
            else:
                places = [*self._places(owner, thing), *self._rods(owner, thing, steps)]
            if len(places) > 1:
                raise ModelError(
                    f"Parameter {quote(name)} is not unique: several manipulators have "
                    f"a {quote(thing)}; say {quote(self._owner(places[0]))} and '/' in "
                    "front, or another."
                )
            if places:
                return self._of_place(places[0], steps, name)
        thing, is_inertia, _ = bare.partition(f".{INERTIA}")
        if is_inertia:
            links = [x.name for m in self._cell.manipulators for x in m.links]
            raise unknown("link", thing, links)
        raise unknown("parameter", name, self._known())

    def _known(self) -> list[str]:
        return [each.name for each in all_parameters(self._cell)]

    def _owner(self, path: Path) -> str:
        if path[0] == "loops":
            return "the cell"
        return self._cell.manipulators[cast(int, path[1])].name

    def _places(self, owner: str, thing: str) -> list[Path]:
        """Return the paths to links or frames that a name may stand for."""
        cell = self._cell
        found: list[Path] = []
        for m, manipulator in enumerate(cell.manipulators):
            if owner and manipulator.name != owner:
                continue
            links = manipulator.links
            joints = [k for k, link in enumerate(links) if link.parent is not None]
            named = [k for k in joints if links[k].coordinate == thing]
            named = named or [k for k in joints if links[k].name == thing]
            found += (("manipulators", m, "links", k) for k in named[:1])
            for k, link in enumerate(links):
                for f, frame in enumerate(link.frames):
                    if frame.name == thing and not named:
                        found.append(("manipulators", m, "links", k, "frames", f))
        return found

    def _links(self, owner: str, thing: str) -> list[Path]:
        """Return the paths to links of a name, whose inertia is asked for."""
        return [
            ("manipulators", m, "links", k)
            for m, manipulator in enumerate(self._cell.manipulators)
            if owner in {"", manipulator.name}
            for k, link in enumerate(manipulator.links)
            if link.name == thing
        ]

    def _rods(self, owner: str, thing: str, steps: Sequence[str]) -> list[Path]:
        """Return the paths to rods whose length is asked for."""
        cell = self._cell
        if steps != ("length",):
            return []
        found: list[Path] = [
            ("manipulators", m, "loops", k)
            for m, manipulator in enumerate(cell.manipulators)
            for k, loop in enumerate(manipulator.loops)
            if owner in {"", manipulator.name} and _is_rod(loop, thing)
        ]
        if not owner:
            found += (
                ("loops", k) for k, x in enumerate(cell.loops) if _is_rod(x, thing)
            )
        return found

    def _of_mount(
        self, manipulator: str, steps: Sequence[str], name: str
    ) -> list[CellParameter]:
        cell = self._cell
        if manipulator not in cell.mounted:
            raise ModelError(
                f"Parameter {quote(name)}: manipulator {quote(manipulator)} is not "
                "mounted; use cell.mount(...) first."
            )
        k = cell.mounts.index(cell.mounted[manipulator])
        return self._end(("mounts", k, "pose"), f"{manipulator}.mount", steps, name)

    def _of_place(
        self, path: Path, steps: Sequence[str], name: str
    ) -> list[CellParameter]:
        if "loops" in path:
            rod = _rod_name(part_at(self._cell, path))
            label = rod if path[0] == "loops" else f"{self._owner(path)}/{rod}"
            return self._end((*path, "length"), f"{label}.length", (), name)
        owner = self._owner(path)
        link = part_at(self._cell, path[:4])
        if len(path) > 4:
            if steps[:1] == ("pose",):
                steps = steps[1:]
            frame = part_at(self._cell, path).name
            return self._end((*path, "pose"), f"{owner}/{frame}", steps, name)
        full = f"{owner}/{link.coordinate}"
        if steps[:1] == (INERTIA,):
            label = f"{owner}/{link.name}.{INERTIA}"
            return _of_inertia((*path, INERTIA), link.inertia, label, steps[1:])
        if not steps:
            fields = (
                field
                for field in link.joint.__struct_fields__
                if _is_varied(link.joint, field)
            )
            return [
                each
                for field in fields
                for each in self._end(
                    (*path, "joint", field), f"{full}.{field}", (), name
                )
            ]
        return self._of_joint(path, link, steps, name)

    def _of_joint(
        self, path: Path, link: Link, steps: Sequence[str], name: str
    ) -> list[CellParameter]:
        """Return the numbers of a part of a joint, which `steps` begin with.

        Raises:
            UnknownName: There is no such part.
        """
        full = f"{self._owner(path)}/{link.coordinate}"
        # What stands behind the name: six numbers of a frame, a field of the joint, its
        # offset, its dynamics, its coupling.
        if steps[0] in SIX and not link.moves:  # a link that is only a frame
            steps = ("precursor", *steps)
        first, rest = steps[0], steps[1:]
        if first in link.joint.__struct_fields__:
            return self._end((*path, "joint", first), f"{full}.{first}", rest, name)
        has_offset = link.moves and not link.inputs
        if first == OFFSET and not rest and has_offset:
            return [CellParameter(f"{full}.{OFFSET}", path, OFFSET, 0.0)]
        parts: dict[str, tuple[object, tuple[str, ...], str]] = {}
        if link.has_coordinate:
            fields = JointDynamics.__struct_fields__
            parts[DYNAMICS] = link.dynamics, fields, "number of a joint's dynamics"
        if link.coupling is not None:
            fields = ("multiplier", "offset")
            parts["coupling"] = link.coupling, fields, "number of a coupling"
        if first in parts:
            part, fields, kind = parts[first]
            if len(rest) > 1 or any(step not in fields for step in rest):
                raise unknown(kind, ".".join(rest), fields)
            return [
                CellParameter(
                    f"{full}.{first}.{field}",
                    (*path, first, field),
                    "",
                    part_at(part, (field,)),
                )
                for field in (rest or fields)
            ]
        known = [*link.joint.__struct_fields__]
        known += [OFFSET] if has_offset else SIX * (not link.moves)
        raise unknown("part", first, [*known, *parts], owner=f"parameter {quote(name)}")

    def _end(
        self, path: Path, label: str, steps: Sequence[str], name: str
    ) -> list[CellParameter]:
        """Return the numbers at a path, after further steps."""
        value = part_at(self._cell, path)
        if isinstance(value, Pose):
            chosen = steps or SIX
            if len(steps) > 1 or any(step not in SIX for step in chosen):
                raise unknown("number of a pose", ".".join(steps), SIX)
            return [CellParameter(f"{label}.{c}", path, c, 0.0) for c in chosen]
        if isinstance(value, float) and not steps:
            return [CellParameter(label, path, "", value)]
        if isinstance(value, tuple):
            items = cast(Sequence[Any], value)
            if steps:
                if not (steps[0].isdecimal() and int(steps[0]) < len(items)):
                    choices = [str(k) for k in range(len(items))]
                    raise unknown("place", steps[0], choices, owner=label)
                k = int(steps[0])
                return self._end((*path, k), f"{label}.{k}", steps[1:], name)
            return [
                each
                for k in range(len(items))
                for each in self._end((*path, k), f"{label}.{k}", (), name)
            ]
        if isinstance(value, Joint) and steps:
            if steps[0] not in value.__struct_fields__:
                raise unknown("part", steps[0], value.__struct_fields__, owner=label)
            inner = f"{label}.{steps[0]}"
            return self._end((*path, steps[0]), inner, steps[1:], name)
        raise ModelError(
            f"Parameter {quote(name)} is {quote(value)}, which is not a number, a pose "
            "or a list of numbers."
        )


def _of_inertia(
    path: Path, inertia: SpatialInertia | None, label: str, steps: Sequence[str]
) -> list[CellParameter]:
    """Return the numbers of a link's inertia; of an unknown one they are 0."""
    if len(steps) > 1 or any(step not in INERTIAL for step in steps):
        raise unknown("number of an inertia", ".".join(steps), INERTIAL)
    numbers = (inertia or SpatialInertia.zero()).parameters
    return [
        CellParameter(f"{label}.{name}", path, name, cast(float, number))
        for name, number in zip(INERTIAL, numbers, strict=True)
        if not steps or name in steps
    ]


def _with_numbers(
    inertia: SpatialInertia | None, numbers: Mapping[str, Any]
) -> SpatialInertia:
    """Return an inertia with other values of some of its numbers, by name."""
    known = (inertia or SpatialInertia.zero()).parameters
    pairs = zip(INERTIAL, known, strict=True)
    return SpatialInertia.from_parameters([numbers.get(*each) for each in pairs])


def _is_rod(loop: Closure | Rod, name: str = "") -> bool:
    """Return whether a loop is a rod, of a name if one is given."""
    return isinstance(loop, Rod) and name in {"", _rod_name(loop)}


def _rod_name(rod: Any) -> str:
    return rod.name or f"{rod.a}-{rod.b}"


def _is_varied(joint: Joint, field: str) -> bool:
    """Return whether a field of a joint has numbers that may have other values.

    A direction is stored with length 1, so that its numbers are not independent.
    """
    value = getattr(joint, field)
    if isinstance(value, Pose):
        return True
    if isinstance(value, float):
        return _keeps(joint, (field,), value)
    return False


def _keeps(joint: Joint, path: Path, value: float) -> bool:
    """Return whether a joint stores another number as it is given."""
    other = value + 1e-3 * max(abs(value), 1.0)
    try:
        changed = changed_parts(joint, {path: other})
    except ModelError:
        return False
    return part_at(changed, path) == other


# other values


def _by_place(
    parameters: Sequence[CellParameter], values: Sequence[Any]
) -> tuple[dict[Path, dict[str, Any]], dict[Path, Any]]:
    """Return corrections of poses and coordinates, and numbers, by their paths."""
    corrections: dict[Path, dict[str, Any]] = {}
    numbers: dict[Path, Any] = {}
    for each, value in zip(parameters, values, strict=True):
        if each.component:
            corrections.setdefault(each.path, {})[each.component] = value
        else:
            numbers[each.path] = value
    return corrections, numbers


def _changed(cell: Workcell, path: Path, numbers: Mapping[str, Any]) -> Any:
    """Return a pose that is corrected, or an inertia with other numbers."""
    part = part_at(cell, path)
    if path[-1] == INERTIA:
        return _with_numbers(part, numbers)
    return corrected(part, numbers)


def varied_cell(
    cell: Workcell, parameters: Sequence[CellParameter], values: Sequence[Traced]
) -> Workcell:
    """Return a cell with traced scalars in the place of numbers, to trace formulas of.

    It is not checked, and is good for nothing else.

    Raises:
        ModelError: A parameter cannot be an input.
    """
    corrections, numbers = _by_place(parameters, values)
    changes: dict[Path, Any] = {}
    joints: dict[Path, tuple[Pose, dict[Path, Any]]] = {}
    for path, correction in corrections.items():
        if OFFSET in correction:
            continue  # see `drive_offsets`
        if path[4:5] == ("joint",) and path[5:] != ("precursor",):
            numbers |= {(*path, name): value for name, value in correction.items()}
            continue
        changes[path] = _changed(cell, path, correction)
    # All fields of a joint that vary are one change, of its precursor too.
    for path, number in numbers.items():
        if "joint" in path:
            k = path.index("joint") + 1
            joints.setdefault(path[:k], (IDENTITY, {}))[1][path[k:]] = number
        else:
            changes[path] = number
    for path, (_, inner) in joints.items():
        joint = part_at(cell, path)
        precursor = changes.pop((*path, "precursor"), joint.precursor)
        changes[path] = VariedJoint(joint, precursor, [*inner], [*inner.values()])
    varied = changed_parts(cell, changes, unchecked)
    # What does not depend on the numbers is that of the nominal cell, found once.
    vars(varied)[VALUES], vars(varied)[NOMINAL] = tuple(values), cell
    for name in STRUCTURE["cell"]:
        vars(varied)[name] = getattr(cell, name)
    for old, new in zip(cell.manipulators, varied.manipulators, strict=True):
        if new is not old:
            for name in STRUCTURE["manipulator"]:
                vars(new)[name] = getattr(old, name)
    return varied


def values_in(varied: Workcell) -> tuple[Traced, ...]:
    """Return the traced values of the parameters of a varied cell; none of another."""
    return vars(varied).get(VALUES, ())


def followed(cell: Workcell, frame: str, pose: Pose) -> Pose:
    """Return a pose in a link, as what is attached to a frame of it moves with that.

    Args:
        cell: A varied cell, or any other, in which frames are where they are.
        frame: The name of the frame.
        pose: In the link, where the frame is in the cell without parameters.
    """
    nominal = vars(cell).get(NOMINAL)
    if nominal is None:
        return pose
    was, now = nominal.frame(frame).pose, cell.frame(frame).pose
    return pose if now is was else now @ was.inverse() @ pose


def drive_offsets(
    cell: Workcell, parameters: Sequence[CellParameter], values: Sequence[Any]
) -> dict[int, Any]:
    """Return what is added to the coordinate of the joint of a link, by its number."""
    return {
        cell.starts[cast(int, each.path[1])] + cast(int, each.path[3]): value
        for each, value in zip(parameters, values, strict=True)
        if each.component == OFFSET
    }


def parameters(cell: Workcell, names: Sequence[str] | None = None) -> dict[str, float]:
    """Return the numbers of a cell that can be inputs, by name, with their values.

    Args:
        cell: What has them.
        names: Each stands for one number, such as `elbow.alpha`, or for all behind it:
            `elbow.precursor` for six, `elbow` for all that decide poses of a joint. By
            default all that decide poses: of joints, frames and mounts.

    Returns:
        The value of each: a number's own [m, rad or its unit]; those of poses are 0,
        which are corrections of them, see `with_parameters`.

    Raises:
        UnknownName: There is nothing of that name.
        ModelError: A name is not unique, or stands for no number.
    """
    found = all_parameters(cell) if names is None else named_parameters(cell, names)
    return {each.name: each.value for each in found}


def with_parameters(
    cell: Workcell, values: Mapping[str, float | Sequence[float]]
) -> Workcell:
    """Return the cell with other values of some of its numbers.

    What a kernel of `parameters=` computes at these values, the kernel of that cell
    computes without them.

    Args:
        cell: What has the numbers.
        values: A value for each name: of a number [its unit, m or rad], or numbers for
            one that stands for several. Those of poses are twists that are added behind
            them, X exp(twist), and 0 leaves a pose as it is.

    Raises:
        UnknownName: There is nothing of that name.
        ModelError: A name is not unique, a value is not finite or not one that the
            model can have, or the offset of a joint has no pose in front of it.
    """
    if not isinstance(cast(Any, values), Mapping):
        raise ModelError(
            "with_parameters takes a dict of names and values, not a "
            f"{type(values).__name__}."
        )
    parameters: list[CellParameter] = []
    numbers: list[float] = []
    for name, value in values.items():
        found = named_parameters(cell, [name])
        given = [value] if np.ndim(value) == 0 else list(cast(Any, value))
        if len(given) != len(found):
            raise ModelError(
                f"Parameter {quote(name)} stands for {len(found)} numbers; "
                f"{len(given)} were given."
            )
        parameters += found
        numbers += (_finite(each, name) for each in given)
    _check_distinct(parameters)
    corrections, plain = _by_place(parameters, numbers)
    changes: dict[Path, Any] = dict(plain)
    for path, correction in corrections.items():
        if OFFSET not in correction:
            changes[path] = _changed(cell, path, correction)
    changed = changed_parts(cell, changes)
    # Offsets come last: the motion they are along is that of the new fields.
    turns: dict[Path, Any] = {}
    for path, correction in corrections.items():
        if OFFSET in correction:
            link = part_at(changed, path)
            step = _turned(link, correction[OFFSET])
            turns[(*path, "joint", "precursor")] = link.joint.precursor @ step
    return changed_parts(changed, turns) if turns else changed


def _finite(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ModelError(
            f"Parameter {quote(name)} is {quote(value)}, which is not a number."
        ) from None
    if not math.isfinite(number):
        raise ModelError(f"Parameter {quote(name)} is {number}; it must be finite.")
    return number


def _turned(link: Any, offset: float) -> Pose:
    """Return the pose that an offset of the coordinate is, in front of the motion.

    Raises:
        ModelError: The motion is not along one screw, so that there is no such pose.
    """
    motion = link.joint.motion
    step = motion.pose(offset) @ motion.pose(0.0).inverse()
    for q in (-0.7, 0.3, 1.9):
        if not (step @ motion.pose(q)).approx_equal(motion.pose(q + offset), 1e-12):
            raise ModelError(
                f"An offset of joint {quote(link.coordinate)}, a "
                f"{type(link.joint).__name__}, is not a pose in front of its motion, "
                "so no cell has it: add it to q."
            )
    return step
