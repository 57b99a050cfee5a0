"""Programs: what each task of a cell does, as data."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec

from armillary.errors import (
    FormatError,
    ModelError,
    ShapeError,
    UnknownName,
    quote,
    unknown,
)
from armillary.model.mount import WORLD
from armillary.model.shapes.box import Box
from armillary.model.shapes.capsule import Capsule
from armillary.model.shapes.cylinder import Cylinder
from armillary.model.shapes.sphere import Sphere
from armillary.programs.steps import (
    PTP,
    AnyStep,
    Call,
    Linear,
    Parallel,
    Planned,
    Repeat,
    Set,
    Value,
    WaitFor,
    Zone,
    steps_of,
)
from armillary.replaced_file import replacing

__all__ = ["ALONE", "Program", "Sensor", "moving_branches", "walk"]

ALONE: Final = "program"
"""The name of the task of a program that has one list of steps."""

KIND: Final = "armillary program"
LARGEST_FILE: Final = 64 << 20
"""Bytes of a program in a file."""

LEAST_SCAN: Final = 1e-6
"""The shortest scan cycle [s]: instants of a run tell its scans apart."""

if TYPE_CHECKING:
    Tasks = Any
    Names = Any
else:
    Tasks = dict[str, tuple[AnyStep, ...]]
    Names = dict[str, tuple[str, ...]]


class Sensor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal that is True while a part touches a shape, such as a light barrier.

    Attributes:
        shape: A box, capsule, cylinder or sphere; its `pose` is that in `frame`.
        frame: The frame that the shape is fixed to.
        parts: The manipulators that it sees; by default all whose bases may move.
    """

    shape: Box | Capsule | Cylinder | Sphere
    frame: str = WORLD
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Store names as a tuple.

        Raises:
            ModelError: They are not names, or the shape is another one.
        """
        shape: Any = self.shape
        if not isinstance(shape, Box | Capsule | Cylinder | Sphere):
            raise ModelError(
                "The shape of a sensor is a box, capsule, cylinder or sphere, not "
                f"{quote(shape)}."
            )
        names = _names("parts=", self.parts)
        msgspec.structs.force_setattr(self, "parts", names)


class Program(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What each task of a cell does; immutable, equal by value, written as JSON.

        program = arm.Program({"robot": [PTP(to=q), Grip(part="box", by="tool0")]})

    Attributes:
        tasks: The steps of each task by its name. Tasks run at the same time; one that
            has the name of a manipulator moves its joints. A list of steps is one task
            that moves all joints.
        joints: Names of the joints that tasks move, where these are others.
        routines: Steps by name, which `Call` runs.
        signals: What signals hold at first; others hold False.
        sensors: Signals that parts set, by name.
        absent: The parts that are not there at first.
        scan: The scan cycle of the controller that tasks wait with [s], 1 us or more:
            they see a signal at the first multiple of it after its change, as it is
            then. With 0 they see it at once.
    """

    tasks: Tasks
    joints: Names = {}
    routines: Tasks = {}
    signals: dict[str, Value] = {}
    sensors: dict[str, Sensor] = {}
    absent: tuple[str, ...] = ()
    scan: float = 0.0

    def __post_init__(self) -> None:
        """Store plain data.

        Raises:
            ModelError: Something else than steps is given, a routine calls itself, or
                a name has two meanings.
            UnknownName: A routine or a signal does not exist.
        """
        tasks: Any = self.tasks
        if not isinstance(tasks, Mapping):
            tasks = {ALONE: tasks}
        stored = {
            "tasks": _steps_by_name("task", tasks),
            "routines": _steps_by_name("routine", self.routines),
            "joints": {
                name: _names(f"joints= of the task {quote(name)}", given)
                for name, given in self.joints.items()
            },
            "signals": dict(self.signals),
            "sensors": dict(self.sensors),
            "absent": _names("absent=", self.absent),
        }
        for name, value in stored.items():
            msgspec.structs.force_setattr(self, name, value)
        self._check()

    def _check(self) -> None:
        for name, sensor in self.sensors.items():
            given: Any = sensor
            if not isinstance(given, Sensor):
                raise ModelError(
                    f"The sensor {quote(name)} is a Sensor, such as "
                    f"Sensor(shape=arm.shapes.Box(...)), not {quote(given)}."
                )
        scan: Any = self.scan
        is_number = isinstance(scan, int | float) and not isinstance(scan, bool)
        if not (is_number and (scan == 0.0 or LEAST_SCAN <= scan < math.inf)):
            raise ModelError(
                f"scan= is a time [s], 0 or at least {LEAST_SCAN:g}, not {quote(scan)}."
            )
        for name in self.joints:
            if name not in self.tasks:
                raise unknown("task", name, self.tasks)
        for name in self.signals:
            if name in self.sensors:
                raise ModelError(
                    f"{quote(name)} is a sensor and a signal: give one another name."
                )
        self._check_routines()
        self._check_branches()
        known = {*self.signals, *self.sensors}
        steps = [step for _, step in self.walk()]
        known |= {step.signal for step in steps if isinstance(step, Set)}
        for step in steps:
            if isinstance(step, WaitFor) and step.signal not in known:
                raise unknown("signal", step.signal, known, owner="this program")
            if isinstance(step, Set) and step.signal in self.sensors:
                raise ModelError(
                    f"{quote(step.signal)} is a sensor, which parts set: {step} cannot."
                )

    def _check_routines(self) -> None:
        """Refuse routines that do not exist, or call themselves."""
        calls = {
            name: [each.routine for _, each in walk(steps) if isinstance(each, Call)]
            for name, steps in self.routines.items()
        }
        for steps in self.tasks.values():
            for _, step in walk(steps):
                if isinstance(step, Call) and step.routine not in calls:
                    raise unknown("routine", step.routine, calls)
        done: set[str] = set()

        def visit(name: str, above: tuple[str, ...]) -> None:
            if name in above:
                circle = " calls ".join(map(quote, (*above, name)))
                raise ModelError(f"A routine calls itself: {circle}.")
            if name in done:
                return
            for other in calls[name]:
                if other not in calls:
                    raise unknown("routine", other, calls)
                visit(other, (*above, name))
            done.add(name)

        for name in calls:
            visit(name, ())

    def _check_branches(self) -> None:
        """Refuse branches of which two move the joints of their task."""
        known: dict[Hashable, Any] = {}
        for place, step in self.walk():
            if not isinstance(step, Parallel):
                continue
            if len(moving_branches(self, step, known)) > 1:
                raise ModelError(
                    f"{place}: two branches of the step {step} move the joints of "
                    "their task; only one can."
                )

    def walk(self) -> Iterator[tuple[str, AnyStep]]:
        """Yield each step with where it is, those of routines behind those of tasks."""
        for kind, by_name in (("", self.tasks), ("routine ", self.routines)):
            for name, steps in by_name.items():
                for path, step in walk(steps):
                    yield f"{kind}{name}{path}", step

    def to_json(self) -> str:
        """Return the program as JSON; equal programs give equal texts."""
        content = {"kind": KIND, "version": 1, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(content).decode()) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the program that `to_json` wrote.

        Raises:
            FormatError: The text is not a program; the message says where.
        """
        try:
            decoded = msgspec.json.decode(text)
            content = cast("dict[str, Any]", decoded) if type(decoded) is dict else {}
            if content.pop("kind", None) != KIND:
                raise FormatError(
                    f'This JSON is not a program: it has no "kind": "{KIND}".'
                )
            if content.pop("version", None) != 1:
                raise FormatError("This program is of another version than 1.")
            return msgspec.convert(content, cls)
        except (
            *(msgspec.DecodeError, UnicodeDecodeError),
            *(ModelError, ShapeError, UnknownName),
        ) as error:
            raise FormatError(
                f"This JSON is not a program: {str(error).rstrip('.')}."
            ) from error
        except RecursionError as error:
            raise FormatError("This JSON is nested too deeply.") from error

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the program to a file as JSON, as a whole or not at all.

        Raises:
            FormatError: The file cannot be written.
        """
        try:
            with replacing(path) as file:
                file.write(self.to_json().encode())
        except OSError as error:
            raise FormatError(f"{os.fspath(path)}: {error.strerror}.") from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the program in a file.

        Raises:
            FormatError: The file cannot be read, or holds no program.
        """
        name = os.fspath(path)
        try:
            if os.path.getsize(name) > LARGEST_FILE:
                raise FormatError(
                    f"{name}: a program has {LARGEST_FILE} bytes at most."
                )
            content = Path(path).read_bytes()
        except OSError as error:
            raise FormatError(f"{name}: {error.strerror or error}.") from error
        try:
            return cls.from_json(content)
        except FormatError as error:
            raise FormatError(f"{name}: {error}") from error

    def __repr__(self) -> str:
        count = sum(1 for _ in self.walk())
        return f"<Program: {', '.join(self.tasks) or 'no task'}, {count} steps>"


def walk(steps: tuple[AnyStep, ...], above: str = "") -> Iterator[tuple[str, AnyStep]]:
    """Yield steps and those inside of them, each with its place, as in `[2][0]`."""
    for k, step in enumerate(steps):
        place = f"{above}[{k}]"
        yield place, step
        if isinstance(step, Zone | Repeat):
            yield from walk(step.steps, place)
        elif isinstance(step, Parallel):
            for number, branch in enumerate(step.branches):
                yield from walk(branch, f"{place}[{number}]")


def moving_branches(
    program: Program, step: Parallel, known: dict[Hashable, Any]
) -> list[int]:
    """Return the branches that move the joints of their task.

    Args:
        program: Whose step it is.
        step: The step.
        known: What was found of steps and routines of the program, and is then.
    """

    def moves(steps: tuple[AnyStep, ...]) -> bool:
        return any(map(does_move, steps))

    def does_move(each: AnyStep) -> bool:
        if isinstance(each, Zone | Repeat):
            return moves(each.steps)
        if isinstance(each, Parallel):
            return bool(moving_branches(program, each, known))
        if isinstance(each, Call):
            name = each.routine
            if name not in known:
                known[name] = moves(program.routines[name])
            return bool(known[name])
        return isinstance(each, PTP | Planned | Linear)

    found: list[int] | None = known.get(id(step))
    if found is None:
        branches = enumerate(step.branches)
        found = known[id(step)] = [k for k, branch in branches if moves(branch)]
    return found


def _names(what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ModelError(f"{what} is a list of names, such as [{given!r}].")
    return tuple(given)


def _steps_by_name(kind: str, given: Any) -> dict[str, tuple[AnyStep, ...]]:
    if not isinstance(given, Mapping):
        raise ModelError(f"The {kind}s of a program are steps by name.")
    by_name: dict[str, tuple[AnyStep, ...]] = {}
    for name, steps in cast("Mapping[Any, Any]", given).items():
        try:
            by_name[str(name)] = steps_of(steps)
        except ModelError as error:
            raise ModelError(f"The {kind} {quote(name)}: {error}") from error
    return by_name
