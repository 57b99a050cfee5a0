"""The host of one script: it runs its events as a robot controller would."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from armillary.errors import ScriptError, nearest, quote
from armillary.limits import SCRIPT_CONFIGURATIONS, SCRIPT_JOINTS
from armillary.scripts.component import ComponentData, ComponentInScript, JointData
from armillary.scripts.constants import SolutionWarning
from armillary.scripts.host_modules import not_offered
from armillary.scripts.inert import INERT
from armillary.scripts.kinematics_object import KinematicsObject
from armillary.scripts.matrix import ScriptMatrix
from armillary.scripts.runner import CONFIGURATION_EVENTS, Runner
from armillary.scripts.source import ScriptDiagnostic, Source
from armillary.spatial.pose import IDENTITY, TOLERANCE, Pose
from armillary.spatial.vector import cross, dot, subtract

__all__ = ["NOWHERE", "Host", "ScriptSolution"]

NAN3: Final = (math.nan, math.nan, math.nan)
NOWHERE: Final = Pose((NAN3, NAN3, NAN3), NAN3)
"""The pose where `OnForward` returns False."""


class ScriptSolution(NamedTuple):
    """What a script gives for one configuration.

    Attributes:
        warning: One of `SolutionWarning`, as a number, maybe traced.
        values: Joint values, then those of secondary joints [deg or mm].
    """

    warning: Any
    values: tuple[Any, ...]


class Host:
    """One script with its component, ready to be asked.

    Attributes:
        source: The script.
        component: Its component.
        joints: Its joints, in its order, as the component describes them.
        secondary: Its secondary joints.
        kinematic_count: How many of the joints forward kinematics is about; the rest
            are helper joints.
        configurations: The name of each configuration, a tuple of words.
        diagnostics: What was found in the script.
    """

    def __init__(
        self,
        source: Source,
        component: ComponentData,
        *,
        relaxed: bool = False,
    ) -> None:
        """Run the script, then its events up to the first `OnForward`.

        relaxed: Whether solutions beyond joint limits count, where `OnRelaxParams`
            agrees; else those within, where `OnConstrainParams` agrees.

        Raises:
            ScriptError: The script or the component is wrong; the message has the line.
        """
        self.source, self.component = source, component
        self.diagnostics: list[ScriptDiagnostic] = list(source.diagnostics)
        self._in_script = ComponentInScript(component)
        functions: dict[str, Callable[..., Any]] = {
            "getComponent": lambda: self._in_script,
            "getNode": lambda: self._in_script,
            "getApplication": lambda: INERT,
            "getSimulation": not_offered("getSimulation"),
            "forwardKin": self._forward_kin,
        }
        self._runner = Runner(source, functions)
        self.joints, self.secondary = self._joints()
        self.kinematic_count = self._runner.count(
            "OnGetKinematicJointCount", len(self.joints), len(self.joints)
        )
        self._kin = KinematicsObject(self.joints, self.secondary)
        self._runner.call("OnFinalize")
        self._runner.call("OnRebuild")
        self._runner.call("OnInitKinObject", self._kin)
        self.is_limited = self._are_limits_kept(relaxed=relaxed)
        self._start = self._kin.JointValues
        home = tuple(joint.start for joint in (*self.joints, *self.secondary))
        self._first_target = self._forward(home)
        self.configurations = self._configurations()

    # what a robot controller asks

    def forward(self, values: Sequence[Any]) -> Pose:
        """Return the pose of the flange in the component's frame [m].

        It is NaN where `OnForward` returns False.

        values: Of the joints, then of the secondary ones [deg or mm]; floats, or
            traced.

        Raises:
            ScriptError: The script fails; the message has the line.
        """
        with self._asked(values):
            return self._forward(values)

    def solutions(self, pose: Pose) -> list[ScriptSolution | None]:
        """Return what the script gives for each configuration, None for nothing.

        pose: Of the flange in the component's frame [m], of floats or traced.

        Raises:
            ScriptError: The script fails; the message has the line.
        """
        with self._asked(pose.entries):
            return self._solutions(self._calculated(ScriptMatrix.of_pose(pose)))

    def target(
        self, full: Pose, base: Pose, tool: Pose, *, inverted: bool = False
    ) -> Pose:
        """Return the flange pose for a target, by `OnCalculateTarget` where it exists.

        By default it is base full inverse(tool); inverted, the inverse of tool full
        inverse(base). All are in metres.

        Args:
            full: The target of the tool centre point.
            base: The base frame.
            tool: The tool frame on the flange.
            inverted: Whether `full` leads from tool to base.
        """
        matrices = [ScriptMatrix.of_pose(each) for each in (full, base, tool)]
        with self._asked((*full.entries, *base.entries, *tool.entries)):
            if "OnCalculateTarget" not in self._runner:
                if inverted:
                    return (tool @ full @ base.inverse()).inverse()
                return base @ full @ tool.inverse()
            return self._matrix("OnCalculateTarget", *matrices, inverted).pose()

    def _calculated(self, target: ScriptMatrix) -> ScriptMatrix:
        """Return what `OnCalculateTarget` makes of a flange target, without a tool.

        The script of an arm of few joints projects targets there onto its workspace.
        """
        if "OnCalculateTarget" not in self._runner:
            return target
        none = ScriptMatrix.of_pose(IDENTITY), ScriptMatrix.of_pose(IDENTITY)
        return self._matrix("OnCalculateTarget", target, *none, False)

    def _matrix(self, event: str, *args: Any) -> ScriptMatrix:
        returned = self._runner.call(event, *args)
        if not isinstance(returned, ScriptMatrix):
            raise self._runner.wrong_return(event, returned, "a vcMatrix")
        return returned

    def _asked(self, numbers: Sequence[Any]) -> AbstractContextManager[None]:
        return self._runner.asked(numbers, (self._kin, self._in_script))

    # events

    def _forward(self, values: Sequence[Any]) -> Pose:
        kin, count = self._kin, len(self.joints)
        kin.begin(values=values[:count], secondary=values[count:])
        worked = self._runner.truth("OnForward", kin)
        if not worked:
            return NOWHERE
        if "Target" not in kin.written:
            raise self._runner.fault(
                "OnForward", "OnForward returned True without setting kinobj.Target"
            )
        pose = kin.Target.pose()
        if pose.is_float and not _is_rigid(pose):
            raise self._runner.fault(
                "OnForward",
                "OnForward set kinobj.Target to a matrix whose axes are not unit "
                "vectors at right angles; uniform() makes them so",
            )
        return pose

    def _solutions(self, target: ScriptMatrix) -> list[ScriptSolution | None]:
        kin = self._kin
        count = len(self.configurations)
        answers = self._ask_inverse(target)
        if "Solutions" in kin.written:
            if len(answers) > count:
                raise self._runner.fault(
                    "OnInverse",
                    f"OnInverse gave {len(answers)} solutions; there are {count} "
                    "configurations",
                )
            return [*answers, *[None] * (count - len(answers))]
        if count == 1:
            return answers or [None]
        every: list[ScriptSolution | None] = []
        for index in range(count):
            self._set_configuration(index)
            answers = self._ask_inverse(target)
            every.append(answers[0] if answers else None)
        return every

    def _ask_inverse(self, target: ScriptMatrix) -> list[ScriptSolution | None]:
        """Return what one call of `OnInverse` gives: one solution, or all of them."""
        kin = self._kin
        home = [joint.start for joint in self.secondary]
        kin.begin(values=self._start, secondary=home, target=target)
        if self.secondary and "OnUpdateSecondaryJoints" in self._runner:
            self._runner.truth("OnUpdateSecondaryJoints", kin)
        extra = kin.SecondaryJointValues
        worked = self._runner.truth("OnInverse", kin)
        if "Solutions" in kin.written:
            return [
                ScriptSolution(warning, (*values, *extra))
                for warning, values in kin.Solutions
            ]
        if not worked:
            return []
        if "JointValues" not in kin.written:
            raise self._runner.fault(
                "OnInverse",
                "OnInverse returned True without setting kinobj.Solutions or "
                "kinobj.JointValues, or calling kinobj.moveJointTo",
            )
        return [ScriptSolution(SolutionWarning.REACHABLE, (*kin.JointValues, *extra))]

    def _are_limits_kept(self, *, relaxed: bool) -> bool:
        """Return whether only solutions within the limits count."""
        name = "OnRelaxParams" if relaxed else "OnConstrainParams"
        agreed = self._runner.truth(name, self._kin) if name in self._runner else True
        limits = zip(self._kin.JointMinLimits, self._kin.JointMaxLimits, strict=True)
        for joint, (low, high) in zip(self.joints, limits, strict=True):
            if low > high:
                raise self._runner.fault(
                    name,
                    f"{name} has left joint {quote(joint.name)} the limits {low:g} to "
                    f"{high:g}",
                )
        return agreed is not relaxed

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Return the limits of all joints as the script left them [deg or mm]."""
        limits = zip(self._kin.JointMinLimits, self._kin.JointMaxLimits, strict=True)
        others = ((joint.lower, joint.upper) for joint in self.secondary)
        return [*limits, *others]

    # configurations

    def _configurations(self) -> tuple[tuple[str, ...], ...]:
        steps = [each for each in self._kin.Properties if each.StepValues]
        if CONFIGURATION_EVENTS[0] in self._runner:
            count = self._runner.count(
                CONFIGURATION_EVENTS[0], 1, SCRIPT_CONFIGURATIONS.most
            )
            names: list[tuple[str, ...]] = []
            before = self._runner.call(
                CONFIGURATION_EVENTS[1], *self._object(CONFIGURATION_EVENTS[1], 0)
            )
            self._check_index(before, count)
            for index in range(count):
                self._set_configuration(index)
                names.append(tuple(str(each.Value) for each in steps))
            self._set_configuration(before)
            if len({*names}) == count and all(names):
                return tuple(names)
            return _numbered(count)
        if steps:
            return tuple((str(value),) for value in steps[0].StepValues)
        if self._first_target is NOWHERE:  # there is nothing to ask for
            return _numbered(1)
        answers = self._ask_inverse(ScriptMatrix.of_pose(self._first_target))
        return _numbered(max(1, len(answers)))

    def _check_index(self, index: Any, count: int) -> None:
        name = CONFIGURATION_EVENTS[1]
        if type(index) is not int or not 0 <= index < count:
            what = f"a whole number from 0 to {count - 1}"
            raise self._runner.wrong_return(name, index, what)

    def _set_configuration(self, index: int) -> None:
        name = CONFIGURATION_EVENTS[2]
        if name in self._runner:
            self._runner.call(name, *self._object(name, 1), index)
            return
        steps = [each for each in self._kin.Properties if each.StepValues]
        if steps:
            steps[0].Value = steps[0].StepValues[index]

    def _object(self, name: str, others: int) -> tuple[KinematicsObject, ...]:
        """Return the kinematics object where an event takes it beside its others."""
        takes_it = others + 1 in self._runner.parameters(name)
        return (self._kin,) if takes_it else ()

    # joints

    def _joints(self) -> tuple[tuple[JointData, ...], tuple[JointData, ...]]:
        joints = self._described(
            self._runner.count("OnGetJointCount", 1, SCRIPT_JOINTS.most),
            "OnGetJointName",
            self.component.joints,
            "joints",
        )
        secondary = self._described(
            self._runner.count("OnGetSecondaryJointCount", 0, SCRIPT_JOINTS.most),
            "OnGetSecondaryJointName",
            self.component.external_joints,
            "external_joints",
        )
        names = [joint.name for joint in (*joints, *secondary)]
        for name in names:
            if names.count(name) > 1:
                raise self._runner.fault(
                    "OnGetJointName", f"two joints are called {quote(name)}"
                )
        return joints, secondary

    def _described(
        self, count: int, event: str, given: Sequence[JointData], field: str
    ) -> tuple[JointData, ...]:
        """Return what the component says of the joints that the script names."""
        if event in self._runner:
            names: list[Any] = [self._runner.call(event, k) for k in range(count)]
        else:
            names = [f"J{k + 1}" for k in range(count)]
        known = {joint.name: joint for joint in given}
        for k, name in enumerate(names):
            if not isinstance(name, str) or not name:
                raise self._runner.wrong_return(f"{event}({k})", name, "a text")
            if name not in known:
                likely = nearest(name, known)
                guess = f" Did you mean {quote(likely)}?" if likely else ""
                raise ScriptError(
                    f"{self.source.name} has a joint {quote(name)}, but the {field} of "
                    f"its component have none of that name.{guess} The component lists "
                    f"{', '.join(map(quote, known)) or 'no joints'}; the script "
                    f"{', '.join(map(repr, names))}. Give each joint a name, a kind, "
                    "min and max."
                )
        if len(given) != count:
            extra = [joint.name for joint in given if joint.name not in names]
            raise ScriptError(
                f"{self.source.name} has {count} joints, but {field} of its component "
                f"has {len(given)}; not in the script: {', '.join(map(quote, extra))}."
            )
        return tuple(known[name] for name in names)

    def _forward_kin(self, values: Sequence[Any]) -> ScriptMatrix:
        """Return the flange matrix at joint values; the running event goes on."""
        count = len(self.joints)
        if len(values) != count:
            raise ScriptError(f"forwardKin takes {count} values, not {len(values)}.")
        with self._runner.undone((self._kin,)):
            self._kin.begin(values=values)
            self._runner.truth("OnForward", self._kin)
            return self._kin.Target


def _is_rigid(pose: Pose) -> bool:
    # Of three rows x, y, z of a rotation x x = y y = 1, x y = 0 and z is their product.
    x, y, z = pose.rotation
    off = dot(x, x) - 1.0, dot(y, y) - 1.0, dot(x, y), *subtract(cross(x, y), z)
    return all(abs(each) < TOLERANCE for each in off)


def _numbered(count: int) -> tuple[tuple[str, ...], ...]:
    if count == 1:
        return (("only",),)
    return tuple((f"configuration {k + 1}",) for k in range(count))
