"""`armillary explain` and `check --explain`: ids in words; fixes in options."""

from __future__ import annotations

from pathlib import Path

import pytest

from armillary.cli.hints import diagnostic_text, error_text, with_options
from armillary.errors import FormatError, ModelError
from armillary.formats.diagnostic import (
    Diagnostic,
    Place,
    Severity,
    explained,
    explanations,
)

URDF = """<robot name="r"><link name="a"/><link name="b"/>
<visual/></robot>
"""


def diagnostic(code: str, hint: str = "", message: str = "what") -> Diagnostic:
    return Diagnostic(
        place=Place("x", 1, 2),
        severity=Severity.WARNING,
        code=code,
        message=message,
        hint=hint,
    )


def test_an_id_is_explained(run):
    result = run("explain", "two-roots")
    assert result.code == 0
    first, *rest = result.out.splitlines()
    meaning, fix = explained("two-roots")[1:]
    assert first == "two-roots:"
    assert [line.strip() for line in rest] == [meaning, fix]


def test_all_are_listed(run):
    result = run("explain")
    heads = [line for line in result.out.splitlines() if not line.startswith(" ")]
    assert heads == [f"{code}:" for code in sorted(explanations())]
    assert max(map(len, result.out.splitlines())) <= 88


def test_an_unknown_id_is_error_text(run):
    result = run("explain", "two-root")
    assert result.code == 2
    assert "Did you mean 'two-roots'?" in result.err


def test_check_shows_fixes_and_explains_each_id_once(run, tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    plain = run("check", str(path))
    assert plain.code == 1
    assert "error[two-roots]" in plain.out
    assert "\ntwo-roots:\n" not in plain.out
    whole = run("check", str(path), "--explain")
    assert whole.out.count("\ntwo-roots:\n") == 1
    assert f"    {explained('two-roots').meaning}\n" in whole.out
    assert whole.out.splitlines()[-1] == plain.out.splitlines()[-1]


def test_a_diagnostic_has_its_own_fix_or_that_of_its_id():
    hinted = diagnostic_text(diagnostic("base", "Do this."), fix=True)
    assert hinted == "x:1:2: warning[base]: what. Do this."
    fixed = diagnostic_text(diagnostic("base"), fix=True)
    assert fixed.endswith(f"what. {explained('base').fix}")
    unknown = diagnostic_text(diagnostic("no-text-for-it"), fix=True)
    assert unknown.endswith("]: what")
    assert diagnostic_text(diagnostic("base")).endswith("]: what")
    assert diagnostic_text("some text", fix=True) == "some text"


@pytest.mark.parametrize(
    ("hint", "option"),
    [
        ("Allow its folder: folders=[...].", "Allow its folder: --folder DIR."),
        ("Allow: folders=['/a/b c'].", "Allow: --folder '/a/b c'."),
        ("Give: packages={'a': '/b'}.", "Give: --package 'a=/b'."),
        ("With lenient=True, it is.", "With --lenient, it is."),
        ("packages={'a_b': ...}.", "--package a_b=DIR."),
        ("with plugins=['acme-lifts'], or", "with --plugin acme-lifts, or"),
        ("file c.toml: plugins = ['a'].", "file c.toml: plugins = ['a']."),
        ("or say format='urdf'.", "or say --format urdf."),
        ("Name it with format=...; known", "Name it with --format NAME; known"),
        ("Name a format with format=..., or", "Name a format with --to NAME, or"),
        ("load('robot.urdf', srdf=...).", "robot.urdf --srdf FILE."),
    ],
)
def test_options_stand_for_keywords(hint: str, option: str):
    assert with_options(hint) == option
    assert diagnostic_text(diagnostic("x", hint)).endswith(option)


def test_names_in_files_stay_as_they_are():
    odd = diagnostic("x", "Or folders=[...].", message="'folders=[...]' is odd")
    assert diagnostic_text(odd).endswith("'folders=[...]' is odd. Or --folder DIR.")


def test_errors_have_options_too():
    assert error_text(ModelError("plugins=['a']")) == "--plugin a"
    assert error_text(FormatError(diagnostic("x", "format=..."), "b")).endswith(
        "what. --format NAME\nb"
    )


def test_a_reference_that_leads_out(run, tmp_path: Path):
    path = tmp_path / "sub" / "r.urdf"
    path.parent.mkdir()
    (tmp_path / "m.stl").write_text("")
    mesh = '<visual><geometry><mesh filename="../m.stl"/></geometry></visual>'
    path.write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    for verb in ("check", "info"):
        result = run(verb, str(path), "--folder", str(path.parent))
        assert f"--folder '{tmp_path.resolve()}'" in result.out + result.err
        assert "folders=" not in result.out + result.err
