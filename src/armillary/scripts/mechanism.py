"""The joint that a script moves: its forward and inverse as a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import JointError, NotCompiled, ScriptError, quote
from armillary.model.closed_form import OutOfReach
from armillary.model.mechanism import Mechanism
from armillary.model.motion import TracedMotion
from armillary.model.unit import Unit
from armillary.model.workcell import Workcell
from armillary.scripts.component import ComponentData
from armillary.scripts.constants import SolutionWarning
from armillary.scripts.host import NOWHERE, Host, ScriptSolution
from armillary.scripts.isolation import IsolatedHost
from armillary.scripts.source import ScriptDiagnostic, prepared
from armillary.scripts.trust import is_isolated, isolate
from armillary.spatial.pose import IDENTITY, Pose, pose_of_entries
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number
from armillary.trace import Traced

__all__ = ["Script", "isolate_scripts", "scripts_of"]

COMPARED: Final = 16
"""Joint positions at which traced and interpreted poses are compared."""

AGREEMENT: Final = 1e-9


class Script(Mechanism, frozen=True):
    """The mechanism of a Visual Components kinematics script; see `scripted`.

    Its frame F is that of the component, M the flange. It is made without running the
    script, which is run when it is first asked for a pose.

    Attributes:
        file: The script's file name, for messages.
        source: The text of the script.
        component: The component as JSON, its joints in the script's order.
        relaxed: Whether solutions beyond joint limits count, see `scripted`.
    """

    file: str
    source: str
    component: str
    relaxed: bool = False
    lengths = ()

    def check(self) -> None:
        """Refuse a component that cannot be read; nothing runs.

        Raises:
            ScriptError: `component` is not the JSON of one, or `file` not one line.
        """
        if not self.file.isprintable():
            raise ScriptError(
                f"The file name of a script is {quote(self.file)}; it must be one line "
                "of text."
            )
        try:
            _joints(self.component)
        except msgspec.MsgspecError as error:
            raise ScriptError(
                f"The component of the script {self.file} cannot be read: {error}."
            ) from error

    @property
    def input_units(self) -> tuple[Unit, ...]:
        """Return what the joints are measured in, then the external ones."""
        return tuple(
            Unit.RADIAN if joint.is_rotational else Unit.METRE
            for joint in _joints(self.component)
        )

    @property
    def host(self) -> Host | IsolatedHost:
        """Return what runs the script, the same for equal scripts.

        Raises:
            ScriptError: It may not run here, or is wrong.
        """
        return _host_of(self.file, self.source, self.component, relaxed=self.relaxed)

    @property
    def motion(self) -> TracedMotion:
        """Return the traced motion, or one that runs the script where that fails."""
        bare = self
        if not self.precursor.is_identity:
            bare = msgspec.structs.replace(self, precursor=IDENTITY)
        return _motion_of(bare)

    @property
    def diagnostics(self) -> tuple[ScriptDiagnostic, ...]:
        """Return what was found in the script, and what keeps it from being compiled.

        Raises:
            ScriptError: It may not run here, or is wrong.
        """
        _ = self.motion
        return tuple(self.host.diagnostics)

    def forward(self, q: Any) -> Pose:
        """Return what `OnForward` does; NaN where that is False or q is not finite.

        q: Joint positions, then those of external joints [m or rad], shape (n,).
        """
        pairs = zip(q, _joints(self.component), strict=True)
        values = [_plain(x) * joint.per_si_unit for x, joint in pairs]
        if not all(isinstance(x, Traced) or math.isfinite(x) for x in values):
            return NOWHERE
        return self.host.forward(values)

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of the configurations, each a tuple of words."""
        return self.host.configurations

    def inverse(self, pose: Pose) -> list[list[Any] | OutOfReach | None]:
        """Return joint positions for each configuration, None where there are none.

        Those of which the script warns that they are unreachable are `OutOfReach`.
        """
        solutions = self.host.solutions(
            pose_of_entries(list(map(_plain, pose.entries)))
        )
        return [self._reached(each) for each in solutions]

    def _reached(
        self, solution: ScriptSolution | None
    ) -> list[Any] | OutOfReach | None:
        if solution is None:
            return None
        q = self._in_si(solution.values)
        is_reached = solution.warning != SolutionWarning.UNREACHABLE
        return q if is_reached else OutOfReach(q)

    def _in_si(self, values: Sequence[Any]) -> list[Any]:
        pairs = zip(values, _joints(self.component), strict=True)
        return [value * joint.factor for value, joint in pairs]

    def scaled(self, factor: float) -> Script:
        """Refuse: the lengths are in the script and its component.

        Raises:
            JointError: Always, but for a factor of 1.
        """
        if factor == 1.0:
            return self
        raise JointError(
            f"The script {self.file} cannot be scaled by {factor:g}: its lengths are "
            "properties of its component. Change them there."
        )


def _plain(x: Any) -> Any:
    """Return a number of Python, not of NumPy, so that dividing by 0 is an error."""
    return x if isinstance(x, Traced) else float(x)


def scripts_of(cell: Workcell) -> Iterator[Script]:
    """Yield the scripts that move links of a cell; none of them runs."""
    for link in cell.links:
        if isinstance(link.joint, Script):
            yield link.joint


def isolate_scripts(cell: Workcell) -> None:
    """Let the scripts of a cell run in processes of their own."""
    for each in scripts_of(cell):
        isolate(each.source)


@lru_cache(maxsize=1024)
def _joints(component: str) -> tuple[Any, ...]:
    data = msgspec.json.decode(component, type=ComponentData)
    return (*data.joints, *data.external_joints)


@lru_cache(maxsize=256)
def _host_of(
    file: str, source: str, component: str, *, relaxed: bool
) -> Host | IsolatedHost:
    if is_isolated(source, file):
        return IsolatedHost(file, source, component, relaxed=relaxed)
    data = msgspec.json.decode(component, type=ComponentData)
    return Host(prepared(source, file), data, relaxed=relaxed)


@lru_cache(maxsize=256)
def _motion_of(script: Script) -> TracedMotion:
    host = script.host
    interpreted = InterpretedMotion(script.forward, len(script.input_units))
    try:
        count = len(script.input_units)
        traced = TracedMotion(script, count if count > 1 else None)
    except JointError as error:
        reason = str(error).removeprefix("Script.pose cannot be traced. ")
        reason = reason.partition(" Use the functions of numpy")[0]
    else:
        q = _samples(host)
        difference = _differences(traced.poses(q), interpreted.poses(q))
        k = int(np.argmax(difference))
        worst = difference[k]
        if worst <= AGREEMENT:
            return traced
        reason = (
            f"traced and run as Python, its poses differ by {worst:.3g} at q = "
            f"{q[k].tolist()}; it keeps something from call to call"
        )
    host.diagnostics.append(
        ScriptDiagnostic("not-compiled", _line_in(reason, script), reason)
    )
    interpreted.reason = reason
    return interpreted


def _differences(a: Any, b: Any) -> Any:
    """Return how much poses differ, shape (n,); infinite where only one is NaN."""
    difference = np.where(np.isnan(a) & np.isnan(b), 0.0, np.abs(a - b))
    return np.nan_to_num(difference, nan=np.inf).max(axis=(1, 2))


def _line_in(reason: str, script: Script) -> int:
    """Return the line of the script that a reason names, 1 where it names none."""
    _, _, rest = reason.partition(f"{script.file}:")
    digits = rest.partition(":")[0]
    return int(digits) if digits.isdigit() else 1


def _samples(host: Host | IsolatedHost) -> Any:
    """Return joint positions within the limits [m or rad]."""
    joints = (*host.joints, *host.secondary)
    ends = [
        [max(low, -170.0) * joint.factor, min(high, 170.0) * joint.factor]
        for joint, (low, high) in zip(joints, host.limits, strict=True)
    ]
    low, high = np.array(ends).T
    return np.random.default_rng(0).uniform(low, high, (COMPARED, len(joints)))


# The motion of a script that cannot be compiled: each pose runs the script.


Array = npt.NDArray[np.float64]

STEP: Final = 1e-5
"""Of central differences [m or rad]; their error is about 1e-10."""


class InterpretedMotion(TracedMotion):
    """A motion that calls a function on floats; derivatives are central differences.

    Attributes:
        reason: Why it is not compiled.
    """

    def __init__(self, function: Callable[..., Pose], count: int) -> None:
        """Take over a function of `count` coordinates."""
        self.shape = (count,)
        self._name = "script"
        self.reason = ""
        self._function = function

    def pose(self, *q: Number) -> Pose:
        """Return the pose at the coordinates `q`.

        Raises:
            NotCompiled: One of them is traced.
        """
        if any(isinstance(x, Traced) for x in q):
            raise NotCompiled(f"The script runs as Python: {self.reason}")
        return self._function(q)

    def columns(self, *q: Number) -> list[Vector6]:
        """Return for each coordinate the twist of M in F at unit rate, written in M.

        Raises:
            NotCompiled: A coordinate is traced.
        """
        # Central differences of the pose: v = R' dp/dq, and w from the skew matrix
        # R' dR/dq, whose symmetric part is the error of the differences.
        X = self.pose(*q)
        R = np.array(X.rotation, dtype=np.float64)
        columns: list[Vector6] = []
        for k in range(len(q)):
            ends = [
                self.pose(*(x + sign * STEP * (i == k) for i, x in enumerate(q)))
                for sign in (1.0, -1.0)
            ]
            turned, moved = (
                (np.array(a, dtype=np.float64) - np.array(b, dtype=np.float64))
                / (2.0 * STEP)
                for a, b in (
                    (ends[0].rotation, ends[1].rotation),
                    (ends[0].position, ends[1].position),
                )
            )
            v, W = R.T @ moved, R.T @ turned
            w = 0.5 * np.array(
                [W[2, 1] - W[1, 2], W[0, 2] - W[2, 0], W[1, 0] - W[0, 1]]
            )
            a, b, c, d, e, f = (*v.tolist(), *w.tolist())
            columns.append((a, b, c, d, e, f))
        return columns

    def poses(self, q: Array) -> Array:
        """Return the poses at many coordinates, shape (n, count) -> (n, 3, 4)."""
        poses: list[Any] = []
        for row in q.tolist():
            X = self.pose(*row)
            poses.append(np.column_stack([np.array(X.rotation), np.array(X.position)]))
        return np.array(poses, dtype=np.float64)
