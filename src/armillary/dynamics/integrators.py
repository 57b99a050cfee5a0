"""Integrators of fixed step, as programs around those of forward dynamics.

A turn evaluates the accelerations, then a program of this module goes on; several turns
make a step. Positions of joints are numbers that are added to. The pose of a free base
is integrated on its group: its origin moves by a vector, its rotation by R <- exp(t) R
with a rotation vector t in world axes, whose rate at the angular velocity w is

    t' = dexp_t^-1 w = w - t x w / 2 + t x (t x w) / 12 + O(|t|^4)

(Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999). So poses remain poses,
and the order is that of the method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

from armillary.kinematics.closing.kernel import Repeated, Repetition
from armillary.spatial import rotation as rot
from armillary.spatial.pose import Pose, pose_of_entries
from armillary.spatial.vector import (
    EYE,
    Number,
    Rows,
    Vector3,
    add,
    cross,
    multiply,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

__all__ = ["FREE", "METHODS", "Method"]

FREE: Final = "free_bases"
"""The input of a program that holds the poses of free bases."""

Numbers = Sequence[Number]


class Method(NamedTuple):
    """A method of integration.

    Attributes:
        turns: Evaluations of the accelerations in a step.
        order: By which power of the step its error falls.
        repeated: How the program of forward dynamics runs.
    """

    turns: int
    order: int
    repeated: Repeated


class Positions(NamedTuple):
    """Where everything is: joint positions, and poses of free bases."""

    q: list[Number]
    bases: list[Pose]

    @classmethod
    def read(cls, program: Program, arrays: Sequence[Any]) -> Self:
        """Return the positions in what is given for the inputs of `shapes`."""
        given = dict(zip(shapes(program), arrays, strict=True))
        bases = [Pose.from_matrix(X) for X in given.get(FREE, ())]
        return cls(list(given.get("q", ())), bases)

    def written(self) -> list[Any]:
        """Return an array for each input of `shapes`."""
        bases = [[X.matrix() for X in self.bases]] if self.bases else []
        return [*bases, *([self.q] if self.q else [])]

    def moved(self, by: Numbers) -> Positions:
        """Return the positions after six numbers for each base, then those of q."""
        first = 6 * len(self.bases)
        q = [x + step for x, step in zip(self.q, by[first:], strict=True)]
        bases: list[Pose] = []
        for k, X in enumerate(self.bases):
            linear, angular = _halves(by, k)
            rotation = multiply(rot.exp(angular), X.rotation)
            bases.append(Pose(rotation, add(X.position, linear)))
        return Positions(q, bases)

    def rates(self, moved: Numbers, qd: Numbers) -> list[Number]:
        """Return the rates of those numbers, where positions have `moved` by them."""
        found = list(qd)
        for k in range(len(self.bases)):
            (_, t), (_, w) = _halves(moved, k), _halves(qd, k)
            once = cross(t, w)
            twice = scale(1.0 / 12.0, cross(t, once))
            found[6 * k + 3 : 6 * k + 6] = add(subtract(w, scale(0.5, once)), twice)
        return found

    def where(self, truth: Any, other: Positions) -> Positions:
        """Return these positions where it is true, elsewhere the others."""
        bases = [
            pose_of_entries(_selected(truth, X.entries, Y.entries))
            for X, Y in zip(self.bases, other.bases, strict=True)
        ]
        return Positions(_selected(truth, self.q, other.q), bases)

    def orthonormal(self) -> Positions:
        """Return the same with rotations freed from rounding errors."""
        bases = [Pose(_orthonormal(X.rotation), X.position) for X in self.bases]
        return Positions(self.q, bases)


def shapes(program: Program, prefix: str = "") -> dict[str, tuple[int, ...]]:
    """Return the inputs of a program that hold positions, if they have numbers."""
    names = FREE, "q"
    return {
        prefix + port.name: port.shape
        for port in program.inputs
        if port.name in names and port.size
    }


TIME: Final[tuple[Port, ...]] = (Port("dt", ()), Port("left", ()))
"""The length of a step [s], and how many turns are left."""


def semi_implicit_euler(program: Program) -> Repetition:
    """Return a step of order 1: qd' = qd + dt qdd, q' = q + dt qd'."""
    where, size = shapes(program), _rate_size(program)
    count = len(where)

    def step(*given: Any) -> Any:
        qd, qdd, dt, left = given[count:]
        faster = [v + dt * a for v, a in zip(qd, qdd, strict=True)]
        at = Positions.read(program, given[:count]).moved([dt * v for v in faster])
        return *at.orthonormal().written(), faster, left - 1.0

    results = (*where, "qd")
    inputs = where | _rates(size)
    after = trace(step, name="step", outputs=(*results, "left"), **inputs)
    return Repetition(TIME, (), after, "left", results)


def runge_kutta(program: Program) -> Repetition:
    """Return a step of the classical method of order 4, one stage a turn.

    With k_i = f(x + c_i dt k_(i-1)) and c = 0, 1/2, 1/2, 1 it is
    x' = x + dt (k_1 + 2 k_2 + 2 k_3 + k_4) / 6, where x are positions and rates.
    """
    where, size = shapes(program), _rate_size(program)
    start = shapes(program, "start_")
    count = len(where)
    sums = dict.fromkeys(("start_qd", "moved", "sum_q", "sum_qd"), (size,))
    written = (*start, *sums, "stage")

    def begin(*given: Any) -> Any:
        zeros = [0.0] * size
        return *given[:count], given[count], zeros, zeros, zeros, 0.0

    def turn(*given: Any) -> Any:
        begun = Positions.read(program, given[:count])
        start_qd, moved, sum_q, sum_qd, stage, qd, qdd, dt, left = given[count:]
        is_outer = select(stage > 0.5, stage, 3.0) > 2.5  # 0 or 3
        is_last = stage > 2.5
        weight = select(is_outer, 1.0 / 6.0, 1.0 / 3.0) * dt
        part = select(stage > 1.5, 1.0, 0.5) * dt
        rates = begun.rates(moved, qd)
        sum_q = [x + weight * rate for x, rate in zip(sum_q, rates, strict=True)]
        sum_qd = [x + weight * a for x, a in zip(sum_qd, qdd, strict=True)]
        by = _selected(is_last, sum_q, [part * rate for rate in rates])
        rising = _selected(is_last, sum_qd, [part * a for a in qdd])
        at = begun.moved(by).orthonormal()
        faster = [v + more for v, more in zip(start_qd, rising, strict=True)]

        def anew(numbers: Numbers) -> list[Number]:
            return [select(is_last, 0.0, x) for x in numbers]

        return (
            *at.written(),
            faster,
            *at.where(is_last, begun).written(),
            _selected(is_last, faster, start_qd),
            anew(by),
            anew(sum_q),
            anew(sum_qd),
            select(is_last, 0.0, stage + 1.0),
            left - 1.0,
        )

    first = where | {"qd": (size,)}
    before = trace(begin, name="begin", outputs=written, **first)
    inputs = start | sums | {"stage": ()} | _rates(size)
    outputs = (*where, "qd", *written, "left")
    after = trace(turn, name="turn", outputs=outputs, **inputs)
    return Repetition(TIME, (before,), after, "left", (*where, "qd"))


METHODS: Final = {
    "rk4": Method(4, 4, runge_kutta),
    "semi-implicit euler": Method(1, 1, semi_implicit_euler),
}
"""The methods of integration by name."""


def _rate_size(program: Program) -> int:
    (size,) = (port.size for port in program.inputs if port.name == "qd")
    return size


def _rates(size: int) -> dict[str, tuple[int, ...]]:
    """Return the last inputs of each turn."""
    return {"qd": (size,), "qdd": (size,), "dt": (), "left": ()}


def _halves(vector: Numbers, base: int) -> tuple[Vector3, Vector3]:
    """Return the linear and the angular three numbers of a free base."""
    k = 6 * base
    return three(vector[k : k + 3]), three(vector[k + 3 : k + 6])


def _selected(truth: Any, then: Numbers, otherwise: Numbers) -> list[Number]:
    pairs = zip(then, otherwise, strict=True)
    return [select(truth, x, y) for x, y in pairs]


def _orthonormal(R: Rows) -> Rows:
    """Return R (3 - R' R) / 2, which is next to the nearest rotation if R nearly is."""
    square = multiply(transpose(R), R)
    x, y, z = (
        subtract(scale(1.5, e), scale(0.5, row))
        for e, row in zip(EYE, square, strict=True)
    )
    return multiply(R, (x, y, z))
