"""What the root adds itself: load, save, and the cells that come along."""

from __future__ import annotations

import importlib
import runpy
from collections.abc import Callable
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import forks
from armillary.formats import registry
from armillary.formats.diagnostic import Report
from armillary.formats.json import document
from armillary.formats.mesh import MeshFiles
from armillary.formats.registry import Loaded
from armillary.model.workcell import Workcell

ROOT = Path(__file__).resolve().parents[1]
ENDING = ".cell.json"
SHIPPED = sorted(
    path.name.removesuffix(ENDING)
    for path in (files("armillary") / "cells").iterdir()
    if path.name.endswith(ENDING)
)


def test_there_are_shipped_cells():
    assert "ur5e_on_oval" in SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_cells_are_as_armillary_writes_them(name: str, tmp_path: Path):
    cell = arm.example(name)
    assert isinstance(cell, arm.Cell)
    assert cell.name == name
    report = arm.save(cell, tmp_path / "again.cell.json")
    assert report.diagnostics == ()
    shipped = files("armillary") / "cells" / f"{name}{ENDING}"
    assert (tmp_path / "again.cell.json").read_bytes() == shipped.read_bytes()
    assert arm.load(tmp_path / "again.cell.json") == cell


def test_the_version_is_that_of_the_distribution():
    assert arm.__version__ == version("armillary")
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        arm.lod  # noqa: B018


def test_dir_lists_what_is_public():
    assert dir(arm) == sorted([*arm.__all__, "__version__"])
    for name in dir(arm):
        assert getattr(arm, name) is not None


def test_threads_import_one_after_another(monkeypatch: pytest.MonkeyPatch):
    """Python may fail where one imports a package, and another a module of it.

    Two threads that make decoders of the same classes crash msgspec.
    """
    seen: list[str] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(name: Any) -> Any:
            assert forks.IMPORT_LOCK.lock._is_owned(), name  # pyright: ignore
            seen.append(str(name))
            return function(name)

        return noted

    monkeypatch.setattr(arm, "import_module", noting(importlib.import_module))
    monkeypatch.setattr(document, "_decoder", noting(document._decoder))
    for name in ("Pose", "joints", "METRE", "__version__"):
        assert arm.__getattr__(name) == getattr(arm, name)
    monkeypatch.setenv("ARMILLARY_CACHE", "off")  # what was read before is not decoded
    arm.example("scara")
    assert any("Pose" in each or "pose" in each for each in seen)
    assert any("class" in each for each in seen)


def test_unknown_example():
    with pytest.raises(arm.errors.UnknownName) as caught:
        arm.example("ur5_on_oval")
    text = str(caught.value)
    assert text.startswith("no example cell named 'ur5_on_oval'.")
    assert "Did you mean 'ur5e_on_oval'?" in text


@pytest.mark.parametrize("name", ["../cells/ur5e_on_oval", "", "/etc/passwd"])
def test_examples_are_names_not_paths(name: str):
    with pytest.raises(arm.errors.UnknownName):
        arm.example(name)


def test_load_gives_a_cell_that_answers(tmp_path: Path):
    body = arm.Manipulator(name="body", links=[arm.Link(name="base")])
    path = tmp_path / "x.cell.json"
    arm.save(Workcell(name="x", manipulators=(body,)), path)
    cell = arm.load(path)
    assert type(cell) is arm.Cell
    assert np.array_equal(cell.pose("base", cell.home), np.eye(4))


def test_load_and_save_pass_on_what_they_are_given(monkeypatch: pytest.MonkeyPatch):
    seen: list[dict[str, object]] = []
    report = Report()

    def load(path: str, **options: object) -> Loaded:
        seen.append(options)
        return Loaded(Workcell(), report, MeshFiles("."), {})

    def save(cell: Workcell, path: str, **options: object) -> Report:
        seen.append(options)
        return report

    monkeypatch.setattr(registry, "load", load)
    monkeypatch.setattr(registry, "save", save)
    told = {
        "format": "urdf",
        "packages": {"a": "b"},
        "folders": ["c"],
        "joints": [arm.joints.Revolute],
        "plugins": ["acme"],
        "strict_order": True,
        "strict": True,
        "lenient": False,
        "swapped_limits": "unlimited",
        "srdf": "robot.srdf",
        "self_collision": False,
        "arguments": {"prefix": "left_"},
        "fetch": True,
    }
    arm.load("x", **told)  # type: ignore[arg-type]
    assert arm.save(arm.Cell(), "y", format="cell", lossless=True) is report
    rest = {"meshes": None, "motions": None, "own_motions": {}, "rate": None}
    saved = {"format": "cell", "lossless": True, **rest}
    assert seen == [told, saved]


def test_what_a_format_cannot_hold_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    track = arm.Link(
        name="b", parent="a", joint=arm.joints.OvalTrack(straight=1, radius=1)
    )
    cell = arm.Cell(
        manipulators=[arm.Manipulator(name="m", links=[arm.Link(name="a"), track])]
    )
    report = arm.save(cell, tmp_path / "m.wc.xml")
    assert report.diagnostics
    assert [record.getMessage() for record in caplog.records] == [
        str(found) for found in report.diagnostics
    ]
    assert {record.name for record in caplog.records} == {"armillary.formats"}


def test_ur5e_is_that_of_the_data_sheet():
    cell = arm.example("ur5e_on_oval")
    X = cell.fk("tool0", relative_to="ur5e/base")(np.zeros(7))
    expected = [
        [1, 0, 0, -0.425 - 0.3922],
        [0, 0, -1, -0.1333 - 0.0996],
        [0, 1, 0, 0.1625 - 0.0997],
        [0, 0, 0, 1],
    ]
    assert np.abs(X - expected).max() < 1e-15


def test_the_script_makes_the_shipped_cell():
    script = runpy.run_path(str(ROOT / "examples" / "ur5e_on_oval.py"))
    assert script["build"]() == arm.example("ur5e_on_oval")


def test_the_track_carries_the_arm_around():
    cell = arm.example("ur5e_on_oval")
    lap = 2 * 3.0 + 2 * np.pi
    q = np.zeros((5, 7))
    q[:, 0] = np.linspace(0.0, lap, 5)
    X = cell.fk("ur5e/base")(q)
    where = [[0, -1], [2.5, 0], [0, 1], [-2.5, 0], [0, -1]]
    assert np.allclose(X[:, :2, 3], where, atol=1e-12)
    assert np.allclose(X[:, 2, 3], 0.5)
    ahead = [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]]
    assert np.allclose(X[:, :2, 0], ahead, atol=1e-12)
