"""`armillary compile`: the folder of `Cell.compile_to`."""

from __future__ import annotations

from pathlib import Path


def test_a_folder_is_written(run, file: str):
    ask = "tip=fk:hand/tip,jacobian:thumb"
    result = run("compile", file, "--ask", ask, "--to", "out", "--name", "lab")
    assert result.code == 0, result.err
    assert result.out.endswith("functions: lab_tip, lab_jacobian_thumb\n")
    for line in result.out.splitlines()[:-1]:
        name, _, size = line.partition(": ")
        assert Path(name).stat().st_size == int(size.removesuffix(" bytes"))


def test_what_is_wrong_is_said(run, file: str):
    arguments = "compile", file, "--ask", "fk:thumb", "--to", "out", "--name", "lab"
    assert "for float32" in run(*arguments, "--target", "armv7em").err
    assert run(*arguments, "--target", "armv7em", "--float32").code == 0
    again = run(*arguments)
    assert again.code != 0
    assert "already" in again.err
    assert run(*arguments, "--overwrite").code == 0
