"""What is committed must make sense on any machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written in pieces, so that this file does not contain what it looks for. Each begins
# with a letter as it is, which is found quickly.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"/(?<![\w.}]/)(work|farm)" + r"/",  # folders of one machine
            r"/(?<![\w.}]/)tmp" + r"/\w",
            r"/(?<![\w.}]/)(home|Users)" + r"/\w",
            r"/opt" + r"/(pypi|wheels)",
            r"pypi" + r"\.org",  # package registries
            r"python" + r"hosted\.org",
            r"npm" + r"js\.(org|com)",
        ]
    )
)


def found(text: str) -> list[str]:
    """The lines that name a machine's folder or a registry."""
    lines = text.splitlines() if FORBIDDEN.search(text) else []
    return [line for line in lines if FORBIDDEN.search(line)]


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


# Words that standard ones have replaced; docs/conventions.md has these.
OLD_WORDS = re.compile(
    r"\b(?:"
    + "|".join(
        [
            r"([Mm]end(s|ed|ing)?|[Ww]hom|[Tt]old|[Ff]indings)\b",
            r"[Ww]ish(e[sd]|ing)?\b",
            r"([Jj]ury|[Jj]uries|[Kk]inship|[Cc]lumsiness|[Pp]atience|[Ss]alt)\b",
            r"(?<!here )(is|are|was) (no (?!longer\b|more\b)|none\b)",
            r"(is|are|be) held\b|held (by|already|down)\b",
            r"(stands?|stood|standing) on\b",
            # `bolted` remains the name of a field.
            r"(not|is|are|be|being|was) bolted\b|bolted (to|down|mounts?|parts?)\b",
        ]
    )
    + ")"
)
PLACES = ("src/", "docs/", "examples/", "benchmarks/", "README.md", "ARCHITECTURE.md")


def old_words(name: str, text: str) -> list[str]:
    """The lines of a file with old words; of tests only their names."""
    lines = enumerate(text.splitlines(), 1)
    if name.startswith("tests/"):
        lines = [
            (k, line.replace("_", " ")) for k, line in lines if "def test_" in line
        ]
    elif not OLD_WORDS.search(text):
        return []
    return [
        f"{name}:{k}: {line.strip()}" for k, line in lines if OLD_WORDS.search(line)
    ]


def test_old_words_are_gone():
    paths = {path.relative_to(ROOT).as_posix(): path for path in tracked()}
    checked = ("CONTRIBUTING.md", "tests/", *PLACES)
    lines = [
        line
        for name, path in paths.items()
        if name.startswith(checked)
        for line in old_words(name, path.read_text("utf-8", errors="replace"))
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
