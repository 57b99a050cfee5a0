"""The public surface changes only on purpose: it is written down."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import armillary

MAX_NAMES = 57


class Bare(str):
    """A text that prints without quotes, as an annotation should."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def bare(annotation: object) -> object:
    """An annotation as it stands in the source."""
    if annotation is inspect.Parameter.empty:
        return annotation
    if isinstance(annotation, str):
        return Bare(annotation)
    return Bare(inspect.formatannotation(annotation))


def signature(thing: Callable[..., object]) -> str:
    """The signature of a function, the same on every machine."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):  # some builtin types have none
        return "(...)"
    parameters = [
        each.replace(annotation=bare(each.annotation))
        for each in found.parameters.values()
    ]
    found = found.replace(
        parameters=parameters, return_annotation=bare(found.return_annotation)
    )
    return re.sub(r" at 0x[0-9a-f]+", "", str(found))


def describe(name: str, thing: object) -> Iterator[str]:
    """One line for a public name, and one for each public member of a class."""
    if inspect.isclass(thing):
        bases = ", ".join(base.__name__ for base in thing.__bases__)
        yield f"class {name}({bases})"
        yield f"    {name}{signature(thing)}"
        for member in members(thing):
            yield f"    {describe_member(thing, member)}"
    elif callable(thing):
        yield f"def {name}{signature(thing)}"
    else:
        yield f"{name}: {type(thing).__name__}"


def members(cls: type) -> list[str]:
    """The public members of a class that this package defines, its bases' too."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("armillary")]
    names = {name for base in ours for name in vars(base)}
    return sorted(name for name in names if not name.startswith("_"))


def describe_member(cls: type, name: str) -> str:
    """One line for a member: how it is called, or that it is a value."""
    getattr(cls, name, None)  # some methods are made when they are first looked up
    static = inspect.getattr_static(cls, name)
    if isinstance(static, staticmethod | classmethod):
        return f"{type(static).__name__} .{name}{signature(getattr(cls, name))}"
    if inspect.isfunction(static):
        return f".{name}{signature(static)}"
    return f".{name}"


def test_public_names_are_few_and_exist():
    names = armillary.__all__
    assert 0 < len(names) <= MAX_NAMES
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(armillary, name)] == []


def test_what_is_imported_from_the_root_is_public():
    root = Path(armillary.__file__).parents[2]
    folders = [root / name for name in ("tests", "examples", "benchmarks", "docs")]
    listed = re.compile(r"^from armillary import (\([^)]*\)|[^(\n]*)", re.M)
    missing = {
        (str(path.relative_to(root)), name)
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in {".py", ".md"}
        for names in listed.findall(path.read_text())
        for name in re.findall(r"\w+", names.partition("#")[0])
        if name not in armillary.__all__ and find_spec(f"armillary.{name}") is None
    }
    assert not missing, "import errors from armillary.errors"


def test_public_surface_is_written_down(golden: Callable[[str, str], None]):
    lines = [
        line
        for name in sorted(armillary.__all__)
        for line in describe(name, getattr(armillary, name))
    ]
    golden("api.txt", "\n".join(lines) + "\n")


def test_description_shows_what_a_caller_sees():
    class Sample:
        def go(self, far: float, *, fast: bool = True) -> None: ...

        @classmethod
        def make(cls, kind: str = "a") -> Sample: ...

        @property
        def size(self) -> int: ...

    Sample.__module__ = "armillary.sample"
    assert list(describe("Sample", Sample)) == [
        "class Sample(object)",
        "    Sample()",
        "    .go(self, far: float, *, fast: bool = True) -> None",
        "    classmethod .make(kind: str = 'a') -> Sample",
        "    .size",
    ]
    assert list(describe("three", 3)) == ["three: int"]
