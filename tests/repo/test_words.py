"""What is committed must make sense on any machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written in pieces, so that this file does not contain what it looks for.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?<![\w.}])/(work|farm)" + r"/",  # folders of one machine
            r"(?<![\w.}])/tmp" + r"/\w",
            r"(?<![\w.}])/(home|Users)" + r"/\w",
            r"/opt" + r"/(pypi|wheels)",
            r"pypi" + r"\.org",  # package registries
            r"python" + r"hosted\.org",
            r"npm" + r"js\.(org|com)",
        ]
    )
)


def found(text: str) -> list[str]:
    """The lines that name a machine's folder or a registry."""
    return [line for line in text.splitlines() if FORBIDDEN.search(line)]


def tracked() -> list[Path]:
    """Every file that git keeps here."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        [git, "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_no_machine_paths_or_registries():
    paths = tracked()
    assert paths
    lines = {
        str(path.relative_to(ROOT)): found(path.read_text("utf-8", errors="replace"))
        for path in paths
    }
    assert {name: bad for name, bad in lines.items() if bad} == {}


# Words of our own that standard ones have replaced; docs/conventions.md has these.
OLD_WORDS = re.compile(r"\b([Mm]end(s|ed|ing)?|is none of|is no pose|whom|told)\b")
NOT_YET = ("src/armillary/formats/",)  # shrinks


def test_old_words_are_gone():
    names = [path.relative_to(ROOT).as_posix() for path in tracked()]
    pages = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
    lines = [
        f"{name}:{number}: {line.strip()}"
        for name in names
        if name.startswith(("src/", "docs/", *pages)) and not name.startswith(NOT_YET)
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
        if OLD_WORDS.search(line)
    ]
    assert not lines


@pytest.mark.parametrize(
    "line",
    ["see /wor" + "k/x", "'/tm" + "p/x'", "https://py" + "pi.org/x", "/hom" + "e/me"],
)
def test_bad_lines_are_found(line: str):
    assert found(f"fine\n{line}\n") == [line]


@pytest.mark.parametrize("line", ["a frame/work/piece", "tmp_path / 'x'", "../work/x"])
def test_good_lines_are_not(line: str):
    assert found(line) == []
