"""Stages that are broken or hostile: clear errors, and nothing outside is read."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import pytest

import armillary as arm
from armillary.errors import ArmillaryError, FormatError
from armillary.formats import registry
from armillary.formats.usd import process
from usd_stages import HEAD, arm_text, pxr

pytest.importorskip("pxr")

SECRET = (
    HEAD.format(metres=1, up="Z")
    + 'def Xform "World"\n{\ndef Sphere "secret"\n{\n}\n}\n'
)


def diagnosed(path: Path) -> list[str]:
    """The ids of all diagnostics of a file, read or not."""
    try:
        _, report = registry.read(path)
    except FormatError as error:
        return [each.code for each in error.diagnostics]
    return [each.code for each in report.diagnostics]


@pytest.mark.parametrize(
    ("asset", "code"),
    [
        ("../secret.usda", "reference-outside"),
        ("{folder}/secret.usda", "reference-outside"),
        ("https://example.org/a.usda", "reference-network"),
        ("omniverse://server/a.usda", "reference-scheme"),
        ("missing.usda", "reference-missing"),
        ("box.usdz[../../secret.usda]", "reference-syntax"),
        ("inside.usda:SDF_FORMAT_ARGS:a=b", "reference-syntax"),
    ],
)
@pytest.mark.parametrize("how", ["references", "payload", "subLayers"])
def test_references_lead_nowhere_else(
    tmp_path: Path, asset: str, code: str, how: str
) -> None:
    (tmp_path / "secret.usda").write_text(SECRET)
    home = tmp_path / "home"
    home.mkdir()
    asset = asset.format(folder=tmp_path)
    text = HEAD.format(metres=1, up="Z") + 'def Xform "World"\n{\n'
    if how == "subLayers":
        text = text.replace("(\n", f"(\n    subLayers = [@{asset}@]\n", 1)
    else:
        text += f'def Xform "in" (\nprepend {how} = @{asset}@\n)\n{{\n}}\n'
    text += 'def Cube "box"\n{\n}\n}\n'
    path = home / "stage.usda"
    path.write_text(text)
    cell, report = registry.read(path)
    assert code in [each.code for each in report.diagnostics]
    names = {s.name for m in cell.manipulators for k in m.links for s in k.visuals}
    assert names == {"box"}


def test_layers_that_refer_to_each_other_and_to_links_out(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "secret.usda").write_text(SECRET)
    (folder / "link.usda").symlink_to(tmp_path / "secret.usda")
    for name, other in (("a", "b"), ("b", "a")):
        (folder / f"{name}.usda").write_text(
            HEAD.format(metres=1, up="Z")
            + f'def Xform "World" (\nprepend references = [@{other}.usda@, '
            "@link.usda@]\n)\n{\n"
            'def Cube "box"\n{\n}\n}\n'
        )
    assert "reference-outside" in diagnosed(folder / "a.usda")


def test_packages_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.usdz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.usda", b"#usda 1.0\n" + b"\n" * 50_000_000)
    assert diagnosed(path) == ["bad-usd"]
    path.write_bytes(b"PK\3\4" + path.read_bytes()[4:200])
    assert diagnosed(path) == ["bad-usd"]


def test_a_fault_of_syntax_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.usda"
    path.write_text(arm_text().replace("float physics:mass = 3", "float mass == 3"))
    with pytest.raises(FormatError) as caught:
        registry.read(path)
    (found,) = caught.value.diagnostics
    line = path.read_text().splitlines().index("            float mass == 3") + 1
    assert (found.place.path, found.place.line) == (str(path), line)


def test_a_process_that_crashes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is not trusted: its end, its silence and its lies are errors."""
    path = tmp_path / "a.usda"
    path.write_text(arm_text())
    for line in (b"", b"{", b'{"scene": 3}\n', b'{"error": ["a", "b"]}\n'):

        class Lying:
            def __init__(self, answer: bytes) -> None:
                self.answer = answer

            def ask(self, message: bytes, *, seconds: float, longest: int) -> bytes:
                return self.answer

            def end(self) -> None:
                pass

        monkeypatch.setattr(process, "_process", lambda line=line: Lying(line))
        assert diagnosed(path) == ["usd-failed"]


FAULTY = """#usda 1.0
( upAxis = "Z"
  doc = \'\'\'def Xform "no" { \'\'\' )
# def Xform "comment" {
def Xform "cell" (
    variants = { string size = "big" }
    prepend variantSets = "size"
)
{
    string note = "def Sphere \\"no\\" {"
    float3[] points = [(0, 0, 0), (1, 0, 0)]
    variantSet "size" = {
        "big" {
            def Sphere "ball"
            {
                double radius = nan
            }
        }
    }
    def Cube "box"
    {
        double size = nan
    }
    def Xform "in" (
        references = @inner.usda@</part>
    )
    {
    }
}
"""
INNER = '#usda 1.0\ndef Xform "part"\n{\ndef Cube "far"\n{\ndouble size = nan\n}\n}\n'


@pytest.mark.parametrize("ending", ["usda", "usdc"])
def test_faults_say_where(tmp_path: Path, ending: str) -> None:
    text, path = tmp_path / "a.usda", tmp_path / f"a.{ending}"
    text.write_text(FAULTY)
    (tmp_path / "inner.usda").write_text(INNER)
    if ending == "usdc":
        pxr("Sdf").Layer.FindOrOpen(str(text)).Export(str(path))
    with pytest.raises(FormatError) as caught:
        registry.read(path)
    places = [each.place for each in caught.value.diagnostics]
    found = {place.part: place.line for place in places if place.part}
    lines = {"/cell/ball": 16, "/cell/box": 22}
    if ending == "usdc":
        lines = dict.fromkeys(lines, 0)
    assert found == {**lines, "/cell/in/far": 6}  # in the text of the other layer
    at = "a.usda:22" if ending == "usda" else "a.usdc"
    assert f"{at} </cell/box>: error[bad-number]" in str(caught.value)
    far = next(place for place in places if place.part == "/cell/in/far")
    assert far.path == str(tmp_path / "inner.usda")


def test_lines_of_attributes_in_layers_below(tmp_path: Path) -> None:
    (tmp_path / "base.usda").write_text(arm_text())
    text = '#usda 1.0\n(\n    defaultPrim = "World"\n    subLayers = [@base.usda@]\n)\n'
    path = tmp_path / "top.usda"
    path.write_text(text)
    before = arm_text().splitlines()
    number = next(
        k for k, line in enumerate(before) if "float physics:mass = 3" in line
    )
    before[number] = before[number].replace("3", "nan")
    (tmp_path / "base.usda").write_text("\n".join(before))
    with pytest.raises(FormatError) as caught:
        registry.read(path)
    first = caught.value.diagnostics[0].place
    assert (first.path, first.line) == (str(tmp_path / "base.usda"), number + 1)


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.usda"
    path.write_text(arm_text())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for ask in (
        lambda: registry.read(path),
        lambda: arm.save(arm.example("scara"), path),
    ):
        with pytest.raises(FormatError, match=r"pip install armillary\[usd\]"):
            ask()


def test_mutated_files_give_cells_or_errors(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    source = tmp_path / "a.usda"
    source.write_text(arm_text())
    binary = tmp_path / "a.usdc"
    pxr("Sdf").Layer.FindOrOpen(str(source)).Export(str(binary))
    drawn = random.Random(int(pytestconfig.getoption("seed")))
    for k in range(24):
        data = bytearray((binary if k % 2 else source).read_bytes())
        for _ in range(drawn.choice([1, 2, 8])):
            place = drawn.randrange(len(data))
            data[place] = drawn.choice([drawn.randrange(256), 0, 255])
        path = tmp_path / f"mutated{'.usdc' if k % 2 else '.usda'}"
        path.write_bytes(data)
        try:
            registry.read(path)
        except ArmillaryError:
            continue
