from __future__ import annotations

import json
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


def test_fixes_name_options_with_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    text = URDF
    for name in "ab":
        text = text.replace(
            f'<link name="{name}"/>', f'<link name="{name}">{shape}</link>'
        )
    (tmp_path / "r.urdf").write_text(text)
    (tmp_path / "r.srdf").write_text('<robot name="r"/>')
    assert main(["check", str(tmp_path / "r.urdf"), "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert "--srdf '" in note["fix"]
    assert "srdf=" not in note["fix"]
