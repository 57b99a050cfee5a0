"""The steps of programs, as values.

Poses may be given as arrays (4, 4), joint positions as any sequence of numbers; what is
stored is plain data, so that programs are equal by value, hashable and written as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import msgspec
import numpy as np

from armillary.errors import ModelError, ShapeError, quote
from armillary.kinematics.joint_vector import finite_numbers
from armillary.model.mount import WORLD
from armillary.planning.segments import Arc, Line
from armillary.spatial.pose import IDENTITY, Pose, pose_from

__all__ = [
    "PTP",
    "Appear",
    "Call",
    "Drive",
    "Grip",
    "Leave",
    "Linear",
    "Parallel",
    "Planned",
    "ProgramStep",
    "Release",
    "Repeat",
    "Set",
    "ToolSegment",
    "Wait",
    "WaitFor",
    "Zone",
    "steps_of",
]

Value: TypeAlias = bool | int | float | str
"""What a signal holds."""

Target: TypeAlias = str | tuple[float, ...] | Pose
"""The name of a posture, joint positions, or a pose."""

MOST_REPEATS: Final = 1_000_000


class ToolSegment(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A part of the way of a linear motion.

    Attributes:
        to: The pose where it ends.
        through: A point of the arc that leads there, shape (3,) [m]; None for a line.
    """

    to: Pose
    through: tuple[float, float, float] | None = None

    @property
    def as_given(self) -> Line | Arc:
        """Return it as `cell.line` takes it."""
        X = np.asarray(self.to.matrix(), np.float64)
        return Line(X) if self.through is None else Arc(to=X, through=self.through)

    def placed(self, X: Pose) -> ToolSegment:
        """Return it as seen from where X is the pose of what it is relative to."""
        through = self.through
        if through is not None:
            x, y, z = (X @ Pose.translation(*through)).position
            through = x, y, z
        return ToolSegment(to=X @ self.to, through=through)


if TYPE_CHECKING:  # constructors take any sequence, fields are tuples
    Targets: TypeAlias = Any
    Segments: TypeAlias = Any
    Steps: TypeAlias = Any
    Branches: TypeAlias = Any
    At: TypeAlias = Any
else:
    Targets = tuple[Target, ...]
    Segments = tuple[ToolSegment, ...]
    Steps = "tuple[AnyStep, ...]"
    Branches = "tuple[tuple[AnyStep, ...], ...]"
    At = Pose


class ProgramStep(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag=True,
    tag_field="step",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A step of a program.

    Attributes:
        label: A name for messages, charts and reports; may be empty.
    """

    label: str = ""

    def __str__(self) -> str:
        kind = type(self).__name__
        return f"{kind} {quote(self.label)}" if self.label else kind

    def store(self, **values: Any) -> None:
        """Store fields while the step is made."""
        for name, value in values.items():
            msgspec.structs.force_setattr(self, name, value)

    def check(self, name: str, least: float = 0.0, *, most: float = math.inf) -> None:
        """Check a number of the step.

        Raises:
            ModelError: It is below `least`, above `most`, or NaN.
        """
        value = getattr(self, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and least <= value <= most):
            raise self.refused(
                f"{name}= is a number from {least:g} to {most:g}, not {value!r}"
            )

    def refused(self, why: str) -> ModelError:
        """Return the error that says why a step cannot be made."""
        return ModelError(f"The step {self}: {why}.")


class JointMotion(ProgramStep, frozen=True, kw_only=True, tag=True):
    """What motions to joint positions or poses have in common.

    Attributes:
        to: Joint positions of the task [m or rad], the name of a posture, or a pose of
            `frame`; or a list of these, which are passed one after the other.
        frame: The frame that poses are of.
        relative_to: The frame in which poses are given.
        speed: Part of the greatest rates, above 0 and at most 1.
        acceleration: Part of the greatest accelerations, likewise.
    """

    to: Targets
    frame: str = ""
    relative_to: str = WORLD
    speed: float = 1.0
    acceleration: float = 1.0

    def __post_init__(self) -> None:
        """Store plain data.

        Raises:
            ModelError: A number is out of its range, or a pose names no frame.
            ShapeError: A target is something else.
        """
        self.store(to=_targets(self, self.to))
        for name in ("speed", "acceleration"):
            self.check(name, 1e-6, most=1.0)


class PTP(JointMotion, frozen=True, kw_only=True):
    """A motion from point to point: joints move straight, as fast as limits allow.

    Where `relative_to` moves by itself, as on a conveyor, the motion ends at the pose
    with the velocity of the frame, and the robot follows it until its next motion.

    Attributes:
        blend: By how much joints may deviate from straight motions at inner targets
            [m or rad]; with 0 the robot stops at each.
    """

    blend: float = 0.0

    def __post_init__(self) -> None:
        """Store plain data; see `JointMotion`."""
        super().__post_init__()
        self.check("blend")


class Planned(JointMotion, frozen=True, kw_only=True):
    """A motion that touches nothing, found by a planner; a pose on any branch.

    Attributes:
        margin: How far links stay apart [m].
        seed: Another number gives another way.
        blend: By how much joints may deviate at corners [m or rad].
    """

    margin: float = 0.0
    seed: int = 0
    blend: float = 0.1

    def __post_init__(self) -> None:
        """Store plain data; see `JointMotion`."""
        super().__post_init__()
        if len(self.to) != 1:
            raise self.refused(f"a way is planned to one target, not {len(self.to)}")
        for name in ("margin", "seed", "blend"):
            self.check(name)


class Linear(ProgramStep, frozen=True, kw_only=True):
    """A motion of a frame along straight lines and arcs.

    Attributes:
        to: A pose (4, 4), an `arm.Arc` with `to` and `through`, or a list of these.
        frame: The frame that follows them.
        relative_to: The frame in which they are given. Where it moves by itself, the
            robot follows it, and goes on to do so until its next motion.
        speed: The greatest speed of the frame [m/s], relative to `relative_to`.
        tool_acceleration: Its greatest acceleration along the path [m/s^2].
        acceleration: Part of the greatest accelerations of joints, in (0, 1].
        blend: How far from corners blends begin [m]; 0 for a stop at each.
    """

    to: Segments
    frame: str
    relative_to: str = WORLD
    speed: float | None = None
    tool_acceleration: float | None = None
    acceleration: float = 1.0
    blend: float = 0.0

    def __post_init__(self) -> None:
        """Store plain data.

        Raises:
            ModelError: A number is out of its range, or there is no target.
            ShapeError: A target is something else.
        """
        given: Any = self.to
        if isinstance(given, Pose | Arc | Line | ToolSegment) or _is_pose(given):
            given = [given]
        segments = tuple(_segment(self, each) for each in given)
        if not segments:
            raise self.refused("it has no targets")
        self.store(to=segments)
        for name in ("speed", "tool_acceleration"):
            if getattr(self, name) is not None:
                self.check(name, 1e-9)
        self.check("acceleration", 1e-6, most=1.0)
        self.check("blend")


class Grip(ProgramStep, frozen=True, kw_only=True):
    """A frame grips a part where it is.

    Attributes:
        part: The manipulator that is gripped.
        by: The frame that grips it.
        within: How far the frame's origin may be from the part's shapes [m].
    """

    part: str
    by: str
    within: float = 0.01

    def __post_init__(self) -> None:
        """Check the number."""
        self.check("within")


class Release(ProgramStep, frozen=True, kw_only=True):
    """A part is released where it is.

    Attributes:
        part: The manipulator that was gripped.
        onto: The frame that carries it from then on, such as a pallet, a conveyor or
            the gripper of another robot; by default it stands in the world.
    """

    part: str
    onto: str = WORLD


class Appear(ProgramStep, frozen=True, kw_only=True):
    """A part that was absent comes into the cell.

    Attributes:
        part: The manipulator.
        at: The pose of its base in `relative_to`.
        relative_to: The frame of that pose.
        on: The frame that carries it from then on; by default it stands in the world.
    """

    part: str
    at: At = IDENTITY
    relative_to: str = WORLD
    on: str = WORLD

    def __post_init__(self) -> None:
        """Store a pose.

        Raises:
            ModelError: The pose is not finite or not rigid.
            ShapeError: It has another shape.
        """
        self.store(at=_pose(self, self.at))


class Leave(ProgramStep, frozen=True, kw_only=True):
    """A part leaves the cell: it is absent until it appears again.

    Attributes:
        part: The manipulator.
    """

    part: str


class Set(ProgramStep, frozen=True, kw_only=True):
    """A signal gets a value.

    Attributes:
        signal: Its name.
        value: What it holds from then on.
    """

    signal: str
    value: Value = True


class Wait(ProgramStep, frozen=True, kw_only=True):
    """The task waits for a time; a robot that follows a frame goes on doing so.

    Attributes:
        seconds: How long [s].
    """

    seconds: float

    def __post_init__(self) -> None:
        """Check the time."""
        self.check("seconds", most=1e9)


class WaitFor(ProgramStep, frozen=True, kw_only=True):
    """The task waits until a signal has a value.

    Attributes:
        signal: The name of a signal or a sensor.
        value: The value that is waited for.
        timeout: After which time the run fails [s]; by default that of the run.
    """

    signal: str
    value: Value = True
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Check the time."""
        if self.timeout is not None:
            self.check("timeout", most=1e9)


class Drive(ProgramStep, frozen=True, kw_only=True):
    """A joint moves at a speed from then on, such as a conveyor or a turntable.

    Attributes:
        joint: Its name.
        speed: Its rate [m/s or rad/s]; 0 stops it.
        acceleration: How fast it gets there [m/s^2 or rad/s^2]; by default its limit,
            or at once where it has none.
    """

    joint: str
    speed: float
    acceleration: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        self.check("speed", -1e6, most=1e6)
        if self.acceleration is not None:
            self.check("acceleration", 1e-9)


class Zone(ProgramStep, frozen=True, kw_only=True):
    """Steps during which no other task is in a zone; the task waits until it is free.

    Attributes:
        zone: The name of the zone.
        steps: What is done in it.
    """

    zone: str
    steps: Steps

    def __post_init__(self) -> None:
        """Store a tuple."""
        self.store(steps=steps_of(self.steps))


class Call(ProgramStep, frozen=True, kw_only=True):
    """The steps of a routine of the program.

    Attributes:
        routine: Its name.
    """

    routine: str


class Repeat(ProgramStep, frozen=True, kw_only=True):
    """Steps that are done several times.

    Attributes:
        count: How many times.
        steps: What is done.
    """

    count: int
    steps: Steps

    def __post_init__(self) -> None:
        """Store a tuple."""
        self.check("count", most=MOST_REPEATS)
        self.store(steps=steps_of(self.steps))


class Parallel(ProgramStep, frozen=True, kw_only=True):
    """Branches of steps that are done at the same time, until all have ended.

    One of them may move the joints of the task. Others set signals, wait, grip, or
    drive other joints meanwhile.

    Attributes:
        branches: The steps of each branch.
    """

    branches: Branches

    def __post_init__(self) -> None:
        """Store tuples."""
        given: Any = self.branches
        if not isinstance(given, list | tuple):
            raise self.refused("branches= is a list of lists of steps")
        given = cast("Sequence[Any]", given)
        self.store(branches=tuple(map(steps_of, given)))


AnyStep: TypeAlias = (
    PTP
    | Planned
    | Linear
    | Grip
    | Release
    | Appear
    | Leave
    | Set
    | Wait
    | WaitFor
    | Drive
    | Zone
    | Call
    | Repeat
    | Parallel
)


def steps_of(given: Any) -> tuple[AnyStep, ...]:
    """Return a step, or a sequence of steps, as a tuple.

    Raises:
        ModelError: One is not a step.
    """
    if isinstance(given, ProgramStep):
        given = (given,)
    if not isinstance(given, list | tuple):
        raise ModelError(f"Steps are a list such as [PTP(to=q)], not {quote(given)}.")
    steps = tuple(cast("Sequence[Any]", given))
    for each in steps:
        if not isinstance(each, ProgramStep):
            raise ModelError(
                "A step of a program is one of arm.steps, such as "
                f"steps.Wait(seconds=1.0), not {quote(each)}."
            )
    return steps


def _targets(step: JointMotion, given: Any) -> tuple[Target, ...]:
    """Return the targets of a motion of joints.

    One is a name, a pose or numbers; several are a list, or an array (k, n), (k, 4, 4).
    """
    if isinstance(given, str | Pose) or _is_pose(given):
        listed: list[Any] = [given]
    else:
        try:
            listed = list(given)
        except TypeError as error:
            raise ShapeError(
                f"The step {step}: to= is joint positions, the name of a posture or a "
                f"pose, not {quote(given)}."
            ) from error
        if listed and all(isinstance(each, Real) for each in listed):
            listed = [given]
    if not listed:
        raise step.refused("to= is empty")
    return tuple(_target(step, each) for each in listed)


def _target(step: JointMotion, given: Any) -> Target:
    if isinstance(given, str):
        return given
    if isinstance(given, Pose) or _is_pose(given):
        if not step.frame:
            raise step.refused('a pose is of a frame; name it, as in frame="tool0"')
        return _pose(step, given)
    numbers = finite_numbers(given, np.size(given))
    if numbers is None:
        raise ShapeError(
            f"The step {step}: a target is finite joint positions (n,), the name of a "
            f"posture or a pose (4, 4), not {quote(given)}."
        )
    return tuple(numbers.tolist())


def _segment(step: Linear, given: Any) -> ToolSegment:
    if isinstance(given, ToolSegment):
        return given
    through: tuple[float, float, float] | None = None
    if isinstance(given, Arc | Line):
        if np.shape(given.to) != (4, 4):
            raise step.refused("lines and arcs of a program end at a pose, to=")
        if isinstance(given, Arc):
            x, y, z = map(float, given.through)
            through = x, y, z
        given = given.to
    return ToolSegment(_pose(step, given), through)


def _pose(step: ProgramStep, given: Any) -> Pose:
    try:
        return pose_from(given)
    except (ModelError, ShapeError) as error:
        raise type(error)(f"The step {step}: {error}") from error


def _is_pose(given: Any) -> bool:
    """Return whether something is a matrix (4, 4)."""
    try:
        return np.shape(given) == (4, 4)
    except ValueError:
        return False
