"""Native files in: strict structs, then values of the model, then its rules."""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from armillary.errors import ArmillaryError, PluginError, nearest, quote
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.json import Document, Steps
from armillary.formats.names import broken_rules
from armillary.formats.native.wire import (
    FORMAT_NAME,
    VERSION,
    Head,
    Holds,
    cell_in_file,
    holds,
)
from armillary.formats.records import joint_of, pose_of
from armillary.model.annotations import note_faults
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.parameters import nested_in
from armillary.model.rules import Rules
from armillary.model.workcell import Workcell
from armillary.plugins import advice
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose

__all__ = ["read"]


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a native file.

    Raises:
        FormatError: The file is faulty.
    """
    document = Document(data, path, report)
    _check_head(document)
    wire = document.decode(cell_in_file())
    document.check_keys(wire)
    cell = _Building(document, options).whole(wire)
    document.report_all()
    assert cell is not None
    return cell


def _check_head(document: Document) -> None:
    """Refuse files of other formats, and of versions that are not known yet."""
    head = document.decode(Head)
    if head.format != FORMAT_NAME:
        document.error(
            ("format",) if head.format else (),
            "wrong-format",
            f"the format is {quote(head.format)}, not {quote(FORMAT_NAME)}",
            hint=f'The file must begin with "format": "{FORMAT_NAME}".',
        )
    elif head.version != VERSION:
        newer = head.version > VERSION
        document.error(
            ("version",) if head.version else (),
            "wrong-version",
            f"the version is {head.version}; this armillary reads version {VERSION}",
            hint="Update armillary." if newer else f'Write "version": {VERSION}.',
        )
    document.report_all()


class _Faulty(Exception):
    """A part cannot be made; why is among the findings."""


class _Building:
    """Makes values of the model from the structs of a file."""

    def __init__(self, document: Document, options: ReadOptions) -> None:
        self._document = document
        # A caller's own classes go before those of plug-ins.
        self._own = ChainMap({**options.joints}, cast(Any, options.plugins))
        self._unknown: dict[str, list[Steps]] = {}

    def whole(self, wire: Struct) -> Workcell | None:
        """Return the cell, or None where the findings say why there is none."""
        try:
            return self.value(wire, ())
        except _Faulty:
            return None
        finally:
            self._tell_unknown_types()

    def value(self, wire: Any, steps: Steps) -> Any:
        """Return the value of the model that a struct of the file stands for."""
        model = wire.model
        values: dict[str, Any] = {}
        is_faulty = False
        for name, convert in _plan(model):
            given = getattr(wire, name)
            if given is UNSET:
                continue
            if convert is not None and given is not None:
                try:
                    given = convert(self, given, (*steps, name))
                except _Faulty:
                    is_faulty = True
            values[name] = given
        if is_faulty:
            raise _Faulty
        if model is Link:
            self._check_inertia(values, steps)
        try:
            return model(**values)
        except ArmillaryError as error:
            explain = _EXPLANATIONS.get(model, _explain_struct)
            explain(self._document, model, values, steps, error)
            raise _Faulty from error

    def _check_inertia(self, values: dict[str, Any], steps: Steps) -> None:
        """Report an inertia that no body has, and stop where links refuse it."""
        inertia: SpatialInertia | None = values.get("inertia")
        fault = None if inertia is None else inertia.fault()
        if fault is None:
            return
        message = f"the inertia of link {quote(values['name'])} is impossible: "
        report = self._document.error if fault.is_refused else self._document.warning
        report((*steps, "inertia"), "bad-inertia", message + fault.message)
        if fault.is_refused:
            raise _Faulty

    def values(self, wires: Sequence[Any], steps: Steps) -> tuple[Any, ...]:
        """Return the values of an array, after a look at all of them."""
        found: list[Any] = []
        for k, wire in enumerate(wires):
            try:
                found.append(self.value(wire, (*steps, k)))
            except _Faulty:
                continue
        if len(found) < len(wires):
            raise _Faulty
        return tuple(found)

    def pose(self, given: Any, steps: Steps) -> Pose:
        """Return the pose that a file gives."""
        try:
            return pose_of(given)
        except ArmillaryError as error:
            self._document.error(steps, "bad-pose", _clause(error))
            raise _Faulty from error

    def joint(self, given: dict[str, Any], steps: Steps) -> Joint:
        """Return the joint that a file gives."""
        try:
            joint = joint_of(given, self._own)
        except msgspec.ValidationError as error:
            self._document.mismatch(error, steps)
            raise _Faulty from error
        except PluginError as error:
            self._document.error((*steps, "type"), "bad-plugin", _clause(error))
            raise _Faulty from error
        except (ArmillaryError, ArithmeticError, TypeError, ValueError) as error:
            # A caller's own class may fail in its own words.
            self._document.error(steps, "bad-joint", _clause(error))
            raise _Faulty from error
        for each in (joint, *nested_in(joint)):
            if isinstance(each, OpaqueJoint):
                self._unknown.setdefault(each.kind, []).append((*steps, "type"))
        return joint

    def _tell_unknown_types(self) -> None:
        """Warn of each unknown type once."""
        known = [*JOINT_TYPES, *self._own] if self._unknown else []
        for kind, places in self._unknown.items():
            likely = nearest(kind, known)
            guess = f"Did you mean {quote(likely)}? " if likely else ""
            count = f" in {len(places)} joints" if len(places) > 1 else ""
            self._document.warning(
                places[0],
                "unknown-joint-type",
                f"joint type {quote(kind)} is not known{count}; it is kept as it is, "
                "but cannot move",
                hint=f"{guess}{advice(kind)}",
            )


Converter = Callable[[_Building, Any, Steps], Any]

_CONVERTERS: Final[dict[Holds, Converter]] = {
    Holds.POSE: _Building.pose,
    Holds.JOINT: _Building.joint,
    Holds.STRUCT: _Building.value,
    Holds.STRUCTS: _Building.values,
}


@cache
def _plan(model: type[Struct]) -> tuple[tuple[str, Converter | None], ...]:
    """Return the fields of a struct of the model, and how each is made."""
    fields = msgspec.structs.fields(model)
    return tuple((field.name, _CONVERTERS.get(holds(field.type))) for field in fields)


# Why a value of the model could not be made.


def _explain_struct(
    document: Document,
    model: type[Any],
    values: dict[str, Any],
    steps: Steps,
    error: ArmillaryError,
) -> None:
    document.error(steps, f"bad-{model.__name__.lower()}", _clause(error))


def _explain_manipulator(
    document: Document,
    model: type[Any],
    values: dict[str, Any],
    steps: Steps,
    error: ArmillaryError,
) -> None:
    """Tell which rules a manipulator breaks, where they are broken.

    What is said of its links is looked at where they are well.
    """
    problems = broken_rules(values["links"])
    for problem, k in problems:
        at = (*steps, "links") if k is None else (*steps, "links", k)
        document.error(at, problem.rule, problem.message.removesuffix("."))
    if problems:
        return
    try:
        bare = model(name=values["name"], links=values["links"])
    except ArmillaryError:
        _explain_struct(document, model, values, steps, error)
        return
    notes = {name: values[name] for name in _NOTES if name in values}
    for fault in note_faults(bare.links, bare.joint_names, bare.places, **notes):
        at = (*steps, fault.field)
        document.error(
            at if fault.place is None else (*at, fault.place),
            f"bad-{_NOTES[fault.field]}",
            fault.message.removesuffix("."),
        )


def _explain_cell(
    document: Document,
    model: type[Any],
    values: dict[str, Any],
    steps: Steps,
    error: ArmillaryError,
) -> None:
    """Tell which manipulator, mount or property is the first that does not fit.

    Where these are well, tell of all rules about what does not exist.
    """
    rest = {**values, **dict.fromkeys(_PARTS_OF_CELL, ()), "rules": Rules()}
    for name, part in _PARTS_OF_CELL.items():
        rest[name] = items = values.get(name, ())
        fails = partial(_fails, model, rest, name)
        count = bisect_left(range(len(items) + 1), True, key=fails)
        if count <= len(items):
            at = (*steps, name, count - 1)
            document.error(at, f"bad-{part}", _clause(error))
            return
    _explain_rules(document, model(**rest), values["rules"], (*steps, "rules"))


def _explain_rules(
    document: Document, cell: Workcell, rules: Rules, steps: Steps
) -> None:
    parts = {
        "rules": [Rules(rules=(rule,)) for rule in rules.rules],
        "touches": [Rules(touches=(touch,)) for touch in rules.touches],
    }
    for name, wholes in parts.items():
        for k, whole in enumerate(wholes):
            try:
                cell.check_rules(whole)
            except ArmillaryError as error:
                document.error((*steps, name, k), "bad-rule", _clause(error))


def _fails(model: type[Any], values: dict[str, Any], name: str, count: int) -> bool:
    """Tell whether no cell can be made with the first items of a field."""
    try:
        model(**{**values, name: values[name][:count]})
    except ArmillaryError:
        return True
    return False


_NOTES: Final = {
    "postures": "posture",
    "home": "home",
    "groups": "group",
    "properties": "property",
    "wheels": "wheels",
}

# Each needs those before it.
_PARTS_OF_CELL: Final = {
    "manipulators": "manipulator",
    "mounts": "mount",
    "properties": "property",
}

_EXPLANATIONS: Final[dict[type, Callable[..., None]]] = {
    Manipulator: _explain_manipulator,
    Workcell: _explain_cell,
}


def _clause(error: Exception) -> str:
    """Return the sentence of an error without its full stop, as findings are."""
    return str(error).removesuffix(".")
