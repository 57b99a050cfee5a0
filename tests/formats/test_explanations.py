"""Each id of a diagnostic is explained: what it means, and how to fix it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import armillary
from armillary.cli.hints import with_options
from armillary.errors import UnknownName
from armillary.formats.diagnostic import explained, explanations

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(armillary.__file__).resolve().parent
PAGE = ROOT / "docs" / "diagnostics.md"
READERS = [*(SOURCE / "formats").rglob("*.py"), SOURCE / "model" / "validate.py"]
READERS += [SOURCE / "scripts" / name for name in ("source.py", "mechanism.py")]
READERS += [SOURCE / "cli" / "check.py", SOURCE / "limits.py"]

ID = re.compile(r"[a-z]+(-[a-z]+)*")
KEBAB = re.compile(r"[a-z]+(-[a-z]+)+")
# What looks like an id but is not: encodings, and a kind of name.
NO_IDS = {"us-ascii", "utf-be", "plug-in"}
# Calls that add a diagnostic, with the position of the id among their arguments.
CALLS = {"error": 1, "warning": 1, "note": 1, "fault": 1, "_stop": 0, "ModelProblem": 0}
CALLS["Diagnostic"] = CALLS["ScriptDiagnostic"] = 0
CALLS |= {"refuse": 0, "_warn": 0, "_error": 1, "Limit": 3}


def trees() -> Iterator[ast.AST]:
    for path in READERS:
        yield from ast.walk(ast.parse(path.read_text("utf-8")))


def used_ids() -> Iterator[str]:
    """The ids in the code of readers and writers; a part that varies is `{}`."""
    for node in trees():
        match node:
            case ast.Constant(value=str(text)) if KEBAB.fullmatch(text):
                yield text
            case ast.Call(
                func=ast.Attribute(attr=name) | ast.Name(id=name), args=args
            ) if len(args) > CALLS.get(name, len(args)):
                yield from texts_of(args[CALLS[name]])
            case (
                ast.keyword(arg="code", value=value)
                | ast.Assign(targets=[ast.Name(id="code")], value=value)
            ):
                yield from texts_of(value)
            case ast.Yield(value=ast.Tuple(elts=[_, value, _])):
                yield from texts_of(value)
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id="code"), *_])],
                value=ast.Tuple(elts=[value, *_]),
            ):
                yield from texts_of(value)


def texts_of(node: ast.AST) -> Iterator[str]:
    """The literal texts that an expression may be."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            yield f"{start}{{}}"
        case ast.IfExp(body=one, orelse=other):
            yield from texts_of(one)
            yield from texts_of(other)


@cache
def ids() -> list[str]:
    return sorted({text for text in used_ids() if text and text not in NO_IDS})


def test_ids_are_found_in_the_code():
    assert {"two-roots", "zero", "base", "xml-syntax", "lossy", "more"} < {*ids()}
    assert {"unknown-{}", "bad-{}"} < {*ids()}
    assert all(ID.fullmatch(text.replace("{}", "x")) for text in ids())


def test_every_id_has_its_text():
    for code in ids():
        found = explained(code.replace("{}", "x"))
        for text in (found.meaning, found.fix):
            assert text[0].isupper() or text[0] in "`<", code
            assert text.endswith((".", "=...")), code
            assert 5 < len(text) < 260, code


def test_no_text_without_an_id():
    families = tuple(text[:-2] for text in ids() if text.endswith("{}"))
    unused = [
        code
        for code in explanations()
        if code not in ids() and not code.startswith(families) and code[-1] != "*"
    ]
    assert unused == []


def test_unknown_ids():
    with pytest.raises(UnknownName, match="Did you mean 'two-roots'"):
        explained("two-root")


def page() -> str:
    """The page that lists all ids."""
    lines = [
        "# Diagnostics",
        "",
        "Each error, warning and note of a file has an id in brackets, such as "
        "`error[two-roots]`. `armillary explain ID` prints these texts,",
        "`armillary check FILE --explain` those of a file. An id that ends in `*` "
        "stands for all ids that begin so.",
        "",
        "| id | meaning | fix |",
        "| --- | --- | --- |",
    ]
    for code, (_, meaning, fix) in sorted(explanations().items()):
        cells = (re.sub(r"(<[^>]*>)", r"`\1`", text) for text in (meaning, fix))
        lines.append(f"| `{code}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def test_the_page_lists_them_all(request: pytest.FixtureRequest):
    if request.config.getoption("--update"):
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    assert PAGE.read_text("utf-8") == page(), "accept it with --update"


KEYWORD = re.compile(r"\b[a-z_]+=(?:\[|\{|\.\.\.|'|True|False)")
PYTHON = "joints=[...], in Python only"
LABEL = " name='x'"  # of an XML element


def literals(tree: ast.AST) -> Iterator[str]:
    """The texts in some code but its docstrings; what varies in one is `x`."""
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):  # from the outside in
        match node:
            case ast.JoinedStr(values=values):
                parts.update(values)
                yield "".join(
                    part.value if isinstance(part, ast.Constant) else "'x'"
                    for part in values
                )
            case ast.Expr(value=docstring):
                parts.add(docstring)
            case ast.Constant(value=str(text)) if node not in parts:
                yield text


def test_the_command_line_speaks_its_own_spelling():
    sources = [*READERS, *(SOURCE / "plugins").rglob("*.py")]
    texts = [text for path in sources for text in literals(ast.parse(path.read_text()))]
    texts += [text for each in explanations().values() for text in each]
    hints = {text for text in texts if KEYWORD.search(text)} - {LABEL}
    assert len(hints) > 8
    spellings = (with_options(text).replace(PYTHON, "") for text in hints)
    assert [text for text in spellings if KEYWORD.search(text)] == []
