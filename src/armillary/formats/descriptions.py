"""Robots by name: those that the package `robot_descriptions` lists.

Its modules clone repositories when they are imported. So they are not imported here:
their text, a few assignments of paths, is read to find out where a repository would be,
and what it has. Only if the caller asks for that, a module is imported, and clones.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import fault
from armillary.formats.files import likely_file

__all__ = ["NamedRobot", "described", "is_name"]

PACKAGE: Final = "robot_descriptions"
CACHE: Final = "ROBOT_DESCRIPTIONS_CACHE"
USUAL_CACHE: Final = "~/.cache/robot_descriptions"
COMMIT: Final = "ROBOT_DESCRIPTION_COMMIT"
ENDING: Final = "_description"
NAME: Final = re.compile(r"[a-z][a-z0-9_+]*")
FILES: Final = ("URDF_PATH", "XACRO_PATH", "MJCF_PATH", "_ORIGINAL_URDF_PATH")
"""What modules call the file of a robot, the one to take first; the last one is what a
module repairs."""


class NamedRobot(NamedTuple):
    """Where a robot is on this machine.

    Attributes:
        path: Its file.
        packages: Folders of packages that the file names.
        folders: Folders that it may refer to.
        arguments: Of a xacro file.
    """

    path: str
    packages: Mapping[str, str]
    folders: tuple[str, ...]
    arguments: Mapping[str, str]


def is_name(path: str) -> bool:
    """Return whether what was given for a file may be the name of a robot.

    A file of this name always comes first.
    """
    is_robot = NAME.fullmatch(path) is not None and not os.path.lexists(path)
    return is_robot and (path.endswith(ENDING) or path in _names())


def described(name: str, *, fetch: bool) -> NamedRobot:
    """Return where a robot is on this machine.

    Args:
        name: Of a module of `robot_descriptions`, such as `panda_description`.
        fetch: Whether its repository may be cloned, over the network.

    Raises:
        FormatError: The package is not installed, does not know the robot, or the
            repository is not here and must not or could not be cloned.
    """
    if not _names():
        likely = likely_file(name)
        raise fault(
            name,
            "no-such-file",
            f"no such file, nor is {PACKAGE} installed, which may know this robot",
            hint=f"Did you mean {quote(likely)}?"
            if likely
            else "Install it: pip install 'armillary[descriptions]'.",
        )
    if name not in _names():
        likely = nearest(name, _names())
        raise fault(
            name,
            "robot-not-listed",
            f"no such file, and {PACKAGE} has no robot of this name",
            hint=(f"Did you mean {quote(likely)}? " if likely else "")
            + f"'python -m {PACKAGE} list' lists all.",
        )
    module = f"{PACKAGE}.{name}"
    if fetch:
        try:
            values = vars(import_module(module))
        except Exception as error:  # of git, of the network, of the module
            message = f"the robot cannot be fetched: {error}"
            raise fault(name, "not-fetched", message) from error
    else:
        values = _values(name)
    file = next((values[key] for key in FILES if values.get(key)), None)
    if not isinstance(file, str):
        raise fault(
            name,
            "not-fetched",
            f"this version of {PACKAGE} does not say where the robot is",
            hint="Load its file.",
        )
    packages = _texts(values.get("XACRO_PACKAGE_PATHS"))
    needed = (file, *packages.values())
    missing = next((each for each in needed if not os.path.exists(each)), None)
    if missing is not None:
        raise fault(
            name,
            "not-fetched",
            f"{PACKAGE} knows this robot, but not all of it is on this machine: "
            f"{missing} is missing",
            hint=f"Fetch it once, over the network: load({quote(name)}, fetch=True).",
        )
    repository, package = (
        str(values.get(key) or os.path.dirname(file))
        for key in ("REPOSITORY_PATH", "PACKAGE_PATH")
    )
    above = map(os.path.dirname, (package, repository))
    around = (package, repository, *above)
    return NamedRobot(
        file,
        packages,
        tuple(dict.fromkeys(around)),
        _texts(values.get("XACRO_ARGS")) if file == values.get("XACRO_PATH") else {},
    )


def _texts(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        return {}
    items = cast("Mapping[Any, Any]", given).items()
    return {str(key): str(value) for key, value in items}


@cache
def _folder() -> Path | None:
    """Return the folder of the package, None where it is not installed."""
    spec = find_spec(PACKAGE)
    places = None if spec is None else spec.submodule_search_locations
    return None if not places else Path(next(iter(places)))


@cache
def _names() -> tuple[str, ...]:
    folder = _folder()
    if folder is None:
        return ()
    files = folder.glob(f"[a-z]*{ENDING}.py")
    return tuple(sorted(path.stem for path in files))


@cache
def _repositories() -> dict[str, str]:
    """Return the folder of each repository in the cache."""
    folder = _folder()
    assert folder is not None
    tree = ast.parse((folder / "_repositories.py").read_text("utf-8"))
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                given = {each.arg: each.value for each in value.keywords}
                path = given.get("cache_path")
                if isinstance(path, ast.Constant):
                    found[str(key.value)] = str(path.value)
    return found


def _values(name: str) -> dict[str, Any]:
    """Return what a module would assign if it did not clone."""
    folder = _folder()
    assert folder is not None
    values: dict[str, Any] = {}
    for node in ast.parse((folder / f"{name}.py").read_text("utf-8")).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=key), value=value):
                values[key] = _value(value, values)
            case ast.Assign(targets=[ast.Name(id=key)], value=value):
                values[key] = _value(value, values)
            case _:
                pass
    return values


def _value(node: ast.expr | None, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression of paths; None for any other."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values.get(name)
        case ast.Dict(keys=keys, values=items):
            pairs = zip(keys, items, strict=True)
            return {_value(k, values): _value(v, values) for k, v in pairs}
        case ast.Call(func=ast.Attribute(attr="join"), args=args):
            return _joined([_value(each, values) for each in args])
        case ast.Call(func=ast.Attribute(attr="copy", value=copied)):
            return _value(copied, values)
        case ast.Call(func=ast.Name(id="_clone_to_cache"), args=[repository, *_]):
            return _cached(_value(repository, values))
        case _:
            return None


def _joined(parts: list[Any]) -> str | None:
    is_path = bool(parts) and all(isinstance(each, str) for each in parts)
    return os.path.join(*map(str, parts)) if is_path else None


def _cached(repository: Any) -> str | None:
    """Return the folder of a repository in the cache, as the package chooses it."""
    path = _repositories().get(repository)
    if path is None:
        return None
    if commit := os.environ.get(COMMIT):
        path = os.path.join(f"{path}-{commit}", path)
    return os.path.join(os.path.expanduser(os.environ.get(CACHE, USUAL_CACHE)), path)
