"""`armillary convert`: what is written is what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

import armillary as arm
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Place, Report
from armillary.formats.mesh.files import MeshFiles


def test_convert_writes_the_same_cell(run, file: str, cell: arm.Cell):
    result = run("convert", file, "copy.cell.json")
    assert (result.code, result.err) == (0, "")
    assert result.out == "copy.cell.json: written\n"
    assert arm.load("copy.cell.json") == cell


def test_losses_are_reported(run, file: str, monkeypatch: pytest.MonkeyPatch):
    seen: dict[str, object] = {}

    def save(cell: arm.Cell, path: str, **options: object) -> Report:
        seen.update(options, path=path)
        report = Report()
        report.warning(Place(), "no-limits", "limits are lost")
        return report

    monkeypatch.setattr(registry, "save", save)
    result = run("convert", file, "x.any", "--to", "urdf", "--lossless")
    assert result.code == 0
    assert result.out == "x.any: written, 1 warning\n"
    assert result.err == "warning[no-limits]: limits are lost\n"
    assert isinstance(seen.pop("meshes"), MeshFiles)
    assert seen.pop("own_motions") == {}
    assert seen == {"path": "x.any", "format": "urdf", "lossless": True}


def test_nothing_is_written_on_an_error(
    run, file: str, monkeypatch: pytest.MonkeyPatch
):
    def save(*_: object, **__: object) -> Report:
        raise FormatError("error[two-bases]: one robot only")

    monkeypatch.setattr(registry, "save", save)
    result = run("convert", file, "x.urdf")
    assert (result.code, result.out) == (2, "")
    assert result.err == "armillary: error[two-bases]: one robot only\n"
    assert not Path("x.urdf").exists()


@pytest.mark.parametrize("out", ["copy.step", "no/such/folder/x.cell.json"])
def test_a_target_that_cannot_be(run, file: str, out: str):
    result = run("convert", file, out)
    assert result.code == 2
    assert result.err.startswith("armillary: ")


def test_unknown_target_format(run, file: str):
    result = run("convert", file, "x", "--to", "step")
    assert result.code == 2
    assert result.err.startswith("armillary: no format named 'step'.")
