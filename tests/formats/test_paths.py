from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary.formats.diagnostic import Diagnostic, Place, Severity
from armillary.formats.paths import Roots

PLACE = Place("arm.urdf", 4, 5)


@pytest.fixture(scope="module")
def disk(tmp_path_factory) -> Path:
    """A disk with two packages, a robot, a library, and a secret beside them."""
    disk = tmp_path_factory.mktemp("disk").resolve()
    for name in (
        "share/ur_description/meshes/base.stl",
        "share/ur_description/meshes/base link.stl",
        "share/gripper/finger.stl",
        "robots/arm.urdf",
        "robots/meshes/own.stl",
        "library/shared.stl",
        "secret/key.stl",
    ):
        (disk / name).parent.mkdir(parents=True, exist_ok=True)
        (disk / name).write_text(name)
    (disk / "robots/escape").symlink_to(disk / "secret")
    (disk / "robots/key.stl").symlink_to(disk / "secret/key.stl")
    (disk / "robots/alias.stl").symlink_to("meshes/own.stl")
    (disk / "robots/loop").symlink_to("loop")
    return disk


@pytest.fixture
def roots(disk) -> Roots:
    return Roots(
        packages={"ur_description": disk / "share/ur_description"},
        folders=[disk / "library", disk / "share"],
    )


def find(roots: Roots, reference: str, disk: Path) -> Path | Diagnostic:
    return roots.find(reference, base=disk / "robots", place=PLACE)


def refusal(roots: Roots, reference: str, disk: Path) -> Diagnostic:
    found = find(roots, reference, disk)
    assert isinstance(found, Diagnostic), found
    assert found.place == PLACE
    assert found.severity is Severity.ERROR
    return found


@pytest.mark.parametrize(
    ("reference", "file"),
    [
        ("package://ur_description/meshes/base.stl", "share/ur_description/meshes"),
        ("package:///ur_description/meshes/base.stl", "share/ur_description/meshes"),
        ("PACKAGE://ur_description/meshes/../meshes/base.stl", "share/ur_descr"),
        ("package://ur_description/meshes/base link.stl", "share/ur_description"),
        ("package://ur_description/meshes/base%20link.stl", "share/ur_description"),
        ("package://ur_description//meshes/base.stl", "share/ur_description"),
        ("package://gripper/finger.stl", "share/gripper"),
        ("meshes/own.stl", "robots/meshes"),
        ("./meshes/own.stl", "robots/meshes"),
        ("meshes/./own.stl", "robots/meshes"),
        ("meshes//own.stl", "robots/meshes"),
        ("meshes/own.stl/", "robots/meshes"),
        ("meshes/own.stl/.", "robots/meshes"),
        ("alias.stl", "robots/meshes/own.stl"),
        ("shared.stl", "library"),
        ("gripper/finger.stl", "share/gripper"),
    ],
)
def test_references_lead_to_files_in_the_roots(roots, disk, reference, file):
    found = find(roots, reference, disk)
    assert isinstance(found, Path), found
    assert found.is_absolute()
    assert found.read_text().startswith(file)


def test_absolute_paths_and_file_references_work_inside_the_roots(roots, disk):
    file = disk / "library/shared.stl"
    spaced = disk / "share/ur_description/meshes/base link.stl"
    assert find(roots, str(file), disk) == file
    assert find(roots, f"file://{file}", disk) == file
    assert find(roots, f"file://localhost{file}", disk) == file
    assert find(roots, spaced.as_uri(), disk) == spaced


def test_the_own_folder_comes_first(roots, disk):
    (disk / "library/meshes").mkdir(exist_ok=True)
    (disk / "library/meshes/own.stl").write_text("the library's")
    assert find(roots, "meshes/own.stl", disk) == disk / "robots/meshes/own.stl"


@pytest.mark.parametrize(
    "reference",
    [
        "../secret/key.stl",
        "meshes/../../secret/key.stl",
        "escape/key.stl",
        "key.stl",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:///usr/Romeo/mesh.stl",
        "file:///%2e%2e/etc/passwd",
        "package://ur_description/../../secret/key.stl",
        "package://ur_description/%2e%2e/%2e%2e/secret/key.stl",
        "package://gripper/../../secret/key.stl",
    ],
)
def test_nothing_leads_out_of_the_roots(roots, disk, reference):
    found = refusal(roots, reference, disk)
    assert found.code == "reference-outside"
    assert found.hint.startswith("If it is trusted to be there, allow its folder: ")


def test_the_folder_to_allow_is_named(roots, disk):
    found = refusal(roots, "../secret/key.stl", disk)
    assert found.hint.endswith(f"allow its folder: folders=['{disk}'].")
    allowing = Roots(folders=[disk])
    assert find(allowing, "../secret/key.stl", disk) == disk / "secret/key.stl"
    assert "folders=['/etc']" in refusal(roots, "/etc/passwd", disk).hint


def test_a_way_out_that_leads_nowhere_is_refused_too(roots, disk):
    assert refusal(roots, "escape/no-such-file.stl", disk).code == "reference-missing"
    found = refusal(Roots(), "escape/no-such-file.stl", disk)
    assert found.code == "reference-outside"


def test_a_circle_of_links_hides_no_way_out(roots, disk):
    assert (disk / "robots/key.stl").exists()
    assert refusal(roots, "loop/../key.stl", disk).code == "reference-missing"
    assert refusal(roots, "loop", disk).code == "reference-missing"


def test_a_root_that_is_itself_a_link_is_followed(disk, tmp_path):
    (tmp_path / "link").symlink_to(disk / "library")
    roots = Roots(folders=[tmp_path / "link"])
    assert find(roots, "shared.stl", disk) == disk / "library/shared.stl"


@pytest.mark.parametrize(
    ("reference", "code", "words"),
    [
        ("http://a.example/x.stl", "reference-network", "nothing is fetched"),
        ("https://a.example/x.stl", "reference-network", "Download the file"),
        (
            "https://fuel.gazebosim.org/1.0/openrobotics/models/Cart's",
            "reference-network",
            "Cart'\"'\"'s'. Refer to it as model://",
        ),
        ("gopher://a/x.stl", "reference-scheme", "gopher is an unknown scheme"),
        ("blob://table/x.stl", "reference-scheme", "one of package, model, file"),
        ("model://table", "reference-package", "Write model://name/path"),
        ("//server/share/x.stl", "reference-network", "Copy the file here."),
        ("\\\\server\\share\\x.stl", "reference-network", "is on another machine"),
        ("file://server/x.stl", "reference-network", "the machine 'server'"),
        ("C:\\meshes\\x.stl", "reference-syntax", "a path of a Windows drive"),
        ("c:/meshes/x.stl", "reference-syntax", "a path of a Windows drive"),
        ("meshes\\own.stl", "reference-syntax", "Write / between folders."),
        ("$(find ur)/x.stl", "reference-syntax", "Run xacro over the file."),
        ("", "reference-syntax", "names no file"),
        ("  ", "reference-syntax", "names no file"),
        ("a\0b", "reference-syntax", "contains control characters"),
        ("a\nb", "reference-syntax", "contains control characters"),
        ("a" * 5000, "reference-syntax", "more than 4096 characters"),
        ("file:meshes/own.stl", "reference-syntax", "Write file:///"),
        ("file:///a%00b", "reference-syntax", "Write file:///"),
        ("package:ur_description/x", "reference-package", "Write package://name"),
        ("package://", "reference-package", "Write package://name"),
        ("package://ur_description", "reference-package", "Write package://name"),
        ("package://../secret/key.stl", "reference-package", "Write package://name"),
    ],
)
def test_refusals_name_the_fix(roots, disk, reference, code, words):
    found = refusal(roots, reference, disk)
    assert found.code == code
    assert words in str(found)
    assert str(found).isprintable()


def test_an_unknown_package_is_reported_with_the_nearest_and_the_fix(disk):
    roots = Roots(packages={"ur_description": disk})
    found = refusal(roots, "package://ur_descripton/a.stl", disk)
    assert found.code == "reference-package"
    assert found.message.endswith("the folder of package 'ur_descripton' is not known")
    assert found.hint == (
        "Did you mean 'ur_description'? "
        "If not, give its folder: packages={'ur_descripton': ...}."
    )
    assert refusal(Roots(), "package://x/a.stl", disk).hint == (
        "Give its folder: packages={'x': ...}."
    )


def test_a_missing_file_is_reported_with_where_it_was_looked_for(roots, disk):
    found = refusal(roots, "package://ur_description/meshes/base.STL", disk)
    assert found.code == "reference-missing"
    assert str(disk / "share/ur_description/meshes/base.STL") in found.message
    assert found.hint == "Did you mean 'base.stl'?"


def test_folders_and_pipes_are_not_files(roots, disk):
    assert refusal(roots, "meshes", disk).code == "reference-missing"
    if hasattr(os, "mkfifo"):
        os.mkfifo(disk / "robots/pipe")
        assert refusal(roots, "pipe", disk).code == "reference-missing"


def test_roots_cannot_be_changed_from_outside(disk):
    packages = {"a": disk}
    roots = Roots(packages=packages, folders=[disk])
    packages["b"] = disk
    assert dict(roots.packages) == {"a": disk}
    assert roots.folders == (disk,)
    with pytest.raises(TypeError):
        roots.packages["c"] = disk  # type: ignore[index]


PARTS = ["package:", "file:", "/", "//", "..", ".", "escape", "loop", "meshes", "\0"]
PARTS += ["ur_description", "key.stl", "own.stl", "%2e%2e", "%2f", "secret", "\\", " "]


@given(reference=st.lists(st.sampled_from(PARTS), max_size=8).map("".join) | st.text())
def test_whatever_is_asked_the_answer_is_a_file_inside_or_a_refusal(disk, reference):
    roots = Roots(packages={"ur_description": disk / "share/ur_description"})
    found = find(roots, reference, disk)
    if isinstance(found, Path):
        real = found.resolve(strict=True)
        allowed = (disk / "robots", disk / "share/ur_description")
        assert real == found
        assert any(real.is_relative_to(root) for root in allowed)
    else:
        assert str(found).isprintable()


def test_one_reading_may_keep_where_folders_lead(roots, disk):
    """Answers are those of references that are followed one by one."""
    for folder, to in (("mine", "robots/meshes"), ("out", "secret"), ("no", "nowhere")):
        (disk / "robots" / folder).symlink_to(disk / to)
    known: dict[str, str] = {}
    names = ("own.stl", "key.stl", "alias.stl", "base.stl", "loop", "", ".", "..")
    folders = ("", "meshes/", "mine/", "out/", "no/", "loop/", "escape/", "arm.urdf/")
    more = ("mine/../", "mine/../meshes/", "escape/../robots/", "out/./", "../robots/")
    for _ in range(2):
        for folder in (*folders, *more, f"file://{disk}/robots/mine/"):
            for name in names:
                given = f"{folder}{name}"
                expected = find(roots, given, disk)
                kept = roots.find(given, base=disk / "robots", place=PLACE, known=known)
                assert kept == expected, given
                if isinstance(kept, Path):
                    assert kept == Path(os.path.realpath(kept))


@pytest.mark.parametrize(
    "way", ["loop/..", "./loop/..", "loop/x/../..", "one/two/../..", "meshes/../one/.."]
)
def test_what_is_behind_a_cycle_of_links_is_not_followed(roots, disk, way):
    """A cycle leads nowhere, and links after it may remain in the path."""
    for name, to in (("one", "two"), ("two", "one")):
        if not (disk / "robots" / name).is_symlink():
            (disk / "robots" / name).symlink_to(to)
    known: dict[str, str] = {}
    for tail in ("escape/key.stl", "escape", "key.stl", "meshes/own.stl", "") * 2:
        given, base = f"{way}/{tail}", disk / "robots"
        found = roots.find(given, base=base, place=PLACE, known=known)
        assert isinstance(found, Diagnostic), given
        assert isinstance(find(roots, given, disk), Diagnostic), given


def test_the_folder_of_the_file_that_refers_need_not_exist(roots, disk):
    """A text that was never written may name where it is to be."""
    for base in (disk / "nowhere", disk / "robots/loop"):
        found = roots.find("own.stl", base=base, place=PLACE)
        assert isinstance(found, Diagnostic)
        assert found.code == "reference-missing"
        assert isinstance(roots.find("shared.stl", base=base, place=PLACE), Path)


def test_a_link_that_is_changed_between_readings_is_followed_anew(roots, disk):
    link = disk / "robots/changing"
    link.symlink_to("meshes")
    assert isinstance(find(roots, "changing/own.stl", disk), Path)
    link.unlink()
    link.symlink_to(disk / "secret")
    assert refusal(roots, "changing/key.stl", disk).code == "reference-outside"


def test_many_references_to_one_folder_follow_it_once(roots, disk, monkeypatch):
    known: dict[str, str] = {}
    followed: list[str] = []
    realpath = os.path.realpath

    def counted(path, **options):
        followed.append(os.fspath(path))
        return realpath(path, **options)

    monkeypatch.setattr(os.path, "realpath", counted)
    for _ in range(30):
        base, reference = disk / "robots", "package://ur_description/meshes/base.stl"
        found = roots.find(reference, base=base, place=PLACE, known=known)
        assert isinstance(found, Path)
    assert len(followed) <= 3
