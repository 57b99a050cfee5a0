"""Simulation of a controller: each step starts from the result of the last one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, cast, final

import numpy as np
import numpy.typing as npt

from armillary.control.obstacles import Obstacles, obstacles_of
from armillary.control.step import Step
from armillary.errors import ShapeError, quote
from armillary.kernel.arguments import as_inputs, whole_number
from armillary.trace import Port, Program

__all__ = ["ControlledMotion", "StepFunction", "simulated"]

Array = npt.NDArray[np.float64]
OfTime = Callable[[int], Any]


class StepFunction(Protocol):
    """A function that computes a step: a controller."""

    def __call__(
        self, q: Any, qd: Any, inputs: Any, *, obstacles: Obstacles | None
    ) -> Step:
        """Find the rates of the next step, from targets and then their rates."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ControlledMotion:
    """How a cell moved under a controller, in K steps.

    Attributes:
        time: Instants [s], shape (K + 1,).
        q: Joint positions [m or rad], shape (..., K + 1, n).
        qd: Rates with which they were reached [m/s or rad/s], shape (..., K + 1, n);
            the first are those that it began with.
        steps: All steps, shape (..., K).
        obstacles: From the number of a step to what was avoided in it, None for none.
    """

    time: Array
    q: Array
    qd: Array
    steps: Step
    obstacles: Callable[[int], Obstacles | None]

    @property
    def reason(self) -> npt.NDArray[np.int8]:
        """Return the reason of each step, a number of `RateReason`, shape (..., K)."""
        return self.steps.reason

    @property
    def scale(self) -> Array:
        """Return the scale of each step, see `Step.scale`, shape (..., K)."""
        return self.steps.scale

    @property
    def distance(self) -> Array:
        """Return the least distance of pairs before each step [m], shape (..., K)."""
        return self.steps.distance

    @property
    def active(self) -> npt.NDArray[Any]:
        """Return the active constraints of each step, tuples of texts, shape (..., K).

        They are made at each access, which is slow for many steps.
        """
        return self.steps.active

    @property
    def inseparable(self) -> npt.NDArray[Any]:
        """Return what `Step.inseparable` is of each step, tuples, shape (..., K)."""
        return self.steps.inseparable

    def summary(self) -> dict[str, int]:
        """Return the number of steps of each reason, most frequent first."""
        return self.steps.summary()

    def row(self, *row: int) -> ControlledMotion:
        """Return the motion of one row of a batch.

        Args:
            *row: A number for each dimension of the batch.

        Raises:
            ShapeError: There is no such row.
        """
        batch = self.q.shape[:-2]
        try:
            place = tuple(operator.index(each) for each in row)
            if len(place) != len(batch):
                raise IndexError
            q, qd, numbers = self.q[place], self.qd[place], self.steps.numbers[place]
        except (IndexError, TypeError):
            raise ShapeError(
                f"This motion has a batch of shape {batch}: a row of it is a number "
                f"for each dimension, not {quote(row)}."
            ) from None

        steps = Step(numbers, self.steps.layout)
        obstacles = partial(_of_row, self.obstacles, batch, place)
        return ControlledMotion(self.time, q, qd, steps, obstacles)

    def __repr__(self) -> str:
        return f"<{self.steps.reason.size} controlled steps: {self.steps}>"


Brake = Callable[[Array, Array], tuple[Array, Array]]
"""From joint positions and rates, shape (n,), to those after a step of braking."""


def simulated(
    control: StepFunction,
    brake: Brake,
    ports: Sequence[Port],
    dt: float,
    start: tuple[Any, Any],
    targets: Sequence[Any],
    steps: Any,
    obstacles: Any,
) -> ControlledMotion:
    """Return how a cell moves under a controller; see `Controller.simulate`.

    Args:
        control: The function that computes a step.
        brake: What follows a step that is `INVALID`, where it began with numbers.
        ports: The names and shapes of positions, rates, targets, and rates of targets.
        dt: The length of a step [s].
        start: Positions and rates to begin with.
        targets: A target for each task, then the rate of each.
        steps: The number of steps.
        obstacles: Obstacles to avoid, or None.

    Raises:
        ShapeError: A shape does not fit, or the number of obstacles changes.
        ModelError: `steps` is not a whole number, or below 1.
    """
    # Targets of any form become functions of the number of a step.
    count = whole_number("steps", steps, least=1)
    listed = [
        _at_steps(target, port, count, dt)
        for target, port in zip(targets, ports[2:], strict=True)
    ]
    around = _obstacles_at(obstacles, count, dt)
    q, qd = as_inputs(_named(*ports[:2]), start)
    # The first step says the batch and the number of results.
    first = control(q, qd, [at(0) for at in listed], obstacles=around(0))
    numbers = first.numbers
    n = q.shape[-1]
    # The instants come first here, so that those of all rows lie together.
    path = np.full((count + 1, *numbers.shape), np.nan)
    path[0, ..., :n], path[0, ..., n : 2 * n] = q, qd
    slots: set[int] = set()
    # Results are written where the next step reads q and qd: no copies.
    for k in range(count):
        now = path[k]
        wanted, near = [at(k) for at in listed], around(k)
        step = control(now[..., :n], now[..., n : 2 * n], wanted, obstacles=near)
        _check_batch(step.numbers.shape, path.shape[1:], k)
        slots.add(0 if near is None else near.numbers.shape[-2])
        path[k + 1] = step.numbers
        _go_on(path[k + 1], now, n, brake)
    _check_counts(slots)
    # The instants go behind the batch, as results are documented; no copy is made.
    path.flags.writeable = False
    motion = np.moveaxis(path, 0, -2)
    return ControlledMotion(
        np.arange(count + 1) * np.float64(dt),
        motion[..., :n],
        motion[..., n : 2 * n],
        Step(motion[..., 1:, :], first.layout),
        around,
    )


def _check_batch(found: tuple[int, ...], first: tuple[int, ...], k: int) -> None:
    """Raise a `ShapeError` if the batch of step k is not that of the first step."""
    if found != first:
        raise ShapeError(
            f"The targets and obstacles of step {k} have a batch of shape "
            f"{found[:-1]}, those of the first {first[:-1]}."
        )


def _check_counts(counts: set[int]) -> None:
    """Raise a `ShapeError` if steps have different numbers of obstacles."""
    if len(counts) > 1:
        raise ShapeError(
            f"The number of obstacles changes from step to step: {sorted(counts)}. "
            "Put those that are absent far away."
        )


def _go_on(after: Array, before: Array, n: int, brake: Brake) -> None:
    """Put braking in place of rates that are NaN, so that steps can follow.

    Args:
        after: The numbers of a step, shape (..., m), which are changed.
        before: Those of the step before it.
        n: How many joints.
        brake: As for `simulated`.
    """
    # Rows that did not begin with numbers stay NaN.
    begun = before[..., : 2 * n]
    # Rows that began with numbers and ended in NaN were given something invalid.
    is_lost = np.isnan(after[..., 0]) & np.isfinite(begun).all(axis=-1)
    # Rows one by one: invalid steps are rare.
    for row in map(tuple, np.argwhere(is_lost).tolist()):
        q, qd = brake(begun[row][:n], begun[row][n:])
        after[row][:n], after[row][n : 2 * n] = q, qd


def _named(*ports: Port) -> Program:
    """Return a program of inputs, for messages."""
    return Program("simulate", ports, (), (), ())


def _at_steps(target: Any, port: Port, count: int, dt: float) -> OfTime:
    """Return what gives the target of a step."""
    if callable(target):
        asked = cast(Callable[[float], Any], target)
        return lambda k: asked(k * dt)
    (array,) = as_inputs(_named(port), [target])
    return _sliced(array, len(port.shape), count, f"A target of {port.shape}")


def _sliced(array: Array, rank: int, count: int, what: str) -> OfTime:
    """Return what gives the part of a step, of arrays (..., steps, *shape)."""
    # Constant: the same array at each step.
    if array.ndim == rank:
        return lambda k: array
    axis = array.ndim - rank - 1
    length = array.shape[axis]
    if length not in {1, count}:
        raise ShapeError(
            f"{what} is constant, or has the steps before that shape: {count} of them, "
            f"or 1 for all; here {array.shape}. A batch comes before the steps."
        )
    # An axis of length 1 holds for all steps.
    last = length - 1
    return lambda k: array.take(min(k, last), axis)


def _obstacles_at(obstacles: Any, count: int, dt: float) -> OfTime:
    """Return what gives the obstacles of a step; motions keep it, so it is pickled."""
    if not isinstance(obstacles, Obstacles):
        if callable(obstacles):
            return _Asked(cast(Callable[[float], Any], obstacles), dt, {})
        return partial(_same, obstacles)
    # Constant obstacles move at their velocities; rows for each step do not.
    numbers = obstacles.numbers
    if numbers.ndim == 2 or numbers.shape[-3] == 1 != count:
        once = obstacles if numbers.ndim == 2 else obstacles_of(numbers[..., 0, :, :])
        return partial(_moved_on, once, dt)
    _sliced(numbers, 2, count, "What obstacles are made of")
    return partial(_of_step, numbers)


class _Asked(NamedTuple):
    """Obstacles by a function, which may answer once for each instant, as sensors do.

    It is pickled without the function, by what that has answered.
    """

    function: Callable[[float], Any]
    dt: float
    known: dict[int, Any]

    def __call__(self, k: int) -> Any:
        """Return the obstacles of a step."""
        # A sensor may answer differently if asked twice; motions show what was avoided.
        if k not in self.known:
            self.known[k] = self.function(k * self.dt)
        return self.known[k]

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.known, "__getitem__")


def _same(obstacles: Any, k: int) -> Any:
    return obstacles


def _moved_on(obstacles: Obstacles, dt: float, k: int) -> Obstacles:
    return obstacles.after(k * dt)


def _of_step(numbers: Array, k: int) -> Obstacles:
    part: Any = numbers.take(min(k, numbers.shape[-3] - 1), -3)
    return obstacles_of(part)


def _of_row(
    around: OfTime, batch: tuple[int, ...], place: tuple[int, ...], k: int
) -> Obstacles | None:
    """Return the obstacles of one row of a batch."""
    obstacles = around(k)
    if obstacles is None:
        return None
    each = obstacles.numbers
    # Obstacles without a batch are those of every row.
    whole = np.broadcast_to(each, (*batch, *each.shape[-2:]))
    numbers: Any = whole[place]
    return obstacles_of(numbers)
