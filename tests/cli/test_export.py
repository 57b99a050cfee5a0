"""`armillary export`: pages, and what is said of meshes that they lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MESH = '<geometry><mesh filename="package://parts/a.stl"/></geometry>'
URDF = f"""\
<robot name="r">
  <link name="a"><visual>{MESH}</visual></link>
  <link name="b"/>
  <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>
</robot>
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder, with a robot."""
    monkeypatch.chdir(tmp_path)
    Path("r.urdf").write_text(URDF)


def test_only_a_page_is_written(run: Any):
    result = run("export", "r.urdf", "page.txt")
    assert result.code == 2
    assert "'page.txt' does not end in '.html'" in result.err
    assert "'armillary convert'" in result.err
    assert not Path("page.txt").exists()


def test_what_is_not_drawn_names_options(run: Any):
    result = run("export", "r.urdf", "page.html")
    assert result.code == 0
    assert "Give its folder: --package parts=DIR." in result.out
    assert Path("page.html").read_text().startswith("<!doctype html>")
