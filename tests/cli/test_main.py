"""The command line as a process: exit codes, errors without traceback, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from armillary.cli import info
from armillary.cli.main import parsed
from armillary.cli.verbs import HELP

PROGRAM = [sys.executable, "-W", "error", "-m", "armillary"]


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_a_process_succeeds(file: str):
    done = process("info", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("lab: 2 manipulators, 6 links, 3 joints\n")
    assert done.stderr == ""


def test_a_process_fails_without_traceback(file: str):
    done = process("fk", file, "--frame", "tpi")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("armillary: no frame named 'tpi' in cell 'lab'.")
    assert "Did you mean 'tip'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_one_text(run):
    result = run("info", "nowhere.urdf")
    assert result.code == 2
    assert result.err.startswith("armillary: nowhere.urdf: error[no-such-file]:")
    assert result.err.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes end otherwise there")
def test_a_reader_that_stops_is_not_an_error(file: str):
    # Longer than any buffer, so that the writer meets the closed pipe.
    Path("q.csv").write_text("1.0,0.1,0.2\n" * 20_000)
    program = [*PROGRAM, "fk", file, "--frame", "tip", "--q-file", "q.csv"]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        assert done.stdout.readline().count(b",") == 15
        done.stdout.close()
        assert done.stderr.read() == b""
        assert done.wait(timeout=60) == 0


def test_output_without_the_characters_of_a_tree(file: str):
    done = process("info", file, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "??" in done.stdout


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 0, ""),
        (MemoryError(), 2, "armillary: There is not enough memory for this.\n"),
        (OSError(28, "No space left", "x"), 2, "armillary: x: No space left\n"),
        (OSError("odd"), 2, "armillary: odd\n"),
    ],
)
def test_every_end_has_its_code(
    run, file: str, monkeypatch: pytest.MonkeyPatch, error, code: int, text: str
):
    def fail(options: object) -> int:
        raise error

    monkeypatch.setattr(info, "open_cell", fail)
    result = run("info", file)
    assert (result.code, result.out, result.err) == (code, "", text)


def test_faults_of_ours_stay_visible(run, file: str, monkeypatch: pytest.MonkeyPatch):
    def fail(options: object) -> int:
        raise AssertionError("a bug")

    monkeypatch.setattr(info, "open_cell", fail)
    with pytest.raises(AssertionError, match="a bug"):
        run("info", file)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-verb"],
        ["info"],
        ["info", "a", "b"],
        ["fk", "a"],
        ["fk", "a", "--frame", "f", "--q", "1", "--q-file", "b"],
        ["info", "a", "--package", "name"],
        ["info", "a", "--package", "name=no/such/folder"],
        ["info", "a", "--folder", "no/such/folder"],
        ["show", "a", "--stage", "wasm"],
        ["convert", "a"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_reported(run, arguments: list[str]):
    result = run(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("usage: armillary")


def test_version_and_help(run):
    version = run("--version")
    assert version.code == 0
    assert version.out.startswith("armillary")
    text = run("--help")
    assert text.code == 0
    assert all(verb in text.out for verb in HELP)


@pytest.mark.parametrize("verb", HELP)
def test_every_verb_has_help(run, verb: str):
    result = run(verb, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: armillary {verb} ")
    assert max(map(len, result.out.splitlines())) <= 100


def test_the_parser_knows_where_verbs_lead():
    options = parsed(["info", "x", "--package", f"p={os.getcwd()}"])
    assert options.verb is info.run
    assert dict(options.package) == {"p": Path.cwd()}


def test_package_folder_reaches_the_reader(
    run, file: str, monkeypatch: pytest.MonkeyPatch
):
    from armillary.formats import registry

    seen: dict[str, object] = {}
    read = registry.load

    def spy(path: str, **options: object) -> object:
        seen.update(options)
        return read(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(registry, "load", spy)
    here = Path.cwd()
    result = run("info", file, "--package", f"p={here}", "--folder", str(here))
    assert result.code == 0, result.err
    assert seen == {
        "format": None,
        "packages": {"p": here},
        "folders": [here],
        "plugins": [],
        "strict": False,
        "lenient": False,
        "swapped_limits": None,
        "arguments": {},
        "fetch": False,
        "srdf": None,
        "self_collision": None,
    }


def test_unknown_format_is_reported(run, file: str):
    result = run("info", file, "--format", "step")
    assert result.code == 2
    assert result.err.startswith("armillary: no format named 'step'.")


def test_an_error_is_an_object_with_json(run, file: str):
    result = run("fk", file, "--frame", "tpi", "--json")
    assert result.code == 2
    error = json.loads(result.out)["error"]
    assert error["kind"] == "UnknownName"
    assert result.err == f"armillary: {error['message']}\n"
    assert "Did you mean 'tip'?" in error["message"]


def test_faults_of_a_file_are_objects_with_json(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("bad.urdf").write_text("<robot name='r'><link name='a'/><link name='b'/>")
    result = run("info", "bad.urdf", "--json")
    assert result.code == 2
    (diagnostic,) = json.loads(result.out)["error"]["diagnostics"]
    assert (diagnostic["severity"], diagnostic["path"]) == ("error", "bad.urdf")
    assert diagnostic["line"] == 1
