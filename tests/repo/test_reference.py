"""Every public name is documented."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from armillary import errors
from armillary.errors import ModelError

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference.py"
ERRORS = {name for name in errors.__all__ if inspect.isclass(getattr(errors, name))}


def reference() -> Mapping[str, tuple[str, ...] | None]:
    """The public modules and classes, as the site shows them."""
    spec = importlib.util.spec_from_file_location("reference", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script.REFERENCE


def public() -> Iterator[tuple[str, Any]]:
    """Every public function, class, and member of a class, by its full name."""
    for name, classes in reference().items():
        module = importlib.import_module(name)
        for each in classes or module.__all__:
            thing = getattr(module, each)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{name}.{each}", thing
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                if not member.startswith("_"):
                    yield f"{name}.{each}.{member}", value


def plain(thing: Any) -> Any:
    """The function or class that something public is made of, None without one."""
    match thing:
        case staticmethod() | classmethod():
            return thing.__func__
        case property():
            return thing.fget
        case cached_property():
            return thing.func
    return thing if inspect.isclass(thing) or inspect.isfunction(thing) else None


def raised(function: Callable[..., Any]) -> set[str]:
    """The names of our errors in the raise statements of a function."""
    source = inspect.getsource(inspect.unwrap(function))
    statements = ast.walk(ast.parse(textwrap.dedent(source)))
    made = {each.exc for each in statements if isinstance(each, ast.Raise)}
    names = {each.func.id for each in made if isinstance(each, ast.Call)
             and isinstance(each.func, ast.Name)}  # fmt: skip
    return {"UnknownName" if name == "unknown" else name for name in names} & ERRORS


def gaps(thing: Any, *, is_method: bool = False) -> Iterator[str]:
    """What the docstring of something public lacks."""
    function = plain(thing)
    text = inspect.getdoc(function) or ""
    if not text:
        yield "a docstring"
    if inspect.isclass(function):
        return
    names = list(inspect.signature(function).parameters)
    receiver = names[0] if is_method and not isinstance(thing, staticmethod) else None
    names = [name for name in names if name != receiver]
    if "Args:" in text:
        listed = re.findall(
            r"^    \**(\w+):", re.split(r"\n\n", text.split("Args:")[1])[0], re.M
        )
        if {*listed} - {receiver} != {*names}:
            yield f"Args of {sorted({*listed} ^ {*names})}"
    elif len(names) > 1 and not re.search(r"\b(as for|of) `", text):
        missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
        if missing:
            yield f"a word on {missing}"
    _, _, after = text.partition("Raises:")
    for error in sorted(raised(function)):
        if error not in after:
            yield f"Raises of {error}"


def test_docstrings_are_complete():
    lacking = {
        name: found
        for name, thing in public()
        if plain(thing) is not None
        and (found := list(gaps(thing, is_method=is_member(name))))
    }
    assert not lacking


def is_member(name: str) -> bool:
    """Whether a full name is that of a member of a class."""
    return name.split(".")[-2][0].isupper()


def test_gaps_are_found():
    def complete(frame: str, *, near: float) -> None:
        """Do it.

        Args:
            frame: Where.
            near: How near.

        Raises:
            ModelError: It is far.
        """
        raise ModelError(frame * int(near))

    def lacking(frame: str, *, near: float) -> None:
        """Do it to `frame`."""
        raise ModelError(frame * int(near))

    assert list(gaps(complete)) == []
    assert list(gaps(lacking)) == ["a word on ['near']", "Raises of ModelError"]
