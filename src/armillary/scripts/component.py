"""The component of a script: its properties and joints, from a file or a mapping.

Lengths are in millimetres, angles in degrees, as in the script.
"""

from __future__ import annotations

import math
import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from armillary.errors import ScriptError, nearest, quote
from armillary.limits import COMPONENT_SIZE
from armillary.scripts.constants import default_of
from armillary.scripts.inert import INERT
from armillary.scripts.matrix import DEGREE, MILLIMETRE
from armillary.scripts.source import file_content
from armillary.scripts.vector import ScriptVector

__all__ = ["ComponentData", "ComponentInScript", "JointData", "component_of"]

Three: TypeAlias = tuple[float, float, float]
Value: TypeAlias = float | int | bool | str | Three

PER_RADIAN: Final = 180.0 / math.pi
PER_METRE: Final = 1000.0
OF_A_PROPERTY: Final = "$.properties[...]"


class JointData(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A joint of a component.

    Attributes:
        name: As the script names it.
        kind: Whether it turns or slides.
        min: Lower limit [deg or mm]; none if not given.
        max: Upper limit [deg or mm]; none if not given.
        home: Where it starts [deg or mm]; at zero, or the limit nearest to it, if not
            given.
        speed: Greatest rate [deg/s or mm/s]; none if not given.
    """

    name: str
    kind: Literal["rotational", "translational"] = "rotational"
    min: float | None = None
    max: float | None = None
    home: float | None = None
    speed: float | None = None

    @property
    def is_rotational(self) -> bool:
        """Return whether it turns."""
        return self.kind == "rotational"

    @property
    def factor(self) -> float:
        """Return the unit of the joint in radians or metres."""
        return DEGREE if self.is_rotational else MILLIMETRE

    @property
    def per_si_unit(self) -> float:
        """Return how many of its units are a radian or a metre."""
        return PER_RADIAN if self.is_rotational else PER_METRE

    @property
    def lower(self) -> float:
        """Return the lower limit [deg or mm]."""
        return -math.inf if self.min is None else self.min

    @property
    def upper(self) -> float:
        """Return the upper limit [deg or mm]."""
        return math.inf if self.max is None else self.max

    @property
    def start(self) -> float:
        """Return where it starts [deg or mm]."""
        home = 0.0 if self.home is None else self.home
        return min(max(home, self.lower), self.upper)


class PropertyData(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A property with the values that it can have.

    Attributes:
        value: A number, text, truth value, or three numbers [mm].
        step_values: The values to choose from.
    """

    value: Value
    step_values: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        """Check the value.

        Raises:
            ScriptError: It is not among the step values.
        """
        if self.step_values and self.value not in self.step_values:
            allowed = ", ".join(map(repr, self.step_values))
            raise ScriptError(
                f"A property has the value {self.value!r}; its step_values are "
                f"{allowed}."
            )


class ComponentData(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a script asks of its component.

    Attributes:
        name: Of the component, and of the manipulator.
        properties: By name; a value, or an object with `value` and `step_values`.
        joints: In the script's order, helper joints last.
        external_joints: The script's secondary joints, in its order.
    """

    name: str = ""
    properties: dict[str, Value | PropertyData] = {}
    joints: tuple[JointData, ...] = ()
    external_joints: tuple[JointData, ...] = ()

    def __post_init__(self) -> None:
        """Check numbers and names.

        Raises:
            ScriptError: Limits are swapped, a number is not finite, or two joints have
                one name.
        """
        for name, given in self.properties.items():
            value = given.value if isinstance(given, PropertyData) else given
            parts = value if isinstance(value, tuple) else (value,)
            if any(isinstance(x, float) and not math.isfinite(x) for x in parts):
                raise ScriptError(
                    f"Property {quote(name)} of component {quote(self.name)} is "
                    f"{value}; give finite numbers."
                )
        names = [joint.name for joint in (*self.joints, *self.external_joints)]
        for name in names:
            if names.count(name) > 1:
                raise ScriptError(
                    f"Component {quote(self.name)} has two joints named {quote(name)}."
                )
        for joint in (*self.joints, *self.external_joints):
            for field in ("min", "max", "home", "speed"):
                value = getattr(joint, field)
                if value is not None and not math.isfinite(value):
                    raise ScriptError(
                        f"Joint {quote(joint.name)} of component {quote(self.name)} "
                        f"has {field} {value}; leave it out, or give a finite number."
                    )
            if joint.lower > joint.upper:
                raise ScriptError(
                    f"Joint {quote(joint.name)} of component {quote(self.name)} has "
                    f"min {joint.min:g} above max {joint.max:g}; swap them."
                )

    def text(self) -> str:
        """Return the component as JSON, the same for equal ones."""
        return msgspec.json.encode(self, order="sorted").decode()


def component_of(given: Any) -> tuple[ComponentData, str]:
    """Return a component and the name of where it came from.

    given: A path of a JSON file, or what such a file holds.

    Raises:
        ScriptError: It cannot be read, or is not a component; the message says where.
    """
    if isinstance(given, Mapping):
        return _converted(dict(cast(Mapping[str, Any], given)), "component"), ""
    if not isinstance(given, (str, os.PathLike)):
        raise ScriptError(
            f"A component is a mapping or the path of a JSON file, not {given!r}."
        )
    path = Path(cast("str | os.PathLike[str]", given))
    name = str(path)
    content = file_content(path, COMPONENT_SIZE)
    try:
        record = msgspec.json.decode(content.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScriptError(f"{name}: is not JSON: {error}.") from error
    return _converted(record, name), path.stem


def _converted(record: Any, name: str) -> ComponentData:
    try:
        return msgspec.convert(record, ComponentData)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ScriptError):
            raise ScriptError(f"{name}: {error.__cause__}") from error
        fields = ", ".join(ComponentData.__struct_fields__)
        raise ScriptError(
            f"{name}: is not a component: {_named(error, record)}. A component has "
            f"{fields}; see docs/scripts.md."
        ) from error


def _named(error: msgspec.ValidationError, record: Any) -> str:
    """Return the message of an error, with the name of the property it is about."""
    message = str(error)
    if OF_A_PROPERTY not in message:
        return message
    for name, value in record["properties"].items():
        try:
            msgspec.convert(value, Value | PropertyData)
        except msgspec.ValidationError:
            return message.replace(OF_A_PROPERTY, f"$.properties[{quote(name)}]")
    return message


class PropertyInScript:
    """A property as scripts see it: `Name`, `Value`, `StepValues`, `OnChanged`.

    A value that is not among `StepValues` is refused. The list of these may be changed
    by the script afterwards: it is not copied.
    """

    def __init__(self, name: str, value: Any, step_values: Any = None) -> None:
        """Start with a value; `step_values` is None where any is allowed."""
        self.Name = name
        self.StepValues = step_values
        self.OnChanged: Any = None
        self._value = value

    @property
    def StepValues(self) -> Any:
        """The list of allowed values, None where any is allowed."""
        return self._step_values

    @StepValues.setter
    def StepValues(self, values: Any) -> None:
        if values is not None and not isinstance(values, (list, tuple)):
            raise ScriptError(
                f"StepValues of property {quote(self.Name)} must be a list, not "
                f"{values!r}."
            )
        self._step_values = cast(Any, values)

    @property
    def Value(self) -> Any:
        """The value; of a vector a copy."""
        value = self._value
        return ScriptVector(value) if isinstance(value, ScriptVector) else value

    @Value.setter
    def Value(self, value: Any) -> None:
        if self.StepValues and value not in self.StepValues:
            allowed = ", ".join(map(repr, self.StepValues))
            raise ScriptError(
                f"property {quote(self.Name)} cannot be {value!r}; its step values "
                f"are {allowed}."
            )
        self._value = value


class ComponentInScript:
    """A component as scripts see it: its properties are attributes.

    `getProperty(name)` returns a property or None. Behaviours and drawing do nothing.
    """

    def __init__(self, data: ComponentData) -> None:
        """Offer the properties of `data`."""
        made = {name: _property(name, value) for name, value in data.properties.items()}
        self.__dict__["Name"] = data.name
        self.__dict__["_properties"] = made

    @property
    def Properties(self) -> list[PropertyInScript]:
        """The properties."""
        return list(self._known.values())

    @property
    def _known(self) -> dict[str, PropertyInScript]:
        return self.__dict__["_properties"]

    def getProperty(self, name: str) -> PropertyInScript | None:
        """Return a property by its name, None where there is none."""
        return self._known.get(name)

    def createProperty(
        self, kind: Any, name: str, constraint: Any = None
    ) -> PropertyInScript:
        """Create a property, or return the existing one, as the component gives it.

        kind, constraint: Such as VC_STRING and VC_PROPERTY_STEP.
        """
        return self._known.setdefault(name, PropertyInScript(name, default_of(kind)))

    def findBehaviour(self, name: str) -> Any:
        """Return an object that does nothing: behaviours do not exist here."""
        return INERT

    findBehavior = findBehaviour

    def update(self) -> None:
        """Do nothing: there is nothing to draw."""

    rebuild = update

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._known:
            return self._known[name].Value
        raise AttributeError(_missing(name, self.__dict__["Name"], self._known))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._known:
            raise AttributeError(_missing(name, self.__dict__["Name"], self._known))
        self._known[name].Value = value

    def properties(self) -> Iterator[PropertyInScript]:
        """Yield the properties."""
        yield from self._known.values()


def _property(name: str, given: Value | PropertyData) -> PropertyInScript:
    if isinstance(given, PropertyData):
        steps = [_value(each) for each in given.step_values]
        return PropertyInScript(name, _value(given.value), steps or None)
    return PropertyInScript(name, _value(given))


def _value(given: Value) -> Any:
    return ScriptVector(*given) if isinstance(given, tuple) else given


def _missing(name: str, owner: str, known: Mapping[str, Any]) -> str:
    likely = nearest(name, known)
    guess = f" Did you mean {quote(likely)}?" if likely else ""
    listed = ", ".join(known) or "none"
    return (
        f"component {quote(owner)} has no property {quote(name)}.{guess} It has "
        f"{listed}; add it to the component's properties."
    )
