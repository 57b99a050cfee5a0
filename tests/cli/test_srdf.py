from __future__ import annotations

from pathlib import Path

import pytest

from armillary.cli.main import main

URDF = """<robot name="r"><link name="a"/><link name="b"/>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


def test_an_srdf_stands_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "r.urdf").write_text(URDF)
    (tmp_path / "r.srdf").write_text(
        '<robot name="r"><passive_joint name="jj"/><passive_joint name="j"/></robot>'
    )
    files = [str(tmp_path / "r.urdf"), "--srdf", str(tmp_path / "r.srdf")]
    assert main(["check", *files]) == 0
    found = capsys.readouterr().out
    assert "r.srdf:1:17: warning[unknown-joint]" in found
    assert "0 errors, 1 warning" in found
    assert main(["convert", *files, str(tmp_path / "r.cell.json")]) == 0
    assert '"passive": true' in (tmp_path / "r.cell.json").read_text()
    assert main(["check", files[0], "--srdf", str(tmp_path / "none.srdf")]) == 1
