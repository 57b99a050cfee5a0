"""Limits of torques as rows of rates.

In a step of dt rates go from v to x, which takes the torques M (x - v) / dt + h, where
M is the mass matrix, and h what holds the cell and keeps its rates. They are linear in
x. M and h come from one kernel of dynamics, called before each step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.dynamics.inverse import inverse_dynamics
from armillary.dynamics.mass_matrix import mass_matrix
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.setting import setting_of
from armillary.kernel.pipeline import Each, Stage, program
from armillary.kernel.tables import Table, index, reals
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.bound_state import home
from armillary.kinematics.moving_twists import RATES, MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.ldl import inner
from armillary.spatial.vector import Number
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum, minimum, select, sqrt

__all__ = [
    "TorqueLimits",
    "softened_rest",
    "torque_guard",
    "torque_port",
    "torque_stages",
    "torque_table",
    "torque_verdict",
]

MASS_ROWS: Final = "mass_rows"
"""The input with a row of M for each joint that is moved, and its h behind it."""

LIMITED: Final = "torque_limits"
"""The table with two records for each joint that is moved: its least, its greatest."""

TINY: Final = 1e-300

BROKEN: Final = 1e-9
"""Part of a rate by which a torque may be beyond its limit."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TorqueLimits:
    """Limits of torques of the joints that a controller moves.

    Attributes:
        dynamics: The kernel (q, qd) -> M and h, shape (..., c, n + 1).
        limits: The greatest torques, shape (c,) [N m or N].
    """

    dynamics: AnyKernel
    limits: Array

    @classmethod
    def of(cls, twists: MovingTwists, state: State, limits: Array) -> TorqueLimits:
        """Return the limits of the joints of `twists`, from those of all joints.

        Raises:
            ModelError: No link that joints move has an inertia.
        """
        cell, chosen = twists.moving.cell, list(twists.joints)
        n = twists.moving.joints

        def equations(bodies: Multibody, qd: Any) -> Any:
            M = mass_matrix(bodies)
            h = inverse_dynamics(bodies, list(qd), [0.0] * n)
            return [[*M[k], h[k]] for k in chosen]

        setting = setting_of(cell, {"state": None if state is home(cell) else state})
        question = (MASS_ROWS, *chosen)
        kernel = setting.kernel(question, equations, ("qd",), output=MASS_ROWS)
        return cls(kernel, limits[chosen])

    def records(self, first: int) -> dict[str, Mapping[str, Any]]:
        """Return the records of the table; rows of rates begin at `first`."""
        c = len(self.limits)
        rows = first + np.arange(2 * c)
        return {
            LIMITED: {
                "mass_row": np.repeat(np.arange(c), 2),
                "torque_side": np.tile([1.0, -1.0], c),
                "torque": np.repeat(self.limits, 2),
                "torque_row": rows,
                "torque_near": rows,
            }
        }


def torque_table(rows: str, nears: str) -> Table:
    """Return the table of limits; what they ask for goes to two columns of rows."""
    return Table(
        LIMITED,
        (
            index("mass_row", MASS_ROWS),
            reals("torque_side"),
            reals("torque"),
            index("torque_row", rows),
            index("torque_near", nears),
        ),
    )


def torque_port(twists: MovingTwists) -> Port:
    """Return the input with M and h."""
    return Port(MASS_ROWS, (len(twists.joints), twists.moving.joints + 1))


def torque_stages(twists: MovingTwists) -> tuple[Stage, ...]:
    """Return the stages that write the rows: a with unit length, b, and two zeros."""
    n, chosen = twists.moving.joints, twists.joints

    def row(mass_row: Any, torque_side: Any, torque: Any, qd: Any, dt: Any) -> Any:
        M = [mass_row[k] for k in chosen]
        length = sqrt(maximum(inner(M, M), TINY))
        a: list[Number] = [torque_side * x / length for x in M]
        # side (M (x - v) / dt + h) >= -torque
        room = torque + torque_side * mass_row[n]
        b = inner(a, [qd[k] for k in chosen]) - room * dt / length
        counts = select(length > 1e-100, select(torque < np.inf, 1.0, 0.0), 0.0)
        return [*a, b, 0.0, 0.0], [counts]

    given = {"mass_row": (n + 1,), "torque_side": (), "torque": (), RATES: (n,)}
    stage = program(row, "torque_row torque_near", **given, dt=())
    return (Each(LIMITED, (stage,)),)


def softened_rest(twists: MovingTwists) -> tuple[Stage, ...]:
    """Return the stages that brake less hard in `rest`, so that torques allow it.

    Full braking is kept in `full_rest`. Between that and going on at the same rates the
    hardest braking within the limits is found; all is linear.
    """
    n, chosen = twists.moving.joints, twists.joints
    c = len(chosen)

    def begin(rest: Any) -> Any:
        return list(rest), 1.0

    def part(
        torque_row: Any, torque_near: Any, qd: Any, rest: Any, rest_part: Any
    ) -> Any:
        a, b = list(torque_row[:c]), torque_row[c]
        going = inner(a, [qd[k] for k in chosen]) - b
        braking = inner(a, list(rest)) - b
        is_short = select(braking < 0.0, torque_near[0], 0.0) * maximum(going, 0.0)
        found = minimum(rest_part, going / maximum(going - braking, TINY))
        return select(is_short > 0.0, found, rest_part)

    def softened(qd: Any, rest: Any, low: Any, high: Any, rest_part: Any) -> Any:
        found: list[Number] = []
        for k, r, a, b in zip(chosen, rest, low, high, strict=True):
            v = qd[k]
            rate = minimum(maximum(v + rest_part * (r - v), a), b)
            found.append(select(rest_part < 1.0, rate, r))
        return found

    row = {"torque_row": (c + 3,), "torque_near": (1,), RATES: (n,), "rest": (c,)}
    vectors = {RATES: (n,), "rest": (c,), "low": (c,), "high": (c,)}
    return (
        program(begin, "full_rest rest_part", rest=(c,)),
        Each(LIMITED, (program(part, "rest_part", **row, rest_part=()),)),
        program(softened, "rest", **vectors, rest_part=()),
    )


def torque_guard(c: int) -> tuple[Stage, ...]:
    """Return the stages that brake where the best rates take more than the limits.

    That is where nothing between the bounds of rates keeps them. They also restore the
    full braking in `rest`.
    """

    def guarded(x: Any, full_rest: Any, torque_excess: Any) -> Any:
        is_kept = torque_excess <= 0.0
        found = [select(is_kept, a, b) for a, b in zip(x, full_rest, strict=True)]
        return found, list(full_rest)

    given = {"x": (c,), "full_rest": (c,), "torque_excess": ()}
    return *_excess(c), program(guarded, "x rest", **given)


def torque_verdict(c: int) -> tuple[Stage, ...]:
    """Return the stages that make `passed` 1 where the rates take too much."""

    def judged(passed: Any, torque_excess: Any) -> Any:
        return select(torque_excess <= 0.0, passed, 1.0)

    return *_excess(c), program(judged, "passed", passed=(), torque_excess=())


def _excess(c: int) -> tuple[Stage, ...]:
    """Return the stages that find by how much rows are missed most, 0 if none is."""

    def begin(dt: Any) -> Any:
        return 0.0 * dt

    def missed(torque_row: Any, torque_near: Any, x: Any, torque_excess: Any) -> Any:
        a, b = list(torque_row[:c]), torque_row[c]
        least = b - BROKEN * (1.0 + absolute(b))
        short = select(torque_near[0] > 0.0, least - inner(a, list(x)), 0.0)
        return maximum(torque_excess, short)

    row = {"torque_row": (c + 3,), "torque_near": (1,), "x": (c,), "torque_excess": ()}
    return (
        program(begin, "torque_excess", dt=()),
        Each(LIMITED, (program(missed, "torque_excess", **row),)),
    )
