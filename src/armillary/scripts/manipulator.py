"""Manipulators that are moved by a Visual Components kinematics script."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from armillary.errors import ScriptError
from armillary.limits import RESOURCE_SIZE
from armillary.model.joints import AngleCoordinate, LengthCoordinate
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
from armillary.scripts.component import ComponentData, JointData, component_of
from armillary.scripts.mechanism import Script
from armillary.scripts.resource import RESOURCE, Resource, read_resource
from armillary.scripts.source import file_content, script_text
from armillary.scripts.trust import consent

__all__ = ["FLANGE", "scripted"]

BASE: Final = "base"
FLANGE: Final = "flange"
HOME: Final = "home"
BESIDE: Final = "component.rsc"


def scripted(
    script: str | os.PathLike[str],
    *,
    component: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    name: str | None = None,
    relaxed: bool = False,
) -> Manipulator:
    """Return a manipulator that is moved by a Visual Components kinematics script.

    Its joints have the script's names, its end is the link `flange`. The script runs:
    giving its path is your consent. Where its formulas can be traced they are compiled;
    `joint.diagnostics` of the flange's link says what keeps them from it.

    Args:
        script: The path of the script; or of a `component.rsc` that has it inside.
        component: The component that the script asks for its properties and joints: the
            path of a JSON file, or what such a file holds; or of a `component.rsc` of
            Visual Components, by default the one beside the script.
        name: Of the manipulator; by default that of the component, or of its file.
        relaxed: Whether solutions beyond joint limits count, if the script's
            `OnRelaxParams` does not return False; by default those within, if its
            `OnConstrainParams` does not.

    Raises:
        ScriptError: The script or the component cannot be read, is wrong, or fails; the
            message has the line.
    """
    path = Path(script)
    is_resource = path.suffix.lower() == RESOURCE
    if component is None:
        component = path if is_resource else path.with_name(BESIDE)
        if not component.is_file():
            raise ScriptError(
                f"{path}: the script needs its component, and there is no {BESIDE} "
                "beside it. Give its properties and joints: component=..."
            )
    data, stem = _component(component)
    source = _script_in(path) if is_resource else script_text(path)
    consent(source)
    data = msgspec.structs.replace(data, name=data.name or stem or path.stem)
    made = Script(file=path.name, source=source, component=data.text(), relaxed=relaxed)
    host = made.host
    data = msgspec.structs.replace(
        data, joints=host.joints, external_joints=host.secondary
    )
    made = msgspec.structs.replace(made, component=data.text())
    return _manipulator(made, data, name or data.name)


def _component(given: Any) -> tuple[ComponentData, str]:
    """Return a component and the name of where it came from, see `component_of`."""
    if isinstance(given, (str, os.PathLike)):
        path = Path(cast("str | os.PathLike[str]", given))
        if path.suffix.lower() == RESOURCE:
            return _resource(path).data, path.stem
    return component_of(given)


def _resource(path: Path) -> Resource:
    return read_resource(file_content(path, RESOURCE_SIZE), str(path))


def _script_in(path: Path) -> str:
    """Return the script in a component.rsc.

    Raises:
        ScriptError: It has none.
    """
    script = _resource(path).script
    if not script:
        raise ScriptError(
            f"{path}: the component has no Python kinematics, so there is no script."
        )
    return script


def _manipulator(joint: Script, data: ComponentData, name: str) -> Manipulator:
    host = joint.host
    joints = (*data.joints, *data.external_joints)
    links = [Link(name=BASE)]
    for each, limits in zip(joints, host.limits, strict=True):
        kind = AngleCoordinate() if each.is_rotational else LengthCoordinate()
        bounds = limits if host.is_limited else (-math.inf, math.inf)
        links.append(
            Link(
                name=each.name,
                parent=BASE,
                joint=kind,
                limits=_limits(each, bounds),
            )
        )
    names = tuple(each.name for each in joints)
    links.append(Link(name=FLANGE, parent=BASE, joint=joint, inputs=names))
    home = [each.start * each.factor for each in joints]
    postures = [Posture(name=HOME, joints=names, q=home)] if any(home) else []
    return Manipulator(
        name=name, links=links, postures=postures, home=HOME if postures else ""
    )


def _limits(joint: JointData, bounds: tuple[float, float]) -> Limits:
    low, high = (bound * joint.factor for bound in bounds)
    speed = math.inf if joint.speed is None else joint.speed * joint.factor
    return Limits(lower=low, upper=high, velocity=speed)
