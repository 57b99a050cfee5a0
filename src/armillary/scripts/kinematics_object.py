"""The kinematics object that events of scripts read and write: `vcKinObject`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, cast

from armillary.errors import ScriptError, quote
from armillary.scripts.component import JointData, PropertyInScript
from armillary.scripts.constants import SolutionWarning, default_of
from armillary.scripts.matrix import ScriptMatrix
from armillary.trace import Traced

__all__ = ["KinematicsObject"]

WARNINGS: Final = tuple(SolutionWarning)


class KinematicsObject:
    """Joint values and target of a script's kinematics, in degrees and millimetres.

    What is read is a copy. Properties that the script creates are attributes.

    Attributes:
        CustomData: Whatever the script keeps here.
        joints: The joints, then the secondary ones (not for scripts).
        written: Which results the running event has set (not for scripts).
    """

    CustomData: Any

    def __init__(
        self, joints: Sequence[JointData], secondary: Sequence[JointData]
    ) -> None:
        """Start at the joints' home."""
        # Not by assignment, which scripts use to set properties.
        fields = self.__dict__
        fields["joints"], fields["secondary"] = tuple(joints), tuple(secondary)
        fields["CustomData"] = None
        fields["written"] = set[str]()
        fields["properties"] = dict[str, PropertyInScript]()
        fields["values"] = [joint.start for joint in joints]
        fields["secondary_values"] = [joint.start for joint in secondary]
        fields["lower"] = [joint.lower for joint in joints]
        fields["upper"] = [joint.upper for joint in joints]
        fields["solutions"] = []
        fields["target"] = ScriptMatrix()

    # what the host does

    def begin(
        self,
        *,
        values: Sequence[Any] | None = None,
        secondary: Sequence[Any] = (),
        target: ScriptMatrix | None = None,
    ) -> None:
        """Prepare for an event: give its inputs, and forget what others have set."""
        fields = self.__dict__
        fields["written"].clear()
        fields["solutions"] = []
        if values is not None:
            fields["values"] = list(values)
        if secondary:
            fields["secondary_values"] = list(secondary)
        if target is not None:
            fields["target"] = ScriptMatrix(target)

    # what scripts see

    @property
    def JointCount(self) -> int:
        """The number of joints."""
        return len(self.joints)

    @property
    def JointValues(self) -> list[Any]:
        """The joint values [deg or mm]."""
        return list(self.__dict__["values"])

    @JointValues.setter
    def JointValues(self, values: Any) -> None:
        checked = _numbers(values, len(self.joints), "JointValues")
        self.__dict__["values"] = checked
        self.written.add("JointValues")

    @property
    def SecondaryJointValues(self) -> list[Any]:
        """The values of the secondary joints [deg or mm]."""
        return list(self.__dict__["secondary_values"])

    @SecondaryJointValues.setter
    def SecondaryJointValues(self, values: Any) -> None:
        count = len(self.secondary)
        checked = _numbers(values, count, "SecondaryJointValues")
        self.__dict__["secondary_values"] = checked

    @property
    def JointMinLimits(self) -> list[float]:
        """The lower limits [deg or mm]."""
        return list(self.__dict__["lower"])

    @JointMinLimits.setter
    def JointMinLimits(self, values: Any) -> None:
        count = len(self.joints)
        self.__dict__["lower"] = _numbers(values, count, "JointMinLimits", ends=True)

    @property
    def JointMaxLimits(self) -> list[float]:
        """The upper limits [deg or mm]."""
        return list(self.__dict__["upper"])

    @JointMaxLimits.setter
    def JointMaxLimits(self, values: Any) -> None:
        count = len(self.joints)
        self.__dict__["upper"] = _numbers(values, count, "JointMaxLimits", ends=True)

    @property
    def JointsRotational(self) -> list[bool]:
        """Whether each joint turns."""
        return [joint.is_rotational for joint in self.joints]

    @property
    def Target(self) -> ScriptMatrix:
        """The pose of the flange in the component's frame."""
        return ScriptMatrix(self.__dict__["target"])

    @Target.setter
    def Target(self, value: Any) -> None:
        if not isinstance(value, ScriptMatrix):
            raise ScriptError(f"Target must be a vcMatrix, not {value!r}.")
        self.__dict__["target"] = ScriptMatrix(value)
        self.written.add("Target")

    @property
    def Solutions(self) -> list[tuple[Any, list[Any]]]:
        """The solutions: of each configuration a warning and joint values."""
        return list(self.__dict__["solutions"])

    @Solutions.setter
    def Solutions(self, solutions: Any) -> None:
        if not isinstance(solutions, (list, tuple)):
            raise ScriptError(
                "Solutions must be a list of (warning, joint values), not "
                f"{solutions!r}."
            )
        checked: list[tuple[Any, list[Any]]] = []
        for k, each in enumerate(cast(Sequence[Any], solutions)):
            if not isinstance(each, (list, tuple)) or len(cast(Any, each)) != 2:
                raise ScriptError(
                    f"Solutions[{k}] must be a warning and joint values, not {each!r}."
                )
            warning, values = cast(Sequence[Any], each)
            if not isinstance(warning, Traced) and warning not in WARNINGS:
                raise ScriptError(
                    f"The warning of Solutions[{k}] must be one of VC_SOLUTION_..., "
                    f"not {warning!r}."
                )
            name = f"Solutions[{k}]"
            checked.append((warning, _numbers(values, len(self.joints), name)))
        self.__dict__["solutions"] = checked
        self.written.add("Solutions")

    @property
    def Properties(self) -> list[PropertyInScript]:
        """The properties that the script has created."""
        return list(self.properties.values())

    def createProperty(
        self, kind: Any, name: str, constraint: Any = None
    ) -> PropertyInScript:
        """Create a property, which is then an attribute, or return the existing one.

        kind, constraint: Such as VC_STRING and VC_PROPERTY_STEP.
        """
        if not isinstance(cast(Any, name), str):
            raise ScriptError(f"A property is named by a text, not {name!r}.")
        made = PropertyInScript(name, default_of(kind))
        return self.properties.setdefault(name, made)

    def getProperty(self, name: str) -> PropertyInScript | None:
        """Return a property that the script has created, None where there is none."""
        return self.properties.get(name)

    def deleteProperty(self, given: Any) -> None:
        """Remove a property, given itself or by its name."""
        self.properties.pop(getattr(given, "Name", given), None)

    def moveJointTo(self, index: int, value: Any) -> None:
        """Set one joint value, of a turning joint the nearest of its whole turns.

        Raises:
            ScriptError: There is no such joint, or the value is not a number.
        """
        self.__dict__["values"][self._index(index)] = self.getJointMoveTo(index, value)
        self.written.add("JointValues")

    def getJointMoveTo(self, index: int, value: Any) -> Any:
        """Return what `moveJointTo` would set."""
        return self.__dict__["values"][self._index(index)] + self.getJointMoveDist(
            index, value
        )

    def getJointMoveDist(self, index: int, value: Any) -> Any:
        """Return by how much `moveJointTo` would move the joint."""
        k = self._index(index)
        (value,) = _numbers([value], 1, f"joint {k}")
        step = value - self.__dict__["values"][k]
        if self.joints[k].is_rotational:
            step = step - 360.0 * ((step + 180.0) // 360.0)
        return step

    def _index(self, index: int) -> int:
        if not isinstance(cast(Any, index), int) or not 0 <= index < len(self.joints):
            count = len(self.joints)
            raise ScriptError(f"There is no joint {index!r}; there are {count}.")
        return index

    def __getattr__(self, name: str) -> Any:
        properties = self.__dict__.get("properties", {})
        if name in properties:
            return properties[name].Value
        raise AttributeError(
            f"the kinematics object has no {quote(name)}; create the property in "
            f"OnInitKinObject. It has {', '.join(properties) or 'no properties'}."
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.properties:
            self.properties[name].Value = value
        elif name == "CustomData" or isinstance(
            getattr(type(self), name, None), property
        ):
            object.__setattr__(self, name, value)
        else:
            getattr(self, name)  # says that there is none
            raise AttributeError(f"{name} of a kinematics object cannot be set")


def _numbers(values: Any, count: int, name: str, *, ends: bool = False) -> list[Any]:
    """Return `count` numbers as a list.

    ends: Whether they may be infinite.

    Raises:
        ScriptError: They are something else, or NaN.
    """
    try:
        numbers = list(values)
    except TypeError:
        numbers = None
    if numbers is None or isinstance(values, (str, dict)):
        raise ScriptError(f"{name} must be a list of {count} numbers, not {values!r}.")
    if len(numbers) != count:
        raise ScriptError(f"{name} must be {count} numbers, not {len(numbers)}.")
    for k, value in enumerate(numbers):
        if isinstance(value, Traced):
            continue
        if not isinstance(value, (int, float)):
            raise ScriptError(f"{name}[{k}] must be a number, not {value!r}.")
        if not math.isfinite(value) and not (ends and not math.isnan(value)):
            raise ScriptError(f"{name}[{k}] is {value}; it must be finite.")
        numbers[k] = float(value)
    return numbers
