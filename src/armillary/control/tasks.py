"""Tasks of a controller: the goals of the motion of a cell.

    from armillary import tasks

    control = cell.controller([tasks.Frame("tool0"), tasks.Posture(weight=1e-3)])

Each has a gain [1/s]: without constraints an error decays as exp(-gain t). Tasks with a
lower priority number have precedence; tasks of equal priority are weighted. The rates
of moving targets may be given as feedforward, which removes the lag.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

from armillary.errors import ModelError, quote
from armillary.kernel.arguments import positive_number
from armillary.model.mount import WORLD

__all__ = [
    "AlignAxis",
    "CentreOfMass",
    "Coupling",
    "Frame",
    "Function",
    "LookAt",
    "Position",
    "Posture",
    "Task",
]

GAIN: Final = 10.0

_FINITE: Final = ("weight", "gain", "rotation_weight")
"""Fields of tasks that are finite numbers above 0."""

_MAY_BE_INFINITE: Final = ("speed", "turn_speed")
"""Fields of tasks that are numbers above 0, also infinite ones."""

_FRAMES: Final = ("frame", "relative_to")
"""Fields of tasks that are names of frames."""


@dataclass(frozen=True, kw_only=True)
class _TaskFields:
    """The fields of all tasks.

    Attributes:
        weight: Factor of its squared error of rates in the sum that is minimised; above
            0.
        gain: Rate of decay of its error [1/s]; above 0. No error overshoots: in a step
            it decreases by its own length at most.
        priority: Tasks with a lower number have precedence: others act only in their
            null space. Weights count among tasks of equal priority.
    """

    weight: float = 1.0
    gain: float = GAIN
    priority: int = 0

    def __post_init__(self) -> None:
        """Check the numbers and the names of frames.

        Raises:
            ModelError: A weight, a gain or a speed is not above 0, a weight or a gain
                is not finite, the priority is not a whole number, or the name of a
                frame is not a text.
        """
        # By the names of fields, listed above.
        for name in (each.name for each in fields(self)):
            value = getattr(self, name)
            if name in _FINITE:
                positive_number(f"The {name} of a task", value)
            elif name in _MAY_BE_INFINITE:
                positive_number(f"The {name} of a task", value, most=math.inf)
            elif name in _FRAMES and not isinstance(value, str):
                raise ModelError(
                    f"{name}= of a task is the name of a frame, not {quote(value)}."
                )
        # True counts as 1; 1.0 does not.
        priority: Any = self.priority
        if not isinstance(priority, int):
            raise ModelError(
                "The priority of a task is a whole number, the lowest first, not "
                f"{quote(priority)}."
            )


@dataclass(frozen=True)
class Frame(_TaskFields):
    """The pose of a frame; its target is a pose, shape (..., 4, 4).

    The rate of its target is a twist, shape (..., 6): the velocity of its origin [m/s]
    and its angular velocity [rad/s], relative to `relative_to` and along its axes.

    Attributes:
        frame: The frame.
        relative_to: The frame that targets are given in. Where joints move it, what
            counts is the motion relative to it.
        position: Which coordinates count, such as `xy`; empty for none.
        rotation: About which axes rotations count; `xy` with `axes` the frame itself
            leaves the spin about its z axis free.
        axes: The frame whose axes those are: `relative_to`, or the frame itself.
        speed: Greatest speed that an error of the position asks for [m/s].
        turn_speed: Greatest that one of the rotation asks for [rad/s].
        rotation_weight: How much an error of 1 rad counts beside one of 1 m [m^2].
    """

    frame: str
    relative_to: str = WORLD
    position: str = "xyz"
    rotation: str = "xyz"
    axes: str | None = None
    speed: float = math.inf
    turn_speed: float = math.inf
    rotation_weight: float = 0.1


@dataclass(frozen=True)
class Position(_TaskFields):
    """The position of the origin of a frame; its target has shape (..., 3) [m].

    The rate of its target is a velocity, shape (..., 3) [m/s].

    Attributes:
        frame: The frame.
        relative_to: The frame that targets are given in.
        axes: Which coordinates count, such as `z`.
        speed: Greatest speed that an error asks for [m/s].
    """

    frame: str
    relative_to: str = WORLD
    axes: str = "xyz"
    speed: float = math.inf


@dataclass(frozen=True)
class AlignAxis(_TaskFields):
    """The direction of an axis of a frame; its target is one, shape (..., 3).

    Directions of any length above 0 will do; one that is zero makes a row INVALID. From
    the opposite direction the axis may turn to either side. The rate of its target is
    that of the direction, shape (..., 3).

    Attributes:
        frame: The frame.
        axis: The axis in the frame, of any length above 0.
        relative_to: The frame that targets are given in.
    """

    frame: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    relative_to: str = WORLD


@dataclass(frozen=True)
class LookAt(_TaskFields):
    """An axis of a frame that points at a target, shape (..., 3) [m].

    A point within 1 mm of the origin of the frame counts as 1 mm away. The rate of its
    target is the velocity of the point, shape (..., 3) [m/s].

    Attributes:
        frame: The frame, such as that of a camera.
        axis: What points at the target, in the frame.
        relative_to: The frame that targets are given in.
    """

    frame: str
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    relative_to: str = WORLD


@dataclass(frozen=True)
class Posture(_TaskFields):
    """Joint positions to approach in the null space of the other tasks.

    Its target is joint positions, shape (..., n) of all joints of the cell, or None for
    those of the state that the controller was made for. Postures come after all other
    tasks, whatever their priority.

    Attributes:
        joints: Names of the joints that count; None for all.
        weight: As of all tasks; small, so that it acts in the null space of the others.
        gain: As of all tasks.
    """

    joints: tuple[str, ...] | None = None
    weight: float = field(default=1e-4, kw_only=True)
    gain: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True)
class CentreOfMass(_TaskFields):
    """The centre of mass of all moving links; its target has shape (..., 3) [m].

    Attributes:
        axes: Which coordinates count, such as `xy`, in the world.
    """

    axes: str = "xyz"


@dataclass(frozen=True)
class Coupling(_TaskFields):
    """A weighted sum of joint positions; its target is its value, shape (...).

    Attributes:
        factors: The weights in the sum, by the names of joints.
    """

    factors: Mapping[str, float]


@dataclass(frozen=True)
class Function(_TaskFields):
    """A function of joint positions; its target is its value, shape (..., m).

    Attributes:
        function: It takes q, shape (n,), of all joints of the cell, and returns one
            number or a list of m numbers. It is traced and differentiated, as the pose
            of a joint is.
    """

    function: Callable[[Any], Any]


Task: TypeAlias = (
    Frame | Position | AlignAxis | LookAt | Posture | CentreOfMass | Coupling | Function
)
