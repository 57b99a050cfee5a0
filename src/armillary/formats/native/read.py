"""Native files in: strict structs, then values of the model, then its rules."""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from armillary.errors import ArmillaryError, ModelError, PluginError, quote, suggestion
from armillary.forks import IMPORT_LOCK
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
from armillary.model.check_pose import rigid
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints import JOINT_TYPES
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator, note_faults
from armillary.model.parameters import nested_in
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose

__all__ = ["read"]

MOST_LOOP_FAULTS: Final = 10


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
    """A part cannot be made; the document has the reason."""


class _Building:
    """Makes values of the model from the structs of a file."""

    def __init__(self, document: Document, options: ReadOptions) -> None:
        self._document = document
        # A caller's own classes go before those of plug-ins.
        self._own = ChainMap({**options.joints}, cast(Any, options.plugins))
        self._unknown: dict[str, list[Steps]] = {}

    def whole(self, wire: Struct) -> Workcell | None:
        """Return the cell, or None if the document has errors."""
        try:
            return self.value(wire, ())
        except _Faulty:
            return None
        finally:
            self._report_unknown_types()

    def value(self, wire: Any, steps: Steps) -> Any:
        """Return the value of the model that a struct of the file stands for."""
        model = wire.model
        values: dict[str, Any] = {}
        is_faulty = False
        for name, convert in _plan(model):
            value = getattr(wire, name)
            if value is UNSET:
                continue
            if convert is not None and value is not None:
                try:
                    value = convert(self, value, (*steps, name))
                except _Faulty:
                    is_faulty = True
            values[name] = value
        if is_faulty:
            self._check_poses(values, steps)
            raise _Faulty
        if model is Link:
            self._check_inertia(values, steps)
        elif model is Manipulator and "properties" in values:
            values["links"], values["properties"] = with_dynamics(
                values["links"], values["properties"]
            )
        try:
            return model(**values)
        except ArmillaryError as error:
            self._check_poses(values, steps)
            find_faults = _FAULTS.get(model)
            faults = [] if find_faults is None else list(find_faults(values))
            whole = (), f"bad-{model.__name__.lower()}", str(error)
            for at, code, message in faults or [whole]:
                self._document.error((*steps, *at), code, message)
            raise _Faulty from error

    def _check_poses(self, values: dict[str, Any], steps: Steps) -> None:
        """Report the first pose that is not rigid, and stop."""
        for name, value in values.items():
            if isinstance(value, Pose):
                try:
                    rigid(value, "a frame")
                except ArmillaryError as error:
                    self._document.error((*steps, name), "bad-pose", str(error))
                    raise _Faulty from error

    def _check_inertia(self, values: dict[str, Any], steps: Steps) -> None:
        """Report an inertia that no body has, and stop if links refuse it."""
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
        items: list[Any] = []
        for k, wire in enumerate(wires):
            try:
                items.append(self.value(wire, (*steps, k)))
            except _Faulty:
                continue
        if len(items) < len(wires):
            raise _Faulty
        return tuple(items)

    def pose(self, given: Any, steps: Steps) -> Pose:
        """Return the pose that a file gives."""
        try:
            return pose_of(given)
        except ArmillaryError as error:
            self._document.error(steps, "bad-pose", str(error))
            raise _Faulty from error

    def joint(self, given: dict[str, Any], steps: Steps) -> Joint:
        """Return the joint that a file gives."""
        try:
            joint = joint_of(given, self._own)
        except msgspec.ValidationError as error:
            self._document.mismatch(error, steps)
            raise _Faulty from error
        except PluginError as error:
            self._document.error((*steps, "type"), "bad-plugin", str(error))
            raise _Faulty from error
        except (ArmillaryError, ArithmeticError, TypeError, ValueError) as error:
            # A caller's own class may fail in its own words.
            self._document.error(steps, "bad-joint", str(error))
            raise _Faulty from error
        for each in (joint, *nested_in(joint)):
            if isinstance(each, OpaqueJoint):
                self._unknown.setdefault(each.kind, []).append((*steps, "type"))
        return joint

    def _report_unknown_types(self) -> None:
        """Warn of each unknown type once."""
        if not self._unknown:
            return
        with IMPORT_LOCK:
            from armillary.plugins import advice

        known = [*JOINT_TYPES, *self._own]
        for kind, steps in self._unknown.items():
            count = f" in {len(steps)} joints" if len(steps) > 1 else ""
            self._document.warning(
                steps[0],
                "unknown-joint-type",
                f"joint type {quote(kind)} is not known{count}; it is kept as it is, "
                "but cannot move",
                hint=f"{suggestion(kind, known)} {advice(kind)}".lstrip(),
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


# Why a value of the model could not be made: the steps to a part, an id, a message.

Faults = Iterator[tuple[Steps, str, str]]


def _manipulator_faults(values: dict[str, Any]) -> Faults:
    """Yield the rules that links break; if none, what is wrong about them."""
    links = values["links"]
    problems = broken_rules(links)
    for problem, k in problems:
        yield ("links", *([] if k is None else [k])), problem.rule, problem.message
    if problems:
        return
    try:
        bare = Manipulator(name=values["name"], links=links)
    except ArmillaryError:
        return
    notes = {name: values[name] for name in _NOTES if name in values}
    faults = list(note_faults(links, bare.joint_names, bare.frame_refs, **notes))
    for fault in faults:
        at = [] if fault.place is None else [fault.place]
        yield (fault.field, *at), f"bad-{_NOTES[fault.field]}", fault.message
    if not faults:
        found = [*_loop_faults(values)]
        yield from found or _coupled_limit_faults(values)


def _coupled_limit_faults(values: dict[str, Any]) -> Faults:
    """Yield the coupled limits that do not fit, or leave no room."""
    limits = values.get("coupled_limits", ())
    bare: dict[str, Any] = {**values, "coupled_limits": ()}
    manipulator = Manipulator(**bare)
    faults = list(manipulator.coupled_limit_faults(limits))
    for place, message in faults:
        yield ("coupled_limits", place), "bad-coupled-limit", message
    if faults:
        return

    def error_of(count: int) -> str:
        try:
            manipulator.replace(coupled_limits=limits[:count])
        except ArmillaryError as error:
            return str(error)
        return ""

    count = _first_fault(len(limits), error_of)
    if count <= len(limits):
        yield ("coupled_limits", count - 1), "bad-coupled-limit", error_of(count)


def _loop_faults(values: dict[str, Any]) -> Faults:
    """Yield the loops that cannot be closed together with those before them."""
    given: tuple[Any, ...] = values.get("loops", ())
    waiting = list(enumerate(given))
    for _ in range(MOST_LOOP_FAULTS):

        def error_of(count: int) -> str:
            loops = tuple(loop for _, loop in waiting[:count])
            # Of coupled limits it is known only then which joints are passive.
            changed: dict[str, Any] = {**values, "loops": loops, "coupled_limits": ()}
            try:
                Manipulator(**changed)
            except ArmillaryError as error:
                return str(error)
            return ""

        count = _first_fault(len(waiting), error_of)
        if count > len(waiting):
            return
        yield ("loops", waiting[count - 1][0]), "bad-loop", error_of(count)
        del waiting[count - 1]


def _first_fault(most: int, error_of: Callable[[int], str]) -> int:
    """Return how many parts are the first too many, more than `most` if none are."""
    return bisect_left(range(most + 1), True, key=lambda n: error_of(n) > "")


def _cell_faults(values: dict[str, Any]) -> Faults:
    """Yield the first part that does not fit; if all do, the rules that do not."""
    bare: dict[str, Any] = {**values, **dict.fromkeys(_PARTS, ()), "rules": Rules()}
    for name, part in _PARTS.items():
        items = values.get(name, ())

        def error_of(count: int, name: str = name, items: Any = items) -> str:
            try:
                Workcell(**{**bare, name: items[:count]})
            except ArmillaryError as error:
                return str(error)
            return ""

        count = _first_fault(len(items), error_of)
        if count <= len(items):
            kind = part.replace("_", "-")
            yield (name, count - 1), f"bad-{kind}", error_of(count)
            return
        bare[name] = items
    cell, rules = Workcell(**bare), values.get("rules", Rules())
    wholes = {
        "rules": [Rules(rules=(rule,)) for rule in rules.rules],
        "touches": [Rules(touches=(touch,)) for touch in rules.touches],
    }
    for name, each_alone in wholes.items():
        for k, alone in enumerate(each_alone):
            try:
                cell.check_rules(alone)
            except ArmillaryError as error:
                yield ("rules", name, k), "bad-rule", str(error)


_NOTES: Final = {
    "postures": "posture",
    "home": "home",
    "groups": "group",
    "properties": "property",
    "wheels": "wheels",
}

# Each needs those before it.
_PARTS: Final = {
    "manipulators": "manipulator",
    "mounts": "mount",
    "properties": "property",
    "loops": "loop",
    "coupled_limits": "coupled_limit",
}

_FAULTS: Final[dict[type, Callable[[dict[str, Any]], Faults]]] = {
    Manipulator: _manipulator_faults,
    Workcell: _cell_faults,
}


# What older files hold in another form.


DYNAMICS: Final = "urdf.dynamics"
DAMPED: Final = ("damping", "friction")


def with_dynamics(
    links: Sequence[Link], properties: Sequence[Property]
) -> tuple[tuple[Link, ...], tuple[Property, ...]]:
    """Return links and properties with damping and friction where they belong now.

    They were properties of the links behind joints, before links had `dynamics`. What
    a link cannot take remains a property.
    """
    moved: dict[str, JointDynamics] = {}
    remaining: list[Property] = []
    free = {
        link.name
        for link in links
        if link.has_coordinate and link.dynamics == NO_DYNAMICS
    }
    for each in properties:
        is_old = each.name == DYNAMICS and each.of in free - moved.keys()
        if is_old and len(each.numbers) == len(DAMPED):
            try:
                fields = dict(zip(DAMPED, each.numbers, strict=True))
                moved[each.of] = JointDynamics(**fields)
                continue
            except ModelError:
                pass  # a negative one, which older files may hold
        remaining.append(each)
    if not moved:
        return tuple(links), tuple(properties)
    changed = (
        link.replace(dynamics=moved[link.name]) if link.name in moved else link
        for link in links
    )
    return tuple(changed), tuple(remaining)
