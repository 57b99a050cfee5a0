"""Every public name is documented, and the documentation builds as HTML."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from armillary import errors
from armillary.errors import ModelError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "docs" / "build.py"
ERRORS = {name for name in errors.__all__ if inspect.isclass(getattr(errors, name))}


def reference() -> Mapping[str, tuple[str, ...] | None]:
    """The public modules and classes, as the script that builds the reference has."""
    spec = importlib.util.spec_from_file_location("build_docs", BUILD)
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation, built in a process of its own, where warnings are errors."""
    pytest.importorskip("pdoc")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-W", "error", str(BUILD), str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    return folder


def test_reference_shows_public_methods(site: Path):
    text = (site / "api" / "armillary.html").read_text("utf-8")
    assert 'id="Cell.fk"' in text
    assert "twice the rate at single precision" in text  # from its docstring
    assert 'id="Reason"' in text  # imported on first use
    assert len(list((site / "api").rglob("*.html"))) > 20


def test_links_lead_to_pages_and_headings(site: Path):
    texts = {
        path: re.sub(r"<script.*?</script>", "", path.read_text("utf-8"), flags=re.S)
        for path in site.rglob("*.html")
    }
    anchors = {path: set(re.findall(r'id="([^"]*)"', t)) for path, t in texts.items()}
    wrong: list[tuple[str, str]] = []
    for path, text in texts.items():
        for found in re.findall(r'(?:href|src)="(?!\w+:)([^"]*)"', text):
            link = unescape(found)
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            # pdoc links to inherited members, too, which have no place of their own.
            checked = anchor and target.suffix == ".html" and "api" not in target.parts
            is_there = target.exists() and (not checked or anchor in anchors[target])
            if not is_there:
                wrong.append((str(path.relative_to(site)), link))
    assert not wrong


def test_no_page_needs_a_network(site: Path):
    loaded = [
        (path.name, link)
        for path in site.rglob("*.html")
        for link in re.findall(
            r'<(?:script|img|link)\b[^>]*(?:src|href)="(\w+:[^"]*)"',
            path.read_text("utf-8"),
        )
        if not link.startswith("data:")
    ]
    assert not loaded
